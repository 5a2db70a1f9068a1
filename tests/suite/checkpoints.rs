//! A training that is killed goes on from its checkpoints as if nothing had been.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grapevine::graph::BatchSpec;
use grapevine::model::OptimizerConfig;
use grapevine::net::{AllReduceChoice, ExchangeKind};
use grapevine::sim::{Checkpoints, EpochRecord, Observer, Outcome, SimError};
use grapevine::strategies::{self, Registry, Training};

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::common::{CORA, Case, UNCERTAIN};

/// Trains with checkpoints after every second epoch; the notes that were made.
fn train(
    training: &dyn Training,
    folder: &Path,
    observer: Observer,
) -> (Result<Outcome, SimError>, Vec<String>) {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&notes);
    let note = move |note: &str| told.lock().expect("nobody panics").push(note.to_owned());
    let checkpoints = Checkpoints::new(folder.to_owned(), 2, note);
    let outcome = strategies::run_keeping(training, false, observer, Some(checkpoints));
    let notes = notes.lock().expect("nobody panics").clone();
    (outcome, notes)
}

/// Kills whoever reports the end of this epoch.
fn killing(at: usize) -> Observer {
    Arc::new(move |record| assert!(record.epoch < at, "killed"))
}

fn watching() -> Observer {
    Arc::new(|_| {})
}

/// What the machine's clock has no part in.
fn unclocked(outcome: &Outcome) -> Vec<EpochRecord> {
    let record = |record: &EpochRecord| EpochRecord {
        measured: Duration::ZERO,
        ..record.clone()
    };
    outcome.epochs.iter().map(record).collect()
}

fn assert_same(name: &str, found: &Outcome, expected: &Outcome) {
    assert_eq!(unclocked(found), unclocked(expected), "{name}");
    assert_eq!(found.ledger, expected.ledger, "{name}: messages");
    assert_eq!(
        found.coding_errors, expected.coding_errors,
        "{name}: errors"
    );
    assert_eq!(found.decisions, expected.decisions, "{name}: decisions");
    assert_eq!(found.times, expected.times, "{name}: times");
    assert_eq!(found.parameters, expected.parameters, "{name}: parameters");
}

fn goes_on(case: &Case, kind: &str, options: &str) {
    let name = format!("{kind} with {options:?}");
    let fitted = case.fit(&Registry::builtin(), kind, options);
    let training = fitted.unwrap_or_else(|error| panic!("{name}: {error}"));
    training
        .saves()
        .unwrap_or_else(|why| panic!("{name} {why}"));
    let whole = strategies::run(&*training, false, watching());
    let whole = whole.unwrap_or_else(|error| panic!("{name}: {error}"));
    let folder = tempfile::tempdir().expect("a folder");
    // Killed twice: after the first checkpoint, and after one that a training wrote that had gone
    // on.
    for (at, before) in [(3, None), (6, Some(1))] {
        let (killed, notes) = train(&*training, folder.path(), killing(at));
        assert!(killed.is_err(), "{name}: it was not killed");
        let said = before.map(|epoch| format!("goes on from a checkpoint after epoch {epoch}"));
        assert_eq!(notes, said.into_iter().collect::<Vec<_>>(), "{name}");
    }
    let (outcome, notes) = train(&*training, folder.path(), watching());
    let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(
        notes.len() == 1 && notes[0].ends_with("after epoch 5"),
        "{name}: {notes:?}"
    );
    assert_same(&name, &outcome, &whole);
}

fn case() -> Case {
    Case {
        epochs: 9,
        ..Case::default()
    }
}

