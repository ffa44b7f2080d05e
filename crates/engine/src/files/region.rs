//! Region of a file that a worker uses, by `offset`, `offset_increment`, `size` and `filesize`.

use super::file_errors::unusable_target;
use crate::worker_files::FileKind;
use iosonde_job::plan::{BytesOrPercent, Engine, Job, MAX_FILE_BYTES};
use iosonde_result::run_error::{RunError, TargetProblem};
use iosonde_workload::files::start_offset_bytes;
use std::path::Path;

/// A file before the job changes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileBeforeJob<'a> {
    /// Path, for errors.
    pub path: &'a Path,
    /// Type of the file.
    pub kind: FileKind,
    /// Size in bytes. 0 if the file does not exist.
    pub bytes: u64,
}

impl FileBeforeJob<'_> {
    /// Start and length in bytes of the region of clone `clone`, for a file of `wanted` bytes.
    pub(super) fn part(
        &self,
        job: &Job,
        clone: u32,
        wanted: Option<u64>,
    ) -> Result<(u64, u64), RunError> {
        let mut start = self.start(job, clone, wanted);
        // As in fio, `file_append` overrides the offset.
        let is_file = self.kind == FileKind::Regular && job.io.engine.has_paths();
        if job.files.file_append && is_file {
            start = self.bytes;
        }
        if start > 0 && wanted.is_none() && start >= self.bytes {
            return Err(unusable_target(
                self.path,
                TargetProblem::OffsetAfterFile {
                    offset: start,
                    file_bytes: self.bytes,
                },
            ));
        }
        let left = self.bytes.saturating_sub(start);
        let whole = match wanted {
            Some(size) if is_of_whole(job) && self.kind == FileKind::Regular => {
                behind_offset(size, start, self.path)?
            }
            // A device cannot grow.
            Some(size) if self.kind == FileKind::BlockDevice => size.min(left),
            Some(size) => size,
            None => left,
        };
        Ok((start, shared(job, start, whole)))
    }

    /// Start of the region. As in fio, a percentage refers to the file size when the clone starts:
    /// 0 for a new file, and the size after the clones before it for a shared file.
    fn start(&self, job: &Job, clone: u32, wanted: Option<u64>) -> u64 {
        let min_block = min_block(job);
        let begins =
            |clone, size_bytes| start_offset_bytes(&job.files, clone, size_bytes, min_block);
        let mut size_bytes = match job.io.engine {
            // Objects are looked up later. Their size is the one requested.
            Engine::Rados => wanted.unwrap_or(0),
            _ => self.bytes,
        };
        let of_share = |extent| matches!(extent, BytesOrPercent::Percent(_));
        let depends = of_share(job.files.offset) || of_share(job.files.offset_increment);
        let grows = depends && !job.files.filenames.is_empty() && self.kind == FileKind::Regular;
        for before in 0..if grows { clone } else { 0 } {
            let ahead = if is_of_whole(job) {
                0
            } else {
                begins(before, size_bytes)
            };
            size_bytes = size_bytes.max(ahead.saturating_add(wanted.unwrap_or(0)));
        }
        begins(clone, size_bytes)
    }
}

/// Whether the requested length is that of the whole file, not of the region after the offset.
fn is_of_whole(job: &Job) -> bool {
    job.files.filesize.is_some()
}

/// Length of a region with `size` in per cent: of the whole file, rounded down to whole blocks.
fn shared(job: &Job, start: u64, part_bytes: u64) -> u64 {
    let Some(BytesOrPercent::Percent(percent)) = job.files.size else {
        return part_bytes;
    };
    if percent == 100.0 {
        return part_bytes;
    }
    let share = (start.saturating_add(part_bytes) as f64 * percent / 100.0) as u64;
    let share = share.min(part_bytes);
    share - share % min_block(job).max(1)
}

/// End of a region. Fails if it exceeds the largest offset.
pub(super) fn end_of_part(start: u64, size_bytes: u64, path: &Path) -> Result<u64, RunError> {
    let end = start.checked_add(size_bytes);
    end.filter(|end| *end <= MAX_FILE_BYTES).ok_or_else(|| {
        unusable_target(
            path,
            TargetProblem::OffsetOverMaximum {
                offset: start,
                size_bytes,
                limit_bytes: MAX_FILE_BYTES,
            },
        )
    })
}

/// Bytes after the offset: as in fio, `filesize` is the size of the whole file.
pub(super) fn behind_offset(filesize: u64, start: u64, path: &Path) -> Result<u64, RunError> {
    match filesize.checked_sub(start) {
        Some(left) if left > 0 => Ok(left),
        _ => Err(unusable_target(
            path,
            TargetProblem::OffsetAfterFilesize {
                offset: start,
                filesize,
            },
        )),
    }
}

/// Smallest block size of the directions that the job uses.
pub(super) fn min_block(job: &Job) -> u64 {
    job.workload
        .block_size
        .iter()
        .filter(|(direction, _)| job.workload.rw.has(*direction))
        .map(|(_, size)| size.min())
        .min()
        .unwrap_or(512)
}
