//! Settings in which the models of papers differ: self-loops, first weights, biases, dropout of the features.

use std::f64::consts::SQRT_2;

use grapevine::graph::Csr;
use grapevine::model::{
    Activation, Aggregation, Block, Conv, Dropout, Gnn, Init, Input, LayerSpec, Matrix, Merge,
    ModelKind, ModelSpec, Place, parameters, with_parameters,
};
use grapevine::sim::Backend;

use crate::common::{Case, assert_close, devices, losses};
use crate::reference::{degrees, single_device};

const INPUTS: usize = 50;
const OUTPUTS: usize = 30;

fn layer(init: Init, gain: f64, biases: usize) -> Conv {
    let spec = LayerSpec {
        kind: ModelKind::Sage,
        inputs: INPUTS,
        outputs: OUTPUTS,
        inner: OUTPUTS,
        heads: 1,
        head_biases: false,
        merge: Merge::Concatenate,
        init,
        gain,
        biases,
    };
    let device = flex().device.autodiff();
    let conv = Conv::new(&spec, 7, 1, &device);
    assert_eq!(parameters(&conv).len(), spec.parameters());
    conv
}

/// Weights and biases of such a layer.
fn drawn(init: Init, gain: f64, biases: usize) -> (Vec<f32>, Vec<f32>) {
    let mut weights = parameters(&layer(init, gain, biases));
    let biases = weights.split_off(2 * INPUTS * OUTPUTS);
    (weights, biases)
}

/// All values are within a bound, and as spread as uniform ones.
fn assert_uniform(values: &[f32], bound: f64) {
    let n = values.len() as f64;
    let largest = values
        .iter()
        .fold(0.0_f64, |most, v| most.max(f64::from(v.abs())));
    assert!(
        largest <= bound && largest > bound * (1.0 - 20.0 / n),
        "{largest}"
    );
    let square = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / n;
    // The variance of a mean of squares of uniform values is 4/45 of the bound to the fourth.
    let expected = bound * bound / 3.0;
    let spread = (4.0 / 45.0 / n).sqrt() * bound * bound;
    assert!(
        (square - expected).abs() < 5.0 * spread,
        "{square}, {expected}"
    );
}

#[test]
fn glorots_weights_are_as_wide_as_both_sides_and_biases_zero() {
    let (weights, biases) = drawn(Init::Glorot, 1.0, 1);
    assert_uniform(&weights, (6.0 / (INPUTS + OUTPUTS) as f64).sqrt());
    assert!(biases.iter().all(|&bias| bias == 0.0));
    // torch's xavier_uniform_ with the gain of ReLU, as in DGL's SAGEConv.
    let (wider, _) = drawn(Init::Glorot, SQRT_2, 1);
    assert_uniform(&wider, (12.0 / (INPUTS + OUTPUTS) as f64).sqrt());
}

#[test]
fn uniform_fan_in_is_bns_gcns_and_has_biases_too() {
    let (weights, biases) = drawn(Init::UniformFanIn, 1.0, 2);
    let bound = 1.0 / (INPUTS as f64).sqrt();
    assert_uniform(&weights, bound);
    assert_eq!(biases.len(), 2 * OUTPUTS);
    assert_uniform(&biases, bound);
    let (first, second) = biases.split_at(OUTPUTS);
    assert_ne!(first, second, "drawn apart");
    // With one bias the two products are one `torch.nn.Linear` of twice as many inputs.
    let (weights, biases) = drawn(Init::UniformFanIn, 1.0, 1);
    let bound = 1.0 / (2.0 * INPUTS as f64).sqrt();
    assert_uniform(&weights, bound);
    assert_uniform(&biases, bound);
}

