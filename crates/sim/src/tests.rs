//! The model compared with theory: queueing, caps, bursts, seeks, caches.

use super::*;
use iosonde_job::plan::Direction;
use iosonde_workload::Op;
use iosonde_workload::rng::Rng;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

mod docs;

const SECOND: u64 = 1_000_000_000;

fn spec(text: &str) -> SimSpec {
    SimSpec::parse(text).unwrap()
}

/// A device with one unlimited file.
fn device(text: &str) -> SimDevice {
    let mut device = SimDevice::new(spec(text)).unwrap();
    device
        .place(&[SimFile {
            id: 1,
            bytes: 1 << 50,
        }])
        .unwrap();
    device
}

fn request(op: Op, offset: u64, bytes: u64) -> SimRequest {
    SimRequest {
        op,
        file: 0,
        offset,
        bytes,
        direct: true,
    }
}

/// Completions of a closed loop.
struct Finished {
    /// Completion times in ascending order.
    done_ns: Vec<u64>,
    latency_ns: u64,
}

impl Finished {
    /// I/Os completed per second from `from_ns` until `until_ns`.
    fn rate(&self, from_ns: u64, until_ns: u64) -> f64 {
        let within = self
            .done_ns
            .iter()
            .filter(|done| (from_ns..until_ns).contains(done))
            .count();
        within as f64 * 1e9 / (until_ns - from_ns) as f64
    }
}

/// Keeps `depth` I/Os in flight until `until_ns`.
fn closed_loop(
    device: &mut SimDevice,
    depth: u32,
    until_ns: u64,
    mut next: impl FnMut() -> SimRequest,
) -> Finished {
    let mut in_flight = BinaryHeap::new();
    let mut finished = Finished {
        done_ns: Vec::new(),
        latency_ns: 0,
    };
    for number in 0..depth {
        in_flight.push(Reverse((device.submit(0, &next()).done_ns, 0, number)));
    }
    while let Some(Reverse((done_ns, start_ns, number))) = in_flight.pop() {
        finished.done_ns.push(done_ns);
        finished.latency_ns += done_ns - start_ns;
        if done_ns < until_ns {
            let reply = device.submit(done_ns, &next());
            in_flight.push(Reverse((reply.done_ns, done_ns, number)));
        }
    }
    finished
}

fn random_reads(bytes: u64, area_bytes: u64) -> impl FnMut() -> SimRequest {
    let mut rng = Rng::new(99);
    move || request(Op::Read, rng.below(area_bytes / bytes) * bytes, bytes)
}

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance * expected,
        "{found} instead of {expected}"
    );
}

#[test]
fn fixed_service_gives_the_rate_of_d_d_k() {
    for depth in [1, 2, 3, 4, 7, 64] {
        let text = "read_us=100,parallel=4";
        let found = closed_loop(
            &mut device(text),
            depth,
            SECOND,
            random_reads(4096, 1 << 30),
        );
        let expected = 10_000 * u64::from(depth.min(4));
        assert_eq!(found.rate(1, SECOND + 1), expected as f64, "depth {depth}");
        let exact = spec(text).closed_loop_iops(4096, Direction::Read, depth);
        assert_eq!(exact, Some(expected as f64));
    }
}

/// The probability that all servers are busy, by Erlang's C formula.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..servers {
        term *= load / f64::from(n);
        sum += term;
    }
    term *= load / f64::from(servers);
    let waiting = term * f64::from(servers) / (f64::from(servers) - load);
    waiting / (sum + waiting)
}

#[test]
fn poisson_arrivals_wait_as_erlang_says() {
    for (servers, load) in [(1u32, 0.5), (1, 0.8), (4, 3.2), (16, 12.0)] {
        let text = format!("read_us=100,read_dist=exp,parallel={servers}");
        let (batches, per_batch) = (40, 20_000);
        let mut device = device(&text);
        let mut arrivals = Rng::new(5);
        let mut now = 0.0;
        let gap_ns = 100e3 / load;
        let mut means = Vec::new();
        // The first batch is the warm-up.
        for _ in 0..=batches {
            let mut sum = 0.0;
            for _ in 0..per_batch {
                now += -gap_ns * libm::log1p(-arrivals.unit());
                let reply = device.submit(now as u64, &request(Op::Read, 0, 4096));
                sum += (reply.done_ns - now as u64) as f64;
            }
            means.push(sum / f64::from(per_batch));
        }
        let means = &means[1..];
        let mean = means.iter().sum::<f64>() / f64::from(batches);
        let square = means
            .iter()
            .map(|batch| (batch - mean) * (batch - mean))
            .sum::<f64>();
        let error = libm::sqrt(square / f64::from(batches * (batches - 1)));
        let wait_ns = erlang_c(servers, load) * 100e3 / (f64::from(servers) - load);
        let off = (mean - 100e3 - wait_ns).abs() / error;
        assert!(
            off < 4.0,
            "M/M/{servers} at {load}: {mean} +- {error}, not {}",
            100e3 + wait_ns
        );
    }
}

