//! Bindings of librbd, loaded at run time: images of a pool, as block devices in user space.

use super::image_writers::ImageWriters;
use super::io_ctx::IoCtx;
use super::pending_ios::LibraryPtr;
use super::rados::{c_string, checked, functions, load_library};
use crate::error::{CephAction, CephError};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};

/// File name of the library, and its Debian package.
pub(super) const LIBRARY: (&str, &str) = ("librbd.so.1", "librbd1");

type RbdCallback = extern "C" fn(LibraryPtr, *mut c_void);
type DiffCallback = extern "C" fn(u64, usize, c_int, *mut c_void) -> c_int;
/// Arguments: whether the lock is exclusive; then four buffers, each with its length: the tag, and
/// zero-terminated lists of the lockers' clients, cookies and addresses.
type ListLockers = unsafe extern "C" fn(
    LibraryPtr,
    *mut c_int,
    *mut c_char,
    *mut usize,
    *mut c_char,
    *mut usize,
    *mut c_char,
    *mut usize,
    *mut c_char,
    *mut usize,
) -> isize;

/// Initial sizes of the lists of watchers and lockers, in entries and in bytes.
const FIRST_WATCHERS: usize = 16;
const FIRST_LOCKER_BYTES: usize = 1024;
/// Maximum number of calls while a list grows between them.
const LIST_TRIES: usize = 8;

functions! {
    /// Functions of librbd in use.
    Rbd {
        version: unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int) = b"rbd_version",
        open: unsafe extern "C" fn(
            LibraryPtr, *const c_char, *mut LibraryPtr, *const c_char,
        ) -> c_int
            = b"rbd_open",
        open_read_only: unsafe extern "C" fn(
            LibraryPtr, *const c_char, *mut LibraryPtr, *const c_char,
        ) -> c_int
            = b"rbd_open_read_only",
        close: unsafe extern "C" fn(LibraryPtr) -> c_int = b"rbd_close",
        get_size: unsafe extern "C" fn(LibraryPtr, *mut u64) -> c_int = b"rbd_get_size",
        read: unsafe extern "C" fn(LibraryPtr, u64, usize, *mut c_char) -> isize = b"rbd_read",
        flush: unsafe extern "C" fn(LibraryPtr) -> c_int = b"rbd_flush",
        diff: unsafe extern "C" fn(
            LibraryPtr, *const c_char, u64, u64, u8, u8, DiffCallback, *mut c_void,
        ) -> c_int
            = b"rbd_diff_iterate2",
        watchers: unsafe extern "C" fn(LibraryPtr, *mut RawWatcher, *mut usize) -> c_int
            = b"rbd_watchers_list",
        free_watchers: unsafe extern "C" fn(*mut RawWatcher, usize) = b"rbd_watchers_list_cleanup",
        lockers: ListLockers = b"rbd_list_lockers",
        aio_create: unsafe extern "C" fn(*mut c_void, RbdCallback, *mut LibraryPtr) -> c_int
            = b"rbd_aio_create_completion",
        aio_release: unsafe extern "C" fn(LibraryPtr) = b"rbd_aio_release",
        aio_value: unsafe extern "C" fn(LibraryPtr) -> isize = b"rbd_aio_get_return_value",
        aio_write: unsafe extern "C" fn(LibraryPtr, u64, usize, *const c_char, LibraryPtr) -> c_int
            = b"rbd_aio_write",
        aio_read: unsafe extern "C" fn(LibraryPtr, u64, usize, *mut c_char, LibraryPtr) -> c_int
            = b"rbd_aio_read",
        aio_discard: unsafe extern "C" fn(LibraryPtr, u64, u64, LibraryPtr) -> c_int
            = b"rbd_aio_discard",
        aio_compare_and_write: unsafe extern "C" fn(
            LibraryPtr, u64, usize, *const c_char, *const c_char, LibraryPtr, *mut u64, c_int,
        ) -> c_int
            = b"rbd_aio_compare_and_write",
        aio_flush: unsafe extern "C" fn(LibraryPtr, LibraryPtr) -> c_int = b"rbd_aio_flush",
    }
}

/// A watcher of an image, in the layout of librbd.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawWatcher {
    address: *mut c_char,
    client: i64,
    cookie: u64,
}

impl RawWatcher {
    const NONE: RawWatcher = RawWatcher {
        address: null_mut(),
        client: 0,
        cookie: 0,
    };
}

