//! The engines, and the engine-specific options.

use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::{self, Bytes, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Supported engines, each with its description.
pub const ENGINES: &[(Engine, &str)] = &[
    (
        Engine::IoUring,
        "io_uring: submission and completion rings shared with the kernel",
    ),
    (
        Engine::Libaio,
        "Linux native asynchronous I/O, by its system calls",
    ),
    (
        Engine::Posixaio,
        "POSIX AIO: threads of the C library, one I/O at a time for each file",
    ),
    (Engine::Sync, "lseek with read and write"),
    (Engine::Psync, "pread and pwrite"),
    (
        Engine::Vsync,
        "readv and writev, joining I/Os at neighbouring offsets",
    ),
    (Engine::Pvsync, "preadv and pwritev"),
    (Engine::Pvsync2, "preadv2 and pwritev2"),
    (Engine::Mmap, "memory mapping and copying"),
    (
        Engine::Rados,
        "objects of a Ceph pool, by librados: each file is an object",
    ),
    (Engine::Rbd, "a Ceph image, by librbd"),
    (Engine::Null, "no I/O: measures the overhead of iosonde"),
    (Engine::Sim, "a simulated device under a simulated clock"),
    (
        Engine::Auto,
        "io_uring where the kernel allows it, else libaio, else psync",
    ),
];

/// Refused engines of fio: names, reason and nearest alternative.
pub const REFUSED: &[(&[&str], &str, &str)] = &[
    (
        &["splice", "netsplice"],
        "splice moves no data through buffers",
        "psync",
    ),
    (
        &[
            "net",
            "rdma",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
        "networks are not measured",
        "",
    ),
    (
        &["cpuio", "exec"],
        "other programs' load is not iosonde's work",
        "run the load in a separate program",
    ),
    (
        &[
            "ftruncate",
            "filecreate",
            "filestat",
            "filedelete",
            "dircreate",
            "dirstat",
            "dirdelete",
            "falloc",
            "e4defrag",
        ],
        "operations on metadata are not measured",
        "",
    ),
    (
        &[
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "libiscsi",
            "nbd",
            "nfs",
            "http",
            "dfs",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
        ],
        "storage behind a network library is not spoken to directly",
        "mount or attach it, and name the path",
    ),
    (
        &["sg", "io_uring_cmd", "xnvme", "libblkio", "libzbc", "mtd"],
        "devices are not passed raw commands",
        "io_uring on the block device",
    ),
    (
        &["pmemblk", "dev-dax", "libpmem", "libcufile"],
        "memory devices need libraries that are not linked",
        "mmap on a file system mounted with dax",
    ),
    (
        &["cpp_null"],
        "it exists to test fio's interface for engines",
        "null",
    ),
];

const URING: &[&str] = &["io_uring", "io_uring_cmd"];
const PRIO: &[&str] = &["io_uring", "libaio", "io_uring_cmd"];
const NET: &[&str] = &["net", "netsplice", "rdma"];
const HTTP: &[&str] = &["http"];
const NO_NET: &str = "networks are not measured";
const NO_HTTP: &str = "storage behind a network library is not spoken to directly";
const NO_ENGINE: &str = "its engine is not supported";
/// The alternative of these options: none, because no other engine has the feature.
const OTHER_ENGINE: &str = "";
const MOUNT: &str = "mount or attach the storage, and name the path";

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "hipri",
        ValueKind::Flag,
        "0",
        "Poll for completions instead of waiting for interrupts. The device must have polling \
         queues.",
        |b, v| v.flag_to(&mut b.job.io.uring.hipri),
    )
    .engines(&["io_uring", "pvsync2", "io_uring_cmd", "sg", "xnvme"]),
    OptionRow::new(
        "hipri_percentage",
        ValueKind::Percent,
        "100",
        "Percentage of I/Os that use hipri.",
        |b, v| v.percent_to(&mut b.job.io.hipri_percent),
    )
    .engines(&["pvsync2"]),
    OptionRow::new(
        "fixedbufs",
        ValueKind::Flag,
        "",
        "Register the buffers with the kernel, which saves mapping them for each I/O. The default \
         is to register where possible; 0 disables it.",
        |b, v| {
            b.job.io.uring.fixedbufs = Some(v.flag()?);
            Ok(())
        },
    )
    .engines(URING),
    OptionRow::new(
        "registerfiles",
        ValueKind::Flag,
        "",
        "Register the files with the kernel. The default is to register where possible; 0 disables \
         it.",
        |b, v| {
            b.job.io.uring.registerfiles = Some(v.flag()?);
            Ok(())
        },
    )
    .engines(URING),
    OptionRow::new(
        "sqthread_poll",
        ValueKind::Flag,
        "0",
        "Let a kernel thread poll for submissions, so that a submission needs no system call.",
        |b, v| v.flag_to(&mut b.job.io.uring.sqthread_poll),
    )
    .engines(&["io_uring", "io_uring_cmd", "xnvme"]),
    OptionRow::new(
        "sqthread_poll_cpu",
        ValueKind::Int(0, U32),
        "",
        "CPU of the thread of sqthread_poll.",
        |b, v| {
            b.job.io.uring.sqthread_poll_cpu = Some(v.int(0..=U32)? as u32);
            Ok(())
        },
    )
    .engines(URING),
    OptionRow::new(
        "nonvectored",
        ValueKind::Int(-1, 1),
        "-1",
        "Use commands for one buffer instead of a vector of buffers; 0 uses vectors.",
        |b, v| {
            b.job.io.uring.nonvectored = match v.int(-1..=1)? {
                -1 => None,
                number => Some(number == 1),
            };
            Ok(())
        },
    )
    .engines(URING),
    OptionRow::new(
        "force_async",
        ValueKind::Int(0, U32),
        "0",
        "Ask the kernel to run every Nth I/O in one of its threads. 0: none.",
        |b, v| v.u32_to(&mut b.job.io.uring.force_async, 0),
    )
    .engines(URING),
    OptionRow::new(
        "nowait",
        ValueKind::Bool,
        "0",
        "Return an error instead of waiting when an I/O cannot start at once.",
        |b, v| v.bool_to(&mut b.job.io.nowait),
    )
    .engines(&["pvsync2", "libaio", "io_uring", "io_uring_cmd"]),
    OptionRow::new(
        "userspace_reap",
        ValueKind::Flag,
        "0",
        "Read completions from the ring in memory instead of with a system call.",
        |_, v| v.flag().map(|_| ()),
    )
    .engines(&["libaio"])
    .accepted("The ring is read whenever that is possible."),
    OptionRow::new(
        "cmdprio_percentage",
        ValueKind::PercentList,
        "0",
        "Percentage of I/Os with the priority of cmdprio_class and cmdprio.",
        |b, v| v.percents_to(&mut b.job.io.cmdprio_percent),
    )
    .engines(PRIO),
    OptionRow::new(
        "cmdprio_class",
        ValueKind::IntList(1, 3),
        "1",
        "Priority class of the I/Os of cmdprio_percentage: 1 real time, 2 best effort, 3 idle.",
        |b, v| priority(b, v, 1..=3, |priority, class| priority.class = class),
    )
    .engines(PRIO),
    OptionRow::new(
        "cmdprio",
        ValueKind::IntList(0, 7),
        "0",
        "Priority level of the I/Os of cmdprio_percentage in their class: 0 is the highest.",
        |b, v| priority(b, v, 0..=7, |priority, level| priority.level = level),
    )
    .engines(PRIO),
    OptionRow::new(
        "cmdprio_bssplit",
        ValueKind::Text,
        "",
        "Share of prioritised I/Os for each block size: size/percent or size/percent/class/level, \
         separated by colons; lists for reads and writes are separated by a comma.",
        apply_cmdprio_bssplit,
    )
    .engines(PRIO),
    OptionRow::new(
        "sim",
        ValueKind::Text,
        "",
        "The simulated device: key=value pairs, separated by commas. iosonde only.",
        |b, v| v.text_to(&mut b.job.io.sim),
    )
    .engines(&["sim"]),
    OptionRow::new(
        "uncached",
        ValueKind::Int(0, 1),
        "0",
        "Drop the pages of each buffered I/O from the page cache after it (RWF_DONTCACHE).",
        |b, v| {
            b.job.io.uncached = v.int(0..=1)? == 1;
            Ok(())
        },
    )
    .engines(&["pvsync2", "io_uring", "io_uring_cmd"]),
    OptionRow::unsupported(
        "cmd_type",
        ValueKind::Choice(&["nvme"]),
        "",
        "Kind of passthrough commands.",
        "devices are not passed raw commands",
        "ioengine=io_uring",
    )
    .engines(URING),
    OptionRow::unsupported(
        "thp",
        ValueKind::Int(0, 1),
        "0",
        "Map files with huge pages.",
        "mappings have the system's page size",
        "",
    )
    .engines(&["mmap"]),
    engine_only("cpuload", ValueKind::Percent, "CPU to use.", &["cpuio"]),
    engine_only(
        "cpuchunks",
        ValueKind::Int(0, U32),
        "Length of a burst of CPU use.",
        &["cpuio"],
    ),
    engine_only(
        "cpumode",
        ValueKind::Choice(&["noop", "qsort"]),
        "How CPU is used.",
        &["cpuio"],
    ),
    engine_only(
        "exit_on_io_done",
        ValueKind::Bool,
        "End with the jobs that do I/O.",
        &["cpuio"],
    ),
    engine_only(
        "stat_type",
        ValueKind::Choice(&["stat", "lstat", "statx"]),
        "Call to measure.",
        &["filestat"],
    ),
    engine_only("program", ValueKind::Text, "Program to run.", &["exec"]),
    engine_only(
        "arguments",
        ValueKind::Text,
        "Arguments of the program.",
        &["exec"],
    ),
    engine_only(
        "grace_time",
        ValueKind::Int(0, U32),
        "Seconds before the program is killed.",
        &["exec"],
    ),
    engine_only(
        "std_redirect",
        ValueKind::Bool,
        "Redirect its output to files.",
        &["exec"],
    ),
    engine_only(
        "donorname",
        ValueKind::Text,
        "File that donates blocks.",
        &["e4defrag"],
    ),
    engine_only(
        "inplace",
        ValueKind::Int(0, 1),
        "Allocate and free in the measured event.",
        &["e4defrag"],
    ),
    engine_only(
        "skip_bad",
        ValueKind::Bool,
        "Skip blocks known to be bad.",
        &["mtd"],
    ),
    engine_only(
        "readfua",
        ValueKind::Bool,
        "Force unit access for reads.",
        &["sg"],
    ),
    engine_only(
        "writefua",
        ValueKind::Bool,
        "Force unit access for writes.",
        &["sg"],
    ),
    engine_only(
        "sg_write_mode",
        ValueKind::Text,
        "SCSI command for writes.",
        &["sg"],
    ),
    engine_only(
        "stream_id",
        ValueKind::Int(0, U32),
        "Stream of writes.",
        &["sg"],
    ),
    engine_only(
        "volume",
        ValueKind::Text,
        "Gluster volume.",
        &["gfapi", "gfapi_async"],
    ),
    engine_only(
        "brick",
        ValueKind::Text,
        "Gluster brick.",
        &["gfapi", "gfapi_async"],
    ),
    engine_only(
        "single-instance",
        ValueKind::Bool,
        "Share one Gluster instance.",
        &["gfapi", "gfapi_async"],
    ),
    engine_only(
        "uri",
        ValueKind::Text,
        "Address of the NBD export.",
        &["nbd"],
    ),
    engine_only(
        "nfs_url",
        ValueKind::Text,
        "Address of the NFS export.",
        &["nfs"],
    ),
    engine_only("cont", ValueKind::Text, "DAOS container.", &["dfs"]),
    engine_only(
        "chunk_size",
        ValueKind::Size,
        "Chunk size.",
        &["dfs", "libhdfs"],
    ),
    engine_only(
        "object_class",
        ValueKind::Text,
        "DAOS object class.",
        &["dfs"],
    ),
    engine_only("namenode", ValueKind::Text, "HDFS name node.", &["libhdfs"]),
    engine_only(
        "hdfsdirectory",
        ValueKind::Text,
        "HDFS directory.",
        &["libhdfs"],
    ),
    engine_only(
        "gpu_dev_ids",
        ValueKind::Text,
        "GPUs to use.",
        &["libcufile"],
    ),
    engine_only(
        "gpu_dev_id",
        ValueKind::Int(0, U32),
        "GPU to use.",
        &["rdma"],
    ),
    engine_only(
        "cuda_io",
        ValueKind::Choice(&["cufile", "posix"]),
        "How data reach the GPU.",
        &["libcufile"],
    ),
    engine_only(
        "xnvme_async",
        ValueKind::Text,
        "Asynchronous interface.",
        &["xnvme"],
    ),
    engine_only(
        "xnvme_sync",
        ValueKind::Text,
        "Synchronous interface.",
        &["xnvme"],
    ),
    engine_only(
        "xnvme_admin",
        ValueKind::Text,
        "Interface for administration.",
        &["xnvme"],
    ),
    engine_only(
        "xnvme_dev_nsid",
        ValueKind::Int(0, U32),
        "Namespace.",
        &["xnvme"],
    ),
    engine_only(
        "xnvme_iovec",
        ValueKind::Int(0, 1),
        "Use vectors.",
        &["xnvme"],
    ),
    engine_only(
        "serverip",
        ValueKind::Text,
        "Address of the server.",
        &[
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
    ),
    engine_only(
        "direct_write_to_pmem",
        ValueKind::Bool,
        "Write to memory directly.",
        &[
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
    ),
    engine_only(
        "busy_wait_polling",
        ValueKind::Bool,
        "Poll for completions.",
        &["librpma_apm_server", "librpma_gpspm_server"],
    ),
    net_option("hostname", ValueKind::Text, "Host to talk to."),
    net_option("bindname", ValueKind::Text, "Address to bind to."),
    net_option("port", ValueKind::Int(1, 65535), "Port to use."),
    net_option("protocol", ValueKind::Text, "Protocol to use.").aliases(&["proto"]),
    net_option("nodelay", ValueKind::Bool, "Send small packets at once."),
    net_option("listen", ValueKind::Flag, "Wait for connections."),
    net_option("pingpong", ValueKind::Flag, "Answer each message."),
    net_option("interface", ValueKind::Text, "Interface for multicast."),
    net_option("ttl", ValueKind::Int(0, 255), "Hops of multicast packets."),
    net_option("window_size", ValueKind::Size, "Size of socket buffers."),
    net_option("mss", ValueKind::Int(0, U32), "Segment size of TCP."),
    net_option("verb", ValueKind::Text, "RDMA verb."),
    http_option("http_host", "Host to talk to."),
    http_option("http_user", "User name."),
    http_option("http_pass", "Password."),
    http_option("https", "Whether to encrypt."),
    http_option("http_mode", "webdav, swift or s3."),
    http_option("http_s3_region", "S3 region."),
    http_option("http_s3_key", "S3 secret key."),
    http_option("http_s3_keyid", "S3 key id."),
    http_option("http_s3_sse_customer_key", "Key for encryption at rest."),
    http_option(
        "http_s3_sse_customer_algorithm",
        "Algorithm for encryption at rest.",
    ),
    http_option("http_s3_storage_class", "S3 storage class."),
    http_option("http_swift_auth_token", "Swift token."),
    http_option("http_verbose", "How much is printed."),
];

const fn engine_only(
    name: &'static str,
    kind: ValueKind,
    doc: &'static str,
    engines: &'static [&'static str],
) -> OptionRow {
    OptionRow::unsupported(name, kind, "", doc, NO_ENGINE, OTHER_ENGINE).engines(engines)
}

const fn net_option(name: &'static str, kind: ValueKind, doc: &'static str) -> OptionRow {
    OptionRow::unsupported(name, kind, "", doc, NO_NET, OTHER_ENGINE).engines(NET)
}

const fn http_option(name: &'static str, doc: &'static str) -> OptionRow {
    OptionRow::unsupported(name, ValueKind::Text, "", doc, NO_HTTP, MOUNT).engines(HTTP)
}

/// Returns the engine of this name, or the reason why it is refused.
pub fn engine(name: &str) -> ParsedValue<Engine> {
    if let Some((engine, _)) = ENGINES.iter().find(|(engine, _)| engine.name() == name) {
        return Ok(*engine);
    }
    if name.starts_with("external:") {
        let message =
            format!("`{name}` is not supported: engines that fio loads from a file are not loaded");
        return Err(ValueError::new(message));
    }
    for (names, reason, instead) in REFUSED {
        if names.contains(&name) {
            let later = super::later_options::reason_of_engine(name);
            let reason = later.unwrap_or(reason);
            let error = ValueError::new(format!("the engine `{name}` is not supported: {reason}"));
            return Err(match *instead {
                "" => error,
                _ => error.help(format!("alternative: {instead}")),
            });
        }
    }
    let choices: Vec<(&str, Engine)> = ENGINES.iter().map(|(e, _)| (e.name(), *e)).collect();
    super::option_value::choice(name, &choices)
}

/// Whether fio has an engine of this name that iosonde does not support.
pub fn is_refused(name: &str) -> bool {
    REFUSED.iter().any(|(names, ..)| names.contains(&name))
}

fn priority(
    b: &mut JobBuilder,
    v: &OptionValue<'_>,
    bounds: std::ops::RangeInclusive<i64>,
    set: impl Fn(&mut IoPriority, u8),
) -> ParsedValue<()> {
    let mut numbers = PerDirection::from_value(None);
    value::directions(v.str(), &mut numbers, |part| {
        super::option_value::bounded(part, &bounds).map(Some)
    })?;
    for direction in Direction::ALL {
        if let Some(number) = numbers[direction] {
            set(&mut b.job.io.cmdprio[direction], number as u8);
        }
    }
    Ok(())
}

fn apply_cmdprio_bssplit(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let fields: Vec<&str> = text.split(',').collect();
    let mut split = PerDirection::from_value(Vec::new());
    for direction in Direction::ALL {
        let field = fields[(direction as usize).min(fields.len() - 1)];
        let default = b.job.io.cmdprio[direction];
        split[direction] =
            cmdprio_parts(field, b.bytes, default).map_err(|error| error.within(text, field))?;
    }
    b.job.io.cmdprio_split = Some(split);
    Ok(())
}

fn cmdprio_parts(field: &str, base: Bytes, default: IoPriority) -> ParsedValue<Vec<CmdprioPart>> {
    let mut parts = Vec::new();
    for part in field.split(':') {
        let numbers: Vec<&str> = part.split('/').collect();
        let number = |at: usize, bounds| {
            super::option_value::bounded(numbers[at], &bounds)
                .map_err(|e| e.within(field, numbers[at]))
        };
        let priority = match numbers.len() {
            2 => default,
            4 => IoPriority {
                class: number(2, 0..=3)? as u8,
                level: number(3, 0..=7)? as u8,
            },
            _ => {
                return Err(ValueError::new(format!("`{part}` is not size/percent"))
                    .help("write size/percent or size/percent/class/level")
                    .within(field, part));
            }
        };
        parts.push(CmdprioPart {
            block_bytes: value::bytes(numbers[0], base).map_err(|e| e.within(field, numbers[0]))?,
            percent: value::percent(numbers[1]).map_err(|e| e.within(field, numbers[1]))?,
            priority,
        });
    }
    Ok(parts)
}
