//! Options for the way I/O is issued: engine, depth, clones, memory, CPUs.

use super::option_value::choice;
use super::{JobBuilder, OptionRow, OptionValue, ValueKind};
use crate::plan::*;
use crate::value::{self, ParsedValue, ValueError};

const U32: i64 = u32::MAX as i64;

/// Rows of the option table.
pub const ROWS: &[OptionRow] = &[
    OptionRow::new(
        "ioengine",
        ValueKind::Words(
            &[
                "io_uring", "libaio", "posixaio", "sync", "psync", "vsync", "pvsync", "pvsync2",
                "mmap", "rados", "rbd", "null", "sim", "auto",
            ],
            "",
        ),
        "psync",
        "Method of I/O: io_uring, libaio, posixaio, sync, psync, vsync, pvsync, pvsync2, mmap; \
         null does no I/O, sim is a simulated device, auto is the best engine that the kernel \
         allows.",
        |b, v| {
            b.engine = Some(v.str().to_owned());
            b.job.io.engine = super::engine_options::engine(v.str())?;
            Ok(())
        },
    ),
    OptionRow::new(
        "iodepth",
        ValueKind::Int(1, U32),
        "1",
        "Number of I/Os in flight. Synchronous engines keep one I/O in flight.",
        |b, v| v.u32_to(&mut b.job.io.iodepth, 1),
    ),
    OptionRow::new(
        "iodepth_batch",
        ValueKind::Int(0, U32),
        "1",
        "I/Os to submit at once; 0 is all of iodepth. A job that does not say may be submitted in \
         batches by the engine, which the submit figures of the result show.",
        |b, v| {
            let mut number = 0;
            v.u32_to(&mut number, 0)?;
            b.job.io.batch_submit = Some(number);
            Ok(())
        },
    )
    .aliases(&["iodepth_batch_submit"]),
    OptionRow::new(
        "iodepth_batch_complete_min",
        ValueKind::Int(0, U32),
        "1",
        "Minimum number of completions to wait for; 0: poll without waiting.",
        |b, v| v.u32_to(&mut b.job.io.batch_complete_min, 0),
    )
    .aliases(&["iodepth_batch_complete"]),
    OptionRow::new(
        "iodepth_batch_complete_max",
        ValueKind::Int(0, U32),
        "",
        "Maximum number of completions to collect at once.",
        |b, v| {
            let mut number = 0;
            v.u32_to(&mut number, 0)?;
            b.job.io.batch_complete_max = Some(number).filter(|number| *number > 0);
            Ok(())
        },
    ),
    OptionRow::new(
        "iodepth_low",
        ValueKind::Int(0, U32),
        "",
        "When iodepth is reached, drain to this depth before submitting again. The default is \
         iodepth.",
        |b, v| {
            let mut number = 0;
            v.u32_to(&mut number, 0)?;
            b.job.io.iodepth_low = Some(number).filter(|number| *number > 0);
            Ok(())
        },
    ),
    OptionRow::new(
        "serialize_overlap",
        ValueKind::Bool,
        "0",
        "Delay an I/O while another I/O in flight overlaps it.",
        |b, v| v.bool_to(&mut b.job.io.serialize_overlap),
    ),
    OptionRow::new(
        "io_submit_mode",
        ValueKind::Choice(&["inline", "offload"]),
        "inline",
        "offload: other threads submit the I/Os, so that a slow device does not delay a fixed \
         rate.",
        |b, v| {
            v.choice_to(
                &mut b.job.io.offload,
                &[("inline", false), ("offload", true)],
            )
        },
    )
    .accepted(
        "I/Os are submitted by the job's own thread. With a rate, `iosonde.lat_from_due_ns` in \
         JSON counts from the moment an I/O was due, so that a device that holds up the schedule \
         is seen. Refused where only other threads could keep iodepth in flight.",
    ),
    OptionRow::new(
        "direct",
        ValueKind::Bool,
        "0",
        "Bypass the page cache (O_DIRECT). The later of direct and buffered wins.",
        |b, v| v.bool_to(&mut b.job.io.direct),
    ),
    OptionRow::new(
        "buffered",
        ValueKind::Bool,
        "1",
        "Use the page cache: the opposite of direct.",
        |b, v| v.not_bool_to(&mut b.job.io.direct),
    ),
    OptionRow::new(
        "sync",
        ValueKind::Choice(&["none", "0", "sync", "1", "dsync"]),
        "none",
        "Open files with O_SYNC or O_DSYNC, so that each write returns only when it is durable.",
        |b, v| {
            v.choice_to(
                &mut b.job.io.sync,
                &[
                    ("none", SyncMode::None),
                    ("0", SyncMode::None),
                    ("sync", SyncMode::Sync),
                    ("1", SyncMode::Sync),
                    ("dsync", SyncMode::Dsync),
                ],
            )
        },
    ),
    OptionRow::new(
        "atomic",
        ValueKind::Bool,
        "0",
        "Write each block completely or not at all, also if the power fails (RWF_ATOMIC). Needs \
         direct=1. `iosonde doctor` names the block sizes that a file or device accepts.",
        |b, v| v.bool_to(&mut b.job.io.atomic),
    ),
    OptionRow::new(
        "numjobs",
        ValueKind::Int(1, U32),
        "1",
        "Number of clones of the job, which run concurrently.",
        |b, v| v.u32_to(&mut b.job.numjobs, 1),
    ),
    OptionRow::new(
        "thread",
        ValueKind::Flag,
        "0",
        "Run clones as threads instead of processes.",
        |b, v| v.flag_to(&mut b.job.io.thread),
    )
    .accepted("Clones are threads in any case."),
    OptionRow::new(
        "nice",
        ValueKind::Int(-20, 19),
        "0",
        "CPU priority: -20 is the highest, 19 the lowest.",
        |b, v| {
            b.job.io.nice = Some(v.int(-20..=19)? as i32);
            Ok(())
        },
    ),
    OptionRow::new(
        "prio",
        ValueKind::Int(0, 7),
        "",
        "I/O priority within its class: 0 is the highest.",
        |b, v| {
            b.prio = Some(v.int(0..=7)? as u8);
            Ok(())
        },
    ),
    OptionRow::new(
        "prioclass",
        ValueKind::Int(0, 3),
        "",
        "Class of I/O priority: 1 real time, 2 best effort, 3 idle.",
        |b, v| {
            b.prioclass = Some(v.int(0..=3)? as u8);
            Ok(())
        },
    ),
    OptionRow::new(
        "cpus_allowed",
        ValueKind::Numbers,
        "",
        "CPUs the job may run on.",
        |b, v| {
            b.job.io.cpus_allowed = Some(value::cpu_list(v.str())?);
            Ok(())
        },
    ),
    OptionRow::new(
        "cpumask",
        ValueKind::Int(0, i64::MAX),
        "",
        "CPUs the job may run on, as a bit mask.",
        |b, v| {
            let mask = v.int(1..=i64::MAX)?;
            b.job.io.cpus_allowed = Some((0..63).filter(|cpu| mask >> cpu & 1 == 1).collect());
            Ok(())
        },
    ),
    OptionRow::new(
        "cpus_allowed_policy",
        ValueKind::Choice(&["shared", "split"]),
        "shared",
        "Whether clones share the CPUs or get one each.",
        |b, v| {
            v.choice_to(
                &mut b.job.io.cpus_split,
                &[("shared", false), ("split", true)],
            )
        },
    ),
    OptionRow::new(
        "numa_cpu_nodes",
        ValueKind::Numbers,
        "",
        "NUMA nodes whose CPUs the job may run on; `all` is every one.",
        |b, v| {
            b.job.io.numa_cpu_nodes = value::node_list(v.str())?;
            Ok(())
        },
    ),
    OptionRow::new(
        "numa_mem_policy",
        ValueKind::Text,
        "",
        "NUMA memory policy: default, prefer:node, bind:nodes, interleave:nodes or local.",
        apply_numa_mem_policy,
    ),
    OptionRow::new(
        "mem",
        ValueKind::Words(
            &["malloc", "shm", "shmhuge", "mmap", "mmaphuge", "mmapshared"],
            ", perhaps with :FILE",
        ),
        "malloc",
        "Allocation of I/O buffers: malloc, shm, shmhuge, mmap[:file], mmaphuge[:file], \
         mmapshared.",
        apply_mem,
    )
    .aliases(&["iomem"]),
    OptionRow::new(
        "iomem_align",
        ValueKind::Size,
        "0",
        "Alignment of I/O buffers; 0: one page.",
        |b, v| v.bytes_to(&mut b.job.io.mem_align_bytes, b.bytes),
    )
    .aliases(&["mem_align"]),
    OptionRow::new(
        "hugepage-size",
        ValueKind::Size,
        "2m",
        "Size of the huge pages of mem=shmhuge and mem=mmaphuge.",
        |b, v| {
            v.bytes_to(&mut b.job.io.hugepage_bytes, b.bytes)?;
            match b.job.io.hugepage_bytes.is_power_of_two() {
                true => Ok(()),
                false => Err(ValueError::new("the size of a page must be a power of two")),
            }
        },
    ),
    OptionRow::new(
        "lockmem",
        ValueKind::Size,
        "0",
        "Lock this much memory, which leaves less for the page cache.",
        |b, v| v.bytes_to(&mut b.job.io.lockmem_bytes, b.bytes),
    ),
    OptionRow::new(
        "write_hint",
        ValueKind::Choice(&["none", "short", "medium", "long", "extreme"]),
        "",
        "Lifetime hint for written data (F_SET_RW_HINT).",
        |b, v| {
            b.job.io.write_hint = Some(v.choice(&[
                ("none", WriteHint::None),
                ("short", WriteHint::Short),
                ("medium", WriteHint::Medium),
                ("long", WriteHint::Long),
                ("extreme", WriteHint::Extreme),
            ])?);
            Ok(())
        },
    ),
    OptionRow::new(
        "ioscheduler",
        ValueKind::Text,
        "",
        "Switch the devices below the job's files to this I/O scheduler when the job starts. At \
         the end of the run each has the one that it had.",
        |b, v| v.text_to(&mut b.job.io.scheduler),
    ),
    OptionRow::new(
        "uid",
        ValueKind::Int(0, U32),
        "",
        "Open the job's files and do its I/O as this user.",
        |b, v| {
            b.job.io.uid = Some(v.int(0..=U32)? as u32);
            Ok(())
        },
    ),
    OptionRow::new(
        "gid",
        ValueKind::Int(0, U32),
        "",
        "Open the job's files and do its I/O as this group.",
        |b, v| {
            b.job.io.gid = Some(v.int(0..=U32)? as u32);
            Ok(())
        },
    ),
];

