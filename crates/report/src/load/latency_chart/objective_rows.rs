//! Rows of objectives in the chart: dashes with the name of the objective.

use super::{LatencyChart, MARGIN_COLUMNS, ScaleSide};
use crate::load::objective_limits::objective_name;
use iosonde_study::load::Objective;

/// Cells on either side of a name: a blank, and a cell of the row.
const NAME_MARGIN: usize = 2;

impl LatencyChart {
    /// Draws the objectives into the cells that hold no point: a row of dashes with its name, or a
    /// note at the edge beyond which the objective lies. Returns whether all rows have a name, and
    /// the notes that have no room.
    pub(super) fn draw_objectives(
        &self,
        plot: &mut [Vec<char>],
        dash: char,
    ) -> (bool, Vec<String>) {
        let (beyond, rows): (Vec<_>, Vec<_>) = self
            .objectives
            .iter()
            .map(|objective| (objective, self.side_of(objective.latency_ns as f64)))
            .partition(|(_, side)| side.is_some());
        let row_of = |ns: u64| self.row(ns as f64);
        for (objective, _) in &rows {
            let cells = plot[row_of(objective.latency_ns)].iter_mut();
            cells
                .filter(|cell| **cell == ' ')
                .for_each(|cell| *cell = dash);
        }
        let mut are_named = true;
        for (objective, _) in &rows {
            let names = [objective_name(**objective), objective.to_string()];
            let row = &mut plot[row_of(objective.latency_ns)];
            are_named &= write_name(row, dash, &names);
        }
        let mut other_notes = Vec::new();
        for (objective, side) in &beyond {
            let Some(side) = side else {
                continue;
            };
            let row = match side {
                ScaleSide::Above => 0,
                ScaleSide::Below => self.size.rows - 1,
            };
            let texts = notes(**objective, *side);
            if !write_name(&mut plot[row], ' ', &texts) {
                let width = MARGIN_COLUMNS + self.size.columns;
                let fitting = texts.iter().find(|text| text.chars().count() <= width);
                other_notes.push(fitting.unwrap_or(&texts[2]).clone());
            }
        }
        (are_named, other_notes)
    }

    /// The side of the axis on which a latency lies. `None`: the axis contains it.
    pub(super) fn side_of(&self, latency_ns: f64) -> Option<ScaleSide> {
        ScaleSide::of_latency(latency_ns, self.latencies_ns)
    }
}

/// Notes on an objective beyond the scale, from the longest to the shortest.
fn notes(objective: Objective, side: ScaleSide) -> [String; 3] {
    [
        side.note(&objective_name(objective)),
        side.note(&objective.to_string()),
        format!("{objective}: {}", side.word()),
    ]
}

/// Writes the first of the names that has room among cells that hold `free`, as far left as
/// possible. Returns whether a name has room.
fn write_name(row: &mut [char], free: char, names: &[String]) -> bool {
    let room = names.iter().find_map(|name| {
        let mut places = row.windows(name.chars().count() + 2 * NAME_MARGIN);
        let start = places.position(|cells| cells.iter().all(|cell| *cell == free))?;
        Some((start, name))
    });
    let Some((start, name)) = room else {
        return false;
    };
    let text = format!(" {name} ");
    let cells = row[start + NAME_MARGIN - 1..].iter_mut();
    cells
        .zip(text.chars())
        .for_each(|(cell, sign)| *cell = sign);
    true
}
