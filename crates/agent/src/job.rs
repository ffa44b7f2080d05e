//! Mode `job`: runs a job file on the pod's volume without a client. The result is in the log.

use crate::arguments::read_options;
use crate::inspect::inspect_target;
use crate::{AgentFailure, fio, scratch, volume};
use iosonde_engine::interrupt::Interrupt;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::errno::describe;
use iosonde_job::relocate::{DEVICE, relocate_to_volume, vary_seeds};
use iosonde_job::{Plan, escape_control_characters, parse};
use iosonde_machine::consent::Consent;
use iosonde_machine::system_env::SystemEnv;
use iosonde_result::fio::Formats;
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{ClusterObstacle, RunError, SystemFailure, VolumeProblem};
use iosonde_result::session::Session;
use iosonde_result::wire::{
    LOG_END_MARK, NOT_KEPT_STATUS, PathInfo, render_cut_short, render_outcome,
};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Variable that Kubernetes sets in the pods of an Indexed Job.
const INDEX: &str = "JOB_COMPLETION_INDEX";
/// Interval at which a pod that stays prints the end marker again.
const REMINDER: Duration = Duration::from_secs(60);

/// Parameters of the mode `job`.
#[derive(Debug, Default, PartialEq, Eq)]
struct JobModeOptions {
    /// Directory of the run, created at the start and removed at the end. `None`: a block device.
    scratch: Option<PathBuf>,
    /// Whether to wait for a signal after the job, since a StatefulSet restarts its pods.
    stay: bool,
    /// File that also keeps the result, since the node truncates the log of a pod that stays.
    keep: Option<PathBuf>,
    /// Devices whose contents may be overwritten.
    overwrite: Vec<PathBuf>,
    /// Devices that other pods of the same run may use at the same time.
    in_use: Vec<PathBuf>,
    file: OsString,
}

