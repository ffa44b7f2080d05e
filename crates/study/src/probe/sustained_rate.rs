//! Maxima that a target reached for a short time only, such as the rate of writes before the write
//! cliff: an SSD is fast while its SLC cache has room, a volume while it has burst credits.

use super::probe_result::ProbeResult;
use crate::figures::cell::CurveCell;
use crate::figures::pattern_knee::Knee;
use crate::figures::phase_figure::PhaseFigure;

/// Smallest share by which the rate of a longer run is below a maximum that it does not keep up.
const LOWER_SHARE_MIN: f64 = 0.05;

impl ProbeResult {
    /// The figure of the phase if its rate is surely below the maximum of one job, although its run
    /// was longer than those of the search and its depth is not the cause: the target reached the
    /// maximum for a short time only.
    #[must_use]
    pub fn sustained_rate(&self, knee: &Knee) -> Option<&PhaseFigure> {
        let found = &knee.saturation;
        let figure = self.figure(knee.phase)?;
        if found.jobs != 1 || figure.iodepth < found.knee.iodepth {
            return None;
        }
        let lowest = found.maximum.mean - found.maximum.error?;
        let highest = figure.iops.mean + figure.iops.error?;
        let is_lower = highest < lowest * (1.0 - LOWER_SHARE_MIN);
        let is_beyond = |cell: &&CurveCell| cell.jobs == 1 && cell.iodepth >= found.knee.iodepth;
        let cells = || found.cells.iter().filter(is_beyond);
        // The cell of the same depth may contain the longer run.
        let mut others = cells().filter(|cell| cell.iodepth != figure.iodepth);
        let is_longer = others.all(|cell| cell.measured_ns < figure.measured_ns);
        let is_faster = |cell: &CurveCell| {
            let error = cell.iops.error;
            error.is_some_and(|error| cell.iops.mean - error > highest)
        };
        let mut deeper = cells().filter(|cell| cell.iodepth > figure.iodepth);
        let is_depth_no_cause = figure.iodepth == found.knee.iodepth || deeper.any(is_faster);
        (is_lower && is_longer && is_depth_no_cause).then_some(figure)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe_budget::ProbeBudget;
    use crate::probe_phase::ProbePhase;
    use crate::test_targets::probe_simulated;

    #[test]
    fn maximum_of_short_runs_names_the_sustained_rate() {
        let mut probed = probe_simulated("nvme", ProbeBudget::NORMAL, Some(1 << 30));
        let phase = ProbePhase::RandomWrite;
        let is_it = |knee: &&Knee| knee.phase == phase;
        let mut knee = probed.knees.iter().find(is_it).unwrap().clone();
        let mut figures = probed.figures.iter_mut();
        let figure = figures.find(|each| each.phase == phase).unwrap();
        let rate = 0.5 * knee.saturation.maximum.mean;
        figure.iops.mean = rate;
        figure.iops.error = Some(0.0);
        figure.measured_ns = 0;
        knee.saturation.jobs = 1;
        knee.saturation.maximum.error = Some(0.0);
        knee.saturation.knee.iodepth = figure.iodepth;
        assert_eq!(probed.sustained_rate(&knee), None, "its run was short");
        for figure in &mut probed.figures {
            figure.measured_ns = u64::MAX;
        }
        let sustained = probed.sustained_rate(&knee).map(|figure| figure.iops.mean);
        assert_eq!(sustained, Some(rate));
    }
}
