//! The keys of the text that describes a simulated device.
//!
//! One row of [`KEYS`] yields the parser, the printer and the documentation of a key.

use super::codec::*;
use super::spec::SimSpec;
use iosonde_job::value::ParsedValue;

/// A key of the text.
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// Grammar of the value.
    pub grammar: &'static str,
    /// Meaning of the key.
    pub doc: &'static str,
    pub(super) set: fn(&mut SimSpec, &str) -> ParsedValue<()>,
    get: fn(&SimSpec) -> String,
}

impl Key {
    /// The value of the key in `spec`, as text.
    pub(crate) fn format_value(&self, spec: &SimSpec) -> String {
        (self.get)(spec)
    }
}

macro_rules! key {
    ($name:literal, $codec:expr, $($field:ident).+, $doc:literal) => {
        Key {
            name: $name,
            grammar: $codec.grammar,
            doc: $doc,
            set: |spec, text| {
                spec.$($field).+ = ($codec.parse)(text)?;
                Ok(())
            },
            get: |spec| ($codec.show)(&spec.$($field).+),
        }
    };
}

/// A key of the stored contents. Setting it makes the device keep contents.
macro_rules! store_key {
    ($name:literal, $field:ident, $doc:literal) => {
        Key {
            name: $name,
            grammar: COUNT.grammar,
            doc: $doc,
            set: |spec, text| {
                let number = (COUNT.parse)(text)?;
                spec.store.get_or_insert_default().$field = number;
                Ok(())
            },
            get: |spec| spec.store.unwrap_or_default().$field.to_string(),
        }
    };
}

