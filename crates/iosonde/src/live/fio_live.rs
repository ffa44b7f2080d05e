//! fio's status line while jobs run, and `--status-interval`.

mod aggregate;
mod status;

use super::pods::PodsLive;
use crate::failure::CommandError;
use crate::fio_document::document_so_far;
use crate::output::{Output, is_live_terminal};
use crate::terminal_text::TerminalSize;
use aggregate::AggregateLog;
use iosonde_ceph::CephStorage;
use iosonde_engine::remote_storage::RemoteStorage;
use iosonde_job::cmdline::Eta;
use iosonde_job::plan::CephAccess;
use iosonde_job::{CommandLine, Plan, escape_control_characters};
use iosonde_result::fio::{Formats, eta_line, header};
use iosonde_result::observer::{Control, Observer, RunProgress, WorkerProgress, WorkerState};
use iosonde_result::run::{RunEvent, RunResult};
use status::StatusRequests;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// Shows jobs as fio does. The line goes to standard error, unless `--eta=always` requests it
/// within normal output: tools look for it on standard output.
pub(crate) struct FioLive<'a> {
    plan: &'a Plan,
    formats: Formats,
    output: &'a mut Output,
    line: Option<StatusLine<Box<dyn Write>>>,
    /// Table of several pods, shown instead of the line.
    pods: Option<PodsLive>,
    status: Option<Every>,
    /// Whether a worker was in its ramp at the last progress report.
    ramping: bool,
    requests: StatusRequests,
    bandwidth: Option<AggregateLog>,
    /// Text printed before the jobs start. `None` once printed. A refused job never prints it.
    header: Option<String>,
    /// Remaining time by the last progress report.
    left_ns: Option<u64>,
    failed: Option<CommandError>,
}

/// Lead of fio's report clock over its jobs, which start about this long after the program.
const LEAD_OF_REPORTS_NS: u64 = 100_000_000;

/// A timer that is due periodically.
#[derive(Debug, Clone, Copy)]
struct Every {
    interval_ns: u64,
    next_ns: u64,
}

impl Every {
    fn new(interval_ns: u64) -> Every {
        Every {
            interval_ns,
            next_ns: interval_ns,
        }
    }

    /// Creates a timer that follows fio's report clock, which is ahead of the jobs.
    fn ahead(interval_ns: u64) -> Every {
        let interval_ns = interval_ns.max(1);
        Every {
            interval_ns,
            next_ns: interval_ns - LEAD_OF_REPORTS_NS % interval_ns,
        }
    }

    /// Restarts the timer at `now_ns`, or at most [`LEAD_OF_REPORTS_NS`] before.
    fn restart(&mut self, now_ns: u64) {
        self.next_ns = now_ns + self.interval_ns.saturating_sub(LEAD_OF_REPORTS_NS);
    }

    /// Returns whether the timer is due, and advances it. Missed times are skipped.
    fn is_due(&mut self, now_ns: u64) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        self.next_ns += ((now_ns - self.next_ns) / self.interval_ns + 1) * self.interval_ns;
        true
    }
}

impl<'a> FioLive<'a> {
    /// Creates a display by the options of the command line.
    pub(crate) fn new(
        plan: &'a Plan,
        command: &CommandLine,
        formats: Formats,
        output: &'a mut Output,
    ) -> Self {
        let is_wanted = match command.eta {
            Eta::Always => true,
            Eta::Never => false,
            Eta::Auto => is_live_terminal(),
        };
        FioLive {
            plan,
            formats,
            output,
            line: is_wanted.then(|| status_line(command, formats)).flatten(),
            pods: None,
            status: command.status_interval_ns.map(Every::ahead),
            ramping: false,
            requests: StatusRequests::listen(),
            bandwidth: None,
            left_ns: None,
            header: formats.normal.then(|| resolved_header(plan)),
            failed: None,
        }
    }

