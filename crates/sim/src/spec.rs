//! Parameters of a simulated device, and the rates that follow from them by arithmetic.

use super::service_time::ServiceTime;
use iosonde_job::plan::{Direction, PerDirection};

/// A simulated device. [`SimSpec::parse`] reads it from text; `docs/sim.md` lists the keys.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSpec {
    /// Root of all random numbers of the device.
    pub seed: u64,
    /// Number of the run within a study. Each run draws its own random numbers.
    pub run: u64,
    /// Size in bytes; `None` is unlimited. Past the end, writes get ENOSPC and reads get 0 bytes.
    pub capacity_bytes: Option<u64>,
    /// Service times of reads, writes and trims.
    pub service: PerDirection<ServiceTime>,
    /// Service time of a flush.
    pub flush: ServiceTime,
    /// Transfer rate of one server in bytes per second; `None` takes no time.
    pub server_bw: PerDirection<Option<u64>>,
    /// Members, servers and stripes.
    pub layout: ServerLayout,
    /// Positioning time of a head.
    pub positioning: Positioning,
    /// Bytes per second of the link that all I/Os share; `None` is unlimited.
    pub link_bw: Option<u64>,
    /// Latency added to each I/O, outside all queues.
    pub delay: ServiceTime,
    /// Minimum time between two I/Os of one worker, in nanoseconds.
    pub worker_ns: u64,
    /// Minimum time between two writes to one file, in nanoseconds.
    pub lock_ns: u64,
    /// Rate limits.
    pub caps: RateCaps,
    /// Cache in front of the device.
    pub cache: CacheSpec,
    /// Write buffer of the device, which a flush empties.
    pub buffer: Buffer,
    /// Stalls.
    pub stalls: DeviceStalls,
    /// Changes of speed over time.
    pub speed: Speed,
    /// Errors and short transfers.
    pub faults: Faults,
    /// `None`: contents are not kept.
    pub store: Option<StoreFaults>,
}

/// The servers, and the distribution of I/Os over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLayout {
    /// Members (disks of an array, nodes of a cluster), each with its own queue. At least 1.
    pub members: u32,
    /// Servers of each member. At least 1.
    pub parallel: u32,
    /// Contiguous bytes on one member.
    pub stripe_bytes: u64,
    /// Whether a hash places the stripes; otherwise they go round-robin.
    pub hashed: bool,
    /// Number of members that each write goes to. At least 1, at most `members`.
    pub replicas: u32,
}

/// Positioning time of a head. An I/O at the end of the last one needs none. Any other I/O needs a
/// seek and a uniform part of a rotation. The seek takes `track_ns`, plus `sqrt(distance / span)`
/// times the difference between `stroke_ns` and `track_ns`.
///
/// The head reorders at most `queue` of the `n` waiting I/Os. Reordering multiplies the positioning
/// time by `min(n, queue)` to the power `-reorder`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Positioning {
    /// Seek to the next track, in nanoseconds.
    pub track_ns: u64,
    /// Seek over the whole span, in nanoseconds.
    pub stroke_ns: u64,
    /// One rotation in nanoseconds.
    pub rotation_ns: u64,
    /// Distance in bytes that takes `stroke_ns`.
    pub span_bytes: u64,
    /// Exponent of the gain by reordering; 0 is no gain.
    pub reorder: f64,
    /// Maximum number of I/Os considered for reordering.
    pub queue: u32,
}

/// One rate limit: a token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cap {
    /// Tokens per second.
    pub per_second: f64,
    /// Tokens saved while idle; the bucket starts full.
    pub burst: f64,
    /// Tokens per second while the burst lasts; `None` is unlimited.
    pub peak: Option<f64>,
}

impl Cap {
    /// A cap without burst.
    pub const fn at(per_second: f64) -> Cap {
        Cap {
            per_second,
            burst: 0.0,
            peak: None,
        }
    }
}

