//! CAGNET and SANCUS: whole blocks of rows, in every epoch or when those that are kept become too old.

use crate::common::{Case, KINDS, RESTING, bits, losses};
use grapevine::graph::PartitionMethod;
use grapevine::model::ModelKind;
use grapevine::net::{TrafficKind, Way};
use grapevine::sim::{Decision, Outcome};

fn cases() -> impl Iterator<Item = Case> {
    KINDS
        .into_iter()
        .zip([2, 3, 4, 5, 1])
        .map(|(kind, workers)| Case {
            kind,
            workers,
            epochs: 5,
            ..Case::default()
        })
}

#[test]
fn whole_blocks_train_as_the_rows_that_are_read_to_the_bit() {
    for case in cases() {
        for options in [
            "cache_features = true",
            "cache_features = false",
            "cache_features = false\nexchange = \"product\"",
            "cache_features = false\nexchange = \"narrower\"\noverlap = true",
        ] {
            let point = if options.contains("exchange") {
                ""
            } else {
                "\nexchange = \"input\""
            };
            let full = case.run("full", &format!("{options}{point}"));
            let blocks = case.run("cagnet", options);
            assert_eq!(bits(&blocks), bits(&full), "{:?} {options}", case.kind);
        }
    }
}

#[test]
fn a_bound_of_nothing_is_exact_training() {
    for case in cases() {
        let exact = case.run("cagnet", "cache_features = true");
        let kept = case.run("sancus", "bound = 0");
        assert_eq!(bits(&kept), bits(&exact), "{:?}", case.kind);
        assert_eq!(kept.ledger, exact.ledger, "{:?}", case.kind);
        // With the rows that are read alone, too.
        let full = case.run("full", "exchange = \"input\"");
        let alone = case.run("train", "bound = 0\nexchange = \"input\"");
        assert_eq!(bits(&alone), bits(&full), "{:?}", case.kind);
        assert_eq!(alone.ledger, full.ledger, "{:?}", case.kind);
    }
}

#[test]
fn blocks_cost_the_same_whatever_the_cut() {
    let of = |method| {
        let case = Case {
            method,
            ..Case::default()
        };
        let traffic = case.run("cagnet", "").ledger.traffic();
        [TrafficKind::Feature, TrafficKind::Activation].map(|kind| traffic.payload_of(kind))
    };
    assert_eq!(of(PartitionMethod::Random), of(PartitionMethod::Metis));
}

#[test]
fn broadcasts_that_the_bound_allows_to_skip_are_skipped() {
    for bound in [0, 1, 2, 3] {
        let case = Case {
            epochs: 9,
            ..Case::default()
        };
        let outcome = case.run("sancus", &format!("bound = {bound}"));
        // Blocks of all 120 nodes, of two hidden layers of 8 columns, to three others.
        let each = 4 * 3 * 120 * (8 + 8);
        for epoch in 0..9 {
            let expected = if epoch % (bound + 1) == 0 { each } else { 0 };
            let traffic = outcome.ledger.epoch(epoch).expect("gradients are summed");
            for kind in [TrafficKind::Activation, TrafficKind::ActivationGradient] {
                assert_eq!(traffic.payload_of(kind).0, expected, "{bound}, {epoch}");
            }
        }
    }
}

#[test]
fn rows_are_exact_in_epochs_that_send_and_old_in_others() {
    let case = Case {
        epochs: 2,
        ..Case::default()
    };
    let exact = losses(&case.run("full", "exchange = \"input\""));
    let found = losses(&case.run("sancus", "bound = 1"));
    assert_eq!(found[0].to_bits(), exact[0].to_bits());
    assert_ne!(found[1].to_bits(), exact[1].to_bits());
    // Parameters that rest, and no dropout: what is kept stays right, and so do losses.
    let resting = Case {
        dropout: 0.0,
        epochs: 6,
        optimizer: RESTING,
        ..Case::default()
    };
    let exact = bits(&resting.run("full", "exchange = \"input\""));
    assert_eq!(bits(&resting.run("sancus", "bound = 4")), exact);
}

/// Of a layer and way a worker, and whether it sends.
type Told = ((u32, Way), usize, bool);

/// For each epoch who sent, of each layer and way.
fn broadcasts(outcome: &Outcome) -> Vec<Vec<Told>> {
    let of = |decision: &Decision| match decision {
        Decision::Broadcasts(lanes) => lanes
            .iter()
            .flat_map(|(lane, workers)| {
                let each = workers.iter().enumerate();
                each.map(|(worker, sends)| (*lane, worker, *sends))
            })
            .collect(),
        other => panic!("{other:?} is no decision of this strategy"),
    };
    outcome.decisions.values().map(of).collect()
}

