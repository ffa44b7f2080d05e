//! Merges the user's patch into the manifest of the pod, like kubectl.

use crate::object_events::read_object;
use iosonde_job::json_error_without_position;
use iosonde_result::run_error::{ClusterObstacle, RunError};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// Returns the manifest with the patch merged into it.
///
/// # Errors
/// If the result is not a manifest of its kind, or lacks a field of the patch. A misspelt name
/// would otherwise be dropped silently.
pub(crate) fn patched<T: Serialize + DeserializeOwned>(
    manifest: T,
    patch: &Value,
) -> Result<T, RunError> {
    let mut merged = serde_json::to_value(manifest).map_err(invalid_patch)?;
    merge(&mut merged, patch);
    let manifest: T = read_object(&merged)
        .map_err(json_error_without_position)
        .map_err(invalid_patch)?;
    let there = serde_json::to_value(&manifest).map_err(invalid_patch)?;
    match missing_path(patch, &there, "") {
        None => Ok(manifest),
        Some(field) => Err(ClusterObstacle::UnknownPodField { field }.into()),
    }
}

fn invalid_patch(error: serde_json::Error) -> RunError {
    let error = error.to_string();
    ClusterObstacle::InvalidPodPatch { error }.into()
}

/// Merges objects by key and lists of named items by name. Other values are replaced, null removes.
fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(base), Value::Array(patch))
            if patch.iter().all(|item| item_name(item).is_some()) =>
        {
            for item in patch {
                match base
                    .iter_mut()
                    .find(|known| item_name(known) == item_name(item))
                {
                    Some(known) => merge(known, item),
                    None => base.push(item.clone()),
                }
            }
        }
        (base, patch) => {
            // A new value is also merged, which drops its nulls.
            *base = match patch {
                Value::Object(_) => Value::Object(serde_json::Map::new()),
                other => other.clone(),
            };
            if patch.is_object() {
                merge(base, patch);
            }
        }
    }
}

fn item_name(item: &Value) -> Option<&str> {
    item.get("name")?.as_str()
}

/// Returns the first path of the patch that the manifest lacks.
fn missing_path(patch: &Value, there: &Value, path: &str) -> Option<String> {
    match (patch, there) {
        (Value::Object(patch), there) => patch
            .iter()
            .filter(|(_, value)| !value.is_null())
            .find_map(|(key, value)| {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                match there.get(key) {
                    Some(there) => missing_path(value, there, &path),
                    None => Some(path),
                }
            }),
        (Value::Array(patch), Value::Array(there)) => {
            patch.iter().enumerate().find_map(|(index, value)| {
                let named = there.iter().find(|known| {
                    item_name(known).is_some() && item_name(known) == item_name(value)
                });
                let found = named.or_else(|| there.get(index));
                found.map_or_else(
                    || Some(path.to_owned()),
                    |there| missing_path(value, there, path),
                )
            })
        }
        // Values may change their notation, such as a quantity given as a number.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::UnsupportedFeature;
    use k8s_openapi::api::core::v1::PodTemplateSpec;
    use serde_json::json;

    fn template() -> PodTemplateSpec {
        serde_json::from_value(json!({
            "metadata": {"labels": {"a": "1"}},
            "spec": {"containers": [{"name": "iosonde", "image": "busybox"}],
             "nodeSelector": {"x": "y"}},
        }))
        .unwrap()
    }

    fn with(patch: Value) -> Result<Value, RunError> {
        let merged = patched(template(), &patch)?;
        Ok(serde_json::to_value(merged).unwrap())
    }

    #[test]
    fn parts_are_merged_and_the_rest_stays() {
        let merged = with(json!({
            "metadata": {"annotations": {"why": "test"}},
            "spec": {
                "priorityClassName": "high",
                "nodeSelector": null,
                "containers": [{"name": "iosonde", "resources": {"limits": {"memory": "1Gi"}}}],
                "tolerations": [{"operator": "Exists"}],
            },
        }))
        .unwrap();
        assert_eq!(merged["metadata"]["labels"]["a"], "1");
        assert_eq!(merged["metadata"]["annotations"]["why"], "test");
        assert_eq!(merged["spec"]["priorityClassName"], "high");
        assert!(merged["spec"].get("nodeSelector").is_none());
        let containers = merged["spec"]["containers"].as_array().unwrap();
        assert_eq!(containers.len(), 1);
        assert_eq!(containers[0]["image"], "busybox");
        assert_eq!(containers[0]["resources"]["limits"]["memory"], "1Gi");
        assert_eq!(merged["spec"]["tolerations"][0]["operator"], "Exists");
    }

    #[test]
    fn unknown_pod_fields_are_refused_by_name() {
        for (patch, field) in [
            (
                json!({"spec": {"priorityclass": "high"}}),
                "spec.priorityclass",
            ),
            (
                json!({"spec": {"containers": [{"name": "iosonde", "img": "x"}]}}),
                "spec.containers.img",
            ),
        ] {
            let field = field.to_owned();
            let unknown = ClusterObstacle::UnknownPodField { field };
            assert_eq!(with(patch), Err(unknown.into()));
        }
        let Err(RunError::NoFeature { cause }) = with(json!({"spec": {"containers": 7}})) else {
            panic!("a number is no list of containers");
        };
        assert!(matches!(
            *cause,
            UnsupportedFeature::Cluster(ClusterObstacle::InvalidPodPatch { .. })
        ));
    }
}