/// All rate limits. Trims count as writes and move no bytes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateCaps {
    /// I/Os of all directions.
    pub iops: Option<Cap>,
    /// Bytes of all directions.
    pub bw: Option<Cap>,
    /// Reads.
    pub read_iops: Option<Cap>,
    /// Writes.
    pub write_iops: Option<Cap>,
    /// Bytes read.
    pub read_bw: Option<Cap>,
    /// Bytes written.
    pub write_bw: Option<Cap>,
    /// An I/O counts as one for each `unit_bytes` or part of it; `None` counts each I/O as one.
    pub unit_bytes: Option<u64>,
    /// I/Os complete in batches at multiples of this time; 0 completes each when it has its tokens.
    pub slice_ns: u64,
}

impl RateCaps {
    /// The time when an I/O completes that has its tokens at `granted_ns`.
    pub(super) fn let_through_ns(&self, granted_ns: f64) -> f64 {
        match self.slice_ns {
            0 => granted_ns,
            slice_ns => (granted_ns / slice_ns as f64).ceil() * slice_ns as f64,
        }
    }

    /// The caps on I/Os and on bytes that apply to a direction.
    pub(crate) fn select_caps(&self, direction: Direction) -> ([Option<Cap>; 2], [Option<Cap>; 2]) {
        match direction {
            Direction::Read => ([self.iops, self.read_iops], [self.bw, self.read_bw]),
            Direction::Write => ([self.iops, self.write_iops], [self.bw, self.write_bw]),
            Direction::Trim => ([self.iops, self.write_iops], [None, None]),
        }
    }

    /// Number of I/Os that one I/O of `bytes` counts as.
    pub fn units(&self, bytes: u64) -> u64 {
        self.unit_bytes
            .map_or(1, |unit| bytes.div_ceil(unit).max(1))
    }
}

/// An LRU cache of blocks in front of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheSpec {
    /// Size in bytes; 0 is no cache.
    pub bytes: u64,
    /// Block size in bytes.
    pub block_bytes: u64,
    /// Latency of a hit and of an accepted write, in nanoseconds.
    pub hit_ns: u64,
    /// Whether direct I/O uses the cache: true for a controller's cache, false for a page cache.
    pub direct: bool,
    /// Maximum of bytes that wait for writeback; 0 writes through.
    pub dirty_bytes: u64,
    /// Writeback rate in bytes per second.
    pub writeback_bw: u64,
}

/// The write buffer of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Buffer {
    /// Maximum of bytes in the buffer at a flush.
    pub bytes: u64,
    /// Bytes per second that a flush writes; 0 takes no time.
    pub flush_bw: u64,
}

/// Stalls: pauses in which no service begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceStalls {
    /// Length of a stall in nanoseconds.
    pub length_ns: u64,
    /// Bytes written from one stall to the next; 0 is never.
    pub every_bytes: u64,
    /// A stall begins at each multiple of this time; 0 is never.
    pub period_ns: u64,
}

/// Changes of speed. Service times, link and caps are scaled by the same factor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Speed {
    /// Standard deviation of the factor from period to period.
    pub noise: f64,
    /// Autocorrelation of the factor from one period to the next.
    pub noise_rho: f64,
    /// Length of a period in nanoseconds.
    pub noise_period_ns: u64,
    /// Linear change of the factor per minute.
    pub drift_per_minute: f64,
    /// Speed of writes on a fresh device, as a multiple of the steady speed.
    pub fresh: f64,
    /// Bytes written until the gain has shrunk to 1/e.
    pub fresh_bytes: u64,
}

impl Speed {
    /// A constant speed.
    pub const STEADY: Speed = Speed {
        noise: 0.0,
        noise_rho: 0.0,
        noise_period_ns: 1_000_000_000,
        drift_per_minute: 0.0,
        fresh: 1.0,
        fresh_bytes: 1 << 30,
    };
}

/// A fault that fails I/Os with an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Failing<T> {
    /// The I/Os that fail.
    pub what: T,
    /// Error number of the failure.
    pub errno: i32,
}

