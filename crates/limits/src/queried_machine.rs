//! Machine types, and the search for the row of a table that applies to one.

use super::error::LimitsError;
use super::limits_file::LimitRow;
use super::query::Query;
use iosonde_job::diagnostic::nearest;

/// A machine of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueriedMachine {
    /// Name in lower case: a machine type or a family.
    pub(super) name: String,
    /// `n1` of `n1-standard-8`, `m5` of `m5.large`.
    pub(super) family: String,
    /// Number of vCPUs, if known.
    pub(super) vcpus: Option<u32>,
    /// Whether `name` is a machine type, not a family.
    pub(super) is_type: bool,
    /// Number of vCPUs that the name contains.
    pub(super) vcpus_in_name: Option<u32>,
    /// Part of the name after the number of vCPUs: `lssd`, `highlssd-metal`.
    pub(super) rest: String,
    /// Processor that the query names.
    cpu: Option<String>,
}

impl QueriedMachine {
    /// Returns the machine of a query, if it has one.
    pub(super) fn from_query(query: &Query) -> Result<Option<QueriedMachine>, LimitsError> {
        let Some(name) = &query.machine else {
            return Ok(None);
        };
        let name = name.to_lowercase();
        let parts: Vec<&str> = name.split(['-', '.']).collect();
        let number = parts
            .iter()
            .skip(1)
            .position(|part| part.parse::<u32>().is_ok())
            .map(|index| index + 1);
        let vcpus_in_name = number.and_then(|index| parts[index].parse().ok());
        if let (Some(vcpus_in_name), Some(given)) = (vcpus_in_name, query.vcpus)
            && vcpus_in_name != given
        {
            return Err(LimitsError::Contradiction(format!(
                "machine {name} has {vcpus_in_name} vCPUs, not {given}"
            )));
        }
        // Google's custom types of N1 have no family in the name: `custom-4-8192`.
        let family = if parts[0] == "custom" { "n1" } else { parts[0] };
        Ok(Some(QueriedMachine {
            family: family.to_owned(),
            vcpus: vcpus_in_name.or(query.vcpus),
            vcpus_in_name,
            is_type: parts.len() > 1,
            rest: number.map_or(String::new(), |index| parts[index + 1..].join("-")),
            cpu: query.cpu.clone(),
            name,
        }))
    }

    /// Returns the machine type. A family with a number of vCPUs means its standard type.
    pub(super) fn type_name(&self) -> String {
        match self.vcpus {
            Some(vcpus) if !self.is_type => format!("{}-standard-{vcpus}", self.family),
            _ => self.name.clone(),
        }
    }

    /// Returns the name for messages: `n1-standard-8`, `n1 with 8 vCPUs`.
    pub(super) fn label(&self) -> String {
        match self.vcpus {
            Some(vcpus) if !self.is_type => format!("{} with {vcpus} vCPUs", self.name),
            _ => self.name.clone(),
        }
    }
}

/// Returns the row for a machine. A row for the machine type overrides rows for its family.
pub(super) fn find_row<'a>(
    rows: impl Iterator<Item = &'a LimitRow>,
    machine: &QueriedMachine,
    product: &str,
    optional: bool,
) -> Result<&'a LimitRow, LimitsError> {
    let rows: Vec<&LimitRow> = rows
        .filter(|row| {
            row.family
                .as_ref()
                .is_none_or(|family| *family == machine.family)
        })
        .collect();
    if let Some(row) = rows
        .iter()
        .find(|row| row.machine.as_ref() == Some(&machine.name))
    {
        return Ok(row);
    }
    let family_rows: Vec<&LimitRow> = rows
        .iter()
        .copied()
        .filter(|row| row.machine.is_none())
        .collect();
    if family_rows.is_empty() {
        let known: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.machine.as_deref())
            .collect();
        return Err(unknown(machine, product, &known, optional));
    }
    let matching = rows_with_vcpus(&family_rows, machine, product)?;
    select_row(&matching, machine, product)
}

/// Returns the error about a machine without limits.
pub(super) fn unknown(
    machine: &QueriedMachine,
    product: &str,
    known: &[&str],
    optional: bool,
) -> LimitsError {
    LimitsError::UnknownMachine {
        product: product.to_owned(),
        machine: machine.name.clone(),
        nearest: nearest(&machine.name, known.iter().copied()).map(str::to_owned),
        known: known_machines(known),
        optional,
    }
}

/// Lists machines by name, or by family if there are many.
pub(super) fn known_machines(known: &[&str]) -> String {
    const FEW: usize = 24;
    if known.len() <= FEW {
        return known.join(", ");
    }
    let mut families: Vec<&str> = Vec::new();
    for name in known {
        let family = name.split(['-', '.']).next().unwrap_or(name);
        if !families.contains(&family) {
            families.push(family);
        }
    }
    format!("types of {}", families.join(", "))
}

