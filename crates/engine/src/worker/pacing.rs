//! Start times of I/Os: rates and think times.

use iosonde_job::plan::{Direction, Job, PerDirection, ReadWriteMode, ThinkTime};
use iosonde_workload::rng::Rng;

/// Schedule of one direction.
#[derive(Debug, Clone)]
struct RateClock {
    /// Bytes or I/Os per second.
    per_second: u64,
    by_bytes: bool,
    poisson: bool,
    /// Start of the schedule; think times shift it if they do not count (`rate_ignore_thinktime`).
    base_ns: u64,
    /// Units issued since `base_ns`.
    issued: u64,
    next_ns: u64,
}

impl RateClock {
    fn issue(&mut self, bytes: u64, rng: &mut Rng) {
        let units = if self.by_bytes { bytes } else { 1 };
        if self.poisson {
            let mean_ns = units as f64 * 1e9 / self.per_second as f64;
            // 1 - u lies in (0, 1], so the logarithm is finite.
            let gap_ns = -libm::log(1.0 - rng.unit()) * mean_ns;
            self.next_ns += gap_ns.min(1e15) as u64;
        } else {
            self.issued += units;
            let elapsed_ns = u128::from(self.issued) * 1_000_000_000 / u128::from(self.per_second);
            let next_ns = self.base_ns + elapsed_ns as u64;
            assert!(
                next_ns >= self.next_ns,
                "a rate never starts an I/O before an earlier one"
            );
            self.next_ns = next_ns;
        }
    }

    fn shift(&mut self, ns: u64) {
        self.base_ns += ns;
        self.next_ns += ns;
    }
}

#[derive(Debug, Clone)]
struct Thinking {
    rule: ThinkTime,
    /// Blocks since the last pause became due.
    blocks: u32,
    /// Time at which I/O resumed after the last pause.
    since_ns: u64,
    due: bool,
}

impl Thinking {
    fn is_enough(&self) -> bool {
        self.blocks >= self.rule.blocks.max(1)
    }

    fn count(&mut self, now_ns: u64) {
        self.blocks = self.blocks.saturating_add(1);
        if self.due {
            return;
        }
        // As in fio, the earlier of the two limits applies.
        let iotime_ns = self.rule.iotime_ns;
        let long = iotime_ns > 0 && now_ns.saturating_sub(self.since_ns) >= iotime_ns;
        if long || self.is_enough() {
            self.make_due();
        }
    }

    fn make_due(&mut self) {
        self.due = true;
        self.blocks = 0;
    }
}

/// Determines when the next I/O of a worker may start.
#[derive(Debug, Clone)]
pub(crate) struct Pacer {
    rates: PerDirection<Option<RateClock>>,
    /// Directions with a rate of their own.
    paced: Vec<Direction>,
    /// The other direction of a mix in which one direction has a rate.
    unpaced: Option<Direction>,
    thinking: Option<Thinking>,
    ignore_thinktime: bool,
    never_waits: bool,
    rng: Rng,
}

impl Pacer {
    /// Creates a job's schedule from `start_ns` on. `rng` draws the gaps of `rate_process=poisson`.
    pub(crate) fn new(job: &Job, start_ns: u64, rng: Rng) -> Pacer {
        let schedule = &job.schedule;
        let rates = PerDirection::from_fn(|direction| {
            if !job.workload.rw.has(direction) {
                return None;
            }
            let bytes = schedule.rate_bytes[direction].map(|rate| (rate, true));
            let (per_second, by_bytes) =
                bytes.or(schedule.rate_iops[direction].map(|rate| (rate, false)))?;
            let poisson = schedule.rate_poisson;
            Some(RateClock {
                per_second: per_second.max(1),
                by_bytes,
                poisson,
                base_ns: start_ns,
                issued: 0,
                next_ns: start_ns,
            })
        });
        let paced: Vec<_> = Direction::ALL
            .into_iter()
            .filter(|direction| rates[*direction].is_some())
            .collect();
        let workload = &job.workload;
        let mixed = workload.rw.mode == ReadWriteMode::ReadWrite
            && (1..100).contains(&workload.rwmix_read_percent);
        let unpaced = match paced[..] {
            [Direction::Read] if mixed => Some(Direction::Write),
            [Direction::Write] if mixed => Some(Direction::Read),
            _ => None,
        };
        let thinking = schedule
            .thinktime
            .filter(|rule| rule.pause_ns > 0)
            .map(|rule| Thinking {
                rule,
                blocks: 0,
                since_ns: start_ns,
                due: false,
            });
        let never_waits = paced.is_empty() && thinking.is_none();
        Pacer {
            rates,
            paced,
            unpaced,
            thinking,
            ignore_thinktime: schedule.rate_ignore_thinktime,
            never_waits,
            rng,
        }
    }

