//! Figures of each pod over several runs, whose plans may differ.

use crate::machine::MachineSeries;
use crate::pods::PodResult;
use crate::run::WorkerResult;
use crate::worker_sums::add_direction;
use iosonde_job::plan::{Direction, PerDirection};

/// Sums over the runs of each pod, to compare the pods of a study. The rate of a pod is its mean
/// over the time of its runs.
#[derive(Debug, Clone, Default)]
pub struct PodTotals {
    runs: u64,
    /// Number of pods of the largest run.
    pods_max: usize,
    /// One worker for each pod.
    pods: Vec<PodResult>,
}

impl PodTotals {
    /// Adds the pods of one run. A run of a single pod has none.
    pub fn add(&mut self, pods: &[PodResult]) {
        if pods.is_empty() {
            return;
        }
        self.runs += 1;
        self.pods_max = self.pods_max.max(pods.len());
        for pod in pods {
            let Some(run) = sum_of_workers(pod) else {
                continue;
            };
            let known = self.pods.iter().position(|total| total.name == pod.name);
            let index = known.unwrap_or(self.pods.len());
            if known.is_none() {
                self.pods.push(without_ios(pod, &run));
            }
            add_run(&mut self.pods[index].workers[0], &run);
        }
        debug_assert!(self.pods.iter().all(|pod| pod.workers.len() == 1));
    }

    /// Number of runs.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Returns the pods, in the order of the first run. Empty without several pods, and if the runs
    /// had different pods, which cannot be compared.
    #[must_use]
    pub fn pods(&self) -> &[PodResult] {
        match self.pods.len() <= self.pods_max {
            true => &self.pods,
            false => &[],
        }
    }
}

/// Sums the workers of a pod in one run. `None` without workers.
fn sum_of_workers(pod: &PodResult) -> Option<WorkerResult> {
    let mut workers = pod.workers.iter();
    let mut sum = workers.next()?.clone();
    for worker in workers {
        for direction in Direction::ALL {
            add_direction(
                &mut sum.directions[direction],
                &worker.directions[direction],
            );
        }
    }
    Some(sum)
}

/// Returns a pod with a worker that has done nothing.
fn without_ios(pod: &PodResult, worker: &WorkerResult) -> PodResult {
    PodResult {
        name: pod.name.clone(),
        node: pod.node.clone(),
        started_ns: pod.started_ns,
        clock_error_ns: pod.clock_error_ns,
        workers: vec![WorkerResult {
            directions: PerDirection::default(),
            ..worker.clone()
        }],
        disks: Vec::new(),
        series: MachineSeries::default(),
        verdicts: Vec::new(),
    }
}

/// Adds a run that followed the others, so that the times of the runs add up.
fn add_run(total: &mut WorkerResult, run: &WorkerResult) {
    for direction in Direction::ALL {
        let more = &run.directions[direction];
        if more.total_ios == 0 {
            continue;
        }
        let sum = &mut total.directions[direction];
        let runtime_ns = sum.runtime_ns + more.runtime_ns;
        add_direction(sum, more);
        sum.runtime_ns = runtime_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods::shares;
    use crate::sample_run::{direction, worker};

    /// A pod with a worker for each number, which did as many reads in two seconds.
    fn pod(name: &str, reads: &[u64]) -> PodResult {
        let workers = reads.iter().zip(0..).map(|(ios, clone)| {
            let directions = PerDirection {
                read: direction(*ios, 10_000),
                ..PerDirection::default()
            };
            worker(0, clone, directions)
        });
        PodResult {
            name: name.to_owned(),
            node: "n1".to_owned(),
            started_ns: 0,
            clock_error_ns: 0,
            workers: workers.collect(),
            disks: Vec::new(),
            series: MachineSeries::default(),
            verdicts: Vec::new(),
        }
    }

    #[test]
    fn pod_rate_is_the_mean_over_the_time_of_its_runs() {
        let mut totals = PodTotals::default();
        totals.add(&[]);
        assert_eq!((totals.runs(), totals.pods().len()), (0, 0));
        totals.add(&[pod("a", &[100, 100]), pod("b", &[50])]);
        totals.add(&[pod("a", &[400]), pod("b", &[50])]);
        assert_eq!(totals.runs(), 2);
        let rates: Vec<f64> = totals
            .pods()
            .iter()
            .map(|pod| shares(std::iter::once(pod))[0].iops)
            .collect();
        // 200 and 400 reads, and twice 50, in two seconds each.
        assert!((rates[0] - 150.0).abs() < 0.1, "{rates:?}");
        assert!((rates[1] - 25.0).abs() < 0.1, "{rates:?}");
        let reads = &totals.pods()[0].workers[0].directions.read;
        let histogram = reads.clat.histogram.as_ref().unwrap();
        assert_eq!(histogram.total(), 600, "histograms are merged");
    }

    #[test]
    fn runs_of_different_pods_are_not_compared() {
        let mut totals = PodTotals::default();
        totals.add(&[pod("a", &[100]), pod("b", &[100])]);
        totals.add(&[pod("c", &[100]), pod("d", &[100])]);
        assert!(totals.pods().is_empty());
    }
}
