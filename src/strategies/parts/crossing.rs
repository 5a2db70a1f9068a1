//! Rows of a layer's input between workers: forward to those who read them, gradients back to those
//! who made them.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use burn::tensor::Tensor;

use super::kept::Kept;
use super::staleness::Delay;
use super::wire::WireAt;
use super::{Keeping, Senders, When, Wire};
use crate::graph::Peers;
use crate::model::Matrix;
use crate::net::{Inbox, Message, NetError, Outbox, Rows, Tally, TrafficKind, Way};
use crate::sim::{Activity, Restoring, Saving, SimError, Worker};

/// Which rows of a layer's input cross between this worker and the others. The worker has made
/// `made` rows, of which it reads the first `own` itself; the rows of others that it reads stand
/// below these, grouped by owner in ascending order.
pub struct Crossing {
    /// For each worker that reads some, the rows made here.
    pub sends: Peers<Vec<u32>>,
    /// For each worker whose rows are read here, where, the first row of others being 0.
    pub receives: Peers<Range<usize>>,
    made: usize,
    own: usize,
    /// Rows of others.
    halo: usize,
    /// All of `sends` one after another.
    outgoing: Vec<u32>,
    /// Where rows and gradients are used an exchange after they were sent.
    delay: Option<Delay>,
    /// Where rows and gradients are used again.
    kept: Option<Kept>,
    /// Where messages have all rows of their owner, which they are, and which of them are read.
    blocks: Option<Peers<Block>>,
}

/// The rows of one owner, all of them in one message.
#[derive(Default)]
struct Block {
    rows: usize,
    /// Those that are read, ascending.
    read: Vec<u32>,
}

impl Block {
    /// Of all rows those that are read.
    fn cut(&self, all: &[f32], width: usize) -> Vec<f32> {
        let rows = self.read.iter().map(|&row| row as usize * width);
        rows.flat_map(|start| &all[start..start + width])
            .copied()
            .collect()
    }

    /// All rows, of which those that are not read are zeros.
    fn filled(&self, read: &[f32], width: usize) -> Vec<f32> {
        let mut all = vec![0.0; self.rows * width];
        for (&row, values) in self.read.iter().zip(read.chunks_exact(width.max(1))) {
            all[row as usize * width..][..width].copy_from_slice(values);
        }
        all
    }
}

impl Crossing {
    /// What crosses, as its fields say.
    pub fn new(
        made: usize,
        own: usize,
        sends: Peers<Vec<u32>>,
        receives: Peers<Range<usize>>,
    ) -> Self {
        Self {
            made,
            own,
            halo: receives.iter().map(|(_, range)| range.len()).sum(),
            // One list for all peers, so that what leaves takes one selection on the device.
            outgoing: sends.iter().flat_map(|(_, rows)| rows).copied().collect(),
            sends,
            receives,
            delay: None,
            kept: None,
            blocks: None,
        }
    }

    /// What crosses between the shards of workers, as `when` says: whether rows and gradients are
    /// used an exchange after they were sent, zeros in the first, or again in epochs in which their
    /// sender sends no others, and whether all rows are sent.
    pub fn by(worker: &Worker, when: When) -> Self {
        let shard = worker.shard();
        let crossing = if when.blocks {
            Self::of_blocks(worker)
        } else {
            let (sends, receives) = (shard.sends.clone(), shard.receives.clone());
            Self::new(shard.owned, shard.owned, sends, receives)
        };
        let kept = |keeping: Keeping| Kept::new(keeping.threshold.is_some());
        Self {
            delay: when.staleness.map(Delay::new),
            kept: when.kept.map(kept),
            ..crossing
        }
    }

