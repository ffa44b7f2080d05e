//! Synchronous I/O on the objects of a pool.

use super::pending_ios::LibraryPtr;
use super::rados::{CREATE_EXCLUSIVE, Rados, RadosCluster, c_string, checked};
use crate::error::{CephAction, CephError};
use std::ffi::CStr;
use std::fmt;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::SystemTime;

impl RadosCluster {
    /// Opens a pool for I/O.
    pub fn pool(&self, pool: &str, namespace: Option<&str>) -> Result<IoCtx, CephError> {
        let (rados, raw) = self.rados();
        let (name, namespace) = (c_string(pool)?, namespace.map(c_string).transpose()?);
        let mut context = null_mut();
        // SAFETY: a string that outlives the call, and a place for the context.
        let made = unsafe { (rados.ioctx_create)(raw, name.as_ptr(), &mut context) };
        checked(made, || CephAction::OpenPool(pool.to_owned()))?;
        // Without this call, writes to a full pool block without an error.
        // SAFETY: a context that is not shared yet.
        unsafe { (rados.set_full_try)(context) };
        if let Some(namespace) = &namespace {
            // SAFETY: a string that outlives the call. The context is not shared yet.
            unsafe { (rados.set_namespace)(context, namespace.as_ptr()) };
        }
        Ok(IoCtx {
            context: Arc::new(IoCtxHandle {
                raw: context,
                cluster: self.clone(),
            }),
        })
    }
}

struct IoCtxHandle {
    raw: LibraryPtr,
    cluster: RadosCluster,
}

// SAFETY: I/O on a context is thread-safe. Its namespace is set before the context is shared.
unsafe impl Send for IoCtxHandle {}
// SAFETY: I/O on a context is thread-safe, as above.
unsafe impl Sync for IoCtxHandle {}

impl Drop for IoCtxHandle {
    fn drop(&mut self) {
        // SAFETY: made by rados_ioctx_create and destroyed once, before its cluster.
        unsafe { (self.cluster.rados().0.ioctx_destroy)(self.raw) };
    }
}

/// A pool, and a namespace in it, of a connected cluster. Clones share the context.
#[derive(Clone)]
pub struct IoCtx {
    context: Arc<IoCtxHandle>,
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
    pub fn cluster(&self) -> &RadosCluster {
        &self.context.cluster
    }

    pub(super) fn raw(&self) -> (&'static Rados, LibraryPtr) {
        (self.context.cluster.rados().0, self.context.raw)
    }

    /// Writes and waits until the data are durable. Without data it creates a missing object.
    pub fn write(&self, object: &str, data: &[u8], offset: u64) -> Result<(), CephError> {
        let (rados, raw) = self.raw();
        let name = c_string(object)?;
        // SAFETY: the length is that of the data.
        let wrote =
            unsafe { (rados.write)(raw, name.as_ptr(), data.as_ptr().cast(), data.len(), offset) };
        checked(wrote, || CephAction::WriteObject(object.to_owned())).map(|_| ())
    }

    /// Creates an empty object, atomically. Returns `false` if the object exists.
    pub fn create_new(&self, object: &str) -> Result<bool, CephError> {
        let (rados, raw) = self.raw();
        let name = c_string(object)?;
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
        checked(made, || CephAction::CreateObject(object.to_owned())).map(|_| true)
    }

    /// Reads. Returns the number of bytes, which is smaller at the end of the object.
    pub fn read(&self, object: &str, into: &mut [u8], offset: u64) -> Result<usize, CephError> {
        let (rados, raw) = self.raw();
        let name = c_string(object)?;
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
        checked(got, || CephAction::ReadObject(object.to_owned())).map(|bytes| bytes as usize)
    }

    /// Returns the metadata of an object. `None` if it does not exist.
    pub fn stat(&self, object: &str) -> Result<Option<ObjectStat>, CephError> {
        let (rados, raw) = self.raw();
        let name = c_string(object)?;
        let (mut size_bytes, mut seconds) = (0, 0);
        // SAFETY: a string that outlives the call, and two integers to write to.
        let found = unsafe { (rados.stat)(raw, name.as_ptr(), &mut size_bytes, &mut seconds) };
        if found == -libc::ENOENT {
            return Ok(None);
        }
        checked(found, || CephAction::InspectObject(object.to_owned()))?;
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
        let action = || CephAction::ListObjects;
        checked(opened, action)?;
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
            error => checked(error, action).map(|_| names),
        }
    }

    /// Removes an object. Returns whether it existed.
    pub fn remove(&self, object: &str) -> Result<bool, CephError> {
        let (rados, raw) = self.raw();
        let name = c_string(object)?;
        // SAFETY: a string that outlives the call.
        let removed = unsafe { (rados.remove)(raw, name.as_ptr()) };
        if removed == -libc::ENOENT {
            return Ok(false);
        }
        checked(removed, || CephAction::RemoveObject(object.to_owned())).map(|_| true)
    }
}
