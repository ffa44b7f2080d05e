//! Times of two programs that run in turn, the bars of their differences and ratios, and verdicts.

use super::super::ratio::IntervalEstimate;
use super::super::report::met_word;
use serde::Serialize;

/// Most seconds from Running of `kubectl run` to the first I/O of iosonde.
const MOST_UNTIL_FIRST_IO_S: f64 = 1.0;
/// Largest part of kubestr's time beyond the I/O, to the result.
pub(super) const MOST_TO_RESULT: f64 = 0.75;
/// The same to the exit, of iosonde with nothing left in the cluster.
pub(super) const MOST_TO_EXIT: f64 = 0.9;
/// The loose bar of a single round on a busy machine, which detects gross regressions.
const MOST_OF_SMOKE_S: f64 = 10.0;
/// The same for a ratio.
const MOST_RATIO_OF_SMOKE: f64 = 5.0;

/// A comparison and its result.
#[derive(Debug, Serialize)]
pub(super) struct KubeComparison {
    what: String,
    /// Reason why the comparison was skipped.
    left_out: Option<String>,
    peer: &'static str,
    ours: &'static str,
    peer_s: Vec<f64>,
    ours_s: Vec<f64>,
    verdict: Option<TimeVerdict>,
}

/// Largest allowed time of iosonde beside its peer.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum TimeBar {
    /// Difference, iosonde minus peer, in seconds.
    DifferenceS(f64),
    /// Ratio, iosonde to peer.
    Ratio(f64),
}

impl TimeBar {
    fn most(self) -> f64 {
        match self {
            TimeBar::DifferenceS(most) | TimeBar::Ratio(most) => most,
        }
    }

    /// Estimates what the bar limits, round by round.
    fn estimate(self, ours_s: &[f64], peer_s: &[f64]) -> IntervalEstimate {
        match self {
            TimeBar::DifferenceS(_) => IntervalEstimate::difference(ours_s, peer_s),
            TimeBar::Ratio(_) => IntervalEstimate::ratio(ours_s, peer_s),
        }
    }
}

/// Difference or ratio of times with its bar.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct TimeVerdict {
    estimate: IntervalEstimate,
    bar: TimeBar,
    met: bool,
}

impl TimeVerdict {
    /// Judges by the mean, as the benchmark beside fio does.
    fn judge(estimate: IntervalEstimate, bar: TimeBar) -> TimeVerdict {
        TimeVerdict {
            estimate,
            bar,
            met: estimate.value <= bar.most(),
        }
    }

    /// Whether the interval contains the bar.
    fn is_in_doubt(&self) -> bool {
        let most = self.bar.most();
        let interval = self.estimate.interval;
        interval.is_some_and(|(low, high)| low <= most && most < high)
    }

    /// Describes the comparison of two programs.
    fn text(&self, ours: &str, peer: &str) -> String {
        match self.bar {
            TimeBar::DifferenceS(most_s) => format!(
                "{ours} - {peer} = {}, to be at most {most_s} s",
                seconds(self.estimate)
            ),
            TimeBar::Ratio(most) => {
                let interval = self.estimate.interval;
                let interval = interval.map_or(String::new(), |(low, high)| {
                    format!(" [{low:.2}, {high:.2}]")
                });
                let ratio = self.estimate.value;
                format!("{ours} / {peer} = {ratio:.2}{interval}, to be at most {most}")
            }
        }
    }
}

impl KubeComparison {
    pub(super) fn left_out(what: String, pair: Pair, reason: String) -> KubeComparison {
        KubeComparison {
            what,
            left_out: Some(reason),
            peer: pair.peer,
            ours: pair.ours,
            peer_s: Vec::new(),
            ours_s: Vec::new(),
            verdict: None,
        }
    }

    pub(super) fn compare(
        what: String,
        pair: Pair,
        [peer_s, ours_s]: [Vec<f64>; 2],
    ) -> KubeComparison {
        let estimate = pair.bar.estimate(&ours_s, &peer_s);
        KubeComparison {
            left_out: None,
            verdict: Some(TimeVerdict::judge(estimate, pair.bar)),
            peer_s,
            ours_s,
            ..KubeComparison::left_out(what, pair, String::new())
        }
    }

