//! Disk activity of one node during a run on other machines.

use crate::machine::{DeviceRates, MachineSeries};
use crate::network::{NetworkLoad, NetworkRates};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Disk activity of one node during a run on other machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeResult {
    /// Name of the node.
    pub node: String,
    /// Reason for watching the node, in a few words.
    pub why: String,
    /// Whether the node is known to serve the volume.
    #[serde(default)]
    pub serves: bool,
    /// Time series of all disks of the node.
    pub series: MachineSeries,
}

impl NodeResult {
    /// Returns the activity of each disk, averaged over the whole time.
    pub fn averages(&self) -> BTreeMap<String, DeviceRates> {
        let mut sums: BTreeMap<String, ([f64; 8], f64)> = BTreeMap::new();
        for slice in &self.series.slices {
            let seconds = slice.length_ns as f64 / 1e9;
            for (name, rates) in &slice.devices {
                let (sum, of_requests) = sums.entry(name.clone()).or_default();
                let requests = rates.tps * seconds;
                let columns = rates.columns();
                // Request size and await are weighted by requests, all other columns by time.
                let weights = [
                    seconds, seconds, seconds, seconds, requests, seconds, requests, seconds,
                ];
                for (sum, (column, weight)) in sum.iter_mut().zip(columns.into_iter().zip(weights))
                {
                    *sum += column * weight;
                }
                *of_requests += requests;
            }
        }
        let slices = self.series.slices.iter();
        let seconds: f64 = slices.map(|slice| slice.length_ns as f64 / 1e9).sum();
        let mean = |(name, (sum, requests)): (String, ([f64; 8], f64))| {
            let of = |index: usize| match index {
                4 | 6 if requests > 0.0 => sum[index] / requests,
                4 | 6 => 0.0,
                _ => sum[index] / seconds.max(1e-9),
            };
            let rates = DeviceRates {
                tps: of(0),
                read_kib_s: of(1),
                write_kib_s: of(2),
                discard_kib_s: of(3),
                request_kib: of(4),
                queue: of(5),
                await_ms: of(6),
                util_percent: of(7),
            };
            (name, rates.rounded())
        };
        sums.into_iter().map(mean).collect()
    }

    /// Returns the busiest network interface, averaged over the whole time. `None` if the watcher
    /// did not see the interfaces of the node.
    pub fn network_load(&self) -> Option<NetworkLoad> {
        self.network_average()?.busiest()
    }

    /// Returns the traffic of the network, averaged over the whole time.
    pub(crate) fn network_average(&self) -> Option<NetworkRates> {
        let slices = self.series.slices.iter();
        let known = slices.filter_map(|slice| Some((slice.length_ns, slice.network.clone()?)));
        NetworkRates::mean(known)
    }

    /// Returns the disk with the highest utilisation. `None` if no disk was active.
    pub fn busiest(&self) -> Option<(String, DeviceRates)> {
        let averages = self.averages().into_iter();
        averages.max_by(|(_, a), (_, b)| a.util_percent.total_cmp(&b.util_percent))
    }
}
