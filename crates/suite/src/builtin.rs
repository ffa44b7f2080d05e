//! The built-in suites, each a readable file.

use serde::Deserialize;

/// A built-in suite.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// Name on the command line and in includes.
    pub name: &'static str,
    /// Contents of the file.
    pub text: &'static str,
}

macro_rules! suites {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../data/suites/", $name, ".toml")),
        }),*]
    };
}

/// All built-in suites, ordered by name.
pub static ALL: &[Builtin] = suites![
    "ceph-article",
    "etcd",
    "gcp-2016",
    "gke-local-ssd",
    "headline",
    "kafka-log",
    "kubestr",
    "postgres-wal",
    "vm-boot",
];

/// Finds a built-in suite by its name.
pub fn find_builtin(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|suite| suite.name == name)
}

impl Builtin {
    /// File name for messages.
    pub fn file_name(&self) -> String {
        format!("{}.toml", self.name)
    }

    /// Value of `about` in the file.
    pub fn about(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Description {
            about: Option<String>,
        }
        let description: Description = toml::from_str(self.text).ok()?;
        description.about
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_suites_are_all_described() {
        for suite in ALL {
            let line = suite.about().unwrap_or_default();
            let is_line = !line.is_empty() && !line.contains('\n');
            assert!(is_line, "{}: {line}", suite.name);
        }
        let headline = find_builtin("headline").and_then(Builtin::about);
        let expected = "the headline figures: latency, IOPS, bandwidth, synchronised writes";
        assert_eq!(headline.as_deref(), Some(expected));
    }
}
