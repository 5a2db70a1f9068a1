//! A worker's piece of the graph as the matrices that layers multiply with.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};

use super::dropout::DRAW;
use super::host::each_row;
use super::stripes::stripes;
use super::{Aggregation, Dropout, EdgeDegrees, Place, SparseMatrix};
use crate::graph::{Csr, SampledLayer};
use crate::rng::mix;

/// The part of the graph a layer computes on: the inputs are rows `0..inputs`, of which the first
/// `outputs` are the nodes whose new representation is computed.
#[derive(Clone, Debug)]
pub struct Block {
    /// Aggregation weights `[outputs, inputs]`.
    pub matrix: Arc<SparseMatrix>,
    /// Factors `[entries, heads]` of attention weights, one tensor for each stripe of outputs: 0
    /// where dropped.
    pub(super) attention: Option<Vec<Tensor<2>>>,
    /// Whether the neighbours were drawn.
    pub(super) sampled: bool,
}

impl Block {
    /// The block of a local graph.
    ///
    /// `adjacency` has one row per output; its entries are input rows. `degrees` are the degrees,
    /// without self-loops, that the normalisation uses, one per *input*: global ones make the
    /// result independent of the partition. Isolated nodes aggregate nothing (and themselves, where
    /// self-loops are used).
    ///
    /// # Panics
    /// If an entry of `adjacency` has no degree.
    pub fn new(adjacency: &Csr, degrees: &[usize], aggregation: Aggregation) -> Self {
        Self::directed(
            adjacency,
            &EdgeDegrees::of_rows(degrees.to_vec()),
            aggregation,
        )
    }

    /// The block of a local graph whose rows are normalised by two degrees each; see
    /// [`EdgeDegrees`].
    ///
    /// # Panics
    /// As [`Block::new`].
    pub(crate) fn directed(
        adjacency: &Csr,
        degrees: &EdgeDegrees,
        aggregation: Aggregation,
    ) -> Self {
        let neighbours = |v: usize, row: &mut Vec<u32>| row.extend(adjacency.neighbours(v));
        let weights = |v: usize| degrees.weights(v, aggregation);
        let own = |v: usize| degrees.has_own(v, aggregation);
        let sizes = (adjacency.nodes(), adjacency.edges(), degrees.to.len());
        Self::of_rows(sizes, own, weights, neighbours, |u| u)
    }

    /// A block of outputs that are not among its so many inputs: each entry has the weight of
    /// (output, input).
    ///
    /// # Panics
    /// If an entry of `adjacency` is no input.
    pub(crate) fn between(
        adjacency: &Csr,
        inputs: usize,
        weight: impl Fn(u32, u32) -> f32,
    ) -> Self {
        let neighbours = |v: usize, row: &mut Vec<u32>| row.extend(adjacency.neighbours(v));
        let weight = &weight;
        let weights = |v: usize| move |u: usize| weight(index(v), index(u));
        let sizes = (adjacency.nodes(), adjacency.edges(), inputs);
        Self::of_rows(sizes, |_| false, weights, neighbours, |u| u)
    }

    /// The block of a part of a larger graph, whose outputs are those of the larger one to the bit:
    /// terms of a sum are added in the order of the global `nodes`, one number for each input.
    /// Outputs beyond the rows of `adjacency` have no neighbours.
    ///
    /// # Panics
    /// As [`Block::new`], and if an input has no number.
    pub(crate) fn of_part(
        (adjacency, outputs): (&Csr, usize),
        nodes: &[u32],
        degrees: &[usize],
        aggregation: Aggregation,
    ) -> Self {
        let neighbours = |v: usize, row: &mut Vec<u32>| {
            if v < adjacency.nodes() {
                row.extend(adjacency.neighbours(v));
                row.sort_unstable_by_key(|&u| nodes[u as usize]);
            }
        };
        let number = |u: u32| nodes[u as usize];
        let weights = |v: usize| move |u: usize| aggregation.weight(degrees[v], degrees[u]);
        let sizes = (outputs, adjacency.edges(), degrees.len());
        let own = |_| aggregation.has_self();
        Self::of_rows(sizes, own, weights, neighbours, number)
    }

