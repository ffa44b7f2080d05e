//! Findings of the benchmark as text and as JSON.

use super::bars::{Bar, BarVerdict, ComparedFigure, judge};
use super::bench_target::BenchTargetKind;
use super::program::{ComparedBinary, ComparedProgram, LoopShape, RunSample};
use super::ratio::IntervalEstimate;
use serde::Serialize;
use std::fmt::Write;

/// All runs of one program on one target.
#[derive(Debug, Serialize)]
pub(super) struct ProgramSeries {
    pub(super) program: ComparedProgram,
    /// Flags of the kernel that the program reports.
    pub(super) flags: Vec<String>,
    pub(super) samples: Vec<RunSample>,
}

impl ProgramSeries {
    fn values(&self, value: impl Fn(&RunSample) -> f64) -> Vec<f64> {
        self.samples.iter().map(value).collect()
    }

    fn mean(&self, value: impl Fn(&RunSample) -> f64) -> IntervalEstimate {
        IntervalEstimate::mean(&self.values(value))
    }
}

/// Results and verdicts of one target.
#[derive(Debug, Serialize)]
pub(super) struct TargetComparison {
    pub(super) target: &'static str,
    pub(super) description: String,
    /// Reason why the target was not measured.
    pub(super) skipped: Option<String>,
    pub(super) series: Vec<ProgramSeries>,
    pub(super) verdicts: Vec<BarVerdict>,
    /// Reason why a bar was not judged.
    pub(super) not_judged: Option<String>,
}

impl TargetComparison {
    /// A finding for a target that this machine cannot have.
    pub(super) fn skipped(kind: BenchTargetKind, reason: String) -> TargetComparison {
        TargetComparison {
            target: kind.name(),
            description: kind.name().to_owned(),
            skipped: Some(reason),
            series: Vec::new(),
            verdicts: Vec::new(),
            not_judged: None,
        }
    }

    /// Adds a verdict for each bar whose programs ran.
    pub(super) fn judged(mut self, bars: &[Bar]) -> TargetComparison {
        for bar in bars {
            if let Some(ratio) = self.bar_ratio(bar) {
                self.verdicts.push(judge(*bar, ratio));
            }
        }
        self
    }

    fn find_series(&self, program: ComparedProgram) -> Option<&ProgramSeries> {
        self.series.iter().find(|series| series.program == program)
    }

    /// The mean of a figure, or nothing if the program did not run.
    pub(super) fn mean(
        &self,
        figure: ComparedFigure,
        program: ComparedProgram,
    ) -> Option<IntervalEstimate> {
        let series = self.find_series(program)?;
        Some(series.mean(|sample| figure.read_sample(sample)))
    }

    /// The ratio of a figure of two programs, or nothing if one of them did not run.
    pub(super) fn ratio(
        &self,
        figure: ComparedFigure,
        of: ComparedProgram,
        over: ComparedProgram,
    ) -> Option<IntervalEstimate> {
        let values = |program| {
            Some(
                self.find_series(program)?
                    .values(|sample| figure.read_sample(sample)),
            )
        };
        Some(IntervalEstimate::ratio(&values(of)?, &values(over)?))
    }

    /// The ratio that a bar bounds, or nothing if one of its programs did not run.
    fn bar_ratio(&self, bar: &Bar) -> Option<IntervalEstimate> {
        let Some(beside) = bar.beside else {
            return self.ratio(bar.figure, bar.of, bar.over);
        };
        let run_by_run = |numerator, denominator| {
            let values = |program| {
                let series = self.find_series(program)?;
                Some(series.values(|sample| bar.figure.read_sample(sample)))
            };
            let (numerators, denominators) = (values(numerator)?, values(denominator)?);
            let pairs = numerators.iter().zip(&denominators);
            Some(
                pairs
                    .map(|(left, right)| left / right)
                    .collect::<Vec<f64>>(),
            )
        };
        let ratios = run_by_run(bar.of, bar.over)?;
        let ratios_beside = run_by_run(beside.numerator, beside.denominator)?;
        Some(IntervalEstimate::ratio(&ratios, &ratios_beside))
    }

