//! Bindings of librados, loaded at run time: clusters, pools and their objects.
//!
//! The library is never unloaded, because its threads keep running.

use super::arrivals::Raw;
use crate::ceph::CephError;
use lent::{Lender, Lent};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::{Arc, OnceLock, Weak};
use std::time::SystemTime;

mod lent;
mod requests;

pub(super) use requests::checked_address;
pub use requests::{Lending, Piece, Requests};

/// File name of the library, and its Debian package.
const LIBRARY: (&str, &str) = ("librados.so.2", "librados2");

/// `LIBRADOS_CREATE_EXCLUSIVE`.
const CREATE_EXCLUSIVE: c_int = 1;

/// Buffer size for the value of a setting.
const VALUE_BYTES: usize = 4096;

type Command = unsafe extern "C" fn(
    Raw,
    *const *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut *mut c_char,
    *mut usize,
) -> c_int;
type OsdCommand = unsafe extern "C" fn(
    Raw,
    c_int,
    *const *const c_char,
    usize,
    *const c_char,
    usize,
    *mut *mut c_char,
    *mut usize,
    *mut *mut c_char,
    *mut usize,
) -> c_int;
type Callback = extern "C" fn(Raw, *mut c_void);

/// Defines a struct of a library's functions, and their lookup by symbol name.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($function:ident: $type:ty = $symbol:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub(super) $function: $type,)* }

        impl $name {
            fn of(library: &Library) -> Result<$name, libloading::Error> {
                Ok($name {
                    $($function: {
                        // SAFETY: the type is that of the function in the library's C header.
                        let symbol: libloading::Symbol<'_, $type> = unsafe { library.get($symbol)? };
                        *symbol
                    },)*
                })
            }
        }
    };
}
pub(super) use functions;

functions! {
    /// Functions of librados in use.
    Rados {
        version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) = b"rados_version",
        create: unsafe extern "C" fn(*mut Raw, *const c_char, *const c_char, u64) -> c_int = b"rados_create2",
        conf_read_file: unsafe extern "C" fn(Raw, *const c_char) -> c_int = b"rados_conf_read_file",
        conf_parse_env: unsafe extern "C" fn(Raw, *const c_char) -> c_int = b"rados_conf_parse_env",
        conf_set: unsafe extern "C" fn(Raw, *const c_char, *const c_char) -> c_int = b"rados_conf_set",
        conf_get: unsafe extern "C" fn(Raw, *const c_char, *mut c_char, usize) -> c_int = b"rados_conf_get",
        connect: unsafe extern "C" fn(Raw) -> c_int = b"rados_connect",
        shutdown: unsafe extern "C" fn(Raw) = b"rados_shutdown",
        fsid: unsafe extern "C" fn(Raw, *mut c_char, usize) -> c_int = b"rados_cluster_fsid",
        instance_id: unsafe extern "C" fn(Raw) -> u64 = b"rados_get_instance_id",
        mon_command: Command = b"rados_mon_command",
        mgr_command: Command = b"rados_mgr_command",
        osd_command: OsdCommand = b"rados_osd_command",
        buffer_free: unsafe extern "C" fn(*mut c_char) = b"rados_buffer_free",
        ioctx_create: unsafe extern "C" fn(Raw, *const c_char, *mut Raw) -> c_int = b"rados_ioctx_create",
        ioctx_destroy: unsafe extern "C" fn(Raw) = b"rados_ioctx_destroy",
        set_namespace: unsafe extern "C" fn(Raw, *const c_char) = b"rados_ioctx_set_namespace",
        set_full_try: unsafe extern "C" fn(Raw) = b"rados_set_osdmap_full_try",
        write: unsafe extern "C" fn(Raw, *const c_char, *const c_char, usize, u64) -> c_int = b"rados_write",
        read: unsafe extern "C" fn(Raw, *const c_char, *mut c_char, usize, u64) -> c_int = b"rados_read",
        stat: unsafe extern "C" fn(Raw, *const c_char, *mut u64, *mut libc::time_t) -> c_int = b"rados_stat",
        remove: unsafe extern "C" fn(Raw, *const c_char) -> c_int = b"rados_remove",
        aio_create: unsafe extern "C" fn(*mut c_void, Option<Callback>, Option<Callback>, *mut Raw) -> c_int = b"rados_aio_create_completion",
        aio_release: unsafe extern "C" fn(Raw) = b"rados_aio_release",
        aio_cancel: unsafe extern "C" fn(Raw, Raw) -> c_int = b"rados_aio_cancel",
        aio_value: unsafe extern "C" fn(Raw) -> c_int = b"rados_aio_get_return_value",
        aio_write: unsafe extern "C" fn(Raw, *const c_char, Raw, *const c_char, usize, u64) -> c_int = b"rados_aio_write",
        aio_write_full: unsafe extern "C" fn(Raw, *const c_char, Raw, *const c_char, usize) -> c_int = b"rados_aio_write_full",
        aio_read: unsafe extern "C" fn(Raw, *const c_char, Raw, *mut c_char, usize, u64) -> c_int = b"rados_aio_read",
        aio_remove: unsafe extern "C" fn(Raw, *const c_char, Raw) -> c_int = b"rados_aio_remove",
        list_open: unsafe extern "C" fn(Raw, *mut Raw) -> c_int = b"rados_nobjects_list_open",
        list_next: unsafe extern "C" fn(Raw, *mut *const c_char, *mut *const c_char, *mut *const c_char) -> c_int = b"rados_nobjects_list_next",
        list_close: unsafe extern "C" fn(Raw) = b"rados_nobjects_list_close",
        write_op_create: unsafe extern "C" fn() -> Raw = b"rados_create_write_op",
        write_op_release: unsafe extern "C" fn(Raw) = b"rados_release_write_op",
        write_op_zero: unsafe extern "C" fn(Raw, u64, u64) = b"rados_write_op_zero",
        write_op_create_object: unsafe extern "C" fn(Raw, c_int, *const c_char) = b"rados_write_op_create",
        write_op_operate: unsafe extern "C" fn(Raw, Raw, *const c_char, *mut libc::time_t, c_int) -> c_int = b"rados_write_op_operate",
        aio_operate: unsafe extern "C" fn(Raw, Raw, Raw, *const c_char, *mut libc::time_t, c_int) -> c_int = b"rados_aio_write_op_operate",
    }
}

