//! The compared features of the kernel, and the jobs that show their effect.

/// Features of the ring and of files that a loop without any of them leaves out.
const NO_FEATURES: &str = "sqarray,plain-descriptor,atime";

/// Where a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FeatureTarget {
    /// A sparse file with O_DIRECT.
    Sparse,
    /// A written file, through the page cache.
    Buffered,
    /// A loop device over a file in memory, or the target of `--overwrite`.
    Overwritten,
}

impl FeatureTarget {
    /// All targets in the order of measurement.
    pub(super) const ALL: [FeatureTarget; 3] = [
        FeatureTarget::Sparse,
        FeatureTarget::Buffered,
        FeatureTarget::Overwritten,
    ];
}

/// How a job runs with the feature or without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FeatureSide {
    /// Value of `IOSONDE_RING_OPTIONS`.
    pub(super) ring_options: &'static str,
    /// Option of the job, if there is one.
    pub(super) job_option: Option<&'static str>,
}

/// A job that runs with a feature and without it, in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FeatureCase {
    pub(super) feature: &'static str,
    pub(super) target: FeatureTarget,
    pub(super) pattern: &'static str,
    /// Direction of the figures in the report of the job.
    pub(super) direction: &'static str,
    pub(super) block_size: &'static str,
    pub(super) iodepth: u32,
    pub(super) with: FeatureSide,
    pub(super) without: FeatureSide,
    /// Flags that the result names with the feature only.
    pub(super) flags: &'static [&'static str],
}

impl FeatureCase {
    /// The job in words.
    pub(super) fn job_name(&self) -> String {
        format!(
            "{} {}, depth {}",
            self.pattern, self.block_size, self.iodepth
        )
    }

    /// Options of the job beside its target and length, with the feature if `has_feature`.
    pub(super) fn job_words(&self, has_feature: bool) -> Vec<String> {
        let direct = u8::from(self.target != FeatureTarget::Buffered);
        let mut words = vec![
            "--name=bench".to_owned(),
            "--ioengine=io_uring".to_owned(),
            format!("--direct={direct}"),
            format!("--rw={}", self.pattern),
            format!("--bs={}", self.block_size),
            format!("--iodepth={}", self.iodepth),
        ];
        if self.target == FeatureTarget::Buffered && self.direction == "write" {
            // The next run does not wait for the pages that this one has written.
            words.push("--end_fsync=1".to_owned());
        }
        if self.target == FeatureTarget::Overwritten {
            // The kernel refuses atomic writes from registered buffers.
            words.push("--fixedbufs=0".to_owned());
        }
        let option = self.side(has_feature).job_option;
        words.extend(option.map(str::to_owned));
        words
    }

    /// Returns one of the two sides.
    pub(super) fn side(&self, has_feature: bool) -> FeatureSide {
        match has_feature {
            true => self.with,
            false => self.without,
        }
    }

    /// Returns the flags of the feature that a result lacks.
    pub(super) fn missing_flags(&self, named: &[String]) -> Vec<&'static str> {
        let is_missing = |flag: &&&str| !named.iter().any(|name| name == **flag);
        self.flags.iter().filter(is_missing).copied().collect()
    }
}

/// Returns all comparisons in the order of measurement.
pub(super) fn feature_cases() -> Vec<FeatureCase> {
    let mut cases = Vec::new();
    for iodepth in [64, 1] {
        cases.extend(ring_cases(iodepth));
    }
    cases.extend([
        uncached_case("randread", "read", "4k"),
        uncached_case("write", "write", "64k"),
        FeatureCase {
            feature: "asynchronous discard",
            target: FeatureTarget::Overwritten,
            pattern: "randtrim",
            direction: "trim",
            block_size: "64k",
            iodepth: 16,
            with: ring_side(""),
            without: ring_side("blocking-discard"),
            flags: &["uring_discard"],
        },
        FeatureCase {
            feature: "RWF_ATOMIC",
            target: FeatureTarget::Overwritten,
            pattern: "randwrite",
            direction: "write",
            block_size: "4k",
            iodepth: 16,
            with: job_side("--atomic=1"),
            without: job_side("--atomic=0"),
            flags: &["atomic"],
        },
    ]);
    cases
}

