//! Load studies on simulated queues, whose latency over load is known in closed form.

use crate::common::failing_session::FailingSession;
use crate::common::load_fixture::{SECOND_NS, load_options as options};
use crate::common::lost_pod_error::lost_pod_error;
use crate::common::lost_pod_session::LostPodSession;
use iosonde_engine::runner::{LocalRunner, LocalSession};
use iosonde_job::Plan;
use iosonde_job::plan::{Direction, Job};
use iosonde_result::observer::Observer;
use iosonde_result::pods::{PodRun, combined};
use iosonde_result::run::RunResult;
use iosonde_result::run_error::{RunError, UnsupportedFeature};
use iosonde_result::session::Session;
use iosonde_sim::drawn::DeviceFamily;
use iosonde_study::StudyError;
use iosonde_study::load::{
    Arrivals, CellState, LoadOptions, LoadResult, Matrix, MatrixOptions, measure_load,
};
use iosonde_study::test_targets::simulated_target;

fn measure(device: &str, options: &LoadOptions) -> LoadResult {
    outcome(device, options).unwrap()
}

fn outcome(device: &str, options: &LoadOptions) -> Result<LoadResult, StudyError> {
    let mut session = LocalRunner::default().open();
    measure_load(&mut session, &simulated_target(device), options, &mut ())
}

#[test]
fn slow_target_and_silent_target_fail_differently() {
    let silent = outcome("read_us=60s", &options());
    let is_silent = matches!(silent, Err(StudyError::Run(RunError::NoCompletions)));
    assert!(is_silent, "{silent:?}");
    let one_at_a_time = LoadOptions {
        iodepth: 1,
        ..options()
    };
    let slow = outcome("read_us=4s", &one_at_a_time);
    let Err(StudyError::Run(RunError::NoFeature { cause })) = &slow else {
        panic!("{slow:?}");
    };
    assert!(
        matches!(
            **cause,
            UnsupportedFeature::TooSlowForLoads {
                iops_hundredths: 20,
                ..
            }
        ),
        "{cause:?}"
    );
}

/// A server with exponential service of 100 us: an M/M/1 queue under Poisson arrivals.
const ONE_SERVER: &str = "read_us=100,read_dist=exp,write_us=1,parallel=1";
const SERVICE_PER_S: f64 = 10_000.0;

/// A percentile of the sojourn time of an M/M/1 queue.
fn sojourn_ns(percent: f64, arrivals_per_s: f64) -> f64 {
    -(1.0 - percent / 100.0).ln() / (SERVICE_PER_S - arrivals_per_s) * 1e9
}

#[test]
fn latency_over_load_matches_queue_formula() {
    let rates = vec![1000.0, 3000.0, 5000.0, 7000.0, 8000.0];
    let result = measure(
        ONE_SERVER,
        &LoadOptions {
            rates: rates.clone(),
            runtime_ns: 20 * SECOND_NS,
            ..options()
        },
    );
    assert_eq!(result.points.len(), rates.len());
    for (point, rate) in result.points.iter().zip(rates) {
        assert!(point.kept_up, "{rate}");
        assert!((point.achieved_per_s() / rate - 1.0).abs() < 0.03);
        for percent in [50.0, 99.0] {
            let (measured, expected) = (
                point.percentile_ns(percent).unwrap(),
                sojourn_ns(percent, rate),
            );
            let ratio = measured / expected;
            assert!((0.9..1.1).contains(&ratio), "p{percent} at {rate}: {ratio}");
        }
    }
}

#[test]
fn evenly_spaced_arrivals_wait_less() {
    let at = |arrivals| {
        let rates = vec![7000.0];
        let options = LoadOptions {
            arrivals,
            rates,
            ..options()
        };
        measure(ONE_SERVER, &options).points[0]
            .percentile_ns(99.0)
            .unwrap()
    };
    assert!(at(Arrivals::Constant) < 0.8 * at(Arrivals::Poisson));
}

