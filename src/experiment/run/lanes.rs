//! Several runs at a time, in one process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

/// Does `work` on all items, so many at a time, and starts them in their order. `ended` is called
/// on this thread with what came of each, in the order in which they end. After one that `stops`,
/// or where `ended` says no, no other is started; what has started is ended in any case.
pub(super) fn in_lanes<I: Send, T: Send>(
    lanes: usize,
    items: Vec<I>,
    work: impl Fn(I) -> T + Sync,
    stops: impl Fn(&T) -> bool + Sync,
    mut ended: impl FnMut(T) -> bool,
) {
    if lanes <= 1 {
        for item in items {
            let result = work(item);
            let stops = stops(&result);
            if !ended(result) || stops {
                return;
            }
        }
        return;
    }
    let lanes = lanes.min(items.len());
    let items = Mutex::new(items.into_iter());
    let next = || locked(&items).next();
    let stopped = AtomicBool::new(false);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..lanes {
            let sender = sender.clone();
            let (next, stopped, work, stops) = (&next, &stopped, &work, &stops);
            scope.spawn(move || {
                while !stopped.load(Ordering::Acquire)
                    && let Some(item) = next()
                {
                    let result = work(item);
                    // At once: the other end may be writing results.
                    stopped.fetch_or(stops(&result), Ordering::AcqRel);
                    // Nobody listens any more only where the other end has panicked.
                    if sender.send(result).is_err() {
                        return;
                    }
                }
            });
        }
        // The loop below ends when the last lane has dropped its own.
        drop(sender);
        for result in results {
            if !ended(result) {
                stopped.store(true, Ordering::Release);
            }
        }
    });
}

/// Memory for the runs that train at the same time. One alone always has room: whether it fits was
/// asked when it was prepared.
pub(super) struct Room {
    /// Bytes for all; none where the system does not say.
    bytes: Option<u64>,
    /// Bytes that are taken, and by how many.
    taken: Mutex<(u64, usize)>,
    given_back: Condvar,
}

impl Room {
    /// Of so many bytes.
    pub(super) const fn new(bytes: Option<u64>) -> Self {
        Self {
            bytes,
            taken: Mutex::new((0, 0)),
            given_back: Condvar::new(),
        }
    }

    /// Waits until there are so many bytes, or nobody else has any.
    pub(super) fn take(&self, bytes: u64) -> Taken<'_> {
        let mut taken = locked(&self.taken);
        let full = |taken: (u64, usize)| {
            let fits = |room| taken.0.saturating_add(bytes) <= room;
            taken.1 > 0 && !self.bytes.is_none_or(fits)
        };
        while full(*taken) {
            taken = self
                .given_back
                .wait(taken)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *taken = (taken.0.saturating_add(bytes), taken.1 + 1);
        Taken { room: self, bytes }
    }
}

/// Bytes of a [`Room`], given back when it is dropped.
pub(super) struct Taken<'a> {
    room: &'a Room,
    bytes: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = locked(&self.room.taken);
        *taken = (taken.0.saturating_sub(self.bytes), taken.1 - 1);
        drop(taken);
        self.room.given_back.notify_all();
    }
}

/// What a mutex guards, also after another thread has panicked: none of them leaves it half-way.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    #[test]
    fn everything_is_done_once_and_no_more_at_a_time_than_asked() {
        for lanes in [1, 2, 5, 40] {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let mut done = Vec::new();
            let work = |item: usize| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
                item
            };
            in_lanes(
                lanes,
                (0..20).collect(),
                work,
                |_| false,
                |item| {
                    done.push(item);
                    true
                },
            );
            done.sort_unstable();
            assert_eq!(done, (0..20).collect::<Vec<usize>>());
            assert!(most.into_inner() <= lanes);
        }
    }

    #[test]
    fn after_a_failure_nothing_is_started_and_what_was_started_is_ended() {
        for lanes in [1, 3] {
            let started = AtomicUsize::new(0);
            let work = |item: usize| {
                started.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(5));
                item
            };
            let mut ended = 0;
            // Whoever takes in results is slow.
            let stops = |item: &usize| *item == 4;
            in_lanes(lanes, (0..100).collect(), work, stops, |_| {
                ended += 1;
                thread::sleep(Duration::from_millis(10));
                true
            });
            assert_eq!(ended, started.into_inner());
            // A lane that the system held up may end late; without a stop at once it were some 30.
            let most = if lanes == 1 { 5 } else { 20 };
            assert!((5..=most).contains(&ended), "{ended}");
        }
    }

    #[test]
    fn who_is_too_large_beside_others_waits_and_alone_goes_ahead() {
        let room = Room::new(Some(10));
        let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = |bytes: usize| {
            let taken = room.take(bytes as u64);
            most.fetch_max(
                now.fetch_add(bytes, Ordering::SeqCst) + bytes,
                Ordering::SeqCst,
            );
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(bytes, Ordering::SeqCst);
            drop(taken);
        };
        let items = vec![4, 5, 6, 4, 6, 3, 3, 3, 9, 1];
        in_lanes(4, items, work, |()| false, |()| true);
        assert!(most.load(Ordering::SeqCst) <= 10);
        // More than there is: alone, and it ends.
        in_lanes(3, vec![30, 30, 2], work, |()| false, |()| true);
        assert_eq!(most.load(Ordering::SeqCst), 30);
        drop(room.take(u64::MAX));
    }
}
