//! Digests of payloads, computed by the usual crates.

use crc::{CRC_7_MMC, CRC_16_IBM_SDLC, CRC_64_XZ, Crc};
use iosonde_job::plan::VerifyMethod;

/// Length of the longest digest (sha512) in bytes.
const MAX_DIGEST_BYTES: usize = 64;

const CRC7: Crc<u8> = Crc::<u8>::new(&CRC_7_MMC);
const CRC16: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);
const CRC64: Crc<u64> = Crc::<u64>::new(&CRC_64_XZ);

/// A digest of at most `MAX_DIGEST_BYTES`; derefs to its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Digest {
    bytes: [u8; MAX_DIGEST_BYTES],
    len: usize,
}

impl Digest {
    fn new(bytes: &[u8]) -> Self {
        let mut digest = Digest {
            bytes: [0; MAX_DIGEST_BYTES],
            len: bytes.len(),
        };
        digest.bytes[..bytes.len()].copy_from_slice(bytes);
        digest
    }
}

impl std::ops::Deref for Digest {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Length of a method's digest in bytes; 0 if the method has none.
pub(crate) fn digest_bytes(method: VerifyMethod) -> usize {
    match method {
        VerifyMethod::Crc7 => 1,
        VerifyMethod::Crc16 => 2,
        VerifyMethod::Crc32c | VerifyMethod::Crc32 | VerifyMethod::Xxhash => 4,
        VerifyMethod::Crc64 => 8,
        VerifyMethod::Md5 => 16,
        VerifyMethod::Sha1 => 20,
        VerifyMethod::Sha256 => 32,
        VerifyMethod::Sha512 => 64,
        VerifyMethod::Pattern
        | VerifyMethod::PatternHeader
        | VerifyMethod::RadosBench
        | VerifyMethod::Null => 0,
    }
}

/// The digest of `first` followed by `second`.
pub fn digest(method: VerifyMethod, first: &[u8], second: &[u8]) -> Digest {
    match method {
        VerifyMethod::Crc7 => by_crc(&CRC7, first, second, |sum| Digest::new(&[sum])),
        VerifyMethod::Crc16 => by_crc(&CRC16, first, second, |sum: u16| {
            Digest::new(&sum.to_le_bytes())
        }),
        VerifyMethod::Crc64 => by_crc(&CRC64, first, second, |sum: u64| {
            Digest::new(&sum.to_le_bytes())
        }),
        VerifyMethod::Crc32c => {
            let sum = crc32c::crc32c_append(crc32c::crc32c(first), second);
            Digest::new(&sum.to_le_bytes())
        }
        VerifyMethod::Crc32 => {
            let mut hasher = crc32fast::Hasher::new();
            hasher.update(first);
            hasher.update(second);
            Digest::new(&hasher.finalize().to_le_bytes())
        }
        VerifyMethod::Xxhash => {
            let mut hasher = xxhash_rust::xxh32::Xxh32::new(0);
            hasher.update(first);
            hasher.update(second);
            Digest::new(&hasher.digest().to_le_bytes())
        }
        VerifyMethod::Md5 => by_hash::<md5::Md5>(first, second),
        VerifyMethod::Sha1 => by_hash::<sha1::Sha1>(first, second),
        VerifyMethod::Sha256 => by_hash::<sha2::Sha256>(first, second),
        VerifyMethod::Sha512 => by_hash::<sha2::Sha512>(first, second),
        VerifyMethod::Pattern
        | VerifyMethod::PatternHeader
        | VerifyMethod::RadosBench
        | VerifyMethod::Null => Digest::new(&[]),
    }
}

fn by_hash<H: sha2::Digest>(first: &[u8], second: &[u8]) -> Digest {
    let mut hasher = H::new();
    hasher.update(first);
    hasher.update(second);
    Digest::new(&hasher.finalize())
}

macro_rules! crc_widths {
    ($($width:ty),*) => {$(
        impl CrcWidth for $width {
            fn sum(crc: &Crc<Self>, first: &[u8], second: &[u8]) -> Self {
                let mut sum = crc.digest();
                sum.update(first);
                sum.update(second);
                sum.finalize()
            }
        }
    )*};
}

/// Adapts the widths of CRC, which the crc crate implements separately.
trait CrcWidth: crc::Width {
    fn sum(crc: &Crc<Self>, first: &[u8], second: &[u8]) -> Self;
}
crc_widths!(u8, u16, u64);

fn by_crc<W: CrcWidth>(
    crc: &Crc<W>,
    first: &[u8],
    second: &[u8],
    store: impl Fn(W) -> Digest,
) -> Digest {
    store(W::sum(crc, first, second))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values for "123456789" from the CRC catalogue and the standards.
    #[test]
    fn digests_match_published_check_values() {
        let of = |method| {
            let whole = digest(method, b"123456789", b"");
            assert_eq!(
                *whole,
                *digest(method, b"1234", b"56789"),
                "{method:?}: split"
            );
            assert_eq!(whole.len(), digest_bytes(method));
            iosonde_job::lowercase_hex(&whole)
        };
        assert_eq!(of(VerifyMethod::Crc7), "75");
        assert_eq!(of(VerifyMethod::Crc16), "6e90");
        assert_eq!(of(VerifyMethod::Crc32), "2639f4cb");
        assert_eq!(of(VerifyMethod::Crc32c), "839206e3");
        assert_eq!(of(VerifyMethod::Crc64), "fa3919dfbbc95d99");
        assert_eq!(of(VerifyMethod::Xxhash), "67ad7b93");
        assert_eq!(of(VerifyMethod::Md5), "25f9e794323b453885f5181f1b624d0b");
        assert_eq!(
            of(VerifyMethod::Sha1),
            "f7c3bc1d808e04732adf679965ccc34ca7ae3441"
        );
        assert_eq!(
            of(VerifyMethod::Sha256),
            "15e2b0d3c33891ebb0f1ef609ec419420c20e320ce94c65fbc8c3312448eb225"
        );
        assert!(
            of(VerifyMethod::Sha512)
                .starts_with("d9e6762dd1c8eaf6d61b3c6192fc408d4d6d5f1176d0c29169bc24e71c3f274a")
        );
    }
}
