//! Builds the agent and embeds it in the program, which sends it into pods.
//!
//! Only builds of the profiles `release` and `quick` include it, so that checks, tests and fuzz
//! targets do not wait. A program without it uses the file in `IOSONDE_AGENT`. At build time, the
//! variable names a file to embed.
//!
//! A release also has the agent of the other architecture: `IOSONDE_AGENT_X86_64` and
//! `IOSONDE_AGENT_AARCH64` name agents that were built before. `cargo xtask dist` sets both.
//!
//! Agents are embedded as they are. They share much of their machine code and text with the
//! program, so the archive of a release packs them better than agents that were compressed here.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=IOSONDE_AGENT");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let embedded = out.join("agent-own");
    if is_release_for_lld() {
        // lld merges functions with equal machine code, of which generic code has many. Rust does
        // not promise distinct addresses of functions. SQLite compares a few such addresses, but no
        // query of iosonde passes another function with the same code.
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
    let architecture = env::var("CARGO_CFG_TARGET_ARCH")?;
    let (own, other) = agent_variables(&architecture);
    embed_other(other, &out.join("agent-other"))?;
    let has_other = other.and_then(given_agent).is_some();
    if let Some(given) = own
        .and_then(given_agent)
        .or_else(|| given_agent("IOSONDE_AGENT"))
    {
        embed(&given, &embedded)?;
    } else if embeds_agent(&out)? && !is_for_linux() {
        if !has_other {
            println!(
                "cargo::warning=iosonde is built without an agent: build iosonde-agent on Linux, \
                 and name it in IOSONDE_AGENT_X86_64 or IOSONDE_AGENT_AARCH64"
            );
        }
        fs::write(embedded, [])?;
    } else if embeds_agent(&out)? {
        let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("../..");
        for part in [
            "Cargo.lock",
            "Cargo.toml",
            "crates/agent",
            "crates/engine",
            "crates/job",
            "crates/machine",
            "crates/result",
            "crates/sim",
            "crates/statistics",
            "crates/workload",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(part).display());
        }
        match agent(&root, &out) {
            Ok(built) => embed(&built, &embedded)?,
            Err(why) => without(&why.to_string(), &embedded)?,
        }
    } else {
        fs::write(embedded, [])?;
    }
    Ok(())
}

/// Returns the variables with the agents of this architecture and of the other one. An architecture
/// without releases has none of its own.
fn agent_variables(architecture: &str) -> (Option<&'static str>, Option<&'static str>) {
    let (x86, arm) = ("IOSONDE_AGENT_X86_64", "IOSONDE_AGENT_AARCH64");
    match architecture {
        "x86_64" => (Some(x86), Some(arm)),
        "aarch64" => (Some(arm), Some(x86)),
        _ => (None, None),
    }
}

/// Returns the agent that the variable names. The build is repeated if either changes.
fn given_agent(variable: &str) -> Option<PathBuf> {
    println!("cargo::rerun-if-env-changed={variable}");
    let given = PathBuf::from(env::var_os(variable)?);
    println!("cargo::rerun-if-changed={}", given.display());
    Some(given)
}

/// Embeds the agent of the other architecture, if one was built. Else the file is empty.
fn embed_other(variable: Option<&str>, embedded: &Path) -> Result<(), Box<dyn Error>> {
    match variable.and_then(given_agent) {
        Some(agent) => embed(&agent, embedded),
        None => Ok(fs::write(embedded, [])?),
    }
}

/// Returns the directory of the profile: OUT_DIR is TARGET-DIR/[TRIPLE/]PROFILE/build/NAME/out.
fn profile_directory(out: &Path) -> Result<&Path, Box<dyn Error>> {
    Ok(out.ancestors().nth(3).ok_or("OUT_DIR is too short")?)
}

