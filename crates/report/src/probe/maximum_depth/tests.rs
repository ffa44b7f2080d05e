use super::*;
use crate::probe::row::{titles, titles_of_probes};
use crate::probe::simulated::probed;
use iosonde_result::run::{Verdict, VerdictKind};
use iosonde_study::ceiling::LimitUnit;
use iosonde_study::probe::{ProbeBudget, ProbePhase, most_of};

/// Knee of random reads at depth 64 of one job, and the maximum at depth 128. `slow` is the
/// rate of depth 32.
fn knee_below_maximum(slow: f64) -> Knee {
    let result = probed("nvme", ProbeBudget::NORMAL);
    let is_read = |knee: &&Knee| knee.phase == ProbePhase::RandomRead;
    let mut read = result.knees.iter().find(is_read).unwrap().clone();
    let found = &mut read.saturation;
    let mut cells = vec![found.cells[0].clone(); 3];
    let measured = [(32, slow), (64, 752_832.0), (128, 763_424.0)];
    for (cell, (iodepth, iops)) in cells.iter_mut().zip(measured) {
        (cell.jobs, cell.iodepth, cell.iops.mean) = (1, iodepth, iops);
        cell.iops.error = Some(300.0);
    }
    (found.jobs, found.longer_run, found.plateau) = (1, None, None);
    found.maximum = cells[2].iops;
    (found.knee.iodepth, found.knee.iops) = (64, cells[1].iops.mean);
    (found.latency_only, found.cells) = (Some(found.knee), cells);
    read
}

/// A report named the maximum of depth 128 as the rate of depth 64, which was slower.
#[test]
fn maximum_names_depth_of_its_own_rate() {
    let mut read = knee_below_maximum(376_310.0);
    let words = |knee: &Knee| MaximumDepthWords::from_knee(knee).whole();
    let beyond = |knee: &Knee| gain_beyond(knee, knee.saturation.knee);
    assert_eq!(words(&read), "at depth 128 (98 % at depth 64)");
    assert_eq!(most_and_depth(&read, false), "763k IOPS, depth 128");
    let growth = "above depth 64 the rate grows by less than 2 %";
    assert_eq!(beyond(&read), growth);
    let found = &mut read.saturation;
    found.cells[0].iops.mean = 763_300.0;
    let perhaps = "at depth 128 (98 % at depth 64, perhaps lower)";
    assert_eq!(words(&read), perhaps);
    // A knee that was measured faster than the maximum has no share of it.
    read.saturation.knee.iops = 763_500.0;
    assert_eq!(words(&read), "at depth 128 or lower");
    let found = &mut read.saturation;
    found.knee.iops = 752_832.0;
    (found.cells[0].iops.mean, found.cells[1].iops.mean) = (376_310.0, 763_100.0);
    assert_eq!(words(&read), "at depth 64");
    assert_eq!(beyond(&read), "more depth only adds latency");
    // The mean of a plateau is the rate of none of its depths.
    let found = &mut read.saturation;
    found.cells[1].iops.mean = 770_000.0;
    found.plateau = Some((64, 128));
    found.maximum.mean = 766_700.0;
    let level = MaximumDepthWords::from_knee(&read);
    assert_eq!(level.with_share(), "from depth 64 on");
    let whole = "from depth 64 on (mean of depths 64 to 128)";
    assert_eq!(level.whole(), whole);
    assert_eq!(beyond(&read), "above depth 64 only latency grows");
    assert_eq!(most_and_depth(&read, false), "767k IOPS, from depth 64 on");
}

/// The lines had 407 IOPS at depth 32, and a maximum of 402 at depth 64 that more depth might
/// raise, beside a bottleneck at 32 to 128 I/Os in flight.
#[test]
fn faster_plateau_depth_counts_as_same() {
    let mut read = knee_below_maximum(770_000.0);
    for cell in &mut read.saturation.cells {
        cell.latency.mean_ns = f64::from(cell.iodepth) * 1e3;
    }
    let words = |knee: &Knee| MaximumDepthWords::from_knee(knee).whole();
    assert_eq!(
        words(&read),
        "at depth 128, about the same from depth 32 on (98 % at depth 64, perhaps lower)"
    );
    let short = MaximumDepthWords::from_knee(&read).with_share();
    assert_eq!(short, "at depth 128, about the same from depth 32 on");
    // A rate that falls again is not the same.
    let mut falling = read.clone();
    let mut deep = falling.saturation.cells[2].clone();
    (deep.iodepth, deep.iops.mean) = (256, 700_000.0);
    falling.saturation.cells.push(deep);
    assert!(!words(&falling).contains("about the same"));
    read.saturation.cells[0].iops.mean = 763_300.0;
    assert!(!words(&read).contains("about the same"), "{}", words(&read));
    let disk = probed("hdd", ProbeBudget::NORMAL);
    for knee in disk.knees.iter().filter(|knee| knee.phase.is_random()) {
        let text = knee_text(knee, "+-");
        assert_eq!(
            text.matches("about the same from depth ").count(),
            1,
            "{text}"
        );
        assert!(!text.contains("may raise"), "{text}");
    }
}

