//! State of the caches between jobs and their storage at the start of a run.
//!
//! A cache is cold if it holds no data of the jobs' files, or is not used. The state describes the
//! start of the jobs: they warm the caches themselves.

use iosonde_job::plan::{Engine, Job, Plan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A place that may hold data of earlier I/O.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[cfg_attr(test, derive(strum::VariantArray))]
#[serde(rename_all = "snake_case")]
pub enum CacheLayer {
    /// The kernel on which the jobs run, or the library in their process.
    Client,
    /// Kernels of the Kubernetes nodes of the pods, and of nodes that serve the volume.
    Node,
    /// OSDs of the Ceph cluster.
    Osd,
}

impl CacheLayer {
    /// All layers, from the job to the storage.
    pub const ALL: [CacheLayer; 3] = [CacheLayer::Client, CacheLayer::Node, CacheLayer::Osd];

    /// Returns the name, as `--cold` takes it.
    pub fn name(self) -> &'static str {
        match self {
            CacheLayer::Client => "client",
            CacheLayer::Node => "node",
            CacheLayer::Osd => "osd",
        }
    }
}

/// Whether a cache holds data of the jobs' files.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CacheTemperature {
    /// It holds none, or is not used.
    Cold,
    /// It was not observed.
    Unknown,
    /// It holds data.
    Warm,
}

impl CacheTemperature {
    /// Returns the state in one word.
    pub fn name(self) -> &'static str {
        match self {
            CacheTemperature::Cold => "cold",
            CacheTemperature::Unknown => "unknown",
            CacheTemperature::Warm => "warm",
        }
    }
}

/// Why the state of a cache is known, or is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheEvidence {
    /// O_DIRECT bypasses the page cache.
    Direct,
    /// The library has no cache, or it is off.
    NoLibraryCache,
    /// All clean data was dropped.
    Dropped {
        /// Number of machines or OSDs.
        count: u32,
    },
    /// The pages of the jobs' files were dropped one by one.
    FilesDropped,
    /// The pages of each file are dropped when a job opens it (`invalidate=1`).
    Invalidated,
    /// The jobs read their files before the measurement (`pre_read=1`).
    PreRead,
    /// The cache of librbd was not dropped.
    LibraryCache,
    /// All clean data was dropped before the first jobs, but others start later.
    DroppedBeforeFirst {
        /// Number of machines or OSDs.
        count: u32,
    },
    /// No data was dropped.
    NotDropped,
}

/// State of the caches of one layer at the start of the jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LayerCache {
    /// The layer.
    pub layer: CacheLayer,
    /// Its state.
    pub state: CacheTemperature,
    /// The reason for the state.
    pub evidence: CacheEvidence,
}

impl LayerCache {
    /// Creates the state that follows from the evidence.
    pub fn new(layer: CacheLayer, evidence: CacheEvidence) -> LayerCache {
        let state = match evidence {
            CacheEvidence::Direct
            | CacheEvidence::NoLibraryCache
            | CacheEvidence::Dropped { .. }
            | CacheEvidence::FilesDropped
            | CacheEvidence::Invalidated => CacheTemperature::Cold,
            CacheEvidence::PreRead => CacheTemperature::Warm,
            CacheEvidence::LibraryCache
            | CacheEvidence::DroppedBeforeFirst { .. }
            | CacheEvidence::NotDropped => CacheTemperature::Unknown,
        };
        LayerCache {
            layer,
            state,
            evidence,
        }
    }

    /// Returns whether the state differs from that of a job without `--cold` that starts cold.
    pub fn is_news(&self) -> bool {
        !matches!(
            self.evidence,
            CacheEvidence::Direct | CacheEvidence::NoLibraryCache | CacheEvidence::Invalidated
        )
    }

    /// Creates the state of a layer that was dropped once, before the first jobs of a plan.
    pub fn dropped_at_start(layer: CacheLayer, count: u32, plan: &Plan) -> LayerCache {
        let mut later = plan.jobs.iter().skip(1).map(|job| &job.schedule);
        let evidence = match later.any(|job| job.stonewall || job.wait_for.is_some()) {
            true => CacheEvidence::DroppedBeforeFirst { count },
            false => CacheEvidence::Dropped { count },
        };
        LayerCache::new(layer, evidence)
    }

    /// Returns the layer and its state with the reason, e.g. `client cold (O_DIRECT)`.
    pub fn words(&self) -> String {
        let (layer, state) = (self.layer.name(), self.state.name());
        format!("{layer} {state} ({})", self.reason())
    }

