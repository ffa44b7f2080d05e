//! Tests of heat tables.

use super::super::tests::{measured, options};
use super::*;
use iosonde_study::sweep::SweepOptions;

#[test]
fn certainty_counts_measured_rates_without_interval() {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let mut result = measured("net-iops-cap", &[("iodepth", "1,2,4")], &every);
    let mut set = |errors: [Option<f64>; 3]| {
        for (cell, share) in result.curves[0].cells.iter_mut().zip(errors) {
            let iops = cell.iops.as_mut().unwrap();
            iops.error = share.map(|share| share * iops.mean);
        }
        certainty(&result, TextStyle::PLAIN)
    };
    let known = "Measured rates are known to +-2 % or better (95 % intervals).";
    assert_eq!(set([Some(0.015), Some(0.01), Some(0.01)]), [known]);
    let others = "The other measured rates are known to +-2 % or better (95 % intervals).";
    let one = "1 measured rate has no interval.";
    assert_eq!(set([None, Some(0.015), Some(0.01)]), [one, others]);
    let infinite = set([Some(f64::INFINITY), None, None]);
    assert_eq!(infinite, ["3 measured rates have no interval."]);
    let wide = "The intervals of some measured rates are wider than 100 %.";
    assert_eq!(set([None, Some(1.5), Some(0.01)]), [one, wide]);
}

#[test]
fn legend_explains_signs_of_shown_cells() {
    let every = SweepOptions {
        exhaustive: true,
        ..options()
    };
    let mut result = measured("net-iops-cap", &[("iodepth", "1,2")], &every);
    result.curves[0].cells.truncate(1);
    let mut legend_of = |basis, share: Option<f64>| {
        let cell = &mut result.curves[0].cells[0];
        let iops = cell.iops.as_mut().unwrap();
        iops.error = share.map(|share| share * iops.mean);
        cell.basis = basis;
        let text = lines(&result, &[], "--details", TextStyle::PLAIN).join("\n");
        let signs = [
            "* recommended",
            "- not known",
            PREDICTED_LEGEND,
            "~ measured",
        ];
        signs.map(|sign| text.contains(sign))
    };
    let only = |sign: usize| -> CellSigns { std::array::from_fn(|index| index == sign) };
    assert_eq!(legend_of(CellBasis::Measured, Some(0.01)), [false; 4]);
    assert_eq!(legend_of(CellBasis::Measured, None), only(3));
    assert_eq!(legend_of(CellBasis::Predicted, Some(0.01)), only(2));
    // A prediction that could be off by more is not known.
    assert_eq!(legend_of(CellBasis::Predicted, Some(1.5)), only(1));
}

#[test]
fn shades_rise_with_the_rate() {
    let levels: Vec<usize> = (0..=1000u32)
        .map(|rate| shade(f64::from(rate), 1000.0))
        .collect();
    assert!(levels.is_sorted());
    assert_eq!((levels[0], levels[249], levels[250]), (0, 0, 1));
    assert_eq!((levels[969], levels[970], levels[1000]), (3, 4, 4));
    assert_eq!(shade(0.0, 0.0), 0);
}

#[test]
fn long_label_keeps_its_end() {
    let path = format!("/mnt/{}/data", "x".repeat(100));
    let short = label(&path, 24);
    assert_eq!(short.chars().count(), 24);
    assert!(short.starts_with("...") && short.ends_with("/data"));
    assert_eq!(label("/data", 24), "/data");
    assert!(!label("a\u{1b}[31m", 24).contains('\u{1b}'));
}

#[test]
fn columns_beyond_80_make_another_table() {
    let column = |name: usize| vec![(format!("{name:>12} "), CellSigns::default()); 3];
    let table = DrawnTable {
        title: "title".to_owned(),
        labels: vec![
            "iodepth".to_owned(),
            "      1".to_owned(),
            "      2".to_owned(),
        ],
        columns: (0..9).map(column).collect(),
        width: 12,
    };
    let parts = table.parts("--details");
    assert_eq!(parts.len(), 2);
    let lines = || parts.iter().flat_map(|(lines, _)| lines);
    assert!(lines().all(|line| line.chars().count() <= 80));
    let shown = |name: usize| {
        lines()
            .filter(|line| line.contains(&format!(" {name}")))
            .count()
    };
    assert_eq!(shown(8), 3);
}
