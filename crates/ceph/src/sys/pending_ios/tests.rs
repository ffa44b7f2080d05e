//! Tests of requests, completions, callbacks and abandoned I/Os.

use super::*;

#[test]
fn io_completes_with_its_last_request() {
    let mut pending = PendingIos::new(2, false);
    pending.begin(1, 2);
    pending.begin(0, 1);
    let mut done = Vec::new();
    pending.get(1).complete_piece(512);
    pending.collect(0, None, &mut done);
    assert!(done.is_empty());
    pending.get(0).complete_piece(-libc::ETIMEDOUT);
    pending.get(1).complete_piece(1024);
    pending.collect(2, None, &mut done);
    let found: Vec<_> = done.iter().map(|done| (done.slot, done.result)).collect();
    assert_eq!(found, [(0, -libc::ETIMEDOUT), (1, 1536)]);
    assert!(pending.is_idle());
}

#[test]
fn abandoned_io_completes_once_and_drops_later_completion() {
    for _ in 0..200 {
        let mut pending = PendingIos::new(3, false);
        let mut ios = Vec::new();
        for slot in 0..3 {
            pending.begin(slot, 1);
            ios.push(std::ptr::from_ref(pending.get(slot)) as usize);
        }
        let late = ios[2];
        // SAFETY: abandoned ios are leaked, so they are never freed.
        let over = |io: usize| unsafe { &*(io as *const PendingIo) }.complete_piece(512);
        let other = std::thread::spawn(move || over(ios[1]));
        let mut done = Vec::new();
        pending.abandon(-libc::ECANCELED, &mut done);
        assert!(pending.is_idle());
        over(late);
        other.join().unwrap();
        drop(pending);
        let mut slots: Vec<u32> = done.iter().map(|done| done.slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, [0, 1, 2]);
        let result_of = |slot| done.iter().find(|done| done.slot == slot).unwrap().result;
        assert_eq!(result_of(0), -libc::ECANCELED);
        assert!([512, -libc::ECANCELED].contains(&result_of(1)));
    }
}

#[test]
fn io_after_abandon_completes_with_its_result() {
    for polls in [false, true] {
        let mut pending = PendingIos::new(2, polls);
        assert!(!pending.refuse(0));
        pending.begin(0, 1);
        let mut done = Vec::new();
        pending.abandon(-libc::ECANCELED, &mut done);
        done.clear();
        for slot in [1, 0] {
            assert!(pending.refuse(slot));
            assert!(!pending.is_idle());
            pending.collect(1, None, &mut done);
            assert!(pending.is_idle());
            let found: Vec<_> = done
                .drain(..)
                .map(|done| (done.slot, done.result))
                .collect();
            assert_eq!(found, [(slot, -libc::ECANCELED)]);
        }
    }
}

#[test]
fn failed_request_fails_its_io() {
    let mut pending = PendingIos::new(1, false);
    pending.begin(0, 2);
    pending.get(0).complete_piece(-libc::EIO);
    pending.get(0).complete_piece(4096);
    let mut done = Vec::new();
    pending.collect(1, None, &mut done);
    assert_eq!(done[0].result, -libc::EIO);
}

#[test]
fn callback_runs_once_at_wanted_completions() {
    #[derive(Default)]
    struct Calls(AtomicU32);
    impl CompletionCallback for Calls {
        fn on_completions(&self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let calls = Arc::new(Calls::default());
    let mut pending = PendingIos::new(4, false);
    let called: Arc<Calls> = calls.clone();
    pending.set_callback(Arc::<Calls>::downgrade(&called));
    (0..4).for_each(|slot| pending.begin(slot, 1));
    let mut done = Vec::new();
    pending.get(0).complete_piece(0);
    assert_eq!(
        calls.0.load(Relaxed),
        0,
        "no collect has asked for completions"
    );
    pending.collect(3, None, &mut done);
    assert!(done.is_empty(), "too few completions stay queued");
    pending.get(1).complete_piece(0);
    assert_eq!(calls.0.load(Relaxed), 0);
    pending.get(2).complete_piece(0);
    pending.get(3).complete_piece(0);
    assert_eq!(calls.0.load(Relaxed), 1);
    pending.collect(3, None, &mut done);
    assert_eq!(done.len(), 4);
    assert!(pending.is_idle());
    // Without a callback, `collect` waits.
    drop((calls, called));
    pending.begin(0, 1);
    pending.collect(1, None, &mut done);
    pending.get(0).complete_piece(0);
    pending.clear_callback();
    pending.collect(5, None, &mut done);
    assert_eq!(done.len(), 5);
}

#[test]
fn cancelled_late_io_reports_timeout() {
    let mut pending = PendingIos::new(2, false);
    (0..2).for_each(|slot| pending.begin(slot, 1));
    assert!(pending.mark_late(0));
    (0..2).for_each(|slot| pending.get(slot).complete_piece(-libc::ECANCELED));
    let mut done = Vec::new();
    pending.collect(2, None, &mut done);
    let results: Vec<i32> = done.iter().map(|done| done.result).collect();
    assert_eq!(results, [-libc::ETIMEDOUT, -libc::ECANCELED]);
    assert!(!pending.mark_late(0), "the I/O is not in flight");
    pending.begin(0, 1);
    pending.get(0).complete_piece(-libc::ECANCELED);
    pending.collect(3, None, &mut done);
    assert_eq!(
        done[2].result,
        -libc::ECANCELED,
        "the mark is cleared by the next I/O"
    );
}

#[test]
fn collect_returns_on_completion_or_timeout() {
    for polls in [false, true] {
        let mut pending = PendingIos::new(1, polls);
        pending.begin(0, 1);
        let mut done = Vec::new();
        pending.collect(1, Some(Duration::from_millis(1)), &mut done);
        assert!(done.is_empty());
        let io = std::ptr::from_ref(pending.get(0)) as usize;
        let other = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(5));
            // SAFETY: the io lives until its I/O completes, which this call does.
            unsafe { &*(io as *const PendingIo) }.complete_piece(7);
        });
        pending.collect(1, None, &mut done);
        assert_eq!(done[0].result, 7);
        other.join().unwrap();
    }
}

#[test]
fn discard_of_over_2_gib_completes_without_an_errno() {
    let mut pending = PendingIos::new(2, false);
    pending.begin(0, 1);
    pending.get(0).credit(3 << 30);
    pending.get(0).complete_piece(0);
    pending.begin(1, 2);
    (0..2).for_each(|_| pending.get(1).complete_piece(1 << 30));
    let mut done = Vec::new();
    pending.collect(2, None, &mut done);
    let results: Vec<i32> = done.iter().map(|done| done.result).collect();
    assert_eq!(results, [i32::MAX; 2]);
}
