//! `cargo xtask tidy`: rules about names, words, lengths, imports and documents, held by a ratchet.
//!
//! [`baseline`] has the count of each rule in each crate, and a count may only fall. Each rule is
//! a function over text and path, or over facts that were read from them: a [`rust_file`], a
//! [`markdown`] document.

mod baseline;
mod commands;
mod crate_totals;
mod files;
mod finding;
mod imports;
mod item_reader;
mod lengths;
mod lexer;
mod links;
mod markdown;
mod names;
mod phrase_table;
mod phrases;
mod public_items;
mod rust_file;
#[cfg(test)]
mod site_tests;
mod syntax_reader;
mod unsafe_code;

use anyhow::{Context, Result, bail};
use baseline::CountChange;
use commands::DocumentedProgram;
use files::{SourceFile, extension};
use finding::{FindingCounts, RULES, TidyFinding};
use markdown::MarkdownFile;
use phrases::PhraseRule;
use rust_file::RustFile;
use std::cmp::Reverse;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Instant, SystemTime};

/// Most findings that are printed of a rule and crate whose count rose.
const MOST_PRINTED: usize = 50;

/// Word of `--list` for every rule.
const ALL_RULES: &str = "all";

/// Options of `cargo xtask tidy`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print all findings, or those of one rule
    #[arg(long, value_name = "RULE", num_args = 0..=1, default_missing_value = ALL_RULES)]
    list: Option<String>,
    /// Write counts that fell into the baseline
    #[arg(long, conflicts_with = "list")]
    lower: bool,
    /// With --lower, after code has moved: accept counts that rose where the rule's sum did not
    #[arg(long, requires = "lower")]
    moved: bool,
}

/// Checks the repository. True if all counts are those of the baseline.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let started = Instant::now();
    let root = super::repository::repository_root();
    let files = files::read_files(&root)?;
    if let Some(rule) = &arguments.list {
        check_rule_name(rule)?;
        let findings = check(&files, &root)?;
        let listed = findings
            .iter()
            .filter(|f| rule == ALL_RULES || f.rule == rule);
        print(&listed.map(line_of_finding).collect::<String>());
        return Ok(true);
    }
    let findings = check(&files, &root)?;
    let now = finding::count(&findings);
    let limit = read_baseline(&root, &now, arguments)?;
    let changes = baseline::compare(&limit, &now);
    let mut text = table(&limit, &now);
    let seconds = started.elapsed().as_secs_f64();
    text.push_str(&format!("{} files in {seconds:.1} s\n", files.len()));
    let modified = |path: &str| fs::metadata(root.join(path)).ok()?.modified().ok();
    text.push_str(&text_of_changes(&changes, &findings, &modified));
    print(&text);
    Ok(changes.is_empty())
}

fn check_rule_name(rule: &str) -> Result<()> {
    let mut rules = RULES.iter().map(|(rule, _)| *rule);
    if rule == ALL_RULES || rules.any(|known| known == rule) {
        return Ok(());
    }
    let rules: Vec<_> = RULES.iter().map(|(rule, _)| *rule).collect();
    bail!(
        "there is no rule {rule}; the rules are {}",
        rules.join(", ")
    );
}

/// The committed counts; with `--lower` they are lowered first.
fn read_baseline(root: &Path, now: &FindingCounts, arguments: &Arguments) -> Result<FindingCounts> {
    let path = root.join(baseline::PATH);
    let committed = match fs::read_to_string(&path) {
        Ok(text) => baseline::parse(&text)?,
        // Without a baseline, the present counts become the baseline.
        Err(_) if arguments.lower => now.clone(),
        Err(error) => return Err(error).with_context(|| format!("reading {}", baseline::PATH)),
    };
    if !arguments.lower {
        return Ok(committed);
    }
    let lowered = baseline::lower(&committed, now, arguments.moved);
    let text = baseline::render(&lowered);
    fs::write(&path, text).with_context(|| format!("writing {}", baseline::PATH))?;
    Ok(lowered)
}

