//! Evaluation: exact, with full neighbourhoods, neither timed nor counted.
//!
//! Where one process holds the whole graph, its worker 0 computes on it. Where workers are
//! processes, or the graph is there in parts alone, each part computes its own rows of a layer and
//! gets the halo's rows of that layer's input from their owners, out of band:
//!
//! ```text
//!   input of layer k ──┬─ own rows ────────────────────▶ layer k ──▶ own rows of layer k + 1
//!                      └─ halo, from its owners, dropped behind it
//!   logits of own rows ──▶ right answers, losses ──▶ worker 0: the scores
//! ```
//!
//! A graph that is not trained on is nobody's part: worker 0 computes on it.
//!
//! On processors both come to the same scores to the bit. Sums over neighbours are taken in the
//! order of global numbers, no product of rows depends on how many rows there are (see [`piece`]),
//! losses are added up in the order of nodes, and everything else in whole numbers.

mod memory;
mod piece;
mod rows;
mod scores;

use std::sync::Arc;

use super::{Scores, Setting, Shard, SimError};
use crate::model::{Aggregation, Block, Input, Matrix, Place};
use crate::net::{Inbox, Message, NetError, floats, to_bytes};
pub(crate) use memory::held_in_evaluation;
use piece::Piece;
use scores::Verdict;

/// How a model computes: layer by layer, each with the same aggregation.
pub struct Inference<'a> {
    /// How messages are weighted.
    pub aggregation: Aggregation,
    /// What the first layer reads; the features, where nothing else is given.
    pub from: Option<&'a NodeRows>,
    /// Number of layers.
    pub layers: usize,
    /// The output of a layer, given its number from 0, block and input:
    /// `[block.outputs, width of the layer]`.
    pub layer: &'a dyn Fn(usize, &Block, &Input) -> Matrix,
}

/// A row for each node, as far as this process computes them.
pub struct NodeRows(Vec<Matrix>);

/// Sends each message to its peer, and answers with one from each of the ranks, out of band.
pub type Aside<'a> = &'a mut dyn FnMut(Vec<Message>, &[usize]) -> Result<Inbox, NetError>;

/// What a process evaluates on: the whole graph, the parts of all workers, or its own part.
pub struct Evaluation {
    setting: Arc<Setting>,
    place: Place,
    pieces: Vec<Piece>,
    /// The worker whose part this process has alone.
    alone: Option<usize>,
}

impl Evaluation {
    const fn new(
        setting: Arc<Setting>,
        place: Place,
        pieces: Vec<Piece>,
        alone: Option<usize>,
    ) -> Self {
        Self {
            setting,
            place,
            pieces,
            alone,
        }
    }

    /// On the whole graph.
    pub fn on_whole_graph(setting: &Arc<Setting>, place: &Place) -> Self {
        let whole = Piece::whole(setting);
        Self::new(Arc::clone(setting), place.clone(), vec![whole], None)
    }

    /// On the parts of all workers, in one process.
    ///
    /// # Errors
    /// If a shard is missing or damaged.
    pub fn on_all_parts(setting: &Arc<Setting>, place: &Place) -> Result<Self, SimError> {
        let part = |rank| {
            let shard = Shard::new(setting, rank)?;
            Ok(Piece::part(setting, &Arc::new(shard)))
        };
        let pieces = (0..setting.workers())
            .map(part)
            .collect::<Result<_, SimError>>()?;
        Ok(Self::new(Arc::clone(setting), place.clone(), pieces, None))
    }

    /// On the part of worker `rank`; the others' are in other processes.
    pub(super) fn on_part(
        setting: &Arc<Setting>,
        place: &Place,
        (rank, shard): (usize, &Arc<Shard>),
    ) -> Self {
        let pieces = vec![Piece::part(setting, shard)];
        Self::new(Arc::clone(setting), place.clone(), pieces, Some(rank))
    }

    /// On nothing: another worker of this process evaluates.
    pub(super) fn elsewhere(setting: &Arc<Setting>, place: &Place) -> Self {
        Self::new(Arc::clone(setting), place.clone(), Vec::new(), None)
    }