fn rows_with_vcpus<'a>(
    rows: &[&'a LimitRow],
    machine: &QueriedMachine,
    product: &str,
) -> Result<Vec<&'a LimitRow>, LimitsError> {
    let Some(vcpus) = machine.vcpus else {
        if rows.iter().all(|row| vcpus_text(row).is_empty()) {
            return Ok(rows.to_vec());
        }
        return Err(LimitsError::Missing {
            product: product.to_owned(),
            parameter: "vcpus",
            why: format!(
                "the limits of {} depend on its number of vCPUs",
                machine.name
            ),
        });
    };
    let matching: Vec<&LimitRow> = rows
        .iter()
        .copied()
        .filter(|row| has_vcpus(row, vcpus))
        .collect();
    if matching.is_empty() {
        let offered: Vec<String> = rows.iter().map(|row| vcpus_text(row)).collect();
        return Err(LimitsError::OutOfRange {
            product: product.to_owned(),
            what: format!("{vcpus} vCPUs of {}", machine.family),
            offered: offered.join(", "),
        });
    }
    Ok(matching)
}

/// Selects one of the rows for a family and number of vCPUs, by the type's suffix and processor.
fn select_row<'a>(
    all: &[&'a LimitRow],
    machine: &QueriedMachine,
    product: &str,
) -> Result<&'a LimitRow, LimitsError> {
    let ends = |row: &&&LimitRow| match &row.suffix {
        Some(suffix) => machine.rest == *suffix || machine.rest == format!("lssd-{suffix}"),
        None => !machine.rest.ends_with("metal"),
    };
    let rows: Vec<&LimitRow> = if machine.is_type {
        all.iter().filter(ends).copied().collect()
    } else {
        all.to_vec()
    };
    let rows: Vec<&LimitRow> = match &machine.cpu {
        Some(cpu) => rows
            .iter()
            .copied()
            .filter(|row| {
                row.cpu
                    .as_ref()
                    .is_none_or(|of| of.eq_ignore_ascii_case(cpu))
            })
            .collect(),
        None => rows,
    };
    match rows.as_slice() {
        [] => Err(LimitsError::OutOfRange {
            product: product.to_owned(),
            what: machine.label(),
            offered: format!("{} types that end in {}", machine.family, endings(all)),
        }),
        [row] => Ok(row),
        several if several.iter().any(|row| row.cpu.is_some()) => {
            let cpus: Vec<&str> = several
                .iter()
                .filter_map(|row| row.cpu.as_deref())
                .collect();
            Err(LimitsError::Missing {
                product: product.to_owned(),
                parameter: "cpu",
                why: format!("{} comes with {}", machine.label(), cpus.join(" or ")),
            })
        }
        several => Err(LimitsError::Missing {
            product: product.to_owned(),
            parameter: "machine",
            why: format!(
                "{} has several types, which end in {}",
                machine.label(),
                endings(several)
            ),
        }),
    }
}

/// Lists the suffixes of the machine types: `-highlssd, -standardlssd`.
fn endings(rows: &[&LimitRow]) -> String {
    let suffixes = rows.iter().filter_map(|row| row.suffix.as_deref());
    let endings: Vec<String> = suffixes.map(|suffix| format!("-{suffix}")).collect();
    endings.join(", ")
}

fn has_vcpus(row: &LimitRow, vcpus: u32) -> bool {
    (row.vcpus.is_empty() || row.vcpus.contains(&vcpus))
        && row.vcpu_min.is_none_or(|min| vcpus >= min)
        && row.vcpu_max.is_none_or(|max| vcpus <= max)
}

/// Formats the vCPUs of a row: `8-15`, `64 or more`, `64, 80`. Empty for any number.
pub(super) fn vcpus_text(row: &LimitRow) -> String {
    if !row.vcpus.is_empty() {
        let numbers: Vec<String> = row.vcpus.iter().map(u32::to_string).collect();
        return numbers.join(", ");
    }
    range_text(row.vcpu_min, row.vcpu_max)
}

/// Formats a range: `8-15`, `64 or more`, `up to 15`, `8`. Empty for any number.
pub(super) fn range_text(min: Option<u32>, max: Option<u32>) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => min.to_string(),
        (Some(min), Some(max)) => format!("{min}-{max}"),
        (Some(min), None) => format!("{min} or more"),
        (None, Some(max)) => format!("up to {max}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(name: &str) -> (String, Option<u32>, String) {
        let query = Query {
            machine: Some(name.to_owned()),
            ..Query::default()
        };
        let machine = QueriedMachine::from_query(&query).unwrap().unwrap();
        (machine.family, machine.vcpus, machine.rest)
    }

    #[test]
    fn machine_type_name_is_split_into_parts() {
        let of = |family: &str, vcpus, rest: &str| (family.to_owned(), vcpus, rest.to_owned());
        assert_eq!(machine("n1"), of("n1", None, ""));
        assert_eq!(machine("n1-standard-8"), of("n1", Some(8), ""));
        assert_eq!(machine("N2-custom-12-16384"), of("n2", Some(12), "16384"));
        assert_eq!(machine("custom-4-8192"), of("n1", Some(4), "8192"));
        assert_eq!(machine("a2-highgpu-1g"), of("a2", None, ""));
        assert_eq!(
            machine("z3-highmem-192-highlssd-metal"),
            of("z3", Some(192), "highlssd-metal")
        );
        assert_eq!(machine("m5.2xlarge"), of("m5", None, ""));
    }

    #[test]
    fn machine_type_with_other_vcpus_is_refused() {
        let query = Query {
            machine: Some("n1-standard-8".to_owned()),
            vcpus: Some(4),
            ..Query::default()
        };
        let error = QueriedMachine::from_query(&query).unwrap_err();
        assert_eq!(
            error.to_string(),
            "machine n1-standard-8 has 8 vCPUs, not 4"
        );
    }
}
