//! fio's logs: file names and line formats.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{SystemTime, UNIX_EPOCH};

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, one_good_try, require};

/// Each log's name with its number of lines and the number of columns per line.
fn logs(program: Program, line: &str) -> BTreeMap<String, (usize, Vec<usize>)> {
    let scratch = Scratch::shared();
    let _ = program.line(&scratch, line).ok();
    let names = scratch
        .files()
        .into_iter()
        .filter(|name| name.ends_with(".log"));
    names
        .map(|name| {
            let text = fs::read_to_string(scratch.work().join(&name)).expect("a log");
            let mut columns: Vec<usize> =
                text.lines().map(|line| line.split(", ").count()).collect();
            let lines = columns.len();
            columns.dedup();
            (name, (lines, columns))
        })
        .collect()
}

/// Logs with one line per I/O: names, lines and columns must be equal.
fn same_logs(line: &str) {
    assert_eq!(
        logs(Program::subject(), line),
        logs(Program::Fio, line),
        "{line}"
    );
}

/// Logs with one line per period: names and columns must be equal, and line counts similar, because
/// fio omits the incomplete last period.
fn like_logs(line: &str) {
    // A shared disk may complete no I/O in a period, which then has no line.
    one_good_try(|| {
        let (subject, reference) = (logs(Program::subject(), line), logs(Program::Fio, line));
        assert_eq!(
            subject.keys().collect::<Vec<_>>(),
            reference.keys().collect::<Vec<_>>(),
            "{line}"
        );
        for (name, (lines, columns)) in &reference {
            let ours = &subject[name];
            ensure(&ours.1 == columns, || {
                format!("{name} has {:?} columns, fio's {columns:?}", ours.1)
            })?;
            ensure(ours.0.abs_diff(*lines) <= 4, || {
                format!("{name} has {} lines, fio's {lines}: {line}", ours.0)
            })?;
        }
        Ok(())
    });
}

macro_rules! lines {
    ($check:ident: $($name:ident $line:literal)+) => {
        $(#[test] fn $name() { $check($line); })+
    };
}

lines! { same_logs:
    logs_with_given_names
        "--name=job --size=1m --rw=randrw --write_bw_log=b --write_lat_log=l --write_iops_log=i"
    log_with_offsets "--name=job --size=256k --rw=randread --write_lat_log=l --log_offset=1"
    log_per_clone "--name=job --size=256k --rw=read --numjobs=2 --write_bw_log=b"
    log_of_all_clones
        "--name=job --size=256k --rw=read --numjobs=2 --write_bw_log=b --per_job_logs=0"
    log_of_asynchronous_engine
        "--name=job --size=1m --rw=randread --ioengine=libaio --direct=1 --iodepth=4 \
         --write_lat_log=l"
    log_without_slat
        "--name=job --size=256k --rw=randread --ioengine=libaio --write_lat_log=l --disable_slat=1"
    log_without_latencies "--name=job --size=256k --rw=randread --write_lat_log=l --gtod_reduce=1"
    log_of_vsync_engine "--name=job --size=256k --rw=randread --ioengine=vsync --write_lat_log=l"
    log_without_clat "--name=job --size=256k --rw=randread --write_lat_log=l --disable_clat=1"
}

lines! { like_logs:
    log_of_averages
        "--name=job --size=4m --rw=randrw --time_based --runtime=2 --thinktime=200 \
         --write_bw_log=b --write_lat_log=l --write_iops_log=i --log_avg_msec=250"
    log_of_maximum_values
        "--name=job --size=4m --rw=randread --time_based --runtime=2 --thinktime=200 \
         --write_lat_log=l --log_avg_msec=500 --log_max_value=1"
    log_starts_after_ramp
        "--name=job --size=4m --rw=randread --rate_iops=50 --ramp_time=1 --time_based --runtime=1 \
         --write_lat_log=l"
    log_of_histograms
        "--name=job --size=4m --rw=randread --time_based --runtime=2 --thinktime=200 \
         --write_hist_log=h --log_hist_msec=500"
    log_of_coarse_histograms
        "--name=job --size=4m --rw=randread --time_based --runtime=2 --thinktime=200 \
         --write_hist_log=h --log_hist_msec=500 --log_hist_coarseness=4"
}

/// On the command line fio would take the next word as the name, so this needs a job file.
#[test]
fn log_options_without_name_create_logs() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        scratch.write(
            "job.fio",
            "[job]\nsize=64k\nwrite_bw_log\nwrite_lat_log\nwrite_iops_log\n",
        );
        let _ = program.line(&scratch, "job.fio").ok();
        let logs: Vec<String> = scratch
            .files()
            .into_iter()
            .filter(|name| name.ends_with(".log"))
            .collect();
        let expected =
            ["bw", "clat", "iops", "lat", "slat"].map(|kind| format!("job_{kind}.1.log"));
        assert_eq!(logs, expected, "{program:?}");
    }
}

