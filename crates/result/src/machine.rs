//! What the devices and the machine did during a run, slice by slice.
//!
//! The slices are those of [`RunResult::intervals`](crate::run::RunResult::intervals). Figures are rounded to hundredths,
//! as `sar` shows them.

use crate::histogram::{read_leb128, write_leb128};
use crate::spill_list::{BlockItem, SpillList};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The machine over the time of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineSeries {
    /// In the order of time.
    pub slices: SpillList<MachineSlice>,
    /// What this machine does not tell, each with the reason.
    pub missing: Vec<String>,
    /// Share of the time, from the first group's start to the end of the run, in which each processor of the machine had
    /// nothing to run, in per cent by its number. Empty for a simulated run.
    #[serde(default)]
    pub idle_percent: BTreeMap<u32, f64>,
}

/// The machine over one slice of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct MachineSlice {
    /// Start, since the start of the run.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// The devices under the run's files, by kernel name.
    pub devices: BTreeMap<String, DeviceRates>,
    /// The processors of the machine.
    pub cpu: Option<CpuShares>,
    /// Processors' worth of time that this process used, e.g. 1.5.
    pub process_cpus: Option<f64>,
    /// Shares of the time in which processes waited.
    pub pressure: Option<Pressures>,
}

/// As JSON behind its length: there is one each second, and devices have names.
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

/// The columns of `sar -d` for one device and one slice of time, by sysstat's formulas.
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
    /// Mean request in KiB (`areq-sz`).
    pub request_kib: f64,
    /// Mean number of requests in flight (`aqu-sz`).
    pub queue: f64,
    /// Mean time of a request in milliseconds, its time in the queue included (`await`).
    pub await_ms: f64,
    /// Share of the time with requests in flight, in per cent (`%util`).
    pub util_percent: f64,
}

impl DeviceRates {
    /// The columns in the order of `sar -d`.
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

    /// The same in hundredths.
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

/// How the time of a machine's processors was spent, in per cent of all of it. The rest was idle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CpuShares {
    /// Programs, those with a low priority included.
    pub user: f64,
    /// The kernel, interrupts included.
    pub system: f64,
    /// Idle while I/O was in flight.
    pub iowait: f64,
    /// Taken by the hypervisor while there was work.
    pub steal: f64,
}

/// Pressure stall information: shares of the time in which processes waited for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Pressures {
    /// Waiting for I/O.
    pub io: Option<Pressure>,
    /// Waiting for a processor.
    pub cpu: Option<Pressure>,
    /// Waiting for memory.
    pub memory: Option<Pressure>,
}

/// Pressure on one resource, in per cent of the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct Pressure {
    /// Somebody waited.
    pub some: f64,
    /// Everybody waited.
    pub full: f64,
}

/// Rounds to hundredths; what is not a number becomes 0.
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
        // More than are held as they are.
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
