//! Tests of the bare loop of io_uring.

use super::*;

fn read_one_mib(change: impl Fn(&mut Arguments)) -> BareLoopResult {
    // The system's temporary directory may be a tmpfs that refuses O_DIRECT.
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let mut arguments = Arguments {
        files: vec![file.path().to_owned()],
        size_bytes: 1 << 20,
        depth: 8,
        batch: Some(3),
        threads: 1,
        milliseconds: 20,
        without: Vec::new(),
        no_iowait: false,
        min_wait_us: None,
    };
    change(&mut arguments);
    run_bare_loop(&arguments).unwrap()
}

#[test]
fn bare_loop_reads_file_at_each_depth() {
    for depth in [1, 4, 8] {
        for batch in [None, Some(3)] {
            let outcome = read_one_mib(|arguments| {
                (arguments.depth, arguments.batch) = (depth, batch);
            });
            assert!(
                outcome.ios >= 8 && outcome.elapsed_ns >= 20_000_000,
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn bare_loop_adds_the_reads_of_its_threads() {
    let outcome = read_one_mib(|arguments| arguments.threads = 2);
    assert!(
        outcome.ios >= 16 && outcome.elapsed_ns >= 20_000_000,
        "{outcome:?}"
    );
}

#[test]
fn unwanted_features_are_not_in_force() {
    use clap::ValueEnum;
    let all = read_one_mib(|_| {}).flags;
    assert!(all.contains(&"noatime".to_owned()), "its owner reads it");
    assert!(all.contains(&"small_cq".to_owned()));
    let fewer = read_one_mib(|arguments| {
        arguments.without = LoopFeature::value_variants().to_vec();
    });
    let unwanted = ["noatime", "small_cq", "registered_ring", "no_sqarray"];
    assert!(
        fewer.flags.iter().all(|flag| !unwanted.contains(&&**flag)),
        "{:?}",
        fewer.flags
    );
    assert!(fewer.ios >= 8);
}

#[test]
fn threads_do_not_start_if_one_is_not_prepared() {
    let start = Instant::now();
    let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.as_file().set_len(1 << 20).unwrap();
    let good = file.path().to_owned();
    let missing = PathBuf::from("/nonexistent/file");
    for files in [vec![good.clone(), missing.clone()], vec![missing, good]] {
        let arguments = Arguments {
            files,
            size_bytes: 1 << 20,
            depth: 8,
            batch: None,
            threads: 2,
            milliseconds: 600_000,
            without: Vec::new(),
            no_iowait: false,
            min_wait_us: None,
        };
        let error = run_bare_loop(&arguments).unwrap_err().to_string();
        assert_eq!(error, "opening /nonexistent/file");
    }
    assert!(start.elapsed() < Duration::from_secs(300));
}

#[test]
fn time_of_threads_lasts_from_the_first_start_to_the_last_end() {
    let start = Instant::now();
    let moment = |ms: u64| LoopTimes {
        time: start + Duration::from_millis(ms),
        cpu: CpuTime {
            user_us: ms as f64,
            system_us: 2.0 * ms as f64,
        },
    };
    let reading = |ios, first_ms, last_ms| ThreadReading {
        ios,
        rounds: TimedRounds {
            first: moment(first_ms),
            last: moment(last_ms),
        },
        flags: vec!["noatime"],
    };
    let result = combine(vec![reading(3, 10, 40), reading(4, 0, 20)]).unwrap();
    assert_eq!((result.ios, result.elapsed_ns), (7, 40_000_000));
    let cpu = (result.cpu.user_us, result.cpu.system_us);
    assert_eq!(cpu, (40.0, 80.0));
    assert_eq!(result.flags, ["noatime"]);
}
