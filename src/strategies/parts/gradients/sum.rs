//! A sum of values over all workers.

use crate::net::{CodecKey, TrafficKind};
use crate::sim::{SimError, Track, Worker};

/// One worker's way to a sum that is the same, to the bit, on all workers; and what it will do, for
/// the plan. What it remembers it has from its own calls alone.
pub trait Sum: Send {
    /// Writes down what worker `rank` does for a sum.
    fn plan(&self, track: &mut Track, rank: usize, kind: TrafficKind);

    /// The sum of everybody's values. `round` counts sums.
    ///
    /// # Errors
    /// If communication fails, or what came cannot be read.
    fn sum(
        &mut self,
        worker: &mut Worker,
        values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError>;

    /// What of the values so far this worker has kept back, to add it to the next; nothing where
    /// nothing is lost or fed back.
    fn left_out(&self) -> &[f32];

    /// How many values it keeps from one sum to the next, once there was one.
    fn kept(&self) -> usize;

    /// All that it remembers from one sum to the next, for [`Self::remember`]. Default: what it has
    /// kept back.
    fn memory(&self) -> Vec<&[f32]> {
        vec![self.left_out()]
    }

    /// Goes on after the sums that left this.
    fn remember(&mut self, memory: Vec<Vec<f32>>);
}

/// Which sum it is, and as what its messages are counted.
#[derive(Clone, Copy)]
pub struct Round {
    /// Sums before this one, of this learner.
    pub number: u64,
    /// What is summed.
    pub kind: TrafficKind,
}

impl Round {
    /// From what codecs draw.
    pub(super) const fn key(self, seed: u64) -> CodecKey {
        // No layer has this number, so these draws are not those of any rows.
        CodecKey::new(seed, u32::MAX, self.number)
    }
}