impl JobModeOptions {
    fn read(words: &[OsString]) -> Result<JobModeOptions, AgentFailure> {
        let mut options = JobModeOptions::default();
        let operands = read_options(words, |name, words| {
            match name {
                "--stay" => options.stay = true,
                "--scratch" => {
                    let path = Path::new(words.value(name)?);
                    options.scratch = Some(expand_index(path, index()));
                }
                "--keep" => options.keep = Some(words.value(name)?.into()),
                "--allow-overwrite" => options.overwrite.push(words.value(name)?.into()),
                "--allow-in-use" => options.in_use.push(words.value(name)?.into()),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        match operands[..] {
            [] => Err(AgentFailure::new(2, "name a job file")),
            [file] => {
                options.file.clone_from(file);
                Ok(options)
            }
            _ => Err(AgentFailure::new(2, "one job file is read")),
        }
    }

    /// Returns the directory or device that the job uses.
    fn volume(&self) -> &Path {
        self.scratch.as_deref().unwrap_or(Path::new(DEVICE))
    }
}

/// Runs the job, and prints the result: like fio, then in one line for `collect`.
pub(crate) fn run(words: &[OsString]) -> Result<(), AgentFailure> {
    let options = JobModeOptions::read(words)?;
    let interrupt = crate::serve::interrupt_on_signals()?;
    let ended = match read_plan(&options) {
        Ok(plan) => measure(&options, &plan, &interrupt),
        Err(failure) => {
            report_failure(&options, &failure);
            publish_result(&options, &render_outcome(Err(job_file_error(&failure))))
                .and(Err(failure))
        }
    };
    if options.stay {
        repeat_until_interrupted(&interrupt, REMINDER, &mut || {
            // A closed standard output is ignored.
            let _ = print(&format!("{LOG_END_MARK}\n"));
        });
    }
    ended
}

/// Waits for a signal, or the deadline of the Job. Repeats the end marker at the interval `every`:
/// the kubelet rotates the log.
fn repeat_until_interrupted(interrupt: &Interrupt, every: Duration, remind: &mut dyn FnMut()) {
    let mut reminded = Instant::now();
    while !interrupt.is_requested() {
        thread::sleep(every.min(Duration::from_millis(100)));
        if reminded.elapsed() >= every {
            remind();
            reminded = Instant::now();
        }
    }
}

/// Prints the file of [`JobModeOptions::keep`], beginning at the byte offset of `--from`.
pub(crate) fn print_kept_result(words: &[OsString]) -> Result<(), AgentFailure> {
    let mut from = 0;
    let operands = read_options(words, |name, words| {
        if name != "--from" {
            return Ok(false);
        }
        let value = words.value(name)?.to_str();
        let bytes = value.and_then(|text| text.parse().ok());
        from = bytes.ok_or_else(|| AgentFailure::new(2, "--from needs a number of bytes"))?;
        Ok(true)
    })?;
    let [path] = operands[..] else {
        return Err(AgentFailure::new(2, "name the file of a result"));
    };
    let unread = |error: io::Error| {
        let status = match error.kind() {
            io::ErrorKind::NotFound => NOT_KEPT_STATUS,
            _ => 5,
        };
        AgentFailure::new(
            status,
            format!("{}: {}", path.to_string_lossy(), describe(&error)),
        )
    };
    let mut kept = File::open(path).map_err(unread)?;
    kept.seek(SeekFrom::Start(from)).map_err(unread)?;
    let mut out = io::stdout().lock();
    let copied = io::copy(&mut kept, &mut out).and_then(|_| out.flush());
    copied.map_err(|error| write_failure(&error))
}

/// Returns the index of this pod, from the variable of a Job or the name in a StatefulSet.
fn index() -> Option<u64> {
    let given = std::env::var(INDEX).ok();
    let of_name = || {
        let name = std::env::var("HOSTNAME").ok()?;
        Some(name.rsplit_once('-')?.1.to_owned())
    };
    given.or_else(of_name)?.parse().ok()
}

/// Replaces an index that the cluster left unexpanded in the path, as it does outside Jobs.
fn expand_index(path: &Path, index: Option<u64>) -> PathBuf {
    let index = index.map_or("own".to_owned(), |index| index.to_string());
    let text = path.to_string_lossy();
    text.replace(&format!("$({INDEX})"), &index).into()
}

fn read_plan(options: &JobModeOptions) -> Result<Plan, AgentFailure> {
    let parsed = parse(std::slice::from_ref(&options.file), &SystemEnv::default())
        .map_err(|all| AgentFailure::new(2, all.render(false)))?;
    if !parsed.warnings.list.is_empty() {
        eprintln!("{}", parsed.warnings);
    }
    let mut plan = parsed.plan;
    vary_seeds(&mut plan, index().unwrap_or(0));
    let scratch = options.scratch.as_ref().map(|path| path.to_string_lossy());
    for note in relocate_to_volume(&mut plan, scratch.as_deref()) {
        eprintln!("note: {note}");
    }
    Ok(plan)
}

fn measure(
    options: &JobModeOptions,
    plan: &Plan,
    interrupt: &Arc<Interrupt>,
) -> Result<(), AgentFailure> {
    let (outcome, is_cut) = run_on_volume(options, plan, interrupt);
    let printed = match &outcome {
        Ok(result) => print_result(plan, result),
        Err(_) => Ok(()),
    };
    let ended = match &outcome {
        Ok(result) => fio::conclude(result, is_cut),
        Err(error) => Err(fio::refusal_failure(error)),
    };
    printed.map_err(|error| write_failure(&error))?;
    if let Err(failure) = &ended {
        report_failure(options, failure);
    }
    let cut = is_cut.then(render_cut_short).unwrap_or_default();
    publish_result(options, &(cut + &render_outcome(outcome)))?;
    ended
}

/// Prints a failure before the result if the pod stays, as the program then does not end with it.
fn report_failure(options: &JobModeOptions, failure: &AgentFailure) {
    if options.stay {
        eprintln!("{}", failure.message);
    }
}

/// Returns the error for an invalid job file. A pod that stays must report it to `collect`.
fn job_file_error(failure: &AgentFailure) -> RunError {
    let message = failure.message.trim_end().to_owned();
    ClusterObstacle::InvalidJobFile { message }.into()
}

/// Prints the result lines, and keeps them if requested. A failure to keep them is only printed.
fn publish_result(options: &JobModeOptions, last: &str) -> Result<(), AgentFailure> {
    if let Some(path) = &options.keep
        && let Err(error) = replace_file(path, last)
    {
        let error = describe(&error);
        eprintln!("{}: the result is not kept: {error}", path.display());
    }
    print(last).map_err(|error| write_failure(&error))
}

/// Writes and renames a file, so that a reader finds the whole file or none.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    std::fs::write(&part, text)?;
    std::fs::rename(&part, path)
}

/// Prints to the pod's log. Control characters are escaped, which JSON decodes to the same text.
fn print(text: &str) -> io::Result<()> {
    let text = escape_control_characters(text);
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush())
}

/// Prints the output of fio.
fn print_result(plan: &Plan, result: &RunResult) -> io::Result<()> {
    let mut text = Vec::new();
    fio::write(&mut text, plan, result, &Formats::default())?;
    print(&String::from_utf8_lossy(&text))
}

fn write_failure(error: &io::Error) -> AgentFailure {
    AgentFailure::new(
        5,
        format!("the result cannot be written: {}", describe(error)),
    )
}

/// Runs the plan. Returns the outcome, and whether the pod was terminated during the run.
fn run_on_volume(
    options: &JobModeOptions,
    plan: &Plan,
    interrupt: &Arc<Interrupt>,
) -> (Result<RunResult, RunError>, bool) {
    if let Err(refused) = check_device(options) {
        return (Err(refused), false);
    }
    if let Some(scratch) = &options.scratch
        && let Err(error) = scratch::create_scratch(scratch)
    {
        let failure = SystemFailure::from(&error);
        let cause = VolumeProblem::NoScratchDirectory { failure };
        let unusable = RunError::unusable_target(scratch.display().to_string(), cause.into());
        return (Err(unusable), false);
    }
    let runner = LocalRunner {
        consent: consent(options),
        interrupt: interrupt.clone(),
        permissions: Some(volume::permissions([options.volume()])),
        ..LocalRunner::default()
    };
    let mut session = runner.open();
    let outcome = session.run(plan, &mut ());
    // A later signal finds the job complete.
    let is_cut = interrupt.is_requested();
    let closed = Box::new(session).close();
    if let Some(scratch) = &options.scratch
        && let Err(error) = std::fs::remove_dir_all(scratch)
    {
        eprintln!("{} is left behind: {}", scratch.display(), describe(&error));
    }
    let outcome = outcome.and_then(|result| closed.map(|()| result));
    (outcome, is_cut)
}

/// Returns the consent, after [`check_device`]. Pods that share a device write to it while in use.
fn consent(options: &JobModeOptions) -> Consent {
    let agreed = options.overwrite.iter().chain(&options.in_use);
    Consent::to_overwrite(agreed).and_in_use(&options.in_use)
}

/// Refuses a device that is in use, or holds data without consent to overwrite them. The claim of
/// an applied manifest may be bound to an existing volume with data of other users.
fn check_device(options: &JobModeOptions) -> Result<(), RunError> {
    if options.scratch.is_some() {
        return Ok(());
    }
    let PathInfo::Existing { carries, used, .. } = inspect_target(DEVICE)? else {
        return Ok(());
    };
    let cause = match (used, carries) {
        (Some(used), _) if options.in_use.is_empty() => VolumeProblem::RenderedDeviceInUse { used },
        (_, Some(carries)) if options.overwrite.is_empty() => {
            VolumeProblem::RenderedDeviceHasData { carries }
        }
        _ => return Ok(()),
    };
    Err(RunError::unusable_target(DEVICE, cause.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::wire::read_outcome;

    #[test]
    fn refused_job_file_is_reported_in_the_log() {
        let options = JobModeOptions {
            stay: true,
            file: "--no-such-option".into(),
            ..JobModeOptions::default()
        };
        let failure = read_plan(&options).unwrap_err();
        let error = job_file_error(&failure);
        let log = format!("...\n{}", render_outcome(Err(error.clone())));
        let reported = read_outcome(&log).unwrap().unwrap_err();
        assert_eq!(reported, error);
        // The message is the user's: it quotes the file.
        assert!(failure.message.contains("no-such-option"), "{reported}");
    }

    #[test]
    fn staying_pod_repeats_its_reminder_until_interrupted() {
        let interrupt = Interrupt::default();
        let mut reminders = 0;
        repeat_until_interrupted(&interrupt, Duration::from_millis(1), &mut || {
            reminders += 1;
            if reminders == 3 {
                interrupt.request();
            }
        });
        assert_eq!(reminders, 3);
    }

    #[test]
    fn job_options_are_parsed_or_named_in_errors() {
        let read = |line: &str| {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            JobModeOptions::read(&words)
        };
        let expected = JobModeOptions {
            scratch: Some("/data/x".into()),
            stay: true,
            keep: Some("/iosonde/result".into()),
            overwrite: vec!["/dev/x".into()],
            in_use: vec!["/dev/x".into()],
            file: "job.fio".into(),
        };
        assert_eq!(
            read(
                "--scratch /data/x --allow-overwrite /dev/x --allow-in-use /dev/x --stay --keep \
                 /iosonde/result job.fio"
            )
            .unwrap(),
            expected
        );
        let message = |line| read(line).unwrap_err().message;
        assert!(message("--stay").contains("name a job file"));
        assert!(message("a b").contains("one job file"));
        assert!(message("--wait a").contains("--wait"));
        assert!(message("a --scratch").contains("needs a value"));
        let unknown = Path::new("/data/.iosonde-x-$(JOB_COMPLETION_INDEX)");
        assert_eq!(
            expand_index(unknown, Some(3)),
            Path::new("/data/.iosonde-x-3")
        );
        assert_eq!(
            expand_index(Path::new("/data/x"), Some(3)),
            Path::new("/data/x")
        );
    }
}
