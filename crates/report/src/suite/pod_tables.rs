//! Figures of the pods of a suite's steps, of their nodes, and of all pods.

use crate::text_table::{plain, render_left, right};
use comfy_table::Cell;
use iosonde_result::words;
use iosonde_suite::{PodFigures, StepResult, SuiteResult};

/// Returns a table for each step that several pods ran, or an empty text.
pub(super) fn tables(result: &SuiteResult) -> String {
    let steps = result.steps.iter().filter(|step| !step.pods.is_empty());
    steps.map(table).collect()
}

fn table(step: &StepResult) -> String {
    let mut table = plain();
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
    let mut head = vec![Cell::new(title), Cell::new("")];
    head.extend(["IOPS", "bandwidth", "p50", "p99"].map(right));
    table.set_header(head);
    let mut last: Option<String> = None;
    for row in &step.pods {
        let name = name_of(row);
        let shown = match last.as_ref() == Some(&name) {
            true => String::new(),
            false => name.clone(),
        };
        table.add_row(cells(shown, row));
        last = Some(name);
    }
    format!("\n{}", render_left(&mut table))
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

fn cells(name: String, row: &PodFigures) -> Vec<Cell> {
    let mut cells = vec![Cell::new(name), Cell::new(row.direction.name())];
    cells.push(right(words::iops(row.iops)));
    cells.push(right(words::bandwidth(row.bytes_per_second)));
    match row.latency_ns {
        Some([p50, p99, _]) => {
            cells.push(right(words::latency(p50 as f64)));
            cells.push(right(words::latency(p99 as f64)));
        }
        None => cells.extend([right("-"), right("-")]),
    }
    cells
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
            bytes_per_second: iops * 4096.0,
            latency_ns: Some([100_000, 200_000, 300_000]),
        };
        let step = StepResult {
            workload: "rand".to_owned(),
            name: "rand".to_owned(),
            repetition: 1,
            parts: Vec::new(),
            elapsed_ns: 0,
            found: Vec::new(),
            findings: Vec::new(),
            failure: None,
            interrupted: false,
            sweep: None,
            command: None,
            beside: None,
            pods: vec![
                row(Some("fio-0"), Some("n1"), Direction::Read, 1000.0),
                row(Some("fio-0"), Some("n1"), Direction::Write, 500.0),
                row(Some("fio-1"), Some("n2"), Direction::Read, 3000.0),
                row(None, Some("n1"), Direction::Read, 1000.0),
                row(None, Some("n2"), Direction::Read, 3000.0),
                row(None, None, Direction::Read, 4000.0),
            ],
        };
        let text = table(&step);
        assert!(text.contains("rand: 2 pods"), "{text}");
        assert_eq!(text.matches("fio-0 n1").count(), 1, "{text}");
        assert!(text.contains("node n2") && text.contains("all"), "{text}");
        assert!(text.contains("4.00k"), "{text}");
    }
}
