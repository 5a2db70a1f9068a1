//! What modelled compute is charged for: the arithmetic that is done, layer by layer, the same for every way of training.

use crate::common::{Case, KINDS};
use grapevine::graph::{BatchSpec, Csr, SampledLayer, Sampler, View, shuffled};
use grapevine::model::{ModelKind, Work};
use grapevine::sim::{DeviceProfile, Setting};

const HIDDEN: usize = 32;

fn case(kind: ModelKind) -> Case {
    Case {
        kind,
        workers: 1,
        hidden: HIDDEN,
        layers: 3,
        ..Case::default()
    }
}

fn time(work: Work) -> f64 {
    DeviceProfile::named("cpu-core").unwrap().time(work).0
}

/// Rows from `inner` to `columns`: a multiply-add of each entry, which is read, as the weights are, and what is written.
fn product(rows: usize, inner: usize, columns: usize) -> Work {
    let floats = rows * inner + inner * columns + rows * columns;
    Work {
        operations: (2 * rows * inner * columns) as f64,
        bytes: (4 * floats) as f64,
        launches: 1.0,
    }
}

/// A multiply-add of each entry of each message, which is read with its weight and its index, and rows that are written.
fn aggregation(rows: usize, messages: usize, width: usize) -> Work {
    Work {
        operations: (2 * messages * width) as f64,
        bytes: (4 * (messages * (width + 2) + rows * width)) as f64,
        launches: 1.0,
    }
}

/// Messages of an aggregation, those of nodes to themselves among them where the layer has such.
fn entries(graph: &Csr, kind: ModelKind) -> usize {
    let own = matches!(kind, ModelKind::Gcn | ModelKind::Gat | ModelKind::Gin);
    graph.edges() + if own { graph.nodes() } else { 0 }
}

/// A layer from `inputs` dense columns to `outputs`, by the formulas of its kind.
fn passing(setting: &Setting, inputs: usize, columns: usize, outputs: usize) -> Work {
    let (graph, kind) = (&setting.dataset.graph, setting.model.kind);
    let (n, e) = (graph.nodes(), entries(graph, kind));
    let product = |from: usize, to: usize| product(n, from, to);
    // Rows are gathered where they are narrower.
    let sums = matches!(kind, ModelKind::Gcn | ModelKind::Sage | ModelKind::Gin);
    let width = if sums { inputs.min(columns) } else { columns };
    let gathered = aggregation(n, e, width);
    // Dropout reads and writes the input once, bias and activation the output twice.
    let passes = Work::pass(n * inputs) + Work::pass(n * outputs) * 2.0;
    let all = product(inputs, columns) + gathered + passes;
    let heads = setting.model.heads;
    all + match kind {
        ModelKind::Gcn => Work::default(),
        ModelKind::Sage => product(inputs, outputs),
        ModelKind::SagePool => {
            product(inputs, outputs) + product(columns, outputs) + Work::pass(n * columns) * 2.0
        }
        ModelKind::Gin => product(columns, outputs) + Work::pass(n * columns) * 2.0,
        ModelKind::Gat => Work::pass(n * columns) * 4.0 + Work::pass(e * heads) * 3.0,
    }
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!(
        (found / expected - 1.0).abs() < 1e-6,
        "{what}: {found}, not {expected}"
    );
}

#[test]
fn an_epoch_costs_each_layer_there_and_back_and_the_step() {
    for kind in KINDS {
        for layers in [1, 2, 4] {
            let case = Case {
                layers,
                ..case(kind)
            };
            let setting = case.setting(Case::strategy("full", "").as_ref());
            let of_layer = |layer: usize| {
                let spec = setting.model.layer(layer);
                let forward = passing(&setting, spec.inputs, spec.transformed(), spec.outputs);
                // Features have no gradient.
                let back = if layer == 0 { 1.0 } else { 2.0 };
                time(forward) + time(forward * back)
            };
            let step = time(Work::pass(setting.model.parameters()) * 6.0);
            let expected = (0..layers).map(of_layer).sum::<f64>() + step;
            let outcome = case.run("full", "");
            let found = outcome.times[0].compute.0 / outcome.epochs.len() as f64;
            assert_near(found, expected, &format!("{kind:?}, {layers} layers"));
        }
    }
}

