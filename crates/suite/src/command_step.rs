//! A workload that is a command: its patterns, its output and its result.

use iosonde_result::compare::bounds_of_rates;
use iosonde_result::littles_law::SlotTime;
use iosonde_result::machine::DeviceRates;
use iosonde_result::words;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fmt;

/// Largest compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Last lines of the output that an error shows.
const LAST_LINES: usize = 8;
/// Characters of a line that an error shows.
const LINE_CHARACTERS_MAX: usize = 200;
/// Most figures over time: one per second of a day.
const SAMPLES_MAX: usize = 86_400;
/// Largest difference between a figure and the mean of its series that leaves it an interval.
const MEAN_DIFFERENCE_MAX: f64 = 0.1;

/// A command to run, and where its output has the figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandStep {
    /// The command line for `/bin/sh -c`.
    pub run: String,
    /// Pattern of the figure. The last line that matches counts.
    pub figure: FigurePattern,
    /// Pattern of the figure over time: each line that matches is a sample.
    pub series: Option<FigurePattern>,
    /// Unit of the figure, for displays.
    pub unit: String,
    /// Time after which the command is stopped.
    pub timeout_ns: u64,
}

/// A regular expression whose first group is a number.
#[derive(Debug, Clone, Serialize)]
#[serde(into = "String")]
pub struct FigurePattern {
    text: String,
    regex: Regex,
}

impl PartialEq for FigurePattern {
    fn eq(&self, other: &FigurePattern) -> bool {
        self.text == other.text
    }
}

impl From<FigurePattern> for String {
    fn from(pattern: FigurePattern) -> String {
        pattern.text
    }
}

impl FigurePattern {
    /// Compiles a pattern. The error describes the problem.
    pub(crate) fn parse(text: &str) -> Result<FigurePattern, String> {
        let mut builder = RegexBuilder::new(text);
        let regex = match builder.size_limit(PATTERN_BYTES_MAX).build() {
            Ok(regex) => regex,
            Err(regex::Error::CompiledTooBig(_)) => return Err("the pattern is too large".into()),
            Err(error) => {
                // The last line of the error has the cause, those before it show the position.
                let text = error.to_string();
                let cause = text.lines().last().unwrap_or_default().trim();
                return Err(cause.trim_start_matches("error: ").to_owned());
            }
        };
        match regex.captures_len() {
            0 | 1 => Err("the pattern has no group ( ) for the number".to_owned()),
            _ => Ok(FigurePattern {
                text: text.to_owned(),
                regex,
            }),
        }
    }

    /// Returns the text of the first group, if the line matches.
    fn find<'l>(&self, line: &'l str) -> Option<&'l str> {
        let captures = self.regex.captures(line)?;
        Some(captures.get(1)?.as_str().trim())
    }

    /// Returns the number in a line. `None`: the line does not match.
    fn number(&self, line: &str) -> Option<Result<f64, CommandFailure>> {
        let text = self.find(line)?;
        Some(
            parse_number(text).ok_or_else(|| CommandFailure::NotANumber {
                pattern: self.text.clone(),
                text: text.to_owned(),
            }),
        )
    }
}

/// Parses a finite number, whose thousands commas may separate. `None` if a comma separates
/// something else: in some languages it is the decimal point.
fn parse_number(text: &str) -> Option<f64> {
    let text = text.replace('_', "");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut groups = whole.trim_start_matches(['-', '+']).split(',');
    let first = groups.next().unwrap_or_default();
    if whole.contains(',') {
        let is_first = matches!(first.len(), 1..=3) && !first.starts_with('0');
        let mut others = groups.map(|group| group.len() == 3);
        if !is_first || !others.all(|is_group| is_group) {
            return None;
        }
    }
    let number = whole.replace(',', "") + rest;
    number.parse::<f64>().ok().filter(|value| value.is_finite())
}

impl fmt::Display for FigurePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Result of a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// The command line.
    pub command: String,
    /// Unit of the figure; may be empty.
    pub unit: String,
    /// The figure.
    pub value: f64,
    /// Its 95 % interval, from the series.
    pub interval: Option<(f64, f64)>,
    /// Time from the start of the command to its end.
    pub elapsed_ns: u64,
    /// The figure over time.
    pub samples: Vec<CommandSample>,
    /// Activity of the target's devices meanwhile, averaged over the time of the command.
    pub devices: Vec<(String, DeviceRates)>,
}

/// A figure at a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CommandSample {
    /// Time since the start of the command.
    pub at_ns: u64,
    /// The figure.
    pub value: f64,
}

/// Why a command has no figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandFailure {
    /// The shell could not be started.
    NotStarted {
        /// The cause.
        errno: i32,
    },
    /// The command ended with another status than 0.
    Failed {
        /// `status 1` or `signal 9`.
        ending: String,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// The command did not end in time and was stopped.
    TimedOut {
        /// Time that it had.
        timeout_ns: u64,
        /// Its last lines.
        last_lines: Vec<String>,
    },
    /// No line of the output matches the pattern.
    NoFigure {
        /// The pattern.
        pattern: String,
        /// The last lines.
        last_lines: Vec<String>,
    },
    /// The group of a pattern is not a number.
    NotANumber {
        /// The pattern.
        pattern: String,
        /// Text of the group.
        text: String,
    },
}

/// Reads the output of a command line by line.
#[derive(Debug)]
pub struct CommandOutput<'a> {
    step: &'a CommandStep,
    /// Figure of the last line that matches.
    figure: Option<Result<f64, CommandFailure>>,
    samples: Vec<CommandSample>,
    last_lines: VecDeque<String>,
}

