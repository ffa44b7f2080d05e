//! Columns of devices in `iosonde watch`: those of `sar -d` and of `iostat -x`.

use RequestFigure::{
    AwaitMs, KibRate, MergeRate, MergedPercent, MibRate, Queue, Rate, RequestKib, UtilPercent,
};
use RequestKind::{Discards, Flushes, Reads, Transfers, Writes};

use crate::failure::CommandError;
use iosonde_result::device_requests::{DeviceRequests, RequestTotals};
use iosonde_result::machine::DeviceRates;

/// Requests that a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    Reads,
    Writes,
    Discards,
    Flushes,
    /// Reads, writes and discards.
    Transfers,
}

/// Figure of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestFigure {
    Rate,
    KibRate,
    MibRate,
    MergeRate,
    MergedPercent,
    AwaitMs,
    RequestKib,
    /// Mean number of requests in flight at the device, of any kind.
    Queue,
    /// Share of the time with requests in flight, of any kind.
    UtilPercent,
}

/// A column of the table of devices.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WatchColumn {
    /// Its name in sar and iostat.
    pub(super) name: &'static str,
    /// Its width on a narrow terminal, with the space before it.
    pub(super) narrow: usize,
    kind: RequestKind,
    figure: RequestFigure,
}

const fn column(
    name: &'static str,
    narrow: usize,
    kind: RequestKind,
    figure: RequestFigure,
) -> WatchColumn {
    WatchColumn {
        name,
        narrow,
        kind,
        figure,
    }
}

/// All columns, in the order in which errors list them.
static COLUMNS: [WatchColumn; 28] = [
    column("tps", 8, Transfers, Rate),
    column("r/s", 8, Reads, Rate),
    column("rkB/s", 8, Reads, KibRate),
    column("rMB/s", 8, Reads, MibRate),
    column("rrqm/s", 8, Reads, MergeRate),
    column("%rrqm", 7, Reads, MergedPercent),
    column("r_await", 8, Reads, AwaitMs),
    column("rareq-sz", 9, Reads, RequestKib),
    column("w/s", 8, Writes, Rate),
    column("wkB/s", 8, Writes, KibRate),
    column("wMB/s", 8, Writes, MibRate),
    column("wrqm/s", 8, Writes, MergeRate),
    column("%wrqm", 7, Writes, MergedPercent),
    column("w_await", 8, Writes, AwaitMs),
    column("wareq-sz", 9, Writes, RequestKib),
    column("d/s", 8, Discards, Rate),
    column("dkB/s", 8, Discards, KibRate),
    column("dMB/s", 8, Discards, MibRate),
    column("drqm/s", 8, Discards, MergeRate),
    column("%drqm", 7, Discards, MergedPercent),
    column("d_await", 8, Discards, AwaitMs),
    column("dareq-sz", 9, Discards, RequestKib),
    column("f/s", 8, Flushes, Rate),
    column("f_await", 8, Flushes, AwaitMs),
    column("areq-sz", 8, Transfers, RequestKib),
    column("aqu-sz", 7, Transfers, Queue),
    column("await", 7, Transfers, AwaitMs),
    column("%util", 7, Transfers, UtilPercent),
];

/// Groups of columns by name.
static GROUPS: [(&str, &str); 6] = [
    ("sar", "tps rkB/s wkB/s dkB/s areq-sz aqu-sz await %util"),
    (
        "iostat",
        "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz d/s \
         dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util",
    ),
    ("r", "r/s rkB/s rrqm/s %rrqm r_await rareq-sz"),
    ("w", "w/s wkB/s wrqm/s %wrqm w_await wareq-sz"),
    ("d", "d/s dkB/s drqm/s %drqm d_await dareq-sz"),
    ("f", "f/s f_await"),
];

/// Order of the rows of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowOrder {
    /// As the kernel numbers the devices.
    Number,
    /// By name.
    Name,
    /// By a column, the largest figure first.
    Column(&'static WatchColumn),
}

impl RequestKind {
    /// Returns the requests of this kind. `None` if the kernel does not count them.
    fn totals(self, requests: &DeviceRequests) -> Option<RequestTotals> {
        match self {
            Reads => Some(requests.reads),
            Writes => Some(requests.writes),
            Discards => requests.discards,
            Flushes => requests.flushes,
            Transfers => Some(requests.transfers()),
        }
    }
}

impl WatchColumn {
    /// Returns the figure of a device over some seconds. `None` if the kernel does not count it.
    pub(super) fn value(&self, requests: &DeviceRequests, seconds: f64) -> Option<f64> {
        let totals = self.kind.totals(requests)?;
        let per_s = |count: u64| ratio(count as f64, seconds);
        let each = |sum: u64| ratio(sum as f64, totals.ios as f64);
        Some(match self.figure {
            Rate => per_s(totals.ios),
            KibRate => per_s(totals.sectors) / 2.0,
            MibRate => per_s(totals.sectors) / 2048.0,
            MergeRate => per_s(totals.merges),
            MergedPercent => {
                let all = totals.merges.saturating_add(totals.ios);
                100.0 * ratio(totals.merges as f64, all as f64)
            }
            AwaitMs => each(totals.ticks_ms),
            RequestKib => each(totals.sectors) / 2.0,
            Queue => per_s(requests.in_queue_ms) / 1000.0,
            UtilPercent => per_s(requests.busy_ms) / 10.0,
        })
    }
}

