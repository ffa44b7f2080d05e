//! Contents of the objects of Ceph's `rados bench`: the number of the operation as text, then the
//! letter z to the end.
//!
//! The contents do not depend on the program that wrote them, so iosonde can verify objects of
//! `rados bench`, and the other way round.

use super::mismatch::{Mismatch, MismatchKind};
use iosonde_job::lowercase_hex;

/// Largest length of the text in bytes, with its terminating zero byte.
const TEXT_BYTES: usize = 32;

/// Fills all of a buffer but the text.
pub fn prepare(buf: &mut [u8]) {
    buf.fill(b'z');
}

/// Writes the text into a prepared buffer. `offset` is the position of the buffer in the
/// concatenation of all objects.
pub fn stamp(buf: &mut [u8], offset: u64) {
    let (text, len) = operation_text(offset / buf.len().max(1) as u64);
    // snprintf(3) also truncates a text that does not fit, and terminates it with a zero byte.
    let len = len.min(buf.len());
    if let Some(end) = len.checked_sub(1) {
        buf[..end].copy_from_slice(&text[..end]);
        buf[end] = 0;
    }
}

/// Start of the text, width of the right-aligned number, end of the text.
const TEXT: (&[u8], usize, &[u8]) = (b"I'm the ", 16, b"th op!\0");

/// The text of an operation, and its length with the zero byte. It is not made by `format!`, which
/// took one per cent of the CPU time of a client that writes 4 KiB objects.
fn operation_text(mut number: u64) -> ([u8; TEXT_BYTES], usize) {
    let (begin, width, end) = TEXT;
    let mut text = [b' '; TEXT_BYTES];
    let digits = begin.len()..begin.len() + width;
    text[..begin.len()].copy_from_slice(begin);
    text[digits.end..digits.end + end.len()].copy_from_slice(end);
    // The field has room for 16 digits, more than any benchmark needs.
    for digit in text[digits.clone()].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    (text, digits.end + end.len())
}

/// Checks a block that was read from `offset`.
///
/// # Errors
/// Returns the first byte that differs.
pub fn check(buf: &[u8], offset: u64) -> Result<(), Mismatch> {
    let mut head = [b'z'; TEXT_BYTES];
    let (text, len) = operation_text(offset / buf.len().max(1) as u64);
    let len = len.min(buf.len());
    if let Some(end) = len.checked_sub(1) {
        head[..end].copy_from_slice(&text[..end]);
        head[end] = 0;
    }
    let (got, rest) = buf.split_at(buf.len().min(TEXT_BYTES));
    let right = &head[..got.len()];
    if let Some(at) = (0..got.len()).find(|&at| got[at] != right[at]) {
        return Err(mismatch(offset, at, &right[at..], &got[at..]));
    }
    // Whole words first: the compiler does not vectorise a search for the first wrong byte.
    if is_filler(rest) {
        return Ok(());
    }
    let at = rest.iter().position(|byte| *byte != b'z').unwrap_or(0);
    Err(mismatch(offset, got.len() + at, &[b'z'; 8], &rest[at..]))
}

fn is_filler(bytes: &[u8]) -> bool {
    bytes
        .chunks(64)
        .all(|chunk| chunk.iter().fold(0, |wrong, byte| wrong | (byte ^ b'z')) == 0)
}

fn mismatch(offset: u64, at: usize, right: &[u8], got: &[u8]) -> Mismatch {
    let shown = |bytes: &[u8]| lowercase_hex(&bytes[..bytes.len().min(8)]);
    Mismatch {
        offset: offset + at as u64,
        what: MismatchKind::Pattern,
        expected: shown(right),
        got: shown(got),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(len: usize, offset: u64) -> Vec<u8> {
        let mut block = vec![0; len];
        prepare(&mut block);
        stamp(&mut block, offset);
        block
    }

    #[test]
    fn block_equals_that_of_rados_bench() {
        let block = block(64, 3 * 64);
        assert_eq!(&block[..32], b"I'm the                3th op!\0z");
        assert!(block[32..].iter().all(|byte| *byte == b'z'));
        // A buffer can be stamped again.
        let mut again = block.clone();
        stamp(&mut again, 1_000_000 * 64);
        assert_eq!(&again[..32], b"I'm the          1000000th op!\0z");
        assert_eq!(again.len(), 64);
    }

    #[test]
    fn block_text_matches_printf_format() {
        for number in [0, 9, 10, 65_535, 1_234_567_890, 9_999_999_999_999_999] {
            let (text, len) = operation_text(number);
            let right = format!("I'm the {number:16}th op!\0");
            assert_eq!(&text[..len], right.as_bytes());
        }
    }

    #[test]
    fn rados_bench_text_is_cut_to_small_blocks() {
        assert_eq!(block(8, 0), *b"I'm the\0");
        assert_eq!(block(1, 0), *b"\0");
        assert_eq!(check(&block(8, 0), 0), Ok(()));
    }

    #[test]
    fn check_finds_wrong_byte_and_wrong_number() {
        let right = block(4096, 5 * 4096);
        assert_eq!(check(&right, 5 * 4096), Ok(()));
        let found = check(&right, 6 * 4096).unwrap_err();
        assert_eq!(found.offset, 6 * 4096 + 23);
        for at in [0, 31, 32, 100, 4095] {
            let mut wrong = right.clone();
            wrong[at] ^= 1;
            assert_eq!(
                check(&wrong, 5 * 4096).unwrap_err().offset,
                5 * 4096 + at as u64
            );
        }
    }
}
