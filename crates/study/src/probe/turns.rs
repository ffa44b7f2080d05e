//! Turns of several concurrent probes, one run each, so that drift of the machine favours none.
//!
//! A seed draws the order of the first round, and each round reverses the last: A B, B A, A B. The
//! same phase of all targets is adjacent, and over two rounds a steady drift affects all alike.

use crate::random_order::shuffled;
use crate::run_hook::{RunHook, RunPurpose};
use iosonde_job::plan::Plan;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The turn order of several probes.
#[derive(Debug)]
pub struct TurnOrder {
    round: Mutex<TurnRound>,
    changed: Condvar,
}

#[derive(Debug)]
struct TurnRound {
    /// The remaining probes, in the order of this round.
    order: Vec<usize>,
    /// Index in `order` of the probe whose turn it is.
    at: usize,
}

impl TurnRound {
    fn holder(&self) -> Option<usize> {
        self.order.get(self.at).copied()
    }

    fn pass(&mut self) {
        self.at += 1;
        if self.at >= self.order.len() {
            self.order.reverse();
            self.at = 0;
        }
    }

    fn leave(&mut self, probe_index: usize) {
        let Some(place) = self.order.iter().position(|each| *each == probe_index) else {
            return;
        };
        self.order.remove(place);
        if place < self.at {
            self.at -= 1;
        } else if self.at >= self.order.len() {
            self.order.reverse();
            self.at = 0;
        }
    }
}

impl TurnOrder {
    /// Turns of `count` probes, numbered from 0.
    pub fn new(count: usize, seed: u64) -> TurnOrder {
        TurnOrder {
            round: Mutex::new(TurnRound {
                order: shuffled(count, seed),
                at: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for the first turn of a probe before its session is created, which may fail.
    pub fn come(&self, probe_index: usize) -> Present<'_> {
        self.wait(probe_index);
        Present {
            turns: self,
            probe_index,
        }
    }

    /// Returns a guard for a probe that has not come to its first turn. Dropping it leaves the turn
    /// order, so that a probe that fails before its first turn does not block the others.
    pub fn leave_on_drop(&self, probe_index: usize) -> Present<'_> {
        Present {
            turns: self,
            probe_index,
        }
    }

    /// Returns a hook that makes the runs of a probe wait for their turn.
    pub fn hook(&self, probe_index: usize) -> TurnHook<'_> {
        TurnHook {
            turns: self,
            probe_index,
            has_run: false,
        }
    }

    fn round(&self) -> MutexGuard<'_, TurnRound> {
        // No panic leaves a round half changed.
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, probe_index: usize) {
        let waited = self
            .changed
            .wait_while(self.round(), |round| round.holder() != Some(probe_index));
        drop(waited);
    }

    fn pass(&self) {
        self.round().pass();
        self.changed.notify_all();
    }

    fn leave(&self, probe_index: usize) {
        self.round().leave(probe_index);
        self.changed.notify_all();
    }
}

/// A place in the turn order. Dropping it leaves the order.
pub struct Present<'a> {
    turns: &'a TurnOrder,
    probe_index: usize,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.turns.leave(self.probe_index);
    }
}

/// Makes the runs of one probe wait for their turn. Dropping it leaves the turn order.
pub struct TurnHook<'a> {
    turns: &'a TurnOrder,
    probe_index: usize,
    has_run: bool,
}

impl TurnHook<'_> {
    /// Waits for the first turn, so that messages before the first run appear in order.
    pub fn begin(&self) {
        self.turns.wait(self.probe_index);
    }
}

impl RunHook for TurnHook<'_> {
    fn before_run(&mut self, _plan: &Plan, purpose: RunPurpose) {
        // The turn lasts until the next run, so that this run is reported before others begin. A
        // search belongs to the turn of its phase: the same phases of all probes stay adjacent.
        let continues_turn = purpose == RunPurpose::Trial || purpose.is_cell();
        if self.has_run && !continues_turn {
            self.turns.pass();
        }
        self.turns.wait(self.probe_index);
        self.has_run = true;
    }
}

