//! What modelled compute is charged for: the arithmetic that is done, layer by layer, the same for every way of training.

use crate::common::{Case, KINDS};
use grapevine::graph::Csr;
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