    /// A block with so many outputs, edges and inputs: `neighbours` adds those of an output to a
    /// list, in the order of their `number`s, and `weights` of an output gives the weight of an
    /// input. Outputs that read `own` rows are among their own neighbours.
    fn of_rows<W: Fn(usize) -> f32>(
        (outputs, edges, inputs): (usize, usize, usize),
        own: impl Fn(usize) -> bool,
        weights: impl Fn(usize) -> W,
        neighbours: impl Fn(usize, &mut Vec<u32>),
        number: impl Fn(u32) -> u32,
    ) -> Self {
        let mut offsets = Vec::with_capacity(outputs + 1);
        let mut columns = Vec::with_capacity(edges + outputs);
        let mut values = Vec::with_capacity(edges + outputs);
        offsets.push(0);
        let mut row = Vec::new();
        for v in 0..outputs {
            let weight = weights(v);
            let mut own_pending = own(v);
            row.clear();
            neighbours(v, &mut row);
            for &u in &row {
                // Where a stored self-loop would stand: terms are added in the order of numbers.
                if own_pending && number(u) > number(index(v)) {
                    own_pending = false;
                    columns.push(index(v));
                    values.push(weight(v));
                }
                columns.push(u);
                values.push(weight(u as usize));
            }
            if own_pending {
                columns.push(index(v));
                values.push(weight(v));
            }
            offsets.push(columns.len());
        }
        Self {
            matrix: Arc::new(SparseMatrix::new(inputs, &offsets, columns, values)),
            attention: None,
            sampled: false,
        }
    }

    /// The block of a sampled layer; `degrees` are one per input, as for [`Block::new`].
    ///
    /// Each message from a neighbour is multiplied by `d_v / s_v`, of whose `d_v` neighbours `s_v`
    /// were drawn: so weighted sums and means are, on average over all draws, those over all
    /// neighbours, given the inputs. Attention and maxima are over what was drawn.
    ///
    /// # Panics
    /// If an input has no degree.
    pub fn sampled(layer: &SampledLayer, degrees: &[usize], aggregation: Aggregation) -> Self {
        Self::sampled_directed(layer, &EdgeDegrees::of_rows(degrees.to_vec()), aggregation)
    }

    /// [`Block::sampled`], with rows normalised by two degrees each; see [`EdgeDegrees`].
    ///
    /// # Panics
    /// As [`Block::sampled`].
    pub(crate) fn sampled_directed(
        layer: &SampledLayer,
        degrees: &EdgeDegrees,
        aggregation: Aggregation,
    ) -> Self {
        let adjacency = &layer.adjacency;
        let neighbours = |v: usize, row: &mut Vec<u32>| row.extend(adjacency.neighbours(v));
        let weights = |v: usize| {
            let (weights, scale) = (degrees.weights(v, aggregation), layer.scale(v));
            // Outputs are the first inputs, so that is the node itself, which was not drawn.
            move |u: usize| {
                let weight = weights(u);
                if v == u { weight } else { weight * scale }
            }
        };
        let own = |v: usize| degrees.has_own(v, aggregation);
        let sizes = (adjacency.nodes(), adjacency.edges(), degrees.to.len());
        Self {
            sampled: true,
            ..Self::of_rows(sizes, own, weights, neighbours, |u| u)
        }
    }

    /// The block of a sampled layer by itself, normalised by what was drawn; see
    /// [`EdgeDegrees::of_block`]. Messages are not scaled.
    pub(crate) fn of_drawn(layer: &SampledLayer, aggregation: Aggregation) -> Self {
        let adjacency = &layer.adjacency;
        let degrees = EdgeDegrees::of_block(adjacency, layer.outputs, layer.rows.len());
        Self {
            sampled: true,
            ..Self::directed(adjacency, &degrees, aggregation)
        }
    }

    /// The weights as a dense matrix, `[outputs][inputs]`.
    #[cfg(test)]
    pub(crate) fn dense(&self) -> Vec<Vec<f32>> {
        let (rows, values) = (self.matrix.by_row(), self.matrix.values());
        let mut dense = vec![vec![0.0; self.inputs()]; self.outputs()];
        for (v, row) in dense.iter_mut().enumerate() {
            for entry in rows.entries(v) {
                row[rows.columns[entry] as usize] = values[entry];
            }
        }
        dense
    }

    /// The block with each entry's weight multiplied by `factor(output, input)`.
    pub fn scaled(&self, factor: impl Fn(u32, u32) -> f32) -> Self {
        let (rows, values) = (self.matrix.by_row(), self.matrix.values());
        let scaled = (0_u32..).take(rows.len()).flat_map(|v| {
            let factor = &factor;
            rows.entries(v as usize)
                .map(move |entry| values[entry] * factor(v, rows.columns[entry]))
        });
        Self {
            matrix: Arc::new(self.matrix.with_values(scaled.collect())),
            ..self.clone()
        }
    }

