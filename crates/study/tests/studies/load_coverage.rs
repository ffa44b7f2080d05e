//! Coverage of the intervals that a load study gives for the limit of a load.
//!
//! The latency of the simulated queues is known in closed form. `IOSONDE_TEST_FULL=yes` tries 40
//! seeds of five queues, otherwise 12 seeds of one.

use crate::common::load_fixture::{SECOND_NS, load_options};
use iosonde_engine::runner::LocalRunner;
use iosonde_study::load::{LoadOptions, measure_load};
use iosonde_study::test_targets::simulated_target;

/// A queue with Poisson arrivals and exponential service: M/M/c.
#[derive(Debug, Clone, Copy)]
struct QueueModel {
    servers: u32,
    service_s: f64,
    percentile: f64,
    limit_s: f64,
}

impl QueueModel {
    /// The share of I/Os whose service and waiting time exceed the limit at a rate.
    fn slow_share(&self, rate: f64) -> f64 {
        let (servers, each) = (f64::from(self.servers), 1.0 / self.service_s);
        let load = rate / each;
        // The probability of waiting by the Erlang C formula.
        let (mut sum, mut term) = (0.0, 1.0);
        for n in 1..=self.servers {
            sum += term;
            term *= load / f64::from(n);
        }
        let waiting = term * servers / (servers - load);
        let wait = waiting / (sum + waiting);
        // The waiting time of those that wait is exponential with this rate.
        let drain = servers * each - rate;
        let t = self.limit_s;
        let waited = (each * (-drain * t).exp() - drain * (-each * t).exp()) / (each - drain);
        (1.0 - wait) * (-each * t).exp() + wait * waited
    }

    /// The highest rate at which the percentile of latency keeps the limit.
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

    /// Both ends of the interval that a study gives.
    fn stated(&self, seed: u64) -> (f64, f64) {
        let device = format!(
            "read_us={},read_dist=exp,write_us=1,parallel={},seed={seed}",
            self.service_s * 1e6,
            self.servers
        );
        let target = simulated_target(&device);
        let objective = format!("p{}={}us", self.percentile, self.limit_s * 1e6);
        let options = LoadOptions {
            objectives: vec![objective.parse().unwrap()],
            runtime_ns: 4 * SECOND_NS,
            seed,
            ..load_options()
        };
        let mut session = LocalRunner::default().open();
        let result = measure_load(&mut session, &target, &options, &mut ()).unwrap();
        let answer = result.objectives[0].answer;
        (
            answer.held.unwrap_or(0.0),
            answer.failed.unwrap_or(f64::INFINITY),
        )
    }
}

/// Requires that the intervals of at least `least` of `seeds` seeds contain the limit.
fn assert_covers(queue: QueueModel, seeds: u64, least: usize) {
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

/// An M/M/1 queue.
const ONE_SERVER: QueueModel = QueueModel {
    servers: 1,
    service_s: 1e-3,
    percentile: 95.0,
    limit_s: 20e-3,
};

#[test]
fn load_limit_intervals_cover_limit_of_one_queue() {
    assert_covers(ONE_SERVER, 12, 11);
}

#[test]
fn load_limit_intervals_cover_limits_of_five_queues() {
    if !std::env::var("IOSONDE_TEST_FULL").is_ok_and(|full| full == "yes") {
        return;
    }
    let queue = |servers, service_s, limit_s| QueueModel {
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
