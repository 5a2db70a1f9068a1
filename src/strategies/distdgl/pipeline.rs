//! When mini-batches are made ready: all of a batch's stages in its own step, or one in each step
//! before it.
//!
//! ```text
//!   stage                               in step 7, of two hops
//!   0  draw, ask about neighbours       batch 11
//!   1  draw for others, answer          batch 10
//!   2  make blocks, ask for features    batch 9
//!   3  send features                    batch 8
//!   4  put them together                batch 7, which is computed then
//! ```

/// The order in which batches are made ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pipeline {
    /// Stages of a batch; what one of them sends the next one waits for.
    stages: usize,
    /// Steps between the first stage of a batch and the last.
    ahead: usize,
    /// Steps of the whole training, each of which has a batch.
    steps: usize,
}

impl Pipeline {
    /// That of batches of so many hops. Each remote hop is asked for and answered, and so are the
    /// features: `2 · hops + 1` stages. With `prefetch` each has a step of its own.
    pub(super) const fn new(hops: usize, prefetch: bool, steps: usize) -> Self {
        let stages = 2 * hops + 1;
        Self {
            stages,
            ahead: if prefetch { stages - 1 } else { 0 },
            steps,
        }
    }

    /// The last batch that is begun at a step, if the training has as many.
    pub(super) fn last_begun(&self, step: usize) -> usize {
        (step + self.ahead).min(self.steps.saturating_sub(1))
    }

    /// What is done at a step before it is computed: stages of batches, older batches first, so
    /// that all workers send and wait in the same order. The first step makes up for those that it
    /// does not have before it.
    pub(super) fn before(self, step: usize) -> impl Iterator<Item = (usize, usize)> {
        let waits = if step == 0 { self.ahead } else { 0 };
        let turns = (0..=waits).rev();
        turns
            .flat_map(move |early| (0..self.stages).rev().map(move |stage| (early, stage)))
            .filter_map(move |(early, stage)| {
                if self.ahead == 0 {
                    // All at once, in their own order.
                    return Some((step, self.stages - 1 - stage));
                }
                let batch = (step + self.ahead - stage).checked_sub(early)?;
                (batch < self.steps).then_some((batch, stage))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_goes_through_all_stages_in_order_and_is_ready_for_its_step() {
        for (hops, prefetch, steps) in [(1, false, 3), (2, false, 4), (1, true, 5), (3, true, 4)] {
            let pipeline = Pipeline::new(hops, prefetch, steps);
            let mut done = vec![0; steps];
            for step in 0..steps {
                for (batch, stage) in pipeline.before(step) {
                    assert_eq!(done[batch], stage, "{pipeline:?}: batch {batch}");
                    assert!(batch <= pipeline.last_begun(step));
                    done[batch] += 1;
                }
                assert_eq!(done[step], 2 * hops + 1, "{pipeline:?}: step {step}");
            }
            assert!(done.iter().all(|&stages| stages == 2 * hops + 1));
        }
    }

    #[test]
    fn ahead_of_time_a_step_has_one_stage_of_each_batch_under_way() {
        let pipeline = Pipeline::new(2, true, 100);
        let found: Vec<_> = pipeline.before(7).collect();
        assert_eq!(found, [(7, 4), (8, 3), (9, 2), (10, 1), (11, 0)]);
        let without = Pipeline::new(2, false, 100);
        let found: Vec<_> = without.before(7).collect();
        assert_eq!(found, [(7, 0), (7, 1), (7, 2), (7, 3), (7, 4)]);
    }
}
