//! The text that describes a simulated device: an optional preset, then `key=value`, separated by commas.
//!
//! One row of [`KEYS`] yields the parser, the printer and the documentation of a key.

use super::codec::*;
use super::presets::PRESETS;
use super::spec::SimSpec;
use iosonde_job::diagnostic::nearest;
use iosonde_job::value::Parsed;
use std::fmt;

/// Why a text describes no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimSpecError {
    /// A word without `=` that is not a preset.
    #[error("there is no simulated device `{word}`{}; there are {}", meant(.word, preset_names()), list(preset_names()))]
    UnknownPreset {
        /// What was given.
        word: String,
    },
    /// A word without `=` behind the first.
    #[error("`{word}` has no value: a preset comes first, all else is key=value")]
    MissingValue {
        /// What was given.
        word: String,
    },
    /// A key that does not exist.
    #[error("a simulated device has no key `{key}`{}; its keys are {}", meant(.key, key_names()), list(key_names()))]
    UnknownKey {
        /// What was given.
        key: String,
    },
    /// A key given twice.
    #[error("the key `{key}` is given twice")]
    Twice {
        /// Which.
        key: String,
    },
    /// A value that cannot be.
    #[error("{key}={value}: {problem}; it takes {grammar}")]
    Value {
        /// Key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        problem: String,
        /// What to write.
        grammar: &'static str,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Contradiction(&'static str),
}

fn meant<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

fn key_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

/// One key.
pub struct Key {
    /// Name.
    pub name: &'static str,
    /// What its value looks like.
    pub grammar: &'static str,
    /// What it means.
    pub doc: &'static str,
    set: fn(&mut SimSpec, &str) -> Parsed<()>,
    get: fn(&SimSpec) -> String,
}

