//! Options for the I/Os of a job: directions, block sizes, order, contents.

use super::option_value::{bounded, choice};
use super::{JobBuilder, OptionRow, OptionValue, ValueKind, skew};
use crate::plan::*;
use crate::value::{self, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "rw",
        ValueKind::Words(
            &[
                "read",
                "write",
                "trim",
                "randread",
                "randwrite",
                "randtrim",
                "rw",
                "readwrite",
                "randrw",
                "trimwrite",
                "randtrimwrite",
            ],
            ", perhaps with :N",
        ),
        "read",
        "Direction and order of I/O: read, write, trim, their rand- forms, and the mixes rw \
         (readwrite), randrw, trimwrite, randtrimwrite. A number behind a colon sets how many I/Os \
         follow each random offset (randread:8), or how many bytes a sequential job skips after \
         each I/O (write:4k, read:-8k).",
        apply_rw,
    )
    .aliases(&["readwrite"]),
    OptionRow::new(
        "rw_sequencer",
        ValueKind::Choice(&["sequential", "identical"]),
        "sequential",
        "Offsets between two random offsets of rw=randread:N: continue after the last I/O, or \
         repeat its offset.",
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
    OptionRow::new(
        "bs",
        ValueKind::SizeList,
        "4096",
        "Block size: bytes per I/O.",
        |b, v| {
            let base = b.bytes;
            value::directions(v.str(), &mut b.bs, |part| {
                at_least_one(part, value::bytes(part, base)?)
            })
        },
    )
    .aliases(&["blocksize"]),
    OptionRow::new(
        "bsrange",
        ValueKind::SizeRangeList,
        "",
        "Range of random block sizes, multiples of its lower end.",
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
    OptionRow::new(
        "bssplit",
        ValueKind::Text,
        "",
        "A weighted mix of block sizes: size/percent:size/percent. Blank percentages share the \
         remainder; lists for reads, writes and trims are separated by commas.",
        |b, v| {
            b.bssplit = Some(value::block_sizes(v.str(), b.bytes)?);
            Ok(())
        },
    ),
    OptionRow::new(
        "bs_unaligned",
        ValueKind::Flag,
        "0",
        "Use any size of bsrange, not only multiples of its lower end.",
        |b, v| v.flag_to(&mut b.job.workload.bs_unaligned),
    )
    .aliases(&["blocksize_unaligned"]),
    OptionRow::new(
        "bs_is_seq_rand",
        ValueKind::Bool,
        "0",
        "Use the block size of reads for all sequential I/O and that of writes for all random I/O.",
        |b, v| v.bool_to(&mut b.job.workload.bs_is_seq_rand),
    ),
    OptionRow::new(
        "ba",
        ValueKind::SizeList,
        "",
        "Alignment of random offsets. The default is the smallest block size. Disables the random \
         map.",
        |b, v| {
            let base = b.bytes;
            value::directions(v.str(), &mut b.job.workload.block_align, |part| {
                at_least_one(part, value::bytes(part, base)?)
            })
        },
    )
    .aliases(&["blockalign"]),
    OptionRow::new(
        "rwmixread",
        ValueKind::Percent,
        "50",
        "Percentage of reads in a mix. The later of rwmixread and rwmixwrite wins.",
        |b, v| v.percent_to(&mut b.job.workload.rwmix_read_percent),
    ),
    OptionRow::new(
        "rwmixwrite",
        ValueKind::Percent,
        "50",
        "Percentage of writes in a mix.",
        |b, v| {
            b.job.workload.rwmix_read_percent = 100 - value::percent(v.str())?;
            Ok(())
        },
    ),
    OptionRow::new(
        "percentage_random",
        ValueKind::PercentList,
        "100",
        "Percentage of I/Os of a random job at a random offset; the others are sequential.",
        |b, v| v.percents_to(&mut b.job.workload.percentage_random),
    ),
    OptionRow::new(
        "random_distribution",
        ValueKind::Words(
            &["random", "zipf", "pareto", "normal", "zoned", "zoned_abs"],
            ", with :parameters",
        ),
        "random",
        "Distribution of random offsets: random (uniform), zipf:theta[:center], pareto:h[:center], \
         normal:deviation[:center], zoned:access%/size%:... or zoned_abs:access%/bytes:... All but \
         random disable the random map. As in fio, hot blocks of zipf, pareto and normal are \
         scattered over the file, so that a center places the hottest block alone; unless the \
         number of blocks is a power of two some are never used; and the deviation of normal is no \
         standard deviation: normal:0 has one of 8.3 % of the file before the blocks are \
         scattered, normal:20 of 10.1 %, normal:50 and more of 16.7 %.",
        apply_distribution,
    ),
    OptionRow::new(
        "norandommap",
        ValueKind::Flag,
        "0",
        "Choose random offsets with replacement, so that blocks may be used twice or never. \
         Without it each block is used once per pass: with mixed sizes an I/O is shortened if the \
         next block was already used. Where reads and writes differ in their smallest block, I/Os \
         overlap and a pass ends early, as in fio; a direction that is not used does not count, \
         other than in fio.",
        |b, v| v.flag_to(&mut b.norandommap),
    ),
    OptionRow::new(
        "softrandommap",
        ValueKind::Bool,
        "0",
        "Go without the random map where it finds no memory. Blocks of one size need none; mixed \
         sizes need one bit for each smallest block, up to 4 GiB.",
        |b, v| v.bool_to(&mut b.softrandommap),
    ),
    OptionRow::new(
        "random_generator",
        ValueKind::Choice(&["tausworthe", "lfsr", "tausworthe64"]),
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
        "All three names select one generator of iosonde; its sequences are repeatable, but not \
         those of fio.",
    ),
    OptionRow::new(
        "randrepeat",
        ValueKind::Bool,
        "1",
        "Use the same sequence of random offsets in every run.",
        |b, v| v.bool_to(&mut b.job.workload.randrepeat),
    ),
    OptionRow::new(
        "allrandrepeat",
        ValueKind::Bool,
        "0",
        "Repeat all random choices, not only offsets.",
        |b, v| v.bool_to(&mut b.job.workload.allrandrepeat),
    ),
    OptionRow::new(
        "randseed",
        ValueKind::Int(0, i64::MAX),
        "",
        "Seed of all random sequences.",
        |b, v| {
            b.job.workload.randseed = Some(value::bytes(v.str(), b.bytes)?);
            Ok(())
        },
    ),
    OptionRow::new(
        "number_ios",
        ValueKind::Int(0, i64::MAX),
        "0",
        "Maximum number of I/Os of the job. 0: no limit.",
        |b, v| {
            let number = v.int(0..=i64::MAX)? as u64;
            b.job.workload.number_ios = Some(number).filter(|number| *number > 0);
            Ok(())
        },
    ),
    OptionRow::new(
        "fsync",
        ValueKind::Int(0, U32),
        "0",
        "Call fsync after this many writes. 0 is never. In a mix it follows those writes only, as \
         in fio 3.42; fio 3.33 repeats it after reads.",
        |b, v| v.u32_to(&mut b.job.workload.fsync_every, 0),
    ),
    OptionRow::new(
        "fdatasync",
        ValueKind::Int(0, U32),
        "0",
        "Call fdatasync after this many writes. 0 is never. In a mix it follows those writes only, \
         as in fio 3.42; fio 3.33 repeats it after reads. As in fio, sync.total_ios of JSON leaves \
         it out; sync.lat_ns.N counts it.",
        |b, v| v.u32_to(&mut b.job.workload.fdatasync_every, 0),
    ),
    OptionRow::new(
        "sync_file_range",
        ValueKind::Text,
        "",
        "Call sync_file_range after every N writes: wait_before, write and wait_after joined by \
         commas, then :N. It counts as fdatasync does.",
        apply_sync_file_range,
    ),
    OptionRow::new(
        "end_fsync",
        ValueKind::Bool,
        "0",
        "Call fsync at the end of each loop; its time is part of the runtime.",
        |b, v| v.bool_to(&mut b.job.workload.end_fsync),
    ),
    OptionRow::new(
        "fsync_on_close",
        ValueKind::Bool,
        "0",
        "Call fsync at the end of each loop and whenever a file is closed.",
        |b, v| v.bool_to(&mut b.job.workload.fsync_on_close),
    ),
    OptionRow::new(
        "zonemode",
        ValueKind::Choice(&["none", "strided"]),
        "none",
        "strided: I/O in one zone of zonerange bytes, then skip zoneskip bytes to the next zone. \
         zbd is refused: zoned block devices are not supported.",
        |b, v| match v.str() {
            "zbd" => Err(ValueError::new("zoned block devices are not supported")
                .help("zonemode=strided works on ordinary devices")),
            word => {
                b.zones.strided = choice(word, &[("none", false), ("strided", true)])?;
                Ok(())
            }
        },
    ),
    OptionRow::new(
        "zonesize",
        ValueKind::Size,
        "0",
        "Bytes of I/O per zone before the next zone.",
        |b, v| v.bytes_to(&mut b.zones.size, b.bytes),
    ),
    OptionRow::new(
        "zonerange",
        ValueKind::Size,
        "",
        "Length of a zone in bytes. The default is zonesize.",
        |b, v| v.bytes_to(&mut b.zones.range, b.bytes),
    ),
    OptionRow::new(
        "zoneskip",
        ValueKind::Size,
        "0",
        "Bytes skipped between two zones.",
        |b, v| v.bytes_to(&mut b.zones.skip, b.bytes),
    ),
    OptionRow::new(
        "zero_buffers",
        ValueKind::Flag,
        "0",
        "Write zeros. Many devices and file systems do not store zeros, so results may be too \
         high.",
        |b, v| v.flag_to(&mut b.buffers.zero),
    ),
    OptionRow::new(
        "refill_buffers",
        ValueKind::Flag,
        "0",
        "Fill the buffer with new random bytes for every write.",
        |b, v| v.flag_to(&mut b.buffers.refill),
    ),
    OptionRow::new(
        "scramble_buffers",
        ValueKind::Bool,
        "1",
        "Change a few words of the buffer for every write, so that no two blocks are equal.",
        |b, v| v.not_bool_to(&mut b.buffers.no_scramble),
    ),
    OptionRow::new(
        "buffer_pattern",
        ValueKind::Pattern,
        "",
        "Fill write buffers with this repeated pattern of at most 128 KiB, as in newer fio (512 \
         bytes in 3.33).",
        |b, v| {
            let read = |path: &str| v.env.read_start(path, value::MAX_PATTERN_BYTES).ok();
            b.buffers.pattern = Some(value::pattern(v.str(), read)?);
            Ok(())
        },
    ),
    OptionRow::new(
        "buffer_compress_percentage",
        ValueKind::Percent,
        "0",
        "Compressibility of write buffers, in per cent.",
        |b, v| v.percent_to(&mut b.job.workload.buffers.compress_percent),
    ),
    OptionRow::new(
        "buffer_compress_chunk",
        ValueKind::Size,
        "512",
        "Length of the chunks in which random and compressible bytes alternate.",
        |b, v| v.bytes_to(&mut b.job.workload.buffers.compress_chunk_bytes, b.bytes),
    ),
    OptionRow::new(
        "dedupe_percentage",
        ValueKind::Percent,
        "0",
        "Percentage of written blocks that repeat an earlier block.",
        |b, v| v.percent_to(&mut b.job.workload.buffers.dedupe_percent),
    ),
    OptionRow::new(
        "dedupe_mode",
        ValueKind::Choice(&["repeat", "working_set"]),
        "repeat",
        "Repeated block: the previous one, or one of a working set.",
        |b, v| {
            v.choice_to(
                &mut b.buffers.working_set,
                &[("repeat", false), ("working_set", true)],
            )
        },
    ),
    OptionRow::new(
        "dedupe_working_set_percentage",
        ValueKind::Percent,
        "5",
        "Size of the working set of dedupe_mode=working_set, in per cent of the job's size.",
        |b, v| {
            b.buffers.working_set_percent = Some(value::percent(v.str())?);
            Ok(())
        },
    ),
    OptionRow::new(
        "dedupe_global",
        ValueKind::Bool,
        "0",
        "Share the working set with all jobs with dedupe_global. Needs dedupe_mode=working_set.",
        |b, v| v.bool_to(&mut b.job.workload.buffers.dedupe_global),
    ),
];

fn at_least_one(text: &str, bytes: u64) -> ParsedValue<u64> {
    match bytes {
        0 => Err(ValueError::new(format!("`{text}` is less than 1"))),
        _ => Ok(bytes),
    }
}

fn apply_rw(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let (word, number) = match text.split_once(':') {
        Some((word, number)) => (word, Some(number)),
        None => (text, None),
    };
    let rw = choice(word, READ_WRITE_NAMES).map_err(|error| error.within(text, word))?;
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

fn apply_distribution(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
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

fn apply_sync_file_range(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
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
