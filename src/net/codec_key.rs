//! What both ends of a message know without sending it.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::{Lane, TrafficKind};
use crate::rng::{Purpose, mix, stream};

/// What both ends know without sending it, and derive random choices from.
///
/// The way back uses the key of the way forward but for the [`Lane`](CodecLane)'s direction, so
/// that a codec can make the same choices both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodecKey {
    /// Seed of the run.
    pub seed: u64,
    /// Model layer whose rows travel.
    pub layer: u32,
    /// Number of the exchange: the epoch in full-batch training.
    pub round: u64,
    /// Between which workers, and which way. Without it, all messages of an exchange draw alike,
    /// and nothing is remembered from one round to the next.
    pub lane: Option<CodecLane>,
}

/// Whose rows travel between whom, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CodecLane {
    /// The worker that owns the rows.
    pub owner: u32,
    /// The worker that reads them.
    pub reader: u32,
    /// Forward from the owner, or back to it.
    pub way: Way,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Way {
    /// Rows, from their owner to a reader.
    Forward,
    /// Gradients of those rows, from the reader to their owner.
    Back,
}

impl CodecLane {
    /// That of a message from one worker to another.
    pub const fn between(from: u32, to: u32, way: Way) -> Self {
        let (owner, reader) = match way {
            Way::Forward => (from, to),
            Way::Back => (to, from),
        };
        Self { owner, reader, way }
    }

    /// Where such a message belongs that carries rows of a layer, or their gradient; `first` is the
    /// kind of the first layer's rows: features, or a product of them.
    pub const fn lane(self, layer: u32, first: TrafficKind) -> Lane {
        let (from, to, kind) = match self.way {
            Way::Forward if layer == 0 => (self.owner, self.reader, first),
            Way::Forward => (self.owner, self.reader, TrafficKind::Activation),
            // Of the first layer, too: features have no gradient, but products of them have.
            Way::Back => (self.reader, self.owner, TrafficKind::ActivationGradient),
        };
        Lane {
            layer,
            from,
            to,
            kind,
        }
    }
}

impl CodecKey {
    /// The key of the messages of one layer and round; none of them is told from the others.
    pub const fn new(seed: u64, layer: u32, round: u64) -> Self {
        Self {
            seed,
            layer,
            round,
            lane: None,
        }
    }

    /// This key for the message that takes rows of `owner` to `reader`, or their gradient back.
    pub const fn between(self, owner: usize, reader: usize, way: Way) -> Self {
        Self {
            lane: Some(CodecLane {
                owner: owner as u32,
                reader: reader as u32,
                way,
            }),
            ..self
        }
    }

    /// The key of the inner one of two composed codecs, whose draws must not be those of the outer.
    pub(super) const fn inner(self) -> Self {
        Self {
            seed: mix(self.seed, 1),
            ..self
        }
    }

    /// Draws that all messages of a layer and round share, on both ways.
    pub(super) fn stream_of_exchange(&self) -> ChaCha8Rng {
        self.stream(0)
    }

    /// Draws that two workers share about rows of one of them, on both ways.
    pub(super) fn stream_of_pair(&self) -> ChaCha8Rng {
        self.stream(self.pair())
    }

    /// Draws of one message.
    pub(super) fn stream_of_message(&self) -> ChaCha8Rng {
        self.stream(mix(
            self.pair(),
            match self.lane.map(|lane| lane.way) {
                None => 0,
                Some(Way::Forward) => 1,
                Some(Way::Back) => 2,
            },
        ))
    }

    const fn pair(&self) -> u64 {
        match self.lane {
            None => 0,
            // Owner and reader and not sender and receiver, so that both ways of a pair draw alike.
            Some(lane) => mix(1 + lane.owner as u64, lane.reader as u64),
        }
    }

    fn stream(&self, worker: u64) -> ChaCha8Rng {
        let round = mix(u64::from(self.layer), self.round);
        stream(self.seed, Purpose::Codec, worker, round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    const KEY: CodecKey = CodecKey::new(0, 0, 0);

    #[test]
    fn layers_rounds_and_composed_codecs_have_streams_of_their_own() {
        let first = |key: CodecKey| key.stream_of_exchange().next_u64();
        let keys = [
            KEY,
            CodecKey::new(0, 0, 1),
            CodecKey::new(0, 1, 0),
            CodecKey::new(1, 0, 0),
            KEY.inner(),
        ];
        for (at, a) in keys.iter().enumerate() {
            assert!(keys[..at].iter().all(|b| first(*a) != first(*b)), "{a:?}");
        }
    }

    #[test]
    fn what_is_shared_by_all_by_two_and_by_none_is_what_the_names_say() {
        let forward = KEY.between(1, 2, Way::Forward);
        let back = KEY.between(1, 2, Way::Back);
        let other = KEY.between(2, 1, Way::Forward);
        let of = |draws: fn(&CodecKey) -> ChaCha8Rng| {
            [forward, back, other].map(|key| draws(&key).next_u64())
        };
        let all = of(CodecKey::stream_of_exchange);
        assert!(all[0] == all[1] && all[0] == all[2]);
        let pair = of(CodecKey::stream_of_pair);
        assert!(pair[0] == pair[1] && pair[0] != pair[2]);
        let own = of(CodecKey::stream_of_message);
        assert!(own[0] != own[1] && own[0] != own[2] && own[1] != own[2]);
    }
}
