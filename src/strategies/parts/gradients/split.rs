//! Each worker sums a chunk for all, and what goes there and back is encoded.

use std::ops::Range;

use super::gathered::{to_words, words};
use super::residual::Residual;
use super::sum::{Round, Sum};
use crate::model::Work;
use crate::net::{Bytes, Codec, CodecKey, Message, Outbox, Rows, TrafficKind, Way, to_bytes};
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
pub(super) struct Split {
    codec: Box<dyn Codec>,
    workers: usize,
    len: usize,
    seed: u64,
    /// Of the own chunk what its second encoding left out, of the others what their first did.
    residual: Residual,
}

impl Split {
    pub(super) const fn new(
        codec: Box<dyn Codec>,
        [workers, len]: [usize; 2],
        seed: u64,
        feedback: bool,
    ) -> Self {
        Self {
            codec,
            workers,
            len,
            seed,
            residual: Residual::new(feedback),
        }
    }

    /// The values that a worker sums: the first chunks are one longer where they cannot be equal.
    fn chunk(&self, worker: usize) -> Range<usize> {
        let begin = |at: usize| at * (self.len / self.workers) + at.min(self.len % self.workers);
        begin(worker)..begin(worker + 1)
    }

    fn bytes(&self, worker: usize) -> usize {
        self.codec.encoded_bytes(1, self.chunk(worker).len()).0 as usize
    }

    /// The workers that sum anything, but for one.
    fn owners(&self, but: usize) -> impl Iterator<Item = usize> {
        (0..self.workers.min(self.len)).filter(move |&owner| owner != but)
    }

    /// Who sends a worker its chunk.
    fn senders(&self, to: usize) -> Vec<usize> {
        let others = (0..self.workers).filter(|&from| from != to && to < self.len);
        others.collect()
    }

    /// Words that each worker gives back.
    fn lens(&self) -> Vec<usize> {
        let bytes = (0..self.workers).map(|owner| self.bytes(owner));
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
            let (mine, key) = (
                &values[chunk.clone()],
                key.between(rank, peer, Way::Forward),
            );
            let payload = self.codec.encode(&Rows::new(mine, mine.len()), key);
            let sent = self.codec.decode(&payload, [1, mine.len()], key)?;
            self.residual.keep(chunk.start, self.len, mine, &sent);
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
            let decoded = self.codec.decode(payload, [1, sum.len()], key)?;
            let pairs = sum.iter_mut().zip(decoded);
            pairs.for_each(|(sum, value)| *sum += value);
        }
        if sum.is_empty() {
            return Ok(Vec::new());
        }
        let key = key.between(rank, rank, Way::Back);
        let bytes = self.codec.encode(&Rows::new(&sum, sum.len()), key);
        let sent = self.codec.decode(&bytes, [1, sum.len()], key)?;
        self.residual.keep(chunk.start, self.len, &sum, &sent);
        Ok(to_words(bytes))
    }

    /// All chunks from what was gathered.
    fn join(&self, came: &[f32], key: CodecKey) -> Result<Vec<f32>, SimError> {
        let (mut all, mut start) = (Vec::with_capacity(self.len), 0);
        for (owner, words) in self.lens().into_iter().enumerate() {
            let bytes = to_bytes(&came[start..start + words]);
            start += words;
            let (len, key) = (
                self.chunk(owner).len(),
                key.between(owner, owner, Way::Back),
            );
            all.extend(
                self.codec
                    .decode(&bytes[..self.bytes(owner)], [1, len], key)?,
            );
        }
        Ok(all)
    }
}

impl Sum for Split {
    fn plan(&self, track: &mut Track, rank: usize, kind: TrafficKind) {
        track.compute(Work::pass(self.len));
        let to = self.owners(rank);
        let to = to.map(|peer| (peer as u32, Bytes(self.bytes(peer) as u64)));
        let from = self.senders(rank).into_iter().map(|peer| peer as u32);
        track.exchange(Exchange {
            kind,
            layer: 0,
            to: to.collect(),
            from: from.collect(),
        });
        track.compute(Work::pass(self.chunk(rank).len() * self.workers));
        track.all_gather(&self.lens(), kind);
        track.compute(Work::pass(self.len));
    }

    fn sum(
        &mut self,
        worker: &mut Worker,
        mut values: Vec<f32>,
        round: Round,
    ) -> Result<Vec<f32>, SimError> {
        let (rank, key) = (worker.rank(), round.key(self.seed));
        let messages = worker.compute(Activity::Exchange, |_| {
            self.residual.add_to(&mut values);
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
        self.residual.values()
    }

    fn remember(&mut self, memory: Vec<Vec<f32>>) {
        self.residual.remember(memory);
    }
}
