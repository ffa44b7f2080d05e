//! `iosonde watch --format json`: one object per interval.

use super::watch_columns::{find_column, sar_rates};
use super::watch_sample::{WatchSample, WatchedDevice, WatchedMachine};
use crate::args::WatchSection;
use iosonde_result::device_requests::DeviceRequests;
use iosonde_result::machine::hundredths;
use serde_json::{Map, Value, json};

/// Keys of a kind of request and the columns that they hold.
const KIND_COLUMNS: [(&str, [(&str, &str); 6]); 3] = [
    (
        "reads",
        [
            ("per_s", "r/s"),
            ("kib_s", "rkB/s"),
            ("merges_s", "rrqm/s"),
            ("merged_percent", "%rrqm"),
            ("await_ms", "r_await"),
            ("request_kib", "rareq-sz"),
        ],
    ),
    (
        "writes",
        [
            ("per_s", "w/s"),
            ("kib_s", "wkB/s"),
            ("merges_s", "wrqm/s"),
            ("merged_percent", "%wrqm"),
            ("await_ms", "w_await"),
            ("request_kib", "wareq-sz"),
        ],
    ),
    (
        "discards",
        [
            ("per_s", "d/s"),
            ("kib_s", "dkB/s"),
            ("merges_s", "drqm/s"),
            ("merged_percent", "%drqm"),
            ("await_ms", "d_await"),
            ("request_kib", "dareq-sz"),
        ],
    ),
];
const FLUSH_COLUMNS: [(&str, &str); 2] = [("per_s", "f/s"), ("await_ms", "f_await")];

/// Returns the line of a sample, or of the averages. `at` is `None` for averages.
pub(super) fn sample_line(
    sample: &WatchSample,
    at: Option<&str>,
    sections: &[WatchSection],
) -> String {
    let mut object = Map::new();
    match at {
        Some(at) => object.insert("at".to_owned(), json!(at)),
        None => object.insert("average".to_owned(), json!(true)),
    };
    match &sample.machines[..] {
        [only] if only.node.is_none() => object.extend(machine_keys(only, sections)),
        nodes => {
            let node = |machine: &WatchedMachine| {
                let name = machine.node.clone().unwrap_or_default();
                (name, Value::Object(machine_keys(machine, sections)))
            };
            let nodes: Map<String, Value> = nodes.iter().map(node).collect();
            object.insert("nodes".to_owned(), Value::Object(nodes));
        }
    }
    format!("{}\n", Value::Object(object))
}

fn machine_keys(machine: &WatchedMachine, sections: &[WatchSection]) -> Map<String, Value> {
    let seconds = machine.seconds();
    let mut keys = Map::new();
    let mut insert = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    insert("elapsed_s", json!((seconds * 1e6).round() / 1e6));
    for section in sections {
        match section {
            WatchSection::Disks => {
                let device = |device: &WatchedDevice| {
                    let figures = device_keys(&device.requests, seconds);
                    (device.name.clone(), Value::Object(figures))
                };
                let devices = machine.devices.iter().map(device).collect();
                insert("devices", Value::Object(devices))
            }
            WatchSection::Cpu => insert("cpu", json!(machine.cpu)),
            WatchSection::Psi => insert("pressure", json!(machine.pressure)),
            WatchSection::Cgroup => insert("throttled_percent", json!(machine.throttled_percent)),
            WatchSection::Net => insert("network", json!(machine.network)),
            WatchSection::Nfs => insert("nfs", json!(machine.nfs)),
        };
    }
    keys
}

/// Returns the figures of a device. Kinds of requests that the kernel does not count are null.
fn device_keys(requests: &DeviceRequests, seconds: f64) -> Map<String, Value> {
    let rates = sar_rates(requests, seconds).rounded();
    let mut keys = match json!(rates) {
        Value::Object(keys) => keys,
        _ => Map::new(),
    };
    if requests.discards.is_none() {
        keys.insert("discard_kib_s".to_owned(), Value::Null);
    }
    for (kind, columns) in &KIND_COLUMNS {
        keys.insert((*kind).to_owned(), kind_value(columns, requests, seconds));
    }
    let flushes = kind_value(&FLUSH_COLUMNS, requests, seconds);
    keys.insert("flushes".to_owned(), flushes);
    keys
}

fn kind_value(columns: &[(&str, &str)], requests: &DeviceRequests, seconds: f64) -> Value {
    let figure = |(key, name): &(&str, &str)| {
        let value = find_column(name)?.value(requests, seconds)?;
        Some(((*key).to_owned(), json!(hundredths(value))))
    };
    let figures: Option<Map<String, Value>> = columns.iter().map(figure).collect();
    figures.map_or(Value::Null, Value::Object)
}

#[cfg(test)]
mod tests {
    use super::super::watch_sample::tests::sample;
    use super::*;

    fn parsed(line: &str) -> Value {
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn json_has_each_kind_of_request_and_null_for_missing_ones() {
        let disks = [WatchSection::Disks];
        let json = parsed(&sample_line(&sample(), Some("now"), &disks));
        assert_eq!(
            (&json["at"], &json["elapsed_s"]),
            (&json!("now"), &json!(1.0))
        );
        let device = &json["devices"]["nvme0n1"];
        assert_eq!(device["await_ms"], 0.37);
        assert_eq!(device["reads"]["per_s"], 97_543.0);
        assert_eq!(device["discards"]["kib_s"], 12.0);
        assert_eq!(device["flushes"], Value::Null);
        let old = &json["devices"]["sda"];
        assert_eq!(
            (&old["discards"], &old["discard_kib_s"]),
            (&Value::Null, &Value::Null)
        );
        assert!(json.get("pressure").is_none());
    }

    #[test]
    fn json_of_nodes_has_an_object_per_node() {
        let mut sample = sample();
        sample.machines[0].node = Some("n1".to_owned());
        let sections = [WatchSection::Psi, WatchSection::Cgroup];
        let json = parsed(&sample_line(&sample, None, &sections));
        assert_eq!(json["average"], true);
        let node = &json["nodes"]["n1"];
        assert_eq!(node["pressure"]["io"]["some"], 12.5);
        assert_eq!(node["throttled_percent"], 4.0);
        assert!(node.get("devices").is_none());
    }
}
