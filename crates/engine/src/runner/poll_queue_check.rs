//! Notes on jobs that poll a device without poll queues.

use super::JobClone;
use crate::counters::WorkerCounters;
use crate::files::FileKind;
use iosonde_job::plan::{Engine, Job};
use iosonde_machine::identify::identify;
use iosonde_result::host::TargetInfo;

/// Adds a note if the job polls for completions (`hipri`) of a device without poll queues.
pub(super) fn note_missing_poll_queues(job: &Job, clone: &JobClone, shared: &WorkerCounters) {
    if !polls(job) {
        return;
    }
    for file in &clone.files().files {
        if file.kind == FileKind::Stream {
            continue;
        }
        let Ok(target) = identify(&file.path) else {
            continue;
        };
        if let Some(device) = device_without_poll_queues(&target) {
            shared.note_of_job(format!(
                "hipri polls {device}, which has no poll queues: threads spin until the \
                 interrupt, or the kernel refuses the I/O (EOPNOTSUPP). Omit hipri, or load the \
                 driver with poll_queues= (nvme, virtio_blk)"
            ));
            // One device is enough to explain the figures.
            return;
        }
    }
}

/// Whether a job asks the kernel to poll. Only direct I/O is polled.
fn polls(job: &Job) -> bool {
    let io = &job.io;
    let can_poll = match io.engine {
        Engine::Auto | Engine::IoUring => true,
        Engine::Pvsync2 => io.hipri_percent > 0,
        _ => false,
    };
    can_poll && io.uring.hipri && io.direct
}

/// Returns the name of a device under a target whose queue reports that it cannot poll.
fn device_without_poll_queues(target: &TargetInfo) -> Option<String> {
    let devices = target.all_devices().into_iter();
    let mut without = devices.filter(|device| {
        let queue = device.queue.as_ref();
        queue.and_then(|queue| queue.polling) == Some(false)
    });
    without.next().map(|device| device.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosonde_result::host::{DeviceInfo, DeviceNumber, Queue};

    #[test]
    fn polling_jobs_are_direct_and_ask_for_hipri() {
        let job = |engine, hipri, direct| {
            let mut job = Job::new("a");
            job.io.engine = engine;
            job.io.uring.hipri = hipri;
            job.io.direct = direct;
            job
        };
        assert!(polls(&job(Engine::IoUring, true, true)));
        assert!(polls(&job(Engine::Pvsync2, true, true)));
        assert!(!polls(&job(Engine::IoUring, false, true)));
        assert!(!polls(&job(Engine::IoUring, true, false)));
        assert!(!polls(&job(Engine::Libaio, true, true)));
        let mut never = job(Engine::Pvsync2, true, true);
        never.io.hipri_percent = 0;
        assert!(!polls(&never));
    }

    #[test]
    fn device_without_poll_queues_is_named() {
        let device = |name: &str, minor, polling: Option<bool>| DeviceInfo {
            name: name.to_owned(),
            number: DeviceNumber { major: 259, minor },
            queue: polling.map(|polling| Queue {
                polling: Some(polling),
                ..Queue::default()
            }),
            ..DeviceInfo::default()
        };
        let named = |below: DeviceInfo| {
            let partition = DeviceInfo {
                below: vec![below],
                ..device("nvme0n1p1", 1, None)
            };
            device_without_poll_queues(&TargetInfo {
                devices: vec![partition],
                ..TargetInfo::default()
            })
        };
        let name = named(device("nvme0n1", 0, Some(false)));
        assert_eq!(name.as_deref(), Some("nvme0n1"));
        assert_eq!(named(device("nvme0n1", 0, Some(true))), None);
        assert_eq!(named(device("nvme0n1", 0, None)), None);
    }
}
