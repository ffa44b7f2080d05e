//! The comparison finds a difference in each field, and no class matches everything.

use std::collections::BTreeMap;

use super::command_line::CommandLine;
use super::disagreement::{Difference, Field, KnownClasses, differences};
use super::observation::{Ending, JobFigures, Observation, TransferCounts};

const FIELDS: [Field; 10] = [
    Field::Exit,
    Field::Jobs,
    Field::Counts,
    Field::Bytes,
    Field::Syncs,
    Field::Options,
    Field::Keys,
    Field::Files,
    Field::Calls,
    Field::Stderr,
];

/// A line whose figures depend neither on random draws nor on time.
fn plain_line() -> CommandLine {
    let lines = (0..).map(CommandLine::draw);
    let mut plain = lines.filter(|line| {
        !line.is_mixed() && !line.draws_sizes() && !line.is_timed() && !line.verifies()
    });
    plain.next().expect("a plain line")
}

fn observation() -> Observation {
    Observation {
        ending: Ending::Success,
        jobs: vec![JobFigures {
            name: "a".to_owned(),
            error: 0,
            moved: [TransferCounts {
                ios: 4,
                bytes: 16384,
            }; 3],
            syncs: 1,
            options: BTreeMap::from([("rw".to_owned(), "read".to_owned())]),
        }],
        keys: ["/jobs".to_owned()].into(),
        files: BTreeMap::from([("a.0.0".to_owned(), 16384)]),
        calls: BTreeMap::from([("fsync a.0.0 ".to_owned(), 1)]),
        stderr: String::new(),
        said: String::new(),
    }
}

/// A copy of [`observation`] with one changed field.
fn changed(field: Field) -> Observation {
    let mut seen = observation();
    let job = &mut seen.jobs[0];
    match field {
        Field::Exit => seen.ending = Ending::Failure,
        Field::Jobs => job.error = 5,
        Field::Counts => job.moved[0].ios = 5,
        Field::Bytes => job.moved[1].bytes = 4096,
        Field::Syncs => job.syncs = 2,
        Field::Options => drop(job.options.insert("bs".to_owned(), "4k".to_owned())),
        Field::Keys => drop(seen.keys.insert("/jobs[]/x".to_owned())),
        Field::Files => drop(seen.files.insert("a.0.0".to_owned(), 1)),
        Field::Calls => drop(seen.calls.insert("fsync a.0.0 ".to_owned(), 2)),
        Field::Stderr => seen.stderr = "warning".to_owned(),
    }
    seen
}

#[test]
fn equal_observations_have_no_difference() {
    assert!(differences(&plain_line(), &observation(), &observation()).is_empty());
}

#[test]
fn changed_field_is_a_difference() {
    for field in FIELDS {
        let found = differences(&plain_line(), &observation(), &changed(field));
        let fields: Vec<_> = found.iter().map(|difference| difference.field).collect();
        assert_eq!(fields, [field]);
    }
}

#[test]
fn changed_observations_match_no_class() {
    let known = KnownClasses::load();
    for field in FIELDS {
        for difference in differences(&plain_line(), &observation(), &changed(field)) {
            let class = known.find("--name=a --rw=read --bs=4k --size=64k", &difference);
            assert!(
                class.is_none(),
                "{:?} holds {field:?}",
                class.map(|class| &class.id)
            );
        }
    }
}

#[test]
fn class_without_pattern_is_refused() {
    let known = KnownClasses::load();
    for class in known.iter() {
        let nothing = FIELDS.map(|field| Difference {
            field,
            detail: String::new(),
        });
        let holds = |difference| known.find("", difference).is_some();
        assert!(!nothing.iter().any(holds), "{} holds everything", class.id);
    }
}
