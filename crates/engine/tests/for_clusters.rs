//! Tests of a build without the feature `local`: it refuses I/O on this machine.
#![cfg(not(feature = "local"))]

use iosonde_engine::runner::{LocalRunner, PlannedFiles};
use iosonde_job::plan::*;
use iosonde_result::run_error::UnsupportedFeature;
use iosonde_result::session::Session;

fn plan(mut job: Job) -> Plan {
    job.files.size = Some(BytesOrPercent::Bytes(1 << 20));
    Plan {
        jobs: vec![job],
        global_options: Vec::new(),
    }
}

#[test]
fn plan_on_this_machine_is_refused_before_files_are_created() {
    let directory = tempfile::tempdir().unwrap();
    let refusal = Err(UnsupportedFeature::BuiltForClusters.into());
    for engine in [Engine::Auto, Engine::Psync, Engine::Mmap, Engine::Null] {
        let mut job = Job::new("a");
        job.io.engine = engine;
        job.files.directories = vec![directory.path().display().to_string()];
        let plan = plan(job);
        let runner = LocalRunner::default();
        assert_eq!(runner.check(&plan, &mut PlannedFiles::default()), refusal);
        let run = runner.open().run(&plan, &mut ());
        assert_eq!(run.map(drop), refusal, "{engine:?}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn plan_on_a_simulated_device_runs() {
    let mut job = Job::new("a");
    job.io.engine = Engine::Sim;
    job.io.sim = Some("cap_iops=1000".to_owned());
    let plan = plan(job);
    let result = LocalRunner::default().open().run(&plan, &mut ()).unwrap();
    let worker = &result.workers[0];
    assert!(worker.error.is_none(), "{:?}", worker.error);
    assert_eq!(worker.directions.read.total_ios, 256);
}
