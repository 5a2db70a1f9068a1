//! Every layer against its formula, node by node in double precision; and the sizes that a model states.

use burn::module::Module;

use crate::common::{KINDS, devices};
use grapevine::graph::Csr;
use grapevine::model::{
    Activation, Aggregation, Biases, Block, Conv, Gnn, Init, Input, LayerSpec, Merge, ModelConfig,
    ModelKind, ModelSpec, NormKind, parameter_count, parameters,
};
use grapevine::sim::Backend;

/// Seven input nodes, of which the first five are computed; node 3 has no neighbour.
const EDGES: [(u32, u32); 9] = [
    (1, 0),
    (2, 0),
    (5, 0),
    (0, 1),
    (6, 1),
    (0, 2),
    (3, 2),
    (4, 2),
    (6, 4),
];
const NODES: usize = 7;
const OUTPUTS: usize = 5;

fn graph() -> Csr {
    Csr::rectangular(OUTPUTS, NODES, EDGES.into_iter())
}

fn noise(stream: u64, n: usize) -> Vec<f32> {
    let draw = |i| grapevine::rng::mix(stream, i as u64) % 2_001;
    (0..n).map(|i| draw(i) as f32 / 1_000.0 - 1.0).collect()
}

fn spec(kind: ModelKind, merge: Merge) -> LayerSpec {
    LayerSpec {
        kind,
        inputs: 5,
        outputs: 6,
        inner: 4,
        heads: 3,
        head_biases: false,
        merge,
        init: Init::Glorot,
        gain: 1.0,
        biases: 1,
    }
}

/// Parameters of a layer in the order in which it lists them.
struct Flat<'a>(&'a [f64]);

impl Flat<'_> {
    fn take(&mut self, rows: usize, columns: usize) -> Vec<Vec<f64>> {
        let (mine, rest) = self.0.split_at(rows * columns);
        self.0 = rest;
        mine.chunks_exact(columns).map(<[f64]>::to_vec).collect()
    }

    fn vector(&mut self, length: usize) -> Vec<f64> {
        self.take(1, length).remove(0)
    }
}

fn times(x: &[f64], w: &[Vec<f64>]) -> Vec<f64> {
    (0..w[0].len())
        .map(|j| x.iter().zip(w).map(|(x, row)| x * row[j]).sum())
        .collect()
}

