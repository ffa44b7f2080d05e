//! Reads of bytes, numbers, names and identifiers at offsets of a device.

use super::ReadAt;
use iosonde_job::lowercase_hex;
use std::io;

/// A device of known size.
pub(super) struct View<'a> {
    device: &'a dyn ReadAt,
    /// Size in bytes.
    pub(super) size: u64,
}

// Implemented for references, so that a view can be made of unsized types such as slices.
impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(buffer, offset)
    }
}

impl<'a> View<'a> {
    pub(super) fn new(device: &'a dyn ReadAt, size: u64) -> Self {
        Self { device, size }
    }

    /// `length` bytes at `offset`; `None` if they are not all on the device.
    pub(super) fn bytes(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        if offset
            .checked_add(length as u64)
            .is_none_or(|end| end > self.size)
        {
            return Ok(None);
        }
        let mut buffer = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match self
                .device
                .read_at(&mut buffer[filled..], offset + filled as u64)
            {
                Ok(0) => return Ok(None),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(buffer))
    }

    /// Whether the device has the bytes `expected` at `offset`.
    pub(super) fn is(&self, offset: u64, expected: &[u8]) -> io::Result<bool> {
        Ok(self
            .bytes(offset, expected.len())?
            .is_some_and(|found| found == expected))
    }

    /// Start of the last `distance` bytes.
    pub(super) fn before_end(&self, distance: u64) -> Option<u64> {
        self.size.checked_sub(distance)
    }
}

/// A little-endian number of 2 bytes in a block; 0 past its end.
pub(super) fn le_u16(block: &[u8], at: usize) -> u16 {
    block
        .get(at..at + 2)
        .map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
}

/// A little-endian number of 4 bytes in a block; 0 past its end.
pub(super) fn le_u32(block: &[u8], at: usize) -> u32 {
    u32::from(le_u16(block, at)) | u32::from(le_u16(block, at + 2)) << 16
}

/// A little-endian number of 8 bytes in a block; 0 past its end.
pub(super) fn le_u64(block: &[u8], at: usize) -> u64 {
    u64::from(le_u32(block, at)) | u64::from(le_u32(block, at + 4)) << 32
}

/// A name padded with zeros or blanks; `None` if it is empty.
pub(super) fn unpadded_text(bytes: &[u8]) -> Option<String> {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A name in little-endian UTF-16, padded with zeros.
pub(super) fn utf16(bytes: &[u8]) -> Option<String> {
    let units = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
    let units: Vec<u16> = units.take_while(|unit| *unit != 0).collect();
    (!units.is_empty()).then(|| String::from_utf16_lossy(&units))
}

/// An identifier of 16 bytes in the usual notation; `None` if it is all zeros.
pub(super) fn uuid_text(bytes: &[u8]) -> Option<String> {
    if bytes.len() < 16 || bytes[..16].iter().all(|byte| *byte == 0) {
        return None;
    }
    let hex = |range: std::ops::Range<usize>| lowercase_hex(&bytes[range]);
    Some(format!(
        "{}-{}-{}-{}-{}",
        hex(0..4),
        hex(4..6),
        hex(6..8),
        hex(8..10),
        hex(10..16)
    ))
}

/// An identifier whose first three parts are little-endian, as written by Microsoft and EFI.
pub(super) fn guid_text(bytes: &[u8]) -> Option<String> {
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let swapped: Option<Vec<u8>> = order.iter().map(|at| bytes.get(*at).copied()).collect();
    uuid_text(&swapped?)
}

/// A volume serial number of 4 bytes, in FAT's notation.
pub(super) fn serial(bytes: &[u8]) -> Option<String> {
    let value = le_u32(bytes, 0);
    (value != 0).then(|| format!("{:04X}-{:04X}", value >> 16, value & 0xffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_past_the_end_returns_none() {
        let data: &[u8] = &[1, 2, 3, 4];
        let view = View::new(&data, 4);
        assert_eq!(view.bytes(1, 3).unwrap(), Some(vec![2, 3, 4]));
        assert_eq!(view.bytes(2, 3).unwrap(), None);
        assert_eq!(view.bytes(u64::MAX, 2).unwrap(), None);
        let claims_more = View::new(&data, 100);
        assert_eq!(claims_more.bytes(2, 3).unwrap(), None);
    }

    #[test]
    fn identifiers_have_their_usual_forms() {
        let bytes: Vec<u8> = (0..16).collect();
        assert_eq!(
            uuid_text(&bytes).unwrap(),
            "00010203-0405-0607-0809-0a0b0c0d0e0f"
        );
        assert_eq!(
            guid_text(&bytes).unwrap(),
            "03020100-0504-0706-0809-0a0b0c0d0e0f"
        );
        assert_eq!(serial(&[0x78, 0x56, 0x34, 0x12]).unwrap(), "1234-5678");
        assert_eq!(uuid_text(&[0; 16]), None);
    }

    #[test]
    fn names_lose_their_padding() {
        assert_eq!(unpadded_text(b"DATA       ").unwrap(), "DATA");
        assert_eq!(unpadded_text(b"\0\0"), None);
        assert_eq!(
            utf16(&[b'a', 0, 0xe9, 0, 0, 0, b'x', 0]).unwrap(),
            "a\u{e9}"
        );
    }
}
