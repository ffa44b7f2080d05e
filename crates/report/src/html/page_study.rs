//! Probes for the page: the classification in a sentence, and what bounds the rates.

use super::document::PageStudy;
use crate::known_digits::{
    RATE_UNITS, bandwidth_of_rate, digits_beside_interval, known_percentile,
};
use crate::probe::limits::{ceilings, knee_in_words};
use iosonde_study::probe::{PhaseFigure, ProbePhase, ProbeResult};

/// Converts a probe from `source`. The runs of `result` may be gone; `is_noisy` is from them.
pub(super) fn convert_study(source: &str, result: &ProbeResult, is_noisy: bool) -> PageStudy {
    let ceilings = ceilings(result).into_iter().map(|(_, text)| text);
    let searches = result.knees.iter();
    let unknown = searches.filter(|knee| !knee.saturation.claims().maximum);
    PageStudy {
        source: source.to_owned(),
        target: result.target.clone(),
        sentence: sentence(result, is_noisy),
        ceilings: ceilings.collect(),
        notes: result.notes.clone(),
        unknown_maxima: unknown
            .map(|knee| (knee.phase.title(), knee_in_words(result, knee)))
            .collect(),
        interrupted: result.interrupted,
        working_set_bytes: result.working_set.bytes,
    }
}

/// Returns the classification. Its figures have the digits that they have on the cards.
fn sentence(result: &ProbeResult, is_noisy: bool) -> String {
    let figures = quoted_figures(result);
    result.classification.sentence_with(&figures, is_noisy)
}

/// Returns the figures that the sentence quotes, in its order. A limit keeps its own words.
fn quoted_figures(result: &ProbeResult) -> Vec<String> {
    let found = &result.classification;
    let read = result.figure(ProbePhase::ReadLatency).and_then(read_p50);
    let limit = found
        .limit_iops
        .and(found.reasons.get(usize::from(read.is_some())));
    let rate = result.figure(ProbePhase::RandomRead).map(|figure| {
        let rate = figure.iops;
        let digits = digits_beside_interval(rate.mean, rate.error, RATE_UNITS);
        format!("{digits} random reads/s")
    });
    let stream = result.figure(ProbePhase::SequentialRead).map(|figure| {
        let (bytes, rate) = (figure.bytes_per_s, figure.iops);
        let digits = bandwidth_of_rate(bytes.mean, rate.mean, rate.error);
        format!("sequential reads of {digits}")
    });
    let rate = limit.cloned().or(rate);
    [read, rate, stream].into_iter().flatten().collect()
}

fn read_p50(figure: &PhaseFigure) -> Option<String> {
    let latency = figure.latency;
    latency.p50_ns?;
    let digits = known_percentile(latency.p50_ns, latency.p50_between_ns);
    Some(format!("a 4 KiB read takes {digits} at p50"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::simulated::probed;
    use iosonde_study::probe::ProbeBudget;

    #[test]
    fn sentence_has_digits_of_uncertain_figures() {
        let mut result = probed("sata-ssd", ProbeBudget::QUICK);
        let figures = result.figures.iter_mut();
        let stream = ProbePhase::SequentialRead;
        for figure in figures.filter(|figure| figure.phase == stream) {
            figure.iops.mean = 532.0;
            figure.iops.error = Some(141.0);
            figure.bytes_per_s.mean = 532.0 * 1_048_576.0;
        }
        let text = sentence(&result, false);
        assert!(text.contains("sequential reads of 530 MiB/s"), "{text}");
        let start = format!("This is {}", result.classification.device);
        assert!(text.starts_with(&start), "{text}");
        assert!(text.ends_with(&result.classification.suitability), "{text}");
    }

    #[test]
    fn unknown_maximum_is_listed_with_its_search() {
        let mut result = probed("sata-ssd", ProbeBudget::NORMAL);
        let before = convert_study("file", &result, false).unknown_maxima;
        let mut knees = result.knees.iter();
        let index = knees.position(|knee| knee.saturation.claims().maximum);
        let index = index.unwrap();
        result.knees[index].saturation.maximum.error = None;
        let knee = &result.knees[index];
        let unknown = (knee.phase.title(), knee_in_words(&result, knee));
        assert!(unknown.1.starts_with("not known; "), "{}", unknown.1);
        assert!(!before.contains(&unknown));
        assert!(
            convert_study("file", &result, false)
                .unknown_maxima
                .contains(&unknown)
        );
    }

    #[test]
    fn sentence_without_quoted_figures_is_kept() {
        let mut result = probed("sata-ssd", ProbeBudget::QUICK);
        result.classification.reasons.clear();
        assert_eq!(
            sentence(&result, result.is_noisy()),
            result.classification.sentence
        );
    }
}
