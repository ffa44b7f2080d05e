//! What the machine and its network cap.

use super::super::error::LimitsError;
use super::super::file::{Amount, CapOf, Row};
use super::super::machine::{Machine, row_of, unknown, vcpus_text};
use super::super::promise::{BurstLength, Limiter};
use super::{Evaluation, row_bursts, source};

impl Evaluation<'_> {
    /// What the machine and its network let through.
    pub(super) fn machine_caps(&mut self) -> Result<(), LimitsError> {
        let rule = &self.product.machine;
        let Some(machine) = self.machine.clone() else {
            if rule.required {
                return Err(LimitsError::Missing {
                    product: self.name.to_owned(),
                    parameter: "machine",
                    why: "the machine caps what its volumes can do together".to_owned(),
                });
            }
            if !rule.caps.is_empty() {
                self.remarks
                    .push("limits of the volume alone: the machine may cap it further".to_owned());
            }
            return Ok(());
        };
        self.enough_vcpus(&machine)?;
        if !rule.rows.is_empty() {
            let row = row_of(rule.rows.iter(), &machine, self.name, false)?;
            self.around_by(row, &machine, CapOf::Machine);
        }
        for group in &rule.caps {
            self.group_caps(group.get_ref(), &machine)?;
        }
        if rule.caps.is_empty() && rule.rows.is_empty() && rule.full_speed_vcpus.is_empty() {
            self.remarks.push(format!(
                "what {} caps is not known: the limits are those of the volume alone",
                machine.name
            ));
        }
        Ok(())
    }

    fn enough_vcpus(&mut self, machine: &Machine) -> Result<(), LimitsError> {
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
                        "below {full} vCPUs of {} the vendor does not promise these figures",
                        machine.family
                    ));
                }
            }
        }
        Ok(())
    }

    fn group_caps(&mut self, group: &str, machine: &Machine) -> Result<(), LimitsError> {
        let tables: Vec<_> = self.limits.caps_of(group).collect();
        let of_family: Vec<_> = tables
            .iter()
            .filter(|caps| {
                caps.family
                    .as_ref()
                    .is_none_or(|family| *family == machine.family)
            })
            .collect();
        if of_family.is_empty() && tables.iter().all(|caps| caps.of == CapOf::Machine) {
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
        for caps in of_family {
            let optional = !self.product.machine.required;
            let row = row_of(caps.rows.iter(), machine, self.name, optional)?;
            if let Some(count) = row.has_disks {
                self.given.disks = f64::from(count);
                self.query.disks = Some(count);
            }
            self.around_by(row, machine, caps.of);
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

    fn around_by(&mut self, row: &Row, machine: &Machine, of: CapOf) {
        let name = row_name(row, machine);
        let label = match of {
            CapOf::Machine => Limiter::Machine(name),
            CapOf::Network => Limiter::Network(name),
        };
        let bursts: Vec<_> = row_bursts(row)
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

/// What a row is about: `n1, 8-15 vCPUs`. A source is cited for no more than it says.
fn row_name(row: &Row, machine: &Machine) -> String {
    match (vcpus_text(row), &row.machine) {
        (vcpus, None) if !vcpus.is_empty() && machine.name != "any" => {
            format!("{}, {vcpus} vCPUs", machine.family)
        }
        (vcpus, None) if !vcpus.is_empty() => format!("with {vcpus} vCPUs"),
        _ => machine.name.clone(),
    }
}