#[test]
fn a_training_that_exchanges_rows_goes_on_where_it_was() {
    for (kind, options) in [
        ("full", ""),
        ("full", "cache_features = false\nexchange = \"input\""),
        ("full", "overlap = true"),
        (
            "full",
            "overlap = true\ncache_features = false\nexchange = \"input\"",
        ),
        ("isolated", ""),
        ("fixed", "ratio = 4\nmeasure_error = true"),
        ("varco", ""),
        ("varco", "schedule = { kind = \"adaptive-validation\" }"),
        ("bns", ""),
        ("pipe", ""),
        ("pipe", "smoothing = \"both\""),
        ("sylvie", ""),
        ("sancus", ""),
        ("sancus", "bound = 3\nthreshold = 0.2"),
        ("cagnet", ""),
        ("distgnn", "delay = 0"),
        ("distgnn", "delay = 1"),
        ("distgnn", "delay = 2\ncut = \"random\""),
        ("adaqp", "assign_every = 2"),
        ("adaqp", "assign_every = 3"),
        ("ecgraph", ""),
        ("ecgraph", "tune = true"),
        (
            "train",
            "late = true\nfresh_every = 3\ncodec = \"top_k\"\nratio = 4",
        ),
        ("train", "bound = 2\ncodec = \"top_k\"\nratio = 4"),
        ("train", "repartition_every = 2"),
        (
            "train",
            "repartition_every = 3\ncodec = { kind = \"difference\", of = \"top_k\" }",
        ),
        (
            "train",
            "repartition_every = 3\nlate = true\nsmoothing = \"both\"",
        ),
        (
            "train",
            "repartition_every = 4\nbound = 2\nthreshold = 0.2\nexchange = \"input\"",
        ),
    ] {
        goes_on(&case(), kind, options);
    }
}

#[test]
fn chance_on_the_links_goes_on_where_it_was() {
    let case = Case {
        wiring: UNCERTAIN,
        ..case()
    };
    for (kind, options) in [
        ("full", "overlap = true"),
        ("pipe", ""),
        ("grappa", "repartition_every = 3"),
    ] {
        goes_on(&case, kind, options);
    }
}

#[test]
fn parts_that_came_in_messages_are_those_that_are_cut_from_the_graph() {
    // Until it is killed a worker has its part from the others; then from the graph itself.
    let several = case().data.replace(" }\n", ", labels = 40 }\n");
    let half = case()
        .data
        .replace("\nsplit", "\nfeature_storage = \"f16\"\nsplit");
    for data in [CORA, several.leak(), half.leak()] {
        let case = Case { data, ..case() };
        goes_on(&case, "train", "repartition_every = 2");
    }
}

#[test]
fn a_grid_of_workers_goes_on_where_it_was() {
    let case = Case {
        workers: 4,
        ..case()
    };
    for options in ["algorithm = \"1.5d\"", "algorithm = \"2d\""] {
        goes_on(&case, "cagnet", options);
    }
}

#[test]
fn sums_of_gradients_go_on_with_what_they_left_out() {
    for gradients in [
        "{ codec = { kind = \"top_k\", ratio = 4 }, feedback = true }",
        "{ codec = { kind = \"power_sgd\", rank = 2 }, feedback = true }",
        "{ codec = \"sign\", feedback = true }",
        "{ every = 3 }",
        "{ every = 2, average = \"models\" }",
    ] {
        goes_on(&case(), "full", &format!("gradients = {gradients}"));
    }
    let momentum = OptimizerConfig::Sgd {
        learning_rate: 0.1,
        weight_decay: 5e-4,
        momentum: 0.9,
    };
    let case = Case {
        optimizer: momentum,
        ..case()
    };
    goes_on(&case, "full", "");
}

#[test]
fn codecs_that_remember_go_on_from_what_they_told() {
    let options = "ratio = 4\ncodec = { kind = \"difference\", of = \"top_k\" }";
    goes_on(&case(), "fixed", options);
}

#[test]
fn grappa_goes_on_with_the_chunks_that_it_holds() {
    for options in [
        "repartition_every = 3",
        "repartition_every = 3\nhalo = true\nweight = \"node_ht\"\nnormalise = \"rho\"",
        "repartition_every = 2\nhalo = true\nweight = \"batch_gram\"",
        "repartition_every = 2\nkeep_halo = false",
        "repartition_every = 3\nschedule = \"regroup\"",
        "repartition_every = 3\nremote_sampling = 0.5",
    ] {
        goes_on(&case(), "grappa", options);
    }
    let two = Case {
        workers: 2,
        ..case()
    };
    goes_on(&two, "grappa", "repartition_every = 3\nhalo = true");
}

