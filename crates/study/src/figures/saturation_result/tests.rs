use super::*;

fn cell(iodepth: u32, mean: f64, error: Option<f64>) -> CurveCell {
    let estimate = |mean: f64| RateEstimate {
        mean,
        error: error.map(|share| share * mean),
        spread: None,
    };
    CurveCell {
        jobs: 1,
        iodepth,
        iops: estimate(mean),
        bytes_per_s: estimate(mean * 4096.0),
        latency: LatencySummary::default(),
        measured_ns: 1_000_000_000,
        warmup: None,
    }
}

fn found(cells: Vec<CurveCell>, knee: usize, maximum: (f64, Option<f64>)) -> Saturation {
    let point = |cell: &CurveCell| DepthPoint {
        iodepth: cell.iodepth,
        iops: cell.iops.mean,
        latency: cell.latency,
    };
    let last = cells.len() - 1;
    let most = cell(1, maximum.0, maximum.1);
    Saturation {
        rules: SearchRules::THOROUGH,
        jobs: 1,
        maximum: most.iops,
        maximum_bytes_per_s: most.bytes_per_s,
        plateau: None,
        longer_run: None,
        knee: point(&cells[knee]),
        latency_only: (knee < last).then(|| point(&cells[knee])),
        curve: None,
        spent_ns: 1,
        ended: Ended::Sure,
        failure: None,
        cells,
    }
}

#[test]
fn maximum_that_is_well_known_is_claimed_with_its_interval() {
    let cells = vec![
        cell(1, 5e3, Some(0.02)),
        cell(4, 20e3, Some(0.02)),
        cell(8, 20e3, Some(0.02)),
    ];
    let sure = found(cells, 1, (20e3, Some(0.01)));
    assert_eq!(
        sure.sentence(false, true, "+-"),
        "reaches its maximum of 20.0k IOPS (+-1.0 %) at depth 4; more depth only adds latency"
    );
}

/// A sweep named the maximum of depth 8 as the rate of depth 4, which was slower.
#[test]
fn slower_knee_has_its_share_of_the_maximum() {
    let cells = vec![
        cell(1, 5e3, Some(0.02)),
        cell(4, 19.7e3, Some(0.002)),
        cell(8, 20e3, Some(0.002)),
        cell(16, 20e3, Some(0.002)),
    ];
    let found = found(cells, 1, (20e3, Some(0.002)));
    let sentence = found.sentence(false, true, "+-");
    let start = "reaches 98 % of its maximum of 20.0k IOPS (+-0.2 %) at depth 4; ";
    assert!(sentence.starts_with(start), "{sentence}");
    let signed = found.sentence(false, true, "±");
    assert!(signed.contains("(±0.2 %)"), "{signed}");
}

/// Figures of a sweep next to a busy process: pooled with depth 32, the maximum was 1.92k.
#[test]
fn maximum_below_the_cells_of_its_table_is_not_claimed() {
    let cells = vec![
        cell(2, 9.97e3, Some(0.3)),
        cell(8, 18.2e3, None),
        cell(16, 26.4e3, Some(0.86)),
        cell(32, 1.12e3, Some(0.2)),
    ];
    let unsure = found(cells, 0, (1.92e3, Some(1.4)));
    assert_eq!(
        unsure.sentence(false, true, "+-"),
        "has no known maximum; the fastest was depth 16 with 26.4k IOPS (uncertain: +-86 %)"
    );
    assert_eq!((unsure.known_maximum(), unsure.known_knee()), (None, None));
}

#[test]
fn maximum_below_faster_short_cell_is_not_claimed() {
    let cells = vec![cell(2, 10e3, Some(0.02)), cell(4, 13e3, None)];
    let unsure = found(cells, 0, (10e3, Some(0.02)));
    assert!(!unsure.claims().maximum);
    let said = unsure.sentence(false, true, "+-");
    assert!(said.ends_with("depth 4 with 13.0k IOPS (interval unknown: measured too shortly)"));
}

#[test]
fn knee_above_a_cell_that_may_reach_the_maximum_is_not_claimed() {
    let cells = vec![
        cell(2, 18e3, Some(0.2)),
        cell(4, 20e3, Some(0.02)),
        cell(8, 20e3, Some(0.5)),
    ];
    let unsure = found(cells, 1, (20e3, Some(0.02)));
    assert_eq!(
        unsure.sentence(false, true, "+-"),
        "reaches its maximum of 20.0k IOPS (+-2.0 %) at depth 4 or lower; more depth may raise \
         the rate"
    );
}

