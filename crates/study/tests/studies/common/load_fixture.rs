//! Options that the tests of load studies share.

use iosonde_study::load::{Arrivals, LoadOptions, LoadPattern, Mix};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// Random reads of 4 KiB on 64 MiB, with 1 s of ramp and 5 s of measured time for each rate.
pub(crate) fn load_options() -> LoadOptions {
    LoadOptions {
        pattern: LoadPattern {
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
