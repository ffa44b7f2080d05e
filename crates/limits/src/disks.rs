//! Sizes and numbers of disks: products for sale, machine types, and the tier of a size.

use super::Limits;
use super::error::LimitsError;
use super::limits_file::{CountRow, DiskCounts, FigureOrigin, LimitRow, OfferedSizes, Product};
use super::metric::{command_number, exact};
use super::queried_machine::{QueriedMachine, find_row, range_text};
use super::query::Query;

/// The volumes of a query.
pub(super) struct Volumes<'a> {
    /// Size of each volume in GiB. `None`: the limits do not depend on it.
    pub(super) size_gib: Option<f64>,
    /// Number of volumes. `None`: not known yet.
    pub(super) disks: Option<u32>,
    /// Remarks on the volumes for the user.
    pub(super) remarks: Vec<String>,
    /// Source of the allowed numbers of disks.
    pub(super) origin: Option<&'a FigureOrigin>,
}

/// Checks size and number of the volumes.
pub(super) fn volumes<'a>(
    limits: &'a Limits,
    product: &'a Product,
    query: &Query,
    machine: Option<&QueriedMachine>,
) -> Result<Volumes<'a>, LimitsError> {
    if product.size.from_machine {
        return with_machine(limits, product, query, machine);
    }
    if let Some(disk_gib) = product.size.disk_gib {
        return whole_disks(limits, product, query, machine, disk_gib);
    }
    let Some(size_gib) = query.size_gib else {
        return Err(LimitsError::Missing {
            product: product.name.get_ref().clone(),
            parameter: "size",
            why: "its limits depend on the size of the volume".to_owned(),
        });
    };
    if !product.size.has(size_gib) {
        return Err(out_of_range(product, size_gib));
    }
    Ok(Volumes {
        size_gib: Some(size_gib),
        disks: Some(query.disks.unwrap_or(1)),
        remarks: Vec::new(),
        origin: None,
    })
}

/// Checks disks that come with the machine. The machine's row of the caps has their number.
fn with_machine<'a>(
    limits: &'a Limits,
    product: &'a Product,
    query: &Query,
    machine: Option<&QueriedMachine>,
) -> Result<Volumes<'a>, LimitsError> {
    let name = product.name.get_ref();
    let Some(machine) = machine else {
        return Err(LimitsError::Missing {
            product: name.clone(),
            parameter: "machine",
            why: "the disks come with the machine".to_owned(),
        });
    };
    let tables = || {
        let groups = product.machine.caps.iter();
        groups.flat_map(|group| limits.group_tables(group.get_ref()))
    };
    let Some(caps) = tables().find(|caps| caps.family.as_ref() == Some(&machine.family)) else {
        let families: Vec<&str> = tables().filter_map(|caps| caps.family.as_deref()).collect();
        return Err(limits.no_disks_of(machine, name, &families, false));
    };
    let row = find_row(caps.rows.iter(), machine, name, false)?;
    let (count, disk_gib) = (row.has_disks.unwrap_or(1), row.disk_gib.unwrap_or(0.0));
    let fits = |size: f64| size == disk_gib || size == disk_gib * f64::from(count);
    if query.disks.is_some_and(|disks| disks != count)
        || query.size_gib.is_some_and(|size| !fits(size))
    {
        return Err(LimitsError::OutOfRange {
            product: name.clone(),
            what: format!("another number or size of disks on {}", machine.label()),
            offered: format!("{count} of {} GiB", exact(disk_gib)),
        });
    }
    Ok(Volumes {
        size_gib: Some(disk_gib),
        disks: Some(count),
        remarks: Vec::new(),
        origin: None,
    })
}

