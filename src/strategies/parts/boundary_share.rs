//! A share of the boundary, drawn anew in every epoch, as in BNS-GCN.
//!
//! ```text
//!   owner: draw rows for each reader ── their ids, `sample` ──▶ reader: its columns, times b / s
//!   then rows and gradients of these alone cross, in every layer above the first
//! ```

use rand::seq::SliceRandom;

use super::crossing::outbox;
use super::{Crossing, HaloExchange};
use crate::graph::{Csr, Peers};
use crate::model::{Aggregation, Block};
use crate::net::{Bytes, Inbox, Message, TrafficKind};
use crate::rng::{Purpose, stream};
use crate::sim::{Activity, Shard, SimError, Worker};

/// The share of every ordered pair's boundary rows that crosses in an epoch, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundaryShare(pub f64);

/// What a worker computes on in one epoch.
pub(super) struct Drawn {
    /// Own rows, which read own ones and what was drawn of the halo.
    pub block: Block,
    /// Global numbers of the rows that are read.
    pub nodes: Vec<u32>,
    /// How the drawn ones cross.
    pub halo: HaloExchange,
}

impl BoundaryShare {
    /// How many of `rows` are drawn: ⌊p·b⌋, as in the authors' code; so of a pair with fewer than
    /// 1/p none ever is.
    pub fn of(self, rows: usize) -> usize {
        (self.0 * rows as f64) as usize
    }

    /// Payload of one message with the ids of drawn rows: 8-byte integers, as in the authors' code.
    pub(crate) const fn id_bytes(rows: usize) -> Bytes {
        Bytes(8 * rows as u64)
    }

    /// Of the rows that `owner` has for each reader, those that cross in an epoch: drawn without
    /// replacement, in the order of the halo. Readers that get none are left out.
    pub(crate) fn draw(
        self,
        sends: &Peers<Vec<u32>>,
        seed: u64,
        owner: usize,
        epoch: usize,
    ) -> Peers<Vec<u32>> {
        let mut random = stream(seed, Purpose::Sampling, owner as u64, epoch as u64);
        let mut drawn = Peers::default();
        for (reader, rows) in sends.iter() {
            let count = self.of(rows.len());
            if count == 0 {
                continue;
            }
            let mut rows = rows.clone();
            let (chosen, _) = rows.partial_shuffle(&mut random, count);
            chosen.sort_unstable(); // the halo of a reader ascends within an owner
            *drawn.of(reader) = chosen.to_vec();
        }
        drawn
    }

    /// Draws this worker's part, tells the others, and hears what they drew.
    pub(super) fn cross(self, worker: &mut Worker, epoch: usize) -> Result<Drawn, SimError> {
        let (seed, rank) = (worker.setting().seed, worker.rank());
        let receives = worker.shard().receives.iter();
        let expect = receives.filter(|(_, range)| self.of(range.len()) > 0);
        let mut outbox = outbox(TrafficKind::Sample, 0, expect.map(|(owner, _)| owner));
        let sends = worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let sends = self.draw(&shard.sends, seed, rank, epoch);
            let message = |(peer, rows): (usize, &Vec<u32>)| {
                let ids = rows.iter().map(|&row| u64::from(shard.nodes[row as usize]));
                let payload = ids.flat_map(u64::to_le_bytes).collect();
                Message { peer, payload }
            };
            outbox.messages = sends.iter().map(message).collect();
            sends
        });
        let inbox = worker.exchange(outbox)?;
        Ok(worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let readable = Readable::new(shard, &inbox);
            let aggregation = worker.setting().model.aggregation();
            let nodes = readable.rows.iter().map(|&row| shard.nodes[row as usize]);
            let owned = shard.owned;
            Drawn {
                block: readable.block(shard, aggregation),
                nodes: nodes.collect(),
                halo: HaloExchange::of(Crossing::new(owned, owned, sends, readable.receives)),
            }
        }))
    }
}

/// The rows that a worker reads in one epoch.
struct Readable {
    /// Local rows, ascending: the owned ones first.
    rows: Vec<u32>,
    /// For each worker whose rows are among them, where, the first row of others being 0.
    receives: Peers<std::ops::Range<usize>>,
    /// For each of them, the number of rows that it stands for: b / s of others, 1 of own ones.
    stands_for: Vec<f32>,
}

impl Readable {
    /// What the messages say: ids of drawn rows, by owner.
    fn new(shard: &Shard, inbox: &Inbox) -> Self {
        let owned = shard.owned;
        let mut readable = Self {
            rows: (0..owned as u32).collect(),
            receives: Peers::default(),
            stands_for: vec![1.0; owned],
        };
        for message in inbox {
            let range = shard.receives[message.peer].clone();
            let halo = &shard.nodes[owned + range.start..owned + range.end];
            let start = readable.rows.len() - owned;
            let (ids, _) = message.payload.as_chunks();
            let places = ids
                .iter()
                .filter_map(|&eight| u32::try_from(u64::from_le_bytes(eight)).ok())
                .filter_map(|id| halo.binary_search(&id).ok());
            let rows = places.map(|place| (owned + range.start + place) as u32);
            readable.rows.extend(rows);
            let end = readable.rows.len() - owned;
            let factor = range.len() as f64 / (end - start).max(1) as f64;
            readable
                .stands_for
                .resize(readable.rows.len(), factor as f32);
            *readable.receives.of(message.peer) = start..end;
        }
        readable
    }

    /// The owned nodes' neighbours among these rows, with degrees of the whole graph. The message
    /// of a drawn row is multiplied by b / s: that is the same as to divide the row and its
    /// gradient by s / b, and makes sums and means unbiased. Attention and maxima are over what was
    /// drawn.
    fn block(&self, shard: &Shard, aggregation: Aggregation) -> Block {
        let mut place = vec![None; shard.nodes.len()];
        for (at, &row) in self.rows.iter().enumerate() {
            place[row as usize] = Some(at as u32);
        }
        let edges = shard.adjacency.iter_edges();
        let kept = edges.filter_map(|(source, row)| Some((place[source as usize]?, row)));
        let adjacency = Csr::rectangular(shard.owned, self.rows.len(), kept);
        let degrees = self.rows.iter().map(|&row| shard.degrees[row as usize]);
        let degrees: Vec<usize> = degrees.collect();
        Block::new(&adjacency, &degrees, aggregation)
            .scaled(|_, source| self.stands_for[source as usize])
    }
}

#[cfg(test)]
mod tests;
