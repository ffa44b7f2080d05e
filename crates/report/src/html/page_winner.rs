//! Winners among the targets of probes for the page: the figures of the terminal.

use super::document::PageWinner;
use crate::comparison::advantage::{certainty_of, differs};
use crate::probe::row::titles;
use crate::probe::short_report::winner::{faster_side, winner_in_words};
use crate::probe::side_by_side::of_headlines;
use iosonde_result::compare::{Comparison, MeasuredResult, compare};
use iosonde_study::probe::ProbeResult;
use std::slice;

/// Stand for the names of both targets, which the page selects.
const NAMES: [&str; 2] = ["[first]", "[second]"];

/// Most targets that are compared with the first.
const WINNERS_MAX: usize = 15;

/// A probe whose target is compared with others.
pub(super) struct ComparedProbe {
    /// The probe. Its runs are not needed.
    pub(super) result: ProbeResult,
    pub(super) measured: MeasuredResult,
}

impl ComparedProbe {
    /// Compares another probe with this one.
    fn winner(&self, index: usize, other: &ComparedProbe) -> PageWinner {
        let all = compare(
            slice::from_ref(&self.measured),
            slice::from_ref(&other.measured),
        );
        let certainty = certainty_of(&all);
        let headlines = of_headlines(&self.result, all);
        PageWinner {
            first: 0,
            second: index,
            sentence: winner_in_words(&headlines, NAMES, &certainty),
            figures: self.figures(other, &headlines),
        }
    }

    /// The faster side by each main figure that differs.
    fn figures(&self, other: &ComparedProbe, headlines: &Comparison) -> Vec<String> {
        let mut names = titles(&other.result);
        names.extend(titles(&self.result));
        let differing = headlines.rows.iter().filter(|row| differs(row));
        let lines = differing.map(|row| {
            let name = names.get(&row.part).unwrap_or(&row.part);
            let measure = row.measure.title();
            format!("{name}, {measure}: {}", faster_side(row, NAMES))
        });
        lines.collect()
    }
}

/// Compares each further probe with the first. `probes` are in the order of the studies.
pub(super) fn winners(probes: &[ComparedProbe]) -> Vec<PageWinner> {
    let Some((first, others)) = probes.split_first() else {
        return Vec::new();
    };
    let others = others.iter().take(WINNERS_MAX).enumerate();
    others
        .map(|(index, other)| first.winner(index + 1, other))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::html::HtmlReportBuilder;
    use crate::probe::short_report::ShortReport;
    use crate::text_style::TextStyle;
    use iosonde_engine::runner::LocalRunner;
    use iosonde_study::probe::{
        ProbeBudget, ProbeOptions, ProbeResult, StudyTarget, StudyTargetKind, probe,
    };

    fn probed(device: &str) -> ProbeResult {
        let target = StudyTarget {
            name: format!("sim:{device}"),
            path: "sim".to_owned(),
            kind: StudyTargetKind::Simulated {
                options: device.to_owned(),
            },
        };
        let options = ProbeOptions {
            budget: ProbeBudget::QUICK,
            size_bytes: None,
            direct: true,
            seed: 1,
        };
        let mut session = LocalRunner::default().open();
        probe(&mut session, &target, &options, &mut ()).unwrap()
    }

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    }

    #[test]
    fn winner_of_two_targets_is_that_of_the_terminal() {
        let results = [probed("nvme"), probed("hdd")];
        let terminal = ShortReport {
            results: &results,
            ids: &[None, None],
            store_options: "",
            brief: false,
            style: TextStyle {
                utf8: true,
                color: false,
            },
        };
        let terminal = words(&terminal.text());
        let mut builder = HtmlReportBuilder::default();
        for result in results {
            builder.probe("file", result);
        }
        let page = builder.into_page_report(None);
        let [winner] = page.winners.as_slice() else {
            panic!("{:?}", page.winners)
        };
        assert_eq!((winner.first, winner.second), (0, 1));
        assert!(
            winner.sentence.starts_with("[first]: faster in "),
            "{winner:?}"
        );
        let letters = |text: &str| text.replace("[first]", "A").replace("[second]", "B");
        let sentence = letters(&winner.sentence);
        assert!(
            terminal.contains(&sentence),
            "{sentence} is not in {terminal}"
        );
        assert!(!winner.figures.is_empty());
        for line in &winner.figures {
            assert!(line.contains(": [first] "), "{line}");
        }
    }

    #[test]
    fn single_target_has_no_winner() {
        let mut builder = HtmlReportBuilder::default();
        builder.probe("file", probed("hdd"));
        assert!(builder.into_page_report(None).winners.is_empty());
    }
}
