//! Output lines of `iosonde watch`.

use super::sample_json::sample_line;
use super::section_tables::{FigureTable, row_name, section_tables};
use super::watch_columns::{RowOrder, WatchColumn};
use super::watch_sample::{WatchSample, WatchedDevice, WatchedMachine};
use crate::args::{WatchFormat, WatchSection};
use iosonde_report::csv::csv_line;
use iosonde_report::text_table::wrapped;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Characters of the time and the name before the columns of sar, and of a column.
const SAR_WIDTHS: (usize, usize) = (21, 10);
/// Characters of the time, and least characters of the name on a narrow terminal.
const TIME_WIDTH: usize = 8;
const NARROW_NAME: usize = 7;
/// Columns that a narrow terminal keeps before all others.
const FIRST_KEPT: [&str; 8] = [
    "r/s", "rkB/s", "r_await", "w/s", "wkB/s", "w_await", "aqu-sz", "%util",
];
/// Rows after which a terminal gets the head of the table again, with `--total`.
const ROWS_PER_HEAD: usize = 20;

/// Choice of rows, columns, sections and format.
#[derive(Debug, Clone)]
pub(super) struct WatchView {
    pub(super) format: WatchFormat,
    pub(super) columns: Vec<&'static WatchColumn>,
    pub(super) order: RowOrder,
    /// Whether all devices are shown as one line.
    pub(super) is_total: bool,
    pub(super) sections: Vec<WatchSection>,
    /// Whether no device was named.
    pub(super) all: bool,
}

/// Formats samples.
pub(super) struct Show {
    view: WatchView,
    begun: bool,
    /// Rows since the last head, with `--total`.
    rows: usize,
}

impl Show {
    pub(super) fn new(view: WatchView) -> Show {
        Show {
            view,
            begun: false,
            rows: 0,
        }
    }

    /// The lines of an interval.
    pub(super) fn sample(&mut self, sample: &WatchSample) -> String {
        let total = self.view.is_total.then(|| sample.total());
        let shown = total.as_ref().unwrap_or(sample);
        match self.view.format {
            WatchFormat::Table => self.tables(&clock_time(&sample.at), shown, terminal_width()),
            WatchFormat::Json => sample_line(shown, Some(&sample.at), &self.view.sections),
            WatchFormat::Csv => self.csv(&sample.at, shown),
        }
    }

    /// The lines of the averages over the whole time.
    pub(super) fn average(&mut self, average: &WatchSample) -> String {
        let total = self.view.is_total.then(|| average.total());
        let shown = total.as_ref().unwrap_or(average);
        match self.view.format {
            WatchFormat::Table => self.tables("Average:", shown, terminal_width()),
            WatchFormat::Json => sample_line(shown, None, &self.view.sections),
            WatchFormat::Csv => self.csv("average", shown),
        }
    }

    /// The tables of all sections. `width` is that of the terminal.
    fn tables(&mut self, time: &str, sample: &WatchSample, width: Option<usize>) -> String {
        if self.view.is_total {
            return self.total_row(time, sample, width);
        }
        let mut texts = Vec::new();
        for section in &self.view.sections {
            if *section == WatchSection::Disks {
                // A file may be compared with sar, so it has all devices. A terminal shows the
                // busy ones.
                let is_busy_only = self.view.all && width.is_some();
                texts.push(table(time, &self.devices(sample, is_busy_only), width));
            }
            let others = section_tables(*section, sample);
            texts.extend(others.iter().map(|one| table(time, one, width)));
        }
        let before = match self.begun {
            true => "\n".to_owned(),
            false => self.left_out(sample, width),
        };
        self.begun = true;
        format!("{before}{}", texts.join("\n"))
    }

    /// Names the columns that the terminal has no room for. Empty if all fit.
    fn left_out(&self, sample: &WatchSample, width: Option<usize>) -> String {
        let mut tables = Vec::new();
        for section in &self.view.sections {
            if *section == WatchSection::Disks {
                tables.push(self.devices(sample, false));
            }
            tables.extend(section_tables(*section, sample));
        }
        let Some(width) = width else {
            return String::new();
        };
        let missing = tables.iter().filter_map(|of| {
            let fitted = fitted(of, width)?;
            let is_missing = |(name, _): &&(&'static str, usize)| {
                fitted.columns.iter().all(|(kept, _)| kept != name)
            };
            let names: Vec<&str> = (of.columns.iter().filter(is_missing))
                .map(|(name, _)| *name)
                .collect();
            (!names.is_empty()).then(|| format!("{} {}", of.title, names.join(" ")))
        });
        let missing: Vec<String> = missing.collect();
        match missing.is_empty() {
            true => String::new(),
            false => wrapped(&format!(
                "Left out to fit the terminal: {}. --columns chooses the columns of disks.",
                missing.join("; ")
            )),
        }
    }

