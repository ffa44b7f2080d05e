//! Tests of options that have no effect in a job, and of options that are an error without another.

use super::{error_cause, excluded, is_wrong_value, no_effect, warning_causes};
use crate::diagnostic::{OptionConflict, VerifyConflict};

#[test]
fn rate_and_rate_iops_of_other_directions_exclude_each_other() {
    assert_eq!(
        error_cause("rate=1m,\nrate_iops=,4"),
        excluded(["rate", "rate_iops"])
    );
    assert_eq!(
        error_cause("rate_min=1\nrate_iops_min=5"),
        excluded(["rate_min", "rate_iops_min"])
    );
    assert!(warning_causes("rate=1m\nrate_iops_min=5").is_empty());
}

#[test]
fn zonesize_without_zonemode_is_an_error() {
    let without = no_effect("zonesize", "zonemode=strided");
    assert_eq!(error_cause("zonesize=64k"), without);
    assert_eq!(error_cause("zonesize=64k\nzonemode=none"), without);
    assert!(warning_causes("zonesize=64k\nzonemode=strided").is_empty());
    let accepted = "zoneskip=64k\nzonecapacity=16k\nmax_open_zones=3";
    assert!(warning_causes(accepted).is_empty());
}

#[test]
fn size_below_the_block_is_an_error_also_with_filesize() {
    let below = OptionConflict::SizeBelowBlock {
        bytes: 4000,
        block_bytes: 8192,
    };
    assert_eq!(error_cause("size=4000\nbs=8k\nfilesize=64k"), below.into());
}

#[test]
fn options_without_effect_are_accepted() {
    for option in [
        "bwavgtime=0",
        "iopsavgtime=0",
        "log_alternate_epoch_clock_id=8",
        "log_alternate_epoch_clock_id=8\nlog_alternate_epoch=1",
        "merge_blktrace_iters=10:90",
        "trim_backlog=3",
        "trim_verify_zero=0",
        "do_verify=00",
    ] {
        assert!(warning_causes(option).is_empty(), "{option}");
    }
    let logged = "log_alternate_epoch_clock_id=8\nlog_alternate_epoch=1\nwrite_bw_log=a";
    assert_eq!(
        error_cause(logged),
        OptionConflict::UnsupportedLogClock.into()
    );
    for (line, option) in [
        ("zone_reset_frequency=1.1", "zone_reset_frequency"),
        ("log_compression=512", "log_compression"),
        ("test-duration=a", "test-duration"),
        ("merge_blktrace_iters=a", "merge_blktrace_iters"),
    ] {
        let refused = error_cause(line);
        assert!(is_wrong_value(&refused, option), "{refused:?}");
    }
}

#[test]
fn verify_only_without_a_method_is_an_error_for_writers() {
    assert_eq!(
        error_cause("verify_only\nrw=write"),
        VerifyConflict::OnlyWithoutMethod.into()
    );
    assert!(warning_causes("verify_only\nrw=read").is_empty());
    assert!(warning_causes("verify_only=0\nrw=write").is_empty());
    assert!(warning_causes("verify_only\nrw=write\nverify=md5").is_empty());
}
