//! BNS-GCN between its two ends: everything and nothing.

use crate::common::{Case, KINDS, losses};
use grapevine::model::ModelKind;
use grapevine::net::TrafficKind;
use grapevine::sim::Outcome;

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
