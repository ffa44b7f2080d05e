//! Writes results of simulated runs as JSON files, for the tests of the report's page:
//! `cargo run -p iosonde --example simulated_results -- DIRECTORY`
//!
//! Each file is the reproducible result of one run of the engine on a simulated device.

use iosonde_engine::runner::LocalRunner;
use iosonde_job::plan::{
    BytesOrPercent, Direction, Engine, GivenOption, Job, PerDirection, Plan, ReadWrite,
    ReadWriteMode,
};
use iosonde_result::session::Session;
use std::error::Error;
use std::path::Path;

const SECOND_NS: u64 = 1_000_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args()
        .nth(1)
        .ok_or("name the directory to write to")?;
    let directory = Path::new(&directory);
    std::fs::create_dir_all(directory)?;
    for depth in [1, 2, 4, 8, 16, 32, 64, 128] {
        for device in ["sata-ssd,noise=0.02", "net-iops-cap"] {
            let name = device.split(',').next().unwrap_or(device);
            let job = job("randread", device, ReadWriteMode::Read, depth, 12);
            write(directory, &format!("depth-{name}-{depth:03}"), vec![job])?;
        }
    }
    let mut mixed = job(
        "oltp",
        "read_us=400,read_dist=lognormal:0.3,write_us=200,parallel=4,noise=0.05,noise_rho=0.5",
        ReadWriteMode::ReadWrite,
        8,
        400,
    );
    mixed.schedule.ramp_time_ns = 20 * SECOND_NS;
    write(directory, "mixed", vec![mixed])?;
    let jobs = vec![
        job("log", "nvme", ReadWriteMode::Write, 1, 10),
        job("scan", "nvme", ReadWriteMode::Read, 16, 10),
    ];
    write(directory, "jobs", jobs)?;
    let burst = "read_us=200,parallel=32,cap_iops=3000:60000:9000";
    write(
        directory,
        "burst",
        vec![job("burst", burst, ReadWriteMode::Read, 32, 30)],
    )?;
    let failing = job("failing", "nvme,error_at=5000", ReadWriteMode::Read, 4, 5);
    write(directory, "failing", vec![failing])?;
    for seed in 0..500 {
        let device = format!(
            "read_us=700,parallel=16,read_dist=lognormal:0.3,cap_iops=150,noise=0.04,seed={seed}"
        );
        let mut many = job("fleet", &device, ReadWriteMode::Read, 4, 30);
        many.files.filenames = vec![format!("machine-{seed:03}")];
        write(directory, &format!("fleet-{seed:03}"), vec![many])?;
    }
    Ok(())
}

fn job(name: &str, device: &str, mode: ReadWriteMode, iodepth: u32, seconds: u64) -> Job {
    let mut job = Job::new(name);
    job.io.engine = Engine::Sim;
    job.io.sim = Some(device.to_owned());
    job.io.iodepth = iodepth;
    job.io.direct = true;
    job.files.size = Some(BytesOrPercent::Bytes(1 << 30));
    job.workload.rw = ReadWrite { mode, random: true };
    job.workload.percentage_random = PerDirection::from_value(100);
    job.workload.rwmix_read_percent = 70;
    job.schedule.time_based = true;
    job.schedule.runtime_ns = seconds * SECOND_NS;
    job.given = [
        ("name", name.to_owned()),
        ("ioengine", "sim".to_owned()),
        ("sim", device.to_owned()),
        ("rw", job.workload.rw.name().to_owned()),
        (
            "bs",
            job.workload.block_size[Direction::Read].min().to_string(),
        ),
        ("iodepth", iodepth.to_string()),
        ("runtime", seconds.to_string()),
        ("time_based", String::new()),
    ]
    .map(|(name, value)| GivenOption {
        name: name.to_owned(),
        value,
    })
    .into();
    job
}

fn write(directory: &Path, name: &str, jobs: Vec<Job>) -> Result<(), Box<dyn Error>> {
    let plan = Plan {
        jobs,
        global_options: Vec::new(),
    };
    let result = LocalRunner::default().open().run(&plan, &mut ())?;
    let path = directory.join(format!("{name}.json"));
    std::fs::write(path, serde_json::to_string(&result)?)?;
    Ok(())
}
