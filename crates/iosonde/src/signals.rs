//! Ctrl-C and SIGTERM, passed to the engine as an interrupt.

use crate::drawn_view::leave_terminal;
use crate::failure::CommandError;
use crate::last_signal;
use crate::output::is_live_terminal;
use iosonde_engine::interrupt::Interrupt;
use iosonde_study::CutShort;
use rustix::process::{getpgrp, getppid, getsid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interrupt that a signal triggers.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignal {
    /// The flag that the engine checks.
    pub(crate) interrupt: Arc<Interrupt>,
    /// Whether the process exits soon, because of the third Ctrl-C.
    is_ending: Arc<AtomicBool>,
}

impl StopSignal {
    /// Starts a thread that waits for signals.
    pub(crate) fn listen() -> anyhow::Result<StopSignal> {
        StopSignal::listen_to(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// Also handles SIGPIPE, since fio ends when the reader of its output is gone.
    pub(crate) fn listen_as_fio() -> anyhow::Result<StopSignal> {
        StopSignal::listen_to(&[SIGINT, SIGTERM, SIGHUP, SIGPIPE])
    }

    fn listen_to(signals: &[i32]) -> anyhow::Result<StopSignal> {
        let stop = StopSignal::default();
        iosonde_ceph::stop_connects_on(&stop.interrupt);
        let stops = is_live_terminal().then_some(&SIGTSTP);
        let mut signals = Signals::new(signals.iter().chain(stops))?;
        let received = stop.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let mut interrupt_count = InterruptCount::default();
                for signal in &mut signals {
                    if signal == SIGTSTP {
                        // A blocked terminal must not block this thread, as below.
                        std::thread::spawn(stop_process);
                        continue;
                    }
                    last_signal::record(signal);
                    received.interrupt.request();
                    if interrupt_count.record_signal(signal) {
                        received.record_end();
                        end_soon();
                    }
                }
            })?;
        Ok(stop)
    }

    /// Records that the process exits soon.
    pub(crate) fn record_end(&self) {
        self.is_ending.store(true, Relaxed);
    }

    /// Whether the process exits soon: processes that it has started must be killed.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    /// Returns the last signal.
    pub(crate) fn signal(&self) -> Option<i32> {
        last_signal::received_signal()
    }

    /// Fails if there was a signal.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        self.signal()
            .map_or(Ok(()), |signal| Err(CommandError::Interrupted(signal)))
    }

    /// Fails after the result is printed, if there was a signal or the result has an error.
    pub(crate) fn conclude(&self, error: Option<String>) -> Result<(), CommandError> {
        self.check()?;
        error.map_or(Ok(()), |error| Err(CommandError::Io(error)))
    }

    /// As [`StopSignal::conclude`], for a study that a failed run may have ended.
    pub(crate) fn conclude_study(
        &self,
        error: Option<CutShort>,
        failure: Option<String>,
    ) -> Result<(), CommandError> {
        self.check()?;
        match error.map(|error| (error.cause, error.message)) {
            Some((Some(cause), _)) => Err(cause.into()),
            Some((None, message)) => Err(CommandError::Io(message)),
            None => self.conclude(failure),
        }
    }
}

/// Time after `fg` in which signals belong to the stop before.
const ONE_STOP: Duration = Duration::from_millis(200);

/// Time of the last `fg`.
static CONTINUED: Mutex<Option<Instant>> = Mutex::new(None);

/// Stops the process on Ctrl-Z, after the live view is removed from the terminal. `fg` brings it
/// back. Without job control nothing could continue the process, so Ctrl-Z is ignored then, as the
/// kernel does for an orphaned process group.
fn stop_process() {
    let session = getsid(None).ok();
    let is_of_session = |parent| getsid(Some(parent)).ok() == session;
    let has_job_control = session != Some(getpgrp()) && getppid().is_some_and(is_of_session);
    if has_job_control {
        leave_terminal(|| {
            let mut continued = CONTINUED.lock().unwrap_or_else(PoisonError::into_inner);
            // A command whose storage is made for it listens twice: one Ctrl-Z stops it once.
            if continued.is_none_or(|at| at.elapsed() >= ONE_STOP) {
                let _ = signal_hook::low_level::emulate_default_handler(SIGTSTP);
                *continued = Some(Instant::now());
            }
        });
    }
}

/// Time after the note during which Ctrl-C is ignored, since a held key repeats.
const CONSIDERED: Duration = Duration::from_secs(1);
/// Time to clean up and to print leftovers before the process exits.
const LAST: Duration = Duration::from_secs(2);

/// Whether the note after the second Ctrl-C has been printed.
static IS_NOTE_PRINTED: AtomicBool = AtomicBool::new(false);

/// Counts Ctrl-C. Libraries and the kernel may wait without checking the interrupt, so the third
/// Ctrl-C ends the process. Other signals are not counted: a closed terminal sends several.
#[derive(Default)]
struct InterruptCount {
    count: u32,
    noted: Option<Instant>,
}

impl InterruptCount {
    /// Records a signal. Returns whether the process must exit.
    fn record_signal(&mut self, signal: i32) -> bool {
        self.count += u32::from(signal == SIGINT);
        match self.noted {
            _ if signal != SIGINT => false,
            None if self.count == 2 => {
                self.noted = Some(Instant::now());
                // A command whose storage is made for it listens twice.
                if IS_NOTE_PRINTED.swap(true, Relaxed) {
                    return false;
                }
                // A blocked terminal must not block this thread, which waits for the next signal.
                std::thread::spawn(|| {
                    eprintln!(
                        "note: stopping: waiting for I/Os in flight. Press Ctrl-C again to quit \
                         now without a result; created files may be left behind"
                    );
                });
                false
            }
            Some(noted) => noted.elapsed() >= CONSIDERED,
            None => false,
        }
    }
}

/// Exits after a short time, unless the process ends before.
fn end_soon() {
    std::thread::spawn(|| {
        std::thread::sleep(LAST);
        if std::io::stderr().is_terminal() {
            // Wraps lines and shows the cursor again, without the lock of stderr, which may be
            // held.
            let _ = rustix::io::write(rustix::stdio::stderr(), b"\x1b[?7h\x1b[?25h");
        }
        signal_hook::low_level::exit(128 + SIGINT)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn third_interrupt_after_pause_exits() {
        let mut held = InterruptCount::default();
        assert!(
            (0..10).all(|_| !held.record_signal(SIGINT)),
            "a key that is held down"
        );
        held.noted = held.noted.and_then(|at| at.checked_sub(CONSIDERED));
        assert!(!held.record_signal(SIGHUP) && held.record_signal(SIGINT));
        let mut gone = InterruptCount::default();
        assert!(
            ![SIGINT, SIGHUP, SIGHUP, SIGTERM]
                .map(|signal| gone.record_signal(signal))
                .contains(&true)
        );
        assert!(gone.noted.is_none());
    }
}