/// All findings, sorted by rule, crate and place.
fn check(files: &[SourceFile], root: &Path) -> Result<Vec<TidyFinding>> {
    let phrases = PhraseRule::new();
    let (rust_files, mut findings) = check_each_file(files, &phrases)?;
    findings.extend(names::check_basenames(
        files.iter().map(|file| file.path.as_str()),
    ));
    findings.extend(names::check_types(&rust_files));
    findings.extend(names::check_functions(&rust_files));
    findings.extend(crate_totals::check(&rust_files));
    findings.extend(imports::check(&rust_files));
    findings.extend(public_items::check(&rust_files));
    findings.extend(check_documents(files, root, &phrases)?);
    findings.sort();
    Ok(findings)
}

/// Checks what needs one file only, on all processors.
fn check_each_file(
    files: &[SourceFile],
    phrases: &PhraseRule,
) -> Result<(Vec<RustFile>, Vec<TidyFinding>)> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|first| {
                // Files of one folder are alike in size, so each thread takes some of each.
                let share = files.iter().skip(first).step_by(threads);
                scope.spawn(move || {
                    share
                        .map(|file| check_file(file, phrases))
                        .collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join();
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    let (mut rust_files, mut findings) = (Vec::new(), Vec::new());
    for part in parts {
        for (file, found) in part.unwrap_or_else(|panic| std::panic::resume_unwind(panic))? {
            rust_files.extend(file);
            findings.extend(found);
        }
    }
    rust_files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok((rust_files, findings))
}

fn check_file(
    file: &SourceFile,
    phrases: &PhraseRule,
) -> Result<(Option<RustFile>, Vec<TidyFinding>)> {
    if extension(&file.path) != "rs" {
        let mut findings = lengths::check_width(file, &[]);
        findings.extend(phrases.check_lines(file));
        return Ok((None, findings));
    }
    let tokens = lexer::tokens(&file.text);
    let rust_file = syntax_reader::read_rust_file(&file.path, &file.text, &tokens)?;
    let mut findings = lengths::check_width(file, &tokens);
    findings.extend(lengths::check_file(&rust_file));
    findings.extend(lengths::check_functions(&rust_file));
    findings.extend(phrases.check_rust(&file.path, &tokens));
    findings.extend(names::check_tests(&file.path, &tokens, phrases));
    findings.extend(unsafe_code::check(&rust_file, &tokens));
    Ok((Some(rust_file), findings))
}

fn check_documents(
    files: &[SourceFile],
    root: &Path,
    phrases: &PhraseRule,
) -> Result<Vec<TidyFinding>> {
    let program = DocumentedProgram::read(root)?;
    let documents = files.iter().filter(|file| extension(&file.path) == "md");
    let documents: Vec<_> = documents.map(MarkdownFile::read).collect();
    let exists = |path: &str| root.join(path).exists();
    let mut findings = links::check(&documents, &exists);
    for document in &documents {
        findings.extend(phrases.check_markdown(document));
        findings.extend(commands::check(document, &program));
    }
    Ok(findings)
}

/// Prints a text. A reader such as `head` may close the pipe before its end.
fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn line_of_finding(finding: &TidyFinding) -> String {
    let TidyFinding {
        rule,
        krate,
        path,
        line,
        text,
        ..
    } = finding;
    format!("{path}:{line}: {rule} ({krate}): {text}\n")
}

fn table(limit: &FindingCounts, now: &FindingCounts) -> String {
    let mut text = format!("{:17} {:>5} {:>8}\n", "rule", "count", "baseline");
    for (rule, what) in RULES {
        let (count, most) = (baseline::sum_of(now, rule), baseline::sum_of(limit, rule));
        text.push_str(&format!("{rule:17} {count:5} {most:8}  {what}\n"));
    }
    text
}

/// Each change, and the findings of the rules and crates whose counts rose. Those in the files that
/// were modified last come first.
fn text_of_changes(
    changes: &[CountChange],
    findings: &[TidyFinding],
    modified: &dyn Fn(&str) -> Option<SystemTime>,
) -> String {
    let mut text = String::new();
    for change in changes.iter().filter(|change| change.is_rise()) {
        let CountChange {
            rule,
            krate,
            before,
            now,
        } = change;
        text.push_str(&format!(
            "\nerror: {rule} in {krate}: {now}, the baseline has {before}\n"
        ));
        let of_cell = findings
            .iter()
            .filter(|f| f.rule == rule && f.krate == *krate);
        let mut of_cell: Vec<_> = of_cell.collect();
        of_cell.sort_by_cached_key(|finding| Reverse(modified(&finding.path)));
        text.extend(
            of_cell
                .iter()
                .take(MOST_PRINTED)
                .map(|finding| line_of_finding(finding)),
        );
        let rest = of_cell.len().saturating_sub(MOST_PRINTED);
        if rest > 0 {
            text.push_str(&format!(
                "{rest} more: run `cargo xtask tidy --list {rule}`\n"
            ));
        }
    }
    let mut fallen = changes.iter().filter(|change| !change.is_rise()).peekable();
    let has_fallen = fallen.peek().is_some();
    for CountChange {
        rule,
        krate,
        before,
        now,
    } in fallen
    {
        text.push_str(&format!(
            "\nerror: {rule} in {krate}: the count fell from {before} to {now}\n"
        ));
    }
    if has_fallen {
        let path = baseline::PATH;
        text.push_str(&format!(
            "help: run `cargo xtask tidy --lower` and commit {path}\n"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn change(krate: &str, before: usize, now: usize) -> CountChange {
        let (rule, krate) = ("line-width".to_owned(), krate.to_owned());
        CountChange {
            rule,
            krate,
            before,
            now,
        }
    }

    const NEVER: &dyn Fn(&str) -> Option<SystemTime> = &|_| None;

    #[test]
    fn findings_of_the_file_modified_last_come_first() {
        let finding = |path: &str| TidyFinding::new("line-width", path, 7, "text".to_owned());
        let findings = ["a", "b", "c"].map(|name| finding(&format!("crates/job/src/{name}.rs")));
        let second = Duration::from_secs(1);
        let modified = |path: &str| {
            let age = if path.ends_with("b.rs") {
                second
            } else {
                2 * second
            };
            Some(SystemTime::UNIX_EPOCH + 9 * second - age)
        };
        let text = text_of_changes(&[change("job", 0, 3)], &findings, &modified);
        let names: Vec<_> = text.lines().skip(2).map(|line| &line[15..16]).collect();
        assert_eq!(names, ["b", "a", "c"]);
    }

    #[test]
    fn risen_count_prints_the_findings_of_its_rule_and_crate() {
        let finding = |rule, path: &str| TidyFinding::new(rule, path, 7, "text".to_owned());
        let findings = [
            finding("line-width", "crates/job/src/a.rs"),
            finding("line-width", "crates/study/src/b.rs"),
            finding("phrases", "crates/job/src/c.rs"),
        ];
        let text = text_of_changes(&[change("job", 0, 1)], &findings, NEVER);
        let wanted = "\nerror: line-width in job: 1, the baseline has 0\n\
             crates/job/src/a.rs:7: line-width (job): text\n";
        assert_eq!(text, wanted);
        let many = vec![findings[0].clone(); MOST_PRINTED + 2];
        let text = text_of_changes(&[change("job", 0, 52)], &many, NEVER);
        assert!(text.ends_with("2 more: run `cargo xtask tidy --list line-width`\n"));
        assert_eq!(text.lines().count(), MOST_PRINTED + 3);
    }

    #[test]
    fn fallen_count_prints_how_to_lower_the_baseline() {
        let text = text_of_changes(&[change("job", 3, 1), change("study", 2, 0)], &[], NEVER);
        assert!(text.contains("line-width in job: the count fell from 3 to 1\n"));
        assert!(
            text.ends_with("run `cargo xtask tidy --lower` and commit xtask/tidy-baseline.toml\n")
        );
        assert_eq!(text_of_changes(&[], &[], NEVER), "");
    }

    #[test]
    fn unknown_rule_name_is_an_error_with_all_names() {
        assert!(check_rule_name("line-width").is_ok() && check_rule_name("all").is_ok());
        let error = check_rule_name("line-widht").unwrap_err().to_string();
        assert!(error.contains("line-widht") && error.contains("unknown-command"));
    }
}
