//! `rados://` and `rbd://` as targets of each command that measures.

use iosonde_e2e::ceph::{Cluster, POOL};
use iosonde_e2e::scratch::incompressible;
use iosonde_e2e::{Scratch, ensure, one_good_try};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::engines::{sizes_of, start, wait_for};

#[test]
#[ignore = "needs Ceph"]
fn pool_file_is_striped_and_removed_when_interrupted() {
    let _scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let line = format!(
        "fio --target=rados://{POOL} --name=spread --rw=randread --bs=4k --size=10m --time_based \
         --runtime=600 --rate_iops=200"
    );
    let mut child = start(cluster.iosonde(&line));
    let is_ours = |name: &str| name.starts_with("iosonde-") && name.contains("-spread.0.0.");
    let ours = |cluster: &Cluster| sizes_of(cluster, is_ours);
    let whole =
        |found: &[(String, u64)]| found.iter().map(|(_, size)| size).sum::<u64>() == 10 << 20;
    let found = wait_for("10 MiB in objects", || {
        Some(ours(&cluster)).filter(|found| whole(found))
    });
    let lengths: Vec<u64> = found.iter().map(|(_, size)| *size).collect();
    assert_eq!(lengths, [4 << 20, 4 << 20, 2 << 20]);
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(ours(&cluster), []);
}

/// Checks by Little's law that rate, mean latency and depth agree.
fn figure_holds(figure: &Value, latency: &Value, what: &str) -> Result<(), String> {
    let iops = figure["iops"]["mean"].as_f64().unwrap_or(0.0);
    let latency_ns = latency.as_f64().unwrap_or(0.0);
    let depth = figure["iodepth"].as_f64().unwrap_or(0.0);
    let mean = iops * latency_ns / 1e9;
    // Wide limits, because one stall can spoil a run of one second.
    ensure(mean > depth / 4.0 && mean < depth * 1.5, || {
        format!("{what}: {mean} in flight: {figure:#}")
    })
}

fn check_sweep(swept: &Value, target: &str) -> Result<(), String> {
    let curves = swept["sweep"]["curves"].as_array().expect("curves");
    assert_eq!(curves.len(), 1, "{target}");
    let side = &curves[0]["ceph"];
    assert!(
        side["osds"]["total"].as_u64() > Some(0),
        "{target} {side:#}"
    );
    let cells = curves[0]["cells"].as_array().expect("cells");
    let depths: Vec<_> = cells.iter().map(|cell| cell["iodepth"].as_u64()).collect();
    assert_eq!(depths, [Some(1), Some(4)], "{target}");
    for cell in cells {
        // A cluster that other tests hold up completes too few I/Os within one second.
        ensure(cell["basis"] == "measured", || format!("{target} {cell:#}"))?;
        figure_holds(cell, &cell["mean_latency_ns"], target)?;
    }
    Ok(())
}

fn check_load(loaded: &Value, target: &str) -> Result<(), String> {
    let points = loaded["load"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 2, "{target}");
    let side = &loaded["load"]["ceph"];
    assert!(
        side["osds"]["total"].as_u64() > Some(0),
        "{target} {side:#}"
    );
    for (point, offered) in points.iter().zip([50.0, 200.0]) {
        let read = &point["read"];
        assert_eq!(read["offered_per_s"], offered, "{target}");
        // Random arrivals within one second.
        let achieved = read["achieved_per_s"].as_f64().unwrap_or(0.0);
        ensure(achieved > offered * 0.5 && achieved < offered * 1.6, || {
            format!("{target} {achieved} of {offered}")
        })?;
        assert!(read["latency"]["mean_ns"].as_f64() > Some(0.0), "{target}");
        assert_eq!(point["failure"], Value::Null, "{target}");
    }
    Ok(())
}

