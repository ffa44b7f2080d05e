//! `iosonde run`: runs a suite of studies and jobs on targets and judges it.

mod attempts;
mod baseline;
mod command_run;
mod command_watch;
pub(super) mod job_target;
mod local_check;
mod measure;
mod study;
mod suite_jobs;
mod suite_step_hook;
mod suite_target;
mod target_run;

use super::outside::Outside;
use super::report::input::take_all;
use super::show_command::store_options;
use super::sweep::{depths_are_the_same, keeps_engine};
use super::target_session::refuse_unused_options;
use super::{beforehand, cold, consent, finish_command, limits};
use crate::args::RunArgs;
use crate::failure::{CommandError, report_all};
use crate::output::Output;
use crate::signals::StopSignal;
use command_run::{listed_commands, refused_commands};
use iosonde_history::absolute;
use iosonde_job::diagnostic::nearest;
use iosonde_job::{Env, Neighbour};
use iosonde_limits::{Limits, LimitsError};
use iosonde_machine::system_env::SystemEnv;
use iosonde_report as report;
use iosonde_report::format::TextFormat;
use iosonde_report::html::HtmlReportBuilder;
use iosonde_report::text_table::fit_lines;
use iosonde_suite::{
    BUILTIN, ExpectationVerdict, JudgedExpectation, MOST_RUNS, StepKind, StepResult, Suite,
    SuiteExpectation, SuiteResult, SuiteTarget, builtin, suite, suite_schema,
};
use measure::SuiteOutcome;
use std::path::Path;
use suite_jobs::{note_unused_file_names, suite_jobs};
use suite_target::{pods_of_suite, refuse_searches_in_pods};

