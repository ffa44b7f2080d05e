//! Lines of `iosonde watch`.

use super::WatchFormat;
use crate::report::csv::text_cell;
use iosonde_machine::device_watch::Watched;
use iosonde_result::machine::DeviceRates;
use jiff::Zoned;
use serde_json::{Value, json};

/// Names of the columns, as sar has them.
const COLUMNS: [&str; 8] = [
    "tps", "rkB/s", "wkB/s", "dkB/s", "areq-sz", "aqu-sz", "await", "%util",
];
/// Characters of a line of sar.
const SAR_WIDTH: usize = 21 + 8 * 10;
/// Widths of the columns where there is less room: with names of ten letters a line has 80 characters.
const NARROW: [usize; 8] = [8, 8, 8, 8, 8, 7, 7, 7];

/// Makes lines.
pub(super) struct Show {
    format: WatchFormat,
    /// Whether no device was named.
    all: bool,
    begun: bool,
}

impl Show {
    pub(super) fn new(format: WatchFormat, all: bool) -> Show {
        Show {
            format,
            all,
            begun: false,
        }
    }

    /// One interval that ends now.
    pub(super) fn sample(&mut self, sample: &Watched) -> String {
        let now = Zoned::now();
        match self.format {
            WatchFormat::Table => self.table(&now.strftime("%H:%M:%S").to_string(), sample),
            WatchFormat::Json => line(json!({
                "at": now.timestamp().to_string(),
                "elapsed_s": seconds(sample),
                "devices": devices(sample),
            })),
            WatchFormat::Csv => self.csv(&now.timestamp().to_string(), sample),
        }
    }

    /// The whole time.
    pub(super) fn average(&mut self, average: &Watched) -> String {
        match self.format {
            WatchFormat::Table => self.table("Average:", average),
            WatchFormat::Json => line(json!({
                "average": true,
                "elapsed_s": seconds(average),
                "devices": devices(average),
            })),
            WatchFormat::Csv => self.csv("average", average),
        }
    }

    fn table(&mut self, time: &str, sample: &Watched) -> String {
        let width = terminal_width();
        // Whoever compares with sar reads a file; whoever looks at a screen looks for what is going on.
        let text = match self.all && width.is_some() {
            true => table(time, &busy(sample), width),
            false => table(time, sample, width),
        };
        let gap = if self.begun { "\n" } else { "" };
        self.begun = true;
        format!("{gap}{text}")
    }

    fn csv(&mut self, time: &str, sample: &Watched) -> String {
        let mut text = String::new();
        if !self.begun {
            text = format!("time,device,{}\n", COLUMNS.join(","));
            self.begun = true;
        }
        for (name, rates) in &sample.rows {
            let figures = rates.columns().map(|figure| format!("{figure:.2}"));
            let name = text_cell(name);
            text.push_str(&format!("{time},{name},{}\n", figures.join(",")));
        }
        text
    }
}

/// The width of the terminal, where it does not say one the usual 80; `None` where standard output is none.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(match size.ws_col {
        0 => 80,
        columns => columns.into(),
    })
}

/// Those devices that did something, or have something in flight.
fn busy(sample: &Watched) -> Watched {
    let is_busy = |rates: &DeviceRates| rates.columns().iter().any(|figure| *figure > 0.0);
    let rows = sample.rows.iter().filter(|(_, rates)| is_busy(rates));
    Watched {
        elapsed: sample.elapsed,
        rows: rows.cloned().collect(),
    }
}

/// As sar prints it; narrower where the terminal does not hold that.
fn table(time: &str, sample: &Watched, width: Option<usize>) -> String {
    let wide = width.is_none_or(|width| width >= SAR_WIDTH);
    let longest = sample.rows.iter().map(|(name, _)| name.len()).max();
    let (name_width, widths) = match wide {
        true => (13, [10; 8]),
        false => (longest.unwrap_or(0).max(7) + 1, NARROW),
    };
    let row = |first: &str, cells: [String; 8]| {
        let mut text = format!("{time:<8}{first:>name_width$}");
        for (cell, width) in cells.iter().zip(widths) {
            text.push_str(&format!("{cell:>width$}"));
        }
        text + "\n"
    };
    let mut text = row("DEV", COLUMNS.map(str::to_owned));
    for (name, rates) in &sample.rows {
        let mut widths = widths.into_iter();
        let cells = rates.columns().map(|value| {
            let width = widths.next().unwrap_or_default();
            fitting(value, width.saturating_sub(1))
        });
        text.push_str(&row(name, cells));
    }
    text
}

/// Two decimals, or fewer where there is no room.
fn fitting(value: f64, width: usize) -> String {
    let decimals = [2, 1, 0].into_iter();
    let texts: Vec<String> = decimals
        .map(|decimals| format!("{value:.decimals$}"))
        .collect();
    let fits = texts.iter().find(|text| text.len() <= width);
    fits.unwrap_or(&texts[2]).clone()
}

fn line(value: Value) -> String {
    format!("{value}\n")
}

fn seconds(sample: &Watched) -> f64 {
    (sample.elapsed.as_secs_f64() * 1e6).round() / 1e6
}

fn devices(sample: &Watched) -> Value {
    let figures = |rates: &DeviceRates| serde_json::to_value(rates.rounded()).unwrap_or_default();
    let rows = sample.rows.iter();
    Value::Object(
        rows.map(|(name, rates)| (name.clone(), figures(rates)))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample() -> Watched {
        let busy = DeviceRates {
            tps: 97_543.17,
            read_kib_s: 1_390_184.6,
            write_kib_s: 0.0,
            discard_kib_s: 11.94,
            request_kib: 4.0,
            queue: 35.76,
            await_ms: 0.37,
            util_percent: 54.53,
        };
        Watched {
            elapsed: Duration::from_millis(1000),
            rows: vec![
                ("nvme0n1".into(), busy),
                ("sda".into(), DeviceRates::default()),
            ],
        }
    }

    #[test]
    fn tables_are_those_of_sar_where_there_is_room() {
        insta::assert_snapshot!("wide", table("06:44:04", &sample(), None));
        let narrow = table("06:44:04", &sample(), Some(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        insta::assert_snapshot!("narrow", narrow);
        let mut long = sample();
        long.rows[1].0 = "nvme10n100".into();
        let narrow = table("Average:", &long, Some(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        let names = |sample: &Watched| -> Vec<String> {
            sample.rows.iter().map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(&busy(&long)), ["nvme0n1"], "an idle one is left out");
    }

    #[test]
    fn programs_get_every_interval_and_the_averages() {
        let mut show = Show::new(WatchFormat::Csv, true);
        let text = show.csv("2026-11-21T06:44:04Z", &sample()) + &show.average(&sample());
        insta::assert_snapshot!("csv", text);
        let mut show = Show::new(WatchFormat::Json, true);
        let json: Value = serde_json::from_str(&show.average(&sample())).unwrap();
        assert_eq!(json["devices"]["nvme0n1"]["await_ms"], 0.37);
        assert_eq!(
            (&json["average"], &json["elapsed_s"]),
            (&json!(true), &json!(1.0))
        );
        assert!(show.sample(&sample()).contains("\"at\":\"20"));
    }
}