/// A setting, in the layout of librbd.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RbdConfigOption {
    name: *mut c_char,
    value: *mut c_char,
    /// Origin: configuration, pool or image.
    source: c_uint,
}

impl RbdConfigOption {
    const NONE: RbdConfigOption = RbdConfigOption {
        name: null_mut(),
        value: null_mut(),
        source: 0,
    };
}

functions! {
    /// Functions that list the settings of an image. librbd has them since Ceph 14.
    Settings {
        list: unsafe extern "C" fn(LibraryPtr, *mut RbdConfigOption, *mut c_int) -> c_int
            = b"rbd_config_image_list",
        free: unsafe extern "C" fn(*mut RbdConfigOption, c_int) = b"rbd_config_image_list_cleanup",
    }
}

impl Settings {
    fn loaded() -> Option<&'static Settings> {
        static LOADED: OnceLock<Option<Settings>> = OnceLock::new();
        let load = || load_library(LIBRARY, |library: &Library| Settings::load_from(library)).ok();
        LOADED.get_or_init(load).as_ref()
    }

    /// All settings of an image with their values. Empty if librbd cannot list them.
    fn list_image_settings(&self, image: LibraryPtr) -> Vec<(String, String)> {
        let mut room = 256;
        // The second call has room for the number that the first one returned.
        for _ in 0..2 {
            let mut list = vec![RbdConfigOption::NONE; room];
            let mut count = c_int::try_from(room).unwrap_or(c_int::MAX);
            // SAFETY: an open image, and a list of the length passed.
            let listed = unsafe { (self.list)(image, list.as_mut_ptr(), &mut count) };
            let there = usize::try_from(count).unwrap_or(0);
            if listed == -libc::ERANGE && there > room {
                room = there;
                continue;
            }
            if listed < 0 {
                break;
            }
            let text = |text: *mut c_char| {
                // SAFETY: a string made by the library, which is freed below.
                let text = unsafe { CStr::from_ptr(text) };
                text.to_string_lossy().into_owned()
            };
            let settings = list
                .iter()
                .take(there)
                .filter(|one| !one.name.is_null() && !one.value.is_null());
            let settings = settings
                .map(|one| (text(one.name), text(one.value)))
                .collect();
            // SAFETY: the library wrote this many entries, and no reference to them is left.
            unsafe { (self.free)(list.as_mut_ptr(), count) };
            return settings;
        }
        Vec::new()
    }
}

impl Rbd {
    pub(super) fn loaded() -> Result<&'static Rbd, CephError> {
        static LOADED: OnceLock<Result<Rbd, CephError>> = OnceLock::new();
        let loaded = LOADED
            .get_or_init(|| load_library(LIBRARY, |library: &Library| Rbd::load_from(library)));
        loaded.as_ref().map_err(Clone::clone)
    }
}

/// Version of librbd, e.g. `1.16.0`, which differs from the version of Ceph.
pub(crate) fn version() -> Result<String, CephError> {
    let rbd = Rbd::loaded()?;
    let (mut major, mut minor, mut extra) = (0, 0, 0);
    // SAFETY: three integers to write to.
    unsafe { (rbd.version)(&mut major, &mut minor, &mut extra) };
    Ok(format!("{major}.{minor}.{extra}"))
}

/// A client that has an image open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watcher {
    /// Number of the client, see
    /// [`RadosCluster::instance_id`](super::rados::RadosCluster::instance_id).
    pub(crate) client: u64,
    /// Address, e.g. `10.0.0.7:0/3207`.
    pub(crate) address: String,
}

/// A lock on an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lock {
    /// Owner, e.g. `client.4123`.
    pub(crate) client: String,
    /// Name of the lock.
    pub(crate) id: String,
}

struct OpenImage {
    rbd: &'static Rbd,
    raw: LibraryPtr,
    /// Context of the pool, which must outlive the image.
    io: IoCtx,
    /// Whether requests were abandoned, so that the image stays open until the process ends.
    is_left_open: AtomicBool,
    /// Settings of the image, read on the first use.
    settings: OnceLock<Vec<(String, String)>>,
    writers: Arc<ImageWriters>,
}

/// Weak reference to an open image.
pub(crate) struct WeakImage(Weak<OpenImage>);

impl WeakImage {
    /// Returns the image, if it is still open.
    pub(crate) fn upgrade(&self) -> Option<Image> {
        self.0.upgrade().map(|open_image| Image { open_image })
    }
}

