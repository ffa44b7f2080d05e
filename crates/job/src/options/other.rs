//! Names and descriptions, and what else fio has: traces, cgroups, zoned devices, profiles.

use super::{Kind, Row};

const U32: i64 = u32::MAX as i64;
const NO_TRACE: &str = "traces are neither recorded nor replayed";
const NO_TRACE_WAY: &str = "describe the pattern by rw, bssplit, random_distribution and rate";
const NO_ZBD: &str = "zoned block devices are not supported";
const NO_ZBD_WAY: &str = "zonemode=strided on an ordinary device";

/// The rows.
pub const ROWS: &[Row] = &[
    Row::new(
        "name",
        Kind::Text,
        "",
        "Name of the job. On the command line it begins a new job; in a job file it replaces the section's name.",
        |b, v| v.text_to(&mut b.name),
    ),
    Row::new(
        "description",
        Kind::Text,
        "",
        "A text about the job, for the report.",
        |b, v| v.text_to(&mut b.job.description),
    ),
    Row::unsupported(
        "rwmixcycle",
        Kind::Int(0, U32),
        "",
        "Switch between reads and writes at this interval.",
        "fio has dropped it",
        "rwmixread draws the direction of each I/O",
    ),
    Row::unsupported(
        "write_barrier",
        Kind::Int(0, U32),
        "0",
        "Make every Nth write a barrier.",
        "Linux has no barrier writes",
        "fdatasync=N",
    ),
    trace("write_iolog", Kind::Text, "Record the I/Os into a file."),
    trace("read_iolog", Kind::Text, "Replay the I/Os of a file."),
    trace(
        "read_iolog_chunked",
        Kind::Bool,
        "Read the trace piece by piece.",
    ),
    trace(
        "replay_no_stall",
        Kind::Bool,
        "Replay without the trace's pauses.",
    ),
    trace("replay_redirect", Kind::Text, "Replay onto another device."),
    trace(
        "replay_scale",
        Kind::Int(0, U32),
        "Divide the trace's offsets.",
    ),
    trace("replay_align", Kind::Size, "Align the trace's offsets."),
    trace(
        "replay_time_scale",
        Kind::Int(1, U32),
        "Stretch the trace's time.",
    ),
    trace(
        "replay_skip",
        Kind::Text,
        "Leave out directions of the trace.",
    ),
    trace(
        "merge_blktrace_file",
        Kind::Text,
        "Merge traces into this file.",
    ),
    trace(
        "merge_blktrace_scalars",
        Kind::FloatList,
        "Stretch the times of merged traces.",
    ),
    trace(
        "merge_blktrace_iters",
        Kind::FloatList,
        "Repeat merged traces.",
    ),
    Row::new(
        "exec_prerun",
        Kind::Text,
        "",
        "Run a command by the shell before the I/O of each clone; its output goes to JOB.prerun.txt.",
        |b, v| v.text_to(&mut b.job.schedule.exec_prerun),
    ),
    Row::new(
        "exec_postrun",
        Kind::Text,
        "",
        "Run a command by the shell after the I/O of each clone; its output goes to JOB.postrun.txt.",
        |b, v| v.text_to(&mut b.job.schedule.exec_postrun),
    ),
    Row::unsupported(
        "ioscheduler",
        Kind::Text,
        "",
        "Switch the device's I/O scheduler for the job.",
        "settings of the machine are reported, not changed",
        "write its name to /sys/block/DEVICE/queue/scheduler before",
    ),
    zbd("zonecapacity", Kind::Size, "", "Usable bytes of a zone."),
    zbd(
        "read_beyond_wp",
        Kind::Bool,
        "0",
        "Read behind the write pointer.",
    ),
    zbd(
        "max_open_zones",
        Kind::Int(0, 4096),
        "0",
        "Zones written at once.",
    ),
    zbd(
        "job_max_open_zones",
        Kind::Int(0, 4096),
        "0",
        "Zones one job writes at once.",
    ),
    zbd(
        "ignore_zone_limits",
        Kind::Bool,
        "0",
        "Ignore the device's limits.",
    ),
    zbd(
        "zone_reset_threshold",
        Kind::Float,
        "0",
        "When zones are reset.",
    ),
    zbd(
        "zone_reset_frequency",
        Kind::Float,
        "0",
        "How often zones are reset.",
    ),
    cgroup(
        "cgroup",
        Kind::Text,
        "",
        "Put the job into a control group.",
        "start iosonde in the control group: `systemd-run --scope -p ...`",
    ),
    cgroup(
        "cgroup_nodelete",
        Kind::Bool,
        "0",
        "Keep the control group.",
        "leave it out",
    ),
    cgroup(
        "cgroup_weight",
        Kind::Int(100, 1000),
        "",
        "Weight of the control group.",
        "`systemd-run --scope -p IOWeight=N`",
    ),
    identity(
        "uid",
        "Run the job as this user.",
        "clones are threads and share one user",
        "start iosonde as that user",
    ),
    identity(
        "gid",
        "Run the job as this group.",
        "clones are threads and share one group",
        "start iosonde as that group",
    ),
    Row::unsupported(
        "profile",
        Kind::Text,
        "",
        "Run one of fio's built-in profiles.",
        "fio's built-in profiles are not supported",
        "write the profile's jobs into a job file",
    ),
    profile("device-names", Kind::Text, "Devices of the act profile."),
    profile("load", Kind::Int(0, U32), "Load of the act profile."),
    profile("test-duration", Kind::Text, "Duration of the act profile."),
    profile(
        "threads-per-queue",
        Kind::Int(0, U32),
        "Threads of the act profile.",
    ),
    profile(
        "read-req-num-512-blocks",
        Kind::Int(0, U32),
        "Read size of the act profile.",
    ),
    profile(
        "large-block-op-kbytes",
        Kind::Int(0, U32),
        "Write size of the act profile.",
    ),
    profile(
        "prep",
        Kind::Flag,
        "Prepare the device for the act profile.",
    ),
    profile(
        "block",
        Kind::Int(0, U32),
        "Block size of the tiobench profile.",
    ),
    profile(
        "numruns",
        Kind::Int(0, U32),
        "Runs of the tiobench profile.",
    ),
    profile("dir", Kind::Text, "Directory of the tiobench profile."),
    profile(
        "threads",
        Kind::Int(0, U32),
        "Threads of the tiobench profile.",
    ),
    later(
        "fdp",
        Kind::Bool,
        "Place data by NVMe's flexible data placement.",
    ),
    later(
        "dataplacement",
        Kind::Text,
        "Place data by hints to the device.",
    ),
    later("plids", Kind::Text, "Placement identifiers."),
    later(
        "plid_select",
        Kind::Text,
        "How placement identifiers are picked.",
    ),
    later(
        "dp_scheme",
        Kind::Text,
        "File that maps offsets to placement identifiers.",
    ),
    later(
        "sprandom",
        Kind::Bool,
        "Precondition an SSD with one pass of random writes.",
    ),
    later(
        "ramp_size",
        Kind::Size,
        "Move this much before anything is counted.",
    ),
    later(
        "thinkcycles",
        Kind::Int(0, U32),
        "Spin this many cycles between I/Os.",
    ),
    later("priohint", Kind::Int(0, 1023), "Hint of I/O priority."),
    later(
        "log_issue_time",
        Kind::Bool,
        "Log when each I/O was issued.",
    ),
    later(
        "verify_write_sequence",
        Kind::Bool,
        "Check the order of writes.",
    ),
    later(
        "verify_header_seed",
        Kind::Bool,
        "Check the seed in headers.",
    ),
    later("num_range", Kind::Int(1, 256), "Ranges in one trim."),
    later(
        "max_write_zones",
        Kind::Int(0, U32),
        "Zones written at once.",
    ),
    later(
        "recover_zbd_write_error",
        Kind::Bool,
        "Recover zones after a failed write.",
    ),
];

/// Options of fio after 3.33.
const fn later(name: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row::unsupported(
        name,
        kind,
        "",
        doc,
        "it came with a fio later than 3.33, which iosonde follows",
        "leave it out",
    )
}

const fn trace(name: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row::unsupported(name, kind, "", doc, NO_TRACE, NO_TRACE_WAY)
}

const fn zbd(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Row {
    Row::unsupported(name, kind, default, doc, NO_ZBD, NO_ZBD_WAY)
}

const fn cgroup(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
    way: &'static str,
) -> Row {
    let why = "control groups are reported, not changed";
    Row::unsupported(name, kind, default, doc, why, way)
}

const fn identity(
    name: &'static str,
    doc: &'static str,
    why: &'static str,
    way: &'static str,
) -> Row {
    Row::unsupported(name, Kind::Int(0, U32), "", doc, why, way)
}

/// fio reads these everywhere, but only its profiles look at them.
const fn profile(name: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row::new(name, kind, "", doc, |_, _| Ok(()))
        .accepted("Without effect, as in fio when no profile is named.")
}
