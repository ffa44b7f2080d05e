//! Watches on objects, by which other clients see that this one lives.
//!
//! A watch lasts as long as its client, and librados renews it after short interruptions. The
//! cluster ends it 30 s after the client has ended or has lost the connection
//! (`osd_client_watch_timeout`). In the second case, a thread of this process watches again.

use super::io_ctx::IoCtx;
use super::pending_ios::LibraryPtr;
use super::rados::{LIBRARY, c_string, checked, functions, load_library};
use crate::error::{CephAction, CephError};
use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Time between two attempts to watch again.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);
/// Maximum wait for the thread of a watch that is dropped. A call in progress cannot be cancelled.
const RELEASE_MAX: Duration = Duration::from_secs(1);
/// Time between two checks whether this thread has ended.
const RELEASE_POLL: Duration = Duration::from_millis(5);

type NotifyCallback = extern "C" fn(*mut c_void, u64, u64, u64, *mut c_void, usize);
type ErrorCallback = extern "C" fn(*mut c_void, u64, c_int);

functions! {
    /// Functions of librados for watches.
    WatchFunctions {
        watch: unsafe extern "C" fn(
            LibraryPtr, *const c_char, *mut u64, NotifyCallback, ErrorCallback, *mut c_void,
        ) -> c_int
            = b"rados_watch2",
        notify: unsafe extern "C" fn(
            LibraryPtr, *const c_char, *const c_char, c_int, u64, *mut *mut c_char, *mut usize,
        ) -> c_int
            = b"rados_notify2",
    }
}

impl WatchFunctions {
    fn loaded() -> Result<&'static WatchFunctions, CephError> {
        static LOADED: OnceLock<Result<WatchFunctions, CephError>> = OnceLock::new();
        let find = |library: &Library| WatchFunctions::load_from(library);
        let loaded = LOADED.get_or_init(|| load_library(LIBRARY, find));
        loaded.as_ref().map_err(Clone::clone)
    }
}

/// Callback on a notification. It is not acknowledged: the notifier learns from its timeout that
/// the watcher lives.
extern "C" fn ignore_notification(
    _: *mut c_void,
    _notification: u64,
    _watch: u64,
    _notifier: u64,
    _data: *mut c_void,
    _length: usize,
) {
}

/// Reason for the thread of a watch to wake up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WatchEvent {
    /// The cluster has ended the watch.
    Broken,
    /// The watch is not needed any more.
    Released,
}

/// Callback on an error of a watch, e.g. if the cluster ended it. `events` are those of the watch.
extern "C" fn report_error(events: *mut c_void, _watch: u64, _error: c_int) {
    // SAFETY: `IoCtx::watch` passed a sender that is never freed. A sender may be shared.
    let events = unsafe { &*events.cast::<Sender<WatchEvent>>() };
    // The thread may have ended with the watch.
    let _ = events.send(WatchEvent::Broken);
}

/// A watch on an object. It keeps its client connected.
///
/// It is never ended on its own: `rados_unwatch2` accesses the state of the watch, which librados
/// frees when the pool is deleted.
#[derive(Debug)]
pub(crate) struct RadosWatch {
    /// Dropped after the thread has dropped its own, so that the owner closes the client.
    _io: IoCtx,
    events: &'static Sender<WatchEvent>,
    thread: JoinHandle<()>,
}

impl Drop for RadosWatch {
    fn drop(&mut self) {
        let _ = self.events.send(WatchEvent::Released);
        let deadline = Instant::now() + RELEASE_MAX;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(RELEASE_POLL);
        }
    }
}

/// Watches an object, and reports to `events` when the cluster ends the watch.
fn begin_watch(
    io: &IoCtx,
    object: &CStr,
    events: &'static Sender<WatchEvent>,
) -> Result<(), CephError> {
    let functions = WatchFunctions::loaded()?;
    let mut id = 0;
    // SAFETY: a string that outlives the call, a place for the number, a callback that uses none of
    // its arguments, and one that only uses the sender, which lives as long as the process.
    let watched = unsafe {
        (functions.watch)(
            io.raw().1,
            object.as_ptr(),
            &mut id,
            ignore_notification,
            report_error,
            std::ptr::from_ref(events).cast_mut().cast(),
        )
    };
    let action = || CephAction::WriteObject(object.to_string_lossy().into_owned());
    checked(watched, action).map(|_| ())
}

