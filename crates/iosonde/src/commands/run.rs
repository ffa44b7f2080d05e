//! `iosonde run`: all this, every time, the same way.

mod attempts;
mod baseline;
mod keeping;
mod look;
mod measure;
pub(super) mod place;
mod site;
mod study;

use super::outside::Outside;
use super::report::input::take_all;
use super::sweep::{depths_are_the_same, keeps_engine};
use super::{beforehand, consent, end, limits};
use crate::args::{RunArgs, TextFormat};
use crate::failure::{Failure, told_at_once};
use crate::output::Output;
use crate::report;
use crate::report::html::Builder;
use crate::report::sweep::listed;
use crate::signals::Stop;
use crate::store::absolute;
use iosonde_job::Env;
use iosonde_job::diagnostic::nearest;
use iosonde_job::plan::Job;
use iosonde_machine::system_env::SystemEnv;
use iosonde_study::limits::{Limits, LimitsError};
use iosonde_study::suite::{
    BUILTIN, Expected, Judged, MOST_RUNS, Suite, SuiteResult, SuiteTarget, Verdict, What, builtin,
    suite, suite_schema,
};
use measure::Ran;
use std::path::Path;

/// Runs a suite and prints what was found.
pub(crate) fn run(args: &RunArgs) -> Result<(), Failure> {
    let output = Output::open(args.written.output.as_deref())?;
    if let Some(text) = told(args)? {
        return output.save(&text);
    }
    let limits = limits::read(args.limits_file.as_deref())?;
    let suite = read(args, &limits)?;
    let names: Vec<String> = targets(args, &suite)
        .into_iter()
        .map(|one| one.name)
        .collect();
    consent::refuse_unmatched(&args.written.consent, &names, true)?;
    let (baselines, mut failures) = baseline::find(&suite, args.keep.store.as_deref());
    let targets = targets(args, &suite);
    failures.extend(refuse_depths_without_effect(&suite, &targets).err());
    let outside = Outside::of(&args.outside, jobs(&suite))?;
    failures.extend(outside.refused(jobs(&suite)));
    let (expected, wrong) = check_targets(args, &suite, &limits, &targets, &outside)?;
    failures.extend(wrong);
    told_at_once(failures)?;
    if args.check {
        let text = format!(
            "{}{}: all is well\n",
            outside.listed(jobs(&suite)),
            suite.name
        );
        return output.save(&text);
    }
    if args.dry_run {
        let text = report::suite::plan(&suite, &targets) + &outside.listed(jobs(&suite));
        return output.save(&text);
    }
    let junit = match &args.junit {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let report = match &args.report {
        Some(path) => Some(Output::open(Some(path))?),
        None => None,
    };
    let written = Written {
        output,
        junit,
        report,
        ran: ran(),
    };
    let stop = Stop::listen()?;
    beforehand::warn(&names, &args.cluster);
    let mut printed = Ok(());
    let print = |ran| printed = print(args, ran, written, &stop);
    let judged = (&expected[..], &baselines);
    let what = (&suite, &targets[..], &outside);
    let closed = measure::measure(args, what, judged, &stop, print)?;
    end([printed], closed)
}

/// What is written when a suite has ended.
struct Written {
    output: Output,
    junit: Option<Output>,
    report: Option<Output>,
    /// When and where it ran.
    ran: report::suite::Ran,
}

/// Writes the result and the files that are asked for besides. All that could not be written is told, the first by the exit status.
fn print(args: &RunArgs, ran: Ran, written: Written, stop: &Stop) -> Result<(), Failure> {
    let Ran {
        results,
        kept,
        failed,
    } = ran;
    let Written {
        output,
        junit,
        report,
        ran,
    } = written;
    // A pipeline reads it whatever came of the suite; a full disk is no reason not to print the rest.
    let told = match junit {
        Some(junit) => junit.save(&report::suite::junit(&results, &ran)),
        None => Ok(()),
    };
    if let Some(failure) = failed {
        return end([told, Err(failure)], Ok(()));
    }
    let drawn = match report {
        Some(file) => draw(args, &results, &kept).and_then(|page| file.save(&page)),
        None => Ok(()),
    };
    let text = match args.written.format {
        TextFormat::Table => results
            .iter()
            .map(report::suite::table)
            .collect::<Vec<_>>()
            .join("\n"),
        TextFormat::Json => report::suite::json(&results)?,
        TextFormat::Csv => report::suite::csv(&results),
        TextFormat::Markdown => report::suite::markdown(&results),
    };
    let written = output.save(&text);
    let concluded = match stop.signal() {
        Some(signal) => Err(Failure::Interrupted(signal)),
        None => conclude(args, &results),
    };
    end([written, told, drawn, concluded], Ok(()))
}

/// The page of what was found on all targets. Single runs are drawn as well where they are kept.
fn draw(
    args: &RunArgs,
    results: &[SuiteResult],
    kept: &[Option<String>],
) -> Result<String, Failure> {
    let mut page = Builder::default();
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
    page.html(Some(&format!(
        "{} on {}",
        results.first().map_or("", |result| &result.suite),
        listed(
            &results
                .iter()
                .map(|result| result.target.clone())
                .collect::<Vec<_>>()
        )
    )))
}

/// All jobs of a suite, those of its sweeps too.
fn jobs(suite: &Suite) -> impl Iterator<Item = &Job> {
    suite.steps.iter().flat_map(|step| -> Vec<&Job> {
        match &step.what {
            What::Jobs(plan) => plan.jobs.iter().collect(),
            What::Sweep(wanted) => wanted.grid.curves.iter().map(|curve| &curve.job).collect(),
            What::Load(_) | What::Probe(_) => Vec::new(),
        }
    })
}

/// Refuses sweeps over depths that are all the same, whatever they are.
fn refuse_depths_without_effect(suite: &Suite, targets: &[SuiteTarget]) -> Result<(), Failure> {
    if !targets.iter().any(|target| keeps_engine(&target.name)) {
        return Ok(());
    }
    for step in &suite.steps {
        if let What::Sweep(wanted) = &step.what
            && let Some(plan) = wanted.grid.without_effect_of_depth()
        {
            return Err(Failure::usage(
                format!("`{}`: {}", step.workload, depths_are_the_same(plan)),
                "name an engine that queues, such as ioengine = \"io_uring\", or vary the jobs instead: iodepth = 1, \
                 numjobs = \"1..64\"",
            ));
        }
    }
    Ok(())
}

/// Looks at all targets, in clusters too: what cannot be measured is told of each before the first is touched. With `--check` the
/// steps are looked at as well; a run tells of them one by one, and measures the others. Returns what is expected of each target
/// that can be measured, and what is wrong with the others.
fn check_targets(
    args: &RunArgs,
    suite: &Suite,
    limits: &Limits,
    targets: &[SuiteTarget],
    outside: &Outside,
) -> Result<(Vec<Vec<Expected>>, Vec<Failure>), Failure> {
    let (mut expected, mut failures, mut usable) = (Vec::new(), Vec::new(), Vec::new());
    for target in targets {
        match site::checked(&target.name, args) {
            Ok(found) => {
                usable.push(target.name.as_str());
                // A run tells them itself, when its pod is made.
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
        failures.extend(look::all(&usable, suite, args, outside)?);
    }
    Ok((expected, failures))
}

/// What is expected of a target, whose size some promises depend on.
fn expected_of(
    suite: &Suite,
    target: &SuiteTarget,
    limits: &Limits,
    volume_bytes: Option<u64>,
    failures: &mut Vec<Failure>,
) -> Vec<Expected> {
    let refused = |expected: &Expected, error: LimitsError| {
        let (name, text) = (&target.name, &expected.expectation.text);
        if error.lacks("size") {
            return Failure::usage(
                format!("{name}: `{text}` depends on the size of the volume, which cannot be told"),
                "write it with the product, e.g. limits:aws-gp3:375GiB or limits:gcp-pd-ssd:size=375GiB,machine=n1-standard-8",
            );
        }
        Failure::usage(format!("{name}: `{text}`: {error}"), error.remedy())
    };
    let all = suite.expectations.iter().map(|expected| {
        let of_target = expected.of_volume(limits, volume_bytes);
        of_target.map_err(|error| refused(expected, error))
    });
    all.filter_map(|each| each.map_err(|failure| failures.push(failure)).ok())
        .collect()
}

/// The exit status, from what was found.
fn conclude(args: &RunArgs, results: &[SuiteResult]) -> Result<(), Failure> {
    let steps = results.iter().flat_map(|result| &result.steps);
    if let Some((step, failure)) = steps
        .filter_map(|step| Some((step, step.failure.as_ref()?)))
        .next()
    {
        return Err(Failure::Io(format!("{}: {failure}", step.name)));
    }
    let is_missed = |judged: &&Judged| match judged.verdict {
        Verdict::Missed | Verdict::NotMeasured => true,
        Verdict::Undecided => args.fail_if_unclear,
        Verdict::Met => false,
    };
    let missed = lines_of(results, is_missed);
    if !missed.is_empty() {
        return Err(Failure::Missed(missed));
    }
    let undecided = lines_of(results, |judged| judged.verdict == Verdict::Undecided);
    match undecided.is_empty() {
        true => Ok(()),
        false => Err(Failure::Undecided(undecided)),
    }
}

/// The verdicts that are meant, a line each.
fn lines_of(results: &[SuiteResult], is_meant: impl Fn(&&Judged) -> bool) -> String {
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
            judged.evidence
        )
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// Now and here.
fn ran() -> report::suite::Ran {
    let name = rustix::system::uname();
    let hostname = name.nodename().to_string_lossy();
    report::suite::Ran {
        timestamp: jiff::Timestamp::now()
            .strftime("%Y-%m-%dT%H:%M:%S")
            .to_string(),
        // The schema wants a name where there is none.
        hostname: match hostname.trim() {
            "" => "localhost".to_owned(),
            name => name.to_owned(),
        },
    }
}

/// What is printed instead of running anything.
fn told(args: &RunArgs) -> Result<Option<String>, Failure> {
    if args.list {
        return Ok(Some(report::suite::list()));
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

fn unknown(name: &str) -> Failure {
    let help = match nearest(name, BUILTIN.iter().map(|suite| suite.name)) {
        Some(meant) => format!("did you mean `{meant}`? `iosonde run --list` shows all"),
        None => "name a file that ends with .toml, .yaml or .yml, or one of `iosonde run --list`"
            .to_owned(),
    };
    Failure::usage(format!("there is no suite `{name}`"), help)
}

/// The suite that is asked for. A file counts more than a built-in suite of the same name.
fn read(args: &RunArgs, limits: &Limits) -> Result<Suite, Failure> {
    let env = SystemEnv::default();
    let name = args.suite.as_deref().unwrap_or_default();
    let (file, text) = match builtin(name) {
        Some(suite) if !Path::new(name).is_file() => (suite.file_name(), suite.text.to_owned()),
        _ => {
            let is_file = Path::new(name).is_file() || name.contains(['.', '/']);
            if !is_file {
                return Err(unknown(name));
            }
            let bytes = env.read_file(name).map_err(|error| {
                Failure::usage(
                    format!("{name}: {error}"),
                    "name a suite file that can be read, or one of `iosonde run --list`",
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
    let suite = suite(&file, &text, &overrides, limits, most_runs, &env);
    let suite = suite.map_err(|all| Failure::Jobs(Box::new(all)))?;
    if !suite.warnings.list.is_empty() {
        eprintln!("{}", suite.warnings);
    }
    Ok(suite)
}

/// Targets of the command line, else of the suite, else this directory.
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
