//! Facts about the check of a file that several pods shared.

use super::Fact;
use iosonde_result::shared_file::{
    ConsistencyCheck, FileConsistency, FileLock, LockFigures, SharedFileResult,
};
use iosonde_study::words;

/// Describes what was checked, and the figures of locks: a line per promise and kind of lock.
pub fn shared_file(checked: &SharedFileResult) -> Vec<Fact> {
    let mut facts = vec![("shared file", describe_checks(checked))];
    for lock in FileLock::ALL {
        let figures = checked.locks.iter().filter(|figures| figures.lock == lock);
        let each: Vec<String> = figures.map(describe_lock).collect();
        if !each.is_empty() {
            facts.push((lock.title(), each.join("; ")));
        }
    }
    let refused = checked.refused_locks.iter();
    facts.extend(refused.map(|refused| {
        (
            refused.lock.title(),
            format!("refused: {}", refused.failure),
        )
    }));
    facts
}

fn describe_checks(checked: &SharedFileResult) -> String {
    let mut parts = Vec::new();
    for consistency in [FileConsistency::CloseToOpen, FileConsistency::Immediate] {
        let of_promise = |check: &&ConsistencyCheck| check.consistency == consistency;
        let checks = || checked.checks.iter().filter(of_promise);
        if checks().next().is_some() {
            parts.push(format!(
                "{}: {} of {} writes verified",
                consistency.title(),
                words::bytes(checks().map(|check| check.verified_bytes).sum()),
                checks().map(|check| check.writes).sum::<u64>(),
            ));
        }
    }
    if let Some(failure) = &checked.direct_refused {
        parts.push(format!(
            "immediate: not checked, O_DIRECT was refused ({failure})"
        ));
    }
    format!("{} pods, no wrong byte; {}", checked.pods, parts.join("; "))
}

fn describe_lock(figures: &LockFigures) -> String {
    let who = match figures.pods {
        1 => "alone".to_owned(),
        pods => format!("{pods} pods"),
    };
    let latency = |ns: u64| words::latency(ns as f64);
    format!(
        "{who} {} locks/s, lock p50 {}, p99 {}, unlock p50 {}, p99 {}",
        words::iops_text(figures.locks_per_second),
        latency(figures.lock_latency.p50_ns),
        latency(figures.lock_latency.p99_ns),
        latency(figures.unlock_latency.p50_ns),
        latency(figures.unlock_latency.p99_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::run_error::SystemFailure;
    use iosonde_result::shared_file::{LockLatency, RangeAssignment, RefusedLock};

    #[test]
    fn shared_file_facts_name_checks_and_locks() {
        let latency = LockLatency {
            p50_ns: 1000,
            p99_ns: 2000,
        };
        let figures = |pods| LockFigures {
            lock: FileLock::Flock,
            pods,
            locks_per_second: 50.0,
            lock_latency: latency,
            unlock_latency: latency,
        };
        let checks = RangeAssignment::ALL.map(|assignment| ConsistencyCheck {
            consistency: FileConsistency::CloseToOpen,
            assignment,
            writes: 8,
            verified_bytes: 512 << 10,
        });
        let facts = shared_file(&SharedFileResult {
            pods: 2,
            file_bytes: 128 << 10,
            checks: checks.to_vec(),
            direct_refused: Some(SystemFailure::Text("no".to_owned())),
            locks: vec![figures(1), figures(2)],
            refused_locks: vec![RefusedLock {
                lock: FileLock::Fcntl,
                failure: SystemFailure::Text("no".to_owned()),
            }],
        });
        let names: Vec<&str> = facts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["shared file", "flock", "fcntl"]);
        let (checks, flock) = (&facts[0].1, &facts[1].1);
        assert!(
            checks.starts_with("2 pods, no wrong byte; close-to-open: "),
            "{checks}"
        );
        assert!(
            checks.contains("of 16 writes verified; immediate: not checked"),
            "{checks}"
        );
        assert!(flock.starts_with("alone 50 locks/s, lock p50 "), "{flock}");
        assert!(flock.contains("; 2 pods 50 locks/s, "), "{flock}");
        assert_eq!(facts[2].1, "refused: no");
    }
}
