//! `thinktime` and its kin: pauses rule how many I/Os there are, so that both programs must count about the same.

use iosonde_e2e::tree::number;
use iosonde_e2e::{Program, Scratch, ensure, is_full, one_good_try, ours};

const DEPTH: &str = "--ioengine=libaio --direct=1 --iodepth=8";

/// Reads and writes of a job, of two seconds unless its options say otherwise.
fn counted(program: Program, options: &str) -> f64 {
    let scratch = Scratch::shared();
    let line = format!("--name=job --size=1m --time_based --runtime=2 {options}");
    let document = program.line(&scratch, &line).json();
    let of = |kind: &str| number(&document, &format!("/jobs/0/{kind}/total_ios"));
    of("read") + of("write")
}

fn same(options: &str) {
    as_many(options, options);
}

/// The subject must make about as many I/Os as fio, whose options may be others.
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
    after_each_block "--rw=randread --thinktime=20ms"
    after_four_blocks "--rw=randwrite --thinktime=20ms --thinktime_blocks=4"
    in_a_mix "--rw=randrw --thinktime=20ms --thinktime_blocks=4"
    after_some_time "--rw=randread --rate_iops=1000 --thinktime=500ms --thinktime_iotime=200ms"
    after_blocks_or_some_time "--rw=randread --thinktime=50ms --thinktime_iotime=1s --thinktime_blocks=10"
}

/// Whatever part of a pause is spent spinning, it is as long. fio 3.33 is not asked to spin: when somebody else has the
/// processor for so long that it spins past the end of the pause, it sleeps for ever.
#[test]
fn partly_spinning() {
    ours!();
    let pause = "--rw=randread --thinktime=20ms";
    as_many(pause, &format!("{pause} --thinktime_spin=15ms"));
}

/// The blocks in flight when a pause is due count for the next.
#[test]
fn at_depth() {
    for kind in ["complete", "issue"] {
        let all = if is_full() { &[1, 4, 20][..] } else { &[4] };
        for blocks in all {
            same(&format!(
                "--rw=randread {DEPTH} --thinktime=20ms --thinktime_blocks={blocks} --thinktime_blocks_type={kind} --runtime=1"
            ));
        }
    }
}
