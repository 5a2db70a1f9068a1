//! Whole files in, experiments or messages out.

mod sizes;

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
fn the_grid_is_sweep_times_strategies_with_the_sweep_in_the_name() {
    let experiment = parse(FILE, &[]).unwrap();
    let cells: Vec<(&str, usize, &str)> = experiment
        .cells()
        .iter()
        .map(|cell| {
            (
                cell.name.as_str(),
                cell.settings.partition.workers,
                cell.strategy.kind.as_str(),
            )
        })
        .collect();
    assert_eq!(
        cells,
        [
            ("workers=2 full", 2, "full"),
            ("workers=2 fixed", 2, "fixed"),
            ("workers=4 full", 4, "full"),
            ("workers=4 fixed", 4, "fixed"),
        ]
    );
}

#[test]
fn a_swept_number_stays_one_and_everything_else_is_a_word() {
    let (head, _) = FILE.split_once("\"partition.workers\" =").unwrap();
    let swept = |line: &str| {
        let experiment = parse(&format!("{head}{line}\n"), &[]).unwrap();
        experiment.cells()[2].sweep.clone()
    };
    let epochs = swept("\"training.epochs\" = [2, 30]");
    assert_eq!(
        (epochs.number("epochs"), epochs.to_string()),
        (Some(30.0), "epochs=30".into())
    );
    let rates = swept("\"optimizer.learning_rate\" = [0.5, 1e-3]");
    assert_eq!(rates.number("learning_rate"), Some(1e-3));
    let presets = swept("\"network.preset\" = [\"wan\", \"ethernet-1g\"]");
    assert_eq!(
        (presets.number("preset"), presets.heading()),
        (None, "ethernet-1g".into())
    );
}

#[test]
fn without_a_sweep_a_cell_is_called_by_its_strategy() {
    let (head, _) = FILE.split_once("[sweep]").unwrap();
    let experiment = parse(head, &[]).unwrap();
    let names: Vec<&str> = experiment
        .cells()
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    assert_eq!(names, ["full", "fixed"]);
}

#[test]
fn of_tables_that_are_swept_a_name_has_what_differs() {
    let (head, _) = FILE.split_once("[sweep]").unwrap();
    for (tables, names) in [
        (
            r#""network.link" = [{ bandwidth = "1Gbps", latency = "100us" }, { bandwidth = "1Gbps", latency = "2ms" }]"#,
            ["link=100us", "link=2ms"],
        ),
        (
            r#"network = [{ preset = "wan" }, { preset = "ethernet-1g", exchange = "pairwise" }]"#,
            ["network=wan/–", "network=ethernet-1g/pairwise"],
        ),
    ] {
        let head = head.replace("preset = \"ethernet-1g\"", "");
        let experiment = parse(&format!("{head}[sweep]\n{tables}\n"), &[]).unwrap();
        let read: Vec<String> = (experiment.cells().iter())
            .map(|cell| cell.sweep.to_string())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| read.iter().any(|read| read == name)),
            "{read:?}"
        );
    }
}

