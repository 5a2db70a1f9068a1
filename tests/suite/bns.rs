//! BNS-GCN between its two ends: everything and nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::common::{Case, KINDS, assert_close, losses};
use crate::reference::{Term, train, whole};
use grapevine::model::ModelKind;
use grapevine::net::TrafficKind;
use grapevine::rng::{Purpose, stream};
use grapevine::sim::{Outcome, Setting};
use rand::seq::SliceRandom;

/// The terms of each epoch: of a pair of workers ⌊p·b⌋ of b rows cross, drawn by their owner, and
/// the message of each counts b/s times; the first layer has drawn rows only where `all` is true.
fn drawn_terms(setting: &Setting, share: f64, all: bool) -> Vec<[Term; 1]> {
    let (graph, owner) = (&setting.dataset.graph, setting.partition.assignment.clone());
    let workers = setting.workers();
    let terms = (0..setting.training.epochs).map(|epoch| {
        let mut factors: BTreeMap<(u32, u32), f32> = BTreeMap::new();
        for from in 0..workers {
            let mut random = stream(setting.seed, Purpose::Sampling, from as u64, epoch as u64);
            for reader in (0..workers).filter(|&reader| reader != from) {
                let read = (0..graph.nodes()).filter(|&v| owner[v] as usize == reader);
                let read = read.flat_map(|v| graph.neighbours(v).iter().copied());
                let rows: BTreeSet<u32> = read
                    .filter(|&u| owner[u as usize] as usize == from)
                    .collect();
                let mut rows: Vec<u32> = rows.into_iter().collect();
                let (count, boundary) = ((share * rows.len() as f64) as usize, rows.len());
                if count > 0 {
                    let (chosen, _) = rows.partial_shuffle(&mut random, count);
                    let factor = boundary as f64 / count as f64;
                    factors.extend(chosen.iter().map(|&u| ((u, reader as u32), factor as f32)));
                }
            }
        }
        let owner = owner.clone();
        let mut term = whole(setting);
        term.scale = Box::new(move |layer, v, u| {
            let [reader, from] = [v, u].map(|node| owner[node as usize]);
            match factors.get(&(u, reader)) {
                _ if reader == from || (layer == 0 && !all) => 1.0,
                Some(factor) => *factor,
                None => 0.0,
            }
        });
        [term]
    });
    terms.collect()
}

#[test]
fn a_share_of_the_boundary_is_training_on_one_device_in_which_drawn_rows_count_for_the_others() {
    for kind in [ModelKind::Gcn, ModelKind::Sage, ModelKind::Gin] {
        for (features, all) in [("", false), ("\ncache_features = false", true)] {
            let case = Case {
                kind,
                workers: 3,
                dropout: 0.3,
                epochs: 5,
                ..Case::default()
            };
            let options = format!("share = 0.3{features}");
            let setting = case.setting(Case::strategy("bns", &options).as_ref());
            let what = format!("{kind:?} {options}");
            let terms = drawn_terms(&setting, 0.3, all);
            let expected = train(&setting, |epoch| &terms[epoch]).losses;
            assert_close(&losses(&case.run("bns", &options)), &expected, 1e-4, &what);
            // What the comparison would see: rows of another epoch, and no factors.
            let others = train(&setting, |epoch| &terms[(epoch + 1) % 5]).losses;
            assert!((others[4] / expected[4] - 1.0).abs() > 1e-3, "{what}");
        }
    }
}

fn assert_same(found: &Outcome, expected: &Outcome, what: &str) {
    assert_eq!(losses(found), losses(expected), "{what}");
    let both = found.epochs.iter().zip(&expected.epochs);
    for (found, expected) in both {
        assert_eq!(found.scores, expected.scores, "{what}");
    }
}

#[test]
fn all_of_the_boundary_is_full_to_the_bit_but_for_the_ids() {
    for kind in KINDS {
        let case = Case {
            kind,
            workers: 3,
            ..Case::default()
        };
        for how in [
            "exchange = \"input\"",
            "exchange = \"input\"\ncache_features = false",
            "exchange = \"narrower\"",
            "exchange = \"narrower\"\ncache_features = false",
        ] {
            let full = case.run("full", how);
            let all = case.run("bns", &format!("share = 1\n{how}"));
            assert_same(&all, &full, &format!("{kind:?} {how}"));
            for traffic in TrafficKind::ALL {
                let of = |outcome: &Outcome| outcome.ledger.traffic().payload_of(traffic);
                if traffic == TrafficKind::Sample {
                    assert!(of(&all).0 > 0 && of(&full).0 == 0);
                } else {
                    assert_eq!(of(&all), of(&full), "{traffic}");
                }
            }
        }
    }
}

#[test]
fn nothing_of_the_boundary_is_isolated_but_for_degrees_to_the_bit() {
    for kind in KINDS {
        let case = Case {
            kind,
            ..Case::default()
        };
        let nothing = "share = 0\ncache_features = false";
        let (none, isolated) = (case.run("bns", nothing), case.run("isolated", ""));
        assert_eq!(none.ledger.traffic(), isolated.ledger.traffic());
        match kind {
            // Means and normalised sums are over true degrees here, and over those within a part
            // there.
            ModelKind::Gcn | ModelKind::Sage => assert_ne!(losses(&none), losses(&isolated)),
            _ => assert_same(&none, &isolated, &format!("{kind:?}")),
        }
    }
}

#[test]
fn the_first_layer_reads_the_whole_boundary_whatever_is_drawn() {
    // So with one layer there is nothing to draw for.
    for kind in KINDS {
        let case = Case {
            kind,
            layers: 1,
            workers: 3,
            ..Case::default()
        };
        let (full, none) = (case.run("full", ""), case.run("bns", "share = 0"));
        assert_same(&none, &full, &format!("{kind:?}"));
        assert_eq!(none.ledger.traffic(), full.ledger.traffic());
        let drawn = case.run("bns", "share = 0.5\ncache_features = false");
        assert_ne!(losses(&drawn), losses(&full), "{kind:?}");
    }
}

#[test]
fn gradients_that_are_summed_by_layer_train_alike() {
    let case = Case {
        workers: 2,
        ..Case::default()
    };
    let plain = case.run("bns", "share = 0.3");
    let overlapped = case.run("bns", "share = 0.3\noverlap = true");
    assert_same(&overlapped, &plain, "two workers");
}

#[test]
fn a_tenth_of_the_boundary_learns_cora_about_as_well_as_all_of_it() {
    let (full, tenth) = (Case::learnt("full", ""), Case::learnt("bns", ""));
    let none = Case::learnt("bns", "share = 0");
    assert!(tenth > full - 0.05, "{tenth} of {full}");
    assert!(tenth > none, "{tenth}, without any {none}");
}

#[test]
fn shares_that_are_none_are_refused() {
    let case = Case::default();
    for wrong in ["1.5", "-0.1", "nan", "inf", "\"x\""] {
        let (key, _) = case.refused("bns", &format!("share = {wrong}"));
        assert_eq!(key.as_deref(), Some("share"), "{wrong}");
    }
    assert!(case.refused("bns", "sahre = 0.1").1.contains("sahre"));
    let batches = Case::in_batches();
    assert!(batches.refused("bns", "").1.contains("training.batch"));
}