/// The features of the ring and of files: each alone, and all together, against none of them.
fn ring_cases(iodepth: u32) -> [FeatureCase; 4] {
    let case = |feature: &'static str, ring_options, flags: &'static [&'static str]| FeatureCase {
        feature,
        target: FeatureTarget::Sparse,
        pattern: "randread",
        direction: "read",
        block_size: "4k",
        iodepth,
        with: ring_side(ring_options),
        without: ring_side(NO_FEATURES),
        flags,
    };
    [
        case("NO_SQARRAY", "plain-descriptor,atime", &["no_sqarray"]),
        case(
            "registered descriptor",
            "sqarray,atime",
            &["registered_ring"],
        ),
        case("O_NOATIME", "sqarray,plain-descriptor", &["noatime"]),
        case(
            "these three together",
            "",
            &["no_sqarray", "registered_ring", "noatime"],
        ),
    ]
}

fn uncached_case(
    pattern: &'static str,
    direction: &'static str,
    block_size: &'static str,
) -> FeatureCase {
    FeatureCase {
        feature: "RWF_DONTCACHE",
        target: FeatureTarget::Buffered,
        pattern,
        direction,
        block_size,
        iodepth: 16,
        with: job_side("--uncached=1"),
        without: job_side("--uncached=0"),
        flags: &["uncached"],
    }
}

fn ring_side(ring_options: &'static str) -> FeatureSide {
    FeatureSide {
        ring_options,
        job_option: None,
    }
}

fn job_side(option: &'static str) -> FeatureSide {
    FeatureSide {
        ring_options: "",
        job_option: Some(option),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_features_are_compared_alone_and_together() {
        for iodepth in [64, 1] {
            let cases = ring_cases(iodepth);
            for case in &cases {
                assert_eq!(case.without.ring_options, NO_FEATURES);
                let left_out = case
                    .with
                    .ring_options
                    .split(',')
                    .filter(|it| !it.is_empty());
                assert_eq!(left_out.count() + case.flags.len(), 3, "{case:?}");
            }
            assert_eq!(cases[3].flags.len(), 3);
        }
        assert_eq!(feature_cases().len(), 4 * 2 + 4);
    }

    #[test]
    fn sides_of_a_case_differ_in_the_feature_only() {
        for case in feature_cases() {
            assert_ne!(case.with, case.without, "{case:?}");
            let words = [true, false].map(|has_feature| case.job_words(has_feature));
            let others = words.map(|words| {
                let is_common = |word: &String| {
                    !word.starts_with("--uncached") && !word.starts_with("--atomic")
                };
                words.into_iter().filter(is_common).collect::<Vec<_>>()
            });
            assert_eq!(others[0], others[1], "{case:?}");
        }
    }

    #[test]
    fn feature_is_missing_unless_the_result_names_all_its_flags() {
        let [.., together] = ring_cases(64);
        let named = ["tsc", "noatime", "no_sqarray"].map(str::to_owned);
        assert_eq!(together.missing_flags(&named), ["registered_ring"]);
        let all = ["noatime", "no_sqarray", "registered_ring"].map(str::to_owned);
        assert_eq!(together.missing_flags(&all), [""; 0]);
    }

    #[test]
    fn buffered_job_has_no_direct_io() {
        let words = uncached_case("randread", "read", "4k").job_words(true);
        for word in ["--direct=0", "--rw=randread", "--bs=4k", "--uncached=1"] {
            assert!(words.iter().any(|each| each == word), "{word}: {words:?}");
        }
        assert!(!words.contains(&"--fixedbufs=0".to_owned()));
    }
}
