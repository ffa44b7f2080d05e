//! Identities of studies and steps. A journal is named by the digest of its key as JSON, so that a
//! command resumes only a study with equal targets, jobs and options.

use iosonde_cluster::Pods;
use iosonde_job::Neighbour;
use iosonde_result::cache_state::ColdLayers;
use iosonde_study::sweep::{Axis, SweepGrid, SweepOptions};
use iosonde_suite::{StepKind, Suite, SuiteStep};
use serde::Serialize;

/// Version of the keys; increases when a field changes its meaning.
pub(super) const KEY_VERSION: u32 = 1;

/// Identity of a sweep. It has no budget: a sweep may be resumed with another one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SweepJournalKey<'a> {
    version: u32,
    targets: &'a [String],
    /// Text of the job file; empty without one.
    job_file: &'a str,
    axes: &'a [Axis],
    exhaustive: bool,
    runtime_ns: u64,
    seed: u64,
    most_warmup_ns: Option<u64>,
    /// Requested pods, and the number of pods that run each plan.
    pods: Option<(Pods, u32)>,
    /// Options of the neighbour.
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<&'a str>,
    /// Layers whose caches are dropped.
    #[serde(skip_serializing_if = "ColdLayers::is_empty")]
    cold: ColdLayers,
}

impl<'a> SweepJournalKey<'a> {
    /// The identity of the same sweep beside a neighbour.
    pub(crate) fn beside(self, neighbour: Option<&'a Neighbour>) -> SweepJournalKey<'a> {
        SweepJournalKey {
            beside: neighbour.map(|neighbour| neighbour.options.as_str()),
            ..self
        }
    }

    /// The identity of the same sweep with cold caches.
    pub(crate) fn cold(self, cold: ColdLayers) -> SweepJournalKey<'a> {
        SweepJournalKey { cold, ..self }
    }

    /// The identity of a sweep of a grid.
    pub(crate) fn new(
        targets: &'a [String],
        job_file: &'a str,
        (grid, options): (&'a SweepGrid, &SweepOptions),
        pods: Option<(Pods, u32)>,
    ) -> SweepJournalKey<'a> {
        SweepJournalKey {
            version: KEY_VERSION,
            targets,
            job_file,
            axes: &grid.axes,
            exhaustive: options.exhaustive,
            runtime_ns: options.runtime_ns,
            seed: options.seed,
            most_warmup_ns: options.most_warmup_ns,
            pods,
            beside: None,
            cold: ColdLayers::default(),
        }
    }
}

/// Identity of a suite on its targets.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct SuiteJournalKey<'a> {
    version: u32,
    suite: &'a str,
    targets: &'a [String],
    /// Pods that run each step at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<Pods>,
    /// Layers whose caches are dropped.
    #[serde(skip_serializing_if = "ColdLayers::is_empty")]
    cold: ColdLayers,
    /// Name and kind of each step.
    steps: Vec<(&'a str, &'a StepKind)>,
}

impl<'a> SuiteJournalKey<'a> {
    /// The identity of the same suite with cold caches.
    pub(crate) fn cold(self, cold: ColdLayers) -> SuiteJournalKey<'a> {
        SuiteJournalKey { cold, ..self }
    }

    /// The identity of a suite on targets, with the pods that run each step.
    pub(crate) fn new(
        suite: &'a Suite,
        targets: &'a [String],
        pods: Option<Pods>,
    ) -> SuiteJournalKey<'a> {
        let steps = suite.steps.iter();
        SuiteJournalKey {
            version: KEY_VERSION,
            suite: &suite.name,
            targets,
            pods,
            cold: ColdLayers::default(),
            steps: steps.map(|step| (step.name.as_str(), &step.what)).collect(),
        }
    }
}

/// Identity of a repetition of a suite's step on a target.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StepJournalKey<'a> {
    version: u32,
    suite: &'a str,
    target: &'a str,
    step: &'a str,
    what: &'a StepKind,
    repetition: u32,
    /// Number of pods that run the step, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pods: Option<u32>,
}

