//! Caps of the machine and its network.

use super::super::error::LimitsError;
use super::super::limits_file::{Amount, CapOf, LimitRow};
use super::super::promise::{BurstLength, Limiter};
use super::super::queried_machine::{QueriedMachine, find_row, unknown, vcpus_text};
use super::{Evaluation, row_burst_terms, source};

impl Evaluation<'_> {
    /// Adds the caps of the machine and its network.
    pub(super) fn machine_caps(&mut self) -> Result<(), LimitsError> {
        let rule = &self.product.machine;
        let Some(machine) = self.machine.clone() else {
            if rule.required {
                return Err(LimitsError::Missing {
                    product: self.name.to_owned(),
                    parameter: "machine",
                    why: "the machine limits the total of its volumes".to_owned(),
                });
            }
            if !rule.caps.is_empty() {
                self.remarks.push(
                    "limits of the volume alone: the machine may have lower limits".to_owned(),
                );
            }
            return Ok(());
        };
        self.enough_vcpus(&machine)?;
        if !rule.rows.is_empty() {
            let row = find_row(rule.rows.iter(), &machine, self.name, false)?;
            self.add_machine_caps(row, &machine, CapOf::Machine);
        }
        for group in &rule.caps {
            self.group_caps(group.get_ref(), &machine)?;
        }
        if rule.caps.is_empty() && rule.rows.is_empty() && rule.full_speed_vcpus.is_empty() {
            self.remarks.push(format!(
                "the limits of {} are unknown: only the limits of the volume apply",
                machine.name
            ));
        }
        Ok(())
    }

    fn enough_vcpus(&mut self, machine: &QueriedMachine) -> Result<(), LimitsError> {
        let rule = &self.product.machine;
        if !rule.min_vcpus.is_empty() {
            let families: Vec<&str> = rule.min_vcpus.keys().map(String::as_str).collect();
            let Some(min) = rule.min_vcpus.get(&machine.family) else {
                return Err(unknown(machine, self.name, &families, false));
            };
            if machine.vcpus.is_some_and(|vcpus| vcpus < *min) {
                return Err(LimitsError::OutOfRange {
                    product: self.name.to_owned(),
                    what: machine.label(),
                    offered: format!("{} with {min} vCPUs or more", machine.family),
                });
            }
        }
        if let Some(full) = rule.full_speed_vcpus.get(&machine.family) {
            match machine.vcpus {
                Some(vcpus) if vcpus >= *full => {}
                _ => {
                    self.firm = false;
                    self.remarks.push(format!(
                        "the vendor does not promise these figures below {full} vCPUs of {}",
                        machine.family
                    ));
                }
            }
        }
        Ok(())
    }

    fn group_caps(&mut self, group: &str, machine: &QueriedMachine) -> Result<(), LimitsError> {
        let tables: Vec<_> = self.limits.group_tables(group).collect();
        let family_caps: Vec<_> = tables
            .iter()
            .filter(|caps| {
                caps.family
                    .as_ref()
                    .is_none_or(|family| *family == machine.family)
            })
            .collect();
        if family_caps.is_empty() && tables.iter().all(|caps| caps.of == CapOf::Machine) {
            let families: Vec<&str> = tables
                .iter()
                .filter_map(|caps| caps.family.as_deref())
                .collect();
            return Err(unknown(
                machine,
                self.name,
                &families,
                !self.product.machine.required,
            ));
        }
        for caps in family_caps {
            let optional = !self.product.machine.required;
            let row = find_row(caps.rows.iter(), machine, self.name, optional)?;
            if let Some(count) = row.has_disks {
                self.given.disks = f64::from(count);
                self.query.disks = Some(count);
            }
            self.add_machine_caps(row, machine, caps.of);
            let name = match machine.name.as_str() {
                "any" => "machines".to_owned(),
                _ => row_name(row, machine),
            };
            let of = match caps.of {
                CapOf::Machine => format!("caps of {name}"),
                CapOf::Network => format!("network of {name}"),
            };
            self.sources.push(source(&of, &caps.origin));
            self.notes.extend(caps.notes.iter().cloned());
        }
        Ok(())
    }

    fn add_machine_caps(&mut self, row: &LimitRow, machine: &QueriedMachine, of: CapOf) {
        let name = row_name(row, machine);
        let label = match of {
            CapOf::Machine => Limiter::Machine(name),
            CapOf::Network => Limiter::Network(name),
        };
        let bursts: Vec<_> = row_burst_terms(row)
            .map(|(metric, unit, term)| (metric, self.bound(term, unit, &label, 1.0)))
            .collect();
        let caps: Vec<_> = row
            .amounts()
            .into_iter()
            .map(|Amount { metric, unit, term }| {
                let burst = bursts.iter().find(|(of, _)| of.applies_to(metric));
                let bound = self.bound(term, unit, &label, 1.0);
                (metric, bound, burst.map(|(_, bound)| bound.clone()))
            })
            .collect();
        if let Some(seconds) = row.burst_s {
            self.bursts.push(BurstLength {
                of: label,
                metric: None,
                seconds,
                refill_seconds: None,
                note: None,
            });
        }
        self.around.push(caps);
        self.remarks.extend(row.note.clone());
    }
}

/// Names the machines of a row for the citation of its source: `n1, 8-15 vCPUs`.
fn row_name(row: &LimitRow, machine: &QueriedMachine) -> String {
    match (vcpus_text(row), &row.machine) {
        (vcpus, None) if !vcpus.is_empty() && machine.name != "any" => {
            format!("{}, {vcpus} vCPUs", machine.family)
        }
        (vcpus, None) if !vcpus.is_empty() => format!("with {vcpus} vCPUs"),
        _ => machine.name.clone(),
    }
}
