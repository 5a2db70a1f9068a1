//! `full` written once more against the public traits, leaving behind the gradients and parameters that the built-in one keeps
//! to itself.

use std::sync::{Arc, Mutex};

use crate::common::{Case, Program, assert_close, distance, losses};
use grapevine::model::{Input, ModelKind, NormKind, OptimizerConfig, RowForm, parameters};
use grapevine::net::{Reduce, TrafficKind};
use grapevine::sim::{EpochReport, Setting, SimError, Worker};
use grapevine::strategies::parts::plan::{ExchangePlanner, Sending};
use grapevine::strategies::parts::{
    EpochExchange, ExchangePoint, HaloExchange, LayerwiseTrainer, LocalGraph, When, Wire,
};
use grapevine::strategies::{OptionError, Strategy, Training};

/// What worker `rank` saw.
#[derive(Default)]
pub(crate) struct Seen {
    /// All-reduced gradients, one per epoch and worker.
    pub gradients: Vec<Vec<Vec<f32>>>,
    /// Of the trained model, one per worker.
    pub parameters: Vec<Vec<f32>>,
}

/// Exact training that sends everything in every epoch.
#[derive(Default)]
pub(crate) struct Probe {
    pub seen: Arc<Mutex<Seen>>,
    /// Where the exchange of a layer stands.
    pub point: ExchangePoint,
}

fn wires(setting: &Setting, point: ExchangePoint) -> Vec<Option<Wire>> {
    let forms = point.forms(setting, false).into_iter();
    forms.map(|form| Some(Wire::plain().of(form))).collect()
}

/// Both cases have the same losses and gradients in every epoch, and in each the replicas agree.
pub(crate) fn assert_same_steps(found: &Case, expected: &Case, what: &str) {
    let train = |case: &Case| {
        let probe = Probe::default();
        let losses = losses(&case.train("probe", &probe));
        let gradients = probe.seen.lock().unwrap().gradients.clone();
        (losses, gradients)
    };
    let (found, expected) = (train(found), train(expected));
    assert_close(&found.0, &expected.0, 1e-4, what);
    assert_eq!(found.1.len(), expected.1.len(), "{what}: epochs");
    for (found, expected) in found.1.iter().zip(&expected.1) {
        for replica in found {
            assert_eq!(replica, &found[0], "{what}: replicas agree");
        }
        let apart = distance(&found[0], &expected[0]);
        assert!(apart <= 1e-4, "{what}: {apart:e}");
    }
}

/// Three layers on two workers, with plain steps, in which a wrong gradient shows.
pub(crate) fn steady(kind: ModelKind, norm: NormKind) -> Case {
    Case {
        kind,
        norm,
        workers: 2,
        epochs: 2,
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.1,
            weight_decay: 1e-3,
            momentum: 0.5,
        },
        ..Case::default()
    }
}

impl Probe {
    fn program(&self) -> Program {
        let (seen, point) = (Arc::clone(&self.seen), self.point);
        Program {
            plan: Arc::new(move |setting| {
                let of = Arc::clone(setting);
                let sending = Sending {
                    keeps_features: false,
                    exchange: Box::new(move |_, _| EpochExchange {
                        wires: wires(&of, point),
                        ..EpochExchange::default()
                    }),
                };
                let overlap = When::default();
                Box::new(ExchangePlanner::new(setting, Some(sending), overlap))
            }),
            train: Arc::new(move |worker| train(worker, &seen, point)),
        }
    }
}

fn train(worker: &mut Worker, seen: &Mutex<Seen>, point: ExchangePoint) -> Result<(), SimError> {
    let wires = wires(worker.setting(), point);
    let is_product = |wire: &Wire| wire.form == RowForm::Product;
    let product = wires[0].as_ref().is_some_and(is_product);
    let mut model = worker.new_model();
    let mut optimizer = worker.new_optimizer();
    let mut halo = HaloExchange::new(worker);
    let trainer = LayerwiseTrainer::new(worker, LocalGraph::with_halo(worker));
    for epoch in 0..worker.epochs() {
        worker.begin_epoch(epoch)?;
        let features = if product {
            Input::from_features(worker.shard().features.clone(), worker.place())
        } else {
            halo.features(worker, wires[0].as_ref())?
        };
        let mut step = trainer.step(worker, &model, &features, &halo, &wires, epoch)?;
        worker.all_reduce(
            &mut step.gradient,
            Reduce::Sum,
            TrafficKind::ParameterGradient,
        )?;
        model = worker.update(&mut optimizer, model, &step.gradient);
        let mut seen = seen.lock().expect("no worker panics while it writes");
        if seen.gradients.len() <= epoch {
            seen.gradients.push(Vec::new());
        }
        seen.gradients[epoch].push(step.gradient);
        drop(seen);
        let scores = worker.evaluate_model(epoch, &model)?;
        worker.end_epoch(
            epoch,
            EpochReport {
                loss: step.loss,
                scores,
                ..EpochReport::default()
            },
        );
    }
    let mut seen = seen.lock().expect("no worker panics while it writes");
    seen.parameters.push(parameters(&model));
    Ok(())
}

impl Strategy for Probe {
    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        self.program().fit(setting)
    }
}
