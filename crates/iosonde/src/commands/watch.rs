//! `iosonde watch`: what is the disk doing now?

mod show;

use crate::failure::Failure;
use crate::output::Output;
use crate::signals::Stop;
use clap::{Args, ValueEnum};
use iosonde_machine::device_watch::Watching;
use iosonde_machine::proc_root::System;
use show::Show;
use std::time::{Duration, Instant};

pub(crate) const EXAMPLES: &str = "\
Examples:
  iosonde watch                     all disks that do something, every second, until Ctrl-C
  iosonde watch nvme0n1 5 12        one disk, every 5 seconds, 12 times
  iosonde watch /mnt/data           the disk below a directory
  iosonde watch --format csv 1 60 > disks.csv

Columns and units are those of sar -d: requests per second; kB read, written and discarded per
second, with kB of 1024 bytes; mean request in kB; mean number of requests in flight; mean time
of a request in ms; share of the time with requests in flight.";

/// Arguments of `iosonde watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Devices by name or path, or directories and files on them [default: all disks, on a
    /// terminal those that do something];
    /// then seconds between two lines [default: 1] and how many [default: until Ctrl-C]
    #[arg(value_name = "DEVICE... [INTERVAL [COUNT]]")]
    words: Vec<String>,
    /// How lines are written
    #[arg(long, value_enum, default_value_t = WatchFormat::Table)]
    format: WatchFormat,
}

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WatchFormat {
    /// For people, as sar prints it
    Table,
    /// One JSON object for each interval, on a line of its own
    Json,
    /// One line for each device and interval
    Csv,
}

/// What the words say.
#[derive(Debug, PartialEq)]
struct Wanted {
    devices: Vec<String>,
    interval: Duration,
    count: Option<u64>,
}

/// Prints what devices do until the count is reached or somebody stops it, then the averages.
pub(crate) fn run(args: &WatchArgs) -> Result<(), Failure> {
    let wanted = wanted(&args.words)?;
    let stop = Stop::listen()?;
    let mut watching = Watching::begin(System::live(), &wanted.devices).map_err(|word| {
        Failure::usage(
            format!("{word} is no block device, and no path on one"),
            "lsblk lists the block devices; without a name, iosonde watch shows all disks",
        )
    })?;
    let mut output = Output::Standard;
    let mut show = Show::new(args.format, wanted.devices.is_empty());
    let begun = Instant::now();
    let mut done = 0;
    while wanted.count.is_none_or(|count| done < count) {
        let next = begun + wanted.interval * u32::try_from(done + 1).unwrap_or(u32::MAX);
        if !sleep_until(next, &stop) {
            break;
        }
        let sample = watching.sample();
        if sample.rows.is_empty() && !wanted.devices.is_empty() {
            output.write(&show.average(&watching.average()))?;
            return Err(Failure::Io(format!("{} is gone", wanted.devices.join(" "))));
        }
        output.write(&show.sample(&sample))?;
        done += 1;
    }
    if done > 0 {
        output.write(&show.average(&watching.average()))?;
    }
    // Without a count, Ctrl-C is how it ends.
    match stop.signal() {
        Some(signal) if wanted.count.is_some() || signal != signal_hook::consts::SIGINT => {
            Err(Failure::Interrupted(signal))
        }
        _ => Ok(()),
    }
}

/// Whether the time came before the wish to stop.
fn sleep_until(next: Instant, stop: &Stop) -> bool {
    loop {
        if stop.signal().is_some() {
            return false;
        }
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// Takes the numbers off the end of the words.
fn wanted(words: &[String]) -> Result<Wanted, Failure> {
    let numbers = words
        .iter()
        .rev()
        .take(2)
        .take_while(|word| word.parse::<f64>().is_ok())
        .count();
    let (devices, numbers) = words.split_at(words.len() - numbers);
    let misfit = |word: &str, what: &str, example: &str| {
        Failure::usage(format!("{word} is no {what}"), example.to_owned())
    };
    let interval = numbers.first().map_or(Ok(1.0), |word| {
        let seconds: f64 = word.parse().unwrap_or(0.0);
        (0.1..=86_400.0)
            .contains(&seconds)
            .then_some(seconds)
            .ok_or_else(|| {
                misfit(
                    word,
                    "interval",
                    "write seconds from 0.1 to 86400, such as iosonde watch 5",
                )
            })
    })?;
    let count = numbers.get(1).map(|word| {
        word.parse::<u64>()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(|| {
                misfit(
                    word,
                    "count",
                    "write how many lines, such as iosonde watch 5 12",
                )
            })
    });
    Ok(Wanted {
        devices: devices.to_vec(),
        interval: Duration::from_secs_f64(interval),
        count: count.transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<(String, f64, Option<u64>), String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let wanted = wanted(&words).map_err(|failure| failure.text(false))?;
        Ok((
            wanted.devices.join(" "),
            wanted.interval.as_secs_f64(),
            wanted.count,
        ))
    }

    #[test]
    fn interval_and_count_stand_at_the_end_as_with_sar() {
        assert_eq!(of("").unwrap(), (String::new(), 1.0, None));
        assert_eq!(
            of("sda nvme0n1").unwrap(),
            ("sda nvme0n1".into(), 1.0, None)
        );
        assert_eq!(of("sda 5").unwrap(), ("sda".into(), 5.0, None));
        assert_eq!(of("0.5 12").unwrap(), (String::new(), 0.5, Some(12)));
        for wrong in ["0", "sda -1", "5 0", "5 1.5", "nan 3"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
