//! Options for the verification of contents.

use super::given::choice;
use super::{Builder, Given, Kind, Row};
use crate::plan::*;
use crate::value::{self, Parsed, ValueError};

const U32: i64 = u32::MAX as i64;

/// Bytes of the verification header, which holds the checksum.
const HEADER_BYTES: u64 = 40;

const NO_TRIM_PERCENTAGE: &str =
    "Without effect, as in fio without `trim_percentage`, which is refused.";

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "verify",
        Kind::Words(
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
        "Check what was written: crc32c, crc32, crc16, crc7, crc64, md5, sha1, sha256, sha512, xxhash, pattern, \
         null; meta checks as crc32c does; 0 is off. Headers are iosonde's own: with any of them but pattern, fio \
         does not read these blocks, nor iosonde fio's.",
        apply_verify,
    ),
    Row::new(
        "do_verify",
        Kind::Bool,
        "1",
        "Read everything back after it was written. At 0 only the headers are written, for a later run to check.",
        |b, v| v.bool_to(&mut b.verify.do_verify),
    ),
    Row::new(
        "verify_only",
        Kind::Flag,
        "0",
        "Write nothing: check what an earlier run of the same job wrote. Only the reads are reported; fio adds the writes that it \
         did not do.",
        |b, v| v.flag_to(&mut b.verify.verify_only),
    ),
    Row::new(
        "verify_fatal",
        Kind::Bool,
        "0",
        "End the job at the first block that differs.",
        |b, v| v.bool_to(&mut b.verify.fatal),
    ),
    Row::new(
        "verify_dump",
        Kind::Bool,
        "0",
        "Save both versions of a block that differs to files.",
        |b, v| v.bool_to(&mut b.verify.dump),
    ),
    Row::new(
        "verify_interval",
        Kind::Size,
        "0",
        "Put a header every so many bytes; the block size unless given.",
        |b, v| v.bytes_to(&mut b.verify.interval_bytes, b.bytes),
    ),
    Row::new(
        "verify_offset",
        Kind::Size,
        "0",
        "Put the header this far into the block.",
        |b, v| {
            let offset = value::bytes(v.str(), b.bytes)?;
            if offset != 0 && offset < HEADER_BYTES {
                return Err(ValueError::new(format!(
                    "the header would overlap the block's start; {HEADER_BYTES} bytes are the least"
                )));
            }
            b.verify.header_offset_bytes = offset;
            Ok(())
        },
    ),
    Row::new(
        "verify_pattern",
        Kind::Pattern,
        "",
        "What blocks are filled with; %o is the block's offset.",
        |b, v| {
            let read = |path: &str| v.env.read_start(path, value::MAX_PATTERN_BYTES).ok();
            let parts = value::pattern_with_fields(v.str(), read)?;
            b.verify.pattern = Some(VerifyPattern { parts });
            Ok(())
        },
    ),
    Row::new(
        "verify_backlog",
        Kind::Int(0, i64::MAX),
        "0",
        "Check after every so many blocks instead of at the end. 0 is at the end.",
        |b, v| v.u64_to(&mut b.verify.backlog, 0),
    ),
    Row::new(
        "verify_backlog_batch",
        Kind::Int(0, U32),
        "0",
        "Blocks to check each time; verify_backlog unless given.",
        |b, v| v.u64_to(&mut b.verify.backlog_batch, 0),
    ),
    Row::new(
        "verify_async",
        Kind::Int(0, U32),
        "0",
        "Threads that check, beside the one that reads. 0 checks in that one.",
        |b, v| v.u32_to(&mut b.verify.r#async, 0),
    )
    .accepted("Blocks are checked by the thread that reads them: the same checks, in one thread."),
    Row::unsupported(
        "verify_async_cpus",
        Kind::Numbers,
        "",
        "CPUs of the threads that check.",
        "checking threads run where the job runs",
        "cpus_allowed",
    ),
    Row::new(
        "verifysort",
        Kind::Bool,
        "1",
        "Check blocks in the order of their offsets. fio has dropped it.",
        |b, v| v.bool_to(&mut b.verify.sort),
    )
    .accepted(
        "Blocks are read back in the order of their offsets wherever a record of them is kept.",
    ),
    Row::new(
        "verifysort_nr",
        Kind::Int(0, U32),
        "1024",
        "Blocks to load at once for checking.",
        |_, v| v.int(0..=U32).map(|_| ()),
    )
    .accepted("It has no effect; fio has dropped it too."),
    Row::unsupported(
        "verify_state_save",
        Kind::Bool,
        "0",
        "Save how far writing got when a job is stopped.",
        "no state is saved",
        "verify_only checks a job that ran to its end",
    ),
    Row::unsupported(
        "verify_state_load",
        Kind::Bool,
        "0",
        "Load how far writing got.",
        "no state is saved",
        "verify_only checks a job that ran to its end",
    ),
    Row::unsupported(
        "experimental_verify",
        Kind::Bool,
        "0",
        "Check by a replay of the job.",
        "fio's experiment has no replacement here",
        "verify_only",
    ),
    Row::unsupported(
        "trim_percentage",
        Kind::Percent,
        "0",
        "Discard a share of the written blocks while verifying.",
        "trims are not mixed into verification",
        "rw=trimwrite",
    ),
    Row::new(
        "trim_verify_zero",
        Kind::Bool,
        "1",
        "Check that discarded blocks read as zeros.",
        |_, v| v.bool().map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
    Row::new(
        "trim_backlog",
        Kind::Int(0, i64::MAX),
        "0",
        "Discard after every so many blocks.",
        |_, v| v.int(0..=i64::MAX).map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
    Row::new(
        "trim_backlog_batch",
        Kind::Int(0, U32),
        "0",
        "Blocks to discard each time.",
        |_, v| v.int(0..=U32).map(|_| ()),
    )
    .accepted(NO_TRIM_PERCENTAGE),
];

fn apply_verify(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
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
