//! Each example of Debian's fio package runs, or is refused with an error that names the cause.
//!
//! The jobs come from the installed package. [`fit`] changes only sizes, times and paths.

use std::fs;
use std::path::Path;

use iosonde_e2e::device::Loop;
use iosonde_e2e::mount::Mount;
use iosonde_e2e::scratch::lay_out;
use iosonde_e2e::{Need, Program, Scratch, need, require};

/// Expected outcome of an example.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// All jobs run without an error.
    Runs,
    /// The example is refused, and the error has this text.
    Refused(&'static str),
    /// The example runs on machines with the last requirement; elsewhere the error names the first.
    Depends(&'static str, &'static str),
}
use Outcome::{Depends, Refused, Runs};

/// An example and its expected outcome.
type Example = (&'static str, Outcome);

macro_rules! examples {
    ($($test:ident $file:literal $outcome:expr;)+) => {
        const EXAMPLES: &[Example] = &[$(($file, $outcome)),+];
        mod each {
            $(#[test] fn $test() { super::check($file); })+
        }
    };
}

examples! {
    clients_1mbs "1mbs_clients" Runs;
    aio_read "aio-read" Runs;
    backwards_read "backwards-read" Runs;
    basic_verify "basic-verify" Runs;
    butterfly "butterfly" Runs;
    cmdprio_bssplit "cmdprio-bssplit" Runs;
    cmdprio_percentage "cmdprio-percentage" Runs;
    cpp_null "cpp_null" Refused("cpp_null");
    cpuio "cpuio" Refused("cpuio");
    cross_stripe_verify "cross-stripe-verify" Runs;
    dedupe_global "dedupe-global" Runs;
    dev_dax "dev-dax" Refused("dev-dax");
    dfs "dfs" Refused("dfs");
    disk_zone_profile "disk-zone-profile" Runs;
    e4defrag "e4defrag" Refused("e4defrag");
    e4defrag2 "e4defrag2" Refused("e4defrag");
    enospc_pressure "enospc-pressure" Depends("trim", "a file system whose files take trims");
    exec "exec" Refused("exec");
    exitwhat "exitwhat" Runs;
    falloc "falloc" Refused("falloc");
    filecreate_ioengine "filecreate-ioengine" Refused("filecreate");
    filedelete_ioengine "filedelete-ioengine" Refused("filedelete");
    filestat_ioengine "filestat-ioengine" Refused("filestat");
    fio_rand_rw "fio-rand-RW" Runs;
    fio_rand_read "fio-rand-read" Runs;
    fio_rand_write "fio-rand-write" Runs;
    fio_seq_rw "fio-seq-RW" Runs;
    fio_seq_read "fio-seq-read" Runs;
    fio_seq_write "fio-seq-write" Runs;
    fixed_rate_submission "fixed-rate-submission" Runs;
    flow "flow" Runs;
    fsx "fsx" Runs;
    ftruncate "ftruncate" Refused("ftruncate");
    gfapi "gfapi" Refused("gfapi");
    gpudirect_rdmaio_client "gpudirect-rdmaio-client" Refused("rdma");
    gpudirect_rdmaio_server "gpudirect-rdmaio-server" Refused("rdma");
    http_s3 "http-s3" Refused("http");
    http_s3_crypto "http-s3-crypto" Refused("http");
    http_s3_storage_class "http-s3-storage-class" Refused("http");
    http_swift "http-swift" Refused("http");
    http_webdav "http-webdav" Refused("http");
    ime "ime" Refused("ime_psync");
    iometer_file_access_server "iometer-file-access-server" Runs;
    jesd219 "jesd219" Runs;
    latency_profile "latency-profile" Runs;
    libcufile_cufile "libcufile-cufile" Refused("libcufile");
    libcufile_posix "libcufile-posix" Refused("libcufile");
    libhdfs "libhdfs" Refused("libhdfs");
    libiscsi "libiscsi" Refused("libiscsi");
    libpmem "libpmem" Refused("libpmem");
    librpma_apm_client "librpma_apm-client" Refused("librpma_apm_client");
    librpma_apm_server "librpma_apm-server" Refused("librpma_apm_server");
    librpma_gpspm_client "librpma_gpspm-client" Refused("librpma_gpspm_client");
    librpma_gpspm_server "librpma_gpspm-server" Refused("librpma_gpspm_server");
    libzbc_rand_write "libzbc-rand-write" Refused("libzbc");
    libzbc_seq_read "libzbc-seq-read" Refused("libzbc");
    mtd "mtd" Refused("mtd");
    nbd "nbd" Refused("nbd");
    netio "netio" Refused("net");
    netio_multicast "netio_multicast" Refused("net");
    nfs "nfs" Refused("nfs");
    null "null" Runs;
    numa "numa" Depends("numa", "a machine with two NUMA nodes");
    pmemblk "pmemblk" Refused("pmemblk");
    poisson_rate_submission "poisson-rate-submission" Runs;
    rados "rados" Depends("rados", "a Ceph cluster with a pool of that name");
    rand_zones "rand-zones" Runs;
    rbd "rbd" Depends("rbd", "a Ceph cluster with an image of that name");
    rdmaio_client "rdmaio-client" Refused("rdma");
    rdmaio_server "rdmaio-server" Refused("rdma");
    sg_verify "sg_verify" Refused("sg");
    sg_verify_fail "sg_verify-fail" Refused("sg");
    sg_write_same_ndob "sg_write_same_ndob" Refused("sg");
    ssd_steadystate "ssd-steadystate" Runs;
    ssd_test "ssd-test" Runs;
    steadystate "steadystate" Runs;
    surface_scan "surface-scan" Runs;
    tiobench_example "tiobench-example" Runs;
    uring_cmd_ng "uring-cmd-ng" Refused("io_uring_cmd");
    uring_cmd_zoned "uring-cmd-zoned" Refused("io_uring_cmd");
    waitfor "waitfor" Runs;
    xnvme_compare "xnvme-compare" Refused("rw");
    xnvme_zoned "xnvme-zoned" Refused("zonemode");
    zbd_rand_write "zbd-rand-write" Refused("zonemode");
    zbd_seq_read "zbd-seq-read" Refused("zonemode");
    zipf "zipf" Runs;
}

/// Size of the device in place of those named in the examples.
const DEVICE_BYTES: usize = 64 << 20;

/// fio 3.33 sometimes hangs with `io_submit_mode=offload`, so it cannot be the subject here.
const FIO_HANGS: [&str; 2] = ["fixed-rate-submission", "poisson-rate-submission"];

fn check(name: &str) {
    require!(Root, FioExamples);
    let outcome = EXAMPLES
        .iter()
        .find(|(file, _)| *file == name)
        .expect("a row of the table")
        .1;
    let program = Program::subject();
    if program.is_fio() && (outcome != Runs || FIO_HANGS.contains(&name)) {
        return;
    }
    let scratch = Scratch::shared();
    let original =
        fs::read_to_string(need::fio_examples().join(format!("{name}.fio"))).expect("an example");
    let device =
        has_device(&original).then(|| Loop::with_file(&scratch.out().join("device"), DEVICE_BYTES));
    let path = device.as_ref().map_or(Path::new(""), Loop::path);
    scratch.write("job.fio", fit(&original, path));
    // Some examples require an existing file.
    if original.contains("filename=/tmp/testfile") {
        lay_out(&scratch.work().join("testfile"), 16 << 20);
    }
    // Others fill the file system.
    let _mount = original
        .contains("fill_device=1")
        .then(|| Mount::tmpfs(scratch.work().join("full"), 32 << 20));
    let (text, status) = run(&scratch, program);
    let runs = || assert!(status == Some(0), "{name} must run: {text}");
    let refused = |needle: &str| {
        assert!(
            status != Some(0) && status.is_some(),
            "{name} must be refused, not end with {status:?}: {text}"
        );
        assert!(!text.contains("panicked"), "{text}");
        assert!(
            text.contains(needle),
            "{name}: the error does not name {needle}: {text}"
        );
    };
    match outcome {
        Runs => runs(),
        Refused(needle) => refused(needle),
        Depends(..) if status == Some(0) => {}
        Depends(needle, _) => refused(needle),
    }
}

/// Runs `job.fio`. Returns its output and exit status, where a job error counts as failure.
fn run(scratch: &Scratch, program: Program) -> (String, Option<i32>) {
    // Options before a job file are its globals: `runtime` ends jobs without an end of their own.
    let run = program
        .line(
            scratch,
            "--runtime=3 --output-format=json --output=result.json job.fio",
        )
        .run();
    let result = fs::read_to_string(scratch.work().join("result.json")).unwrap_or_default();
    let text = format!("{run}{result}");
    let Some(0) = run.status.code() else {
        return (text, run.status.code());
    };
    let document: serde_json::Value =
        serde_json::from_str(&result[result.find('{').unwrap_or(0)..])
            .unwrap_or_else(|error| panic!("{error}: {text}"));
    let jobs = document["jobs"].as_array().expect("jobs");
    let ios: u64 = jobs
        .iter()
        .flat_map(|job| {
            ["read", "write", "trim"].map(|kind| job[kind]["total_ios"].as_u64().unwrap_or(0))
        })
        .sum();
    assert!(ios > 0, "no I/O at all: {text}");
    let failed = jobs.iter().any(|job| job["error"] != 0);
    (text, Some(i32::from(failed)))
}

/// The lines of a job file without their comments.
fn uncommented(job: &str) -> impl Iterator<Item = &str> {
    job.lines()
        .map(|line| line.split([';', '#']).next().unwrap_or_default().trim_end())
}

/// Whether a file name is that of a device, in place of which a loop device is used.
fn is_device(name: &str) -> bool {
    name.starts_with("/dev/") && name != "/dev/null" && name != "/dev/zero"
}

/// Whether a job file names a device.
fn has_device(job: &str) -> bool {
    uncommented(job)
        .filter_map(|line| line.split_once('='))
        .any(|(name, value)| name.trim() == "filename" && is_device(value.trim()))
}

/// Changes sizes, times and paths of a job file and removes comments.
fn fit(job: &str, device: &Path) -> String {
    let fitted = uncommented(job).map(|line| match line.split_once('=') {
        Some((name, value)) => format!("{name}={}", fit_value(name.trim(), value.trim(), device)),
        None => line.to_owned(),
    });
    fitted.map(|line| line + "\n").collect()
}

fn fit_value(name: &str, value: &str, device: &Path) -> String {
    match name {
        "filename" if is_device(value) => device.display().to_string(),
        "filename" if value.starts_with("/dev/") => value.to_owned(),
        "filename" if value == "datafile.tmp" => format!("full/{value}"),
        "filename" => value.trim_start_matches("/tmp/").to_owned(),
        "directory" => ".".to_owned(),
        "size" | "filesize" => at_most(value, 16 << 20),
        "io_size" => at_most(value, 64 << 10),
        "offset_increment" => at_most(value, 1 << 20),
        "zonesize" | "zoneskip" => at_most(value, 1 << 20),
        "offset" => at_most(value, 120 << 10),
        "runtime" | "timeout" => seconds(value, 2),
        "startdelay" | "ss_ramp" => seconds(value, 1),
        "ss_dur" => seconds(value, 2),
        "latency_window" => "200000".to_owned(),
        _ => value.to_owned(),
    }
}

/// The size, limited to a maximum.
fn at_most(value: &str, limit_bytes: u64) -> String {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match value[digits.len()..]
        .to_ascii_lowercase()
        .trim_end_matches('b')
        .trim_end_matches('i')
    {
        "" => 1,
        "k" => 1 << 10,
        "m" => 1 << 20,
        "g" => 1 << 30,
        "t" => 1 << 40,
        other => panic!("an unknown unit {other:?} in an example"),
    };
    let bytes = digits.parse::<u64>().expect("a size") * unit;
    if bytes > limit_bytes {
        limit_bytes.to_string()
    } else {
        value.to_owned()
    }
}

/// A time in seconds, limited to a maximum.
fn seconds(value: &str, limit: u64) -> String {
    match value.trim_end_matches('s').parse::<u64>() {
        Ok(time) if time <= limit => value.to_owned(),
        _ => limit.to_string(),
    }
}

#[test]
fn example_table_is_complete() {
    require!(FioExamples);
    let files = fs::read_dir(need::fio_examples())
        .expect("the examples")
        .map(|entry| entry.expect("an entry").path());
    let mut installed: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "fio"))
        .map(|path| {
            path.file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let mut listed: Vec<&str> = EXAMPLES.iter().map(|(file, _)| *file).collect();
    installed.sort_unstable();
    listed.sort_unstable();
    assert_eq!(listed, installed);
    assert!(need::met(&[Need::FioExamples]));
}

/// The table of docs/fio-examples.md, from the rows that the tests check.
fn table() -> String {
    let mut text = String::from(
        "# fio's examples\n\n\
         Every job file of Debian's package `fio-examples` (3.33), and what `iosonde fio` does \
         with it. The test suite runs\n\
         each one with smaller sizes, shorter times and other paths. Made from the table in\n\
         `tests/conformance/examples.rs`:\n\
         `IOSONDE_UPDATE=1 cargo test --test conformance example_table`.\n\
         \n\
         | example | outcome |\n| --- | --- |\n",
    );
    for (file, outcome) in EXAMPLES {
        let words = match outcome {
            Runs => "runs".to_owned(),
            Refused(what) if what.starts_with("zonemode") => {
                "refused: needs `zonemode=zbd`, for zoned devices".to_owned()
            }
            Refused("rw") => {
                "refused until `FIO_RW`, `FIO_BS` and `FIO_IODEPTH` are set, as its comments say"
                    .to_owned()
            }
            Refused(engine) => format!("refused: needs the engine `{engine}`"),
            Depends(_, hardware) => format!("runs on {hardware}; refused elsewhere"),
        };
        text += &format!("| {file} | {words} |\n");
    }
    text
}

#[test]
fn example_table_in_docs_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/fio-examples.md");
    if std::env::var_os("IOSONDE_UPDATE").is_some() {
        fs::write(&path, table()).expect("the table can be written");
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == table(),
        "docs/fio-examples.md is not current: run with IOSONDE_UPDATE=1"
    );
}