#[test]
fn caps_are_exact_over_long_runs() {
    for (text, bytes, expected) in [
        ("read_us=50,parallel=32,cap_iops=3000", 4096, 3000.0),
        ("read_us=50,parallel=32,cap_read_iops=1234.5", 4096, 1234.5),
        ("read_us=50,parallel=32,cap_bw=100m", 65536, 1600.0),
        (
            "read_us=50,parallel=32,cap_iops=1000,cap_unit=16k",
            40_000,
            1000.0 / 3.0,
        ),
        (
            "read_us=50,parallel=32,cap_iops=3000,cap_write_iops=10",
            4096,
            3000.0,
        ),
        ("read_us=50,parallel=32,link_bw=100m", 65536, 1600.0),
        (
            "read_us=50,parallel=4,read_bw=10m",
            10240,
            4.0 / (50e-6 + 10240.0 / 10485760.0),
        ),
    ] {
        let reads = random_reads(bytes, 1 << 30);
        let found = closed_loop(&mut device(text), 32, 200 * SECOND, reads);
        let rate = found.rate(SECOND, 200 * SECOND);
        assert!(
            (rate - expected).abs() <= 4.0 / 199.0,
            "{text}: {rate} instead of {expected}"
        );
        close(
            spec(text).max_iops(bytes, Direction::Read).unwrap(),
            expected,
            1e-9,
        );
    }
}

#[test]
fn below_a_cap_there_is_no_added_latency() {
    let found = closed_loop(
        &mut device("read_us=500,cap_iops=2100"),
        1,
        SECOND,
        random_reads(4096, 1 << 30),
    );
    assert_eq!(found.latency_ns, 500_000 * found.done_ns.len() as u64);
}

#[test]
fn reads_and_writes_are_capped_apart() {
    let mut device =
        device("read_us=50,write_us=50,parallel=32,cap_read_iops=2000,cap_write_iops=500");
    // Two closed loops share the device. Even numbers read, odd numbers write.
    let mut heap: BinaryHeap<Reverse<(u64, u32)>> =
        (0..32).map(|number| Reverse((0, number))).collect();
    let mut counts = [0u64; 2];
    while let Some(Reverse((now_ns, number))) = heap.pop()
        && now_ns < 100 * SECOND
    {
        let writes = number % 2 == 1;
        counts[usize::from(writes)] += 1;
        let op = if writes { Op::Write } else { Op::Read };
        let reply = device.submit(now_ns, &request(op, u64::from(number) << 20, 4096));
        heap.push(Reverse((reply.done_ns, number)));
    }
    assert!(
        counts[0].abs_diff(200_000) <= 32 && counts[1].abs_diff(50_000) <= 32,
        "{counts:?}"
    );
}

#[test]
fn burst_lasts_until_its_tokens_are_used() {
    // 10,000 tokens at a peak of 1,000 and a rate of 200 last 12.5 s.
    let mut device = device("read_us=10,parallel=64,cap_iops=200:10000:1000");
    let found = closed_loop(&mut device, 64, 40 * SECOND, random_reads(4096, 1 << 30));
    close(found.rate(0, 12 * SECOND), 1000.0, 0.001);
    close(found.rate(13 * SECOND, 40 * SECOND), 200.0, 0.001);
    let fast = found.rate(0, 12_500_000_000) * 12.5;
    assert!((fast - 12_500.0).abs() <= 2.0, "{fast}");
}

#[test]
fn head_seeks_for_random_but_not_sequential_access() {
    let text = "read_us=200,track_us=1ms,stroke_us=16ms,rotation_us=8ms,span=1t,read_bw=100m";
    let area = 1 << 39;
    let found = closed_loop(
        &mut device(text),
        1,
        2000 * SECOND,
        random_reads(4096, area),
    );
    let mean_ns = 200e3 + 4096.0 * 1e9 / 104_857_600.0 + spec(text).positioning.mean_ns(area, 1);
    // 150,000 draws with a variation of about a quarter: an error of 0.07 %.
    close(found.rate(0, 2000 * SECOND), 1e9 / mean_ns, 0.003);

    let mut at = 0;
    let sequential = closed_loop(&mut device(text), 1, 10 * SECOND, || {
        at += 65536;
        request(Op::Read, at - 65536, 65536)
    });
    close(
        sequential.rate(SECOND, 10 * SECOND),
        1e9 / (200e3 + 625e3),
        0.001,
    );
    assert_eq!(spec(text).max_iops(4096, Direction::Read), None);
}

