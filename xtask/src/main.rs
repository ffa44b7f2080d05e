//! Tasks of the project itself: benchmarks beside fio, and the tidy check.

mod bench;
mod repository;
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
    /// Check names, words, lengths, imports and documents against the committed counts
    Tidy(tidy::Arguments),
    /// The limit that the bench measures against; the bench starts it by itself
    #[command(hide = true)]
    BareLoop(bench::bare_loop::Arguments),
    /// The same on a Ceph cluster
    #[command(hide = true)]
    BareClient(bench::ceph::bare_client::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run(&arguments),
        Task::Tidy(arguments) => tidy::run(&arguments),
        Task::BareLoop(arguments) => bench::bare_loop::run(&arguments),
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