    /// One in which every worker sends all rows that it owns to all others, whether they read them
    /// or not, and gets the gradients of all of them back, as CAGNET's 1D algorithm does.
    fn of_blocks(worker: &Worker) -> Self {
        let (shard, rank) = (worker.shard(), worker.rank());
        let (mut sends, mut receives) = (Peers::default(), Peers::default());
        let mut blocks = Peers::default();
        for (peer, part) in worker.setting().counts.parts.iter().enumerate() {
            if peer == rank {
                continue;
            }
            let range = shard.receives[peer].clone();
            *sends.of(peer) = (0_u32..).take(shard.owned).collect();
            *blocks.of(peer) = Block {
                rows: part.owned,
                read: shard.halo_rows[range.clone()].to_vec(),
            };
            *receives.of(peer) = range;
        }
        Self {
            blocks: Some(blocks),
            ..Self::new(shard.owned, shard.owned, sends, receives)
        }
    }

    /// An epoch begins in which these send, where what came last is kept; how much changed is
    /// written down in `changes`.
    pub(super) fn begin(&self, worker: &Worker, senders: &Senders, changes: Option<&Arc<Tally>>) {
        if let Some(kept) = &self.kept {
            kept.begin(worker.rank(), senders, changes);
        }
    }

    /// Whether this worker sends its rows of a layer, or the gradients of those that it read.
    fn sends(&self, kind: TrafficKind, layer: usize) -> bool {
        let kept = self.kept.as_ref();
        kept.is_none_or(|kept| kept.sends(kind, layer))
    }

    /// Whether this worker looks at what it would send even where it does not.
    fn looks(&self) -> bool {
        self.kept.as_ref().is_some_and(|kept| kept.measures)
    }

    /// Looks at what it would send.
    fn look(&self, kind: TrafficKind, layer: usize, values: &[f32]) {
        if let Some(kept) = &self.kept {
            kept.look(kind, layer, values);
        }
    }

    /// Rows that arrive in messages.
    fn arriving(&self) -> usize {
        match &self.blocks {
            Some(blocks) => blocks.iter().map(|(_, block)| block.rows).sum(),
            None => self.halo,
        }
    }

    /// Waits for what is still under way, after the last exchange.
    ///
    /// # Errors
    /// If communication fails.
    pub fn finish(&self, worker: &mut Worker) -> Result<(), SimError> {
        self.delay
            .as_ref()
            .map_or(Ok(()), |delay| delay.finish(worker))
    }

    /// Saves what is used later than it was sent.
    pub(super) fn save(&self, into: &mut Saving) {
        if let Some(delay) = &self.delay {
            delay.save(into);
        }
        if let Some(kept) = &self.kept {
            kept.save(into);
        }
    }

    /// Takes back what was saved; `wire_at` says how rows travelled.
    pub(super) fn restore(
        &self,
        from: &mut Restoring<'_>,
        wire_at: WireAt<'_>,
    ) -> Result<(), SimError> {
        if let Some(delay) = &self.delay {
            delay.restore(from, wire_at)?;
        }
        self.kept
            .as_ref()
            .map_or(Ok(()), |kept| kept.restore(from, wire_at))
    }

    /// Sends; the messages that are to be used now, and the wire they came through.
    pub(super) fn exchange(
        &self,
        worker: &mut Worker,
        outbox: Outbox,
        wire: &Wire,
    ) -> Result<(Inbox, Wire), SimError> {
        if let Some(kept) = &self.kept {
            return kept.exchange(worker, outbox, wire);
        }
        match &self.delay {
            Some(delay) => delay.exchange(worker, outbox, wire),
            None => Ok((worker.exchange(outbox)?, wire.clone())),
        }
    }

    /// Rows of others in place of late features that arrived: smoothed, or zeros before any did.
    pub(super) fn late_features(&self, arrived: Vec<f32>, width: usize) -> Vec<f32> {
        if arrived.is_empty() {
            return vec![0.0; self.halo * width];
        }
        match &self.delay {
            Some(delay) => delay.smoothed((TrafficKind::Feature, 0), arrived),
            None => arrived,
        }
    }

