//! One pod of several: its connection, and what it has told.

use crate::clock::Offset;
use crate::runner::MadePod;
use crate::session::{SILENCE, refused};
use crate::transport::Connection;
use iosonde_result::interval::Interval;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::RunError;
use iosonde_result::wire::{Message, ProgressReport};
use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

/// One pod, and what it has told of the current run.
pub(super) struct Link {
    pub(super) name: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) scratch: Option<String>,
    pub(super) connection: Connection,
    pub(super) offset: Option<Offset>,
    /// The start that it was told, on its own clock.
    pub(super) start_ns: Option<u64>,
    pub(super) have: usize,
    pub(super) last_heard: Instant,
    pub(super) is_ready: bool,
    pub(super) is_cut_short: bool,
    pub(super) progress: Option<ProgressReport>,
    pub(super) intervals: VecDeque<Interval>,
    pub(super) clock_ns: Option<u64>,
    pub(super) result: Option<RunResult>,
}

impl Link {
    pub(super) fn new(pod: MadePod, is_block: bool) -> Link {
        Link {
            name: pod.name,
            labels: pod.labels,
            scratch: (!is_block).then_some(pod.scratch),
            connection: pod.connection,
            offset: None,
            start_ns: None,
            last_heard: Instant::now(),
            have: 0,
            is_ready: false,
            is_cut_short: false,
            progress: None,
            intervals: VecDeque::new(),
            clock_ns: None,
            result: None,
        }
    }

    /// Nothing is known of the run that begins.
    pub(super) fn begin(&mut self) {
        self.start_ns = None;
        self.have = 0;
        (self.is_ready, self.is_cut_short) = (false, false);
        self.progress = None;
        self.intervals.clear();
        self.result = None;
    }

    /// Whether a pod that measures has said nothing for so long that its connection may have no other end.
    pub(super) fn is_silent(&self) -> bool {
        self.start_ns.is_some() && self.result.is_none() && self.last_heard.elapsed() > SILENCE
    }

    pub(super) fn hear(
        &mut self,
        message: Message,
        observer: &mut dyn Observer,
    ) -> Result<(), RunError> {
        self.last_heard = Instant::now();
        self.have += usize::from(matches!(
            message,
            Message::Ready
                | Message::Interval(_)
                | Message::Event(_)
                | Message::Ending
                | Message::Done(_)
        ));
        match message {
            Message::Ready => self.is_ready = true,
            Message::Clock { now_ns } => self.clock_ns = Some(now_ns),
            Message::Progress(progress) => self.progress = Some(progress),
            Message::Interval(interval) => self.intervals.push_back(*interval),
            Message::Event(event) => observer.event(&event),
            Message::Ending => self.is_cut_short = true,
            Message::Done(Ok(result)) if !self.is_cut_short => self.result = Some(*result),
            Message::Done(Ok(_)) => {
                return Err(RunError::Lost {
                    what: format!("the pod {}", self.name),
                    cause: "it was told to end".to_owned(),
                    remedy: "see `kubectl describe pod`, and run it again".to_owned(),
                });
            }
            Message::Done(Err(error)) => return Err(error),
            Message::Refused(problem) => return Err(refused(problem)),
            Message::Hello { .. } | Message::Place(_) => {}
        }
        Ok(())
    }

    pub(super) fn node(&self) -> String {
        self.labels.get("node").cloned().unwrap_or_default()
    }
}
