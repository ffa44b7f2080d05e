//! Documents as compressed blobs (zlib).

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use iosonde_machine::bounded_read;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::BufWriter;

/// Returns the JSON of a value, compressed. The buffer collects the small writes of the serializer,
/// each of which costs the encoder more than its bytes.
pub(super) fn packed<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    let encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut buffered = BufWriter::with_capacity(1 << 16, encoder);
    serde_json::to_writer(&mut buffered, value)?;
    buffered.into_inner()?.finish()
}

/// Decompresses and parses a blob. A blob of a foreign history may expand a thousandfold, so text
/// beyond the memory bound is an error.
pub(super) fn unpacked<T: DeserializeOwned>(blob: &[u8]) -> Result<T, serde_json::Error> {
    unpacked_within(blob, bounded_read::document_bytes_max())
}

fn unpacked_within<T: DeserializeOwned>(
    blob: &[u8],
    bytes_max: u64,
) -> Result<T, serde_json::Error> {
    let text =
        bounded_read::stream(ZlibDecoder::new(blob), bytes_max).map_err(serde_json::Error::io)?;
    serde_json::from_slice(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn unpacked_blob_equals_packed_value() {
        let value: Vec<f64> = (0..10_000).map(f64::from).collect();
        let blob = packed(&value).unwrap();
        assert!(blob.len() < 40_000);
        assert_eq!(unpacked::<Vec<f64>>(&blob).unwrap(), value);
        assert!(unpacked::<Vec<f64>>(&blob[..blob.len() / 2]).is_err());
        assert!(unpacked::<Vec<f64>>(b"").is_err());
    }

    #[test]
    fn blob_beyond_memory_bound_is_rejected() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        std::io::copy(&mut std::io::repeat(b' ').take(64 << 20), &mut encoder).unwrap();
        let blob = encoder.finish().unwrap();
        assert!(blob.len() < 1 << 17, "{}", blob.len());
        let error = unpacked_within::<Vec<f64>>(&blob, 1 << 20).unwrap_err();
        let kind = Some(std::io::ErrorKind::FileTooLarge);
        assert_eq!(error.io_error_kind(), kind, "{error}");
        let fits = packed(&vec![1.0; 1000]).unwrap();
        assert!(unpacked_within::<Vec<f64>>(&fits, 1 << 20).is_ok());
    }
}