    /// The ratios of all figures of two programs, or nothing if one of them did not run.
    fn ratios(&self, of: ComparedProgram, over: ComparedProgram) -> String {
        let all = [
            ComparedFigure::UserCpu,
            ComparedFigure::TotalCpu,
            ComparedFigure::Iops,
        ];
        let ratios = all.map(|figure| {
            let ratio = self.ratio(figure, of, over)?;
            Some(format!("{} {}", figure.name(), interval(ratio)))
        });
        let ratios: Vec<String> = ratios.into_iter().flatten().collect();
        if ratios.is_empty() {
            return String::new();
        }
        format!("  {} / {}: {}\n", of.name(), over.name(), ratios.join(", "))
    }

    /// The flags of the first bare loop of each engine, with the name of the loop.
    fn flags_by_engine(&self) -> Vec<(String, &[String])> {
        let mut engines = Vec::new();
        let mut flags = Vec::new();
        for series in self.series.iter().filter(|series| !series.flags.is_empty()) {
            let engine = series.program.shape.engine();
            if !engines.contains(&engine) {
                engines.push(engine);
                let name = format!("{} of {engine}", series.program.binary.name());
                flags.push((name, series.flags.as_slice()));
            }
        }
        flags
    }

    /// The finding as a table.
    pub(super) fn text(&self) -> String {
        let mut text = format!("\n{} ({})\n", self.target, self.description);
        if let Some(reason) = &self.skipped {
            let _ = writeln!(text, "  skipped: {reason}");
            return text;
        }
        text.push_str(
            "  program                    user us/IO        system us/IO      \
             IOPS                  process us/IO\n",
        );
        for series in &self.series {
            let _ = writeln!(
                text,
                "  {:<26} {:<17} {:<17} {:<21} {:.3} + {:.3}",
                series.program.name(),
                micros(series.mean(|sample| sample.per_io.user_us)),
                micros(series.mean(|sample| sample.per_io.system_us)),
                rate_text(series.mean(|sample| sample.iops)),
                series.mean(|sample| sample.process_per_io.user_us).value,
                series.mean(|sample| sample.process_per_io.system_us).value,
            );
        }
        for shape in LoopShape::ALL {
            let of = ComparedProgram::new(ComparedBinary::Iosonde, shape);
            let before = ComparedProgram::new(ComparedBinary::IosondeBefore, shape);
            let fio = ComparedProgram::new(ComparedBinary::Fio, shape);
            text.push_str(&self.ratios(of, fio));
            text.push_str(&self.ratios(of, before));
        }
        for binary in [ComparedBinary::Iosonde, ComparedBinary::BareLoop] {
            let program = |shape| ComparedProgram::new(binary, shape);
            text.push_str(&self.ratios(program(LoopShape::TwoWorkers), program(LoopShape::Plain)));
        }
        for (name, flags) in self.flags_by_engine() {
            let _ = writeln!(text, "  {name}: {}", flags.join(", "));
        }
        for verdict in &self.verdicts {
            text.push_str(&verdict_line(verdict));
        }
        if let Some(reason) = &self.not_judged {
            let _ = writeln!(text, "  {reason}");
        }
        text
    }
}

/// One line of text for a verdict.
fn verdict_line(verdict: &BarVerdict) -> String {
    let bar = verdict.bar;
    let (word, limit) = (met_word(verdict.met), bar.limit.text());
    let doubt = if verdict.sure || verdict.ratio.interval.is_none() {
        ""
    } else {
        "; the interval holds the bar"
    };
    let names = |numerator: ComparedProgram, denominator: ComparedProgram| {
        format!("{} / {}", numerator.name(), denominator.name())
    };
    let mut ratio = names(bar.of, bar.over);
    if let Some(beside) = bar.beside {
        let divisor = names(beside.numerator, beside.denominator);
        ratio = format!("({ratio}) / ({divisor})");
    }
    format!(
        "  {word:<6} {}: {ratio} = {}, to be {limit}{doubt}\n",
        bar.figure.name(),
        interval(verdict.ratio),
    )
}

/// The word of the table for a bar that was met or missed.
pub(super) fn met_word(met: bool) -> &'static str {
    if met { "met" } else { "MISSED" }
}

