//! A job under construction: the plan's job, and the options that other options may override.

use crate::plan::*;
use crate::source::Span;
use crate::value::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// The target of applied options. [`crate::resolve`] turns it into a [`Job`].
#[derive(Debug, Clone)]
pub struct JobBuilder {
    /// Fields that no other option overrides.
    pub job: Job,
    /// `name`, if given in the job's own section.
    pub name: Option<String>,
    /// `kb_base`, which determines how later sizes are read.
    pub bytes: Bytes,
    /// Span of the last occurrence of each option, by canonical name.
    pub given: BTreeMap<&'static str, Span>,
    /// Options given in the job's own section.
    pub own: BTreeSet<&'static str>,
    /// `bs`.
    pub bs: PerDirection<u64>,
    /// `bsrange`.
    pub bsrange: PerDirection<Option<(u64, u64)>>,
    /// `bssplit`.
    pub bssplit: Option<PerDirection<BlockSize>>,
    /// `norandommap`.
    pub norandommap: bool,
    /// `softrandommap`.
    pub softrandommap: bool,
    /// Buffer contents.
    pub buffers: BufferOptions,
    /// Zones.
    pub zones: ZoneOptions,
    /// `prioclass`.
    pub prioclass: Option<u8>,
    /// `prio`.
    pub prio: Option<u8>,
    /// `ioengine`, as given.
    pub engine: Option<String>,
    /// Options of the Ceph engines.
    pub ceph: Ceph,
    /// `thinktime` and the other `thinktime_` options.
    pub thinktime: ThinkTime,
    /// `latency_target` and the other `latency_` options; a target of 0 is none.
    pub latency: LatencyTarget,
    /// `steadystate` and its `ss_` options; off while the duration is 0.
    pub steady: SteadyState,
    /// `exitall`.
    pub exitall: bool,
    /// `exit_what`.
    pub exit_what: ExitWhat,
    /// `flow`, `flow_id` and `flow_sleep`; a weight of 0 is none.
    pub flow: Flow,
    /// `verify`: `None` is off.
    pub verify_method: Option<VerifyMethod>,
    /// The other `verify_` options.
    pub verify: Verify,
    /// `log_alternate_epoch`.
    pub alternate_epoch: bool,
    /// `log_alternate_epoch_clock_id`.
    pub alternate_clock: i64,
    /// `new_group`.
    pub new_group: bool,
    /// `read_iolog` and the `replay_` options; without traces nothing is replayed.
    pub replay: Replay,
}

/// Options for the contents of write buffers, as given.
#[derive(Debug, Clone, Default)]
pub struct BufferOptions {
    /// `zero_buffers`.
    pub zero: bool,
    /// `refill_buffers`.
    pub refill: bool,
    /// `scramble_buffers=0`.
    pub no_scramble: bool,
    /// `buffer_pattern`.
    pub pattern: Option<Vec<u8>>,
    /// `dedupe_mode=working_set`.
    pub working_set: bool,
    /// `dedupe_working_set_percentage`; fio's default is 5.
    pub working_set_percent: Option<u8>,
}

/// `zonemode` and the sizes of zones, in bytes.
#[derive(Debug, Clone, Default)]
pub struct ZoneOptions {
    /// `zonemode=strided`.
    pub strided: bool,
    /// `zonesize`.
    pub size: u64,
    /// `zonerange`.
    pub range: u64,
    /// `zoneskip`.
    pub skip: u64,
}

impl JobBuilder {
    /// Makes a job with fio's defaults.
    pub fn new() -> Self {
        JobBuilder {
            job: Job::new(""),
            name: None,
            bytes: Bytes::Binary,
            given: BTreeMap::new(),
            own: BTreeSet::new(),
            bs: PerDirection::from_value(4096),
            bsrange: PerDirection::from_value(None),
            bssplit: None,
            norandommap: false,
            softrandommap: false,
            buffers: BufferOptions::default(),
            zones: ZoneOptions::default(),
            prioclass: None,
            prio: None,
            engine: None,
            ceph: Ceph::default(),
            thinktime: ThinkTime {
                pause_ns: 0,
                spin_ns: 0,
                blocks: 1,
                count_issued: false,
                iotime_ns: 0,
            },
            latency: LatencyTarget {
                target_ns: 0,
                window_ns: 0,
                percentile: 100.0,
                run: false,
            },
            steady: SteadyState {
                metric: SteadyMetric::Iops,
                slope: true,
                limit: 0.01,
                percent: true,
                duration_ns: 0,
                ramp_ns: 0,
                interval_ns: 1_000_000_000,
            },
            exitall: false,
            exit_what: ExitWhat::Group,
            flow: Flow {
                id: 0,
                weight: 0,
                sleep_ns: 0,
            },
            verify_method: None,
            verify: Verify::new(VerifyMethod::Null),
            alternate_epoch: false,
            alternate_clock: 0,
            new_group: false,
            replay: Replay {
                scale: 1,
                speed_percent: 100,
                ..Replay::default()
            },
        }
    }

    /// Whether an option was given, in the job or in a global section before it.
    pub fn is_given(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }
}

impl Default for JobBuilder {
    fn default() -> Self {
        JobBuilder::new()
    }
}
