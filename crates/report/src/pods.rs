//! Figures of each of several pods, of each node, and of all pods.

use crate::known_digits::{
    LATENCY_UNITS, RATE_UNITS, bandwidth_of_rate, known_digits, with_interval,
};
use crate::text_table::{
    UNBROKEN_BLANK, aligned_columns, fill_table, hide_columns, keep_whole, plain, render, set_gap,
};
use iosonde_result::pods::{PodResult, PodShare, PodTotals, nodes, shares, start_skew_ns};
use iosonde_result::words;

/// Columns that a terminal without room does not show, the least important first: p99.9, bandwidth,
/// p50.
const LEAST_IMPORTANT: [usize; 3] = [6, 3, 4];

/// Returns a table as wide as a paragraph.
pub fn pods_table(pods: &[PodResult]) -> String {
    let (skew_ns, error_ns) = start_skew_ns(pods).unwrap_or_default();
    format!(
        "\nPods: {} on {}, started within {} of each other ({})\n\n{}",
        pods.len(),
        nodes_in_words(pods),
        words::latency(skew_ns as f64),
        match error_ns {
            0 => "by the clocks of their nodes".to_owned(),
            error_ns => format!("clock error at most {}", words::latency(error_ns as f64)),
        },
        table(pods, HAS_INTERVALS)
    )
}

/// Returns a table as wide as a paragraph with the mean rates of each pod over the runs of a study,
/// and the percentiles of the I/Os of all runs. Empty without several pods.
#[must_use]
pub fn totals_text(totals: &PodTotals) -> String {
    let pods = totals.pods();
    if pods.is_empty() {
        return String::new();
    }
    let runs = words::counted(totals.runs() as usize, "run");
    format!(
        "\nPods: {} on {}, {runs}: mean rates, percentiles of all I/Os\n\n{}",
        pods.len(),
        nodes_in_words(pods),
        table(pods, !HAS_INTERVALS)
    )
}

/// The name of the only node, or the number of nodes.
fn nodes_in_words(pods: &[PodResult]) -> String {
    match nodes(pods).as_slice() {
        [node] => format!("node {node}"),
        several => format!("{} nodes", several.len()),
    }
}

/// Whether the rates of a single run are shown with their intervals. The runs of a study differ, so
/// the interval of their mean is not known.
const HAS_INTERVALS: bool = true;

/// Returns the rows of each pod, of each node if there are several, and of all pods.
fn table(pods: &[PodResult], has_intervals: bool) -> String {
    let nodes = nodes(pods);
    let mut all = Vec::new();
    for pod in pods {
        let name = format!("{} {}", short(&pod.name), pod.node);
        all.extend(pod_share_rows(
            name,
            shares([pod].into_iter()),
            has_intervals,
        ));
    }
    if nodes.len() > 1 {
        for node in nodes {
            let of_node = pods.iter().filter(|pod| pod.node == node);
            let count = words::counted(of_node.clone().count(), "pod");
            let name = format!("node {node}, {count}");
            all.extend(pod_share_rows(name, shares(of_node), has_intervals));
        }
    }
    all.extend(pod_share_rows(
        "all".to_owned(),
        shares(pods.iter()),
        has_intervals,
    ));
    let head = ["", "", "IOPS", "bandwidth", "median", "99 %", "99.9 %"];
    pod_table(&head, all, &LEAST_IMPORTANT)
}

/// Table of pods: name and direction, then figures, each of which stays on one line.
pub(crate) fn pod_table(
    head: &[&str],
    rows: Vec<Vec<String>>,
    least_important: &[usize],
) -> String {
    let unbroken = rows.into_iter().map(|mut cells| {
        keep_whole(&mut cells[2..]);
        cells
    });
    let mut table = fill_table(plain(), &aligned_columns(head, 2), unbroken);
    set_gap(&mut table, 1);
    hide_columns(&mut table, least_important);
    render(&table).replace(UNBROKEN_BLANK, " ")
}

/// Index of a pod of a Job: `iosonde-3f2a9c01-0-x7k2p` is 0. Other pods keep their name.
fn short(name: &str) -> &str {
    let index = name
        .strip_prefix("iosonde-")
        .and_then(|rest| rest.split('-').nth(1));
    index.unwrap_or(name)
}

/// Rows of each direction. The first has the name.
fn pod_share_rows(
    mut name: String,
    shares: Vec<PodShare>,
    has_intervals: bool,
) -> Vec<Vec<String>> {
    let row = |share: PodShare| {
        let direction = share.direction.name().to_owned();
        let mut cells = vec![std::mem::take(&mut name), direction];
        cells.extend(texts(&share, has_intervals));
        cells
    };
    shares.into_iter().map(row).collect()
}

