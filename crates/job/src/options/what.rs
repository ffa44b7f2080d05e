//! Options for the I/Os of a job: directions, block sizes, order, contents.

use super::given::{bounded, choice};
use super::{Builder, Given, Kind, Row, skew};
use crate::plan::*;
use crate::value::{self, Parsed, ValueError};

const U32: i64 = u32::MAX as i64;

const RW: &[(&str, ReadWrite)] = &[
    ("read", rw(Mode::Read, false)),
    ("write", rw(Mode::Write, false)),
    ("trim", rw(Mode::Trim, false)),
    ("randread", rw(Mode::Read, true)),
    ("randwrite", rw(Mode::Write, true)),
    ("randtrim", rw(Mode::Trim, true)),
    ("rw", rw(Mode::ReadWrite, false)),
    ("readwrite", rw(Mode::ReadWrite, false)),
    ("randrw", rw(Mode::ReadWrite, true)),
    ("trimwrite", rw(Mode::TrimWrite, false)),
    ("randtrimwrite", rw(Mode::TrimWrite, true)),
];

const fn rw(mode: Mode, random: bool) -> ReadWrite {
    ReadWrite { mode, random }
}

/// Rows of the option table.
pub const ROWS: &[Row] = &[
    Row::new(
        "rw",
        Kind::Words(
            &["read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "readwrite", "randrw", "trimwrite", "randtrimwrite"],
            ", perhaps with :N",
        ),
        "read",
        "Direction and order of I/O: read, write, trim, their rand- forms, and the mixes rw (readwrite), randrw, \
         trimwrite, randtrimwrite. A number behind a colon sets how many I/Os follow each random offset \
         (randread:8), or how many bytes a sequential job skips after each I/O (write:4k, read:-8k).",
        apply_rw,
    )
    .aliases(&["readwrite"]),
    Row::new(
        "rw_sequencer",
        Kind::Choice(&["sequential", "identical"]),
        "sequential",
        "What the I/Os between two random offsets of rw=randread:N do: go on behind the last, or repeat its offset.",
        |b, v| {
            v.choice_to(
                &mut b.job.workload.sequencer.kind,
                &[
                    ("sequential", SequencerKind::Sequential),
                    ("identical", SequencerKind::Identical),
                ],
            )
        },
    ),
    Row::new(
        "bs",
        Kind::SizeList,
        "4096",
        "Block size: how many bytes one I/O moves.",
        |b, v| {
            let base = b.bytes;
            value::directions(v.str(), &mut b.bs, |part| {
                at_least_one(part, value::bytes(part, base)?)
            })
        },
    )
    .aliases(&["blocksize"]),
    Row::new(
        "bsrange",
        Kind::SizeRangeList,
        "",
        "Block sizes drawn from a range, in steps of its lower end.",
        |b, v| {
            let base = b.bytes;
            let ranges = value::ranges(v.str(), |part| {
                at_least_one(part, value::bytes(part, base)?)
            })?;
            for (direction, range) in ranges {
                b.bsrange[direction] = Some(range);
            }
            Ok(())
        },
    )
    .aliases(&["blocksize_range"]),
    Row::new(
        "bssplit",
        Kind::Text,
        "",
        "A weighted mix of block sizes: size/percent:size/percent. Blank percentages share what is left; lists for \
         reads, writes and trims are separated by commas.",
        |b, v| {
            b.bssplit = Some(value::block_sizes(v.str(), b.bytes)?);
            Ok(())
        },
    ),
    Row::new(
        "bs_unaligned",
        Kind::Flag,
        "0",
        "Draw any size from bsrange, not only multiples of its lower end.",
        |b, v| v.flag_to(&mut b.job.workload.bs_unaligned),
    )
    .aliases(&["blocksize_unaligned"]),
    Row::new(
        "bs_is_seq_rand",
        Kind::Bool,
        "0",
        "Use the block size of reads for all sequential I/O and that of writes for all random I/O.",
        |b, v| v.bool_to(&mut b.job.workload.bs_is_seq_rand),
    ),
    Row::new(
        "ba",
        Kind::SizeList,
        "",
        "Alignment of random offsets; the smallest block size unless given. Turns the random map off.",
        |b, v| {
            let base = b.bytes;
            value::directions(v.str(), &mut b.job.workload.block_align, |part| {
                at_least_one(part, value::bytes(part, base)?)
            })
        },
    )
    .aliases(&["blockalign"]),
    Row::new(
        "rwmixread",
        Kind::Percent,
        "50",
        "Share of reads in a mix. The later of rwmixread and rwmixwrite wins.",
        |b, v| v.percent_to(&mut b.job.workload.rwmix_read_percent),
    ),
    Row::new(
        "rwmixwrite",
        Kind::Percent,
        "50",
        "Share of writes in a mix.",
        |b, v| {
            b.job.workload.rwmix_read_percent = 100 - value::percent(v.str())?;
            Ok(())
        },
    ),
    Row::new(
        "percentage_random",
        Kind::PercentList,
        "100",
        "In a random job, the share of I/Os at a random offset; the others follow their predecessor.",
        |b, v| v.percents_to(&mut b.job.workload.percentage_random),
    ),
    Row::new(
        "random_distribution",
        Kind::Words(
            &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"],
            ", with :parameters",
        ),
        "random",
        "Where random I/O goes: random (evenly), zipf:theta[:center], pareto:h[:center], normal:deviation[:center], \
         zoned:access%/size%:... or zoned_abs:access%/bytes:... All but random turn the random map off. As in fio, hot \
         blocks of zipf, pareto and normal are scattered over the file, so that a center places the hottest block alone; \
         unless the number of blocks is a power of two some are never used; and the deviation of normal is no standard \
         deviation: normal:0 has one of 8.3 % of the file before the blocks are scattered, normal:20 of 10.1 %, normal:50 \
         and more of 16.7 %.",
        apply_distribution,
    ),
    Row::new(
        "norandommap",
        Kind::Flag,
        "0",
        "Draw random offsets with replacement, so that blocks may be hit twice or never. Without it each block is used \
         once in a pass: of mixed sizes an I/O is cut short where the next block was used. Where reads and writes differ \
         in their smallest block, I/Os overlap and a pass ends early, as in fio; a direction that is not used does not \
         count, other than in fio.",
        |b, v| v.flag_to(&mut b.norandommap),
    ),
    Row::new(
        "softrandommap",
        Kind::Bool,
        "0",
        "Go without the random map where it finds no memory. Blocks of one size need none; mixed sizes need one bit for \
         each smallest block, up to 4 GiB.",
        |b, v| v.bool_to(&mut b.softrandommap),
    ),
    Row::new(
        "random_generator",
        Kind::Choice(&["tausworthe", "lfsr", "tausworthe64"]),
        "tausworthe",
        "The generator of random numbers.",
        |b, v| {
            v.choice_to(
                &mut b.job.workload.random_generator,
                &[
                    ("tausworthe", RandomGenerator::Tausworthe),
                    ("lfsr", RandomGenerator::Lfsr),
                    ("tausworthe64", RandomGenerator::Tausworthe64),
                ],
            )
        },
    )
    .accepted(
        "One generator of our own serves all three names; sequences are repeatable but not those of fio.",
    ),
    Row::new(
        "randrepeat",
        Kind::Bool,
        "1",
        "The same sequence of random offsets at every run.",
        |b, v| v.bool_to(&mut b.job.workload.randrepeat),
    ),
    Row::new(
        "allrandrepeat",
        Kind::Bool,
        "0",
        "Repeat everything that is drawn, not only offsets.",
        |b, v| v.bool_to(&mut b.job.workload.allrandrepeat),
    ),
    Row::new(
        "randseed",
        Kind::Int(0, i64::MAX),
        "",
        "Start of all random sequences.",
        |b, v| {
            b.job.workload.randseed = Some(value::bytes(v.str(), b.bytes)?);
            Ok(())
        },
    ),
    Row::new(
        "number_ios",
        Kind::Int(0, i64::MAX),
        "0",
        "End the job after this many I/Os, if nothing ends it before. 0 is no limit.",
        |b, v| {
            let number = v.int(0..=i64::MAX)? as u64;
            b.job.workload.number_ios = Some(number).filter(|number| *number > 0);
            Ok(())
        },
    ),
    Row::new(
        "fsync",
        Kind::Int(0, U32),
        "0",
        "Call fsync after this many writes. 0 is never. In a mix it follows those writes only, as in fio 3.42; fio 3.33 repeats it \
         after reads.",
        |b, v| v.u32_to(&mut b.job.workload.fsync_every, 0),
    ),
    Row::new(
        "fdatasync",
        Kind::Int(0, U32),
        "0",
        "Call fdatasync after this many writes. 0 is never. In a mix it follows those writes only, as in fio 3.42; fio 3.33 \
         repeats it after reads. As in fio, sync.total_ios of JSON leaves it out; sync.lat_ns.N counts it.",
        |b, v| v.u32_to(&mut b.job.workload.fdatasync_every, 0),
    ),
    Row::new(
        "sync_file_range",
        Kind::Text,
        "",
        "Call sync_file_range after every N writes: wait_before, write and wait_after joined by commas, then :N. \
         It counts as fdatasync does.",
        apply_sync_file_range,
    ),
    Row::new(
        "end_fsync",
        Kind::Bool,
        "0",
        "Call fsync at the end of each loop; its time is part of the runtime.",
        |b, v| v.bool_to(&mut b.job.workload.end_fsync),
    ),
    Row::new(
        "fsync_on_close",
        Kind::Bool,
        "0",
        "Call fsync at the end of each loop and whenever a file is closed.",
        |b, v| v.bool_to(&mut b.job.workload.fsync_on_close),
    ),
    Row::new(
        "zonemode",
        Kind::Choice(&["none", "strided"]),
        "none",
        "strided works on one zone of zonerange bytes, skips zoneskip bytes, and goes on in the next. zbd is refused: zoned \
         block devices are not supported.",
        |b, v| match v.str() {
            "zbd" => Err(ValueError::new("zoned block devices are not supported")
                .help("zonemode=strided works on ordinary devices")),
            word => {
                b.zones.strided = choice(word, &[("none", false), ("strided", true)])?;
                Ok(())
            }
        },
    ),
    Row::new(
        "zonesize",
        Kind::Size,
        "0",
        "Bytes of I/O in one zone before the next one is begun.",
        |b, v| v.bytes_to(&mut b.zones.size, b.bytes),
    ),
    Row::new(
        "zonerange",
        Kind::Size,
        "",
        "Length of a zone in bytes; zonesize unless given.",
        |b, v| v.bytes_to(&mut b.zones.range, b.bytes),
    ),
    Row::new(
        "zoneskip",
        Kind::Size,
        "0",
        "Bytes skipped between two zones.",
        |b, v| v.bytes_to(&mut b.zones.skip, b.bytes),
    ),
    Row::new(
        "zero_buffers",
        Kind::Flag,
        "0",
        "Write zeros. Many devices and file systems store them for nothing, so results may flatter.",
        |b, v| v.flag_to(&mut b.buffers.zero),
    ),
    Row::new(
        "refill_buffers",
        Kind::Flag,
        "0",
        "Fill the buffer with new random bytes for every write.",
        |b, v| v.flag_to(&mut b.buffers.refill),
    ),
    Row::new(
        "scramble_buffers",
        Kind::Bool,
        "1",
        "Change a few words of the buffer for every write, so that no two blocks are equal.",
        |b, v| v.not_bool_to(&mut b.buffers.no_scramble),
    ),
    Row::new(
        "buffer_pattern",
        Kind::Pattern,
        "",
        "Write these bytes over and over: at most 128 KiB of them, as in newer fio (512 in 3.33).",
        |b, v| {
            let read = |path: &str| v.env.read_start(path, value::MAX_PATTERN_BYTES).ok();
            b.buffers.pattern = Some(value::pattern(v.str(), read)?);
            Ok(())
        },
    ),
    Row::new(
        "buffer_compress_percentage",
        Kind::Percent,
        "0",
        "Make write buffers compressible by about this much.",
        |b, v| v.percent_to(&mut b.job.workload.buffers.compress_percent),
    ),
    Row::new(
        "buffer_compress_chunk",
        Kind::Size,
        "512",
        "Length of the stretches in which random and compressible bytes alternate.",
        |b, v| v.bytes_to(&mut b.job.workload.buffers.compress_chunk_bytes, b.bytes),
    ),
    Row::new(
        "dedupe_percentage",
        Kind::Percent,
        "0",
        "Share of written blocks that repeat an earlier one.",
        |b, v| v.percent_to(&mut b.job.workload.buffers.dedupe_percent),
    ),
    Row::new(
        "dedupe_mode",
        Kind::Choice(&["repeat", "working_set"]),
        "repeat",
        "Which block is repeated: the previous one, or one of a working set.",
        |b, v| {
            v.choice_to(
                &mut b.buffers.working_set,
                &[("repeat", false), ("working_set", true)],
            )
        },
    ),
    Row::new(
        "dedupe_working_set_percentage",
        Kind::Percent,
        "5",
        "Size of the working set of dedupe_mode=working_set, in per cent of the job's size.",
        |b, v| {
            b.buffers.working_set_percent = Some(value::percent(v.str())?);
            Ok(())
        },
    ),
    Row::new(
        "dedupe_global",
        Kind::Bool,
        "0",
        "Share the working set with all jobs that say so too. Needs dedupe_mode=working_set.",
        |b, v| v.bool_to(&mut b.job.workload.buffers.dedupe_global),
    ),
];

fn at_least_one(text: &str, bytes: u64) -> Parsed<u64> {
    match bytes {
        0 => Err(ValueError::new(format!("`{text}` is less than 1"))),
        _ => Ok(bytes),
    }
}

fn apply_rw(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let (word, number) = match text.split_once(':') {
        Some((word, number)) => (word, Some(number)),
        None => (text, None),
    };
    let rw = choice(word, RW).map_err(|error| error.within(text, word))?;
    b.job.workload.rw = rw;
    let sequencer = &mut b.job.workload.sequencer;
    (sequencer.every, sequencer.skip_bytes) = (1, 0);
    let Some(number) = number else {
        return Ok(());
    };
    let wrong = |error: ValueError| error.within(text, number);
    if rw.random {
        sequencer.every = bounded(number, &(1..=U32)).map_err(wrong)? as u32;
    } else {
        sequencer.skip_bytes = value::signed_bytes(number, b.bytes).map_err(wrong)?;
    }
    Ok(())
}

fn apply_distribution(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let (word, rest) = match text.split_once([':', '=']) {
        Some((word, rest)) => (word, Some(rest)),
        None => (text, None),
    };
    let in_rest = |error: ValueError| error.within(text, rest.unwrap_or(text));
    b.job.workload.distribution = match (word, rest) {
        ("random", None) => Distribution::Random,
        ("zoned", Some(zones)) => {
            Distribution::Zoned(value::percent_zones(zones).map_err(in_rest)?)
        }
        ("zoned_abs", Some(zones)) => {
            Distribution::ZonedAbs(value::byte_zones(zones, b.bytes).map_err(in_rest)?)
        }
        ("zoned" | "zoned_abs", None) => {
            return Err(ValueError::new("the zones are missing")
                .help("write them as `zoned:60/10:40/90`, accesses and sizes in per cent"));
        }
        ("zipf" | "pareto" | "normal" | "gauss", rest) => {
            skew::skewed(word, rest).map_err(|error| match rest {
                Some(rest) => error.within(text, rest),
                None => error,
            })?
        }
        _ => {
            let words = ["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"];
            return choice(word, &words.map(|word| (word, ())));
        }
    };
    Ok(())
}

fn apply_sync_file_range(b: &mut Builder, v: &Given<'_>) -> Parsed<()> {
    let text = v.str();
    let (flags, every) = match text.rsplit_once(':') {
        Some((flags, every)) => (flags, every),
        None => {
            return Err(ValueError::new("the number of writes is missing")
                .help("write it behind a colon: `sync_file_range=write:8`"));
        }
    };
    let mut range = SyncFileRange {
        wait_before: false,
        write: false,
        wait_after: false,
        every: bounded(every, &(1..=U32)).map_err(|error| error.within(text, every))? as u32,
    };
    for flag in flags.split([',', ':']) {
        let field = choice(flag, &[("wait_before", 0), ("write", 1), ("wait_after", 2)])
            .map_err(|error| error.within(text, flag))?;
        match field {
            0 => range.wait_before = true,
            1 => range.write = true,
            _ => range.wait_after = true,
        }
    }
    b.job.workload.sync_file_range = Some(range);
    Ok(())
}
