//! Title of a report whose results have no title of their own: what was measured on which targets.

use super::document::{PageLoad, PageRun, PageSweep};
use super::page_target::{device_name, is_unnamed};
use crate::unique;
use iosonde_job::run_number::strip_run_number;
use iosonde_result::host::TargetInfo;

/// Returns the title of these runs, sweeps and load studies. It never names the temporary file of a
/// single run or a file of a result. `infos` are the targets that runs refer to.
pub(super) fn title_of_results(
    runs: &[PageRun],
    sweeps: &[PageSweep],
    loads: &[PageLoad],
    infos: &[Vec<TargetInfo>],
) -> String {
    let is_grid_only = runs.iter().all(|run| run.of_grid);
    let subject = match (sweeps, loads) {
        ([one], []) if is_grid_only => return format!("Sweep of {}", one.target),
        ([], [one]) if is_grid_only => return format!("Latency under load of {}", one.target),
        ([_, ..], []) if is_grid_only => "Sweeps",
        ([], [_, ..]) if is_grid_only => "Latency under load",
        _ => "Storage performance",
    };
    match targets(runs, sweeps, loads, infos).as_slice() {
        [] if runs.is_empty() => "iosonde".to_owned(),
        [] => subject.to_owned(),
        [one] => format!("{subject} of {one}"),
        [one, two] => format!("{subject} of {one} and {two}"),
        [one, others @ ..] => format!("{subject} of {one} and {} others", others.len()),
    }
}

/// Returns the distinct targets of all results as the user named them.
fn targets(
    runs: &[PageRun],
    sweeps: &[PageSweep],
    loads: &[PageLoad],
    infos: &[Vec<TargetInfo>],
) -> Vec<String> {
    let of_runs = runs.iter().filter_map(|run| match is_unnamed(run) {
        true => device_of_run(run, infos),
        false => Some(target_of_run(run).to_owned()),
    });
    let of_loads = loads.iter().map(|load| load.target.clone());
    let named = unique(of_runs.chain(of_loads));
    // The target of a sweep contains the axes with one value, so that of its runs is preferred.
    match named.is_empty() {
        true => unique(sweeps.iter().map(|sweep| sweep.target.clone())),
        false => named,
    }
}

/// Returns the device of a run's target, if it is known.
fn device_of_run(run: &PageRun, infos: &[Vec<TargetInfo>]) -> Option<String> {
    let device = device_name(infos.get(run.targets?)?.first()?);
    (!device.is_empty()).then_some(device)
}

/// Returns the target of a run. Runs of a grid on a simulated device have a number each.
fn target_of_run(run: &PageRun) -> &str {
    match run.of_grid {
        true => strip_run_number(&run.place),
        false => &run.place,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::foreign;
    use iosonde_result::fio::import::FioDocument;
    use iosonde_result::host::Mount;

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
            title_of_results(&runs, &sweeps, &[], &[]),
            "Storage performance of /srv/data and 2 others"
        );
    }

    #[test]
    fn title_of_sweeps_alone_calls_them_sweeps() {
        let runs = [run("sim:nvme,run=1", true), run("sim:hdd,run=2", true)];
        let one = [sweep("sim:nvme, 4k")];
        assert_eq!(
            title_of_results(&runs[..1], &one, &[], &[]),
            "Sweep of sim:nvme, 4k"
        );
        let two = [sweep("sim:nvme, 4k"), sweep("sim:hdd, 4k")];
        assert_eq!(
            title_of_results(&runs, &two, &[], &[]),
            "Sweeps of sim:nvme and sim:hdd"
        );
        assert_eq!(
            title_of_results(&[], &two, &[], &[]),
            "Sweeps of sim:nvme, 4k and sim:hdd, 4k"
        );
    }

    #[test]
    fn title_of_no_result_is_the_program() {
        assert_eq!(title_of_results(&[], &[], &[], &[]), "iosonde");
    }

    #[test]
    fn title_names_the_device_of_a_temporary_file() {
        let title = |place: &str, infos: &[Vec<TargetInfo>]| {
            let run = PageRun {
                targets: Some(0),
                ..run(place, false)
            };
            title_of_results(&[run], &[], &[], infos)
        };
        let infos = [vec![TargetInfo {
            mount: Some(Mount {
                fs_type: "ext4".to_owned(),
                source: "/dev/vda1".to_owned(),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        }]];
        let named = "Storage performance of /dev/vda1, ext4";
        assert_eq!(title("/tmp/x/file", &infos), named);
        assert_eq!(title("file", &infos), named, "the file of the result");
        assert_eq!(title("/tmp/x/file", &[]), "Storage performance");
        let chosen = "Storage performance of /srv/data";
        assert_eq!(title("/srv/data", &infos), chosen);
    }
}
