//! Bindings of librados, loaded at run time: clusters, pools and their objects.
//!
//! The library is never unloaded, because its threads keep running.

use super::allocator::keep_freed_memory;
use super::pending_ios::LibraryPtr;
use crate::error::{CephAction, CephError};
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::{Arc, OnceLock, Weak};

/// File name of the library, and its Debian package.
pub(super) const LIBRARY: (&str, &str) = ("librados.so.2", "librados2");

/// `LIBRADOS_CREATE_EXCLUSIVE`.
pub(super) const CREATE_EXCLUSIVE: c_int = 1;

/// Buffer size for the value of a setting.
const VALUE_BYTES: usize = 4096;

type DaemonCommandFn = unsafe extern "C" fn(
    LibraryPtr,
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
    LibraryPtr,
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
type RadosCallback = extern "C" fn(LibraryPtr, *mut c_void);

/// Defines a struct of a library's functions, and their lookup by symbol name.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident { $($function:ident: $type:ty = $symbol:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(super) struct $name { $(pub(super) $function: $type,)* }

        impl $name {
            fn load_from(library: &Library) -> Result<$name, libloading::Error> {
                Ok($name {
                    $($function: {
                        // SAFETY: the type is that of the function in the library's C header.
                        let symbol = unsafe { library.get::<$type>($symbol)? };
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
        create: unsafe extern "C" fn(*mut LibraryPtr, *const c_char, *const c_char, u64) -> c_int
            = b"rados_create2",
        conf_read_file: unsafe extern "C" fn(LibraryPtr, *const c_char) -> c_int
            = b"rados_conf_read_file",
        conf_parse_env: unsafe extern "C" fn(LibraryPtr, *const c_char) -> c_int
            = b"rados_conf_parse_env",
        conf_set: unsafe extern "C" fn(LibraryPtr, *const c_char, *const c_char) -> c_int
            = b"rados_conf_set",
        conf_get: unsafe extern "C" fn(LibraryPtr, *const c_char, *mut c_char, usize) -> c_int
            = b"rados_conf_get",
        connect: unsafe extern "C" fn(LibraryPtr) -> c_int = b"rados_connect",
        shutdown: unsafe extern "C" fn(LibraryPtr) = b"rados_shutdown",
        fsid: unsafe extern "C" fn(LibraryPtr, *mut c_char, usize) -> c_int = b"rados_cluster_fsid",
        instance_id: unsafe extern "C" fn(LibraryPtr) -> u64 = b"rados_get_instance_id",
        mon_command: DaemonCommandFn = b"rados_mon_command",
        osd_command: OsdCommand = b"rados_osd_command",
        buffer_free: unsafe extern "C" fn(*mut c_char) = b"rados_buffer_free",
        ioctx_create: unsafe extern "C" fn(LibraryPtr, *const c_char, *mut LibraryPtr) -> c_int
            = b"rados_ioctx_create",
        ioctx_destroy: unsafe extern "C" fn(LibraryPtr) = b"rados_ioctx_destroy",
        set_namespace: unsafe extern "C" fn(LibraryPtr, *const c_char)
            = b"rados_ioctx_set_namespace",
        set_full_try: unsafe extern "C" fn(LibraryPtr) = b"rados_set_osdmap_full_try",
        write: unsafe extern "C" fn(LibraryPtr, *const c_char, *const c_char, usize, u64) -> c_int
            = b"rados_write",
        read: unsafe extern "C" fn(LibraryPtr, *const c_char, *mut c_char, usize, u64) -> c_int
            = b"rados_read",
        stat: unsafe extern "C" fn(LibraryPtr, *const c_char, *mut u64, *mut libc::time_t) -> c_int
            = b"rados_stat",
        remove: unsafe extern "C" fn(LibraryPtr, *const c_char) -> c_int = b"rados_remove",
        aio_create: unsafe extern "C" fn(
            *mut c_void, Option<RadosCallback>, Option<RadosCallback>, *mut LibraryPtr,
        ) -> c_int
            = b"rados_aio_create_completion",
        aio_release: unsafe extern "C" fn(LibraryPtr) = b"rados_aio_release",
        aio_cancel: unsafe extern "C" fn(LibraryPtr, LibraryPtr) -> c_int = b"rados_aio_cancel",
        aio_value: unsafe extern "C" fn(LibraryPtr) -> c_int = b"rados_aio_get_return_value",
        aio_write: unsafe extern "C" fn(
            LibraryPtr, *const c_char, LibraryPtr, *const c_char, usize, u64,
        ) -> c_int
            = b"rados_aio_write",
        aio_read: unsafe extern "C" fn(
            LibraryPtr, *const c_char, LibraryPtr, *mut c_char, usize, u64,
        ) -> c_int
            = b"rados_aio_read",
        aio_remove: unsafe extern "C" fn(LibraryPtr, *const c_char, LibraryPtr) -> c_int
            = b"rados_aio_remove",
        list_open: unsafe extern "C" fn(LibraryPtr, *mut LibraryPtr) -> c_int
            = b"rados_nobjects_list_open",
        list_next: unsafe extern "C" fn(
            LibraryPtr, *mut *const c_char, *mut *const c_char, *mut *const c_char,
        ) -> c_int
            = b"rados_nobjects_list_next",
        list_close: unsafe extern "C" fn(LibraryPtr) = b"rados_nobjects_list_close",
        write_op_create: unsafe extern "C" fn() -> LibraryPtr = b"rados_create_write_op",
        write_op_release: unsafe extern "C" fn(LibraryPtr) = b"rados_release_write_op",
        write_op_zero: unsafe extern "C" fn(LibraryPtr, u64, u64) = b"rados_write_op_zero",
        write_op_write: unsafe extern "C" fn(LibraryPtr, *const c_char, usize, u64)
            = b"rados_write_op_write",
        write_op_omap_set: unsafe extern "C" fn(
            LibraryPtr, *const *const c_char, *const *const c_char, *const usize, usize,
        )
            = b"rados_write_op_omap_set",
        write_op_setxattr: unsafe extern "C" fn(
            LibraryPtr, *const c_char, *const c_char, usize,
        )
            = b"rados_write_op_setxattr",
        write_op_create_object: unsafe extern "C" fn(LibraryPtr, c_int, *const c_char)
            = b"rados_write_op_create",
        write_op_operate: unsafe extern "C" fn(
            LibraryPtr, LibraryPtr, *const c_char, *mut libc::time_t, c_int,
        ) -> c_int
            = b"rados_write_op_operate",
        aio_operate: unsafe extern "C" fn(
            LibraryPtr, LibraryPtr, LibraryPtr, *const c_char, *mut libc::time_t, c_int,
        ) -> c_int
            = b"rados_aio_write_op_operate",
    }
}

/// Fails in a build without the feature `librados`, which otherwise compiles the whole crate. The
/// functions that open clients, images and workers call it first, so that the linker leaves out the
/// code behind them.
pub(crate) fn require_librados() -> Result<(), CephError> {
    match cfg!(feature = "librados") {
        true => Ok(()),
        false => Err(CephError::NotBuilt),
    }
}

/// Loads a library permanently, with the functions that `find` looks up.
pub(super) fn load_library<T>(
    (name, package): (&'static str, &'static str),
    find: impl Fn(&Library) -> Result<T, libloading::Error>,
) -> Result<T, CephError> {
    require_librados()?;
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
        let loaded = LOADED.get_or_init(|| {
            keep_freed_memory();
            load_library(LIBRARY, Rados::load_from)
        });
        loaded.as_ref().map_err(Clone::clone)
    }
}

/// Version of librados, e.g. `3.0.0`, which differs from the version of Ceph.
pub(crate) fn version() -> Result<String, CephError> {
    let rados = Rados::loaded()?;
    let (mut major, mut minor, mut extra) = (0, 0, 0);
    // SAFETY: three integers to write to.
    unsafe { (rados.version)(&mut major, &mut minor, &mut extra) };
    Ok(format!("{major}.{minor}.{extra}"))
}

pub(super) fn c_string(text: &str) -> Result<CString, CephError> {
    CString::new(text).map_err(|_| CephError::Text(text.to_owned()))
}

/// Returns the value of a call, or the error of a negative one.
pub(super) fn checked(
    value: c_int,
    action: impl FnOnce() -> CephAction,
) -> Result<c_int, CephError> {
    match value {
        0.. => Ok(value),
        _ => Err(CephError::Call {
            action: action(),
            errno: -value,
            said: String::new(),
        }),
    }
}

struct ClusterHandle {
    rados: &'static Rados,
    raw: LibraryPtr,
}

// SAFETY: librados locks its cluster handles, which any thread may use and shut down.
unsafe impl Send for ClusterHandle {}
// SAFETY: librados locks its cluster handles, as above.
unsafe impl Sync for ClusterHandle {}

impl Drop for ClusterHandle {
    fn drop(&mut self) {
        // SAFETY: made by rados_create2 and shut down once. All users hold this handle.
        unsafe { (self.rados.shutdown)(self.raw) };
    }
}

/// Client of a cluster, connected or not. Clones share the client.
#[derive(Clone)]
pub struct RadosCluster {
    handle: Arc<ClusterHandle>,
}

impl fmt::Debug for RadosCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RadosCluster").finish_non_exhaustive()
    }
}

/// Weak reference to a client.
pub(crate) struct WeakCluster(Weak<ClusterHandle>);

impl WeakCluster {
    /// Returns the client, if it still exists.
    pub(crate) fn upgrade(&self) -> Option<RadosCluster> {
        self.0.upgrade().map(|handle| RadosCluster { handle })
    }
}

impl RadosCluster {
    /// Creates a client with this full name, e.g. `client.admin`. It is not connected yet.
    pub fn new(cluster: &str, client: &str) -> Result<RadosCluster, CephError> {
        let rados = Rados::loaded()?;
        let (cluster, client) = (c_string(cluster)?, c_string(client)?);
        let mut raw = null_mut();
        // SAFETY: two strings that outlive the call, and a place for the handle.
        let made = unsafe { (rados.create)(&mut raw, cluster.as_ptr(), client.as_ptr(), 0) };
        checked(made, || CephAction::CreateClient)?;
        Ok(RadosCluster {
            handle: Arc::new(ClusterHandle { rados, raw }),
        })
    }

    /// Returns the library and the handle of the client.
    pub(super) fn rados(&self) -> (&'static Rados, LibraryPtr) {
        (self.handle.rados, self.handle.raw)
    }

    /// Creates a weak reference to the client.
    pub(crate) fn downgrade(&self) -> WeakCluster {
        WeakCluster(Arc::downgrade(&self.handle))
    }

    /// Reads a configuration file. `None`: `CEPH_CONF`, or Ceph's default paths.
    pub(crate) fn read_conf(&self, path: Option<&str>) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        let file = path.map(c_string).transpose()?;
        let pointer = file.as_ref().map_or(null(), |file| file.as_ptr());
        // SAFETY: a string that outlives the call, or null.
        let read = unsafe { (rados.conf_read_file)(raw, pointer) };
        let action = || CephAction::ReadConfiguration(path.map(str::to_owned));
        checked(read, action).map(|_| ())
    }

    /// Reads the settings in `CEPH_ARGS`.
    pub(crate) fn read_environment(&self) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        // SAFETY: a null pointer is allowed and selects the environment variable CEPH_ARGS.
        let read = unsafe { (rados.conf_parse_env)(raw, null()) };
        checked(read, || CephAction::ReadArguments).map(|_| ())
    }

    /// Changes a setting.
    pub fn set(&self, name: &str, value: &str) -> Result<(), CephError> {
        let (rados, raw) = self.rados();
        let action = CephAction::Set {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let (name, value) = (c_string(name)?, c_string(value)?);
        // SAFETY: two strings that outlive the call.
        let set = unsafe { (rados.conf_set)(raw, name.as_ptr(), value.as_ptr()) };
        checked(set, || action).map(|_| ())
    }

    /// Value of a setting. `None` if the library does not have it.
    pub fn get(&self, name: &str) -> Option<String> {
        let (rados, raw) = self.rados();
        let name = c_string(name).ok()?;
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
        checked(unsafe { (rados.connect)(raw) }, || CephAction::Connect).map(|_| ())
    }

    /// Identity of the cluster (fsid).
    pub fn fsid(&self) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        let mut value = [0u8; 64];
        // SAFETY: the length is that of the buffer.
        let got = unsafe { (rados.fsid)(raw, value.as_mut_ptr().cast(), value.len()) };
        checked(got, || CephAction::ReadIdentity)?;
        let value = CStr::from_bytes_until_nul(&value).unwrap_or_default();
        Ok(value.to_string_lossy().into_owned())
    }

    /// Number that the cluster assigned to this client when it connected.
    pub(crate) fn instance_id(&self) -> u64 {
        let (rados, raw) = self.rados();
        // SAFETY: the handle is valid until `ClusterHandle` is dropped.
        unsafe { (rados.instance_id)(raw) }
    }

    /// Sends a command to the monitors, as JSON (e.g. `{"prefix": "health"}`). Returns the answer.
    pub(crate) fn mon_command(&self, json: &str) -> Result<String, CephError> {
        let (rados, raw) = self.rados();
        self.command(json, "the monitors", |cmd, answer, said| {
            // SAFETY: `command` passes valid pointers for all arguments.
            unsafe {
                (rados.mon_command)(raw, cmd, 1, null(), 0, answer.0, answer.1, said.0, said.1)
            }
        })
    }

    /// Sends a command to an OSD.
    pub(crate) fn osd_command(&self, osd: i32, json: &str) -> Result<String, CephError> {
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
        daemon: &str,
        call: impl FnOnce(
            *const *const c_char,
            (*mut *mut c_char, *mut usize),
            (*mut *mut c_char, *mut usize),
        ) -> c_int,
    ) -> Result<String, CephError> {
        let command = c_string(json)?;
        let commands = [command.as_ptr()];
        let (mut answer, mut answer_len) = (null_mut(), 0);
        let (mut said, mut said_len) = (null_mut(), 0);
        let value = call(
            commands.as_ptr(),
            (&mut answer, &mut answer_len),
            (&mut said, &mut said_len),
        );
        let answer = self.take_text(answer, answer_len);
        let said = self.take_text(said, said_len);
        match value {
            0.. => Ok(answer),
            _ => Err(CephError::Call {
                action: CephAction::Query(daemon.to_owned()),
                errno: -value,
                said,
            }),
        }
    }

    /// Returns a buffer of the library as text, and frees it.
    fn take_text(&self, buffer: *mut c_char, length: usize) -> String {
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
}

/// Error of a missing library.
#[cfg(test)]
pub(crate) fn missing_library() -> CephError {
    let missing = ("libiosonde-none.so.9", LIBRARY.1);
    load_library(missing, Rados::load_from)
        .map(|_| ())
        .unwrap_err()
}