#[test]
fn hdd_preset_reaches_its_documented_rate() {
    for (depth, iops) in [(1, 75.0), (32, 175.0)] {
        let reads = random_reads(4096, 4 << 40);
        let found = closed_loop(&mut device("hdd"), depth, 500 * SECOND, reads);
        close(found.rate(SECOND, 500 * SECOND), iops, 0.03);
    }
}

#[test]
fn queue_reordering_shortens_head_positioning() {
    let text = "read_us=0,track_us=1ms,stroke_us=16ms,rotation_us=8ms,span=1t,reorder=0.5,queue=16";
    let area = 1 << 40;
    for (depth, seen) in [(1, 1), (4, 4), (16, 16), (64, 16)] {
        let found = closed_loop(
            &mut device(text),
            depth,
            1000 * SECOND,
            random_reads(4096, area),
        );
        let mean_ns = spec(text).positioning.mean_ns(area, seen);
        close(found.rate(10 * SECOND, 1000 * SECOND), 1e9 / mean_ns, 0.01);
    }
}

#[test]
fn uniform_access_hits_a_cache_by_its_share() {
    let mut device = device("read_us=100,cache=1m,cache_us=2,cache_direct=1");
    let found = closed_loop(&mut device, 1, 20 * SECOND, random_reads(4096, 4 << 20));
    let count = found.done_ns.len() as f64;
    // Latency is 2 us for a hit and 100 us otherwise. The cache is warm after about 1,000 of
    // 270,000 reads.
    let hits = (100e3 * count - found.latency_ns as f64) / 98e3 / count;
    close(hits, 0.25, 0.015);
}

#[test]
fn direct_io_bypasses_the_page_cache() {
    let mut device = device("read_us=100,cache=1m,cache_us=2");
    let read = |direct| SimRequest {
        direct,
        ..request(Op::Read, 0, 4096)
    };
    assert_eq!(device.submit(0, &read(false)).done_ns, 100_000);
    assert_eq!(device.submit(SECOND, &read(false)).done_ns, SECOND + 2_000);
    assert_eq!(
        device.submit(2 * SECOND, &read(true)).done_ns,
        2 * SECOND + 100_000
    );
    let write = SimRequest {
        direct: true,
        ..request(Op::Write, 0, 4096)
    };
    device.submit(3 * SECOND, &write);
    let after = device.submit(4 * SECOND, &read(false));
    assert!(after.from_device, "a direct write throws cached blocks out");
}

#[test]
fn write_back_cache_slows_at_its_dirty_limit() {
    let mut device =
        device("cache=1g,dirty=64m,writeback_bw=16m,cache_us=10,cache_direct=1,fsync_us=100");
    let mut at = 0;
    let found = closed_loop(&mut device, 1, 40 * SECOND, || {
        at += 65536;
        request(Op::Write, at - 65536, 65536)
    });
    // The first 64 MiB and the bytes written back meanwhile take 10 us each, then 256 writes
    // complete per second.
    let fast = found
        .done_ns
        .iter()
        .take_while(|done| **done < SECOND / 10)
        .count();
    assert!(fast > 1024, "{fast}");
    close(found.rate(SECOND, 40 * SECOND), 256.0, 0.001);
    let end_ns = *found.done_ns.last().unwrap();
    let flushed = device.submit(end_ns, &request(Op::Fsync, 0, 0));
    close((flushed.done_ns - end_ns) as f64, 4e9, 0.01);
}

#[test]
fn flush_empties_the_write_buffer_once() {
    let mut device = device("fsync_us=100,buffer=1m,flush_bw=100m");
    device.submit(0, &request(Op::Write, 0, 524_288));
    let first = device.submit(SECOND, &request(Op::Fsync, 0, 0)).done_ns - SECOND;
    assert_eq!(first, 100_000 + 5_000_000);
    let second = device.submit(2 * SECOND, &request(Op::Fsync, 0, 0)).done_ns - 2 * SECOND;
    assert_eq!(second, 100_000);
}

#[test]
fn stalls_take_their_configured_time() {
    let mut by_bytes = device("write_us=100,stall_bytes=1m,stall_us=10ms");
    let mut at = 0;
    let mut write = || {
        at += 4096;
        request(Op::Write, at - 4096, 4096)
    };
    let found = closed_loop(&mut by_bytes, 1, 100 * SECOND, &mut write);
    // 256 writes of 100 us each, then a stall of 10 ms.
    close(found.rate(0, 100 * SECOND), 256.0 / (0.0256 + 0.01), 0.001);

    let mut periodic = device("write_us=100,stall_period_us=1s,stall_us=250ms");
    let found = closed_loop(&mut periodic, 1, 100 * SECOND, &mut write);
    close(found.rate(SECOND, 100 * SECOND), 7500.0, 0.001);
    let longest = found.done_ns.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(
        longest.is_some_and(|gap| (250_000_000..251_000_000).contains(&gap)),
        "{longest:?}"
    );
}

