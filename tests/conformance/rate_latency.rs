//! Total latency of jobs with a rate: fio's keys count from the start of an I/O, as in fio. The
//! latency from the intended start, which avoids coordinated omission, has its own key.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, ours};

/// A rate beyond any device: all I/Os but the first are late.
const BEHIND: &str = "--name=job --size=2m --bs=4k --rw=randwrite --fsync=1 --rate_iops=2000000";

/// Sum of the values in a log.
fn sum_of_log(scratch: &Scratch, log: &str) -> u64 {
    let text = std::fs::read_to_string(scratch.work().join(log)).expect(log);
    let value = |line: &str| {
        line.split(',')
            .nth(1)
            .and_then(|word| word.trim().parse::<u64>().ok())
    };
    text.lines().filter_map(value).sum()
}

/// Compares the latencies of a job with its submission and completion latencies.
fn latencies_agree(program: Program, engine: &str) -> Result<(), String> {
    let scratch = Scratch::shared();
    let line = format!("{BEHIND} {engine} --write_lat_log=log");
    let document = program.line(&scratch, &line).json();
    let mean = |kind: &str| {
        let path = format!("/jobs/0/write/{kind}/mean");
        let mean = document.pointer(&path).and_then(|mean| mean.as_f64());
        mean.unwrap_or(0.0)
    };
    let (parts, whole) = (mean("slat_ns") + mean("clat_ns"), mean("lat_ns"));
    // Debug builds add time between both; from the intended start it is 100 times as much.
    ensure(whole < 3.0 * parts, || {
        format!("{program:?} {engine}: {parts} and {whole}")
    })?;
    let logs = ["log_slat.1.log", "log_clat.1.log", "log_lat.1.log"];
    let logged = |log: &str| match scratch.work().join(log).exists() {
        true => sum_of_log(&scratch, log) as f64,
        false => 0.0,
    };
    let [slat, clat, lat] = logs.map(logged);
    ensure(lat > 0.0 && lat < 3.0 * (slat + clat), || {
        format!("{program:?} {engine}: {slat} {clat} {lat}")
    })
}

/// Time without the CPU between both parts counts only in the whole.
#[test]
fn lat_with_rate_is_slat_plus_clat() {
    for program in Program::both() {
        for engine in ["--ioengine=psync", "--ioengine=libaio --iodepth=4"] {
            one_good_try(|| latencies_agree(program, engine));
        }
    }
}

/// Each I/O waits for all earlier ones: on average for half of the run.
#[test]
fn latency_from_intended_start_has_own_key() {
    ours!();
    // One I/O that loses the CPU at the end of the run may take longer than all others.
    one_good_try(|| {
        let document = Program::Iosonde.line(&Scratch::shared(), BEHIND).json();
        let ios = number(&document, "/jobs/0/write/total_ios");
        assert_eq!(
            number(&document, "/jobs/0/write/iosonde/lat_from_due_ns/N"),
            ios
        );
        let due = number(&document, "/jobs/0/write/iosonde/lat_from_due_ns/mean");
        let lat = number(&document, "/jobs/0/write/lat_ns/mean");
        ensure(due > 10.0 * lat, || format!("{due} and {lat}"))
    });
    let free = Program::Iosonde
        .line(&Scratch::shared(), "--name=job --size=64k --rw=write")
        .json();
    assert!(free.pointer("/jobs/0/write/iosonde").is_none(), "{free:#}");
}
