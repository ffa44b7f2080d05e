//! What was promised beside both sides of a comparison.

use crate::report::probe::promise;
use crate::report::probe::table::{plain, render_left, right, wrapped};
use comfy_table::Cell;
use iosonde_result::compare::{self, Figure, Measure, Part, Subject};
use iosonde_study::limits::{Doubt, Held, Judged, Measured, Metric, Promise};
use iosonde_study::probe::ProbeResult;
use serde::Serialize;

/// One figure of one side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Beside {
    #[serde(flatten)]
    judged: Judged,
    /// What speaks against the verdict, as far as the result tells.
    doubts: Vec<Doubt>,
}

/// One figure of a promise.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    metric: Metric,
    /// `None` where a side has not measured it.
    a: Option<Beside>,
    b: Option<Beside>,
}

/// A promise beside what both sides measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Expected {
    /// The product, its size and machine.
    product: String,
    rows: Vec<Row>,
}

/// What a side measured of what is promised: a probe as it is held against promises, of anything else the fastest figure of each
/// kind, for a promise is of what can be reached.
pub(crate) fn beside(
    promise: &Promise,
    probe: Option<&ProbeResult>,
    results: &[compare::Measured],
) -> Vec<Beside> {
    if let Some(probe) = probe {
        let rows = Held::of(promise, probe).rows.into_iter();
        return rows
            .map(|row| Beside {
                judged: row.judged,
                doubts: row.doubts,
            })
            .collect();
    }
    let measured: Vec<Measured> = Metric::ALL
        .into_iter()
        .filter_map(|metric| fastest(metric, results))
        .collect();
    let alone = |judged| Beside {
        judged,
        doubts: Vec::new(),
    };
    promise.judge(&measured).into_iter().map(alone).collect()
}

fn fastest(metric: Metric, results: &[compare::Measured]) -> Option<Measured> {
    let subject = match metric {
        Metric::ReadIops | Metric::ReadBandwidth => Subject::Read,
        Metric::WriteIops | Metric::WriteBandwidth => Subject::Write,
        // Figures are of one direction each.
        Metric::Iops | Metric::Bandwidth => return None,
    };
    let parts = results.iter().flat_map(|result| &result.parts);
    let found = parts.filter(|part| is_one_way(part)).filter_map(|part| {
        let block_bytes: Option<u64> = part.pattern.bs.parse().ok();
        let iops = part.figure(subject, Measure::Iops)?;
        let factor = match metric.is_iops() {
            true => 1.0,
            false => block_bytes? as f64,
        };
        Some(Measured {
            metric,
            per_s: iops.value * factor,
            error: error(iops).map(|error| error * factor),
            block_bytes,
        })
    });
    found.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
}

/// Half the width of its interval.
fn error(figure: &Figure) -> Option<f64> {
    figure.bounds.map(|bounds| (bounds.high - bounds.low) / 2.0)
}

/// A mix shares its limits between both directions.
fn is_one_way(part: &Part) -> bool {
    let has = |subject| part.figure(subject, Measure::Iops).is_some();
    has(Subject::Read) != has(Subject::Write)
}

impl Expected {
    /// A promise beside what the sides measured of it.
    pub(crate) fn of(promise: &Promise, a: Vec<Beside>, b: Vec<Beside>) -> Expected {
        let of = |side: &[Beside], metric| {
            let mut side = side.iter();
            side.find(|each| each.judged.metric == metric).cloned()
        };
        let rows = Metric::ALL.into_iter().map(|metric| Row {
            metric,
            a: of(&a, metric),
            b: of(&b, metric),
        });
        Expected {
            product: promise::title(promise),
            rows: rows
                .filter(|row| row.a.is_some() || row.b.is_some())
                .collect(),
        }
    }

    /// For people, within 80 columns.
    pub(super) fn table(&self) -> String {
        let mut text = wrapped(&format!("Promised: {}", self.product));
        if self.rows.is_empty() {
            return text + "Nothing of the promise was measured.\n";
        }
        let mut table = plain();
        let mut head = vec![Cell::new("")];
        head.extend(["promised", "A", "of it"].map(right));
        head.push(Cell::new(""));
        head.extend(["B", "of it"].map(right));
        head.push(Cell::new(""));
        table.set_header(head);
        for row in &self.rows {
            let mut cells = vec![Cell::new(row.metric), right(row.promised())];
            for side in [&row.a, &row.b] {
                let [measured, share, verdict] = told(side.as_ref());
                cells.extend([right(measured), right(share), Cell::new(verdict)]);
            }
            table.add_row(cells);
        }
        text.push_str(&render_left(&mut table));
        for doubt in self.doubts() {
            text.push_str(&wrapped(&doubt));
        }
        text
    }

    /// For a report or an issue.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!(
            "Promised: {}\n\n| | promised | A | of it | | B | of it | |\n\
             | --- | ---: | ---: | ---: | --- | ---: | ---: | --- |\n",
            self.product
        );
        for row in &self.rows {
            let mut cells = vec![row.metric.to_string(), row.promised()];
            cells.extend(told(row.a.as_ref()));
            cells.extend(told(row.b.as_ref()));
            text.push_str(&format!("| {} |\n", cells.join(" | ")));
        }
        for doubt in self.doubts() {
            text.push_str(&format!("\n{doubt}\n"));
        }
        text
    }

    /// `? A, read IOPS: a cache answered, not the volume.`
    fn doubts(&self) -> Vec<String> {
        let sides = |row: &Row| [("A", row.a.clone()), ("B", row.b.clone())];
        let mut told = Vec::new();
        for row in &self.rows {
            for (name, side) in sides(row) {
                let doubts = side.map(|side| side.doubts).unwrap_or_default();
                let words: Vec<&str> = doubts.iter().map(|doubt| doubt.words()).collect();
                if !words.is_empty() {
                    told.push(format!("? {name}, {}: {}.", row.metric, words.join("; ")));
                }
            }
        }
        told
    }
}

impl Row {
    /// The same on both sides, unless they used blocks of different sizes.
    fn promised(&self) -> String {
        let sides = [&self.a, &self.b].into_iter().flatten();
        let mut shown: Vec<String> = sides.map(|side| promise::promised(&side.judged)).collect();
        shown.dedup();
        shown.join(" / ")
    }
}

/// What was measured, how much of the promise that is, and the verdict.
fn told(side: Option<&Beside>) -> [String; 3] {
    let Some(side) = side else {
        return ["-", "", ""].map(str::to_owned);
    };
    let doubted = if side.doubts.is_empty() { "" } else { "?" };
    [
        promise::measured(&side.judged),
        promise::share(&side.judged),
        format!("{}{doubted}", promise::word(side.judged.verdict)),
    ]
}
