//! Measurements on a machine that does other things as well.
//!
//! Whatever else runs there can disturb a measurement, but it cannot put one right that is wrong: one good try proves it.

use std::thread;
use std::time::Duration;

/// How often a measurement may be tried.
const TRIES: u32 = 6;

/// Tries until the measurement is as it must be. Pauses grow between tries, so that all of them do not meet one disturbance.
///
/// What nothing can disturb is for the attempt to assert; `Err` is for what a busy machine can bring about.
///
/// # Panics
/// When no try was good, with what each of them saw.
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

/// `Err` with these words unless the condition holds.
///
/// # Errors
/// See there.
pub fn ensure(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_good_try_is_enough() {
        let mut tries = 0;
        one_good_try(|| {
            tries += 1;
            ensure(tries == 2, || format!("try {tries}"))
        });
        assert_eq!(tries, 2);
    }
}