    /// Rows of others that are read.
    pub const fn halo(&self) -> usize {
        self.halo
    }

    /// The input of a layer: own rows, with those of others below them; none if there are none.
    ///
    /// # Shapes
    /// - made: `[made, width]`, none for no rows
    /// - result: `[own + halo, width]`
    ///
    /// # Errors
    /// If communication fails.
    pub fn forward(
        &self,
        worker: &mut Worker,
        layer: usize,
        made: Option<Matrix>,
        width: usize,
        wire: &Wire,
    ) -> Result<Option<Matrix>, SimError> {
        let rows = self.outgoing.len();
        let mut outbox = outbox(TrafficKind::Activation, layer, self.receives.ranks());
        let kind = outbox.kind;
        let sends = self.sends(kind, layer);
        // Only where rows leave, or are looked at, does the plan have a phase of computing.
        let gathers = rows > 0 && (sends || self.looks());
        if let Some(made) = made.as_ref().filter(|_| gathers) {
            outbox.messages = worker.compute(Activity::Exchange, |worker| {
                let gathered = made.select(&self.outgoing).into_values();
                self.look(kind, layer, &gathered);
                if !sends {
                    return Vec::new();
                }
                self.encode_outgoing(worker, &gathered, width, wire)
            });
        }
        let tag = (outbox.kind, outbox.layer);
        let (inbox, wire) = self.exchange(worker, outbox, wire)?;
        // Where all rows are read here too there is nothing to cut off, and so no copy.
        let own = made.and_then(|made| match self.own {
            own if own == self.made => Some(made),
            0 => None,
            own => Some(made.head(own)),
        });
        if self.arriving() == 0 {
            return Ok(own);
        }
        worker.compute(Activity::Exchange, |worker| {
            let mut rows = Vec::with_capacity(self.halo * width);
            // Halo rows are grouped by owner in ascending order, and messages arrive in that order.
            for message in &inbox {
                rows.extend(self.decode(worker, message, width, &wire)?);
            }
            if let Some(delay) = &self.delay {
                // Late rows start as zeros, as in PipeGCN: in the first exchange no message has
                // come yet.
                rows.resize(self.halo * width, 0.0);
                rows = delay.smoothed(tag, rows);
            }
            Ok(Some(match own {
                Some(own) if self.halo == 0 => own,
                Some(own) => own.followed_by(rows, worker.place()),
                None => Matrix::from_values(rows, width, worker.place()),
            }))
        })
    }