    /// The block with dropout of attention weights after the softmax, each head on its own
    /// (Veličković et al., 2018, section 3.3); the block as it is for 0 heads.
    ///
    /// A draw belongs to an edge of global `nodes`, the numbers of the block's inputs: so a
    /// partition does not change it.
    pub fn dropped(
        &self,
        dropout: &Dropout,
        epoch: u64,
        layer: usize,
        nodes: &[u32],
        heads: usize,
        place: &Place,
    ) -> Self {
        let dropout = dropout.on_attention();
        if dropout.is_off() || heads == 0 {
            return self.clone();
        }
        let rows = self.matrix.by_row();
        let entries = self.matrix.entries();
        let place_of = |row: usize| rows.offsets[row] as usize * heads;
        let mask = each_row(rows, entries * heads * DRAW, place_of, |row, mine| {
            let columns = &rows.columns[rows.entries(row)];
            let sources: Vec<u32> = columns.iter().map(|&u| nodes[u as usize]).collect();
            // Of the node's own, as if each node had epochs to itself.
            let epoch = mix(mix(EDGES, epoch), u64::from(nodes[row]));
            dropout.fill(epoch, layer, &sources, heads, mine);
        });
        let upload = |mask: Vec<f32>| {
            let shape = [mask.len() / heads, heads];
            Tensor::from_data(TensorData::new(mask, shape), &place.device)
        };
        let mask = if self.outputs() <= place.stripe {
            vec![upload(mask)]
        } else {
            stripes(self.outputs(), place.stripe)
                .map(|rows| upload(mask[place_of(rows.start)..place_of(rows.end)].to_vec()))
                .collect()
        };
        Self {
            attention: Some(mask),
            ..self.clone()
        }
    }

    /// Number of nodes whose new representation is computed.
    pub fn outputs(&self) -> usize {
        self.matrix.rows()
    }

    /// Number of nodes whose representation is read.
    pub fn inputs(&self) -> usize {
        self.matrix.columns()
    }
}

/// Keeps the draws of edges apart from those of nodes.
const EDGES: u64 = 0x0065_6467_6573;

const fn index(v: usize) -> u32 {
    // Nodes of a graph are numbered in 32 bits, and a block has no more inputs than that.
    v as u32
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::model::sparse::drawn;
    use crate::model::{
        Activation, BlockShape, Conv, Input, InputShape, ModelConfig, ModelSpec, Work,
    };

    #[test]
    fn scaling_multiplies_each_message_by_the_factor_of_its_two_ends() {
        let graph = Csr::from_edges(3, [(0, 1), (2, 1), (0, 2)].into_iter());
        let degrees: Vec<usize> = (0..3).map(|v| graph.degree(v)).collect();
        let block = Block::new(&graph, &degrees, Aggregation::Mean);
        let scaled = block.scaled(|v, u| (10 * v + u) as f32);
        assert_eq!(block.matrix.values(), [0.5, 0.5, 1.0]);
        assert_eq!(scaled.matrix.values(), [5.0, 6.0, 20.0]);
        assert_eq!(
            scaled.matrix.by_row().columns,
            block.matrix.by_row().columns
        );
    }

    #[test]
    fn a_layer_over_sampled_neighbours_is_the_same_in_either_order() {
        let device = Device::flex();
        let (outputs, inputs, width) = (2, 5, 16);
        let layer = SampledLayer {
            rows: (0..5).collect(),
            outputs,
            own: inputs,
            adjacency: Csr::from_rows(inputs, vec![0, 2, 4], vec![2, 3, 1, 4]).unwrap(),
            degrees: vec![4, 2],
        };
        let degrees = [4, 2, 3, 1, 2];
        let rows = TensorData::new(drawn::values(inputs * width, 1), [inputs, width]);
        let input = Input::Dense(Tensor::from_data(rows, &device).into());
        for kind in ["gcn", "sage", "gin"] {
            let config = format!("kind = \"{kind}\"\nlayers = 3\nhidden = {width}");
            let config: ModelConfig = toml::from_str(&config).unwrap();
            let model = ModelSpec::new(&config, width, 3);
            let sampled = Block::sampled(&layer, &degrees, model.aggregation());
            let all = Block {
                sampled: false,
                ..sampled.clone()
            };
            assert!(sampled.sampled && sampled.scaled(|_, _| 1.0).sampled);
            let conv = Conv::new(&model.layer(1), 0, 1, &device);
            let found = |block| conv.forward(block, &input, Activation::Identity);
            let [found, expected] = [&sampled, &all].map(|block| found(block).into_values());
            assert_eq!(found.len(), outputs * width);
            assert_ne!(found, expected, "{kind}: the two orders round alike");
            for (found, expected) in found.iter().zip(&expected) {
                assert!(
                    (found - expected).abs() < 1e-5,
                    "{kind}: {found} for {expected}"
                );
            }

            // Three rows fewer go through the product, and its input is as wide as its output.
            let shape = BlockShape::sampled(outputs, inputs, 4, model.aggregation());
            let shapes = [
                BlockShape {
                    sampled: false,
                    ..shape
                },
                shape,
            ];
            let dense = InputShape::dense(inputs, width);
            let [last, first] = shapes.map(|shape| Work::layer(&model, 1, shape, dense));
            let saved = 2 * (inputs - outputs) * width * width;
            assert_eq!(last.operations - first.operations, saved as f64, "{kind}");
        }
    }
}
