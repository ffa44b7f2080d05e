//! The simulated device: computes the completion time of each I/O at its arrival.
//!
//! I/Os are processed in the order of arrival. Queues are FIFO, so a later arrival never changes an
//! earlier completion, and no events occur in between.

use super::cache::{BlockCache, Dirty};
use super::counters::{Meter, SimCounters};
use super::faults::FaultInjector;
use super::files::DeviceFiles;
use super::files::SimFile;
use super::noise::SpeedCurve;
use super::parse::SimSpecError;
use super::request::{Reply, SimRequest};
use super::spec::{Cap, RateCaps, SimSpec};
use super::store::PageStore;
use super::token_bucket::{SerialLink, TokenBucket};
use super::units::{DeviceMember, MemberPart, members, parts};
use super::wear::Wear;
use iosonde_job::plan::Direction;
use iosonde_workload::rng::{Rng, mix64};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// The purpose of a stream of the device's random numbers.
#[derive(Debug, Clone, Copy)]
enum RngPurpose {
    Service = 1,
    Rotation = 2,
    Delay = 3,
    Fault = 4,
    Noise = 5,
}

/// Token buckets of all caps: for both directions, for reads, for writes.
#[derive(Debug)]
struct CapBuckets {
    iops: [Vec<TokenBucket>; 3],
    bw: [Vec<TokenBucket>; 3],
}

impl CapBuckets {
    fn new(caps: &RateCaps) -> CapBuckets {
        CapBuckets {
            iops: [caps.iops, caps.read_iops, caps.write_iops].map(buckets),
            bw: [caps.bw, caps.read_bw, caps.write_bw].map(buckets),
        }
    }

    /// The buckets that an I/O takes a token from.
    fn iops(&mut self, direction: Direction) -> impl Iterator<Item = &mut TokenBucket> {
        let [all, read, write] = &mut self.iops;
        let own = if direction == Direction::Read {
            read
        } else {
            write
        };
        all.iter_mut().chain(own)
    }

    /// The buckets that take a token per byte. Trims have none, because they move no bytes.
    fn bw(&mut self, direction: Direction) -> impl Iterator<Item = &mut TokenBucket> {
        let [all, read, write] = &mut self.bw;
        let own = if direction == Direction::Read {
            read
        } else {
            write
        };
        all.iter_mut()
            .chain(own)
            .filter(move |_| direction != Direction::Trim)
    }
}

/// The buckets of a cap: one for its rate, and one for its peak if it has one.
fn buckets(cap: Option<Cap>) -> Vec<TokenBucket> {
    let Some(Cap {
        per_second,
        burst,
        peak,
    }) = cap
    else {
        return Vec::new();
    };
    let sustained = TokenBucket::new(per_second, burst);
    std::iter::once(sustained)
        .chain(peak.map(|peak| TokenBucket::new(peak, 0.0)))
        .collect()
}

/// One stream of random numbers per purpose: a changed parameter leaves the draws of others alone.
#[derive(Debug)]
struct DeviceRngs {
    service: Rng,
    rotation: Rng,
    delay: Rng,
}

/// A simulated device, shared by all workers of a run.
#[derive(Debug)]
pub struct SimDevice {
    spec: SimSpec,
    files: DeviceFiles,
    members: Vec<DeviceMember>,
    link: Option<SerialLink>,
    caps: CapBuckets,
    cache: Option<BlockCache>,
    dirty: Option<Dirty>,
    speed: SpeedCurve,
    fault_injector: FaultInjector,
    draws: DeviceRngs,
    store: Option<PageStore>,
    meter: Meter,
    /// No service begins before this time: the end of the last stall that writes caused.
    paused_until_ns: u64,
    written_bytes: u64,
    wear: Wear,
    unflushed_bytes: u64,
}