#[test]
fn the_last_sweep_key_varies_fastest_and_keys_that_end_alike_are_told_apart() {
    let (head, _) = FILE.split_once("[[claim]]").unwrap();
    let text = format!(
        "{head}\"model.kind\" = [\"gcn\", \"sage\"]\n\
         \"dataset\" = [{{ synthetic = {{ kind = \"rmat\", scale = 4, classes = 2, features = 3 }} }}]\n\
         \"optimizer.kind\" = [\"adam\"]"
    );
    let experiment = parse(&text, &["strategy=[{ kind = 'full' }]"]).unwrap();
    let names: Vec<&str> = experiment
        .cells()
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    let data = "dataset=rmat-16";
    let expected = [(2, "gcn"), (2, "sage"), (4, "gcn"), (4, "sage")].map(|(workers, kind)| {
        format!("workers={workers} model.kind={kind} {data} optimizer.kind=adam full")
    });
    assert_eq!(names, expected);
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

#[test]
fn the_resolved_text_keeps_the_order_of_the_sweep_and_with_it_the_names_of_cells() {
    let sections = "[sweep]\ndataset = [{ name = \"cora\" }, { synthetic = { kind = \"rmat\", scale = 4, \
        classes = 2, features = 3 }, split = { train = 0.5, val = 0.2 } }]\n";
    let text = FILE.replace("[sweep]\n", sections);
    let text = &text[..text.find("[[claim]]").unwrap()];
    let experiment = parse(text, &[]).unwrap();
    let names: Vec<&str> = experiment
        .cells()
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    assert_eq!(names[0], "dataset=cora workers=2 full");
    assert_eq!(names[4], "dataset=rmat-16 workers=2 full");
    let again = parse(&experiment.resolved_text(), &[]).unwrap();
    let again: Vec<&str> = again
        .cells()
        .iter()
        .map(|cell| cell.name.as_str())
        .collect();
    assert_eq!(again, names);
}

#[test]
fn a_section_that_is_swept_as_a_whole_need_not_stand_alone() {
    let sections = "[sweep]\ndataset = [{ name = \"cora\" }, { synthetic = { kind = \"rmat\", scale = 4, \
        classes = 2, features = 3 }, split = { train = 0.5, val = 0.2 } }]\n";
    let text = FILE.replace("[sweep]\n", sections);
    let text = &text[..text.find("[[claim]]").unwrap()];
    let alone = text.replace("[dataset]\nname = \"cora\"\n", "");
    assert_ne!(alone, text);
    let experiment = parse(&alone, &[]).unwrap();
    assert_eq!(experiment, parse(text, &[]).unwrap());
    assert_eq!(parse(&experiment.resolved_text(), &[]).unwrap(), experiment);
    // A split beside it would be lost.
    let split = "[dataset]\nsplit = { train = 0.5, val = 0.2 }\n";
    let error = parse(&text.replace("[dataset]\nname = \"cora\"\n", split), &[]).unwrap_err();
    assert!(error.contains("each with its own `split`"), "{error}");
    let error = parse(&alone.replace("dataset = [", "dataset = [3, "), &[]).unwrap_err();
    assert!(
        error.contains("expected a table [dataset], found 3"),
        "{error}"
    );
}

#[test]
fn a_section_of_a_sweep_has_settings_of_its_own_in_its_with() {
    let with = |with: &str| {
        let sections = format!(
            "[sweep]\ndataset = [{{ name = \"cora\", with = {{ {with} }} }}, {{ name = \"minesweeper\" }}]\n"
        );
        let text = FILE
            .replace("[dataset]\nname = \"cora\"\n", "")
            .replace("[sweep]\n", &sections);
        text[..text.find("[[claim]]").unwrap()].to_owned()
    };
    let text = with("\"model.hidden\" = 24, \"training.target_accuracy\" = 0.75");
    let experiment = parse(&text, &[]).unwrap();
    let own = |cell: &Cell| {
        let Settings {
            model, training, ..
        } = &cell.settings;
        (model.hidden, training.target_accuracy)
    };
    let cells = experiment.cells();
    assert_eq!(cells[0].name, "dataset=cora workers=2 full");
    assert_eq!(own(&cells[0]), (24, Some(0.75)));
    let usual = &experiment.settings;
    let usual = (usual.model.hidden, usual.training.target_accuracy);
    assert_eq!(own(&cells[4]), usual, "{}", cells[4].name);
    assert_eq!(parse(&experiment.resolved_text(), &[]).unwrap(), experiment);
    // A baseline's own comes last.
    let single = text.replacen(
        "[[strategy]]\n",
        "[[strategy]]\nwith = { \"model.hidden\" = 8 }\n",
        1,
    );
    assert_eq!(own(&parse(&single, &[]).unwrap().cells()[0]).0, 8);
    // For all others it says what they have.
    assert!(parse(&text, &["model.hidden=5"]).is_ok());
    for (wrong, message) in [
        ("hidden = 3", "`hidden` is not a whole key of a section"),
        ("\"model.hiden\" = 3", "did you mean `hidden`?"),
        ("\"model.hidden\" = 0", "`hidden` must be"),
        ("\"dataset.split\" = \"public\"", "write it beside it"),
        (
            "\"partition.workers\" = 2",
            "is set by the sweep of `partition.workers` as well",
        ),
    ] {
        let error = parse(&with(wrong), &[]).unwrap_err();
        assert!(error.contains(message), "{wrong}: {error}");
    }
    let every = with("\"model.hidden\" = 3").replace(
        "name = \"minesweeper\"",
        "name = \"minesweeper\", with = { \"model.hidden\" = 4 }",
    );
    let error = parse(&every, &["model.hidden=5"]).unwrap_err();
    assert!(error.contains("`dataset` is swept"), "{error}");
}

#[test]
fn two_settings_of_one_name_are_refused() {
    let (head, _) = FILE.split_once("[sweep]").unwrap();
    let text = format!(
        "{head}[sweep]\ndataset = [{{ name = \"cora\" }}, {{ name = \"cora\", split = \"public-1\" }}]\n"
    );
    let error = parse(&text, &[]).unwrap_err();
    assert!(
        error.contains("two settings would be called \"dataset=cora\""),
        "{error}"
    );
}

#[test]
fn a_sweep_into_what_has_a_default_resolves_to_itself() {
    let (head, _) = FILE.split_once("[compute]").unwrap();
    let (_, rest) = FILE.split_once("[[strategy]]").unwrap();
    let (strategies, _) = rest.split_once("[sweep]").unwrap();
    let text = format!(
        "{head}[[strategy]]{strategies}[sweep]\n\"compute.timing.profile\" = [\"a100\"]\n\
         \"dataset.split.train\" = [0.5, 0.6]\n\"dataset.split.val\" = [0.1]\n"
    );
    let experiment = parse(&text, &[]).unwrap();
    assert_eq!(parse(&experiment.resolved_text(), &[]).unwrap(), experiment);
}