#[test]
fn retexo_goes_on_within_a_sub_model_and_between_two() {
    for rounds in [3, 2] {
        let case = Case {
            epochs: 3 * rounds,
            ..case()
        };
        if rounds == 3 {
            goes_on(&case, "retexo", &format!("rounds_per_layer = {rounds}"));
        } else {
            goes_on(&self::case(), "retexo", "rounds_per_layer = [2, 4, 3]");
        }
    }
}

#[test]
fn mini_batches_go_on_with_the_features_that_came() {
    let case = Case {
        batch: Some(BatchSpec {
            size: 8,
            fanouts: vec![3, 3, 3],
        }),
        ..case()
    };
    for (kind, options) in [
        ("full", ""),
        ("isolated", ""),
        ("fixed", "ratio = 4"),
        ("grappa", "repartition_every = 3"),
        ("retexo", "rounds_per_layer = 3"),
        ("distdgl", ""),
        ("distdgl", "prefetch = false\ncache = \"2kB\""),
        ("distdgl", "cache = \"2kB\"\ndegrees = \"block\""),
    ] {
        goes_on(&case, kind, options);
    }
    let plain = self::case();
    goes_on(&plain, "cluster", "clusters = 16\nclusters_per_batch = 2");
}

#[test]
fn messages_that_are_under_way_in_rounds_arrive_when_they_would_have() {
    for (exchange, all_reduce) in [
        (ExchangeKind::Pairwise, AllReduceChoice::Tree),
        (ExchangeKind::Hierarchical, AllReduceChoice::Ring),
    ] {
        let case = Case {
            exchange,
            all_reduce,
            network: "lte",
            ..case()
        };
        goes_on(&case, "pipe", "");
        goes_on(&case, "full", "");
    }
}

#[test]
fn a_checkpoint_that_is_damaged_or_that_not_all_have_is_left_out() {
    let fitted = case().fit(&Registry::builtin(), "full", "");
    let training = fitted.expect("it fits");
    let whole = strategies::run(&*training, false, watching()).expect("it trains");
    let folder = tempfile::tempdir().expect("a folder");
    assert!(train(&*training, folder.path(), killing(6)).0.is_err());
    let newest = folder.path().join("worker-2-of-4-after-6");
    let mut bytes = std::fs::read(&newest).expect("it is there");
    *bytes.last_mut().expect("it is not empty") ^= 1;
    std::fs::write(&newest, &bytes).expect("it can be written");
    let (killed, notes) = train(&*training, folder.path(), killing(6));
    let killed = killed.expect_err("it is killed").to_string();
    assert!(killed.contains("panicked"), "{killed}");
    assert!(
        notes[0].contains("worker-2-of-4-after-6: damaged"),
        "{notes:?}"
    );
    assert!(notes[1].ends_with("after epoch 3"), "{notes:?}");
    std::fs::remove_file(&newest).expect("it is there again");
    let (outcome, notes) = train(&*training, folder.path(), watching());
    assert!(notes[0].ends_with("after epoch 3"), "{notes:?}");
    assert_same("full", &outcome.expect("it trains"), &whole);
}

#[test]
fn a_strategy_that_does_not_save_its_state_says_so() {
    for (kind, options) in [("llcg", ""), ("fedavg", ""), ("fedgcn", "")] {
        let fitted = case().fit(&Registry::builtin(), kind, options);
        let training = fitted.unwrap_or_else(|error| panic!("{kind}: {error}"));
        let why = training.saves().expect_err(kind);
        assert!(why.contains("does not save its state"), "{why}");
    }
    let text = EXPERIMENT.replace("epochs = 6", "epochs = 6\ncheckpoint_every = 2");
    let text = text.replace("kind = \"retexo\"\nrounds_per_layer = 3", "kind = \"llcg\"");
    let folder = folder_with(&text);
    let refused = grapevine(folder.path(), &["run", "x.toml"]).expect(2);
    let place = "x.toml:11: in [training]: llcg does not save its state";
    assert!(refused.stderr.contains(place), "{}", refused.stderr);
}
