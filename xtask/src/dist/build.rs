//! Builds the agents and the clients of a release.
//!
//! zig links them: it knows the symbols of each version of glibc, and contains musl for agents and
//! static clients.

use super::architecture::{Architecture, ClientTarget, Flavour};
use super::release::Release;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The glibc of Debian 10 and RHEL 8, the oldest that a client runs with.
pub(crate) const GLIBC_MINIMUM: (u32, u32) = (2, 28);
/// Maximum size of an agent, as it is sent into each pod.
const AGENT_BYTES_MAX: u64 = 4_000_000;
/// Versions of the linker, so that each machine builds the same bytes.
const ZIG_PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
/// Separates the flags in CARGO_ENCODED_RUSTFLAGS, so that a path may contain a space.
const FLAG_SEPARATOR: &str = "\x1f";
/// Variables of a user that would change the files.
const REMOVED_VARIABLES: [&str; 16] = [
    "AR",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTC_WRAPPER",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_TARGET_DIR",
    "CARGO_ZIGBUILD_PYTHON_PATH",
    "CARGO_ZIGBUILD_ZIG_PATH",
    "CC",
    "IOSONDE_AGENT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "TARGET_CC",
    "TARGET_CFLAGS",
];

/// A static program at a fixed address, which needs no relocations: an agent or a static client.
const STATIC_FLAGS: [&str; 4] = [
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
    NO_UNWIND_TABLES[0],
    NO_UNWIND_TABLES[1],
];
/// Nothing unwinds the stack of a program that aborts at a panic. The linker runs in the root of
/// the workspace.
const NO_UNWIND_TABLES: [&str; 2] = [
    "-Cforce-unwind-tables=no",
    "-Clink-arg=-Wl,-T,xtask/src/dist/no_unwind_tables.ld",
];

/// The compilers of a release, with its agents.
pub(crate) struct Builder<'a> {
    release: &'a Release,
    /// PATH with cargo-zigbuild.
    path: OsString,
    agents: BTreeMap<Architecture, PathBuf>,
}

impl<'a> Builder<'a> {
    /// Installs zig if it is missing, and builds the agents of all architectures.
    pub(crate) fn with_agents(release: &'a Release) -> Result<Self> {
        let mut builder = Self {
            release,
            path: path_with_zig(release)?,
            agents: BTreeMap::new(),
        };
        builder.add_rust_targets()?;
        for architecture in Architecture::ALL {
            let agent = builder.build_agent(architecture)?;
            let bytes = std::fs::metadata(&agent)?.len();
            ensure!(
                bytes <= AGENT_BYTES_MAX,
                "{} has {bytes} bytes, more than {AGENT_BYTES_MAX}",
                agent.display()
            );
            builder.agents.insert(architecture, agent);
        }
        Ok(builder)
    }

    /// Adds the standard libraries that are missing. A toolchain without rustup must have them.
    fn add_rust_targets(&self) -> Result<()> {
        let rustup = || {
            let mut rustup = Command::new("rustup");
            rustup
                .current_dir(&self.release.root)
                .env("PATH", &self.path);
            rustup
        };
        if !is_program(&self.path, "rustup") {
            return Ok(());
        }
        let installed = output(rustup().args(["target", "list", "--installed"]))?;
        let installed = String::from_utf8_lossy(&installed);
        let missing = ClientTarget::ALL
            .map(|target| rust_target(target.architecture(), target.flavour()))
            .into_iter()
            .filter(|triple| !installed.lines().any(|line| line == *triple));
        for triple in missing {
            run(rustup().args(["target", "add", triple]))?;
        }
        Ok(())
    }

