//! Mounts and swap space: `/proc/self/mountinfo` and `/proc/swaps`.

use super::proc_root::System;
use iosonde_result::host::{DeviceNumber, Locality, Mount};
use std::path::{Path, PathBuf};

/// Mounts of this process's namespace in the kernel's order. Later mounts cover earlier ones.
pub fn mounts(system: &System) -> Vec<Mount> {
    parse_mountinfo(&system.text("/proc/self/mountinfo").unwrap_or_default())
}

/// Devices and files that hold swap space.
pub(crate) fn swaps(system: &System) -> Vec<PathBuf> {
    parse_swaps(&system.text("/proc/swaps").unwrap_or_default())
}

/// Parses the text of `/proc/self/mountinfo` (proc(5)); lines of another form are skipped.
pub(crate) fn parse_mountinfo(text: &str) -> Vec<Mount> {
    text.lines().filter_map(parse_mount).collect()
}

fn parse_mount(line: &str) -> Option<Mount> {
    // id parent major:minor root mount-point options [optional fields...] - type source
    // super-options
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(2);
    let device: DeviceNumber = front.next()?.parse().ok()?;
    let root = unescape(front.next()?);
    let mount_point = PathBuf::from(unescape(front.next()?));
    let mount_options = front.next()?;
    let mut back = back.split(' ');
    let fs_type = back.next()?.to_owned();
    let source = without_password(&unescape(back.next()?));
    let mut options: Vec<String> = Vec::new();
    for option in mount_options
        .split(',')
        .chain(back.next().unwrap_or("").split(','))
    {
        let option = without_secret(&unescape(option));
        if !option.is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let locality = locality(&fs_type);
    Some(Mount {
        mount_point,
        root,
        fs_type,
        source,
        options,
        device,
        locality,
        service: None,
    })
}

/// Replacement for a secret in results.
const HIDDEN: &str = "<hidden>";

/// Hides the value of a mount option that holds a secret.
fn without_secret(option: &str) -> String {
    const SECRETS: [&str; 6] = ["secret", "password", "password2", "passwd", "pass", "token"];
    match option.split_once('=') {
        Some((name, _)) if SECRETS.contains(&name.to_ascii_lowercase().as_str()) => {
            format!("{name}={HIDDEN}")
        }
        _ => option.to_owned(),
    }
}

/// Hides the password in `scheme://user:password@host/...`.
fn without_password(source: &str) -> String {
    let found = source.split_once("//").and_then(|(scheme, rest)| {
        let authority = rest.split('/').next()?;
        let (who, _) = authority.rsplit_once('@')?;
        let (user, _) = who.split_once(':')?;
        Some(format!("{scheme}//{user}:{HIDDEN}{}", &rest[who.len()..]))
    });
    found.unwrap_or_else(|| source.to_owned())
}

/// Parses the text of `/proc/swaps`.
fn parse_swaps(text: &str) -> Vec<PathBuf> {
    let lines = text.lines().filter(|line| line.starts_with('/'));
    lines
        .filter_map(|line| Some(PathBuf::from(unescape(line.split_whitespace().next()?))))
        .collect()
}

/// Decodes blanks and backslashes, which the kernel writes as `\040` and so on.
pub(super) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| byte == b'\\' && digits.iter().all(|d| (b'0'..b'8').contains(d)));
        match octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok())
        {
            Some(value) => {
                bytes.push(value);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The mount that holds an absolute path without symbolic links.
///
/// `device` is the path's `st_dev` if it is known. Only this number shows that a later mount covers
/// another. It is a preference, because files of btrfs subvolumes and of overlays have numbers that
/// no mount has.
pub(crate) fn mount_of<'a>(
    mounts: &'a [Mount],
    path: &Path,
    device: Option<DeviceNumber>,
) -> Option<&'a Mount> {
    let holding = || {
        mounts
            .iter()
            .enumerate()
            .filter(|(_, mount)| path.starts_with(&mount.mount_point))
    };
    let depth = |mount: &Mount| mount.mount_point.components().count();
    let deepest = |candidates: &mut dyn Iterator<Item = (usize, &'a Mount)>| {
        candidates
            .max_by_key(|(order, mount)| (depth(mount), *order))
            .map(|(_, mount)| mount)
    };
    deepest(&mut holding().filter(|(_, mount)| Some(mount.device) == device))
        .or_else(|| deepest(&mut holding()))
}

