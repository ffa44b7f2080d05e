//! Machines that take local disks, and the error about a machine that takes none.

use super::Limits;
use super::error::LimitsError;
use super::limits_file::DiskCounts;
use super::queried_machine::{QueriedMachine, known_machines, unknown};
use super::query::Query;

impl Limits {
    /// Returns the error about a machine that takes no local disk. `None`: it takes some, or its
    /// family is not known.
    pub fn refuse_machine_without_disks(&self, machine: &str) -> Option<LimitsError> {
        let query = Query {
            machine: Some(machine.to_owned()),
            ..Query::default()
        };
        let machine = QueriedMachine::from_query(&query).ok().flatten()?;
        self.lack_of_disks(&machine)
    }

    /// Returns the error about a machine that no table of a product with local disks names.
    pub(super) fn no_disks_of(
        &self,
        machine: &QueriedMachine,
        product: &str,
        known: &[&str],
        optional: bool,
    ) -> LimitsError {
        let lack = self.lack_of_disks(machine);
        lack.unwrap_or_else(|| unknown(machine, product, known, optional))
    }

    /// The vendor lists all machines that take local disks, so any other one of a family whose
    /// types are listed takes none.
    fn lack_of_disks(&self, machine: &QueriedMachine) -> Option<LimitsError> {
        let is_known = self.family_types(&machine.family).is_some();
        if !is_known || self.takes_local_disks(machine) {
            return None;
        }
        let types = self.types_with_disks();
        let longer = format!("{}-", machine.name);
        let mut known: Vec<&str> = self.families_with_disks().collect();
        known.extend(self.types_with_disks());
        let mut similar = types.filter(|name| name.starts_with(&longer));
        Some(LimitsError::NoLocalDisk {
            machine: machine.name.clone(),
            similar: similar.next().map(str::to_owned),
            known: known_machines(&known),
        })
    }

    fn takes_local_disks(&self, machine: &QueriedMachine) -> bool {
        let prefix = format!("{}-", machine.family);
        let is_it = |name: &str| match machine.is_type {
            true => name == machine.name,
            // A family has disks if one of its types has.
            false => name.starts_with(&prefix),
        };
        let mut families = self.families_with_disks();
        families.any(|family| family == machine.family) || self.types_with_disks().any(is_it)
    }

    /// Returns the families all of whose types take local disks, or come with them.
    fn families_with_disks(&self) -> impl Iterator<Item = &str> {
        let counted = self.own_count_tables();
        let counted = counted.filter_map(|table| table.family.as_deref());
        let products = self.products.iter();
        let with_machine = products.filter(|product| product.size.from_machine);
        let groups = with_machine.flat_map(|product| &product.machine.caps);
        let tables = groups.flat_map(move |group| self.group_tables(group.get_ref()));
        counted.chain(tables.filter_map(|caps| caps.family.as_deref()))
    }

    fn types_with_disks(&self) -> impl Iterator<Item = &str> {
        let rows = self.own_count_tables().flat_map(|table| &table.rows);
        rows.filter_map(|row| row.machine.as_deref())
    }

    /// Returns the numbers of disks that hold without a service.
    fn own_count_tables(&self) -> impl Iterator<Item = &DiskCounts> {
        let tables = self.disk_counts.iter();
        tables.filter(|table| table.service.is_none())
    }
}
