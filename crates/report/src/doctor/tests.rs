//! Reports on fixed machines.

use super::{examination_json, examination_text, samples, target_facts};
use iosonde_result::doctor;

#[test]
fn doctor_report_of_server_without_problems() {
    insta::assert_snapshot!("server", examination_text(&samples::server()));
}

#[test]
fn doctor_report_of_laptop_with_problems() {
    let text = examination_text(&samples::laptop());
    let commands = |line: &&str| !line.trim_start().starts_with('$');
    for line in text.lines().filter(commands) {
        assert!(line.chars().count() <= 80, "{line:?} is too wide");
    }
    insta::assert_snapshot!("laptop", text);
}

#[test]
fn doctor_report_fits_a_narrow_terminal_with_whole_commands() {
    let mut laptop = samples::laptop();
    laptop.targets[0].name = format!("/{}", "directory/".repeat(9));
    let commands: Vec<String> = laptop
        .findings
        .iter()
        .filter_map(|each| each.command.clone())
        .collect();
    assert!(!commands.is_empty());
    for columns in [40, 60] {
        crate::text_table::set_columns(columns);
        let text = examination_text(&laptop);
        for line in text.lines().filter(|line| !line.starts_with("$ ")) {
            assert!(line.chars().count() <= columns, "{line:?} is too wide");
        }
        for command in &commands {
            let line = format!("$ {command}");
            assert!(text.lines().any(|each| each == line), "{line}: {text}");
        }
    }
    crate::text_table::set_columns(80);
}

#[test]
fn json_holds_all_and_follows_its_schema() {
    let document = examination_json(&samples::laptop());
    let read: doctor::Examination = serde_json::from_str(&document).unwrap();
    assert_eq!(read, samples::laptop());
    insta::assert_snapshot!("server_json", examination_json(&samples::server()));
}

#[test]
fn atomic_write_limits_follow_the_kind_of_io() {
    let mut target = samples::server().targets.remove(0);
    target.access.atomic_writes = Some(doctor::AtomicWriteLimits {
        min_bytes: 512,
        max_bytes: 64 << 10,
    });
    let facts = target_facts(&target);
    let (name, value) = facts.last().unwrap();
    assert_eq!(*name, "I/O");
    assert_eq!(value, "O_DIRECT works, atomic writes of 512 B to 64 KiB");
}
