//! Ctrl-C and SIGTERM, handed to the engine as a wish to stop.

use crate::failure::Failure;
use iosonde_engine::interrupt::Interrupt;
use iosonde_study::CutShort;
use signal_hook::consts::{SIGHUP, SIGINT, SIGPIPE, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The last signal that asked the program to end; 0 for none. Signals are for the process, so this is, too.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The last signal that asked the program to end, if there was one.
pub(crate) fn last() -> Option<i32> {
    match SIGNAL.load(Relaxed) {
        0 => None,
        signal => Some(signal),
    }
}

/// The wish to stop that a signal brings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// What the engine looks at.
    pub(crate) interrupt: Arc<Interrupt>,
}

impl Stop {
    /// Listens for signals from now on, on a thread that sleeps until one comes.
    pub(crate) fn listen() -> anyhow::Result<Stop> {
        Stop::listen_to(&[SIGINT, SIGTERM, SIGHUP])
    }

    /// The same as fio, which ends when nobody reads its output any more.
    pub(crate) fn listen_as_fio() -> anyhow::Result<Stop> {
        Stop::listen_to(&[SIGINT, SIGTERM, SIGHUP, SIGPIPE])
    }

    fn listen_to(signals: &[i32]) -> anyhow::Result<Stop> {
        let stop = Stop::default();
        let mut signals = Signals::new(signals)?;
        let heard = stop.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                let mut insistence = Insistence::default();
                for signal in &mut signals {
                    SIGNAL.store(signal, Relaxed);
                    heard.interrupt.request();
                    if insistence.hear(signal) {
                        end_soon();
                    }
                }
            })?;
        Ok(stop)
    }

    /// The last signal, if there was one.
    pub(crate) fn signal(&self) -> Option<i32> {
        last()
    }

    /// Fails if there was a signal.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.signal()
            .map_or(Ok(()), |signal| Err(Failure::Interrupted(signal)))
    }

    /// How a command ends whose result has been printed: by a signal, by the error that is in the result, or well.
    pub(crate) fn conclude(&self, error: Option<String>) -> Result<(), Failure> {
        self.check()?;
        error.map_or(Ok(()), |error| Err(Failure::Io(error)))
    }

    /// The same for a study that a run without a result may have ended.
    pub(crate) fn conclude_study(
        &self,
        error: Option<CutShort>,
        failure: Option<String>,
    ) -> Result<(), Failure> {
        self.check()?;
        match error.map(|error| (error.cause, error.message)) {
            Some((Some(cause), _)) => Err(cause.into()),
            Some((None, message)) => Err(Failure::Io(message)),
            None => self.conclude(failure),
        }
    }
}

/// From the note at the second Ctrl-C on, it takes so long until another one means it: keys repeat.
const CONSIDERED: Duration = Duration::from_secs(1);
/// So long whatever goes on has to end by itself, and to say what is left, once somebody insists.
const LAST: Duration = Duration::from_secs(2);

/// Who presses Ctrl-C again and again. Libraries and the kernel can wait for something that does not answer without heeding any
/// wish, so that the third one ends the program whatever it does. Other signals may come together, of one terminal that is gone.
#[derive(Default)]
struct Insistence {
    count: u32,
    noted: Option<Instant>,
}

impl Insistence {
    /// Takes note of a signal. Whether the program is to end.
    fn hear(&mut self, signal: i32) -> bool {
        self.count += u32::from(signal == SIGINT);
        match self.noted {
            _ if signal != SIGINT => false,
            None if self.count == 2 => {
                self.noted = Some(Instant::now());
                // A terminal that takes no more must not keep this thread from hearing the next one.
                std::thread::spawn(|| {
                    let _ = writeln!(
                        std::io::stderr(),
                        "note: ending, which waits for what was asked for; a third Ctrl-C ends it without that, and without a result, \
                         and leaves what was made"
                    );
                });
                false
            }
            Some(noted) => noted.elapsed() >= CONSIDERED,
            None => false,
        }
    }
}

/// Ends the program in a moment, if it has not ended by itself.
fn end_soon() {
    std::thread::spawn(|| {
        std::thread::sleep(LAST);
        if std::io::stderr().is_terminal() {
            // A display may have hidden the cursor; whoever holds the lock of standard error may hold it for ever.
            let _ = rustix::io::write(rustix::stdio::stderr(), b"\x1b[?25h");
        }
        signal_hook::low_level::exit(128 + SIGINT)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_insists_ends_the_program() {
        let mut held = Insistence::default();
        assert!(
            (0..10).all(|_| !held.hear(SIGINT)),
            "a key that is held down"
        );
        held.noted = held.noted.and_then(|at| at.checked_sub(CONSIDERED));
        assert!(!held.hear(SIGHUP) && held.hear(SIGINT));
        let mut gone = Insistence::default();
        assert!(
            ![SIGINT, SIGHUP, SIGHUP, SIGTERM]
                .map(|signal| gone.hear(signal))
                .contains(&true)
        );
        assert!(gone.noted.is_none());
    }
}
