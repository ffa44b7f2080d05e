//! Parser of the text that describes a simulated device: an optional preset, then `key=value`
//! items, separated by commas.

use super::keys::KEYS;
use super::presets::PRESETS;
use super::spec::SimSpec;
use iosonde_job::diagnostic::nearest;
use std::fmt;

/// The reason why a text describes no device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimSpecError {
    /// A word without `=` is not a preset.
    #[error(
        "there is no simulated device `{word}`{}; there are {}",
        meant(.word, preset_names()), name_list(preset_names())
    )]
    UnknownPreset {
        /// The word.
        word: String,
    },
    /// A word without `=` is not the first word.
    #[error("`{word}` has no value: a preset comes first, all else is key=value")]
    MissingValue {
        /// The word.
        word: String,
    },
    /// The device has no such key.
    #[error(
        "a simulated device has no key `{key}`{}; its keys are {}",
        meant(.key, key_names()), name_list(key_names())
    )]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key is given twice.
    #[error("the key `{key}` is given twice")]
    Twice {
        /// The key.
        key: String,
    },
    /// A value is invalid.
    #[error("{key}={value}: {problem}; it takes {grammar}")]
    Value {
        /// Key.
        key: &'static str,
        /// The value.
        value: String,
        /// The reason why the value is invalid.
        problem: String,
        /// Grammar of the value.
        grammar: &'static str,
    },
    /// Values contradict each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

fn meant<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> String {
    nearest(word, names).map_or_else(String::new, |name| format!(" (did you mean `{name}`?)"))
}

fn name_list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|preset| preset.name)
}

fn key_names() -> impl Iterator<Item = &'static str> {
    KEYS.iter().map(|key| key.name)
}

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

    /// Fails if values contradict each other or no device can have them.
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

/// Prints the keys that differ from the default device, in the form that [`SimSpec::parse`] reads.
impl fmt::Display for SimSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = SimSpec::default();
        let mut comma = "";
        for key in KEYS {
            let value = key.format_value(self);
            if value != key.format_value(&default) {
                write!(formatter, "{comma}{}={value}", key.name)?;
                comma = ",";
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec::*;
    use super::super::service_time::{ServiceTime, ServiceTimeShape};
    use super::super::spec::{Cap, Failing, StoreFaults};
    use super::*;

    fn error(text: &str) -> String {
        SimSpec::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn preset_keys_are_overridden_singly() {
        let spec = SimSpec::parse("nvme,seed=7,read_us=85.5,read_dist=fixed,parallel=16").unwrap();
        assert_eq!(spec.seed, 7);
        assert_eq!(spec.service.read, ServiceTime::fixed(85_500.0));
        assert_eq!(spec.layout.parallel, 16);
        assert_eq!(spec.capacity_bytes, Some(2 << 40));
    }

    #[test]
    fn values_have_units_and_parts() {
        let text = "read_us=1.5ms,write_dist=bimodal:0.01:5ms,cap_iops=300:5400000:3000,cap_bw=20m,\
                    error_at=9:ENOSPC,error_range=1m-2m,read_error=0.5,flip=3";
        let spec = SimSpec::parse(text).unwrap();
        assert_eq!(spec.service.read.time_ns, 1.5e6);
        let outliers = ServiceTimeShape::Bimodal {
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
    fn presets_round_trip_through_text() {
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
    fn keys_round_trip_through_text() {
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
    fn spec_errors_name_key_and_remedy() {
        let unknown = error("red_us=80");
        assert!(unknown.contains("did you mean `read_us`?"), "{unknown}");
        assert!(
            unknown.contains("its keys are seed, run, capacity, "),
            "{unknown}"
        );
        assert!(error("nvm").contains("did you mean `nvme`?"));
        let no_value = SimSpecError::MissingValue {
            word: "hdd".to_owned(),
        };
        assert_eq!(SimSpec::parse("nvme,hdd"), Err(no_value));
        let twice = SimSpecError::Twice {
            key: "seed".to_owned(),
        };
        assert_eq!(SimSpec::parse("seed=1,seed=2"), Err(twice));
        assert_eq!(
            error("parallel=0"),
            "parallel=0: `0` is not between 1 and 65536; it takes count from 1"
        );
        let low_peak = SimSpecError::Value {
            key: "cap_iops",
            value: "3000:10:2000".to_owned(),
            problem: "the peak rate must be above the rate itself".to_owned(),
            grammar: CAP_IOPS.grammar,
        };
        assert_eq!(SimSpec::parse("cap_iops=3000:10:2000"), Err(low_peak));
        for (name, given, expected) in [
            ("read_dist", "gamma", SHAPE.grammar),
            ("error_at", "3:EWHAT", FAILING_ONE.grammar),
        ] {
            let parsed = SimSpec::parse(&format!("{name}={given}"));
            let Err(SimSpecError::Value {
                key,
                value,
                grammar,
                ..
            }) = parsed
            else {
                panic!("{parsed:?}");
            };
            assert_eq!((key, value.as_str(), grammar), (name, given, expected));
        }
    }

    #[test]
    fn conflicting_spec_values_are_refused() {
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
            let Err(SimSpecError::Contradiction(problem)) = SimSpec::parse(text) else {
                panic!("{text} is no contradiction");
            };
            assert!(problem.contains(part), "{text}: {problem}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_specs_never_panic(
            text in "[a-z_]{0,6}(,[a-z_]{1,12}=[0-9a-zA-Z.:-]{0,8}){0,4}"
        ) {
            let _ = SimSpec::parse(&text);
        }
    }
}