/// Watches again whenever a watch is broken, until it is released or `begin` finds no object.
fn renew(received: &Receiver<WatchEvent>, mut begin: impl FnMut() -> Result<(), CephError>) {
    while let Ok(WatchEvent::Broken) = received.recv() {
        while let Err(error) = begin() {
            if error.errno() == Some(libc::ENOENT) {
                return;
            }
            match received.recv_timeout(RENEWAL_PAUSE) {
                Ok(WatchEvent::Broken) | Err(RecvTimeoutError::Timeout) => {}
                Ok(WatchEvent::Released) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

impl IoCtx {
    /// Watches an object, which must exist.
    pub(crate) fn watch(&self, object: &str) -> Result<RadosWatch, CephError> {
        let name = c_string(object)?;
        let (sender, received) = channel();
        // Never freed: librados may report an error at any time.
        let events: &'static Sender<WatchEvent> = Box::leak(Box::new(sender));
        begin_watch(self, &name, events)?;
        let io = self.clone();
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let started = thread.spawn(move || renew(&received, || begin_watch(&io, &name, events)));
        let thread = started.map_err(|error| CephError::Call {
            action: CephAction::WriteObject(object.to_owned()),
            errno: error.raw_os_error().unwrap_or(libc::EAGAIN),
            said: String::new(),
        })?;
        Ok(RadosWatch {
            _io: self.clone(),
            events,
            thread,
        })
    }

    /// Whether a client watches an object. `None` if the object does not exist. Watchers of
    /// iosonde do not answer, so the call takes the whole `timeout` if there are any.
    pub(crate) fn has_watchers(
        &self,
        object: &str,
        timeout: Duration,
    ) -> Result<Option<bool>, CephError> {
        // Unlike a notification, this call times out if the object's OSDs do not answer.
        if self.stat(object)?.is_none() {
            return Ok(None);
        }
        let functions = WatchFunctions::loaded()?;
        let name = c_string(object)?;
        let timeout_ms = timeout.as_millis() as u64;
        let (rados, raw) = self.raw();
        let (mut reply, mut length) = (null_mut(), 0);
        // SAFETY: a string that outlives the call, no data to send, and places for the reply, which
        // the library allocates.
        let notified = unsafe {
            (functions.notify)(
                raw,
                name.as_ptr(),
                null(),
                0,
                timeout_ms,
                &mut reply,
                &mut length,
            )
        };
        let is_watched = if reply.is_null() {
            false
        } else {
            // SAFETY: the library allocated this many bytes, and no other code has them.
            let bytes = unsafe { std::slice::from_raw_parts(reply.cast::<u8>(), length) };
            let is_watched = names_watchers(bytes);
            // SAFETY: as above, and the buffer is not used afterwards.
            unsafe { (rados.buffer_free)(reply) };
            is_watched
        };
        match notified {
            _ if is_watched => Ok(Some(true)),
            missing if missing == -libc::ENOENT => Ok(None),
            value => {
                checked(value, || CephAction::InspectObject(object.to_owned())).map(|_| Some(false))
            }
        }
    }
}

/// Whether the reply to a notification names watchers: it consists of the number of watchers that
/// answered, their answers, the number of those that did not, and their numbers.
fn names_watchers(reply: &[u8]) -> bool {
    reply.iter().any(|byte| *byte != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn broken_watch_is_renewed_until_it_is_released() {
        let (sender, received) = channel();
        let events: &'static Sender<WatchEvent> = Box::leak(Box::new(sender));
        let attempts = Cell::new(0);
        let call_failed = |errno| CephError::Call {
            action: CephAction::WriteObject("owner".to_owned()),
            errno,
            said: String::new(),
        };
        let argument = std::ptr::from_ref(events).cast_mut().cast();
        report_error(argument, 7, -libc::ENOTCONN);
        report_error(argument, 8, -libc::ENOTCONN);
        events.send(WatchEvent::Released).unwrap();
        renew(&received, || {
            attempts.set(attempts.get() + 1);
            Ok(())
        });
        assert_eq!(attempts.get(), 2);
        // An error is followed by another attempt, unless the object is gone.
        report_error(argument, 9, -libc::ENOTCONN);
        report_error(argument, 9, -libc::ENOTCONN);
        renew(&received, || {
            attempts.set(attempts.get() + 1);
            Err(match attempts.get() {
                3 => call_failed(libc::ETIMEDOUT),
                _ => call_failed(libc::ENOENT),
            })
        });
        assert_eq!(attempts.get(), 4);
    }

    #[test]
    fn reply_without_watchers_has_two_zero_counts() {
        assert!(!names_watchers(&[0; 8]));
        assert!(!names_watchers(&[]));
        let mut timed_out = vec![0, 0, 0, 0, 1, 0, 0, 0];
        timed_out.extend(4123u64.to_le_bytes());
        timed_out.extend(94_000u64.to_le_bytes());
        assert!(names_watchers(&timed_out));
    }
}
