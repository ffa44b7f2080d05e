//! The number of a run of `probe --repeat`, which the live view shows.

/// Number of a run, and how many runs there are.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunNumber {
    /// Number of the run, from 1.
    pub(crate) run: u32,
    /// Number of all runs. 0: the probe runs once.
    pub(crate) planned: u32,
}

impl RunNumber {
    /// Returns the words that follow a name: `, run 2 of 5`. Empty if the probe runs once.
    pub(crate) fn words(self) -> String {
        match self.planned {
            0 => String::new(),
            planned => format!(", run {} of {planned}", self.run),
        }
    }

    /// Returns the number of runs that follow.
    pub(super) fn following(self) -> u64 {
        u64::from(self.planned.saturating_sub(self.run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_run_and_single_run_have_no_following() {
        let following = |run, planned| RunNumber { run, planned }.following();
        assert_eq!((following(2, 5), following(5, 5)), (3, 0));
        assert_eq!(following(1, 0), 0);
        assert_eq!(RunNumber::default().words(), "");
    }
}
