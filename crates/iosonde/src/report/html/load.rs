//! Load studies, as the page draws them.

use super::document::{Load, LoadCell, LoadMatrix, LoadPoint};
use crate::report::load::{headline, notes, objective};
use iosonde_study::load::{LoadResult, Matrix, Point};

/// A load study from `source`.
pub(super) fn of(source: &str, result: &LoadResult) -> Load {
    let objectives = result.objectives.iter();
    let told = objectives.map(objective);
    Load {
        source: source.to_owned(),
        headline: headline(result),
        capacity_iops: result.capacity_iops,
        points: result.points.iter().map(point).collect(),
        notes: told.chain(notes(result)).collect(),
        matrix: result.matrix.as_ref().map(matrix),
    }
}

fn point(point: &Point) -> LoadPoint {
    LoadPoint {
        offered_per_s: point.offered.total(),
        achieved_per_s: point.achieved_per_s(),
        kept_up: point.kept_up,
        percentiles_ns: [50.0, 95.0, 99.0, 99.9].map(|percent| point.percentile_ns(percent)),
        max_ns: point.max_ns(),
    }
}

fn matrix(matrix: &Matrix) -> LoadMatrix {
    let row = |row: &Vec<iosonde_study::load::Cell>| {
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
