//! Options and values that fio added after 3.33, the version that iosonde follows.
//!
//! The versions come from Debian's packages of fio 3.36, 3.38, 3.39 and 3.41.

use super::later_reasons::{AFTER_3_41, BY_3_36, BY_3_38, BY_3_39, BY_3_39_AT_LATEST, BY_3_41};
use super::{OptionRow, ValueKind};

const U32: i64 = u32::MAX as i64;

/// New values of options that fio 3.33 has: option, value, reason.
const VALUES: &[(&str, &str, &str)] = &[
    ("fadvise_hint", "noreuse", BY_3_36),
    ("log_max_value", "avg", BY_3_39_AT_LATEST),
    ("log_max_value", "max", BY_3_39_AT_LATEST),
    ("log_max_value", "both", BY_3_39_AT_LATEST),
    ("log_window_value", "both", BY_3_39_AT_LATEST),
];

/// Unsupported engines of later versions, with the reason.
const ENGINES: &[(&str, &str)] = &[
    ("libblkio", BY_3_39_AT_LATEST),
    ("dircreate", BY_3_39_AT_LATEST),
    ("dirstat", BY_3_39_AT_LATEST),
    ("dirdelete", BY_3_39_AT_LATEST),
];

/// Returns the reason for an engine of a later fio; `None` for engines of fio 3.33.
pub(super) fn reason_of_engine(engine: &str) -> Option<&'static str> {
    let found = ENGINES.iter().find(|(name, _)| *name == engine);
    found.map(|(_, reason)| *reason)
}

/// Returns the reason for a value that only a later fio accepts; `None` for other values.
pub(crate) fn reason_of_value(option: &str, value: &str) -> Option<&'static str> {
    let found = VALUES
        .iter()
        .find(|(name, word, _)| *name == option && *word == value);
    found.map(|(.., reason)| *reason)
}

