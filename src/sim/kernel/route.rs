//! Which messages keep their order, and how they are told from others.

use crate::net::{Lane, TrafficKind};

/// Tells messages of collectives from those of exchanges between the same two workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Tag {
    Exchange {
        kind: TrafficKind,
        layer: u32,
    },
    /// As an exchange, in rounds.
    Pairwise {
        kind: TrafficKind,
        layer: u32,
    },
    Collective {
        kind: TrafficKind,
        number: u64,
    },
    /// A message without content, of a worker that plays both its ends.
    Carried {
        kind: TrafficKind,
        layer: u32,
    },
}

impl Tag {
    /// Kind and layer of such messages.
    pub(super) const fn what(self) -> (TrafficKind, u32) {
        match self {
            Self::Exchange { kind, layer }
            | Self::Pairwise { kind, layer }
            | Self::Carried { kind, layer } => (kind, layer),
            Self::Collective { kind, .. } => (kind, 0),
        }
    }

    /// The sender's channel for such messages. Those of rounds leave while their worker is already
    /// ahead in time, so they must not stand in line behind what it sends from there.
    pub(super) const fn channel(self) -> u64 {
        let kind = self.what().0 as u64;
        match self {
            // Layers share a channel here: a worker's messages of one kind are one stream.
            Self::Exchange { .. } | Self::Carried { .. } => kind,
            // Kinds are fewer than 256, so what is told apart beside them starts at the ninth bit.
            Self::Collective { .. } => kind | 1 << 8,
            Self::Pairwise { layer, .. } => kind | 2 << 8 | (layer as u64) << 16,
        }
    }
}

/// Messages that keep their order: sender, receiver and tag.
pub(super) type Route = (usize, usize, Tag);

/// The lane of a message.
pub(super) const fn lane((from, to, tag): Route) -> Lane {
    let (kind, layer) = tag.what();
    Lane::new(layer, from, to, kind)
}