/// Checks disks of one size. The machine type limits their number.
fn whole_disks<'a>(
    limits: &'a Limits,
    product: &'a Product,
    query: &Query,
    machine: Option<&QueriedMachine>,
    disk_gib: f64,
) -> Result<Volumes<'a>, LimitsError> {
    let name = product.name.get_ref();
    let asked = asked_disks(product, query, disk_gib)?;
    let mut remarks = Vec::new();
    let mut origin = None;
    let mut only = None;
    if let Some(machine) = machine
        && let Some((table, row)) = limits.disk_counts(name, machine)?
    {
        origin = Some(&table.origin);
        allowed(product, machine, row, asked)?;
        only = row.fixed.then(|| row.counts[0]);
    }
    if let (Some(machine), Some(count)) = (machine, asked) {
        for (table, row) in limits.service_counts(name, machine) {
            if row.counts.contains(&count) {
                continue;
            }
            if query.service == table.service {
                return Err(too_many(
                    product,
                    machine,
                    row,
                    count,
                    table.service.as_deref(),
                ));
            }
            remarks.push(format!(
                "service {} does not allow {count} disks on {}; it allows {}",
                table.service.as_deref().unwrap_or(""),
                machine.name,
                numbers(&row.counts)
            ));
        }
    }
    let Some(disks) = asked.or(only) else {
        return Err(LimitsError::Missing {
            product: name.clone(),
            parameter: "disks",
            why: format!(
                "the limits depend on the number of disks of {} GiB each",
                exact(disk_gib)
            ),
        });
    };
    Ok(Volumes {
        size_gib: Some(disk_gib),
        disks: Some(disks),
        remarks,
        origin,
    })
}

/// Returns the requested number of disks. A total size is converted to a number of disks.
fn asked_disks(
    product: &Product,
    query: &Query,
    disk_gib: f64,
) -> Result<Option<u32>, LimitsError> {
    let Some(size_gib) = query.size_gib else {
        return Ok(query.disks);
    };
    let disks = size_gib * f64::from(query.disks.unwrap_or(1)) / disk_gib;
    if disks.fract() != 0.0 || disks < 1.0 {
        return Err(out_of_range(product, size_gib));
    }
    Ok(Some(disks as u32))
}

fn allowed(
    product: &Product,
    machine: &QueriedMachine,
    row: &CountRow,
    asked: Option<u32>,
) -> Result<(), LimitsError> {
    if let Some(why) = &row.unpublished {
        return Err(LimitsError::Unpublished {
            product: product.name.get_ref().clone(),
            machine: machine.name.clone(),
            why: why.clone(),
        });
    }
    match asked {
        Some(count) if !row.counts.contains(&count) => {
            Err(too_many(product, machine, row, count, None))
        }
        _ => Ok(()),
    }
}

fn too_many(
    product: &Product,
    machine: &QueriedMachine,
    row: &CountRow,
    count: u32,
    service: Option<&str>,
) -> LimitsError {
    let within = service.map_or(String::new(), |service| format!(" in {service}"));
    LimitsError::OutOfRange {
        product: product.name.get_ref().clone(),
        what: format!("{} on {}{within}", plural(count), machine.label()),
        offered: numbers(&row.counts),
    }
}

fn plural(disks: u32) -> String {
    if disks == 1 {
        "1 disk".to_owned()
    } else {
        format!("{disks} disks")
    }
}

/// Formats numbers: `1, 2, 4 or 8`; `1 to 8`.
fn numbers(counts: &[u32]) -> String {
    let runs = counts
        .windows(2)
        .take_while(|pair| pair[1] == pair[0] + 1)
        .count();
    let mut words: Vec<String> = if runs >= 2 {
        let first = format!("{} to {}", counts[0], counts[runs]);
        let rest = counts[runs + 1..].iter().map(u32::to_string);
        std::iter::once(first).chain(rest).collect()
    } else {
        counts.iter().map(u32::to_string).collect()
    };
    match (words.pop(), words.is_empty()) {
        (Some(last), true) => last,
        (Some(last), false) => format!("{} or {last}", words.join(", ")),
        (None, _) => "none".to_owned(),
    }
}

