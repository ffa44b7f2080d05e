//! Figures of the pods of a suite's steps, of their nodes, and of all pods.

use crate::known_digits::{
    LATENCY_UNITS, RATE_UNITS, bandwidth_of_rate, known_digits, with_interval,
};
use crate::pods::pod_table;
use iosonde_result::words;
use iosonde_suite::{PodFigures, StepResult, SuiteResult};

/// Columns that a terminal without room does not show, the least important first: bandwidth, p50.
const LEAST_IMPORTANT: [usize; 2] = [3, 4];

/// Returns a table for each step that several pods ran, or an empty text.
/// `plus_minus` stands before half an interval.
pub(super) fn tables(result: &SuiteResult, plus_minus: &str) -> String {
    let steps = result.steps.iter().filter(|step| !step.pods.is_empty());
    steps.map(|step| table(step, plus_minus)).collect()
}

fn table(step: &StepResult, plus_minus: &str) -> String {
    let pods = step.pods.iter().filter_map(|row| row.pod.as_deref());
    let mut names: Vec<&str> = pods.collect();
    names.dedup();
    let title = match step.repetition {
        1 => format!("{}: {}", step.name, words::counted(names.len(), "pod")),
        repetition => format!(
            "{}, repetition {repetition}: {}",
            step.name,
            words::counted(names.len(), "pod")
        ),
    };
    let head = [title.as_str(), "", "IOPS", "bandwidth", "p50", "p99"];
    let mut last: Option<String> = None;
    let rows = step.pods.iter().map(|row| {
        let name = name_of(row);
        let shown = match last.as_ref() == Some(&name) {
            true => String::new(),
            false => name.clone(),
        };
        last = Some(name);
        cells(shown, row, plus_minus)
    });
    let table = pod_table(&head, rows.collect(), &LEAST_IMPORTANT);
    format!("\n{table}")
}

/// Returns the name of a pod with its node, of a node, or `all`.
fn name_of(row: &PodFigures) -> String {
    match (&row.pod, &row.node) {
        (Some(pod), Some(node)) => format!("{pod} {node}"),
        (Some(pod), None) => pod.clone(),
        (None, Some(node)) => format!("node {node}"),
        (None, None) => "all".to_owned(),
    }
}

/// Cells of a row.
fn cells(name: String, row: &PodFigures, plus_minus: &str) -> Vec<String> {
    let bandwidth = bandwidth_of_rate(row.bytes_per_second, row.iops, row.iops_error);
    let latency = |index: usize| {
        let ns = row.latency_ns.map(|all| all[index] as f64);
        // The result has no intervals of single pods.
        ns.map_or("-".to_owned(), |ns| known_digits(ns, None, LATENCY_UNITS))
    };
    vec![
        name,
        row.direction.name().to_owned(),
        with_interval(row.iops, row.iops_error, RATE_UNITS, plus_minus),
        bandwidth,
        latency(0),
        latency(1),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Direction;

    #[test]
    fn pods_nodes_and_all_are_rows_of_one_table() {
        let row = |pod: Option<&str>, node: Option<&str>, direction, iops| PodFigures {
            pod: pod.map(str::to_owned),
            node: node.map(str::to_owned),
            direction,
            iops,
            iops_error: (iops > 1000.0).then_some(150.0),
            bytes_per_second: iops * 4096.0,
            latency_ns: Some([100_000, 200_000, 300_000]),
        };
        let step = StepResult {
            pods: vec![
                row(Some("fio-0"), Some("n1"), Direction::Read, 1000.0),
                row(Some("fio-0"), Some("n1"), Direction::Write, 500.0),
                row(Some("fio-1"), Some("n2"), Direction::Read, 3000.0),
                row(None, Some("n1"), Direction::Read, 1000.0),
                row(None, Some("n2"), Direction::Read, 3000.0),
                row(None, None, Direction::Read, 4000.0),
            ],
            ..StepResult::without_figures("rand", "rand", 1)
        };
        let text = table(&step, "±");
        assert!(text.contains("rand: 2 pods"), "{text}");
        assert_eq!(text.matches("fio-0 n1").count(), 1, "{text}");
        assert!(text.contains("node n2") && text.contains("all"), "{text}");
        assert!(text.contains("4.00k ±0.15k"), "{text}");
        assert!(text.contains("~1.0k"), "{text}");
        assert!(text.contains("~200 us"), "{text}");
    }
}
