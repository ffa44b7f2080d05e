//! Block devices, as root: what an agent finds on them, and what it writes.

#[path = "../common/agent_device.rs"]
mod agent_device;

use super::{Agent, SocketClient};
use agent_device::{Loop, open_exclusively};
use iosonde_result::run_error::{RunError, WriteObstacle, WriteRefusal};
use iosonde_result::wire::{AgentMessage, AgentRequest, DeviceConsent, PathInfo};

/// How many bytes a run wrote to the device, or what was found on it.
fn written(
    client: &mut SocketClient,
    run: u64,
    words: &str,
    consent: Option<DeviceConsent>,
) -> Result<u64, WriteRefusal> {
    client.run_with_consent(run, words, consent);
    match client.until_done().pop() {
        Some(AgentMessage::Done(Ok(result))) => Ok(result.workers[0].directions.write.io_bytes),
        Some(AgentMessage::Done(Err(RunError::NoWriteConsent { cause, .. }))) => Err(*cause),
        other => panic!("{other:?}"),
    }
}

/// Returns what the agent found on the device.
fn obstacles(refusal: WriteRefusal) -> Vec<WriteObstacle> {
    match refusal {
        WriteRefusal::Obstacles { obstacles, .. } => obstacles,
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "needs root and loop devices"]
fn device_is_inspected_and_written_only_with_consent() {
    let device = Loop::new(&[]);
    let agent = Agent::start_with(&["--idle", "60", "--device", device.path()]);
    let mut client = agent.client();
    let inspect_device = |client: &mut SocketClient| {
        let path = device.path().to_owned();
        client.ask(&AgentRequest::Look { path });
        match client.next() {
            AgentMessage::Place(Ok(PathInfo::Existing { carries, used, .. })) => (carries, used),
            other => panic!("{other:?}"),
        }
    };
    let words = format!(
        "--name=t --filename={} --rw=write --bs=64k --size=1m --ioengine=psync",
        device.path()
    );
    assert_eq!(inspect_device(&mut client), (None, None));
    assert_eq!(written(&mut client, 1, &words, None), Ok(1 << 20));
    agent_device::run("mkswap", &[device.path()]);
    let (carries, used) = inspect_device(&mut client);
    assert!(carries.is_some_and(|what| what.contains("swap")));
    assert_eq!(used, None);
    let found = obstacles(written(&mut client, 2, &words, None).unwrap_err());
    assert!(
        matches!(found[..], [WriteObstacle::Carries { .. }]),
        "{found:?}"
    );
    let overwrite = Some(DeviceConsent::Overwrite);
    assert_eq!(written(&mut client, 3, &words, overwrite), Ok(1 << 20));
    // Consent of one run is none to the next.
    agent_device::run("mkswap", &[device.path()]);
    assert!(written(&mut client, 4, &words, None).is_err());

    // A mount opens the device exclusively too. Consent to overwrite does not cover that.
    let held = open_exclusively(&device);
    let (_, used) = inspect_device(&mut client);
    assert!(used.is_some_and(|who| who.contains("exclusively")));
    let found = obstacles(written(&mut client, 5, &words, overwrite).unwrap_err());
    assert!(found.contains(&WriteObstacle::Busy), "{found:?}");
    // Pods of one run write to it side by side.
    let shared = Some(DeviceConsent::Shared);
    assert_eq!(written(&mut client, 6, &words, shared), Ok(1 << 20));
    drop(held);
    assert_eq!(inspect_device(&mut client).1, None);
}
