//! Load studies for the page.

use super::document::{LoadCell, LoadMatrix, LoadPoint, PageLoad};
use crate::load::{headline, knee_per_s, notes, objective};
use iosonde_study::load::{LoadMeasurement, LoadResult, Matrix};

/// Converts a load study from `source`.
pub(super) fn convert_load(source: &str, result: &LoadResult) -> PageLoad {
    let objectives = result.objectives.iter().map(objective);
    PageLoad {
        source: source.to_owned(),
        target: result.target.clone(),
        headline: headline(result),
        capacity_iops: result.capacity_iops,
        knee_per_s: knee_per_s(result),
        points: result.points.iter().map(point).collect(),
        notes: objectives.chain(notes(result)).collect(),
        matrix: result.matrix.as_ref().map(matrix),
    }
}

fn point(point: &LoadMeasurement) -> LoadPoint {
    LoadPoint {
        offered_per_s: point.offered.total(),
        achieved_per_s: point.achieved_per_s(),
        kept_up: point.kept_up,
        percentiles_ns: [50.0, 95.0, 99.0, 99.9].map(|percent| point.percentile_ns(percent)),
        max_ns: point.max_ns(),
    }
}

fn matrix(matrix: &Matrix) -> LoadMatrix {
    let row = |row: &Vec<iosonde_study::load::MatrixCell>| {
        let cells = row.iter().map(|cell| LoadCell {
            state: cell.state,
            p99_ns: cell.p99_ns,
        });
        cells.collect()
    };
    LoadMatrix {
        reads_per_s: matrix.reads_per_s.clone(),
        writes_per_s: matrix.writes_per_s.clone(),
        cells: matrix.cells.iter().map(row).collect(),
    }
}
