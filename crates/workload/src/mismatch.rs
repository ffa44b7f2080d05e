//! A wrong block that verification found.

use std::fmt;

/// A wrong block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("verify: {what} at byte {offset}: expected {expected}, got {got}")]
pub struct Mismatch {
    /// Position in the file of the first wrong byte, or of the header's field.
    pub offset: u64,
    /// The kind of mismatch.
    pub what: MismatchKind,
    /// The expected value as text: a number, or bytes in hexadecimal.
    pub expected: String,
    /// The value found.
    pub got: String,
}

/// The kinds of mismatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MismatchKind {
    /// No header: the block was never written, or was overwritten by something else.
    Magic,
    /// A header of fio, whose layout iosonde does not read.
    Foreign,
    /// The checksum of the header is wrong.
    HeaderChecksum,
    /// The header has another verify method or length, or the seed of another job.
    Header,
    /// The block belongs to another offset: a misdirected write or read.
    Offset,
    /// The block is from an older write than the last: a lost write.
    Generation,
    /// The digest is wrong but the payload is right: the digest itself was damaged.
    Digest,
    /// A byte of the payload is wrong.
    Payload,
    /// A byte of the pattern is wrong.
    Pattern,
}

impl fmt::Display for MismatchKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MismatchKind::Magic => "no header of a verified block",
            MismatchKind::Foreign => {
                "a block that fio wrote, whose header only fio reads \
                 (verify=pattern is read by both),"
            }
            MismatchKind::HeaderChecksum => "header checksum",
            MismatchKind::Header => "header",
            MismatchKind::Offset => "block of another place",
            MismatchKind::Generation => "block of another write",
            MismatchKind::Digest => "digest",
            MismatchKind::Payload => "payload",
            MismatchKind::Pattern => "pattern",
        })
    }
}
