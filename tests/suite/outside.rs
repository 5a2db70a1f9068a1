//! A strategy as another crate would write it: public items only, registered beside the built-in ones.

use std::sync::Arc;

use serde::Deserialize;

use crate::common::{Case, losses};
use grapevine::model::{Input, parameters, with_parameters};
use grapevine::net::{Reduce, TrafficKind};
use grapevine::sim::{EpochReport, Planner, Setting, SimError, Worker};
use grapevine::strategies::parts::plan::{pass_alone, plan_each};
use grapevine::strategies::parts::{LayerwiseTrainer, LocalGraph};
use grapevine::strategies::{
    OptionError, OptionInfo, Registration, Registry, Strategy, StrategyInfo, Training, options,
};

/// Local steps on the owned part of the graph; every so many epochs the models are averaged.
#[derive(Clone, Copy)]
struct Averaging {
    every: usize,
}

const REGISTRATION: Registration = Registration {
    info: StrategyInfo {
        name: "averaging",
        paper: "McMahan et al., Communication-Efficient Learning of Deep Networks from Decentralized Data (AISTATS 2017)",
        sends: "parameters, every so many epochs",
        options: &[OptionInfo {
            name: "every",
            default: "2",
            meaning: "Epochs between two averages.",
        }],
    },
    read,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    every: Option<usize>,
}

fn read(table: &toml::Table) -> Result<Box<dyn Strategy>, OptionError> {
    let every = options::<Options>(table)?.every.unwrap_or(2);
    if every == 0 {
        return Err(OptionError::key("every", "must be at least 1"));
    }
    Ok(Box::new(Averaging { every }))
}

impl Averaging {
    const fn averages(self, epoch: usize) -> bool {
        (epoch + 1).is_multiple_of(self.every)
    }
}

impl Strategy for Averaging {
    fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
        Ok(Box::new(Fitted {
            averaging: *self,
            ahead: 0,
            setting: Arc::clone(setting),
        }))
    }
}

/// The strategy in its setting; its plan is `ahead` epochs ahead, which is a lie but for 0.
#[derive(Clone)]
struct Fitted {
    averaging: Averaging,
    ahead: usize,
    setting: Arc<Setting>,
}

impl Training for Fitted {
    fn setting(&self) -> &Arc<Setting> {
        &self.setting
    }

    fn planner(&self) -> Box<dyn Planner> {
        let Self {
            averaging,
            ahead,
            setting,
        } = self.clone();
        plan_each(setting.workers(), move |epoch, rank, track| {
            let parameters = setting.model.parameters();
            pass_alone(track, &setting, rank);
            track.update(parameters);
            if averaging.averages(epoch + ahead) {
                track.all_reduce(parameters, TrafficKind::Parameter);
            }
        })
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let trainer = LayerwiseTrainer::new(worker, LocalGraph::without_halo(worker));
        let features = Input::from_features(worker.shard().features.clone(), worker.place());
        for epoch in 0..worker.epochs() {
            worker.begin_epoch(epoch)?;
            let step = trainer.local_step(worker, &model, &features, epoch)?;
            model = worker.update(&mut optimizer, model, &step.gradient);
            if self.averaging.averages(epoch) {
                let mut mean = parameters(&model);
                worker.all_reduce(&mut mean, Reduce::Sum, TrafficKind::Parameter)?;
                let workers = worker.size() as f32;
                for value in &mut mean {
                    *value /= workers;
                }
                model = with_parameters(model, &mean);
            }
            let scores = worker.evaluate_model(epoch, &model)?;
            let report = EpochReport {
                loss: step.loss,
                scores,
                ..EpochReport::default()
            };
            worker.end_epoch(epoch, report);
        }
        Ok(())
    }
}

#[test]
fn a_strategy_of_another_crate_runs_beside_the_built_in_ones() {
    let registry = Registry::builtin().with(REGISTRATION);
    assert_eq!(registry.names().last(), Some(&"averaging"));
    assert_eq!(
        registry.names().len(),
        Registry::builtin().names().len() + 1
    );
    let case = Case {
        epochs: 6,
        ..Case::default()
    };
    let table = "every = 3".parse().unwrap();
    let strategy = registry.read("averaging", &table).unwrap();
    // Plan and ledger are compared inside.
    let outcome = case.train("averaging", strategy.as_ref());
    let sent: Vec<usize> = outcome.ledger.iter().map(|(epoch, _)| epoch).collect();
    assert_eq!(sent, [2, 5], "it sends in every third epoch");
    let all = outcome.ledger.traffic();
    let expected = 2 * 2 * 3 * 4 * outcome.parameters as u64;
    assert_eq!(all.payload_of(TrafficKind::Parameter).0, expected);
    assert!(losses(&outcome)[5] < losses(&outcome)[0], "it learns");
    assert!(outcome.epochs.iter().all(|epoch| epoch.scores.is_some()));
}

#[test]
fn alone_it_trains_as_the_built_in_strategies_do() {
    let case = Case {
        workers: 1,
        ..Case::default()
    };
    let registry = Registry::builtin().with(REGISTRATION);
    let strategy = registry.read("averaging", &toml::Table::new());
    let outcome = case.train("averaging", strategy.unwrap().as_ref());
    assert_eq!(losses(&outcome), losses(&case.run("full", "")));
}

#[test]
fn its_options_are_checked_as_those_of_the_built_in_strategies_are() {
    let registry = Registry::builtin().with(REGISTRATION);
    let error = |text: &str| {
        let read = registry.read("averaging", &text.parse().unwrap());
        read.err().expect("it is wrong")
    };
    assert_eq!(error("every = 0").key.as_deref(), Some("every"));
    assert_eq!(error("every = \"x\"").key.as_deref(), Some("every"));
    assert!(error("evry = 2").message.contains("evry"));
}

#[test]
fn it_says_nothing_of_mini_batches_and_is_refused_with_them() {
    let case = Case::in_batches();
    let registry = Registry::builtin().with(REGISTRATION);
    let error = case
        .fit(&registry, "averaging", "")
        .err()
        .expect("it is refused");
    assert!(error.message.contains("training.batch"), "{error}");
    for name in Registry::builtin().names() {
        assert_eq!(
            case.fit(&registry, name, "").is_err(),
            [
                "llcg", "cluster", "bns", "pipe", "adaqp", "sylvie", "cagnet", "sancus", "fedavg",
                "fedgcn", "ecgraph", "distgnn"
            ]
            .contains(&name),
            "{name}"
        );
    }
}

#[test]
fn a_program_that_departs_from_its_plan_ends_where_it_does() {
    struct Liar(Averaging);
    impl Strategy for Liar {
        fn fit(&self, setting: &Arc<Setting>) -> Result<Box<dyn Training>, OptionError> {
            Ok(Box::new(Fitted {
                averaging: self.0,
                ahead: 1,
                setting: Arc::clone(setting),
            }))
        }
    }
    let case = Case::default();
    let liar = Liar(Averaging { every: 2 });
    let found = std::panic::catch_unwind(|| case.train("liar", &liar));
    let panic = found.expect_err("plan and program differ");
    let text = panic.downcast_ref::<String>().expect("a text");
    assert!(text.contains("departs from its plan in epoch 0"), "{text}");
    assert!(text.contains("starting AllReduce"), "{text}");
}
