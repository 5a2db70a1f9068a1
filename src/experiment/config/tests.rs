//! Whole files in, experiments or messages out.

mod sizes;
mod sweeps;

use std::fmt::Write as _;

use proptest::prelude::*;

use super::bad_inputs::BAD_INPUTS;
use super::bad_together::TOGETHER;
use super::*;

const FILE: &str = r#"name = "quickstart"
seeds = [0, 1, 2]
[dataset]
name = "cora"
[model]
kind = "gcn"
hidden = 16
[optimizer]
kind = "adam"
weight_decay = 5e-4
[training]
epochs = 200
[partition]
method = "metis"
workers = 4
[network]
preset = "ethernet-1g"
[compute]
timing = { profile = "a100" }
[[strategy]]
kind = "full"
[[strategy]]
kind = "fixed"
ratio = 8
[sweep]
"partition.workers" = [2, 4]
[[claim]]
id = "fixed-accuracy"
source = "a paper"
statement = "same accuracy"
measure = "test_accuracy"
compare = { strategy = "workers=2 fixed", to = "workers=2 full", within = 0.01 }
[[figure]]
kind = "pareto"
"#;

#[test]
fn settings_of_its_own_change_one_strategy_and_no_other() {
    let text = FILE.replace(
        "ratio = 8",
        "ratio = 8\nwith = { \"partition.workers\" = 1, \"model.hidden\" = 32 }",
    );
    let experiment = parse(&text, &[]).unwrap();
    let seen: Vec<_> = experiment
        .cells()
        .iter()
        .map(|cell| {
            let settings = &cell.settings;
            (
                cell.name.as_str(),
                settings.partition.workers,
                settings.model.hidden,
            )
        })
        .collect();
    let expected = [
        ("workers=2 full", 2, 16),
        ("workers=2 fixed", 1, 32),
        ("workers=4 full", 4, 16),
        ("workers=4 fixed", 1, 32),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn quadrants_that_are_one_but_for_rounding_are_taken() {
    let with = |quadrants: &str| {
        let rmat = format!(
            "synthetic = {{ kind = \"rmat\", scale = 6, classes = 2, features = 2, quadrants = [{quadrants}] }}"
        );
        parse(&FILE.replace("name = \"cora\"", &rmat), &[])
    };
    assert!(with("0.55, 0.34, 0.11").is_ok());
    let error = with("0.55, 0.34, 0.12").unwrap_err();
    assert!(error.contains("no more than 1"), "{error}");
}

fn vocabulary(registry: &Registry) -> Vocabulary<'_> {
    Vocabulary {
        registry,
        figures: &["pareto", "accuracy-vs-bytes"],
    }
}

fn parse(text: &str, sets: &[&str]) -> Result<Experiment, String> {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    at(PAPER, text, "x.toml", &sets).map_err(|error| error.to_string())
}

/// The experiment in this text at one of its sizes.
fn at(scale: &str, text: &str, name: &str, sets: &[String]) -> Result<Experiment, ConfigError> {
    let registry = Registry::builtin();
    Experiment::parse(text, name, scale, sets, &vocabulary(&registry))
}

/// The message for the file with one piece of text replaced by another.
fn message(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from} is not in the file");
    parse(&FILE.replacen(from, to, 1), &[]).expect_err("this file must be refused")
}

#[test]
fn a_file_is_read_with_its_defaults() {
    let experiment = parse(FILE, &[]).unwrap();
    assert_eq!(experiment.name, "quickstart");
    assert_eq!(experiment.seeds, [0, 1, 2]);
    assert_eq!(experiment.settings.model.layers, 2);
    assert_eq!(experiment.settings.training.evaluate_every, 1);
    assert_eq!(
        experiment.strategies[1].options["ratio"].as_integer(),
        Some(8)
    );
    assert_eq!(
        experiment.claims[0].compare.baseline(),
        Some("workers=2 full")
    );
    assert_eq!(experiment.figures[0].kind, "pareto");
}

#[test]
fn seeds_are_a_list_or_as_many_as_it_takes() {
    let text = FILE.replacen("seeds = [0, 1, 2]", "seeds = { first = 4, most = 30 }", 1);
    let experiment = parse(&text, &[]).unwrap();
    assert_eq!(experiment.seeds, [0, 1, 2, 3]);
    assert_eq!(experiment.all_seeds().count(), 30);
    let again = parse(&experiment.resolved_text(), &[]).unwrap();
    assert_eq!(again, experiment);
    let listed = parse(&text, &["seeds=[7, 5]"]).unwrap();
    assert_eq!((listed.seeds, listed.statistics.looks), (vec![7, 5], None));
}

