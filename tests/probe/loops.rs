//! Loop devices whose figures are not those of a device: a hole that was never written, and a file in the page cache.

use iosonde_e2e::device::Loop;
use iosonde_e2e::program::{Invocation, Run, iosonde};
use iosonde_e2e::{Scratch, require};

/// What a volume of 10 GiB was promised: more than the device has.
const PROMISE: &str = "gcp-pd-ssd:10GiB,machine=n1,vcpus=8";

/// Probes a device, held against a promise.
fn probed(scratch: &Scratch, device: &Loop) -> Run {
    let path = device.path().display();
    let line = format!("probe --quick --runtime=1 --expect={PROMISE} {path}");
    Invocation::new(scratch, vec![iosonde().into()])
        .and(&line)
        .ok()
}

/// What was printed, without its line breaks.
fn printed(run: &Run) -> String {
    run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// That figures are compared with nothing, and the size is that of the loop device, not of the disk below it.
fn is_not_compared(run: &Run, size: &str) {
    let text = printed(run);
    let (head, _) = text.split_once("per s").expect("a table");
    let warning = "and no comparison with a promise holds";
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
fn loop_over_a_hole_is_not_called_cached_and_is_compared_with_nothing() {
    require!(Root);
    // I/O of others on the disk below would hide what answered.
    let scratch = Scratch::alone();
    let device = Loop::with_hole(&scratch.out().join("hole"), 256 << 20);
    let run = probed(&scratch, &device);
    is_not_compared(&run, "256 MiB");
    let text = printed(&run);
    assert!(
        text.contains("Blocks that were never written answered reads"),
        "{run}"
    );
    assert!(text.contains("100.0 % of"), "{run}");
    let blames_a_cache = text.to_lowercase().contains("a cache");
    assert!(!blames_a_cache, "a cache is blamed: {run}");
}

#[test]
fn loop_over_a_cached_file_says_first_that_a_cache_answered() {
    require!(Root);
    // I/O of others on the disk below would hide what answered.
    let scratch = Scratch::alone();
    let device = Loop::in_page_cache(&scratch.out().join("cached"), 64 << 20);
    let run = probed(&scratch, &device);
    is_not_compared(&run, "64 MiB");
    let text = printed(&run);
    assert!(text.contains("A cache answered reads"), "{run}");
    assert!(text.contains("under a loop device)"), "{run}");
}
