//! Steps of one member in the check of a file that several pods share.

use crate::sys::linux::DIRECT;
use iosonde_result::histogram::Histogram;
use iosonde_result::run_error::SystemFailure;
use iosonde_result::shared_file::{
    FileConsistency, FileLock, LockSample, RangeContent, SharedFileAction, SharedFileReply,
    SharedFileStep,
};
use rustix::fs::{FlockOperation, OFlags, fcntl_lock, flock};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Alignment of buffers for O_DIRECT: that of the largest common logical block.
const DIRECT_ALIGNMENT_BYTES: usize = 4096;
/// Longest lock step, whatever the request says.
const LOCK_DURATION_MAX: Duration = Duration::from_secs(60);
/// First and last pause before a write is repeated to change the file's time. The pauses double:
/// together they exceed two seconds, the coarsest time of a file system.
const REWRITE_PAUSE_MIN: Duration = Duration::from_millis(5);
const REWRITE_PAUSE_MAX: Duration = Duration::from_millis(1280);

/// A member of the check, and its view of the file.
#[derive(Debug)]
pub struct SharedFileMember {
    path: PathBuf,
    /// The file, open with O_DIRECT since the first step that needs immediate consistency.
    direct: Option<File>,
}

/// Reason why a step failed.
#[derive(Debug)]
enum StepFailure {
    Direct(io::Error),
    Call(SharedFileAction, io::Error),
}

impl StepFailure {
    fn from_call(action: SharedFileAction) -> impl Fn(io::Error) -> StepFailure {
        move |error| StepFailure::Call(action, error)
    }

    /// Returns the function for a call on the file: with O_DIRECT, EINVAL refuses the mode.
    fn of_transfer(
        action: SharedFileAction,
        consistency: FileConsistency,
    ) -> impl Fn(io::Error) -> StepFailure {
        move |error| match consistency {
            FileConsistency::Immediate if is_invalid(&error) => StepFailure::Direct(error),
            _ => StepFailure::Call(action, error),
        }
    }
}

impl SharedFileMember {
    /// Creates a member. Nothing is opened.
    pub fn new(path: PathBuf) -> SharedFileMember {
        SharedFileMember { path, direct: None }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Performs a step. Its answer has the error of a call that fails.
    pub fn perform(&mut self, step: &SharedFileStep) -> SharedFileReply {
        let performed = match step {
            SharedFileStep::Create => self.create(),
            SharedFileStep::Write {
                content,
                consistency,
            } => self.write(content, *consistency),
            SharedFileStep::Verify {
                contents,
                consistency,
            } => self.verify(contents, *consistency),
            SharedFileStep::Lock { lock, duration_ms } => {
                self.lock_repeatedly(*lock, Duration::from_millis(*duration_ms))
            }
            SharedFileStep::Close => {
                self.direct = None;
                Ok(SharedFileReply::Done)
            }
            SharedFileStep::Remove => fs::remove_file(&self.path)
                .map(|()| SharedFileReply::Done)
                .map_err(StepFailure::from_call(SharedFileAction::Remove)),
        };
        performed.unwrap_or_else(|failure| match failure {
            StepFailure::Direct(error) => SharedFileReply::DirectRefused((&error).into()),
            StepFailure::Call(action, error) => SharedFileReply::Failed {
                action,
                failure: SystemFailure::from(&error),
            },
        })
    }

    fn create(&self) -> Result<SharedFileReply, StepFailure> {
        let mut options = OpenOptions::new();
        let made = options.write(true).create_new(true).open(&self.path);
        made.map_err(StepFailure::from_call(SharedFileAction::Create))?;
        Ok(SharedFileReply::Done)
    }

    /// Opens the file for a step that must see what others have closed. A link in its place, which
    /// another user of the volume may have made, is not followed.
    fn open(&self, is_written: bool) -> Result<File, StepFailure> {
        let opened = OpenOptions::new()
            .read(true)
            .write(is_written)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&self.path);
        opened.map_err(StepFailure::from_call(SharedFileAction::Open))
    }

    /// Returns the file that stays open, with O_DIRECT.
    fn direct_file(&mut self) -> Result<&File, StepFailure> {
        let file = match self.direct.take() {
            Some(file) => file,
            None => OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags((DIRECT | OFlags::NOFOLLOW).bits().cast_signed())
                .open(&self.path)
                .map_err(StepFailure::of_transfer(
                    SharedFileAction::Open,
                    FileConsistency::Immediate,
                ))?,
        };
        let file: &File = self.direct.insert(file);
        Ok(file)
    }

    fn write(
        &mut self,
        content: &RangeContent,
        consistency: FileConsistency,
    ) -> Result<SharedFileReply, StepFailure> {
        let mut buffer = AlignedBuffer::new(content.bytes as usize);
        content.fill(buffer.bytes());
        let failed = StepFailure::of_transfer(SharedFileAction::Write, consistency);
        match consistency {
            FileConsistency::CloseToOpen => {
                let file = self.open(true)?;
                let bytes: &[u8] = buffer.bytes();
                let modified = || file.metadata().and_then(|metadata| metadata.modified());
                let write = || {
                    file.write_all_at(bytes, content.offset_bytes)?;
                    file.sync_all()?;
                    modified()
                };
                let before = modified();
                let written =
                    before.and_then(|time| write_with_new_time(time, write, std::thread::sleep));
                written.map_err(failed)?;
            }
            FileConsistency::Immediate => {
                let file = self.direct_file()?;
                let written = file.write_all_at(buffer.bytes(), content.offset_bytes);
                written.map_err(failed)?;
            }
        }
        Ok(SharedFileReply::Done)
    }

