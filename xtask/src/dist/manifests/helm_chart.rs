//! The Helm chart: its package, and its check by helm.

use super::{gzip_file, require_program};
use crate::dist::archive::tar_of_directory;
use crate::dist::build;
use crate::dist::check_log::CheckLog;
use crate::dist::release::Release;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The folder of the chart in the repository.
const CHART: &str = "packaging/helm/iosonde";

/// Version of Kubernetes for rendering. A helm from `go install` assumes 1.20, which the chart
/// refuses.
const KUBERNETES: &str = "1.31.0";

const HELM_REMEDY: &str = "Go 1.22 or newer: go install helm.sh/helm/v3/cmd/helm@v3.16.4";

/// Returns the name of the packed chart.
pub(super) fn file_name(release: &Release) -> String {
    format!("iosonde-chart-{}.tgz", release.version)
}

/// Packs the chart with the date of the release.
pub(super) fn package(release: &Release) -> Result<PathBuf> {
    let tar = tar_of_directory(&release.root.join(CHART), "iosonde", release.epoch)?;
    let unpacked = release.work().join("helm-chart.tar");
    fs::write(&unpacked, tar).with_context(|| format!("cannot write {}", unpacked.display()))?;
    let path = release.directory.join(file_name(release));
    gzip_file(fs::File::open(&unpacked)?, &path)?;
    Ok(path)
}

/// Renders the chart with each kind of values, if helm is installed. The unit tests check its
/// templates as text.
pub(super) fn check(release: &Release, log: &mut CheckLog) -> Result<()> {
    if !require_program("helm", HELM_REMEDY, "rendering of the Helm chart", log) {
        return Ok(());
    }
    let chart = release.root.join(CHART);
    build::output(Command::new("helm").args(["lint", "--strict"]).arg(&chart))?;
    let packed = release.directory.join(file_name(release));
    for values in [
        "rights.create=false",
        "rights.create=true,data.enabled=false",
        "suite.text=about = 'x',secret.kubeconfig=x",
    ] {
        let mut helm = Command::new("helm");
        helm.args(["template", "night"]).arg(&packed);
        helm.args(["--kube-version", KUBERNETES]);
        helm.args(["--set", values]).stdin(Stdio::null());
        build::output(&mut helm).with_context(|| format!("rendering the chart with {values}"))?;
    }
    log.add_checked(packed.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn chart_file(name: &str) -> String {
        fs::read_to_string(crate::repository::repository_root().join(CHART).join(name)).unwrap()
    }

    fn values() -> Value {
        serde_saphyr::from_str(&chart_file("values.yaml")).unwrap()
    }

    /// All templates by their names.
    fn templates() -> Vec<(String, String)> {
        let folder = crate::repository::repository_root()
            .join(CHART)
            .join("templates");
        let files = fs::read_dir(folder).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names
            .map(|name| (name.clone(), chart_file(&format!("templates/{name}"))))
            .collect()
    }

    /// The actions of a template: the text between `{{` and `}}`.
    fn actions(template: &str) -> Vec<&str> {
        let parts = template.split("{{").skip(1);
        parts
            .map(|part| {
                let (action, _) = part.split_once("}}").expect("}} ends an action");
                action.trim_matches('-').trim()
            })
            .collect()
    }

    #[test]
    fn template_blocks_are_all_closed() {
        let templates = templates();
        assert!(templates.len() >= 8, "{}", templates.len());
        for (name, text) in &templates {
            let mut open = 0;
            for action in actions(text) {
                match action.split_whitespace().next().unwrap_or_default() {
                    "if" | "with" | "range" | "define" => open += 1,
                    "end" => open -= 1,
                    _ => {}
                }
                assert!(open >= 0, "{name}: an `end` without a block");
            }
            assert_eq!(open, 0, "{name}: a block without `end`");
        }
    }

    #[test]
    fn value_of_each_template_has_a_default() {
        let values = values();
        let mut used = 0;
        for (name, text) in &templates() {
            for action in actions(text) {
                let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '.';
                for path in action.split(".Values.").skip(1) {
                    let path = path.split(is_end).next().unwrap_or_default();
                    let pointer = format!("/{}", path.replace('.', "/"));
                    assert!(values.pointer(&pointer).is_some(), "{name}: {path}");
                    used += 1;
                }
            }
        }
        assert!(used > 20, "{used}");
    }

    #[test]
    fn included_template_is_defined() {
        let templates = templates();
        let defined: Vec<&str> = templates
            .iter()
            .flat_map(|(_, text)| actions(text))
            .filter_map(|action| action.strip_prefix("define "))
            .collect();
        for (name, text) in &templates {
            for action in actions(text) {
                for part in action.split("include ").skip(1) {
                    let included = part.split_whitespace().next().unwrap_or_default();
                    assert!(defined.contains(&included), "{name}: {included}");
                }
            }
        }
    }

    #[test]
    fn schema_has_the_keys_of_the_values() {
        let schema: Value = serde_json::from_str(&chart_file("values.schema.json")).unwrap();
        assert_same_keys(&values(), &schema, "");
    }

    /// Compares an object of values with its schema. An empty object may have any keys.
    fn assert_same_keys(values: &Value, schema: &Value, path: &str) {
        let (Some(object), Some(properties)) =
            (values.as_object(), schema["properties"].as_object())
        else {
            return;
        };
        assert_eq!(schema["additionalProperties"], false, "{path}");
        for (name, value) in object {
            let known = properties.get(name);
            let known = known.unwrap_or_else(|| panic!("the schema has no {path}/{name}"));
            assert_same_keys(value, known, &format!("{path}/{name}"));
        }
        for name in properties.keys().filter(|name| *name != "global") {
            assert!(object.contains_key(name), "no value {path}/{name}");
        }
    }
}
