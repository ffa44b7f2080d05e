//! Rates of a list of results, with the digits and the marks of other screens.

use crate::figures::{LegendMarks, UNSETTLED, needed_legends};
use crate::known_digits::{
    BANDWIDTH_UNITS, RATE_UNITS, digits_beside_interval, known_digits, lacks_interval,
    with_interval,
};
use crate::probe::row;
use iosonde_history::{Headline, HeadlineRate};

/// Explains the mark of a rate. A SNIA test may end before its steady state.
const UNSTEADY_LEGEND: &str =
    "* not steady: the rate drifted or jumped, or the test reached no steady state.";

/// A rate as text, and the workload that it was measured with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ListedRate {
    /// Figure with its marks: `753k ±1k`, `3.17 GiB/s`, `~13k*`.
    pub(super) figure: String,
    pub(super) marks: LegendMarks,
    /// Workload and depth: `randread, depth 64`. Empty if the result does not name them.
    pub(super) workload: String,
}

impl ListedRate {
    /// Returns I/Os per second with their interval.
    pub(super) fn from_iops(rate: &HeadlineRate, plus_minus: &str) -> ListedRate {
        let figure = with_interval(rate.per_s, rate.error, RATE_UNITS, plus_minus);
        ListedRate::new(figure, rate)
    }

    /// Returns the higher rate of both directions. Reads alone and writes alone with the same text
    /// and depth have both names: `randread and randwrite, depth 64`.
    pub(super) fn from_headline(headline: &Headline, plus_minus: &str) -> Option<ListedRate> {
        let named = |rate: &HeadlineRate, direction: &str| {
            let workload = rate.workload.as_deref().unwrap_or(direction);
            HeadlineRate {
                workload: Some(workload.to_owned()),
                ..rate.clone()
            }
        };
        let read = headline.read.as_ref().map(|rate| named(rate, "reads"));
        let write = headline.write.as_ref().map(|rate| named(rate, "writes"));
        let highest = match (read, write) {
            (Some(read), Some(write)) if is_same(&read, &write, plus_minus) => {
                with_both_names(read, write)
            }
            (Some(read), Some(write)) if read.per_s <= write.per_s => write,
            (Some(rate), _) | (None, Some(rate)) => rate,
            (None, None) => return None,
        };
        Some(ListedRate::from_iops(&highest, plus_minus))
    }

    /// Returns a bandwidth, which stands without its interval. That of a sweep has the digits of a
    /// cell, that of another result the digits of its rate.
    pub(super) fn from_bandwidth(rate: &HeadlineRate) -> ListedRate {
        let figure = match rate.is_of_sweep {
            true => known_digits(rate.per_s, rate.error, BANDWIDTH_UNITS),
            false => digits_beside_interval(rate.per_s, rate.error, BANDWIDTH_UNITS),
        };
        ListedRate::new(figure, rate)
    }

    fn new(figure: String, rate: &HeadlineRate) -> ListedRate {
        let mark = if rate.is_unsteady { UNSETTLED } else { "" };
        let depths = rate.depths;
        let depths = depths.map(|depths| row::cell_range(depths.jobs, depths.from, depths.to));
        let words: Vec<String> = rate.workload.iter().cloned().chain(depths).collect();
        ListedRate {
            figure: figure + mark,
            marks: LegendMarks {
                is_unsettled: rate.is_unsteady,
                lacks_interval: lacks_interval(rate.per_s, rate.error),
            },
            workload: words.join(", "),
        }
    }

    /// Returns the figure with its workload in brackets: `753k ±1k (randread, depth 64)`.
    pub(super) fn with_workload(&self) -> String {
        match self.workload.is_empty() {
            true => self.figure.clone(),
            false => format!("{} ({})", self.figure, self.workload),
        }
    }
}

/// Whether the rates of both directions were measured alone, and have the same digits and the same
/// interval at the same depth.
fn is_same(read: &HeadlineRate, write: &HeadlineRate, plus_minus: &str) -> bool {
    let text = |rate: &HeadlineRate| with_interval(rate.per_s, rate.error, RATE_UNITS, plus_minus);
    let are_alone = read.is_alone && write.is_alone;
    are_alone && read.depths == write.depths && text(read) == text(write)
}

/// The higher one of two rates, with the names of both workloads.
fn with_both_names(read: HeadlineRate, write: HeadlineRate) -> HeadlineRate {
    let names = [&read, &write].map(|rate| rate.workload.clone().unwrap_or_default());
    let is_unsteady = read.is_unsteady || write.is_unsteady;
    let higher = if read.per_s >= write.per_s {
        read
    } else {
        write
    };
    HeadlineRate {
        workload: Some(names.join(" and ")),
        is_unsteady,
        ..higher
    }
}

