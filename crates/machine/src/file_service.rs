//! The service behind a mounted file system: NFS server and export, or Ceph monitors and path.
//!
//! NFS and the kernel's CephFS client show it in the mount. The mount of ceph-fuse does not. There
//! the process that serves the mount has a configuration and a path, and an extended attribute has
//! the cluster's fsid.

use super::proc_root::System;
use iosonde_job::plan::CephAccess;
use iosonde_result::host::{Mount, MountService, ServiceClient};
use std::path::Path;

/// The service behind a mount; `None` for other file systems.
pub fn service(system: &System, mount: &Mount) -> Option<MountService> {
    let mut service = match mount.fs_type.as_str() {
        "nfs" | "nfs4" => return Some(nfs_service(mount)),
        "ceph" => kernel_ceph(mount),
        "fuse.ceph-fuse" | "fuse.ceph" => ceph_fuse(system, mount),
        _ => return None,
    };
    if system.is_live() {
        service.fsid = fsid_of(&mount.mount_point).or(service.fsid);
    }
    Some(service)
}

/// The value of a mount option.
fn option<'a>(mount: &'a Mount, name: &str) -> Option<&'a str> {
    let mut options = mount.options.iter();
    options.find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
}

fn nfs_service(mount: &Mount) -> MountService {
    // An IPv6 address is in brackets. The path follows the next colon.
    let (server, path) = match mount.source.split_once("]:") {
        Some((server, path)) => (format!("{server}]"), Some(path)),
        None => match mount.source.split_once(':') {
            Some((server, path)) => (server.to_owned(), Some(path)),
            None => (mount.source.clone(), None),
        },
    };
    let mut servers = vec![server];
    let bare = |name: &str| name.trim_matches(['[', ']']).to_owned();
    if let Some(address) = option(mount, "addr").filter(|address| bare(&servers[0]) != *address) {
        servers.push(address.to_owned());
    }
    MountService {
        client: ServiceClient::Nfs,
        version: option(mount, "vers").map(str::to_owned),
        servers,
        path: path.map(str::to_owned),
        ..MountService::default()
    }
}

/// Parses `MONITORS:/path`, or since Linux 5.17 `user@fsid.file-system=/path` with the monitors
/// among the options.
fn kernel_ceph(mount: &Mount) -> MountService {
    let mut service = MountService {
        client: ServiceClient::CephKernel,
        user: option(mount, "name").map(str::to_owned),
        ..MountService::default()
    };
    let file_system = option(mount, "mds_namespace").or(option(mount, "fs"));
    service.file_system = file_system.map(str::to_owned);
    if let Some((who, path)) = new_ceph_source(&mount.source) {
        let (user, place) = who;
        service.user.get_or_insert(user.to_owned());
        if let Some((fsid, file_system)) = place.split_once('.') {
            service.fsid = Some(fsid.to_owned()).filter(|fsid| !fsid.is_empty());
            service.file_system = Some(file_system.to_owned());
        }
        let monitors = option(mount, "mon_addr").unwrap_or_default();
        service.servers = monitors_of(&monitors.replace('/', ","));
        service.path = Some(path.to_owned());
    } else if let Some((monitors, path)) = mount.source.split_once(":/") {
        service.servers = monitors_of(monitors);
        service.path = Some(format!("/{path}"));
    }
    service
}

/// User, file system and path of a source in the new form.
fn new_ceph_source(source: &str) -> Option<((&str, &str), &str)> {
    let (who, path) = source.split_once("=/")?;
    let path = &source[source.len() - path.len() - 1..];
    Some((who.split_once('@')?, path))
}

fn ceph_fuse(system: &System, mount: &Mount) -> MountService {
    let mut service = MountService {
        client: ServiceClient::CephFuse,
        ..MountService::default()
    };
    let Some(process) = ServerProcess::serving(system, mount) else {
        return service;
    };
    let given = |names: &[&str]| process.option_value(names);
    service.path = Some(given(&["-r", "client_mountpoint"]).unwrap_or_else(|| "/".to_owned()));
    service.file_system = given(&["client_fs", "client_mds_namespace"]);
    let name = given(&["-n", "name"]).and_then(|name| Some(name.strip_prefix("client.")?.into()));
    service.user = name
        .or_else(|| given(&["-i", "--id", "id", "user"]))
        .or_else(|| Some("admin".to_owned()));
    let conf = given(&["-c", "conf"])
        .or_else(|| process.environment("CEPH_CONF"))
        .unwrap_or_else(|| "/etc/ceph/ceph.conf".to_owned());
    let conf = system.text(&conf).unwrap_or_default();
    let monitors = given(&["-m", "mon_host"]).or_else(|| setting(&conf, "mon host"));
    service.servers = monitors_of(&monitors.unwrap_or_default());
    service.fsid = setting(&conf, "fsid");
    service
}

