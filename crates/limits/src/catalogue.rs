//! The catalogue of products: those that come with the program, and those of a user's own file.

use crate::error::LimitsError;
use crate::limits_file::{DiskCounts, LimitsFile, MachineCaps, MachineTypes, Product};
use crate::query::Query;
use iosonde_job::diagnostic::nearest;
use std::collections::BTreeSet;

/// Most products that the error for an unknown one suggests.
const SIMILAR_PRODUCTS_MAX: usize = 3;

/// Published limits of many products. A product may have several editions.
#[derive(Debug, Clone)]
pub struct Limits {
    pub(crate) products: Vec<Product>,
    pub(crate) caps: Vec<MachineCaps>,
    pub(crate) disk_counts: Vec<DiskCounts>,
    pub(crate) machine_types: Vec<MachineTypes>,
}

/// A product, as a list of the products shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Listed {
    /// Name of the product.
    pub name: String,
    /// Full name of the product.
    pub title: String,
    /// Aliases of the product.
    pub aliases: Vec<String>,
    /// Parameters of the limits: `size`, `machine`, `iops`... Brackets mark optional ones.
    pub needs: Vec<String>,
    /// Dates from which the editions are known to hold, in ascending order.
    pub editions: Vec<String>,
    /// Date of publication of the newest edition.
    pub as_of: String,
    /// Source of the newest edition.
    pub source: String,
}

impl Limits {
    pub(crate) fn from_file(file: LimitsFile) -> Limits {
        Limits {
            products: file.product,
            caps: file.caps,
            disk_counts: file.disk_counts,
            machine_types: file.machine_types,
        }
    }

    /// Returns all products, in the order of the file.
    pub fn list(&self) -> Vec<Listed> {
        let mut seen = BTreeSet::new();
        let names = self.products.iter().map(|product| product.name.get_ref());
        names
            .filter(|name| seen.insert(name.as_str()))
            .filter_map(|name| self.listed(name))
            .collect()
    }

    fn listed(&self, name: &str) -> Option<Listed> {
        let editions = self.editions(name);
        let newest = editions.last()?;
        Some(Listed {
            name: name.to_owned(),
            title: newest.title.clone(),
            aliases: newest.aliases.clone(),
            needs: needs(newest),
            editions: editions
                .iter()
                .map(|edition| edition.from.get_ref().clone())
                .collect(),
            as_of: newest.origin.as_of.clone(),
            source: newest.origin.source.clone(),
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.products
            .iter()
            .any(|product| product.name.get_ref() == name)
    }

    pub(crate) fn all_caps(&self) -> &[MachineCaps] {
        &self.caps
    }

    pub(crate) fn group_tables(&self, group: &str) -> impl Iterator<Item = &MachineCaps> {
        self.caps
            .iter()
            .filter(move |caps| caps.group.get_ref() == group)
    }

    pub(crate) fn count_tables(&self, product: &str) -> impl Iterator<Item = &DiskCounts> {
        self.disk_counts
            .iter()
            .filter(move |table| table.products.iter().any(|name| name.get_ref() == product))
    }

    /// Returns the machine types of a family, if a file lists them. A user's list takes precedence.
    pub(crate) fn family_types(&self, family: &str) -> Option<&MachineTypes> {
        self.machine_types
            .iter()
            .rev()
            .find(|types| types.family.get_ref() == family)
    }

    /// Returns whether a row of any table names the machine type.
    pub(crate) fn names_machine(&self, name: &str) -> bool {
        let is = |machine: &Option<String>| machine.as_deref() == Some(name);
        let caps = self.caps.iter().flat_map(|caps| &caps.rows);
        let own = self
            .products
            .iter()
            .flat_map(|product| &product.machine.rows);
        let mut counts = self.disk_counts.iter().flat_map(|table| &table.rows);
        caps.chain(own).any(|row| is(&row.machine)) || counts.any(|row| is(&row.machine))
    }

    /// Returns the editions of a product, the newest last.
    fn editions(&self, name: &str) -> Vec<&Product> {
        let mut editions: Vec<&Product> = self
            .products
            .iter()
            .filter(|product| product.name.get_ref() == name)
            .collect();
        editions.sort_by_key(|edition| edition.from.get_ref());
        editions
    }

    /// Returns the edition of the query's product that holds at the query's date.
    pub(crate) fn edition(&self, query: &Query) -> Result<&Product, LimitsError> {
        let wanted = query.product.to_lowercase().replace('_', "-");
        let named = |product: &&Product| {
            *product.name.get_ref() == wanted || product.aliases.contains(&wanted)
        };
        let Some(product) = self.products.iter().find(named) else {
            return Err(self.no_product(&query.product, &wanted));
        };
        let editions = self.editions(product.name.get_ref());
        let Some(as_of) = &query.as_of else {
            return Ok(editions[editions.len() - 1]);
        };
        // A year or month means its last day, so an edition that begins within it holds.
        let begun = |edition: &&&Product| {
            let from = edition.from.get_ref();
            from.get(..as_of.len()).unwrap_or(from) <= as_of.as_str()
        };
        editions
            .iter()
            .rev()
            .find(begun)
            .copied()
            .ok_or_else(|| LimitsError::NoEdition {
                product: product.name.get_ref().clone(),
                as_of: as_of.clone(),
                oldest: editions[0].from.get_ref().clone(),
            })
    }

    fn no_product(&self, name: &str, wanted: &str) -> LimitsError {
        let names: BTreeSet<&str> = self
            .products
            .iter()
            .map(|product| product.name.get_ref().as_str())
            .collect();
        let aliases = self.products.iter().flat_map(|product| &product.aliases);
        let mut others: Vec<&str> = names.iter().copied().collect();
        others.extend(aliases.map(String::as_str));
        let mut similar: Vec<String> = Vec::new();
        while let Some(near) = nearest(wanted, others.iter().copied()) {
            others.retain(|name| *name != near);
            similar.push(near.to_owned());
        }
        if similar.is_empty() {
            let within = names.iter().filter(|name| name.ends_with(wanted));
            similar.extend(within.map(|name| (*name).to_owned()));
        }
        similar.truncate(SIMILAR_PRODUCTS_MAX);
        LimitsError::UnknownProduct {
            name: name.to_owned(),
            similar,
        }
    }
}

/// Returns the parameters of a product's limits. Brackets mark optional ones.
fn needs(product: &Product) -> Vec<String> {
    let mut needs = Vec::new();
    if product.size.disk_gib.is_some() {
        needs.push("disks".to_owned());
    } else if !product.size.from_machine {
        needs.push("size".to_owned());
    }
    let machine = &product.machine;
    if machine.required {
        needs.push("machine".to_owned());
    } else if !machine.caps.is_empty()
        || !machine.full_speed_vcpus.is_empty()
        || !machine.min_vcpus.is_empty()
    {
        needs.push("[machine]".to_owned());
    }
    let provision = &product.provision;
    let bandwidth = provision.mib_per_s.as_ref().or(provision.mb_per_s.as_ref());
    for (name, choice) in [("iops", provision.iops.as_ref()), ("throughput", bandwidth)] {
        match choice.map(|choice| choice.included) {
            Some(Some(_)) => needs.push(format!("[{name}]")),
            Some(None) => needs.push(name.to_owned()),
            None => {}
        }
    }
    let options: BTreeSet<&String> = product
        .tiers
        .iter()
        .flat_map(|row| row.options.keys())
        .collect();
    if !options.is_empty() {
        needs.push("[with]".to_owned());
    }
    needs
}
