//! The runs of one command line: one of each target, or those that `--repeat` asks for.

use super::EndedProbe;
use super::probe_output::{print, print_repeated};
use crate::args::ProbeArgs;
use crate::failure::CommandError;
use crate::live::probe_live::run_number::RunNumber;
use crate::output::Output;
use crate::signals::StopSignal;
use iosonde_report::probe::repeated::RepeatedTarget;
use iosonde_study::probe::{ProbeResult, StudyTargetKind};
use iosonde_study::promise_check::PromiseOutcome;

/// Results of all runs so far, and where they are printed.
pub(super) struct ProbeRuns<'a> {
    args: &'a ProbeArgs,
    stop: &'a StopSignal,
    targets: Vec<RepeatedTarget>,
    failed: Option<CommandError>,
    /// `None` once the results are printed.
    output: Option<Output>,
    concluded: Result<(), CommandError>,
}

impl<'a> ProbeRuns<'a> {
    pub(super) fn new(args: &'a ProbeArgs, stop: &'a StopSignal, output: Output) -> Self {
        ProbeRuns {
            args,
            stop,
            targets: vec![RepeatedTarget::default(); args.targets.len()],
            failed: None,
            output: Some(output),
            concluded: Ok(()),
        }
    }

    /// Adds run number `run` of all targets. Prints the results after the last run, and if a signal
    /// or a failure ended this one.
    pub(super) fn add(
        &mut self,
        run: u32,
        ended: Vec<(usize, EndedProbe)>,
        failed: Option<CommandError>,
    ) {
        let is_cut = |result: &ProbeResult| result.interrupted || has_failed(result);
        let is_last = run >= self.args.repeat.unwrap_or(1)
            || self.stop.signal().is_some()
            || failed.is_some()
            || ended.iter().any(|(_, probe)| is_cut(&probe.result));
        for (who, EndedProbe { result, id }) in ended {
            self.targets[who].runs.push(result);
            self.targets[who].ids.push(id);
        }
        self.failed = self.failed.take().or(failed);
        if is_last {
            self.print();
        }
    }

    /// Whether the results are printed.
    pub(super) fn is_printed(&self) -> bool {
        self.output.is_none()
    }

    /// Prints the results if they are not printed yet. Returns the outcome of the command.
    pub(super) fn conclude(mut self) -> Result<(), CommandError> {
        self.print();
        self.concluded
    }

    fn print(&mut self) {
        let Some(output) = self.output.take() else {
            return;
        };
        let (args, failed) = (self.args, self.failed.take());
        let targets = std::mem::take(&mut self.targets);
        self.concluded = match args.repeat {
            Some(planned) => {
                let written = print_repeated(args, &targets, planned, output);
                let results: Vec<&ProbeResult> =
                    targets.iter().flat_map(|target| &target.runs).collect();
                written.and(concluded_by(args, self.stop, &results, failed))
            }
            None => {
                let mut results = Vec::new();
                let mut ids = Vec::new();
                for target in targets {
                    results.extend(target.runs);
                    ids.extend(target.ids);
                }
                let written = print(args, &results, &ids, output);
                let results: Vec<&ProbeResult> = results.iter().collect();
                written.and(concluded_by(args, self.stop, &results, failed))
            }
        };
    }
}

/// Whether an error ended the probe early. No run follows.
pub(super) fn has_failed(result: &ProbeResult) -> bool {
    result.error.is_some() || result.failure().is_some()
}

/// Fails if the runs of a simulated device would be equal.
pub(super) fn refuse_numbered_run(
    args: &ProbeArgs,
    name: &str,
    kind: &StudyTargetKind,
) -> Result<(), CommandError> {
    if args.repeat.is_none() || !kind.has_run() {
        return Ok(());
    }
    Err(CommandError::usage(
        format!("{name}: all runs of --repeat would be equal, because run= numbers them"),
        "leave out run=: --repeat numbers the runs itself",
    ))
}

/// The number of a run, which is shown with `--repeat` only.
pub(super) fn run_number(args: &ProbeArgs, run: u32) -> RunNumber {
    RunNumber {
        run,
        planned: args.repeat.unwrap_or(0),
    }
}

fn concluded_by(
    args: &ProbeArgs,
    stop: &StopSignal,
    results: &[&ProbeResult],
    failed: Option<CommandError>,
) -> Result<(), CommandError> {
    if let (Some(signal), false) = (stop.signal(), results.is_empty()) {
        return Err(CommandError::Interrupted(signal));
    }
    if let Some(failure) = failed {
        return Err(failure);
    }
    let cut = results.iter().find_map(|result| result.error.clone());
    let failure = results.iter().find_map(|result| result.failure());
    stop.conclude_study(cut, failure.map(|failure| failure.message.clone()))?;
    match args.fail_if_broken {
        true => fail_if_broken(results),
        false => Ok(()),
    }
}

/// Fails if a promise is broken, which sets the exit status for CI.
fn fail_if_broken(results: &[&ProbeResult]) -> Result<(), CommandError> {
    let broken: Vec<String> = results
        .iter()
        .flat_map(|result| result.expected.iter().map(move |held| (result, held)))
        .filter(|(_, held)| held.outcome == PromiseOutcome::Broken)
        .map(|(result, held)| {
            format!(
                "{}, {}: {}",
                result.target,
                held.promise.product,
                held.sentence()
            )
        })
        .collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(CommandError::Broken(broken.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, CliCommand};
    use clap::Parser;

    fn args(words: &[&str]) -> ProbeArgs {
        let words = ["iosonde", "probe"]
            .into_iter()
            .chain(words.iter().copied());
        match Cli::try_parse_from(words).unwrap().command {
            CliCommand::Probe(args) => args,
            _ => panic!("another command"),
        }
    }

    fn simulated(options: &str) -> StudyTargetKind {
        StudyTargetKind::Simulated {
            options: options.to_owned(),
        }
    }

    #[test]
    fn repeat_refuses_simulated_device_with_a_run() {
        let refused = |words: &[&str], options: &str| {
            refuse_numbered_run(&args(words), "sim:x", &simulated(options)).is_err()
        };
        assert!(refused(&["--repeat", "3"], "hdd,run=2"));
        assert!(!refused(&["--repeat", "3"], "hdd"));
        assert!(!refused(&[], "hdd,run=2"));
    }

    #[test]
    fn repeat_takes_2_to_20_runs_and_no_manifests() {
        assert_eq!(args(&["--repeat", "20"]).repeat, Some(20));
        assert_eq!(args(&[]).repeat, None);
        let parses = |words: &str| Cli::try_parse_from(words.split(' ')).is_ok();
        assert!(!parses("iosonde probe --repeat 1"));
        assert!(!parses("iosonde probe --repeat 21"));
        assert!(parses("iosonde probe sc://fast --render"));
        assert!(!parses("iosonde probe sc://fast --render --repeat 2"));
    }

    #[test]
    fn run_is_numbered_only_with_repeat() {
        let words = |words: &[&str], run| run_number(&args(words), run).words();
        assert_eq!(words(&["--repeat", "5"], 2), ", run 2 of 5");
        assert_eq!(words(&[], 1), "");
    }
}
