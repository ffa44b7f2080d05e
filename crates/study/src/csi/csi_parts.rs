//! Figures of a study of data services that are compared with those of another.

use super::csi_result::CsiResult;
use super::service_summary::ServiceSummary;
use crate::lifecycle::StageFigure;
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, PartRole, ResultPart, Subject,
    informative_interval,
};
use iosonde_result::words;

/// Returns one part for each service and size of the data, and one for the first reads.
pub fn csi_parts(result: &CsiResult) -> Vec<ResultPart> {
    let mut parts = Vec::new();
    for summary in &result.services {
        let title = summary.service.title();
        parts.extend(service_part(summary, title.to_owned(), summary.took));
        parts.extend(service_part(
            summary,
            format!("{title}, read"),
            summary.read,
        ));
        parts.extend(application_part(summary));
    }
    parts
}

fn service_part(
    summary: &ServiceSummary,
    title: String,
    figure: Option<StageFigure>,
) -> Option<ResultPart> {
    let figure = figure.filter(|figure| figure.value_ns > 0.0)?;
    let ends = figure.interval_ns;
    let ends = ends.and_then(|ends| informative_interval(figure.value_ns, ends));
    let bounds = ends.map(|(low, high)| Bounds {
        low,
        high,
        freedom: summary.measured.saturating_sub(1).max(1) as f64,
        repeat_factor: 1.0,
        basis: IntervalBasis::Runs,
    });
    Some(result_part(
        summary,
        title,
        vec![(Measure::LatMean, figure.value_ns, bounds)],
    ))
}

/// Returns the application's 99th percentile during the service. I/Os are no independent rounds, so
/// the percentile has no interval.
fn application_part(summary: &ServiceSummary) -> Option<ResultPart> {
    let p99_ns = summary.application?.p99_during_ns?;
    let title = format!("application during {}", summary.service.title());
    let figures = vec![(Measure::LatP99, p99_ns as f64, None)];
    Some(result_part(summary, title, figures))
}

fn result_part(
    summary: &ServiceSummary,
    title: String,
    figures: Vec<(Measure, f64, Option<Bounds>)>,
) -> ResultPart {
    let figure = |(measure, value, bounds): (Measure, f64, Option<Bounds>)| Figure {
        subject: Subject::LifecycleStage,
        measure,
        value,
        bounds,
        settled: None,
    };
    ResultPart {
        name: format!("{title}, {}", words::bytes(summary.data_bytes)),
        pattern: IoPattern {
            rw: title,
            bs: String::new(),
            iodepth: 1,
            numjobs: 1,
        },
        figures: figures.into_iter().map(figure).collect(),
        role: PartRole::Alone,
    }
}
