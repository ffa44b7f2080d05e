//! Complete reports of probes of fake devices.

use super::ProbeLive;
use super::run_number::RunNumber;
use super::targets_view::TargetsView;
use crate::signals::StopSignal;
use iosonde_report::format::Format;
use iosonde_report::probe::{device, remaining_output, table};
use iosonde_result::run::{Verdict, VerdictKind};
use iosonde_study::fake_session::{FakeDevice, FakeSession};
use iosonde_study::probe::{
    DurableWrites, ProbeBudget, ProbeResult, StudyTarget, StudyTargetKind, probe,
};
use iosonde_study::test_targets::probe_options;
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Buffer of the written text.
#[derive(Clone, Default)]
struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBuffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn probed(device: FakeDevice, name: &str, kind: StudyTargetKind) -> (ProbeResult, String) {
    probed_in_turns(device, (name, kind), None)
}

/// Probes a target, with its index and the shared view if it takes turns with others.
fn probed_in_turns(
    device: FakeDevice,
    (name, kind): (&str, StudyTargetKind),
    together: Option<(usize, TargetsView)>,
) -> (ProbeResult, String) {
    let target = StudyTarget {
        name: name.to_owned(),
        path: format!("{name}/.iosonde-probe-4242-0"),
        kind,
    };
    let options = probe_options(ProbeBudget::NORMAL, None);
    let written = SharedBuffer::default();
    let mut live = ProbeLive::on(Box::new(written.clone()), StopSignal::default());
    live.together = together;
    let mut session = FakeSession::new(device);
    let result = probe(&mut session, &target, &options, &mut live).unwrap();
    let lines = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    (result, lines)
}

fn directory() -> StudyTargetKind {
    StudyTargetKind::Directory {
        free_bytes: 1 << 40,
    }
}

#[test]
fn probe_report_of_fast_drive() {
    let (result, lines) = probed(FakeDevice::nvme(), "/data", directory());
    insta::assert_snapshot!("good_drive_lines", lines);
    insta::assert_snapshot!("good_drive_table", table::probe_table(&result));
    let results = [result];
    insta::assert_snapshot!(
        "good_drive_csv",
        remaining_output(&results, Format::Csv).unwrap()
    );
    insta::assert_snapshot!(
        "good_drive_markdown",
        remaining_output(&results, Format::Markdown).unwrap()
    );
}

/// Progress of two targets was mixed without their letters.
#[test]
fn progress_of_several_targets_has_letter_in_each_line() {
    let names = ["/fast", "/data"].map(str::to_owned);
    let view = TargetsView::new(&names, RunNumber::default());
    let target = ("/data", directory());
    let (_, lines) = probed_in_turns(FakeDevice::nvme(), target, Some((1, view)));
    let (_, single) = probed(FakeDevice::nvme(), "/data", directory());
    let is_progress = |line: &&str| line.ends_with(" % so far") || line.ends_with(" IOPS");
    let progress: Vec<&str> = lines.lines().filter(is_progress).collect();
    assert_eq!(progress.len(), single.lines().filter(is_progress).count());
    assert!(progress.iter().any(|line| line.ends_with("so far")));
    assert!(progress.iter().any(|line| line.ends_with(" IOPS")));
    assert!(
        progress.iter().all(|line| line.starts_with("B: ")),
        "{lines}"
    );
}

#[test]
fn probe_report_of_cached_disk_without_o_direct() {
    let device = FakeDevice {
        refuses_direct: true,
        write_bytes_per_s: 30e6,
        jitter: 0.8,
        verdicts: vec![Verdict {
            kind: VerdictKind::ServedFromCache,
            evidence: "the job read 812 MiB, the device 12 MiB".to_owned(),
            cause: None,
        }],
        ..FakeDevice::hard_disk()
    };
    let (result, lines) = probed(device, "/slow", directory());
    insta::assert_snapshot!("slow_disk_lines", lines);
    insta::assert_snapshot!("slow_disk_table", table::probe_table(&result));
}

#[test]
fn probe_report_of_read_only_block_device() {
    let kind = StudyTargetKind::Existing {
        bytes: 1 << 40,
        device: true,
        consent: false,
    };
    let (result, lines) = probed(FakeDevice::nvme(), "/dev/nvme0n1", kind);
    insta::assert_snapshot!("block_device_lines", lines);
    insta::assert_snapshot!("block_device_table", table::probe_table(&result));
}

