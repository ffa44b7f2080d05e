//! Tests of options that have no effect in a job, and of options that are an error without another.

use super::{errors, warnings};

#[test]
fn rate_and_rate_iops_of_other_directions_exclude_each_other() {
    assert!(errors("rate=1m,\nrate_iops=,4").contains("cannot be combined"));
    assert!(errors("rate_min=1\nrate_iops_min=5").contains("cannot be combined"));
    assert_eq!(warnings("rate=1m\nrate_iops_min=5"), "");
}

#[test]
fn zonesize_without_zonemode_is_an_error() {
    assert!(errors("zonesize=64k").contains("zonemode=strided"));
    assert!(errors("zonesize=64k\nzonemode=none").contains("zonemode=strided"));
    assert_eq!(warnings("zonesize=64k\nzonemode=strided"), "");
    assert_eq!(
        warnings("zoneskip=64k\nzonecapacity=16k\nmax_open_zones=3"),
        ""
    );
}

#[test]
fn size_below_the_block_is_an_error_also_with_filesize() {
    assert!(errors("size=4000\nbs=8k\nfilesize=64k").contains("smaller than the smallest block"));
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
        assert_eq!(warnings(option), "", "{option}");
    }
    let logged = "log_alternate_epoch_clock_id=8\nlog_alternate_epoch=1\nwrite_bw_log=a";
    assert!(errors(logged).contains("CLOCK_REALTIME"));
    assert!(errors("zone_reset_frequency=1.1").contains("between 0 and 1"));
    assert!(errors("log_compression=512").contains("1024"));
    assert!(errors("test-duration=a").contains("not a time"));
    assert!(errors("merge_blktrace_iters=a").contains("not a number"));
}

#[test]
fn verify_only_without_a_method_is_an_error_for_writers() {
    assert!(errors("verify_only\nrw=write").contains("without `verify`"));
    assert_eq!(warnings("verify_only\nrw=read"), "");
    assert_eq!(warnings("verify_only=0\nrw=write"), "");
    assert_eq!(warnings("verify_only\nrw=write\nverify=md5"), "");
}
