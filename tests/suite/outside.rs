//! A strategy as another crate would write it: public items only, registered beside the built-in ones.

use serde::Deserialize;

use crate::common::{Case, losses};
use grapevine::graph::BoundaryPlan;
use grapevine::model::{Input, ModelSpec, Work, parameters, with_parameters};
use grapevine::net::{Reduce, Traffic, TrafficKind, all_reduce_traffic};
use grapevine::sim::{Activity, EpochReport, SimError, Worker};
use grapevine::strategies::parts::{LayerwiseTrainer, LocalGraph};
use grapevine::strategies::{
    Context, OptionError, OptionInfo, Registration, Registry, Strategy, StrategyInfo, options,
};

/// Local steps on the owned part of the graph; every so many epochs the models are averaged.
struct Averaging {
    every: usize,
    context: Context,
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
    build,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Options {
    every: Option<usize>,
}

fn build(table: &toml::Table, context: &Context) -> Result<Box<dyn Strategy>, OptionError> {
    let every = options::<Options>(table)?.every.unwrap_or(2);
    if every == 0 {
        return Err(OptionError::key("every", "must be at least 1"));
    }
    Ok(Box::new(Averaging {
        every,
        context: *context,
    }))
}

impl Averaging {
    fn averages(&self, epoch: usize) -> bool {
        (epoch + 1).is_multiple_of(self.every)
    }
}

impl Strategy for Averaging {
    fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
        if !self.averages(epoch) {
            return Traffic::new();
        }
        let (workers, count) = (boundary.workers(), model.parameters());
        all_reduce_traffic(
            self.context.all_reduce,
            workers,
            count,
            TrafficKind::Parameter,
        )
    }

    fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
        let mut model = worker.new_model();
        let mut optimizer = worker.new_optimizer();
        let trainer = LayerwiseTrainer::new(worker, LocalGraph::without_halo(worker));
        let features = Input::from_features(worker.shard().features.clone(), worker.place());
        for epoch in 0..worker.setting().epochs {
            worker.begin_epoch(epoch);
            let step = trainer.local_step(worker, &model, &features, epoch)?;
            let work = Work::pass(step.gradient.len());
            model = worker.compute(Activity::Model, work, |_| {
                optimizer.step(model, &step.gradient)
            });
            if self.averages(epoch) {
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
    let strategy = registry
        .build("averaging", &table, &case.context())
        .unwrap();
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
    let strategy = registry.build("averaging", &toml::Table::new(), &case.context());
    let outcome = case.train("averaging", strategy.unwrap().as_ref());
    assert_eq!(losses(&outcome), losses(&case.run("full", "")));
}

#[test]
fn its_options_are_checked_as_those_of_the_built_in_strategies_are() {
    let registry = Registry::builtin().with(REGISTRATION);
    let error = |text: &str| {
        let table = text.parse().unwrap();
        let built = registry.build("averaging", &table, &Case::default().context());
        built.err().expect("it is wrong")
    };
    assert_eq!(error("every = 0").key.as_deref(), Some("every"));
    assert_eq!(error("every = \"x\"").key.as_deref(), Some("every"));
    assert!(error("evry = 2").message.contains("evry"));
}

#[test]
fn it_says_nothing_of_mini_batches_and_is_refused_with_them() {
    let context = Context {
        mini_batch: true,
        ..Case::default().context()
    };
    let registry = Registry::builtin().with(REGISTRATION);
    let built = registry.build("averaging", &toml::Table::new(), &context);
    let error = built.err().expect("it is refused");
    assert!(error.message.contains("training.batch"), "{error}");
    for name in Registry::builtin().names() {
        let built = registry.build(name, &toml::Table::new(), &context);
        assert_eq!(
            built.is_err(),
            ["llcg", "cluster", "bns", "pipe", "adaqp"].contains(&name),
            "{name}"
        );
    }
}

#[test]
fn a_plan_that_is_not_what_is_sent_is_found() {
    struct Liar(Averaging);
    impl Strategy for Liar {
        fn plan(&self, boundary: &BoundaryPlan, model: &ModelSpec, epoch: usize) -> Traffic {
            self.0.plan(boundary, model, epoch + 1)
        }
        fn train(&self, worker: &mut Worker) -> Result<(), SimError> {
            self.0.train(worker)
        }
    }
    let case = Case::default();
    let liar = Liar(Averaging {
        every: 2,
        context: case.context(),
    });
    let found = std::panic::catch_unwind(|| case.train("liar", &liar));
    assert!(found.is_err(), "plan and ledger differ");
}
