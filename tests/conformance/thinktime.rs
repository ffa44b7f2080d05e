//! `thinktime` and its options: pauses determine the number of I/Os of both programs.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, is_full, one_good_try, ours};

const DEPTH: &str = "--ioengine=libaio --direct=1 --iodepth=8";

/// I/Os of a job of two seconds, unless its options set another time.
fn counted(program: Program, options: &str) -> f64 {
    let scratch = Scratch::shared();
    let line = format!("--name=job --size=1m --time_based --runtime=2 {options}");
    let document = program.line(&scratch, &line).json();
    let count_ios = |kind: &str| number(&document, &format!("/jobs/0/{kind}/total_ios"));
    count_ios("read") + count_ios("write")
}

fn same(options: &str) {
    as_many(options, options);
}

/// The subject must complete about as many I/Os as fio, which may have other options.
fn as_many(of_fio: &str, options: &str) {
    one_good_try(|| {
        let reference = counted(Program::Fio, of_fio);
        let subject = counted(Program::subject(), options);
        let ratio = subject / reference;
        ensure((0.6..1.6).contains(&ratio), || {
            format!("{options}: {reference} by fio, {subject} by the subject")
        })
    });
}

macro_rules! cases {
    ($($name:ident $options:literal)+) => {
        $(#[test] fn $name() { same($options); })+
    };
}

cases! {
    thinktime_after_each_block "--rw=randread --thinktime=20ms"
    thinktime_after_four_blocks "--rw=randwrite --thinktime=20ms --thinktime_blocks=4"
    thinktime_in_read_write_mix "--rw=randrw --thinktime=20ms --thinktime_blocks=4"
    thinktime_after_iotime
        "--rw=randread --rate_iops=1000 --thinktime=500ms --thinktime_iotime=200ms"
    thinktime_after_blocks_or_iotime
        "--rw=randread --thinktime=50ms --thinktime_iotime=1s --thinktime_blocks=10"
}

/// Spinning during a part of a pause must not change its length. fio 3.33 does not spin here: if it
/// loses the CPU beyond the end of the pause, it sleeps forever.
#[test]
fn spinning_pause_has_full_length() {
    ours!();
    let pause = "--rw=randread --thinktime=20ms";
    as_many(pause, &format!("{pause} --thinktime_spin=15ms"));
}

/// Blocks in flight when a pause is due count for the next one.
#[test]
fn thinktime_at_depth_matches_fio() {
    for kind in ["complete", "issue"] {
        let all = if is_full() { &[1, 4, 20][..] } else { &[4] };
        for blocks in all {
            same(&format!(
                "--rw=randread {DEPTH} --thinktime=20ms --thinktime_blocks={blocks} \
                 --thinktime_blocks_type={kind} --runtime=1"
            ));
        }
    }
}
