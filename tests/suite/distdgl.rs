//! `distdgl`: neighbourhoods sampled over the whole graph, and input features fetched.

use std::collections::BTreeSet;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::common::{CORA, Case, KINDS, assert_close, losses};
use grapevine::graph::{BatchSpec, Sampler, shuffled};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;
use grapevine::sim::Outcome;

fn case(kind: ModelKind, workers: usize, size: usize, fanouts: &[usize]) -> Case {
    Case {
        kind,
        workers,
        layers: fanouts.len(),
        batch: Some(BatchSpec {
            size,
            fanouts: fanouts.to_vec(),
        }),
        // Small steps, so that rounding does not send the trajectories apart.
        optimizer: OptimizerConfig::Sgd {
            learning_rate: 0.01,
            weight_decay: 0.0,
            momentum: 0.5,
        },
        ..Case::default()
    }
}

fn payload(outcome: &Outcome, kind: TrafficKind) -> u64 {
    let epochs = outcome.ledger.iter();
    epochs.map(|(_, traffic)| traffic.payload_of(kind).0).sum()
}

#[test]
fn one_batch_of_all_training_nodes_with_all_neighbours_is_full_batch_training() {
    for kind in KINDS {
        for workers in [1, 4] {
            let step = case(kind, workers, 1000, &[1000; 3]);
            let once = Case {
                batch: None,
                ..step.clone()
            };
            let found = losses(&step.run("distdgl", ""));
            let what = format!("{kind:?}, {workers} workers");
            assert_close(&found, &losses(&once.run("full", "")), 1e-5, &what);
        }
    }
    let cora = Case {
        data: CORA,
        ..case(ModelKind::Gcn, 3, 1000, &[1000; 2])
    };
    let once = Case {
        batch: None,
        ..cora.clone()
    };
    let (found, expected) = (cora.run("distdgl", ""), once.run("full", ""));
    assert_close(&losses(&found), &losses(&expected), 1e-5, "sparse features");
}

#[test]
fn it_trains_as_workers_do_that_sample_together() {
    for kind in KINDS {
        // With 40 workers some have no training node, or none left in the last step.
        let sizes: [(usize, usize, &[usize]); 4] = [
            (1, 7, &[2, 3, 1]),
            (4, 6, &[3, 2, 2]),
            (40, 2, &[1, 2, 2]),
            (4, 6, &[2]),
        ];
        for (workers, size, fanouts) in sizes {
            let case = case(kind, workers, size, fanouts);
            let (found, expected) = (case.run("distdgl", ""), case.run("full", ""));
            let what = format!("{kind:?}, {workers} workers, {fanouts:?}");
            assert_close(&losses(&found), &losses(&expected), 1e-5, &what);
        }
    }
}

#[test]
fn remote_inputs_cost_their_features_and_their_numbers_and_remote_draws_twelve_bytes_and_more() {
    let case = case(ModelKind::Sage, 4, 6, &[3, 2, 2]);
    let outcome = case.run("distdgl", "");
    let setting = case.setting(Case::strategy("distdgl", "").as_ref());
    let (graph, train) = (&setting.dataset.graph, &setting.dataset.split.train);
    let owner = |v: u32| setting.partition.assignment[v as usize] as usize;
    let (steps, width) = (setting.steps(), setting.model.features() as u64);
    assert!(steps.count() > 1);
    for epoch in 0..case.epochs {
        let (mut inputs, mut asked, mut drawn) = (0, 0, 0);
        for (step, worker) in (0..steps.count()).flat_map(|s| (0..4).map(move |w| (s, w))) {
            let sampler = Sampler::new(setting.seed, epoch, step, &[3, 2, 2]);
            let own = train.iter().copied().filter(|&v| owner(v) == worker);
            let order = shuffled(setting.seed, epoch, worker, &own.collect::<Vec<u32>>());
            let mut nodes: BTreeSet<u32> =
                order[steps.range(worker, step)].iter().copied().collect();
            for hop in 0..3 {
                for v in nodes.clone() {
                    let found = sampler.draw(hop, v, graph.neighbours(v as usize), |u| u);
                    if owner(v) != worker {
                        asked += 1;
                        drawn += found.len() as u64;
                    }
                    nodes.extend(found);
                }
            }
            inputs += nodes.iter().filter(|&&v| owner(v) != worker).count() as u64;
        }
        let traffic = outcome.ledger.epoch(epoch).expect("there was one");
        let bytes = |kind| traffic.payload_of(kind).0;
        assert!(inputs > 0 && asked > 0);
        assert_eq!(bytes(TrafficKind::Feature), 4 * width * inputs);
        assert_eq!(bytes(TrafficKind::Sample), 4 * (inputs + asked) + 8 * drawn);
        assert_eq!(
            bytes(TrafficKind::ParameterGradient),
            (steps.count() * 2 * 3 * 4 * outcome.parameters) as u64
        );
        let kinds: BTreeSet<TrafficKind> = traffic.iter().map(|(lane, ..)| lane.kind).collect();
        assert_eq!(kinds.len(), 3, "nothing else travels: {kinds:?}");
    }
}

