//! Bindings of librbd, loaded at run time: images of a pool, as block devices in user space.

use super::arrivals::{Arrivals, Raw, Tag};
use super::memory::IoMemory;
use super::patience::{LOOK, Patience};
use super::rados::{IoCtx, Piece, checked, checked_address, functions, load, text};
use crate::ceph::CephError;
use crate::interrupt::Interrupt;
use crate::io::Completion;
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// File name of the library, and its Debian package.
const LIBRARY: (&str, &str) = ("librbd.so.1", "librbd1");

type Callback = extern "C" fn(Raw, *mut c_void);
type DiffCallback = extern "C" fn(u64, usize, c_int, *mut c_void) -> c_int;
/// Arguments: whether the lock is exclusive; then four buffers, each with its length: the tag, and
/// zero-terminated lists of the lockers' clients, cookies and addresses.
type ListLockers = unsafe extern "C" fn(
    Raw,
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
        open: unsafe extern "C" fn(Raw, *const c_char, *mut Raw, *const c_char) -> c_int = b"rbd_open",
        open_read_only: unsafe extern "C" fn(Raw, *const c_char, *mut Raw, *const c_char) -> c_int = b"rbd_open_read_only",
        close: unsafe extern "C" fn(Raw) -> c_int = b"rbd_close",
        get_size: unsafe extern "C" fn(Raw, *mut u64) -> c_int = b"rbd_get_size",
        read: unsafe extern "C" fn(Raw, u64, usize, *mut c_char) -> isize = b"rbd_read",
        flush: unsafe extern "C" fn(Raw) -> c_int = b"rbd_flush",
        diff: unsafe extern "C" fn(Raw, *const c_char, u64, u64, u8, u8, DiffCallback, *mut c_void) -> c_int = b"rbd_diff_iterate2",
        watchers: unsafe extern "C" fn(Raw, *mut RawWatcher, *mut usize) -> c_int = b"rbd_watchers_list",
        free_watchers: unsafe extern "C" fn(*mut RawWatcher, usize) = b"rbd_watchers_list_cleanup",
        lockers: ListLockers = b"rbd_list_lockers",
        aio_create: unsafe extern "C" fn(*mut c_void, Callback, *mut Raw) -> c_int = b"rbd_aio_create_completion",
        aio_release: unsafe extern "C" fn(Raw) = b"rbd_aio_release",
        aio_value: unsafe extern "C" fn(Raw) -> isize = b"rbd_aio_get_return_value",
        aio_write: unsafe extern "C" fn(Raw, u64, usize, *const c_char, Raw) -> c_int = b"rbd_aio_write",
        aio_read: unsafe extern "C" fn(Raw, u64, usize, *mut c_char, Raw) -> c_int = b"rbd_aio_read",
        aio_discard: unsafe extern "C" fn(Raw, u64, u64, Raw) -> c_int = b"rbd_aio_discard",
        aio_flush: unsafe extern "C" fn(Raw, Raw) -> c_int = b"rbd_aio_flush",
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
pub(super) struct Setting {
    name: *mut c_char,
    value: *mut c_char,
    /// Origin: configuration, pool or image.
    source: c_uint,
}

impl Setting {
    const NONE: Setting = Setting {
        name: null_mut(),
        value: null_mut(),
        source: 0,
    };
}

functions! {
    /// Functions that list the settings of an image. librbd has them since Ceph 14.
    Settings {
        list: unsafe extern "C" fn(Raw, *mut Setting, *mut c_int) -> c_int = b"rbd_config_image_list",
        free: unsafe extern "C" fn(*mut Setting, c_int) = b"rbd_config_image_list_cleanup",
    }
}

impl Settings {
    fn loaded() -> Option<&'static Settings> {
        static LOADED: OnceLock<Option<Settings>> = OnceLock::new();
        let load = || load(LIBRARY, |library: &Library| Settings::of(library)).ok();
        LOADED.get_or_init(load).as_ref()
    }

    /// All settings of an image with their values. Empty if librbd cannot list them.
    fn of_image(&self, image: Raw) -> Vec<(String, String)> {
        let mut room = 256;
        // The second call has room for the number that the first one returned.
        for _ in 0..2 {
            let mut list = vec![Setting::NONE; room];
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
            let told = list
                .iter()
                .take(there)
                .filter(|one| !one.name.is_null() && !one.value.is_null());
            let told = told.map(|one| (text(one.name), text(one.value))).collect();
            // SAFETY: the library wrote this many entries, and no reference to them is left.
            unsafe { (self.free)(list.as_mut_ptr(), count) };
            return told;
        }
        Vec::new()
    }
}

