//! Live table of a benchmark in the words of another program: a line for each second.

use crate::failure::CommandError;
use crate::output::Output;
use iosonde_job::Plan;
use iosonde_result::interval::Interval;
use iosonde_result::observer::{Control, INTERVAL_NS_MAX, Observer, RunProgress};
use iosonde_result::run::RunResult;

/// Rows of a table, collected during the run.
pub(super) trait TableRows {
    /// Text before the row of the first second.
    fn heading(&mut self) -> String;

    /// Adds an interval, and returns its text. `None`: the interval is too short for a row.
    fn push(&mut self, interval: &Interval) -> Option<String>;
}

/// Prints a line each second, or only collects the rows.
pub(super) struct BenchTable<'a, R> {
    rows: R,
    /// Destination of lines. `None`: all is printed at the end.
    lines: Option<&'a mut Output>,
    has_begun: bool,
    /// Intervals so far.
    seen: usize,
    failed: Option<CommandError>,
}

impl<'a, R: TableRows> BenchTable<'a, R> {
    /// `lines`: destination of the lines, if they are printed live.
    pub(super) fn new(rows: R, lines: Option<&'a mut Output>) -> BenchTable<'a, R> {
        BenchTable {
            rows,
            lines,
            has_begun: false,
            seen: 0,
            failed: None,
        }
    }

    /// The rows, and whether they could be written. The result has the last second.
    pub(super) fn finish(mut self, result: Option<&RunResult>) -> (R, Result<(), CommandError>) {
        let all = result.into_iter().flat_map(|result| &result.intervals);
        for interval in all.skip(self.seen) {
            // The run has ended, so no operation is in flight.
            let interval = Interval {
                in_flight: Some(0),
                ..interval.into_owned()
            };
            self.interval(&interval);
        }
        (self.rows, self.failed.map_or(Ok(()), Err))
    }

    /// Prints the head of the table before the first line.
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let text = self.rows.heading();
            self.print(&text);
        }
    }

    fn print(&mut self, text: &str) {
        if let Some(Err(failure)) = self.lines.as_mut().map(|out| out.write(text)) {
            self.failed.get_or_insert(failure);
        }
    }
}

impl<R: TableRows> Observer for BenchTable<'_, R> {
    /// A line for each second, as the other programs print.
    fn interval_ns(&self, _plan: &Plan) -> u64 {
        INTERVAL_NS_MAX
    }

    fn progress(&mut self, _: &RunProgress<'_>) -> Control {
        self.begin();
        Control::Continue
    }

    fn interval(&mut self, interval: &Interval) -> Control {
        self.begin();
        self.seen += 1;
        if let Some(line) = self.rows.push(interval) {
            self.print(&line);
        }
        Control::Continue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows that have the number of their interval as text.
    #[derive(Default)]
    struct NumberedRows(Vec<u64>);

    impl TableRows for NumberedRows {
        fn heading(&mut self) -> String {
            "number\n".to_owned()
        }

        fn push(&mut self, interval: &Interval) -> Option<String> {
            self.0.push(interval.start_ns);
            (interval.length_ns > 0).then(|| format!("{}\n", interval.start_ns))
        }
    }

    #[test]
    fn table_has_one_heading_and_no_line_without_text() {
        let path = std::env::temp_dir().join(format!("iosonde-table-{}", std::process::id()));
        let interval = |start_ns: u64, length_ns: u64| Interval {
            start_ns,
            length_ns,
            ..Interval::default()
        };
        let all = [interval(1, 1), interval(2, 0), interval(3, 1)];
        let mut output = Output::open(Some(&path)).unwrap();
        output.stream().unwrap();
        let mut table = BenchTable::new(NumberedRows::default(), Some(&mut output));
        for interval in &all {
            table.interval(interval);
        }
        let (rows, written) = table.finish(None);
        written.unwrap();
        assert_eq!(rows.0, [1, 2, 3]);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "number\n1\n3\n");
        std::fs::remove_file(path).unwrap();
    }
}