/// Loads a library permanently, with the functions that `find` looks up.
pub(super) fn load<T>(
    (name, package): (&'static str, &'static str),
    find: impl Fn(&Library) -> Result<T, libloading::Error>,
) -> Result<T, CephError> {
    let failed = |error: libloading::Error| CephError::Library {
        library: name,
        package,
        reason: error.to_string(),
    };
    // SAFETY: Ceph's libraries may be initialised at any time, from any thread.
    let library = unsafe { Library::new(name) }.map_err(failed)?;
    let functions = find(&library).map_err(failed)?;
    // Never unloaded, so that the function pointers stay valid.
    std::mem::forget(library);
    Ok(functions)
}

impl Rados {
    /// Returns librados, loaded on the first call.
    pub(super) fn loaded() -> Result<&'static Rados, CephError> {
        static LOADED: OnceLock<Result<Rados, CephError>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| load(LIBRARY, Rados::of));
        loaded.as_ref().map_err(Clone::clone)
    }
}

/// Zero copy interface of librados, if it is a known one. Looked up on the first use.
fn lender() -> Option<&'static Lender> {
    static LENDER: OnceLock<Option<Lender>> = OnceLock::new();
    let find = || {
        load(LIBRARY, |library| Ok(Lender::in_library(library)))
            .ok()
            .flatten()
    };
    LENDER.get_or_init(find).as_ref()
}

/// Version of librados, e.g. `3.0.0`, which differs from the version of Ceph.
pub fn version() -> Result<String, CephError> {
    let rados = Rados::loaded()?;
    let (mut major, mut minor, mut extra) = (0, 0, 0);
    // SAFETY: three integers to write to.
    unsafe { (rados.version)(&mut major, &mut minor, &mut extra) };
    Ok(format!("{major}.{minor}.{extra}"))
}

pub(super) fn text(text: &str) -> Result<CString, CephError> {
    CString::new(text).map_err(|_| CephError::Text(text.to_owned()))
}

/// Returns the value of a call, or the error of a negative one.
pub(super) fn checked(value: c_int, doing: impl FnOnce() -> String) -> Result<c_int, CephError> {
    match value {
        0.. => Ok(value),
        _ => Err(CephError::Call {
            doing: doing(),
            errno: -value,
            said: String::new(),
        }),
    }
}

struct Handle {
    rados: &'static Rados,
    raw: Raw,
}

// SAFETY: librados locks its cluster handles, which any thread may use and shut down.
unsafe impl Send for Handle {}
// SAFETY: librados locks its cluster handles, as above.
unsafe impl Sync for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: made by rados_create2 and shut down once. All users hold this handle.
        unsafe { (self.rados.shutdown)(self.raw) };
    }
}

