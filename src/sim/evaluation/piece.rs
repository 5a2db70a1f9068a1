//! A piece of the graph as evaluation computes on it: all of it, or the part of one worker.
//!
//! A row of a dense product has the same bits however many rows there are, from [`LEAST_ROWS`] on;
//! for fewer, `gemm` has ways of its own. So a part with fewer is filled up with rows of zeros, of
//! which nothing is read.

use std::ops::Range;
use std::sync::Arc;

use super::rows::{append_features, below, packed_features, packed_rows};
use super::scores::Tally;
use crate::graph::{Features, Labels};
use crate::model::{Aggregation, Block, Input, Matrix, Place};
use crate::net::{Inbox, Message};
use crate::sim::{Setting, Shard, SimError};

/// Rows from which on no product depends on their number.
// gemm 0.19: one row, up to 64 rows of as many columns, and up to 256 rows of one column have code
// of their own, which adds terms in another order.
const LEAST_ROWS: usize = 257;

/// A piece of the graph.
pub(super) struct Piece {
    source: Source,
    /// The features of the whole graph, made when first asked for.
    features: Option<Input>,
    blocks: Vec<(Aggregation, Block)>,
}

enum Source {
    Whole(Arc<Setting>),
    Part(Part),
}

/// A worker's part, filled up to so many outputs and inputs.
struct Part {
    shard: Arc<Shard>,
    outputs: usize,
    inputs: usize,
}

impl Piece {
    const fn new(source: Source) -> Self {
        Self {
            source,
            features: None,
            blocks: Vec::new(),
        }
    }

    pub(super) fn whole(setting: &Arc<Setting>) -> Self {
        Self::new(Source::Whole(Arc::clone(setting)))
    }

    pub(super) fn part(setting: &Setting, shard: &Arc<Shard>) -> Self {
        // As many as the whole graph has, where that is smaller: its products are those compared
        // with.
        let outputs = shard.owned.max(LEAST_ROWS.min(setting.counts.nodes));
        Self::new(Source::Part(Part {
            outputs,
            inputs: outputs.max(shard.nodes.len()),
            shard: Arc::clone(shard),
        }))
    }

    /// The graph with one kind of aggregation.
    pub(super) fn block(&mut self, aggregation: Aggregation) -> Block {
        if let Some((_, block)) = self.blocks.iter().find(|(kind, _)| *kind == aggregation) {
            // A handle: the matrix is behind an `Arc`.
            return block.clone();
        }
        let block = match &self.source {
            Source::Whole(setting) => {
                let graph = &setting.scored().graph;
                let degrees: Vec<usize> = (0..graph.nodes()).map(|v| graph.degree(v)).collect();
                Block::new(graph, &degrees, aggregation)
            }
            Source::Part(part) => part.block(aggregation),
        };
        self.blocks.push((aggregation, block.clone()));
        block
    }

    /// Own rows for who needs them: of the features, or of the input of a later layer.
    pub(super) fn outgoing(&self, rows: Option<&Matrix>) -> Vec<Message> {
        let Source::Part(Part { shard, .. }) = &self.source else {
            return Vec::new();
        };
        let message = |(peer, sent): (usize, &Vec<u32>)| Message {
            peer,
            payload: match rows {
                None => packed_features(&shard.features, sent),
                Some(rows) => packed_rows(rows, sent),
            },
        };
        shard.sends.iter().map(message).collect()
    }

    /// Whose rows are in the halo, in ascending order.
    pub(super) fn senders(&self) -> Vec<usize> {
        match &self.source {
            Source::Whole(_) => Vec::new(),
            Source::Part(part) => part.shard.receives.ranks().collect(),
        }
    }

    /// The input of a layer, of own rows and what arrived of the halo's; the features without rows.
    pub(super) fn input(
        &mut self,
        rows: Option<Matrix>,
        inbox: Inbox,
        place: &Place,
    ) -> Result<Input, SimError> {
        match (&self.source, rows) {
            (Source::Whole(_), Some(rows)) => Ok(Input::Dense(rows)),
            (Source::Whole(setting), None) => {
                let all = || Features::clone(&setting.scored().features);
                let input = || Input::from_features(all(), place);
                Ok(self.features.get_or_insert_with(input).clone())
            }
            (Source::Part(part), Some(rows)) => {
                let halo = below(&rows, &part.arrived(&inbox)?, part.inputs)?;
                // Before the rows are put together: they are as large.
                drop(inbox);
                Ok(Input::Dense(rows.followed_by(halo, place)))
            }
            (Source::Part(part), None) => {
                let halo = part.arrived(&inbox)?;
                let features = append_features(&part.shard.features, &halo, part.inputs)?;
                drop(inbox);
                Ok(Input::from_features(features, place))
            }
        }
    }

    /// The own rows among the outputs of a block.
    pub(super) fn own(&self, outputs: &Matrix) -> Matrix {
        match &self.source {
            Source::Whole(_) => outputs.clone(),
            // There has to be a row; of a worker without any, nobody reads it.
            Source::Part(part) => outputs.head(part.shard.owned.max(1)),
        }
    }

    /// What its logits say of the nodes of each split.
    pub(super) fn tally(&self, setting: &Setting, logits: Matrix) -> Tally {
        let logits = logits.into_values();
        let of = |labels: &Labels, splits: [&[u32]; 3], degree: &dyn Fn(usize) -> usize| {
            let counts = |row: &u32| setting.training.score_isolated || degree(*row as usize) > 0;
            let counted = splits.map(|rows| rows.iter().copied().filter(counts).collect());
            Tally::new(&setting.dataset, &logits, labels, counted)
        };
        match &self.source {
            Source::Whole(setting) => {
                let data = setting.scored();
                let split = &data.split;
                let splits = [&split.train[..], &split.validation, &split.test];
                of(&data.labels, splits, &|node| data.graph.degree(node))
            }
            Source::Part(Part { shard, .. }) => {
                let splits = [&shard.train[..], &shard.validation, &shard.test];
                let tally = of(&shard.labels, splits, &|row| shard.degrees[row]);
                tally.numbered(&shard.nodes)
            }
        }
    }
}

impl Part {
    fn block(&self, aggregation: Aggregation) -> Block {
        let shard = &self.shard;
        let (mut nodes, mut degrees) = (shard.nodes.clone(), shard.degrees.clone());
        // What fills up has no neighbours, so that its number is in no order.
        nodes.resize(self.inputs, u32::MAX);
        degrees.resize(self.inputs, 0);
        let adjacency = (&shard.adjacency, self.outputs);
        Block::of_part(adjacency, &nodes, &degrees, aggregation)
    }

    /// What arrived, each with the number of its rows.
    fn arrived<'a>(&self, inbox: &'a Inbox) -> Result<Vec<(usize, &'a [u8])>, SimError> {
        let expected = self.shard.receives.iter();
        let arrived = expected.zip(inbox).map(|((from, range), message)| {
            let of = |range: &Range<usize>| (range.len(), &message.payload[..]);
            (from == message.peer).then(|| of(range))
        });
        let arrived: Option<Vec<_>> = arrived.collect();
        let arrived = arrived.filter(|all| all.len() == self.senders());
        arrived.ok_or_else(super::rows::broken)
    }

    fn senders(&self) -> usize {
        self.shard.receives.ranks().count()
    }
}