    /// One row for all devices. A file has the head once.
    fn total_row(&mut self, time: &str, sample: &WatchSample, width: Option<usize>) -> String {
        let [head, row] = table_parts(time, &self.devices(sample, false), width);
        let is_head_due = !self.begun || (width.is_some() && self.rows >= ROWS_PER_HEAD);
        let before = match self.begun {
            true => String::new(),
            false => self.left_out(sample, width),
        };
        self.begun = true;
        if is_head_due {
            self.rows = 1;
            return before + &head + &row;
        }
        self.rows += 1;
        row
    }

    /// The table of the devices in the chosen order.
    fn devices(&self, sample: &WatchSample, is_busy_only: bool) -> FigureTable {
        let columns = &self.view.columns;
        let row = |(machine, device): (&WatchedMachine, &WatchedDevice)| {
            let figure = |column: &&WatchColumn| column.value(&device.requests, machine.seconds());
            let figures: Vec<Option<f64>> = columns.iter().map(figure).collect();
            (row_name(machine, &device.name), figures)
        };
        FigureTable {
            title: "DEV",
            columns: columns
                .iter()
                .map(|column| (column.name, column.narrow))
                .collect(),
            rows: self
                .ordered(sample)
                .into_iter()
                .filter(|(_, device)| !is_busy_only || device.requests.is_busy())
                .map(row)
                .collect(),
        }
    }

    fn ordered<'s>(&self, sample: &'s WatchSample) -> Vec<(&'s WatchedMachine, &'s WatchedDevice)> {
        let mut all = Vec::new();
        for machine in &sample.machines {
            all.extend(machine.devices.iter().map(|device| (machine, device)));
        }
        match self.view.order {
            RowOrder::Number => {}
            RowOrder::Name => {
                all.sort_by(|(a, x), (b, y)| (&x.name, &a.node).cmp(&(&y.name, &b.node)));
            }
            // A figure that is not counted comes last.
            RowOrder::Column(column) => all.sort_by(|(a, x), (b, y)| {
                let figure = |machine: &WatchedMachine, device: &WatchedDevice| {
                    let value = column.value(&device.requests, machine.seconds());
                    value.unwrap_or(f64::NEG_INFINITY)
                };
                figure(b, y).total_cmp(&figure(a, x))
            }),
        }
        all
    }

    fn csv(&mut self, time: &str, sample: &WatchSample) -> String {
        let mut text = String::new();
        let table = self.devices(sample, false);
        if !self.begun {
            let names = table.columns.iter().map(|(name, _)| *name);
            text = csv_line(["time", "device"].into_iter().chain(names));
            self.begun = true;
        }
        for (name, figures) in &table.rows {
            // A figure that is not counted is an empty cell.
            let figure = |figure: &Option<f64>| {
                figure.map_or(String::new(), |figure| format!("{figure:.2}"))
            };
            let cells = [time, name.as_str()].map(str::to_owned).into_iter();
            text.push_str(&csv_line(cells.chain(figures.iter().map(figure))));
        }
        text
    }
}

/// The time of day of a sample in the local time zone.
fn clock_time(at: &str) -> String {
    let local = |at: Timestamp| {
        let zoned = at.to_zoned(TimeZone::system());
        zoned.strftime("%H:%M:%S").to_string()
    };
    at.parse::<Timestamp>()
        .map_or_else(|_| at.to_owned(), local)
}

/// The width of the terminal, 80 if unknown. `None`: standard output is no terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(match size.ws_col {
        0 => 80,
        columns => columns.into(),
    })
}

/// Whether a table has room for the widths of sar.
fn has_room(of: &FigureTable, width: usize) -> bool {
    let (before, each) = SAR_WIDTHS;
    width >= before + each * of.columns.len()
}

