//! Plans that are written down worker by worker.

use std::sync::Arc;

use super::PassPlan;
use crate::model::{BlockShape, InputShape};
use crate::sim::{Decision, Planner, Setting, Timeline, Track};

/// Plans in which each worker does in each epoch what `write` writes down, given the number of the
/// epoch and the rank of the worker.
pub fn plan_each(
    workers: usize,
    write: impl FnMut(usize, usize, &mut Track) + Send + 'static,
) -> Box<dyn Planner> {
    Box::new(Each {
        workers,
        write,
        epoch: 0,
        last: Arc::default(),
    })
}

struct Each<W> {
    workers: usize,
    write: W,
    epoch: usize,
    last: Arc<Timeline>,
}

impl<W: FnMut(usize, usize, &mut Track) + Send> Planner for Each<W> {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let mut tracks = vec![Track::default(); self.workers];
        for (rank, track) in tracks.iter_mut().enumerate() {
            (self.write)(self.epoch, rank, track);
        }
        self.last = Timeline::following(&self.last, self.epoch, tracks);
        self.epoch += 1;
        Arc::clone(&self.last)
    }
}

/// A worker's forward and backward pass over its own part of the graph, cut edges dropped.
pub fn pass_alone(track: &mut Track, setting: &Setting, rank: usize) {
    let (model, part) = (&setting.model, &setting.counts.parts[rank]);
    let aggregation = model.aggregation();
    let own = BlockShape::of(part.owned, part.owned, part.internal_edges, aggregation);
    pass_over(track, setting, rank, own, part.own_values);
}

/// A worker's forward and backward pass over one block in all layers, in which nothing crosses the
/// cut; so many values of features are stored.
pub fn pass_over(
    track: &mut Track,
    setting: &Setting,
    rank: usize,
    block: BlockShape,
    stored: usize,
) {
    let blocks = vec![block; setting.model.layers()];
    let features = InputShape::new(stored, setting.counts.dense);
    PassPlan::alone(&setting.model, blocks, Some(features)).write(track, rank);
}