/// Rate, bandwidth and percentiles with their known digits. The rate has its interval if the share
/// is that of a single run.
fn texts(share: &PodShare, has_intervals: bool) -> [String; 5] {
    let PodShare {
        iops,
        iops_error: error,
        bytes_per_second: bytes,
        ..
    } = *share;
    let latency = |ns: u64| known_digits(ns as f64, None, LATENCY_UNITS);
    let dash = || [0; 3].map(|_| "-".to_owned());
    let [p50, p99, p99_9] = share.latency_ns.map_or_else(dash, |all| all.map(latency));
    let error = error.filter(|_| has_intervals);
    [
        with_interval(iops, error, RATE_UNITS, "+-"),
        bandwidth_of_rate(bytes, iops, error),
        p50,
        p99,
        p99_9,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_machine::system_env::SystemEnv;
    use iosonde_result::nfs::NfsSide;
    use iosonde_result::pods::{PodRun, combined};
    use iosonde_result::session::Session;

    fn pod(name: &str, node: &str, iops: u32, started_ns: u64) -> PodRun {
        let words = [
            "--name=t".to_owned(),
            "--rw=randrw".to_owned(),
            "--size=64m".to_owned(),
            "--bs=4k".to_owned(),
            "--runtime=2".to_owned(),
            "--time_based".to_owned(),
            "--ioengine=sim".to_owned(),
            format!("--sim=cap_iops={iops}"),
        ];
        let words: Vec<_> = words.iter().map(Into::into).collect();
        let plan = iosonde_job::parse(&words, &SystemEnv::default())
            .unwrap()
            .plan;
        PodRun {
            name: name.to_owned(),
            node: node.to_owned(),
            started_ns,
            clock_error_ns: 150_000,
            result: LocalRunner::default().open().run(&plan, &mut ()).unwrap(),
        }
    }

    #[test]
    fn pods_nodes_and_all() {
        let sum = combined(vec![
            pod("iosonde-3f2a9c01-0-abcde", "n1", 1000, 60_000),
            pod("iosonde-3f2a9c01-1-fghij", "n2", 500, 1_310_000),
            pod("iosonde-3f2a9c01-2-klmno", "n2", 500, 90_000),
        ]);
        let sum = sum.unwrap();
        insta::assert_snapshot!("pods", pods_table(&sum.pods));
        let one = &sum.workers[..];
        assert_eq!(one.len(), 1, "the sum has the form of a single pod's");
        let each = sum
            .pods
            .iter()
            .map(|pod| pod.workers[0].directions.read.total_ios);
        assert_eq!(one[0].directions.read.total_ios, each.sum::<u64>());
        let counts = one[0]
            .directions
            .read
            .clat
            .histogram
            .as_ref()
            .unwrap()
            .total();
        assert_eq!(
            counts, one[0].directions.read.total_ios,
            "histograms are merged"
        );
    }

    #[test]
    fn means_over_runs_have_rows_of_pods_nodes_and_all() {
        let run = |iops: u32| {
            let pods = vec![
                pod("iosonde-3f2a9c01-0-abcde", "n1", iops, 0),
                pod("iosonde-3f2a9c01-1-fghij", "n2", 500, 0),
            ];
            combined(pods).unwrap().pods
        };
        let mut totals = PodTotals::default();
        assert_eq!(totals_text(&totals), "");
        totals.add(&run(1000));
        totals.add(&run(3000));
        let text = totals_text(&totals);
        assert!(
            text.starts_with(
                "\nPods: 2 on 2 nodes, 2 runs: mean rates, percentiles of all I/Os\n\n"
            ),
            "{text}"
        );
        for row in ["0 n1", "1 n2", "node n1, 1 pod", "node n2, 1 pod", "all"] {
            assert!(text.lines().any(|line| line.starts_with(row)), "{text}");
        }
    }

    #[test]
    fn export_counters_are_listed_once_per_node() {
        let with = |name: &str, node: &str, sources: &[&str]| {
            let mut run = pod(name, node, 1000, 0);
            let sides = sources.iter().map(|source| NfsSide {
                source: (*source).to_owned(),
                ..NfsSide::default()
            });
            run.result.nfs = sides.collect();
            run
        };
        let sum = combined(vec![
            with("p0", "n1", &["filer:/a"]),
            with("p1", "n1", &["filer:/a", "filer:/b"]),
            with("p2", "n2", &["filer:/a"]),
        ]);
        let sum = sum.unwrap();
        let sources: Vec<&str> = sum.nfs.iter().map(|side| side.source.as_str()).collect();
        assert_eq!(sources, ["filer:/a", "filer:/b", "filer:/a"]);
    }
}
