//! Ctrl-C and SIGTERM, handed to the engine as a wish to stop.

use crate::failure::Failure;
use iosonde_engine::interrupt::Interrupt;
use iosonde_study::CutShort;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The wish to stop, and the signal that brought it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stop {
    /// What the engine looks at.
    pub(crate) interrupt: Arc<Interrupt>,
    signal: Arc<AtomicI32>,
}

impl Stop {
    /// Listens for signals from now on, on a thread that sleeps until one comes.
    pub(crate) fn listen() -> anyhow::Result<Stop> {
        let stop = Stop::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let heard = stop.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in &mut signals {
                    heard.signal.store(signal, Relaxed);
                    heard.interrupt.request();
                    insist(heard.interrupt.count(), signal);
                }
            })?;
        Ok(stop)
    }

    /// The last signal, if there was one.
    pub(crate) fn signal(&self) -> Option<i32> {
        match self.signal.load(Relaxed) {
            0 => None,
            signal => Some(signal),
        }
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

/// What a signal that is not the first means. Libraries and the kernel can wait for something that does not answer without heeding any
/// wish, so that the third one ends the program whatever it does.
fn insist(count: u32, signal: i32) {
    match count {
        0 | 1 => {}
        2 => eprintln!(
            "note: ending, which waits for what was asked for; a third Ctrl-C ends at once, without a result, and leaves what was made"
        ),
        _ => {
            if std::io::stderr().is_terminal() {
                // A display may have hidden the cursor.
                eprint!("\x1b[?25h");
            }
            signal_hook::low_level::exit(128 + signal)
        }
    }
}
