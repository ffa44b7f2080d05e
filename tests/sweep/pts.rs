//! `iosonde pts` on a device: requires consent, discards, fills and tests the device.

use std::os::unix::fs::MetadataExt;

use iosonde_e2e::device::Loop;
use iosonde_e2e::{Scratch, require};

use super::{MIB, json, run};

#[test]
fn device_is_tested_only_with_consent() {
    require!(Root);
    let scratch = Scratch::shared();
    let image = scratch.out().join("image");
    let device = Loop::with_file(&image, 32 * MIB);
    let name = device.path().display().to_string();
    let line = format!(
        "pts throughput {name} --preset client --purge discard --time-scale 0.004 --rounds 5 \
         --iodepth 2 --format json"
    );
    let refused = run(&scratch, &line).run();
    refused.refused_with(&[&name, "--allow-overwrite"]);
    let done = run(&scratch, &format!("{line} --allow-overwrite {name}")).ok();
    let document = json(&done.stdout);
    let pts = &document["pts"];
    assert_eq!(pts["bytes"], 24 * MIB, "three quarters: {done}");
    let series = &pts["series"][0];
    assert_eq!(series["purged"], true, "{done}");
    assert_eq!(series["filled_bytes"], 24 * MIB, "{done}");
    assert_eq!(series["rounds"].as_array().map(Vec::len), Some(5), "{done}");
    // Blocks that were discarded and not filled again are holes in the image.
    let left = std::fs::metadata(&image).expect("the image").blocks() * 512;
    assert!(left < 30 * MIB as u64, "{left} bytes are left of the image");
    let is_said = |what: &str| pts["deviations"].to_string().contains(what);
    assert!(is_said("a trial") && !is_said("not purged"), "{done}");
}
