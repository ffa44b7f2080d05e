//! Conditions of a measurement: pairs of a name and a sentence.

use super::limits;
use super::number_ranges::number_ranges;
use super::row;
use crate::{facts, grouped, unique};
use iosonde_result::cache_state::combine_caches;
use iosonde_result::run::{RunResult, Verdict, VerdictKind};
use iosonde_result::storage::StorageUsed;
use iosonde_study::probe::{ProbePhase, ProbeResult};

/// Returns all known conditions.
pub(super) fn list_conditions(result: &ProbeResult) -> Vec<(&'static str, String)> {
    let mut pairs = Vec::new();
    let runs: Vec<&RunResult> = result.runs.iter().map(|run| &run.result).collect();
    let target = runs.iter().rev().find_map(|run| run.targets.first());
    if let Some(target) = target {
        pairs.extend(facts::target(target));
    }
    // The last answer describes a cluster that stopped answering.
    let sides = || runs.iter().rev().filter_map(|run| run.ceph.as_ref());
    let mut answered = sides().filter(|side| side.activity.looks > 0);
    if let Some(side) = answered.next().or_else(|| sides().next()) {
        pairs.extend(facts::ceph_facts(side));
    }
    let measured = || row::measured_runs(result);
    // For a local disk, use of the page cache is reported below under `I/O`.
    let storage = measured().find_map(|run| StorageUsed::from_run(&run.result));
    let storage = storage.filter(StorageUsed::is_service);
    pairs.extend(storage.map(|used| ("storage", used.words())));
    let caches = combine_caches(measured().map(|run| run.result.caches.as_slice()));
    pairs.extend(facts::caches(&caches));
    if let Some(run) = measured().find(|run| !run.result.nfs.is_empty()) {
        let nfs_facts = facts::nfs_facts(&run.result.nfs).into_iter();
        pairs
            .extend(nfs_facts.map(|(name, text)| (name, format!("{}: {text}", run.phase.title()))));
    }
    pairs.push(("I/O", engines_and_depths(result)));
    if let Some(run) = runs.first() {
        pairs.push(("machine", facts::machine(&run.host)));
        pairs.extend(facts::bounds(&run.host));
    }
    for verdict in findings(result, |_| true) {
        pairs.push(("finding", verdict));
    }
    for note in &result.notes {
        pairs.push(("note", note.clone()));
    }
    pairs.retain(|(_, text)| !text.is_empty());
    pairs
}

/// Engines and depths in use, and whether O_DIRECT was in use.
fn engines_and_depths(result: &ProbeResult) -> String {
    let figures = result.figures.iter();
    let engines = grouped(figures.map(|figure| (figure.engine, figure.iodepth.to_string())));
    let engines = engines.into_iter().map(|(engine, depths)| {
        let depths = unique(depths).join(", ");
        format!("{} (depth {depths})", engine.name())
    });
    let engines: Vec<String> = engines.collect();
    let engines = engines.join(", ");
    let workers = result.runs.iter().flat_map(|run| &run.result.workers);
    if let Some(ceph) = workers
        .filter_map(|worker| worker.backend.ceph.as_ref())
        .next()
    {
        let cache = ceph.cache.as_ref();
        let cache = cache.map_or(String::new(), |cache| format!(", cache {cache}"));
        return format!("{engines}; {}{cache}", ceph.client);
    }
    let is_direct = |figure: &&iosonde_study::probe::PhaseFigure| {
        figure.phase != ProbePhase::SyncedWrite && figure.direct
    };
    let direct = if result.figures.iter().any(|figure| is_direct(&figure)) {
        "O_DIRECT, except before fdatasync"
    } else {
        "through the page cache, not O_DIRECT"
    };
    format!("{engines}; {direct}")
}

/// Findings of all phases without duplicates, with their phases. If three or more phases have a
/// finding of one kind, it is reported once, with the range of each of its numbers. Phases that a
/// cache served are all named, those that read apart from those that write. Findings of kinds that
/// are not `wanted` are left out, and so are those of the layout, which has no figure to doubt.
pub(super) fn findings(result: &ProbeResult, wanted: fn(VerdictKind) -> bool) -> Vec<String> {
    const MANY: usize = 3;
    let measured = || row::measured_runs(result);
    let found = || {
        measured().flat_map(move |run| {
            let verdicts = run.result.verdicts.iter();
            let elsewhere = move |verdict: &&Verdict| {
                wanted(verdict.kind) && !limits::is_shown_here(run, verdict)
            };
            verdicts
                .filter(elsewhere)
                .map(|verdict| (run.phase.title(), verdict))
        })
    };
    let of_kind = |kind| found().filter(move |(_, verdict)| verdict.kind == kind);
    let mut said: Vec<&Verdict> = Vec::new();
    let mut lines = Vec::new();
    let all = measured().count();
    for (title, verdict) in found() {
        let many = of_kind(verdict.kind).count() >= MANY;
        let is_cached = verdict.kind == VerdictKind::ServedFromCache;
        let is_same = |other: &Verdict| match many || is_cached {
            true => {
                other.kind == verdict.kind && other.cached_direction() == verdict.cached_direction()
            }
            false => has_same_text(other, verdict),
        };
        if said.iter().any(|other| is_same(other)) {
            continue;
        }
        said.push(verdict);
        let alike: Vec<_> = found().filter(|(_, other)| is_same(other)).collect();
        let texts: Vec<&str> = alike
            .iter()
            .map(|(_, other)| other.evidence.as_str())
            .collect();
        let ranges = number_ranges(&texts);
        // Texts that differ in more than their numbers have the first as an example.
        let such_as = match ranges {
            Some(_) => String::new(),
            None => format!(", e.g. {title}"),
        };
        let of_first = if ranges.is_some() {
            ": "
        } else {
            "; in the first, "
        };
        let evidence = ranges.unwrap_or_else(|| verdict.evidence.clone());
        lines.push(match alike.len() {
            count if count == all && all > 1 => format!("all phases{such_as}: {evidence}"),
            count if count >= MANY && !is_cached => {
                format!("{count} of {all} phases{such_as}: {evidence}")
            }
            _ => {
                let titles: Vec<_> = alike.iter().map(|(title, _)| *title).collect();
                format!("{}{of_first}{evidence}", titles.join("; "))
            }
        });
    }
    lines
}