    /// The scores of a model, for an evaluation that has all of the graph in this process.
    ///
    /// # Errors
    /// If part of the graph is elsewhere.
    pub fn scores(&mut self, inference: &Inference<'_>) -> Result<Option<Scores>, SimError> {
        let verdict = self.verdict(inference, &mut |_, _| {
            Err(NetError::Protocol {
                rank: 0,
                reason: "it evaluates by itself a part of the graph".to_owned(),
            })
        })?;
        Ok(verdict.map(|verdict| verdict.scores))
    }

    /// The values that worker 0 has, where another process has a part of its own to evaluate with
    /// them; `None` where they are here.
    pub(super) fn of_first(
        &self,
        values: impl FnOnce() -> Vec<f32>,
        aside: Aside<'_>,
    ) -> Result<Option<Vec<f32>>, SimError> {
        match self.alone {
            None => Ok(None),
            Some(0) => {
                let payload = to_bytes(&values());
                let to = |peer| Message {
                    peer,
                    payload: payload.clone(),
                };
                aside((1..self.setting.workers()).map(to).collect(), &[])?;
                Ok(None)
            }
            Some(_) => {
                let inbox = aside(Vec::new(), &[0])?;
                Ok(Some(floats(&inbox[0].payload).collect()))
            }
        }
    }

    /// What all layers make of the rows.
    pub(super) fn infer(
        &mut self,
        inference: &Inference<'_>,
        aside: Aside<'_>,
    ) -> Result<NodeRows, SimError> {
        let mut rows: Vec<Option<Matrix>> = match inference.from {
            None => self.pieces.iter().map(|_| None).collect(),
            Some(rows) => rows.0.iter().cloned().map(Some).collect(),
        };
        for layer in 0..inference.layers {
            let inboxes = self.exchange(&rows, aside)?;
            let pieces = self.pieces.iter_mut().zip(rows).zip(inboxes);
            let outputs = pieces.map(|((piece, rows), inbox)| {
                let input = piece.input(rows, inbox, &self.place)?;
                let block = piece.block(inference.aggregation);
                let outputs = (inference.layer)(layer, &block, &input);
                Ok(Some(piece.own(&outputs)))
            });
            rows = outputs.collect::<Result<_, SimError>>()?;
        }
        Ok(NodeRows(rows.into_iter().flatten().collect()))
    }

    /// Scores and soundness of what all layers make of the rows, where worker 0 is.
    pub(super) fn verdict(
        &mut self,
        inference: &Inference<'_>,
        aside: Aside<'_>,
    ) -> Result<Option<Verdict>, SimError> {
        let logits = self.infer(inference, aside)?;
        self.judge(logits.0, aside)
    }

    /// The same of the logits of all nodes.
    pub(super) fn judge(
        &self,
        logits: Vec<Matrix>,
        aside: Aside<'_>,
    ) -> Result<Option<Verdict>, SimError> {
        let pieces = self.pieces.iter().zip(logits);
        let tallies = pieces.map(|(piece, logits)| piece.tally(&self.setting, logits));
        let tallies: Vec<_> = tallies.collect();
        Ok(match self.alone {
            None => scores::verdict(tallies),
            Some(rank) => scores::gathered(tallies, (rank, self.setting.workers()), aside)?,
        })
    }

    /// What arrives at each piece, of the rows that each sends.
    fn exchange(&self, rows: &[Option<Matrix>], aside: Aside<'_>) -> Result<Vec<Inbox>, SimError> {
        let pieces = self.pieces.iter().zip(rows);
        let outgoing = pieces.map(|(piece, rows)| piece.outgoing(rows.as_ref()));
        if self.alone.is_some() {
            let messages = outgoing.flatten().collect();
            let expect: Vec<usize> = self.pieces.iter().flat_map(Piece::senders).collect();
            return Ok(vec![aside(messages, &expect)?]);
        }
        // Senders come in ascending order, as they do in an inbox.
        let mut inboxes = vec![Inbox::new(); self.pieces.len()];
        for (from, messages) in outgoing.enumerate() {
            for Message { peer, payload } in messages {
                inboxes[peer].push(Message {
                    peer: from,
                    payload,
                });
            }
        }
        Ok(inboxes)
    }
}
