//! Studies of several runs on a class.

use super::{IMAGE, Lab, run};
use serde_json::Value;

#[test]
#[ignore = "needs a cluster"]
fn a_sweep_and_a_load_study_on_classes() {
    let lab = Lab::new("studies");
    let place = format!(
        "--claim-size 64m --image {IMAGE} -n {} --format json",
        lab.namespace
    );
    let line = format!(
        "sweep sc://local-path emptydir:// --bs 4k --iodepth 1,4 --exhaustive --runtime 1 {place}"
    );
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    for name in ["sc://local-path", "emptydir://"] {
        assert!(stdout.contains(name), "{name}: {stdout}");
    }
    assert!(serde_json::from_str::<Value>(&stdout).is_ok(), "{stdout}");
    lab.assert_clean();
    let line = format!("load sc://local-path --rates 100,200 --runtime 1 {place}");
    let (status, stdout, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("sc://local-path"), "{stdout}");
    lab.assert_clean();
    // What cannot be opened is said, and the pod that was made before it goes.
    let line = format!("sweep emptydir:// sc://none --bs 4k --iodepth 1 {place}");
    let (status, _, stderr) = run(lab.command(&line));
    assert_eq!(status, Some(3), "{stderr}");
    assert!(
        stderr.contains("there is no such storage class"),
        "{stderr}"
    );
    lab.assert_clean();
}
