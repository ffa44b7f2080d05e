//! [`BesideFigure`]: a figure that was measured alone and beside a neighbour, and their ratio.

use iosonde_result::compare::{ComparisonRow, Measure, Subject};
use iosonde_result::words;
use serde::{Deserialize, Serialize};

/// Least printed half of an interval of a ratio: one step of its second decimal.
const HALF_MIN: f64 = 0.01;

/// A figure that was measured alone and beside a neighbour.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BesideFigure {
    /// Name of the part when it runs alone.
    pub part: String,
    /// The I/O that the figure concerns.
    pub subject: Subject,
    /// The measured quantity.
    pub measure: Measure,
    /// The figure of the target alone.
    pub alone: f64,
    /// The 95 % interval of the figure alone, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_interval: Option<(f64, f64)>,
    /// The figure beside the neighbour.
    pub beside: f64,
    /// The 95 % interval of the figure beside the neighbour, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_interval: Option<(f64, f64)>,
    /// The figure beside the neighbour divided by the figure alone.
    pub ratio: f64,
    /// The 95 % interval of the ratio, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<(f64, f64)>,
}

impl BesideFigure {
    pub(super) fn from_row(row: &ComparisonRow) -> BesideFigure {
        BesideFigure {
            part: row.part.clone(),
            subject: row.subject,
            measure: row.measure,
            alone: row.a.value,
            alone_interval: row.a.bounds.map(|bounds| (bounds.low, bounds.high)),
            beside: row.b.value,
            beside_interval: row.b.bounds.map(|bounds| (bounds.low, bounds.high)),
            ratio: row.ratio.value,
            interval: row.ratio.interval,
        }
    }

    /// `91.0 us alone, 310 us beside, 3.4 +-0.3 times`, in ASCII.
    pub fn sentence(&self) -> String {
        let show = |value| match self.measure {
            Measure::Iops => words::iops_text(value),
            Measure::BytesPerS => words::bandwidth(value),
            Measure::CommandFigure => words::three_digits(value),
            _ => words::latency(value),
        };
        let (alone, beside) = (show(self.alone), show(self.beside));
        format!("{alone} alone, {beside} beside, {}", self.times("+-"))
    }

    /// `3.4 ±0.3 times`, with the wider half of the interval, before which `plus_minus` stands.
    /// `~3.4 times` if the interval is not known.
    pub fn times(&self, plus_minus: &str) -> String {
        let half = self.interval.map(|(low, high)| {
            let wider = (high - self.ratio).max(self.ratio - low);
            wider.max(0.0)
        });
        match half {
            Some(half) if half < self.ratio => {
                let digits = if half < 0.095 { 2 } else { 1 };
                let half = half.max(HALF_MIN);
                format!("{:.digits$} {plus_minus}{half:.digits$} times", self.ratio)
            }
            _ => {
                let decimals = words::decimals_of_three_digits(self.ratio).saturating_sub(1);
                format!("~{:.decimals$} times", self.ratio)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ratio without an interval has the mark and the digits of other figures.
    #[test]
    fn ratio_is_shown_with_its_interval() {
        let mut figure = BesideFigure {
            part: "wal".to_owned(),
            subject: Subject::Sync,
            measure: Measure::LatP99,
            alone: 91_000.0,
            alone_interval: None,
            beside: 310_000.0,
            beside_interval: None,
            ratio: 3.4066,
            interval: Some((3.13, 3.69)),
        };
        let shown = figure.sentence();
        assert!(
            shown.contains("alone") && shown.ends_with("3.4 +-0.3 times"),
            "{shown}"
        );
        assert_eq!(figure.times("±"), "3.4 ±0.3 times");
        figure.interval = Some((3.406, 3.407));
        assert_eq!(figure.times("±"), "3.41 ±0.01 times");
        for unknown in [None, Some((0.0, 100.0))] {
            figure.interval = unknown;
            assert_eq!(figure.times("±"), "~3.4 times");
        }
        for (ratio, shown) in [(0.523, "~0.52 times"), (12.34, "~12 times")] {
            figure.ratio = ratio;
            assert_eq!(figure.times("±"), shown);
        }
    }
}