/// The access to the cluster of a mounted CephFS: `given`, completed from the mount's client.
pub fn access(system: &System, mount: &Mount, given: &CephAccess) -> CephAccess {
    let process = match mount.fs_type.as_str() {
        "ceph" => None,
        _ => ServerProcess::serving(system, mount),
    };
    let process = process.as_ref();
    let read_option = |names: &[&str]| process?.option_value(names);
    let from_environment = || process?.environment("CEPH_CONF");
    let conf = || read_option(&["-c", "conf"]).or_else(from_environment);
    let user = mount
        .service
        .as_ref()
        .and_then(|service| service.user.clone());
    CephAccess {
        conf: given.conf.clone().or_else(conf),
        client: given.client.clone().or(user),
        keyring: given
            .keyring
            .clone()
            .or_else(|| read_option(&["-k", "keyring"])),
        ..given.clone()
    }
}

/// A process that serves a file system.
struct ServerProcess<'a> {
    system: &'a System,
    pid: u32,
    words: Vec<String>,
}

impl ServerProcess<'_> {
    /// The ceph-fuse process whose command line has this mount point.
    fn serving<'a>(system: &'a System, mount: &Mount) -> Option<ServerProcess<'a>> {
        let pids = system.names("/proc").into_iter();
        let mut processes = pids.filter_map(|pid| {
            let pid: u32 = pid.parse().ok()?;
            let words = system.text(format!("/proc/{pid}/cmdline"))?;
            let words = words.split('\0').map(str::to_owned).collect();
            Some(ServerProcess { system, pid, words })
        });
        processes.find(|process| {
            let program = process
                .words
                .first()
                .and_then(|word| word.rsplit('/').next());
            let is_there = |word: &String| {
                let path = Path::new(word);
                let path = match path.is_relative() {
                    true => (system.follow(format!("/proc/{}/cwd", process.pid)))
                        .unwrap_or_default()
                        .join(path),
                    false => path.to_owned(),
                };
                path == mount.mount_point
            };
            program.is_some_and(|program| program.starts_with("ceph-fuse"))
                && process.words.iter().skip(1).any(is_there)
        })
    }

    /// The value of one of these options. Ceph accepts `-x value`, `--name value` and
    /// `--name=value`, with `-` or `_` between words.
    fn option_value(&self, names: &[&str]) -> Option<String> {
        let mut words = self.words.iter().skip(1);
        while let Some(word) = words.next() {
            if names.contains(&word.as_str()) {
                return words.next().cloned();
            }
            let Some(long) = word.strip_prefix("--") else {
                continue;
            };
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            if names.contains(&name.replace('-', "_").as_str()) {
                return value.or_else(|| words.next().cloned());
            }
        }
        None
    }

    fn environment(&self, name: &str) -> Option<String> {
        let all = self.system.text(format!("/proc/{}/environ", self.pid))?;
        let mut all = all.split('\0');
        all.find_map(|one| Some(one.strip_prefix(name)?.strip_prefix('=')?.to_owned()))
    }
}

/// A setting of a ceph.conf, the first in any section. Blanks, `_` and `-` separate words.
fn setting(conf: &str, name: &str) -> Option<String> {
    let plain = |name: &str| {
        let words: Vec<&str> = name
            .split([' ', '\t', '_', '-'])
            .filter(|word| !word.is_empty())
            .collect();
        words.join(" ")
    };
    let mut lines = conf.lines().map(str::trim);
    lines.find_map(|line| {
        let (key, value) = line.split_once('=')?;
        let value = value.split([';', '#']).next().unwrap_or_default().trim();
        (plain(key) == name && !value.is_empty()).then(|| value.to_owned())
    })
}

/// Addresses of monitors without duplicates, from `a,b:6789` or `[v2:a:3300/0,v1:a:6789/0] b`.
fn monitors_of(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in text.split([',', ' ', '\t', ';']) {
        let has_kind = |word: &str| word.starts_with("v1:") || word.starts_with("v2:");
        let word = match word.strip_prefix('[') {
            Some(inner) if has_kind(inner) => inner,
            _ => word,
        };
        let word = match has_kind(word) {
            true => &word[3..],
            false => word,
        };
        let closes = word.matches(']').count() > word.matches('[').count();
        let word = match closes {
            true => word.strip_suffix(']').unwrap_or(word),
            false => word,
        };
        let word = word.split('/').next().unwrap_or_default();
        if !word.is_empty() && !found.iter().any(|known| known == word) {
            found.push(word.to_owned());
        }
    }
    found
}