impl Rbd {
    fn loaded() -> Result<&'static Rbd, CephError> {
        static LOADED: OnceLock<Result<Rbd, CephError>> = OnceLock::new();
        let loaded = LOADED.get_or_init(|| load(LIBRARY, |library: &Library| Rbd::of(library)));
        loaded.as_ref().map_err(Clone::clone)
    }
}

/// Version of librbd, e.g. `1.16.0`, which differs from the version of Ceph.
pub fn version() -> Result<String, CephError> {
    let rbd = Rbd::loaded()?;
    let (mut major, mut minor, mut extra) = (0, 0, 0);
    // SAFETY: three integers to write to.
    unsafe { (rbd.version)(&mut major, &mut minor, &mut extra) };
    Ok(format!("{major}.{minor}.{extra}"))
}

/// A client that has an image open for writing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watcher {
    /// Number of the client, see [`Cluster::instance_id`](super::rados::Cluster::instance_id).
    pub client: u64,
    /// Address, e.g. `10.0.0.7:0/3207`.
    pub address: String,
}

/// A lock on an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lock {
    /// Owner, e.g. `client.4123`.
    pub client: String,
    /// Name of the lock.
    pub id: String,
}

struct Opened {
    rbd: &'static Rbd,
    raw: Raw,
    /// Context of the pool, which must outlive the image.
    io: IoCtx,
    /// Whether requests were abandoned, so that the image stays open until the process ends.
    is_left_open: AtomicBool,
    /// Settings of the image, read on the first use.
    settings: OnceLock<Vec<(String, String)>>,
}

/// Weak reference to an open image.
pub(crate) struct WeakImage(Weak<Opened>);

impl WeakImage {
    /// Returns the image, if it is still open.
    pub(crate) fn upgrade(&self) -> Option<Image> {
        self.0.upgrade().map(|opened| Image { opened })
    }
}

// SAFETY: any thread may use and close images of librbd.
unsafe impl Send for Opened {}
// SAFETY: images of librbd are thread-safe, as above.
unsafe impl Sync for Opened {}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: made by rbd_open and closed once. Requests hold the image until they complete.
        unsafe { (self.rbd.close)(self.raw) };
    }
}

/// An open image. Clones share it.
#[derive(Clone)]
pub struct Image {
    opened: Arc<Opened>,
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Image").finish_non_exhaustive()
    }
}

impl Image {
    /// Opens an image, for writing or read-only.
    pub fn open(io: &IoCtx, name: &str, writes: bool) -> Result<Image, CephError> {
        let rbd = Rbd::loaded()?;
        let image = text(name)?;
        let mut raw = null_mut();
        let call = if writes { rbd.open } else { rbd.open_read_only };
        // SAFETY: the image holds its context. The string outlives the call. A place for the image.
        let opened = unsafe { call(io.raw().1, image.as_ptr(), &mut raw, null()) };
        checked(opened, || format!("open the image {name}"))?;
        Ok(Image {
            opened: Arc::new(Opened {
                rbd,
                raw,
                io: io.clone(),
                is_left_open: AtomicBool::new(false),
                settings: OnceLock::new(),
            }),
        })
    }

    /// Pool of the image.
    pub fn pool(&self) -> &IoCtx {
        &self.opened.io
    }

    /// Whether the image stays open until the process ends, because requests were abandoned.
    pub fn is_left_open(&self) -> bool {
        self.opened.is_left_open.load(Relaxed)
    }

    /// Creates a weak reference to the image.
    pub(crate) fn downgrade(&self) -> WeakImage {
        WeakImage(Arc::downgrade(&self.opened))
    }

    fn raw(&self) -> (&'static Rbd, Raw) {
        (self.opened.rbd, self.opened.raw)
    }

    /// Length in bytes.
    pub fn size_bytes(&self) -> Result<u64, CephError> {
        let (rbd, raw) = self.raw();
        let mut size = 0;
        // SAFETY: an integer to write to.
        checked(unsafe { (rbd.get_size)(raw, &mut size) }, || {
            "measure the image".to_owned()
        })?;
        Ok(size)
    }

