//! Results of fio itself. Its JSON has no time series and no machine.

use super::document::{
    PageFigure, PageFigureTexts, PageLatency, PageLatencyKind, PageRate, PageRun,
};
use super::figure_texts::{mean_bounds, mean_latency};
use super::page_figures;
use iosonde_job::plan::ReadWrite;
use iosonde_job::value::{Bytes, bytes};
use iosonde_result::compare::{Measure, ResultPart, Subject};
use iosonde_result::fio::import::FioDocument;
use std::collections::BTreeMap;

/// Converts a document of fio to a run.
pub(super) fn run(source: &str, found: FioDocument) -> PageRun {
    let several = found.parts.len() > 1;
    let names: Vec<&str> = found.parts.iter().map(|part| part.name.as_str()).collect();
    let figures = |part: &ResultPart| -> Vec<PageFigure> {
        let job = several.then(|| part.name.clone());
        Subject::ALL
            .into_iter()
            .filter_map(|subject| figure(part, subject, &job))
            .collect()
    };
    let machine = found.machine.map(|machine| ("machine".to_owned(), machine));
    PageRun {
        name: names.join(", "),
        source: source.to_owned(),
        study: None,
        phase: None,
        place: found.target.unwrap_or_else(|| source.to_owned()),
        preparation: false,
        of_grid: false,
        program: found.version,
        started_at_ms: found.started_at_ms,
        elapsed_ns: found.elapsed_ns,
        host: None,
        memory_available_bytes: None,
        targets: None,
        plan: None,
        labels: machine.into_iter().collect::<BTreeMap<_, _>>(),
        figures: found.parts.iter().flat_map(figures).collect(),
        series: Vec::new(),
        disks: Vec::new(),
        backends: Vec::new(),
        cpu: None,
        events: Vec::new(),
        verdicts: Vec::new(),
        failures: found.errors,
    }
}

fn figure(part: &ResultPart, subject: Subject, job: &Option<String>) -> Option<PageFigure> {
    let rate = |measure| page_figures::page_rate(part, subject, measure);
    let nothing = PageRate::new(0.0, None);
    let latency = latency(part, subject);
    let iops = rate(Measure::Iops);
    if iops.is_none() && latency.mean_ns == 0.0 {
        return None;
    }
    let block = bytes(&part.pattern.bs, Bytes::Binary).unwrap_or(0);
    let has = |measure| part.figure(subject, measure).is_some();
    let latency_kind = match has(Measure::LatMean) {
        true => PageLatencyKind::Total,
        false => PageLatencyKind::Completion,
    };
    Some(PageFigure {
        job: job.clone(),
        direction: subject,
        rw: ReadWrite::from_rw(&part.pattern.rw)
            .map_or_else(|| part.pattern.rw.clone(), |rw| rw.name().to_owned()),
        block_bytes: [block, block],
        iodepth: part.pattern.iodepth,
        workers: part.pattern.numjobs,
        engine: "fio".to_owned(),
        direct: None,
        ios: 0,
        bytes: 0,
        iops: iops.unwrap_or(nothing),
        bytes_per_s: rate(Measure::BytesPerS).unwrap_or(nothing),
        settled: part
            .figure(subject, Measure::Iops)
            .and_then(|figure| figure.settled),
        sure: None,
        shape: None,
        latency_kind,
        latency,
        percentile_bounds: page_figures::percentile_bounds(part, subject),
        mean_bounds: mean_bounds(part, subject, latency_kind),
        shown: PageFigureTexts {
            mean: mean_latency(part, subject, latency_kind),
            ..PageFigureTexts::default()
        },
    })
}

/// Total latency if fio reports its percentiles. By default it reports those of completion latency.
fn latency(part: &ResultPart, subject: Subject) -> PageLatency {
    let value = |measure| part.figure(subject, measure).map(|figure| figure.value);
    let marks = |measures: [Measure; 3]| -> Vec<(f64, f64)> {
        let tails = [0.5, 0.01, 0.001];
        let found = tails.into_iter().zip(measures);
        found
            .filter_map(|(tail, measure)| Some((tail, value(measure)?)))
            .collect()
    };
    let mut found = marks([Measure::LatP50, Measure::LatP99, Measure::LatP999]);
    if found.is_empty() {
        found = marks([Measure::ClatP50, Measure::ClatP99, Measure::ClatP999]);
    }
    PageLatency {
        count: 0,
        mean_ns: value(Measure::LatMean)
            .or(value(Measure::ClatMean))
            .unwrap_or(0.0),
        min_ns: 0.0,
        max_ns: 0.0,
        curve_ns: Vec::new(),
        marks: found,
        buckets: Vec::new(),
    }
}