/// Runs a suite and prints its results.
pub(crate) fn run(args: &RunArgs) -> Result<(), CommandError> {
    let output = Output::open_report(args.written.output.as_deref())?;
    if let Some(text) = requested_text(args)? {
        return output.save(&text);
    }
    let limits = limits::read_limits(args.limits_file.as_deref())?;
    let suite = read_suite(args, &limits, &SystemEnv::default())?;
    let names: Vec<String> = targets(args, &suite)
        .into_iter()
        .map(|one| one.name)
        .collect();
    consent::refuse_unmatched(&args.written.consent, &names, true)?;
    let (baselines, mut failures) = baseline::load_baselines(&suite, args);
    let targets = targets(args, &suite);
    failures.extend(refuse_unused_options(&names, &args.cluster).err());
    failures.extend(refuse_depths_without_effect(&suite, &targets).err());
    failures.extend(refuse_searches_in_pods(&suite, pods_of_suite(args, &suite)).err());
    let mut outside = Outside::from_args(&args.outside, suite_jobs(&suite))?;
    if runs_nothing(args) {
        outside = outside.for_listing();
    }
    failures.extend(outside.refused(suite_jobs(&suite)));
    failures.extend(refused_commands(&suite, &targets, args));
    let (expected, wrong) = check_targets(args, &suite, &limits, &targets, &outside)?;
    failures.extend(wrong);
    report_all(failures)?;
    if args.check {
        let text = format!("{}: no problems found\n", suite.name);
        return output.save(&fit_lines(&(outside_lines(&suite, &outside) + &text)));
    }
    if args.dry_run {
        let pods = suite_target::describe_pods(pods_of_suite(args, &suite));
        let below = fit_lines(&(pods + &outside_lines(&suite, &outside)));
        return output.save(&(report::suite::planned_runs_text(&suite, &targets) + &below));
    }
    let junit = match &args.junit {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let report = match &args.report {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let written = SuiteOutputs {
        output,
        junit,
        report,
        ran: junit_header(),
    };
    let stop = StopSignal::listen()?;
    cold::announce(args.cold.layers(), &names, &args.cluster)?;
    beforehand::warn_of_noise(&names, &args.cluster);
    let mut printed = Ok(());
    let print = |ran| printed = print(args, ran, written, &stop);
    let judged = (&expected[..], &baselines);
    let what = (&suite, &targets[..], &outside);
    let closed = measure::measure(args, what, judged, &stop, print)?;
    finish_command([printed], closed)
}

/// Whether the suite is only checked or planned.
fn runs_nothing(args: &RunArgs) -> bool {
    args.check || args.dry_run
}

/// One line for each command, setting and path outside of the targets.
fn outside_lines(suite: &Suite, outside: &Outside) -> String {
    listed_commands(suite) + &outside.listed(suite_jobs(suite))
}

/// The outputs at the end of a suite.
struct SuiteOutputs {
    output: Output,
    junit: Option<Output>,
    report: Option<Output>,
    /// Time and host of the run.
    ran: report::suite::JunitHeader,
}

/// Writes all requested files. Reports all errors; the first one sets the exit status.
fn print(
    args: &RunArgs,
    ran: SuiteOutcome,
    written: SuiteOutputs,
    stop: &StopSignal,
) -> Result<(), CommandError> {
    let SuiteOutcome {
        results,
        kept,
        failed,
    } = ran;
    let SuiteOutputs {
        output,
        junit,
        report,
        ran,
    } = written;
    // CI reads the JUnit file even if the suite failed. An error here does not stop the rest.
    let junit_written = match junit {
        Some(junit) => junit.save(&report::suite::junit(&results, &ran)),
        None => Ok(()),
    };
    if let Some(failure) = failed {
        return finish_command([junit_written, Err(failure)], Ok(()));
    }
    let drawn = match report {
        Some(file) => draw_report(args, &results, &kept).and_then(|page| file.save(&page)),
        None => Ok(()),
    };
    let text = match args.written.format {
        TextFormat::Table => {
            let options = store_options(&args.keep);
            let stored = results.iter().zip(&kept);
            let texts = stored.map(|(result, id)| {
                let stored = (id.as_deref(), options.as_str());
                report::suite::table_with_id(result, stored, output.style())
            });
            let texts = texts.collect::<Vec<_>>().join("\n");
            texts + &report::suite::verdicts_of_targets(&results)
        }
        TextFormat::Json => report::suite::suite_json(&results)?,
        TextFormat::Csv => report::suite::suite_csv(&results),
        TextFormat::Markdown => report::suite::markdown(&results),
    };
    let written = output.save(&text);
    let concluded = match stop.signal() {
        Some(signal) => Err(CommandError::Interrupted(signal)),
        None => conclude(args, &results),
    };
    finish_command([written, junit_written, drawn, concluded], Ok(()))
}

/// The report of all targets. Stored studies are drawn with their runs.
fn draw_report(
    args: &RunArgs,
    results: &[SuiteResult],
    kept: &[Option<String>],
) -> Result<String, CommandError> {
    let mut page = HtmlReportBuilder::default();
    for (result, id) in results.iter().zip(kept) {
        match id {
            Some(id) => take_all(
                &mut page,
                std::slice::from_ref(id),
                args.keep.store.as_deref(),
            )?,
            None => page.suite(&result.target, result),
        }
    }
    Ok(page.html(None)?)
}

/// Refuses sweeps over iodepth with an engine that ignores it.
fn refuse_depths_without_effect(
    suite: &Suite,
    targets: &[SuiteTarget],
) -> Result<(), CommandError> {
    if !targets.iter().any(|target| keeps_engine(&target.name)) {
        return Ok(());
    }
    for step in &suite.steps {
        if let StepKind::Sweep(wanted) = &step.what
            && let Some(plan) = wanted.grid.without_effect_of_depth()
        {
            return Err(CommandError::usage(
                format!("`{}`: {}", step.workload, depths_are_the_same(plan)),
                "use an asynchronous engine, e.g. ioengine = \"io_uring\", or vary numjobs \
                 instead: iodepth = 1, numjobs = \"1..64\"",
            ));
        }
    }
    Ok(())
}

/// Checks all targets, also in clusters, and returns the errors of all before any is changed.
/// `--check` checks the steps too. A run reports failed steps one by one and measures the others.
/// Returns the expectations of each usable target.
fn check_targets(
    args: &RunArgs,
    suite: &Suite,
    limits: &Limits,
    targets: &[SuiteTarget],
    outside: &Outside,
) -> Result<(Vec<Vec<SuiteExpectation>>, Vec<CommandError>), CommandError> {
    let (mut expected, mut failures, mut usable) = (Vec::new(), Vec::new(), Vec::new());
    let mut replacing = Vec::new();
    for target in targets {
        match suite_target::check_target(&target.name, args, suite) {
            Ok(found) => {
                usable.push(target.name.as_str());
                replacing.push((target.name.as_str(), found.unused_names));
                // A run prints the notes when its pod is created.
                if args.check {
                    found
                        .notes
                        .iter()
                        .for_each(|note| eprintln!("note: {note}"));
                }
                expected.push(expected_of(
                    suite,
                    target,
                    limits,
                    found.volume_bytes,
                    &mut failures,
                ));
            }
            Err(failure) => failures.push(failure),
        }
    }
    if args.check {
        failures.extend(local_check::check_local_targets(
            &usable, suite, args, outside,
        )?);
    }
    if failures.is_empty() {
        note_unused_file_names(suite, &replacing);
    }
    Ok((expected, failures))
}

/// The expectations of a target. Some promises depend on its size.
fn expected_of(
    suite: &Suite,
    target: &SuiteTarget,
    limits: &Limits,
    volume_bytes: Option<u64>,
    failures: &mut Vec<CommandError>,
) -> Vec<SuiteExpectation> {
    let refused = |expected: &SuiteExpectation, error: LimitsError| {
        let (name, text) = (&target.name, &expected.expectation.text);
        let problem = match error.lacks("size") {
            true => {
                format!("{name}: `{text}` depends on the size of the volume, which is unknown")
            }
            false => format!("{name}: `{text}`: {error}"),
        };
        CommandError::usage(problem, expected.remedy(limits, &error))
    };
    let all = suite.expectations.iter().map(|expected| {
        let of_target = expected.of_volume(limits, volume_bytes);
        of_target.map_err(|error| refused(expected, error))
    });
    all.filter_map(|each| each.map_err(|failure| failures.push(failure)).ok())
        .collect()
}

/// The exit status, by failed steps and by verdicts.
fn conclude(args: &RunArgs, results: &[SuiteResult]) -> Result<(), CommandError> {
    let steps = results.iter().flat_map(|result| &result.steps);
    if let Some((step, failure)) = steps
        .filter_map(|step| Some((step, step.failure.as_ref()?)))
        .next()
    {
        return Err(CommandError::Io(step_error(step, failure, args)));
    }
    let is_missed = |judged: &&JudgedExpectation| match judged.verdict {
        ExpectationVerdict::Missed | ExpectationVerdict::NotMeasured => true,
        ExpectationVerdict::Undecided => args.fail_if_unclear,
        ExpectationVerdict::Met => false,
    };
    let missed = lines_of(results, is_missed);
    if !missed.is_empty() {
        return Err(CommandError::Missed(missed));
    }
    let undecided = lines_of(results, |judged| {
        judged.verdict == ExpectationVerdict::Undecided
    });
    match undecided.is_empty() {
        true => Ok(()),
        false => Err(CommandError::Undecided(undecided)),
    }
}

/// The error of a failed step. The table has its help, which is not repeated.
fn step_error(step: &StepResult, failure: &str, args: &RunArgs) -> String {
    let shown = match args.written.format {
        TextFormat::Table => step.failure_without_help().unwrap_or_default(),
        TextFormat::Json | TextFormat::Csv | TextFormat::Markdown => failure,
    };
    format!("{}: {shown}", step.name)
}

/// One line for each selected verdict.
fn lines_of(results: &[SuiteResult], is_meant: impl Fn(&&JudgedExpectation) -> bool) -> String {
    let judged = results.iter().flat_map(|result| {
        let of_it = result.judged.iter().filter(&is_meant);
        of_it.map(move |judged| (result, judged))
    });
    let lines = judged.map(|(result, judged)| {
        format!(
            "{}: {} {}: {}",
            result.target,
            judged.figure,
            judged.verdict.words(),
            report::suite::evidence(judged, "+-")
        )
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// The current time and this host.
fn junit_header() -> report::suite::JunitHeader {
    let name = rustix::system::uname();
    let hostname = name.nodename().to_string_lossy();
    report::suite::JunitHeader {
        timestamp: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S")
            .to_string(),
        // The JUnit schema requires a name.
        hostname: match hostname.trim() {
            "" => "localhost".to_owned(),
            name => name.to_owned(),
        },
    }
}

/// The text of options that print something instead of running the suite.
fn requested_text(args: &RunArgs) -> Result<Option<String>, CommandError> {
    if args.list {
        return Ok(Some(report::suite::builtin_suite_list()));
    }
    if args.schema {
        let text = serde_json::to_string_pretty(&suite_schema()).map_err(anyhow::Error::from)?;
        return Ok(Some(text + "\n"));
    }
    match &args.show {
        None => Ok(None),
        Some(name) => match builtin(name) {
            Some(suite) => Ok(Some(suite.text.to_owned())),
            None => Err(unknown(name)),
        },
    }
}

fn unknown(name: &str) -> CommandError {
    let help = match nearest(name, BUILTIN.iter().map(|suite| suite.name)) {
        Some(meant) => format!("did you mean `{meant}`? `iosonde run --list` lists all suites"),
        None => "name a .toml, .yaml or .yml file, or a suite of `iosonde run --list`".to_owned(),
    };
    CommandError::usage(format!("there is no suite `{name}`"), help)
}

/// Reads the suite. A file precedes a built-in suite of the same name.
pub(super) fn read_suite(
    args: &RunArgs,
    limits: &Limits,
    env: &dyn Env,
) -> Result<Suite, CommandError> {
    let name = args.suite.as_deref().unwrap_or_default();
    let (file, text) = match builtin(name) {
        Some(suite) if !Path::new(name).is_file() => (suite.file_name(), suite.text.to_owned()),
        _ => {
            let is_file = Path::new(name).is_file() || name.contains(['.', '/']);
            if !is_file {
                return Err(unknown(name));
            }
            let bytes = env.read_file(name).map_err(|error| {
                CommandError::usage(
                    format!("{name}: {}", iosonde_job::errno::describe(&error)),
                    "name a readable suite file, or a suite of `iosonde run --list`",
                )
            })?;
            (
                name.to_owned(),
                String::from_utf8_lossy(&bytes).into_owned(),
            )
        }
    };
    let overrides = args.variables.iter().cloned().collect();
    let most_runs = if args.yes { usize::MAX } else { MOST_RUNS };
    let suite = suite(&file, &text, &overrides, limits, most_runs, env);
    let mut suite = suite.map_err(|all| CommandError::Jobs(Box::new(all)))?;
    match args.beside.neighbour()? {
        Some(neighbour) => set_neighbour(&mut suite, &neighbour)?,
        None if args.beside.is_none_wanted() => suite.remove_neighbours(),
        None => {}
    }
    if !suite.warnings.list.is_empty() {
        eprintln!("{}", suite.warnings);
    }
    Ok(suite)
}

/// Measures all workloads beside the neighbour of `--beside` too. Commands have none.
fn set_neighbour(suite: &mut Suite, neighbour: &Neighbour) -> Result<(), CommandError> {
    suite.set_neighbour(neighbour);
    match suite.steps.iter().any(|step| step.beside.is_some()) {
        true => Ok(()),
        false => Err(CommandError::usage(
            format!(
                "--beside: all workloads of {} are commands, which run without a neighbour",
                suite.name
            ),
            "leave out --beside",
        )),
    }
}

/// Targets of the command line, else of the suite, else the current directory.
fn targets(args: &RunArgs, suite: &Suite) -> Vec<SuiteTarget> {
    let plain = |name: &str| SuiteTarget {
        name: name.to_owned(),
        labels: Default::default(),
    };
    let targets = match (&args.targets[..], &suite.targets[..]) {
        ([], []) => vec![plain(".")],
        ([], of_suite) => of_suite.to_vec(),
        (given, _) => given.iter().map(|name| plain(name)).collect(),
    };
    let in_each_context = |target: SuiteTarget| {
        let names = args.cluster.in_each_context(&[absolute(&target.name)]);
        names.into_iter().map(move |name| SuiteTarget {
            name,
            labels: target.labels.clone(),
        })
    };
    targets.into_iter().flat_map(in_each_context).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::env::FakeEnv;
    use std::collections::BTreeMap;

    #[test]
    fn neighbour_of_a_suite_of_commands_is_refused() {
        let command = "[[workload]]\nname = \"tpcb\"\ncommand = { run = \"true\", figure = \
                       \"([0-9]+)\" }\n";
        let job = "[[workload]]\nname = \"a\"\noptions = { size = \"1m\" }\n";
        let neighbour = Neighbour::parse("--beside", "rw=write", &FakeEnv::new()).unwrap();
        let placed = |text: &str| {
            let (none, limits) = (BTreeMap::new(), Limits::published());
            let read = suite("s.toml", text, &none, limits, MOST_RUNS, &FakeEnv::new());
            let mut suite = read.map_err(|all| all.render(false)).unwrap();
            set_neighbour(&mut suite, &neighbour).map(|()| suite.steps.len())
        };
        assert!(matches!(placed(command), Err(CommandError::Usage { .. })));
        assert_eq!(placed(&format!("{command}{job}")).unwrap(), 3);
    }
}