impl<'a> CommandOutput<'a> {
    /// Begins to read the output of a step.
    pub fn new(step: &'a CommandStep) -> CommandOutput<'a> {
        CommandOutput {
            step,
            figure: None,
            samples: Vec::new(),
            last_lines: VecDeque::new(),
        }
    }

    /// Takes a line that was written at a time since the start of the command.
    pub fn take_line(&mut self, at_ns: u64, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let step = self.step;
        if let Some(found) = step.figure.number(line) {
            self.figure = Some(found);
        }
        if let Some(series) = &step.series
            && self.samples.len() < SAMPLES_MAX
            && let Some(Ok(value)) = series.number(line)
        {
            self.samples.push(CommandSample { at_ns, value });
        }
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.pop_front();
        }
        let shown = line.chars().take(LINE_CHARACTERS_MAX).collect();
        self.last_lines.push_back(shown);
    }

    /// Returns the last lines of the output.
    pub fn last_lines(self) -> Vec<String> {
        self.last_lines.into()
    }

    /// Returns figure, interval and series of a command that has ended.
    ///
    /// # Errors
    /// Fails if no line has the figure.
    pub fn conclude(self, elapsed_ns: u64) -> Result<CommandResult, CommandFailure> {
        let value = match self.figure {
            Some(found) => found?,
            None => {
                return Err(CommandFailure::NoFigure {
                    pattern: self.step.figure.to_string(),
                    last_lines: self.last_lines.into(),
                });
            }
        };
        Ok(CommandResult {
            command: self.step.run.clone(),
            unit: self.step.unit.clone(),
            value,
            interval: interval(value, &self.samples),
            elapsed_ns,
            samples: self.samples,
            devices: Vec::new(),
        })
    }
}

/// Returns the interval of a figure that is the mean of its series.
fn interval(value: f64, samples: &[CommandSample]) -> Option<(f64, f64)> {
    let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    if (mean - value).abs() > MEAN_DIFFERENCE_MAX * value.abs() {
        return None;
    }
    // The figure counts no I/Os, and its depth is not known.
    let bounds = bounds_of_rates(value, &values, u64::MAX, &SlotTime::default())?;
    Some((bounds.low, bounds.high))
}

impl CommandResult {
    /// Formats a value with its unit.
    pub fn shown(&self, value: f64) -> String {
        let number = words::three_digits(value);
        match self.unit.is_empty() {
            true => number,
            false => format!("{number} {}", self.unit),
        }
    }

    /// Describes figure, series and devices, one sentence each.
    pub fn findings(&self) -> Vec<String> {
        let series = match self.samples.len() {
            0 => "without a series, so its interval is not known".to_owned(),
            count if self.interval.is_none() => format!(
                "{} over time, whose mean gives no interval of it",
                words::counted(count, "figure")
            ),
            count => format!("{} over time", words::counted(count, "figure")),
        };
        let mut all = vec![format!(
            "`{}` gave {} in {}; {series}",
            self.command,
            self.shown(self.value),
            words::duration(self.elapsed_ns as f64 / 1e9)
        )];
        all.extend(self.devices.iter().map(|(name, rates)| {
            format!(
                "meanwhile {name} had {} requests/s, read {}, wrote {}, await {}, {:.0} % busy",
                words::three_digits(rates.tps),
                words::bandwidth(rates.read_kib_s * 1024.0),
                words::bandwidth(rates.write_kib_s * 1024.0),
                words::latency(rates.await_ms * 1e6),
                rates.util_percent
            )
        }));
        if self.devices.is_empty() {
            all.push("the target has no block device of this machine to watch".to_owned());
        }
        all
    }
}

impl CommandFailure {
    /// Returns the problem in one line, without the output of the command.
    pub fn problem(&self) -> String {
        let problem = match self {
            CommandFailure::NotStarted { errno } => {
                let error = std::io::Error::from_raw_os_error(*errno);
                let cause = iosonde_job::errno::describe(&error);
                format!("/bin/sh cannot be started: {cause}")
            }
            CommandFailure::NotANumber { pattern, text } => {
                format!("`{text}`, which `{pattern}` finds, is not a number")
            }
            CommandFailure::Failed { ending, .. } => format!("the command ended with {ending}"),
            CommandFailure::TimedOut { timeout_ns, .. } => {
                let time = words::duration(*timeout_ns as f64 / 1e9);
                format!("the command did not end within {time}")
            }
            CommandFailure::NoFigure { pattern, .. } => {
                format!("no line of the output matches `{pattern}`")
            }
        };
        match self.last_lines() {
            Some([]) => format!("{problem}; it printed nothing"),
            _ => problem,
        }
    }

    /// The last lines of the output. `None`: they do not explain the failure.
    fn last_lines(&self) -> Option<&[String]> {
        match self {
            CommandFailure::Failed { last_lines, .. }
            | CommandFailure::TimedOut { last_lines, .. }
            | CommandFailure::NoFigure { last_lines, .. } => Some(last_lines),
            CommandFailure::NotStarted { .. } | CommandFailure::NotANumber { .. } => None,
        }
    }

    /// Returns the action that helps.
    pub fn remedy(&self) -> &'static str {
        match self {
            CommandFailure::NotStarted { .. } => "check that /bin/sh can be run here",
            CommandFailure::Failed { .. } => {
                "run the command by hand in the target's directory, and correct it in the suite"
            }
            CommandFailure::TimedOut { .. } => "shorten the command, or raise its `timeout`",
            CommandFailure::NoFigure { .. } | CommandFailure::NotANumber { .. } => {
                "correct `figure` or `series` in the suite: its first group ( ) is the number"
            }
        }
    }
}

impl fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem())?;
        match self.last_lines() {
            None | Some([]) => Ok(()),
            Some(lines) => write!(f, "\nits last lines:\n  {}", lines.join("\n  ")),
        }
    }
}

impl std::error::Error for CommandFailure {}

#[cfg(test)]
mod tests;