/// Injected faults.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Share of reads, writes and trims that fail.
    pub rate: PerDirection<Option<Failing<f64>>>,
    /// Share of flushes that fail.
    pub flush_rate: Option<Failing<f64>>,
    /// The I/O of this number fails. I/Os are counted from 1 over all directions, without flushes.
    pub at: Option<Failing<u64>>,
    /// I/Os that touch bytes from the first position up to, but not including, the second fail.
    pub range: Option<Failing<(u64, u64)>>,
    /// Share of I/Os that move only part of their bytes.
    pub short: f64,
}

/// Faults of stored contents. Writes are counted from 1; 0 is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoreFaults {
    /// Number of the write that is stored with one flipped bit.
    pub flip: u64,
    /// Number of the write that is reported as done but not stored.
    pub lose: u64,
}

impl Default for SimSpec {
    /// One server that takes 100 microseconds for each I/O.
    fn default() -> Self {
        SimSpec {
            seed: 1,
            run: 0,
            capacity_bytes: None,
            service: PerDirection::from_value(ServiceTime::fixed(100e3)),
            flush: ServiceTime::fixed(100e3),
            server_bw: PerDirection::from_value(None),
            layout: ServerLayout {
                members: 1,
                parallel: 1,
                stripe_bytes: 64 << 10,
                hashed: false,
                replicas: 1,
            },
            positioning: Positioning {
                track_ns: 0,
                stroke_ns: 0,
                rotation_ns: 0,
                span_bytes: 1 << 40,
                reorder: 0.0,
                queue: 32,
            },
            link_bw: None,
            delay: ServiceTime::fixed(0.0),
            worker_ns: 0,
            lock_ns: 0,
            caps: RateCaps::default(),
            cache: CacheSpec {
                bytes: 0,
                block_bytes: 4096,
                hit_ns: 1_000,
                direct: false,
                dirty_bytes: 0,
                writeback_bw: 0,
            },
            buffer: Buffer::default(),
            stalls: DeviceStalls::default(),
            speed: Speed::STEADY,
            faults: Faults::default(),
            store: None,
        }
    }
}

impl DeviceStalls {
    /// The first time at or after `time_ns` that is outside all periodic stalls.
    pub fn hold_ns(&self, time_ns: u64) -> u64 {
        if self.period_ns == 0 || time_ns < self.period_ns {
            return time_ns;
        }
        time_ns + self.length_ns.saturating_sub(time_ns % self.period_ns)
    }
}

impl Positioning {
    /// Whether the device has a head.
    pub fn is_used(&self) -> bool {
        self.track_ns + self.stroke_ns + self.rotation_ns > 0
    }

    /// Seek time over `distance_bytes`, without rotation and reordering.
    pub(crate) fn seek_ns(&self, distance_bytes: u64) -> f64 {
        let share = (distance_bytes as f64 / self.span_bytes as f64).min(1.0);
        let rest = self.stroke_ns.saturating_sub(self.track_ns) as f64;
        self.track_ns as f64 + rest * libm::sqrt(share)
    }

    /// The factor on positioning time from reordering `waiting` I/Os.
    pub fn gain(&self, waiting: usize) -> f64 {
        if self.reorder == 0.0 {
            return 1.0;
        }
        let seen = (waiting as f64).min(f64::from(self.queue));
        libm::pow(seen, -self.reorder)
    }

    /// Expected positioning time in nanoseconds for random I/O, uniform over `area_bytes`, with
    /// `waiting` I/Os in the queue.
    ///
    /// The mean of the square root of the distance between two uniform points on [0, 1] is 8/15.
    pub fn mean_ns(&self, area_bytes: u64, waiting: usize) -> f64 {
        let share = (area_bytes as f64 / self.span_bytes as f64).min(1.0);
        let rest = self.stroke_ns.saturating_sub(self.track_ns) as f64;
        let seek_ns = self.track_ns as f64 + rest * libm::sqrt(share) * 8.0 / 15.0;
        (seek_ns + self.rotation_ns as f64 / 2.0) * self.gain(waiting)
    }
}

