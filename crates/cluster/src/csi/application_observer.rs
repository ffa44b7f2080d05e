//! [`ApplicationObserver`]: follows the application, collects the services that are measured beside
//! it, and assigns the application's latencies to the time before, during and after each.

use super::application_link::{ServiceMessage, ServiceSwitches};
use iosonde_job::Plan;
use iosonde_result::data_service::{LatencyWindows, ServiceMeasurements, ServiceRecord};
use iosonde_result::histogram::Histogram;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, Observer, RunProgress};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Length of the application's intervals, in nanoseconds.
const INTERVAL_NS: u64 = 250_000_000;
/// Time after a service in which the application's delayed I/Os complete. It counts as the service.
const DELAYED_NS: u64 = 500_000_000;

/// The application's latencies in a slice of time, in nanoseconds since the begin of the session.
struct LatencySlice {
    begun_ns: u64,
    ended_ns: u64,
    latency: Histogram,
}

/// The observer of the application's run.
pub(super) struct ApplicationObserver<'o> {
    messages: Receiver<ServiceMessage>,
    switches: ServiceSwitches,
    show: &'o mut dyn FnMut(&str),
    begun: Instant,
    slices: Vec<LatencySlice>,
    /// Records with their begin and their end.
    records: Vec<(ServiceRecord, u64, u64)>,
    notes: Vec<String>,
    is_complete: bool,
}

impl<'o> ApplicationObserver<'o> {
    pub(super) fn new(
        messages: Receiver<ServiceMessage>,
        switches: ServiceSwitches,
        show: &'o mut dyn FnMut(&str),
    ) -> ApplicationObserver<'o> {
        ApplicationObserver {
            messages,
            switches,
            show,
            begun: Instant::now(),
            slices: Vec::new(),
            records: Vec::new(),
            notes: Vec::new(),
            is_complete: false,
        }
    }

    /// Whether all services were measured.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Takes the messages of the services that have arrived.
    pub(super) fn read_messages(&mut self) {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                ServiceMessage::Step(step) => (self.show)(&step),
                ServiceMessage::Note(note) => {
                    if !self.notes.contains(&note) {
                        self.notes.push(note);
                    }
                }
                ServiceMessage::Record {
                    record,
                    begun,
                    ended,
                } => {
                    let (begun_ns, ended_ns) = (self.since_ns(begun), self.since_ns(ended));
                    self.records.push((*record, begun_ns, ended_ns));
                }
                ServiceMessage::Complete => self.is_complete = true,
            }
        }
    }

    fn since_ns(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.begun);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the records with the application's latencies. `window` is the time before and after
    /// a service.
    pub(super) fn into_measurements(self, window: Duration) -> ServiceMeasurements {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        let slices = self.slices;
        let with_latencies = |(mut record, begun_ns, ended_ns): (ServiceRecord, u64, u64)| {
            let windows = assign(&slices, (begun_ns, ended_ns), window_ns);
            let is_measured = [&windows.before, &windows.during, &windows.after]
                .iter()
                .any(|latency| latency.total() > 0);
            record.application = is_measured.then_some(windows);
            record
        };
        ServiceMeasurements {
            records: self.records.into_iter().map(with_latencies).collect(),
            notes: self.notes,
            ..ServiceMeasurements::default()
        }
    }
}

impl Observer for ApplicationObserver<'_> {
    fn progress(&mut self, _: &RunProgress<'_>) -> Control {
        self.read_messages();
        match self.is_complete {
            true => Control::Stop,
            false => Control::Continue,
        }
    }

    fn interval_ns(&self, _: &Plan) -> u64 {
        INTERVAL_NS
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        if interval.ramp {
            return Control::Continue;
        }
        self.switches.set_running();
        let ended_ns = self.since_ns(Instant::now());
        let mut latency = interval.latency.clone();
        if let Some(sync) = &interval.sync_latency {
            latency.merge(sync);
        }
        self.slices.push(LatencySlice {
            begun_ns: ended_ns.saturating_sub(interval.length_ns),
            ended_ns,
            latency,
        });
        Control::Continue
    }
}

/// Adds up the slices before, during and after a service. A slice on a border belongs to the
/// service.
fn assign(
    slices: &[LatencySlice],
    (begun_ns, ended_ns): (u64, u64),
    window_ns: u64,
) -> LatencyWindows {
    debug_assert!(begun_ns <= ended_ns);
    let delayed_ns = ended_ns.saturating_add(DELAYED_NS);
    let mut windows = LatencyWindows::default();
    for slice in slices {
        let of = if slice.ended_ns <= begun_ns {
            (slice.begun_ns >= begun_ns.saturating_sub(window_ns)).then_some(&mut windows.before)
        } else if slice.begun_ns < delayed_ns {
            Some(&mut windows.during)
        } else {
            let last_ns = ended_ns.saturating_add(window_ns);
            (slice.ended_ns <= last_ns).then_some(&mut windows.after)
        };
        if let Some(of) = of {
            of.merge(&slice.latency);
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// A slice of half a second that ends here, with one I/O of this latency.
    fn slice(ended_ns: u64, latency_ns: u64) -> LatencySlice {
        let mut latency = Histogram::default();
        latency.record(latency_ns);
        LatencySlice {
            begun_ns: ended_ns - S / 2,
            ended_ns,
            latency,
        }
    }

    #[test]
    fn slices_are_assigned_to_the_time_before_during_and_after() {
        // The service lasts from 10 s to 12 s, with windows of 2 s.
        let slices = [
            slice(7 * S, 1),
            slice(9 * S, 2),
            slice(10 * S, 3),
            slice(10 * S + S / 4, 4),
            slice(11 * S, 5),
            slice(12 * S + S / 2, 6),
            slice(13 * S + S / 2, 7),
            slice(20 * S, 8),
        ];
        let windows = assign(&slices, (10 * S, 12 * S), 2 * S);
        let totals = [&windows.before, &windows.during, &windows.after].map(Histogram::total);
        assert_eq!(totals, [2, 3, 1]);
        assert_eq!(windows.after.percentile(50.0), Some(7));
    }

    #[test]
    fn stalled_application_has_no_latency_during_the_service_but_after() {
        let slices = [slice(9 * S, 2), slice(13 * S + S / 2, 7)];
        let windows = assign(&slices, (10 * S, 12 * S), 2 * S);
        assert_eq!(windows.during.percentile(99.0), None);
        assert_eq!(windows.after.total(), 1);
    }
}