#[test]
fn dgls_layers_begin_as_its_code_has_them() {
    let device = flex().device.autodiff();
    let drawn = |kind, inputs: usize, outputs: usize, heads: usize| {
        let spec = LayerSpec {
            kind,
            inputs,
            outputs,
            inner: outputs,
            heads,
            head_biases: true,
            merge: Merge::Average,
            init: Init::Dgl,
            gain: 1.0,
            biases: 1,
        };
        let found = parameters(&Conv::new(&spec, 3, 0, &device));
        assert_eq!(found.len(), spec.parameters());
        found
    };
    let is_zero = |biases: &[f32]| biases.iter().all(|&bias| bias == 0.0);
    let glorot = (6.0 / (INPUTS + OUTPUTS) as f64).sqrt();
    let count = INPUTS * OUTPUTS;

    let found = drawn(ModelKind::Gcn, INPUTS, OUTPUTS, 1);
    let (weights, biases) = found.split_at(count);
    assert_uniform(weights, glorot);
    assert!(is_zero(biases));
    // `fc_self` is a `Linear` with its bias, and `fc_neigh` has none.
    let found = drawn(ModelKind::Sage, INPUTS, OUTPUTS, 1);
    let (weights, biases) = found.split_at(2 * count);
    assert_uniform(weights, SQRT_2 * glorot);
    assert_uniform(biases, 1.0 / (INPUTS as f64).sqrt());

    // `xavier_normal_(fc.weight, gain)`, `attn_l` and `attn_r` of shape `[1, heads, columns]`.
    let (heads, columns) = (40, 50);
    let found = drawn(ModelKind::Gat, 300, columns, heads);
    let (weights, rest) = found.split_at(300 * heads * columns);
    assert_normal(
        weights,
        SQRT_2 * (2.0 / (300 + heads * columns) as f64).sqrt(),
    );
    let (scores, biases) = rest.split_at(2 * heads * columns);
    assert_normal(
        scores,
        SQRT_2 * (2.0 / (heads * columns + columns) as f64).sqrt(),
    );
    assert_eq!(biases.len(), heads * columns);
    assert!(is_zero(biases));
    // Scores of the reader and of the read are drawn apart.
    let (own, other) = scores.split_at(heads * columns);
    assert_ne!(own, other);
}

