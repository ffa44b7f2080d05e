//! Figures of each pod, each node and all pods, for jobs that several pods ran at the same time.

use iosonde_job::plan::Direction;
use iosonde_result::pods::{PodResult, nodes, shares};
use iosonde_result::run::RunResult;
use serde::{Deserialize, Serialize};

/// Figures of a pod, of a node or of all pods in one direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PodFigures {
    /// Name of the pod. `None`: all pods of the node.
    pub pod: Option<String>,
    /// Name of the node. `None`: all pods.
    pub node: Option<String>,
    /// Direction of the I/O.
    pub direction: Direction,
    /// I/Os per second.
    pub iops: f64,
    /// Half the 95 % interval of `iops`. `None`: the interval is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops_error: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: f64,
    /// Percentiles 50, 99 and 99.9 of the latency in nanoseconds.
    pub latency_ns: Option<[u64; 3]>,
}

impl PodFigures {
    /// Returns the figures of each pod, then of each node if there are several, then of all pods.
    /// Empty for a run without several pods.
    pub fn from_run(run: &RunResult) -> Vec<PodFigures> {
        let pods = &run.pods;
        if pods.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for pod in pods {
            let members = std::iter::once(pod);
            found.extend(figures_of((Some(&pod.name), Some(&pod.node)), members));
        }
        let nodes = nodes(pods);
        for node in nodes.iter().filter(|_| nodes.len() > 1) {
            let members = pods.iter().filter(|pod| pod.node == **node);
            found.extend(figures_of((None, Some(node)), members));
        }
        found.extend(figures_of((None, None), pods.iter()));
        found
    }
}

fn figures_of<'a>(
    (pod, node): (Option<&str>, Option<&str>),
    members: impl Iterator<Item = &'a PodResult>,
) -> Vec<PodFigures> {
    let shares = shares(members).into_iter();
    let figures = shares.map(|share| PodFigures {
        pod: pod.map(str::to_owned),
        node: node.map(str::to_owned),
        direction: share.direction,
        iops: share.iops,
        iops_error: share.iops_error,
        bytes_per_second: share.bytes_per_second,
        latency_ns: share.latency_ns,
    });
    figures.collect()
}