/// Client of a cluster, connected or not. Clones share the client.
#[derive(Clone)]
pub struct Cluster {
    handle: Arc<Handle>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

/// Weak reference to a client.
pub(crate) struct WeakCluster(Weak<Handle>);

impl WeakCluster {
    /// Returns the client, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<Cluster> {
        self.0.upgrade().map(|handle| Cluster { handle })
    }
}

impl Cluster {
    /// Creates a client with this full name, e.g. `client.admin`. It is not connected yet.
    pub fn new(cluster: &str, client: &str) -> Result<Cluster, CephError> {
        let rados = Rados::loaded()?;
        let (cluster, client) = (text(cluster)?, text(client)?);
        let mut raw = null_mut();
        // SAFETY: two strings that outlive the call, and a place for the handle.
        let made = unsafe { (rados.create)(&mut raw, cluster.as_ptr(), client.as_ptr(), 0) };
        checked(made, || "make a client".to_owned())?;
        Ok(Cluster {
            handle: Arc::new(Handle { rados, raw }),
        })
    }

    fn rados(&self) -> (&'static Rados, Raw) {
        (self.handle.rados, self.handle.raw)
    }

    /// Creates a weak reference to the client.
    pub(crate) fn downgrade(&self) -> WeakCluster {
        WeakCluster(Arc::downgrade(&self.handle))
    }

    /// Reads a configuration file. `None`: `CEPH_CONF`, or Ceph's default paths.
    pub fn read_conf(&self, path: Option<&str>) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        let file = path.map(text).transpose()?;
        let pointer = file.as_ref().map_or(null(), |file| file.as_ptr());
        // SAFETY: a string that outlives the call, or null.
        let read = unsafe { (rados.conf_read_file)(raw, pointer) };
        let doing = || format!("read {}", path.unwrap_or("Ceph's configuration"));
        checked(read, doing).map(|_| ())
    }

    /// Reads the settings in `CEPH_ARGS`.
    pub fn read_environment(&self) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        // SAFETY: a null pointer is allowed and selects the environment variable CEPH_ARGS.
        let read = unsafe { (rados.conf_parse_env)(raw, null()) };
        checked(read, || "read CEPH_ARGS".to_owned()).map(|_| ())
    }

    /// Changes a setting.
    pub fn set(&self, name: &str, value: &str) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        let doing = || format!("set {name} to `{value}`");
        let (name, value) = (text(name)?, text(value)?);
        // SAFETY: two strings that outlive the call.
        let set = unsafe { (rados.conf_set)(raw, name.as_ptr(), value.as_ptr()) };
        checked(set, doing).map(|_| ())
    }

    /// Value of a setting. `None` if the library does not have it.
    pub fn get(&self, name: &str) -> Option<String> {
        let (rados, raw) = self.rados();
        let name = text(name).ok()?;
        let mut value = [0u8; VALUE_BYTES];
        // SAFETY: the length is that of the buffer.
        let got =
            unsafe { (rados.conf_get)(raw, name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        let value = CStr::from_bytes_until_nul(&value).ok()?;
        (got == 0).then(|| value.to_string_lossy().into_owned())
    }

    /// Connects to the cluster.
    pub fn connect(&self) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        // SAFETY: a valid handle. The library refuses a second connect.
        checked(unsafe { (rados.connect)(raw) }, || {
            "connect to the Ceph cluster".to_owned()
        })
        .map(|_| ())
    }

    /// Identity of the cluster (fsid).
    pub fn fsid(&self) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        let mut value = [0u8; 64];
        // SAFETY: the length is that of the buffer.
        let got = unsafe { (rados.fsid)(raw, value.as_mut_ptr().cast(), value.len()) };
        checked(got, || "ask for the cluster's identity".to_owned())?;
        let value = CStr::from_bytes_until_nul(&value).unwrap_or_default();
        Ok(value.to_string_lossy().into_owned())
    }

    /// Number that the cluster assigned to this client when it connected.
    pub fn instance_id(&self) -> u64 {
        let (rados, raw) = self.rados();
        // SAFETY: the handle is valid until `Handle` is dropped.
        unsafe { (rados.instance_id)(raw) }
    }

    /// Sends a command to the monitors, as JSON (e.g. `{"prefix": "health"}`). Returns the answer.
    pub fn mon_command(&self, json: &str) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        self.command(json, "the monitors", |cmd, answer, said| {
            // SAFETY: `command` passes valid pointers for all arguments.
            unsafe {
                (rados.mon_command)(raw, cmd, 1, null(), 0, answer.0, answer.1, said.0, said.1)
            }
        })
    }

    /// Sends a command to the manager.
    pub fn mgr_command(&self, json: &str) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        self.command(json, "the manager", |cmd, answer, said| {
            // SAFETY: `command` passes valid pointers for all arguments.
            unsafe {
                (rados.mgr_command)(raw, cmd, 1, null(), 0, answer.0, answer.1, said.0, said.1)
            }
        })
    }

    /// Sends a command to an OSD.
    pub fn osd_command(&self, osd: i32, json: &str) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        self.command(json, &format!("osd.{osd}"), |cmd, answer, said| {
            // SAFETY: `command` passes valid pointers for all arguments.
            unsafe {
                (rados.osd_command)(
                    raw,
                    osd,
                    cmd,
                    1,
                    null(),
                    0,
                    answer.0,
                    answer.1,
                    said.0,
                    said.1,
                )
            }
        })
    }

    /// Sends a command. `call` gets two output buffers, which the library allocates.
    fn command(
        &self,
        json: &str,
        whom: &str,
        call: impl FnOnce(
            *const *const c_char,
            (*mut *mut c_char, *mut usize),
            (*mut *mut c_char, *mut usize),
        ) -> c_int,
    ) -> Result<String, CephError> {
        let command = text(json)?;
        let commands = [command.as_ptr()];
        let (mut answer, mut answer_len) = (null_mut(), 0);
        let (mut said, mut said_len) = (null_mut(), 0);
        let value = call(
            commands.as_ptr(),
            (&mut answer, &mut answer_len),
            (&mut said, &mut said_len),
        );
        let answer = self.taken(answer, answer_len);
        let said = self.taken(said, said_len);
        match value {
            0.. => Ok(answer),
            _ => Err(CephError::Call {
                doing: format!("ask {whom}"),
                errno: -value,
                said,
            }),
        }
    }

    /// Returns a buffer of the library as text, and frees it.
    fn taken(&self, buffer: *mut c_char, length: usize) -> String {
        if buffer.is_null() {
            return String::new();
        }
        // SAFETY: the library allocated this many bytes, and no other code has them.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) };
        let text = String::from_utf8_lossy(bytes).into_owned();
        // SAFETY: as above, and the buffer is not used afterwards.
        unsafe { (self.handle.rados.buffer_free)(buffer) };
        text
    }

    /// Opens a pool for I/O.
    pub fn pool(&self, pool: &str, namespace: Option<&str>) -> Result<IoCtx, CephError> {
        let (rados, raw) = self.rados();
        let (name, namespace) = (text(pool)?, namespace.map(text).transpose()?);
        let mut context = null_mut();
        // SAFETY: a string that outlives the call, and a place for the context.
        let made = unsafe { (rados.ioctx_create)(raw, name.as_ptr(), &mut context) };
        checked(made, || format!("open the pool {pool}"))?;
        // Without this call, writes to a full pool block without an error.
        // SAFETY: a context that is not shared yet.
        unsafe { (rados.set_full_try)(context) };
        if let Some(namespace) = &namespace {
            // SAFETY: a string that outlives the call. The context is not shared yet.
            unsafe { (rados.set_namespace)(context, namespace.as_ptr()) };
        }
        Ok(IoCtx {
            context: Arc::new(Context {
                raw: context,
                cluster: self.clone(),
            }),
        })
    }
}

