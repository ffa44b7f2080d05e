//! The remaining options of fio: name, description, traces, cgroups, zoned devices, profiles.

use super::row::ApplyJobOption;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::value::{self, ParsedValue, TimeUnit, ValueError};

const U32: i64 = u32::MAX as i64;
const NO_MERGE: &str = "iosonde does not merge traces";
const NO_MERGE_WAY: &str = "use one job per trace: all jobs start at the same time";

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "name",
        ValueKind::Text,
        "",
        "Name of the job. On the command line it starts a new job; in a job file it replaces the \
         section's name.",
        |b, v| v.text_to(&mut b.name),
    ),
    OptionRow::new(
        "description",
        ValueKind::Text,
        "",
        "Description of the job, for the report.",
        |b, v| v.text_to(&mut b.job.description),
    ),
    OptionRow::unsupported(
        "rwmixcycle",
        ValueKind::Int(0, U32),
        "",
        "Switch between reads and writes at this interval.",
        "fio has dropped it",
        "rwmixread draws the direction of each I/O",
    ),
    OptionRow::unsupported(
        "write_barrier",
        ValueKind::Int(0, U32),
        "0",
        "Make every Nth write a barrier.",
        "Linux has no barrier writes",
        "fdatasync=N",
    ),
    OptionRow::new(
        "write_iolog",
        ValueKind::Text,
        "",
        "Record the job's I/Os into this file, as a trace for read_iolog, in version 3 of its \
         format. A file that exists is added to. Jobs should have one each.",
        |b, v| v.text_to(&mut b.job.measure.logs.trace),
    ),
    OptionRow::new(
        "read_iolog",
        ValueKind::List,
        "",
        "Replay the I/Os of a trace: a file of write_iolog (format version 2 or 3), or of blkparse \
         -d. With several traces, separated by colons, each clone replays one; - is standard \
         input. The whole trace is replayed once, at its own times and in its order; only runtime \
         ends the replay earlier. Total latency counts from the time of the trace. Files that are \
         missing or too short are laid out. The pauses of version 2 are microseconds, as \
         documented; fio takes them for milliseconds since its start.",
        |b, v| {
            b.replay.traces = value::colons(v.str());
            match b.replay.traces.is_empty() {
                true => Err(ValueError::new("no trace is named")),
                false => Ok(()),
            }
        },
    ),
    OptionRow::new(
        "read_iolog_chunked",
        ValueKind::Bool,
        "0",
        "Read the trace in chunks.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted(
        "The trace is read before the job starts, so that reading does not disturb the replay. A \
         trace needs 32 bytes of memory per I/O.",
    ),
    OptionRow::new(
        "replay_no_stall",
        ValueKind::Bool,
        "0",
        "Replay without the pauses of the trace, as fast as possible.",
        |b, v| v.bool_to(&mut b.replay.no_stall),
    ),
    OptionRow::new(
        "replay_redirect",
        ValueKind::Text,
        "",
        "Replay all I/Os onto this file or device.",
        |b, v| v.text_to(&mut b.replay.redirect),
    ),
    OptionRow::new(
        "replay_scale",
        ValueKind::Int(1, U32),
        "1",
        "Divide the trace's offsets by this.",
        |b, v| v.u32_to(&mut b.replay.scale, 1),
    ),
    OptionRow::new(
        "replay_align",
        ValueKind::Size,
        "",
        "Round the trace's offsets down to multiples of this power of 2.",
        |b, v| {
            let bytes = value::bytes(v.str(), b.bytes)?;
            if bytes != 0 && !bytes.is_power_of_two() {
                return Err(ValueError::new("the value is not a power of 2"));
            }
            b.replay.align_bytes = bytes;
            Ok(())
        },
    ),
    OptionRow::new(
        "replay_time_scale",
        ValueKind::Int(1, U32),
        "100",
        "Replay at this speed, in per cent: 200 is twice as fast as recorded.",
        |b, v| v.u32_to(&mut b.replay.speed_percent, 1),
    ),
    OptionRow::new(
        "replay_skip",
        ValueKind::Text,
        "",
        "Skip these operations of the trace: read, write, trim, sync, separated by commas.",
        apply_replay_skip,
    ),
    merge(
        "merge_blktrace_file",
        ValueKind::Text,
        "Merge traces into this file.",
    ),
    merged(
        "merge_blktrace_scalars",
        "Stretch the times of merged traces.",
    ),
    merged("merge_blktrace_iters", "Repeat merged traces."),
    OptionRow::new(
        "exec_prerun",
        ValueKind::Text,
        "",
        "Run a shell command before the I/O of each clone; its output goes to JOB.prerun.txt. If \
         it fails, the clone does no I/O.",
        |b, v| v.text_to(&mut b.job.schedule.exec_prerun),
    ),
    OptionRow::new(
        "exec_postrun",
        ValueKind::Text,
        "",
        "Run a shell command after the I/O of each clone; its output goes to JOB.postrun.txt.",
        |b, v| v.text_to(&mut b.job.schedule.exec_postrun),
    ),
    zbd_option(
        "zonecapacity",
        ValueKind::Size,
        "0",
        "Usable bytes of a zone.",
    ),
    zbd_option(
        "read_beyond_wp",
        ValueKind::Bool,
        "0",
        "Read behind the write pointer.",
    ),
    zbd_option(
        "max_open_zones",
        ValueKind::Int(0, 4096),
        "0",
        "Zones written at once.",
    ),
    zbd_option(
        "job_max_open_zones",
        ValueKind::Int(0, 4096),
        "0",
        "Zones one job writes at once.",
    ),
    zbd_option(
        "ignore_zone_limits",
        ValueKind::Bool,
        "0",
        "Ignore the device's limits.",
    ),
    zbd_option(
        "zone_reset_threshold",
        ValueKind::Float,
        "0",
        "When zones are reset.",
    ),
    zbd_option(
        "zone_reset_frequency",
        ValueKind::Float,
        "0",
        "How often zones are reset.",
    ),
    cgroup(
        "cgroup",
        ValueKind::Text,
        "",
        "Put the job into a control group.",
        "start iosonde in the control group: `systemd-run --scope -p ...`",
    ),
    cgroup(
        "cgroup_nodelete",
        ValueKind::Bool,
        "0",
        "Keep the control group.",
        "",
    ),
    cgroup(
        "cgroup_weight",
        ValueKind::Int(100, 1000),
        "",
        "Weight of the control group.",
        "`systemd-run --scope -p IOWeight=N`",
    ),
    OptionRow::unsupported(
        "profile",
        ValueKind::Text,
        "",
        "Run one of fio's built-in profiles.",
        "fio's built-in profiles are not supported",
        "write the profile's jobs into a job file",
    ),
    profile(
        "device-names",
        ValueKind::Text,
        "Devices of the act profile.",
    ),
    profile("load", ValueKind::Int(0, U32), "Load of the act profile."),
    profile(
        "test-duration",
        ValueKind::Time(TimeUnit::Seconds),
        "Duration of the act profile.",
    ),
    profile(
        "threads-per-queue",
        ValueKind::Int(0, U32),
        "Threads of the act profile.",
    ),
    profile(
        "read-req-num-512-blocks",
        ValueKind::Int(0, U32),
        "Read size of the act profile.",
    ),
    profile(
        "large-block-op-kbytes",
        ValueKind::Int(0, U32),
        "Write size of the act profile.",
    ),
    profile(
        "prep",
        ValueKind::Flag,
        "Prepare the device for the act profile.",
    ),
    profile(
        "block",
        ValueKind::Int(0, U32),
        "Block size of the tiobench profile.",
    ),
    profile(
        "numruns",
        ValueKind::Int(0, U32),
        "Runs of the tiobench profile.",
    ),
    profile("dir", ValueKind::Text, "Directory of the tiobench profile."),
    profile(
        "threads",
        ValueKind::Int(0, U32),
        "Threads of the tiobench profile.",
    ),
];

