//! What the tests of load studies have in common.

use iosonde_study::load::{Arrivals, LoadOptions, Mix, Pattern};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Steps of 4 KiB random reads, of a second of ramp and five that count, on 64 MiB.
pub(crate) fn load_options() -> LoadOptions {
    LoadOptions {
        pattern: Pattern {
            block_bytes: 4096,
            random: true,
        },
        mix: Mix::READ,
        arrivals: Arrivals::Poisson,
        rates: Vec::new(),
        objectives: Vec::new(),
        matrix: None,
        runtime_ns: 5 * SECOND_NS,
        ramp_ns: SECOND_NS,
        numjobs: 1,
        parties: 1,
        iodepth: 1024,
        size_bytes: Some(64 << 20),
        direct: true,
        seed: 1,
    }
}