/// The cluster's fsid, an extended attribute of any file of a CephFS.
fn fsid_of(path: &Path) -> Option<String> {
    let mut value = [0; 64];
    let length = rustix::fs::getxattr(path, "ceph.cluster_fsid", &mut value).ok()?;
    let text = std::str::from_utf8(&value[..length]).ok()?;
    let text = text.trim_end_matches('\0').trim();
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse_mountinfo;

    /// The form in which kernels print these mounts. This machine does not need such a mount.
    fn parse_service(line: &str) -> MountService {
        let mounts = parse_mountinfo(&format!("22 1 0:50 / /mnt rw,relatime - {line}\n"));
        service(&System::captured("/nonexistent"), &mounts[0]).unwrap()
    }

    #[test]
    fn nfs_names_its_server_and_export() {
        let service = parse_service(
            "nfs4 filer:/export/a rw,vers=4.2,proto=tcp,clientaddr=10.0.0.9,\
             local_lock=none,addr=10.0.0.5",
        );
        assert_eq!(service.servers, ["filer", "10.0.0.5"]);
        assert_eq!(service.path.as_deref(), Some("/export/a"));
        assert_eq!(service.version.as_deref(), Some("4.2"));
        let service = parse_service("nfs [fd00::5]:/x:y rw,vers=3,addr=fd00::5");
        assert_eq!(service.servers, ["[fd00::5]"]);
        assert_eq!(service.path.as_deref(), Some("/x:y"));
    }

    #[test]
    fn kernel_cephfs_source_is_parsed_in_old_and_new_syntax() {
        let old = parse_service(
            "ceph 10.0.0.1:6789,[fd00::2]:6789:/a:/b rw,name=bench,secret=<hidden>,\
             acl,mds_namespace=fs1",
        );
        assert_eq!(old.client, ServiceClient::CephKernel);
        assert_eq!(old.servers, ["10.0.0.1:6789", "[fd00::2]:6789"]);
        assert_eq!(old.path.as_deref(), Some("/a:/b"));
        assert_eq!(
            (old.user.as_deref(), old.file_system.as_deref()),
            (Some("bench"), Some("fs1"))
        );
        let new = parse_service(
            "ceph bench@b7c4ad3e-0000-4000-8000-c2f1f6d0b7a1.fs1=/vol \
             rw,name=bench,secret=<hidden>,ms_mode=prefer-crc,\
             mon_addr=10.0.0.1:3300/10.0.0.2:3300",
        );
        assert_eq!(new.servers, ["10.0.0.1:3300", "10.0.0.2:3300"]);
        assert_eq!(new.path.as_deref(), Some("/vol"));
        assert_eq!(
            new.fsid.as_deref(),
            Some("b7c4ad3e-0000-4000-8000-c2f1f6d0b7a1")
        );
        assert_eq!(new.file_system.as_deref(), Some("fs1"));
    }

    #[test]
    fn ceph_fuse_is_asked_through_its_process() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/cmdline", "ceph-fuse\0-c\0/other.conf\0/mnt/else\0");
        write("proc/8/cmdline", "vi\0/mnt\0");
        write(
            "proc/9/cmdline",
            "/usr/bin/ceph-fuse\0--conf=/c.conf\0--client-mountpoint\0/sub\0\
             --client_fs=fs1\0-n\0client.me\0--keyring\0/k\0/mnt\0",
        );
        write(
            "c.conf",
            "[global]\nfsid = f-1\nmon_host = \
             [v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0], \
             [v2:[fd00::1]:3300,v1:[fd00::1]:6789] # two\n",
        );
        let system = System::captured(root.path());
        let mounts = parse_mountinfo(
            "22 1 0:50 / /mnt rw - fuse.ceph-fuse ceph-fuse rw,user_id=0,allow_other\n",
        );
        let service = service(&system, &mounts[0]).unwrap();
        assert_eq!(
            service,
            MountService {
                client: ServiceClient::CephFuse,
                version: None,
                servers: [
                    "10.0.0.1:3300",
                    "10.0.0.1:6789",
                    "[fd00::1]:3300",
                    "[fd00::1]:6789"
                ]
                .map(str::to_owned)
                .into(),
                path: Some("/sub".into()),
                file_system: Some("fs1".into()),
                fsid: Some("f-1".into()),
                user: Some("me".into()),
            }
        );
        {
            let mut mount = mounts[0].clone();
            mount.service = Some(service);
            let text = |text: &str| Some(text.to_owned());
            let resolved = access(&system, &mount, &CephAccess::default());
            assert_eq!(
                (resolved.conf, resolved.client, resolved.keyring),
                (text("/c.conf"), text("me"), text("/k"))
            );
            let given = CephAccess {
                conf: text("/mine"),
                timeout_s: 3,
                ..CephAccess::default()
            };
            let resolved = access(&system, &mount, &given);
            assert_eq!((resolved.conf, resolved.timeout_s), (text("/mine"), 3));
        }
        // Without the process only the kind of client is known.
        let elsewhere = Mount {
            mount_point: "/nowhere".into(),
            ..mounts[0].clone()
        };
        let service = super::service(&system, &elsewhere).unwrap();
        assert_eq!(service.client, ServiceClient::CephFuse);
        assert!(service.servers.is_empty());
    }

    #[test]
    fn other_file_systems_have_no_service() {
        let mounts = parse_mountinfo("22 1 254:0 / / rw - ext4 /dev/vda rw\n");
        assert_eq!(service(&System::captured("/nonexistent"), &mounts[0]), None);
    }
}