    /// Removes the line. Returns the first error of writing output, if any.
    pub(crate) fn finish(mut self) -> Result<(), CommandError> {
        self.clear();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Clears the redrawn lines, which the next progress report draws again.
    fn clear(&mut self) {
        self.pods = None;
        if let Some(line) = &mut self.line {
            line.clear();
        }
    }

    /// Prints fio's header before the jobs start.
    pub(crate) fn begin(&mut self) {
        if let Some(header) = self.header.take() {
            let written = self.output.write_unchanged(header.as_bytes());
            self.note(written);
        }
    }

    /// Enables the log of the total bandwidth of all jobs.
    pub(crate) fn log_bandwidth(&mut self, prefix: &str) -> Result<(), CommandError> {
        self.bandwidth = Some(AggregateLog::create(prefix)?);
        Ok(())
    }

    /// Keeps the first error of writing output.
    fn note(&mut self, written: Result<(), CommandError>) {
        if let Err(failure) = written {
            self.failed.get_or_insert(failure);
        }
    }
}

impl Observer for FioLive<'_> {
    fn progress(&mut self, progress: &RunProgress<'_>) -> Control {
        self.begin();
        self.left_ns = progress.left_ns;
        let is_ramping = |worker: &WorkerProgress| worker.state == WorkerState::Ramp;
        let ramping = progress.workers.iter().any(is_ramping);
        // fio restarts its report clock at the end of a ramp.
        if std::mem::replace(&mut self.ramping, ramping) && !ramping {
            let _ = self
                .status
                .as_mut()
                .map(|status| status.restart(progress.at_ns));
        }
        if let Some(line) = &mut self.line {
            if !progress.pods.is_empty() {
                self.pods = self.pods.take().or_else(PodsLive::new);
            }
            match &mut self.pods {
                Some(pods) => {
                    let jobs = self.plan.jobs.iter().map(|job| job.name.clone());
                    let jobs: Vec<String> = jobs.collect();
                    let all = eta_line(progress, self.plan, (line.columns)());
                    pods.show(&all, progress.pods, &jobs);
                }
                None => line.show(progress, self.plan),
            }
        }
        if let Some(log) = &mut self.bandwidth {
            let written = log.write_line(progress);
            self.note(written);
        }
        Control::Continue
    }

    fn wants_status(&mut self, at_ns: u64) -> bool {
        let status = self.status.as_mut();
        let is_due = status.is_some_and(|status| status.is_due(at_ns));
        self.requests.take() || is_due
    }

    fn status(&mut self, so_far: &RunResult) {
        self.clear();
        // fio computes the remaining time by its report clock.
        let left_ns = self.left_ns.map(|ns| ns.saturating_sub(LEAD_OF_REPORTS_NS));
        // The file is streamed, because tools wait for these reports.
        let written = document_so_far(so_far, &self.formats, left_ns).and_then(|text| {
            self.output.stream()?;
            self.output.write_unchanged(&text)
        });
        self.note(written);
    }

    fn event(&mut self, event: &RunEvent) {
        self.begin();
        self.clear();
        // As in fio, events are part of the normal output. With JSON output alone, standard error
        // shows them on a terminal only: tools take any text there for a failure.
        if self.formats.normal {
            let line = format!("{}\n", event.message);
            let written = self.output.write_unchanged(line.as_bytes());
            self.note(written);
        } else if io::stderr().is_terminal() {
            eprintln!("{}", event.message);
        }
    }
}

/// Returns the columns that a line may have. 0 is no limit.
type LineColumns = Box<dyn Fn() -> usize>;

/// Status line, redrawn in place.
struct StatusLine<W: Write> {
    out: W,
    /// Columns of the line. They are read each time, since terminals are resized.
    columns: LineColumns,
    every: Every,
    newline: Option<Every>,
    /// Number of characters on the line now.
    shown: usize,
}

impl<W: Write> StatusLine<W> {
    fn new(out: W, columns: LineColumns, command: &CommandLine) -> Self {
        StatusLine {
            out,
            columns,
            every: Every::new(command.eta_interval_ns.max(1)),
            newline: command.eta_newline_ns.map(Every::new),
            shown: 0,
        }
    }

    fn show(&mut self, progress: &RunProgress<'_>, plan: &Plan) {
        if !self.every.is_due(progress.at_ns) {
            return;
        }
        let text = eta_line(progress, plan, (self.columns)());
        let text = escape_control_characters(&text);
        let blank = " ".repeat(self.columns_to_clear().saturating_sub(text.len()));
        // A failure to write the display does not stop the measurement.
        let _ = write!(self.out, "\r{text}{blank}");
        self.shown = text.len();
        if self
            .newline
            .as_mut()
            .is_some_and(|newline| newline.is_due(progress.at_ns))
        {
            let _ = writeln!(self.out);
            self.shown = 0;
        }
        let _ = self.out.flush();
    }

    /// Characters of the last line that are still on the line of the terminal.
    fn columns_to_clear(&self) -> usize {
        match (self.columns)() {
            0 => self.shown,
            columns => self.shown.min(columns),
        }
    }

    fn clear(&mut self) {
        if self.shown > 0 {
            let _ = write!(self.out, "\r{}\r", " ".repeat(self.columns_to_clear()));
            let _ = self.out.flush();
            self.shown = 0;
        }
    }
}

/// Returns the status line, on the stream where tools look for it. JSON on standard output stays
/// JSON. fio's clients take any text on standard error for a failure, so only a terminal shows it.
fn status_line(command: &CommandLine, formats: Formats) -> Option<StatusLine<Box<dyn Write>>> {
    let among_text = formats.normal || command.output.is_some();
    if command.eta == Eta::Always && among_text {
        let out: Box<dyn Write> = Box::new(io::stdout());
        let columns = Box::new(|| line_columns(&io::stdout()));
        return Some(StatusLine::new(out, columns, command));
    }
    let is_terminal = io::stderr().is_terminal();
    is_terminal.then(|| {
        let out: Box<dyn Write> = Box::new(io::stderr());
        let columns = Box::new(|| line_columns(&io::stderr()));
        StatusLine::new(out, columns, command)
    })
}

