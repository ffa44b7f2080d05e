//! Compares the parts that were measured alone and beside a neighbour.

use super::beside_figure::BesideFigure;
use super::outcome::StepResult;
use iosonde_result::compare::{MeasuredResult, ResultPart, compare, name_beside};

/// Compares all parts that were measured alone and beside a neighbour.
pub fn beside_figures(steps: &[StepResult]) -> Vec<BesideFigure> {
    let alone = measured(steps, |step| step.beside.is_none());
    let mut beside = measured(steps, |step| step.beside.is_some());
    if beside.iter().all(|one| one.parts.is_empty()) {
        return Vec::new();
    }
    let names: Vec<String> = (alone.iter().flat_map(|one| &one.parts))
        .map(|part| part.name.clone())
        .collect();
    for one in &mut beside {
        // The neighbour's own part has no counterpart.
        let parts = std::mem::take(&mut one.parts).into_iter();
        one.parts = parts.filter_map(|part| as_alone(part, &names)).collect();
    }
    let rows = compare(&alone, &beside).rows;
    rows.iter().map(BesideFigure::from_row).collect()
}

/// Returns a part with the name that it has alone. `None`: it was not measured alone.
fn as_alone(part: ResultPart, names: &[String]) -> Option<ResultPart> {
    let name = names.iter().find(|name| name_beside(name) == part.name)?;
    Some(ResultPart {
        name: name.clone(),
        ..part
    })
}

/// One result for each repetition, with the parts of all steps of one kind.
fn measured(steps: &[StepResult], is_meant: impl Fn(&StepResult) -> bool) -> Vec<MeasuredResult> {
    let most = steps.iter().map(|step| step.repetition).max().unwrap_or(0);
    let of = |repetition: u32| MeasuredResult {
        name: format!("repetition {repetition}"),
        machine: None,
        parts: (steps.iter())
            .filter(|step| step.repetition == repetition && step.is_whole() && is_meant(step))
            .flat_map(|step| step.parts.clone())
            .collect(),
    };
    (1..=most).map(of).collect()
}
