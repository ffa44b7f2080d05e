//! Report of `iosonde doctor`.

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

use super::facts;
use crate::json_document::json_text;
use crate::text_table::{
    UNBROKEN_BLANK, is_narrow, pairs, render, set_gap, unbroken_figures, wrapped, wrapped_table,
};
use comfy_table::ColumnConstraint::Absolute;
use comfy_table::Width::Fixed;
use iosonde_result::doctor::{Examination, ExaminedTarget, Finding, Severity};
use iosonde_result::words;

/// Returns the report as text of at most 80 columns. Commands may be longer.
pub fn examination_text(examined: &Examination) -> String {
    let mut text = "Machine\n\n".to_owned();
    text.push_str(&pairs(&machine(examined)));
    for target in &examined.targets {
        text.push_str(&format!(
            "\n{}\n",
            wrapped(&format!("Target {}", target.name))
        ));
        text.push_str(&pairs(&target_facts(target)));
    }
    text.push_str(&format!(
        "\n{}\n",
        wrapped(&headline(&examined.findings)).trim_end()
    ));
    for finding in &examined.findings {
        text.push('\n');
        text.push_str(&advice(finding));
    }
    text
}

/// Returns the report as JSON.
pub fn examination_json(examined: &Examination) -> String {
    // Serialization of plain data cannot fail.
    json_text(examined).unwrap_or_default()
}

fn machine(examined: &Examination) -> Vec<facts::Fact> {
    let mut all = facts::machine_facts(&examined.host);
    let now = &examined.conditions;
    let mut load: Vec<String> = Vec::new();
    load.extend(
        now.cpu_busy_percent
            .map(|busy| format!("CPUs {busy:.0} % busy")),
    );
    load.extend(
        now.load_average
            .map(|[one, five, fifteen]| format!("load average {one:.2} {five:.2} {fifteen:.2}")),
    );
    load.extend(
        now.cpu_steal_percent
            .filter(|steal| *steal >= 0.05)
            .map(|steal| format!("steal {steal:.1} %")),
    );
    if !load.is_empty() {
        all.push(("load", load.join(", ")));
    }
    all
}

fn target_facts(target: &ExaminedTarget) -> Vec<facts::Fact> {
    let info = &target.info;
    let path = info.path.display().to_string();
    let kind = facts::target_kind_text(info);
    let mut all = vec![(
        "target",
        if path == target.name {
            kind
        } else {
            format!("{kind}: {path}")
        },
    )];
    all.extend(facts::target(info));
    let direct = match target.access.direct {
        Some(true) => "O_DIRECT works",
        Some(false) => "O_DIRECT is refused",
        None => "whether O_DIRECT works shows only in a run",
    };
    let atomic = target.access.atomic_writes.map_or(String::new(), |limits| {
        let (min, max) = (
            words::bytes(limits.min_bytes),
            words::bytes(limits.max_bytes),
        );
        format!(", atomic writes of {min} to {max}")
    });
    all.push(("I/O", format!("{direct}{atomic}")));
    all
}

/// Returns the first line: the number of findings by severity.
pub fn headline(findings: &[Finding]) -> String {
    let count = |severity| {
        findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    let (problems, warnings, notes) = (
        count(Severity::Problem),
        count(Severity::Warning),
        count(Severity::Note),
    );
    let counts = [
        (problems, "problem"),
        (warnings, "warning"),
        (notes, "note"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| words::counted(count, what));
    let counts: Vec<String> = counts.collect();
    let verdict = match (problems, warnings) {
        (0, 0) => "Nothing was found that would spoil a measurement",
        (0, _) => "Figures would be off or noisy",
        _ => "Not fit to be measured",
    };
    match counts.is_empty() {
        true => format!("{verdict}."),
        false => format!("{verdict}: {}.", counts.join(", ")),
    }
}

/// Width of the severity column.
const MARGIN: u16 = 9;

/// Returns the table rows of a finding: severity, evidence, effect, remedy.
pub fn advice(finding: &Finding) -> String {
    let mut table = wrapped_table();
    table.add_row([
        finding.severity.name().to_owned(),
        unbroken_figures(&format!("{}: {}", finding.subject, finding.evidence)),
    ]);
    let effect = unbroken_figures(&sentence(&finding.effect));
    table.add_row([String::new(), effect]);
    if !finding.remedy.is_empty() {
        let remedy = unbroken_figures(&format!("-> {}", finding.remedy));
        table.add_row([String::new(), remedy]);
    }
    set_gap(&mut table, 0);
    if let Some(column) = table.column_mut(0) {
        column.set_constraint(Absolute(Fixed(MARGIN)));
    }
    let mut text = render(&table).replace(UNBROKEN_BLANK, " ");
    // A command is never wrapped, so that it can be copied. On a narrow terminal, it has no indent.
    if let Some(command) = &finding.command {
        let indent = match is_narrow() {
            true => 0,
            false => usize::from(MARGIN) + 3,
        };
        text.push_str(&format!("{:indent$}$ {command}\n", ""));
    }
    text
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
