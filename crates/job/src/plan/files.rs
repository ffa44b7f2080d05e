//! Where the data are: files, directories, devices, and their sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A length or position: absolute, or relative to the file's size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    /// In bytes.
    Bytes(u64),
    /// Per cent of the file or device (of `size` for `io_size`).
    Percent(f64),
}

/// The end of the longest file, in bytes: offsets are signed (`off_t`).
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// Where the data are: `filename`, `directory`, `size` and their kin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Files {
    /// `filename`: explicit paths. Empty: names are made from [`Files::filename_format`].
    pub filenames: Vec<String>,
    /// `directory`: one or more; clones take them in turn.
    pub directories: Vec<String>,
    /// `filename_format`; fio's default is `$jobname.$jobnum.$filenum`.
    pub filename_format: Option<String>,
    /// What `$jobname` is in [`Files::filename_format`] where it is not the job's name: the section's, when `name=` renames it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// `opendir`: take all files below these directories, behind those of [`Files::filenames`].
    #[serde(default, deserialize_with = "none_one_or_several")]
    pub opendir: Vec<String>,
    /// `nrfiles`: files per clone, at least 1.
    pub nrfiles: u32,
    /// `openfiles`: how many are open at once; 0 is all.
    pub openfiles: u32,
    /// `file_service_type`.
    pub file_service: FileService,
    /// `filesize`: each file's size, drawn from this range.
    pub filesize: Option<(u64, u64)>,
    /// `size`: over all files of one clone. `None`: the size of the existing file or device.
    pub size: Option<Extent>,
    /// `io_size`: bytes to move; `None` is the same as `size`.
    pub io_size: Option<Extent>,
    /// `offset`: where each file's region starts.
    pub offset: Extent,
    /// `offset_increment`: added once per clone.
    pub offset_increment: Extent,
    /// `offset_align` in bytes; 0 is none.
    pub offset_align: u64,
    /// `fill_device`: write until the device is full; ENOSPC then ends the job without an error.
    pub fill_device: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `create_serialize`.
    pub create_serialize: bool,
    /// `create_fsync`.
    pub create_fsync: bool,
    /// `create_on_open`.
    pub create_on_open: bool,
    /// `create_only`: lay out the files and stop.
    pub create_only: bool,
    /// `overwrite`: lay files out before they are written.
    pub overwrite: bool,
    /// `file_append`.
    pub file_append: bool,
    /// `pre_read`.
    pub pre_read: bool,
    /// `invalidate`: drop the page cache of a file before it is used.
    pub invalidate: bool,
    /// `unlink`: remove files when the job is done.
    pub unlink: bool,
    /// `unlink_each_loop`.
    pub unlink_each_loop: bool,
    /// `allow_file_create`.
    pub allow_file_create: bool,
    /// `allow_mounted_write`: consent to write to a block device in use.
    pub allow_mounted_write: bool,
    /// `fadvise_hint`: what the kernel is told about the order of I/O to come.
    pub fadvise: Fadvise,
}

/// `fadvise_hint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fadvise {
    /// Nothing is told.
    None,
    /// What fits `rw`: fio's default.
    Pattern,
    /// POSIX_FADV_RANDOM
    Random,
    /// POSIX_FADV_SEQUENTIAL
    Sequential,
}

/// `file_service_type`: which open file the next I/O goes to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileService {
    /// How the next file is picked.
    pub kind: FileServiceKind,
    /// I/Os before another file is picked, at least 1.
    pub every: u32,
}

/// How the next file is picked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileServiceKind {
    /// One after the other.
    RoundRobin,
    /// One is finished before the next is begun.
    Sequential,
    /// Uniformly at random.
    Random,
    /// Zipf with this theta.
    Zipf(f64),
    /// Pareto with this h.
    Pareto(f64),
    /// Gauss with this deviation.
    Gauss(f64),
}

/// `fallocate`: how space is reserved before a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fallocate {
    /// Not at all.
    None,
    /// fallocate(2) where it is supported.
    Native,
    /// posix_fallocate(3).
    Posix,
    /// FALLOC_FL_KEEP_SIZE.
    Keep,
    /// ftruncate(2).
    Truncate,
}

/// A list of texts; older results hold one text or null.
fn none_one_or_several<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Several(Vec<String>),
        One(String),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Stored::One(text)) => vec![text],
        Some(Stored::Several(texts)) => texts,
    })
}
