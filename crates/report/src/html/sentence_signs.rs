//! Signs of sentences on the page. Sentences are written for terminals, which may have ASCII only.

use super::document::PageReport;

/// Replaces the ASCII signs of the sentences of a report. Names from outside keep theirs.
pub(super) fn replace_ascii_signs(report: &mut PageReport) {
    let PageReport {
        studies,
        winners,
        runs,
        suites,
        expectations,
        promises,
        sweeps,
        knees,
        loads,
        pivots,
        ..
    } = report;
    let mut texts: Vec<&mut String> = Vec::new();
    for study in studies {
        texts.push(&mut study.sentence);
        texts.extend(study.ceilings.iter_mut().chain(&mut study.notes));
        let maxima = study.unknown_maxima.iter_mut();
        texts.extend(maxima.map(|(_, text)| text));
    }
    for winner in winners {
        texts.extend(winner.figures.iter_mut().chain(&mut winner.notes));
    }
    let verdicts = runs.iter_mut().flat_map(|run| &mut run.verdicts);
    texts.extend(verdicts.map(|verdict| &mut verdict.evidence));
    texts.extend(suites.iter_mut().flat_map(|suite| &mut suite.cautions));
    texts.extend(expectations.iter_mut().map(|each| &mut each.evidence));
    for promise in promises {
        texts.extend(promise.sentence.iter_mut().chain(&mut promise.conditions));
    }
    for pivot in pivots {
        let cells = pivot.cells.iter_mut().flatten().flatten();
        texts.extend(cells.filter_map(|cell| cell.note.as_mut()));
    }
    for sweep in sweeps.iter_mut().chain(knees) {
        for curve in &mut sweep.curves {
            texts.extend(curve.sentence.iter_mut().chain(&mut curve.notes));
        }
        texts.extend(&mut sweep.notes);
    }
    for load in loads {
        texts.push(&mut load.knee);
        texts.extend(load.objectives.iter_mut().chain(&mut load.notes));
    }
    for text in texts {
        *text = with_signs(text);
    }
}

/// Replaces `us` after a number, and `+-` before one.
fn with_signs(text: &str) -> String {
    let text = with_plus_minus(text);
    let mut pieces = text.split(" us");
    let mut signed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_after_number = signed.ends_with(|last: char| last.is_ascii_digit());
        let is_unit = is_after_number && !piece.starts_with(char::is_alphanumeric);
        signed.push_str(if is_unit { " µs" } else { " us" });
        signed.push_str(piece);
    }
    signed
}

/// Replaces `+-` before a number. The name of a file may have these signs too.
fn with_plus_minus(text: &str) -> String {
    let mut pieces = text.split("+-");
    let mut signed = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let next = piece.strip_prefix(' ').unwrap_or(piece);
        let is_before_number = next.starts_with(|first: char| first.is_ascii_digit());
        signed.push_str(if is_before_number { "±" } else { "+-" });
        signed.push_str(piece);
    }
    signed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::html::document::{PageExpectation, PagePivot, PageUnit, PivotCell};

    #[test]
    fn sentences_of_suites_and_pivots_have_signs() {
        let mut report = HtmlReportBuilder::default().into_page_report(None);
        report.expectations = vec![PageExpectation {
            suite: "db".to_owned(),
            target: "/mnt/a+-1".to_owned(),
            expectation: "p99 <= 500 us".to_owned(),
            figure: "wal p99".to_owned(),
            verdict: "missed",
            mark: '✗',
            evidence: "597 us +-3 us".to_owned(),
        }];
        report.pivots = vec![PagePivot {
            figure: String::new(),
            title: String::new(),
            unit: PageUnit::Ns,
            row_label: String::new(),
            column_label: String::new(),
            rows: vec![String::new()],
            columns: vec![String::new()],
            cells: vec![vec![Some(PivotCell {
                value: 1.0,
                between: None,
                results: 2,
                note: Some("2 volumes, at most 800 us".to_owned()),
                promised: None,
                product: None,
                kept: None,
            })]],
            simulated: false,
        }];
        replace_ascii_signs(&mut report);
        let judged = &report.expectations[0];
        assert_eq!(judged.evidence, "597 µs ±3 µs");
        assert_eq!(judged.expectation, "p99 <= 500 us", "as the user wrote it");
        let cell = report.pivots[0].cells[0][0].as_ref().unwrap();
        assert_eq!(cell.note.as_deref(), Some("2 volumes, at most 800 µs"));
    }

    #[test]
    fn signs_replace_units_and_no_words() {
        let signed = with_signs("vda used 2 users: 37.8 us +- 3 %, 597 us each; us");
        assert_eq!(signed, "vda used 2 users: 37.8 µs ± 3 %, 597 µs each; us");
        assert_eq!(with_signs(""), "");
        let name = with_signs("/mnt/a+-b: 93k +-2k, 3 +- 1 %, +- x");
        assert_eq!(name, "/mnt/a+-b: 93k ±2k, 3 ± 1 %, +- x");
    }
}
