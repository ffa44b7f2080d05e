//! Requests of which a bounded number runs at the same time.

use futures::StreamExt;
use futures::stream::iter;

/// Most requests of [`await_bounded`] at the same time.
const REQUESTS_MAX: usize = 16;

/// Awaits requests, a bounded number at the same time. Returns the results in their order. A
/// request that hangs delays none but itself: completed ones make room whatever their order.
pub(crate) async fn await_bounded<F: Future>(requests: impl Iterator<Item = F>) -> Vec<F::Output> {
    let numbered = requests
        .enumerate()
        .map(|(number, request)| async move { (number, request.await) });
    let answered = iter(numbered).buffer_unordered(REQUESTS_MAX);
    let mut answered: Vec<_> = answered.collect().await;
    answered.sort_unstable_by_key(|(number, _)| *number);
    answered.into_iter().map(|(_, output)| output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn number_of_removals_at_once_is_bounded() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let runtime = crate::connect::runtime().unwrap();
        let (active, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let remove = |number: usize| {
            let (active, most) = (&active, &most);
            async move {
                most.fetch_max(active.fetch_add(1, Relaxed) + 1, Relaxed);
                // Later ones end first.
                tokio::time::sleep(Duration::from_millis(20 - number as u64 % 20)).await;
                active.fetch_sub(1, Relaxed);
                number
            }
        };
        let removed = runtime.block_on(await_bounded((0..100).map(remove)));
        assert_eq!(removed, (0..100).collect::<Vec<_>>());
        assert_eq!(most.into_inner(), REQUESTS_MAX);
    }

    #[test]
    fn removal_that_hangs_does_not_delay_the_others() {
        use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        let runtime = crate::connect::runtime().unwrap();
        let ended = AtomicUsize::new(0);
        let remove = |number: usize| {
            let ended = &ended;
            async move {
                let begun = Instant::now();
                while number == 0 && ended.load(Relaxed) < 99 {
                    assert!(begun.elapsed() < Duration::from_secs(30), "the others wait");
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                ended.fetch_add(1, Relaxed);
                number
            }
        };
        let removed = runtime.block_on(await_bounded((0..100).map(remove)));
        assert_eq!(removed, (0..100).collect::<Vec<_>>());
    }
}
