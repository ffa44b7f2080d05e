//! Promises, figures by labels and spreads as text, for browsers whose scripts are off.

use super::document::{
    PagePivot, PagePromise, PageRate, PageSpread, PageUnit, PivotCell, PromiseRow, SpreadRow,
};
use super::page_quantity::quantity;
use super::text_elements::{element, short_name, table, table_row};
use crate::intervals::half_width;
use crate::known_digits::{
    BANDWIDTH_UNITS, LATENCY_UNITS_UTF8, RATE_UNITS, UnitLadder, with_interval,
};
use std::iter;

/// A figure that is not known.
const UNKNOWN: &str = "-";

/// Columns of a promise.
const PROMISE_COLUMNS: [&str; 4] = ["figure", "promised", "measured", "verdict"];
/// Columns of a pivot table after its two labels.
const PIVOT_COLUMNS: [&str; 3] = ["measured", "promised", "note"];
/// Columns of a spread.
const SPREAD_COLUMNS: [&str; 6] = [
    "figure",
    "mean",
    "runs",
    "machines",
    "within a machine",
    "between machines",
];
/// Meaning of the last two columns of a spread, in the words of the page.
const SPREAD_MEANING: &str = "Standard deviations in per cent of the mean: between runs of one \
                              machine, and between machines in addition. ~: interval not known.";

/// The verdict on a promise, with a row for each figure.
pub(super) fn promise_elements(promise: &PagePromise) -> Vec<String> {
    let (product, place) = (&promise.product, short_name(&promise.place));
    let head = match &promise.sentence {
        Some(sentence) => format!("Promised: {product}, compared with {place}. {sentence}"),
        None => format!("Promised: {product}, compared with the fastest of each kind on {place}."),
    };
    let rows = promise.rows.iter().map(|each| {
        table_row(&[
            each.what.clone(),
            quantity(each.promised, each.unit),
            rate_text(each.measured, each.unit),
            verdict_text(each),
        ])
    });
    let source = element("p", &format!("Source: {}", promise.source));
    let conditions = promise.conditions.iter().map(|text| element("p", text));
    iter::once(element("p", &head))
        .chain(table(&PROMISE_COLUMNS, rows.collect()))
        .chain([source])
        .chain(conditions)
        .collect()
}

/// The verdict after its tick or cross.
fn verdict_text(row: &PromiseRow) -> String {
    match row.kept {
        Some(true) => format!("✓ {}", row.verdict),
        Some(false) => format!("✗ {}", row.verdict),
        None => row.verdict.clone(),
    }
}

/// A pivot table with a row for each pair of label values.
pub(super) fn pivot_elements(pivot: &PagePivot) -> Vec<String> {
    let of_row = |(name, cells): (&String, &Vec<Option<PivotCell>>)| {
        let cells = pivot.columns.iter().zip(cells);
        let known = cells.filter_map(|(column, cell)| Some((column, cell.as_ref()?)));
        let rows = known.map(|(column, cell)| pivot_row(name, column, cell, pivot.unit));
        rows.collect::<Vec<String>>()
    };
    let rows = pivot.rows.iter().zip(&pivot.cells).flat_map(of_row);
    let labels = [pivot.row_label.as_str(), pivot.column_label.as_str()];
    let columns = [&labels[..], &PIVOT_COLUMNS[..]].concat();
    let simulated = match pivot.simulated {
        true => ". Simulated devices: not figures of real storage",
        false => "",
    };
    let head = format!("{} ({}){simulated}", pivot.title, pivot.figure);
    iter::once(element("p", &head))
        .chain(table(&columns, rows.collect()))
        .collect()
}

fn pivot_row(name: &str, column: &str, cell: &PivotCell, unit: PageUnit) -> String {
    let unknown = || UNKNOWN.to_owned();
    let promised = cell.promised.map(|value| quantity(value, unit));
    table_row(&[
        short_name(name),
        short_name(column),
        cell_text(cell, unit),
        promised.unwrap_or_else(unknown),
        cell.note.clone().unwrap_or_default(),
    ])
}

/// A measured figure with half its interval, as the page writes it. Counts are printed as they are.
fn cell_text(cell: &PivotCell, unit: PageUnit) -> String {
    match unit {
        PageUnit::Count => quantity(cell.value, unit),
        _ => {
            let half = half_width(cell.value, cell.between);
            rate_text(PageRate::new(cell.value, half), unit)
        }
    }
}

/// The spread of the results of each label, after the meaning of its columns.
pub(super) fn spread_elements(spreads: &[PageSpread]) -> Vec<String> {
    let about = (!spreads.is_empty()).then(|| element("p", SPREAD_MEANING));
    let tables = spreads.iter().flat_map(|spread| {
        let rows = spread.rows.iter().map(spread_row);
        iter::once(element("p", &format!("Spread of {}", spread.title)))
            .chain(table(&SPREAD_COLUMNS, rows.collect()))
    });
    about.into_iter().chain(tables).collect()
}

