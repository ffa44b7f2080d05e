use super::*;
use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{BytesOrPercent, Engine, Job, Plan, ReadWrite, ReadWriteMode};
use iosonde_result::interval::Interval;
use iosonde_result::machine::{CpuShares, DeviceRates, MachineSlice, Pressure, Pressures};
use iosonde_result::network::{
    InterfaceRates, NetworkRates, ProtocolRates, StorageProtocol, TcpRates,
};
use iosonde_result::session::Session;

const UTF8: TextStyle = TextStyle {
    utf8: true,
    color: false,
};

/// Eight simulated seconds, the first of them a ramp, with a disk whose latency grows.
fn result() -> RunResult {
    let mut job = Job::new("job");
    job.io.engine = Engine::Sim;
    job.io.sim = Some("nvme,noise=0.03".to_owned());
    job.io.iodepth = 4;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite {
        mode: ReadWriteMode::ReadWrite,
        random: true,
    };
    job.schedule.time_based = true;
    job.schedule.runtime_ns = 8_000_000_000;
    let plan = Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    };
    let mut result = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
    result
        .intervals
        .change_each(|index, interval| interval.ramp = index == 0);
    let slices = result.intervals.iter().enumerate();
    result.series.slices = slices
        .map(|(index, interval)| slice(index as f64, interval.start_ns, interval.length_ns))
        .collect();
    result
}

fn slice(number: f64, start_ns: u64, length_ns: u64) -> MachineSlice {
    let disk = DeviceRates {
        tps: 1000.0,
        read_kib_s: 2000.0,
        write_kib_s: 2000.0,
        request_kib: 4.0,
        queue: 3.5,
        await_ms: 0.5 * number,
        util_percent: 10.0 * number,
        ..DeviceRates::default()
    };
    MachineSlice {
        start_ns,
        length_ns,
        devices: [("nvme0n1".to_owned(), disk)].into(),
        cpu: Some(CpuShares {
            user: 20.0,
            system: 10.0,
            iowait: 5.0,
            steal: 0.0,
        }),
        process_cpus: Some(0.25),
        pressure: Some(Pressures {
            io: Some(Pressure {
                some: 12.5,
                full: 12.0,
            }),
            ..Pressures::default()
        }),
        ..MachineSlice::default()
    }
}

#[test]
fn time_series_table_fits_80_columns() {
    let table = table(&result(), UTF8);
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
    insta::assert_snapshot!("table", table);
}

#[test]
fn time_series_table_without_utf8_is_ascii() {
    let table = table(&result(), TextStyle::PLAIN);
    assert!(table.is_ascii(), "{table}");
    let busy = table.lines().find(|line| line.contains("CPUs busy"));
    assert!(busy.unwrap().contains(&"=".repeat(WIDTH)), "{table}");
}

#[test]
fn narrow_terminal_shows_short_sparklines_and_the_most() {
    let mut result = result();
    // A long name.
    result.series.slices.change_each(|_, slice| {
        let disk = slice.devices.remove("nvme0n1").unwrap_or_default();
        let disk = DeviceRates {
            await_ms: 999.0,
            ..disk
        };
        slice.devices.insert("nvme10n1".to_owned(), disk);
    });
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        let table = table(&result, UTF8);
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest.unwrap() <= columns, "{table}");
        let line = |name: &str| table.lines().find(|line| line.contains(name)).unwrap();
        assert!(line("over time").ends_with(" intervals)"), "{table}");
        assert!(table.lines().nth(1).unwrap().ends_with(" most"), "{table}");
        assert!(line("nvme10n1 await").ends_with(" 999 ms"), "{table}");
        assert!(line("read bandwidth").contains("MiB/s"), "{table}");
    }
    crate::text_table::set_columns(80);
}

