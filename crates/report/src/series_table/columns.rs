//! Columns of a time series: the quantities of each interval of a run.

use super::network_columns::network_columns;
use super::series_column::{Column, Quantity};
use iosonde_job::plan::Direction;
use iosonde_result::interval::Interval;
use iosonde_result::machine::{CpuShares, DeviceRates, Pressures};
use iosonde_result::run::RunResult;
use std::collections::BTreeSet;

/// Returns all columns of these runs: I/O, then each device, the machine, and the network.
pub(super) fn columns(results: &[&RunResult]) -> Vec<Column> {
    let mut all = io_columns(results);
    let slices = || results.iter().flat_map(|result| &result.series.slices);
    let mut devices = BTreeSet::new();
    for slice in slices() {
        let new = slice.devices.keys().filter(|name| !devices.contains(*name));
        let new: Vec<String> = new.cloned().collect();
        devices.extend(new);
    }
    for name in &devices {
        all.extend(device(name));
    }
    if slices().any(|slice| slice.cpu.is_some()) {
        all.extend(processors());
    }
    if slices().any(|slice| slice.pressure.is_some()) {
        all.extend(pressures());
    }
    all.extend(network_columns(results));
    all
}

fn io_columns(results: &[&RunResult]) -> Vec<Column> {
    let mut all = Vec::new();
    for direction in Direction::ALL {
        let mut intervals = results.iter().flat_map(|result| &result.intervals);
        if !intervals.any(|interval| interval.directions[direction].ios > 0) {
            continue;
        }
        let name = direction.name();
        all.push(Column {
            name: format!("{name}_iops"),
            title: format!("{name} IOPS"),
            quantity: Quantity::Iops,
            shown: true,
            of_run: true,
            value: Box::new(move |interval, _| {
                per_second(interval, interval.directions[direction].ios)
            }),
        });
        all.push(Column {
            name: format!("{name}_bytes_per_s"),
            title: format!("{name} bandwidth"),
            quantity: Quantity::BytesPerS,
            shown: true,
            of_run: true,
            value: Box::new(move |interval, _| {
                per_second(interval, interval.directions[direction].bytes)
            }),
        });
    }
    for (name, percent, shown) in [
        ("p50", 50.0, true),
        ("p99", 99.0, true),
        ("max", 100.0, false),
    ] {
        all.push(Column {
            name: format!("latency_{name}_ns"),
            title: format!("latency {name}"),
            quantity: Quantity::Ns,
            shown,
            of_run: true,
            value: Box::new(move |interval, _| {
                interval.latency.percentile(percent).map(|ns| ns as f64)
            }),
        });
    }
    all
}

fn per_second(interval: &Interval, count: u64) -> Option<f64> {
    (interval.length_ns > 0).then(|| count as f64 * 1e9 / interval.length_ns as f64)
}

type OfDevice = fn(&DeviceRates) -> f64;

/// Columns of `sar -d`, with its names in CSV.
fn device(device: &str) -> Vec<Column> {
    // Name in CSV, and title. The table omits a column without title.
    let columns: [(&str, &str, Quantity, OfDevice); 8] = [
        ("tps", "", Quantity::Iops, |rates| rates.tps),
        ("rkB/s", "", Quantity::Count, |rates| rates.read_kib_s),
        ("wkB/s", "", Quantity::Count, |rates| rates.write_kib_s),
        ("dkB/s", "", Quantity::Count, |rates| rates.discard_kib_s),
        ("areq-sz", "", Quantity::Count, |rates| rates.request_kib),
        ("aqu-sz", "in flight", Quantity::Count, |rates| rates.queue),
        ("await", "await", Quantity::Ms, |rates| rates.await_ms),
        ("%util", "busy", Quantity::Percent, |rates| {
            rates.util_percent
        }),
    ];
    let column = |(name, title, quantity, rate): (&str, &str, Quantity, OfDevice)| {
        let device = device.to_owned();
        Column {
            name: format!("{device} {name}"),
            title: format!("{device} {title}"),
            quantity,
            shown: !title.is_empty(),
            of_run: false,
            value: Box::new(move |_, slice| Some(rate(slice?.devices.get(&device)?))),
        }
    };
    columns.into_iter().map(column).collect()
}

type OfProcessors = fn(&CpuShares) -> f64;

fn processors() -> Vec<Column> {
    let columns: [(&str, &str, OfProcessors); 5] = [
        ("cpu_user_percent", "", |cpu| cpu.user),
        ("cpu_system_percent", "", |cpu| cpu.system),
        ("cpu_iowait_percent", "", |cpu| cpu.iowait),
        ("cpu_steal_percent", "", |cpu| cpu.steal),
        ("cpu_busy_percent", "CPUs busy", |cpu| {
            cpu.user + cpu.system + cpu.steal
        }),
    ];
    let mut all: Vec<Column> = columns
        .into_iter()
        .map(|(name, title, share)| Column {
            name: name.to_owned(),
            title: title.to_owned(),
            quantity: Quantity::Percent,
            shown: !title.is_empty(),
            of_run: false,
            value: Box::new(move |_, slice| Some(share(slice?.cpu.as_ref()?))),
        })
        .collect();
    all.push(Column {
        name: "iosonde_cpus".to_owned(),
        title: "CPUs of iosonde".to_owned(),
        quantity: Quantity::Count,
        shown: true,
        of_run: false,
        value: Box::new(|_, slice| slice?.process_cpus),
    });
    all
}

type OfPressures = fn(&Pressures) -> Option<f64>;

fn pressures() -> Vec<Column> {
    let columns: [(&str, &str, OfPressures); 6] = [
        ("io_some_percent", "waiting for I/O", |all| {
            Some(all.io?.some)
        }),
        ("io_full_percent", "", |all| Some(all.io?.full)),
        ("cpu_some_percent", "waiting for CPU", |all| {
            Some(all.cpu?.some)
        }),
        ("cpu_full_percent", "", |all| Some(all.cpu?.full)),
        ("memory_some_percent", "", |all| Some(all.memory?.some)),
        ("memory_full_percent", "", |all| Some(all.memory?.full)),
    ];
    columns
        .into_iter()
        .map(|(name, title, share)| Column {
            name: format!("pressure_{name}"),
            title: title.to_owned(),
            quantity: Quantity::Percent,
            shown: !title.is_empty(),
            of_run: false,
            value: Box::new(move |_, slice| share(slice?.pressure.as_ref()?)),
        })
        .collect()
}
