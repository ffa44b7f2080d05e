//! Files, directories and devices of a job, and their sizes.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A length or position: absolute, or relative to the file's size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BytesOrPercent {
    /// In bytes.
    Bytes(u64),
    /// Per cent of the file or device (of `size` for `io_size`).
    Percent(f64),
}

/// The longest possible file, in bytes: offsets are signed (`off_t`).
pub const MAX_FILE_BYTES: u64 = i64::MAX as u64;

/// Files of a job: `filename`, `directory`, `size` and related options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JobFiles {
    /// `filename`: explicit paths. Empty: names are made from [`JobFiles::filename_format`].
    pub filenames: Vec<String>,
    /// `directory`: one or more; clones take them in turn.
    pub directories: Vec<String>,
    /// `filename_format`; fio's default is `$jobname.$jobnum.$filenum`.
    pub filename_format: Option<String>,
    /// The section's name, if `name=` or the axes of a suite rename the job: `$jobname` in
    /// [`JobFiles::filename_format`] stands for it, not for the job's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section: Option<String>,
    /// `opendir`: use all files below these directories, after those of [`JobFiles::filenames`].
    #[serde(default, deserialize_with = "none_one_or_several")]
    pub opendir: Vec<String>,
    /// `nrfiles`: files per clone, at least 1.
    pub nrfiles: u32,
    /// `openfiles`: number of files that are open at once; 0 is all.
    pub openfiles: u32,
    /// `file_service_type`.
    pub file_service: FileService,
    /// `filesize`: the range from which each file's size is drawn, in bytes.
    pub filesize: Option<(u64, u64)>,
    /// `size`: sum over all files of one clone. `None`: the size of the existing file or device.
    pub size: Option<BytesOrPercent>,
    /// `io_size`: bytes to transfer; `None` is the same as `size`.
    pub io_size: Option<BytesOrPercent>,
    /// `offset`: where each file's region starts.
    pub offset: BytesOrPercent,
    /// `offset_increment`: added once per clone.
    pub offset_increment: BytesOrPercent,
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
    /// `fadvise_hint`: the advice that posix_fadvise(2) gives about the order of I/O.
    pub fadvise: Fadvise,
}

impl JobFiles {
    /// Returns the names of `filename`, else the name of `filename_format`. As in fio, `filename`
    /// and `opendir` override `filename_format`.
    pub fn names(&self) -> impl DoubleEndedIterator<Item = &String> {
        let is_overridden = !self.filenames.is_empty() || !self.opendir.is_empty();
        let format = self.filename_format.iter();
        let format = format.filter(move |_| !is_overridden);
        self.filenames.iter().chain(format)
    }
}

/// `fadvise_hint`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fadvise {
    /// No advice.
    None,
    /// The advice that fits `rw`: fio's default.
    Pattern,
    /// POSIX_FADV_RANDOM.
    Random,
    /// POSIX_FADV_SEQUENTIAL.
    Sequential,
}

/// `file_service_type`: selects the open file of the next I/O.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileService {
    /// Rule that selects the next file.
    pub kind: FileServiceKind,
    /// I/Os to one file before the next selection, at least 1.
    pub every: u32,
}

/// Rule that selects the next file.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileServiceKind {
    /// Files in turn.
    RoundRobin,
    /// Each file to its end before the next file begins.
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
    /// No allocation.
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

/// Reads a list of texts. Older results hold one text or null.
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