/// Rows of the option table. The default is the value that has the same effect as leaving the
/// option out.
pub(super) const ROWS: &[OptionRow] = &[
    later(
        "fdp",
        ValueKind::Bool,
        "0",
        "Place data by NVMe's flexible data placement.",
        BY_3_36,
    ),
    later(
        "dataplacement",
        ValueKind::Choice(&["none", "fdp", "streams"]),
        "none",
        "Place data by hints to the device.",
        BY_3_38,
    ),
    later(
        "plids",
        ValueKind::Text,
        "",
        "Placement identifiers.",
        BY_3_36,
    )
    .aliases(&["fdp_pli"]),
    later(
        "plid_select",
        ValueKind::Choice(&["random", "roundrobin", "scheme"]),
        "",
        "How placement identifiers are picked.",
        BY_3_36,
    )
    .aliases(&["fdp_pli_select"]),
    later(
        "dp_scheme",
        ValueKind::Text,
        "",
        "File that maps offsets to placement identifiers.",
        BY_3_38,
    ),
    later(
        "sprandom",
        ValueKind::Bool,
        "0",
        "Precondition an SSD with one pass of random writes.",
        BY_3_41,
    ),
    later(
        "spr_num_regions",
        ValueKind::Int(1, U32),
        "100",
        "Regions of sprandom.",
        BY_3_41,
    ),
    later(
        "spr_op",
        ValueKind::Float,
        "0.15",
        "Overprovisioning of the SSD, for sprandom.",
        BY_3_41,
    ),
    later(
        "ramp_size",
        ValueKind::Size,
        "0",
        "Transfer this many bytes before the measurement.",
        AFTER_3_41,
    ),
    later(
        "thinkcycles",
        ValueKind::Int(0, U32),
        "0",
        "Spin this many cycles between I/Os.",
        BY_3_38,
    ),
    later(
        "priohint",
        ValueKind::Int(0, 1023),
        "0",
        "Hint of I/O priority.",
        BY_3_36,
    ),
    later(
        "cmdprio_hint",
        ValueKind::IntList(0, 1023),
        "0",
        "Hint of the priority of cmdprio.",
        BY_3_36,
    ),
    later(
        "log_issue_time",
        ValueKind::Bool,
        "0",
        "Log when each I/O was issued.",
        BY_3_38,
    ),
    later(
        "job_start_clock_id",
        ValueKind::Int(0, U32),
        "0",
        "Clock of job_start in JSON.",
        BY_3_36,
    ),
    later(
        "verify_write_sequence",
        ValueKind::Bool,
        "1",
        "Check the order of writes.",
        BY_3_38,
    ),
    later(
        "verify_header_seed",
        ValueKind::Bool,
        "1",
        "Check the seed in headers.",
        BY_3_39,
    ),
    later(
        "verify_pattern_interval",
        ValueKind::Size,
        "0",
        "Repeat verify_pattern with a new offset each time.",
        BY_3_41,
    ),
    later(
        "libaio_vectored",
        ValueKind::Bool,
        "0",
        "Use vectored calls.",
        BY_3_39,
    )
    .engines(&["libaio"]),
    later(
        "filetype",
        ValueKind::Choice(&["none", "file", "block", "char"]),
        "none",
        "Take all files for this type.",
        BY_3_41,
    ),
    later(
        "num_range",
        ValueKind::Int(1, 256),
        "1",
        "Ranges in one trim.",
        BY_3_38,
    ),
    later(
        "max_write_zones",
        ValueKind::Int(0, U32),
        "0",
        "Zones written at once.",
        AFTER_3_41,
    ),
    later(
        "recover_zbd_write_error",
        ValueKind::Bool,
        "0",
        "Recover zones after a failed write.",
        BY_3_41,
    ),
    of_engine("http_object_mode", "block", HTTP, BY_3_41),
    of_engine("http_s3_security_token", "", HTTP, BY_3_41),
    of_engine("xnvme_dev_subnqn", "", XNVME, BY_3_39_AT_LATEST),
    of_engine("xnvme_mem", "", XNVME, BY_3_39_AT_LATEST),
    of_engine("libblkio_driver", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine("libblkio_path", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine(
        "libblkio_pre_connect_props",
        "",
        LIBBLKIO,
        BY_3_39_AT_LATEST,
    ),
    of_engine("libblkio_num_entries", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine("libblkio_queue_size", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine("libblkio_pre_start_props", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine("libblkio_vectored", "", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine(
        "libblkio_write_zeroes_on_trim",
        "",
        LIBBLKIO,
        BY_3_39_AT_LATEST,
    ),
    of_engine("libblkio_wait_mode", "block", LIBBLKIO, BY_3_39_AT_LATEST),
    of_engine(
        "libblkio_force_enable_completion_eventfd",
        "",
        LIBBLKIO,
        BY_3_39_AT_LATEST,
    ),
    passthrough(
        "write_mode",
        ValueKind::Choice(&["write", "uncor", "zeroes", "verify"]),
        "write",
        BY_3_38,
    ),
    passthrough(
        "verify_mode",
        ValueKind::Choice(&["read", "compare"]),
        "read",
        BY_3_38,
    ),
    passthrough("deac", ValueKind::Bool, "0", BY_3_39),
    passthrough("md_per_io_size", ValueKind::Int(0, U32), "0", BY_3_36),
    passthrough("pi_act", ValueKind::Bool, "1", BY_3_36),
    passthrough("pi_chk", ValueKind::Text, "", BY_3_36),
    passthrough("apptag", ValueKind::Int(0, U32), "", BY_3_36),
    passthrough("apptag_mask", ValueKind::Int(0, U32), "", BY_3_36),
];

const fn later(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    doc: &'static str,
    reason: &'static str,
) -> OptionRow {
    OptionRow::unsupported(name, kind, default, doc, reason, "")
}

const HTTP: &[&str] = &["http"];
const XNVME: &[&str] = &["xnvme"];
const LIBBLKIO: &[&str] = &["libblkio"];

/// Makes the row of an option of an unsupported engine.
const fn of_engine(
    name: &'static str,
    default: &'static str,
    engines: &'static [&'static str],
    reason: &'static str,
) -> OptionRow {
    later(
        name,
        ValueKind::Text,
        default,
        "An option of an engine that is not supported.",
        reason,
    )
    .engines(engines)
}

/// Makes the row of an option of raw NVMe commands.
const fn passthrough(
    name: &'static str,
    kind: ValueKind,
    default: &'static str,
    reason: &'static str,
) -> OptionRow {
    later(name, kind, default, "A field of raw NVMe commands.", reason)
        .engines(&["io_uring_cmd", "xnvme"])
}
