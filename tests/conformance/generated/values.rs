//! Random values for options, by the kind in the option table.

use iosonde_job::options::{OptionFamily, OptionRow, ValueKind};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Options that no command line gets, with the reasons.
const LEFT_OUT: &[(&str, &str)] = &[
    ("ioscheduler", "it changes the machine"),
    ("uid", "the scratch directory belongs to the caller"),
    ("gid", "the scratch directory belongs to the caller"),
    ("sim", "fio has no simulated device"),
    ("filename", "the base of the command line sets it"),
    ("name", "the base of the command line sets it"),
    ("wait_for", "it needs a job of that name"),
    (
        "read_iolog",
        "it needs a trace; conformance/replay.rs has traces",
    ),
    ("fill_device", "it fills the disk"),
    ("steadystate_check_interval", "fio 3.33 does not have it"),
    ("log_window_value", "fio 3.33 does not have it"),
    (
        "hugepage-size",
        "it depends on the pages that the machine has reserved",
    ),
];

/// Values for options whose kind does not define them, or whose runs would take long.
const CHOSEN: &[(&str, &[&str])] = &[
    ("description", &["a", "two words"]),
    ("directory", &[".", "sub", "sub:."]),
    (
        "filename_format",
        &["$jobname.$filenum", "f.$jobnum.$filenum", "$jobname"],
    ),
    ("opendir", &[".", "sub"]),
    (
        "file_service_type",
        &[
            "random",
            "roundrobin",
            "sequential",
            "roundrobin:2",
            "zipf:1.2",
        ],
    ),
    ("nrfiles", &["1", "2", "3", "7"]),
    ("openfiles", &["0", "1", "2"]),
    (
        "ioengine",
        &[
            "psync", "sync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio",
            "mmap", "null",
        ],
    ),
    ("iodepth", &["1", "2", "4", "16"]),
    ("iodepth_batch", &["0", "1", "2", "8"]),
    ("iodepth_batch_complete_min", &["0", "1", "2"]),
    ("iodepth_batch_complete_max", &["1", "4"]),
    ("iodepth_low", &["1", "2"]),
    ("numjobs", &["1", "2", "3"]),
    ("loops", &["0", "1", "2", "3"]),
    ("mem", &["malloc", "shm", "mmap", "mmap:mapped"]),
    (
        "numa_mem_policy",
        &["default", "local", "bind:0", "prefer:0"],
    ),
    ("numa_cpu_nodes", &["0"]),
    ("cpus_allowed", &["0", "0-1", "0,1"]),
    ("cpumask", &["1", "3"]),
    ("lockmem", &["64k", "1m"]),
    ("cmdprio_bssplit", &["4k/50", "64k/10:4k/90"]),
    ("write_bw_log", &["log"]),
    ("write_lat_log", &["log"]),
    ("write_iops_log", &["log"]),
    ("write_hist_log", &["log"]),
    ("write_iolog", &["trace.log"]),
    ("ignore_error", &["EIO", "EIO,EIO", ",,EILSEQ"]),
    ("replay_redirect", &["target"]),
    ("replay_skip", &["trim", "sync,trim"]),
    ("exec_prerun", &["true", "false"]),
    ("exec_postrun", &["true"]),
    (
        "verify",
        &[
            "0", "md5", "crc32c", "crc64", "xxhash", "sha1", "pattern", "null", "crc16",
        ],
    ),
    (
        "verify_pattern",
        &[
            "0xdeadbeef",
            "0x00",
            "\"abc\"",
            "17",
            "0xff%o",
            "\"a\"0x11-7",
        ],
    ),
    (
        "buffer_pattern",
        &["0xdeadbeef", "0x00", "\"abc\"", "17", "\"a\"0x11-7"],
    ),
    ("verify_backlog", &["0", "1", "4", "1000"]),
    ("verify_async", &["0", "1", "2"]),
    (
        "rw",
        &[
            "read",
            "write",
            "randread",
            "randwrite",
            "rw",
            "randrw",
            "readwrite",
            "read",
            "write",
            "randread",
            "randwrite",
            "randread:4",
            "write:4k",
            "trim",
        ],
    ),
    (
        "bs",
        &["4k", "8k", "1k", "3000", "64k", "4k,8k", "4k,8k,16k"],
    ),
    ("bsrange", &["4k-16k", "1k-8k,4k-4k", "16k-4k"]),
    (
        "bssplit",
        &["4k/50:16k/50", "4k/:8k/20:16k/", "4k/100,8k/100"],
    ),
    ("ba", &["4k", "16k", "512"]),
    (
        "random_distribution",
        &[
            "random",
            "zipf:1.1",
            "pareto:0.3",
            "normal:20",
            "zoned:50/5:50/95",
            "zipf:1.2:0.3",
        ],
    ),
    (
        "sync_file_range",
        &["write:2", "wait_before,write:4", "write,wait_after:8"],
    ),
    ("size", &["64k", "100k", "256k", "1m", "50%", "4000"]),
    ("io_size", &["32k", "128k", "300k", "50%"]),
    ("filesize", &["64k", "128k"]),
    ("offset", &["0", "4k", "64k", "25%"]),
    ("offset_increment", &["4k", "64k", "10%"]),
    ("number_ios", &["0", "1", "7", "1000"]),
    ("runtime", &["0", "1", "500ms", "1s"]),
    ("ramp_time", &["0", "1", "100ms"]),
    ("startdelay", &["0", "100ms", "0-200ms"]),
    ("thinktime", &["0", "10", "1ms"]),
    ("thinktime_spin", &["0", "10"]),
    ("thinktime_iotime", &["0", "1ms"]),
    ("rate", &["1m", "10m", "10m,20m", ",10m"]),
    ("rate_iops", &["500", "2000", "1000,500"]),
    ("rate_min", &["1", "1k"]),
    ("rate_iops_min", &["1", "2"]),
    ("max_latency", &["10s", "30s"]),
    ("latency_target", &["0", "1s"]),
    ("latency_window", &["0", "100ms"]),
    ("latency_percentile", &["100", "99.9"]),
    (
        "steadystate",
        &["iops:10%", "bw_slope:1%", "iops_slope:0.5%"],
    ),
    ("steadystate_duration", &["0", "1"]),
    ("steadystate_ramp_time", &["0", "1"]),
    ("flow_sleep", &["0", "100"]),
    ("zonesize", &["64k", "16k"]),
    ("zone_reset_threshold", &["0", "0.5", "1"]),
    ("zone_reset_frequency", &["0", "0.5", "1"]),
    ("zonerange", &["64k", "128k"]),
    ("zoneskip", &["0", "64k"]),
    ("log_entries", &["1024"]),
    ("nice", &["0", "5"]),
    ("prio", &["0", "4"]),
];