    /// Whether the bar was met. A skipped comparison meets no bar.
    pub(super) fn is_met(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict.met)
    }

    pub(super) fn is_left_out(&self) -> bool {
        self.verdict.is_none()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.what);
        if let Some(reason) = &self.left_out {
            text.push_str(&format!("  left out: {reason}\n"));
        }
        let Some(verdict) = self.verdict else {
            return text;
        };
        for (name, samples) in [(self.peer, &self.peer_s), (self.ours, &self.ours_s)] {
            let mean = seconds(IntervalEstimate::mean(samples));
            let each: Vec<String> = samples.iter().map(|took| format!("{took:.2}")).collect();
            text.push_str(&format!("  {name:<16} {mean:<27} {}\n", each.join(" ")));
        }
        let doubt = match verdict.is_in_doubt() {
            true => "; the interval holds the bar",
            false => "",
        };
        text + &format!(
            "  {:<6} {}{doubt}\n",
            met_word(verdict.met),
            verdict.text(self.ours, self.peer),
        )
    }
}

fn seconds(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} s [{low:.2}, {high:.2}]", estimate.value),
        None => format!("{:.2} s", estimate.value),
    }
}

/// Two programs that run in turn, and the largest allowed time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    peer: &'static str,
    ours: &'static str,
    bar: TimeBar,
}

impl Pair {
    /// iosonde beside `kubectl run`.
    pub(super) fn beside_kubectl(smoke: bool) -> Pair {
        Pair {
            peer: "kubectl run",
            ours: "iosonde fio",
            bar: TimeBar::DifferenceS(match smoke {
                true => MOST_OF_SMOKE_S,
                false => MOST_UNTIL_FIRST_IO_S,
            }),
        }
    }

    /// iosonde beside kubestr: the share of its time beyond the I/O.
    pub(super) fn beside_kubestr(smoke: bool, most: f64) -> Pair {
        Pair {
            peer: "kubestr fio",
            ours: "iosonde k8s fio",
            bar: TimeBar::Ratio(if smoke { MOST_RATIO_OF_SMOKE } else { most }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(peer_s: &[f64], ours_s: &[f64]) -> KubeComparison {
        let samples = [peer_s.to_vec(), ours_s.to_vec()];
        KubeComparison::compare("start".to_owned(), Pair::beside_kubectl(false), samples)
    }

    #[test]
    fn start_delay_is_judged_round_by_round() {
        // The round of 9 s is slow for both programs.
        let met = finding(&[2.0, 9.0, 3.0], &[2.9, 9.9, 3.9]);
        assert!(met.is_met());
        let text = met.text();
        assert!(
            text.contains(
                "met    iosonde fio - kubectl run = 0.90 s [0.90, 0.90], to be at most 1 s\n"
            ),
            "{text}"
        );
        let missed = finding(&[2.0, 2.0, 2.0], &[2.9, 3.1, 3.2]);
        assert!(!missed.is_met());
        let text = missed.text();
        assert!(
            text.contains("MISSED iosonde fio - kubectl run = 1.07 s"),
            "{text}"
        );
        assert!(
            text.contains("at most 1 s; the interval holds the bar"),
            "{text}"
        );
        assert!(text.contains("2.90 3.10 3.20"), "{text}");
    }

    #[test]
    fn single_round_has_no_interval_and_no_doubt() {
        let text = finding(&[2.0], &[2.5]).text();
        assert!(text.contains("= 0.50 s, to be at most 1 s\n"), "{text}");
    }

    #[test]
    fn time_beside_kubestr_is_judged_by_its_ratio() {
        let compare = |ours_s: &[f64]| {
            let samples = [vec![10.0, 20.0], ours_s.to_vec()];
            let pair = Pair::beside_kubestr(false, MOST_TO_RESULT);
            KubeComparison::compare("result".to_owned(), pair, samples)
        };
        let met = compare(&[7.0, 14.0]);
        assert!(met.is_met());
        let text = met.text();
        let expected = "met    iosonde k8s fio / kubestr fio = 0.70 [0.70, 0.70], to be at most \
                        0.75\n";
        assert!(text.contains(expected), "{text}");
        assert!(!compare(&[8.0, 16.0]).is_met());
    }

    #[test]
    fn comparison_that_was_left_out_meets_no_bar() {
        let reason = "it is not installed".to_owned();
        let pair = Pair::beside_kubestr(false, MOST_TO_EXIT);
        let finding = KubeComparison::left_out("all".to_owned(), pair, reason);
        assert!(finding.is_left_out() && !finding.is_met());
        let text = finding.text();
        assert!(
            text.starts_with("\nall\n  left out: it is not installed"),
            "{text}"
        );
        assert!(!text.contains("met") && !text.contains(" s ["), "{text}");
    }
}