/// A table that fits a narrow terminal: without the columns that have no room, and with the ends of
/// long names. `None`: the table has room for the widths of sar.
fn fitted(of: &FigureTable, width: usize) -> Option<FigureTable> {
    if has_room(of, width) {
        return None;
    }
    // The time and the name each end with a space.
    let longest_name = (width.saturating_sub(TIME_WIDTH) / 2).max(NARROW_NAME + 1) - 1;
    let shortened = |name: &str| match name.chars().count() {
        count if count > longest_name => {
            let end = name.chars().skip(count + 1 - longest_name);
            std::iter::once('…').chain(end).collect()
        }
        _ => name.to_owned(),
    };
    let names: Vec<String> = of.rows.iter().map(|(name, _)| shortened(name)).collect();
    let lengths = names.iter().map(|name| name.chars().count());
    let name_width = lengths.fold(of.title.len().max(NARROW_NAME), usize::max) + 1;
    let kept = kept_columns(&of.columns, width.saturating_sub(TIME_WIDTH + name_width));
    let rows = names.into_iter().zip(&of.rows).map(|(name, (_, figures))| {
        let figures = kept.iter().map(|at| figures[*at]).collect();
        (name, figures)
    });
    Some(FigureTable {
        title: of.title,
        rows: rows.collect(),
        columns: kept.iter().map(|at| of.columns[*at]).collect(),
    })
}