    /// Sends the gradient of others' rows to their owners, and adds what arrives for the rows made
    /// here.
    ///
    /// # Shapes
    /// - gradient: `[own + halo, width]`, none for no rows
    /// - result: `[made, width]`
    ///
    /// # Errors
    /// If communication fails.
    pub fn backward(
        &self,
        worker: &mut Worker,
        layer: usize,
        gradient: Option<Matrix>,
        width: usize,
        wire: &Wire,
    ) -> Result<Option<Matrix>, SimError> {
        let (made, own, arriving) = (self.made, self.own, self.arriving());
        let mut outbox = outbox(TrafficKind::ActivationGradient, layer, self.sends.ranks());
        let wire = match &self.delay {
            // Late rows came by another epoch's wire, and their gradient goes back by that one.
            Some(delay) => &delay.back(outbox.layer, wire),
            None => wire,
        };
        let mut mine = gradient;
        let kind = outbox.kind;
        let sends = self.sends(kind, layer);
        if let Some(all) = mine.clone().filter(|_| arriving > 0) {
            (mine, outbox.messages) = worker.compute(Activity::Exchange, |worker| {
                let rows = all.values_from(own);
                self.look(kind, layer, &rows);
                let receives = self.receives.iter().filter(|_| sends);
                let messages = receives.map(|(peer, range)| {
                    let read = &rows[range.start * width..range.end * width];
                    let block = self.blocks.as_ref().map(|blocks| &blocks[peer]);
                    let values = &match block {
                        Some(block) => Cow::Owned(block.filled(read, width)),
                        None => Cow::Borrowed(read),
                    };
                    // Keys name the owner first. On the way back that is the peer, who receives.
                    let wire = wire.between(peer, worker.rank(), Way::Back);
                    let payload = encode(values, width, &wire);
                    Message { peer, payload }
                });
                let messages = messages.collect();
                ((own > 0).then(|| all.head(own)), messages)
            });
        }
        let tag = (outbox.kind, outbox.layer);
        let (inbox, wire) = self.exchange(worker, outbox, wire)?;
        // Nobody reads these rows, or late gradients are not there yet. The plan has no phase here.
        if inbox.is_empty() {
            return Ok(mine);
        }
        worker.compute(Activity::Exchange, |worker| {
            let mut sum = vec![0.0_f32; made * width];
            // Messages come in ascending order of senders, so sums have the same last bits in every
            // run.
            for message in &inbox {
                let rows = &self.sends[message.peer];
                let wire = wire.between(worker.rank(), message.peer, Way::Back);
                let values = wire
                    .codec
                    .decode(&message.payload, [rows.len(), width], wire.key)?;
                for (&row, values) in rows.iter().zip(values.chunks_exact(width)) {
                    let target = &mut sum[row as usize * width..][..width];
                    for (total, value) in target.iter_mut().zip(values) {
                        // Several workers may read one row: their gradients add up.
                        *total += value;
                    }
                }
            }
            if let Some(delay) = &self.delay {
                sum = delay.smoothed(tag, sum);
            }
            let place = worker.place();
            let sum = Matrix::from_values(sum, width, place);
            Ok(Some(match mine {
                None => sum,
                Some(mine) if own == made => mine.zip(sum, Tensor::add),
                Some(mine) => {
                    // Rows that are made for others alone got no gradient from this worker.
                    let rest = vec![0.0; (made - own) * width];
                    mine.followed_by(rest, place).zip(sum, Tensor::add)
                }
            }))
        })
    }

    fn encode_outgoing(
        &self,
        worker: &Worker,
        gathered: &[f32],
        width: usize,
        wire: &Wire,
    ) -> Vec<Message> {
        let mut start = 0;
        let each = |(peer, rows): (usize, &Vec<u32>)| {
            let values = &gathered[start * width..(start + rows.len()) * width];
            start += rows.len();
            let wire = wire.between(worker.rank(), peer, Way::Forward);
            let payload = encode(values, width, &wire);
            Message { peer, payload }
        };
        self.sends.iter().map(each).collect()
    }

    /// The rows of one message forward that are read, `[rows, width]`.
    ///
    /// # Errors
    /// If the bytes do not hold them.
    pub fn decode(
        &self,
        worker: &Worker,
        message: &Message,
        width: usize,
        wire: &Wire,
    ) -> Result<Vec<f32>, NetError> {
        let block = self.blocks.as_ref().map(|blocks| &blocks[message.peer]);
        let read = self.receives[message.peer].len();
        let rows = block.map_or(read, |block| block.rows);
        let wire = wire.between(message.peer, worker.rank(), Way::Forward);
        let all = (wire.codec).decode(&message.payload, [rows, width], wire.key)?;
        Ok(match block {
            Some(block) => block.cut(&all, width),
            None => all,
        })
    }
}

/// An empty outbox that expects a message from each of `expect`.
pub(super) fn outbox(
    kind: TrafficKind,
    layer: usize,
    expect: impl Iterator<Item = usize>,
) -> Outbox {
    Outbox {
        expect: expect.collect(),
        ..Outbox::new(kind, layer as u32)
    }
}

pub(super) fn encode(values: &[f32], width: usize, wire: &Wire) -> Vec<u8> {
    wire.codec.encode(&Rows::new(values, width), wire.key)
}