/// Explains the marks that figures have.
pub(super) fn legends(marks: impl Iterator<Item = LegendMarks>) -> Vec<&'static str> {
    needed_legends(marks, UNSTEADY_LEGEND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::UNKNOWN_LEGEND;
    use iosonde_history::HeadlineDepths;

    fn rate(per_s: f64, error: Option<f64>) -> HeadlineRate {
        HeadlineRate {
            per_s,
            error,
            is_alone: true,
            ..HeadlineRate::default()
        }
    }

    fn at(iodepth: u32) -> Option<HeadlineDepths> {
        Some(HeadlineDepths {
            jobs: 1,
            from: iodepth,
            to: iodepth,
        })
    }

    fn figure(rate: &HeadlineRate) -> String {
        ListedRate::from_iops(rate, "±").figure
    }

    #[test]
    fn rate_of_a_list_has_only_known_digits() {
        assert_eq!(figure(&rate(96_300.0, Some(7_100.0))), "96.3k ±7.1k");
        assert_eq!(figure(&rate(3_100.0, Some(f64::INFINITY))), "~3.1k");
        assert_eq!(figure(&rate(3_104.0, None)), "~3.1k");
    }

    #[test]
    fn bandwidth_of_a_sweep_has_the_digits_of_a_cell() {
        let mut bandwidth = rate(365.4 * 1_048_576.0, Some(30.0 * 1_048_576.0));
        let figure = |rate: &HeadlineRate| ListedRate::from_bandwidth(rate).figure;
        assert_eq!(figure(&bandwidth), "365 MiB/s");
        bandwidth.is_of_sweep = true;
        assert_eq!(figure(&bandwidth), "370 MiB/s");
    }

    #[test]
    fn rate_that_drifted_has_mark_and_legend() {
        let unsteady = |per_s, error| HeadlineRate {
            is_unsteady: true,
            ..rate(per_s, error)
        };
        let listed = |rate: &HeadlineRate| ListedRate::from_iops(rate, "±");
        let narrow = listed(&unsteady(96_300.0, Some(7_100.0)));
        let unknown = listed(&unsteady(3_104.0, None));
        let figures = [&narrow, &unknown].map(|rate| rate.figure.as_str());
        assert_eq!(figures, ["96.3k ±7.1k*", "~3.1k*"]);
        let bandwidth = ListedRate::from_bandwidth(&unsteady(3.2e9, None));
        assert_eq!(bandwidth.figure, "~3.0 GiB/s*");
        let legends_of = |rates: &[&ListedRate]| legends(rates.iter().map(|rate| rate.marks));
        assert_eq!(legends_of(&[&narrow]), [UNSTEADY_LEGEND]);
        let both = [UNSTEADY_LEGEND, UNKNOWN_LEGEND];
        assert_eq!(legends_of(&[&unknown]), both);
        assert_eq!(legends_of(&[&bandwidth]), both);
        let steady = listed(&rate(402.0, Some(8.0)));
        assert_eq!(legends_of(&[&steady]), [""; 0]);
        let imprecise = listed(&rate(402.0, None));
        assert_eq!(legends_of(&[&steady, &imprecise]), [UNKNOWN_LEGEND]);
    }

    #[test]
    fn highest_rate_names_its_workload_its_depth_and_a_tie() {
        let mut read = rate(402.0, Some(8.0));
        (read.workload, read.depths) = (Some("randread".to_owned()), at(64));
        // Half the interval includes the difference of 0.2 to the rounded rate.
        let mut write = rate(401.8, Some(7.7));
        write.depths = at(64);
        let shown = |read: &HeadlineRate, write: Option<&HeadlineRate>| {
            let headline = Headline {
                read: Some(read.clone()),
                write: write.cloned(),
                ..Headline::default()
            };
            let highest = ListedRate::from_headline(&headline, "+-");
            highest.unwrap().with_workload()
        };
        // Reads and writes of different jobs or of a mix are no tie.
        (write.workload, write.is_alone) = (Some("writes of a mix".to_owned()), false);
        let higher = "402 +-8 (randread, depth 64)";
        assert_eq!(shown(&read, Some(&write)), higher);
        (write.workload, write.is_alone) = (Some("randwrite".to_owned()), true);
        let tie = "402 +-8 (randread and randwrite, depth 64)";
        assert_eq!(shown(&read, Some(&write)), tie);
        // The interval that is printed is that of both.
        write.error = Some(6.0);
        assert_eq!(shown(&read, Some(&write)), higher);
        write.error = Some(7.7);
        // Another depth is another workload.
        write.depths = at(32);
        assert_eq!(shown(&read, Some(&write)), higher);
        assert_eq!(shown(&read, None), higher);
        write.per_s = 500.0;
        let higher = "500 +-8 (randwrite, depth 32)";
        assert_eq!(shown(&read, Some(&write)), higher);
        assert_eq!(ListedRate::from_headline(&Headline::default(), "+-"), None);
    }

    #[test]
    fn mean_of_depths_names_them_and_an_unknown_depth_is_left_out() {
        let mut level = rate(402.0, Some(8.0));
        level.depths = Some(HeadlineDepths {
            jobs: 2,
            from: 16,
            to: 32,
        });
        let workload = |rate: &HeadlineRate| ListedRate::from_bandwidth(rate).workload;
        assert_eq!(workload(&level), "2 jobs x depths 16 to 32");
        level.depths = None;
        assert_eq!(workload(&level), "");
        level.workload = Some("read".to_owned());
        assert_eq!(workload(&level), "read");
    }
}
