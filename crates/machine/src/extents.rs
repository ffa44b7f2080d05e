//! Extents of a file. Reads of holes and unwritten blocks return zeros without device I/O.

use crate::sys::fiemap;

use iosonde_result::bottleneck::verdict;
use iosonde_result::run::Verdict;
use iosonde_result::verdict_cause::VerdictCause;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;

/// The kind of a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExtentKind {
    /// Written data.
    Data,
    /// No blocks: reads return zeros without device I/O.
    Hole,
    /// Allocated but never written blocks: reads return zeros without device I/O.
    Unwritten,
}

/// A range of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileExtent {
    /// Offsets in bytes.
    pub range: Range<u64>,
    /// The kind of the range.
    pub kind: ExtentKind,
}

/// The extents of a range of a file, in order and without gaps. Past its end the file is a hole.
///
/// File systems without FIEMAP are queried with `SEEK_HOLE`, which most implement with unwritten
/// extents as holes. A file system without either reports that all is data. The result then equals
/// that of a file without holes.
///
/// # Errors
///
/// Fails if ioctl(2) or lseek(2) fails on the file.
pub fn extents(file: &File, range: Range<u64>) -> io::Result<Vec<FileExtent>> {
    let size = file.metadata()?.len();
    let inside = range.start..range.end.min(size).max(range.start);
    let mapped = match fiemap::extents(file.as_fd(), inside.start, inside.end - inside.start) {
        Ok(mapped) => mapped
            .into_iter()
            .map(|extent| {
                let kind = if extent.unwritten {
                    ExtentKind::Unwritten
                } else {
                    ExtentKind::Data
                };
                FileExtent {
                    range: extent.start..extent.start.saturating_add(extent.length),
                    kind,
                }
            })
            .collect(),
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL)
            ) =>
        {
            data_by_seeking(file, &inside)?
        }
        Err(error) => return Err(error),
    };
    let mut mapped = mapped;
    mapped.retain(|extent| extent.range.start < inside.end);
    if let Some(last) = mapped.last_mut() {
        last.range.end = last.range.end.min(inside.end);
    }
    Ok(with_holes(mapped, &range))
}

/// The ranges that `SEEK_DATA` finds.
fn data_by_seeking(file: &File, range: &Range<u64>) -> io::Result<Vec<FileExtent>> {
    let mut found = Vec::new();
    let mut next = range.start;
    while next < range.end {
        let start = match rustix::fs::seek(file, SeekFrom::Data(next)) {
            Ok(start) => start,
            // No data follows.
            Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
        found.push(FileExtent {
            range: start..end,
            kind: ExtentKind::Data,
        });
        next = end.max(next + 1);
    }
    Ok(found)
}

/// Fills gaps between extents with holes, limits them to the range, and joins neighbours.
fn with_holes(mapped: Vec<FileExtent>, range: &Range<u64>) -> Vec<FileExtent> {
    let mut whole: Vec<FileExtent> = Vec::new();
    let mut push = |from: u64, to: u64, kind: ExtentKind| match whole.last_mut() {
        _ if from >= to => {}
        Some(last) if last.kind == kind && last.range.end == from => last.range.end = to,
        _ => whole.push(FileExtent {
            range: from..to,
            kind,
        }),
    };
    let mut next = range.start;
    for extent in mapped {
        let (from, to) = (
            extent.range.start.max(next),
            extent.range.end.min(range.end),
        );
        push(next, from.min(range.end), ExtentKind::Hole);
        push(from, to, extent.kind);
        next = next.max(to);
    }
    push(next, range.end, ExtentKind::Hole);
    whole
}

/// Number of bytes of each kind in a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtentCoverage {
    /// Written data.
    pub data_bytes: u64,
    /// Holes.
    pub hole_bytes: u64,
    /// Allocated but never written.
    pub unwritten_bytes: u64,
}

impl ExtentCoverage {
    /// The sums over some extents.
    pub fn from_extents(extents: &[FileExtent]) -> Self {
        let mut coverage = Self::default();
        for extent in extents {
            let sum = match extent.kind {
                ExtentKind::Data => &mut coverage.data_bytes,
                ExtentKind::Hole => &mut coverage.hole_bytes,
                ExtentKind::Unwritten => &mut coverage.unwritten_bytes,
            };
            *sum += extent.range.end - extent.range.start;
        }
        coverage
    }

