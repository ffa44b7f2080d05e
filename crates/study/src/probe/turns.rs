//! Several probes side by side: they take turns, one run each, so that a drift of the machine favours none of them.
//!
//! The order of the first round is drawn from a seed, and each round turns the one before around: A B, B A, A B. So each
//! phase of one target stands next to the same phase of the others, and over two rounds a steady drift meets all alike.

use super::knee::is_search;
use iosonde_job::plan::Plan;
use iosonde_result::observer::Observer;
use iosonde_result::run::RunResult;
use iosonde_result::session::{RunError, Session};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Whose turn it is.
#[derive(Debug)]
pub struct Turns {
    round: Mutex<Round>,
    changed: Condvar,
}

#[derive(Debug)]
struct Round {
    /// Those that take part, in the order of this round.
    order: Vec<usize>,
    /// Place in it of the one whose turn it is.
    at: usize,
}

impl Round {
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

    fn leave(&mut self, who: usize) {
        let Some(place) = self.order.iter().position(|each| *each == who) else {
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

impl Turns {
    /// Of `count` probes, numbered from 0.
    pub fn new(count: usize, seed: u64) -> Turns {
        Turns {
            round: Mutex::new(Round {
                order: shuffled(count, seed),
                at: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Waits for the first turn of somebody whose session is yet to be made, which may fail.
    pub fn come(&self, who: usize) -> Present<'_> {
        self.wait(who);
        Present { turns: self, who }
    }

    /// A session whose runs take their turns.
    pub fn taken_by<'a>(&'a self, who: usize, session: &'a mut dyn Session) -> Taking<'a> {
        Taking {
            turns: self,
            who,
            session,
            has_run: false,
        }
    }

    fn round(&self) -> MutexGuard<'_, Round> {
        // A round is whole between any two statements.
        self.round.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, who: usize) {
        let waited = self
            .changed
            .wait_while(self.round(), |round| round.holder() != Some(who));
        drop(waited);
    }

    fn pass(&self) {
        self.round().pass();
        self.changed.notify_all();
    }

    fn leave(&self, who: usize) {
        self.round().leave(who);
        self.changed.notify_all();
    }
}

/// Somebody who has come. Dropped, they take turns no longer.
pub struct Present<'a> {
    turns: &'a Turns,
    who: usize,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.turns.leave(self.who);
    }
}

/// The session of one of the probes. Dropped, it takes turns no longer.
pub struct Taking<'a> {
    turns: &'a Turns,
    who: usize,
    session: &'a mut dyn Session,
    has_run: bool,
}

impl Taking<'_> {
    /// Waits for the first turn: what is said before the first run is said in order.
    pub fn begin(&self) {
        self.turns.wait(self.who);
    }
}

impl Session for Taking<'_> {
    fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
        // The turn is kept until the next run, so that what is said of this one is said before the next one begins.
        // So is it for the search that follows a phase: next to a phase of one stands the same phase of the others.
        if self.has_run && !is_search(plan) {
            self.turns.pass();
        }
        self.turns.wait(self.who);
        self.has_run = true;
        self.session.run(plan, observer)
    }

    /// The session belongs to somebody else, who closes it.
    fn close(self: Box<Self>) -> Result<(), RunError> {
        Ok(())
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.turns.leave(self.who);
    }
}

