//! A page cache of known size, measured by a sweep over the working set.

use iosonde_e2e::device::{Zram, number};
use iosonde_e2e::throttle::{Caps, Throttle};
use iosonde_e2e::{Scratch, ensure, one_good_try, require};

use super::{MIB, json, run};

/// Memory limit in bytes of the program with its page cache.
const MEMORY: u64 = 64 << 20;
/// Rate in bytes per second of the device below the page cache.
const DEVICE: u64 = 96 << 20;
/// Bytes of each read.
const BLOCK: u64 = 64 << 10;

/// Misses are slow because of the throttle. Hits are copies in memory by a program with real-time
/// priority, which pauses between them, as such a program must. The throttle credits pauses and
/// hits to the program, so the cache appears a little larger.
#[test]
fn page_cache_of_control_group_is_measured() {
    require!(Root, Zram, Throttle, MemoryLimit);
    let scratch = Scratch::alone();
    let disk = Zram::new(256 * MIB);
    let caps = Caps {
        read_bytes: Some(DEVICE),
        ..Caps::default()
    };
    let throttle = Throttle::new(&number(&disk.path()), caps);
    let memory = Throttle::of_memory(MEMORY);
    let line = format!(
        "sweep {} --working-set 16m,32m,96m,128m,256m --direct 0 --bs {BLOCK} --thinktime 10 \
         --runtime 1 --warm-up 12 --format json",
        disk.path().display()
    );
    one_good_try(|| {
        let program = run(&scratch, &line).throttled(&throttle);
        let done = program.throttled(&memory).urgent().ok();
        let document = json(&done.stdout);
        let answer = &document["sweep"]["caches"][0]["answer"];
        let mean = |figure: &str| answer["found"][figure]["mean"].as_f64().unwrap_or(0.0);
        let share = mean("size_bytes") / MEMORY as f64;
        let miss = mean("miss_ns") / (BLOCK as f64 / DEVICE as f64 * 1e9);
        let is_as_known = (0.75..=1.2).contains(&share) && (0.75..=1.25).contains(&miss);
        let is_distinguished = mean("hit_ns") * 4.0 < mean("miss_ns");
        ensure(is_as_known && is_distinguished, || {
            format!("{answer}: {share} of the memory; a miss takes {miss} of what it must")
        })
    });
}
