//! Builds the agent and hands it to the program, which carries it and sends it into pods.
//!
//! The agent is built for release only: checks, lints and tests of the program should not wait for it. A program without it
//! says so, and takes the one that `IOSONDE_AGENT` names. The same variable, set while building, embeds a given file.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=IOSONDE_AGENT");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let embedded = out.join("agent");
    if let Some(given) = env::var_os("IOSONDE_AGENT") {
        println!("cargo::rerun-if-changed={}", Path::new(&given).display());
        fs::copy(given, embedded)?;
    } else if env::var("PROFILE")? == "release" {
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
            "crates/workload",
        ] {
            println!("cargo::rerun-if-changed={}", root.join(part).display());
        }
        match agent(&root, &out) {
            Ok(built) => drop(fs::copy(built, embedded)?),
            Err(why) => without(&why.to_string(), &embedded)?,
        }
    } else {
        fs::write(embedded, [])?;
    }
    Ok(())
}

/// A machine that cannot link statically has no libc.a, as some distributions ship none. Everything but pods works without it.
fn without(why: &str, embedded: &Path) -> Result<(), Box<dyn Error>> {
    println!(
        "cargo::warning=iosonde is built without the agent, and cannot measure in a Kubernetes cluster: {why}"
    );
    println!(
        "cargo::warning=install the static C library (Debian: libc6-dev, Fedora: glibc-static), then: touch crates/iosonde/build.rs"
    );
    Ok(fs::write(embedded, [])?)
}

/// Statically linked, and no larger than it must be, for it is sent into every pod: nothing moves it in memory, and nobody reads a
/// trace of its stack.
const AGENT_FLAGS: [&str; 3] = [
    "-Ctarget-feature=+crt-static",
    "-Crelocation-model=static",
    "-Cforce-unwind-tables=no",
];

/// These, and no paths of the machine that builds: they would be in it hundreds of times.
fn agent_flags() -> String {
    let mut flags = AGENT_FLAGS.map(str::to_owned).to_vec();
    let home = env::var("HOME").map(|home| format!("{home}/.cargo"));
    if let Ok(cargo) = env::var("CARGO_HOME").or(home) {
        flags.push(format!("--remap-path-prefix={cargo}/registry/src="));
    }
    flags.join("\x1f")
}

/// Builds the agent, statically linked, where nothing else is built: the outer build holds the lock of its own directory.
fn agent(root: &Path, out: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let target = env::var("TARGET")?;
    // OUT_DIR is TARGET-DIR/[TRIPLE/]release/build/iosonde-HASH/out.
    let release = out.ancestors().nth(3).ok_or("OUT_DIR is too short")?;
    let directory = release.join("agent");
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
    // What cargo sets for this build is not meant for the other.
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
