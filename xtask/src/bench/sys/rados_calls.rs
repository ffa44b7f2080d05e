//! Writes of objects by rados_aio_write of librados, loaded at run time.
//!
//! Each completed write starts the next one on the thread of librados. There are no statistics.

use super::rbd_calls::checked;
use anyhow::{Context, Result};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::Write;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

const LIBRARY: &str = "librados.so.2";
/// Settings of iosonde for I/O on objects.
const SETTINGS: [(&str, &str); 2] = [
    ("librados_thread_count", "1"),
    ("ms_tcp_prefetch_max_size", "32768"),
];
/// Interval of polling for the end of the time and of the last write.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Most bytes of an object's name, with the terminating NUL.
const NAME_BYTES: usize = 128;

/// Writes of new objects for some time.
#[derive(Debug)]
pub(in crate::bench) struct ObjectWrites<'a> {
    /// The pool; the cluster is that of CEPH_CONF.
    pub(in crate::bench) pool: &'a str,
    /// Prefix of the names of objects.
    pub(in crate::bench) prefix: &'a str,
    /// Length of an object.
    pub(in crate::bench) op_bytes: usize,
    /// Writes in flight.
    pub(in crate::bench) concurrent: u32,
    /// Most objects.
    pub(in crate::bench) max_objects: u64,
    /// Time after which no write is started.
    pub(in crate::bench) length: Duration,
}

type LibradosPtr = *mut c_void;
type LibradosCallback = extern "C" fn(LibradosPtr, LibradosPtr);