#[test]
fn level_rate_of_jobs_names_depth_once() {
    let mut read = knee_below_maximum(763_300.0);
    let found = &mut read.saturation;
    found.jobs = 2;
    for cell in &mut found.cells {
        (cell.jobs, cell.iops.mean) = (2, 763_000.0 + f64::from(cell.iodepth) * 100.0);
    }
    (found.plateau, found.maximum.mean) = (Some((32, 128)), 771_000.0);
    found.knee.iodepth = 32;
    found.latency_only = Some(found.knee);
    let depths = MaximumDepths::from_knee(&read);
    let (level, lower) = (depths.words(&read, ""), depths.words(&read, " or lower"));
    assert_eq!(level, "from depth 32 on with 2 jobs");
    assert_eq!(lower, "from depth 32 or lower on with 2 jobs");
}

/// The report said "at depth 128 or lower, still rising".
#[test]
fn rising_maximum_is_not_at_a_lower_depth() {
    let mut read = knee_below_maximum(763_300.0);
    let found = &mut read.saturation;
    (found.knee.iodepth, found.knee.iops) = (128, 763_424.0);
    found.latency_only = None;
    let claims = found.claims();
    assert!(claims.rises && !claims.knee, "{claims:?}");
    assert_eq!(MaximumDepthWords::from_knee(&read).whole(), "at depth 128");
}

/// A drive whose longer run of random writes is slower, without a sign of a throttle.
fn probed_without_throttle() -> ProbeResult {
    let mut result = probed("nvme", ProbeBudget::NORMAL);
    result.ceilings.clear();
    for run in &mut result.runs {
        run.result.verdicts.clear();
    }
    result
}

fn hint_for_writes(result: &ProbeResult) -> Option<String> {
    let is_write = |knee: &&Knee| knee.phase == ProbePhase::RandomWrite;
    let knee = result.knees.iter().find(is_write).unwrap();
    write_cache_hint(result, knee, result.sustained_rate(knee).unwrap())
}

#[test]
fn write_cache_hint_counts_only_faster_runs() {
    let mut result = probed_without_throttle();
    let phase = ProbePhase::RandomWrite;
    let figure = result.figure(phase).unwrap().clone();
    let mut knees = result.knees.iter_mut();
    let knee = knees.find(|knee| knee.phase == phase).unwrap();
    let mut slow = knee.saturation.cells[0].clone();
    slow.jobs = 1;
    slow.iodepth = 2 * figure.iodepth + 1;
    slow.iops = figure.iops;
    slow.measured_ns = figure.measured_ns - 1;
    let slow_ns = words::latency(slow.measured_ns as f64);
    knee.saturation.cells.push(slow);
    let hint = hint_for_writes(&result).unwrap();
    assert!(!hint.contains(&format!("up to {slow_ns} in all")), "{hint}");
}

/// Burst credits and throttles slow longer runs too.
#[test]
fn write_cache_is_not_named_against_the_evidence() {
    let result = probed_without_throttle();
    assert!(hint_for_writes(&result).is_some());
    let mut throttled = result.clone();
    throttled.ceilings = vec![Ceiling {
        direction: Direction::Write,
        random: true,
        block_bytes: 4096,
        counted: LimitUnit::Iops,
        per_s: 400e3,
        holder: CeilingCause::Throttle,
        evidence: String::new(),
    }];
    assert_eq!(hint_for_writes(&throttled), None);
    let mut judged = result.clone();
    let phase = ProbePhase::RandomWrite;
    let mut runs = judged.runs.iter_mut();
    let run = runs.find(|run| run.phase == phase).unwrap();
    run.result.verdicts = vec![Verdict {
        kind: VerdictKind::Allowance,
        evidence: String::new(),
        cause: None,
    }];
    assert_eq!(hint_for_writes(&judged), None);
    // The reads were not kept up either.
    let mut burst = result;
    let written = burst.figure(phase).unwrap().clone();
    let is_write = |knee: &&Knee| knee.phase == phase;
    let searched = burst.knees.iter().find(is_write).unwrap().clone();
    let read = ProbePhase::RandomRead;
    burst.figures.retain(|figure| figure.phase != read);
    burst.knees.retain(|knee| knee.phase != read);
    burst.figures.push(PhaseFigure {
        phase: read,
        ..written
    });
    burst.knees.push(Knee {
        phase: read,
        ..searched
    });
    assert_eq!(hint_for_writes(&burst), None);
}

#[test]
fn maximum_of_short_writes_names_write_cache_and_other_title() {
    let result = probed_without_throttle();
    let hint = hint_for_writes(&result).unwrap();
    assert!(hint.starts_with("a write cache may have served"), "{hint}");
    let key = most_of(ProbePhase::RandomWrite);
    let title = "4k random write, maximum of short runs";
    assert_eq!(titles(&result)[&key], title);
    let slow = probed("hdd", ProbeBudget::NORMAL);
    assert_eq!(titles_of_probes(&[&slow, &result])[&key], title);
    let read = most_of(ProbePhase::RandomRead);
    assert_eq!(
        titles(&result)[&read],
        "4k random read, maximum at any depth"
    );
}