#[test]
fn overrides_reach_every_key() {
    let sets = [
        "training.epochs=5",
        "network.preset=wan",
        "strategy.1.ratio=32",
        "strategy.0.label=exact",
        "sweep.\"partition.workers\"=[1]",
        "claim=[]",
        "dataset.split.train_per_class=20",
        "dataset.split.val_per_class=30",
    ];
    let experiment = parse(FILE, &sets).unwrap();
    assert_eq!(experiment.settings.training.epochs, 5);
    assert_eq!(experiment.settings.network.preset.as_deref(), Some("wan"));
    assert_eq!(
        experiment.strategies[1].options["ratio"].as_integer(),
        Some(32)
    );
    assert_eq!(experiment.cells()[0].name, "workers=1 exact");
}

#[test]
fn an_optimizer_that_does_not_say_its_kind_is_adam() {
    let whole = FILE.replace("[optimizer]\nkind = \"adam\"\nweight_decay = 5e-4\n", "");
    let experiment = parse(&whole, &["optimizer.learning_rate=0.5"]).unwrap();
    let resolved = experiment.resolved();
    let optimizer = &resolved["optimizer"];
    assert_eq!(optimizer["kind"].as_str(), Some("adam"));
    assert_eq!(optimizer["learning_rate"].as_float(), Some(0.5));
}

#[test]
fn the_resolved_file_is_the_same_experiment_and_resolves_to_itself() {
    let experiment = parse(FILE, &[]).unwrap();
    let resolved = experiment.resolved();
    assert_eq!(
        resolved["model"]["dropout"].as_float(),
        Some(0.5),
        "defaults are written out"
    );
    let again = parse(&resolved.to_string(), &[]).unwrap();
    assert_eq!(again, experiment);
    assert_eq!(again.resolved().to_string(), resolved.to_string());
}

#[test]
fn overrides_are_blamed_by_name() {
    for (set, expected) in [
        (
            "training.epochs=0",
            "from --set training.epochs=0: in [training]: `epochs` must be at least 1, not 0",
        ),
        (
            "trainig.epochs=3",
            "from --set trainig.epochs=3: unknown key `trainig`; did you mean `training`? Possible \
             keys: name, description, seeds, strategy, sweep, claim, statistics, figure, scale, dataset, \
             task, model, optimizer, training, partition, network, device, compute",
        ),
        (
            "model.hidden=wide",
            "from --set model.hidden=wide: in [model]: `hidden`: expected a whole number that is \
             not negative, found the text \"wide\"",
        ),
        ("epochs", "--set epochs: write it as key.path=value"),
    ] {
        assert_eq!(parse(FILE, &[set]).unwrap_err(), expected);
    }
}

#[test]
fn every_bad_input_says_what_where_and_what_would_be_right() {
    let mut wrong = String::new();
    for (from, to, expected) in BAD_INPUTS.iter().chain(TOGETHER) {
        let found = message(from, to);
        let fits = match expected.split_once('…') {
            // A list too long to repeat here, or a sentence of another folder.
            Some((start, "")) => found.starts_with(start) && found.len() > start.len(),
            _ => found == *expected,
        };
        if !fits {
            let _ = writeln!(wrong, "expected {expected}\n   found {found}\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let registry = Registry::builtin();
    let file = Path::new("no/such.toml");
    let error = Experiment::read(file, PAPER, &[], &vocabulary(&registry)).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("cannot read the experiment file no/such.toml: "),
        "{text}"
    );
}

#[test]
fn a_strategy_is_needed() {
    let (head, _) = FILE.split_once("[[strategy]]").unwrap();
    assert_eq!(
        parse(head, &[]).unwrap_err(),
        "x.toml: no strategy to run; add a [[strategy]] with a `kind`"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(at in 0..FILE.len(), len in 0..40_usize, new in "\\PC{0,12}") {
        let end = (at + len).min(FILE.len());
        let text = format!("{}{new}{}", &FILE[..at], &FILE[end..]);
        let _ = parse(&text, &[]);
    }

    #[test]
    fn no_override_makes_the_reader_panic(key in "[a-z0-9.\"=]{0,12}", value in "\\PC{0,12}") {
        let _ = parse(FILE, &[&format!("{key}={value}"), &format!("model.{key}={value}")]);
    }
}

#[test]
fn a_file_for_another_command_is_told_which() {
    let message = |text: &str| at(PAPER, text, "x.toml", &[]).unwrap_err().to_string();
    assert_eq!(
        message("name = \"incast\"\n[network]\n[[flow]]\nfrom = 1\n"),
        "x.toml:3: `flow` belongs to a file for `grapevine net`"
    );
    assert_eq!(
        message("name = \"study\"\nseed = 0\n[[graph]]\nkind = \"sbm\"\n"),
        "x.toml:3: `graph` belongs to a file for `grapevine estimator`"
    );
}
