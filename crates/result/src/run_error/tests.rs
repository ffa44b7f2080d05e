//! Errno, JSON and general texts of errors.

use super::{RunError, SystemFailure, TargetProblem, UnsupportedFeature};
use iosonde_job::errno;

#[test]
fn errno_is_that_of_the_failed_call() {
    let on_path = |cause| RunError::unusable_target("/t".to_owned(), cause);
    let cases = [
        (on_path(TargetProblem::NoSize), None),
        (
            on_path(TargetProblem::NoReplayDevice { errno: 2 }),
            Some(errno::ENOENT),
        ),
        (
            UnsupportedFeature::FileNotRegistered {
                failure: SystemFailure::Errno(errno::EACCES),
            }
            .into(),
            Some(errno::EACCES),
        ),
        (RunError::Interrupted, None),
    ];
    for (error, expected) in cases {
        assert_eq!(error.errno(), expected, "{error}");
    }
}

#[test]
fn json_of_an_error_holds_text_and_data() {
    let error = RunError::DirectRefused {
        path: "/t".to_owned(),
        errno: errno::EINVAL,
    };
    let expected = serde_json::json!({"target": {
        "path": "/t",
        "problem": "it cannot be opened with O_DIRECT (EINVAL)",
        "remedy": "use direct=0: this target does not accept O_DIRECT",
        "cause": {"direct_refused": {"errno": 22}},
    }});
    assert_eq!(serde_json::to_value(&error).unwrap(), expected);
    let feature = RunError::from(UnsupportedFeature::MixedSimulation);
    let expected = serde_json::json!({"unsupported": {
        "problem": "the run mixes simulated jobs with other jobs",
        "remedy": "use ioengine=sim in all jobs or in none",
        "cause": "mixed_simulation",
    }});
    assert_eq!(serde_json::to_value(&feature).unwrap(), expected);
}

#[test]
fn json_without_data_is_read_as_text() {
    let row = r#"{"target":{"path":"/t","problem":"cannot open it: EIO","remedy":"see dmesg"}}"#;
    let error: RunError = serde_json::from_str(row).unwrap();
    assert_eq!(error.to_string(), "/t: cannot open it: EIO");
    assert_eq!(error.remedy(), "see dmesg");
    assert_eq!(serde_json::to_string(&error).unwrap(), row);
    let row = r#"{"unsupported":{"problem":"no io_uring","remedy":"use libaio"}}"#;
    let error: RunError = serde_json::from_str(row).unwrap();
    assert_eq!(serde_json::to_string(&error).unwrap(), row);
    for row in [r#""nothing_done""#, r#""interrupted""#] {
        let error: RunError = serde_json::from_str(row).unwrap();
        assert_eq!(serde_json::to_string(&error).unwrap(), row);
    }
}

#[test]
fn json_with_an_unknown_cause_is_read_as_text() {
    let rows = [
        (
            r#"{"target":{"path":"/t","problem":"p","remedy":"r","cause":{"of_2030":1}}}"#,
            "/t: p",
        ),
        (
            r#"{"unsupported":{"problem":"p","remedy":"r","cause":"of_2030"}}"#,
            "p",
        ),
    ];
    for (row, text) in rows {
        let error: RunError = serde_json::from_str(row).unwrap();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.remedy(), "r");
    }
}

#[test]
fn general_errors_keep_their_texts() {
    let text = |text: &str| text.to_owned();
    let cases = [
        (
            RunError::Target {
                path: text("/t"),
                problem: text("no"),
                remedy: text("yes"),
            },
            "/t: no",
            "yes",
        ),
        (
            RunError::NoSpace {
                path: text("/t"),
                needed_bytes: 2,
                available_bytes: 1,
            },
            "/t: the job needs 2 bytes, but only 1 bytes are available",
            "use a smaller size=, fewer jobs, or a target with more free space",
        ),
        (
            RunError::Refused {
                device: text("/dev/x"),
                found: text("it is mounted"),
                remedy: text("unmount it"),
            },
            "refusing to write to /dev/x: it is mounted",
            "unmount it",
        ),
        (
            RunError::Unsupported {
                problem: text("no"),
                remedy: text("yes"),
            },
            "no",
            "yes",
        ),
        (
            RunError::NoCompletions,
            "no I/O completed before the run time ended",
            "use a longer runtime; if the target still completes no I/O, see the kernel log \
             (dmesg)",
        ),
        (
            RunError::Interrupted,
            "interrupted before anything was measured",
            "run it again",
        ),
    ];
    for (error, text, remedy) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.remedy(), remedy);
    }
}

#[test]
fn target_option_errors_name_the_option() {
    let text = |text: &str| text.to_owned();
    let cases = [
        (
            UnsupportedFeature::OtherCephCluster {
                job: text("a"),
                option: text("conf"),
                value: text("/x"),
            },
            "job a uses another Ceph cluster (conf=/x) than the target",
            "omit conf= in the job, and set the cluster with --ceph-conf FILE",
        ),
        (
            UnsupportedFeature::OptionOfOtherTarget {
                job: text("a"),
                option: text("pool"),
                value: text("x"),
                other_source: text("the target"),
                other_value: text("y"),
            },
            "job a: pool=x, but the target is y",
            "omit pool= in the job, or use the same value for both",
        ),
        (
            UnsupportedFeature::NoPool { job: text("a") },
            "job a: the option pool= is missing",
            "add pool=",
        ),
        (
            UnsupportedFeature::NotCephTarget { target: text("/t") },
            "/t is not a Ceph target",
            "use rados://POOL or rbd://POOL/IMAGE",
        ),
        (
            UnsupportedFeature::UnknownScheme {
                target: text("s3://x"),
                scheme: text("s3"),
            },
            "s3://x: targets with the scheme s3:// are not supported",
            "name a directory, a file or a block device",
        ),
    ];
    for (feature, text, remedy) in cases {
        let error = RunError::from(feature);
        assert_eq!(error.to_string(), text);
        assert_eq!(error.remedy(), remedy);
    }
}
