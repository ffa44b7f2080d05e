//! Tasks of the project itself: benchmarks beside fio, the files of a release, the pictures of the
//! documents, the tidy check, the rules for dependencies.

mod bench;
mod dependencies;
mod dist;
mod pictures;
mod repository;
mod spdx;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Tasks of the project itself.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run iosonde beside the installed fio and hold it to its bars
    Bench(Box<bench::Arguments>),
    /// Check licences, duplicates and sources of all crates by deny.toml
    Dependencies,
    /// Build all files of a release into target/dist, or check them
    Dist(dist::Arguments),
    /// Make the pictures of the documents from simulated devices, or check them
    Pictures(pictures::Arguments),
    /// Check names, words, lengths, imports and documents against the committed counts
    Tidy(tidy::Arguments),
    /// The limit that the bench measures against; the bench starts it by itself
    #[command(hide = true)]
    BareLoop(bench::bare_loop::Arguments),
    /// The same by the system calls of libaio and psync
    #[command(hide = true)]
    BareCalls(bench::bare_calls::Arguments),
    /// The same on a Ceph cluster
    #[command(hide = true)]
    BareClient(bench::ceph::bare_client::Arguments),
    /// The same on an image of a Ceph cluster
    #[command(hide = true)]
    BareImage(bench::ceph::bare_image::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Dependencies => dependencies::run(),
        Task::Dist(arguments) => dist::run(&arguments),
        Task::Pictures(arguments) => pictures::run(&arguments),
        Task::Tidy(arguments) => tidy::run(&arguments),
        Task::BareLoop(arguments) => bench::bare_loop::run(&arguments),
        Task::BareCalls(arguments) => bench::bare_calls::run(&arguments),
        Task::BareImage(arguments) => bench::ceph::bare_image::run(&arguments),
        Task::BareClient(arguments) => bench::ceph::bare_client::run(&arguments),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
