//! Verification of the contents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `verify` and the other `verify_` options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verify {
    /// The check.
    pub method: VerifyMethod,
    /// `do_verify`: read back after a write phase.
    pub do_verify: bool,
    /// `verify_only`: check the data of an earlier run, without writing.
    pub verify_only: bool,
    /// `verify_fatal`: stop at the first mismatch.
    pub fatal: bool,
    /// `verify_dump`.
    pub dump: bool,
    /// `verify_interval` in bytes; 0 is the block size.
    pub interval_bytes: u64,
    /// `verify_offset` in bytes.
    pub header_offset_bytes: u64,
    /// `verify_pattern`.
    pub pattern: Option<VerifyPattern>,
    /// `verify_backlog`: verify after this many writes; 0 is off.
    pub backlog: u64,
    /// `verify_backlog_batch`; 0 is the same as the backlog.
    pub backlog_batch: u64,
    /// `verify_async`: number of verification threads; 0 verifies in the worker.
    pub r#async: u32,
    /// `verifysort`.
    pub sort: bool,
}

impl Verify {
    /// This check with fio's defaults for the other options.
    pub fn new(method: VerifyMethod) -> Verify {
        Verify {
            method,
            do_verify: true,
            verify_only: false,
            fatal: false,
            dump: false,
            interval_bytes: 0,
            header_offset_bytes: 0,
            pattern: None,
            backlog: 0,
            backlog_batch: 0,
            r#async: 0,
            sort: true,
        }
    }
}

/// The checks of `verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum VerifyMethod {
    Crc32c,
    Crc32,
    Crc16,
    Crc7,
    Crc64,
    Md5,
    Sha1,
    Sha256,
    Sha512,
    Xxhash,
    /// The pattern alone, without a header.
    Pattern,
    /// The pattern after a header.
    PatternHeader,
    /// The contents of `rados bench`: the number of the I/O as text, then the letter z.
    RadosBench,
    /// Reads without a check.
    Null,
}

/// `verify_pattern`: fixed bytes and `%o` fields (the block's offset, 8 bytes little endian).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VerifyPattern {
    /// Parts of the pattern, in order.
    pub parts: Vec<PatternPart>,
}

/// One part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PatternPart {
    /// Literal bytes.
    Bytes(Vec<u8>),
    /// `%o`: the offset of the I/O's block, 8 bytes.
    Offset,
}