// SAFETY: any thread may use and close images of librbd.
unsafe impl Send for OpenImage {}
// SAFETY: images of librbd are thread-safe, as above.
unsafe impl Sync for OpenImage {}

impl Drop for OpenImage {
    fn drop(&mut self) {
        // SAFETY: made by rbd_open and closed once. Requests hold the image until they complete.
        unsafe { (self.rbd.close)(self.raw) };
    }
}

/// An open image. Clones share it.
#[derive(Clone)]
pub(crate) struct Image {
    open_image: Arc<OpenImage>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").finish_non_exhaustive()
    }
}

impl Image {
    /// Opens an image, for writing or read-only, or its snapshot (`IMAGE@SNAPSHOT`), read-only.
    pub(crate) fn open(io: &IoCtx, name: &str, writes: bool) -> Result<Image, CephError> {
        let rbd = Rbd::loaded()?;
        let (image, snapshot) = match name.split_once('@') {
            Some((image, snapshot)) => (c_string(image)?, Some(c_string(snapshot)?)),
            None => (c_string(name)?, None),
        };
        let snapshot_name = snapshot.as_ref().map_or(null(), |name| name.as_ptr());
        let mut raw = null_mut();
        let call = if writes { rbd.open } else { rbd.open_read_only };
        // SAFETY: the image holds its context. The strings outlive the call, and null selects no
        // snapshot. A place for the image.
        let opened = unsafe { call(io.raw().1, image.as_ptr(), &mut raw, snapshot_name) };
        checked(opened, || CephAction::OpenImage(name.to_owned()))?;
        Ok(Image {
            open_image: Arc::new(OpenImage {
                rbd,
                raw,
                io: io.clone(),
                is_left_open: AtomicBool::new(false),
                settings: OnceLock::new(),
                writers: Arc::default(),
            }),
        })
    }

    /// Pool of the image.
    pub(crate) fn pool(&self) -> &IoCtx {
        &self.open_image.io
    }

    /// Whether the image stays open until the process ends, because requests were abandoned.
    pub(crate) fn is_left_open(&self) -> bool {
        self.open_image.is_left_open.load(Relaxed)
    }

    /// Leaves the image open until the process ends: closing it would wait for its requests.
    pub(super) fn leave_open(&self) {
        self.open_image.is_left_open.store(true, Relaxed);
        std::mem::forget(self.clone());
    }

    /// Workers that write to the image through a cache.
    pub(crate) fn writers(&self) -> &Arc<ImageWriters> {
        &self.open_image.writers
    }

    /// Creates a weak reference to the image.
    pub(crate) fn downgrade(&self) -> WeakImage {
        WeakImage(Arc::downgrade(&self.open_image))
    }

    pub(super) fn raw(&self) -> (&'static Rbd, LibraryPtr) {
        (self.open_image.rbd, self.open_image.raw)
    }

    /// Length in bytes.
    pub(crate) fn size_bytes(&self) -> Result<u64, CephError> {
        let (rbd, raw) = self.raw();
        let mut size = 0;
        // SAFETY: an integer to write to.
        checked(unsafe { (rbd.get_size)(raw, &mut size) }, || {
            CephAction::MeasureImage
        })?;
        Ok(size)
    }

    /// Effective value of a setting: that of the image (`rbd config image set`), else of its pool,
    /// else of the client. `None` if librbd cannot list settings.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        let (_, raw) = self.raw();
        let read = || {
            Settings::loaded().map_or_else(Vec::new, |settings| settings.list_image_settings(raw))
        };
        let all = self.open_image.settings.get_or_init(read);
        let found = all.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads. Returns the number of bytes read.
    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, CephError> {
        let (rbd, raw) = self.raw();
        // SAFETY: the length is that of the buffer.
        let got = unsafe { (rbd.read)(raw, offset, into.len(), into.as_mut_ptr().cast()) };
        checked(
            got.clamp(i32::MIN as isize, i32::MAX as isize) as c_int,
            || CephAction::ReadImage,
        )
        .map(|bytes| bytes as usize)
    }

    /// Makes all completed writes durable.
    pub(crate) fn flush(&self) -> Result<(), CephError> {
        let (rbd, raw) = self.raw();
        // SAFETY: the image is open until `OpenImage` is dropped.
        checked(unsafe { (rbd.flush)(raw) }, || CephAction::FlushImage).map(|_| ())
    }