#[test]
fn a_sub_model_of_retexo_is_charged_for_its_own_layer_and_its_head() {
    for kind in [
        ModelKind::Gcn,
        ModelKind::Sage,
        ModelKind::SagePool,
        ModelKind::Gat,
    ] {
        let case = case(kind);
        let setting = case.setting(Case::strategy("retexo", "").as_ref());
        let (n, classes) = (setting.dataset.graph.nodes(), setting.model.classes());
        // Heads of attention have their share of the columns each, and are averaged.
        let spec = grapevine::strategies::retexo::own_spec(&setting.model);
        let width = match kind {
            ModelKind::Gat => HIDDEN / setting.model.heads,
            _ => HIDDEN,
        };
        let below = passing(&setting, width, HIDDEN, width) + Work::norm(n * width);
        let head = product(n, width, classes);
        let parameters = grapevine::strategies::retexo::SubModel::parameters(&spec, 1);
        let step = time(Work::pass(parameters) * 6.0);
        let expected = time(below + head) + time(below + head * 2.0) + step;
        let rounds = |middle: usize| {
            let options = format!("rounds_per_layer = [2, {middle}, 2]");
            case.run("retexo", &options).times[0].compute.0
        };
        assert_near(
            (rounds(6) - rounds(2)) / 4.0,
            expected,
            &format!("{kind:?}"),
        );
    }
}

/// The layers of a step on one worker, from the first on.
fn sampled(setting: &Setting, spec: &BatchSpec, step: usize) -> Vec<SampledLayer> {
    let graph = &setting.dataset.graph;
    let nodes: Vec<u32> = (0..graph.nodes() as u32).collect();
    let view = View {
        adjacency: graph,
        nodes: &nodes,
        own: nodes.len(),
    };
    let sampler = Sampler::new(setting.seed, 0, step, &spec.fanouts);
    let train: Vec<u32> = setting.dataset.split.train.clone();
    let range = setting.steps().range(0, step);
    let mut rows = shuffled(setting.seed, 0, 0, &train)[range].to_vec();
    rows.sort_unstable();
    let mut layers: Vec<SampledLayer> = (0..spec.fanouts.len())
        .map(|hop| {
            let layer = SampledLayer::draw(&sampler, hop, &view, std::mem::take(&mut rows));
            rows.clone_from(&layer.rows);
            layer
        })
        .collect();
    layers.reverse();
    layers
}

#[test]
fn between_equal_widths_a_batch_is_charged_the_product_of_its_outputs_alone() {
    let spec = BatchSpec {
        size: 40,
        fanouts: vec![8, 8, 8],
    };
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin] {
        let case = Case {
            data: "synthetic = { kind = \"sbm\", nodes = 2000, classes = 3, features = 10, degree_within = 8.0, degree_between = 4.0 }\nsplit = { train = 0.1, val = 0.1 }",
            hidden: 128,
            epochs: 1,
            batch: Some(spec.clone()),
            ..case(kind)
        };
        for (strategy, options) in [
            ("isolated", ""),
            ("full", ""),
            ("grappa", ""),
            ("distdgl", "prefetch = false"),
        ] {
            let setting = case.setting(Case::strategy(strategy, options).as_ref());
            let (mut expected, mut other) = (0.0, 0.0);
            for step in 0..setting.steps().count() {
                let layers = sampled(&setting, &spec, step);
                for (number, layer) in layers.iter().enumerate() {
                    let width = setting.model.layer(number);
                    let (outputs, inputs) = (layer.outputs, layer.rows.len());
                    let (from, to) = (width.inputs, width.transformed());
                    let own = if matches!(kind, ModelKind::Sage) {
                        0
                    } else {
                        outputs
                    };
                    let entries = layer.adjacency.edges() + own;
                    let behind = match kind {
                        ModelKind::Sage => product(outputs, from, width.outputs),
                        ModelKind::Gin => {
                            product(outputs, to, width.outputs) + Work::pass(outputs * to) * 2.0
                        }
                        _ => Work::default(),
                    };
                    let passes =
                        Work::pass(inputs * from) + Work::pass(outputs * width.outputs) * 2.0;
                    let charged = |rows: usize| {
                        let gathered = aggregation(outputs, entries, from.min(to));
                        let there = product(rows, from, to) + gathered + passes + behind;
                        time(there) + time(there * if number == 0 { 1.0 } else { 2.0 })
                    };
                    expected += charged(if from <= to { outputs } else { inputs });
                    other += charged(if from < to { outputs } else { inputs });
                }
            }
            // Drawing, gathering features and the step of the optimiser come to less than what the
            // product of all inputs would add.
            let found = case.run(strategy, options).times[0].compute.0;
            let (beside, more) = (found - expected, other - expected);
            assert!(
                0.0 < beside && beside < more,
                "{strategy}, {kind:?}: {found}, where layers take {expected}, and {other} in the other order"
            );
        }
    }
}