    /// Whether no I/O ever has to wait.
    #[inline(always)]
    pub(crate) fn never_waits(&self) -> bool {
        self.never_waits
    }

    /// Whether a rate determines when I/Os are due.
    pub(crate) fn has_rate(&self) -> bool {
        self.rates.iter().any(|(_, rate)| rate.is_some())
    }

    /// Returns the next I/O's direction; `None` leaves it to the mix. Of several rates, the
    /// earliest is next. A direction without a rate issues I/O while the one with a rate waits.
    pub(crate) fn next_direction(&self, now_ns: u64) -> Option<Direction> {
        if self.paced.len() < 2 {
            let waits = self.start_ns(*self.paced.first()?)? > now_ns;
            return self.unpaced.filter(|_| waits);
        }
        self.paced
            .iter()
            .copied()
            .min_by_key(|direction| self.start_ns(*direction))
    }

    /// Returns the intended start of this direction's next I/O; `None` if it has no rate.
    pub(crate) fn start_ns(&self, direction: Direction) -> Option<u64> {
        self.rates[direction].as_ref().map(|clock| clock.next_ns)
    }

    /// Counts a prepared I/O.
    pub(crate) fn issued(&mut self, direction: Direction, bytes: u64, now_ns: u64) {
        if let Some(clock) = &mut self.rates[direction] {
            clock.issue(bytes, &mut self.rng);
        }
        match &mut self.thinking {
            Some(thinking) if thinking.rule.count_issued => thinking.count(now_ns),
            // As in fio, blocks completed while a pause was awaited count for the next one.
            Some(thinking) if thinking.is_enough() => thinking.make_due(),
            _ => {}
        }
    }

    /// Counts a completed I/O.
    pub(crate) fn completed(&mut self, now_ns: u64) {
        match &mut self.thinking {
            Some(thinking) if !thinking.rule.count_issued => thinking.count(now_ns),
            _ => {}
        }
    }

    /// Whether a pause is due: no I/O may start, and the pause begins once none is in flight.
    #[inline]
    pub(crate) fn pause_due(&self) -> bool {
        self.thinking.as_ref().is_some_and(|thinking| thinking.due)
    }

    /// Begins the pause that is due. Returns the end of spinning and the end of the pause.
    pub(crate) fn pause(&mut self, now_ns: u64) -> (u64, u64) {
        let Some(thinking) = &mut self.thinking else {
            return (now_ns, now_ns);
        };
        thinking.due = false;
        let pause_ns = thinking.rule.pause_ns;
        let end_ns = now_ns + pause_ns;
        thinking.since_ns = end_ns;
        if self.ignore_thinktime {
            for direction in &self.paced {
                if let Some(clock) = &mut self.rates[*direction] {
                    clock.shift(pause_ns);
                }
            }
        }
        let spin_ns = self
            .thinking
            .as_ref()
            .map_or(0, |thinking| thinking.rule.spin_ns);
        (now_ns + spin_ns.min(pause_ns), end_ns)
    }
}
