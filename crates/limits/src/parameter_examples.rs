//! Example values of the parameters of products.

/// Name of a parameter, and an example of its value.
pub(super) type ExampleValue = (&'static str, &'static str);

/// Examples of the parameters that a product can need. The first one of a parameter that the
/// product offers is taken.
pub(super) const EXAMPLE_VALUES: [ExampleValue; 11] = [
    ("size", "375GiB"),
    ("disks", "1"),
    ("machine", "n1-standard-8"),
    ("machine", "c4-standard-8-lssd"),
    ("machine", "m3-ultramem-64"),
    ("vcpus", "8"),
    ("cpu", "Ice Lake"),
    ("iops", "5000"),
    ("iops", "1000"),
    ("throughput", "600"),
    ("throughput", "40"),
];

/// Returns an example of the value of a parameter.
pub(super) fn example_value(parameter: &str) -> Option<&'static str> {
    let mut examples = EXAMPLE_VALUES.into_iter();
    let (_, value) = examples.find(|(name, _)| *name == parameter)?;
    Some(value)
}
