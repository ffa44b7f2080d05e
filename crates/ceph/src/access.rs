//! Connects to clusters: client name, configuration, key and timeouts.

use crate::error::CephError;
use crate::stoppable_connect::connect_until_stop;
use crate::sys::rados::{RadosCluster, require_librados};
use iosonde_job::plan::CephAccess;

/// Maximum time for the connection to the monitors, in seconds.
const CONNECT_S: u32 = 20;

/// Client identity in `CEPH_ARGS`. The library reads the other settings itself.
#[derive(Debug, Default, PartialEq, Eq)]
struct CephArgsIdentity {
    conf: Option<String>,
    cluster: Option<String>,
    name: Option<String>,
    keyring: Option<String>,
}

impl CephArgsIdentity {
    fn parse(text: &str) -> CephArgsIdentity {
        let mut arguments = CephArgsIdentity::default();
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let (option, joined) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            let place = match option {
                "-c" | "--conf" => &mut arguments.conf,
                "--cluster" => &mut arguments.cluster,
                "-n" | "--name" | "--id" | "--user" => &mut arguments.name,
                "-k" | "--keyring" => &mut arguments.keyring,
                _ => continue,
            };
            *place = joined.or_else(|| words.next()).map(str::to_owned);
        }
        arguments
    }
}

/// Client name with its type, which defaults to `client`.
fn full_name(name: &str) -> String {
    match name.contains('.') {
        true => name.to_owned(),
        false => format!("client.{name}"),
    }
}

/// A setting that iosonde changes, unless the user has set it.
struct ClientSetting {
    name: &'static str,
    /// Default of the library.
    usual: &'static str,
    ours: &'static str,
}

/// For I/O on objects only: images have their own settings and use the threads for their work.
const OBJECT_CLIENT_SETTINGS: [ClientSetting; 2] = [
    // Number of client threads for completion callbacks. librados serialises them, so each request
    // would wake up a thread that is not needed.
    ClientSetting {
        name: "librados_thread_count",
        usual: "2",
        ours: "1",
    },
    // Receive buffer in bytes. With the default, an answer of 4 KiB and its header takes two calls.
    ClientSetting {
        name: "ms_tcp_prefetch_max_size",
        usual: "4096",
        ours: "32768",
    },
];

/// Connects to a cluster. Each later call times out after `access.timeout_s`.
///
/// # Errors
/// Missing library, unreadable configuration, monitors that do not answer or refuse the client.
pub(crate) fn connect(access: &CephAccess) -> Result<RadosCluster, CephError> {
    let client = new_client(access, &[], OsdTimeoutOwner::Library)?;
    connect_until_stop(&client)?;
    Ok(client)
}

/// Connects to remove what this process made, like [`connect`]. A stop request does not end it.
pub(crate) fn connect_to_remove(access: &CephAccess) -> Result<RadosCluster, CephError> {
    let client = new_client(access, &[], OsdTimeoutOwner::Library)?;
    client.connect()?;
    Ok(client)
}

/// Connects for I/O on objects only, like [`connect`].
pub(crate) fn connect_for_objects(access: &CephAccess) -> Result<RadosCluster, CephError> {
    let client = new_client(access, &OBJECT_CLIENT_SETTINGS, OsdTimeoutOwner::Library)?;
    connect_until_stop(&client)?;
    Ok(client)
}

/// Maximum load in flight of one worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerLoad {
    /// Number of requests to OSDs.
    pub(crate) requests: u64,
    /// Their data in bytes.
    pub(crate) bytes: u64,
}

impl WorkerLoad {
    /// Whether the client accepts this load without blocking the caller.
    fn fits(self, client: &RadosCluster) -> bool {
        let takes = |setting: &str, needed: u64| {
            let most = client.get(setting).and_then(|value| value.parse().ok());
            // 0 means no limit, and a library without the setting has none.
            most.is_none_or(|most: u64| most == 0 || most >= needed)
        };
        takes("objecter_inflight_ops", self.requests)
            && takes("objecter_inflight_op_bytes", self.bytes)
    }
}

