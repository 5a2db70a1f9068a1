//! Both passes over the layers of a worker, where sums over neighbours are made with other workers,
//! each of which has some of the edges.
//!
//! ```text
//!   x ── dropout ── sums over own edges, if here ── totals, with others ──┬── product … next row
//!   └─ dropout ── own term of the sum, or own row beside it ──────────────┘
//! ```

use burn::tensor::Tensor;

use super::{Step, as_leaf, differentiate};
use crate::graph::Csr;
use crate::model::{
    Aggregation, Block, Dropout, Gnn, Input, Matrix, Targets, carrier, cross_entropy, mean_targets,
    parameter_count, sums,
};
use crate::net::{Message, Outbox, TrafficKind};
use crate::sim::{Activity, SimError, Worker};

/// Whose sums cross: their kind and layer.
pub(crate) type Lane = (TrafficKind, usize);

/// The lane of the sums of a layer.
pub(crate) const fn forward_lane(layer: usize) -> Lane {
    if layer == 0 {
        (TrafficKind::Feature, 0)
    } else {
        (TrafficKind::Activation, layer)
    }
}

/// Messages of a lane, where others are expected from some workers.
pub(crate) fn lane_outbox(
    (kind, layer): Lane,
    messages: Vec<Message>,
    expect: impl IntoIterator<Item = usize>,
) -> Outbox {
    Outbox {
        messages,
        expect: expect.into_iter().collect(),
        ..Outbox::new(kind, layer as u32)
    }
}

/// How the sums of all workers over neighbours come about.
pub(crate) trait Totals {
    /// The totals of partial sums in an epoch, or of the rows that are to be summed; on the way
    /// back the gradients of these, given those of totals.
    ///
    /// # Shapes
    /// - partial, result: `[rows, width]`
    ///
    /// # Errors
    /// If communication fails.
    fn total(
        &mut self,
        worker: &mut Worker,
        epoch: usize,
        lane: Lane,
        partial: Matrix,
    ) -> Result<Matrix, SimError>;
}

/// One worker's rows.
pub(crate) struct SummedPass {
    /// Sums over neighbours by edges that are here, `[rows, rows]`; without them rows themselves
    /// are what [`Totals`] get.
    edges: Option<Block>,
    /// A row's own term, where the model's sum has one.
    own: Option<Block>,
    /// Takes totals as they are.
    each: Block,
    nodes: Vec<u32>,
    /// All features of the rows, dense: sums of them are.
    features: Input,
    targets: Targets,
    dropout: Dropout,
}

/// What a layer leaves for the way back.
struct Passed {
    /// Its input, of which sums were taken, and these.
    below: (Option<Matrix>, Matrix),
    /// Its input once more, as own rows.
    own: Option<Matrix>,
    total: Matrix,
    output: Matrix,
}

impl SummedPass {
    /// That of a worker with rows of these nodes, and sums over some of their edges, if any are
    /// made here; the loss is that of the rows `counted`.
    pub(crate) fn new(
        worker: &Worker,
        nodes: Vec<u32>,
        edges: Option<&Csr>,
        counted: impl Iterator<Item = u32>,
    ) -> Self {
        let (setting, place) = (worker.setting(), worker.place());
        let (data, aggregation) = (&setting.dataset, setting.model.aggregation());
        let rows = nodes.len();
        let degrees: Vec<usize> = nodes
            .iter()
            .map(|&v| data.graph.degree(v as usize))
            .collect();
        let none = Csr::from_edges(rows, std::iter::empty());
        // A row's own term is added to the total, once wherever the row is.
        let neighbours = |v: u32, u: u32| if v == u { 0.0 } else { 1.0 };
        let with_own = |edges| Block::new(edges, &degrees, aggregation).scaled(neighbours);
        let counted = counted.map(|row| (row as usize, nodes[row as usize]));
        let trains = counted.filter(|(_, node)| data.split.train.binary_search(node).is_ok());
        let labelled = trains.map(|(row, node)| (row, data.labels.of(node as usize)));
        let training = data.split.train.len();
        let features = data.features.dense_rows(&nodes);
        Self {
            own: aggregation
                .has_self()
                .then(|| Block::new(&none, &degrees, aggregation)),
            edges: edges.map(with_own),
            // Nobody has a neighbour: all weights are 1.
            each: Block::new(&none, &vec![0; rows], Aggregation::SymmetricWithSelf),
            features: Input::Dense(Matrix::from_values(features, data.features.width(), place)),
            targets: mean_targets(rows, setting.task(), labelled, training, place),
            dropout: worker.dropout(),
            nodes,
        }
    }