fn check_probe(probed: &Value, target: &str, is_pool: bool) -> Result<(), String> {
    let figures = probed["probes"][0]["figures"].as_array().expect("figures");
    let phases: Vec<_> = (figures.iter().filter_map(|each| each["phase"].as_str())).collect();
    // Probes only read a written image. A completed write to a pool is durable.
    let reads = ["read_latency", "random_read", "sequential_read"];
    let writes = ["write_latency", "random_write", "sequential_write"];
    let expected = [&reads[..], &writes].concat();
    let mut expected = if is_pool { expected } else { reads.to_vec() };
    // A cluster that other load holds up counts as a slow target, whose large I/Os are left out.
    let notes = probed["probes"][0]["notes"].as_array().expect("notes");
    let left_out = |note: &str, phase: &str| {
        let title = phase.replace('_', " ");
        note.contains("not measured, because one I/O of 1 MiB takes") && note.contains(&title)
    };
    expected.retain(|phase| {
        let mut notes = notes.iter().filter_map(Value::as_str);
        !notes.any(|note| left_out(note, phase))
    });
    ensure(phases == expected, || {
        format!("{target} {phases:?}: {notes:?}")
    })?;
    for figure in figures {
        assert_eq!(figure["failure"], Value::Null, "{target} {figure:#}");
        figure_holds(figure, &figure["latency"]["mean_ns"], target)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs Ceph"]
fn pool_and_image_are_measured_by_all_commands() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    cluster.rbd(&format!("create {POOL}/target --size 16M"));
    let pool = format!("rados://{POOL}/studies");
    let image = format!("rbd://{POOL}/target");
    let ok = |line: &str| {
        let (status, stdout, stderr) = cluster.run(line);
        assert_eq!(status, Some(0), "{line}: {stdout}{stderr}");
        stdout
    };
    let json = |line: &str| -> Value {
        serde_json::from_str(&ok(&format!("{line} --format json"))).expect("JSON")
    };
    ok(&format!(
        "fio --target={image} --name=fill --rw=write --bs=1m"
    ));
    let contents = || {
        let exported = scratch.out().join("exported");
        cluster.rbd(&format!(
            "export --no-progress {POOL}/target {}",
            exported.display()
        ));
        let bytes = std::fs::read(&exported).expect("a file");
        std::fs::remove_file(exported).expect("a file");
        bytes
    };
    let before = contents();
    for target in [&pool, &image] {
        let reads = format!("{target} --bs 4k --rw randread --size 16m --runtime 1");
        one_good_try(|| check_sweep(&json(&format!("sweep {reads} --iodepth 1,4")), target));
        one_good_try(|| check_load(&json(&format!("load {reads} --rates 50,200")), target));
        one_good_try(|| {
            let line = format!("probe {target} --quick --size 16m --runtime 1");
            check_probe(&json(&line), target, target == &pool)
        });
        // The table has the same figures, unless no I/O completed within a second.
        one_good_try(|| {
            let table = ok(&format!(
                "probe {target} --quick --details --size 16m --runtime 1"
            ));
            let row = table
                .lines()
                .find(|line| line.starts_with("4k random read, depth 1 "));
            let has_figures = row.is_some_and(|row| row.contains("iB/s"));
            ensure(has_figures, || table.clone())
        });
    }
    // The table names the storage.
    let table = ok(&format!(
        "sweep {pool} --bs 4k --iodepth 1,4 --rw randread --size 16m --runtime 1 --details"
    ));
    assert!(table.contains("Cluster: HEALTH_"), "{table}");
    assert_eq!(cluster.rados(&format!("-p {POOL} -N studies ls")), "");
    assert!(contents() == before, "the image was written");
    let status = cluster.rbd(&format!("status {POOL}/target"));
    assert!(status.contains("Watchers: none"), "{status}");
    cluster.rbd(&format!("rm --no-progress {POOL}/target"));
}

/// Jobs of a sweep or suite run on the given target, whatever image the job names.
#[test]
#[ignore = "needs Ceph"]
fn sweep_and_suite_of_directory_leave_named_images() {
    let scratch = Scratch::shared();
    let cluster = Cluster::shared();
    let data = scratch.write("data", incompressible(4 << 20, 11));
    cluster.rbd(&format!(
        "import --no-progress {} {POOL}/precious",
        data.display()
    ));
    let directory = scratch.out().join("target");
    std::fs::create_dir(&directory).expect("a directory");
    let image = format!("rbd://{POOL}/precious");
    let elsewhere = format!("ioengine=rbd\npool={POOL}\nrbdname=precious");
    let suite = scratch.write(
        "suite.toml",
        "[[workload]]\nname = \"w\"\nfile = \"j.fio\"\n",
    );
    let at = directory.display();
    let jobs = [
        (format!("ioengine=libaio\nfilename_format={image}"), true),
        (format!("ioengine=libaio\nfilename={image}"), true),
        (elsewhere, false),
    ];
    let file = scratch.write("j.fio", "");
    let sweep = format!("sweep {} {at} --iodepth 1,2 --runtime 1", file.display());
    let run = format!("run {} {at}", suite.display());
    let commands = [(sweep, 2), (run, 3)];
    for (command, job) in commands
        .iter()
        .flat_map(|c| jobs.iter().map(move |j| (c, j)))
    {
        let ((line, refused), (named, runs)) = (command, job);
        let job = format!("[a]\nrw=randwrite\nbs=4k\nsize=1m\nruntime=1\n{named}\n");
        scratch.write("j.fio", job);
        let expected = if *runs { 0 } else { *refused };
        let (status, stdout, stderr) = cluster.run(line);
        assert_eq!(status, Some(expected), "{line}, {named}: {stdout}{stderr}");
        assert!(expected == 0 || stderr.contains("ioengine=rbd"), "{stderr}");
        let exported = scratch.out().join("exported");
        cluster.rbd(&format!(
            "export --no-progress {POOL}/precious {}",
            exported.display()
        ));
        let bytes = std::fs::read(&exported).expect("a file");
        std::fs::remove_file(exported).expect("a file");
        assert!(bytes == std::fs::read(&data).expect("a file"), "{named}");
        let left = std::fs::read_dir(&directory).expect("a directory");
        assert_eq!(left.count(), 0, "{named}");
    }
    let status = cluster.rbd(&format!("status {POOL}/precious"));
    assert!(status.contains("Watchers: none"), "{status}");
    cluster.rbd(&format!("rm --no-progress {POOL}/precious"));
}