#[test]
fn plateau_is_named_by_its_depths_and_claims_no_maximum() {
    let cells = vec![
        cell(8, 18e3, Some(0.02)),
        cell(16, 20e3, Some(0.02)),
        cell(32, 20.4e3, Some(0.02)),
    ];
    let flat = Saturation {
        plateau: Some((16, 32)),
        ..found(cells, 1, (20.2e3, Some(0.015)))
    };
    assert_eq!(
        flat.sentence(false, true, "+-"),
        "levels off at 20.2k IOPS (+-1.5 %, the mean of depths 16 to 32) from depth 16 on; \
         more depth only adds latency"
    );
}

#[test]
fn rate_without_plateau_is_that_of_its_own_depth() {
    let rising = |error: f64| {
        let cells = vec![
            cell(16, 300e3, Some(error)),
            cell(64, 750e3, Some(error)),
            cell(128, 763e3, Some(error)),
        ];
        Saturation {
            latency_only: None,
            ..found(cells, 1, (763e3, Some(error)))
        }
    };
    let sentence = rising(0.002).sentence(false, true, "+-");
    assert_eq!(
        sentence,
        "still rises at depth 128, with 763k IOPS (+-0.2 %)"
    );
    assert_eq!(
        rising(0.02).sentence(false, true, "+-"),
        "is highest at depth 128, with 763k IOPS (+-2.0 %); deeper was not measured"
    );
    let mut raised = rising(0.002);
    raised.raise_to(longer(780e3, 0.002));
    assert_eq!(
        raised.sentence(false, true, "+-"),
        "is highest at depth 64, with 780k IOPS (+-2.4 %)"
    );
    assert!(rising(0.002).claims().rises && !raised.claims().rises);
}

#[test]
fn sentence_without_jobs_judges_cells_of_all_jobs() {
    let cells = [(1, 5e3), (4, 20e3), (8, 20e3)].map(|(iodepth, iops)| CurveCell {
        jobs: 4,
        ..cell(iodepth, iops, Some(0.02))
    });
    let found = Saturation {
        jobs: 4,
        ..found(cells.to_vec(), 1, (20e3, Some(0.01)))
    };
    let start = "reaches its maximum of 20.0k IOPS (+-1.0 %) at depth 4";
    let end = "; more depth only adds latency";
    assert_eq!(found.sentence(false, false, "+-"), format!("{start}{end}"));
    assert_eq!(
        found.sentence(false, true, "+-"),
        format!("{start} in each of 4 jobs{end}")
    );
}

fn longer(mean: f64, error: f64) -> LongerRun {
    LongerRun {
        iodepth: 64,
        iops: cell(64, mean, Some(error)).iops,
    }
}

#[test]
fn raised_maximum_is_not_below_a_row_and_holds_its_old_interval() {
    let mut found = found(vec![cell(4, 20e3, Some(0.02))], 0, (20e3, Some(0.02)));
    found.plateau = Some((4, 8));
    found.raise_to(longer(21e3, 0.01));
    let most = found.maximum;
    assert_eq!(most.mean, 21e3);
    assert!(
        most.mean - most.error.unwrap() <= 20e3 * 0.98 + 1e-6,
        "{most:?}"
    );
    assert_eq!(found.maximum_bytes_per_s.mean, 21e3 * 4096.0);
    assert_eq!(found.plateau, None, "it is no mean of depths");
}

/// A probe named depth 32 with 6.93k as the fastest, below a row of depth 64 with 8.08k.
#[test]
fn fastest_rate_of_unknown_maximum_is_the_longer_run() {
    let mut found = found(vec![cell(32, 6.93e3, Some(0.3))], 0, (6.93e3, Some(0.5)));
    found.raise_to(longer(8.08e3, 0.12));
    assert_eq!(
        found.sentence(false, true, "+-"),
        "has no known maximum; the fastest was depth 64 with 8.08k IOPS \
         (+-12 %, but the search measured 6.93k IOPS)"
    );
    // The interval is that of 8.08k IOPS, which the doubt alone does not name.
    let doubt = found.maximum_doubt(false, "+-");
    let reason = "the search reached only 6.93k IOPS";
    assert_eq!(doubt.as_deref(), Some(reason));
}

