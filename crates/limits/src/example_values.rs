//! Examples of the parameters that a query lacks, for remedies that work when they are pasted.

use super::Limits;
use super::error::LimitsError;
use super::parameter_examples::{EXAMPLE_VALUES, ExampleValue};
use super::query::Query;

impl Limits {
    /// Returns examples of the parameter that a query lacks, and of those that it lacks then; and
    /// whether the query has an answer with them.
    pub fn example_values(&self, query: &Query, missing: &str) -> (Vec<ExampleValue>, bool) {
        let (mut query, mut parameter) = (query.clone(), missing);
        let mut values = Vec::new();
        for _ in 0..EXAMPLE_VALUES.len() {
            // An example does not replace the machine of the query.
            if parameter == "machine" && query.machine.is_some() {
                break;
            }
            let Some((example, with_example, next)) = self.offered_example(&query, parameter)
            else {
                break;
            };
            values.push(example);
            match next {
                Some(next) => (query, parameter) = (with_example, next),
                None => return (values, true),
            }
        }
        (values, false)
    }

    /// Returns the text of a product, completed by examples of the parameters that it lacks:
    /// `gcp-pd-ssd:size=375GiB,machine=n1-standard-8` for `gcp-pd-ssd`. The query is that of the
    /// text, also with parameters that come from elsewhere. `None`: no example has an answer.
    pub fn completed_product(&self, text: &str, query: &Query, missing: &str) -> Option<String> {
        let (values, is_answered) = self.example_values(query, missing);
        if !is_answered {
            return None;
        }
        let pairs = values.iter().map(|(name, value)| format!("{name}={value}"));
        let pairs = pairs.collect::<Vec<_>>().join(",");
        let separator = if text.contains(':') { ',' } else { ':' };
        Some(format!("{text}{separator}{pairs}"))
    }

    /// Returns the first example of a parameter that the product offers, the query with it, and the
    /// next parameter that it lacks.
    fn offered_example(
        &self,
        query: &Query,
        parameter: &str,
    ) -> Option<(ExampleValue, Query, Option<&'static str>)> {
        let examples = EXAMPLE_VALUES.into_iter();
        let mut examples = examples.filter(|(name, _)| *name == parameter);
        examples.find_map(|example| {
            let mut query = query.clone();
            query.set(example.0, example.1).ok()?;
            match self.evaluate(&query) {
                Ok(_) => Some((example, query, None)),
                Err(LimitsError::Missing {
                    parameter: next, ..
                }) if next != parameter => Some((example, query, Some(next))),
                Err(_) => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_products_have_an_answer() {
        let limits = Limits::published();
        for (text, completed) in [
            (
                "gcp-pd-ssd",
                Some("gcp-pd-ssd:size=375GiB,machine=n1-standard-8"),
            ),
            (
                "gcp-pd-ssd:375GiB,machine=n1",
                Some("gcp-pd-ssd:375GiB,machine=n1,vcpus=8"),
            ),
            (
                "gcp-pd-extreme:size=1TiB,iops=3000,machine=n2-standard-80",
                Some("gcp-pd-extreme:size=1TiB,iops=3000,machine=n2-standard-80,cpu=Ice Lake"),
            ),
            // The first example of the throughput is more than 4 GiB offer.
            (
                "azure-ultra:size=4,iops=1000",
                Some("azure-ultra:size=4,iops=1000,throughput=40"),
            ),
            // An example would replace the machine.
            ("gcp-local-ssd-titanium:machine=z3,vcpus=22", None),
        ] {
            let query: Query = text.parse().unwrap();
            let Err(LimitsError::Missing { parameter, .. }) = limits.evaluate(&query) else {
                panic!("{text} lacks no parameter");
            };
            let found = limits.completed_product(text, &query, parameter);
            assert_eq!(found.as_deref(), completed);
            if let Some(found) = found {
                assert!(limits.evaluate(&found.parse().unwrap()).is_ok(), "{found}");
            }
        }
    }
}
