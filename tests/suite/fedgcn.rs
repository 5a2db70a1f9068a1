//! `FedAvg` and `FedGCN`: what clients exchange, and what it makes of their models.

use crate::common::{Case, assert_close, losses};
use grapevine::model::{ModelKind, OptimizerConfig};
use grapevine::net::TrafficKind;

const SGD: OptimizerConfig = OptimizerConfig::Sgd {
    learning_rate: 0.2,
    weight_decay: 5e-4,
    momentum: 0.0,
};

fn plain(workers: usize, layers: usize) -> Case {
    Case {
        workers,
        layers,
        dropout: 0.0,
        epochs: 6,
        optimizer: SGD,
        ..Case::default()
    }
}

#[test]
fn two_hops_of_sums_and_one_step_a_round_are_exact_training() {
    for workers in [1, 2, 5] {
        // A layer more than two gathers own rows alone.
        for layers in [1, 2] {
            let case = plain(workers, layers);
            let full = losses(&case.run("full", ""));
            let found = losses(&case.run("fedgcn", "local_steps = 1"));
            assert_close(&found, &full, 1e-4, &format!("{workers}, {layers} layers"));
        }
    }
    let apart = |options: &str| {
        let case = plain(5, 2);
        let full = losses(&case.run("full", ""));
        let found = losses(&case.run("fedgcn", options));
        let pairs = found.iter().zip(&full);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let [none, one] = [0, 1].map(|hops| apart(&format!("local_steps = 1\nhops = {hops}")));
    assert!(none > 1e-3 && one > 1e-3, "{none} and {one} miss edges");
}

#[test]
fn one_hop_makes_the_first_layer_exact() {
    let case = plain(4, 1);
    let full = losses(&case.run("full", ""));
    let found = losses(&case.run("fedgcn", "local_steps = 1\nhops = 1"));
    assert_close(&found, &full, 1e-4, "one layer is all there is");
}

#[test]
fn fedavg_is_what_llcg_is_without_corrections() {
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gat] {
        let case = Case {
            kind,
            epochs: 8,
            ..Case::default()
        };
        let averaged = case.run("fedavg", "local_steps = 3");
        let local = case.run("llcg", "local_steps = 3\nrho = 1\nserver_steps = 0");
        let scores = |outcome: &grapevine::sim::Outcome| {
            let all = outcome.epochs.iter();
            all.map(|record| record.scores).collect::<Vec<_>>()
        };
        assert_eq!(averaged.epochs.len(), 3, "3 + 3 + 2 steps");
        assert_eq!(scores(&averaged), scores(&local), "{kind:?}");
        assert_close(&losses(&averaged), &losses(&local), 1e-9, "mean losses");
        let same = case.run("fedgcn", "hops = 0\nlocal_steps = 3");
        assert_eq!(losses(&same), losses(&averaged));
        assert_eq!(same.ledger, averaged.ledger);
    }
}

#[test]
fn sums_are_exchanged_once_and_models_in_every_round() {
    let case = Case {
        epochs: 9,
        ..Case::default()
    };
    let setting = case.setting(Case::strategy("fedgcn", "").as_ref());
    let (graph, owner) = (&setting.dataset.graph, &setting.partition.assignment);
    // Own nodes of every client but the server's, and nodes that these have edges to.
    let mut rows = [0_u64; 2];
    for client in 1..4 {
        let owned = |v: usize| owner[v] == client;
        rows[0] += (0..graph.nodes()).filter(|&v| owned(v)).count() as u64;
        let next = |v: usize| graph.neighbours(v).iter().any(|&u| owned(u as usize));
        rows[1] += (0..graph.nodes()).filter(|&v| !owned(v) && next(v)).count() as u64;
    }
    let [own, others] = rows;
    let width = setting.model.features() as u64;
    for (hops, back) in [(0, 0), (1, own), (2, own + others)] {
        let outcome = case.run("fedgcn", &format!("hops = {hops}"));
        let sent = 4 * width * (own + others + back);
        for round in 0..3 {
            let traffic = outcome.ledger.epoch(round).expect("models are sent");
            let sums = if round == 0 && hops > 0 { sent } else { 0 };
            assert_eq!(traffic.payload_of(TrafficKind::Feature).0, sums, "{hops}");
            let models = 3 * 2 * 4 * outcome.parameters as u64;
            assert_eq!(traffic.payload_of(TrafficKind::Parameter).0, models);
        }
    }
}

#[test]
fn who_is_absent_sends_nothing() {
    let case = Case {
        workers: 5,
        epochs: 12,
        ..Case::default()
    };
    let outcome = case.run("fedavg", "local_steps = 1\nabsent = 0.4");
    let all = case.run("fedavg", "local_steps = 1");
    let model = 2 * 4 * outcome.parameters as u64;
    let mut seen = Vec::new();
    for round in 0..12 {
        let traffic = outcome.ledger.epoch(round).expect("models are sent");
        // Three of five are there, of whom one may be the server's own.
        let clients = traffic.payload_of(TrafficKind::Parameter).0 / model;
        assert!([2, 3].contains(&clients), "{clients}");
        seen.push(clients);
    }
    assert!(seen.contains(&2) && seen.contains(&3), "{seen:?}");
    assert_ne!(losses(&outcome), losses(&all));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let case = Case::default();
    for (kind, options, key) in [
        ("fedgcn", "hops = 3", "hops"),
        ("fedavg", "hops = 1", "hops"),
        ("fedavg", "local_steps = 0", "local_steps"),
        ("fedgcn", "absent = 1.0", "absent"),
    ] {
        let (found, says) = case.refused(kind, options);
        assert_eq!(found.as_deref(), Some(key), "{kind} {options}: {says}");
    }
    let sage = Case {
        kind: ModelKind::Sage,
        ..Case::default()
    };
    let (key, says) = sage.refused("fedgcn", "");
    assert_eq!(key.as_deref(), Some("hops"));
    assert!(says.contains("gcn"), "{says}");
}