pub(super) fn interval(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.3} [{low:.3}, {high:.3}]", estimate.value),
        None => format!("{:.3}", estimate.value),
    }
}

fn micros(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((_, high)) => format!("{:.4} ± {:.4}", estimate.value, high - estimate.value),
        None => format!("{:.4}", estimate.value),
    }
}

fn rate_text(estimate: IntervalEstimate) -> String {
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
    use super::super::bars::bench_bars;
    use super::super::cpu::CpuTime;
    use super::*;

    fn series(program: ComparedProgram, user_us: f64, iops: f64) -> ProgramSeries {
        let per_io = CpuTime {
            user_us,
            system_us: 0.5,
        };
        let sample = RunSample {
            iops,
            per_io,
            process_per_io: per_io,
        };
        ProgramSeries {
            program,
            flags: Vec::new(),
            samples: vec![sample; 3],
        }
    }

    #[test]
    fn finding_reports_missed_bars() {
        let fio = ComparedProgram::new(ComparedBinary::Fio, LoopShape::Plain);
        let finding = TargetComparison {
            description: "null engine".to_owned(),
            skipped: None,
            series: vec![
                series(fio, 0.4, 2e6),
                series(ComparedProgram::IOSONDE, 0.02, 6e6),
            ],
            ..TargetComparison::skipped(BenchTargetKind::Null, String::new())
        }
        .judged(&bench_bars(BenchTargetKind::Null));
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

    #[test]
    fn two_workers_are_held_to_two_threads_of_the_bare_loop() {
        let program = ComparedProgram::new;
        let (iosonde, bare) = (ComparedBinary::Iosonde, ComparedBinary::BareLoop);
        let finding = |of_two| TargetComparison {
            skipped: None,
            series: vec![
                series(program(iosonde, LoopShape::Plain), 0.02, 1e6),
                series(program(iosonde, LoopShape::TwoWorkers), 0.02, of_two),
                series(program(bare, LoopShape::Plain), 0.02, 1e6),
                series(program(bare, LoopShape::TwoWorkers), 0.02, 1.6e6),
            ],
            ..TargetComparison::skipped(BenchTargetKind::Sparse, String::new())
        };
        for (of_two, is_met) in [(1.57e6, true), (1.5e6, false)] {
            let finding = finding(of_two).judged(&bench_bars(BenchTargetKind::Sparse));
            let verdict = finding
                .verdicts
                .iter()
                .find(|verdict| verdict.bar.needs_two_cpus());
            assert_eq!(verdict.map(|verdict| verdict.met), Some(is_met), "{of_two}");
        }
        let text = finding(1.52e6)
            .judged(&bench_bars(BenchTargetKind::Sparse))
            .text();
        assert!(
            text.contains(
                "IOPS: (iosonde, two workers / iosonde) / (bare loop, two workers / bare loop) \
                 = 0.950"
            ),
            "{text}"
        );
        assert!(
            text.contains("  bare loop, two workers / bare loop: user CPU per I/O 1.000"),
            "{text}"
        );
    }

    #[test]
    fn earlier_build_is_compared_shape_by_shape() {
        let shape = LoopShape::Depth1;
        let program = |binary| ComparedProgram::new(binary, shape);
        let mut bare = series(program(ComparedBinary::BareLoop), 0.02, 8e6);
        bare.flags = vec!["no_sqarray".to_owned(), "noatime".to_owned()];
        let finding = TargetComparison {
            skipped: None,
            series: vec![
                series(program(ComparedBinary::Iosonde), 0.02, 6e6),
                series(program(ComparedBinary::IosondeBefore), 0.04, 3e6),
                bare,
            ],
            ..TargetComparison::skipped(BenchTargetKind::Sparse, String::new())
        };
        let finding = finding.judged(&bench_bars(BenchTargetKind::Sparse));
        assert_eq!(finding.verdicts.len(), 1, "only two compared programs ran");
        assert!(!finding.verdicts[0].met, "0.75 of the bare loop");
        let text = finding.text();
        assert!(
            text.contains("  iosonde, depth 1 / before, depth 1: user CPU per I/O 0.500"),
            "{text}"
        );
        assert!(
            text.contains("  bare loop of io_uring: no_sqarray, noatime\n"),
            "{text}"
        );
    }
}
