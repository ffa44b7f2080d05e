//! The table of the README, from measured figures.

use super::bars::ComparedFigure;
use super::program::{ComparedBinary, ComparedProgram, LoopShape};
use super::ratio::IntervalEstimate;
use super::report::TargetComparison;
use anyhow::{Context, Result};
use std::path::Path;

/// Comments around the table.
const START: &str = "<!-- Written by `cargo xtask bench --readme`: start -->";
const END: &str = "<!-- Written by `cargo xtask bench --readme`: end -->";

/// Jobs of the table, in its order.
const JOBS: [(LoopShape, &str); 4] = [
    (LoopShape::InBatches, "depth 64, batches of 16"),
    (LoopShape::Plain, "depth 64"),
    (LoopShape::Depth4, "depth 4"),
    (LoopShape::Depth1, "depth 1"),
];

/// Conditions of the measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct BenchConditions<'a> {
    pub(super) fio_version: &'a str,
    pub(super) kernel: &'a str,
    pub(super) cpus: usize,
    pub(super) runs: usize,
    pub(super) seconds: f64,
}

/// Writes the section into a README, between the comments.
pub(super) fn write(
    path: &Path,
    comparison: &TargetComparison,
    conditions: BenchConditions<'_>,
) -> Result<()> {
    let section = section(comparison, conditions)
        .context("--readme needs the runs of iosonde and fio on the target sparse")?;
    let readme =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let readme = replace_section(&readme, &section)
        .with_context(|| format!("{} has no line `{START}` before `{END}`", path.display()))?;
    std::fs::write(path, readme).with_context(|| format!("writing {}", path.display()))
}

/// The section with its heading. `None` if a program did not run.
fn section(comparison: &TargetComparison, conditions: BenchConditions<'_>) -> Option<String> {
    let cpus = match conditions.cpus {
        1 => "1 CPU".to_owned(),
        cpus => format!("{cpus} CPUs"),
    };
    let mut text = format!(
        "## Beside fio\n\n\
         4 KiB random reads of a {} with O_DIRECT by io_uring, one worker,\n\
         on Linux {} with {cpus}, beside {}. Means of {} runs of {} s in turn, ratios with 95 %\n\
         intervals ([docs/performance.md](docs/performance.md)):\n\n\
         | job | IOPS of iosonde | IOPS of fio | ratio | user CPU per I/O of iosonde | of fio |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n",
        comparison.description,
        conditions.kernel,
        conditions.fio_version,
        conditions.runs,
        conditions.seconds
    );
    for (shape, name) in JOBS {
        let program = |binary| ComparedProgram::new(binary, shape);
        let (ours, theirs) = (
            program(ComparedBinary::Iosonde),
            program(ComparedBinary::Fio),
        );
        let mean = |program, figure| Some(comparison.mean(figure, program)?.value);
        let rate = |program| Some(rate_text(mean(program, ComparedFigure::Iops)?));
        let user = |program| mean(program, ComparedFigure::UserCpu);
        text.push_str(&format!(
            "| {name} | {} | {} | {} | {:.3} us | {:.3} us |\n",
            rate(ours)?,
            rate(theirs)?,
            ratio(comparison.ratio(ComparedFigure::Iops, ours, theirs)?),
            user(ours)?,
            user(theirs)?,
        ));
    }
    Some(text)
}

/// A rate with three digits: `1.58 M`, `590 k`.
fn rate_text(iops: f64) -> String {
    let (value, unit) = match iops {
        999_500.0.. => (iops / 1e6, " M"),
        999.5.. => (iops / 1e3, " k"),
        _ => (iops, ""),
    };
    match value {
        99.95.. => format!("{value:.0}{unit}"),
        9.995.. => format!("{value:.1}{unit}"),
        _ => format!("{value:.2}{unit}"),
    }
}

/// A ratio with its interval: `2.51 (2.43 to 2.60)`.
fn ratio(estimate: IntervalEstimate) -> String {
    match estimate.interval {
        Some((low, high)) => format!("{:.2} ({low:.2} to {high:.2})", estimate.value),
        None => format!("{:.2}", estimate.value),
    }
}