/// The variance is as expected, and so is the fourth moment, thrice its square.
fn assert_normal(values: &[f32], deviation: f64) {
    let n = values.len() as f64;
    let mean_of = |power| {
        values
            .iter()
            .map(|&v| (f64::from(v) / deviation).powi(power))
            .sum::<f64>()
            / n
    };
    // The standard deviations of such means: of squares √2, of fourth powers √96, over √n.
    assert!(
        (mean_of(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt(),
        "{}",
        mean_of(2)
    );
    assert!(
        (mean_of(4) - 3.0).abs() < 5.0 * (96.0 / n).sqrt(),
        "{}",
        mean_of(4)
    );
}

#[test]
fn attention_is_dropped_at_a_rate_of_its_own() {
    let spec = LayerSpec {
        kind: ModelKind::Gat,
        inputs: INPUTS,
        outputs: OUTPUTS,
        inner: OUTPUTS,
        heads: 2,
        head_biases: false,
        merge: Merge::Average,
        init: Init::Glorot,
        gain: 1.0,
        biases: 1,
    };
    let (graph, place) = (square(), flex());
    let block = Block::new(&graph, &degrees(&graph), Aggregation::NeighboursAndSelf);
    let conv = Conv::new(&spec, 7, 0, &place.device.clone().autodiff());
    let rows: Vec<f32> = (0..4 * INPUTS).map(|v| (v % 17) as f32 / 17.0).collect();
    let input = Input::Dense(Matrix::from_values(rows, INPUTS, &place));
    let output = |block: &Block| {
        let activation = Activation::Identity;
        conv.forward(block, &input, activation).into_values()
    };
    let dropped =
        |dropout: Dropout| output(&block.dropped(&dropout, 1, 0, &[0, 1, 2, 3], 2, &place));
    let usual = Dropout::new(0.5, 3);
    assert_ne!(dropped(usual), output(&block));
    assert_eq!(dropped(usual.with_attention(0.0)), output(&block));
    let alone = Dropout::new(0.0, 3).with_attention(0.5);
    assert_eq!(dropped(alone), dropped(usual));
}

#[test]
fn layers_have_biases_of_their_own_numbers() {
    // BNS-GCN's model for Cora's sizes: `Linear(2 · 50, 16)`, then two of 16 to 16 and two of 16 to
    // 7.
    let text = "kind = \"sage\"\nlayers = 3\nhidden = 16\nbiases = [1, 2, 2]";
    let spec = ModelSpec::new(&toml::from_str(text).unwrap(), 50, 7);
    let linear = |inputs: usize, outputs: usize| inputs * outputs + outputs;
    let theirs = linear(100, 16) + 2 * linear(16, 16) + 2 * linear(16, 7);
    assert_eq!(spec.parameters(), theirs);
    let model = Gnn::new(&spec, 3, &flex().device.autodiff());
    assert_eq!(parameters(&model).len(), theirs);
}

fn flex() -> Place {
    devices(Backend::Flex, 1).remove(0).place
}

fn square() -> Csr {
    Csr::from_edges(4, [(0, 1), (1, 0), (2, 1), (1, 2), (3, 0)].into_iter())
}

#[test]
fn two_biases_of_a_layer_add_up() {
    let graph = square();
    let block = Block::new(&graph, &degrees(&graph), Aggregation::Mean);
    let rows: Vec<f32> = (0..4 * INPUTS).map(|v| (v % 17) as f32 / 17.0).collect();
    let input = Input::Dense(Matrix::from_values(rows, INPUTS, &flex()));
    let output = |conv: Conv, values: &[f32]| {
        let conv = with_parameters(conv, values);
        let activation = Activation::Identity;
        conv.forward(&block, &input, activation).into_values()
    };
    let two = parameters(&layer(Init::UniformFanIn, 1.0, 2));
    let (weights, biases) = two.split_at(2 * INPUTS * OUTPUTS);
    let (first, second) = biases.split_at(OUTPUTS);
    let sums = first.iter().zip(second).map(|(a, b)| a + b);
    let one: Vec<f32> = weights.iter().copied().chain(sums).collect();
    let found = output(layer(Init::Glorot, 1.0, 2), &two);
    assert_eq!(found, output(layer(Init::Glorot, 1.0, 1), &one));
}

#[test]
fn self_loops_of_graphsage_are_those_of_the_graph_with_an_edge_from_each_node_to_itself() {
    let graph = square();
    let looped = graph.iter_edges().chain((0..4).map(|v| (v, v)));
    let looped = Csr::from_edges(4, looped.collect::<Vec<_>>().into_iter());
    let block = Block::new(&graph, &degrees(&graph), Aggregation::MeanWithSelf);
    for (v, degree) in degrees(&graph).into_iter().enumerate() {
        let entries = block.matrix.by_row().entries(v);
        let columns = &block.matrix.by_row().columns[entries.clone()];
        let mut neighbours = looped.neighbours(v).to_vec();
        if !neighbours.contains(&(v as u32)) {
            neighbours.push(v as u32); // a Csr may leave out loops
            neighbours.sort_unstable();
        }
        assert_eq!(columns, neighbours);
        let mean = 1.0 / (degree + 1) as f32;
        assert!(block.matrix.values()[entries].iter().all(|&w| w == mean));
    }
}

#[test]
fn features_can_be_dropped_less_than_hidden_rows() {
    let place = flex();
    let values: Vec<f32> = (1..=600).map(|v| v as f32).collect();
    let nodes: Vec<u32> = (0..20).collect();
    let rows = Input::Dense(Matrix::from_values(values.clone(), 30, &place));
    let dropped = |dropout: &Dropout, layer| match rows.dropped(dropout, 0, layer, &nodes) {
        Input::Dense(rows) => rows.into_values(),
        Input::Sparse(..) => panic!("dense rows"),
    };
    let usual = Dropout::new(0.5, 3);
    let none = usual.with_features(0.0);
    assert_eq!(dropped(&none, 0), values);
    assert_eq!(dropped(&none, 1), dropped(&usual, 1));
    let lost = dropped(&usual, 0).iter().filter(|v| **v == 0.0).count();
    assert!((200..400).contains(&lost), "{lost}");
}

#[test]
fn a_model_as_bns_gcns_varcos_or_grappas_authors_have_it_trains_on_many_workers_as_on_one() {
    let bns = Case {
        kind: ModelKind::Sage,
        self_loops: Some(true),
        init: Init::UniformFanIn,
        biases: 2,
        epochs: 4,
        ..Case::default()
    };
    let varco = Case {
        init: Init::Glorot,
        gain: SQRT_2,
        biases: 1,
        input_dropout: Some(0.0),
        ..bns.clone()
    };
    let grappa = Case {
        kind: ModelKind::Gat,
        self_loops: None,
        init: Init::Dgl,
        biases: 1,
        attention_dropout: Some(0.0),
        activation: Some(Activation::Relu),
        head_biases: true,
        ..bns.clone()
    };
    for case in [bns, varco, grappa] {
        let setting = case.setting(Case::strategy("full", "").as_ref());
        let expected = single_device(&setting).losses;
        for options in ["", "exchange = \"product\"\ncache_features = false"] {
            let found = losses(&case.run("full", options));
            assert_close(&found, &expected, 1e-5, options);
        }
        let plain = Case {
            self_loops: None,
            activation: None,
            ..case.clone()
        };
        assert_ne!(
            losses(&plain.run("full", "")),
            losses(&case.run("full", ""))
        );
    }
}
