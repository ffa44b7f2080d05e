//! The same job with a cache tier, in `readproxy` mode, and without the tier.

use crate::column_groups::{FigureColumn, grouped_tables};
use crate::figures::value;
use crate::json_document::json_document;
use crate::text_table::{aligned_columns, fill_table, is_narrow, plain, render_left, wrapped};
use iosonde_result::ceph::CacheTierActivity;
use iosonde_result::compare::{Figure, Measure, ResultPart, Subject};
use iosonde_study::words;
use serde::Serialize;

/// Measures of the table.
const MEASURES: [Measure; 4] = [
    Measure::Iops,
    Measure::BytesPerS,
    Measure::LatMean,
    Measure::LatP99,
];
/// First release of Ceph that deprecates cache tiers.
const DEPRECATED_SINCE: u32 = 18;

/// Results of one job in several setups of a cache tier.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheComparison {
    /// The base pool of the tier.
    pub pool: String,
    /// The pool of the tier.
    pub tier: String,
    /// Results in the order of their runs. The first is with the tier as it was.
    pub setups: Vec<CacheSetup>,
    /// Remarks, one sentence each.
    pub notes: Vec<String>,
}

/// Result of the job in one setup.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheSetup {
    /// Mode of the tier, or `no tier`.
    pub name: String,
    /// Whether the pool had no tier.
    pub is_without_tier: bool,
    /// Figures of each job.
    pub jobs: Vec<ResultPart>,
    /// Activity of the tier during the run.
    pub cache_tier: Option<CacheTierActivity>,
}

impl CacheSetup {
    fn figure(&self, job: &str, subject: Subject, measure: Measure) -> Option<&Figure> {
        let job = self.jobs.iter().find(|part| part.name == job)?;
        job.figure(subject, measure)
    }
}

impl CacheComparison {
    /// Notes that the cluster's release deprecates cache tiers, if it does.
    pub fn note_release(&mut self, release: &str) {
        let major = release.split('.').next().and_then(|text| text.parse().ok());
        if major.is_some_and(|major: u32| major >= DEPRECATED_SINCE) {
            self.notes.push(format!(
                "cache tiers are deprecated since Ceph {DEPRECATED_SINCE} (Reef); this cluster \
                 runs {release}"
            ));
        }
    }

    /// Whether the tier made each job faster or slower, one sentence each.
    pub fn findings(&self) -> Vec<String> {
        let without = self.setups.iter().find(|setup| setup.is_without_tier);
        let (Some(with), Some(without)) = (self.setups.first(), without) else {
            return Vec::new();
        };
        let hits = with.cache_tier.and_then(|tier| tier.hit_rate());
        let hits = hits.map_or(String::new(), |rate| format!("; {:.1}% hits", rate * 100.0));
        let subjects = self.subjects().into_iter();
        subjects
            .filter_map(|(job, subject)| {
                let with = with.figure(&job, subject, Measure::Iops)?;
                let without = without.figure(&job, subject, Measure::Iops)?;
                Some(format!(
                    "{job}, {}: {}: {} IOPS with the tier, {} without it, a ratio of {}{hits}",
                    subject.name(),
                    effect(with, without),
                    words::iops_text(with.value),
                    words::iops_text(without.value),
                    words::three_digits(with.value / without.value),
                ))
            })
            .collect()
    }

    /// Jobs and directions of the first setup.
    fn subjects(&self) -> Vec<(String, Subject)> {
        let jobs = self.setups.iter().take(1).flat_map(|setup| &setup.jobs);
        let subjects = jobs.flat_map(|part| {
            let rates = part.figures.iter();
            let rates = rates.filter(|figure| figure.measure == Measure::Iops);
            rates.map(move |figure| (part.name.clone(), figure.subject))
        });
        subjects.collect()
    }

