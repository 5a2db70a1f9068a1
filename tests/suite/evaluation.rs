//! Evaluation in parts, each with its halo's rows from their owners, beside that on the whole graph.

use std::sync::Arc;

use burn::module::Module;
use grapevine::graph::Metric;
use grapevine::model::{Gnn, ModelKind, NormKind};
use grapevine::sim::{Evaluation, Inference, Scores, Setting};

use crate::common::{CORA, Case, KINDS};

/// Dense features of more columns than `gemm` takes at once.
const WIDE: &str = "synthetic = { kind = \"sbm\", nodes = 700, classes = 4, features = 600, degree_within = 6.0, degree_between = 3.0 }\nsplit = { train = 0.3, val = 0.4 }";

/// Fewer nodes than the least part is filled up to.
const SMALL: &str = "synthetic = { kind = \"sbm\", nodes = 60, classes = 3, features = 530, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.3, val = 0.4 }";

/// 40 labels of a node.
const SEVERAL: &str = "synthetic = { kind = \"sbm\", nodes = 400, classes = 3, features = 10, degree_within = 4.0, degree_between = 2.0, labels = 40 }\nsplit = { train = 0.5, val = 0.3 }";

/// Two classes, which with ROC-AUC are one label and one logit.
const TWO: &str = "synthetic = { kind = \"sbm\", nodes = 400, classes = 2, features = 10, degree_within = 4.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.3 }";

fn bits(scores: Scores) -> [Option<u64>; 4] {
    let Scores {
        train,
        validation,
        test,
        validation_loss,
    } = scores;
    [train, validation, test, validation_loss].map(|score| score.map(f64::to_bits))
}

/// Scores of a fresh model on the whole graph and in parts.
fn both(setting: &Arc<Setting>) -> [Scores; 2] {
    let model = Gnn::new(&setting.model, 7, &setting.device()).valid();
    let inference = Inference {
        aggregation: setting.model.aggregation(),
        from: None,
        layers: model.layers(),
        layer: &|layer, block, input| model.layer(layer, block, input),
    };
    let place = &setting.devices[0].place;
    [
        Evaluation::on_whole_graph(setting, place),
        Evaluation::on_all_parts(setting, place).expect("all parts are there"),
    ]
    .map(|mut evaluation| {
        let scores = evaluation.scores(&inference).expect("it is all here");
        scores.expect("there are nodes")
    })
}

fn assert_same(case: &Case) {
    let setting = case.setting(Case::strategy("full", "").as_ref());
    let [whole, parts] = both(&setting);
    let loss = whole.validation_loss.expect("some nodes have labels");
    assert!(loss.is_finite() && loss > 0.0, "{case:?}: {loss}");
    assert_eq!(
        bits(whole),
        bits(parts),
        "{case:?}: {whole:?} and {parts:?}"
    );
}

#[test]
fn parts_score_what_the_whole_graph_does_to_the_bit() {
    for (data, metric) in [
        (CORA, None),
        (WIDE, None),
        (SMALL, None),
        (SEVERAL, Some(Metric::MicroF1)),
        (SEVERAL, Some(Metric::RocAuc)),
        (TWO, Some(Metric::RocAuc)),
    ] {
        for kind in KINDS {
            // Parts of one row among them.
            for workers in [1, 3, 50] {
                assert_same(&Case {
                    data,
                    workers,
                    kind,
                    metric,
                    ..Case::default()
                });
            }
        }
    }
}

#[test]
fn every_form_of_a_model_scores_the_same_in_parts() {
    let case = Case {
        data: WIDE,
        workers: 5,
        layers: 4,
        ..Case::default()
    };
    for kind in KINDS {
        // Hidden rows wider than features, too, which are gathered before their product.
        for (hidden, heads) in [(8, 2), (1, 1), (640, 4)] {
            assert_same(&Case {
                kind,
                hidden,
                heads,
                norm: NormKind::Layer,
                residual: true,
                ..case.clone()
            });
        }
    }
    for self_loops in [true, false] {
        for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat] {
            assert_same(&Case {
                kind,
                self_loops: Some(self_loops),
                biases: if kind == ModelKind::Sage { 2 } else { 1 },
                head_biases: kind == ModelKind::Gat,
                ..case.clone()
            });
        }
    }
}

#[test]
fn nodes_without_neighbours_are_left_out_of_both() {
    let case = Case {
        data: "synthetic = { kind = \"sbm\", nodes = 300, classes = 3, features = 10, degree_within = 1.0, degree_between = 0.5 }\nsplit = { train = 0.3, val = 0.4 }",
        ..Case::default()
    };
    let mut setting = case.setting(Case::strategy("full", "").as_ref());
    let [all, _] = both(&setting);
    let scored = Arc::get_mut(&mut setting).expect("nobody else has it");
    scored.training.score_isolated = false;
    let [whole, parts] = both(&setting);
    assert_eq!(bits(whole), bits(parts));
    assert_ne!(bits(whole), bits(all), "some nodes have no neighbours");
}
