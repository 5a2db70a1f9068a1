//! Each worker sums a chunk for all, and what goes there and back is encoded.

use std::ops::Range;

use super::coded::{Coded, to_words, words};
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{Bytes, CodecKey, Message, Outbox, TrafficKind, Way, to_bytes};
use crate::sim::{Activity, Exchange, SimError, Track, Worker};

/// Values are cut into a chunk for each worker. Everybody sends every other worker its chunk,
/// encoded; the owner of a chunk adds what came, in the order of ranks, to its own part, which is
/// not encoded; what that comes to is encoded once more and gathered by all. This is how 1-bit SGD
/// exchanges its stripes (Seide et al., INTERSPEECH 2014, section 3), in whose program QSGD was
/// measured, and `compressed_allreduce` of `DeepSpeed` (1-bit Adam: Tang et al., ICML 2021).
///
/// With signs it is signSGD with majority vote (Bernstein, Zhao, Azizzadenesheli and Anandkumar,
/// ICLR 2019), whose server has been dealt out to all workers, and whose votes are weighed by how
/// large a worker's entries are on average. With feedback an owner keeps what the second encoding
/// of its chunk leaves out, as everybody what the first leaves out of all others (Zheng, Huang and
/// Kwok, *dist-EF-SGD*, `NeurIPS` 2019): a vote that is lost is not forgotten.
///
/// A worker is charged a pass over its values before, one over its chunk as often as there are
/// workers, and one over all values behind.
///
/// What is kept is what the second encoding left out of the own chunk, and of the others what their
/// first did.
pub(super) struct Split(pub Coded);

impl Split {
    /// The values that a worker sums: the first chunks are one longer where they cannot be equal.
    fn chunk(&self, worker: usize) -> Range<usize> {
        let Coded { workers, len, .. } = self.0;
        let begin = |at: usize| at * (len / workers) + at.min(len % workers);
        begin(worker)..begin(worker + 1)
    }

    fn bytes(&self, worker: usize) -> usize {
        self.0.bytes(self.chunk(worker).len())
    }

    /// The workers that sum anything, but for one.
    fn owners(&self, but: usize) -> impl Iterator<Item = usize> {
        (0..self.0.workers.min(self.0.len)).filter(move |&owner| owner != but)
    }

    /// Who sends a worker its chunk.
    fn senders(&self, to: usize) -> Vec<usize> {
        let others = (0..self.0.workers).filter(|&from| from != to && to < self.0.len);
        others.collect()
    }

    /// Words that each worker gives back.
    fn lens(&self) -> Vec<usize> {
        let bytes = (0..self.0.workers).map(|owner| self.bytes(owner));
        bytes.map(words).collect()
    }

    /// Encodes the chunks of all others, and keeps what that leaves out.
    fn encode(
        &mut self,
        rank: usize,
        values: &[f32],
        key: CodecKey,
    ) -> Result<Vec<Message>, SimError> {
        let mut messages = Vec::new();
        for peer in self.owners(rank).collect::<Vec<_>>() {
            let chunk = self.chunk(peer);
            let key = key.between(rank, peer, Way::Forward);
            let payload = self.0.encode(chunk.start, &values[chunk], key)?;
            messages.push(Message { peer, payload });
        }
        Ok(messages)
    }

    /// Sums the own chunk, encodes it, and keeps what that leaves out.
    fn sum_chunk(
        &mut self,
        rank: usize,
        values: &[f32],
        came: &[Message],
        key: CodecKey,
    ) -> Result<Vec<f32>, SimError> {
        let chunk = self.chunk(rank);
        let mut sum = values[chunk.clone()].to_vec();
        for Message { peer, payload } in came {
            let key = key.between(*peer, rank, Way::Forward);
            self.0.add(payload, &mut sum, key)?;
        }
        if sum.is_empty() {
            return Ok(Vec::new());
        }
        let key = key.between(rank, rank, Way::Back);
        self.0.encode(chunk.start, &sum, key).map(to_words)
    }

    /// All chunks from what was gathered.
    fn join(&self, came: &[f32], key: CodecKey) -> Result<Vec<f32>, SimError> {
        let (mut all, mut start) = (Vec::with_capacity(self.0.len), 0);
        for (owner, words) in self.lens().into_iter().enumerate() {
            let bytes = to_bytes(&came[start..start + words]);
            start += words;
            let key = key.between(owner, owner, Way::Back);
            let (bytes, len) = (&bytes[..self.bytes(owner)], self.chunk(owner).len());
            all.extend(self.0.codec.decode(bytes, [1, len], key)?);
        }
        Ok(all)
    }
}

impl Sum for Split {
    fn plan(&self, track: &mut Track, rank: usize, kind: TrafficKind) {
        track.compute(Work::pass(self.0.len));
        let to = self.owners(rank);
        let to = to.map(|peer| (peer as u32, Bytes(self.bytes(peer) as u64)));
        let from = self.senders(rank).into_iter().map(|peer| peer as u32);
        track.exchange(Exchange {
            kind,
            layer: 0,
            to: to.collect(),
            from: from.collect(),
        });
        track.compute(Work::pass(self.chunk(rank).len() * self.0.workers));
        track.all_gather(&self.lens(), kind);
        track.compute(Work::pass(self.0.len));
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let (rank, key) = (worker.rank(), round.key(self.0.seed));
        let messages = worker.compute(Activity::Exchange, |_| {
            self.0.residual.add_to(&mut values);
            self.encode(rank, &values, key)
        })?;
        let came = worker.exchange(Outbox {
            kind: round.kind,
            layer: 0,
            messages,
            expect: self.senders(rank),
        })?;
        let sum = worker.compute(Activity::Exchange, |_| {
            self.sum_chunk(rank, &values, &came, key)
        })?;
        let came = worker.all_gather(&sum, &self.lens(), round.kind)?;
        worker.compute(Activity::Exchange, |_| self.join(&came, key))
    }

    fn left_out(&self) -> &[f32] {
        self.0.residual.values()
    }

    fn kept(&self) -> usize {
        self.0.residual.kept(self.0.len)
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.0.residual.remember(memory);
    }
}
