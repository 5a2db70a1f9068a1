//! An epoch as it is written: what every worker does, cut where something is done again.

use std::sync::Arc;

use crate::sim::{Stretch, Timeline, Track};

/// The tracks of the workers, and what is behind them.
pub(crate) struct Stretches {
    /// What each worker does since the last cut.
    pub(crate) tracks: Vec<Track>,
    none: Vec<Track>,
    done: Vec<Stretch>,
}

impl Stretches {
    /// Of so many workers that have done nothing.
    pub(crate) fn of(workers: usize) -> Self {
        let none = vec![Track::default(); workers];
        Self {
            tracks: none.clone(),
            none,
            done: Vec::new(),
        }
    }

    /// What was written since the last cut can be done again by itself.
    pub(crate) fn cut(&mut self) {
        if self.tracks != self.none {
            let written = std::mem::replace(&mut self.tracks, self.none.clone());
            self.done.push(Stretch::once(written));
        }
    }

    /// All workers do once more what they did last. `false` if that is nothing.
    pub(crate) fn again(&mut self) -> bool {
        self.cut();
        let last = self.done.last_mut();
        last.map(|last| last.times += 1).is_some()
    }

    /// All of it, as an epoch after another one.
    pub(crate) fn after(mut self, before: &Timeline, epoch: usize) -> Arc<Timeline> {
        self.cut();
        if self.done.is_empty() {
            self.done.push(Stretch::once(self.none));
        }
        Timeline::after(before, epoch, self.done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Work;

    #[test]
    fn what_is_done_again_is_held_once_and_what_opens_an_epoch_stays_before_it() {
        let mut written = Stretches::of(2);
        assert!(!written.again(), "nobody did anything");
        written.tracks[0].compute(Work::pass(1));
        written.cut();
        written.cut();
        for step in 0..3 {
            if step < 1 || !written.again() {
                written.tracks[1].compute(Work::pass(2));
            }
        }
        written.tracks[0].compute(Work::pass(3));
        let timeline = written.after(&Timeline::default(), 4);
        let times = timeline.stretches.iter().map(|stretch| stretch.times);
        assert_eq!(times.collect::<Vec<_>>(), [1, 3, 1]);
        assert_eq!(timeline.epoch, 4);
        // A worker without anything to do has an epoch, too.
        let idle = Stretches::of(2).after(&timeline, 5);
        assert_eq!((idle.stretches.len(), idle.workers()), (1, 2));
    }
}