/// Sweeps reported "known to +-0.1 % only" for cells whose own interval is no reason for doubt.
#[test]
fn doubt_of_well_measured_rate_names_its_reason() {
    let cells = vec![cell(8, 13e3, Some(0.001)), cell(16, 9e3, Some(0.3))];
    let disagreeing = Saturation {
        plateau: Some((8, 16)),
        ..found(cells, 0, (13e3, Some(0.31)))
    };
    let ending = "depth 8 with 13.0k IOPS (+-0.1 %, but other depths disagree)";
    let said = disagreeing.sentence(false, true, "+-");
    assert!(said.ends_with(ending), "{said}");
    let doubt = disagreeing.maximum_doubt(false, "+-");
    assert_eq!(doubt.as_deref(), Some("other depths disagree"));
    // Few samples that agree by chance, although the search knows the rate only to 40 %.
    let lucky = found(vec![cell(8, 13e3, Some(0.001))], 0, (13e3, Some(0.4)));
    let said = lucky.sentence(false, true, "+-");
    assert!(
        said.ends_with("depth 8 with 13.0k IOPS (uncertain: +-40 %)"),
        "{said}"
    );
}

/// A search of one second stopped at depth 32 and named half of the rate of depth 64 a maximum.
#[test]
fn fastest_depth_without_deeper_cells_claims_no_maximum() {
    let cells = vec![cell(8, 94e3, Some(0.01)), cell(32, 376e3, Some(0.009))];
    let cut_off = Saturation {
        latency_only: Some(found(cells.clone(), 1, (376e3, None)).knee),
        ended: Ended::OutOfTime,
        ..found(cells.clone(), 1, (376e3, Some(0.009)))
    };
    assert!(cut_off.is_open_ended() && !cut_off.claims().maximum);
    assert_eq!(
        (cut_off.known_maximum(), cut_off.known_knee()),
        (None, None)
    );
    assert_eq!(
        cut_off.sentence(false, true, "+-"),
        "has no known maximum; the fastest was depth 32 with 376k IOPS (+-0.9 %, but deeper was \
         not measured)"
    );
    let doubt = cut_off.maximum_doubt(false, "+-");
    assert_eq!(doubt.as_deref(), Some("deeper was not measured"));
    // The deepest depth of the query is measured: nothing deeper was asked for.
    let whole = found(cells, 1, (376e3, Some(0.009)));
    assert!(!whole.is_open_ended() && whole.claims().maximum);
}

#[test]
fn plateau_of_the_deepest_cells_is_not_open_ended() {
    let cells = vec![cell(16, 20e3, Some(0.02)), cell(32, 20.4e3, Some(0.02))];
    let deepest = found(cells.clone(), 1, (20.2e3, None)).knee;
    let flat = Saturation {
        plateau: Some((16, 32)),
        latency_only: Some(deepest),
        ..found(cells, 0, (20.2e3, Some(0.015)))
    };
    assert!(!flat.is_open_ended());
}

#[test]
fn maximum_depths_are_those_that_measured_the_maximum() {
    let cells = vec![
        cell(16, 19e3, Some(0.02)),
        cell(32, 19.8e3, Some(0.02)),
        cell(64, 20e3, Some(0.02)),
        cell(128, 20.1e3, Some(0.02)),
    ];
    let mut result = found(cells, 0, (20e3, Some(0.01)));
    assert_eq!(result.maximum_depths(), (64, 64));
    assert_eq!(result.maximum_doubt(false, "±"), None);
    result.plateau = Some((64, 128));
    assert_eq!(result.maximum_depths(), (64, 128));
    let iops = cell(32, 21e3, Some(0.01)).iops;
    result.raise_to(LongerRun { iodepth: 32, iops });
    assert_eq!(result.maximum_depths(), (32, 32));
    assert_eq!(result.rate_at(32), Some(iops));
    assert_eq!(result.rate_at(16).map(|rate| rate.mean), Some(19e3));
    assert_eq!(result.rate_at(8), None);
    let unsure = found(vec![cell(4, 20e3, Some(0.5))], 0, (20e3, Some(0.5)));
    let doubt = unsure.maximum_doubt(false, "±");
    assert_eq!(doubt.as_deref(), Some("uncertain: ±50 %"));
}
