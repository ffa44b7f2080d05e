//! A promise held against a probe: a verdict on each figure, what speaks against believing it, and what of the promise the
//! probe could not see.

mod conditions;

use super::promise::{Metric, Promise};
use super::{Judged, Measured, Verdict};
use crate::probe::{DeviceClass, Figure, Phase, ProbeResult};
use crate::saturation::Saturation;
use iosonde_result::run::{RunResult, VerdictKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where many I/Os in flight wait hardly longer than one alone, more of them would do more: below this ratio of the mean
/// latencies the device was not asked for all that it can do.
const UNSATURATED: f64 = 1.25;

/// A promise beside what a probe measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// What was promised.
    pub promise: Promise,
    /// One for each figure that was measured and of which something is promised.
    pub rows: Vec<HeldFigure>,
    /// What came of it.
    pub outcome: Outcome,
    /// What of the promise was not measured or not checked, each in one sentence.
    pub conditions: Vec<String>,
}

/// One figure of a promise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HeldFigure {
    /// The phase that measured it.
    pub phase: Phase,
    /// The verdict.
    pub judged: Judged,
    /// Half the width of the 95 % confidence interval of what was measured.
    pub error_per_s: Option<f64>,
    /// Where it was reached, if not at the depth of the phase: the search for the knee found more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<InFlight>,
    /// What speaks against the verdict.
    pub doubts: Vec<Doubt>,
}

/// I/Os kept in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InFlight {
    /// Jobs at once.
    pub jobs: u32,
    /// I/Os in flight of each.
    pub iodepth: u32,
}

/// What became of a promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every figure that was measured is as promised.
    Kept,
    /// A figure is shown to be less than promised.
    Broken,
    /// Neither is shown.
    Unclear,
}

/// Why a figure cannot be laid at the volume's door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// A cache answered, not the volume.
    ServedFromCache,
    /// Blocks that were never written answered, not the volume.
    Unwritten,
    /// The generator had no processor time to spare.
    Generator,
    /// A bound on this machine held the I/O back: of a control group, or of what is between the program and the device.
    Throttled,
    /// Others used the device meanwhile.
    Interference,
    /// The I/Os in flight were too few to reach the limit.
    DepthTooLow,
    /// It was measured too shortly to have an interval.
    NoInterval,
    /// The vendor does not promise its figures on this machine.
    NotFirm,
}

impl Doubt {
    /// In words, to follow a verdict.
    pub fn words(self) -> &'static str {
        match self {
            Doubt::ServedFromCache => "a cache answered, not the volume",
            Doubt::Unwritten => "blocks that were never written answered, not the volume",
            Doubt::Generator => "the processors of this machine were the limit",
            Doubt::Throttled => "a bound on this machine held the I/O back",
            Doubt::Interference => "others used the device meanwhile",
            Doubt::DepthTooLow => "more I/Os in flight would do more",
            Doubt::NoInterval => "measured too shortly to be sure",
            Doubt::NotFirm => "the vendor does not promise its figures on this machine",
        }
    }
}

impl HeldFigure {
    /// Whether it is shown to be less than promised.
    pub fn is_broken(&self) -> bool {
        self.judged.verdict == Verdict::Below && self.doubts.is_empty()
    }

    /// Whether it is shown to be as promised: what was reached in spite of a hindrance was reached.
    fn is_kept(&self) -> bool {
        let kept = matches!(self.judged.verdict, Verdict::Kept | Verdict::Bursting);
        kept && !self.is_of_cache()
    }

    /// Whether something else than the volume answered.
    fn is_of_cache(&self) -> bool {
        let of_others = [Doubt::ServedFromCache, Doubt::Unwritten];
        self.doubts.iter().any(|doubt| of_others.contains(doubt))
    }
}

impl Held {
    /// Holds a promise against a probe.
    pub fn of(promise: &Promise, probe: &ProbeResult) -> Held {
        let mut rows: Vec<HeldFigure> = probe
            .figures
            .iter()
            .filter_map(|figure| row(promise, probe, figure))
            .collect();
        rows.sort_by_key(|row| row.judged.metric);
        Held {
            outcome: outcome(&rows),
            conditions: conditions::of(promise, probe, &rows),
            promise: promise.clone(),
            rows,
        }
    }

    /// Whether a cache answered all that was measured: then nothing is known of the volume.
    pub fn is_of_cache(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(HeldFigure::is_of_cache)
    }