impl SimDevice {
    /// The device of a spec.
    ///
    /// # Errors
    /// Fails if the spec contradicts itself.
    pub fn new(spec: SimSpec) -> Result<SimDevice, SimSpecError> {
        spec.check()?;
        let root = match spec.run {
            0 => mix64(spec.seed),
            run => mix64(mix64(spec.seed) ^ mix64(run)),
        };
        let stream = |purpose: RngPurpose| Rng::new(mix64(root ^ purpose as u64));
        let cached = spec.cache.bytes > 0;
        Ok(SimDevice {
            files: DeviceFiles::new(spec.lock_ns),
            members: members(&spec.layout),
            link: spec.link_bw.map(SerialLink::new),
            caps: CapBuckets::new(&spec.caps),
            cache: cached.then(|| BlockCache::new(&spec.cache)),
            dirty: (spec.cache.dirty_bytes > 0).then(|| Dirty::new(&spec.cache)),
            speed: SpeedCurve::new(spec.speed, stream(RngPurpose::Noise)),
            fault_injector: FaultInjector::new(spec.faults, stream(RngPurpose::Fault)),
            draws: DeviceRngs {
                service: stream(RngPurpose::Service),
                rotation: stream(RngPurpose::Rotation),
                delay: stream(RngPurpose::Delay),
            },
            store: spec.store.map(PageStore::new),
            meter: Meter::default(),
            paused_until_ns: 0,
            written_bytes: 0,
            wear: Wear::default(),
            unflushed_bytes: 0,
            spec,
        })
    }

    /// Like [`SimDevice::new`], for a device that several workers share.
    ///
    /// # Errors
    /// Fails if the spec contradicts itself.
    pub fn shared(spec: SimSpec) -> Result<Rc<RefCell<SimDevice>>, SimSpecError> {
        Ok(Rc::new(RefCell::new(SimDevice::new(spec)?)))
    }

    /// Sets the wear that earlier runs caused.
    pub fn age(&mut self, wear: Wear) {
        self.wear = wear;
    }

    /// The wear so far. The next run of a session starts with it.
    pub fn wear(&self) -> Wear {
        self.wear
    }

    /// The spec of the device.
    pub fn spec(&self) -> &SimSpec {
        &self.spec
    }

    /// Counters of the device until `now_ns`, as in `/proc/diskstats`.
    pub fn counters(&self, now_ns: u64) -> SimCounters {
        let dirty = self
            .dirty
            .as_ref()
            .map_or(0.0, |dirty| dirty.level_bytes(now_ns as f64));
        self.meter.read(now_ns, dirty as u64)
    }

    /// Places files on the device one after the other and returns their numbers. A file whose `id`
    /// is already placed keeps its number.
    ///
    /// # Errors
    /// Fails if a placed file grew and another file follows it.
    pub fn place(&mut self, files: &[SimFile]) -> io::Result<Vec<u32>> {
        self.files.place(files)
    }

    /// Submits an I/O that arrives at `now_ns`, which must not decrease. Returns its completion.
    pub fn submit(&mut self, now_ns: u64, request: &SimRequest) -> Reply {
        let reply = match request.op.direction() {
            Some(direction) => self.transfer(now_ns, direction, request),
            None => self.flush(now_ns),
        };
        let done_ns = reply.done_ns.max(now_ns + 1);
        if reply.from_device {
            self.meter.occupied(now_ns, done_ns);
        }
        Reply { done_ns, ..reply }
    }

    /// Counts an I/O whose completion its worker has received.
    pub fn completed(&mut self, request: &SimRequest, result: i32, from_device: bool) {
        let moved = request.moved_bytes(result);
        self.meter.completed(request.op, moved, from_device);
    }

    fn address(&self, request: &SimRequest) -> u64 {
        self.files.address(request.file, request.offset)
    }

    fn transfer(&mut self, now_ns: u64, direction: Direction, request: &SimRequest) -> Reply {
        let address = self.address(request);
        let room = self
            .spec
            .capacity_bytes
            .map_or(u64::MAX, |end| end.saturating_sub(address));
        if room == 0 {
            let result = if direction == Direction::Read {
                0
            } else {
                -libc::ENOSPC
            };
            return Reply {
                done_ns: now_ns,
                result,
                from_device: false,
            };
        }
        let (bytes, result) =
            match self
                .fault_injector
                .io(direction, address, request.bytes.min(room))
            {
                Ok(moved) => (moved, request.result(moved)),
                Err(errno) => (request.bytes.min(room), -errno),
            };
        if let Some(done_ns) = self.through_cache(now_ns, direction, address, bytes, request.direct)
        {
            return Reply {
                done_ns,
                result,
                from_device: false,
            };
        }
        let served_ns = self.serve(now_ns, direction, address, bytes);
        let done_ns = self.pass_gates(now_ns, served_ns, direction, request.file, bytes);
        Reply {
            done_ns: done_ns.round() as u64,
            result,
            from_device: true,
        }
    }