#[test]
fn log_columns_are_time_value_direction_size_offset() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let _ = program
            .line(
                &scratch,
                "--name=job --size=64k --bs=8k --rw=write --write_lat_log=l --log_offset=1",
            )
            .ok();
        let text = fs::read_to_string(scratch.work().join("l_clat.1.log")).expect("a log");
        let rows: Vec<Vec<u64>> = text
            .lines()
            .map(|line| {
                line.split(", ")
                    .map(|field| field.parse().expect("a number"))
                    .collect()
            })
            .collect();
        let offsets: Vec<u64> = rows.iter().map(|row| row[4]).collect();
        assert_eq!(
            offsets,
            (0..8).map(|block| block * 8192).collect::<Vec<_>>(),
            "{program:?}"
        );
        assert!(
            rows.iter()
                .all(|row| row[0] < 10_000 && row[1] > 0 && row[2] == 1 && row[3] == 8192),
            "{program:?}: {text}"
        );
    }
}

#[test]
fn last_log_column_is_priority() {
    require!(Root);
    let job = "--name=job --size=16k --rw=read --ioengine=libaio --direct=1 --write_lat_log=l";
    for options in [
        "",
        "--prioclass=2 --prio=3",
        "--prioclass=2 --prio=3 --log_prio=1",
        "--prioclass=1 --prio=5",
        "--cmdprio_percentage=100 --cmdprio_class=1 --log_prio=1",
    ] {
        let [reference, subject] = Program::both().map(|program| {
            let scratch = Scratch::shared();
            let _ = program.line(&scratch, &format!("{job} {options}")).ok();
            let text = fs::read_to_string(scratch.work().join("l_clat.1.log")).expect("a log");
            let last = |line: &str| line.rsplit(", ").next().unwrap_or_default().to_owned();
            text.lines().map(last).collect::<Vec<_>>()
        });
        assert_eq!(subject, reference, "{options}");
    }
}

#[test]
fn bandwidth_of_single_io_is_in_kilobytes() {
    for program in Program::both() {
        let scratch = Scratch::shared();
        let line = "--name=job --size=64k --bs=4k --rw=read --write_bw_log=l --write_lat_log=l";
        let _ = program.line(&scratch, line).ok();
        let values = |kind: &str| -> Vec<u64> {
            let path = scratch.work().join(format!("l_{kind}.1.log"));
            let text = fs::read_to_string(path).expect("a log");
            let value = |line: &str| line.split(", ").nth(1).map(|field| field.parse());
            let values = text.lines().filter_map(value);
            values.map(|value| value.expect("a number")).collect()
        };
        let by_latency: Vec<u64> = values("clat").iter().map(|ns| 4_096_000_000 / ns).collect();
        assert_eq!(values("bw"), by_latency, "{program:?}");
        assert_eq!(by_latency.len(), 16);
    }
}

#[test]
fn unix_epoch_times_start_after_ramp() {
    let line = "--name=job --size=1m --rw=randread --rate_iops=50 --ramp_time=1 --time_based \
                --runtime=1 --write_lat_log=l --log_unix_epoch=1";
    for program in Program::both() {
        // Without CPU time, no I/O completes within a second.
        one_good_try(|| {
            let scratch = Scratch::shared();
            let began = SystemTime::now();
            let _ = program.line(&scratch, line).ok();
            let began = began.duration_since(UNIX_EPOCH).expect("after 1970");
            let least = began.as_millis() + 1000;
            let text = fs::read_to_string(scratch.work().join("l_clat.1.log")).expect("a log");
            let first = text.split(',').next().and_then(|it| it.parse().ok());
            let first: u128 = first.ok_or_else(|| format!("no time: {text}"))?;
            assert!(first >= least, "{program:?}: {first} before {least}");
            Ok(())
        });
    }
}

/// fio writes a line only when it has drawn a status line, so the test requests one.
#[test]
fn aggregate_bandwidth_log_is_written() {
    let line = "--bandwidth-log --eta=always --size=4m --rw=randrw --time_based --runtime=2 \
                --thinktime=200 --name=a --name=b";
    like_logs(line);
    let fields = |line: &str| -> Vec<u64> {
        let fields = line.split(", ");
        fields
            .map(|field| field.parse().expect("a number"))
            .collect()
    };
    for program in Program::both() {
        let scratch = Scratch::shared();
        // There are one or two lines, and a shared disk may complete no I/O for a second.
        one_good_try(|| {
            let _ = program.line(&scratch, line).ok();
            let kinds = [("read", 0, true), ("write", 1, true), ("trim", 2, false)];
            for (name, direction, moves) in kinds {
                let path = scratch.work().join(format!("agg-{name}_bw.log"));
                let text = fs::read_to_string(path).expect("a log");
                let lines: Vec<_> = text.lines().map(fields).collect();
                let moved = lines.iter().any(|fields| fields[1] > 0);
                ensure(moved == moves, || format!("{program:?}: {text}"))?;
                for fields in lines {
                    assert_eq!(fields[2..], [direction, 0, 0], "{program:?}: {text}");
                }
            }
            Ok(())
        });
    }
}

#[test]
fn result_survives_unwritable_log() {
    let scratch = Scratch::shared();
    let log = scratch.work().join("x_lat.1.log");
    symlink("/dev/full", log).expect("a link");
    let line = "--name=a --ioengine=null --size=1m --write_lat_log=x";
    let (document, run) = Program::Iosonde.line(&scratch, line).json_and_run();
    assert_eq!(run.status.code(), Some(1), "{run}");
    assert_eq!(number(&document, "/jobs/0/read/total_ios"), 256.0);
    assert_eq!(number(&document, "/jobs/0/error"), 28.0);
}
