//! What modelled compute is charged for: the arithmetic that is done, layer by layer, the same for every way of training.

use crate::common::Case;
use grapevine::graph::Csr;
use grapevine::model::{ModelKind, Work};
use grapevine::sim::{DeviceProfile, Setting};

const HIDDEN: usize = 32;
const EPOCHS: usize = 3;

fn case(kind: ModelKind) -> Case {
    Case {
        kind,
        workers: 1,
        hidden: HIDDEN,
        layers: 3,
        epochs: EPOCHS,
        ..Case::default()
    }
}

/// Seconds of an epoch in which the only worker computes.
fn computing(case: &Case, strategy: &str, options: &str) -> f64 {
    let outcome = case.run(strategy, options);
    outcome.times[0].compute.0 / outcome.epochs.len() as f64
}

fn time(work: Work) -> f64 {
    DeviceProfile::named("cpu-core").unwrap().time(work).0
}

/// Of so many parameters more in a step that is taken in any case.
fn stepping(parameters: usize) -> f64 {
    time(Work::pass(parameters) * 6.0) - DeviceProfile::named("cpu-core").unwrap().launch.0
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
    let product = |from: usize, to: usize| Work::product(n, n * from, from, to);
    // Rows are gathered where they are narrower.
    let sums = matches!(kind, ModelKind::Gcn | ModelKind::Sage | ModelKind::Gin);
    let width = if sums { inputs.min(columns) } else { columns };
    let gathered = Work::aggregation(n, e, width);
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
fn a_layer_more_costs_its_passes_there_and_back_and_its_share_of_the_step() {
    for kind in crate::common::KINDS {
        let setting = case(kind).setting(case(kind).strategy("full", "").as_ref());
        let forward = passing(&setting, HIDDEN, HIDDEN, HIDDEN);
        let parameters = setting.model.layer_parameters(1);
        let expected = time(forward) + time(forward * 2.0) + stepping(parameters);
        for layers in [3, 4] {
            let deep = |layers| Case {
                layers,
                ..case(kind)
            };
            let [less, more] = [layers, layers + 1].map(|l| computing(&deep(l), "full", ""));
            let what = format!("{kind:?}, layer {}", layers + 1);
            assert_near(more - less, expected, &what);
        }
    }
}

#[test]
fn the_first_layer_goes_back_to_its_parameters_alone() {
    for kind in crate::common::KINDS {
        let shallow = Case {
            layers: 1,
            ..case(kind)
        };
        let setting = shallow.setting(shallow.strategy("full", "").as_ref());
        let (features, classes) = (setting.model.features(), setting.model.classes());
        let columns = setting.model.layer(0).transformed();
        let forward = passing(&setting, features, columns, classes);
        let step = time(Work::pass(setting.model.parameters()) * 6.0);
        let found = computing(&shallow, "full", "");
        assert_near(found, 2.0 * time(forward) + step, &format!("{kind:?}"));
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
        let setting = case.setting(case.strategy("retexo", "").as_ref());
        let (n, classes) = (setting.dataset.graph.nodes(), setting.model.classes());
        // Of attention all heads are as wide as the layer, and averaged.
        let columns = match kind {
            ModelKind::Gat => setting.model.heads * HIDDEN,
            _ => HIDDEN,
        };
        let below = passing(&setting, HIDDEN, columns, HIDDEN) + Work::norm(n * HIDDEN);
        let head = Work::product(n, n * HIDDEN, HIDDEN, classes);
        let parameters = grapevine::strategies::retexo::SubModel::parameters(&setting.model, 1);
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
