//! The remaining options of fio: name, description, traces, cgroups, zoned devices, profiles.

use super::row::Apply;
use super::{Builder, Given, Kind, Row};
use crate::value::{self, Parsed, TimeUnit, ValueError};

const U32: i64 = u32::MAX as i64;
const NO_MERGE: &str = "traces are not merged";
const NO_MERGE_WAY: &str = "give each trace a job of its own: all start at one time";

/// Rows of the option table.
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
    Row::new(
        "write_iolog",
        Kind::Text,
        "",
        "Record the job's I/Os into this file, as a trace for read_iolog, in version 3 of its format. A file that exists is \
         added to. Jobs should have one each.",
        |b, v| v.text_to(&mut b.job.measure.logs.trace),
    ),
    Row::new(
        "read_iolog",
        Kind::List,
        "",
        "Replay the I/Os of a trace: one of write_iolog (version 2 or 3 of its format), or what blkparse -d writes. Of several, \
         separated by colons, each clone takes its own; - is standard input. All of it is replayed once, at its own times and \
         in its order; only runtime ends it earlier. Total latency counts from the time of the trace. Files that are missing or \
         too short are laid out. The pauses of version 2 are microseconds, as documented; fio takes them for milliseconds since \
         its start.",
        |b, v| {
            b.replay.traces = value::colons(v.str());
            match b.replay.traces.is_empty() {
                true => Err(ValueError::new("no trace is named")),
                false => Ok(()),
            }
        },
    ),
    Row::new(
        "read_iolog_chunked",
        Kind::Bool,
        "0",
        "Read the trace piece by piece.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted("The trace is read before the job starts, so that reading it does not disturb the replay. It takes 32 bytes an I/O."),
    Row::new(
        "replay_no_stall",
        Kind::Bool,
        "0",
        "Replay without the trace's pauses, as fast as the device allows.",
        |b, v| v.bool_to(&mut b.replay.no_stall),
    ),
    Row::new(
        "replay_redirect",
        Kind::Text,
        "",
        "Replay all I/Os onto this file or device.",
        |b, v| v.text_to(&mut b.replay.redirect),
    ),
    Row::new(
        "replay_scale",
        Kind::Int(1, U32),
        "1",
        "Divide the trace's offsets by this.",
        |b, v| v.u32_to(&mut b.replay.scale, 1),
    ),
    Row::new(
        "replay_align",
        Kind::Size,
        "",
        "Round the trace's offsets down to multiples of this power of 2.",
        |b, v| {
            let bytes = value::bytes(v.str(), b.bytes)?;
            if bytes != 0 && !bytes.is_power_of_two() {
                return Err(ValueError::new("it is not a power of 2"));
            }
            b.replay.align_bytes = bytes;
            Ok(())
        },
    ),
    Row::new(
        "replay_time_scale",
        Kind::Int(1, U32),
        "100",
        "Replay at this speed, in per cent: 200 is twice as fast as recorded.",
        |b, v| v.u32_to(&mut b.replay.speed_percent, 1),
    ),
    Row::new(
        "replay_skip",
        Kind::Text,
        "",
        "Leave these out of the trace: read, write, trim, sync, separated by commas.",
        apply_replay_skip,
    ),
    merge(
        "merge_blktrace_file",
        Kind::Text,
        "Merge traces into this file.",
    ),
    merged(
        "merge_blktrace_scalars",
        "Stretch the times of merged traces.",
    ),
    merged("merge_blktrace_iters", "Repeat merged traces."),
    Row::new(
        "exec_prerun",
        Kind::Text,
        "",
        "Run a command by the shell before the I/O of each clone; its output goes to JOB.prerun.txt. If it fails, the clone does no I/O.",
        |b, v| v.text_to(&mut b.job.schedule.exec_prerun),
    ),
    Row::new(
        "exec_postrun",
        Kind::Text,
        "",
        "Run a command by the shell after the I/O of each clone; its output goes to JOB.postrun.txt.",
        |b, v| v.text_to(&mut b.job.schedule.exec_postrun),
    ),
    zbd("zonecapacity", Kind::Size, "0", "Usable bytes of a zone."),
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
        "",
    ),
    cgroup(
        "cgroup_weight",
        Kind::Int(100, 1000),
        "",
        "Weight of the control group.",
        "`systemd-run --scope -p IOWeight=N`",
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
    profile(
        "test-duration",
        Kind::Time(TimeUnit::Seconds),
        "Duration of the act profile."),
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
];

/// Reads a value of this kind and ignores it, so that a wrong value is still an error.
const fn unused(kind: Kind) -> Apply {
    match kind {
        Kind::Bool => |_, v| v.bool().map(|_| ()),
        Kind::Flag => |_, v| v.flag().map(|_| ()),
        Kind::Int(..) => |_, v| v.int(0..=U32).map(|_| ()),
        Kind::Size => |b, v| value::bytes(v.str(), b.bytes).map(|_| ()),
        // All unused options of this kind are fractions.
        Kind::Float => |_, v| match value::float(v.str())? {
            share if (0.0..=1.0).contains(&share) => Ok(()),
            _ => Err(ValueError::new("it is not between 0 and 1")),
        },
        Kind::Time(unit) => match unit {
            TimeUnit::Seconds => |_, v| v.time(TimeUnit::Seconds).map(|_| ()),
            TimeUnit::Milliseconds => |_, v| v.time(TimeUnit::Milliseconds).map(|_| ()),
            TimeUnit::Microseconds => |_, v| v.time(TimeUnit::Microseconds).map(|_| ()),
        },
        Kind::FloatList => |_, v| {
            let parts = v.str().split(':');
            parts
                .into_iter()
                .try_for_each(|part| value::float(part).map(|_| ()))
        },
        _ => |_, _| Ok(()),
    }
}

/// Makes the row of an option of merged traces.
const fn merged(name: &'static str, doc: &'static str) -> Row {
    Row::new(name, Kind::FloatList, "", doc, unused(Kind::FloatList))
        .accepted("Without effect, as in fio without `merge_blktrace_file`, which is refused.")
}

const fn merge(name: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row::unsupported(name, kind, "", doc, NO_MERGE, NO_MERGE_WAY)
}

fn apply_replay_skip(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    for word in v.str().split(',').map(str::trim) {
        let skip = &mut b.replay.skip;
        match word {
            "read" => skip.read = true,
            "write" => skip.write = true,
            "trim" => skip.trim = true,
            "sync" => skip.sync = true,
            _ => {
                let error = ValueError::new(format!("`{word}` is nothing that can be left out"));
                return Err(error.help("write read, write, trim or sync"));
            }
        }
    }
    Ok(())
}

/// Makes the row of an option of `zonemode=zbd`. That mode is refused, and fio ignores the option
/// in other modes.
const fn zbd(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Row {
    Row::new(name, kind, default, doc, unused(kind))
        .accepted("Without effect, as in fio without `zonemode=zbd`, which is refused.")
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

/// Makes the row of an option that fio always reads, but uses only in its profiles.
const fn profile(name: &'static str, kind: Kind, doc: &'static str) -> Row {
    Row::new(name, kind, "", doc, unused(kind))
        .accepted("Without effect, as in fio when no profile is named.")
}