    /// Effective value of a setting: that of the image (`rbd config image set`), else of its pool,
    /// else of the client. `None` if librbd cannot list settings.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let (_, raw) = self.raw();
        let read = || Settings::loaded().map_or_else(Vec::new, |settings| settings.of_image(raw));
        let all = self.opened.settings.get_or_init(read);
        let found = all.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Reads. Returns the number of bytes read.
    pub fn read(&self, into: &mut [u8], offset: u64) -> Result<usize, CephError> {
        let (rbd, raw) = self.raw();
        // SAFETY: the length is that of the buffer.
        let got = unsafe { (rbd.read)(raw, offset, into.len(), into.as_mut_ptr().cast()) };
        checked(
            got.clamp(i32::MIN as isize, i32::MAX as isize) as c_int,
            || "read the image".to_owned(),
        )
        .map(|bytes| bytes as usize)
    }

    /// Makes all completed writes durable.
    pub fn flush(&self) -> Result<(), CephError> {
        let (rbd, raw) = self.raw();
        // SAFETY: the image is open until `Opened` is dropped.
        checked(unsafe { (rbd.flush)(raw) }, || "flush the image".to_owned()).map(|_| ())
    }

    /// Clients that have the image open for writing, also this one. A killed one stays for 30 s.
    pub fn watchers(&self) -> Result<Vec<Watcher>, CephError> {
        let (rbd, raw) = self.raw();
        let doing = || "list the clients that have the image open".to_owned();
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
            checked(listed, doing)?;
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
        checked(-libc::ERANGE, doing).map(|_| Vec::new())
    }

