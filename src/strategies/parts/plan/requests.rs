//! What workers do who ask the owners of rows for them.

use super::crossing::{exchange, peers, receive_features, send_features};
use crate::graph::StepDraws;
use crate::model::Work;
use crate::net::{Bytes, TrafficKind};
use crate::sim::Track;
use crate::strategies::parts::Wire;

/// Who asks whom for how many rows, as one worker sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Owners whom the worker asks, ascending, and for how many.
    pub by_me: Vec<(u32, usize)>,
    /// Workers who ask it, ascending, and for how many.
    pub of_me: Vec<(u32, usize)>,
}

impl Asks {
    /// Those of a layer of a step.
    pub(crate) fn of(draws: &StepDraws, layer: usize, rank: usize) -> Self {
        let asks = draws.layers[layer][rank].asks.iter();
        let asked = draws.asked_of(layer, rank);
        Self {
            by_me: asks.map(|(owner, &rows)| (owner as u32, rows)).collect(),
            of_me: asked.map(|(reader, rows)| (reader as u32, rows)).collect(),
        }
    }

    /// Rows that the worker asks for, and that it is asked for.
    pub fn rows(&self) -> (usize, usize) {
        let sum = |rows: &[(u32, usize)]| rows.iter().map(|(_, rows)| rows).sum();
        (sum(&self.by_me), sum(&self.of_me))
    }
}

/// A worker asks owners for rows, 4 bytes each, and hears what others ask for.
pub fn ask_owners(track: &mut Track, layer: usize, asks: &Asks) {
    start_asking(track, layer, asks);
    finish_asking(track, layer, asks);
}

/// Its first half, after which the numbers travel.
pub fn start_asking(track: &mut Track, layer: usize, asks: &Asks) {
    let (wanted, _) = asks.rows();
    track.compute(Work::pass(wanted));
    let ids = |&(owner, rows): &(u32, usize)| (owner, Bytes(4 * rows as u64));
    let to = asks.by_me.iter().map(ids).collect();
    let from = peers(&asks.of_me);
    track.start_exchange(exchange(TrafficKind::Sample, layer, to, from));
}

/// Its second half.
pub fn finish_asking(track: &mut Track, layer: usize, asks: &Asks) {
    let (_, asked) = asks.rows();
    track.finish_exchange(TrafficKind::Sample, layer as u32);
    track.compute(Work::pass(asked));
}

/// A worker sends the features that it was asked for, and hears those that it asked for.
pub fn exchange_features(track: &mut Track, rank: usize, asks: &Asks, width: usize, wire: &Wire) {
    send_features(track, rank, [&asks.of_me, &asks.by_me], width, wire);
    receive_features(track, asks.rows().0, width);
}