    /// The completion time of an I/O that the cache serves; `None` if the device must do the I/O.
    fn through_cache(
        &mut self,
        now_ns: u64,
        direction: Direction,
        address: u64,
        bytes: u64,
        direct: bool,
    ) -> Option<u64> {
        let cache = self.cache.as_mut()?;
        let rules = &self.spec.cache;
        if direction == Direction::Trim || (direct && !rules.direct) {
            if direction != Direction::Read {
                cache.forget(address, bytes);
            }
            return None;
        }
        let hit = cache.touch(address, bytes);
        if direction == Direction::Read {
            return hit.then(|| now_ns + rules.hit_ns);
        }
        let dirty = self.dirty.as_mut()?;
        let now = now_ns as f64;
        let taken_ns = dirty.add(now, bytes, self.speed.at(now));
        let hit_ns = rules.hit_ns;
        let taken_ns = (taken_ns.round() as u64).max(self.paused_until_ns);
        let taken_ns = self.spec.stalls.hold_ns(taken_ns);
        self.meter.buffered(bytes);
        self.written(taken_ns, bytes);
        Some(taken_ns + hit_ns)
    }

    /// Serves an I/O on the members. Returns the time when the last member is done.
    fn serve(&mut self, now_ns: u64, direction: Direction, address: u64, bytes: u64) -> f64 {
        let layout = self.spec.layout;
        let copies = if direction == Direction::Write {
            layout.replicas as usize
        } else {
            1
        };
        let mut ready_ns = now_ns;
        for part in parts(layout, address, bytes) {
            for copy in 0..copies {
                let member = (part.member + copy) % self.members.len();
                let part = MemberPart { member, ..part };
                ready_ns = ready_ns.max(self.serve_part(now_ns, direction, part));
            }
        }
        match direction {
            Direction::Write => self.written(ready_ns, bytes),
            Direction::Trim => self.wear.discard(bytes),
            Direction::Read => {}
        }
        ready_ns as f64
    }

    fn serve_part(&mut self, now_ns: u64, direction: Direction, part: MemberPart) -> u64 {
        let spec = &self.spec;
        let member = &mut self.members[part.member];
        let start_ns = spec
            .stalls
            .hold_ns(member.start_ns(now_ns).max(self.paused_until_ns));
        let mut work_ns = spec.service[direction].draw_ns(&mut self.draws.service);
        if let Some(bw) = spec.server_bw[direction] {
            work_ns += part.bytes as f64 * 1e9 / bw as f64;
        }
        let has_head = spec.positioning.is_used() && direction != Direction::Trim;
        if has_head {
            let MemberPart { address, bytes, .. } = part;
            let rng = &mut self.draws.rotation;
            work_ns += member.position_ns(&spec.positioning, now_ns, address, bytes, rng);
        }
        let mut speed = self.speed.at(start_ns as f64);
        if direction == Direction::Write && spec.speed.fresh > 1.0 {
            let freshness = self.wear.freshness(spec.speed.fresh_bytes);
            speed *= 1.0 + (spec.speed.fresh - 1.0) * freshness;
        }
        let end_ns = start_ns + (work_ns / speed).round() as u64;
        member.occupy(end_ns);
        if has_head {
            member.await_end(end_ns);
        }
        end_ns
    }

    /// Counts bytes that the device wrote, and starts a stall if one is due.
    fn written(&mut self, ready_ns: u64, bytes: u64) {
        let before = self.written_bytes;
        self.written_bytes += bytes;
        self.wear.write(bytes, self.spec.capacity_bytes);
        self.unflushed_bytes += bytes;
        let stalls = &self.spec.stalls;
        let passed = |bytes: u64| bytes.checked_div(stalls.every_bytes).unwrap_or(0);
        let due = passed(self.written_bytes) - passed(before);
        if due > 0 {
            let from_ns = self.paused_until_ns.max(ready_ns);
            self.paused_until_ns = from_ns + due * stalls.length_ns;
        }
    }

