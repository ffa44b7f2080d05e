//! Tests of grids, and of their jobs on targets.

use super::*;
use crate::relocation_error::RelocationError;
use crate::study_target::StudyTargetKind;
use iosonde_job::env::FakeEnv;
use iosonde_job::plan::{BytesOrPercent, Direction, Engine};

fn axis(name: &str, values: &[&str]) -> Axis {
    Axis {
        name: name.into(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    }
}

fn targets(names: &[&str]) -> Vec<SweepTarget> {
    let target = |name: &&str| SweepTarget {
        name: (*name).to_owned(),
        path: format!("{name}/file"),
        kind: StudyTargetKind::Directory {
            free_bytes: 1 << 40,
        },
        bytes: 1 << 30,
    };
    names.iter().map(target).collect()
}

#[test]
fn grid_has_curve_per_combination() {
    let axes = [
        axis("iodepth", &["8", "1"]),
        axis("numjobs", &["1", "4"]),
        axis("bs", &["4k", "64k"]),
    ];
    let grid = SweepGrid::new(
        &Base::Plain,
        &targets(&["/a", "/b:c"]),
        &axes,
        &FakeEnv::new(),
    )
    .unwrap();
    let names: Vec<&str> = grid.axes.iter().map(|axis| axis.name.as_str()).collect();
    assert_eq!(names, ["target", "bs", "numjobs", "iodepth"]);
    assert_eq!((grid.curves.len(), grid.cells()), (8, 16));
    assert_eq!(grid.depths, [1, 8]);
    let last = &grid.curves[7];
    assert_eq!(last.values, ["/b:c", "64k", "4"]);
    assert_eq!(last.job.files.filenames, ["/b:c/file"]);
    assert_eq!(last.job.workload.block_size[Direction::Read].max(), 65_536);
    assert_eq!((last.job.numjobs, last.job.io.direct), (4, true));
}

#[test]
fn job_file_is_base_of_grid() {
    let text = "[global]\nioengine=libaio\nfilename=/x\nsize=1g\nbs=4k\n\
                [a]\nrw=randread\n[b]\nstonewall\nrw=randwrite\nbs=1m\n";
    let base = Base::File {
        name: "job.fio".into(),
        text: text.into(),
    };
    let axes = [axis("iodepth", &["1", "2"])];
    let grid = SweepGrid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
    let names: Vec<&str> = grid.curves.iter().map(|c| c.job.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(grid.curves[0].values, ["a"]);
    assert_eq!(grid.curves[1].job.files.filenames, ["/x"]);
    // An axis overrides an option of the job.
    let axes = [axis("iodepth", &["1"]), axis("bs", &["8k"])];
    let grid = SweepGrid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
    let blocks = |curve: &CurvePlan| curve.job.workload.block_size[Direction::Write].max();
    assert!(grid.curves.iter().all(|curve| blocks(curve) == 8192));
}

#[test]
fn file_jobs_run_on_simulated_target_with_sim_engine() {
    let base = Base::File {
        name: "job.fio".into(),
        text: "[a]\nioengine=libaio\nfilename=/x\nsize=1g\n".into(),
    };
    let mut target = targets(&["sim:hdd"]).remove(0);
    target.kind = StudyTargetKind::Simulated {
        options: "hdd".into(),
    };
    let axes = [axis("iodepth", &["1", "2"])];
    let grid = SweepGrid::new(&base, &[target], &axes, &FakeEnv::new()).unwrap();
    let io = &grid.curves[0].job.io;
    assert_eq!((io.engine, io.sim.as_deref()), (Engine::Sim, Some("hdd")));
}

/// A job uses at most the part of a target that is announced, laid out and consented to.
#[test]
fn file_jobs_stay_within_announced_bytes() {
    let grid = |job: &str, targets: &[SweepTarget]| {
        let base = Base::File {
            name: "job.fio".into(),
            text: format!("[a]\nrw=randwrite\nioengine=libaio\n{job}"),
        };
        let axes = [axis("iodepth", &["1"])];
        SweepGrid::new(&base, targets, &axes, &FakeEnv::new()).unwrap()
    };
    let size = |job: &str| {
        let mut device = targets(&["/dev/x"]);
        device[0].kind = StudyTargetKind::Existing {
            bytes: 1 << 40,
            device: true,
            consent: true,
        };
        let known = grid(job, &device).curves[0].job.files.size;
        let placed = grid(job, &[]).on(&device[0]).unwrap();
        assert_eq!(known, placed.curves[0].job.files.size);
        known
    };
    let whole = 1 << 30;
    assert_eq!(size(""), Some(BytesOrPercent::Bytes(whole)));
    assert_eq!(size("size=25%\n"), Some(BytesOrPercent::Bytes(whole / 4)));
    assert_eq!(size("size=64m\n"), Some(BytesOrPercent::Bytes(64 << 20)));
    assert_eq!(
        size("offset=1m\n"),
        Some(BytesOrPercent::Bytes(whole - (1 << 20)))
    );
    // The announcement covers the extent that jobs give themselves.
    let reach = |job: &str| {
        let reach = grid(job, &[]).reach();
        (reach.bytes, reach.is_open)
    };
    assert_eq!(reach(""), (0, true));
    assert_eq!(reach("size=6g\noffset=2g\n"), (8 << 30, false));
    assert_eq!(reach("filesize=3g\n"), (3 << 30, false));
    let behind = grid("filesize=3g\noffset=1g\n", &[]).reach();
    assert_eq!((behind.bytes, behind.device_bytes), (3 << 30, 4 << 30));
    let clones = "size=1g\noffset_increment=1g\nnumjobs=4\n";
    assert_eq!(reach(clones), (4 << 30, false));
    // Shares are of the working set, and a job without size uses all behind its offset.
    assert_eq!(reach("offset=1m\n"), (0, true));
    assert_eq!(reach("size=25%\noffset=2g\n"), (0, true));
    assert_eq!(reach("size=1g\noffset=50%\n"), (1 << 30, true));
    let mixed = "size=64m\n[b]\nstonewall\nrw=read\n";
    assert_eq!(reach(mixed), (64 << 20, true));
    // No I/O goes beyond the announced part.
    let end = |job: &str| {
        let grid = grid(job, &targets(&["/dev/x"]));
        let files = &grid.curves[0].job.files;
        match (files.offset, files.offset_increment, files.size) {
            (
                BytesOrPercent::Bytes(start),
                BytesOrPercent::Bytes(step),
                Some(BytesOrPercent::Bytes(size)),
            ) => start + 3 * step + size,
            other => panic!("{job}: {other:?}"),
        }
    };
    for job in [
        "offset=50%\n",
        "offset=33%\nsize=67%\n",
        "offset=1m\nsize=1t\n",
        "offset_increment=25%\nnumjobs=4\n",
        "offset_increment=20%\nnumjobs=4\nsize=1g\n",
    ] {
        assert!(end(job) <= whole, "{job}: {}", end(job));
    }
}

#[test]
fn engine_with_own_targets_is_refused() {
    let base = Base::File {
        name: "job.fio".into(),
        text: "[a]\nioengine=rbd\npool=p\nrbdname=precious\nsize=1g\n".into(),
    };
    let axes = [axis("iodepth", &["1"])];
    let on = |name: &str| {
        let grid = SweepGrid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
        grid.on(&targets(&[name])[0]).map(drop)
    };
    let refused = on("/dev/x").unwrap_err();
    let is_of_engine = matches!(
        refused,
        StudyError::Relocation(RelocationError::Engine { engine: "rbd", .. })
    );
    assert!(is_of_engine, "{refused:?}");
    on("rbd://p/image").unwrap();
}

#[test]
fn job_offset_behind_working_set_is_refused() {
    let base = Base::File {
        name: "job.fio".into(),
        text: "[a]\nioengine=libaio\noffset=2g\n".into(),
    };
    let axes = [axis("iodepth", &["1"])];
    let target = targets(&["/dev/x"]);
    let error = SweepGrid::new(&base, &target, &axes, &FakeEnv::new()).unwrap_err();
    let words = "job `a` starts at 2 GiB, but the sweep uses only 1 GiB of /dev/x";
    assert_eq!(error.list[0].message, words);
    let grid = SweepGrid::new(&base, &[], &axes, &FakeEnv::new()).unwrap();
    assert_eq!(grid.on(&target[0]).unwrap_err().to_string(), words);
}

#[test]
fn opendir_is_dropped_and_trace_is_refused() {
    let grid = |job: &str| {
        let base = Base::File {
            name: "job.fio".into(),
            text: format!("[a]\nioengine=libaio\nrw=randwrite\n{job}"),
        };
        let axes = [axis("iodepth", &["1"])];
        SweepGrid::new(&base, &targets(&["/x"]), &axes, &FakeEnv::new())
    };
    let walked = grid("opendir=/home\n").unwrap();
    assert!(walked.curves[0].job.files.opendir.is_empty());
    let trace = grid("read_iolog=trace\n").unwrap_err();
    assert!(trace.list[0].message.contains("replays a trace"), "{trace}");
}

fn engine_grid(jobs: &str, depths: &[&str]) -> SweepGrid {
    let base = Base::File {
        name: "job.fio".into(),
        text: format!("[global]\nsize=1g\nfilename=/x\n{jobs}"),
    };
    let axes = [axis("iodepth", depths)];
    let axes = if depths.is_empty() { &[][..] } else { &axes };
    SweepGrid::new(&base, &[], axes, &FakeEnv::new()).unwrap()
}

#[test]
fn synchronous_engines_make_depth_ineffective() {
    let depth_note = |jobs: &str, depths: &[&str]| {
        let grid = engine_grid(jobs, depths);
        grid.without_effect_of_depth().map(CurvePlan::one_in_flight)
    };
    let tail = "keeps one I/O in flight at any iodepth";
    let whose = "the default of fio,";
    assert_eq!(
        depth_note("[a]\n", &["1", "2"]),
        Some(format!("ioengine=psync, {whose} {tail}"))
    );
    assert_eq!(
        depth_note("[a]\nioengine=psync\n", &["1", "2"]),
        Some(format!("ioengine=psync {tail}"))
    );
    assert_eq!(
        depth_note("ioengine=mmap\n[a]\n", &["4"]),
        Some(format!("ioengine=mmap {tail}"))
    );
    assert_eq!(depth_note("[a]\n", &["1"]), None);
    assert_eq!(depth_note("[a]\n", &[]), None);
    assert_eq!(depth_note("[a]\nioengine=io_uring\n", &["1", "2"]), None);
}

#[test]
fn default_depths_follow_engine_and_target() {
    assert_eq!(engine_grid("[a]\n", &[]).depths, [1]);
    let queues = engine_grid("[a]\nioengine=libaio\n", &[]);
    assert_eq!(queues.depths, USUAL_DEPTHS);
    assert_eq!(queues.axes.last().unwrap().values.len(), 9);
    // A simulated device queues I/Os with any engine of the job.
    let mut device = targets(&["sim:nvme"]).remove(0);
    device.kind = StudyTargetKind::Simulated {
        options: "nvme".into(),
    };
    let simulated = engine_grid("[a]\n", &[]).on(&device).unwrap();
    assert_eq!(simulated.depths, USUAL_DEPTHS);
    assert_eq!(simulated.axes.last().unwrap().values.len(), 9);
}

#[test]
fn synchronous_curve_of_mixed_grid_has_depth_one() {
    let jobs = "[a]\n[b]\nstonewall\nioengine=libaio\n";
    for (depths, cells, all) in [
        (&["1", "2", "8"][..], 4, &[1, 2, 8][..]),
        (&["4", "8"], 3, &[1, 4, 8]),
        (&[], 10, &USUAL_DEPTHS),
    ] {
        let grid = engine_grid(jobs, depths);
        assert!(grid.without_effect_of_depth().is_none());
        assert_eq!((grid.cells(), &grid.all_depths()[..]), (cells, all));
        assert_eq!(grid.depths_of(&grid.curves[0]), [1]);
        assert_eq!(grid.depths_of(&grid.curves[1]), grid.depths);
    }
}

#[test]
fn concurrent_jobs_of_a_file_are_refused() {
    let text = "[a]\nfilename=/x\nsize=1g\n[b]\nfilename=/x\nsize=1g\n";
    let base = Base::File {
        name: "job.fio".into(),
        text: text.into(),
    };
    let axes = [axis("iodepth", &["1"])];
    let error = SweepGrid::new(&base, &[], &axes, &FakeEnv::new()).unwrap_err();
    assert!(
        error.list[0]
            .message
            .contains("`b` runs concurrently with another"),
        "{error}"
    );
}

#[test]
fn grid_errors_are_reported_together() {
    let axes = [
        axis("iodepth", &["0", "x"]),
        axis("rw", &["randread", "rondread"]),
        axis("bs", &["4k", "4y"]),
        axis("numjobs", &["1", "0"]),
    ];
    let error =
        SweepGrid::new(&Base::Plain, &targets(&["/a"]), &axes, &FakeEnv::new()).unwrap_err();
    insta::assert_snapshot!(error.render(false));
}

#[test]
fn axis_without_effect_is_refused() {
    let messages = |axes: &[Axis]| {
        let made = SweepGrid::new(&Base::Plain, &targets(&["/a"]), axes, &FakeEnv::new());
        let messages = made.map_or_else(|all| all.list, |_| Vec::new());
        let messages = messages.into_iter().map(|one| one.message);
        messages.collect::<Vec<String>>()
    };
    for (pattern, option, values) in [
        ("randread", "rwmixread", ["0", "50"]),
        ("write", "rwmixwrite", ["10", "20"]),
        ("read", "random_distribution", ["random", "zipf:1.1"]),
        ("randread", "fsync", ["1", "8"]),
        ("randread", "buffer_compress_percentage", ["0", "50"]),
    ] {
        let messages_for =
            |rw: &[&str], values: &[&str]| messages(&[axis("rw", rw), axis(option, values)]);
        let expected = format!("`{option}` has no effect in any cell");
        assert_eq!(messages_for(&[pattern], &values), [expected]);
        // A single value applies to all cells and is allowed.
        assert_eq!(messages_for(&[pattern], &values[..1]), [""; 0]);
        assert_eq!(messages_for(&[pattern, "randrw"], &values), [""; 0]);
    }
    let both = [
        axis("rw", &["randrw"]),
        axis("rwmixread", &["50", "70"]),
        axis("rwmixwrite", &["10"]),
    ];
    let messages = messages(&both);
    assert_eq!(messages.len(), 1);
    assert!(messages[0].contains("are redundant"), "{messages:?}");
}
