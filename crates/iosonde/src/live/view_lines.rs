//! [`ViewLines`]: the lines of a view, some of which give way in a low terminal.

/// Lines of a view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ViewLines {
    /// First line: the object that is measured, and the time left.
    pub(super) head: String,
    /// Steps, or the rows of a table.
    pub(super) steps: Vec<String>,
    /// Index of the step that runs.
    pub(super) current: usize,
    /// Last lines: the last second, and a table of several pods.
    pub(super) activity: Vec<String>,
}

impl ViewLines {
    /// Returns at most `rows` lines, at least one. The step that runs stays longest, then the first
    /// line and the last second, then the steps near the one that runs.
    pub(super) fn fitted(self, rows: usize) -> Vec<String> {
        let ViewLines {
            head,
            steps,
            current,
            mut activity,
        } = self;
        debug_assert!(current < steps.len().max(1), "{current} of {steps:?}");
        let mut room = rows.max(1);
        let mut take = |wanted: usize| {
            let taken = wanted.min(room);
            room -= taken;
            taken
        };
        let running = take(steps.len().min(1));
        let heads = take(1);
        let now = take(activity.len().min(1));
        let shown_steps = running + take(steps.len() - running);
        activity.truncate(now + take(activity.len() - now));
        let first = current.saturating_sub(shown_steps / 2);
        let first = first.min(steps.len() - shown_steps);
        let mut lines = vec![head];
        lines.truncate(heads);
        lines.extend(steps.into_iter().skip(first).take(shown_steps));
        lines.extend(activity);
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view of eleven steps, of which the eighth runs, and of two pods.
    fn view() -> ViewLines {
        ViewLines {
            head: "head".to_owned(),
            steps: (0..11).map(|step| format!("step {step}")).collect(),
            current: 7,
            activity: ["now", "pod 0", "pod 1"].map(str::to_owned).to_vec(),
        }
    }

    #[test]
    fn view_with_room_shows_all_lines_in_order() {
        let lines = view().fitted(24);
        assert_eq!(lines.len(), 15);
        assert_eq!((lines[0].as_str(), lines[1].as_str()), ("head", "step 0"));
        assert_eq!(lines[11..], ["step 10", "now", "pod 0", "pod 1"]);
    }

    #[test]
    fn low_terminal_keeps_the_steps_near_the_one_that_runs() {
        assert_eq!(
            view().fitted(8),
            [
                "head", "step 4", "step 5", "step 6", "step 7", "step 8", "step 9", "now"
            ]
        );
        assert_eq!(view().fitted(4), ["head", "step 6", "step 7", "now"]);
        assert_eq!(view().fitted(3), ["head", "step 7", "now"]);
        assert_eq!(view().fitted(2), ["head", "step 7"]);
        assert_eq!(view().fitted(1), ["step 7"]);
    }

    #[test]
    fn view_never_has_more_lines_than_rows() {
        for rows in 0..20 {
            for current in 0..11 {
                let lines = ViewLines { current, ..view() }.fitted(rows);
                assert!(lines.len() <= rows.max(1), "{rows}: {lines:?}");
                assert!(lines.contains(&format!("step {current}")), "{lines:?}");
            }
        }
        let empty = ViewLines::default().fitted(8);
        assert_eq!(empty, [""]);
    }
}
