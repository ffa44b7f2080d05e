//! `atomic` and `uncached`: flags of single reads and writes.

use super::*;

#[test]
fn atomic_needs_direct_writes_of_a_capable_engine() {
    for engine in ["io_uring", "libaio", "pvsync2", "auto"] {
        let line = format!("rw=write\natomic=1\ndirect=1\nioengine={engine}");
        assert!(job(&line).io.atomic, "{engine}");
    }
    let of_psync = EngineConflict::UnsupportedWithEngine {
        option: "atomic",
        engine: "psync",
    };
    assert_eq!(
        error_cause("rw=write\natomic=1\ndirect=1\nioengine=psync"),
        of_psync.into()
    );
    let buffered = OptionConflict::Needs {
        setting: "atomic=1".to_owned(),
        missing: "direct=1",
    };
    assert_eq!(
        error_cause("rw=write\natomic=1\nioengine=io_uring"),
        buffered.into()
    );
}

#[test]
fn atomic_of_a_reader_has_no_effect() {
    assert!(!job("rw=read\natomic=1\nioengine=libaio").io.atomic);
    assert!(!job("rw=write\natomic=0").io.atomic);
}

#[test]
fn uncached_flag_applies_to_buffered_io_only() {
    assert!(job("uncached=1\nioengine=io_uring").io.uncached);
    assert!(job("uncached=1\nioengine=pvsync2").io.uncached);
    let direct = "uncached=1\nioengine=io_uring\ndirect=1";
    assert!(!job(direct).io.uncached);
    assert_eq!(warning_causes(direct), [no_effect("uncached", "direct=0")]);
    assert_eq!(
        job("uncached=0\nioengine=io_uring").io,
        job("ioengine=io_uring").io
    );
}
