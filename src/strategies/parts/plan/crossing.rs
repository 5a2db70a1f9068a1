//! What a [`Crossing`](super::super::Crossing) does.

use crate::graph::{BoundaryCounts, PartCounts};
use crate::model::Work;
use crate::net::{Bytes, TrafficKind, Way};
use crate::sim::{Exchange, Track};
use crate::strategies::parts::{Senders, Staleness, Wire};

/// The rows that cross between one worker and the others, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossingPlan {
    /// Rows that the worker makes.
    pub made: usize,
    /// Those of them that it reads itself.
    pub own: usize,
    /// Workers that read some of them, and how many.
    pub sends: Vec<(u32, usize)>,
    /// Workers whose rows it reads, and how many.
    pub receives: Vec<(u32, usize)>,
    /// How what is sent is waited for.
    pub wait: Wait,
    /// Who sends; of the others, what came last is used again.
    pub senders: Senders,
    /// Whether the worker looks at what it would send even where it does not.
    pub looks: bool,
}

/// Which exchange of a layer and way a worker waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// The one that it starts.
    #[default]
    Now,
    /// None: the first one is under way.
    Nothing,
    /// The one before.
    Before,
    /// None: that before was waited for in its epoch, and is read again.
    Past,
    /// The one before, which nobody reads, and the one that it starts.
    Both,
}

impl Wait {
    /// How the rows and gradients of an epoch are waited for, so many after nodes were dealt out.
    pub(super) fn of(staleness: Option<Staleness>, since: usize) -> Self {
        let Some(staleness) = staleness else {
            return Self::Now;
        };
        let Some(before) = since.checked_sub(1) else {
            let fresh = staleness.is_fresh(since);
            return if fresh { Self::Now } else { Self::Nothing };
        };
        match [before, since].map(|epoch| staleness.is_fresh(epoch)) {
            [false, false] => Self::Before,
            [false, true] => Self::Both,
            [true, false] => Self::Past,
            [true, true] => Self::Now,
        }
    }
}

impl CrossingPlan {
    /// All rows of a worker's boundary.
    pub fn whole(part: &PartCounts) -> Self {
        Self {
            made: part.owned,
            own: part.owned,
            sends: part.sends.clone(),
            receives: part.receives.clone(),
            wait: Wait::Now,
            senders: Senders::All,
            looks: false,
        }
    }

    /// All rows of every worker, to all others.
    pub fn of_blocks(counts: &BoundaryCounts, rank: usize) -> Self {
        let others = counts.parts.iter().enumerate();
        let others = others.filter(|(peer, _)| *peer != rank);
        let receives: Vec<_> = others
            .map(|(peer, part)| (peer as u32, part.owned))
            .collect();
        let owned = counts.parts[rank].owned;
        Self {
            sends: receives.iter().map(|&(peer, _)| (peer, owned)).collect(),
            receives,
            ..Self::whole(&counts.parts[rank])
        }
    }

    /// Rows of others that it reads.
    pub fn halo(&self) -> usize {
        self.receives.iter().map(|(_, rows)| rows).sum()
    }

    /// Rows that it sends.
    pub fn outgoing(&self) -> usize {
        self.sends.iter().map(|(_, rows)| rows).sum()
    }

    /// Rows of a layer's input to their readers; whether there is an input then.
    pub fn forward(
        &self,
        track: &mut Track,
        rank: usize,
        layer: usize,
        width: usize,
        wire: &Wire,
    ) -> bool {
        let (rows, halo) = (self.outgoing(), self.halo());
        let mut to = Vec::new();
        let sends = self.senders.sends(layer, Way::Forward, rank);
        if self.made > 0 && rows > 0 && (sends || self.looks) {
            track.compute(self.pass(rows * width));
            if sends {
                to = messages(wire, rank, Way::Forward, &self.sends, width);
            }
        }
        let from = peers(&self.receives);
        let sent = exchange(TrafficKind::Activation, layer, to, from);
        self.exchange(track, sent, Way::Forward);
        if halo > 0 {
            track.compute(Work::pass(halo * width));
        }
        halo > 0 || (self.made > 0 && self.own > 0)
    }

