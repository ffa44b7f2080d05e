//! Machine types, and the row of a table that is about one.

use super::error::LimitsError;
use super::file::Row;
use super::query::Query;
use iosonde_job::diagnostic::nearest;

/// A machine as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    /// What was given.
    pub(super) name: String,
    /// `n1` of `n1-standard-8`, `m5` of `m5.large`.
    pub(super) family: String,
    /// Number of vCPUs.
    pub(super) vcpus: Option<u32>,
    /// Whether `name` is a machine type, not a family.
    pub(super) is_type: bool,
    /// The number of vCPUs that the name tells.
    pub(super) told: Option<u32>,
    /// What follows the number of vCPUs: `lssd`, `highlssd-metal`.
    pub(super) rest: String,
    /// Processor.
    cpu: Option<String>,
}

impl Machine {
    /// The machine of a query, if it has one.
    pub(super) fn of(query: &Query) -> Result<Option<Machine>, LimitsError> {
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
        let told = number.and_then(|index| parts[index].parse().ok());
        if let (Some(told), Some(given)) = (told, query.vcpus)
            && told != given
        {
            return Err(LimitsError::Contradiction(format!(
                "machine {name} has {told} vCPUs, not {given}"
            )));
        }
        // Machine types of Google's that begin with the number are custom ones of the first family.
        let family = if parts[0] == "custom" { "n1" } else { parts[0] };
        Ok(Some(Machine {
            family: family.to_owned(),
            vcpus: told.or(query.vcpus),
            told,
            is_type: parts.len() > 1,
            rest: number.map_or(String::new(), |index| parts[index + 1..].join("-")),
            cpu: query.cpu.clone(),
            name,
        }))
    }

    /// Its type; for a family with a number of vCPUs, the standard type of that size.
    pub(super) fn type_name(&self) -> String {
        match self.vcpus {
            Some(vcpus) if !self.is_type => format!("{}-standard-{vcpus}", self.family),
            _ => self.name.clone(),
        }
    }

    /// What it is called in an answer: `n1-standard-8`, `n1 with 8 vCPUs`.
    pub(super) fn label(&self) -> String {
        match self.vcpus {
            Some(vcpus) if !self.is_type => format!("{} with {vcpus} vCPUs", self.name),
            _ => self.name.clone(),
        }
    }
}

/// The row about a machine, from rows that may be limited to a family as a whole.
pub(super) fn row_of<'a>(
    rows: impl Iterator<Item = &'a Row>,
    machine: &Machine,
    product: &str,
    optional: bool,
) -> Result<&'a Row, LimitsError> {
    let rows: Vec<&Row> = rows
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
    let of_family: Vec<&Row> = rows
        .iter()
        .copied()
        .filter(|row| row.machine.is_none())
        .collect();
    if of_family.is_empty() {
        let known: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.machine.as_deref())
            .collect();
        return Err(unknown(machine, product, &known, optional));
    }
    let matching = by_vcpus(&of_family, machine, product)?;
    one_of(&matching, machine, product)
}

/// An error about a machine that is not in the file.
pub(super) fn unknown(
    machine: &Machine,
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

/// The machines by name, or by family if there are many.
fn known_machines(known: &[&str]) -> String {
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

fn by_vcpus<'a>(
    rows: &[&'a Row],
    machine: &Machine,
    product: &str,
) -> Result<Vec<&'a Row>, LimitsError> {
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
    let matching: Vec<&Row> = rows
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

/// Of rows that differ only in what the machine's name or processor tells.
fn one_of<'a>(all: &[&'a Row], machine: &Machine, product: &str) -> Result<&'a Row, LimitsError> {
    let ends = |row: &&&Row| match &row.suffix {
        Some(suffix) => machine.rest == *suffix || machine.rest == format!("lssd-{suffix}"),
        None => !machine.rest.ends_with("metal"),
    };
    let rows: Vec<&Row> = if machine.is_type {
        all.iter().filter(ends).copied().collect()
    } else {
        all.to_vec()
    };
    let rows: Vec<&Row> = match &machine.cpu {
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
                "there are several types of {}, which end in {}",
                machine.label(),
                endings(several)
            ),
        }),
    }
}

/// What the names of the machine types end in: `-highlssd, -standardlssd`.
fn endings(rows: &[&Row]) -> String {
    let suffixes = rows.iter().filter_map(|row| row.suffix.as_deref());
    let endings: Vec<String> = suffixes.map(|suffix| format!("-{suffix}")).collect();
    endings.join(", ")
}

fn has_vcpus(row: &Row, vcpus: u32) -> bool {
    (row.vcpus.is_empty() || row.vcpus.contains(&vcpus))
        && row.vcpu_min.is_none_or(|min| vcpus >= min)
        && row.vcpu_max.is_none_or(|max| vcpus <= max)
}

/// The vCPUs that a row is about: `8-15`, `64 or more`, `64, 80`; empty for any.
pub(super) fn vcpus_text(row: &Row) -> String {
    if !row.vcpus.is_empty() {
        let numbers: Vec<String> = row.vcpus.iter().map(u32::to_string).collect();
        return numbers.join(", ");
    }
    range_text(row.vcpu_min, row.vcpu_max)
}

/// `8-15`, `64 or more`, `up to 15`, `8`; empty for any.
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
        let machine = Machine::of(&query).unwrap().unwrap();
        (machine.family, machine.vcpus, machine.rest)
    }

    #[test]
    fn machine_types_tell_their_family_and_size() {
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
    fn a_type_and_a_number_that_differ_are_refused() {
        let query = Query {
            machine: Some("n1-standard-8".to_owned()),
            vcpus: Some(4),
            ..Query::default()
        };
        let error = Machine::of(&query).unwrap_err();
        assert_eq!(
            error.to_string(),
            "machine n1-standard-8 has 8 vCPUs, not 4"
        );
    }
}