impl Limits {
    /// Returns the numbers of disks of a machine. `None`: no table is about the product.
    fn disk_counts(
        &self,
        product: &str,
        machine: &QueriedMachine,
    ) -> Result<Option<(&DiskCounts, &CountRow)>, LimitsError> {
        let tables: Vec<&DiskCounts> = self
            .count_tables(product)
            .filter(|table| table.service.is_none())
            .collect();
        if tables.is_empty() {
            return Ok(None);
        }
        let by_type = tables
            .iter()
            .flat_map(|table| table.rows.iter().map(move |row| (*table, row)))
            .find(|(_, row)| row.machine.as_ref() == Some(&machine.name));
        if by_type.is_some() {
            return Ok(by_type);
        }
        let Some(table) = tables
            .iter()
            .find(|table| table.family.as_ref() == Some(&machine.family))
        else {
            let mut known: Vec<&str> = tables
                .iter()
                .filter_map(|table| table.family.as_deref())
                .collect();
            let rows = tables.iter().flat_map(|table| &table.rows);
            known.extend(rows.filter_map(|row| row.machine.as_deref()));
            return Err(self.no_disks_of(machine, product, &known, true));
        };
        let Some(vcpus) = machine.vcpus else {
            return Err(LimitsError::Missing {
                product: product.to_owned(),
                parameter: "vcpus",
                why: format!(
                    "the valid numbers of disks of {} depend on its number of vCPUs",
                    machine.name
                ),
            });
        };
        match table.rows.iter().find(|row| row.takes(vcpus)) {
            Some(row) => Ok(Some((table, row))),
            None => Err(LimitsError::OutOfRange {
                product: product.to_owned(),
                what: machine.label(),
                offered: format!("{} with {} vCPUs", machine.family, vcpu_ranges(table)),
            }),
        }
    }

    /// Returns the numbers of disks that services allow on a machine type, in addition to its own.
    fn service_counts<'a>(
        &'a self,
        product: &'a str,
        machine: &'a QueriedMachine,
    ) -> impl Iterator<Item = (&'a DiskCounts, &'a CountRow)> {
        self.count_tables(product)
            .filter(|table| table.service.is_some())
            .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
            .filter(|(_, row)| row.machine.as_ref() == Some(&machine.type_name()))
    }
}

impl Limits {
    /// Returns the commands that make the query's machine and disks through its service.
    pub(super) fn commands(&self, product: &str, query: &Query) -> Vec<String> {
        let (Some(service), Some(disks)) = (&query.service, query.disks) else {
            return Vec::new();
        };
        let machine = query.machine.as_deref().unwrap_or("TYPE");
        let disk_gib = self.disk_gib(product).unwrap_or(0.0);
        let all_gib = command_number(disk_gib * f64::from(disks));
        self.count_tables(product)
            .filter(|table| table.service.as_ref() == Some(service))
            .filter_map(|table| table.command.as_ref())
            .map(|command| {
                let command = command.get_ref().replace("{disks}", &disks.to_string());
                let command = command.replace("{all_gib}", &all_gib);
                command.replace("{machine}", machine)
            })
            .collect()
    }

    /// Returns the size of a disk of the product, if its disks have one size.
    fn disk_gib(&self, product: &str) -> Option<f64> {
        let mut named = self.products.iter();
        let product = named.find(|known| known.name.get_ref() == product)?;
        product.size.disk_gib
    }
}

impl CountRow {
    fn takes(&self, vcpus: u32) -> bool {
        self.machine.is_none()
            && self.vcpu_min.is_none_or(|min| vcpus >= min)
            && self.vcpu_max.is_none_or(|max| vcpus <= max)
    }
}

fn vcpu_ranges(table: &DiskCounts) -> String {
    let ranges = table
        .rows
        .iter()
        .map(|row| range_text(row.vcpu_min, row.vcpu_max));
    ranges.collect::<Vec<_>>().join(", ")
}

impl OfferedSizes {
    fn has(&self, size_gib: f64) -> bool {
        let within = self.min_gib.is_none_or(|min| size_gib >= min)
            && self.max_gib.is_none_or(|max| size_gib <= max);
        let last = self.steps_gib.last();
        let on_step = last.is_none()
            || self.steps_gib.contains(&size_gib)
            || self.then_every_gib.is_some_and(|every| {
                last.is_some_and(|last| size_gib > *last) && size_gib % every == 0.0
            });
        within && on_step
    }

