//! fio's status line: `Jobs: 1 (f=1): [r(1)][40.0%][r=704MiB/s][r=180k IOPS][eta 00m:03s]`.

use super::number::Units;
use crate::observer::{RunProgress, WorkerProgress, WorkerState};
use iosonde_job::plan::{Direction, Job, MeasureOptions, PerDirection, Plan, ReadWriteMode};

/// Returns the status line without a line break, truncated to `width` columns (0: unlimited).
pub fn eta_line(progress: &RunProgress<'_>, plan: &Plan, width: usize) -> String {
    let workers = progress.workers.iter();
    let running = || workers.clone().filter(|worker| is_running(worker.state));
    let open_files: u64 = running().map(|worker| u64::from(worker.open_files)).sum();
    let mut line = format!("Jobs: {} (f={open_files})", running().count());
    line.push_str(&committed_rates(running(), plan));
    if running().next().is_some() {
        let all_ramp = running().all(|worker| worker.state == WorkerState::Ramp);
        line.push_str(": [");
        line.push_str(&states(progress.workers, plan));
        line.push_str("][");
        line.push_str(&match progress.done {
            Some(done) if !all_ramp => format!("{:3.1}%", done.clamp(0.0, 1.0) * 100.0),
            _ => "-.-%".to_owned(),
        });
        line.push(']');
        line.push_str(&rates(progress, units(plan)));
        let left = progress
            .left_ns
            .map_or("--".to_owned(), |ns| time_left(ns.div_ceil(1_000_000_000)));
        line.push_str(&format!("[eta {left}]"));
    }
    if width > 0 {
        line.truncate(width);
    }
    line
}

fn is_running(state: WorkerState) -> bool {
    match state {
        WorkerState::Ramp
        | WorkerState::Running
        | WorkerState::Verifying
        | WorkerState::Syncing => true,
        WorkerState::NotStarted
        | WorkerState::Layout
        | WorkerState::Ready
        | WorkerState::Finished
        | WorkerState::Failed => false,
    }
}

/// Returns the units of the first job, which fio uses for rates.
fn units(plan: &Plan) -> Units {
    let first = plan.jobs.first();
    first.map_or_else(
        || Units::from_options(&MeasureOptions::default()),
        |job| Units::from_options(&job.measure),
    )
}

/// Returns the sums of the jobs' rate limits: `, 4096KiB/s-8192KiB/s` or `, 0-6000 IOPS`.
fn committed_rates<'a>(
    running: impl Iterator<Item = &'a WorkerProgress> + Clone,
    plan: &Plan,
) -> String {
    let sum = |rates: fn(&Job) -> &PerDirection<Option<u64>>| -> u64 {
        let jobs = running.clone().map(|worker| &plan.jobs[worker.job]);
        let each = jobs.flat_map(|job| {
            let directions = Direction::ALL
                .into_iter()
                .filter(|each| job.workload.rw.has(*each));
            directions.filter_map(|each| rates(job)[each])
        });
        each.sum()
    };
    let least = sum(|job| &job.schedule.rate_min_bytes);
    let most = sum(|job| &job.schedule.rate_bytes);
    if least > 0 || most > 0 {
        let units = units(plan);
        return format!(", {}-{}", units.rate(least), units.rate(most));
    }
    let least = sum(|job| &job.schedule.rate_iops_min);
    let most = sum(|job| &job.schedule.rate_iops);
    if least > 0 || most > 0 {
        return format!(", {least}-{most} IOPS");
    }
    String::new()
}

/// Returns the workers' states in order, with the length of each run of equal states: `r(2),_(1)`.
fn states(workers: &[WorkerProgress], plan: &Plan) -> String {
    let letters: Vec<char> = workers
        .iter()
        .map(|worker| letter(worker, &plan.jobs[worker.job]))
        .collect();
    let runs = letters.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs
        .map(|run| format!("{}({})", run[0], run.len()))
        .collect();
    runs.join(",")
}

fn letter(worker: &WorkerProgress, job: &Job) -> char {
    match worker.state {
        WorkerState::NotStarted => 'P',
        WorkerState::Layout | WorkerState::Ready => 'I',
        WorkerState::Ramp => '/',
        WorkerState::Verifying => 'V',
        WorkerState::Syncing => 'F',
        WorkerState::Finished => '_',
        WorkerState::Failed => 'X',
        WorkerState::Running => {
            let letter = match job.workload.rw.mode {
                ReadWriteMode::Read => 'R',
                ReadWriteMode::Write | ReadWriteMode::TrimWrite => 'W',
                ReadWriteMode::Trim => 'D',
                // A mix with a share of 0 or 100 % is shown as one direction.
                ReadWriteMode::ReadWrite => match job.workload.rwmix_read_percent {
                    0 => 'W',
                    100 => 'R',
                    _ => 'M',
                },
                ReadWriteMode::All => 'M',
            };
            if job.workload.rw.random {
                letter.to_ascii_lowercase()
            } else {
                letter
            }
        }
    }
}