    /// Builds the static agent with musl, and returns its executable. With glibc it would be larger
    /// than [`AGENT_BYTES_MAX`].
    fn build_agent(&self, architecture: Architecture) -> Result<PathBuf> {
        let triple = rust_target(architecture, Flavour::Static);
        let mut cargo = self.cargo();
        cargo
            .args(["zigbuild", "--locked", "--package", "iosonde-agent"])
            .args(["--profile", "agent", "--target", triple, "--target-dir"])
            .arg(agent_directory(self.release))
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                rust_flags(&STATIC_FLAGS, self.release),
            );
        run(&mut cargo)?;
        Ok(agent_program(self.release, architecture))
    }

    /// Builds the client with the agents of all architectures, and returns its executable.
    pub(crate) fn build_client(&self, target: ClientTarget) -> Result<PathBuf> {
        let triple = rust_target(target.architecture(), target.flavour());
        let directory = self.release.work().join("cargo-client");
        let (major, minor) = GLIBC_MINIMUM;
        let versioned = match target.flavour() {
            Flavour::Gnu => format!("{triple}.{major}.{minor}"),
            Flavour::Static => triple.to_owned(),
        };
        let mut cargo = self.cargo();
        cargo
            .args(["zigbuild", "--locked", "--profile", "dist"])
            .args(["--package", "iosonde", "--bin", "iosonde"])
            .args(["--target", &versioned, "--target-dir"])
            .arg(&directory)
            .env(
                "CARGO_ENCODED_RUSTFLAGS",
                rust_flags(client_flags(target.flavour()), self.release),
            );
        if target.flavour() == Flavour::Static {
            cargo.args(["--no-default-features", "--features", "local"]);
        }
        if Architecture::native() != Some(target.architecture()) {
            // The archiver of this machine cannot list the symbols of foreign objects.
            let archiver = format!("{}-linux-gnu-ar", target.architecture().rust());
            require_program(
                &archiver,
                &format!("binutils-{}-linux-gnu", packaged(target.architecture())),
            )?;
            cargo.env(format!("AR_{}", triple.replace('-', "_")), archiver);
        }
        for (architecture, agent) in &self.agents {
            let name = architecture.rust().to_uppercase();
            cargo.env(format!("IOSONDE_AGENT_{name}"), agent);
        }
        run(&mut cargo)?;
        Ok(directory.join(triple).join("dist/iosonde"))
    }

    /// Returns cargo with an environment that the user's settings do not change.
    fn cargo(&self) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(&self.release.root)
            .env("PATH", &self.path)
            .env("SOURCE_DATE_EPOCH", self.release.epoch.to_string())
            .env("CARGO_INCREMENTAL", "0")
            .env("CC_SHELL_ESCAPED_FLAGS", "1")
            .env("CFLAGS", c_flags(self.release));
        for name in REMOVED_VARIABLES {
            cargo.env_remove(name);
        }
        // A linker that is set here would take the place of zig.
        for target in ClientTarget::ALL {
            let triple = rust_target(target.architecture(), target.flavour());
            cargo.env_remove(linker_variable(triple));
            cargo.env_remove(compiler_variable(triple));
        }
        cargo
    }
}

fn agent_directory(release: &Release) -> PathBuf {
    release.work().join("cargo-agent")
}

/// Returns the path of the agent that clients of the release contain.
pub(crate) fn agent_program(release: &Release, architecture: Architecture) -> PathBuf {
    let triple = rust_target(architecture, Flavour::Static);
    let directory = agent_directory(release).join(triple);
    directory.join("agent/iosonde-agent")
}

/// Returns the target of rustc. A static client uses musl, which resolves names by itself; glibc
/// would load the name service modules of the host.
pub(crate) const fn rust_target(architecture: Architecture, flavour: Flavour) -> &'static str {
    match (architecture, flavour) {
        (Architecture::X86_64, Flavour::Gnu) => "x86_64-unknown-linux-gnu",
        (Architecture::X86_64, Flavour::Static) => "x86_64-unknown-linux-musl",
        (Architecture::Aarch64, Flavour::Gnu) => "aarch64-unknown-linux-gnu",
        (Architecture::Aarch64, Flavour::Static) => "aarch64-unknown-linux-musl",
    }
}

/// Returns the architecture in the names of Debian's packages for cross compilation.
const fn packaged(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "x86-64",
        Architecture::Aarch64 => "aarch64",
    }
}

/// Returns the variable with which cargo selects the linker of a target.
fn linker_variable(triple: &str) -> String {
    let target = triple.to_uppercase().replace('-', "_");
    format!("CARGO_TARGET_{target}_LINKER")
}

/// Returns the variable with which build scripts select the C compiler of a target.
fn compiler_variable(triple: &str) -> String {
    format!("CC_{}", triple.replace('-', "_"))
}

/// Directories of this machine, and the names that replace them in the executables. The standard
/// library is in RUSTUP_HOME if the toolchain has its source.
fn replaced_paths(release: &Release) -> Vec<(PathBuf, &'static str)> {
    let directory = |variable: &str, default: &str| {
        let given = std::env::var_os(variable).map(PathBuf::from);
        let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(default));
        given.or_else(home)
    };
    let cargo = directory("CARGO_HOME", ".cargo").map(|path| (path, "/cargo"));
    let rustup = directory("RUSTUP_HOME", ".rustup").map(|path| (path, "/rustup"));
    let root = release.root.canonicalize();
    // rustc applies the last flag that matches: a checkout may be inside of CARGO_HOME.
    let mut paths: Vec<_> = rustup.into_iter().chain(cargo).collect();
    paths.push((root.unwrap_or_else(|_| release.root.clone()), "/iosonde"));
    paths
}