/// Columns of the terminal, minus the last: some terminals wrap there. 0 without a terminal.
fn line_columns(out: &(impl AsFd + IsTerminal)) -> usize {
    if !out.is_terminal() {
        return 0;
    }
    let reported = rustix::termios::tcgetwinsize(out).map_or(0, |size| usize::from(size.ws_col));
    match reported {
        // A terminal that reports no size.
        0 => TerminalSize::USUAL.columns - 1,
        columns => (columns - 1).max(1),
    }
}

/// fio's header, with the engines that file names with URIs of Ceph select.
fn resolved_header(plan: &Plan) -> String {
    let resolved = CephStorage::new(CephAccess::default()).resolve_uris(plan);
    // The run reports the error.
    resolved.map_or_else(|_| header(plan), |resolved| header(&resolved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::{Job, PerDirection};
    use iosonde_result::interval::IntervalCounts;
    use std::cell::Cell;

    #[test]
    fn header_names_the_engine_of_a_ceph_target() {
        let mut job = Job::new("a");
        job.files.filenames = vec!["rbd://p/i".to_owned()];
        let plan = Plan {
            jobs: vec![job],
            ..Plan::default()
        };
        let text = resolved_header(&plan);
        assert!(text.contains("ioengine=rbd"), "{text}");
    }

    #[test]
    fn timer_skips_missed_times() {
        let mut every = Every::new(10);
        let due: Vec<u64> = [5, 10, 11, 47, 48, 50]
            .into_iter()
            .filter(|now| every.is_due(*now))
            .collect();
        assert_eq!(due, [10, 47, 50]);
    }

    #[test]
    fn status_reports_lead_the_interval_as_in_fio() {
        let due = |mut every: Every, end: u64| -> Vec<u64> {
            let times = (0..end).map(|tenth| tenth * 100_000_000);
            let due: Vec<u64> = times.filter(|now| every.is_due(*now)).collect();
            due.iter().map(|now| now / 1_000_000).collect()
        };
        let second = Every::ahead(1_000_000_000);
        assert_eq!(due(second, 35), [900, 1900, 2900]);
        assert_eq!(due(Every::ahead(500_000_000), 15), [400, 900, 1400]);
        let mut after_ramp = second;
        after_ramp.restart(1_500_000_000);
        assert_eq!(due(after_ramp, 45), [2400, 3400, 4400]);
    }

    #[test]
    fn status_line_pads_over_longer_line() {
        let command = CommandLine {
            eta_newline_ns: Some(3_000_000_000),
            ..CommandLine::default()
        };
        let written = shown_with(Box::new(|| 0), &command);
        insta::assert_snapshot!(written.replace('\r', "<cr>"));
    }

    /// Returns the text of a line in three progress reports, and of its removal.
    fn shown_with(columns: LineColumns, command: &CommandLine) -> String {
        let plan = Plan {
            jobs: vec![Job::new("a")],
            global_options: Vec::new(),
        };
        let mut written = Vec::new();
        let mut line = StatusLine::new(&mut written, columns, command);
        for (second, ios) in [(1u64, 123_456u64), (2, 5), (3, 7)] {
            let rate = PerDirection {
                read: IntervalCounts {
                    ios,
                    bytes: ios * 4096,
                },
                ..PerDirection::default()
            };
            let workers = [WorkerProgress {
                state: WorkerState::Running,
                job: 0,
                open_files: 1,
                counts: rate,
            }];
            let progress = RunProgress {
                at_ns: second * 1_000_000_000,
                workers: &workers,
                rate,
                left_ns: Some((3 - second) * 1_000_000_000),
                done: Some(second as f64 / 3.0),
                pods: &[],
            };
            line.show(&progress, &plan);
        }
        line.clear();
        drop(line);
        String::from_utf8(written).unwrap()
    }

    #[test]
    fn status_line_stays_within_a_terminal_that_shrinks() {
        // The columns are read twice for each line, and once to remove the last one.
        let left = Cell::new(7);
        let columns = move || {
            left.set(left.get() - 1);
            if left.get() >= 5 { 60 } else { 20 }
        };
        let written = shown_with(Box::new(columns), &CommandLine::default());
        let lines: Vec<&str> = written.split('\r').collect();
        let lengths: Vec<usize> = lines.iter().map(|line| line.len()).collect();
        assert_eq!(lengths, [0, 60, 20, 20, 20, 0]);
        assert!(lines[3].starts_with("Jobs: 1 (f=1): [R(1)"), "{written}");
    }

    #[test]
    fn columns_are_unlimited_without_a_terminal() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(line_columns(&null), 0);
    }
}
