//! The leanest client of librados that writes small objects: what the library takes, and next to nothing else.
//!
//! Each write that is over starts the next from librados' own thread; there are no statistics, clocks and limits of time. It runs as
//! a process of its own, as the programs that it is compared with do, as `client.admin`, and with what iosonde sets for I/O on objects.

#![expect(unsafe_code, reason = "librados has a C interface")]

use anyhow::{Context, Result, ensure};
use libloading::Library;
use std::ffi::{CString, c_char, c_int, c_void};
use std::io::{Error, Write};
use std::ptr::{null, null_mut};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64};
use std::time::{Duration, Instant};

const LIBRARY: &str = "librados.so.2";
/// What iosonde sets for I/O on objects.
const SETTINGS: [(&str, &str); 2] = [
    ("librados_thread_count", "1"),
    ("ms_tcp_prefetch_max_size", "32768"),
];
/// How often it is looked whether the time is over, or all are.
const LOOK: Duration = Duration::from_millis(10);
/// Room for an object's name.
const NAME_BYTES: usize = 128;

/// What the client is told.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The pool; the cluster is that of CEPH_CONF
    #[arg(long)]
    pool: String,
    /// What the names of objects begin with
    #[arg(long)]
    prefix: String,
    /// Length of an object
    #[arg(long)]
    op_bytes: usize,
    /// Writes in flight
    #[arg(long)]
    concurrent: u32,
    /// How long to run
    #[arg(long)]
    seconds: u64,
    /// Most objects
    #[arg(long)]
    max_objects: u64,
}

type Raw = *mut c_void;
type Callback = extern "C" fn(Raw, Raw);

/// What is called of librados.
struct Rados {
    create: unsafe extern "C" fn(*mut Raw, *const c_char) -> c_int,
    read_file: unsafe extern "C" fn(Raw, *const c_char) -> c_int,
    parse_env: unsafe extern "C" fn(Raw, *const c_char) -> c_int,
    set: unsafe extern "C" fn(Raw, *const c_char, *const c_char) -> c_int,
    connect: unsafe extern "C" fn(Raw) -> c_int,
    shutdown: unsafe extern "C" fn(Raw),
    open: unsafe extern "C" fn(Raw, *const c_char, *mut Raw) -> c_int,
    close: unsafe extern "C" fn(Raw),
    made: unsafe extern "C" fn(Raw, Option<Callback>, Option<Callback>, *mut Raw) -> c_int,
    value: unsafe extern "C" fn(Raw) -> c_int,
    release: unsafe extern "C" fn(Raw),
    write: unsafe extern "C" fn(Raw, *const c_char, Raw, *const c_char, usize, u64) -> c_int,
}

impl Rados {
    fn load() -> Result<Rados, libloading::Error> {
        // SAFETY: the library may be initialised at any time. It is never unloaded, and the types are those of its C header.
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

/// All that the writes have in common.
struct Client {
    rados: Rados,
    pool: Raw,
    prefix: String,
    data: Vec<u8>,
    max_objects: u64,
    /// Writes that were begun, and that are over.
    begun: AtomicU64,
    over: AtomicU64,
    in_flight: AtomicU32,
    ends: AtomicBool,
    /// The first error, or 0.
    failed: AtomicI32,
}

/// A write of those that are in flight at a time.
struct Slot {
    client: *const Client,
    completion: AtomicPtr<c_void>,
}

impl Slot {
    /// Starts a write, unless there are to be no more.
    fn start(&self) {
        // SAFETY: the client outlives its slots' writes, which it counts.
        let client = unsafe { &*self.client };
        let number = client.begun.fetch_add(1, Relaxed);
        if client.ends.load(Relaxed) || number >= client.max_objects {
            client.in_flight.fetch_sub(1, Release);
            return;
        }
        let mut name = [0; NAME_BYTES];
        // A name that does not fit is cut before its end.
        let _ = write!(
            &mut name[..NAME_BYTES - 1],
            "{}object{number}",
            client.prefix
        );
        let rados = &client.rados;
        // SAFETY: name, data and slot are there until the library has copied them, or the write is over.
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

impl Client {
    fn fail(&self, error: c_int) {
        let _ = self.failed.compare_exchange(0, error, AcqRel, Relaxed);
        self.ends.store(true, Relaxed);
    }
}

/// The library calls this from its thread when a write is over.
extern "C" fn is_over(completion: Raw, slot: Raw) {
    // SAFETY: slots and their client are there for as long as writes are in flight.
    let (slot, client) = unsafe {
        let slot = &*slot.cast::<Slot>();
        (slot, &*slot.client)
    };
    // SAFETY: the library holds the completion while it calls.
    match unsafe { (client.rados.value)(completion) } {
        0.. => client.over.fetch_add(1, Relaxed),
        error => {
            client.fail(error);
            0
        }
    };
    slot.start();
}

/// Runs the client, and prints what it did in the words of `rados bench`.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let rados = Rados::load().context("loading librados")?;
    let checked = |value: c_int, what: &'static str| {
        ensure!(value >= 0, "{what}: {}", Error::from_raw_os_error(-value));
        Ok(())
    };
    let (mut cluster, mut pool) = (null_mut(), null_mut());
    let name = CString::new(arguments.pool.as_str())?;
    // SAFETY: texts that outlive the calls, and places for handles, which are used as they were made.
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
    let client = Client {
        rados,
        pool,
        prefix: arguments.prefix.clone(),
        data: vec![b'z'; arguments.op_bytes],
        max_objects: arguments.max_objects,
        begun: AtomicU64::new(0),
        over: AtomicU64::new(0),
        in_flight: AtomicU32::new(arguments.concurrent),
        ends: AtomicBool::new(false),
        failed: AtomicI32::new(0),
    };
    let slots: Vec<Slot> = (0..arguments.concurrent)
        .map(|_| Slot {
            client: &client,
            completion: AtomicPtr::new(null_mut()),
        })
        .collect();
    let begun = Instant::now();
    slots.iter().for_each(Slot::start);
    let length = Duration::from_secs(arguments.seconds);
    while client.in_flight.load(Acquire) > 0 {
        std::thread::sleep(LOOK);
        if begun.elapsed() >= length {
            client.ends.store(true, Relaxed);
        }
    }
    let elapsed = begun.elapsed().as_secs_f64();
    // SAFETY: nothing is in flight; the pool goes before its cluster.
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
    let writes = client.over.load(Relaxed);
    println!("{{\"total_writes_made\": {writes}, \"total_time_run\": {elapsed}}}");
    Ok(true)
}
