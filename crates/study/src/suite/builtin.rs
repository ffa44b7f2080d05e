//! Suites that come with the program, each a readable file.

/// A suite that comes with the program.
#[derive(Debug, Clone, Copy)]
pub struct Builtin {
    /// How it is asked for.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! suites {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin {
            name: $name,
            text: include_str!(concat!("../../../../data/suites/", $name, ".toml")),
        }),*]
    };
}

/// All of them, by name.
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

/// The suite of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|suite| suite.name == name)
}

impl Builtin {
    /// How messages name its file.
    pub fn file_name(&self) -> String {
        format!("{}.toml", self.name)
    }
}
