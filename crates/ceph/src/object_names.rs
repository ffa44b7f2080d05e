//! Maps bytes of a file to objects of a pool. Pure.
//!
//! A file is one object of the same name, as in fio, or it is striped over objects of equal size.
//! Their names are that of the file and the object's number in 16 hexadecimal digits, as in Ceph.

use std::ffi::CStr;
use std::io::Write;
use std::ops::Range;

/// Hexadecimal digits of an object's number.
const DIGITS: usize = 16;

/// Part of an I/O that lies in one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ObjectPart {
    /// Number of the object.
    pub(crate) object: u64,
    /// Offset in the object.
    pub(crate) offset: u64,
    /// Offset in the I/O.
    pub(crate) at: u64,
    /// Length in bytes, at least 1.
    pub(crate) len: u64,
}

/// Splits a range of a file at object boundaries. Without an object size, all is in object 0.
pub(crate) fn object_parts(
    offset: u64,
    len: u64,
    object_bytes: Option<u64>,
) -> impl Iterator<Item = ObjectPart> + Clone {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= len {
            return None;
        }
        let place = offset + at;
        let (object, offset, room) = match object_bytes {
            None => (0, place, len),
            Some(bytes) => (place / bytes, place % bytes, bytes - place % bytes),
        };
        let part = ObjectPart {
            object,
            offset,
            at,
            len: room.min(len - at),
        };
        at += part.len;
        Some(part)
    })
}

/// Number of objects that a range of a file touches.
pub(crate) fn count_objects(offset: u64, len: u64, object_bytes: Option<u64>) -> u32 {
    match object_bytes {
        Some(bytes) if len > 0 => ((offset + len - 1) / bytes - offset / bytes + 1) as u32,
        _ => 1,
    }
}

/// Names of all objects that may hold the first `bytes` of a file.
pub(crate) fn object_names(
    file: &str,
    bytes: u64,
    object_bytes: Option<u64>,
) -> impl Iterator<Item = String> {
    let numbers: Range<u64> = match object_bytes {
        None => 0..1,
        Some(object) => 0..bytes.div_ceil(object),
    };
    let file = file.to_owned();
    numbers.map(move |number| match object_bytes {
        None => file.clone(),
        Some(_) => format!("{file}.{number:016x}"),
    })
}

/// Generates the names of a file's objects in one reused buffer.
#[derive(Debug)]
pub(crate) struct ObjectNameBuffer {
    bytes: Vec<u8>,
    is_spread: bool,
    /// Offset of the decimal number, for names of `rados bench`.
    decimal_at: Option<usize>,
}

impl ObjectNameBuffer {
    /// Names of this file's objects. A zero byte ends the file's name.
    pub(crate) fn from_file_name(file: &str, is_spread: bool) -> ObjectNameBuffer {
        let file = file.split('\0').next().unwrap_or_default();
        let mut bytes = file.as_bytes().to_vec();
        if is_spread {
            bytes.push(b'.');
            bytes.resize(bytes.len() + DIGITS, b'0');
        }
        bytes.push(0);
        ObjectNameBuffer {
            bytes,
            is_spread,
            decimal_at: None,
        }
    }

    /// Names like those of `rados bench`, with this prefix.
    pub(crate) fn from_rados_bench_prefix(prefix: &str) -> ObjectNameBuffer {
        const MOST_DIGITS: usize = 20;
        let mut name = ObjectNameBuffer::from_file_name(&format!("{prefix}_object"), false);
        name.bytes.reserve(MOST_DIGITS);
        name.decimal_at = Some(name.bytes.len() - 1);
        name
    }

    /// Name of an object.
    #[inline]
    pub(crate) fn object(&mut self, number: u64) -> &CStr {
        if let Some(start) = self.decimal_at {
            self.bytes.truncate(start);
            // The buffer has room for all digits, so this neither fails nor allocates.
            let _ = write!(self.bytes, "{number}\0");
        }
        if self.is_spread {
            let end = self.bytes.len() - 1;
            for (place, digit) in self.bytes[end - DIGITS..end]
                .iter_mut()
                .zip((0..DIGITS).rev())
            {
                *place = b"0123456789abcdef"[(number >> (4 * digit)) as usize & 15];
            }
        }
        CStr::from_bytes_with_nul(&self.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn object_names_follow_fio_or_number_objects() {
        assert_eq!(
            object_names("job.0.0", 9, None).collect::<Vec<_>>(),
            ["job.0.0"]
        );
        let spread: Vec<_> = object_names("f", 9, Some(4)).collect();
        assert_eq!(
            spread,
            [
                "f.0000000000000000",
                "f.0000000000000001",
                "f.0000000000000002"
            ]
        );
        assert_eq!(
            ObjectNameBuffer::from_file_name("job.0.0", false).object(7),
            c"job.0.0"
        );
        let mut bench = ObjectNameBuffer::from_rados_bench_prefix("benchmark_data_host_1");
        assert_eq!(bench.object(123), c"benchmark_data_host_1_object123");
        assert_eq!(bench.object(0), c"benchmark_data_host_1_object0");
    }

    proptest! {
        #[test]
        fn object_parts_cover_range_within_objects(
            offset in 0u64..1 << 44,
            len in 1u64..1 << 24,
            object in prop_oneof![
                Just(None),
                (12u32..26).prop_map(|bits| Some(1u64 << bits)),
                (4096u64..1 << 23).prop_map(Some),
            ],
        ) {
            let all: Vec<ObjectPart> = object_parts(offset, len, object).take(1 << 13).collect();
            prop_assert_eq!(all.len() as u32, count_objects(offset, len, object));
            let mut at = 0;
            for part in &all {
                prop_assert_eq!(part.at, at);
                prop_assert!(part.len > 0);
                let bytes = object.unwrap_or(u64::MAX);
                prop_assert!(part.offset + part.len <= bytes);
                prop_assert_eq!(part.object.saturating_mul(bytes) + part.offset, offset + at);
                at += part.len;
            }
            prop_assert_eq!(at, len);
        }

        #[test]
        fn written_name_equals_listed_name(number in 0u64..1 << 20) {
            let listed = format!("x.{number:016x}");
            let mut name = ObjectNameBuffer::from_file_name("x", true);
            name.object(u64::MAX);
            prop_assert_eq!(name.object(number).to_str().unwrap(), listed);
        }
    }
}