    /// Describes the sizes that are sold.
    fn text(&self) -> String {
        let gib = |size: f64| format!("{} GiB", exact(size));
        if let Some(disk) = self.disk_gib {
            return format!("disks of {}, and multiples of it", gib(disk));
        }
        if !self.steps_gib.is_empty() {
            let steps: Vec<String> = self.steps_gib.iter().map(|step| exact(*step)).collect();
            let beyond = self.then_every_gib.map_or(String::new(), |every| {
                format!(", then multiples of {}", gib(every))
            });
            return format!("sizes of {} GiB{beyond}", steps.join(", "));
        }
        match (self.min_gib, self.max_gib) {
            (Some(min), Some(max)) => format!("{} to {}", gib(min), gib(max)),
            (Some(min), None) => format!("{} or more", gib(min)),
            (None, Some(max)) => format!("up to {}", gib(max)),
            (None, None) => "any size".to_owned(),
        }
    }
}

fn out_of_range(product: &Product, size_gib: f64) -> LimitsError {
    LimitsError::OutOfRange {
        product: product.name.get_ref().clone(),
        what: format!("{} GiB", exact(size_gib)),
        offered: product.size.text(),
    }
}

/// Returns the tier of a size or of a number of disks.
pub(super) fn find_tier(
    product: &Product,
    size_gib: f64,
    disks: Option<u32>,
) -> Result<&LimitRow, LimitsError> {
    let holds = |row: &&LimitRow| {
        row.up_to_gib.is_none_or(|up_to| size_gib <= up_to)
            && row.below_gib.is_none_or(|below| size_gib < below)
            && row.disks.is_none_or(|count| Some(count) == disks)
    };
    product.tiers.iter().find(holds).ok_or_else(|| {
        let counts: Vec<u32> = product.tiers.iter().filter_map(|row| row.disks).collect();
        if counts.is_empty() {
            return out_of_range(product, size_gib);
        }
        LimitsError::OutOfRange {
            product: product.name.get_ref().clone(),
            what: plural(disks.unwrap_or(0)),
            offered: format!("{} disks", numbers(&counts)),
        }
    })
}

/// Returns the error about an option that a tier does not have.
pub(super) fn no_such_option(
    product: &Product,
    row: Option<&LimitRow>,
    option: &str,
) -> LimitsError {
    let name = product.name.get_ref();
    let first = product
        .tiers
        .iter()
        .position(|row| row.options.contains_key(option));
    if let (Some(first), Some(row)) = (first, row) {
        let above = first
            .checked_sub(1)
            .and_then(|before| product.tiers[before].up_to_gib);
        return LimitsError::OutOfRange {
            product: name.clone(),
            what: format!("{option} with tier {}", row.tier.as_deref().unwrap_or("")),
            offered: match above {
                Some(above) if row.up_to_gib.is_some_and(|up_to| up_to <= above) => {
                    format!("{option} above {} GiB", exact(above))
                }
                _ => format!("{option} with other sizes"),
            },
        };
    }
    let known = row.map_or(Vec::new(), |row| {
        row.options.keys().map(String::as_str).collect()
    });
    LimitsError::UnknownOption {
        product: name.clone(),
        option: option.to_owned(),
        known: known.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_counts_are_formatted_as_ranges() {
        assert_eq!(numbers(&[8]), "8");
        assert_eq!(numbers(&[4, 8]), "4 or 8");
        assert_eq!(numbers(&[1, 2, 4, 8, 16, 24]), "1, 2, 4, 8, 16 or 24");
        assert_eq!(
            numbers(&[1, 2, 3, 4, 5, 6, 7, 8, 16, 24]),
            "1 to 8, 16 or 24"
        );
        assert_eq!(numbers(&[1, 2, 3, 4]), "1 to 4");
    }

    #[test]
    fn sizes_between_steps_are_refused() {
        let ladder = OfferedSizes {
            steps_gib: vec![4.0, 8.0, 512.0],
            then_every_gib: Some(1024.0),
            ..OfferedSizes::default()
        };
        assert!(ladder.has(8.0) && ladder.has(2048.0));
        assert!(!ladder.has(9.0) && !ladder.has(1536.0));
        insta::assert_snapshot!(
            ladder.text(),
            @"sizes of 4, 8, 512 GiB, then multiples of 1,024 GiB"
        );
    }
}
