//! Time series of the devices and the machine during a run.
//!
//! The slices are those of [`RunResult::intervals`](crate::run::RunResult::intervals). Figures are
//! rounded to hundredths, as `sar` shows them.

use crate::device_requests::DeviceRequests;
use crate::histogram::{read_leb128, write_leb128};
use crate::network::NetworkRates;
use crate::spill_list::{BlockItem, SpillList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Time series of the machine during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineSeries {
    /// Slices in order of time.
    pub slices: SpillList<MachineSlice>,
    /// Figures that this machine does not report, each with the reason.
    pub missing: Vec<String>,
    /// Idle share of each processor during the jobs in per cent, by number. Empty if simulated.
    #[serde(default)]
    pub idle_percent: BTreeMap<u32, f64>,
}

/// Activity of the machine in one slice of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineSlice {
    /// Start of the slice, relative to the start of the run.
    pub start_ns: u64,
    /// Length of the slice.
    pub length_ns: u64,
    /// Devices that hold the run's files, by kernel name.
    pub devices: BTreeMap<String, DeviceRates>,
    /// The processors of the machine.
    pub cpu: Option<CpuShares>,
    /// Processors used by this process, on average: CPU time divided by time, e.g. 1.5.
    pub process_cpus: Option<f64>,
    /// Pressure stall information (PSI) of the machine.
    pub pressure: Option<Pressures>,
    /// Network interfaces, TCP and storage protocols. `None` if `/proc/net/dev` cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkRates>,
    /// Requests of each active device by kind. Only in samples for `iosonde watch`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, DeviceRequests>,
}

/// Encoded as length and JSON: there is one slice per second, and device names are text.
impl BlockItem for MachineSlice {
    fn encode(&self, bytes: &mut Vec<u8>) {
        let text = serde_json::to_vec(self).unwrap_or_default();
        write_leb128(bytes, text.len() as u64);
        bytes.extend(text);
    }

    fn decode(bytes: &mut &[u8]) -> Option<MachineSlice> {
        let length = usize::try_from(read_leb128(bytes)?).ok()?;
        let (text, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        serde_json::from_slice(text).ok()
    }
}

/// Columns of `sar -d` for one device and one slice of time, by sysstat's formulas.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceRates {
    /// Requests per second: reads, writes and discards.
    pub tps: f64,
    /// KiB read per second (`rkB/s`).
    pub read_kib_s: f64,
    /// KiB written per second (`wkB/s`).
    pub write_kib_s: f64,
    /// KiB discarded per second (`dkB/s`).
    pub discard_kib_s: f64,
    /// Mean request size in KiB (`areq-sz`).
    pub request_kib: f64,
    /// Mean number of requests in flight (`aqu-sz`).
    pub queue: f64,
    /// Mean time per request in milliseconds, including the time in the queue (`await`).
    pub await_ms: f64,
    /// Share of the time in which requests were in flight, in per cent (`%util`).
    pub util_percent: f64,
}

impl DeviceRates {
    /// Returns the columns in the order of `sar -d`.
    pub fn columns(&self) -> [f64; 8] {
        [
            self.tps,
            self.read_kib_s,
            self.write_kib_s,
            self.discard_kib_s,
            self.request_kib,
            self.queue,
            self.await_ms,
            self.util_percent,
        ]
    }

    /// Returns the columns rounded to hundredths.
    pub fn rounded(self) -> Self {
        let [
            tps,
            read_kib_s,
            write_kib_s,
            discard_kib_s,
            request_kib,
            queue,
            await_ms,
            util_percent,
        ] = self.columns().map(hundredths);
        Self {
            tps,
            read_kib_s,
            write_kib_s,
            discard_kib_s,
            request_kib,
            queue,
            await_ms,
            util_percent,
        }
    }
}

/// Use of the machine's processors, in per cent of their total time. The rest is idle time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CpuShares {
    /// Time in user mode, processes with a positive nice value included.
    pub user: f64,
    /// Time in the kernel, interrupts included.
    pub system: f64,
    /// Idle time while I/O was in flight.
    pub iowait: f64,
    /// Time that the hypervisor withheld although a process was runnable.
    pub steal: f64,
}

/// Pressure stall information (PSI) by resource: shares of the time in which tasks waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Pressures {
    /// Tasks waited for I/O.
    pub io: Option<Pressure>,
    /// Tasks waited for a processor.
    pub cpu: Option<Pressure>,
    /// Tasks waited for memory.
    pub memory: Option<Pressure>,
}

/// PSI of one resource, in per cent of the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Pressure {
    /// At least one task waited.
    pub some: f64,
    /// All tasks waited.
    pub full: f64,
}

/// Rounds to hundredths. A value that is not finite becomes 0.
pub fn hundredths(value: f64) -> f64 {
    if value.is_finite() {
        (value * 100.0).round() / 100.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_long_run_come_back_as_they_were() {
        let slice = |number: u32| {
            let rates = DeviceRates {
                tps: hundredths(f64::from(number) / 3.0),
                await_ms: 0.1 + 0.2,
                ..DeviceRates::default()
            };
            MachineSlice {
                start_ns: u64::from(number) * 1_000_000_007,
                length_ns: 1_000_000_000,
                devices: [("nvme0n1".to_owned(), rates)].into(),
                process_cpus: number.is_multiple_of(2).then_some(1.5),
                ..MachineSlice::default()
            }
        };
        // More slices than the list keeps unencoded.
        let all: Vec<MachineSlice> = (0..1500).map(slice).collect();
        let list: SpillList<MachineSlice> = all.clone().into();
        assert!(list.iter().eq(all.iter().map(std::borrow::Cow::Borrowed)));
        let mut bytes = Vec::new();
        slice(7).encode(&mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(
                MachineSlice::decode(&mut &bytes[..length]),
                None,
                "half a slice"
            );
        }
    }
}