#[test]
fn wide_terminal_shows_more_points_of_a_series() {
    let values: Vec<(f64, u64)> = (0..55).map(|index| (f64::from(index), 1)).collect();
    let bars = |values: &[(f64, u64)]| {
        let line = sparkline_of_intervals(values, Quantity::Iops.spark_scale(), UTF8);
        line.chars().count()
    };
    assert_eq!((bars(&values), bars(&values[..9])), (19, 9));
    crate::text_table::set_columns(120);
    let wide = (bars(&values), bars(&values[..9]));
    let table = table(&result(), UTF8);
    crate::text_table::set_columns(80);
    assert_eq!(wide, (55, 9), "each value has a bar");
    // Each bar of the row is the mean of two of the 79 intervals.
    let row = table.lines().find(|line| line.contains("read IOPS"));
    let is_bar = |letter: &char| ('▁'..='▇').contains(letter);
    assert_eq!(row.unwrap().chars().filter(is_bar).count(), 40, "{table}");
    let widest = table.lines().map(|line| line.chars().count()).max();
    assert!(widest.unwrap() <= 120, "{table}");
}

#[test]
fn short_run_has_no_time_series_table() {
    let mut result = result();
    result.intervals.truncate(3);
    assert_eq!(table(&result, UTF8), "", "one of the three is a ramp");
    result.intervals.clear();
    assert_eq!(table(&result, UTF8), "");
}

#[test]
fn series_csv_holds_every_interval() {
    let result = result();
    let text = intervals_csv(&[("random, read", &result)]);
    insta::assert_snapshot!("csv", text);
    let mut simulated = result.clone();
    simulated.series.slices.clear();
    let both = intervals_csv(&[("one", &result), ("two", &simulated)]);
    let lines: Vec<&str> = both.lines().collect();
    assert_eq!(lines.len(), 1 + 2 * result.intervals.len());
    let fields = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| fields(line) == fields(lines[0])));
    assert!(
        lines.last().unwrap().ends_with(",,,,"),
        "nothing is known of its machine"
    );
}

#[test]
fn sparkline_merges_long_runs_and_keeps_shares_level() {
    // One point of a share is no change, but it is half of the maximum.
    let value = |index: u32| f64::from(1 + index / 1800);
    let values: Vec<(f64, u64)> = (0..3600).map(|i| (value(i), 1_000_000_000)).collect();
    let line = sparkline_of_intervals(&values, Quantity::Percent.spark_scale(), UTF8);
    assert!(line.chars().count() <= WIDTH);
    assert!(line.chars().all(|bar| bar == '▄'), "{line}");
    let line = sparkline_of_intervals(&[(0.0, 1), (3.0, 1)], Quantity::Iops.spark_scale(), UTF8);
    assert_eq!(line, "▁▇");
    let line = sparkline_of_intervals(&[(0.0, 1)], Quantity::Iops.spark_scale(), UTF8);
    assert_eq!(line, "▁");
}

#[test]
fn csv_has_columns_of_the_network() {
    let rates = InterfaceRates {
        received_bytes_s: 1000.0,
        ..InterfaceRates::default()
    };
    let network = NetworkRates {
        interfaces: [("eth0".to_owned(), rates)].into(),
        tcp: Some(TcpRates {
            retransmits_s: 2.5,
            ..TcpRates::default()
        }),
        protocols: vec![ProtocolRates {
            protocol: StorageProtocol::Nfs,
            connections: 1,
            received_bytes_s: 900.0,
            sent_bytes_s: 0.0,
            retransmits_s: 0.0,
        }],
    };
    let mut result = result();
    result.series.slices = vec![MachineSlice {
        network: Some(network.clone()),
        ..slice(1.0, 0, 1_000_000_000)
    }]
    .into();
    let all = network_columns::network_columns(&[&result]);
    let value = |name: &str| {
        let column = all.iter().find(|column| column.name == name).unwrap();
        let slice = MachineSlice {
            network: Some(network.clone()),
            ..MachineSlice::default()
        };
        (column.value)(&Interval::default(), Some(&slice))
    };
    assert_eq!(value("eth0 received_bytes_per_s"), Some(1000.0));
    assert_eq!(value("eth0 link_percent"), None, "unknown speed");
    assert_eq!(value("tcp_retransmits_per_s"), Some(2.5));
    assert_eq!(value("NFS received_bytes_per_s"), Some(900.0));
}
