//! `verify_pattern`: a repeated pattern of fixed bytes and offsets.

use iosonde_job::plan::{PatternPart, VerifyPattern};

/// A pattern: its bytes, and the positions of its offset fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PatternTemplate {
    bytes: Box<[u8]>,
    offsets_at: Box<[usize]>,
}

impl PatternTemplate {
    /// The pattern of a plan.
    pub(crate) fn new(pattern: &VerifyPattern) -> Self {
        let mut bytes = Vec::new();
        let mut offsets_at = Vec::new();
        for part in &pattern.parts {
            match part {
                PatternPart::Bytes(part) => bytes.extend_from_slice(part),
                PatternPart::Offset => {
                    offsets_at.push(bytes.len());
                    bytes.extend_from_slice(&[0; 8]);
                }
            }
        }
        PatternTemplate {
            bytes: bytes.into(),
            offsets_at: offsets_at.into(),
        }
    }

    /// Whether the pattern has no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Fills a block with the pattern. `offset` is the position of the block in the file.
    pub(crate) fn fill(&self, buf: &mut [u8], offset: u64) {
        self.fill_from(buf, offset, 0);
    }

    /// Like [`PatternTemplate::fill`], for the part of the block that starts at its byte `start`.
    pub(crate) fn fill_from(&self, buf: &mut [u8], offset: u64, start: usize) {
        let number = offset.to_le_bytes();
        for (byte, position) in buf.iter_mut().zip(start..) {
            let position = position % self.bytes.len();
            let field = self
                .offsets_at
                .iter()
                .find(|at| (**at..**at + 8).contains(&position));
            *byte = match field {
                Some(at) => number[position - at],
                None => self.bytes[position],
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_bytes_alternate() {
        let pattern = PatternTemplate::new(&VerifyPattern {
            parts: vec![
                PatternPart::Bytes(vec![0xaa]),
                PatternPart::Offset,
                PatternPart::Bytes(vec![0xbb]),
            ],
        });
        let mut block = [0; 25];
        pattern.fill(&mut block, 0x1234);
        assert_eq!(
            block[..11],
            [0xaa, 0x34, 0x12, 0, 0, 0, 0, 0, 0, 0xbb, 0xaa]
        );
        let mut part = [0; 9];
        pattern.fill_from(&mut part, 0x1234, 16);
        assert_eq!(part, block[16..]);
    }
}