/// Divides. Without a divisor the ratio is 0, as sar and iostat print it.
fn ratio(sum: f64, of: f64) -> f64 {
    if of > 0.0 { sum / of } else { 0.0 }
}

/// Returns the columns of `sar -d` as the result of a run has them.
pub(super) fn sar_rates(requests: &DeviceRequests, seconds: f64) -> DeviceRates {
    let value = |name: &str| {
        let column = find_column(name);
        column.and_then(|column| column.value(requests, seconds))
    };
    let figure = |name: &str| value(name).unwrap_or(0.0);
    DeviceRates {
        tps: figure("tps"),
        read_kib_s: figure("rkB/s"),
        write_kib_s: figure("wkB/s"),
        discard_kib_s: figure("dkB/s"),
        request_kib: figure("areq-sz"),
        queue: figure("aqu-sz"),
        await_ms: figure("await"),
        util_percent: figure("%util"),
    }
}

/// Returns the column of a name.
pub(super) fn find_column(name: &str) -> Option<&'static WatchColumn> {
    COLUMNS.iter().find(|column| column.name == name)
}

/// Returns the columns of these names and groups, each once.
pub(super) fn choose_columns(words: &[String]) -> Result<Vec<&'static WatchColumn>, CommandError> {
    let mut chosen: Vec<&'static WatchColumn> = Vec::new();
    for word in words {
        let group = GROUPS.iter().find(|(name, _)| name == word);
        let names = group.map_or(word.as_str(), |(_, names)| *names);
        for name in names.split(' ') {
            let column = find_column(name).ok_or_else(|| unknown_column(word))?;
            if !chosen.contains(&column) {
                chosen.push(column);
            }
        }
    }
    Ok(chosen)
}

/// Returns the order of a column's name, or of the word `name`.
pub(super) fn choose_order(word: &str) -> Result<RowOrder, CommandError> {
    match find_column(word) {
        _ if word == "name" => Ok(RowOrder::Name),
        Some(column) => Ok(RowOrder::Column(column)),
        None => Err(CommandError::usage(
            format!("--sort: no column has the name {word}"),
            format!("sort by `name`, or by a column: {}", column_names()),
        )),
    }
}

fn unknown_column(word: &str) -> CommandError {
    let groups: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
    CommandError::usage(
        format!("--columns: no column has the name {word}"),
        format!(
            "name columns: {}; or groups of them: {}",
            column_names(),
            groups.join(", ")
        ),
    )
}

fn column_names() -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|column| column.name).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_machine::diskstats::DiskCounters;
    use iosonde_machine::sar;
    use std::time::Duration;

    const STAT: &str = "100 25 8000 50 200 200 16000 400 0 300 450 5 0 640 2 7 21";

    fn words(words: &str) -> Vec<String> {
        words.split(',').map(str::to_owned).collect()
    }

    #[test]
    fn iostat_columns_have_each_kind_of_request_by_itself() {
        let requests = DiskCounters::parse(STAT).unwrap().requests();
        let columns = choose_columns(&words("iostat")).unwrap();
        let values: Vec<Option<f64>> = columns
            .iter()
            .map(|column| column.value(&requests, 2.0))
            .collect();
        let expected = [
            50.0, 2000.0, 12.5, 20.0, 0.5, 40.0, 100.0, 4000.0, 100.0, 50.0, 2.0, 40.0, 2.5, 160.0,
            0.0, 0.0, 0.4, 64.0, 3.5, 3.0, 0.225, 15.0,
        ];
        assert_eq!(values, expected.map(Some));
    }

    #[test]
    fn columns_of_kinds_that_the_kernel_does_not_count_have_no_value() {
        let old = DiskCounters::parse("1 2 3 4 5 6 7 8 9 10 11").unwrap();
        let columns = choose_columns(&words("d,f,dMB/s")).unwrap();
        assert_eq!(columns.len(), 9);
        for column in columns {
            assert_eq!(column.value(&old.requests(), 1.0), None, "{}", column.name);
        }
    }

    #[test]
    fn rates_equal_those_of_results() {
        let counters = DiskCounters::parse(STAT).unwrap();
        let expected = sar::rates(&counters, Duration::from_secs(2)).rounded();
        assert_eq!(sar_rates(&counters.requests(), 2.0).rounded(), expected);
        let none = sar_rates(&counters.requests(), 0.0);
        assert_eq!((none.tps, none.util_percent), (0.0, 0.0));
    }

    #[test]
    fn groups_name_known_columns_and_each_is_chosen_once() {
        for (name, names) in &GROUPS {
            let chosen = choose_columns(&words(name)).unwrap();
            assert_eq!(chosen.len(), names.split(' ').count(), "{name}");
        }
        let chosen = choose_columns(&words("await,r,r/s,sar")).unwrap();
        assert_eq!(chosen[0].name, "await");
        assert_eq!(chosen.len(), 1 + 6 + 6);
    }

    #[test]
    fn unknown_column_is_an_error_that_lists_all() {
        for failure in [
            choose_columns(&words("r/s,svctm")).unwrap_err(),
            choose_order("svctm").unwrap_err(),
        ] {
            let text = failure.text(false);
            assert!(text.contains("svctm"), "{text}");
            let all = COLUMNS.iter().all(|column| text.contains(column.name));
            assert!(all, "{text}");
        }
        assert_eq!(choose_order("name").unwrap(), RowOrder::Name);
    }
}
