//! Block devices, as root: what an agent finds on them, and what it writes.

// The tests of the engine use the rest of it.
#[allow(dead_code)]
#[path = "../../../engine/tests/common/loop_device.rs"]
mod loop_device;

use super::{Agent, Client};
use iosonde_result::session::RunError;
use iosonde_result::wire::{DeviceConsent, Message, Place, Request};
use loop_device::Loop;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

/// As open(2) of Linux has it.
const O_EXCL: i32 = 0o200;

/// How many bytes a run wrote to the device, or what was found on it.
fn written(
    client: &mut Client,
    run: u64,
    words: &str,
    consent: Option<DeviceConsent>,
) -> Result<u64, String> {
    client.run_with_consent(run, words, consent);
    match client.until_done().pop() {
        Some(Message::Done(Ok(result))) => Ok(result.workers[0].directions.write.io_bytes),
        Some(Message::Done(Err(RunError::Refused { found, .. }))) => Err(found),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn a_device_is_looked_at_and_written_as_far_as_its_client_agreed() {
    let device = Loop::new(&[]);
    let agent = Agent::start_with(&["--idle", "60", "--device", device.path()]);
    let mut client = agent.client();
    let look = |client: &mut Client| {
        let path = device.path().to_owned();
        client.ask(&Request::Look { path });
        match client.next() {
            Message::Place(Ok(Place::Existing { carries, used, .. })) => (carries, used),
            other => panic!("{other:?}"),
        }
    };
    let words = format!(
        "--name=t --filename={} --rw=write --bs=64k --size=1m --ioengine=psync",
        device.path()
    );
    assert_eq!(look(&mut client), (None, None));
    assert_eq!(written(&mut client, 1, &words, None), Ok(1 << 20));
    loop_device::run("mkswap", &[device.path()]);
    let (carries, used) = look(&mut client);
    assert!(carries.is_some_and(|what| what.contains("swap")));
    assert_eq!(used, None);
    let found = written(&mut client, 2, &words, None).unwrap_err();
    assert!(found.contains("swap"), "{found}");
    let overwrite = Some(DeviceConsent::Overwrite);
    assert_eq!(written(&mut client, 3, &words, overwrite), Ok(1 << 20));
    // Consent of one run is none to the next.
    loop_device::run("mkswap", &[device.path()]);
    assert!(written(&mut client, 4, &words, None).is_err());

    // Somebody holds it, as a mount does: consent to overwrite does not reach that.
    let held = File::options()
        .read(true)
        .custom_flags(O_EXCL)
        .open(&device.device)
        .unwrap();
    let (_, used) = look(&mut client);
    assert!(used.is_some_and(|who| who.contains("exclusively")));
    let found = written(&mut client, 5, &words, overwrite).unwrap_err();
    assert!(found.contains("exclusively"), "{found}");
    // Pods of one run write to it side by side.
    let shared = Some(DeviceConsent::Shared);
    assert_eq!(written(&mut client, 6, &words, shared), Ok(1 << 20));
    drop(held);
    assert_eq!(look(&mut client).1, None);
}
