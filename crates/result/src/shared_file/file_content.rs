//! Contents of a shared file. Each 8 bytes are one little-endian number: the number of the write in
//! the upper 16 bits, the pod in the next 16 bits, and the place in the file in the lower 32 bits.

use crate::shared_file_fault::{WrongByte, WrongByteOrigin};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of one number.
const WORD_BYTES: u64 = 8;

/// Contents of a range of the file: what one write of one pod left there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangeContent {
    /// Start of the range, a multiple of 8.
    pub offset_bytes: u64,
    /// Length of the range, a multiple of 8.
    pub bytes: u32,
    /// Number of the pod that writes the range.
    pub writer: u16,
    /// Number of the write, from 1. Later writes have higher numbers.
    pub generation: u16,
}

impl RangeContent {
    fn word(&self, offset_bytes: u64) -> u64 {
        let identity = (u64::from(self.generation) << 16) | u64::from(self.writer);
        (identity << 32) | place(offset_bytes)
    }

    /// Fills a buffer of the length of the range.
    pub fn fill(&self, buffer: &mut [u8]) {
        debug_assert_eq!(buffer.len(), self.bytes as usize);
        debug_assert!(self.generation > 0, "a write differs from zeros");
        let offsets = (self.offset_bytes..).step_by(WORD_BYTES as usize);
        for (word, offset_bytes) in buffer.chunks_exact_mut(WORD_BYTES as usize).zip(offsets) {
            word.copy_from_slice(&self.word(offset_bytes).to_le_bytes());
        }
    }

    /// Returns the first byte that differs. A `read` shorter than the range ended at the end of the
    /// file.
    #[must_use]
    pub fn find_wrong_byte(&self, read: &[u8]) -> Option<WrongByte> {
        debug_assert!(read.len() <= self.bytes as usize);
        let mut expected = vec![0; self.bytes as usize];
        self.fill(&mut expected);
        if read == expected.as_slice() {
            return None;
        }
        let differs = |index: &usize| read.get(*index) != expected.get(*index);
        let index = (0..expected.len()).find(differs)?;
        let offset_bytes = self.offset_bytes + index as u64;
        let found = read.get(index).copied();
        let word_start = index - index % WORD_BYTES as usize;
        let word = read.get(word_start..word_start + WORD_BYTES as usize);
        let word = word.and_then(|word| <[u8; 8]>::try_from(word).ok());
        let origin = match (found, word) {
            (None, _) => WrongByteOrigin::EndOfFile,
            (_, Some(word)) => self.origin(u64::from_le_bytes(word), offset_bytes),
            (_, None) => WrongByteOrigin::Unknown,
        };
        Some(WrongByte {
            offset_bytes,
            writer: self.writer,
            generation: self.generation,
            expected: expected[index],
            found,
            origin,
        })
    }

    fn origin(&self, word: u64, offset_bytes: u64) -> WrongByteOrigin {
        let generation = (word >> 48) as u16;
        let is_of_place = word & u64::from(u32::MAX) == place(offset_bytes);
        match generation {
            _ if word == 0 => WrongByteOrigin::Unwritten,
            1.. if is_of_place && generation < self.generation => WrongByteOrigin::EarlierWrite {
                writer: (word >> 32) as u16,
                generation,
            },
            _ => WrongByteOrigin::Unknown,
        }
    }
}

/// Returns the number of the word in the file.
fn place(offset_bytes: u64) -> u64 {
    let place = offset_bytes / WORD_BYTES;
    debug_assert!(
        place <= u64::from(u32::MAX),
        "the file is shorter than 32 GiB"
    );
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(writer: u16, generation: u16) -> RangeContent {
        RangeContent {
            offset_bytes: 4096,
            bytes: 64,
            writer,
            generation,
        }
    }

    fn filled(content: RangeContent) -> Vec<u8> {
        let mut buffer = vec![0; content.bytes as usize];
        content.fill(&mut buffer);
        buffer
    }

    #[test]
    fn content_differs_by_writer_write_and_place() {
        let read = filled(content(2, 3));
        assert_eq!(content(2, 3).find_wrong_byte(&read), None);
        for other in [content(1, 3), content(2, 4)] {
            assert!(other.find_wrong_byte(&read).is_some());
        }
        let moved = RangeContent {
            offset_bytes: 4104,
            ..content(2, 3)
        };
        let wrong = moved.find_wrong_byte(&read).unwrap();
        assert_eq!(wrong.origin, WrongByteOrigin::Unknown);
    }

    #[test]
    fn wrong_byte_names_offset_and_both_bytes() {
        let mut read = filled(content(2, 3));
        read[21] ^= 0xff;
        let wrong = content(2, 3).find_wrong_byte(&read).unwrap();
        assert_eq!((wrong.offset_bytes, wrong.writer), (4096 + 21, 2));
        assert_eq!(wrong.found, Some(wrong.expected ^ 0xff));
        assert_eq!(wrong.origin, WrongByteOrigin::Unknown);
    }

    #[test]
    fn stale_data_name_the_earlier_write() {
        let wrong = content(2, 3).find_wrong_byte(&filled(content(7, 1)));
        let earlier = WrongByteOrigin::EarlierWrite {
            writer: 7,
            generation: 1,
        };
        assert_eq!(wrong.unwrap().origin, earlier);
        let zeros = content(2, 3).find_wrong_byte(&[0; 64]).unwrap();
        assert_eq!(zeros.origin, WrongByteOrigin::Unwritten);
        let later = content(2, 3).find_wrong_byte(&filled(content(7, 4)));
        assert_eq!(later.unwrap().origin, WrongByteOrigin::Unknown);
    }

    #[test]
    fn short_read_is_wrong_at_the_end_of_the_file() {
        let read = filled(content(2, 3));
        let wrong = content(2, 3).find_wrong_byte(&read[..40]).unwrap();
        assert_eq!((wrong.offset_bytes, wrong.found), (4096 + 40, None));
        assert_eq!(wrong.origin, WrongByteOrigin::EndOfFile);
    }
}