    /// Locks on the image: those of users (`rbd lock add`), and the automatic one of librbd if the
    /// image has the feature `exclusive-lock`.
    pub fn locks(&self) -> Result<Vec<Lock>, CephError> {
        let (rbd, raw) = self.raw();
        let doing = || "list the locks on the image".to_owned();
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
            let count = checked(listed, doing)? as usize;
            let locks = texts(&clients).zip(texts(&cookies)).take(count);
            return Ok(locks.map(|(client, id)| Lock { client, id }).collect());
        }
        checked(-libc::ERANGE, doing).map(|_| Vec::new())
    }

    /// Sorted ranges within `range` that were ever written, also in parents of a clone. Granularity
    /// is the object: all bytes before the end of an existing object count as written.
    pub fn written(&self, range: Range<u64>) -> Result<Vec<Range<u64>>, CephError> {
        let (rbd, raw) = self.raw();
        let mut found: Vec<Range<u64>> = Vec::new();
        let list: *mut Vec<Range<u64>> = &mut found;
        let length = range.end.saturating_sub(range.start);
        // SAFETY: no other code uses the list until the return. `note` casts it to the same type.
        let walked =
            unsafe { (rbd.diff)(raw, null(), range.start, length, 1, 0, note, list.cast()) };
        checked(walked, || {
            "find out what of the image was written".to_owned()
        })?;
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
extern "C" fn note(offset: u64, length: usize, exists: c_int, list: *mut c_void) -> c_int {
    if exists != 0 {
        // SAFETY: `written` passed this list and does not use it meanwhile. Calls are sequential.
        let list = unsafe { &mut *list.cast::<Vec<Range<u64>>>() };
        list.push(offset..offset + length as u64);
    }
    0
}

/// Requests to an image, at most one per slot.
pub struct ImageRequests {
    /// Declared before the image, so that its drop waits for all requests first.
    arrivals: Arrivals,
    image: Image,
    patience: Option<Patience>,
    gave_up: bool,
}

/// Callback on completion of a request, on a thread of the library.
extern "C" fn is_over(completion: Raw, tag: *mut c_void) {
    let value = match Rbd::loaded() {
        // SAFETY: the request is complete, and this is the last use of the completion.
        Ok(rbd) => unsafe {
            let value = (rbd.aio_value)(completion);
            (rbd.aio_release)(completion);
            value as i32
        },
        Err(_) => -libc::EIO,
    };
    // SAFETY: the tag was passed with the request, and lives until the request is counted here.
    unsafe { &*tag.cast::<Tag>() }.piece_is_over(value);
}

impl ImageRequests {
    /// Creates requests for `depth` I/Os in flight. `polls`: waits busy poll instead of sleeping.
    pub fn new(image: &Image, depth: usize, polls: bool) -> ImageRequests {
        ImageRequests {
            arrivals: Arrivals::new(depth, polls),
            image: image.clone(),
            patience: None,
            gave_up: false,
        }
    }

    /// After a stop request, abandons I/Os once the cluster stops answering. librbd cannot cancel
    /// requests: I/Os complete with `ECANCELED`, the image stays open, and the buffers must stay
    /// mapped (see [`ImageRequests::gave_up`]).
    pub fn heed(&mut self, wish: &Arc<Interrupt>) {
        self.patience = Some(Patience::until(wish));
    }

    /// Whether requests were abandoned: librbd may use their buffers until the process ends.
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Whether no request is in flight.
    pub fn is_idle(&self) -> bool {
        self.arrivals.is_idle()
    }

    /// Writes a piece of the slot's buffer.
    pub fn write(&mut self, memory: &IoMemory, piece: Piece) {
        let buffer = checked_address(memory, piece);
        self.start(piece.slot, piece.len, |rbd, image, completion| {
            // SAFETY: the buffer of a slot in flight outlives the request: `arrivals` waits.
            unsafe {
                let from = buffer.cast_const().cast();
                (rbd.aio_write)(image, piece.offset, piece.len, from, completion)
            }
        });
    }

    /// Reads a piece into the slot's buffer.
    pub fn read(&mut self, memory: &IoMemory, piece: Piece) {
        let buffer = checked_address(memory, piece);
        self.start(piece.slot, 0, |rbd, image, completion| {
            // SAFETY: the buffer outlives the request, as for writes.
            unsafe { (rbd.aio_read)(image, piece.offset, piece.len, buffer.cast(), completion) }
        });
    }

    /// Discards a piece of the image.
    pub fn discard(&mut self, piece: Piece) {
        self.start(piece.slot, piece.len, |rbd, image, completion| {
            // SAFETY: the call takes no buffer, only the completion.
            unsafe { (rbd.aio_discard)(image, piece.offset, piece.len as u64, completion) }
        });
    }

    /// Makes earlier writes durable.
    pub fn flush(&mut self, slot: u32) {
        self.start(slot, 0, |rbd, image, completion| {
            // SAFETY: the call takes no buffer, only the completion.
            unsafe { (rbd.aio_flush)(image, completion) }
        });
    }

    /// Appends completions. Returns once `done` holds `min`, none is in flight, or after `timeout`.
    pub fn collect(&mut self, min: usize, timeout: Option<Duration>, done: &mut Vec<Completion>) {
        let Some(patience) = self.patience.as_mut().filter(|_| min > 0) else {
            return self.arrivals.collect(min, timeout, done);
        };
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            let before = done.len();
            let look = left.map_or(LOOK, |left| left.min(LOOK));
            self.arrivals.collect(min, Some(look), done);
            let is_late = left.is_some_and(|left| left <= look);
            if done.len() >= min || self.arrivals.is_idle() || is_late {
                return;
            }
            if patience.is_over(done.len() > before) {
                return self.give_up(done);
            }
        }
    }

    #[cold]
    fn give_up(&mut self, done: &mut Vec<Completion>) {
        self.gave_up = true;
        self.image.opened.is_left_open.store(true, Relaxed);
        // Leaked, because closing the image would wait for these requests.
        std::mem::forget(self.image.clone());
        self.arrivals.abandon(-libc::ECANCELED, done);
    }

    /// Starts a request. A request that cannot be started completes at once, and so do all after
    /// requests were abandoned: a job that ignores `ECANCELED` still flushes at its end.
    fn start(&mut self, slot: u32, counts: usize, call: impl FnOnce(&Rbd, Raw, Raw) -> c_int) {
        if self.arrivals.refuse(slot) {
            return;
        }
        let (rbd, image) = self.image.raw();
        self.arrivals.begin(slot, 1);
        let tag = self.arrivals.tag(slot);
        tag.credit(counts);
        let argument = std::ptr::from_ref(tag).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: the tag outlives the request, as `arrivals` waits. A place for the completion.
        let made = unsafe { (rbd.aio_create)(argument, is_over, &mut completion) };
        if made < 0 {
            return tag.piece_is_over(made);
        }
        let started = call(rbd, image, completion);
        if started < 0 {
            // SAFETY: the library did not accept the request and will not call back.
            unsafe { (rbd.aio_release)(completion) };
            tag.piece_is_over(started);
        }
    }
}
