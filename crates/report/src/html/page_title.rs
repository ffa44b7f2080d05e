//! Title of a report whose results have no title of their own: what was measured on which targets.

use super::document::{PageLoad, PageRun, PageSweep};

/// Returns the title of these runs, sweeps and load studies.
pub(super) fn title_of_results(
    runs: &[PageRun],
    sweeps: &[PageSweep],
    loads: &[PageLoad],
) -> String {
    let is_grid_only = runs.iter().all(|run| run.of_grid);
    let subject = match (sweeps, loads) {
        ([one], []) if is_grid_only => return format!("Sweep of {}", one.target),
        ([], [one]) if is_grid_only => return format!("Latency under load of {}", one.target),
        ([_, ..], []) if is_grid_only => "Sweeps",
        ([], [_, ..]) if is_grid_only => "Latency under load",
        _ => "Storage performance",
    };
    match targets(runs, sweeps, loads).as_slice() {
        [] => "iosonde".to_owned(),
        [one] => format!("{subject} of {one}"),
        [one, two] => format!("{subject} of {one} and {two}"),
        [one, others @ ..] => format!("{subject} of {one} and {} others", others.len()),
    }
}

/// Returns the distinct targets of all results as the user named them.
fn targets<'a>(
    runs: &'a [PageRun],
    sweeps: &'a [PageSweep],
    loads: &'a [PageLoad],
) -> Vec<&'a str> {
    let mut named = distinct(
        runs.iter()
            .map(target_of_run)
            .chain(loads.iter().map(|load| load.target.as_str())),
    );
    // The target of a sweep contains the axes with one value, so that of its runs is preferred.
    if named.is_empty() {
        named = distinct(sweeps.iter().map(|sweep| sweep.target.as_str()));
    }
    named
}

fn distinct<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<&str> = Vec::new();
    for each in all {
        if !found.contains(&each) {
            found.push(each);
        }
    }
    found
}

/// Returns the target of a run. Runs of a grid on a simulated device have a number each:
/// `sim:nvme,run=3`.
fn target_of_run(run: &PageRun) -> &str {
    let place = run.place.as_str();
    let numbered = place.rsplit_once(",run=").filter(|(_, number)| {
        run.of_grid && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbered.map_or(place, |(target, _)| target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::foreign;
    use iosonde_result::fio::import::FioDocument;

    fn run(place: &str, of_grid: bool) -> PageRun {
        let found = FioDocument {
            version: "fio-3.33".to_owned(),
            started_at_ms: 0,
            elapsed_ns: 0,
            target: None,
            machine: None,
            parts: Vec::new(),
            errors: Vec::new(),
            json: serde_json::Value::Null,
        };
        PageRun {
            place: place.to_owned(),
            of_grid,
            ..foreign::run("file", found)
        }
    }

    fn sweep(target: &str) -> PageSweep {
        PageSweep {
            source: "file".to_owned(),
            target: target.to_owned(),
            headline: String::new(),
            axes: Vec::new(),
            curves: Vec::new(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn title_of_probes_with_a_sweep_names_their_targets() {
        let runs = [
            run("/srv/data", false),
            run("sim:nvme", false),
            run("sim:nvme,run=1", true),
            run("sim:hdd,run=2", true),
        ];
        let sweeps = [sweep("sim:nvme, 4k")];
        assert_eq!(
            title_of_results(&runs, &sweeps, &[]),
            "Storage performance of /srv/data and 2 others"
        );
    }

    #[test]
    fn title_of_sweeps_alone_calls_them_sweeps() {
        let runs = [run("sim:nvme,run=1", true), run("sim:hdd,run=2", true)];
        let one = [sweep("sim:nvme, 4k")];
        assert_eq!(
            title_of_results(&runs[..1], &one, &[]),
            "Sweep of sim:nvme, 4k"
        );
        let two = [sweep("sim:nvme, 4k"), sweep("sim:hdd, 4k")];
        assert_eq!(
            title_of_results(&runs, &two, &[]),
            "Sweeps of sim:nvme and sim:hdd"
        );
        assert_eq!(
            title_of_results(&[], &two, &[]),
            "Sweeps of sim:nvme, 4k and sim:hdd, 4k"
        );
    }

    #[test]
    fn title_of_no_result_is_the_program() {
        assert_eq!(title_of_results(&[], &[], &[]), "iosonde");
    }
}
