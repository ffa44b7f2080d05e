//! Checks of a file that members see through different file systems in user space, one of which
//! returns stale or wrong bytes.

use super::SharedFileMember;
use iosonde_result::shared_file::{
    MemberStep, SharedFileFailure, SharedFileReply, SharedFileStep, WrongByteOrigin,
    check_shared_file,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Size of the file of two members.
const FILE_BYTES: u64 = 128 << 10;

/// A file that nbdkit serves from another one.
struct ServedFile {
    path: PathBuf,
    server: Child,
}

impl ServedFile {
    /// Serves `backing` through filters of nbdkit, with their parameters.
    fn serve(path: PathBuf, backing: &Path, filters: &[&str], parameters: &[&str]) -> ServedFile {
        File::create(&path).unwrap();
        let server = Command::new("nbdfuse")
            .arg(&path)
            .args(["[", "nbdkit", "--exit-with-parent"])
            .args(filters)
            .arg("file")
            .arg(backing)
            .args(parameters)
            .arg("]")
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let served = ServedFile { path, server };
        let deadline = Instant::now() + Duration::from_secs(30);
        while fs::metadata(&served.path).is_ok_and(|file| file.len() == 0) {
            assert!(Instant::now() < deadline, "nbdfuse does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        served
    }
}

impl Drop for ServedFile {
    fn drop(&mut self) {
        let unmount = Command::new("fusermount3")
            .arg("-uz")
            .arg(&self.path)
            .status();
        drop(unmount);
        drop(self.server.kill());
        drop(self.server.wait());
    }
}

/// Checks a file that the first member sees as it is, and the second one through filters.
fn check_through(filters: &[&str], parameters: &[&str]) -> SharedFileFailure {
    let directory = tempfile::tempdir().unwrap();
    let backing = directory.path().join("backing");
    File::create(&backing).unwrap().set_len(FILE_BYTES).unwrap();
    let served = [
        ServedFile::serve(directory.path().join("plain"), &backing, &[], &[]),
        ServedFile::serve(
            directory.path().join("faulty"),
            &backing,
            filters,
            parameters,
        ),
    ];
    let mut members: Vec<_> = (served.iter())
        .map(|served| SharedFileMember::new(served.path.clone()))
        .collect();
    let checked = check_shared_file(2, &mut |steps| {
        let perform = |step: &MemberStep| match step.step {
            // The served files exist, and are mount points.
            SharedFileStep::Create | SharedFileStep::Remove => SharedFileReply::Done,
            _ => members[usize::from(step.pod)].perform(&step.step),
        };
        Ok(steps.iter().map(perform).collect())
    });
    drop(members);
    checked.unwrap_err()
}

#[test]
#[ignore = "needs FUSE"]
fn stale_cache_fails_at_the_first_overwrite() {
    let failure = check_through(&["--filter=cache"], &["cache-on-read=true"]);
    let SharedFileFailure::Wrong { reader, wrong, .. } = failure else {
        panic!("{failure:?}");
    };
    assert_eq!((reader, wrong.writer, wrong.generation), (1, 0, 2));
    let earlier = WrongByteOrigin::EarlierWrite {
        writer: 0,
        generation: 1,
    };
    assert_eq!(wrong.origin, earlier, "{wrong:?}");
}

#[test]
#[ignore = "needs FUSE"]
fn swapped_bytes_fail_with_offset_and_both_members() {
    let failure = check_through(&["--filter=swab"], &["swab-bits=16"]);
    let SharedFileFailure::Wrong { reader, wrong, .. } = failure else {
        panic!("{failure:?}");
    };
    // The second member's range begins with the place 8192 (0x2000).
    assert_eq!((reader, wrong.writer), (0, 1));
    assert_eq!((wrong.offset_bytes, wrong.found), (65_536, Some(0x20)));
}
