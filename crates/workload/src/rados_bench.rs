//! What an operation of Ceph's `rados bench` holds: its number as text, and the letter z to the end.
//!
//! Contents do not depend on who wrote them, so that objects of one program can be verified by the other.

use super::verify::{Mismatch, Wrong};

/// What the text takes at most, with the zero byte that ends it.
pub const TEXT_BYTES: usize = 32;

/// All of a buffer but its text.
pub fn prepare(buf: &mut [u8]) {
    buf.fill(b'z');
}

/// Writes the text into a prepared buffer, which is written to `offset` of all objects put one after the other.
pub fn stamp(buf: &mut [u8], offset: u64) {
    let (text, len) = text(offset / buf.len().max(1) as u64);
    // C's snprintf cuts a text that does not fit, and ends it with a zero byte all the same.
    let len = len.min(buf.len());
    if let Some(end) = len.checked_sub(1) {
        buf[..end].copy_from_slice(&text[..end]);
        buf[end] = 0;
    }
}

/// What the text begins with, the room of the number, which stands at its right, and what it ends with.
const TEXT: (&[u8], usize, &[u8]) = (b"I'm the ", 16, b"th op!\0");

/// The text of an operation, and its length with the zero byte. By hand: each operation needs it, and to format it
/// took one per cent of all processor time of a client that writes 4 KiB.
fn text(mut number: u64) -> ([u8; TEXT_BYTES], usize) {
    let (begin, width, end) = TEXT;
    let mut text = [b' '; TEXT_BYTES];
    let digits = begin.len()..begin.len() + width;
    text[..begin.len()].copy_from_slice(begin);
    text[digits.end..digits.end + end.len()].copy_from_slice(end);
    // Numbers of up to 16 digits fit, which no benchmark reaches the end of.
    for digit in text[digits.clone()].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    (text, digits.end + end.len())
}

/// Checks what was read from `offset`.
///
/// # Errors
/// The first byte that differs.
pub fn check(buf: &[u8], offset: u64) -> Result<(), Mismatch> {
    let mut head = [b'z'; TEXT_BYTES];
    let (text, len) = text(offset / buf.len().max(1) as u64);
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
    // By words first: a comparison byte by byte until the first mismatch is not turned into wide instructions.
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
    let shown = |bytes: &[u8]| {
        let bytes = &bytes[..bytes.len().min(8)];
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    Mismatch {
        offset: offset + at as u64,
        what: Wrong::Pattern,
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
    fn a_block_is_as_rados_bench_writes_it() {
        let block = block(64, 3 * 64);
        assert_eq!(&block[..32], b"I'm the                3th op!\0z");
        assert!(block[32..].iter().all(|byte| *byte == b'z'));
        // Stamping is repeated in one buffer.
        let mut again = block.clone();
        stamp(&mut again, 1_000_000 * 64);
        assert_eq!(&again[..32], b"I'm the          1000000th op!\0z");
        assert_eq!(again.len(), 64);
    }

    #[test]
    fn the_text_is_as_c_would_print_it() {
        for number in [0, 9, 10, 65_535, 1_234_567_890, 9_999_999_999_999_999] {
            let (text, len) = text(number);
            let right = format!("I'm the {number:16}th op!\0");
            assert_eq!(&text[..len], right.as_bytes());
        }
    }

    #[test]
    fn small_blocks_are_cut() {
        assert_eq!(block(8, 0), *b"I'm the\0");
        assert_eq!(block(1, 0), *b"\0");
        assert_eq!(check(&block(8, 0), 0), Ok(()));
    }

    #[test]
    fn a_wrong_byte_and_a_wrong_number_are_found() {
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