    /// Rows of the table: the name and the figure of each setup.
    fn rows(&self) -> Vec<(String, Vec<String>)> {
        let mut rows = Vec::new();
        for (job, subject) in self.subjects() {
            for measure in MEASURES {
                let label = format!("{job}, {} {}", subject.name(), measure.short_title());
                let figures = self.setups.iter().map(|setup| {
                    let figure = setup.figure(&job, subject, measure);
                    figure.map_or("-".to_owned(), |figure| value(measure, figure.value))
                });
                rows.push((label, figures.collect()));
            }
        }
        for (label, text) in TIER_ROWS {
            let figures = self.setups.iter().map(|setup| {
                let activity = setup.cache_tier.as_ref();
                activity.map_or("-".to_owned(), text)
            });
            rows.push((label.to_owned(), figures.collect()));
        }
        rows
    }

    /// The table. A narrow terminal shows setups that do not fit in another table.
    fn table(&self) -> String {
        let rows = self.rows();
        if is_narrow() {
            let labels: Vec<&str> = rows.iter().map(|(label, _)| label.as_str()).collect();
            let figure_column = |(index, setup): (usize, &CacheSetup)| {
                let figures = rows.iter().map(|(_, figures)| figures[index].clone());
                FigureColumn {
                    title: setup.name.clone(),
                    figures: figures.collect(),
                }
            };
            let setups = self.setups.iter().enumerate();
            let figure_columns: Vec<FigureColumn> = setups.map(figure_column).collect();
            return grouped_tables(&self.tier, &labels, &figure_columns);
        }
        let names = self.setups.iter().map(|setup| setup.name.as_str());
        let head: Vec<&str> = [self.tier.as_str()].into_iter().chain(names).collect();
        let rows = rows.into_iter();
        let rows = rows.map(|(label, figures)| [vec![label], figures].concat());
        render_left(&mut fill_table(plain(), &aligned_columns(&head, 1), rows))
    }

    /// The table, the findings and the notes.
    pub fn text(&self) -> String {
        let mut text = self.table();
        text.push('\n');
        for finding in self.findings() {
            text += &wrapped(&format!("{finding}."));
        }
        for note in &self.notes {
            text += &wrapped(&format!("note: {note}"));
        }
        text
    }

    /// The JSON document.
    ///
    /// # Errors
    /// Those of the serialisation.
    pub fn json(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct WithFindings<'a> {
            #[serde(flatten)]
            comparison: &'a CacheComparison,
            findings: Vec<String>,
        }
        json_document(
            "cache_comparison",
            WithFindings {
                comparison: self,
                findings: self.findings(),
            },
        )
    }
}

/// Text of one row about the tier.
type TierText = fn(&CacheTierActivity) -> String;

/// Rows of the table about the tier: name and text.
const TIER_ROWS: [(&str, TierText); 5] = [
    ("tier hits", |tier| {
        let rate = tier.hit_rate();
        rate.map_or("-".to_owned(), |rate| format!("{:.1}%", rate * 100.0))
    }),
    ("tier operations passed on", |tier| {
        words::iops_text((tier.proxied_reads + tier.proxied_writes) as f64)
    }),
    ("tier promotions", |tier| {
        words::iops_text(tier.promotions as f64)
    }),
    ("tier flushes", |tier| words::iops_text(tier.flushes as f64)),
    ("tier evictions", |tier| {
        words::iops_text(tier.evictions as f64)
    }),
];

