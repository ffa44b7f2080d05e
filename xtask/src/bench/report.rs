//! What a bench found, for people and for programs.

use super::bars::{Figure, Verdict, judge};
use super::place::Kind;
use super::program::{Program, Sample};
use super::ratio::Estimate;
use serde::Serialize;
use std::fmt::Write;

/// All runs of one program on one target.
#[derive(Debug, Serialize)]
pub(super) struct Series {
    pub(super) program: Program,
    pub(super) samples: Vec<Sample>,
}

impl Series {
    fn values(&self, value: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }

    fn mean(&self, value: impl Fn(&Sample) -> f64) -> Estimate {
        Estimate::mean(&self.values(value))
    }
}

/// What was found on one target.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) target: &'static str,
    pub(super) description: String,
    /// Why the target could not be had; nothing was run then.
    pub(super) skipped: Option<String>,
    pub(super) series: Vec<Series>,
    pub(super) verdicts: Vec<Verdict>,
}

impl Finding {
    /// A target that is not to be had here.
    pub(super) fn skipped(kind: Kind, reason: String) -> Finding {
        Finding {
            target: kind.name(),
            description: kind.name().to_owned(),
            skipped: Some(reason),
            series: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Holds the runs against bars.
    pub(super) fn judged(mut self, bars: &[super::bars::Bar]) -> Finding {
        for bar in bars {
            if let Some(ratio) = self.ratio(bar.figure, bar.of, bar.over) {
                self.verdicts.push(judge(*bar, ratio));
            }
        }
        self
    }

    fn of(&self, program: Program) -> Option<&Series> {
        self.series.iter().find(|series| series.program == program)
    }

    fn ratio(&self, figure: Figure, of: Program, over: Program) -> Option<Estimate> {
        let values = |program| Some(self.of(program)?.values(|sample| figure.of(sample)));
        Some(Estimate::ratio(&values(of)?, &values(over)?))
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{} ({})\n", self.target, self.description);
        if let Some(reason) = &self.skipped {
            let _ = writeln!(text, "  skipped: {reason}");
            return text;
        }
        text.push_str(
            "  program                    user us/IO        system us/IO      IOPS                  process us/IO\n",
        );
        for series in &self.series {
            let _ = writeln!(
                text,
                "  {:<26} {:<17} {:<17} {:<21} {:.3} + {:.3}",
                series.program.name(),
                micros(series.mean(|sample| sample.per_io.user_us)),
                micros(series.mean(|sample| sample.per_io.system_us)),
                rate(series.mean(|sample| sample.iops)),
                series.mean(|sample| sample.process_per_io.user_us).value,
                series.mean(|sample| sample.process_per_io.system_us).value,
            );
        }
        for program in [Program::Iosonde, Program::IosondeInBatches] {
            let all = [Figure::UserCpu, Figure::TotalCpu, Figure::Iops];
            let ratios = all.map(|figure| {
                let ratio = self.ratio(figure, program, Program::Fio)?;
                Some(format!("{} {}", figure.name(), interval(ratio)))
            });
            let ratios: Vec<String> = ratios.into_iter().flatten().collect();
            if !ratios.is_empty() {
                let _ = writeln!(text, "  {} / fio: {}", program.name(), ratios.join(", "));
            }
        }
        for verdict in &self.verdicts {
            text.push_str(&line(verdict));
        }
        text
    }
}

/// A verdict in a line.
fn line(verdict: &Verdict) -> String {
    let bar = verdict.bar;
    let (word, limit) = (word(verdict.met), bar.limit.text());
    let doubt = if verdict.sure || verdict.ratio.interval.is_none() {
        ""
    } else {
        "; the interval holds the bar"
    };
    format!(
        "  {word:<6} {}: {} / {} = {}, to be {limit}{doubt}\n",
        bar.figure.name(),
        bar.of.name(),
        bar.over.name(),
        interval(verdict.ratio),
    )
}

/// How a bar was met.
pub(super) fn word(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

pub(super) fn interval(estimate: Estimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", estimate.value),
        None => format!("{:.3}", estimate.value),
    }
}

fn micros(estimate: Estimate) -> String {
    match estimate.interval {
        Some((_, high)) => format!("{:.4} ± {:.4}", estimate.value, high - estimate.value),
        None => format!("{:.4}", estimate.value),
    }
}

fn rate(estimate: Estimate) -> String {
    match estimate.interval {
        Some((_, high)) => format!(
            "{:.0} k ± {:.0} k",
            estimate.value / 1e3,
            (high - estimate.value) / 1e3
        ),
        None => format!("{:.0} k", estimate.value / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bars::bars;
    use super::super::cpu::CpuTime;
    use super::*;

    fn series(program: Program, user_us: f64, iops: f64) -> Series {
        let per_io = CpuTime {
            user_us,
            system_us: 0.5,
        };
        let sample = Sample {
            iops,
            per_io,
            process_per_io: per_io,
        };
        Series {
            program,
            samples: vec![sample; 3],
        }
    }

    #[test]
    fn a_finding_says_which_bars_were_missed() {
        let finding = Finding {
            description: "null engine".to_owned(),
            skipped: None,
            series: vec![
                series(Program::Fio, 0.4, 2e6),
                series(Program::Iosonde, 0.02, 6e6),
            ],
            ..Finding::skipped(Kind::Null, String::new())
        }
        .judged(&bars(Kind::Null));
        let met: Vec<bool> = finding.verdicts.iter().map(|verdict| verdict.met).collect();
        assert_eq!(met, [true, false]);
        let text = finding.text();
        assert!(
            text.contains("MISSED IOPS: iosonde / fio = 3.000 [3.000, 3.000], to be at least 4"),
            "{text}"
        );
        assert!(
            text.contains("met    user CPU per I/O: iosonde / fio = 0.050"),
            "{text}"
        );
    }
}
