//! Checks of a limits file beyond its syntax: references and figures.

use super::Limits;
use super::error::LimitsFileError;
use super::limits_file::{FigureOrigin, LimitRow, LimitsFile, Product};
use super::query::parse_date;
use std::collections::BTreeSet;
use toml::Spanned;

/// The only supported version of the format.
const SCHEMA: u32 = 1;

/// Reads and checks a file, which may also refer to caps and products of `base`.
pub(super) fn read_limits_file(
    name: &str,
    text: &str,
    base: Option<&Limits>,
) -> Result<LimitsFile, LimitsFileError> {
    let error = |offset: usize, message: String| LimitsFileError::at(name, text, offset, message);
    let file: LimitsFile = toml::from_str(text).map_err(|problem| {
        let offset = problem.span().map_or(0, |span| span.start);
        error(offset, problem.message().to_owned())
    })?;
    match problem(&file, base) {
        Some((offset, message)) => Err(error(offset, message)),
        None => Ok(file),
    }
}

type Problem = (usize, String);

fn problem_at<T>(place: &Spanned<T>, message: String) -> Option<Problem> {
    Some((place.span().start, message))
}

fn problem(file: &LimitsFile, base: Option<&Limits>) -> Option<Problem> {
    let schema = *file.schema.get_ref();
    if schema != SCHEMA {
        let message =
            format!("schema {schema} is unknown; this version of iosonde reads schema {SCHEMA}");
        return problem_at(&file.schema, message);
    }
    let groups: BTreeSet<&str> = file
        .caps
        .iter()
        .chain(base.map(Limits::all_caps).into_iter().flatten())
        .map(|caps| caps.group.get_ref().as_str())
        .collect();
    file.product
        .iter()
        .find_map(|product| product_problem(product, &groups))
        .or_else(|| duplicate_edition(&file.product))
        .or_else(|| {
            file.caps.iter().find_map(|caps| {
                fault_of_rows(&caps.rows)
                    .and_then(|message| problem_at(&caps.group, message))
                    .or_else(|| {
                        origin(&caps.origin).and_then(|message| problem_at(&caps.group, message))
                    })
            })
        })
        .or_else(|| disk_counts_problem(file, base))
        .or_else(|| {
            file.machine_types.iter().find_map(|types| {
                origin(&types.origin).and_then(|message| problem_at(&types.family, message))
            })
        })
}

fn product_problem(product: &Product, groups: &BTreeSet<&str>) -> Option<Problem> {
    if let Err(problem) = parse_date(product.from.get_ref()) {
        return problem_at(&product.from, problem);
    }
    let unknown = |group: &&Spanned<String>| !groups.contains(group.get_ref().as_str());
    if let Some(group) = product.machine.caps.iter().find(unknown) {
        return problem_at(group, format!("group `{}` has no caps", group.get_ref()));
    }
    let nothing = product.limit.amounts().is_empty()
        && product.tiers.is_empty()
        && product.machine.caps.is_empty()
        && product.provision.iops.is_none()
        && product.provision.mib_per_s.is_none()
        && product.provision.mb_per_s.is_none();
    let message = if nothing {
        Some("the product has no limits: add limit, tiers, provision or machine.caps".to_owned())
    } else {
        origin(&product.origin)
            .or_else(|| fault_of_rows(&product.tiers))
            .or_else(|| fault_of_rows(&product.machine.rows))
    };
    message.and_then(|message| problem_at(&product.name, message))
}

fn origin(origin: &FigureOrigin) -> Option<String> {
    (origin.source.trim().is_empty() || origin.as_of.trim().is_empty())
        .then(|| "add the source of the figures and its date to origin".to_owned())
}

fn fault_of_rows(rows: &[LimitRow]) -> Option<String> {
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

/// Returns an error if two editions of a product begin to hold on the same date.
fn duplicate_edition(products: &[Product]) -> Option<Problem> {
    let mut seen = BTreeSet::new();
    products.iter().find_map(|product| {
        let key = (product.name.get_ref(), product.from.get_ref());
        if seen.insert(key) {
            return None;
        }
        let message = format!("`{}` from {} is given twice", key.0, key.1);
        problem_at(&product.name, message)
    })
}

fn disk_counts_problem(file: &LimitsFile, base: Option<&Limits>) -> Option<Problem> {
    let known = |name: &str| {
        file.product
            .iter()
            .any(|product| product.name.get_ref() == name)
            || base.is_some_and(|base| base.has(name))
    };
    file.disk_counts.iter().find_map(|table| {
        let unknown = table.products.iter().find(|name| !known(name.get_ref()));
        if let Some(name) = unknown {
            return problem_at(name, format!("unknown product `{}`", name.get_ref()));
        }
        let first = table.products.first()?;
        if table.rows.iter().any(|row| row.counts.is_empty()) {
            return problem_at(first, "a row of disk counts is empty".to_owned());
        }
        origin(&table.origin).and_then(|message| problem_at(first, message))
    })
}