impl Key {
    /// Its value in a device, as it is written.
    pub fn of(&self, spec: &SimSpec) -> String {
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

/// A key of what is stored, which switches storing on.
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
        "an I/O takes a token of I/Os for every so many bytes begun"
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
        "a pause after so many bytes written"
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

impl SimSpec {
    /// Reads `[PRESET][,KEY=VALUE]...`; an empty text is the default device.
    pub fn parse(text: &str) -> Result<SimSpec, SimSpecError> {
        let mut spec = SimSpec::default();
        let mut words = text.split(',').map(str::trim).peekable();
        if let Some(word) = words.next_if(|word| !word.contains('=')) {
            spec.begin_with(word)?;
        }
        spec.apply(words)?;
        spec.check()?;
        Ok(spec)
    }

    fn begin_with(&mut self, word: &str) -> Result<(), SimSpecError> {
        if word.is_empty() {
            return Ok(());
        }
        let preset = PRESETS.iter().find(|preset| preset.name == word);
        let preset = preset.ok_or_else(|| SimSpecError::UnknownPreset {
            word: word.to_owned(),
        })?;
        self.apply(preset.text.split(',').map(str::trim))
    }

    fn apply<'a>(&mut self, words: impl Iterator<Item = &'a str>) -> Result<(), SimSpecError> {
        let mut seen = Vec::new();
        for word in words {
            let Some((name, value)) = word.split_once('=') else {
                return Err(SimSpecError::MissingValue {
                    word: word.to_owned(),
                });
            };
            let key = KEYS.iter().find(|key| key.name == name);
            let key = key.ok_or_else(|| SimSpecError::UnknownKey {
                key: name.to_owned(),
            })?;
            if seen.contains(&name) {
                return Err(SimSpecError::Twice {
                    key: name.to_owned(),
                });
            }
            seen.push(name);
            (key.set)(self, value).map_err(|error| SimSpecError::Value {
                key: key.name,
                value: value.to_owned(),
                problem: error.message,
                grammar: key.grammar,
            })?;
        }
        Ok(())
    }

    /// Finds values that do not go together, or that no device can have.
    pub(super) fn check(&self) -> Result<(), SimSpecError> {
        let (layout, cache, stalls, speed) = (&self.layout, &self.cache, &self.stalls, &self.speed);
        let stalling = stalls.length_ns > 0;
        let rules = [
            (
                layout.members == 0 || layout.parallel == 0,
                "members and parallel must be at least 1",
            ),
            (
                layout.replicas == 0 || layout.replicas > layout.members,
                "replicas must be between 1 and members",
            ),
            (
                layout.stripe_bytes == 0 || cache.block_bytes == 0,
                "stripe and cache_block must be more than 0",
            ),
            (
                cache.bytes > 0 && cache.bytes < cache.block_bytes,
                "cache must hold at least one cache_block",
            ),
            (
                cache.dirty_bytes > 0 && cache.bytes == 0,
                "dirty needs a cache",
            ),
            (
                cache.dirty_bytes > 0 && cache.writeback_bw == 0,
                "dirty needs writeback_bw: how fast it is written back",
            ),
            (
                self.buffer.bytes > 0 && self.buffer.flush_bw == 0,
                "buffer needs flush_bw: how fast a flush writes",
            ),
            (
                stalling != (stalls.every_bytes > 0 || stalls.period_ns > 0),
                "a stall needs stall_us and one of stall_bytes and stall_period_us",
            ),
            (
                stalling && stalls.period_ns > 0 && stalls.period_ns <= stalls.length_ns,
                "stall_period_us must be longer than stall_us",
            ),
            (
                speed.noise >= 0.5,
                "noise must be below 0.5: the speed would reach 0",
            ),
            (speed.noise_rho >= 1.0, "noise_rho must be below 1"),
            (
                speed.noise_period_ns == 0,
                "noise_period_us must be more than 0",
            ),
            (speed.fresh < 1.0, "fresh must be at least 1"),
            (
                self.positioning.span_bytes == 0 || speed.fresh_bytes == 0,
                "span and fresh_bytes must be more than 0",
            ),
        ];
        match rules.iter().find(|(broken, _)| *broken) {
            Some((_, problem)) => Err(SimSpecError::Contradiction(problem)),
            None => Ok(()),
        }
    }
}

impl std::str::FromStr for SimSpec {
    type Err = SimSpecError;

