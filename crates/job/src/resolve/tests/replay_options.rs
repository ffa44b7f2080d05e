//! Tests of the options of traces.

use super::{cause_of, is_wrong_value, job, no_effect, warning_causes};
use crate::diagnostic::{EngineConflict, OptionConflict, VerifyConflict};
use crate::env::FakeEnv;

#[test]
fn read_iolog_options_are_parsed_and_checked() {
    let replay =
        job("read_iolog=a:b\\:c\nreplay_scale=2\nreplay_align=4k\nreplay_skip=trim,sync").replay;
    let replay = replay.unwrap();
    assert_eq!(replay.traces, ["a", "b:c"]);
    assert_eq!(
        (replay.scale, replay.align_bytes, replay.speed_percent),
        (2, 4096, 100)
    );
    assert!(replay.skip.trim && replay.skip.sync && !replay.skip.read && !replay.skip.write);
    assert!(job("replay_scale=2").replay.is_none());
    let once = OptionConflict::TraceReplayedOnce { option: "loops" };
    assert_eq!(warning_causes("read_iolog=a\nloops=3"), [once.into()]);
    assert_eq!(
        warning_causes("replay_no_stall=1"),
        [no_effect("replay_no_stall", "read_iolog")]
    );
    let env = FakeEnv::new();
    let refused = |options: &str| cause_of(&format!("--name=a --read_iolog=t {options}"), &env);
    assert_eq!(refused("--verify=md5"), VerifyConflict::OfTrace.into());
    assert!(is_wrong_value(
        &refused("--replay_align=3k"),
        "replay_align"
    ));
    assert!(is_wrong_value(&refused("--replay_skip=all"), "replay_skip"));
    for (engine, options) in [("rbd", "--pool=p --rbdname=i"), ("rados", "--pool=p")] {
        let without_paths = EngineConflict::TraceWithoutPaths { engine };
        let line = format!("--ioengine={engine} {options}");
        assert_eq!(refused(&line), without_paths.into());
    }
}