fn plus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn relu(x: &[f64]) -> Vec<f64> {
    x.iter().map(|x| x.max(0.0)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn scaled(x: &[f64], factor: f64) -> Vec<f64> {
    x.iter().map(|x| x * factor).collect()
}

/// What the layer makes of node `v`, by its formula.
fn plain(spec: &LayerSpec, values: &[f64], x: &[Vec<f64>], v: usize) -> Vec<f64> {
    let graph = graph();
    let neighbours: Vec<usize> = graph.neighbours(v).iter().map(|&u| u as usize).collect();
    let with_self: Vec<usize> = neighbours.iter().copied().chain([v]).collect();
    let (inputs, outputs, inner) = (spec.inputs, spec.outputs, spec.inner);
    let mut flat = Flat(values);
    let sum = |nodes: &[usize], width: usize, term: &dyn Fn(usize) -> Vec<f64>| {
        nodes
            .iter()
            .fold(vec![0.0; width], |sum, &u| plus(&sum, &term(u)))
    };
    match spec.kind {
        ModelKind::Gcn => {
            let (w, b) = (flat.take(inputs, outputs), flat.vector(outputs));
            let degree = |u: usize| if u < OUTPUTS { graph.degree(u) } else { 1 };
            let size = |u: usize| (degree(u) + 1) as f64;
            let term = |u: usize| scaled(&x[u], 1.0 / (size(u) * size(v)).sqrt());
            plus(&times(&sum(&with_self, inputs, &term), &w), &b)
        }
        ModelKind::Sage => {
            let (own, other) = (flat.take(inputs, outputs), flat.take(inputs, outputs));
            let term = |u: usize| scaled(&x[u], 1.0 / neighbours.len() as f64);
            let mean = sum(&neighbours, inputs, &term);
            let both = plus(&times(&x[v], &own), &times(&mean, &other));
            plus(&both, &flat.vector(outputs))
        }
        ModelKind::SagePool => {
            let (pool, bias) = (flat.take(inputs, inner), flat.vector(inner));
            let (own, other) = (flat.take(inputs, outputs), flat.take(inner, outputs));
            let pooled = |u: usize| relu(&plus(&times(&x[u], &pool), &bias));
            let largest = neighbours.iter().fold(vec![0.0_f64; inner], |most, &u| {
                most.iter().zip(pooled(u)).map(|(a, b)| a.max(b)).collect()
            });
            let both = plus(&times(&x[v], &own), &times(&largest, &other));
            plus(&both, &flat.vector(outputs))
        }
        ModelKind::Gin => {
            let (first, bias) = (flat.take(inputs, inner), flat.vector(inner));
            let all = sum(&with_self, inputs, &|u| x[u].clone());
            let hidden = relu(&plus(&times(&all, &first), &bias));
            plus(
                &times(&hidden, &flat.take(inner, outputs)),
                &flat.vector(outputs),
            )
        }
        ModelKind::Gat => {
            let (heads, width) = (spec.heads, spec.head_width());
            let w = flat.take(inputs, heads * width);
            let (own, other) = (flat.take(heads, width), flat.take(heads, width));
            let of_head = |head: usize| {
                let part = |u: usize| times(&x[u], &w)[head * width..(head + 1) * width].to_vec();
                let weight = |u: usize| {
                    let score = dot(&part(v), &own[head]) + dot(&part(u), &other[head]);
                    score.max(0.2 * score).exp()
                };
                let total: f64 = with_self.iter().map(|&u| weight(u)).sum();
                sum(&with_self, width, &|u| scaled(&part(u), weight(u) / total))
            };
            let parts: Vec<Vec<f64>> = (0..heads).map(of_head).collect();
            let merged = match spec.merge {
                Merge::Concatenate => parts.concat(),
                Merge::Average => {
                    let sums = parts.iter().fold(vec![0.0; width], |sum, h| plus(&sum, h));
                    scaled(&sums, 1.0 / heads as f64)
                }
            };
            plus(&merged, &flat.vector(outputs))
        }
    }
}

#[test]
fn every_layer_is_its_formula() {
    let device = devices(Backend::Flex, 1).remove(0).place.device;
    let degrees: Vec<usize> = (0..NODES)
        .map(|v| if v < OUTPUTS { graph().degree(v) } else { 1 })
        .collect();
    for (kind, merge) in KINDS
        .into_iter()
        .map(|kind| (kind, Merge::Concatenate))
        .chain([(ModelKind::Gat, Merge::Average)])
    {
        let spec = spec(kind, merge);
        let conv = Conv::new(&spec, 3, 0, &device.clone().autodiff());
        let count = parameter_count(&conv);
        assert_eq!(count, spec.parameters(), "{kind:?}, {merge:?}");
        // Biases that are not zero, too.
        let conv = grapevine::model::with_parameters(conv, &noise(7, count));
        let values: Vec<f64> = parameters(&conv).into_iter().map(f64::from).collect();
        let rows = noise(8, NODES * spec.inputs);
        let data = burn::tensor::TensorData::new(rows.clone(), [NODES, spec.inputs]);
        let input = Input::Dense(burn::tensor::Tensor::from_data(data, &device).into());
        let block = Block::new(&graph(), &degrees, Aggregation::from(kind));
        let found = conv
            .valid()
            .forward(&block, &input, Activation::Identity)
            .into_values();
        let x: Vec<Vec<f64>> = rows
            .chunks_exact(spec.inputs)
            .map(|row| row.iter().map(|&v| f64::from(v)).collect())
            .collect();
        let expected = (0..OUTPUTS).flat_map(|v| plain(&spec, &values, &x, v));
        for (place, (found, expected)) in found.iter().zip(expected).enumerate() {
            assert!(
                (f64::from(*found) - expected).abs() < 1e-5 * (1.0 + expected.abs()),
                "{kind:?}, {merge:?}: value {place} is {found}, not {expected}"
            );
        }
        assert_eq!(found.len(), OUTPUTS * spec.outputs);
    }
}

#[test]
fn a_model_has_as_many_parameters_as_it_states_and_rows_as_wide() {
    let device = devices(Backend::Flex, 1).remove(0).place.device;
    let square = Csr::from_edges(NODES, EDGES.into_iter());
    let degrees: Vec<usize> = (0..NODES).map(|v| square.degree(v)).collect();
    for kind in KINDS {
        let block = Block::new(&square, &degrees, Aggregation::from(kind));
        for (layers, heads, norm, residual) in [
            (1, 1, NormKind::None, false),
            (2, 4, NormKind::None, true),
            (3, 2, NormKind::Layer, false),
            (8, 4, NormKind::Layer, true),
        ] {
            let config = ModelConfig {
                kind,
                layers,
                hidden: 12,
                heads,
                dropout: 0.0,
                input_dropout: None,
                attention_dropout: None,
                activation: None,
                init: Init::Glorot,
                gain: 1.0,
                biases: Biases::default(),
                norm,
                residual,
                self_loops: None,
                head_biases: false,
                weights: None,
            };
            let spec = ModelSpec::new(&config, 5, 3);
            let model = Gnn::new(&spec, 0, &device);
            assert_eq!(parameter_count(&model), spec.parameters(), "{config:?}");
            let data = burn::tensor::TensorData::new(noise(1, NODES * 5), [NODES, 5]);
            let mut input = Input::Dense(burn::tensor::Tensor::from_data(data, &device).into());
            for layer in 0..layers {
                let rows = model.layer(layer, &block, &input);
                assert_eq!(
                    (rows.rows(), rows.width()),
                    (NODES, spec.widths[layer + 1]),
                    "{config:?}"
                );
                input = Input::Dense(rows);
            }
        }
    }
}

#[test]
fn a_residual_layer_adds_its_input_between_the_first_and_the_last() {
    let device = devices(Backend::Flex, 1).remove(0).place.device;
    let square = Csr::from_edges(NODES, EDGES.into_iter());
    let degrees: Vec<usize> = (0..NODES).map(|v| square.degree(v)).collect();
    let block = Block::new(&square, &degrees, Aggregation::from(ModelKind::Gcn));
    // As wide everywhere, so that nothing but the position decides.
    let model = |residual| {
        let config = ModelConfig {
            kind: ModelKind::Gcn,
            layers: 3,
            hidden: 4,
            heads: 1,
            dropout: 0.0,
            input_dropout: None,
            attention_dropout: None,
            activation: None,
            init: Init::Glorot,
            gain: 1.0,
            biases: Biases::default(),
            norm: NormKind::None,
            residual,
            self_loops: None,
            head_biases: false,
            weights: None,
        };
        Gnn::new(&ModelSpec::new(&config, 4, 4), 0, &device)
    };
    let rows = noise(2, NODES * 4);
    let data = burn::tensor::TensorData::new(rows.clone(), [NODES, 4]);
    let input = Input::Dense(burn::tensor::Tensor::from_data(data, &device).into());
    for layer in 0..3 {
        let plain = model(false).layer(layer, &block, &input).into_values();
        let residual = model(true).layer(layer, &block, &input).into_values();
        for (place, (with, without)) in residual.iter().zip(&plain).enumerate() {
            let added = if layer == 1 { rows[place] } else { 0.0 };
            assert_eq!(*with, without + added, "layer {layer}");
        }
    }
}

#[test]
fn parameters_of_a_layer_stand_where_the_model_says_and_matter_to_it_alone() {
    let device = devices(Backend::Flex, 1).remove(0).place.device;
    let square = Csr::from_edges(NODES, EDGES.into_iter());
    let degrees: Vec<usize> = (0..NODES).map(|v| square.degree(v)).collect();
    for kind in KINDS {
        for norm in [NormKind::None, NormKind::Layer] {
            let config = ModelConfig {
                kind,
                layers: 3,
                hidden: 4,
                heads: 2,
                dropout: 0.0,
                input_dropout: None,
                attention_dropout: None,
                activation: None,
                init: Init::Glorot,
                gain: 1.0,
                biases: Biases::default(),
                norm,
                residual: false,
                self_loops: None,
                head_biases: false,
                weights: None,
            };
            let spec = ModelSpec::new(&config, 5, 3);
            let model = || Gnn::new(&spec, 1, &device.clone().autodiff());
            let values = noise(4, spec.parameters());
            let block = Block::new(&square, &degrees, Aggregation::from(kind));
            let outputs = |values: &[f32]| -> Vec<Vec<f32>> {
                let model = grapevine::model::with_parameters(model(), values).valid();
                let layer = |layer: usize| {
                    let width = spec.widths[layer];
                    let rows = noise(9, NODES * width);
                    let data = burn::tensor::TensorData::new(rows, [NODES, width]);
                    let input = Input::Dense(burn::tensor::Tensor::from_data(data, &device).into());
                    model.layer(layer, &block, &input).into_values()
                };
                (0..3).map(layer).collect()
            };
            let before = outputs(&values);
            let mut owned = vec![0; spec.parameters()];
            for layer in 0..3 {
                let mut changed = values.clone();
                for range in spec.parameter_ranges(layer) {
                    for at in range {
                        owned[at] += 1;
                        changed[at] += 0.5;
                    }
                }
                for (other, (a, b)) in outputs(&changed).iter().zip(&before).enumerate() {
                    assert_eq!(
                        a != b,
                        other == layer,
                        "{kind:?}, {norm:?}, {layer}, {other}"
                    );
                }
            }
            assert_eq!(owned, vec![1; spec.parameters()], "{kind:?}, {norm:?}");
        }
    }
}

/// Attention in which no node reads its own row.
fn gat_alone(layers: usize, hidden: usize, heads: usize, head_biases: bool) -> ModelConfig {
    ModelConfig {
        kind: ModelKind::Gat,
        layers,
        hidden,
        heads,
        dropout: 0.0,
        norm: NormKind::None,
        residual: false,
        self_loops: Some(false),
        input_dropout: None,
        attention_dropout: None,
        activation: None,
        init: Init::Glorot,
        gain: 1.0,
        biases: Biases::default(),
        head_biases,
        weights: None,
    }
}

#[test]
fn a_gat_without_its_own_row_and_with_a_bias_a_head_has_the_authors_parameters() {
    // RETEXO's authors on Cora: 1,433 words, eight heads of 32 columns, seven classes; each layer a
    // `dgl.nn.GATConv`, whose bias has an entry for each column of each head: 273 more than ours.
    let count = |head_biases| {
        let spec = grapevine::strategies::retexo::own_spec(&ModelSpec::new(
            &gat_alone(2, 256, 8, head_biases),
            1433,
            7,
        ));
        let of = |layer| grapevine::strategies::retexo::SubModel::parameters(&spec, layer);
        of(0) + of(1)
    };
    assert_eq!(count(true) - count(false), 273);
    // Weights and two scores of both layers, their biases, layer normalisation, and the head.
    let gat = |inputs: usize, width: usize| inputs * 8 * width + 2 * 8 * width + 8 * width;
    let expected = gat(1433, 32) + gat(32, 7) + 2 * 32 + 32 * 7 + 7;
    assert_eq!(count(true), expected);
}

#[test]
fn biases_of_averaged_heads_are_averaged_and_no_node_attends_to_itself() {
    let device = devices(Backend::Flex, 1).remove(0).place.device;
    // Node 0 hears 1 alone, node 2 nobody.
    let graph = Csr::from_edges(3, [(1, 0), (0, 1)].into_iter());
    let degrees: Vec<usize> = (0..3).map(|v| graph.degree(v)).collect();
    let spec = ModelSpec::new(&gat_alone(1, 2, 3, true), 2, 2);
    let block = Block::new(&graph, &degrees, spec.aggregation());
    let values = noise(3, spec.parameters());
    let model = Gnn::new(&spec, 0, &device.clone().autodiff());
    let model = grapevine::model::with_parameters(model, &values).valid();
    let rows = vec![0.3, -0.7, 0.9, 0.2, 0.5, 0.5];
    let data = burn::tensor::TensorData::new(rows.clone(), [3, 2]);
    let input = Input::Dense(burn::tensor::Tensor::from_data(data, &device).into());
    let found = model.layer(0, &block, &input).into_values();
    // Weights [2, 6], then two scores of six, then a bias of each head: the mean over heads.
    let (weight, bias) = (&values[..12], &values[24..]);
    assert_eq!(bias.len(), 6);
    let mean = |of: &dyn Fn(usize) -> f32| (of(0) + of(1) + of(2)) / 3.0;
    for node in 0..3 {
        for column in 0..2 {
            let heard = |head: usize| -> f32 {
                let at = 2 * head + column;
                let product =
                    |u: usize| rows[2 * u] * weight[at] + rows[2 * u + 1] * weight[6 + at];
                // The softmax over one neighbour is 1.
                [product(1), product(0), 0.0][node]
            };
            let expected = mean(&heard) + mean(&|head| bias[2 * head + column]);
            let found = found[2 * node + column];
            assert!(
                (found - expected).abs() < 1e-5,
                "{node}, {column}: {found}, {expected}"
            );
        }
    }
}