struct Context {
    raw: Raw,
    cluster: Cluster,
}

// SAFETY: I/O on a context is thread-safe. Its namespace is set before the context is shared.
unsafe impl Send for Context {}
// SAFETY: I/O on a context is thread-safe, as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by rados_ioctx_create and destroyed once, before its cluster.
        unsafe { (self.cluster.handle.rados.ioctx_destroy)(self.raw) };
    }
}

/// A pool, and a namespace in it, of a connected cluster. Clones share the context.
#[derive(Clone)]
pub struct IoCtx {
    context: Arc<Context>,
}

impl fmt::Debug for IoCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoCtx").finish_non_exhaustive()
    }
}

/// Metadata of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectStat {
    /// Length in bytes.
    pub size_bytes: u64,
    /// Time of the last change, in whole seconds.
    pub modified: SystemTime,
}

impl IoCtx {
    /// Client of this context.
    pub fn cluster(&self) -> &Cluster {
        &self.context.cluster
    }

    pub(super) fn raw(&self) -> (&'static Rados, Raw) {
        (self.context.cluster.handle.rados, self.context.raw)
    }

    /// Zero copy interface of this context, only for its sole owner. Dropping the result and then
    /// the context shuts the client down, after which nothing reads lent buffers.
    fn lent(&self) -> Option<Lent> {
        let handle = &self.context.cluster.handle;
        let is_the_only_one = Arc::strong_count(&self.context) == 1
            && Arc::strong_count(handle) == 1
            && Arc::weak_count(handle) == 0;
        if !is_the_only_one {
            return None;
        }
        // SAFETY: a context of librados. `Requests` drops the result before the context.
        unsafe { Lent::new(lender()?, self.context.raw) }
    }