impl<'a> StepJournalKey<'a> {
    /// The identity of a repetition of a step, and the number of pods that run it.
    pub(crate) fn new(
        (suite, target): (&'a str, &'a str),
        step: &'a SuiteStep,
        (repetition, pods): (u32, u32),
    ) -> StepJournalKey<'a> {
        StepJournalKey {
            version: KEY_VERSION,
            suite,
            target,
            step: &step.name,
            what: &step.what,
            repetition,
            pods: (pods > 1).then_some(pods),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_cluster::PodPlacement;
    use iosonde_job::plan::{Job, Plan};

    /// The text that is digested.
    fn text(key: &impl Serialize) -> String {
        serde_json::to_string(key).unwrap()
    }

    /// Asserts that each of the keys differs from the first, and that the first is reproducible.
    fn assert_all_differ<K: Serialize + Clone>(key: &K, others: &[K]) {
        assert_eq!(text(key), text(&key.clone()));
        for other in others {
            assert_ne!(text(key), text(other));
        }
    }

    /// Pods of which each but the first differs from the first in one field.
    fn pod_variants() -> [Pods; 4] {
        let pods = Pods {
            count: Some(2),
            placement: PodPlacement::Any,
            shared: false,
            checks_shared_file: false,
        };
        let spread = Pods {
            placement: PodPlacement::Spread,
            ..pods
        };
        let shared = Pods {
            shared: true,
            checks_shared_file: false,
            ..pods
        };
        let each = Pods {
            count: None,
            ..pods
        };
        [pods, spread, shared, each]
    }

    #[test]
    fn sweep_key_changes_with_each_field() {
        let axis = |value: &str| {
            vec![Axis {
                name: "bs".to_owned(),
                values: vec![value.to_owned()],
            }]
        };
        let (axes, other_axes) = (axis("4k"), axis("8k"));
        let (targets, other_targets) = (["/a".to_owned()], ["/b".to_owned()]);
        let key = SweepJournalKey {
            version: KEY_VERSION,
            targets: &targets,
            job_file: "[a]\n",
            axes: &axes,
            exhaustive: false,
            runtime_ns: 1,
            seed: 1,
            most_warmup_ns: None,
            pods: None,
            beside: None,
            cold: ColdLayers::default(),
        };
        let [pods, spread, shared, each] = pod_variants();
        let with = |change: &dyn Fn(&mut SweepJournalKey<'_>)| {
            let mut changed = key.clone();
            change(&mut changed);
            text(&changed)
        };
        let mut texts = vec![
            text(&key),
            with(&|key| key.version += 1),
            text(&SweepJournalKey {
                targets: &other_targets,
                ..key.clone()
            }),
            with(&|key| key.job_file = "[b]\n"),
            text(&SweepJournalKey {
                axes: &other_axes,
                ..key.clone()
            }),
            with(&|key| key.exhaustive = true),
            with(&|key| key.runtime_ns = 2),
            with(&|key| key.seed = 2),
            with(&|key| key.most_warmup_ns = Some(1)),
            with(&|key| key.pods = Some((pods, 2))),
            with(&|key| key.pods = Some((pods, 3))),
            with(&|key| key.pods = Some((spread, 2))),
            with(&|key| key.pods = Some((shared, 2))),
            with(&|key| key.pods = Some((each, 2))),
            with(&|key| key.beside = Some("rw=write")),
        ];
        assert_eq!(with(&|_| {}), texts[0]);
        let count = texts.len();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), count, "{texts:?}");
    }

    fn jobs(name: &str) -> StepKind {
        StepKind::Jobs(Box::new(Plan {
            jobs: vec![Job::new(name)],
            ..Plan::default()
        }))
    }

    #[test]
    fn step_key_changes_with_each_field() {
        let (what, other_what) = (jobs("a"), jobs("b"));
        let key = StepJournalKey {
            version: KEY_VERSION,
            suite: "s",
            target: "/a",
            step: "w",
            what: &what,
            repetition: 1,
            pods: None,
        };
        let others = [
            StepJournalKey {
                version: KEY_VERSION + 1,
                ..key.clone()
            },
            StepJournalKey {
                suite: "t",
                ..key.clone()
            },
            StepJournalKey {
                target: "/b",
                ..key.clone()
            },
            StepJournalKey {
                step: "x",
                ..key.clone()
            },
            StepJournalKey {
                what: &other_what,
                ..key.clone()
            },
            StepJournalKey {
                repetition: 2,
                ..key.clone()
            },
            StepJournalKey {
                pods: Some(2),
                ..key.clone()
            },
        ];
        assert_all_differ(&key, &others);
    }

    #[test]
    fn suite_key_changes_with_each_field() {
        let (what, other_what) = (jobs("a"), jobs("b"));
        let (targets, other_targets) = (["/a".to_owned()], ["/b".to_owned()]);
        let key = SuiteJournalKey {
            version: KEY_VERSION,
            suite: "s",
            targets: &targets,
            pods: None,
            cold: ColdLayers::default(),
            steps: vec![("w", &what)],
        };
        let others = [
            SuiteJournalKey {
                version: KEY_VERSION + 1,
                ..key.clone()
            },
            SuiteJournalKey {
                suite: "t",
                ..key.clone()
            },
            SuiteJournalKey {
                targets: &other_targets,
                ..key.clone()
            },
            SuiteJournalKey {
                pods: Some(Pods {
                    count: Some(2),
                    placement: PodPlacement::Any,
                    shared: false,
                    checks_shared_file: false,
                }),
                ..key.clone()
            },
            key.clone().cold(ColdLayers {
                osd: true,
                ..ColdLayers::default()
            }),
            SuiteJournalKey {
                steps: vec![("x", &what)],
                ..key.clone()
            },
            SuiteJournalKey {
                steps: vec![("w", &other_what)],
                ..key.clone()
            },
            SuiteJournalKey {
                steps: vec![("w", &what), ("w", &what)],
                ..key.clone()
            },
        ];
        assert_all_differ(&key, &others);
    }
}
