//! Hosts, devices, kernels and date of the results, for browsers whose scripts are off. The page
//! writes the same line, with the number of runs, in `web/src/section/summary.ts`.

use super::document::{PageReport, PageRun};
use super::page_target::device_with_model;
use super::subject_names::{run_key, run_subjects};
use crate::listed_names::listed_names;
use crate::unique;
use iosonde_result::host::Host;
use iosonde_result::words;
use jiff::Timestamp;
use std::collections::HashSet;

/// Separates the names of one kind. Names of devices contain commas.
const SEPARATOR: &str = "; ";
/// Start of the names of simulated devices.
const SIMULATED: &str = "sim:";
const GIB: f64 = (1_u64 << 30) as f64;

/// Returns the line. It is empty if nothing is known.
pub(super) fn conditions(report: &PageReport) -> String {
    // Simulated runs have a host without an architecture.
    let hosts = report.hosts.iter();
    let hosts: Vec<&Host> = hosts.filter(|host| !host.architecture.is_empty()).collect();
    let kernels = hosts.iter().filter_map(|host| host.kernel.as_ref());
    let kernels = kernels.map(|kernel| format!("Linux {kernel}"));
    let devices = report.targets.iter().flatten().map(device_with_model);
    let [simulated, names] = on_hosts(report, host_names(&hosts));
    let parts = [
        simulated,
        names,
        listed_names(&unique(devices), SEPARATOR),
        listed_names(&unique(kernels), SEPARATOR),
        start_date(report),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" · ")
}

/// The names of the hosts, or the number of machines if some share a name or have none.
fn host_names(hosts: &[&Host]) -> String {
    // The kernel of a machine may change, and with it some MiB of its memory.
    let machines = unique(hosts.iter().map(|host| {
        let memory_gib = host.memory_bytes.map(|bytes| (bytes as f64 / GIB).round());
        (&host.hostname, &host.cpu.model, host.cpu.online, memory_gib)
    }));
    let names = hosts.iter().map(|host| host.hostname.as_deref());
    let names = unique(names.map(Option::unwrap_or_default));
    match names.len() == machines.len() && !names.contains(&"") {
        true => listed_names(&names, SEPARATOR),
        false => words::counted(machines.len(), "host"),
    }
}

/// How many of the targets are simulated, if some are and others are not, and the hosts. Both are
/// one part if the host of each other target is known.
fn on_hosts(report: &PageReport, hosts: String) -> [String; 2] {
    let subjects = run_subjects(report);
    let mut met = HashSet::new();
    let runs = report.runs.iter().zip(&subjects);
    // A result that the report has twice is no second target.
    let measured = runs
        .filter(|(run, _)| !run.preparation && run_key(run).map_or(true, |key| met.insert(key)));
    let (mut all, mut real) = (HashSet::new(), HashSet::new());
    let mut is_each_host_known = true;
    for (run, subject) in measured {
        all.insert(subject.as_str());
        if !is_simulated(report, run) {
            real.insert(subject.as_str());
            let host = run.host.and_then(|index| report.hosts.get(index));
            is_each_host_known &= host.is_some_and(|host| !host.architecture.is_empty());
        }
    }
    for target in targets_without_runs(report) {
        all.insert(target);
        if !target.starts_with(SIMULATED) {
            real.insert(target);
            is_each_host_known = false;
        }
    }
    let (count, simulated) = (all.len(), all.len() - real.len());
    if real.is_empty() || simulated == 0 {
        return [String::new(), hosts];
    }
    let some = format!("{simulated} of {count} targets simulated");
    if hosts.is_empty() || !is_each_host_known {
        return [some, hosts];
    }
    let others = if real.len() == 1 { "other" } else { "others" };
    [format!("{some}, the {others} on {hosts}"), String::new()]
}

/// Targets of sweeps and load studies whose single runs are not among the results.
fn targets_without_runs(report: &PageReport) -> impl Iterator<Item = &str> {
    let sweeps = report.sweeps.iter().map(|one| (&one.source, &one.target));
    let loads = report.loads.iter().map(|one| (&one.source, &one.target));
    let all = sweeps.chain(loads).filter(move |(source, _)| {
        let mut runs = report.runs.iter();
        !runs.any(|run| run.source == **source)
    });
    all.map(|(_, target)| target.as_str())
}

