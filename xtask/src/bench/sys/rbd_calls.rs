//! Random reads of an image by rbd_aio_read of librbd, loaded at run time.
//!
//! Each completed read starts the next one on the thread of librbd. There are no statistics.

use super::super::xorshift::next_xorshift;
use anyhow::{Context, Result, ensure};
use libloading::Library;
use nix::libc;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::Error;
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

/// Interval of polling for the end of the time and of the last read.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

type CephPtr = *mut c_void;
type ReadCallback = extern "C" fn(CephPtr, CephPtr);

/// Functions of librados and librbd.
struct ImageFunctions {
    create: unsafe extern "C" fn(*mut CephPtr, *const c_char) -> c_int,
    read_file: unsafe extern "C" fn(CephPtr, *const c_char) -> c_int,
    parse_env: unsafe extern "C" fn(CephPtr, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(CephPtr) -> c_int,
    shutdown: unsafe extern "C" fn(CephPtr),
    open_pool: unsafe extern "C" fn(CephPtr, *const c_char, *mut CephPtr) -> c_int,
    close_pool: unsafe extern "C" fn(CephPtr),
    open_image: unsafe extern "C" fn(CephPtr, *const c_char, *mut CephPtr, *const c_char) -> c_int,
    close_image: unsafe extern "C" fn(CephPtr) -> c_int,
    get_size: unsafe extern "C" fn(CephPtr, *mut u64) -> c_int,
    aio_create: unsafe extern "C" fn(CephPtr, ReadCallback, *mut CephPtr) -> c_int,
    aio_value: unsafe extern "C" fn(CephPtr) -> isize,
    aio_release: unsafe extern "C" fn(CephPtr),
    aio_read: unsafe extern "C" fn(CephPtr, u64, usize, *mut c_char, CephPtr) -> c_int,
}

impl ImageFunctions {
    fn load() -> Result<ImageFunctions, libloading::Error> {
        // SAFETY: both may be loaded at any time and stay loaded; types match their headers.
        unsafe {
            let rados = Library::new("librados.so.2")?;
            let rbd = Library::new("librbd.so.1")?;
            let functions = ImageFunctions {
                create: *rados.get(b"rados_create")?,
                read_file: *rados.get(b"rados_conf_read_file")?,
                parse_env: *rados.get(b"rados_conf_parse_env")?,
                connect: *rados.get(b"rados_connect")?,
                shutdown: *rados.get(b"rados_shutdown")?,
                open_pool: *rados.get(b"rados_ioctx_create")?,
                close_pool: *rados.get(b"rados_ioctx_destroy")?,
                open_image: *rbd.get(b"rbd_open_read_only")?,
                close_image: *rbd.get(b"rbd_close")?,
                get_size: *rbd.get(b"rbd_get_size")?,
                aio_create: *rbd.get(b"rbd_aio_create_completion")?,
                aio_value: *rbd.get(b"rbd_aio_get_return_value")?,
                aio_release: *rbd.get(b"rbd_aio_release")?,
                aio_read: *rbd.get(b"rbd_aio_read")?,
            };
            std::mem::forget((rados, rbd));
            Ok(functions)
        }
    }
}

/// A connection with an open image, closed when dropped.
struct OpenBenchImage {
    functions: ImageFunctions,
    cluster: CephPtr,
    pool: CephPtr,
    image: CephPtr,
}

impl OpenBenchImage {
    fn open(pool: &str, image: &str) -> Result<OpenBenchImage> {
        let functions = ImageFunctions::load().context("loading librbd")?;
        let (pool, image) = (CString::new(pool)?, CString::new(image)?);
        let mut open = OpenBenchImage {
            functions,
            cluster: null_mut(),
            pool: null_mut(),
            image: null_mut(),
        };
        let functions = &open.functions;
        // SAFETY: strings outlive the calls. Each handle is used only after the call that made it.
        unsafe {
            let created = (functions.create)(&mut open.cluster, null());
            checked(created, "a client")?;
            let cluster = open.cluster;
            checked((functions.read_file)(cluster, null()), "the configuration")?;
            checked((functions.parse_env)(cluster, null()), "the environment")?;
            checked((functions.connect)(cluster), "connecting")?;
            let opened = (functions.open_pool)(cluster, pool.as_ptr(), &mut open.pool);
            checked(opened, "opening the pool")?;
            let opened = (functions.open_image)(open.pool, image.as_ptr(), &mut open.image, null());
            checked(opened, "opening the image")?;
        }
        Ok(open)
    }