    /// Clients that have the image open for writing, also this one. A killed one stays for 30 s.
    pub(crate) fn watchers(&self) -> Result<Vec<Watcher>, CephError> {
        let (rbd, raw) = self.raw();
        let action = || CephAction::ListImageClients;
        let mut room = FIRST_WATCHERS;
        for _ in 0..LIST_TRIES {
            let mut list = vec![RawWatcher::NONE; room];
            let mut count = room;
            // SAFETY: an open image, and a list of the length passed.
            let listed = unsafe { (rbd.watchers)(raw, list.as_mut_ptr(), &mut count) };
            if listed == -libc::ERANGE {
                room = count.max(room + 1);
                continue;
            }
            checked(listed, action)?;
            let watcher = |raw: &RawWatcher| Watcher {
                client: raw.client.cast_unsigned(),
                address: match raw.address.is_null() {
                    true => String::new(),
                    // SAFETY: a string made by the library, which is freed below.
                    false => unsafe { CStr::from_ptr(raw.address) }
                        .to_string_lossy()
                        .into_owned(),
                },
            };
            let watchers = list.iter().take(count).map(watcher).collect();
            // SAFETY: the library wrote this many entries, and no reference to them is left.
            unsafe { (rbd.free_watchers)(list.as_mut_ptr(), count.min(room)) };
            return Ok(watchers);
        }
        checked(-libc::ERANGE, action).map(|_| Vec::new())
    }

    /// Locks on the image: those of users (`rbd lock add`), and the automatic one of librbd if the
    /// image has the feature `exclusive-lock`.
    pub(crate) fn locks(&self) -> Result<Vec<Lock>, CephError> {
        let (rbd, raw) = self.raw();
        let action = || CephAction::ListImageLocks;
        let mut lengths = [FIRST_LOCKER_BYTES; 4];
        for _ in 0..LIST_TRIES {
            let [mut tag, mut clients, mut cookies, mut addresses] =
                lengths.map(|length| vec![0u8; length]);
            let mut is_exclusive = 0;
            let [tag_len, clients_len, cookies_len, addresses_len] = &mut lengths;
            // SAFETY: an open image, an integer for the kind, four buffers of the lengths passed.
            let listed = unsafe {
                (rbd.lockers)(
                    raw,
                    &mut is_exclusive,
                    tag.as_mut_ptr().cast(),
                    tag_len,
                    clients.as_mut_ptr().cast(),
                    clients_len,
                    cookies.as_mut_ptr().cast(),
                    cookies_len,
                    addresses.as_mut_ptr().cast(),
                    addresses_len,
                )
            };
            let listed = listed.clamp(i32::MIN as isize, i32::MAX as isize) as c_int;
            if listed == -libc::ERANGE {
                continue;
            }
            let count = checked(listed, action)? as usize;
            let locks = texts(&clients).zip(texts(&cookies)).take(count);
            return Ok(locks.map(|(client, id)| Lock { client, id }).collect());
        }
        checked(-libc::ERANGE, action).map(|_| Vec::new())
    }

    /// Sorted ranges within `range` that were ever written, also in parents of a clone. Granularity
    /// is the object: all bytes before the end of an existing object count as written.
    pub(crate) fn written(&self, range: Range<u64>) -> Result<Vec<Range<u64>>, CephError> {
        let (rbd, raw) = self.raw();
        let mut found: Vec<Range<u64>> = Vec::new();
        let list: *mut Vec<Range<u64>> = &mut found;
        let length = range.end.saturating_sub(range.start);
        // SAFETY: no other code uses the list until the return. `append_range` casts it to the same
        // type.
        let walked = unsafe {
            (rbd.diff)(
                raw,
                null(),
                range.start,
                length,
                1,
                0,
                append_range,
                list.cast(),
            )
        };
        checked(walked, || CephAction::ListImageRanges)?;
        found.sort_by_key(|range| range.start);
        Ok(found)
    }
}

/// Strings in a buffer that are each terminated by a zero byte.
fn texts(buffer: &[u8]) -> impl Iterator<Item = String> + '_ {
    let texts = buffer.split(|byte| *byte == 0);
    texts.map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Callback of [`Image::written`]: appends a range that exists.
extern "C" fn append_range(offset: u64, length: usize, exists: c_int, list: *mut c_void) -> c_int {
    if exists != 0 {
        // SAFETY: `written` passed this list and does not use it meanwhile. Calls are sequential.
        let list = unsafe { &mut *list.cast::<Vec<Range<u64>>>() };
        list.push(offset..offset + length as u64);
    }
    0
}