    /// Writes and waits until the data are durable. Without data it creates a missing object.
    pub fn write(&self, object: &str, data: &[u8], offset: u64) -> Result<(), CephError> {
        let (rados, raw) = self.raw();
        let name = text(object)?;
        // SAFETY: the length is that of the data.
        let wrote =
            unsafe { (rados.write)(raw, name.as_ptr(), data.as_ptr().cast(), data.len(), offset) };
        checked(wrote, || format!("write the object {object}")).map(|_| ())
    }

    /// Creates an empty object, atomically. Returns `false` if the object exists.
    pub fn create_new(&self, object: &str) -> Result<bool, CephError> {
        let (rados, raw) = self.raw();
        let name = text(object)?;
        // SAFETY: the operation is released once. The string outlives the call. Null selects no
        // category and the current time.
        let made = unsafe {
            let operation = (rados.write_op_create)();
            (rados.write_op_create_object)(operation, CREATE_EXCLUSIVE, null());
            let made = (rados.write_op_operate)(operation, raw, name.as_ptr(), null_mut(), 0);
            (rados.write_op_release)(operation);
            made
        };
        if made == -libc::EEXIST {
            return Ok(false);
        }
        checked(made, || format!("create the object {object}")).map(|_| true)
    }

    /// Reads. Returns the number of bytes, which is smaller at the end of the object.
    pub fn read(&self, object: &str, into: &mut [u8], offset: u64) -> Result<usize, CephError> {
        let (rados, raw) = self.raw();
        let name = text(object)?;
        // SAFETY: the length is that of the buffer.
        let got = unsafe {
            (rados.read)(
                raw,
                name.as_ptr(),
                into.as_mut_ptr().cast(),
                into.len(),
                offset,
            )
        };
        checked(got, || format!("read the object {object}")).map(|bytes| bytes as usize)
    }

    /// Returns the metadata of an object. `None` if it does not exist.
    pub fn stat(&self, object: &str) -> Result<Option<ObjectStat>, CephError> {
        let (rados, raw) = self.raw();
        let name = text(object)?;
        let (mut size_bytes, mut seconds) = (0, 0);
        // SAFETY: a string that outlives the call, and two integers to write to.
        let found = unsafe { (rados.stat)(raw, name.as_ptr(), &mut size_bytes, &mut seconds) };
        if found == -libc::ENOENT {
            return Ok(None);
        }
        checked(found, || format!("look at the object {object}"))?;
        let since = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        Ok(Some(ObjectStat {
            size_bytes,
            modified: SystemTime::UNIX_EPOCH + since,
        }))
    }

    /// Names of all objects of the namespace with this prefix. A cache tier may hide some objects.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>, CephError> {
        let (rados, raw) = self.raw();
        let (mut list, mut names) = (null_mut(), Vec::new());
        // SAFETY: a valid context, and a place for the list.
        let opened = unsafe { (rados.list_open)(raw, &mut list) };
        let doing = || "list the objects of the pool".to_owned();
        checked(opened, doing)?;
        let end = loop {
            let mut name = null();
            // SAFETY: an open list and a place for the name. Null skips the other outputs.
            let value = unsafe { (rados.list_next)(list, &mut name, null_mut(), null_mut()) };
            if value < 0 {
                break value;
            }
            // SAFETY: the library keeps the string until the next call.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
            if name.starts_with(prefix) {
                names.push(name.into_owned());
            }
        };
        // SAFETY: opened above and closed once.
        unsafe { (rados.list_close)(list) };
        match end {
            end if end == -libc::ENOENT => Ok(names),
            error => checked(error, doing).map(|_| names),
        }
    }

    /// Removes an object. Returns whether it existed.
    pub fn remove(&self, object: &str) -> Result<bool, CephError> {
        let (rados, raw) = self.raw();
        let name = text(object)?;
        // SAFETY: a string that outlives the call.
        let removed = unsafe { (rados.remove)(raw, name.as_ptr()) };
        if removed == -libc::ENOENT {
            return Ok(false);
        }
        checked(removed, || format!("remove the object {object}")).map(|_| true)
    }
}

/// Error of a missing library.
#[cfg(test)]
pub(crate) fn missing_library() -> CephError {
    let missing = ("libiosonde-none.so.9", LIBRARY.1);
    load(missing, Rados::of).map(|_| ()).unwrap_err()
}
