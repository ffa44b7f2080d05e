//! Names of the files of hosts on a file system that they share.

use iosonde_job::lowercase_hex;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};

/// File systems that hosts share, or may share unknown to the kernel: `f_type` of statfs(2).
const SHARED_FILE_SYSTEMS: [u64; 17] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE, and virtiofs
    0x00c3_6400, // Ceph
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x5346_414f, // AFS
    0x0102_1997, // 9p
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
    0x1983_0326, // BeeGFS
    0xaad7_aaea, // PanFS
    0x7375_7245, // Coda
    0x2003_0528, // OrangeFS
    0x786f_4256, // shared folders of VirtualBox
];

/// Whether hosts may share the file system of a file, which need not exist yet.
pub(super) fn is_on_shared_file_system(path: &Path) -> bool {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut directories = absolute.ancestors().skip(1);
    let found = directories.find_map(|directory| rustix::fs::statfs(directory).ok());
    found.is_some_and(|facts| is_shared(facts.f_type as u64))
}

/// The kernel's type is signed; some architectures sign-extend it.
fn is_shared(file_system_type: u64) -> bool {
    SHARED_FILE_SYSTEMS.contains(&(file_system_type & 0xffff_ffff))
}

/// Name of this host in file names: node name and, as names may repeat, a machine id digest.
pub(super) fn this_host() -> String {
    let uname = rustix::system::uname();
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    host_name(&uname.nodename().to_string_lossy(), machine.trim())
}

fn host_name(node: &str, machine: &str) -> String {
    let plain = |letter: char| match letter.is_ascii_alphanumeric() {
        true => letter,
        false => '-',
    };
    let node: String = node.chars().map(plain).collect();
    if machine.is_empty() {
        return node;
    }
    let digest = Sha256::digest(format!("iosonde {machine}"));
    format!("{node}-{}", lowercase_hex(&digest[..3]))
}

/// Returns the file that a host writes: `history.HOST.db` beside `history.db`.
pub(super) fn file_of_host(shared: &Path, host: &str) -> PathBuf {
    shared.with_file_name(format!("{}.{host}.db", file_stem(shared)))
}

/// Returns the file name without `.db`.
pub(super) fn file_stem(shared: &Path) -> String {
    let name = shared.file_name().unwrap_or_default().to_string_lossy();
    name.strip_suffix(".db").unwrap_or(&name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_file_names_and_stems() {
        let file = |path: &str| file_of_host(Path::new(path), "n1-3fa9c1");
        assert_eq!(file("/h/history.db"), Path::new("/h/history.n1-3fa9c1.db"));
        assert_eq!(file("lab"), Path::new("lab.n1-3fa9c1.db"));
        assert_eq!(host_name("n1.lab/x", ""), "n1-lab-x");
        assert_ne!(host_name("n1", "a"), host_name("n1", "b"));
        assert!(host_name("n1", "a").starts_with("n1-"));
    }

    #[test]
    fn shared_file_systems_match_by_magic_number() {
        for shared in [0x6969, 0x6573_5546, 0xff53_4d42, 0xffff_ffff_ff53_4d42] {
            assert!(is_shared(shared), "{shared:x}");
        }
        // ext4, XFS, tmpfs, overlayfs.
        for local in [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630] {
            assert!(!is_shared(local), "{local:x}");
        }
        assert!(!is_on_shared_file_system(Path::new(
            "/proc/no/such/history.db"
        )));
    }
}