#[test]
fn noise_varies_the_rate_per_second() {
    for text in [
        "read_us=2ms,noise=0.03,noise_rho=0.5",
        "read_us=1,parallel=8,cap_iops=500,noise=0.03,noise_rho=0.5",
    ] {
        let seconds = 2000;
        let mut device = device(text);
        let found = closed_loop(
            &mut device,
            4,
            seconds * SECOND,
            random_reads(4096, 1 << 30),
        );
        let mut counts = vec![0.0; seconds as usize];
        for done in &found.done_ns {
            if let Some(count) = counts.get_mut((done / SECOND) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / seconds as f64;
        let variance = counts
            .iter()
            .map(|count| (count - mean) * (count - mean))
            .sum::<f64>()
            / seconds as f64;
        // sqrt(3 / 2000) of 3 % is 0.12 %.
        close(mean, 500.0, 0.005);
        close(libm::sqrt(variance) / mean, 0.03, 0.06);
    }
}

#[test]
fn fresh_device_writes_faster_until_fully_written() {
    let mut device = device("write_us=100,fresh=4,fresh_bytes=64m");
    let mut at = 0;
    let found = closed_loop(&mut device, 1, 60 * SECOND, || {
        at += 4096;
        request(Op::Write, at - 4096, 4096)
    });
    assert!(found.rate(0, SECOND / 20) > 38_000.0);
    close(found.rate(50 * SECOND, 60 * SECOND), 10_000.0, 0.001);
}

#[test]
fn members_have_separate_queues() {
    let text = "read_us=100,write_us=100,members=4,stripe=64k,replicas=2";
    let mut idle = device(text);
    let mut ends =
        [0, 16 << 12, 17 << 12].map(|at| idle.submit(0, &request(Op::Read, at, 4096)).done_ns);
    ends.sort_unstable();
    assert_eq!(
        ends,
        [100_000, 100_000, 200_000],
        "the last two lie on one member"
    );
    let random = random_reads(4096, 1 << 30);
    let found = closed_loop(&mut device(text), 256, 50 * SECOND, random).rate(SECOND, 50 * SECOND);
    let limit = spec(text).max_iops(4096, Direction::Read).unwrap();
    assert_eq!(limit, 40_000.0);
    assert!(found <= limit && found > 0.97 * limit, "{found}");
    assert_eq!(spec(text).max_iops(4096, Direction::Write), Some(20_000.0));
    // All members serve a large I/O in parallel.
    assert_eq!(
        device("read_us=0,read_bw=100m,members=4,stripe=64k")
            .submit(0, &request(Op::Read, 0, 262_144))
            .done_ns,
        625_000
    );
}

#[test]
fn io_beyond_capacity_is_short_or_fails() {
    let mut device = device("capacity=1m");
    let end = 1 << 20;
    assert_eq!(
        device
            .submit(0, &request(Op::Write, end - 4096, 4096))
            .result,
        4096
    );
    assert_eq!(
        device
            .submit(0, &request(Op::Write, end - 4096, 8192))
            .result,
        4096
    );
    assert_eq!(
        device.submit(0, &request(Op::Write, end, 4096)).result,
        -libc::ENOSPC
    );
    assert_eq!(device.submit(0, &request(Op::Read, end, 4096)).result, 0);
}

#[test]
fn writes_to_one_file_wait_for_its_lock() {
    let mut device = device("write_us=10,parallel=8,lock_us=1ms");
    let found = closed_loop(&mut device, 8, 10 * SECOND, || request(Op::Write, 0, 4096));
    close(found.rate(SECOND, 10 * SECOND), 1000.0, 0.001);
    let reads = random_reads(4096, 1 << 30);
    assert_eq!(
        closed_loop(
            &mut self::device("read_us=10,lock_us=1ms"),
            1,
            SECOND,
            reads
        )
        .done_ns[1],
        20_000
    );
}

#[test]
fn same_seed_gives_the_same_completions() {
    let run = |text: &str| {
        let mut device = device(text);
        closed_loop(&mut device, 16, SECOND / 10, random_reads(4096, 1 << 30)).done_ns
    };
    for preset in presets::PRESETS {
        assert_eq!(run(preset.name), run(preset.name), "{}", preset.name);
    }
    assert_ne!(run("nvme,seed=1"), run("nvme,seed=2"));
    assert_eq!(
        run("read_us=10,read_dist=lognormal:0.5")[..4],
        [7_362, 24_329, 34_255, 40_878],
        "a stored result could no longer be repeated"
    );
}