/// Returns the flags of rustc for a client.
const fn client_flags(flavour: Flavour) -> &'static [&'static str] {
    match flavour {
        Flavour::Gnu => &NO_UNWIND_TABLES,
        Flavour::Static => &STATIC_FLAGS,
    }
}

/// Returns the flags of rustc in the form of CARGO_ENCODED_RUSTFLAGS.
fn rust_flags(flags: &[&str], release: &Release) -> String {
    let paths = replaced_paths(release).into_iter();
    let remapped =
        paths.map(|(path, name)| format!("--remap-path-prefix={}={name}", path.display()));
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    flags
        .chain(remapped)
        .collect::<Vec<_>>()
        .join(FLAG_SEPARATOR)
}

/// Returns the flags of C compilers, each quoted for a shell.
fn c_flags(release: &Release) -> String {
    let flags = replaced_paths(release)
        .into_iter()
        .map(|(path, name)| format!("'-ffile-prefix-map={}={name}'", path.display()));
    flags.collect::<Vec<_>>().join(" ")
}

/// Returns PATH with cargo-zigbuild in front. If it is missing, it is installed below `target`. One
/// of the machine is not used: another version links other bytes.
fn path_with_zig(release: &Release) -> Result<OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let environment = release.root.join("target/zig");
    let programs = environment.join("bin");
    let wanted = std::env::join_paths(
        std::iter::once(programs.clone()).chain(std::env::split_paths(&path)),
    )?;
    if is_program(programs.as_os_str(), "cargo-zigbuild") {
        return Ok(wanted);
    }
    run(Command::new("python3")
        .args(["-m", "venv"])
        .arg(&environment))
    .context("zig needs Python (Debian: apt-get install python3-venv)")?;
    run(Command::new(programs.join("pip"))
        .args(["install", "--quiet"])
        .args(ZIG_PACKAGES))?;
    Ok(wanted)
}

fn is_program(path: &std::ffi::OsStr, name: &str) -> bool {
    std::env::split_paths(path).any(|directory| directory.join(name).is_file())
}

/// Fails with the name of the package if the program is not installed.
fn require_program(name: &str, package: &str) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    ensure!(
        is_program(&path, name),
        "{name} is not installed (Debian: apt-get install {package})"
    );
    Ok(())
}

/// Runs the command, and fails with its words if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let words = words(command);
    eprintln!("+ {words}");
    let status = command
        .status()
        .with_context(|| format!("cannot run {words}"))?;
    ensure!(status.success(), "{words}: {status}");
    Ok(())
}

/// Runs the command, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let words = words(command);
    let done = command
        .output()
        .with_context(|| format!("cannot run {words}"))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        // Some programs print their findings to standard output.
        let said = match said.trim() {
            "" => String::from_utf8_lossy(&done.stdout),
            _ => said,
        };
        bail!("{words}: {}: {}", done.status, said.trim());
    }
    Ok(done.stdout)
}

fn words(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn static_clients_are_built_for_musl() {
        for target in ClientTarget::ALL {
            let triple = rust_target(target.architecture(), target.flavour());
            assert!(triple.starts_with(target.architecture().rust()), "{triple}");
            assert_eq!(
                triple.ends_with("musl"),
                target.flavour() == Flavour::Static
            );
        }
    }

    #[test]
    fn remapped_paths_hide_the_checkout() {
        let directory = tempfile::tempdir().unwrap();
        let release = Release {
            root: directory.path().to_owned(),
            directory: directory.path().join("dist"),
            version: "1.0.0".to_owned(),
            epoch: 0,
        };
        let root = directory.path().canonicalize().unwrap();
        let flag = format!("--remap-path-prefix={}=/iosonde", root.display());
        let flags = rust_flags(&["-Ca=b"], &release);
        let flags: Vec<&str> = flags.split(FLAG_SEPARATOR).collect();
        assert_eq!(flags.first(), Some(&"-Ca=b"));
        assert_eq!(flags.last(), Some(&flag.as_str()));
        for name in ["=/rustup", "=/cargo"] {
            assert!(flags.iter().any(|flag| flag.ends_with(name)), "{flags:?}");
        }
        assert!(c_flags(&release).ends_with("=/iosonde'"));
    }

    #[test]
    fn variables_of_a_target_are_those_of_cargo_and_cc() {
        let triple = "aarch64-unknown-linux-gnu";
        assert_eq!(
            [linker_variable(triple), compiler_variable(triple)],
            [
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
                "CC_aarch64_unknown_linux_gnu"
            ]
        );
    }

    #[test]
    fn failed_command_is_named_with_its_error() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such luck >&2; exit 3"]);
        let error = output(&mut command).unwrap_err().to_string();
        assert!(error.starts_with("sh -c"), "{error}");
        assert!(error.ends_with("no such luck"), "{error}");
    }
}
