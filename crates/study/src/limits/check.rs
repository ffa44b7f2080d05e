//! What a limits file must be beyond its syntax: everything it refers to exists, and every figure makes sense.

use super::Limits;
use super::error::LimitsFileError;
use super::file::{File, Origin, Product, Row};
use super::query::date;
use std::collections::BTreeSet;
use toml::Spanned;

/// The only version of the format.
const SCHEMA: u32 = 1;

/// Reads a file and checks it. `base` is what it may refer to beside itself.
pub(super) fn read(name: &str, text: &str, base: Option<&Limits>) -> Result<File, LimitsFileError> {
    let error = |offset: usize, message: String| LimitsFileError::at(name, text, offset, message);
    let file: File = toml::from_str(text).map_err(|problem| {
        let offset = problem.span().map_or(0, |span| span.start);
        error(offset, problem.message().to_owned())
    })?;
    match problem(&file, base) {
        Some((offset, message)) => Err(error(offset, message)),
        None => Ok(file),
    }
}

type Problem = (usize, String);

fn at<T>(place: &Spanned<T>, message: String) -> Option<Problem> {
    Some((place.span().start, message))
}

fn problem(file: &File, base: Option<&Limits>) -> Option<Problem> {
    let schema = *file.schema.get_ref();
    if schema != SCHEMA {
        let message = format!("schema {schema} is not known; this program reads schema {SCHEMA}");
        return at(&file.schema, message);
    }
    let groups: BTreeSet<&str> = file
        .caps
        .iter()
        .chain(base.map(Limits::all_caps).into_iter().flatten())
        .map(|caps| caps.group.get_ref().as_str())
        .collect();
    file.product
        .iter()
        .find_map(|product| of_product(product, &groups))
        .or_else(|| twice(&file.product))
        .or_else(|| {
            file.caps.iter().find_map(|caps| {
                rows(&caps.rows)
                    .and_then(|message| at(&caps.group, message))
                    .or_else(|| origin(&caps.origin).and_then(|message| at(&caps.group, message)))
            })
        })
        .or_else(|| counts(file, base))
        .or_else(|| {
            file.machine_types.iter().find_map(|types| {
                origin(&types.origin).and_then(|message| at(&types.family, message))
            })
        })
}

fn of_product(product: &Product, groups: &BTreeSet<&str>) -> Option<Problem> {
    if let Err(problem) = date(product.from.get_ref()) {
        return at(&product.from, problem);
    }
    let unknown = |group: &&Spanned<String>| !groups.contains(group.get_ref().as_str());
    if let Some(group) = product.machine.caps.iter().find(unknown) {
        return at(
            group,
            format!("there are no caps of group `{}`", group.get_ref()),
        );
    }
    let nothing = product.limit.amounts().is_empty()
        && product.tiers.is_empty()
        && product.machine.caps.is_empty()
        && product.provision.iops.is_none()
        && product.provision.mib_per_s.is_none()
        && product.provision.mb_per_s.is_none();
    let message = if nothing {
        Some("the product has no limits: give limit, tiers, provision or machine.caps".to_owned())
    } else {
        origin(&product.origin)
            .or_else(|| rows(&product.tiers))
            .or_else(|| rows(&product.machine.rows))
    };
    message.and_then(|message| at(&product.name, message))
}

fn origin(origin: &Origin) -> Option<String> {
    (origin.source.trim().is_empty() || origin.as_of.trim().is_empty())
        .then(|| "say in origin where the figures come from, and when it said so".to_owned())
}

fn rows(rows: &[Row]) -> Option<String> {
    rows.iter()
        .enumerate()
        .find_map(|(index, row)| match (row.vcpu_min, row.vcpu_max) {
            (Some(min), Some(max)) if min > max => Some(format!(
                "row {}: vcpu_min {min} is more than vcpu_max {max}",
                index + 1
            )),
            _ => None,
        })
}

/// Two editions of a product must differ in the day from which they hold.
fn twice(products: &[Product]) -> Option<Problem> {
    let mut seen = BTreeSet::new();
    products.iter().find_map(|product| {
        let key = (product.name.get_ref(), product.from.get_ref());
        if seen.insert(key) {
            return None;
        }
        let message = format!("`{}` from {} is given twice", key.0, key.1);
        at(&product.name, message)
    })
}

fn counts(file: &File, base: Option<&Limits>) -> Option<Problem> {
    let known = |name: &str| {
        file.product
            .iter()
            .any(|product| product.name.get_ref() == name)
            || base.is_some_and(|base| base.has(name))
    };
    file.disk_counts.iter().find_map(|table| {
        let unknown = table.products.iter().find(|name| !known(name.get_ref()));
        if let Some(name) = unknown {
            return at(name, format!("there is no product `{}`", name.get_ref()));
        }
        let first = table.products.first()?;
        if table.rows.iter().any(|row| row.counts.is_empty()) {
            return at(first, "a row of disk counts is empty".to_owned());
        }
        origin(&table.origin).and_then(|message| at(first, message))
    })
}