#[test]
fn a_cache_saves_bytes_and_changes_no_loss() {
    let case = Case {
        epochs: 5,
        ..case(ModelKind::Gcn, 3, 9, &[3, 2])
    };
    let setting = case.setting(Case::strategy("distdgl", "").as_ref());
    let all: Vec<Outcome> = ["", "cache = 0.1", "cache = 0.5", "cache = 1"]
        .iter()
        .map(|options| case.run("distdgl", options))
        .collect();
    for pair in all.windows(2) {
        assert_eq!(losses(&pair[0]), losses(&pair[1]));
        for kind in [TrafficKind::Feature, TrafficKind::Sample] {
            assert!(payload(&pair[0], kind) > payload(&pair[1], kind), "{kind}");
        }
    }
    // With everything kept, a remote node's features come once to each of the other workers at most.
    let most = 4 * setting.model.features() * setting.boundary.nodes * 2;
    assert!(payload(&all[3], TrafficKind::Feature) <= most as u64);
}

#[test]
fn without_mini_batches_it_is_refused() {
    let folder = folder_with(&format!("{EXPERIMENT}\n[[strategy]]\nkind = \"distdgl\"\n"));
    for command in ["run", "project"] {
        let ran = grapevine(folder.path(), &[command, "x.toml"]).expect(2);
        for said in ["training.batch", "distdgl", "x.toml"] {
            assert!(ran.stderr.contains(said), "{}", ran.stderr);
        }
    }
    let fixed = "with = { \"training.batch\" = { size = 50, fanouts = [4, 3] } }\ncache = 0.3\n";
    let folder = folder_with(&format!(
        "{EXPERIMENT}\n[[strategy]]\nkind = \"distdgl\"\n{fixed}"
    ));
    grapevine(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    grapevine(folder.path(), &["project", "x.toml"]).expect(0);
    let ran = grapevine(
        folder.path(),
        &["run", "x.toml", "--set", "strategy.6.cache=1.5"],
    );
    let ran = ran.expect(2);
    assert!(ran.stderr.contains("`cache`"), "{}", ran.stderr);
}

#[test]
fn a_cache_that_is_no_share_is_refused() {
    for options in ["cache = -0.1", "cache = 1.1", "cache = nan"] {
        let case = case(ModelKind::Gcn, 4, 5, &[2, 2]);
        let (key, said) = case.refused("distdgl", options);
        assert_eq!(key.as_deref(), Some("cache"), "{options}: {said}");
    }
}

/// Where there is nobody to ask, a rival must not pay for asking.
#[test]
fn on_one_worker_it_takes_the_time_of_workers_that_sample_for_themselves() {
    let case = Case {
        data: CORA,
        profile: "t4", // on which starting a piece of work costs most
        ..case(ModelKind::Sage, 1, 200, &[10, 5])
    };
    let time = |strategy: &str| {
        let outcome = case.run(strategy, "");
        outcome.epochs.last().expect("an epoch").simulated.0
    };
    let alone = time("grappa").min(time("full"));
    let found = time("distdgl");
    assert!(found <= 1.2 * alone, "{found} over {alone}");
}

/// Owners answer all who ask them in one piece of work, of which a GPU pays the start once.
#[test]
fn its_pieces_of_work_do_not_grow_with_those_who_ask() {
    let computing = |workers: usize| {
        let case = Case {
            profile: "t4", // on which starting is all that this little work costs
            ..case(ModelKind::Sage, workers, 1000, &[4; 3])
        };
        let outcome = case.run("distdgl", "");
        let times = outcome.times.iter().map(|times| times.compute.0);
        times.fold(0.0, f64::max)
    };
    let (few, many) = (computing(4), computing(12));
    assert!(many <= 1.1 * few, "{many} over {few}");
}