    /// Gradients of others' rows to their owners, if the worker `has` one; whether it has one of
    /// its own rows then.
    pub fn backward(
        &self,
        track: &mut Track,
        rank: usize,
        layer: usize,
        width: usize,
        wire: &Wire,
        has: bool,
    ) -> bool {
        let halo = self.halo();
        let (mut to, mut mine) = (Vec::new(), has);
        if has && halo > 0 {
            track.compute(self.pass(halo * width));
            if self.senders.sends(layer, Way::Back, rank) {
                to = messages(wire, rank, Way::Back, &self.receives, width);
            }
            mine = self.own > 0;
        }
        let from = peers(&self.sends);
        let arrives = !from.is_empty() && self.wait != Wait::Nothing;
        let sent = exchange(TrafficKind::ActivationGradient, layer, to, from);
        self.exchange(track, sent, Way::Back);
        if arrives {
            track.compute(Work::pass(self.outgoing() * width));
        }
        mine || arrives
    }

    /// The work on values that the worker would send.
    fn pass(&self, values: usize) -> Work {
        let pass = Work::pass(values);
        // Those that it sent last are read once more.
        if self.looks { pass + pass } else { pass }
    }

    fn exchange(&self, track: &mut Track, mut exchange: Exchange, way: Way) {
        let layer = exchange.layer as usize;
        if !self.senders.any(layer, way) {
            return;
        }
        let sends = |peer: &u32| self.senders.sends(layer, way, *peer as usize);
        exchange.from.retain(sends);
        self.wait.write(track, exchange);
    }
}

impl Wait {
    /// Writes down an exchange that is waited for so.
    pub fn write(self, track: &mut Track, exchange: Exchange) {
        let (kind, layer) = (exchange.kind, exchange.layer);
        match self {
            Self::Now => track.exchange(exchange),
            Self::Nothing | Self::Past => track.start_exchange(exchange),
            Self::Before => {
                track.finish_exchange(kind, layer);
                track.start_exchange(exchange);
            }
            Self::Both => {
                track.finish_exchange(kind, layer);
                track.exchange(exchange);
            }
        }
    }
}

/// The messages of so many rows to each peer through a wire, of `width` columns.
pub(super) fn messages(
    wire: &Wire,
    rank: usize,
    way: Way,
    rows: &[(u32, usize)],
    width: usize,
) -> Vec<(u32, Bytes)> {
    let message = |&(peer, rows): &(u32, usize)| {
        let ends = match way {
            Way::Forward => (rank, peer as usize, way),
            Way::Back => (peer as usize, rank, way),
        };
        (peer, wire.bytes(ends, rows, width))
    };
    rows.iter().map(message).collect()
}

/// A worker starts to send rows of features through a wire to some readers; it will hear from these
/// owners.
pub fn send_features(
    track: &mut Track,
    rank: usize,
    [readers, owners]: [&[(u32, usize)]; 2],
    width: usize,
    wire: &Wire,
) {
    let rows: usize = readers.iter().map(|(_, rows)| rows).sum();
    track.compute(Work::pass(rows * width));
    let to = messages(wire, rank, Way::Forward, readers, width);
    track.start_exchange(exchange(TrafficKind::Feature, 0, to, peers(owners)));
}

/// It waits for so many rows of features.
pub fn receive_features(track: &mut Track, rows: usize, width: usize) {
    track.finish_exchange(TrafficKind::Feature, 0);
    track.compute(Work::pass(rows * width));
}

/// The peers of such a list.
pub fn peers(rows: &[(u32, usize)]) -> Vec<u32> {
    rows.iter().map(|&(peer, _)| peer).collect()
}

/// An exchange of a layer.
pub const fn exchange(
    kind: TrafficKind,
    layer: usize,
    to: Vec<(u32, Bytes)>,
    from: Vec<u32>,
) -> Exchange {
    Exchange {
        kind,
        layer: layer as u32,
        to,
        from,
    }
}