/// 0 to `count` in a random order (Fisher and Yates, with numbers of splitmix64).
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut random = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, (random() % (last as u64 + 1)) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::{FakeDevice, FakeSession};
    use crate::probe::{Budget, Phase, ProbeOptions, ProbeTarget, TargetKind, Watcher, probe};

    /// Notes who begins which phase.
    struct Notes<'a> {
        who: usize,
        begun: &'a Mutex<Vec<(usize, Phase)>>,
    }

    /// A session that notes what it runs, in the order in which it runs it.
    struct Noting<'a> {
        notes: Notes<'a>,
        session: FakeSession,
    }

    impl Session for Noting<'_> {
        fn run(&mut self, plan: &Plan, observer: &mut dyn Observer) -> Result<RunResult, RunError> {
            let mut phases = [Phase::Layout].into_iter().chain(Phase::MEASURED);
            let phase = phases.find(|phase| phase.key() == plan.jobs[0].name);
            // The first look at each target is no phase.
            if let Some(phase) = phase {
                self.notes
                    .begun
                    .lock()
                    .unwrap()
                    .push((self.notes.who, phase));
            }
            self.session.run(plan, observer)
        }
        fn close(self: Box<Self>) -> Result<(), RunError> {
            Ok(())
        }
    }

    struct EndsAfter(usize);
    impl Watcher for EndsAfter {
        fn figure(&mut self, _: &crate::probe::Figure) {
            self.0 -= 1;
        }
        fn is_interrupted(&self) -> bool {
            self.0 == 0
        }
    }

    /// Probes `count` devices at once; the first ends after `first_ends` figures.
    fn side_by_side(count: usize, seed: u64, first_ends: usize) -> Vec<(usize, Phase)> {
        let turns = Turns::new(count, seed);
        let begun = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for who in 0..count {
                let (turns, begun) = (&turns, &begun);
                scope.spawn(move || {
                    let mut session = Noting {
                        notes: Notes { who, begun },
                        session: FakeSession::new(FakeDevice::nvme()),
                    };
                    let mut taking = turns.taken_by(who, &mut session);
                    taking.begin();
                    let target = ProbeTarget {
                        name: format!("/data{who}"),
                        path: format!("/data{who}/file"),
                        kind: TargetKind::Directory {
                            free_bytes: 1 << 40,
                        },
                    };
                    let options = ProbeOptions {
                        budget: Budget::QUICK,
                        size_bytes: None,
                        direct: true,
                        seed: 1,
                    };
                    let mut watcher = EndsAfter(if who == 0 { first_ends } else { 99 });
                    probe(&mut taking, &target, &options, &mut watcher).unwrap();
                });
            }
        });
        begun.into_inner().unwrap()
    }

    #[test]
    fn phases_are_interleaved_there_and_back() {
        let order = side_by_side(2, 1, 99);
        let phases: Vec<Phase> = order.iter().map(|each| each.1).collect();
        assert!(phases.chunks(2).all(|pair| pair[0] == pair[1]), "{order:?}");
        let who: Vec<usize> = order.iter().map(|each| each.0).collect();
        let (a, b) = (who[0], who[1]);
        assert_ne!(a, b);
        assert!(who.chunks(4).all(|four| four == [a, b, b, a]), "{who:?}");
        assert_eq!(order, side_by_side(2, 1, 99), "the seed decides");
        let firsts = (1..20).map(|seed| shuffled(2, seed)[0]);
        assert!((5..15).contains(&firsts.sum::<usize>()));
    }

    /// The same device for all, on a machine that gets slower with every run of any of them.
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

    /// How much faster the second of two equal devices seems, as the mean of the logarithms over all figures.
    fn seeming_gain(of: impl Fn(usize, &Mutex<i32>) -> Vec<f64> + Sync) -> f64 {
        let runs = Mutex::new(0);
        let [a, b] = std::thread::scope(|scope| {
            let (of, runs) = (&of, &runs);
            let both = [0, 1].map(|who| scope.spawn(move || of(who, runs)));
            both.map(|thread| thread.join().unwrap())
        });
        assert_eq!((a.len(), b.len()), (7, 7));
        let gains = a.iter().zip(&b).map(|(a, b)| (b / a).ln());
        gains.sum::<f64>() / 7.0
    }

    fn rates(session: &mut dyn Session) -> Vec<f64> {
        let target = ProbeTarget {
            name: "/data".to_owned(),
            path: "/data/file".to_owned(),
            kind: TargetKind::Directory {
                free_bytes: 1 << 40,
            },
        };
        let options = ProbeOptions {
            budget: Budget::QUICK,
            size_bytes: None,
            direct: true,
            seed: 1,
        };
        let result = probe(session, &target, &options, &mut ()).unwrap();
        result.figures.iter().map(|each| each.iops.mean).collect()
    }

    #[test]
    fn a_drift_of_the_machine_favours_nobody() {
        let order = Mutex::new(());
        let one_after_the_other = seeming_gain(|who, runs| {
            while who == 1 && *runs.lock().unwrap() < 8 {
                std::thread::yield_now();
            }
            let _one = order.lock().unwrap();
            rates(&mut Slowing { runs })
        });
        assert!(one_after_the_other < -0.1, "{one_after_the_other}");
        for seed in 0..10 {
            let turns = Turns::new(2, seed);
            let interleaved = seeming_gain(|who, runs| {
                let mut session = Slowing { runs };
                let mut taking = turns.taken_by(who, &mut session);
                taking.begin();
                rates(&mut taking)
            });
            // There and back, seven figures: the drift of one run is left over, on one of them.
            assert!(interleaved.abs() < 0.02 / 7.0 + 0.002, "{interleaved}");
        }
    }

    #[test]
    fn one_that_ends_does_not_hold_up_the_others() {
        let order = side_by_side(3, 2, 2);
        let runs = |who| order.iter().filter(|each| each.0 == who).count();
        // Layout and two phases; layout and all seven.
        assert_eq!([runs(0), runs(1), runs(2)], [3, 8, 8]);
    }

    #[test]
    fn whoever_leaves_the_order_goes_on() {
        let mut round = Round {
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
    fn who_comes_and_fails_holds_up_nobody() {
        let turns = Turns::new(2, 7);
        std::thread::scope(|scope| {
            for who in 0..2 {
                let turns = &turns;
                scope.spawn(move || drop(turns.come(who)));
            }
        });
        assert_eq!(turns.round().holder(), None, "both have come, and are gone");
    }
}