fn apply_mem(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let (word, file) = match text.split_once(':') {
        Some((word, file)) => (word, Some(file.to_owned())),
        None => (text, None),
    };
    if file.is_some() && !matches!(word, "mmap" | "mmaphuge" | "mmapshared") {
        return Err(ValueError::new(format!("`{word}` takes no file")));
    }
    b.job.io.mem = match word {
        "malloc" => Memory::Malloc,
        "shm" => Memory::Shm,
        "shmhuge" => Memory::ShmHuge,
        "mmap" => Memory::Mmap(file),
        "mmaphuge" => Memory::MmapHuge(file),
        "mmapshared" if file.is_none() => Memory::MmapShared,
        "mmapshared" => {
            return Err(ValueError::new("`mmapshared` of a file is not supported")
                .help("`mem=mmap:FILE` maps a file"));
        }
        "cudamalloc" => {
            return Err(ValueError::new("memory of a GPU is not supported")
                .help("`mem=malloc` is the memory of the CPU"));
        }
        other => {
            let words = ["malloc", "shm", "shmhuge", "mmap", "mmaphuge", "mmapshared"];
            return choice(other, &words.map(|word| (word, ())));
        }
    };
    Ok(())
}

fn apply_numa_mem_policy(b: &mut JobBuilder, v: &OptionValue<'_>) -> ParsedValue<()> {
    let text = v.str();
    let (word, nodes) = match text.split_once(':') {
        Some((word, nodes)) => (word, Some(nodes)),
        None => (text, None),
    };
    let kind = choice(
        word,
        &[
            ("default", NumaMemKind::Default),
            ("prefer", NumaMemKind::Prefer),
            ("bind", NumaMemKind::Bind),
            ("interleave", NumaMemKind::Interleave),
            ("local", NumaMemKind::Local),
        ],
    )
    .map_err(|error| error.within(text, word))?;
    let needs_nodes = !matches!(kind, NumaMemKind::Default | NumaMemKind::Local);
    let nodes = match nodes {
        Some(nodes) if needs_nodes => {
            value::number_list(nodes).map_err(|error| error.within(text, nodes))?
        }
        None if needs_nodes => {
            return Err(ValueError::new("the nodes are missing")
                .help(format!("write them behind a colon: `{word}:0`")));
        }
        _ => Vec::new(),
    };
    b.job.io.numa_mem_policy = Some(NumaMemPolicy { kind, nodes });
    Ok(())
}
