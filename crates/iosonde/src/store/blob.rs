//! Documents as compressed blobs (zlib).

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{BufReader, BufWriter, Read};

/// JSON of a value, compressed. JSON is written in morsels, of which each costs an encoder more than its bytes: they come
/// together first.
pub(super) fn packed<T: Serialize>(value: &T) -> std::io::Result<Vec<u8>> {
    let encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    let mut morsels = BufWriter::with_capacity(1 << 16, encoder);
    serde_json::to_writer(&mut morsels, value)?;
    morsels.into_inner()?.finish()
}

/// The value whose JSON was compressed.
pub(super) fn unpacked<T: DeserializeOwned>(blob: &[u8]) -> Result<T, serde_json::Error> {
    let mut text = Vec::new();
    BufReader::new(ZlibDecoder::new(blob))
        .read_to_end(&mut text)
        .map_err(serde_json::Error::io)?;
    serde_json::from_slice(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let value: Vec<f64> = (0..10_000).map(f64::from).collect();
        let blob = packed(&value).unwrap();
        assert!(blob.len() < 40_000);
        assert_eq!(unpacked::<Vec<f64>>(&blob).unwrap(), value);
        assert!(unpacked::<Vec<f64>>(&blob[..blob.len() / 2]).is_err());
        assert!(unpacked::<Vec<f64>>(b"").is_err());
    }
}