impl Drop for TurnHook<'_> {
    fn drop(&mut self) {
        self.turns.leave(self.probe_index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::StudyDriver;
    use crate::fake_session::{FakeDevice, FakeSession};
    use crate::probe::probe_study::tests::StopsAfter;
    use crate::probe::run_probe;
    use crate::probe_budget::ProbeBudget;
    use crate::probe_phase::ProbePhase;
    use crate::test_targets::{directory_target, probe_options};
    use iosonde_result::observer::Observer;
    use iosonde_result::run::RunResult;
    use iosonde_result::run_error::RunError;
    use iosonde_result::session::Session;

    /// Records which probe begins which phase.
    struct Notes<'a> {
        probe_index: usize,
        begun: &'a Mutex<Vec<(usize, ProbePhase)>>,
    }

    /// A session that records its phases in the order in which they run.
    struct Noting<'a> {
        notes: Notes<'a>,
        session: FakeSession,
    }

    impl Session for Noting<'_> {
        fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
            let mut phases = [ProbePhase::Layout].into_iter().chain(ProbePhase::MEASURED);
            let phase = phases.find(|phase| phase.key() == plan.jobs[0].name);
            // The trial run of each target is no phase.
            if let Some(phase) = phase {
                self.notes
                    .begun
                    .lock()
                    .unwrap()
                    .push((self.notes.probe_index, phase));
            }
            self.session.run(plan, observer)
        }
        fn close(self: Box<Self>) -> Result<(), RunError> {
            Ok(())
        }
    }

    /// Probes `count` devices concurrently; the first ends after `first_ends` figures.
    fn side_by_side(count: usize, seed: u64, first_ends: usize) -> Vec<(usize, ProbePhase)> {
        let turns = TurnOrder::new(count, seed);
        let begun = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for probe_index in 0..count {
                let (turns, begun) = (&turns, &begun);
                scope.spawn(move || {
                    let mut session = Noting {
                        notes: Notes { probe_index, begun },
                        session: FakeSession::new(FakeDevice::nvme()),
                    };
                    let mut turn = turns.hook(probe_index);
                    turn.begin();
                    let target = directory_target(&format!("/data{probe_index}"));
                    let options = probe_options(ProbeBudget::QUICK, None);
                    let mut watcher = StopsAfter(if probe_index == 0 { first_ends } else { 99 });
                    let driver = StudyDriver::new(&mut session, &mut watcher);
                    run_probe(&mut driver.with_hook(&mut turn), &target, &options).unwrap();
                });
            }
        });
        begun.into_inner().unwrap()
    }

    #[test]
    fn turn_order_reverses_each_round() {
        let order = side_by_side(2, 1, 99);
        let phases: Vec<ProbePhase> = order.iter().map(|each| each.1).collect();
        assert!(phases.chunks(2).all(|pair| pair[0] == pair[1]), "{order:?}");
        let probes_in_order: Vec<usize> = order.iter().map(|each| each.0).collect();
        let (a, b) = (probes_in_order[0], probes_in_order[1]);
        assert_ne!(a, b);
        assert!(
            probes_in_order.chunks(4).all(|four| four == [a, b, b, a]),
            "{probes_in_order:?}"
        );
        assert_eq!(order, side_by_side(2, 1, 99), "the seed decides");
        let firsts = (1..20).map(|seed| shuffled(2, seed)[0]);
        assert!((5..15).contains(&firsts.sum::<usize>()));
    }

    /// The same device for all probes, on a machine that slows down with every run.
    struct Slowing<'a> {
        runs: &'a Mutex<i32>,
    }

    impl Session for Slowing<'_> {
        fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
            let mut runs = self.runs.lock().unwrap();
            let speed = 0.98f64.powi(*runs);
            *runs += 1;
            let whole = FakeDevice::nvme();
            let device = FakeDevice {
                random_read_iops: whole.random_read_iops * speed,
                random_write_iops: whole.random_write_iops * speed,
                read_bytes_per_s: whole.read_bytes_per_s * speed,
                write_bytes_per_s: whole.write_bytes_per_s * speed,
                read_ns: whole.read_ns / speed,
                write_ns: whole.write_ns / speed,
                sync_ns: whole.sync_ns / speed,
                ..whole
            };
            FakeSession::new(device).run(plan, observer)
        }
        fn close(self: Box<Self>) -> Result<(), RunError> {
            Ok(())
        }
    }

    /// Apparent gain of the second of two equal devices: the mean log ratio of all figures.
    fn seeming_gain(measure_rates: impl Fn(usize, &Mutex<i32>) -> Vec<f64> + Sync) -> f64 {
        let runs = Mutex::new(0);
        let [a, b] = std::thread::scope(|scope| {
            let (measure_rates, runs) = (&measure_rates, &runs);
            let both =
                [0, 1].map(|probe_index| scope.spawn(move || measure_rates(probe_index, runs)));
            both.map(|thread| thread.join().unwrap())
        });
        assert_eq!((a.len(), b.len()), (7, 7));
        let gains = a.iter().zip(&b).map(|(a, b)| (b / a).ln());
        gains.sum::<f64>() / 7.0
    }

    fn rates(mut driver: StudyDriver<'_>) -> Vec<f64> {
        let options = probe_options(ProbeBudget::QUICK, None);
        let result = run_probe(&mut driver, &directory_target("/data"), &options).unwrap();
        result.figures.iter().map(|each| each.iops.mean).collect()
    }

    #[test]
    fn machine_drift_favours_no_probe() {
        let order = Mutex::new(());
        let one_after_the_other = seeming_gain(|probe_index, runs| {
            while probe_index == 1 && *runs.lock().unwrap() < 8 {
                std::thread::yield_now();
            }
            let _one = order.lock().unwrap();
            let observer = &mut ();
            rates(StudyDriver::new(&mut Slowing { runs }, observer))
        });
        assert!(one_after_the_other < -0.1, "{one_after_the_other}");
        for seed in 0..10 {
            let turns = TurnOrder::new(2, seed);
            let interleaved = seeming_gain(|probe_index, runs| {
                let mut session = Slowing { runs };
                let mut turn = turns.hook(probe_index);
                turn.begin();
                let observer = &mut ();
                rates(StudyDriver::new(&mut session, observer).with_hook(&mut turn))
            });
            // Reversed rounds cancel the drift except for one run, on one of the seven figures.
            assert!(interleaved.abs() < 0.02 / 7.0 + 0.002, "{interleaved}");
        }
    }

    #[test]
    fn finished_probe_does_not_block_others() {
        let order = side_by_side(3, 2, 2);
        let runs = |probe_index| order.iter().filter(|each| each.0 == probe_index).count();
        // Layout and two phases for the first, layout and seven phases for the others.
        assert_eq!([runs(0), runs(1), runs(2)], [3, 8, 8]);
    }

    #[test]
    fn turn_order_continues_after_probe_leaves() {
        let mut round = TurnRound {
            order: vec![0, 1, 2],
            at: 1,
        };
        round.leave(0);
        assert_eq!(round.holder(), Some(1));
        round.leave(1);
        assert_eq!(round.holder(), Some(2));
        round.pass();
        assert_eq!(round.holder(), Some(2));
        round.leave(2);
        round.leave(2);
        assert_eq!(round.holder(), None);
    }

    #[test]
    fn failed_session_setup_releases_turn() {
        let turns = TurnOrder::new(2, 7);
        std::thread::scope(|scope| {
            for probe_index in 0..2 {
                let turns = &turns;
                scope.spawn(move || drop(turns.come(probe_index)));
            }
        });
        assert_eq!(turns.round().holder(), None, "both have come, and are gone");
    }
}