/// All keys.
pub const KEYS: &[Key] = &[
    key!("seed", COUNT, seed, "root of the device's random numbers"),
    key!(
        "run",
        COUNT,
        run,
        "number of a run of the device; each draws other random numbers. \
         `load` counts its runs with it"
    ),
    key!(
        "capacity",
        SIZE_OR_NONE,
        capacity_bytes,
        "size; writes behind its end get ENOSPC, reads get no bytes"
    ),
    key!(
        "read_us",
        TIME,
        service.read.time_ns,
        "service time of a read"
    ),
    key!(
        "write_us",
        TIME,
        service.write.time_ns,
        "service time of a write"
    ),
    key!(
        "trim_us",
        TIME,
        service.trim.time_ns,
        "service time of a trim"
    ),
    key!(
        "fsync_us",
        TIME,
        flush.time_ns,
        "service time of a flush, on every member"
    ),
    key!(
        "read_dist",
        SHAPE,
        service.read.shape,
        "distribution around `read_us`; its mean, except for `bimodal`, whose outliers come on top"
    ),
    key!(
        "write_dist",
        SHAPE,
        service.write.shape,
        "as `read_dist`, for writes"
    ),
    key!(
        "trim_dist",
        SHAPE,
        service.trim.shape,
        "as `read_dist`, for trims"
    ),
    key!(
        "fsync_dist",
        SHAPE,
        flush.shape,
        "as `read_dist`, for flushes"
    ),
    key!(
        "read_bw",
        BANDWIDTH,
        server_bw.read,
        "what one server moves while it serves a read"
    ),
    key!(
        "write_bw",
        BANDWIDTH,
        server_bw.write,
        "what one server moves while it serves a write"
    ),
    key!(
        "parallel",
        SMALL,
        layout.parallel,
        "servers of each member, fed from one queue"
    ),
    key!(
        "members",
        SMALL,
        layout.members,
        "disks of an array or nodes of a cluster, each with its own queue"
    ),
    key!(
        "stripe",
        SOME_SIZE,
        layout.stripe_bytes,
        "bytes that lie together on one member"
    ),
    key!(
        "hashed",
        SWITCH,
        layout.hashed,
        "stripes lie where a hash says, not in turn"
    ),
    key!(
        "replicas",
        SMALL,
        layout.replicas,
        "members that each write goes to"
    ),
    key!(
        "track_us",
        TIME_NS,
        positioning.track_ns,
        "shortest seek of a head; none for an I/O that goes on where the last one ended"
    ),
    key!(
        "stroke_us",
        TIME_NS,
        positioning.stroke_ns,
        "seek over `span`; shorter ones grow with the square root of the distance"
    ),
    key!(
        "rotation_us",
        TIME_NS,
        positioning.rotation_ns,
        "one rotation; a seek waits for a uniform part of it"
    ),
    key!(
        "span",
        SOME_SIZE,
        positioning.span_bytes,
        "distance of the longest seek"
    ),
    key!(
        "reorder",
        SHARE,
        positioning.reorder,
        "n queued I/Os are positioned in n^-reorder of the time"
    ),
    key!(
        "queue",
        SMALL,
        positioning.queue,
        "most I/Os that are reordered"
    ),
    key!(
        "link_bw",
        BANDWIDTH,
        link_bw,
        "link that reads and writes share, one I/O at a time"
    ),
    key!(
        "delay_us",
        TIME,
        delay.time_ns,
        "time that every I/O is under way, beside all queues"
    ),
    key!(
        "delay_dist",
        SHAPE,
        delay.shape,
        "distribution of `delay_us`"
    ),
    key!(
        "worker_us",
        TIME_NS,
        worker_ns,
        "least time between two I/Os of one worker"
    ),
    key!(
        "lock_us",
        TIME_NS,
        lock_ns,
        "least time between two writes to one file"
    ),
    key!(
        "cap_iops",
        CAP_IOPS,
        caps.iops,
        "token bucket of all I/Os: rate, tokens saved up, rate while they last"
    ),
    key!(
        "cap_bw",
        CAP_BW,
        caps.bw,
        "token bucket of all bytes read and written"
    ),
    key!(
        "cap_read_iops",
        CAP_IOPS,
        caps.read_iops,
        "token bucket of reads"
    ),
    key!(
        "cap_write_iops",
        CAP_IOPS,
        caps.write_iops,
        "token bucket of writes and trims"
    ),
    key!(
        "cap_read_bw",
        CAP_BW,
        caps.read_bw,
        "token bucket of bytes read"
    ),
    key!(
        "cap_write_bw",
        CAP_BW,
        caps.write_bw,
        "token bucket of bytes written"
    ),
    key!(
        "cap_unit",
        SIZE_OR_NONE,
        caps.unit_bytes,
        "an I/O takes one token of I/Os per this number of bytes, rounded up"
    ),
    key!(
        "cap_slice",
        TIME_NS,
        caps.slice_ns,
        "I/Os pass the token buckets in lumps, at whole multiples of this time, \
         as with the kernel's throttle; 0 lets each pass alone"
    ),
    key!(
        "cache",
        SIZE,
        cache.bytes,
        "cache in front of the device; the least recently used block gives way"
    ),
    key!("cache_block", SOME_SIZE, cache.block_bytes, "its blocks"),
    key!(
        "cache_us",
        TIME_NS,
        cache.hit_ns,
        "latency of a hit, and of a write that is taken up"
    ),
    key!(
        "cache_direct",
        SWITCH,
        cache.direct,
        "direct I/O goes through it too: a controller's cache, not a page cache"
    ),
    key!(
        "dirty",
        SIZE,
        cache.dirty_bytes,
        "most bytes that wait in the cache to be written back; 0 writes through"
    ),
    key!(
        "writeback_bw",
        SIZE,
        cache.writeback_bw,
        "bytes a second that are written back"
    ),
    key!(
        "buffer",
        SIZE,
        buffer.bytes,
        "most bytes that a flush finds in the device's write buffer"
    ),
    key!(
        "flush_bw",
        SIZE,
        buffer.flush_bw,
        "bytes a second that a flush writes of them"
    ),
    key!(
        "stall_us",
        TIME_NS,
        stalls.length_ns,
        "length of a pause, in which no service begins"
    ),
    key!(
        "stall_bytes",
        SIZE,
        stalls.every_bytes,
        "bytes written between two pauses"
    ),
    key!(
        "stall_period_us",
        TIME_NS,
        stalls.period_ns,
        "a pause at every multiple of this time"
    ),
    key!(
        "noise",
        SHARE,
        speed.noise,
        "standard deviation of the speed from period to period"
    ),
    key!(
        "noise_rho",
        SHARE,
        speed.noise_rho,
        "its correlation from one period to the next"
    ),
    key!(
        "noise_period_us",
        TIME_NS,
        speed.noise_period_ns,
        "length of a period"
    ),
    key!(
        "drift",
        NUMBER,
        speed.drift_per_minute,
        "what the speed gains in a minute: -0.01 is 1 % less"
    ),
    key!(
        "fresh",
        NUMBER,
        speed.fresh,
        "how many times faster a fresh device writes"
    ),
    key!(
        "fresh_bytes",
        SOME_SIZE,
        speed.fresh_bytes,
        "bytes written until that gain has shrunk to 1/e"
    ),
    key!(
        "read_error",
        FAILING_SHARE,
        faults.rate.read,
        "share of reads that fail; with EIO unless another errno is given"
    ),
    key!(
        "write_error",
        FAILING_SHARE,
        faults.rate.write,
        "share of writes that fail"
    ),
    key!(
        "trim_error",
        FAILING_SHARE,
        faults.rate.trim,
        "share of trims that fail"
    ),
    key!(
        "fsync_error",
        FAILING_SHARE,
        faults.flush_rate,
        "share of flushes that fail"
    ),
    key!(
        "error_at",
        FAILING_ONE,
        faults.at,
        "this I/O fails; all but flushes are counted, from 1"
    ),
    key!(
        "error_range",
        FAILING_RANGE,
        faults.range,
        "I/Os fail that touch these bytes of the device"
    ),
    key!(
        "short",
        SHARE,
        faults.short,
        "share of I/Os that move only a part"
    ),
    Key {
        name: "store",
        grammar: SWITCH.grammar,
        doc: "keep what is written; else reads leave their buffers alone",
        set: |spec, text| {
            let on = (SWITCH.parse)(text)?;
            spec.store = on.then(|| spec.store.unwrap_or_default());
            Ok(())
        },
        get: |spec| u8::from(spec.store.is_some()).to_string(),
    },
    store_key!(
        "flip",
        flip,
        "one bit of this write is stored wrong; writes are counted from 1; implies `store=1`"
    ),
    store_key!(
        "lose",
        lose,
        "this write is reported done but not stored; implies `store=1`"
    ),
];
