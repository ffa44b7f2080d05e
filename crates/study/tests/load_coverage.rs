//! How often the true limit of a load lies within the interval that a load study states, over seeds of queues whose latency is
//! known in closed form.
//!
//! With `IOSONDE_TEST_FULL=yes` 40 seeds of five queues are tried, else 12 of one.

mod loads;

use iosonde_engine::runner::LocalRunner;
use iosonde_study::load::{LoadOptions, load};
use iosonde_study::probe::{ProbeTarget, TargetKind};
use loads::{SECOND_NS, load_options};

/// A queue with Poisson arrivals and exponential service: M/M/c.
#[derive(Debug, Clone, Copy)]
struct Queue {
    servers: u32,
    service_s: f64,
    percentile: f64,
    limit_s: f64,
}

impl Queue {
    /// Share of I/Os that take longer than the limit (service and waiting), at a rate.
    fn slow_share(&self, rate: f64) -> f64 {
        let (servers, each) = (f64::from(self.servers), 1.0 / self.service_s);
        let load = rate / each;
        // The probability to wait, after Erlang's C formula.
        let (mut sum, mut term) = (0.0, 1.0);
        for n in 1..=self.servers {
            sum += term;
            term *= load / f64::from(n);
        }
        let waiting = term * servers / (servers - load);
        let wait = waiting / (sum + waiting);
        // Waiting is exponential at this rate for those who wait.
        let drain = servers * each - rate;
        let t = self.limit_s;
        let waited = (each * (-drain * t).exp() - drain * (-each * t).exp()) / (each - drain);
        (1.0 - wait) * (-each * t).exp() + wait * waited
    }

    /// The highest rate at which no more I/Os are slow than the percentile allows.
    fn limit(&self) -> f64 {
        let allowed = 1.0 - self.percentile / 100.0;
        let (mut low, mut high) = (0.0, 0.9999 * f64::from(self.servers) / self.service_s);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match self.slow_share(middle) <= allowed {
                true => low = middle,
                false => high = middle,
            }
        }
        low
    }

    /// Both ends of the interval that a study states.
    fn stated(&self, seed: u64) -> (f64, f64) {
        let device = format!(
            "read_us={},read_dist=exp,write_us=1,parallel={},seed={seed}",
            self.service_s * 1e6,
            self.servers
        );
        let target = ProbeTarget {
            name: format!("sim:{device}"),
            path: "sim".into(),
            kind: TargetKind::Simulated { options: device },
        };
        let objective = format!("p{}={}us", self.percentile, self.limit_s * 1e6);
        let options = LoadOptions {
            objectives: vec![objective.parse().unwrap()],
            runtime_ns: 4 * SECOND_NS,
            seed,
            ..load_options()
        };
        let mut session = LocalRunner::default().open();
        let result = load(&mut session, &target, &options, &mut ()).unwrap();
        let answer = result.objectives[0].answer;
        (
            answer.held.unwrap_or(0.0),
            answer.failed.unwrap_or(f64::INFINITY),
        )
    }
}

/// What a test asks of a queue: of so many seeds the interval covers the limit in at least so many.
fn assert_covers(queue: Queue, seeds: u64, least: usize) {
    let limit = queue.limit();
    let stated: Vec<(f64, f64)> = (1..=seeds).map(|seed| queue.stated(seed)).collect();
    let covers = |(low, high): &&(f64, f64)| (*low..=*high).contains(&limit);
    let covered = stated.iter().filter(covers).count();
    let width: f64 = stated.iter().map(|(low, high)| high - low).sum();
    let width = width / limit / seeds as f64;
    println!("{queue:?}: {covered} of {seeds}, {width:.3} wide");
    assert!(
        covered >= least,
        "{queue:?}: {covered} of {seeds} cover {limit}: {stated:?}"
    );
    assert!(width <= 0.25, "{queue:?}: {width} wide: {stated:?}");
}

/// M/M/1.
const ONE_SERVER: Queue = Queue {
    servers: 1,
    service_s: 1e-3,
    percentile: 95.0,
    limit_s: 20e-3,
};

#[test]
fn stated_intervals_of_a_load_limit_cover_it() {
    assert_covers(ONE_SERVER, 12, 11);
}

#[test]
fn stated_intervals_of_load_limits_cover_them_in_the_long_grid() {
    if !std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes") {
        return;
    }
    let queue = |servers, service_s, limit_s| Queue {
        servers,
        service_s,
        percentile: 99.0,
        limit_s,
    };
    let queues = [
        ONE_SERVER,
        queue(1, 2e-4, 4e-3),
        queue(4, 1e-3, 8e-3),
        queue(8, 2e-3, 12e-3),
        queue(64, 20e-3, 100e-3),
    ];
    for queue in queues {
        assert_covers(queue, 40, 36);
    }
}
