//! Load studies for the page.

use super::document::{LoadCell, LoadMatrix, LoadPoint, PageLoad};
use crate::known_digits::LATENCY_UNITS_UTF8;
use crate::load::knee_rate::{knee_in_words, sustained_per_s};
use crate::load::matrix::{cell_text, is_approximate};
use crate::load::objective_limits::objective_limits;
use crate::load::rate_state::RateState;
use crate::load::{
    PERCENTILES, headline, knee_per_s, longest, notes, notes_of_step, objectives, percentile_in,
};
use crate::suite::load_of_step;
use iosonde_study::load::{LoadMeasurement, LoadResult, Matrix};
use iosonde_suite::StepResult;

/// Converts a load study from `source`.
pub(super) fn convert_load(source: &str, result: &LoadResult) -> PageLoad {
    PageLoad {
        source: source.to_owned(),
        target: result.target.clone(),
        step: None,
        headline: headline(result),
        capacity_iops: result.capacity_iops,
        knee: knee_in_words(result),
        knee_per_s: knee_per_s(result),
        sustained_per_s: sustained_per_s(result),
        objectives: objectives(result),
        limits: objective_limits(result, result.points.iter().flat_map(chart_latencies)),
        points: result.points.iter().map(point).collect(),
        notes: notes(result),
        matrix: result.matrix.as_ref().map(matrix),
    }
}

/// Converts the load study of a step of a suite, whose name precedes the headline. `None`: the step
/// measured none.
pub(super) fn convert_load_of_step(source: &str, step: &StepResult) -> Option<PageLoad> {
    let (name, result) = load_of_step(step)?;
    let load = convert_load(source, result);
    Some(PageLoad {
        notes: notes_of_step(result),
        headline: format!("{name}: {}", load.headline),
        step: Some(name),
        ..load
    })
}

/// Latencies of a rate in the chart. Empty if the chart does not draw the rate.
fn chart_latencies(point: &LoadMeasurement) -> impl Iterator<Item = f64> {
    let percentiles = PERCENTILES.map(|percent| point.percentile_ns(percent));
    let is_drawn = RateState::of_measurement(point).is_drawn();
    let known = percentiles.into_iter().chain([longest(point)]).flatten();
    known.filter(move |_| is_drawn)
}

fn point(point: &LoadMeasurement) -> LoadPoint {
    LoadPoint {
        offered_per_s: point.offered.total(),
        achieved_per_s: point.achieved_per_s(),
        state: RateState::of_measurement(point),
        percentiles_ns: PERCENTILES.map(|percent| point.percentile_ns(percent)),
        shown: PERCENTILES.map(|percent| percentile_in(point, percent, LATENCY_UNITS_UTF8)),
        max_ns: longest(point),
    }
}

