//! Tests of the limits on clones, files and sizes.

use super::{cause_of, error_cause, errors, first_cause, try_run};
use crate::diagnostic::{DiagnosticCause, JobListProblem, OptionConflict};
use crate::env::FakeEnv;

#[test]
fn too_many_files_are_one_error() {
    for files in [4_294_967_295, 4_194_305] {
        let reported = errors(&format!("size=1m\nnrfiles={files}"));
        assert_eq!(reported.list.len(), 1, "{reported}");
        let limit = 4_194_304;
        let too_many = JobListProblem::TooManyFiles { files, limit };
        assert_eq!(first_cause(&reported), too_many.into());
    }
    // A small file is an error also if `size` is divided among several files.
    let below = OptionConflict::FileBelowBlock {
        bytes: 1024,
        block_bytes: 4096,
    };
    assert_eq!(error_cause("size=1m\nnrfiles=1024"), below.into());
}

#[test]
fn clones_beyond_the_default_limit_are_refused() {
    let env = FakeEnv::new();
    assert!(try_run("--name=a --numjobs=4096", &env).is_ok());
    let too_many = JobListProblem::TooManyClones {
        clones: 4097,
        limit: 4096,
    };
    let refused = cause_of("--name=a --numjobs=4000 --name=b --numjobs=97", &env);
    assert_eq!(refused, too_many.into());
    assert!(try_run("--name=a --numjobs=5000 --max-jobs=5000", &env).is_ok());
    assert!(
        try_run("--name=a --numjobs=9 --max-jobs=8", &env).is_ok(),
        "as in fio"
    );
    let too_many = JobListProblem::TooManyClones {
        clones: 6000,
        limit: 5000,
    };
    let refused = cause_of("--name=a --numjobs=6000 --max-jobs=5000", &env);
    assert_eq!(refused, too_many.into());
}

#[test]
fn files_beyond_the_limit_are_refused() {
    let env = FakeEnv::new();
    assert!(try_run("--name=a --nrfiles=4194304", &env).is_ok());
    for (line, files) in [
        ("--name=a --nrfiles=4294967295", 4_294_967_295),
        ("--name=a --nrfiles=1048577 --numjobs=4", 4_194_308),
        ("--nrfiles=3m --name=a --name=b", 6_291_456),
    ] {
        let limit = 4_194_304;
        let too_many = JobListProblem::TooManyFiles { files, limit };
        assert_eq!(cause_of(line, &env), too_many.into(), "{line}");
    }
}

#[test]
fn sizes_beyond_the_longest_file_are_refused() {
    let env = FakeEnv::new();
    let is_too_long = |cause: &DiagnosticCause| {
        matches!(
            cause,
            DiagnosticCause::Conflict(OptionConflict::BeyondLongestFile { .. })
        )
    };
    for option in ["size", "filesize", "offset", "offset_increment"] {
        for value in ["18446744073709551615", "8192p"] {
            let line = format!("--name=a --size=1m --{option}={value}");
            assert!(is_too_long(&cause_of(&line, &env)), "{line}");
        }
    }
    let refused = cause_of("--name=a --filesize=0-18446744073709551615", &env);
    assert!(is_too_long(&refused), "{refused:?}");
    assert!(try_run("--name=a --filesize=9223372036854775807", &env).is_ok());
}