/// Indices of the columns that have room, at least one.
fn kept_columns(columns: &[(&'static str, usize)], room: usize) -> Vec<usize> {
    let rank = |at: &usize| {
        let found = FIRST_KEPT.iter().position(|name| *name == columns[*at].0);
        found.unwrap_or(FIRST_KEPT.len())
    };
    let total: usize = columns.iter().map(|(_, width)| width).sum();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    if total <= room {
        return order;
    }
    order.sort_by_key(rank);
    let (mut kept, mut taken) = (Vec::new(), 0);
    for at in order {
        let width = columns[at].1;
        if kept.is_empty() || taken + width <= room {
            taken += width;
            kept.push(at);
        }
    }
    kept.sort_unstable();
    kept
}

/// A table as sar prints it, narrower if the terminal is.
fn table(time: &str, of: &FigureTable, width: Option<usize>) -> String {
    table_parts(time, of, width).concat()
}

/// The head and the rows of a table.
fn table_parts(time: &str, of: &FigureTable, width: Option<usize>) -> [String; 2] {
    let (_, each) = SAR_WIDTHS;
    let fitted = width.and_then(|width| fitted(of, width));
    let is_wide = fitted.is_none();
    let of = fitted.as_ref().unwrap_or(of);
    let names = of.rows.iter().map(|(name, _)| name.chars().count());
    let longest = names.max().unwrap_or(0).max(of.title.len());
    let name_width = match is_wide {
        true => (longest + 1).max(13),
        false => longest.max(NARROW_NAME) + 1,
    };
    let widths: Vec<usize> = match is_wide {
        true => of
            .columns
            .iter()
            .map(|(name, _)| each.max(name.len() + 1))
            .collect(),
        false => of.columns.iter().map(|(_, narrow)| *narrow).collect(),
    };
    let row = |first: &str, cells: Vec<String>| {
        let mut text = format!("{time:<TIME_WIDTH$}{first:>name_width$}");
        for (cell, width) in cells.iter().zip(widths.iter().copied()) {
            text.push_str(&format!("{cell:>width$}"));
        }
        text + "\n"
    };
    let heads = of.columns.iter().map(|(name, _)| (*name).to_owned());
    let head = row(of.title, heads.collect());
    let mut rows = String::new();
    for (name, figures) in &of.rows {
        let cells = figures.iter().zip(&widths);
        let cells = cells.map(|(figure, width)| fitting(*figure, width.saturating_sub(1)));
        rows.push_str(&row(name, cells.collect()));
    }
    [head, rows]
}

/// Two decimals, or fewer if the column is narrow. A figure that is not counted is `-`.
fn fitting(figure: Option<f64>, width: usize) -> String {
    let Some(value) = figure else {
        return "-".to_owned();
    };
    let decimals = [2, 1, 0].into_iter();
    let texts: Vec<String> = decimals
        .map(|decimals| format!("{value:.decimals$}"))
        .collect();
    let fits = texts.iter().find(|text| text.len() <= width);
    fits.unwrap_or(&texts[2]).clone()
}

#[cfg(test)]
mod tests {
    use super::super::watch_columns::{choose_columns, choose_order};
    use super::super::watch_sample::tests::sample;
    use super::*;

    fn view(format: WatchFormat, columns: &str) -> WatchView {
        WatchView {
            format,
            columns: choose_columns(&[columns.to_owned()]).unwrap(),
            order: RowOrder::Number,
            is_total: false,
            sections: vec![WatchSection::Disks],
            all: true,
        }
    }

    fn table_of(sample: &WatchSample, width: Option<usize>) -> String {
        let show = Show::new(view(WatchFormat::Table, "sar"));
        table("06:44:04", &show.devices(sample, false), width)
    }

    #[test]
    fn table_matches_sar_and_fits_80_columns() {
        insta::assert_snapshot!("wide", table_of(&sample(), None));
        let narrow = table_of(&sample(), Some(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        insta::assert_snapshot!("narrow", narrow);
        let mut long = sample();
        long.machines[0].devices[1].name = "nvme10n100".into();
        let narrow = table_of(&long, Some(80));
        assert!(narrow.lines().all(|line| line.len() <= 80), "{narrow}");
        let mut show = Show::new(view(WatchFormat::Table, "sar"));
        let shown = show.tables("06:44:04", &long, Some(80));
        assert!(!shown.contains("nvme10n100"), "an idle one is left out");
        assert!(show.tables("06:44:05", &long, None).contains("nvme10n100"));
    }

    #[test]
    fn wide_columns_and_names_fit_80_columns() {
        let mut long = sample();
        long.machines[0].devices[0].name = "a-volume-group-with-a-long-name/and-a-volume".into();
        let mut show = Show::new(view(WatchFormat::Table, "iostat"));
        let text = show.tables("06:44:04", &long, Some(80));
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(
            text.contains("and-a-volume") && text.contains('…'),
            "{text}"
        );
        assert!(text.contains("Left out to fit the terminal: DEV"), "{text}");
        let next = show.tables("06:44:05", &long, Some(80));
        assert!(!next.contains("Left out"), "{next}");
        let mut show = Show::new(view(WatchFormat::Table, "iostat"));
        let text = show.tables("06:44:04", &sample(), Some(80));
        let mut lines = text.lines();
        let head = lines.find(|line| line.starts_with("06:44:04")).unwrap();
        let names: Vec<&str> = head.split_whitespace().skip(2).collect();
        assert_eq!(names, FIRST_KEPT);
        let mut show = Show::new(view(WatchFormat::Table, "iostat"));
        assert!(
            !show
                .tables("06:44:04", &sample(), None)
                .contains("Left out")
        );
    }

    #[test]
    fn figures_that_are_not_counted_are_dashes() {
        let show = Show::new(view(WatchFormat::Table, "f"));
        let text = table("06:44:04", &show.devices(&sample(), false), None);
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(last, ["06:44:04", "sda", "-", "-"]);
    }

    #[test]
    fn rows_are_sorted_and_uncounted_figures_come_last() {
        let mut three = sample();
        let mut third = three.machines[0].devices[0].clone();
        third.name = "dm-0".into();
        third.requests.discards = None;
        third.requests.reads.ios = 200_000;
        three.machines[0].devices.push(third);
        let names = |order: &str| -> Vec<String> {
            let mut view = view(WatchFormat::Table, "sar");
            view.order = choose_order(order).unwrap();
            let rows = Show::new(view).devices(&three, false).rows;
            rows.into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names("r/s"), ["dm-0", "nvme0n1", "sda"]);
        assert_eq!(names("d/s"), ["nvme0n1", "sda", "dm-0"]);
        assert_eq!(names("name"), ["dm-0", "nvme0n1", "sda"]);
    }

    #[test]
    fn total_is_one_line_per_interval_with_one_head() {
        let mut view = view(WatchFormat::Table, "iostat");
        view.is_total = true;
        let mut show = Show::new(view);
        let text = show.tables("06:44:04", &sample().total(), None)
            + &show.tables("06:44:05", &sample().total(), None);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.lines().all(|line| line.starts_with("06:44:0")));
        for _ in 0..ROWS_PER_HEAD {
            show.tables("06:44:06", &sample().total(), Some(300));
        }
        let text = show.tables("06:44:07", &sample().total(), Some(300));
        assert!(!text.contains("DEV"), "{text}");
    }

    #[test]
    fn sections_follow_each_other_in_the_chosen_order() {
        let mut view = view(WatchFormat::Table, "sar");
        view.sections = vec![WatchSection::Psi, WatchSection::Disks, WatchSection::Nfs];
        let text = Show::new(view).tables("06:44:04", &sample(), None);
        let heads: Vec<&str> = text
            .split("\n\n")
            .filter_map(|part| part.split_whitespace().nth(1))
            .collect();
        assert_eq!(heads, ["PSI", "DEV"]);
    }

    #[test]
    fn csv_and_json_have_intervals_and_averages() {
        let mut show = Show::new(view(WatchFormat::Csv, "sar"));
        let text = show.sample(&sample()) + &show.average(&sample());
        insta::assert_snapshot!("csv", text);
        let mut show = Show::new(view(WatchFormat::Json, "sar"));
        assert!(show.average(&sample()).starts_with("{\"average\":true"));
        assert!(show.sample(&sample()).contains("\"at\":\"2026-11-21T06"));
        assert_eq!(clock_time("yesterday"), "yesterday");
    }
}
