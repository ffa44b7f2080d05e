//! Layers and documents of container images in the format of the Open Container Initiative (OCI).

use super::archive::sha256_hex;
use anyhow::{Context, Result};
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Directory of blobs in a layout.
const BLOBS: &str = "blobs/sha256";

/// One entry of a layer.
pub(crate) struct LayerEntry {
    /// Path without the leading slash.
    pub(crate) path: String,
    pub(crate) mode: u32,
    /// Owner and group.
    pub(crate) owner: u32,
    pub(crate) content: EntryContent,
}

/// Content of an entry.
pub(crate) enum EntryContent {
    Directory,
    File(Vec<u8>),
    /// A symbolic link to this target.
    Link(String),
}

/// A compressed layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImageLayer {
    pub(crate) gzip: Vec<u8>,
    /// Digest of the uncompressed archive, as the image's configuration names it.
    pub(crate) diff_id: String,
}

impl LayerEntry {
    /// Returns a directory of root that all users can read.
    pub(crate) fn directory(path: &str) -> Self {
        Self::new(path, 0o755, EntryContent::Directory)
    }

    /// Returns a file of root.
    pub(crate) fn file(path: &str, mode: u32, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(path, mode, EntryContent::File(bytes.into()))
    }

    /// Returns a symbolic link.
    pub(crate) fn link(path: &str, target: &str) -> Self {
        Self::new(path, 0o777, EntryContent::Link(target.to_owned()))
    }

    fn new(path: &str, mode: u32, content: EntryContent) -> Self {
        Self {
            path: path.to_owned(),
            mode,
            owner: 0,
            content,
        }
    }
}

impl ImageLayer {
    /// Packs the entries in the given order, in which a directory comes before its files.
    ///
    /// # Errors
    /// If a path does not fit into an archive.
    pub(crate) fn pack(entries: &[LayerEntry], epoch: u64) -> Result<Self> {
        let archive = archive(entries, epoch)?;
        let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
        encoder.write_all(&archive)?;
        Ok(Self {
            gzip: encoder.finish()?,
            diff_id: digest(&archive),
        })
    }
}

/// Returns a tar archive with the entries, which depends on nothing else.
///
/// # Errors
/// If a path does not fit into an archive.
pub(crate) fn archive(entries: &[LayerEntry], epoch: u64) -> Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for entry in entries {
        let mut header = tar::Header::new_gnu();
        header.set_mode(entry.mode);
        header.set_mtime(epoch);
        header.set_uid(entry.owner.into());
        header.set_gid(entry.owner.into());
        header.set_size(0);
        let appended = match &entry.content {
            EntryContent::Directory => {
                header.set_entry_type(tar::EntryType::Directory);
                archive.append_data(&mut header, format!("{}/", entry.path), std::io::empty())
            }
            EntryContent::File(bytes) => {
                header.set_entry_type(tar::EntryType::Regular);
                header.set_size(bytes.len() as u64);
                archive.append_data(&mut header, &entry.path, bytes.as_slice())
            }
            EntryContent::Link(target) => {
                header.set_entry_type(tar::EntryType::Symlink);
                archive.append_link(&mut header, &entry.path, target)
            }
        };
        appended.with_context(|| format!("cannot put {} into an archive", entry.path))?;
    }
    Ok(archive.into_inner()?)
}

/// Returns `sha256:` with 64 hexadecimal digits.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

/// The blobs of a layout, by the path that their digest gives.
#[derive(Default)]
pub(crate) struct BlobStore {
    blobs: BTreeMap<String, Vec<u8>>,
}

impl BlobStore {
    /// Adds a blob and returns its descriptor.
    pub(crate) fn add(&mut self, media_type: &str, bytes: Vec<u8>) -> Value {
        let descriptor = json!({
            "mediaType": media_type,
            "digest": digest(&bytes),
            "size": bytes.len(),
        });
        self.blobs
            .insert(format!("{BLOBS}/{}", sha256_hex(&bytes)), bytes);
        descriptor
    }

    /// Returns the directories and files of all blobs as entries of an archive.
    pub(crate) fn into_entries(self) -> Vec<LayerEntry> {
        let mut entries = vec![LayerEntry::directory("blobs"), LayerEntry::directory(BLOBS)];
        for (path, bytes) in self.blobs {
            entries.push(LayerEntry::file(&path, 0o644, bytes));
        }
        entries
    }
}

/// Returns the path of the blob that a descriptor names.
///
/// # Errors
/// If the descriptor has no SHA-256.
pub(crate) fn blob_path(descriptor: &Value) -> Result<String> {
    let digest = descriptor["digest"]
        .as_str()
        .context("a descriptor has no digest")?;
    let hex = digest
        .strip_prefix("sha256:")
        .context("a digest is no SHA-256")?;
    Ok(format!("{BLOBS}/{hex}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<LayerEntry> {
        vec![
            LayerEntry::directory("usr"),
            LayerEntry::file("usr/program", 0o755, *b"bytes"),
            LayerEntry::link("usr/link", "program"),
        ]
    }

    #[test]
    fn layer_of_the_same_entries_has_the_same_bytes() {
        let layer = ImageLayer::pack(&entries(), 1_700_000_000).unwrap();
        assert_eq!(layer, ImageLayer::pack(&entries(), 1_700_000_000).unwrap());
        assert_ne!(layer, ImageLayer::pack(&entries(), 1_700_000_001).unwrap());
    }

    #[test]
    fn layer_keeps_modes_times_and_links() {
        let bytes = archive(&entries(), 1_700_000_000).unwrap();
        let mut archive = tar::Archive::new(bytes.as_slice());
        let read: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!(header.mtime().unwrap(), 1_700_000_000);
                let link = entry
                    .link_name()
                    .unwrap()
                    .map(|link| link.display().to_string());
                (
                    entry.path().unwrap().display().to_string(),
                    header.mode().unwrap(),
                    link,
                )
            })
            .collect();
        assert_eq!(read[1], ("usr/program".to_owned(), 0o755, None));
        assert_eq!(read[2].2.as_deref(), Some("program"));
    }

    #[test]
    fn digest_is_the_sha256_of_the_bytes() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(digest(b""), format!("sha256:{empty}"));
    }

    #[test]
    fn blob_is_stored_under_its_digest() {
        let mut store = BlobStore::default();
        let descriptor = store.add("text/plain", b"content".to_vec());
        assert_eq!(descriptor["size"], 7);
        let path = blob_path(&descriptor).unwrap();
        assert!(store.into_entries().iter().any(|entry| entry.path == path));
        assert!(blob_path(&json!({"digest": "md5:0"})).is_err());
    }
}