#[test]
fn overload_keeps_rate_and_grows_latency_with_backlog() {
    let result = measure(
        ONE_SERVER,
        &LoadOptions {
            rates: vec![12_000.0],
            ..options()
        },
    );
    let point = &result.points[0];
    assert!(!point.kept_up);
    assert!((point.achieved_per_s() / SERVICE_PER_S - 1.0).abs() < 0.03);
    // 2000 excess arrivals per second for 6 s: the last waits about 1.2 s.
    let seconds = point.max_ns() / 1e9;
    assert!((0.9..1.3).contains(&seconds), "{seconds}");
}

#[test]
fn load_without_started_ios_is_not_kept_up() {
    // The backlog after the ramp is so deep that no I/O of the measured time starts within it.
    let result = measure(
        "read_us=200,parallel=4",
        &LoadOptions {
            rates: vec![90_000.0],
            runtime_ns: SECOND_NS,
            ..options()
        },
    );
    let point = &result.points[0];
    assert!(!point.kept_up, "{} a second", point.achieved_per_s());
}

#[test]
fn rates_follow_capacity_and_bracket_the_objective() {
    let result = measure(
        ONE_SERVER,
        &LoadOptions {
            objectives: vec!["p99=2ms".parse().unwrap()],
            runtime_ns: 10 * SECOND_NS,
            ..options()
        },
    );
    let capacity = result.capacity_iops.unwrap();
    assert!((capacity / SERVICE_PER_S - 1.0).abs() < 0.02, "{capacity}");
    let offered = |index: usize| result.points[index].offered.total() / capacity;
    assert!((offered(0) - 0.05).abs() < 1e-9);
    assert!(offered(result.points.len() - 1) > 1.0);
    let answer = result.objectives[0].answer;
    // -ln(0.01) / (10000 - x) = 2 ms
    let expected = SERVICE_PER_S - 100f64.ln() / 2e-3;
    let (held, failed) = (answer.held.unwrap(), answer.failed.unwrap());
    assert!(
        (held..=failed).contains(&expected),
        "{held} to {failed}, not {expected}"
    );
    assert!(answer.is_interval && failed <= 1.2 * held, "{answer:?}");
    // Runs at one rate are merged into one point.
    let runs: Vec<u32> = result.points.iter().map(|point| point.runs).collect();
    assert!(runs.iter().any(|runs| *runs > 1), "{runs:?}");
    let rates = |index: usize| result.points[index].read.as_ref().unwrap().offered_per_s;
    assert!((1..runs.len()).all(|index| rates(index) > rates(index - 1)));
    for point in &result.points {
        let seconds = f64::from(point.runs) * 10.0;
        let done = point.read.as_ref().unwrap().latency.count as f64;
        assert!((done / seconds / point.offered.total() - 1.0).abs() < 0.1);
    }
}

#[test]
fn objective_that_no_load_keeps_is_reported() {
    let result = measure(
        ONE_SERVER,
        &LoadOptions {
            objectives: vec!["p99=1us".parse().unwrap()],
            rates: vec![100.0, 1000.0],
            runtime_ns: SECOND_NS,
            ..options()
        },
    );
    let answer = result.objectives[0].answer;
    assert_eq!(answer.held, None);
    assert!(answer.failed.unwrap() < 101.0);
}

#[test]
fn reads_and_writes_share_device_capacity() {
    // One server for both: the sustainable pairs lie below a straight line.
    let result = measure(
        "read_us=100,write_us=100,parallel=1",
        &LoadOptions {
            rates: vec![1000.0],
            matrix: Some(MatrixOptions { steps: 10 }),
            runtime_ns: 2 * SECOND_NS,
            ramp_ns: SECOND_NS / 2,
            ..options()
        },
    );
    let matrix = result.matrix.unwrap();
    let (measured, all) = matrix.measured();
    assert!(measured * 3 < all, "{measured} of {all}");
    let sum = |read: usize, write: usize| {
        (matrix.reads_per_s[read] + matrix.writes_per_s[write]) / SERVICE_PER_S
    };
    for (write, row) in matrix.cells.iter().enumerate() {
        for (read, cell) in row.iter().enumerate().filter(|(read, _)| read + write > 0) {
            let sustained = matches!(cell.state, CellState::Measured | CellState::Predicted);
            match sum(read, write) {
                share if share < 0.95 => assert!(sustained, "({read}, {write}): {cell:?}"),
                share if share > 1.05 => assert!(!sustained, "({read}, {write}): {cell:?}"),
                _ => {}
            }
            assert_eq!(cell.p99_ns.is_some(), sustained);
        }
    }
}

