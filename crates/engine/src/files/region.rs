//! Which part of a file a worker uses: where `offset` and its kin begin it, and how long `size` and `filesize` make it.

use super::resolve::{FileKind, min_block};
use iosonde_job::plan::{Engine, Extent, Job, MAX_FILE_BYTES};
use iosonde_result::session::RunError;
use iosonde_workload::files::start_offset_bytes;
use std::path::Path;

/// A file before the job has touched it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held<'a> {
    /// Its name, for errors.
    pub path: &'a Path,
    /// What it is.
    pub kind: FileKind,
    /// What it holds; nothing when it does not exist.
    pub bytes: u64,
}

impl Held<'_> {
    /// Start and length of the part that clone `clone` uses, in bytes, if the file is to be `wanted` long.
    pub(super) fn part(
        &self,
        job: &Job,
        clone: u32,
        wanted: Option<u64>,
    ) -> Result<(u64, u64), RunError> {
        let mut start = self.start(job, clone, wanted);
        // As in fio, whatever the offset.
        let is_file = self.kind == FileKind::Regular && job.io.engine.has_paths();
        if job.files.file_append && is_file {
            start = self.bytes;
        }
        if start > 0 && wanted.is_none() && start >= self.bytes {
            return Err(RunError::Target {
                path: self.path.display().to_string(),
                problem: format!("offset {start} is not below its size, {} bytes", self.bytes),
                remedy: "use a smaller offset=, or give size= to make the file larger".to_owned(),
            });
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

    /// Where the part begins. As in fio, a share is one of what the file holds when the clone's turn comes: nothing of a new
    /// file, and of one that clones share, what those before it have made it.
    fn start(&self, job: &Job, clone: u32, wanted: Option<u64>) -> u64 {
        let min_block = min_block(job);
        let begins = |clone, held| start_offset_bytes(&job.files, clone, held, min_block);
        let mut held = match job.io.engine {
            // Objects are looked for later, and are as long as they are to be.
            Engine::Rados => wanted.unwrap_or(0),
            _ => self.bytes,
        };
        let of_share = |extent| matches!(extent, Extent::Percent(_));
        let depends = of_share(job.files.offset) || of_share(job.files.offset_increment);
        let grows = depends && !job.files.filenames.is_empty() && self.kind == FileKind::Regular;
        for before in 0..if grows { clone } else { 0 } {
            let ahead = if is_of_whole(job) {
                0
            } else {
                begins(before, held)
            };
            held = held.max(ahead.saturating_add(wanted.unwrap_or(0)));
        }
        begins(clone, held)
    }
}

/// Whether the length wanted is that of the whole file, not of the part behind the offset.
fn is_of_whole(job: &Job) -> bool {
    job.files.filesize.is_some()
}

/// The share that `size` in per cent leaves of a part: of the whole file, in whole blocks, and never past its end.
fn shared(job: &Job, start: u64, part_bytes: u64) -> u64 {
    let Some(Extent::Percent(percent)) = job.files.size else {
        return part_bytes;
    };
    if percent == 100.0 {
        return part_bytes;
    }
    let share = (start.saturating_add(part_bytes) as f64 * percent / 100.0) as u64;
    let share = share.min(part_bytes);
    share - share % min_block(job).max(1)
}

/// The end of a part, which must be one that offsets reach.
pub(super) fn end_of_part(start: u64, size_bytes: u64, path: &Path) -> Result<u64, RunError> {
    let end = start.checked_add(size_bytes);
    end.filter(|end| *end <= MAX_FILE_BYTES)
        .ok_or_else(|| RunError::Target {
            path: path.display().to_string(),
            problem: format!(
                "{size_bytes} bytes behind offset {start} end beyond {MAX_FILE_BYTES} bytes (8 EiB), where offsets end"
            ),
            remedy: "use a smaller size=, offset= or offset_increment=".to_owned(),
        })
}

/// What `filesize` leaves behind the offset: as in fio, it is the size of the whole file.
pub(super) fn behind_offset(filesize: u64, start: u64, path: &Path) -> Result<u64, RunError> {
    match filesize.checked_sub(start) {
        Some(left) if left > 0 => Ok(left),
        _ => Err(RunError::Target {
            path: path.display().to_string(),
            problem: format!("offset {start} is not below filesize={filesize}"),
            remedy: "use a smaller offset=, or a larger filesize=".to_owned(),
        }),
    }
}
