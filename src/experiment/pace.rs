//! How often results are written while an experiment runs.

use std::time::{Duration, Instant};

/// Results are written with the first and the last run of every cell, and after any other that ends
/// so long after the last time.
const WRITE_EVERY: Duration = Duration::from_secs(5);

/// When results are written: they are written whole, so that what takes long to write is written
/// less often, and writing takes a small share of the whole.
pub(super) struct Pace {
    ended: Instant,
    took: Duration,
}

impl Pace {
    /// Least time between two writings, in times that the first took.
    const REST: u32 = 10;
    /// What is written faster than this needs no rest: results are there with every first run of a
    /// cell.
    const FAST: Duration = Duration::from_millis(200);

    /// From now on.
    pub(super) fn start() -> Self {
        Self {
            ended: Instant::now(),
            took: Duration::ZERO,
        }
    }

    /// From a writing on that began then and has just ended.
    pub(super) fn after(begun: Instant) -> Self {
        Self {
            ended: Instant::now(),
            took: begun.elapsed(),
        }
    }

    /// Whether to write after a run that is the first or last of its cell, or after another.
    pub(super) fn is_due(&self, marks: bool) -> bool {
        let wait = if marks { Duration::ZERO } else { WRITE_EVERY };
        let rest = if self.took < Self::FAST {
            Duration::ZERO
        } else {
            self.took * Self::REST
        };
        self.ended.elapsed() >= wait.max(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_to_write_is_written_less_often() {
        let now = |took| Pace {
            ended: Instant::now(),
            took,
        };
        let fast = now(Duration::ZERO);
        assert!(fast.is_due(true) && !fast.is_due(false));
        assert!(!now(Duration::from_mins(1)).is_due(true));
        let long_ago = Instant::now().checked_sub(Duration::from_secs(6));
        let rested = |took| long_ago.is_none_or(|ended| Pace { ended, took }.is_due(false));
        assert!(rested(Duration::ZERO) && rested(Duration::from_millis(500)));
        assert!(!now(Duration::from_millis(500)).is_due(true));
    }
}