/// Whether a run was on a simulated device. A label may replace the name of the device; then its
/// run has neither a machine nor a time. An imported result without a time is no simulation.
fn is_simulated(report: &PageReport, run: &PageRun) -> bool {
    let host = run.host.and_then(|index| report.hosts.get(index));
    let is_without_machine = host.is_some_and(|host| host.architecture.is_empty());
    run.place.starts_with(SIMULATED) || (run.started_at_ms == 0 && is_without_machine)
}

/// Start of the first run, or that all results are simulated.
fn start_date(report: &PageReport) -> String {
    if let Some(date) = first_date(report) {
        return date;
    }
    let runs = report.runs.iter().map(|run| is_simulated(report, run));
    let kept = report.kept.iter();
    let kept = kept.map(|one| one.target.starts_with(SIMULATED));
    let others = targets_without_runs(report).map(|target| target.starts_with(SIMULATED));
    let mut all = runs.chain(kept).chain(others).peekable();
    match all.peek().is_some() && all.all(|simulated| simulated) {
        true => "simulated".to_owned(),
        false => String::new(),
    }
}

/// Start of the first run.
fn first_date(report: &PageReport) -> Option<String> {
    let runs = report.runs.iter().map(|run| run.started_at_ms);
    let kept = report.kept.iter().map(|one| one.started_at_ms);
    let first = runs.chain(kept).filter(|ms| *ms > 0).min()?;
    let time = Timestamp::from_millisecond(i64::try_from(first).ok()?).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::html::document::{PageResult, PageSweep};
    use iosonde_result::fio::import::FioDocument;
    use iosonde_result::host::{Cpu, Mount, TargetInfo};
    use std::collections::BTreeMap;

    #[test]
    fn conditions_have_host_device_kernel_and_date() {
        let mut report = HtmlReportBuilder::default().into_page_report(None);
        assert_eq!(conditions(&report), "");
        let host = |name: &str, kernel: &str| Host {
            hostname: Some(name.to_owned()),
            kernel: Some(kernel.to_owned()),
            architecture: "x86_64".to_owned(),
            ..Host::default()
        };
        let simulated = Host::default();
        report.hosts = vec![
            simulated,
            host("storage-1", "6.1.0"),
            host("storage-1", "6.12.3"),
        ];
        let target = TargetInfo {
            mount: Some(Mount {
                fs_type: "ext4".to_owned(),
                source: "/dev/vda1".to_owned(),
                ..Mount::default()
            }),
            ..TargetInfo::default()
        };
        report.targets = vec![vec![target.clone()], vec![target]];
        let kept = |started_at_ms| PageResult {
            id: String::new(),
            kind: String::new(),
            target: String::new(),
            machine: None,
            program: String::new(),
            started_at_ms,
            labels: BTreeMap::new(),
        };
        report.kept = [0, 1_700_000_000_000, 1_700_000_900_000].map(kept).into();
        assert_eq!(
            conditions(&report),
            "storage-1 · /dev/vda1, ext4 · Linux 6.1.0; Linux 6.12.3 · 2023-11-14 22:13:20 UTC"
        );
        let hosts = ["a", "b", "c", "d"].map(|name| host(name, "6.1.0"));
        report.hosts = hosts.into();
        assert!(conditions(&report).starts_with("a; b; c and 1 more · "));
    }

    #[test]
    fn machines_that_share_a_name_or_have_none_are_counted() {
        let host = |name: Option<&str>, cpus, memory_mib: u64| Host {
            hostname: name.map(str::to_owned),
            cpu: Cpu {
                online: Some(cpus),
                ..Cpu::default()
            },
            memory_bytes: Some(memory_mib << 20),
            ..Host::default()
        };
        let names = |hosts: &[Host]| host_names(&hosts.iter().collect::<Vec<_>>());
        let local = |cpus, memory_mib| host(Some("localhost"), cpus, memory_mib);
        assert_eq!(names(&[local(4, 7950), local(4, 7940)]), "localhost");
        assert_eq!(names(&[local(4, 7950), local(8, 7950)]), "2 hosts");
        assert_eq!(names(&[local(4, 7950), local(4, 16_000)]), "2 hosts");
        assert_eq!(names(&[local(4, 7950), host(None, 4, 7950)]), "2 hosts");
        assert_eq!(names(&[host(None, 4, 7950)]), "1 host");
        assert_eq!(names(&[]), "");
    }

    /// A result of fio on each place, without hosts.
    fn report_of(places: &[&str]) -> PageReport {
        let mut builder = HtmlReportBuilder::default();
        for (number, place) in places.iter().enumerate() {
            let found = FioDocument {
                version: "fio-3.33".to_owned(),
                started_at_ms: 0,
                elapsed_ns: 0,
                target: Some((*place).to_owned()),
                machine: None,
                parts: Vec::new(),
                errors: Vec::new(),
                json: serde_json::Value::Null,
            };
            builder.fio(&format!("{number}.json"), found);
        }
        builder.into_page_report(None)
    }

    fn storage_1() -> Host {
        Host {
            hostname: Some("storage-1".to_owned()),
            architecture: "x86_64".to_owned(),
            ..Host::default()
        }
    }

    #[test]
    fn simulated_targets_are_counted_beside_the_host() {
        let mut report = report_of(&["sim:nvme", "sim:nvme", "sim:hdd"]);
        assert_eq!(conditions(&report), "simulated");
        report.runs[2].place = "/dev/vdb".to_owned();
        report.hosts = vec![storage_1()];
        let apart = "1 of 2 targets simulated · storage-1";
        assert_eq!(conditions(&report), apart);
        report.runs[2].host = Some(0);
        let mixed = "1 of 2 targets simulated, the other on storage-1";
        assert_eq!(conditions(&report), mixed);
    }

    #[test]
    fn result_without_host_is_on_no_named_host() {
        let mut report = report_of(&["sim:nvme", "/dev/vdb", "/dev/vdc"]);
        report.hosts = vec![storage_1()];
        report.runs[1].host = Some(0);
        let apart = "1 of 3 targets simulated · storage-1";
        assert_eq!(conditions(&report), apart);
        report.runs[2].host = Some(0);
        let mixed = "1 of 3 targets simulated, the others on storage-1";
        assert_eq!(conditions(&report), mixed);
    }

    #[test]
    fn simulated_sweeps_and_loads_are_counted_too() {
        let places = ["sim:nvme,run=1", "sim:nvme,run=2", "/dev/vdb"];
        let mut report = report_of(&places);
        report.hosts = vec![storage_1()];
        report.runs[2].host = Some(0);
        for run in &mut report.runs[..2] {
            (run.of_grid, run.source) = (true, "load".to_owned());
        }
        let mixed = "1 of 2 targets simulated, the other on storage-1";
        assert_eq!(conditions(&report), mixed);
        // Only the measured runs count.
        report.runs[0].preparation = true;
        report.runs[1].preparation = true;
        assert_eq!(conditions(&report), "storage-1");
    }

    #[test]
    fn sweeps_without_their_runs_are_counted_too() {
        let sweep = |target: &str| PageSweep {
            source: target.to_owned(),
            target: target.to_owned(),
            headline: String::new(),
            axes: Vec::new(),
            curves: Vec::new(),
            notes: Vec::new(),
        };
        let mut report = report_of(&[]);
        report.sweeps = vec![sweep("sim:nvme, 4k")];
        assert_eq!(conditions(&report), "simulated");
        let mut report = report_of(&["/dev/vdb"]);
        report.hosts = vec![storage_1()];
        report.runs[0].host = Some(0);
        report.sweeps = vec![sweep("sim:nvme, 4k")];
        let mixed = "1 of 2 targets simulated, the other on storage-1";
        assert_eq!(conditions(&report), mixed);
        // The host of a sweep without runs is not known.
        report.sweeps.push(sweep("/dev/vdc, 4k"));
        let apart = "1 of 3 targets simulated · storage-1";
        assert_eq!(conditions(&report), apart);
        // Its single runs are counted instead.
        report.sweeps = vec![sweep("0.json")];
        assert_eq!(conditions(&report), "storage-1");
    }
}
