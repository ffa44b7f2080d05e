//! Repeated measurements on a machine with other load.
//!
//! Other load can only spoil a correct measurement: one good try is proof.

use std::thread;
use std::time::Duration;

/// Maximum number of tries.
const TRIES: u32 = 6;

/// Repeats a measurement until it succeeds, with growing pauses to outlast a disturbance.
///
/// The attempt asserts conditions that load cannot affect, and returns `Err` for the others.
///
/// # Panics
/// If all tries fail, with the reason of each.
#[track_caller]
pub fn one_good_try(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut seen = Vec::new();
    for pause_s in 0..TRIES {
        thread::sleep(Duration::from_secs(pause_s.into()));
        match attempt() {
            Ok(()) => return,
            Err(why) => {
                eprintln!("not a good try: {why}");
                seen.push(why);
            }
        }
    }
    panic!("{TRIES} tries, and none was good:\n{}", seen.join("\n"));
}

/// Returns `Err` with these words unless the condition holds.
///
/// # Errors
/// If the condition is false.
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_try_suffices_after_failure() {
        let mut tries = 0;
        one_good_try(|| {
            tries += 1;
            ensure(tries == 2, || format!("try {tries}"))
        });
        assert_eq!(tries, 2);
    }
}