/// Functions of librados.
struct Rados {
    create: unsafe extern "C" fn(*mut LibradosPtr, *const c_char) -> c_int,
    read_file: unsafe extern "C" fn(LibradosPtr, *const c_char) -> c_int,
    parse_env: unsafe extern "C" fn(LibradosPtr, *const c_char) -> c_int,
    set: unsafe extern "C" fn(LibradosPtr, *const c_char, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(LibradosPtr) -> c_int,
    shutdown: unsafe extern "C" fn(LibradosPtr),
    open: unsafe extern "C" fn(LibradosPtr, *const c_char, *mut LibradosPtr) -> c_int,
    close: unsafe extern "C" fn(LibradosPtr),
    made: unsafe extern "C" fn(
        LibradosPtr,
        Option<LibradosCallback>,
        Option<LibradosCallback>,
        *mut LibradosPtr,
    ) -> c_int,
    value: unsafe extern "C" fn(LibradosPtr) -> c_int,
    release: unsafe extern "C" fn(LibradosPtr),
    write: unsafe extern "C" fn(
        LibradosPtr,
        *const c_char,
        LibradosPtr,
        *const c_char,
        usize,
        u64,
    ) -> c_int,
}

impl Rados {
    fn load() -> Result<Rados, libloading::Error> {
        // SAFETY: librados may be loaded at any time and stays loaded; types match its header.
        unsafe {
            let library = Library::new(LIBRARY)?;
            let rados = Rados {
                create: *library.get(b"rados_create")?,
                read_file: *library.get(b"rados_conf_read_file")?,
                parse_env: *library.get(b"rados_conf_parse_env")?,
                set: *library.get(b"rados_conf_set")?,
                connect: *library.get(b"rados_connect")?,
                shutdown: *library.get(b"rados_shutdown")?,
                open: *library.get(b"rados_ioctx_create")?,
                close: *library.get(b"rados_ioctx_destroy")?,
                made: *library.get(b"rados_aio_create_completion")?,
                value: *library.get(b"rados_aio_get_return_value")?,
                release: *library.get(b"rados_aio_release")?,
                write: *library.get(b"rados_aio_write")?,
            };
            std::mem::forget(library);
            Ok(rados)
        }
    }
}

/// State shared by all writes.
struct BareClient {
    rados: Rados,
    pool: LibradosPtr,
    prefix: String,
    data: Vec<u8>,
    max_objects: u64,
    /// Started and successful writes.
    begun: AtomicU64,
    over: AtomicU64,
    in_flight: AtomicU32,
    ends: AtomicBool,
    /// The first error, or 0.
    failed: AtomicI32,
}

/// One of the concurrent writes.
struct WriteSlot {
    client: *const BareClient,
    completion: AtomicPtr<c_void>,
}

impl WriteSlot {
    /// Starts a write, unless the time is over or all objects are written.
    fn start(&self) {
        // SAFETY: the client outlives the writes: `write_objects` waits until none is in flight.
        let client = unsafe { &*self.client };
        let number = client.begun.fetch_add(1, Relaxed);
        if client.ends.load(Relaxed) || number >= client.max_objects {
            client.in_flight.fetch_sub(1, Release);
            return;
        }
        let mut name = [0; NAME_BYTES];
        // A name that does not fit is truncated.
        let _ = write!(
            &mut name[..NAME_BYTES - 1],
            "{}object{number}",
            client.prefix
        );
        let rados = &client.rados;
        // SAFETY: data and slot outlive the write; librados copies the name during the call.
        let started = unsafe {
            let before = self.completion.swap(null_mut(), Relaxed);
            if !before.is_null() {
                (rados.release)(before);
            }
            let mut completion = null_mut();
            let slot = std::ptr::from_ref(self).cast_mut().cast();
            match (rados.made)(slot, Some(is_over), None, &mut completion) {
                0 => {
                    self.completion.store(completion, Relaxed);
                    let (data, length) = (client.data.as_ptr().cast(), client.data.len());
                    let name = name.as_ptr().cast();
                    (rados.write)(client.pool, name, completion, data, length, 0)
                }
                error => error,
            }
        };
        if started < 0 {
            client.fail(started);
            client.in_flight.fetch_sub(1, Release);
        }
    }
}

impl BareClient {
    fn fail(&self, error: c_int) {
        let _ = self.failed.compare_exchange(0, error, AcqRel, Relaxed);
        self.ends.store(true, Relaxed);
    }
}

/// Completion callback: librados calls it on its own thread.
extern "C" fn is_over(completion: LibradosPtr, slot: LibradosPtr) {
    // SAFETY: slots and their client outlive all writes in flight.
    let (slot, client) = unsafe {
        let slot = &*slot.cast::<WriteSlot>();
        (slot, &*slot.client)
    };
    // SAFETY: librados keeps the completion alive during the callback.
    match unsafe { (client.rados.value)(completion) } {
        0.. => client.over.fetch_add(1, Relaxed),
        error => {
            client.fail(error);
            0
        }
    };
    slot.start();
}

/// Writes objects for some time. Returns the number of writes and the seconds.
pub(in crate::bench) fn write_objects(writes: &ObjectWrites<'_>) -> Result<(u64, f64)> {
    let rados = Rados::load().context("loading librados")?;
    let (mut cluster, mut pool) = (null_mut(), null_mut());
    let name = CString::new(writes.pool)?;
    // SAFETY: strings outlive the calls; each handle is used only after the call that made it.
    unsafe {
        checked((rados.create)(&mut cluster, null()), "a client")?;
        checked((rados.read_file)(cluster, null()), "the configuration")?;
        checked((rados.parse_env)(cluster, null()), "the environment")?;
        for (setting, value) in SETTINGS {
            let (setting, value) = (CString::new(setting)?, CString::new(value)?);
            let set = (rados.set)(cluster, setting.as_ptr(), value.as_ptr());
            checked(set, "a setting")?;
        }
        checked((rados.connect)(cluster), "connecting")?;
        let opened = (rados.open)(cluster, name.as_ptr(), &mut pool);
        checked(opened, "opening the pool")?;
    }
    let client = BareClient {
        rados,
        pool,
        prefix: writes.prefix.to_owned(),
        data: vec![b'z'; writes.op_bytes],
        max_objects: writes.max_objects,
        begun: AtomicU64::new(0),
        over: AtomicU64::new(0),
        in_flight: AtomicU32::new(writes.concurrent),
        ends: AtomicBool::new(false),
        failed: AtomicI32::new(0),
    };
    let slots: Vec<WriteSlot> = (0..writes.concurrent)
        .map(|_| WriteSlot {
            client: &client,
            completion: AtomicPtr::new(null_mut()),
        })
        .collect();
    let begun = Instant::now();
    slots.iter().for_each(WriteSlot::start);
    while client.in_flight.load(Acquire) > 0 {
        std::thread::sleep(POLL_INTERVAL);
        if begun.elapsed() >= writes.length {
            client.ends.store(true, Relaxed);
        }
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    // SAFETY: no write is in flight, and the pool is closed before its cluster.
    unsafe {
        for slot in &slots {
            let completion = slot.completion.load(Relaxed);
            if !completion.is_null() {
                (client.rados.release)(completion);
            }
        }
        (client.rados.close)(client.pool);
        (client.rados.shutdown)(cluster);
    }
    checked(client.failed.load(Relaxed), "a write")?;
    Ok((client.over.load(Relaxed), elapsed_s))
}