    fn size_bytes(&self) -> Result<u64> {
        let mut size_bytes = 0;
        // SAFETY: the image is open, and the integer lives through the call.
        let got = unsafe { (self.functions.get_size)(self.image, &mut size_bytes) };
        checked(got, "the size of the image")?;
        Ok(size_bytes)
    }
}

impl Drop for OpenBenchImage {
    fn drop(&mut self) {
        // SAFETY: no read is in flight. Each handle is closed once, and before its owner.
        unsafe {
            if !self.image.is_null() {
                (self.functions.close_image)(self.image);
            }
            if !self.pool.is_null() {
                (self.functions.close_pool)(self.pool);
            }
            if !self.cluster.is_null() {
                (self.functions.shutdown)(self.cluster);
            }
        }
    }
}

/// Returns an error of this action if a function of Ceph returned a negative errno.
pub(super) fn checked(value: c_int, action: &'static str) -> Result<()> {
    ensure!(value >= 0, "{action}: {}", Error::from_raw_os_error(-value));
    Ok(())
}

/// State shared by all reads.
struct ImageReadState {
    image: OpenBenchImage,
    blocks: u64,
    op_bytes: usize,
    ios: AtomicU64,
    in_flight: AtomicU32,
    ends: AtomicBool,
    /// The first error, or 0.
    failed: AtomicI32,
}

/// One of the concurrent reads.
struct ReadSlot {
    state: *const ImageReadState,
    random: AtomicU64,
    buffer: *mut c_char,
}

impl ReadSlot {
    /// Starts a read, unless the time is over.
    fn start(&self) {
        // SAFETY: the state outlives the reads: `read_image` waits until none is in flight.
        let state = unsafe { &*self.state };
        if state.ends.load(Relaxed) {
            state.in_flight.fetch_sub(1, Release);
            return;
        }
        let random = next_xorshift(self.random.load(Relaxed));
        self.random.store(random, Relaxed);
        let block = (u128::from(random) * u128::from(state.blocks)) >> 64;
        let offset = block as u64 * state.op_bytes as u64;
        let functions = &state.image.functions;
        let slot: CephPtr = std::ptr::from_ref(self).cast_mut().cast();
        let mut completion = null_mut();
        // SAFETY: the slot and its buffer outlive the read, and a slot has one read at a time.
        let started = unsafe {
            match (functions.aio_create)(slot, on_read, &mut completion) {
                0.. => {
                    let image = state.image.image;
                    (functions.aio_read)(image, offset, state.op_bytes, self.buffer, completion)
                }
                error => error,
            }
        };
        if started < 0 {
            state.fail(started);
            state.in_flight.fetch_sub(1, Release);
        }
    }
}

impl ImageReadState {
    fn fail(&self, error: c_int) {
        let _ = self.failed.compare_exchange(0, error, AcqRel, Relaxed);
        self.ends.store(true, Relaxed);
    }
}

/// Completion callback: librbd calls it on its own thread.
extern "C" fn on_read(completion: CephPtr, slot: CephPtr) {
    // SAFETY: slots and their state outlive all reads in flight.
    let (slot, state) = unsafe {
        let slot = &*slot.cast::<ReadSlot>();
        (slot, &*slot.state)
    };
    let functions = &state.image.functions;
    // SAFETY: the read is complete, and this is the last use of the completion.
    let value = unsafe {
        let value = (functions.aio_value)(completion);
        (functions.aio_release)(completion);
        value
    };
    if value == state.op_bytes as isize {
        state.ios.fetch_add(1, Relaxed);
    } else {
        state.fail(if value < 0 {
            value as c_int
        } else {
            -libc::EIO
        });
    }
    slot.start();
}

/// Reads random blocks of an image for some time. Returns the number of reads and the seconds.
pub(in crate::bench) fn read_image(
    (pool, image): (&str, &str),
    op_bytes: usize,
    concurrent: u32,
    length: Duration,
) -> Result<(u64, f64)> {
    let image = OpenBenchImage::open(pool, image)?;
    ensure!(op_bytes > 0 && concurrent > 0, "there is nothing to read");
    let blocks = image.size_bytes()? / op_bytes as u64;
    ensure!(blocks > 0, "the image is smaller than a read");
    let state = ImageReadState {
        image,
        blocks,
        op_bytes,
        ios: AtomicU64::new(0),
        in_flight: AtomicU32::new(concurrent),
        ends: AtomicBool::new(false),
        failed: AtomicI32::new(0),
    };
    let mut buffers = vec![vec![0u8; op_bytes]; concurrent as usize];
    let slots: Vec<ReadSlot> = (1u64..)
        .zip(&mut buffers)
        .map(|(number, buffer)| ReadSlot {
            state: &raw const state,
            random: AtomicU64::new(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            buffer: buffer.as_mut_ptr().cast(),
        })
        .collect();
    let begun = Instant::now();
    slots.iter().for_each(ReadSlot::start);
    while state.in_flight.load(Acquire) > 0 {
        std::thread::sleep(POLL_INTERVAL);
        if begun.elapsed() >= length {
            state.ends.store(true, Relaxed);
        }
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    checked(state.failed.load(Relaxed), "a read")?;
    Ok((state.ios.load(Relaxed), elapsed_s))
}
