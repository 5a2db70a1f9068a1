//! What is not a finite number is a divergence that is told, wherever it comes up and whatever would hide it.

use std::sync::Arc;

use grapevine::graph::{Dataset, Features};
use grapevine::model::ModelKind;
use grapevine::sim::{Outcome, Setting};
use grapevine::strategies;

use crate::common::{Case, KINDS};

/// Trains with features that a loader would have refused: those of one node that is not trained on.
fn train(case: &Case, kind: &str, options: &str, spoil: impl Fn(&mut [f32])) -> Outcome {
    let strategy = Case::strategy(kind, options);
    let sound = case.setting(strategy.as_ref());
    let mut setting: Setting = Arc::into_inner(sound).expect("nobody else has it");
    let mut dataset = Dataset::clone(&setting.dataset);
    let node = *dataset.split.test.first().expect("a test node") as usize;
    let mut features = Features::clone(&dataset.features);
    let Features::Dense { width, values } = &mut features else {
        panic!("generated features are dense")
    };
    spoil(&mut values[node * *width..][..*width]);
    dataset.features = Arc::new(features);
    setting.dataset = Arc::new(dataset);
    let needs_one = kind == "retexo" && options.contains("clients");
    let setting = Arc::new(setting);
    let training = strategy.fit(&setting).expect("it fits");
    strategies::run(&*training, needs_one, Arc::new(|_| {})).expect("it runs")
}

/// The first epoch whose loss is not a number.
fn lost_at(outcome: &Outcome) -> Option<usize> {
    let lost = outcome
        .epochs
        .iter()
        .find(|record| !record.loss.is_finite());
    lost.map(|record| record.epoch)
}

const STRATEGIES: [(&str, &str); 13] = [
    ("full", ""),
    ("isolated", ""),
    ("fixed", "ratio = 4"),
    ("fixed", "ratio = 4\ncodec = \"top_k\""),
    ("fixed", "ratio = 4\ncodec = \"quantise\""),
    ("grappa", "repartition_every = 1"),
    ("retexo", ""),
    ("bns", ""),
    ("pipe", ""),
    ("sylvie", ""),
    ("ecgraph", ""),
    ("cagnet", ""),
    ("sancus", ""),
];

#[test]
fn a_feature_that_is_not_a_number_is_told_by_every_strategy_and_model() {
    for (kind, options) in STRATEGIES {
        for model in KINDS {
            let case = Case {
                kind: model,
                ..Case::default()
            };
            let outcome = train(&case, kind, options, |row| row[3] = f32::NAN);
            assert!(lost_at(&outcome).is_some(), "{kind} {options}, {model:?}");
        }
    }
}

#[test]
fn a_sum_that_overflows_is_told_though_the_activation_would_hide_it() {
    // Every value is finite, and so is the loss of whoever is far away; the sums of a layer are
    // not.
    for model in [
        ModelKind::Gcn,
        ModelKind::Sage,
        ModelKind::SagePool,
        ModelKind::Gin,
    ] {
        let case = Case {
            kind: model,
            hidden: 64,
            ..Case::default()
        };
        let outcome = train(&case, "full", "", |row| row.fill(3e38));
        assert!(lost_at(&outcome).is_some(), "{model:?}");
    }
}

#[test]
fn sound_features_are_no_divergence() {
    for (kind, options) in STRATEGIES {
        let outcome = train(&Case::default(), kind, options, |_| ());
        assert_eq!(lost_at(&outcome), None, "{kind} {options}");
    }
}
