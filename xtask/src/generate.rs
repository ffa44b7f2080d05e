//! Files that are made from the code, so that the two cannot drift apart.

use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;

/// What `cargo xtask generate` is asked for.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Write nothing; fail if a file is not what it would be
    #[arg(long)]
    check: bool,
}

struct Generated {
    /// From the root of the repository.
    path: &'static str,
    text: fn() -> String,
}

const FILES: &[Generated] = &[Generated {
    path: "docs/fio-options.md",
    text: iosonde_job::help::options_markdown,
}];

/// Writes, or checks, all files. Whether they are now as they should be.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let mut current = true;
    for file in FILES {
        let path = root().join(file.path);
        let text = (file.text)();
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if arguments.check {
            eprintln!("{} is out of date: run cargo xtask generate", file.path);
            current = false;
        } else {
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            println!("wrote {}", file.path);
        }
    }
    Ok(current)
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_current() {
        assert!(
            run(&Arguments { check: true }).unwrap(),
            "run cargo xtask generate"
        );
    }
}
