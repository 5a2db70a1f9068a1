//! What steps of a training give, for those who ask more than once.

use std::sync::Arc;

/// Results of steps that can be played in any order, and cheaply one after the other: the last one is remembered.
#[derive(Debug)]
pub struct Replay<R> {
    steps: usize,
    in_order: bool,
    /// The step after the last one that was played.
    next: (usize, usize),
    last: Arc<R>,
}

impl<R: Default> Replay<R> {
    /// Nothing was played yet of epochs of so many steps; `in_order` if a step builds on those before it.
    #[must_use]
    pub fn new(steps: usize, in_order: bool) -> Self {
        Self {
            steps,
            in_order,
            next: (0, 0),
            last: Arc::default(),
        }
    }

    /// What `play` gives for a step of an epoch. Where steps build on each other, those that are missing are played before it; step 0
    /// of epoch 0 has to begin anew.
    pub fn go_to(
        &mut self,
        epoch: usize,
        step: usize,
        mut play: impl FnMut(usize, usize) -> R,
    ) -> Arc<R> {
        if self.next == self.after(epoch, step) {
            return Arc::clone(&self.last);
        }
        if !self.in_order {
            self.next = (epoch, step);
        } else if self.next > (epoch, step) {
            self.next = (0, 0);
        }
        while self.next <= (epoch, step) {
            let (epoch, step) = self.next;
            self.last = Arc::new(play(epoch, step));
            self.next = self.after(epoch, step);
        }
        Arc::clone(&self.last)
    }

    const fn after(&self, epoch: usize, step: usize) -> (usize, usize) {
        if step + 1 < self.steps {
            (epoch, step + 1)
        } else {
            (epoch + 1, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_build_on_each_other_are_played_in_order_and_others_alone() {
        for (in_order, expected) in [
            (true, vec![(0, 0), (0, 1), (1, 0), (0, 0), (0, 1)]),
            (false, vec![(1, 0), (0, 1)]),
        ] {
            let (mut replay, mut played) = (Replay::new(2, in_order), Vec::new());
            for (epoch, step) in [(1, 0), (1, 0), (0, 1)] {
                let found = replay.go_to(epoch, step, |epoch, step| {
                    played.push((epoch, step));
                    10 * epoch + step
                });
                assert_eq!(*found, 10 * epoch + step);
            }
            assert_eq!(played, expected);
        }
    }
}
