//! Life cycles of volumes for the page, which draws them as grouped bars: medians of the stages of
//! each class, for each number of volumes at once.

use super::document::{PagePivot, PageUnit, PivotCell};
use iosonde_result::compare::informative_interval;
use iosonde_result::volume_lifecycle::LifecycleStage;
use iosonde_study::lifecycle::{LifecycleGroup, LifecycleResult};
use iosonde_study::words;

/// Converts a life cycle to one table for each number of volumes at once.
pub(super) fn convert_lifecycle(source: &str, result: &LifecycleResult) -> Vec<PagePivot> {
    let mut counts: Vec<u32> = result.groups.iter().map(|group| group.at_once).collect();
    counts.sort_unstable();
    counts.dedup();
    let tables = counts.into_iter();
    tables
        .map(|at_once| convert_count(source, result, at_once))
        .collect()
}

fn convert_count(source: &str, result: &LifecycleResult, at_once: u32) -> PagePivot {
    let group = |class: &str| {
        let mut groups = result.groups.iter();
        groups.find(|group| group.class == class && group.at_once == at_once)
    };
    let classes = || result.classes.iter().map(|class| class.name.as_str());
    let is_measured = |stage: &LifecycleStage| {
        classes().any(|class| group(class).is_some_and(|group| stage_cell(group, *stage).is_some()))
    };
    let stages: Vec<LifecycleStage> = LifecycleStage::ALL
        .into_iter()
        .filter(is_measured)
        .collect();
    let row = |stage: &LifecycleStage| -> Vec<Option<PivotCell>> {
        let cells = classes().map(|class| stage_cell(group(class)?, *stage));
        cells.collect()
    };
    let when = match at_once {
        1 => "one volume after the other".to_owned(),
        count => format!("{count} volumes at once"),
    };
    PagePivot {
        figure: format!("{source}, {when}"),
        title: format!("median of each stage, {when}"),
        unit: PageUnit::Ns,
        row_label: "stage".to_owned(),
        column_label: "class".to_owned(),
        cells: stages.iter().map(row).collect(),
        rows: stages
            .iter()
            .map(|stage| stage.title().to_owned())
            .collect(),
        columns: classes().map(str::to_owned).collect(),
        simulated: false,
    }
}

fn stage_cell(group: &LifecycleGroup, stage: LifecycleStage) -> Option<PivotCell> {
    let summary = group.stage(stage)?;
    let median = summary.p50?;
    let ends = median.interval_ns;
    let longest = summary.max_ns? as f64;
    Some(PivotCell {
        value: median.value_ns,
        between: ends.and_then(|ends| informative_interval(median.value_ns, ends)),
        results: summary.measured,
        note: Some(format!(
            "{} volumes, at most {}",
            summary.measured,
            words::latency(longest)
        )),
        promised: None,
        product: None,
        kept: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::volume_lifecycle::{
        LifecycleClass, LifecycleRound, LifecycleRoundResult, StageOutcome, StageRecord,
        VolumeRecord,
    };
    use iosonde_study::lifecycle::{LifecycleOptions, run_lifecycle};

    /// Two classes, of which the second has no stage but provision.
    fn result() -> LifecycleResult {
        let names = ["sc://a", "sc://b"];
        let class = |name: &str| LifecycleClass {
            name: name.to_owned(),
            provisioner: None,
            binds_late: false,
            expands: None,
        };
        let record = |stage| StageRecord {
            stage,
            outcome: StageOutcome::Measured {
                begun_ns: 0,
                took_ns: 5_000_000,
            },
        };
        let stages = [
            vec![LifecycleStage::Provision, LifecycleStage::Delete],
            vec![LifecycleStage::Provision],
        ];
        let mut measure = |round: &LifecycleRound| {
            let volume = VolumeRecord {
                class: names[round.class].to_owned(),
                at_once: round.at_once,
                round: round.number,
                stages: stages[round.class].iter().copied().map(record).collect(),
            };
            Ok(LifecycleRoundResult {
                volumes: vec![volume; round.at_once as usize],
                ..LifecycleRoundResult::default()
            })
        };
        let options = LifecycleOptions {
            counts: vec![1, 4],
            rounds: Some(2),
            claim_bytes: 1 << 30,
        };
        run_lifecycle(names.map(class).to_vec(), &options, &mut measure).unwrap()
    }

    #[test]
    fn life_cycle_has_a_table_of_stages_and_classes_per_count() {
        let tables = convert_lifecycle("3f2a", &result());
        let figures: Vec<&str> = tables.iter().map(|table| table.figure.as_str()).collect();
        let expected = [
            "3f2a, one volume after the other",
            "3f2a, 4 volumes at once",
        ];
        assert_eq!(figures, expected);
        let table = &tables[0];
        assert_eq!(table.rows, ["provision", "delete"]);
        assert_eq!(table.columns, ["sc://a", "sc://b"]);
        assert!(table.cells[1][0].is_some() && table.cells[1][1].is_none());
        let cell = table.cells[0][1].as_ref().unwrap();
        assert_eq!((cell.value, cell.results), (5e6, 2));
    }
}