impl SimSpec {
    /// The maximum rate of I/Os of `block_bytes`, at any queue depth in the long run, if the
    /// parameters determine it. `None` if the rate also depends on a head, a cache, stalls, drift,
    /// short I/Os, hashed placement or blocks that span members.
    ///
    /// Failed I/Os count too. With several members the rate is a limit: random access at a finite
    /// queue depth approaches it but does not reach it. Sequential access does.
    pub fn max_iops(&self, block_bytes: u64, direction: Direction) -> Option<f64> {
        if !self.is_analytic(block_bytes) {
            return None;
        }
        let ServerLayout {
            members,
            parallel,
            replicas,
            ..
        } = self.layout;
        let copies = if direction == Direction::Write {
            replicas
        } else {
            1
        };
        let servers = f64::from(members) * f64::from(parallel) / f64::from(copies);
        let mut most = servers * 1e9 / self.occupation_ns(block_bytes, direction);
        if let Some(link) = self.link_bw.filter(|_| direction != Direction::Trim) {
            most = most.min(link as f64 / block_bytes as f64);
        }
        let (iops, bw) = self.caps.select_caps(direction);
        let units = self.caps.units(block_bytes) as f64;
        for cap in iops.into_iter().flatten() {
            most = most.min(cap.per_second / units);
        }
        for cap in bw.into_iter().flatten() {
            most = most.min(cap.per_second / block_bytes as f64);
        }
        Some(most)
    }

    /// The exact rate of a closed loop of one worker with `depth` I/Os in flight. It is known where
    /// [`SimSpec::max_iops`] is, for one member with fixed service times; otherwise `None`.
    pub fn closed_loop_iops(
        &self,
        block_bytes: u64,
        direction: Direction,
        depth: u32,
    ) -> Option<f64> {
        let fixed = self.service[direction].is_fixed() && self.delay.is_fixed();
        if !fixed || self.layout.members > 1 {
            return None;
        }
        let mut most = self.max_iops(block_bytes, direction)?;
        for gap_ns in [
            self.worker_ns,
            if direction == Direction::Write {
                self.lock_ns
            } else {
                0
            },
        ] {
            if gap_ns > 0 {
                most = most.min(1e9 / gap_ns as f64);
            }
        }
        Some(most.min(f64::from(depth) * 1e9 / self.idle_latency_ns(block_bytes, direction)))
    }

    /// Expected latency of one I/O on an idle device without a head or cache.
    pub(crate) fn idle_latency_ns(&self, block_bytes: u64, direction: Direction) -> f64 {
        let link_ns = match self.link_bw {
            Some(link) if direction != Direction::Trim => block_bytes as f64 * 1e9 / link as f64,
            _ => 0.0,
        };
        self.occupation_ns(block_bytes, direction) + link_ns + self.delay.mean_ns()
    }

    /// Expected time in nanoseconds that an I/O occupies a server.
    fn occupation_ns(&self, block_bytes: u64, direction: Direction) -> f64 {
        let transfer = self.server_bw[direction];
        let transfer_ns = transfer.map_or(0.0, |bw| block_bytes as f64 * 1e9 / bw as f64);
        self.service[direction].mean_ns() + transfer_ns
    }

    fn is_analytic(&self, block_bytes: u64) -> bool {
        let ServerLayout {
            members,
            stripe_bytes,
            hashed,
            ..
        } = self.layout;
        let within_member = members == 1 || (!hashed && stripe_bytes % block_bytes == 0);
        let stalls = self.stalls.length_ns > 0;
        let changing = self.speed.drift_per_minute != 0.0 || self.speed.fresh != 1.0;
        within_member
            && !self.positioning.is_used()
            && self.cache.bytes == 0
            && !stalls
            && !changing
            && self.faults.short == 0.0
    }
}
