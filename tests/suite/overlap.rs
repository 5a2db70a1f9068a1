//! Communication while computing: the same training, in less time.

use crate::common::{Case, KINDS, assert_close, losses};
use grapevine::net::{AllReduceChoice, TrafficKind};
use grapevine::sim::Outcome;

/// Strategies that can overlap, with options under which features are resent.
const STRATEGIES: [(&str, &str); 7] = [
    ("full", ""),
    ("full", "cache_features = false"),
    ("full", "cache_features = false\nexchange = \"input\""),
    ("isolated", ""),
    ("fixed", "ratio = 4"),
    ("fixed", "ratio = 4\nmeasure_error = true"),
    (
        "varco",
        "schedule = { kind = \"adaptive-validation\", from = 8 }",
    ),
];

fn overlapped(case: &Case, kind: &str, options: &str) -> (Outcome, Outcome) {
    let with = format!("overlap = true\n{options}");
    (case.run(kind, options), case.run(kind, &with))
}

/// What cannot depend on when messages travel: everything that is sent but how gradients are cut in messages.
fn assert_same_bytes(plain: &Outcome, overlapped: &Outcome, what: &str) {
    for epoch in 0..plain.epochs.len() {
        for kind in TrafficKind::ALL {
            let of = |outcome: &Outcome| {
                let traffic = outcome.ledger.epoch(epoch).expect("something is sent");
                traffic.payload_of(kind)
            };
            assert_eq!(of(plain), of(overlapped), "{what}, epoch {epoch}, {kind}");
        }
    }
}

#[test]
fn losses_with_overlap_are_those_without_up_to_the_order_of_sums() {
    for (kind, options) in STRATEGIES {
        let case = Case {
            workers: 3,
            epochs: 5,
            ..Case::default()
        };
        let (plain, overlapped) = overlapped(&case, kind, options);
        let what = format!("{kind} {options}");
        assert_close(&losses(&overlapped), &losses(&plain), 1e-4, &what);
        assert_same_bytes(&plain, &overlapped, &what);
    }
}

#[test]
fn where_the_order_of_sums_is_the_same_losses_are_the_same_to_the_bit() {
    // A sum of two has one order; a tree and a server sum all elements in the same one.
    for (all_reduce, workers) in [
        (AllReduceChoice::Ring, 2),
        (AllReduceChoice::Tree, 5),
        (AllReduceChoice::ParameterServer, 4),
    ] {
        for model in KINDS {
            let case = Case {
                kind: model,
                workers,
                all_reduce,
                epochs: 3,
                norm: grapevine::model::NormKind::Layer,
                residual: true,
                ..Case::default()
            };
            for (kind, options) in STRATEGIES {
                let (plain, overlapped) = overlapped(&case, kind, options);
                assert_eq!(
                    losses(&plain),
                    losses(&overlapped),
                    "{model:?}, {all_reduce:?}, {kind} {options}"
                );
            }
        }
    }
}

#[test]
fn mini_batches_overlap_too() {
    let batch = grapevine::graph::BatchSpec {
        size: 10,
        fanouts: vec![3, 3, 3],
    };
    let case = Case {
        all_reduce: AllReduceChoice::Tree,
        batch: Some(batch),
        ..Case::default()
    };
    for (kind, options) in STRATEGIES {
        // Plan and ledger are compared inside.
        let (plain, overlapped) = overlapped(&case, kind, options);
        assert_eq!(losses(&plain), losses(&overlapped), "{kind} {options}");
    }
}

#[test]
fn overlap_saves_time_where_computing_is_not_negligible() {
    // A bucket pays all latencies and overheads once more: 6 × 2.6 µs around a ring of four, which
    // a wide layer on a slow processor takes longer than. Over Ethernet of 100 µs it would not.
    let case = Case {
        network: "infiniband-200g",
        hidden: 256,
        workers: 4,
        ..Case::default()
    };
    for (kind, options) in [("isolated", ""), ("fixed", "ratio = 2")] {
        let (plain, overlapped) = overlapped(&case, kind, options);
        let exposed = |outcome: &Outcome| outcome.mean_time(|times| times.exposed);
        assert!(
            overlapped.simulated() < plain.simulated(),
            "{kind}: {:?} and {:?}",
            overlapped.simulated(),
            plain.simulated()
        );
        assert!(exposed(&overlapped) < exposed(&plain), "{kind}");
        for times in &overlapped.times {
            // A worker computes, or waits for others or for messages; what it waits for messages is
            // part of both.
            let waited = times.clock.0 - times.compute.0;
            assert!(
                times.exposed.0 <= waited * (1.0 + 1e-12),
                "{kind}: {times:?}"
            );
            assert!(times.exposed <= times.communication, "{kind}: {times:?}");
            // The sum is what neither hides.
            let all = times.compute.0 + times.exposed.0 + times.waiting.0;
            assert!(
                (all / times.clock.0 - 1.0).abs() < 1e-9,
                "{kind}: {times:?}"
            );
        }
    }
}

#[test]
fn every_all_reduce_trains_alike_and_sends_what_was_planned() {
    let case = |all_reduce| Case {
        all_reduce,
        workers: 6,
        ..Case::default()
    };
    let ring = case(AllReduceChoice::Ring).run("full", "");
    for all_reduce in [
        AllReduceChoice::HalvingDoubling,
        AllReduceChoice::Tree,
        AllReduceChoice::ParameterServer,
        AllReduceChoice::Auto,
    ] {
        for kind in ["full", "varco", "grappa", "retexo"] {
            // Plan and ledger are compared inside.
            let outcome = case(all_reduce).run(kind, "");
            if kind == "full" {
                assert_close(&losses(&outcome), &losses(&ring), 1e-4, "full");
            }
        }
    }
}
