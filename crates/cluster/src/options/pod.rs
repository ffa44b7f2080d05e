//! Options of the pod, besides its volume.

pub use crate::quantity::Quantity;
use crate::quantity::quantity_bytes;
pub use k8s_openapi::api::core::v1::NodeSelectorRequirement;
use std::collections::BTreeMap;

/// Parts of the pod's manifest that some clusters require.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PodOptions {
    /// Name of the node.
    pub node: Option<String>,
    /// Requirements on the labels of the node, which must all hold.
    pub node_affinity: Vec<NodeSelectorRequirement>,
    /// The priority class.
    pub priority_class: Option<String>,
    /// Resource requests of the container by their Kubernetes names: `cpu`, `memory`.
    pub requests: BTreeMap<String, Quantity>,
    /// Resource limits of the container.
    pub limits: BTreeMap<String, Quantity>,
    /// Secrets for pulling the image.
    pub image_pull_secrets: Vec<String>,
    /// Service account of the pod.
    pub service_account: Option<String>,
    /// Additional labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
}

/// Parses a requirement on node labels like kubectl: `KEY`, `!KEY`, `KEY=VALUE`, `KEY!=VALUE`, `KEY
/// in (A,B)`, `KEY notin (A,B)`; and for node affinity `KEY>NUMBER`, `KEY<NUMBER`.
pub fn requirement(text: &str) -> Option<NodeSelectorRequirement> {
    let text = text.trim();
    let of = |key: &str, operator: &str, values: Vec<String>| {
        let is_key = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let key = key.trim();
        (!key.is_empty() && key.chars().all(is_key)).then(|| NodeSelectorRequirement {
            key: key.to_owned(),
            operator: operator.to_owned(),
            values: (!values.is_empty()).then_some(values),
        })
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(listed) = text.strip_suffix(')') {
        let (head, values) = listed.split_once('(')?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace)?;
        let values: Vec<String> = values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect();
        return match operator {
            "in" => of(key, "In", values),
            "notin" => of(key, "NotIn", values),
            _ => None,
        };
    }
    if let Some(key) = text.strip_prefix('!') {
        return of(key, "DoesNotExist", Vec::new());
    }
    if let Some((key, value)) = text.split_once("!=") {
        return of(key, "NotIn", one(value));
    }
    if let Some((key, value)) = text.split_once('=') {
        return of(key, "In", one(value.strip_prefix('=').unwrap_or(value)));
    }
    for (sign, operator) in [('>', "Gt"), ('<', "Lt")] {
        if let Some((key, number)) = text.split_once(sign) {
            number.trim().parse::<i64>().ok()?;
            return of(key, operator, one(number));
        }
    }
    of(text, "Exists", Vec::new())
}

/// Whether labels meet a requirement, by the rules of node affinity.
pub(crate) fn holds(
    requirement: &NodeSelectorRequirement,
    labels: &BTreeMap<String, String>,
) -> bool {
    let found = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let is_among = found.is_some_and(|found| values.contains(found));
    let number = |text: Option<&String>| text.and_then(|text| text.parse::<i64>().ok());
    let compared = number(found).zip(number(values.first()));
    match requirement.operator.as_str() {
        "In" => is_among,
        "NotIn" => !is_among,
        "Exists" => found.is_some(),
        "DoesNotExist" => found.is_none(),
        "Gt" => compared.is_some_and(|(found, wanted)| found > wanted),
        "Lt" => compared.is_some_and(|(found, wanted)| found < wanted),
        _ => true,
    }
}

/// Formats a requirement in the notation of [`requirement`].
pub(crate) fn in_words(requirement: &NodeSelectorRequirement) -> String {
    let key = &requirement.key;
    let values = requirement.values.as_deref().unwrap_or_default().join(",");
    match requirement.operator.as_str() {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "DoesNotExist" => format!("!{key}"),
        "Gt" => format!("{key}>{values}"),
        "Lt" => format!("{key}<{values}"),
        _ => key.clone(),
    }
}

/// Parses a resource and its quantity in kubectl's notation: `cpu=500m`, `memory=1Gi`.
pub fn resource(text: &str) -> Option<(String, Quantity)> {
    let (name, amount) = text.split_once('=')?;
    let quantity = Quantity(amount.to_owned());
    let is_usable = !name.is_empty() && quantity_bytes(&quantity).is_some();
    is_usable.then(|| (name.to_owned(), quantity))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn node_requirements_parse_as_selectors_and_match_labels() {
        let node = labels(&[("zone", "b"), ("cores", "16"), ("disk.io/kind", "ssd")]);
        for (text, is_so, canonical) in [
            ("zone", true, "zone"),
            ("!zone", false, "!zone"),
            ("!spot", true, "!spot"),
            ("zone=b", true, "zone in (b)"),
            ("zone==c", false, "zone in (c)"),
            ("zone!=b", false, "zone notin (b)"),
            ("rack!=1", true, "rack notin (1)"),
            ("zone in (a, b)", true, "zone in (a,b)"),
            (
                "disk.io/kind notin (ssd,nvme)",
                false,
                "disk.io/kind notin (ssd,nvme)",
            ),
            ("cores>8", true, "cores>8"),
            ("cores < 16", false, "cores<16"),
            ("zone>8", false, "zone>8"),
        ] {
            let read = requirement(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(holds(&read, &node), is_so, "{text}");
            assert_eq!(in_words(&read), canonical);
            assert_eq!(requirement(canonical).as_ref(), Some(&read), "{canonical}");
        }
    }

    #[test]
    fn invalid_node_requirements_are_refused() {
        for text in [
            "",
            "=b",
            "!",
            "zone near (a)",
            "zone(a)",
            "in (a)",
            "cores>many",
            "a b",
            "zone in a,b",
        ] {
            assert_eq!(requirement(text), None, "{text}");
        }
    }

    #[test]
    fn resources_have_a_name_and_an_amount() {
        let (name, amount) = resource("cpu=500m").unwrap();
        assert_eq!((name.as_str(), amount.0.as_str()), ("cpu", "500m"));
        for text in ["cpu", "=1", "memory=much", "memory="] {
            assert!(resource(text).is_none(), "{text}");
        }
    }
}