/// The location of the data for a type of file system.
pub fn locality(fs_type: &str) -> Locality {
    match fs_type {
        "tmpfs" | "ramfs" | "hugetlbfs" | "devtmpfs" => Locality::Memory,
        "nfs" | "nfs4" | "cifs" | "smb3" | "smbfs" | "ceph" | "9p" | "virtiofs" | "afs"
        | "lustre" | "beegfs" | "gpfs" | "wekafs" | "orangefs" | "pvfs2" | "vboxsf" | "prl_fs"
        | "vmhgfs" | "fuse.sshfs" | "fuse.s3fs" | "fuse.glusterfs" | "fuse.ceph"
        | "fuse.ceph-fuse" | "fuse.juicefs" | "fuse.gcsfuse" => Locality::Remote,
        "overlay"
        | "overlayfs"
        | "aufs"
        | "ecryptfs"
        | "fuse.fuse-overlayfs"
        | "fuse.mergerfs"
        | "unionfs" => Locality::Stacked,
        "fuseblk" => Locality::Block,
        other if other == "fuse" || other.starts_with("fuse.") => Locality::UserSpace,
        "proc" | "sysfs" | "devpts" | "cgroup" | "cgroup2" | "securityfs" | "debugfs"
        | "tracefs" | "bpf" | "mqueue" | "pstore" | "configfs" | "autofs" | "binfmt_misc"
        | "efivarfs" | "fusectl" | "nsfs" | "rpc_pipefs" | "selinuxfs" => Locality::Pseudo,
        _ => Locality::Block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw,nosuid - proc proc rw
24 22 0:40 / /data rw shared:5 master:1 - tmpfs none rw,size=8k
25 22 259:1 /pool/a /data rw,noatime - xfs /dev/nvme0n1p1 rw,attr2
26 25 0:50 / /data/with\\040blank rw - nfs4 host:/export\\134x rw,vers=4.2
garbage
27 22 x:y / /bad rw - ext4 /dev/bad rw
";

    fn held_by(path: &str, device: Option<&str>) -> String {
        let mounts = parse_mountinfo(TEXT);
        let device = device.map(|text| text.parse().unwrap());
        mount_of(&mounts, Path::new(path), device)
            .unwrap()
            .fs_type
            .clone()
    }

    #[test]
    fn mountinfo_fields_are_parsed() {
        let mounts = parse_mountinfo(TEXT);
        assert_eq!(mounts.len(), 5);
        let bind = &mounts[3];
        assert_eq!(
            (bind.root.as_str(), bind.source.as_str()),
            ("/pool/a", "/dev/nvme0n1p1")
        );
        assert_eq!(bind.options, ["rw", "noatime", "attr2"]);
        assert_eq!(
            bind.device,
            DeviceNumber {
                major: 259,
                minor: 1
            }
        );
        assert_eq!(mounts[4].mount_point, Path::new("/data/with blank"));
        assert_eq!(mounts[4].source, "host:/export\\x");
        assert_eq!(mounts[4].locality, Locality::Remote);
    }

    #[test]
    fn path_belongs_to_its_deepest_and_last_mount() {
        assert_eq!(held_by("/etc/passwd", None), "ext4");
        assert_eq!(held_by("/data/file", None), "xfs");
        assert_eq!(held_by("/database", None), "ext4");
        assert_eq!(held_by("/data/with blank/file", None), "nfs4");
    }

    #[test]
    fn device_number_selects_the_mount_of_a_path() {
        assert_eq!(held_by("/data/file", Some("0:40")), "tmpfs");
        assert_eq!(held_by("/data/with blank/x", Some("259:1")), "xfs");
        assert_eq!(
            held_by("/data/file", Some("0:99")),
            "xfs",
            "an unknown number is no obstacle"
        );
    }

    #[test]
    fn mount_secrets_are_hidden() {
        let line = |rest: &str| parse_mountinfo(&format!("22 1 0:50 / /mnt rw - {rest}\n"));
        let mounts = line("ceph 10.0.0.1:/ rw,name=admin,secret=AQBx==,Password=x,sec=krb5,acl");
        assert_eq!(
            mounts[0].options,
            [
                "rw",
                "name=admin",
                "secret=<hidden>",
                "Password=<hidden>",
                "sec=krb5",
                "acl"
            ]
        );
        let mounts = line("fuse.davfs https://me:sesame@host/dir rw");
        assert_eq!(mounts[0].source, "https://me:<hidden>@host/dir");
        assert_eq!(line("cifs //me@host/dir rw")[0].source, "//me@host/dir");
    }

    #[test]
    fn swap_devices_and_files_are_found() {
        let text = "Filename\t\t\tType\t\tSize\tUsed\tPriority\n\
                    /dev/sda2  partition\t1000\t0\t-2\n/swap\\040file file 5 0 -3\n";
        assert_eq!(
            parse_swaps(text),
            [Path::new("/dev/sda2"), Path::new("/swap file")]
        );
        assert!(parse_swaps("").is_empty());
    }

    proptest! {
        #[test]
        fn names_survive_the_kernels_escapes(name in "[ -~\\t]{1,20}") {
            let escaped: String = name.chars().map(|c| match c {
                ' ' | '\t' | '\\' => format!("\\{:03o}", c as u32),
                c => c.to_string(),
            }).collect();
            prop_assert_eq!(unescape(&escaped), name);
        }

        #[test]
        fn arbitrary_mountinfo_never_panics(text in "\\PC*") {
            parse_mountinfo(&text);
            parse_swaps(&text);
            unescape(&text);
        }
    }
}