/// A page shows the latency curve beside the matrix: both have one latency for one rate.
#[test]
fn matrix_axis_has_latencies_of_curve() {
    let result = measure(
        "read_us=100,write_us=100,parallel=1",
        &LoadOptions {
            matrix: Some(MatrixOptions { steps: 5 }),
            runtime_ns: 2 * SECOND_NS,
            ..options()
        },
    );
    let matrix = result.matrix.unwrap();
    let of_matrix = |reads_per_s: f64| {
        let mut offered = matrix.points.iter().map(|point| point.offered);
        offered.any(|offered| offered.writes_per_s == 0.0 && offered.reads_per_s == reads_per_s)
    };
    let mut compared = 0;
    for (rate, cell) in matrix.reads_per_s.iter().zip(&matrix.cells[0]).skip(1) {
        let mut points = result.points.iter().filter(|point| point.kept_up);
        let at_rate = points.find(|point| (point.offered.total() - rate).abs() <= 0.5);
        let p99_ns = at_rate.and_then(|point| point.percentile_ns(99.0));
        if p99_ns.is_some() && !of_matrix(*rate) {
            assert_eq!((cell.state, cell.p99_ns), (CellState::Measured, p99_ns));
            compared += 1;
        }
    }
    assert!(compared > 0, "{matrix:?}");
}

#[test]
fn matrix_prediction_on_axis_lies_between_measured_rates() {
    // Sevenths of the capacity lie between the rates of the curve.
    let result = measure(
        "read_us=100,read_dist=exp,write_us=100,parallel=1",
        &LoadOptions {
            matrix: Some(MatrixOptions { steps: 7 }),
            runtime_ns: 2 * SECOND_NS,
            ..options()
        },
    );
    let matrix = result.matrix.unwrap();
    let measured: Vec<(f64, f64)> = result
        .points
        .iter()
        .chain(&matrix.points)
        .filter(|point| point.kept_up && point.offered.writes_per_s == 0.0)
        .filter_map(|point| Some((point.offered.reads_per_s, point.percentile_ns(99.0)?)))
        .collect();
    let mut compared = 0;
    for (rate, cell) in matrix.reads_per_s.iter().zip(&matrix.cells[0]) {
        if cell.state != CellState::Predicted {
            continue;
        }
        let below = measured.iter().filter(|(other, _)| other < rate);
        let above = measured.iter().filter(|(other, _)| other > rate);
        let below = below.max_by(|a, b| a.0.total_cmp(&b.0));
        let above = above.min_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(&(_, from_ns)), Some(&(_, to_ns))) = (below, above) else {
            continue;
        };
        let p99_ns = cell.p99_ns.unwrap();
        let range = from_ns.min(to_ns)..=from_ns.max(to_ns);
        assert!(range.contains(&p99_ns), "{rate}: {p99_ns} not in {range:?}");
        compared += 1;
    }
    assert!(compared > 0, "{matrix:?}");
}

/// Sums the time of runs without layout, and keeps a plan that offers reads and writes.
struct CountingSession {
    session: LocalSession,
    measured_ns: u64,
    pair: Option<Plan>,
}

impl CountingSession {
    fn new() -> CountingSession {
        CountingSession {
            session: LocalRunner::default().open(),
            measured_ns: 0,
            pair: None,
        }
    }
}