/// Effect of the tier on a rate, by the confidence intervals.
fn effect(with: &Figure, without: &Figure) -> &'static str {
    let (Some(a), Some(b)) = (with.bounds, without.bounds) else {
        return "whether the tier helps is not known: the run is too short";
    };
    if a.high < b.low {
        "the tier is slower, as is usual without many hits"
    } else if a.low > b.high {
        "the tier is faster"
    } else {
        "no difference is shown"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::compare::{Bounds, IntervalBasis, IoPattern};

    fn setup(name: &str, iops: f64, tier: Option<CacheTierActivity>) -> CacheSetup {
        let figure = |measure, value: f64| Figure {
            subject: Subject::Read,
            measure,
            value,
            bounds: Some(Bounds {
                low: value * 0.95,
                high: value * 1.05,
                freedom: 20.0,
                repeat_factor: 1.0,
                basis: IntervalBasis::Series,
            }),
            settled: Some(true),
        };
        CacheSetup {
            name: name.to_owned(),
            is_without_tier: tier.is_none(),
            jobs: vec![ResultPart {
                name: "skewed".to_owned(),
                pattern: IoPattern::default(),
                figures: vec![
                    figure(Measure::Iops, iops),
                    figure(Measure::LatP99, 1e9 / iops),
                ],
                role: Default::default(),
            }],
            cache_tier: tier,
        }
    }

    fn comparison(with: f64, without: f64) -> CacheComparison {
        let tier = CacheTierActivity {
            hits: 30,
            proxied_reads: 70,
            promotions: 12,
            ..CacheTierActivity::default()
        };
        CacheComparison {
            pool: "cold".to_owned(),
            tier: "hot".to_owned(),
            setups: vec![
                setup("writeback", with, Some(tier)),
                setup("no tier", without, None),
            ],
            notes: Vec::new(),
        }
    }

    #[test]
    fn slower_tier_is_a_finding_with_its_figures() {
        assert_eq!(
            comparison(1000.0, 2000.0).findings(),
            [
                "skewed, read: the tier is slower, as is usual without many hits: 1.00k IOPS with \
                 the tier, 2.00k without it, a ratio of 0.500; 30.0% hits"
            ]
        );
        let faster = comparison(2000.0, 1000.0).findings();
        assert!(faster[0].contains("the tier is faster"), "{faster:?}");
        let equal = comparison(1000.0, 1020.0).findings();
        assert!(equal[0].contains("no difference is shown"), "{equal:?}");
        let mut short = comparison(1000.0, 2000.0);
        short.setups[0].jobs[0].figures[0].bounds = None;
        assert!(short.findings()[0].contains("too short"));
        short.setups.truncate(1);
        assert!(short.findings().is_empty(), "nothing to compare with");
    }

    #[test]
    fn comparison_fits_a_narrow_terminal_with_all_setups() {
        let mut compared = comparison(123_000.0, 2000.0);
        compared.tier = "hot-tier-of-the-cold-pool".to_owned();
        let mut middle = compared.setups[0].clone();
        middle.name = "readproxy".to_owned();
        compared.setups.insert(1, middle);
        for setup in &mut compared.setups {
            setup.jobs[0].name = "skewed-reads-of-the-whole-pool".to_owned();
        }
        compared.note_release("18.2.4 reef");
        for columns in [40, 60] {
            crate::text_table::set_columns(columns);
            let text = compared.text();
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest.unwrap() <= columns, "{text}");
            let (tables, _) = text.split_once(':').unwrap();
            for part in ["writeback", "readproxy", "no tier"] {
                assert!(tables.contains(part), "{part}: {text}");
            }
            assert_eq!(tables.matches(" 123k").count(), 2, "{text}");
            assert_eq!(tables.matches(" 2.00k").count(), 1, "{text}");
            assert_eq!(tables.matches(" 30.0%").count(), 2, "{text}");
        }
        crate::text_table::set_columns(80);
    }

    #[test]
    fn comparison_text_has_setups_as_columns() {
        let mut compared = comparison(1000.0, 2000.0);
        compared.note_release("16.2.11 pacific");
        assert!(compared.notes.is_empty());
        compared.note_release("18.2.4 reef");
        let text = compared.text();
        for expected in ["writeback", "no tier", "tier promotions", "deprecated"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let row = text.lines().find(|line| line.starts_with("tier hits"));
        let words: Vec<&str> = row.unwrap().split_whitespace().collect();
        assert_eq!(words, ["tier", "hits", "30.0%", "-"]);
        let document: serde_json::Value = serde_json::from_str(&compared.json().unwrap()).unwrap();
        assert_eq!(document["kind"], "cache_comparison");
        assert_eq!(document["setups"][0]["cache_tier"]["hits"], 30);
        assert!(document["findings"][0].is_string());
    }
}
