//! Options for the verification of contents.

use super::option_value::choice;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::{self, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Bytes of the verification header, which holds the checksum.
const HEADER_BYTES: u64 = 40;

const NO_TRIM_PERCENTAGE: &str =
    "Without effect, as in fio without `trim_percentage`, which is refused.";

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "verify",
        ValueKind::Words(
            &[
                "0",
                "crc32c",
                "crc32",
                "crc16",
                "crc7",
                "crc64",
                "md5",
                "sha1",
                "sha256",
                "sha512",
                "xxhash",
                "pattern",
                "pattern_hdr",
                "null",
                "meta",
            ],
            "",
        ),
        "0",
        "Verify written data: crc32c, crc32, crc16, crc7, crc64, md5, sha1, sha256, sha512, \
         xxhash, pattern, null; meta is the same as crc32c; 0: off. Headers have a format of \
         iosonde: except with pattern, fio cannot verify these blocks, and iosonde cannot verify \
         those of fio.",
        apply_verify,
    ),
    OptionRow::new(
        "do_verify",
        ValueKind::Bool,
        "1",
        "Verify all data after it was written. 0: only write the headers, for verification by a \
         later run.",
        |b, v| v.bool_to(&mut b.verify.do_verify),
    ),
    OptionRow::new(
        "verify_only",
        ValueKind::Flag,
        "0",
        "Only verify the data of an earlier run of the same job, without writes. Only the reads \
         are reported; fio also reports the writes that were not done.",
        |b, v| v.flag_to(&mut b.verify.verify_only),
    ),
    OptionRow::new(
        "verify_fatal",
        ValueKind::Bool,
        "0",
        "End the job at the first block that differs.",
        |b, v| v.bool_to(&mut b.verify.fatal),
    ),
    OptionRow::new(
        "verify_dump",
        ValueKind::Bool,
        "0",
        "Save both versions of a block that differs to files.",
        |b, v| v.bool_to(&mut b.verify.dump),
    ),
    OptionRow::new(
        "verify_interval",
        ValueKind::Size,
        "0",
        "Distance between headers in bytes. The default is the block size.",
        |b, v| v.bytes_to(&mut b.verify.interval_bytes, b.bytes),
    ),
    OptionRow::new(
        "verify_offset",
        ValueKind::Size,
        "0",
        "Offset of the header in the block.",
        |b, v| {
            let offset = value::bytes(v.str(), b.bytes)?;
            if offset != 0 && offset < HEADER_BYTES {
                return Err(ValueError::new(format!(
                    "the header would overlap the start of the block: the minimum is \
                     {HEADER_BYTES} bytes"
                )));
            }
            b.verify.header_offset_bytes = offset;
            Ok(())
        },
    ),
    OptionRow::new(
        "verify_pattern",
        ValueKind::Pattern,
        "",
        "Contents of blocks; %o is the block's offset.",
        |b, v| {
            let read = |path: &str| v.env.read_start(path, value::MAX_PATTERN_BYTES).ok();
            let parts = value::pattern_with_fields(v.str(), read)?;
            b.verify.pattern = Some(VerifyPattern { parts });
            Ok(())
        },
    ),
    OptionRow::new(
        "verify_backlog",
        ValueKind::Int(0, i64::MAX),
        "0",
        "Verify after this many blocks instead of at the end. 0: at the end.",
        |b, v| v.u64_to(&mut b.verify.backlog, 0),
    ),
    OptionRow::new(
        "verify_backlog_batch",
        ValueKind::Int(0, U32),
        "0",
        "Number of blocks to verify each time. The default is verify_backlog.",
        |b, v| v.u64_to(&mut b.verify.backlog_batch, 0),
    ),
    OptionRow::new(
        "verify_async",
        ValueKind::Int(0, U32),
        "0",
        "Number of additional threads that verify. 0: the reading thread verifies.",
        |b, v| v.u32_to(&mut b.verify.r#async, 0),
    )
    .accepted("Blocks are checked by the thread that reads them: the same checks, in one thread."),
    OptionRow::unsupported(
        "verify_async_cpus",
        ValueKind::Numbers,
        "",
        "CPUs of the threads that verify.",
        "checking threads run where the job runs",
        "cpus_allowed",
    ),
    OptionRow::new(
        "verifysort",
        ValueKind::Bool,
        "1",
        "Verify blocks in the order of their offsets. fio has removed this option.",
        |b, v| v.bool_to(&mut b.verify.sort),
    )
    .accepted(
        "Blocks are read back in the order of their offsets wherever a record of them is kept.",
    ),
    OptionRow::new(
        "verifysort_nr",
        ValueKind::Int(0, U32),
        "1024",
        "Number of blocks to load at once for verification.",
        |_, v| v.int(0..=U32).map(|_| ()),
    )
    .accepted("It has no effect; fio has dropped it too."),
    OptionRow::unsupported(
        "verify_state_save",
        ValueKind::Bool,
        "0",
        "Save the write position when a job is stopped.",
        "no state is saved",
        "verify_only checks a job that ran to its end",
    ),
    OptionRow::unsupported(
        "verify_state_load",
        ValueKind::Bool,
        "0",
        "Load the saved write position.",
        "no state is saved",
        "verify_only checks a job that ran to its end",
    ),
    OptionRow::unsupported(
        "experimental_verify",
        ValueKind::Bool,
        "0",
        "Verify by a replay of the job.",
        "iosonde has no replacement for this experiment of fio",
        "verify_only",
    ),
    OptionRow::unsupported(
        "trim_percentage",
        ValueKind::Percent,
        "0",
        "Percentage of the written blocks to discard during verification.",
        "trims are not mixed into verification",
        "rw=trimwrite",
    ),
    OptionRow::new(
        "trim_verify_zero",
        ValueKind::Bool,
        "1",
        "Check that discarded blocks read as zeros.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
    OptionRow::new(
        "trim_backlog",
        ValueKind::Int(0, i64::MAX),
        "0",
        "Discard after this many blocks.",
        |_, v| v.int(0..=i64::MAX).map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
    OptionRow::new(
        "trim_backlog_batch",
        ValueKind::Int(0, U32),
        "0",
        "Number of blocks to discard each time.",
        |_, v| v.int(0..=U32).map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
];

fn apply_verify(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let known: &[(&str, Option<VerifyMethod>)] = &[
        ("0", None),
        ("crc32c", Some(VerifyMethod::Crc32c)),
        // Every method checks the header's offset and number, and the cost of crc32c is negligible.
        ("meta", Some(VerifyMethod::Crc32c)),
        ("crc32c-intel", Some(VerifyMethod::Crc32c)),
        ("crc32", Some(VerifyMethod::Crc32)),
        ("crc16", Some(VerifyMethod::Crc16)),
        ("crc7", Some(VerifyMethod::Crc7)),
        ("crc64", Some(VerifyMethod::Crc64)),
        ("md5", Some(VerifyMethod::Md5)),
        ("sha1", Some(VerifyMethod::Sha1)),
        ("sha256", Some(VerifyMethod::Sha256)),
        ("sha512", Some(VerifyMethod::Sha512)),
        ("xxhash", Some(VerifyMethod::Xxhash)),
        ("pattern", Some(VerifyMethod::Pattern)),
        ("pattern_hdr", Some(VerifyMethod::PatternHeader)),
        ("null", Some(VerifyMethod::Null)),
    ];
    if v.str().starts_with("sha3-") {
        return Err(ValueError::new(format!("`{}` is not supported", v.str()))
            .help("sha256 and sha512 are"));
    }
    b.verify_method = choice(v.str(), known)?;
    Ok(())
}