impl Session for CountingSession {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let result = self.session.run(plan, observer)?;
        if plan.jobs[0].name != "layout" {
            self.measured_ns += result.elapsed_ns;
        }
        if plan.jobs.len() == 2 {
            self.pair = Some(plan.clone());
        }
        Ok(result)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

/// Whether a run kept up with its offered rates by the rule of docs/load.md.
fn keeps_up(result: &RunResult) -> bool {
    let intervals = || result.intervals.iter().filter(|interval| !interval.ramp);
    let whole_ns = intervals().map(|interval| interval.length_ns).max();
    let whole = || intervals().filter(|interval| Some(interval.length_ns) == whole_ns);
    let seconds = whole().map(|interval| interval.length_ns).sum::<u64>() as f64 / 1e9;
    result.plan.jobs.iter().all(|job| {
        let both = [Direction::Read, Direction::Write].into_iter();
        let mut rates = both.filter_map(|each| Some((each, job.schedule.rate_iops[each]?)));
        let (direction, rate) = rates.next().unwrap();
        let offered = rate as f64 * seconds;
        let done: u64 = whole()
            .map(|interval| interval.directions[direction].ios)
            .sum();
        done as f64 >= 0.98 * offered - 3.0 * offered.sqrt()
    })
}

/// Steps of the matrix that is compared with a full grid.
const MATRIX_STEPS: usize = 20;

/// Runs all cells of a matrix with the jobs of `pair`, and returns which rates are reached: a row
/// for each rate of writes.
fn measure_full_grid(
    matrix: &Matrix,
    pair: &Plan,
    session: &mut CountingSession,
) -> Vec<Vec<bool>> {
    let mut is_reached = vec![vec![false; MATRIX_STEPS + 1]; MATRIX_STEPS + 1];
    for (write, reads) in is_reached.iter_mut().enumerate() {
        for (read, reached) in reads.iter_mut().enumerate() {
            let rates = [
                (Direction::Read, matrix.reads_per_s[read]),
                (Direction::Write, matrix.writes_per_s[write]),
            ];
            let mut plan = pair.clone();
            for (direction, rate) in rates {
                plan.jobs.retain_mut(|job| {
                    let given = &mut job.schedule.rate_iops[direction];
                    *given = given.map(|_| rate as u64);
                    *given != Some(0)
                });
            }
            *reached = plan.jobs.is_empty() || keeps_up(&session.run(&plan, &mut ()).unwrap());
        }
    }
    is_reached
}

/// Returns the cells that a matrix marks otherwise than the full grid. All of them must lie next to
/// the border.
fn wrong_cells(device: &str, matrix: &Matrix, is_reached: &[Vec<bool>]) -> Vec<(usize, usize)> {
    let mut wrong = Vec::new();
    for (write, row) in matrix.cells.iter().enumerate() {
        for (read, cell) in row.iter().enumerate().filter(|(read, _)| read + write > 0) {
            let is_marked_reached = match cell.state {
                CellState::Measured | CellState::Predicted => true,
                CellState::NotReached | CellState::PredictedNotReached => false,
                CellState::Unknown => panic!("{device}: ({read}, {write}) is not marked"),
            };
            if is_marked_reached == is_reached[write][read] {
                continue;
            }
            wrong.push((read, write));
            // Noise decides at the border only.
            let near = |at: usize| at.saturating_sub(1)..=(at + 1).min(MATRIX_STEPS);
            let mut around =
                near(write).flat_map(|write| near(read).map(move |read| (read, write)));
            assert!(
                around.any(|(read, write)| is_reached[write][read] == is_marked_reached),
                "{device}: ({read}, {write}) is marked as {:?}",
                cell.state
            );
        }
    }
    wrong
}

/// A matrix of 20 steps, as diskplorer makes, has 441 cells. The study marks them all in a tenth of
/// their time, with the border of a full grid. `./test --full` tries more devices.
#[test]
fn matrix_takes_a_tenth_of_the_time_of_all_cells() {
    // Families whose speed does not depend on earlier I/O, slowed down to few I/Os to count.
    let drawn = [
        (DeviceFamily::SataSsd, 60.0),
        (DeviceFamily::Nvme, 400.0),
        (DeviceFamily::NetworkIopsCap, 8.0),
        (DeviceFamily::NetworkBandwidthCap, 8.0),
        (DeviceFamily::Throttled, 8.0),
    ];
    let devices = drawn.map(|(family, slowdown)| family.draw(5, slowdown));
    let plain = ["read_us=900,write_us=400,parallel=2,read_dist=exp".to_owned()];
    let full = std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes");
    let devices = if full { &devices[..] } else { &devices[2..3] };
    for device in plain.iter().chain(devices) {
        let options = LoadOptions {
            rates: vec![50.0],
            matrix: Some(MatrixOptions {
                steps: MATRIX_STEPS,
            }),
            runtime_ns: 2 * SECOND_NS,
            ramp_ns: SECOND_NS / 2,
            ..options()
        };
        let mut session = CountingSession::new();
        let target = simulated_target(device);
        let found = measure_load(&mut session, &target, &options, &mut ()).unwrap();
        let matrix = found.matrix.unwrap();
        let of_curve_ns = options.runtime_ns + options.ramp_ns;
        let spent_ns = session.measured_ns - of_curve_ns;
        let mut all = CountingSession::new();
        let is_reached = measure_full_grid(&matrix, &session.pair.unwrap(), &mut all);
        // One of the cells offers nothing.
        let all_ns = all.measured_ns + of_curve_ns;
        let share = spent_ns as f64 / all_ns as f64;
        let wrong = wrong_cells(device, &matrix, &is_reached);
        let unreached = is_reached
            .iter()
            .flatten()
            .filter(|reached| !**reached)
            .count();
        let cells = matrix.measured().0;
        println!(
            "{device}: {cells} cells, {share:.4} of the time, {unreached} not reached, \
             wrong {wrong:?}"
        );
        assert!(share <= 0.1, "{device}: {share} of the time, {cells} cells");
        // At most one cell for each step of the border.
        assert!(wrong.len() <= MATRIX_STEPS, "{device}: {wrong:?}");
    }
}

/// An error does not show where the border is.
#[test]
fn matrix_io_error_is_reported_and_ends_matrix() {
    let device = "read_us=100,write_us=100,parallel=1";
    let options = LoadOptions {
        rates: vec![1000.0],
        matrix: Some(MatrixOptions { steps: 10 }),
        runtime_ns: SECOND_NS,
        ramp_ns: SECOND_NS / 2,
        ..options()
    };
    // Layout, one rate, two capacities, two cells.
    let mut session = FailingSession {
        session: LocalRunner::default().open(),
        device: "",
        fails_in_run: 7,
    };
    let result = measure_load(&mut session, &simulated_target(device), &options, &mut ()).unwrap();
    assert!(result.points.iter().all(|point| point.failure.is_none()));
    assert_eq!(result.failure().map(|failure| failure.errno), Some(5));
    let matrix = result.matrix.unwrap();
    assert!((2..=4).contains(&matrix.points.len()));
    assert!(matrix.points.last().unwrap().failure.is_some());
    let cells = matrix.cells.iter().flatten();
    let known = cells.filter(|cell| cell.state != CellState::Unknown);
    assert_eq!(known.count(), matrix.points.len() - 1);
}

/// Results before the loss are kept as after Ctrl-C.
#[test]
fn lost_run_keeps_earlier_points() {
    let device = "read_us=100,write_us=100,parallel=1";
    let options = LoadOptions {
        rates: vec![12_000.0, 1000.0, 3000.0],
        objectives: vec!["p99=1ms".parse().unwrap()],
        runtime_ns: SECOND_NS,
        ramp_ns: SECOND_NS / 2,
        ..options()
    };
    let lost_with = |run: usize, options: &LoadOptions| {
        let mut session = LostPodSession(LocalRunner::default().open(), run);
        measure_load(&mut session, &simulated_target(device), options, &mut ())
    };
    let lost_at = |run: usize| lost_with(run, &options);
    // Layout, then the first rate.
    for run in [1, 2] {
        let nothing = lost_at(run);
        assert!(
            matches!(nothing, Err(StudyError::Run(RunError::Lost { .. }))),
            "{nothing:?}"
        );
    }
    let in_curve = lost_at(4).unwrap();
    assert_eq!(
        (in_curve.points.len(), in_curve.error),
        (2, Some(lost_pod_error().into()))
    );
    assert!(in_curve.objectives.is_empty() && !in_curve.interrupted);
    let in_search = lost_at(6).unwrap();
    assert_eq!(
        (in_search.points.len(), in_search.error),
        (4, Some(lost_pod_error().into()))
    );
    assert!(in_search.objectives[0].answer.held.is_some());
    // The matrix begins with two capacities.
    let with_matrix = LoadOptions {
        objectives: Vec::new(),
        matrix: Some(MatrixOptions { steps: 10 }),
        ..options.clone()
    };
    let in_capacity = lost_with(6, &with_matrix).unwrap();
    assert_eq!((in_capacity.matrix, in_capacity.points.len()), (None, 3));
    let in_matrix = lost_with(8, &with_matrix).unwrap();
    assert_eq!(in_matrix.error, Some(lost_pod_error().into()));
    assert_eq!(in_matrix.matrix.map(|matrix| matrix.points.len()), Some(1));
}

#[test]
fn matrix_cells_of_few_ios_are_marked() {
    let result = measure(
        "read_us=10ms,write_us=10ms,parallel=1",
        &LoadOptions {
            rates: vec![20.0],
            matrix: Some(MatrixOptions { steps: 4 }),
            runtime_ns: 2 * SECOND_NS,
            ..options()
        },
    );
    let matrix = result.matrix.unwrap();
    let measured = || {
        let cells = matrix.cells.iter().flatten();
        cells.filter(|cell| cell.state == CellState::Measured)
    };
    assert!(measured().count() > 0);
    assert!(measured().all(|cell| cell.of_few), "{matrix:?}");
}

#[test]
fn equal_seeds_give_equal_results() {
    let options = LoadOptions {
        runtime_ns: SECOND_NS,
        ..options()
    };
    assert_eq!(measure(ONE_SERVER, &options), measure(ONE_SERVER, &options));
}

/// Pods of one run, each with its own device.
struct PodSessions(Vec<LocalSession>);

impl Session for PodSessions {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        let runs = self.0.iter_mut().map(|pod| pod.run(plan, observer));
        let runs: Result<Vec<RunResult>, RunError> = runs.collect();
        let pods = runs?.into_iter().enumerate().map(|(index, result)| PodRun {
            name: index.to_string(),
            node: "n1".to_owned(),
            started_ns: 0,
            clock_error_ns: 0,
            result,
        });
        combined(pods.collect()).ok_or(RunError::NoCompletions)
    }

    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

#[test]
fn pods_share_offered_rate_and_form_one_point() {
    let options = LoadOptions {
        rates: vec![2001.0],
        parties: 4,
        arrivals: Arrivals::Constant,
        ..options()
    };
    let mut pods = PodSessions((0..4).map(|_| LocalRunner::default().open()).collect());
    let result = measure_load(
        &mut pods,
        &simulated_target("read_us=100"),
        &options,
        &mut (),
    )
    .unwrap();
    let point = &result.points[0];
    // A quarter of 2001 is no integer. The offered rate is the sum of the rates of all pods.
    assert_eq!(point.offered.reads_per_s, 2000.0);
    assert!((point.achieved_per_s() - 2000.0).abs() < 10.0, "{point:?}");
    assert!(point.kept_up);
    // A plan identifies the run of a point.
    let mut job = Job::new("read");
    job.schedule.rate_iops.read = Some(500);
    let plan = |jobs| Plan {
        jobs,
        global_options: Vec::new(),
    };
    assert!(point.is_of(&plan(vec![job.clone()]), 4));
    assert!(!point.is_of(&plan(vec![job]), 1));
}