/// Returns whether the profile is `quick`, `release` or derived from `release`. Cargo passes
/// `PROFILE=debug` for `quick` as for all profiles derived from `dev`, among them `fuzz`.
fn embeds_agent(out: &Path) -> Result<bool, Box<dyn Error>> {
    let is_quick = profile_directory(out)?.ends_with("quick");
    Ok(is_quick || env::var("PROFILE")? == "release")
}

/// Returns whether the agent runs on the system of this build. It measures, which needs Linux.
fn is_for_linux() -> bool {
    env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux")
}

/// Returns whether this is an optimised release that rustc links with its own lld: the default on
/// x86-64 Linux with glibc, unless the toolchain comes without it or the user selects a linker. GNU
/// ld rejects the option of lld.
fn is_release_for_lld() -> bool {
    let has = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    has("PROFILE", "release")
        && has("OPT_LEVEL", "3")
        && has("CARGO_CFG_TARGET_ARCH", "x86_64")
        && has("CARGO_CFG_TARGET_OS", "linux")
        && has("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var_os("RUSTC_LINKER").is_none()
        && !env::var("CARGO_ENCODED_RUSTFLAGS").is_ok_and(|flags| flags.contains("link"))
        && toolchain_has_lld()
}

fn toolchain_has_lld() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let Ok(printed) = Command::new(rustc).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = String::from_utf8_lossy(&printed.stdout);
    Path::new(sysroot.trim())
        .join("lib/rustlib/x86_64-unknown-linux-gnu/bin/gcc-ld/ld.lld")
        .exists()
}

/// Writes the agent to the file that the program includes. The file has none of the agent's
/// permissions: the next build can replace it. If the agent is empty, the program contains none.
fn embed(agent: &Path, embedded: &Path) -> Result<(), Box<dyn Error>> {
    Ok(fs::write(embedded, fs::read(agent)?)?)
}

/// Builds without the agent: some distributions ship no libc.a. Only pods need the agent.
fn without(why: &str, embedded: &Path) -> Result<(), Box<dyn Error>> {
    println!(
        "cargo::warning=iosonde is built without the agent, and cannot measure in a Kubernetes \
         cluster: {why}"
    );
    println!(
        "cargo::warning=install the static C library (Debian: libc6-dev, Fedora: glibc-static), \
         then: touch crates/iosonde/build.rs"
    );
    Ok(fs::write(embedded, [])?)
}

/// A small static executable, since every pod receives it. It is not position-independent and has
/// no unwind tables, as nothing reads its stack traces.
const AGENT_FLAGS: [&str; 3] = [
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=no",
];

/// Adds a flag that removes paths of the build machine, of which the file would hold hundreds.
fn agent_flags() -> String {
    let mut flags = AGENT_FLAGS.map(str::to_owned).to_vec();
    let home = env::var("HOME").map(|home| format!("{home}/.cargo"));
    if let Ok(cargo) = env::var("CARGO_HOME").or(home) {
        flags.push(format!("--remap-path-prefix={cargo}/registry/src="));
    }
    flags.join("\x1f")
}

/// Builds the static agent in its own directory, because the outer build locks the other one.
fn agent(root: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    let directory = profile_directory(out)?.join("agent");
    let mut cargo = Command::new(env::var("CARGO")?);
    cargo
        .current_dir(root)
        .args([
            "build",
            "--package",
            "iosonde-agent",
            "--profile",
            "agent",
            "--locked",
        ])
        .args(["--target", &target])
        .arg("--target-dir")
        .arg(&directory)
        .env("CARGO_ENCODED_RUSTFLAGS", agent_flags());
    // Variables that cargo sets for this build must not affect the other.
    for name in [
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_TARGET_DIR",
    ] {
        cargo.env_remove(name);
    }
    let built = cargo.output()?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr);
        let first = said.lines().find(|line| line.starts_with("error"));
        return Err(first.unwrap_or("cargo failed").into());
    }
    Ok(directory.join(target).join("agent/iosonde-agent"))
}