/// Returns the rates of the active directions: `[r=11.7MiB/s,w=11.7MiB/s][r=3000,w=3000 IOPS]`.
fn rates(progress: &RunProgress<'_>, units: Units) -> String {
    let moving = progress
        .rate
        .iter()
        .filter(|(_, rate)| rate.ios > 0 || rate.bytes > 0);
    let (bytes, ios): (Vec<String>, Vec<String>) = moving
        .map(|(direction, rate)| {
            let letter = &direction.name()[..1];
            let bytes = units.rate_in_kilos(rate.bytes);
            (
                format!("{letter}={bytes}"),
                format!("{letter}={}", units.count(rate.ios)),
            )
        })
        .unzip();
    if bytes.is_empty() {
        return String::new();
    }
    format!("[{}][{} IOPS]", bytes.join(","), ios.join(","))
}

/// Formats a time as `02d:03h:04m:05s`, from the largest unit above zero, at least minutes.
fn time_left(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    let mut text = String::new();
    if days > 0 {
        text.push_str(&format!("{days:02}d:"));
    }
    if days > 0 || hours > 0 {
        text.push_str(&format!("{hours:02}h:"));
    }
    text.push_str(&format!("{minutes:02}m:{seconds:02}s"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::IntervalCounts;
    use iosonde_job::plan::ReadWrite;

    fn plan() -> Plan {
        let mut job = Job::new("a");
        job.workload.rw = ReadWrite {
            mode: ReadWriteMode::ReadWrite,
            random: true,
        };
        let mut trim = Job::new("b");
        trim.workload.rw = ReadWrite {
            mode: ReadWriteMode::Trim,
            random: false,
        };
        Plan {
            jobs: vec![job, trim],
            ..Plan::default()
        }
    }

    fn workers(states: &[(usize, WorkerState)]) -> Vec<WorkerProgress> {
        let worker = |(job, state): &(usize, WorkerState)| WorkerProgress {
            state: *state,
            job: *job,
            open_files: 1,
            counts: PerDirection::default(),
        };
        states.iter().map(worker).collect()
    }

    fn progress(workers: &[WorkerProgress]) -> RunProgress<'_> {
        let rate = IntervalCounts {
            ios: 3000,
            bytes: 12_288_000,
        };
        RunProgress {
            at_ns: 0,
            workers,
            rate: PerDirection {
                read: rate,
                write: rate,
                trim: IntervalCounts::default(),
            },
            left_ns: Some(1_500_000_000),
            done: Some(0.6),
            pods: &[],
        }
    }

    #[test]
    fn eta_line_shows_states_and_rates() {
        use WorkerState::{Failed, Finished, Ramp, Running};
        let states = workers(&[
            (0, Running),
            (0, Running),
            (0, Ramp),
            (1, Running),
            (1, Finished),
            (1, Failed),
        ]);
        assert_eq!(
            eta_line(&progress(&states), &plan(), 0),
            "Jobs: 4 (f=4): [m(2),/(1),D(1),_(1),X(1)][60.0%][r=11.7MiB/s,w=11.7MiB/s]\
             [r=3000,w=3000 IOPS][eta 00m:02s]"
        );
        assert_eq!(eta_line(&progress(&states), &plan(), 7), "Jobs: 4");
    }

    #[test]
    fn rwmix_of_one_direction_shows_its_letter() {
        let states = workers(&[(0, WorkerState::Running)]);
        for (percent, expected) in [(0, "[w(1)]"), (1, "[m(1)]"), (100, "[r(1)]")] {
            let mut plan = plan();
            plan.jobs[0].workload.rwmix_read_percent = percent;
            let line = eta_line(&progress(&states), &plan, 0);
            assert!(line.contains(expected), "{line}");
        }
    }

    #[test]
    fn eta_is_unknown_during_ramp_and_layout() {
        let states = workers(&[(0, WorkerState::Ramp), (1, WorkerState::NotStarted)]);
        let mut progress = progress(&states);
        progress.rate = PerDirection::default();
        progress.left_ns = None;
        assert_eq!(
            eta_line(&progress, &plan(), 0),
            "Jobs: 1 (f=1): [/(1),P(1)][-.-%][eta --]"
        );
        let states = workers(&[(0, WorkerState::Layout), (1, WorkerState::NotStarted)]);
        progress.workers = &states;
        assert_eq!(eta_line(&progress, &plan(), 0), "Jobs: 0 (f=0)");
    }

    #[test]
    fn committed_rates_come_before_the_states() {
        let mut plan = plan();
        plan.jobs[0].schedule.rate_iops = PerDirection::from_value(Some(1000));
        let states = workers(&[(0, WorkerState::Running), (0, WorkerState::Running)]);
        let line = eta_line(&progress(&states), &plan, 0);
        assert!(
            line.starts_with("Jobs: 2 (f=2), 0-4000 IOPS: [m(2)]"),
            "{line}"
        );
        plan.jobs[0].schedule.rate_bytes.read = Some(1 << 20);
        let line = eta_line(&progress(&states), &plan, 0);
        assert!(
            line.starts_with("Jobs: 2 (f=2), 0B/s-2048KiB/s: [m(2)]"),
            "{line}"
        );
    }

    #[test]
    fn time_left_has_the_units_it_needs() {
        assert_eq!(time_left(59), "00m:59s");
        assert_eq!(time_left(3_661), "01h:01m:01s");
        assert_eq!(time_left(86_400), "01d:00h:00m:00s");
    }
}