#[test]
fn announced_consent_to_file_with_blank_is_quoted() {
    let kind = StudyTargetKind::Existing {
        bytes: 1 << 40,
        device: false,
        consent: false,
    };
    let (_, lines) = probed(FakeDevice::nvme(), "/my disk", kind);
    let words: Vec<&str> = lines.split_whitespace().collect();
    let consent = "--allow-overwrite '/my disk' permits writing";
    assert!(words.join(" ").contains(consent), "{lines}");
}

#[test]
fn evidence_of_several_figures_names_its_figure() {
    let device = FakeDevice {
        verdicts: vec![Verdict {
            kind: VerdictKind::Device,
            evidence: "busy 100 % of the time with 54.0 requests in flight".to_owned(),
            cause: None,
        }],
        ..FakeDevice::nvme()
    };
    let text = table::probe_table(&probed(device, "/data", directory()).0);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = "bottleneck the device (4k random read, depth 64: busy 100 % of the time";
    assert!(text.contains(said), "{text}");
}

#[test]
fn device_of_two_targets_is_named_once() {
    let of = |name: &str, sync_ns: f64| {
        let device = FakeDevice {
            sync_ns,
            ..FakeDevice::nvme()
        };
        let mut result = probed(device, name, directory()).0;
        result.classification.durable_writes = Some(match sync_ns > 1e6 {
            true => DurableWrites::LightDatabase,
            false => DurableWrites::Database,
        });
        result
    };
    let mut results = [of("/a", 400e3), of("/b", 410e3)];
    let said = device::shared_sentences(&results);
    let is = "/a, /b share an NVMe SSD (nvme0n1, PCIe, Example NVMe 1T).";
    assert_eq!(
        said,
        [format!(
            "{is} They suit databases and etcd, which requires 10 ms."
        )]
    );
    results[1] = of("/b", 20e6);
    results[1].classification.served_from_cache = true;
    let said = device::shared_sentences(&results);
    assert_eq!(
        said,
        [format!(
            "{is} A cache served the reads of /b: their figures do not describe the device. \
             Suitability is undecided: use a longer --runtime on an idle machine."
        )]
    );
}

#[test]
fn probe_report_compares_two_targets() {
    let results = [
        probed(FakeDevice::nvme(), "/fast", directory()).0,
        probed(FakeDevice::hard_disk(), "/slow", directory()).0,
    ];
    insta::assert_snapshot!(
        "side_by_side",
        remaining_output(&results, Format::Table).unwrap()
    );
}

#[test]
fn documents_for_programs_are_json() {
    let results = [probed(FakeDevice::nvme(), "/data", directory()).0];
    let own: serde_json::Value =
        serde_json::from_str(&remaining_output(&results, Format::Json).unwrap()).unwrap();
    assert_eq!(own["kind"], "probe");
    let back: ProbeResult = serde_json::from_value(own["probes"][0].clone()).unwrap();
    assert_eq!(back, results[0]);
    let fio: serde_json::Value =
        serde_json::from_str(&remaining_output(&results, Format::FioJson).unwrap()).unwrap();
    let jobs = fio["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 8);
    assert_eq!(jobs[2]["jobname"], "random_read");
    assert_eq!(jobs[2]["job options"]["iodepth"], "64");
    assert!(jobs[2]["read"]["iops"].as_f64().unwrap() > 400_000.0);
}

#[test]
fn probe_report_fits_80_columns() {
    let (result, lines) = probed(FakeDevice::hard_disk(), "/data", directory());
    let text = format!("{}{lines}", table::probe_table(&result));
    let widest = text
        .lines()
        .max_by_key(|line| line.chars().count())
        .unwrap();
    assert!(widest.chars().count() <= 80, "{widest}");
}

#[test]
fn probe_gives_one_advice_to_measure_longer() {
    let (mut result, _) = probed(FakeDevice::nvme(), "/data", directory());
    result.figures[0].sure = Some(false);
    // The undecided verdict names the runtime that decides it.
    assert_eq!(result.classification.durable_writes, None);
    let text = table::probe_table(&result);
    assert!(text.contains("when time ran out.\n"), "{text}");
    assert_eq!(text.matches("--runtime").count(), 1, "{text}");
    result.classification.durable_writes = Some(DurableWrites::Database);
    assert!(table::probe_table(&result).contains("--runtime 30 measures longer"));
    result.options.budget.runtime_ns *= 10;
    assert!(table::probe_table(&result).contains("--runtime 300 measures longer"));
    result.interrupted = true;
    let text = table::probe_table(&result);
    assert!(!text.contains("--runtime 30"), "{text}");
    assert!(text.contains("% when it ended."), "{text}");
}