    /// In one sentence.
    pub fn sentence(&self) -> String {
        if self.is_of_cache() {
            let doubts = || self.rows.iter().flat_map(|row| &row.doubts);
            let who = match doubts().all(|doubt| *doubt == Doubt::Unwritten) {
                true => "Blocks that were never written",
                false => "A cache",
            };
            return format!(
                "{who} answered, not the volume: no comparison with the promise holds."
            );
        }
        let listed = |said: &dyn Fn(&HeldFigure) -> Option<String>| {
            let each: Vec<String> = self.rows.iter().filter_map(said).collect();
            each.join(", ")
        };
        match self.outcome {
            Outcome::Kept => "The promise is kept, as far as it was measured.".to_owned(),
            Outcome::Broken => {
                let broken = listed(&|row| {
                    let percent = (row.judged.ratio * 100.0).round();
                    let said = format!("{} at {percent:.0} %", row.judged.metric);
                    row.is_broken().then_some(said)
                });
                format!("The promise is broken: {broken} of it.")
            }
            Outcome::Unclear if self.rows.is_empty() => {
                "Nothing of the promise was measured.".to_owned()
            }
            Outcome::Unclear => {
                let unclear =
                    listed(&|row| (!row.is_kept()).then(|| row.judged.metric.to_string()));
                format!("Whether the promise is kept cannot be told: {unclear}.")
            }
        }
    }
}

fn row(promise: &Promise, probe: &ProbeResult, figure: &Figure) -> Option<HeldFigure> {
    let in_phase = super::measured_by_probe(std::slice::from_ref(figure)).pop()?;
    let judge = |measured: Measured| promise.judge(&[measured]).pop();
    let judged = judge(in_phase)?;
    let deeper = match judged.verdict {
        Verdict::Below => knee(probe, figure.phase).and_then(|knee| most(knee, &in_phase)),
        _ => None,
    };
    let (measured, judged) = match deeper {
        Some((most, _)) => (most, judge(most)?),
        None => (in_phase, judged),
    };
    Some(HeldFigure {
        phase: figure.phase,
        error_per_s: measured.error,
        at: deeper.map(|(_, at)| at),
        doubts: doubts(&judged, measured.error, probe, figure),
        judged,
    })
}

/// The search for the knee of a phase's pattern, if it was made.
fn knee(probe: &ProbeResult, phase: Phase) -> Option<&Saturation> {
    let mut knees = probe.knees.iter();
    let knee = knees.find(|knee| knee.phase == phase)?;
    Some(&knee.saturation).filter(|found| found.failure.is_none())
}

/// What the pattern reached at any depth, and at which, where that is more than in the phase.
fn most(knee: &Saturation, phase: &Measured) -> Option<(Measured, InFlight)> {
    let most = match phase.metric.is_iops() {
        true => knee.maximum,
        false => knee.maximum_bytes_per_s,
    };
    let measured = Measured {
        per_s: most.mean,
        error: most.error,
        ..*phase
    };
    let at = InFlight {
        jobs: knee.jobs,
        iodepth: knee.knee.iodepth,
    };
    (most.mean > phase.per_s).then_some((measured, at))
}

fn doubts(judged: &Judged, error: Option<f64>, probe: &ProbeResult, figure: &Figure) -> Vec<Doubt> {
    let verdicts = run(probe, figure.phase).map_or(&[][..], |run| &run.verdicts[..]);
    let mut doubts = Vec::new();
    // Behind a cache nothing else can be told.
    let found = &probe.classification;
    let is_cached = found.served_from_cache || found.class == DeviceClass::Memory;
    if is_cached || has(verdicts, VerdictKind::ServedFromCache) {
        doubts.push(Doubt::ServedFromCache);
    }
    if has(verdicts, VerdictKind::UnwrittenData) {
        doubts.push(Doubt::Unwritten);
    }
    if judged.verdict != Verdict::Below {
        return doubts;
    }
    for (kind, doubt) in [
        (VerdictKind::Generator, Doubt::Generator),
        (VerdictKind::Throttled, Doubt::Throttled),
        (VerdictKind::Interference, Doubt::Interference),
    ] {
        if has(verdicts, kind) {
            doubts.push(doubt);
        }
    }
    if is_unsaturated(probe, figure) {
        doubts.push(Doubt::DepthTooLow);
    }
    if error.is_none() {
        doubts.push(Doubt::NoInterval);
    }
    if !judged.firm {
        doubts.push(Doubt::NotFirm);
    }
    doubts
}