    fn reason(&self) -> String {
        let of = |count: u32| match (self.layer, count) {
            (CacheLayer::Client, _) => String::new(),
            (CacheLayer::Node, 1) => " on 1 node".to_owned(),
            (CacheLayer::Node, _) => format!(" on {count} nodes"),
            (CacheLayer::Osd, 1) => " on 1 OSD".to_owned(),
            (CacheLayer::Osd, _) => format!(" on {count} OSDs"),
        };
        match self.evidence {
            CacheEvidence::Direct => "O_DIRECT".to_owned(),
            CacheEvidence::NoLibraryCache => "the library has no cache".to_owned(),
            CacheEvidence::Dropped { count } => format!("dropped{}", of(count)),
            CacheEvidence::FilesDropped => "pages of the files dropped".to_owned(),
            CacheEvidence::Invalidated => "invalidate=1".to_owned(),
            CacheEvidence::PreRead => "pre_read=1".to_owned(),
            CacheEvidence::LibraryCache => "cache of librbd".to_owned(),
            CacheEvidence::DroppedBeforeFirst { count } => {
                format!("dropped{} before the first jobs only", of(count))
            }
            CacheEvidence::NotDropped => "not dropped".to_owned(),
        }
    }
}

/// Layers whose caches are dropped before jobs start (`--cold`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ColdLayers {
    /// [`CacheLayer::Client`].
    #[serde(default)]
    pub client: bool,
    /// [`CacheLayer::Node`].
    #[serde(default)]
    pub node: bool,
    /// [`CacheLayer::Osd`].
    #[serde(default)]
    pub osd: bool,
}

impl ColdLayers {
    /// Returns the layers of a list.
    pub fn from_layers(layers: &[CacheLayer]) -> ColdLayers {
        ColdLayers {
            client: layers.contains(&CacheLayer::Client),
            node: layers.contains(&CacheLayer::Node),
            osd: layers.contains(&CacheLayer::Osd),
        }
    }

    /// Whether no cache is dropped.
    pub fn is_empty(&self) -> bool {
        *self == ColdLayers::default()
    }
}

/// Returns the state of the client's caches for the measured jobs of a plan. `dropped` is the
/// evidence of `--cold client`. `None` if no job uses a file or a library.
pub fn client_cache(
    plan: &Plan,
    dropped: Option<CacheEvidence>,
    is_library_cache_off: bool,
) -> Option<LayerCache> {
    let measured = plan.jobs.iter().filter(|job| !job.schedule.neighbour);
    let states = measured.filter_map(|job| {
        let evidence = job_evidence(job, dropped, is_library_cache_off)?;
        Some(LayerCache::new(CacheLayer::Client, evidence))
    });
    states.reduce(warmer)
}

/// Returns the warmer of two states, or the first of equal ones.
fn warmer(first: LayerCache, second: LayerCache) -> LayerCache {
    let warmest = match second.state > first.state {
        true => second,
        false => first,
    };
    debug_assert!(warmest.state >= first.state && warmest.state >= second.state);
    warmest
}

fn job_evidence(
    job: &Job,
    dropped: Option<CacheEvidence>,
    is_library_cache_off: bool,
) -> Option<CacheEvidence> {
    match job.io.engine {
        Engine::Rbd if !is_library_cache_off => return Some(CacheEvidence::LibraryCache),
        Engine::Rados | Engine::Rbd => return Some(CacheEvidence::NoLibraryCache),
        engine if !engine.has_paths() => return None,
        _ => {}
    }
    Some(if job.io.direct && job.io.engine != Engine::Mmap {
        dropped.unwrap_or(CacheEvidence::Direct)
    } else if job.files.pre_read && (dropped.is_none() || reads_after_start(job)) {
        CacheEvidence::PreRead
    } else if let Some(dropped) = dropped {
        dropped
    } else if job.files.invalidate {
        CacheEvidence::Invalidated
    } else {
        CacheEvidence::NotDropped
    })
}

/// Whether a job reads its files after the common start, when caches have been dropped: as in fio,
/// its command runs after the delay and before its files are opened.
fn reads_after_start(job: &Job) -> bool {
    let schedule = &job.schedule;
    job.files.pre_read && schedule.exec_prerun.is_some() && schedule.startdelay_ns.1 > 0
}

/// Combines the states of several runs: the warmest of each layer, in the order of the layers.
pub fn combine_caches<'a>(runs: impl Iterator<Item = &'a [LayerCache]>) -> Vec<LayerCache> {
    let mut combined: Vec<LayerCache> = Vec::new();
    for cache in runs.flatten() {
        match combined.iter_mut().find(|known| known.layer == cache.layer) {
            Some(known) => *known = warmer(*known, *cache),
            None => combined.push(*cache),
        }
    }
    combined.sort_by_key(|cache| cache.layer);
    let is_sorted = combined.is_sorted_by(|one, other| one.layer < other.layer);
    debug_assert!(is_sorted, "each layer occurs once");
    combined
}

