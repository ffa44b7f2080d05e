//! Figures of a life cycle study that are compared with those of another.

use super::lifecycle_result::{LifecycleGroup, LifecycleResult};
use super::stage_summary::{StageFigure, StageSummary};
use iosonde_result::compare::{
    Bounds, Figure, IntervalBasis, IoPattern, Measure, PartRole, ResultPart, Subject,
    informative_interval,
};

/// Returns one part for each stage of each group. Names have the class if there are several.
pub fn lifecycle_parts(result: &LifecycleResult) -> Vec<ResultPart> {
    let several = result.classes.len() > 1;
    let mut parts = Vec::new();
    for group in &result.groups {
        let stages = group.stages.iter();
        let measured = stages.filter(|stage| stage.measured > 0);
        parts.extend(measured.map(|stage| stage_part(group, stage, several)));
    }
    parts
}

fn stage_part(group: &LifecycleGroup, stage: &StageSummary, several: bool) -> ResultPart {
    let title = stage.stage.title();
    let of_class = match several {
        true => format!("{}: {title}", group.class),
        false => title.to_owned(),
    };
    let figures = [
        (Measure::LatMean, stage.mean),
        (Measure::LatP50, stage.p50),
        (Measure::LatP99, stage.p99),
    ];
    let basis = match group.at_once {
        1 => IntervalBasis::Samples,
        _ => IntervalBasis::Runs,
    };
    let figures = figures.into_iter().filter_map(|(measure, found)| {
        let found: StageFigure = found.filter(|found| found.value_ns > 0.0)?;
        let ends = found.interval_ns;
        let ends = ends.and_then(|ends| informative_interval(found.value_ns, ends));
        Some(Figure {
            subject: Subject::LifecycleStage,
            measure,
            value: found.value_ns,
            bounds: ends.map(|(low, high)| Bounds {
                low,
                high,
                freedom: stage.samples.saturating_sub(1).max(1) as f64,
                repeat_factor: 1.0,
                basis,
            }),
            settled: None,
        })
    });
    ResultPart {
        name: match group.at_once {
            1 => of_class,
            count => format!("{of_class}, {count} at once"),
        },
        pattern: IoPattern {
            rw: title.to_owned(),
            bs: String::new(),
            iodepth: group.at_once,
            numjobs: 1,
        },
        figures: figures.collect(),
        role: PartRole::Alone,
    }
}
