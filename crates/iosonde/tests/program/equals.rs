//! Error rates of `compare`, on simulated devices with known speed, each measured for a minute.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{
    BytesOrPercent, Engine, Job, PerDirection, Plan, ReadWrite, ReadWriteMode,
};
use iosonde_result::compare::{
    ComparisonVerdict, Measure, MeasuredResult, Subject, compare, parts,
};
use iosonde_result::session::Session;
use std::collections::BTreeMap;

const MINUTE_NS: u64 = 60_000_000_000;

/// A minute on a device of 100 IOPS times `speed`, with 3 % noise per second, correlation 0.5.
fn measured(speed: f64, seed: u64) -> MeasuredResult {
    let read_us = 10_000.0 / speed;
    let mut job = Job::new("randread");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(format!(
        "read_us={read_us},noise=0.03,noise_rho=0.5,seed={seed}"
    ));
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::Read,
        random: true,
    };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.workload.randseed = Some(seed);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = MINUTE_NS;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let result = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
    MeasuredResult {
        name: "run".into(),
        machine: None,
        parts: parts(&result),
    }
}

/// Per figure: trials that found a difference, and trials with a verdict.
type VerdictCounts = BTreeMap<(Subject, Measure), (u64, u64)>;

fn count(counts: &mut VerdictCounts, a: &MeasuredResult, b: MeasuredResult) {
    for row in &compare(std::slice::from_ref(a), &[b]).rows {
        let (different, decided) = counts.entry((row.subject, row.measure)).or_default();
        *different += u64::from(matches!(
            row.verdict,
            ComparisonVerdict::Faster | ComparisonVerdict::Slower
        ));
        *decided += u64::from(row.verdict != ComparisonVerdict::Undecided);
    }
}

/// A hundred trials take 15 seconds; `./test --full` runs 1,000.
fn trials() -> u64 {
    let asked = std::env::var("IOSONDE_TRIALS").ok();
    asked.map_or(100, |text| {
        text.parse().expect("IOSONDE_TRIALS is a number")
    })
}

#[test]
fn compare_detects_5_percent_with_few_false_positives() {
    let (mut equals, mut slower) = (VerdictCounts::new(), VerdictCounts::new());
    for trial in 0..trials() {
        let seed = 1 + 3 * trial;
        let a = measured(1.0, seed);
        count(&mut equals, &a, measured(1.0, seed + 1));
        count(&mut slower, &a, measured(0.95, seed + 2));
    }
    println!("equals: {equals:?}\n5 % slower: {slower:?}");
    for (figure, (different, decided)) in &equals {
        assert!(
            different * 20 <= *decided,
            "{figure:?}: {different} of {decided}"
        );
    }
    for measure in [Measure::Iops, Measure::LatMean] {
        let (different, decided) = slower[&(Subject::Read, measure)];
        assert_eq!(decided, trials());
        // A test with known variance would detect all of them.
        assert!(
            different * 10 >= decided * 9,
            "{measure:?}: {different} of {decided}"
        );
    }
}
