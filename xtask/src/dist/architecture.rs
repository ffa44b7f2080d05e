//! Processor architectures and C libraries that a release is built for, under all their names.

use clap::ValueEnum;

/// A processor architecture of a release.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Architecture {
    X86_64,
    Aarch64,
}

/// The C library that a client is linked against.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Flavour {
    /// Linked dynamically against glibc 2.28 or later, with Ceph through dlopen.
    Gnu,
    /// Linked statically, without Ceph.
    Static,
}

/// One client of the release, as `--target` names it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, ValueEnum)]
pub(crate) enum ClientTarget {
    #[value(name = "x86_64-gnu")]
    X86_64Gnu,
    #[value(name = "x86_64-static")]
    X86_64Static,
    #[value(name = "aarch64-gnu")]
    Aarch64Gnu,
    #[value(name = "aarch64-static")]
    Aarch64Static,
}

impl Architecture {
    pub(crate) const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Returns the name in a Rust target and in `uname -m`: `aarch64`.
    pub(crate) const fn rust(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Returns the name in a Debian package: `arm64`.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Returns the name in an rpm package: `aarch64`.
    pub(crate) const fn rpm(self) -> &'static str {
        self.rust()
    }

    /// Returns the name in an OCI image and in a node's label: `arm64`.
    pub(crate) const fn oci(self) -> &'static str {
        self.debian()
    }

    /// Returns the architecture that this program was compiled for, if a release has it.
    pub(crate) fn native() -> Option<Self> {
        let name = std::env::consts::ARCH;
        Self::ALL.into_iter().find(|known| known.rust() == name)
    }
}

impl Flavour {
    /// Returns the name in an archive: `gnu` or `static`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gnu => "gnu",
            Self::Static => "static",
        }
    }
}

impl ClientTarget {
    pub(crate) const ALL: [Self; 4] = [
        Self::X86_64Gnu,
        Self::X86_64Static,
        Self::Aarch64Gnu,
        Self::Aarch64Static,
    ];

    pub(crate) const fn architecture(self) -> Architecture {
        match self {
            Self::X86_64Gnu | Self::X86_64Static => Architecture::X86_64,
            Self::Aarch64Gnu | Self::Aarch64Static => Architecture::Aarch64,
        }
    }

    pub(crate) const fn flavour(self) -> Flavour {
        match self {
            Self::X86_64Gnu | Self::Aarch64Gnu => Flavour::Gnu,
            Self::X86_64Static | Self::Aarch64Static => Flavour::Static,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architecture_names_are_those_of_each_packager() {
        let arm = Architecture::Aarch64;
        assert_eq!(
            [arm.rust(), arm.debian(), arm.rpm(), arm.oci()],
            ["aarch64", "arm64", "aarch64", "arm64"]
        );
        let x86 = Architecture::X86_64;
        assert_eq!(
            [x86.rust(), x86.debian(), x86.rpm(), x86.oci()],
            ["x86_64", "amd64", "x86_64", "amd64"]
        );
    }

    #[test]
    fn client_target_name_is_architecture_and_flavour() {
        for target in ClientTarget::ALL {
            let value = target.to_possible_value().expect("no target is hidden");
            let (architecture, flavour) = (target.architecture(), target.flavour());
            assert_eq!(
                value.get_name(),
                format!("{}-{}", architecture.rust(), flavour.name())
            );
        }
    }
}