fn has(verdicts: &[iosonde_result::run::Verdict], kind: VerdictKind) -> bool {
    verdicts.iter().any(|verdict| verdict.kind == kind)
}

fn run(probe: &ProbeResult, phase: Phase) -> Option<&RunResult> {
    let mut runs = probe.runs.iter().rev();
    runs.find(|run| run.phase == phase).map(|run| &run.result)
}

/// Whether more I/Os in flight would do more: they did at the deepest queue that was tried, or, where only one was, the same
/// I/Os one at a time take about as long.
fn is_unsaturated(probe: &ProbeResult, figure: &Figure) -> bool {
    if let Some(knee) = knee(probe, figure.phase) {
        return knee.latency_only.is_none();
    }
    let alone = match figure.phase {
        Phase::RandomRead => Phase::ReadLatency,
        Phase::RandomWrite => Phase::WriteLatency,
        _ => return false,
    };
    let Some(alone) = probe.figure(alone) else {
        return false;
    };
    let together = figure.latency.mean_ns;
    figure.iodepth > alone.iodepth
        && together > 0.0
        && together < UNSATURATED * alone.latency.mean_ns
}

fn outcome(rows: &[HeldFigure]) -> Outcome {
    if rows.iter().any(HeldFigure::is_broken) {
        Outcome::Broken
    } else if !rows.is_empty() && rows.iter().all(HeldFigure::is_kept) {
        Outcome::Kept
    } else {
        Outcome::Unclear
    }
}

