//! Products that a machine takes.

use super::super::Limits;
use super::super::error::LimitsError;
use super::super::limits_file::Product;
use super::super::query::Query;
use super::Evaluation;

impl Limits {
    /// Returns the names of the products whose newest limits depend on the machine, and that the
    /// machine takes. Empty for an unknown machine.
    pub fn products_of_machine(&self, machine: &str) -> Vec<String> {
        let names = self.list().into_iter().map(|listed| listed.name);
        names.filter(|name| self.takes(machine, name)).collect()
    }

    fn takes(&self, machine: &str, name: &str) -> bool {
        let query = Query {
            machine: Some(machine.to_owned()),
            ..Query::new(name)
        };
        let Ok(product) = self.edition(&query) else {
            return false;
        };
        // Other parameters of the query are missing, but the machine is known.
        let is_taken = |result: Result<(), LimitsError>| {
            matches!(result, Ok(()) | Err(LimitsError::Missing { .. }))
        };
        let Ok(mut evaluation) = Evaluation::new(self, product, &query) else {
            return false;
        };
        let is_local = product.size.disk_gib.is_some() || product.size.from_machine;
        (is_local || has_machine_limits(product))
            && (!is_local || is_taken(evaluation.volumes()))
            && is_taken(evaluation.machine_caps())
    }
}

fn has_machine_limits(product: &Product) -> bool {
    let machine = &product.machine;
    !machine.caps.is_empty() || !machine.rows.is_empty() || !machine.min_vcpus.is_empty()
}
