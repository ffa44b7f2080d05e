//! Filling files with data that neither compress nor repeat.

use super::resolve::target_error;
use crate::interrupt::Interrupt;
use crate::sys::memory::{IoMemory, MemoryKind};
use crate::workload::rng::{Rng, mix64};
use iosonde_result::session::RunError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::sync_channel;

/// Bytes written by one call.
const CHUNK: usize = 4 << 20;
/// Chunks that one thread fills while another writes.
const AHEAD: usize = 3;
/// O_DIRECT needs lengths that every device takes.
const DIRECT_UNIT: usize = 4096;

/// Fills files, one after the other. Its memory is made once, however many files there are.
#[derive(Debug, Default)]
pub(super) struct Filler {
    buffers: Vec<IoMemory>,
}

/// How far a fill is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Size(u64),
    /// ENOSPC is the end, not an error.
    Full,
}

/// A chunk on its way from the thread that fills to the one that writes.
struct Chunk {
    memory: IoMemory,
    offset: u64,
    length: usize,
}

impl Filler {
    /// Writes `size` bytes over the whole file, past the page cache where the file system allows it.
    pub(super) fn fill(
        &mut self,
        path: &Path,
        file: &File,
        size: u64,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        self.run(path, file, Until::Size(size), stops, written)
    }

    /// Writes until there is no room left.
    pub(super) fn until_full(
        &mut self,
        path: &Path,
        file: &File,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        self.run(path, file, Until::Full, stops, written)
    }

    /// One thread makes data while another writes them, so that the device does not wait for random numbers.
    fn run(
        &mut self,
        path: &Path,
        file: &File,
        until: Until,
        stops: &[&Interrupt],
        written: &mut dyn FnMut(u64),
    ) -> Result<(), RunError> {
        let target = Target {
            file,
            direct: OpenOptions::new()
                .write(true)
                .custom_flags(libc::O_DIRECT)
                .open(path)
                .ok(),
        };
        self.make_buffers(until)
            .map_err(|error| target_error(path, "find memory to fill", &error))?;
        let mut rng = Rng::new(seed_of(path));
        if let Until::Size(size) = until
            && size <= CHUNK as u64
        {
            let memory = &mut self.buffers[0];
            rng.fill(memory.slot_mut(0, size as usize));
            let data = memory.slot(0, size as usize);
            target
                .write(data, 0)
                .map_err(|error| target_error(path, "write", &error))?;
            written(size);
            return Ok(());
        }
        let free = std::mem::take(&mut self.buffers);
        let (free, outcome) = pipeline(&target, free, &mut rng, until, stops, written);
        self.buffers = free;
        match outcome {
            Ok(true) => Ok(()),
            Ok(false) => Err(RunError::Interrupted),
            Err(error) => Err(target_error(path, "write", &error)),
        }
    }

    fn make_buffers(&mut self, until: Until) -> io::Result<()> {
        let wanted = match until {
            Until::Size(size) if size <= CHUNK as u64 => 1,
            _ => AHEAD,
        };
        while self.buffers.len() < wanted {
            self.buffers
                .push(IoMemory::map(1, CHUNK, 0, MemoryKind::Pages)?);
        }
        Ok(())
    }
}

/// Fills here, writes in a second thread. The buffers, and whether it came to its end (or was interrupted).
fn pipeline(
    target: &Target<'_>,
    mut free: Vec<IoMemory>,
    rng: &mut Rng,
    until: Until,
    stops: &[&Interrupt],
    written: &mut dyn FnMut(u64),
) -> (Vec<IoMemory>, io::Result<bool>) {
    let (to_write, chunks) = sync_channel::<Chunk>(AHEAD);
    let (to_fill, done) = sync_channel::<(Chunk, io::Result<()>)>(AHEAD);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for chunk in chunks {
                let outcome = target.write(chunk.memory.slot(0, chunk.length), chunk.offset);
                // Nobody listens any more when the other side has given up.
                let _ = to_fill.send((chunk, outcome));
            }
        });
        let (mut offset, mut in_flight, mut outcome) = (0, 0, Ok(true));
        loop {
            let wanted = match until {
                Until::Size(size) => size.saturating_sub(offset).min(CHUNK as u64) as usize,
                Until::Full => CHUNK,
            };
            let going = matches!(outcome, Ok(true)) && wanted > 0;
            if going && stops.iter().any(|stop| stop.is_requested()) {
                outcome = Ok(false);
                continue;
            }
            if going && let Some(mut memory) = free.pop() {
                rng.fill(memory.slot_mut(0, wanted));
                let chunk = Chunk {
                    memory,
                    offset,
                    length: wanted,
                };
                offset += wanted as u64;
                in_flight += 1;
                to_write.send(chunk).expect("the writing thread listens");
                continue;
            }
            if in_flight == 0 {
                break;
            }
            let (chunk, result) = done.recv().expect("the writing thread answers");
            in_flight -= 1;
            match result {
                Ok(()) => written(chunk.offset + chunk.length as u64),
                Err(error) if outcome.is_ok() => outcome = Err(error),
                Err(_) => {}
            }
            free.push(chunk.memory);
        }
        drop(to_write);
        let full = until == Until::Full && matches!(&outcome, Err(error) if is_full(error));
        (free, if full { Ok(true) } else { outcome })
    })
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT))
}

/// Different for each file, the same in every run.
fn seed_of(path: &Path) -> u64 {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.iter().fold(mix64(bytes.len() as u64), |seed, byte| {
        mix64(seed ^ u64::from(*byte))
    })
}

struct Target<'a> {
    file: &'a File,
    direct: Option<File>,
}

impl Target<'_> {
    fn write(&self, data: &[u8], offset: u64) -> io::Result<()> {
        match &self.direct {
            Some(direct) if data.len().is_multiple_of(DIRECT_UNIT) => direct
                .write_all_at(data, offset)
                .or_else(|_| self.file.write_all_at(data, offset)),
            _ => self.file.write_all_at(data, offset),
        }
    }
}