/// Whether two verdicts read the same. Their causes may differ by less than the text shows.
fn has_same_text(one: &Verdict, other: &Verdict) -> bool {
    one.kind == other.kind && one.evidence == other.evidence
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_job::plan::Direction;
    use iosonde_result::verdict_cause::VerdictCause;
    use iosonde_study::probe::ProbeBudget;

    #[test]
    fn finding_of_many_phases_has_ranges_and_no_layout() {
        let mut result = super::super::simulated::probed("hdd", ProbeBudget::QUICK);
        let phases = result.runs.len();
        for (index, run) in result.runs.iter_mut().enumerate() {
            let verdict = Verdict {
                kind: VerdictKind::Steal,
                evidence: format!("vda1: {}.5 % of 4 CPUs were busy", 10 + index),
                cause: None,
            };
            run.result.verdicts = vec![verdict];
        }
        assert_eq!(result.runs[0].phase, ProbePhase::Layout);
        let lines = findings(&result, |_| true);
        let last = 10 + phases - 1;
        let expected = format!("all phases: vda1: 11.5 to {last}.5 % of 4 CPUs were busy");
        assert_eq!(lines, [expected]);
        result.runs[1].result.verdicts.clear();
        let lines = findings(&result, |_| true);
        let start = format!("{} of {} phases: vda1: 12.5 to ", phases - 2, phases - 1);
        assert!(lines[0].starts_with(&start), "{lines:?}");
        // Texts of other words have no ranges.
        result.runs[2].result.verdicts[0].evidence = "all CPUs were busy".to_owned();
        let lines = findings(&result, |_| true);
        assert!(lines[0].contains(", e.g. "), "{lines:?}");
    }

    /// A single phase was called "all phases".
    #[test]
    fn finding_of_single_measured_phase_names_it() {
        let mut result = super::super::simulated::probed("hdd", ProbeBudget::QUICK);
        let phase = ProbePhase::RandomRead;
        result.runs.retain(|run| run.phase == phase);
        result.runs[0].result.verdicts = vec![Verdict {
            kind: VerdictKind::Steal,
            evidence: "10 % of 4 CPUs were busy".to_owned(),
            cause: None,
        }];
        let lines = findings(&result, |_| true);
        assert_eq!(lines, ["random read: 10 % of 4 CPUs were busy"]);
    }

    #[test]
    fn phases_that_a_cache_served_are_all_named() {
        let mut result = super::super::simulated::probed("hdd", ProbeBudget::QUICK);
        let mut titles = Vec::new();
        for run in &mut result.runs {
            run.result.verdicts.clear();
            let direction = run.phase.direction();
            if run.phase == ProbePhase::Layout {
                continue;
            }
            if direction == Direction::Write {
                titles.push(run.phase.title());
            }
            let cause = VerdictCause::ServedFromCache {
                direction,
                job_bytes: 1 << 30,
                device_bytes: titles.len() as u64,
            };
            run.result.verdicts.push(Verdict {
                kind: VerdictKind::ServedFromCache,
                evidence: format!("{direction:?}, {} on the device", titles.len()),
                cause: Some(cause),
            });
        }
        assert!(titles.len() >= 3, "{titles:?}");
        let lines = findings(&result, |_| true);
        assert_eq!(lines.len(), 2, "{lines:?}");
        let writes = lines.iter().find(|line| line.contains("Write")).unwrap();
        for title in titles {
            assert!(writes.contains(title), "{title}: {writes}");
        }
    }

    #[test]
    fn pool_conditions_name_cluster_and_library_not_o_direct() {
        let mut result = super::super::simulated::probed("ceph", ProbeBudget::QUICK);
        for run in &mut result.runs {
            let side = r#"{"fsid":"f","health":"HEALTH_WARN","checks":[],
                "osds":{"total":3,"up":2,"in":3},"pgs":32,"pool":null,
                "activity":{"looks":1,"recovering":0,"scrubbing":0,"recovery_bytes_per_s":0,
                "degraded_objects":0,"misplaced_objects":0},"osd_latency":[],
                "notes":["osd.0 said no","osd.1 said no","osd.2 said no"]}"#;
            run.result.ceph = Some(serde_json::from_str(side).unwrap());
            for worker in &mut run.result.workers {
                let used =
                    r#"{"client":"librbd 1.16.0","fsid":"f","pool":"p","cache":"writearound"}"#;
                worker.backend.ceph = Some(serde_json::from_str(used).unwrap());
            }
        }
        let pairs = list_conditions(&result);
        let find = |name| {
            pairs
                .iter()
                .find(|(each, _)| *each == name)
                .map(|(_, text)| text.as_str())
        };
        assert_eq!(find("cluster"), Some("HEALTH_WARN, 2 of 3 OSDs up, 3 in"));
        assert_eq!(find("not known"), Some("osd.0 said no (and 2 more)"));
        let mut silent_later = result.clone();
        let last = silent_later.runs.last_mut().unwrap();
        last.result.ceph = Some(Default::default());
        assert_eq!(list_conditions(&silent_later), pairs);
        let how = find("I/O").unwrap();
        assert!(how.ends_with("; librbd 1.16.0, cache writearound"), "{how}");
    }
}