/// The metrics that a probe can measure.
pub(super) fn metric_of(phase: Phase) -> Option<Metric> {
    match phase {
        Phase::RandomRead => Some(Metric::ReadIops),
        Phase::RandomWrite => Some(Metric::WriteIops),
        Phase::SequentialRead => Some(Metric::ReadBandwidth),
        Phase::SequentialWrite => Some(Metric::WriteBandwidth),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeDevice, FakeSession};
    use crate::limits::Limits;
    use crate::probe::{Budget, ProbeOptions, ProbeTarget, TargetKind, probe};

    /// A volume of 15,000 IOPS and 420 MiB/s, of which a share is there.
    fn volume(share: f64) -> FakeDevice {
        FakeDevice {
            random_read_iops: 15_000.0,
            random_write_iops: 15_000.0 * share,
            read_bytes_per_s: 420.0 * 1_048_576.0,
            write_bytes_per_s: 420.0 * 1_048_576.0,
            read_ns: 500_000.0,
            write_ns: 500_000.0,
            jitter: 0.002,
            ..FakeDevice::nvme()
        }
    }

    fn probed(device: FakeDevice, kind: TargetKind) -> ProbeResult {
        let target = ProbeTarget {
            name: "/data".into(),
            path: "/data/file".into(),
            kind,
        };
        let options = ProbeOptions {
            budget: Budget::NORMAL,
            size_bytes: None,
            direct: true,
            seed: 1,
        };
        probe(&mut FakeSession::new(device), &target, &options, &mut ()).unwrap()
    }

    fn directory() -> TargetKind {
        TargetKind::Directory {
            free_bytes: 1 << 40,
        }
    }

    fn promised() -> Promise {
        let query = "gcp-pd-ssd:375GiB,machine=n1,vcpus=8".parse().unwrap();
        Limits::published().evaluate(&query).unwrap()
    }

    #[test]
    fn kept_and_broken() {
        let held = Held::of(&promised(), &probed(volume(1.0), directory()));
        assert_eq!(held.outcome, Outcome::Kept, "{:?}", held.rows);
        let metrics: Vec<Metric> = held.rows.iter().map(|row| row.judged.metric).collect();
        use Metric::{ReadBandwidth, ReadIops, WriteBandwidth, WriteIops};
        assert_eq!(
            metrics,
            [ReadIops, WriteIops, ReadBandwidth, WriteBandwidth]
        );
        let held = Held::of(&promised(), &probed(volume(0.6), directory()));
        assert_eq!(held.outcome, Outcome::Broken);
        assert_eq!(
            held.sentence(),
            "The promise is broken: write IOPS at 60 % of it."
        );
    }

    #[test]
    fn what_the_machine_did_is_not_the_volumes_fault() {
        let broken = |kind| {
            let mut found = probed(volume(0.6), directory());
            for run in &mut found.runs {
                run.result.verdicts = vec![iosonde_result::run::Verdict {
                    kind,
                    evidence: String::new(),
                }];
            }
            Held::of(&promised(), &found)
        };
        let doubts = |kind| {
            let held = broken(kind);
            assert_eq!(held.outcome, Outcome::Unclear, "{kind:?}");
            held.rows[1].doubts.clone()
        };
        assert_eq!(doubts(VerdictKind::Generator), [Doubt::Generator]);
        assert_eq!(doubts(VerdictKind::Throttled), [Doubt::Throttled]);
        let allowance = broken(VerdictKind::Allowance);
        assert_eq!(allowance.outcome, Outcome::Broken, "it is the provider's");
        assert_eq!(doubts(VerdictKind::Interference), [Doubt::Interference]);
        assert_eq!(
            doubts(VerdictKind::ServedFromCache),
            [Doubt::ServedFromCache]
        );
    }

    #[test]
    fn too_few_in_flight_show_no_breach() {
        let mut found = probed(volume(0.6), directory());
        found.knees.clear();
        let alone = found.figure(Phase::WriteLatency).unwrap().latency;
        for figure in &mut found.figures {
            if figure.phase == Phase::RandomWrite {
                figure.latency.mean_ns = alone.mean_ns * 1.1;
            }
        }
        let held = Held::of(&promised(), &found);
        assert_eq!(held.rows[1].doubts, [Doubt::DepthTooLow]);
        assert_eq!(held.outcome, Outcome::Unclear);
    }

    #[test]
    fn what_a_deeper_queue_reaches_is_reached() {
        let mut found = probed(volume(0.6), directory());
        let search = |found: &mut ProbeResult| {
            let mut knees = found.knees.iter_mut();
            let knee = knees.find(|knee| knee.phase == Phase::RandomWrite);
            knee.expect("a search").saturation.clone()
        };
        let saturation = search(&mut found);
        let with = |change: &dyn Fn(&mut Saturation)| {
            let mut found = found.clone();
            let mut changed = saturation.clone();
            change(&mut changed);
            for knee in &mut found.knees {
                if knee.phase == Phase::RandomWrite {
                    knee.saturation = changed.clone();
                }
            }
            Held::of(&promised(), &found)
        };
        let held = with(&|_| {});
        assert_eq!(held.outcome, Outcome::Broken);
        assert_eq!(held.rows[1].doubts, []);
        // The phase had 9,000; the search says that 256 in flight have 15,000.
        let held = with(&|knee| {
            (knee.maximum.mean, knee.knee.iodepth) = (15_000.0, 256);
            knee.maximum.error = Some(50.0);
        });
        assert_eq!(held.outcome, Outcome::Kept, "{:?}", held.rows);
        let at = InFlight {
            jobs: saturation.jobs,
            iodepth: 256,
        };
        assert_eq!(held.rows[1].at, Some(at));
        let said = "write IOPS: measured with 256 I/Os in flight, where it reached its maximum.";
        assert!(held.conditions.iter().any(|line| line == said));
        // It was still growing at the deepest that was tried.
        let held = with(&|knee| knee.latency_only = None);
        assert_eq!(held.rows[1].doubts, [Doubt::DepthTooLow]);
        assert_eq!(held.outcome, Outcome::Unclear);
    }

    #[test]
    fn what_was_not_measured_is_said() {
        let only_read = TargetKind::Existing {
            bytes: 100 << 30,
            device: true,
            consent: false,
        };
        let mut found = probed(volume(1.0), only_read);
        for run in &mut found.runs {
            run.result.host.cpu.online = Some(2);
            run.result.host.platform.instance_type = None;
        }
        let held = Held::of(&promised(), &found);
        assert_eq!(held.outcome, Outcome::Kept);
        insta::assert_snapshot!(held.conditions.join("\n"));
        for run in &mut found.runs {
            run.result.host.platform.instance_type = Some("n1-standard-8".to_owned());
        }
        let machine = |held: Held| held.conditions.join("\n").contains("machine");
        assert!(!machine(Held::of(&promised(), &found)));
        for run in &mut found.runs {
            run.result.host.platform.instance_type = Some("n10-standard-8".to_owned());
        }
        assert!(machine(Held::of(&promised(), &found)));
    }

    #[test]
    fn it_is_kept_as_json() {
        let held = Held::of(&promised(), &probed(volume(0.6), directory()));
        let json = serde_json::to_string(&held).unwrap();
        assert_eq!(serde_json::from_str::<Held>(&json).unwrap(), held);
    }
}
