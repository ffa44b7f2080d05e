//! The columns of `sar -d`.

use super::diskstats::{DiskCounters, RequestCounters};
use iosonde_result::machine::DeviceRates;
use std::time::Duration;

/// The columns for the activity of a device in `elapsed`.
pub fn rates(moved: &DiskCounters, elapsed: Duration) -> DeviceRates {
    let seconds = elapsed.as_secs_f64();
    if seconds <= 0.0 {
        return DeviceRates::default();
    }
    let all = [&moved.reads, &moved.writes, &moved.discards];
    let sum = |field: fn(&RequestCounters) -> u64| {
        all.iter().map(|requests| field(requests)).sum::<u64>() as f64
    };
    let ios = sum(|requests| requests.ios);
    let each = |total: f64| if ios > 0.0 { total / ios } else { 0.0 };
    let kib_s = |requests: &RequestCounters| requests.sectors as f64 / 2.0 / seconds;
    DeviceRates {
        tps: ios / seconds,
        read_kib_s: kib_s(&moved.reads),
        write_kib_s: kib_s(&moved.writes),
        discard_kib_s: kib_s(&moved.discards),
        request_kib: each(sum(|requests| requests.sectors)) / 2.0,
        queue: moved.in_queue_ms as f64 / 1000.0 / seconds,
        await_ms: each(sum(|requests| requests.ticks_ms)),
        util_percent: moved.busy_percent(elapsed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters read by sysstat's own collector (sadc 12.6.1) every 2 s: tps; sectors read, written
    /// and discarded; milliseconds of each; busy; in queue.
    const SADC_READINGS: [[u64; 9]; 3] = [
        [
            12_971_311,
            146_531_581,
            222_751_714,
            32_121_824,
            4_111_828,
            5_940_242,
            18_281,
            209_712,
            10_073_459,
        ],
        [
            12_975_771,
            146_614_853,
            222_832_962,
            32_333_400,
            4_112_395,
            5_940_341,
            18_364,
            210_284,
            10_074_210,
        ],
        [
            12_977_918,
            146_621_901,
            222_910_586,
            124_174_640,
            4_112_433,
            5_940_581,
            18_464,
            210_344,
            10_074_588,
        ],
    ];

    /// The output of `sar -d` for these readings.
    const SAR_COLUMNS: [[f64; 8]; 2] = [
        [
            2230.00, 20818.00, 20312.00, 52894.00, 42.16, 0.38, 0.17, 28.60,
        ],
        [
            1073.50,
            1762.00,
            19406.00,
            22_960_310.00,
            21407.99,
            0.19,
            0.18,
            3.00,
        ],
    ];

    /// The counters of a reading. The result of sar does not depend on the directions of the
    /// requests.
    fn counters(r: [u64; 9]) -> DiskCounters {
        DiskCounters {
            reads: RequestCounters {
                ios: r[0],
                merges: 0,
                sectors: r[1],
                ticks_ms: r[4],
            },
            writes: RequestCounters {
                ios: 0,
                merges: 0,
                sectors: r[2],
                ticks_ms: r[5],
            },
            discards: RequestCounters {
                ios: 0,
                merges: 0,
                sectors: r[3],
                ticks_ms: r[6],
            },
            busy_ms: r[7],
            in_queue_ms: r[8],
            ..DiskCounters::default()
        }
    }

    #[test]
    fn disk_columns_match_those_of_sar() {
        for (pair, expected) in SADC_READINGS.windows(2).zip(SAR_COLUMNS) {
            let moved = counters(pair[1]).since(&counters(pair[0]));
            let figures = rates(&moved, Duration::from_secs(2)).columns();
            for (figure, expected) in figures.iter().zip(expected) {
                assert!(
                    (figure - expected).abs() <= 0.005_001,
                    "{figures:?} is not {expected}"
                );
            }
        }
    }
}
