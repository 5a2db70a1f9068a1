//! `cluster`: batches of clusters, each the graph among their nodes.

use crate::common::{CORA, Case, KINDS, assert_close, bits, losses};
use crate::reference::{Term, degrees, single_device, train};
use grapevine::graph::{Csr, shuffled};
use grapevine::model::OptimizerConfig;
use grapevine::net::TrafficKind;
use grapevine::sim::Setting;

/// Small steps, so that rounding does not send the trajectories apart.
const STEADY: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.01,
    weight_decay: 0.0,
    momentum: 0.5,
};

#[test]
fn one_batch_of_all_clusters_is_training_on_one_device_to_the_bit() {
    for kind in KINDS {
        let case = Case {
            kind,
            workers: 1,
            ..Case::default()
        };
        let expected = single_device(&case.setting(Case::strategy("full", "").as_ref()));
        let expected: Vec<u64> = expected.losses.iter().map(|loss| loss.to_bits()).collect();
        for options in [
            "clusters = 1\nclusters_per_batch = 1",
            "clusters = 6\nclusters_per_batch = 6",
            "clusters = 4\nclusters_per_batch = 4\nchunking = \"random\"",
        ] {
            let found = bits(&case.run("cluster", options));
            assert_eq!(found, expected, "{kind:?}, {options}");
        }
    }
    let cora = Case {
        data: CORA,
        workers: 1,
        layers: 2,
        ..Case::default()
    };
    let found = bits(&cora.run("cluster", "clusters = 1\nclusters_per_batch = 1"));
    assert_eq!(found, bits(&cora.run("full", "")), "sparse features");
}

#[test]
fn workers_with_one_cluster_each_are_isolated_to_the_bit() {
    for kind in KINDS {
        let case = Case {
            kind,
            ..Case::default()
        };
        let options = "clusters = 4\nclusters_per_batch = 1\nchunking = \"partition\"";
        let (found, expected) = (case.run("cluster", options), case.run("isolated", ""));
        assert_eq!(bits(&found), bits(&expected), "{kind:?}");
        assert_eq!(found.ledger.traffic(), expected.ledger.traffic());
    }
}

/// The clusters of each worker's batches, and the nodes of each.
fn clusters(setting: &Setting) -> Vec<Vec<u32>> {
    let chunks = setting.chunks.as_deref().expect("there are more");
    let parts = chunks.plan.parts.iter();
    parts.map(|part| part.owned.clone()).collect()
}

#[test]
fn a_step_uses_the_edges_within_each_worker_s_batch_and_no_others() {
    for kind in KINDS {
        for (workers, count, per_batch) in [(1, 8, 2), (2, 12, 3), (3, 12, 1)] {
            let case = Case {
                kind,
                workers,
                optimizer: STEADY,
                ..Case::default()
            };
            let options = format!("clusters = {count}\nclusters_per_batch = {per_batch}");
            let setting = case.setting(Case::strategy("cluster", &options).as_ref());
            let (clusters, each) = (clusters(&setting), count / workers);
            let steps = each / per_batch;
            let graph = &setting.dataset.graph;
            let term = |epoch: usize, step: usize| {
                // The worker whose batch a node is in, if it is in one.
                let mut batch = vec![None; graph.nodes()];
                for worker in 0..workers {
                    let own: Vec<u32> = (0..count as u32).skip(worker * each).take(each).collect();
                    let order = shuffled(setting.seed, epoch, worker, &own);
                    for &cluster in &order[step * per_batch..(step + 1) * per_batch] {
                        for &node in &clusters[cluster as usize] {
                            batch[node as usize] = Some(worker);
                        }
                    }
                }
                let of = |v: u32| batch[v as usize];
                let edges = graph.iter_edges();
                let inside = edges.filter(|&(u, v)| of(u).is_some() && of(u) == of(v));
                let inside = Csr::from_edges(graph.nodes(), inside);
                let train = setting.dataset.split.train.iter();
                let seeds: Vec<u32> = train.copied().filter(|&v| of(v).is_some()).collect();
                let weight = 1.0 / seeds.len() as f64;
                let weights = seeds.into_iter().map(|v| (v, weight)).collect();
                [Term::plain(inside.clone(), degrees(&inside), weights)]
            };
            let terms: Vec<[Term; 1]> = (0..case.epochs)
                .flat_map(|epoch| (0..steps).map(move |step| (epoch, step)))
                .map(|(epoch, step)| term(epoch, step))
                .collect();
            let mut by_step = Setting::clone(&setting);
            by_step.training.epochs *= steps;
            let expected = train(&by_step, |step| &terms[step]).losses;
            let expected: Vec<f64> = expected
                .chunks(steps)
                .map(|losses| losses.iter().sum::<f64>() / steps as f64)
                .collect();
            let found = losses(&case.run("cluster", &options));
            let what = format!("{kind:?}, {workers} workers, {options}");
            assert_close(&found, &expected, 1e-5, &what);
        }
    }
}

#[test]
fn gradients_travel_once_a_step_and_nothing_else_does() {
    let case = Case {
        workers: 3,
        ..Case::default()
    };
    for (options, steps) in [
        ("", 5),
        ("clusters = 18\nclusters_per_batch = 3", 2),
        (
            "clusters = 9\nclusters_per_batch = 1\nchunking = \"random\"",
            3,
        ),
    ] {
        let outcome = case.run("cluster", options);
        for (_, traffic) in outcome.ledger.iter() {
            let gradients = traffic.payload_of(TrafficKind::ParameterGradient).0;
            assert_eq!(gradients, (steps * 2 * 2 * 4 * outcome.parameters) as u64);
            let all: u64 = TrafficKind::ALL
                .iter()
                .map(|&kind| traffic.payload_of(kind).0)
                .sum();
            assert_eq!(all, gradients);
        }
    }
}

#[test]
fn clusters_that_cannot_be_dealt_out_are_refused() {
    for (options, key, said) in [
        ("clusters = 0", "clusters", "at least 1"),
        ("clusters = 6", "clusters", "a multiple of the 4 workers"),
        ("clusters = 2", "clusters", "a multiple of the 4 workers"),
        ("clusters_per_batch = 0", "clusters_per_batch", "at least 1"),
        (
            "clusters = 12\nclusters_per_batch = 2",
            "clusters_per_batch",
            "the 3 clusters of each worker",
        ),
        ("clusters_per_batch = 11", "clusters_per_batch", "10"),
        ("chunking = \"louvain\"", "chunking", "metis"),
    ] {
        let (found, message) = Case::default().refused("cluster", options);
        assert_eq!(found.as_deref(), Some(key), "{options}: {message}");
        assert!(message.contains(said), "{options}: {message}");
    }
}
