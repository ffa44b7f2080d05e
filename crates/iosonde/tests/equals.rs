//! Whether comparisons of whole runs say what is so: simulated devices whose truth is known, each measured for a minute.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{Engine, Extent, Job, Mode, PerDirection, Plan, ReadWrite};
use iosonde_result::compare::{Measure, Measured, Subject, Verdict, compare, parts};
use iosonde_result::session::Session;
use std::collections::BTreeMap;

const MINUTE_NS: u64 = 60_000_000_000;

/// A minute on a device of 100 IOPS, times `speed`, with 3 % noise from second to second of lag-1 correlation 0.5.
fn measured(speed: f64, seed: u64) -> Measured {
    let read_us = 10_000.0 / speed;
    let mut job = Job::new("randread");
    job.io.engine = Engine::Sim;
    job.io.sim = Some(format!(
        "read_us={read_us},noise=0.03,noise_rho=0.5,seed={seed}"
    ));
    job.io.direct = true;
    job.files.size = Some(Extent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: Mode::Read,
        random: true,
    };
    job.workload.percentage_random = PerDirection::all(100);
    job.workload.randseed = Some(seed);
    job.schedule.time_based = true;
    job.schedule.runtime_ns = MINUTE_NS;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let result = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
    Measured {
        name: "run".into(),
        machine: None,
        parts: parts(&result),
    }
}

/// How many trials found each figure different, and how many could tell at all.
type Called = BTreeMap<(Subject, Measure), (u64, u64)>;

fn count(called: &mut Called, a: &Measured, b: Measured) {
    for row in &compare(std::slice::from_ref(a), &[b]).rows {
        let (different, told) = called.entry((row.subject, row.measure)).or_default();
        *different += u64::from(matches!(row.verdict, Verdict::Faster | Verdict::Slower));
        *told += u64::from(row.verdict != Verdict::Undecided);
    }
}

/// A hundred trials, which take a quarter of a minute; `./test --full` asks for 1,000.
fn trials() -> u64 {
    let asked = std::env::var("IOSONDE_TRIALS").ok();
    asked.map_or(100, |text| {
        text.parse().expect("IOSONDE_TRIALS is a number")
    })
}

#[test]
fn equals_are_hardly_ever_called_different_and_five_per_cent_mostly() {
    let (mut equals, mut slower) = (Called::new(), Called::new());
    for trial in 0..trials() {
        let seed = 1 + 3 * trial;
        let a = measured(1.0, seed);
        count(&mut equals, &a, measured(1.0, seed + 1));
        count(&mut slower, &a, measured(0.95, seed + 2));
    }
    println!("equals: {equals:?}\n5 % slower: {slower:?}");
    for (figure, (different, told)) in &equals {
        assert!(different * 20 <= *told, "{figure:?}: {different} of {told}");
    }
    for measure in [Measure::Iops, Measure::LatMean] {
        let (different, told) = slower[&(Subject::Read, measure)];
        assert_eq!(told, trials());
        // A test that knows the variance finds all of them.
        assert!(
            different * 10 >= told * 9,
            "{measure:?}: {different} of {told}"
        );
    }
}
