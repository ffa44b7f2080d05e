//! Winners among the targets of probes for the page: the figures of the terminal.

use super::document::PageWinner;
use crate::comparison::advantage::certainty_of;
use crate::probe::row::titles_of_probes;
use crate::probe::short_report::winner::{faster_side, reservation, winner_in_words};
use crate::probe::side_by_side::of_headlines;
use iosonde_result::compare::{Comparison, ComparisonNote, ComparisonRow, MeasuredResult, compare};
use iosonde_study::probe::ProbeResult;
use std::slice;

/// Stand for the names of both targets, which the page selects.
pub(super) const NAMES: [&str; 2] = ["[first]", "[second]"];

/// Most targets that are compared with the first.
const WINNERS_MAX: usize = 15;

/// A probe whose target is compared with others.
#[derive(PartialEq)]
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
        let notes = page_notes(&all);
        let headlines = of_headlines(&self.result, all);
        PageWinner {
            first: 0,
            second: index,
            sentence: winner_in_words(&headlines, NAMES, Some(&certainty)),
            figures: self.figures(other, &headlines),
            notes,
        }
    }

    /// The faster side by each main figure, or that no difference is shown.
    fn figures(&self, other: &ComparedProbe, headlines: &Comparison) -> Vec<String> {
        let names = titles_of_probes(&[&self.result, &other.result]);
        let lines = headlines.rows.iter().map(|row| {
            let name = names.get(&row.part).unwrap_or(&row.part);
            format!("{name}, {}", figure(row))
        });
        lines.collect()
    }
}

/// Measure and faster side of a row.
fn figure(row: &ComparisonRow) -> String {
    let measure = row.measure.title();
    format!("{measure}: {}{}", faster_side(row, NAMES), reservation(row))
}

/// Notes of a comparison. Those that explain a mark of tables, which the page lacks, are reworded.
fn page_notes(comparison: &Comparison) -> Vec<String> {
    let [first, second] = NAMES;
    let is_unsteady = |row: &ComparisonRow| row.a.unsettled || row.b.unsettled;
    let unsteady = comparison.rows.iter().any(is_unsteady);
    let unsteady = unsteady.then(|| "Some runs are not steady: the rate drifted or jumped".into());
    let others = comparison.notes.iter();
    let others = others.filter(|note| **note != ComparisonNote::NotSteady);
    let has_letters = comparison.notes.iter().any(ComparisonNote::names_sides);
    let names = has_letters.then(|| format!("A is {first}, B is {second}"));
    let others = others.map(ComparisonNote::to_string);
    names.into_iter().chain(others).chain(unsteady).collect()
}

/// Compares each further probe with the first. `probes` are in the order of the studies. A result
/// that was given twice is compared once.
pub(super) fn winners(probes: &[ComparedProbe]) -> Vec<PageWinner> {
    let Some((first, others)) = probes.split_first() else {
        return Vec::new();
    };
    let is_new = |(index, other): &(usize, &ComparedProbe)| !probes[..=*index].contains(other);
    let others = others.iter().enumerate().filter(is_new).take(WINNERS_MAX);
    others
        .map(|(index, other)| first.winner(index + 1, other))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::probe::short_report::ShortReport;
    use crate::probe::short_report::winner::tests::two_rows;
    use crate::probe::simulated::probed;
    use crate::text_style::TextStyle;
    use iosonde_study::probe::ProbeBudget;

    fn words(text: &str) -> String {
        text.split_whitespace().collect::<Vec<&str>>().join(" ")
    }

    #[test]
    fn winner_of_two_targets_is_that_of_the_terminal() {
        let results = ["nvme", "hdd"].map(|device| probed(device, ProbeBudget::QUICK));
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
            winner.sentence.starts_with("[first] is faster in "),
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
            assert!(!line.contains("[second]"), "{line}");
        }
    }

    #[test]
    fn figure_without_difference_is_listed_too() {
        let mut builder = HtmlReportBuilder::default();
        for device in ["nvme", "nvme,seed=7"] {
            builder.probe("file", probed(device, ProbeBudget::QUICK));
        }
        let winners = builder.into_page_report(None).winners;
        let [winner] = winners.as_slice() else {
            panic!("{winners:?}")
        };
        let all = iosonde_study::words::counted(winner.figures.len(), "figure");
        assert!(winner.sentence.contains(&all), "{winner:?}");
        let is_open = |line: &String| line.ends_with("shown") || line.ends_with("undecided");
        assert!(winner.figures.iter().any(is_open), "{winner:?}");
    }

    #[test]
    fn figure_that_may_be_chance_says_so() {
        let comparison = two_rows([(0.9, 1.7), (1.05, 1.7)]);
        let figures: Vec<String> = comparison.rows.iter().map(figure).collect();
        let side = "[second] 1.10 to 1.60 times";
        assert!(
            figures[0].ends_with(&format!(": {side}, may be chance")),
            "{figures:?}"
        );
        assert!(figures[1].ends_with(&format!(": {side}")), "{figures:?}");
    }

    #[test]
    fn page_notes_keep_differing_patterns_and_lose_marks() {
        let mut comparison = Comparison {
            rows: Vec::new(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
            notes: Vec::new(),
        };
        assert!(page_notes(&comparison).is_empty());
        let machines = ComparisonNote::Other("On machines A and B".to_owned());
        comparison.notes = vec![machines.clone()];
        assert_eq!(
            page_notes(&comparison),
            [machines.to_string()],
            "it has no letter to explain"
        );
        let names = ComparisonNote::NamesDiffer {
            a: "*old".to_owned(),
            b: "new".to_owned(),
        };
        comparison.notes = vec![names.clone(), ComparisonNote::NotSteady];
        let names = names.to_string();
        let expected = ["A is [first], B is [second]", names.as_str()];
        assert_eq!(page_notes(&comparison), expected);
    }

    #[test]
    fn result_given_twice_is_compared_once() {
        let mut builder = HtmlReportBuilder::default();
        let results = ["nvme", "hdd"].map(|device| probed(device, ProbeBudget::QUICK));
        for result in results.iter().chain(&results) {
            builder.probe("file", result.clone());
        }
        let winners = builder.into_page_report(None).winners;
        let pairs: Vec<_> = winners
            .iter()
            .map(|each| (each.first, each.second))
            .collect();
        assert_eq!(pairs, [(0, 1)]);
    }

    #[test]
    fn single_target_has_no_winner() {
        let mut builder = HtmlReportBuilder::default();
        builder.probe("file", probed("hdd", ProbeBudget::QUICK));
        assert!(builder.into_page_report(None).winners.is_empty());
    }
}