/// Whether an option may appear on a command line with this engine.
pub(super) fn is_drawable(row: &OptionRow, engine: &str) -> bool {
    let left_out = LEFT_OUT.iter().any(|(name, _)| *name == row.name);
    let is_ceph = iosonde_job::options::family(OptionFamily::Ceph)
        .iter()
        .any(|each| each.name == row.name);
    let fits = row.engines.is_empty() || row.engines.contains(&engine);
    !left_out && !is_ceph && fits && !row.is_later()
}

/// A value for an option; `None` for an option without a value.
pub(super) fn draw_value(row: &OptionRow, random: &mut Xoshiro256PlusPlus) -> Option<String> {
    if let Some((_, values)) = CHOSEN.iter().find(|(name, _)| *name == row.name) {
        let value: &&str = pick(values, random);
        return Some((*value).to_owned());
    }
    let value = match row.kind {
        ValueKind::Flag => return (random.random_range(0..3) > 0).then(|| one_or_zero(random)),
        ValueKind::Bool => one_or_zero(random),
        ValueKind::Int(least, most) | ValueKind::IntList(least, most) => {
            let wanted = *pick(&[0, 1, 2, 3, 8], random);
            wanted.clamp(least, most).to_string()
        }
        ValueKind::Percent | ValueKind::PercentList => {
            pick(&["0", "1", "30", "50", "100"], random).to_string()
        }
        ValueKind::Size | ValueKind::SizeList | ValueKind::Extent => {
            pick(&["512", "4k", "16k", "64k"], random).to_string()
        }
        ValueKind::SizeRange | ValueKind::SizeRangeList => {
            pick(&["4k", "4k-8k"], random).to_string()
        }
        ValueKind::Time(_) | ValueKind::TimeList(_) | ValueKind::TimeRange(_) => {
            pick(&["0", "1ms", "100us"], random).to_string()
        }
        ValueKind::Float | ValueKind::FloatList => {
            pick(&["50", "99.9", "10:90"], random).to_string()
        }
        ValueKind::Choice(words) | ValueKind::Words(words, _) => pick(words, random).to_string(),
        ValueKind::Text
        | ValueKind::OptionalText
        | ValueKind::List
        | ValueKind::Numbers
        | ValueKind::Pattern => pick(&["0", "1", "a"], random).to_string(),
    };
    Some(value)
}

fn one_or_zero(random: &mut Xoshiro256PlusPlus) -> String {
    random.random_range(0..2).to_string()
}

/// A random element of a list that is not empty.
pub(super) fn pick<'a, T>(list: &'a [T], random: &mut Xoshiro256PlusPlus) -> &'a T {
    &list[random.random_range(0..list.len())]
}