    /// The verdict on reads of a range with unwritten parts; `None` if the whole range was written.
    pub fn verdict(&self, file: &str) -> Option<Verdict> {
        let empty = self.hole_bytes + self.unwritten_bytes;
        if empty == 0 {
            return None;
        }
        Some(verdict(VerdictCause::UnwrittenData {
            file: file.to_owned(),
            data_bytes: self.data_bytes,
            hole_bytes: self.hole_bytes,
            unwritten_bytes: self.unwritten_bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ExtentKind::{Data, Hole, Unwritten};
    use iosonde_result::run::VerdictKind;
    use proptest::prelude::*;
    use std::os::unix::fs::FileExt;

    fn file_in(dir: &str, size: u64) -> File {
        let file = tempfile::tempfile_in(dir).unwrap();
        file.set_len(size).unwrap();
        file
    }

    fn kinds(extents: &[FileExtent]) -> Vec<(u64, u64, ExtentKind)> {
        extents
            .iter()
            .map(|extent| (extent.range.start, extent.range.end, extent.kind))
            .collect()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn extents_distinguish_holes_from_data() {
        for dir in [env!("CARGO_MANIFEST_DIR"), "/dev/shm"] {
            let file = file_in(dir, 4 * MIB);
            file.write_all_at(&vec![7; MIB as usize], MIB).unwrap();
            let expected = [
                (0, MIB, Hole),
                (MIB, 2 * MIB, Data),
                (2 * MIB, 5 * MIB, Hole),
            ];
            assert_eq!(
                kinds(&extents(&file, 0..5 * MIB).unwrap()),
                expected,
                "in {dir}"
            );
            let middle = extents(&file, MIB + 4096..MIB + 8192).unwrap();
            assert_eq!(kinds(&middle), [(MIB + 4096, MIB + 8192, Data)], "in {dir}");
            assert_eq!(kinds(&extents(&file, 9 * MIB..9 * MIB).unwrap()), []);
        }
    }

    #[test]
    fn reserved_blocks_are_not_data_until_they_are_written() {
        let file = file_in(env!("CARGO_MANIFEST_DIR"), 0);
        let reserve = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 2 * MIB);
        reserve.unwrap();
        let before = ExtentCoverage::from_extents(&extents(&file, 0..2 * MIB).unwrap());
        assert_eq!(
            (
                before.data_bytes,
                before.hole_bytes + before.unwritten_bytes
            ),
            (0, 2 * MIB)
        );
        assert_eq!(
            before.verdict("f").unwrap().kind,
            VerdictKind::UnwrittenData
        );
        file.write_all_at(&vec![7; 2 * MIB as usize], 0).unwrap();
        let after = ExtentCoverage::from_extents(&extents(&file, 0..2 * MIB).unwrap());
        assert_eq!((after.data_bytes, after.verdict("f")), (2 * MIB, None));
    }

    #[test]
    fn files_of_many_extents_are_read_to_the_end() {
        let file = file_in(env!("CARGO_MANIFEST_DIR"), 0);
        for index in 0..700u64 {
            file.write_all_at(&[1; 4096], index * 65_536).unwrap();
        }
        let coverage = ExtentCoverage::from_extents(&extents(&file, 0..700 * 65_536).unwrap());
        // Some file systems have blocks larger than 4 KiB.
        assert!(coverage.data_bytes >= 700 * 4096, "{coverage:?}");
        assert!(
            coverage.hole_bytes > 0 && coverage.data_bytes + coverage.hole_bytes == 700 * 65_536
        );
    }

    #[test]
    fn unwritten_data_verdict_states_the_share() {
        let coverage = ExtentCoverage {
            data_bytes: 750,
            hole_bytes: 200,
            unwritten_bytes: 50,
        };
        let cause = VerdictCause::UnwrittenData {
            file: "/data/f".to_owned(),
            data_bytes: 750,
            hole_bytes: 200,
            unwritten_bytes: 50,
        };
        assert_eq!(coverage.verdict("/data/f").unwrap().cause, Some(cause));
    }

    proptest! {
        #[test]
        fn extents_cover_the_range_without_gaps(
            pieces in prop::collection::vec((1u64..50, 0u64..50, any::<bool>()), 0..20),
            range in (0u64..300, 0u64..300).prop_map(|(a, b)| a.min(b)..a.max(b)),
        ) {
            let mut mapped = Vec::new();
            let mut at = 0;
            for (length, gap, unwritten) in pieces {
                at += gap;
                let kind = if unwritten { Unwritten } else { Data };
                mapped.push(FileExtent { range: at..at + length, kind });
                at += length;
            }
            let whole = with_holes(mapped.clone(), &range);
            let covered_bytes = whole.iter().map(|e| e.range.end - e.range.start).sum::<u64>();
            prop_assert_eq!(covered_bytes, range.end - range.start);
            for pair in whole.windows(2) {
                prop_assert_eq!(pair[0].range.end, pair[1].range.start);
                prop_assert_ne!(pair[0].kind, pair[1].kind);
            }
            for extent in &whole {
                for at in extent.range.clone() {
                    let mapping = mapped.iter().find(|m| m.range.contains(&at));
                    let expected = mapping.map_or(Hole, |m| m.kind);
                    prop_assert_eq!(extent.kind, expected);
                }
            }
        }
    }
}