/// Replaces the text between the comments. `None` without them.
fn replace_section(readme: &str, section: &str) -> Option<String> {
    let (before, rest) = readme.split_once(START)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{START}\n\n{section}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::super::bench_target::BenchTargetKind;
    use super::super::cpu::CpuTime;
    use super::super::program::RunSample;
    use super::super::report::ProgramSeries;
    use super::*;

    const CONDITIONS: BenchConditions<'static> = BenchConditions {
        fio_version: "fio-3.42",
        kernel: "6.12.0",
        cpus: 2,
        runs: 2,
        seconds: 10.0,
    };

    fn series(binary: ComparedBinary, shape: LoopShape, iops: f64) -> ProgramSeries {
        let per_io = CpuTime {
            user_us: 40_000.0 / iops,
            system_us: 0.5,
        };
        let sample = RunSample {
            iops,
            per_io,
            process_per_io: per_io,
        };
        ProgramSeries {
            program: ComparedProgram::new(binary, shape),
            flags: Vec::new(),
            samples: vec![sample; 2],
        }
    }

    fn comparison() -> TargetComparison {
        let series = JOBS
            .iter()
            .zip([16e5, 10e5, 8e5, 5e5])
            .flat_map(|((shape, _), iops)| {
                [
                    series(ComparedBinary::Iosonde, *shape, iops),
                    series(ComparedBinary::Fio, *shape, iops / 2.0),
                ]
            });
        TargetComparison {
            description: "sparse file on ext4".to_owned(),
            skipped: None,
            series: series.collect(),
            ..TargetComparison::skipped(BenchTargetKind::Sparse, String::new())
        }
    }

    #[test]
    fn readme_section_has_four_lines_and_the_conditions() {
        let expected = "\
## Beside fio

4 KiB random reads of a sparse file on ext4 with O_DIRECT by io_uring, one worker,
on Linux 6.12.0 with 2 CPUs, beside fio-3.42. Means of 2 runs of 10 s in turn, ratios with 95 %
intervals ([docs/performance.md](docs/performance.md)):

| job | IOPS of iosonde | IOPS of fio | ratio | user CPU per I/O of iosonde | of fio |
| --- | ---: | ---: | ---: | ---: | ---: |
| depth 64, batches of 16 | 1.60 M | 800 k | 2.00 (2.00 to 2.00) | 0.025 us | 0.050 us |
| depth 64 | 1.00 M | 500 k | 2.00 (2.00 to 2.00) | 0.040 us | 0.080 us |
| depth 4 | 800 k | 400 k | 2.00 (2.00 to 2.00) | 0.050 us | 0.100 us |
| depth 1 | 500 k | 250 k | 2.00 (2.00 to 2.00) | 0.080 us | 0.160 us |
";
        assert_eq!(section(&comparison(), CONDITIONS).unwrap(), expected);
    }

    #[test]
    fn readme_section_needs_all_programs() {
        let mut fewer = comparison();
        fewer.series.pop();
        assert_eq!(section(&fewer, CONDITIONS), None);
        let single = BenchConditions {
            cpus: 1,
            ..CONDITIONS
        };
        assert!(
            section(&comparison(), single)
                .unwrap()
                .contains("with 1 CPU,")
        );
    }

    #[test]
    fn section_replaces_only_the_text_between_the_comments() {
        let readme = format!("before\n\n{START}\nold\n{END}\n\nafter\n");
        let once = replace_section(&readme, "new\n").unwrap();
        assert_eq!(
            once,
            format!("before\n\n{START}\n\nnew\n\n{END}\n\nafter\n")
        );
        assert_eq!(replace_section(&once, "new\n").unwrap(), once);
        assert_eq!(replace_section("without comments", "new"), None);
        let committed = include_str!("../../../README.md");
        assert!(replace_section(committed, "new\n").is_some());
    }

    #[test]
    fn rates_have_three_digits() {
        for (iops, expected) in [
            (1_584_000.0, "1.58 M"),
            (999_600.0, "1.00 M"),
            (999_400.0, "999 k"),
            (59_040.0, "59.0 k"),
            (412.3, "412"),
        ] {
            assert_eq!(rate_text(iops), expected);
        }
    }
}