    fn from_str(text: &str) -> Result<SimSpec, SimSpecError> {
        SimSpec::parse(text)
    }
}

/// The keys that differ from the default device's, as [`SimSpec::parse`] reads them.
impl fmt::Display for SimSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = SimSpec::default();
        let mut comma = "";
        for key in KEYS {
            let value = (key.get)(self);
            if value != (key.get)(&default) {
                write!(formatter, "{comma}{}={value}", key.name)?;
                comma = ",";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::service::{Service, Shape};
    use super::super::spec::{Cap, Failing, StoreFaults};
    use super::*;

    fn error(text: &str) -> String {
        SimSpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_preset_is_overridden_key_by_key() {
        let spec = SimSpec::parse("nvme,seed=7,read_us=85.5,read_dist=fixed,parallel=16").unwrap();
        assert_eq!(spec.seed, 7);
        assert_eq!(spec.service.read, Service::fixed(85_500.0));
        assert_eq!(spec.layout.parallel, 16);
        assert_eq!(spec.capacity_bytes, Some(2 << 40));
    }

    #[test]
    fn values_have_units_and_parts() {
        let text = "read_us=1.5ms,write_dist=bimodal:0.01:5ms,cap_iops=300:5400000:3000,cap_bw=20m,\
                    error_at=9:ENOSPC,error_range=1m-2m,read_error=0.5,flip=3";
        let spec = SimSpec::parse(text).unwrap();
        assert_eq!(spec.service.read.time_ns, 1.5e6);
        let outliers = Shape::Bimodal {
            share: 0.01,
            outlier_ns: 5e6,
        };
        assert_eq!(spec.service.write.shape, outliers);
        let bucket = Cap {
            per_second: 300.0,
            burst: 5.4e6,
            peak: Some(3000.0),
        };
        assert_eq!(spec.caps.iops, Some(bucket));
        assert_eq!(spec.caps.bw, Some(Cap::at(20.0 * 1048576.0)));
        assert_eq!(spec.faults.at, Some(Failing { what: 9, errno: 28 }));
        assert_eq!(
            spec.faults.range,
            Some(Failing {
                what: (1 << 20, 2 << 20),
                errno: 5
            })
        );
        assert_eq!(
            spec.faults.rate.read,
            Some(Failing {
                what: 0.5,
                errno: 5
            })
        );
        assert_eq!(spec.store, Some(StoreFaults { flip: 3, lose: 0 }));
    }

    #[test]
    fn every_preset_is_a_device_and_prints_as_itself() {
        for preset in PRESETS {
            let spec = SimSpec::parse(preset.name).unwrap();
            assert_eq!(
                SimSpec::parse(&spec.to_string()).as_ref(),
                Ok(&spec),
                "{}",
                preset.name
            );
        }
        assert_eq!(SimSpec::parse(""), Ok(SimSpec::default()));
        assert_eq!(SimSpec::default().to_string(), "");
    }

    #[test]
    fn every_key_survives_the_round_trip() {
        for key in KEYS {
            let value = match key.grammar {
                grammar if grammar == SHAPE.grammar => "lognormal:0.5",
                grammar if grammar == CAP_IOPS.grammar => "7:8:9",
                grammar if grammar == FAILING_RANGE.grammar => "7-9:28",
                grammar if grammar == FAILING_SHARE.grammar => "0.25:28",
                grammar if grammar == FAILING_ONE.grammar => "9:28",
                grammar if grammar == SHARE.grammar => "0.25",
                grammar if grammar == SWITCH.grammar => "1",
                _ => "9",
            };
            let mut spec = SimSpec::default();
            (key.set)(&mut spec, value).unwrap();
            let printed = spec.to_string();
            assert!(
                printed.contains(key.name),
                "{} is not printed: {printed}",
                key.name
            );
            let mut again = SimSpec::default();
            again.apply(printed.split(',')).unwrap();
            assert_eq!(again, spec, "{}", key.name);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let unknown = error("red_us=80");
        assert!(unknown.contains("did you mean `read_us`?"), "{unknown}");
        assert!(
            unknown.contains("its keys are seed, capacity, "),
            "{unknown}"
        );
        assert!(error("nvm").contains("did you mean `nvme`?"));
        assert!(error("nvme,hdd").contains("`hdd` has no value"));
        assert!(error("seed=1,seed=2").contains("given twice"));
        assert_eq!(
            error("parallel=0"),
            "parallel=0: `0` is not between 1 and 65536; it takes count from 1"
        );
        assert!(error("read_dist=gamma").contains("`lognormal:VARIATION`"));
        assert!(error("cap_iops=3000:10:2000").contains("peak rate must be above"));
        assert!(error("error_at=3:EWHAT").contains("EWHAT"));
    }

    #[test]
    fn values_that_do_not_go_together_are_refused() {
        for (text, part) in [
            ("replicas=2", "replicas"),
            ("dirty=1m", "dirty needs a cache"),
            ("cache=1m,dirty=1m", "writeback_bw"),
            ("buffer=1m", "flush_bw"),
            ("stall_us=5", "stall_bytes"),
            ("stall_bytes=5", "stall_us"),
            ("stall_us=10,stall_period_us=10", "longer"),
            ("noise_rho=1", "noise_rho"),
            ("cache=1k", "cache_block"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a-z_]{0,6}(,[a-z_]{1,12}=[0-9a-zA-Z.:-]{0,8}){0,4}") {
            let _ = SimSpec::parse(&text);
        }
    }
}