/// Connects for object I/O of a worker that can limit requests itself: librados' timers cost CPU
/// time. Returns whether the worker must limit them, which it cannot if librados may block it.
pub(crate) fn connect_to_limit(
    access: &CephAccess,
    most: WorkerLoad,
) -> Result<(RadosCluster, bool), CephError> {
    let client = new_client(access, &OBJECT_CLIENT_SETTINGS, OsdTimeoutOwner::Caller)?;
    connect_until_stop(&client)?;
    if most.fits(&client) {
        return Ok((client, true));
    }
    drop(client);
    connect_for_objects(access).map(|client| (client, false))
}

/// Enforces the timeout of requests to OSDs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OsdTimeoutOwner {
    Library,
    Caller,
}

/// Creates a client with settings of iosonde, for which settings of the user take precedence.
fn new_client(
    access: &CephAccess,
    ours: &[ClientSetting],
    timeout_owner: OsdTimeoutOwner,
) -> Result<RadosCluster, CephError> {
    require_librados()?;
    let environment = CephArgsIdentity::parse(&std::env::var("CEPH_ARGS").unwrap_or_default());
    let name = access.client.as_ref().or(environment.name.as_ref());
    let name = name.map_or_else(|| "client.admin".to_owned(), |name| full_name(name));
    let cluster = access.cluster.as_ref().or(environment.cluster.as_ref());
    let client = RadosCluster::new(cluster.map_or("ceph", String::as_str), &name)?;
    // iosonde reports errors once, itself. Configuration and environment override these settings.
    for quiet in [
        "log_to_stderr",
        "err_to_stderr",
        "mon_cluster_log_to_stderr",
    ] {
        let _ = client.set(quiet, "false");
    }
    let conf = access.conf.as_ref().or(environment.conf.as_ref());
    client.read_conf(conf.map(String::as_str))?;
    client.read_environment()?;
    if let Some(keyring) = access.keyring.as_ref().or(environment.keyring.as_ref()) {
        client.set("keyring", keyring)?;
    }
    for setting in ours {
        // A library without the setting does not need it.
        if client.get(setting.name).as_deref() == Some(setting.usual) {
            client.set(setting.name, setting.ours)?;
        }
    }
    limit_waits(&client, access, timeout_owner)?;
    Ok(client)
}

/// Without these limits, a client waits for an unreachable cluster for ever.
fn limit_waits(
    client: &RadosCluster,
    access: &CephAccess,
    timeout_owner: OsdTimeoutOwner,
) -> Result<(), CephError> {
    let timeout_s = access.timeout_s.max(1);
    let of_library_s = match timeout_owner {
        OsdTimeoutOwner::Library => timeout_s,
        OsdTimeoutOwner::Caller => 0,
    };
    client.set("rados_osd_op_timeout", &of_library_s.to_string())?;
    client.set("rados_mon_op_timeout", &timeout_s.to_string())?;
    client.set(
        "client_mount_timeout",
        &timeout_s.min(CONNECT_S).to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceph_args_name_client_and_keyring() {
        let arguments = CephArgsIdentity::parse(
            "--id bench -c /x/ceph.conf --rbd-cache=false --keyring=/k --debug-ms 1",
        );
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(arguments.name, some("bench"));
        assert_eq!(arguments.conf, some("/x/ceph.conf"));
        assert_eq!(arguments.keyring, some("/k"));
        assert_eq!(
            CephArgsIdentity::parse("--name=client.x").name,
            some("client.x")
        );
        assert_eq!(
            CephArgsIdentity::parse("-m 1.2.3.4"),
            CephArgsIdentity::default()
        );
    }

    #[test]
    fn client_name_without_type_gets_client() {
        assert_eq!(full_name("bench"), "client.bench");
        assert_eq!(full_name("client.bench"), "client.bench");
        assert_eq!(full_name("mgr.x"), "mgr.x");
    }
}