    fn verify(
        &mut self,
        contents: &[RangeContent],
        consistency: FileConsistency,
    ) -> Result<SharedFileReply, StepFailure> {
        let opened;
        let file = match consistency {
            FileConsistency::CloseToOpen => {
                opened = self.open(false)?;
                &opened
            }
            FileConsistency::Immediate => self.direct_file()?,
        };
        for content in contents {
            let mut buffer = AlignedBuffer::new(content.bytes as usize);
            let read = read_to_end_of_range(file, buffer.bytes(), content.offset_bytes);
            let failed = StepFailure::of_transfer(SharedFileAction::Read, consistency);
            let count = read.map_err(failed)?;
            if let Some(wrong) = content.find_wrong_byte(&buffer.bytes()[..count]) {
                return Ok(SharedFileReply::Wrong(wrong));
            }
        }
        Ok(SharedFileReply::Done)
    }

    /// Takes and releases the lock until the time has passed, at least once.
    fn lock_repeatedly(
        &self,
        lock: FileLock,
        duration: Duration,
    ) -> Result<SharedFileReply, StepFailure> {
        let file = self.open(true)?;
        let set = |operation| {
            let done = retry_on_intr(|| set_lock(&file, lock, operation));
            done.map_err(|errno| StepFailure::Call(SharedFileAction::Lock, errno.into()))
        };
        let mut sample = LockSample {
            lock_ns: Histogram::default(),
            unlock_ns: Histogram::default(),
            elapsed_ns: 0,
        };
        let begun = Instant::now();
        let mut before = begun;
        while sample.lock_ns.total() == 0 || begun.elapsed() < duration.min(LOCK_DURATION_MAX) {
            set(FlockOperation::LockExclusive)?;
            let locked = Instant::now();
            set(FlockOperation::Unlock)?;
            let unlocked = Instant::now();
            sample.lock_ns.record((locked - before).as_nanos() as u64);
            sample
                .unlock_ns
                .record((unlocked - locked).as_nanos() as u64);
            before = Instant::now();
        }
        sample.elapsed_ns = begun.elapsed().as_nanos() as u64;
        Ok(SharedFileReply::Locked(Box::new(sample)))
    }
}

/// Writes until the time of the file differs from that before. NFS promises that a reader sees a
/// closed file by its time: on a server whose times are whole seconds, a second write within the
/// same second may stay hidden, which is no fault. `write` returns the time after the write.
fn write_with_new_time<T: PartialEq>(
    before: T,
    mut write: impl FnMut() -> io::Result<T>,
    mut pause: impl FnMut(Duration),
) -> io::Result<()> {
    let mut time = REWRITE_PAUSE_MIN;
    while write()? == before && time <= REWRITE_PAUSE_MAX {
        pause(time);
        time *= 2;
    }
    Ok(())
}

/// Takes or releases a lock. There is no deadline: the client ends the check if a pod does not
/// answer in time.
fn set_lock(file: &File, lock: FileLock, operation: FlockOperation) -> Result<(), Errno> {
    match lock {
        FileLock::Flock => flock(file, operation),
        FileLock::Fcntl => fcntl_lock(file, operation),
    }
}

fn is_invalid(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput
}

/// Reads until the buffer is full or the file ends. Returns the number of bytes.
fn read_to_end_of_range(file: &File, buffer: &mut [u8], offset_bytes: u64) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read_at(&mut buffer[count..], offset_bytes + count as u64) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(count)
}