    /// One forward and backward pass: this worker's share of the loss and of the gradient.
    ///
    /// # Errors
    /// If communication fails.
    pub(crate) fn step(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        totals: &mut dyn Totals,
        epoch: usize,
    ) -> Result<Step, SimError> {
        let mut layers: Vec<Passed> = Vec::with_capacity(model.layers());
        for layer in 0..model.layers() {
            let input = layers.last().map_or_else(
                || self.features.clone(),
                |below| Input::Dense(below.output.clone().inner()),
            );
            layers.push(self.forward(worker, model, totals, [layer, epoch], &input)?);
        }
        let mut gradient = vec![0.0_f32; parameter_count(model)];
        let (mut upstream, mut loss): (Option<Matrix>, _) = (None, 0.0);
        for (layer, passed) in layers.into_iter().enumerate().rev() {
            let Passed {
                below,
                own,
                total,
                output,
            } = passed;
            let ([of_total, of_own], value) = worker.compute(Activity::Model, |_| {
                let scalar = match upstream.take() {
                    Some(upstream) => output.zip_sum(upstream, carrier),
                    None => cross_entropy(output, self.targets.clone()),
                };
                let total = (layer > 0).then_some(total);
                differentiate(model, &scalar, [total, own], &mut gradient)
            });
            if layer + 1 == model.layers() {
                loss = value;
            }
            // Features have no gradient.
            let (Some(of_total), (Some(leaf), partial)) = (of_total, below) else {
                continue;
            };
            let lane = (TrafficKind::ActivationGradient, layer);
            let of_partial = totals.total(worker, epoch, lane, of_total)?;
            upstream = worker.compute(Activity::Model, |_| {
                let scalar = partial.zip_sum(of_partial, carrier);
                let ([found, _], _) =
                    differentiate(model, &scalar, [Some(leaf), None], &mut gradient);
                match (found, of_own) {
                    (Some(found), Some(own)) => Some(found.zip(own, Tensor::add)),
                    (found, own) => found.or(own),
                }
            });
        }
        Ok(Step { gradient, loss })
    }

    fn forward(
        &self,
        worker: &mut Worker,
        model: &Gnn,
        totals: &mut dyn Totals,
        [layer, epoch]: [usize; 2],
        input: &Input,
    ) -> Result<Passed, SimError> {
        let dropped =
            |input: &Input| input.dropped(&self.dropout, epoch as u64, layer, &self.nodes);
        let (leaf, rows) = as_leaf(layer, input.clone());
        let partial = worker.compute(Activity::Model, |worker| {
            let dropped = dense(dropped(&rows));
            let partial = match &self.edges {
                Some(edges) => sums(edges, &dropped),
                None => dropped,
            };
            worker.wait_for(&partial);
            partial
        });
        let sent = partial.clone().inner();
        let total = totals.total(worker, epoch, forward_lane(layer), sent)?;
        // Sums of features have no gradient.
        let total = if layer == 0 { total } else { total.leaf() };
        let (own_leaf, own) = as_leaf(layer, input.clone());
        let output = worker.compute(Activity::Model, |worker| {
            let own = dropped(&own);
            let with_own = match &self.own {
                Some(block) => sums(block, &dense(own.clone())).zip(total.clone(), Tensor::add),
                None => total.clone(),
            };
            let rows = model.transform(layer, &Input::Dense(with_own));
            let output = model.gather(layer, &self.each, &rows, &own);
            worker.wait_for(&output);
            output
        });
        Ok(Passed {
            below: (leaf, partial),
            own: own_leaf,
            total,
            output,
        })
    }
}

/// Rows that are dense: features were made so.
fn dense(input: Input) -> Matrix {
    match input {
        Input::Dense(rows) => rows,
        Input::Sparse(..) => unreachable!("rows of a part are dense"),
    }
}