fn spread_row(each: &SpreadRow) -> String {
    let share = |percent: Option<f64>| {
        percent.map_or_else(|| UNKNOWN.to_owned(), |percent| format!("{percent:.1} %"))
    };
    table_row(&[
        each.what.clone(),
        each.mean.clone(),
        each.runs.to_string(),
        each.machines.to_string(),
        share(each.within_percent),
        share(each.between_percent),
    ])
}

/// A rate with its interval, as `withError` of the page writes it.
fn rate_text(rate: PageRate, unit: PageUnit) -> String {
    let units: &UnitLadder = match unit {
        PageUnit::Iops => RATE_UNITS,
        PageUnit::BytesPerS => BANDWIDTH_UNITS,
        PageUnit::Ns => LATENCY_UNITS_UTF8,
        PageUnit::Percent => &[(1.0, " %")],
        PageUnit::Count => &[(1.0, "")],
    };
    with_interval(rate.mean, rate.error, units, "±")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pivot_text_has_measured_cells_with_their_intervals() {
        let cell = |value: f64, between| PivotCell {
            value,
            between,
            results: 1,
            note: None,
            promised: None,
            product: None,
            kept: None,
        };
        let pivot = PagePivot {
            figure: "randread.max_iops".to_owned(),
            title: "random reads".to_owned(),
            unit: PageUnit::Iops,
            row_label: "region".to_owned(),
            column_label: "<device>".to_owned(),
            rows: vec!["asia".to_owned(), "us".to_owned()],
            columns: vec!["ssd".to_owned(), "hdd".to_owned()],
            cells: vec![
                vec![Some(cell(2000.0, Some((1900.0, 2100.0)))), None],
                vec![None, Some(cell(270.0, None))],
            ],
            simulated: false,
        };
        let html = pivot_elements(&pivot).concat();
        assert!(html.starts_with("<p>random reads (randread.max_iops)</p><table>"));
        assert!(html.contains("<th>&lt;device&gt;</th>"), "{html}");
        let known = "<td>asia</td><td>ssd</td><td>2.00k ±0.10k</td><td>-</td>";
        assert!(html.contains(known), "{html}");
        assert!(html.contains("<td>us</td><td>hdd</td><td>~270</td><td>-</td>"));
        assert_eq!(html.matches("<tr>").count(), 3, "cells without a figure");
    }

    #[test]
    fn promise_text_has_sentence_and_a_row_for_each_figure() {
        let mut promise = PagePromise {
            product: "a volume".to_owned(),
            place: format!("/mnt/{}", "x".repeat(10_000)),
            source: "a page".to_owned(),
            sentence: Some("The promise is broken.".to_owned()),
            conditions: vec!["Not checked.".to_owned()],
            rows: vec![PromiseRow {
                what: "read IOPS".to_owned(),
                unit: PageUnit::Iops,
                promised: 3000.0,
                measured: PageRate::new(1500.0, Some(30.0)),
                verdict: "below".to_owned(),
                kept: Some(false),
            }],
        };
        let html = promise_elements(&promise).concat();
        assert!(html.contains(". The promise is broken.</p>"), "{html}");
        let cells = "<td>read IOPS</td><td>3.00k</td><td>1.50k ±0.03k</td><td>✗ below</td>";
        assert!(html.contains(cells), "{html}");
        assert!(html.ends_with("<p>Source: a page</p><p>Not checked.</p>"));
        promise.place = "/mnt/a".to_owned();
        promise.sentence = None;
        promise.rows[0].kept = Some(true);
        let html = promise_elements(&promise).concat();
        let head = "<p>Promised: a volume, compared with the fastest of each kind on /mnt/a.</p>";
        assert!(html.starts_with(head), "{html}");
        assert!(html.contains("<td>✓ below</td>"), "{html}");
    }

    #[test]
    fn spread_text_has_both_deviations() {
        let spread = |title: &str| PageSpread {
            title: title.to_owned(),
            rows: vec![SpreadRow {
                what: "read IOPS".to_owned(),
                mean: "1.00k".to_owned(),
                runs: 6,
                machines: 3,
                within_percent: Some(1.25),
                between_percent: None,
            }],
        };
        let titles = [
            "disk=old: 6 runs on 3 machines",
            "disk=new: 2 runs on 1 machine",
        ];
        let html = spread_elements(&titles.map(spread)).concat();
        assert_eq!(html.matches("in per cent of the mean").count(), 1, "{html}");
        assert!(spread_elements(&[]).is_empty());
        assert!(html.contains("<p>Spread of disk=old: 6 runs on 3 machines</p>"));
        assert!(
            html.contains("<td>1.00k</td><td>6</td><td>3</td>"),
            "{html}"
        );
        assert!(html.contains("%</td><td>-</td></tr>"), "{html}");
    }
}
