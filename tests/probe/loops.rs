//! Loop devices that do not measure a device: an unwritten hole, and a file in the page cache.

use iosonde_e2e::device::Loop;
use iosonde_e2e::program::{Invocation, Run, iosonde};
use iosonde_e2e::{Scratch, require};

/// The promise of a volume of 10 GiB, which is larger than the device.
const PROMISE: &str = "gcp-pd-ssd:10GiB,machine=n1,vcpus=8";

/// Probes a device with a promise.
fn probed(scratch: &Scratch, device: &Loop) -> Run {
    let path = device.path().display();
    let line = format!("probe --quick --details --runtime=1 --expect={PROMISE} {path}");
    Invocation::new(scratch, vec![iosonde().into()])
        .and(&line)
        .ok()
}

/// The output without its line breaks.
fn printed(run: &Run) -> String {
    run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks that no figure is compared and that the size is that of the loop device.
fn is_not_compared(run: &Run, size: &str) {
    let text = printed(run);
    let (head, _) = text.split_once("per s").expect("a table");
    let warning = "and cannot be compared with a promise";
    assert!(head.contains(warning), "does not say so first: {run}");
    assert_eq!(text.matches(warning).count(), 1, "{run}");
    let (_, promise) = text.split_once("Promised: ").expect("a promise");
    let of_the_device = format!("The promise is for 10 GiB; the device has {size}.");
    assert!(promise.contains(&of_the_device), "{run}");
    for word in ["above", "below", "kept", "undecided"] {
        assert!(!promise.contains(word), "{word}: {run}");
    }
}

#[test]
fn loop_over_hole_is_not_called_cached() {
    require!(Root);
    // Other I/O on the underlying disk would hide the source of the answers.
    let scratch = Scratch::alone();
    let device = Loop::with_hole(&scratch.out().join("hole"), 256 << 20);
    let run = probed(&scratch, &device);
    is_not_compared(&run, "256 MiB");
    let text = printed(&run);
    assert!(
        text.contains("Blocks that were never written served the reads"),
        "{run}"
    );
    assert!(text.contains("100.0 % of"), "{run}");
    let blames_a_cache = text.to_lowercase().contains("a cache");
    assert!(!blames_a_cache, "a cache is blamed: {run}");
}

#[test]
fn loop_over_cached_file_names_cache_first() {
    require!(Root);
    // Other I/O on the underlying disk would hide the source of the answers.
    let scratch = Scratch::alone();
    let device = Loop::in_page_cache(&scratch.out().join("cached"), 64 << 20);
    let run = probed(&scratch, &device);
    is_not_compared(&run, "64 MiB");
    let text = printed(&run);
    assert!(text.contains("A cache served the reads"), "{run}");
    assert!(text.contains("under a loop device)"), "{run}");
}
