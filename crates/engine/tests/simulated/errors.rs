//! Tests of errors, and of the conditions that count as errors.

use super::*;

#[test]
fn errors_are_counted_or_end_the_job() {
    let device = "read_us=100,parallel=1,read_dist=fixed,error_at=100";
    let result = run(vec![job(device, 1)]);
    let failure = result.workers[0]
        .error
        .as_ref()
        .expect("an error without continue_on_error ends the job");
    assert_eq!(failure.errno, 5);
    let mut survivor = job(device, 1);
    survivor.errors.continue_read = true;
    let result = run(vec![survivor]);
    assert_eq!(
        (
            result.workers[0].error.clone(),
            result.workers[0].total_errors
        ),
        (None, 1)
    );
}

#[test]
fn continue_on_error_survives_what_fio_survives() {
    let device = "read_us=100,parallel=1,read_dist=fixed,error_at=100";
    let mut named = job(device, 1);
    named.errors.ignore[0] = vec![libc::EIO];
    let (worker, errno) = single(named);
    assert_eq!((errno, worker.total_errors, worker.first_error), (0, 1, 5));
    // `ignore_error` overrides `continue_on_error`, and this list lacks EIO.
    let mut other = job(device, 1);
    other.errors.continue_read = true;
    other.errors.ignore[0] = vec![libc::ENOSPC];
    assert_eq!(single(other).1, 5);
    // Errors of writes are counted separately.
    let mut writes = job(device, 1);
    writes.errors.continue_write = true;
    assert_eq!(single(writes).1, 5);
}

#[test]
fn error_dump_shows_errors_that_are_survived() {
    let mut dumped = job("read_us=100,parallel=1,read_dist=fixed,error_at=100", 1);
    dumped.errors.continue_read = true;
    assert_eq!(run(vec![dumped.clone()]).events, []);
    dumped.errors.dump = true;
    let events = run(vec![dumped]).events;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(
        events[0].message.contains("failed with EIO"),
        "{}",
        events[0].message
    );
}

#[test]
fn max_latency_ends_a_job_with_etimedout() {
    let mut limited = job(SLOW, 1);
    limited.schedule.max_latency_ns.read = Some(999_999);
    let (worker, errno) = single(limited.clone());
    let failure = worker.error.expect("an error");
    assert_eq!(errno, libc::ETIMEDOUT);
    assert!(failure.message.contains("max_latency"), "{failure:?}");
    limited.schedule.max_latency_ns.read = Some(1_000_000);
    assert_eq!(single(limited.clone()).1, 0, "not above");
    limited.schedule.max_latency_ns.read = Some(999_999);
    limited.errors.continue_read = true;
    assert_eq!(single(limited).1, libc::ETIMEDOUT, "no error of the device");
}

#[test]
fn device_timeout_is_survived_with_ignore_error() {
    let mut job = job(
        "read_us=100,parallel=1,read_dist=fixed,error_at=100:ETIMEDOUT",
        1,
    );
    let (worker, errno) = single(job.clone());
    let failure = worker.error.expect("an error");
    assert_eq!(errno, libc::ETIMEDOUT);
    assert!(failure.message.contains("did not answer"), "{failure:?}");
    job.errors.ignore[0] = vec![libc::ETIMEDOUT];
    let (worker, errno) = single(job);
    assert_eq!((errno, worker.first_error), (0, libc::ETIMEDOUT));
}

#[test]
fn job_below_rate_min_fails_as_in_fio() {
    let mut slow = job(SLOW, 1);
    slow.schedule.rate_iops_min = PerDirection::from_value(Some(999));
    assert_eq!(single(slow.clone()).1, 0, "it neither writes nor trims");
    slow.schedule.rate_iops_min.read = Some(1_100);
    let (worker, errno) = single(slow.clone());
    assert_eq!(errno, libc::EIO);
    assert!(worker.elapsed_ns < 4_000_000_000, "{}", worker.elapsed_ns);
    slow.schedule.rate_iops_min.read = None;
    slow.schedule.rate_min_bytes.read = Some(1_100 * 4096);
    assert_eq!(single(slow).1, libc::EIO);
}