    /// Applies link, delay, caps and lock to an I/O served at `served_ns`: its completion time.
    fn pass_gates(
        &mut self,
        now_ns: u64,
        served_ns: f64,
        direction: Direction,
        file: u32,
        bytes: u64,
    ) -> f64 {
        let now = now_ns as f64;
        let speed = self.speed.at(now);
        let mut done_ns = served_ns;
        if let Some(link) = self.link.as_mut().filter(|_| direction != Direction::Trim) {
            done_ns = link.carry(now, done_ns, bytes as f64, speed);
        }
        done_ns += self.spec.delay.draw_ns(&mut self.draws.delay);
        let units = self.spec.caps.units(bytes) as f64;
        for bucket in self.caps.iops(direction) {
            let granted_ns = bucket.take(now, units, speed);
            done_ns = done_ns.max(self.spec.caps.let_through_ns(granted_ns));
        }
        for bucket in self.caps.bw(direction) {
            let granted_ns = bucket.take(now, bytes as f64, speed);
            done_ns = done_ns.max(self.spec.caps.let_through_ns(granted_ns));
        }
        if direction == Direction::Write
            && let Some(lock) = self.files.lock(file)
        {
            done_ns = done_ns.max(lock.take(now, 1.0, speed));
        }
        done_ns
    }

    /// A flush: the cache writes back all dirty bytes, then each member empties its write buffer.
    fn flush(&mut self, now_ns: u64) -> Reply {
        let now = now_ns as f64;
        let clean_ns = self
            .dirty
            .as_ref()
            .map_or(now, |dirty| dirty.clean_at_ns(now))
            .round() as u64;
        let buffer = &self.spec.buffer;
        let buffered = self.unflushed_bytes.min(buffer.bytes);
        let empty_ns = if buffered > 0 {
            buffered as f64 * 1e9 / buffer.flush_bw as f64
        } else {
            0.0
        };
        self.unflushed_bytes = 0;
        let mut done_ns = clean_ns;
        for member in &mut self.members {
            let start_ns = member.start_ns(clean_ns).max(self.paused_until_ns);
            let start_ns = self.spec.stalls.hold_ns(start_ns);
            let work_ns = self.spec.flush.draw_ns(&mut self.draws.service) + empty_ns;
            let end_ns = start_ns + (work_ns / self.speed.at(start_ns as f64)).round() as u64;
            // A flush that waits for the cache occupies no server meanwhile.
            if clean_ns == now_ns {
                member.occupy(end_ns);
            }
            done_ns = done_ns.max(end_ns);
        }
        let delay_ns = self.spec.delay.draw_ns(&mut self.draws.delay);
        let result = self
            .fault_injector
            .flush()
            .map_or_else(|errno| -errno, |()| 0);
        Reply {
            done_ns: done_ns + delay_ns.round() as u64,
            result,
            from_device: true,
        }
    }

    /// Whether the device keeps contents.
    pub fn stores(&self) -> bool {
        self.store.is_some()
    }

    /// Stores the data of a write.
    pub fn keep(&mut self, request: &SimRequest, data: &[u8]) {
        let address = self.address(request);
        if let Some(store) = &mut self.store {
            store.write(address, data);
        }
    }

    /// Discards the data of a trimmed range, as far as the result of the request says.
    pub fn discard(&mut self, request: &SimRequest, result: i32) {
        let address = self.address(request);
        if let (Some(store), Ok(bytes)) = (&mut self.store, request.moved_bytes(result)) {
            store.discard(address, bytes as usize);
        }
    }

    /// Reads contents piece by piece. Each call of `take` gets a range within the request and its
    /// bytes. The bytes are `None` where nothing was written.
    pub fn recall(
        &self,
        request: &SimRequest,
        bytes: usize,
        take: impl FnMut(std::ops::Range<usize>, Option<&[u8]>),
    ) {
        if let Some(store) = &self.store {
            store.read(self.address(request), bytes, take);
        }
    }
}