/// A buffer whose start is aligned for O_DIRECT.
struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl AlignedBuffer {
    fn new(length: usize) -> AlignedBuffer {
        let memory = vec![0; length + DIRECT_ALIGNMENT_BYTES];
        let start = memory.as_ptr().align_offset(DIRECT_ALIGNMENT_BYTES);
        debug_assert!(
            start < DIRECT_ALIGNMENT_BYTES,
            "it leaves room for the length"
        );
        AlignedBuffer {
            memory,
            start,
            length,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod faulty_file_tests;
#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::shared_file::{
        MemberStep, SharedFileFailure, SharedFileResult, WrongByteOrigin, check_shared_file,
    };

    /// Has members perform the check. `before` is called before each step.
    fn check(
        mut members: Vec<SharedFileMember>,
        mut before: impl FnMut(&MemberStep),
    ) -> Result<SharedFileResult, SharedFileFailure> {
        let pods = members.len() as u16;
        check_shared_file(pods, &mut |steps| {
            let perform = |step: &MemberStep| {
                before(step);
                members[usize::from(step.pod)].perform(&short(&step.step))
            };
            Ok(steps.iter().map(perform).collect())
        })
    }

    /// Shortens the lock steps: they need no second in tests.
    fn short(step: &SharedFileStep) -> SharedFileStep {
        match step {
            SharedFileStep::Lock { lock, .. } => SharedFileStep::Lock {
                lock: *lock,
                duration_ms: 1,
            },
            other => other.clone(),
        }
    }

    fn members(path: &Path, count: usize) -> Vec<SharedFileMember> {
        let member = |_| SharedFileMember::new(path.to_owned());
        (0..count).map(member).collect()
    }

    /// Writes at this time to a file whose times are multiples of `unit_ms`. Returns how often, and
    /// whether the time of the file changed.
    fn rewritten(begin_ms: u64, unit_ms: u64) -> (u32, bool) {
        let clock = std::cell::Cell::new(begin_ms);
        let time = || clock.get() / unit_ms;
        let (before, mut writes) = (time(), 0);
        let write = || {
            writes += 1;
            Ok(time())
        };
        let pause = |pause: Duration| clock.set(clock.get() + pause.as_millis() as u64);
        write_with_new_time(before, write, pause).unwrap();
        (writes, time() != before)
    }

    #[test]
    fn write_within_the_same_second_is_repeated_in_the_next() {
        assert_eq!(rewritten(7000, 1000), (9, true));
        assert_eq!(rewritten(7990, 1000), (3, true));
        assert_eq!(rewritten(8000, 2000), (10, true));
        // A file system that never changes the time does not hold up the check.
        assert_eq!(rewritten(1, u64::MAX), (10, false));
    }

    #[test]
    fn members_on_one_directory_see_all_writes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared-file");
        let result = check(members(&path, 3), |_| {}).unwrap();
        assert_eq!(result.locks.len() + result.refused_locks.len() * 2, 4);
        let expected = if result.direct_refused.is_some() {
            2
        } else {
            4
        };
        assert_eq!(result.checks.len(), expected);
        assert!(!path.exists(), "the file is removed");
    }

    #[test]
    fn corrupted_byte_fails_with_its_offset_and_both_members() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared-file");
        let corrupt = |step: &MemberStep| {
            if matches!(step.step, SharedFileStep::Verify { .. }) && step.pod == 1 {
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&[0xee], 70_001).unwrap();
            }
        };
        // Bytes from 65536 on belong to member 1, and member 2 reads them after member 1 reads.
        let failed = check(members(&path, 3), corrupt);
        let Err(SharedFileFailure::Wrong { reader, wrong, .. }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!((reader, wrong.writer), (2, 1));
        assert_eq!((wrong.offset_bytes, wrong.found), (70_001, Some(0xee)));
        assert_eq!(wrong.origin, WrongByteOrigin::Unknown);
    }

    #[test]
    fn member_with_stale_copy_fails_at_the_first_overwrite() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared-file");
        let copy = directory.path().join("stale-copy");
        let mut all = members(&path, 2);
        // This member has a file of its own, as its cache would be.
        all[1] = SharedFileMember::new(copy.clone());
        let mut reads = 0;
        let failed = check(all, |step| match step.step {
            SharedFileStep::Write { .. } if step.pod == 1 => {
                let file = OpenOptions::new().create(true).append(true).open(&copy);
                drop(file.unwrap());
            }
            SharedFileStep::Verify { .. } if reads == 0 => {
                reads += 1;
                let theirs = std::fs::read(&copy).unwrap();
                let file = OpenOptions::new().write(true).open(&path).unwrap();
                file.write_all_at(&theirs[65_536..], 65_536).unwrap();
                std::fs::copy(&path, &copy).unwrap();
            }
            _ => {}
        });
        let Err(SharedFileFailure::Wrong { reader, wrong, .. }) = failed else {
            panic!("{failed:?}");
        };
        assert_eq!((reader, wrong.writer, wrong.generation), (1, 0, 2));
        let earlier = WrongByteOrigin::EarlierWrite {
            writer: 0,
            generation: 1,
        };
        assert_eq!(wrong.origin, earlier);
    }

    #[test]
    fn link_in_place_of_the_file_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shared-file");
        let other = directory.path().join("other");
        fs::write(&other, "of others").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let mut member = SharedFileMember::new(path);
        for consistency in [FileConsistency::CloseToOpen, FileConsistency::Immediate] {
            let content = RangeContent {
                offset_bytes: 0,
                bytes: 4096,
                writer: 0,
                generation: 1,
            };
            let reply = member.perform(&SharedFileStep::Write {
                content,
                consistency,
            });
            let SharedFileReply::Failed { action, .. } = reply else {
                panic!("{reply:?}");
            };
            assert_eq!(action, SharedFileAction::Open);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "of others");
    }

    #[test]
    fn missing_file_fails_with_the_operation() {
        let mut member = SharedFileMember::new(PathBuf::from("/nonexistent/shared-file"));
        let reply = member.perform(&SharedFileStep::Create);
        let expected = SharedFileReply::Failed {
            action: SharedFileAction::Create,
            failure: SystemFailure::Errno(2),
        };
        assert_eq!(reply, expected);
    }
}