fn matrix(matrix: &Matrix) -> LoadMatrix {
    let row = |row: &Vec<iosonde_study::load::MatrixCell>| {
        let cells = row.iter().map(|cell| LoadCell {
            state: cell.state,
            p99_ns: cell.p99_ns,
            shown: cell_text(cell, LATENCY_UNITS_UTF8),
        });
        cells.collect()
    };
    LoadMatrix {
        reads_per_s: matrix.reads_per_s.clone(),
        writes_per_s: matrix.writes_per_s.clone(),
        cells: matrix.cells.iter().map(row).collect(),
        lacks_interval: matrix.cells.iter().flatten().any(is_approximate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::HtmlReportBuilder;
    use crate::load::objective_limits::ScaleSide;
    use crate::load::tests::{at, measured};
    use iosonde_result::run::IoFailure;
    use iosonde_study::load::{LoadLatency, LoadOptions};
    use iosonde_study::words;

    fn study_of(rates: &[f64]) -> LoadResult {
        let options = LoadOptions {
            rates: rates.to_vec(),
            ..at(0.0, &[])
        };
        measured("net-iops-cap", &options)
    }

    #[test]
    fn study_without_objective_names_its_knee() {
        let page = convert_load("file", &study_of(&[500.0, 2000.0, 3500.0, 4500.0, 6000.0]));
        let knee = page.knee_per_s.expect("latency grows towards the cap");
        let start = format!("near {} IOPS", words::iops_text(knee));
        assert!(page.knee.starts_with(&start), "{}", page.knee);
        assert!(page.objectives.is_empty());
    }

    #[test]
    fn study_without_knee_names_its_highest_sustained_rate() {
        let page = convert_load("file", &study_of(&[500.0, 1000.0]));
        assert_eq!(
            (page.knee_per_s, page.sustained_per_s),
            (None, Some(1000.0))
        );
        let has_rate = page
            .knee
            .ends_with(" at 1.00k IOPS, the highest sustained rate");
        assert!(
            page.knee
                .starts_with("not known from fewer than 3 sustained rates: p99 is ")
                && has_rate,
            "{}",
            page.knee
        );
    }

    #[test]
    fn study_beyond_its_cap_names_where_the_target_fell_behind() {
        let page = convert_load("file", &study_of(&[500.0, 1000.0, 9000.0]));
        assert!(
            page.knee.ends_with("; the target fell behind at 9.00k"),
            "{}",
            page.knee
        );
        let none = convert_load("file", &study_of(&[9000.0]));
        assert_eq!(
            none.knee,
            "none shown: the target sustained no offered rate"
        );
    }

    #[test]
    fn objective_is_a_limit_of_the_chart() {
        let result = measured("net-iops-cap", &at(1000.0, &["p99=3ms", "p99=9s"]));
        let page = convert_load("file", &result);
        let [near, far] = page.limits.as_slice() else {
            panic!("{:?}", page.limits);
        };
        assert_eq!((near.percentile, near.latency_ns), (99.0, 3e6));
        assert_eq!(near.name, "objective p99 <= 3.00 ms");
        assert_eq!((near.beyond, far.beyond), (None, Some(ScaleSide::Above)));
    }

    #[test]
    fn objective_within_the_rounded_scale_is_drawn() {
        let mut result = measured("net-iops-cap", &at(1000.0, &["p99=3ms", "p99=3ms"]));
        let latencies = result.points.iter().flat_map(chart_latencies);
        let highest = latencies.fold(0.0, f64::max);
        for (found, factor) in result.objectives.iter_mut().zip([10.0, 10.01]) {
            found.objective.latency_ns = (factor * highest) as u64;
        }
        let sides = convert_load("file", &result).limits;
        let sides: Vec<Option<ScaleSide>> = sides.iter().map(|limit| limit.beyond).collect();
        // The first objective extends the scale, whose round end is above the second one.
        assert_eq!(sides, [None, None]);
        result.objectives.remove(0);
        let alone = convert_load("file", &result).limits;
        assert_eq!(alone[0].beyond, Some(ScaleSide::Above));
    }

    #[test]
    fn study_without_a_rate_does_not_blame_the_target() {
        let mut result = study_of(&[500.0]);
        result.points.clear();
        let page = convert_load("file", &result);
        assert_eq!(page.knee, "none shown: no rate was measured");
    }

    #[test]
    fn interrupted_study_does_not_blame_the_target() {
        let mut result = study_of(&[500.0]);
        result.points[0].interrupted = true;
        let page = convert_load("file", &result);
        assert_eq!(page.knee, "none shown: no sustained rate has a p99");
    }

    /// Error of a failed run.
    fn failed() -> IoFailure {
        IoFailure {
            errno: 5,
            operation: "read".to_owned(),
            file: None,
            offset: None,
            message: "EIO".to_owned(),
        }
    }

    #[test]
    fn interrupted_and_failed_rates_are_not_judged() {
        let state = |kept_up: bool, interrupted: bool, failure: Option<IoFailure>| {
            let mut result = study_of(&[500.0]);
            let measured = &mut result.points[0];
            (measured.kept_up, measured.interrupted) = (kept_up, interrupted);
            measured.failure = failure;
            let has_latencies = chart_latencies(measured).next().is_some();
            let state = convert_load("file", &result).points[0].state;
            assert_eq!(has_latencies, state.is_drawn(), "{state:?}");
            state
        };
        assert_eq!(state(true, false, None), RateState::Sustained);
        assert_eq!(state(false, false, None), RateState::FellBehind);
        for kept_up in [true, false] {
            assert_eq!(state(kept_up, true, None), RateState::Interrupted);
        }
        assert_eq!(state(false, false, Some(failed())), RateState::Failed);
    }

    #[test]
    fn table_without_scripts_has_the_states_of_rates() {
        let mut result = study_of(&[500.0, 1000.0, 1500.0]);
        result.points[0].interrupted = true;
        (result.points[1].kept_up, result.points[1].failure) = (false, Some(failed()));
        let mut builder = HtmlReportBuilder::default();
        builder.load("file", &result);
        let page = builder.html(None).unwrap();
        let count = |cell: &str| page.matches(&format!("<td>{cell}</td>")).count();
        let counts = ["interrupted", "failed", "yes", "no"].map(count);
        assert_eq!(counts, [1, 1, 1, 0]);
    }

    #[test]
    fn rate_without_measured_io_has_no_longest_latency() {
        let mut result = study_of(&[500.0]);
        let measured = &mut result.points[0];
        measured.kept_up = false;
        measured.read.as_mut().unwrap().latency = LoadLatency::default();
        assert_eq!(convert_load("file", &result).points[0].max_ns, None);
        assert_eq!(chart_latencies(&result.points[0]).count(), 0);
        let mut builder = HtmlReportBuilder::default();
        builder.load("file", &result);
        let page = builder.html(None).unwrap();
        assert!(page.contains(&"<td>-</td>".repeat(5)), "{page}");
    }

    #[test]
    fn page_without_scripts_has_knee_and_rates() {
        let result = study_of(&[500.0, 1000.0]);
        let mut builder = HtmlReportBuilder::default();
        builder.load("file", &result);
        let page = builder.html(None).unwrap();
        let (_, rest) = page.split_once("<noscript>").unwrap();
        let (text, _) = rest.split_once("</noscript>").unwrap();
        let knee = "<p>Knee: not known from fewer than 3 sustained rates: p99 is ";
        assert!(text.contains(knee), "{text}");
        assert!(text.contains("<tr><td>1.00k</td>"), "{text}");
        for (point, page_point) in result.points.iter().zip(convert_load("", &result).points) {
            let p99 = percentile_in(point, 99.0, LATENCY_UNITS_UTF8);
            assert_eq!(page_point.shown[2], p99);
            assert!(text.contains(&format!("<td>{p99}</td>")), "{p99}: {text}");
        }
    }
}
