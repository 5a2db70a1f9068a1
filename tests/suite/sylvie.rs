//! Sylvie: one bit an entry, an epoch late, and now and then not late.

use crate::common::{Case, KINDS, RESTING, bits, losses};
use grapevine::net::TrafficKind;

#[test]
fn rows_that_are_fresh_in_every_epoch_are_not_late_at_all() {
    for kind in KINDS {
        let case = Case {
            kind,
            epochs: 5,
            ..Case::default()
        };
        let of = |options: &str| bits(&case.run("sylvie", options));
        for features in ["", "\ncache_features = false"] {
            let always = of(&format!("fresh_every = 1{features}"));
            assert_eq!(always, of(&format!("late = false{features}")), "{kind:?}");
        }
        let whole = "late = true\nfresh_every = 1\nexchange = \"input\"";
        let whole = bits(&case.run("train", whole));
        let full = bits(&case.run("full", "exchange = \"input\""));
        assert_eq!(whole, full, "{kind:?}");
    }
}

#[test]
fn losses_are_exact_up_to_the_first_late_epoch() {
    let case = Case {
        epochs: 7,
        ..Case::default()
    };
    let full = losses(&case.run("full", "exchange = \"input\""));
    let options = "late = true\nexchange = \"input\"\nfresh_every = 3";
    let found = losses(&case.run("train", options));
    // Epoch 0 is fresh; epoch 1 reads its rows once more, with parameters that have moved on.
    assert_eq!(found[0].to_bits(), full[0].to_bits());
    assert_ne!(found[1].to_bits(), full[1].to_bits());
    let late = losses(&case.run("pipe", ""));
    assert_ne!(found[0].to_bits(), late[0].to_bits(), "no zeros at first");
}

#[test]
fn a_fresh_epoch_reads_what_this_epoch_sent_and_the_next_reads_it_again() {
    // Parameters that rest, and no dropout: rows are exact from the first epoch on, as the first is
    // fresh.
    let case = Case {
        dropout: 0.0,
        epochs: 6,
        optimizer: RESTING,
        ..Case::default()
    };
    let exact = bits(&case.run("full", "exchange = \"input\""));
    for features in ["", "\ncache_features = false"] {
        let options = format!("late = true\nexchange = \"input\"\nfresh_every = 4{features}");
        let found = bits(&case.run("train", &options));
        assert_eq!(found, exact, "{features}");
    }
}

#[test]
fn late_epochs_send_what_fresh_ones_do() {
    let case = Case {
        epochs: 5,
        ..Case::default()
    };
    let outcome = case.run("sylvie", "fresh_every = 3");
    let of = |epoch, kind| outcome.ledger.epoch(epoch).unwrap().payload_of(kind);
    for kind in [TrafficKind::Activation, TrafficKind::ActivationGradient] {
        let all: Vec<_> = (0..5).map(|epoch| of(epoch, kind)).collect();
        assert!(
            all.iter().all(|bytes| *bytes == all[0]),
            "{kind:?}: {all:?}"
        );
    }
}

#[test]
fn it_trains_about_as_well_as_exact_training() {
    let [full, one_bit] = ["full", "sylvie"].map(|kind| Case::learnt(kind, ""));
    assert!(one_bit > full - 0.03, "{one_bit} instead of {full}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let case = Case::default();
    let key = |options: &str| case.refused("sylvie", options).0;
    assert_eq!(key("fresh_every = 0").as_deref(), Some("fresh_every"));
    let both = "late = false\nfresh_every = 3";
    assert_eq!(key(both).as_deref(), Some("fresh_every"));
    let nothing = "codec = { kind = \"quantise_rows\", bits = 3 }";
    assert_eq!(key(nothing).as_deref(), Some("codec"));
    let train = case.refused("train", "fresh_every = 3").0;
    assert_eq!(train.as_deref(), Some("fresh_every"));
    let last = case.refused("train", "compress_last = true").0;
    assert_eq!(last.as_deref(), Some("compress_last"));
}
