//! Signatures on block devices: the marks of file systems, partition tables and volume managers.
//!
//! [`probe`] reads all positions where a format has its mark, including the end of the device, and
//! reports all marks found. The result decides whether a device may be written. Each entry
//! therefore requires enough bytes that random data, as left by a benchmark, is not mistaken for a
//! format. The `kind` of a signature is blkid(8)'s name.

mod file_systems;
mod partition_tables;
mod table;
mod view;
mod volumes;

use std::fmt;
use std::fs::File;
use std::io;
use view::View;

/// Reads at an offset, like pread(2).
pub trait ReadAt {
    /// Reads up to `buffer.len()` bytes at `offset`, fewer only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let count = buffer.len().min(self.len() - from);
        buffer[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

/// The mark of a format on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The format, by blkid's name: `ext4`, `LVM2_member`, `gpt`, ...
    pub kind: &'static str,
    /// Description of the format with its article: `an ext4 file system`.
    pub what: &'static str,
    /// Position of the mark, in bytes from the start of the device.
    pub offset: u64,
    /// Label or name given by the user.
    pub label: Option<String>,
    /// Identifier assigned by the format's tools.
    pub uuid: Option<String>,
}

impl Signature {
    fn new(kind: &'static str, what: &'static str, offset: u64) -> Self {
        Self {
            kind,
            what,
            offset,
            label: None,
            uuid: None,
        }
    }

    fn label(mut self, label: Option<String>) -> Self {
        self.label = label;
        self
    }

    fn uuid(mut self, uuid: Option<String>) -> Self {
        self.uuid = uuid;
        self
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (", self.what)?;
        if let Some(label) = &self.label {
            write!(f, "label {label:?}, ")?;
        }
        if let Some(uuid) = &self.uuid {
            write!(f, "id {uuid}, ")?;
        }
        write!(f, "at byte {})", self.offset)
    }
}

/// Finds all signatures on a device of `size_bytes`.
///
/// # Errors
///
/// Fails if the device cannot be read. The caller must then assume that it carries data.
pub fn probe(device: &(impl ReadAt + ?Sized), size_bytes: u64) -> io::Result<Vec<Signature>> {
    let view = View::new(&device, size_bytes);
    let mut found = Vec::new();
    table::probe(&view, &mut found)?;
    file_systems::probe(&view, &mut found)?;
    volumes::probe(&view, &mut found)?;
    partition_tables::probe(&view, &mut found)?;
    found.sort_by_key(|signature| signature.offset);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    #[test]
    fn empty_devices_carry_no_signature() {
        for size in [0, 1, 511, 512, 4096, 65_536, 1 << 21] {
            assert_eq!(
                probe(vec![0u8; size].as_slice(), size as u64).unwrap(),
                [],
                "{size}"
            );
        }
    }

    #[test]
    fn random_data_is_not_mistaken_for_a_format() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut data = vec![0u8; 1 << 20];
        for round in 0..40 {
            random.fill_bytes(&mut data);
            assert_eq!(
                probe(data.as_slice(), data.len() as u64).unwrap(),
                [],
                "round {round}"
            );
        }
    }

    #[test]
    fn repeated_bytes_are_not_mistaken_for_a_format() {
        for byte in 0..=255u8 {
            assert_eq!(
                probe(vec![byte; 1 << 18].as_slice(), 1 << 18).unwrap(),
                [],
                "{byte:#x}"
            );
        }
    }

    #[test]
    fn signature_prints_label_and_offset() {
        let signature = Signature::new("ext4", "an ext4 file system", 1080).label(Some("X".into()));
        assert_eq!(
            signature.to_string(),
            "an ext4 file system (label \"X\", at byte 1080)"
        );
    }

    #[test]
    fn unreadable_device_is_a_probe_error() {
        struct Broken;
        impl ReadAt for Broken {
            fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
                Err(io::ErrorKind::Other.into())
            }
        }
        assert!(probe(&Broken, 1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_content_never_fails_the_probe(
            patches in prop::collection::vec(
                (0usize..140_000, prop::collection::vec(any::<u8>(), 1..64)),
                0..20
            ),
            size in 0u64..200_000,
        ) {
            let mut data = vec![0u8; 140_100];
            for (at, bytes) in patches {
                data[at..at + bytes.len()].copy_from_slice(&bytes);
            }
            // The size passed may differ from the real size of the device.
            probe(data.as_slice(), size).unwrap();
        }
    }
}
