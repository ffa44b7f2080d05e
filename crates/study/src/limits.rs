//! What vendors publish about their volumes, and what it makes of a size and a machine.
//!
//! The figures are in a data file, `data/limits.toml`, with the source of each; docs/limits.md describes its format,
//! which is also that of a user's own file. [`Limits::evaluate`] is a pure function of the file and a [`Query`]; a
//! [`Promise`] judges what was measured.

mod check;
mod disks;
mod error;
mod evaluate;
mod file;
mod held;
mod judge;
mod machine;
mod probed;
mod promise;
mod query;
mod term;
#[cfg(test)]
mod tests;
mod types;

pub use error::{LimitsError, LimitsFileError};
pub use file::{Delivery, Evidence, Shared};
pub use held::{Doubt, Held, HeldFigure, Outcome};
pub use judge::{Judged, Measured, Verdict};
pub use probed::measured_by_probe;
pub use promise::{Bound, BurstLength, Limiter, Metric, Promise, Promised, Source, Unit, exact};
pub use query::{ChosenBandwidth, Query, bandwidth, count, date, iops, size_gib};

use file::{Caps, DiskCounts, File, MachineTypes, Product};
use iosonde_job::diagnostic::nearest;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The published limits of many products, each perhaps in several editions.
#[derive(Debug, Clone)]
pub struct Limits {
    products: Vec<Product>,
    caps: Vec<Caps>,
    disk_counts: Vec<DiskCounts>,
    machine_types: Vec<MachineTypes>,
}

/// A product in a list.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its full name.
    pub title: String,
    /// Other names that are understood.
    pub aliases: Vec<String>,
    /// What its limits depend on: `size`, `machine`, `iops`...; those in brackets may be left out.
    pub needs: Vec<String>,
    /// The days from which its editions are known to hold, the newest last.
    pub editions: Vec<String>,
    /// When the newest was published.
    pub as_of: String,
    /// Where.
    pub source: String,
}

impl Limits {
    /// The limits that come with the program.
    pub fn published() -> &'static Limits {
        static PUBLISHED: OnceLock<Limits> = OnceLock::new();
        PUBLISHED.get_or_init(|| {
            let text = include_str!("../../../data/limits.toml");
            match check::read("data/limits.toml", text, None) {
                Ok(file) => Limits::of(file),
                // A test reads the same text.
                Err(error) => panic!("{error}"),
            }
        })
    }

    /// These limits and those of a user's own file, which may refer to the caps of these. A product of the same name takes
    /// the place of all editions of the one here.
    pub fn with_file(&self, name: &str, text: &str) -> Result<Limits, LimitsFileError> {
        let own = Limits::of(check::read(name, text, Some(self))?);
        let mut all = self.clone();
        all.products
            .retain(|product| !own.has(product.name.get_ref()));
        all.disk_counts.retain(|table| {
            !table
                .products
                .iter()
                .any(|product| own.has(product.get_ref()))
        });
        all.products.extend(own.products);
        all.caps.extend(own.caps);
        all.disk_counts.extend(own.disk_counts);
        all.machine_types.extend(own.machine_types);
        Ok(all)
    }

    fn of(file: File) -> Limits {
        Limits {
            products: file.product,
            caps: file.caps,
            disk_counts: file.disk_counts,
            machine_types: file.machine_types,
        }
    }

    /// What the vendor publishes for a volume of some size on some machine.
    pub fn evaluate(&self, query: &Query) -> Result<Promise, LimitsError> {
        evaluate::evaluate(self, query)
    }

    /// All products, in the order of the file.
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

    fn has(&self, name: &str) -> bool {
        self.products
            .iter()
            .any(|product| product.name.get_ref() == name)
    }

    fn all_caps(&self) -> &[Caps] {
        &self.caps
    }

    fn caps_of(&self, group: &str) -> impl Iterator<Item = &Caps> {
        self.caps
            .iter()
            .filter(move |caps| caps.group.get_ref() == group)
    }

    fn count_tables(&self, product: &str) -> impl Iterator<Item = &DiskCounts> {
        self.disk_counts
            .iter()
            .filter(move |table| table.products.iter().any(|name| name.get_ref() == product))
    }

    /// The machine types of a family, if the file lists them; a user's own list counts before the published one.
    fn types_of(&self, family: &str) -> Option<&MachineTypes> {
        self.machine_types
            .iter()
            .rev()
            .find(|types| types.family.get_ref() == family)
    }

    /// Whether some row is about the machine type by its name.
    fn names_machine(&self, name: &str) -> bool {
        let is = |machine: &Option<String>| machine.as_deref() == Some(name);
        let caps = self.caps.iter().flat_map(|caps| &caps.rows);
        let own = self
            .products
            .iter()
            .flat_map(|product| &product.machine.rows);
        let mut counts = self.disk_counts.iter().flat_map(|table| &table.rows);
        caps.chain(own).any(|row| is(&row.machine)) || counts.any(|row| is(&row.machine))
    }

    /// The editions of a product, the newest last.
    fn editions(&self, name: &str) -> Vec<&Product> {
        let mut editions: Vec<&Product> = self
            .products
            .iter()
            .filter(|product| product.name.get_ref() == name)
            .collect();
        editions.sort_by_key(|edition| edition.from.get_ref());
        editions
    }

    /// The edition that a query means.
    fn edition(&self, query: &Query) -> Result<&Product, LimitsError> {
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
        // A year stands for its last day: what began to hold within it counts.
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
        let all = names.iter().copied().chain(aliases.map(String::as_str));
        let within = || names.iter().copied().find(|name| name.ends_with(wanted));
        LimitsError::UnknownProduct {
            name: name.to_owned(),
            nearest: nearest(wanted, all).or_else(within).map(str::to_owned),
            known: names.iter().copied().collect::<Vec<_>>().join(", "),
        }
    }
}

/// What the limits of a product depend on.
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