/// Returns the states of all layers in one line. `None` if there are none.
pub fn describe_caches(caches: &[LayerCache]) -> Option<String> {
    let words: Vec<String> = caches.iter().map(LayerCache::words).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use strum::VariantArray;

    #[test]
    fn cache_layers_are_all_listed_in_order() {
        assert_eq!(CacheLayer::ALL, CacheLayer::VARIANTS);
    }

    fn plan(direct: bool) -> Plan {
        let mut job = Job::new("job");
        job.io.direct = direct;
        job.io.engine = Engine::Psync;
        job.files.invalidate = true;
        job.files.pre_read = false;
        Plan {
            jobs: vec![job],
            global_options: Vec::new(),
        }
    }

    fn words(plan: &Plan, dropped: Option<CacheEvidence>) -> String {
        client_cache(plan, dropped, false).unwrap().words()
    }

    #[test]
    fn client_state_follows_from_the_jobs() {
        assert_eq!(words(&plan(true), None), "client cold (O_DIRECT)");
        assert!(!client_cache(&plan(true), None, false).unwrap().is_news());
        let mut buffered = plan(false);
        assert_eq!(words(&buffered, None), "client cold (invalidate=1)");
        buffered.jobs[0].files.invalidate = false;
        assert_eq!(words(&buffered, None), "client unknown (not dropped)");
        let dropped = Some(CacheEvidence::Dropped { count: 1 });
        assert_eq!(words(&buffered, dropped), "client cold (dropped)");
        buffered.jobs[0].files.pre_read = true;
        // The files are read before the caches are dropped.
        assert_eq!(words(&buffered, dropped), "client cold (dropped)");
        buffered.jobs[0].schedule.exec_prerun = Some("true".to_owned());
        buffered.jobs[0].schedule.startdelay_ns = (0, 1);
        assert_eq!(words(&buffered, dropped), "client warm (pre_read=1)");
        buffered.jobs.push(plan(true).jobs.remove(0));
        assert_eq!(words(&buffered, None), "client warm (pre_read=1)");
        buffered.jobs[0].schedule.neighbour = true;
        assert_eq!(words(&buffered, None), "client cold (O_DIRECT)");
    }

    #[test]
    fn library_cache_is_unknown_unless_it_is_off() {
        let mut image = plan(true);
        image.jobs[0].io.engine = Engine::Rbd;
        let state = |off| client_cache(&image, None, off).unwrap().state;
        assert_eq!(state(false), CacheTemperature::Unknown);
        assert_eq!(state(true), CacheTemperature::Cold);
        image.jobs[0].io.engine = Engine::Null;
        assert_eq!(client_cache(&image, None, false), None);
    }

    #[test]
    fn later_jobs_make_the_state_unknown() {
        let mut two = plan(true);
        two.jobs.push(plan(true).jobs.remove(0));
        let state = |plan: &Plan| LayerCache::dropped_at_start(CacheLayer::Osd, 3, plan).words();
        assert_eq!(state(&two), "osd cold (dropped on 3 OSDs)");
        two.jobs[1].schedule.stonewall = true;
        let expected = "osd unknown (dropped on 3 OSDs before the first jobs only)";
        assert_eq!(state(&two), expected);
    }

    #[test]
    fn warmest_state_of_each_layer_is_combined() {
        let cold = LayerCache::new(CacheLayer::Client, CacheEvidence::Direct);
        let warm = LayerCache::new(CacheLayer::Client, CacheEvidence::PreRead);
        let node = LayerCache::new(CacheLayer::Node, CacheEvidence::Dropped { count: 1 });
        let combined = combine_caches([&[node, cold][..], &[warm][..]].into_iter());
        assert_eq!(combined, [warm, node]);
        let expected = "client warm (pre_read=1); node cold (dropped on 1 node)";
        assert_eq!(describe_caches(&combined).as_deref(), Some(expected));
        assert_eq!(describe_caches(&[]), None);
    }

    #[test]
    fn states_are_stored_under_plain_names() {
        let cache = LayerCache::new(CacheLayer::Osd, CacheEvidence::Dropped { count: 12 });
        let json = serde_json::to_string(&cache).unwrap();
        assert_eq!(
            json,
            r#"{"layer":"osd","state":"cold","evidence":{"dropped":{"count":12}}}"#
        );
        let layers: ColdLayers = serde_json::from_str(r#"{"osd":true}"#).unwrap();
        assert_eq!(layers, ColdLayers::from_layers(&[CacheLayer::Osd]));
    }
}