/// Reads a value of this kind and ignores it, so that a wrong value is still an error.
const fn unused(kind: ValueKind) -> ApplyJobOption {
    match kind {
        ValueKind::Bool => |_, v| v.bool().map(|_| ()),
        ValueKind::Flag => |_, v| v.flag().map(|_| ()),
        ValueKind::Int(..) => |_, v| v.int(0..=U32).map(|_| ()),
        ValueKind::Size => |b, v| value::bytes(v.str(), b.bytes).map(|_| ()),
        // All unused options of this kind are fractions.
        ValueKind::Float => |_, v| match value::float(v.str())? {
            share if (0.0..=1.0).contains(&share) => Ok(()),
            _ => Err(ValueError::new("the value is not between 0 and 1")),
        },
        ValueKind::Time(unit) => match unit {
            TimeUnit::Seconds => |_, v| v.time(TimeUnit::Seconds).map(|_| ()),
            TimeUnit::Milliseconds => |_, v| v.time(TimeUnit::Milliseconds).map(|_| ()),
            TimeUnit::Microseconds => |_, v| v.time(TimeUnit::Microseconds).map(|_| ()),
        },
        ValueKind::FloatList => |_, v| {
            let parts = v.str().split(':');
            parts
                .into_iter()
                .try_for_each(|part| value::float(part).map(|_| ()))
        },
        _ => |_, _| Ok(()),
    }
}

/// Makes the row of an option of merged traces.
const fn merged(name: &'static str, doc: &'static str) -> OptionRow {
    OptionRow::new(
        name,
        ValueKind::FloatList,
        "",
        doc,
        unused(ValueKind::FloatList),
    )
    .accepted("Without effect, as in fio without `merge_blktrace_file`, which is refused.")
}

const fn merge(name: &'static str, kind: ValueKind, doc: &'static str) -> OptionRow {
    OptionRow::unsupported(name, kind, "", doc, NO_MERGE, NO_MERGE_WAY)
}

fn apply_replay_skip(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    for word in v.str().split(',').map(str::trim) {
        let skip = &mut b.replay.skip;
        match word {
            "read" => skip.read = true,
            "write" => skip.write = true,
            "trim" => skip.trim = true,
            "sync" => skip.sync = true,
            _ => {
                let error = ValueError::new(format!("`{word}` cannot be skipped"));
                return Err(error.help("write read, write, trim or sync"));
            }
        }
    }
    Ok(())
}

/// Makes the row of an option of `zonemode=zbd`. That mode is refused, and fio ignores the option
/// in other modes.
const fn zbd_option(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
) -> OptionRow {
    OptionRow::new(name, kind, default, doc, unused(kind))
        .accepted("Without effect, as in fio without `zonemode=zbd`, which is refused.")
}

const fn cgroup(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
    way: &'static str,
) -> OptionRow {
    let why = "control groups are reported, not changed";
    OptionRow::unsupported(name, kind, default, doc, why, way)
}

/// Makes the row of an option that fio always reads, but uses only in its profiles.
const fn profile(name: &'static str, kind: ValueKind, doc: &'static str) -> OptionRow {
    OptionRow::new(name, kind, "", doc, unused(kind))
        .accepted("Without effect, as in fio when no profile is named.")
}