#[test]
fn nothing_is_older_than_the_bound_and_only_who_decided_to_send_does() {
    let mut skipped_early = 0;
    for (bound, threshold) in [(2, 0.3), (3, 0.05), (3, 0.3), (4, 1e9), (6, 0.6)] {
        let case = Case {
            epochs: 14,
            ..Case::default()
        };
        let options = format!("bound = {bound}\nthreshold = {threshold:?}");
        let outcome = case.run("sancus", &options);
        let decided = broadcasts(&outcome);
        assert_eq!(decided.len(), 14);
        let mut last = std::collections::BTreeMap::new();
        for (epoch, lanes) in decided.iter().enumerate() {
            let traffic = outcome.ledger.epoch(epoch).expect("gradients are summed");
            for &(lane, worker, sends) in lanes {
                if sends {
                    last.insert((lane, worker), epoch);
                }
                let age = epoch - last[&(lane, worker)];
                assert!(age <= bound, "{lane:?} of {worker}: {age}");
                skipped_early += usize::from(!sends);
                let kind = match lane.1 {
                    Way::Forward => TrafficKind::Activation,
                    Way::Back => TrafficKind::ActivationGradient,
                };
                // To each of three others, or to none.
                let messages = traffic.iter().filter(|(of, ..)| {
                    (of.kind, of.layer, of.from) == (kind, lane.0, worker as u32)
                });
                let messages: u64 = messages.map(|(.., count)| count).sum();
                assert_eq!(messages, if sends { 3 } else { 0 }, "{lane:?} of {worker}");
            }
        }
    }
    assert!(skipped_early > 0);
}

#[test]
fn a_threshold_of_nothing_is_exact_training() {
    for case in cases() {
        let full = case.run("full", "exchange = \"input\"");
        for kind in ["sancus", "train"] {
            let options = "bound = 3\nthreshold = 0\nexchange = \"input\"";
            let kept = case.run(kind, options);
            assert_eq!(bits(&kept), bits(&full), "{:?}, {kind}", case.kind);
        }
        let products = "cache_features = false\nexchange = \"product\"";
        let full = case.run("full", products);
        let kept = case.run("train", &format!("bound = 3\nthreshold = 0\n{products}"));
        assert_eq!(bits(&kept), bits(&full), "{:?}", case.kind);
    }
}

#[test]
fn rows_that_rest_are_sent_when_the_bound_asks_for_it_alone() {
    for kind in [ModelKind::Gcn, ModelKind::Sage] {
        let resting = Case {
            kind,
            dropout: 0.0,
            epochs: 9,
            optimizer: RESTING,
            ..Case::default()
        };
        let exact = bits(&resting.run("full", "exchange = \"input\""));
        let kept = resting.run("train", "bound = 3\nthreshold = 0.01\nexchange = \"input\"");
        assert_eq!(bits(&kept), exact, "{kind:?}");
        for (epoch, lanes) in broadcasts(&kept).into_iter().enumerate() {
            assert!(
                lanes
                    .into_iter()
                    .all(|(.., sends)| sends == (epoch % 4 == 0))
            );
        }
    }
}

#[test]
fn a_threshold_skips_less_the_lower_it_is() {
    let sent = |threshold: &str| {
        let case = Case {
            epochs: 30,
            ..Case::default()
        };
        let outcome = case.run("sancus", &format!("bound = 9\n{threshold}"));
        let traffic = outcome.ledger.traffic();
        traffic.payload_of(TrafficKind::Activation).0
    };
    let all = [
        sent("threshold = 0"),
        sent("threshold = 0.2"),
        sent("threshold = 1e9"),
    ];
    assert!(all[0] > all[1] && all[1] > all[2], "{all:?}");
    // What the bound alone asks for is the least.
    assert_eq!(all[2], sent(""));
}

#[test]
fn skipping_three_of_four_broadcasts_costs_little_accuracy() {
    let [full, kept] =
        [("full", ""), ("sancus", "bound = 3")].map(|(kind, options)| Case::learnt(kind, options));
    assert!(kept > full - 0.03, "{kept} instead of {full}");
}

#[test]
fn what_is_kept_is_read_as_it_came() {
    // Parameters and rows rest: each codec that draws anew would read another thing in each epoch.
    let case = Case {
        dropout: 0.0,
        epochs: 6,
        optimizer: RESTING,
        ..Case::default()
    };
    for codec in [
        "\"f16\"",
        "\"random_entries\"",
        "{ kind = \"quantise\", bits = 4 }",
    ] {
        let options = format!("bound = 5\ncodec = {codec}\ncompress_last = true");
        let found = bits(&case.run("train", &options));
        assert!(found.iter().all(|loss| *loss == found[0]), "{codec}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let case = Case::default();
    let key = |options: &str| case.refused("train", options).0;
    let difference = "codec = { kind = \"difference\", of = \"top_k\" }";
    for with in ["late = true", "share = 0.5", difference] {
        let found = key(&format!("bound = 1\n{with}"));
        assert_eq!(found.as_deref(), Some("bound"), "{with}");
    }
    let share = key("rows = \"blocks\"\nshare = 0.5");
    assert_eq!(share.as_deref(), Some("rows"));
    let threshold = |options: &str| {
        let found = key(&format!("threshold = 0.1\n{options}"));
        assert_eq!(found.as_deref(), Some("threshold"), "{options}");
    };
    threshold("");
    threshold("bound = 2\ncodec = \"f16\"");
    threshold("bound = 1");
    assert_eq!(
        key("threshold = -1\nbound = 1").as_deref(),
        Some("threshold")
    );
    assert_eq!(
        case.refused("cagnet", "bound = 1").0.as_deref(),
        Some("bound")
    );
}
