//! Two keys that say the same thing, or of which one switches the other off: refused in a file, by `--set` and in a sweep. Sweeps that
//! change nothing, too.

use std::fs;

use grapevine::cli::{ExperimentArgs, read_experiment};
use grapevine::strategies::Registry;
use toml::{Table, Value};

const BASE: &str = r#"
name = "twice"
seeds = [0]
[model]
kind = "gcn"
[training]
epochs = 1
[partition]
workers = 2
method = "random"
[network]
[[strategy]]
kind = "full"
"#;

const CORA: &[(&str, &str)] = &[("dataset.name", "\"cora\"")];

const RMAT: &[(&str, &str)] = &[(
    "dataset.synthetic",
    r#"{ kind = "rmat", scale = 6, classes = 2, features = 4 }"#,
)];

/// What else the file says, the one key, the other, and a part of the message.
type Pair<'a> = (
    &'a [(&'a str, &'a str)],
    (&'a str, &'a str),
    (&'a str, &'a str),
    &'a str,
);

const LINK: &str = r#"{ bandwidth = "1Gbps", latency = "1us" }"#;

const PAIRS: &[Pair<'_>] = &[
    (
        CORA,
        ("model.gain", "1.5"),
        ("model.weights", "\"w.npz\""),
        "`gain` is of first weights that are drawn",
    ),
    (
        CORA,
        ("model.weights", "\"w.npz\""),
        ("model.init", "\"uniform-fan-in\""),
        "`init` is of first weights that are drawn",
    ),
    (
        CORA,
        ("network.preset", "\"wan\""),
        ("network.link", LINK),
        "`link` has all the figures that `preset` has",
    ),
    (
        CORA,
        ("network.link", LINK),
        ("network.preset", "\"lte\""),
        "`link` has all the figures that `preset` has",
    ),
    (
        CORA,
        ("network.preset", "\"wan\""),
        (
            "network.worker",
            r#"[{ rank = 0, bandwidth = "1Gbps", up = "1Mbps", down = "1Mbps" }]"#,
        ),
        "`bandwidth` is that of both directions",
    ),
    (
        CORA,
        ("network.preset", "\"wan\""),
        ("network.racks", "2"),
        "`racks` goes with topology",
    ),
    (
        CORA,
        ("network.preset", "\"wan\""),
        (
            "network.failure",
            r#"[{ link = "worker 0 in", worker = 0, from = 1 }]"#,
        ),
        "takes either `link`, a name, or `worker`, a rank",
    ),
    (
        CORA,
        ("dataset.name", "\"cora\""),
        ("dataset.path", "\"x\""),
        "exclude each other",
    ),
    (
        CORA,
        ("dataset.name", "\"cora\""),
        ("dataset.format", "\"csv\""),
        "`format` goes with `path`",
    ),
    (
        CORA,
        ("dataset.name", "\"cora\""),
        ("dataset.header", "true"),
        "`header` goes with `format",
    ),
    (
        CORA,
        ("dataset.name", "\"cora\""),
        ("dataset.features", "\"x.csv\""),
        "`features` goes with `format",
    ),
    (
        CORA,
        ("dataset.name", "\"cora\""),
        ("dataset.optional", "true"),
        "`optional` goes with `path`",
    ),
    (
        RMAT,
        ("dataset.synthetic.classes", "2"),
        ("dataset.name", "\"cora\""),
        "exclude each other",
    ),
    (
        RMAT,
        ("dataset.synthetic.edges", "90"),
        ("dataset.synthetic.edge_factor", "4"),
        "`edges` says how many there are, and so does `edge_factor`",
    ),
    (
        &[
            ("dataset.name", "\"cora\""),
            ("dataset.split.val_per_class", "30"),
        ],
        ("dataset.split.train_per_class", "20"),
        ("dataset.split.train", "0.5"),
        "unknown key `train`",
    ),
    (
        CORA,
        ("partition.method", "\"metis\""),
        ("partition.file", "\"x\""),
        "`file` goes with",
    ),
    (
        &[("dataset.name", "\"cora\""), ("partition.file", "\"x\"")],
        ("partition.method", "\"given\""),
        ("partition.seed", "3"),
        "`seed` does nothing with `method = \"given\"`",
    ),
    (
        CORA,
        ("model.kind", "\"gcn\""),
        ("model.heads", "4"),
        "`heads` does nothing",
    ),
    (
        CORA,
        ("model.kind", "\"gin\""),
        ("model.self_loops", "false"),
        "`self_loops` does nothing: it is for kind = \"gcn\", \"sage\" or \"gat\" alone",
    ),
    (
        CORA,
        ("model.kind", "\"gcn\""),
        ("model.biases", "2"),
        "`biases` does nothing: it is for kind = \"sage\" alone",
    ),
    (
        CORA,
        ("optimizer.kind", "\"adam\""),
        ("optimizer.momentum", "0.9"),
        "unknown key `momentum`",
    ),
    (
        CORA,
        ("device.backend", "\"flex\""),
        ("device.adapters", "[\"a\"]"),
        "`adapters` are for backend",
    ),
];

/// Options of a strategy, which sweeps do not reach: what else it says, the one key, the other, and a part of the message.
const OPTIONS: &[Pair<'_>] = &[
    (
        &[("codec", "\"top_k\"")],
        ("schedule", "{ kind = \"linear\" }"),
        ("ratio", "8"),
        "`ratio` is that of the whole training",
    ),
    (
        &[("codec", "\"f16\"")],
        ("kind", "\"bns\""),
        ("ratio", "8"),
        "`ratio` does nothing for this codec",
    ),
    (
        &[],
        ("kind", "\"bns\""),
        ("ratio", "8"),
        "`ratio` does nothing without `codec`",
    ),
    (
        &[],
        ("kind", "\"bns\""),
        ("rescale", "true"),
        "`rescale` does nothing without `codec`",
    ),
    (
        &[("kind", "\"grappa\"")],
        ("shrinkage", "\"lambda\""),
        ("kappa", "2.0"),
        "`kappa` goes with shrinkage",
    ),
    (
        &[("kind", "\"grappa\"")],
        ("schedule", "\"fixed\""),
        ("repartition_every", "5"),
        "`repartition_every` goes with",
    ),
    (
        &[("kind", "\"grappa\"")],
        ("halo", "true"),
        ("remote_sampling", "0.5"),
        "`remote_sampling` must be 0 with halo",
    ),
];

/// Puts a value at a path of keys with dots; entries of lists are numbered.
fn put(table: &mut Table, path: &str, value: &str) {
    let value = value_of(value);
    let mut node = table;
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            node.insert(part.to_owned(), value);
            return;
        }
        let inner = node
            .entry(part)
            .or_insert_with(|| Value::Table(Table::new()));
        node = match inner {
            Value::Array(entries) => {
                let index: usize = parts.next().unwrap().parse().unwrap();
                entries[index].as_table_mut().unwrap()
            }
            inner => inner.as_table_mut().unwrap(),
        };
    }
}

fn value_of(text: &str) -> Value {
    format!("value = {text}").parse::<Table>().unwrap()["value"].clone()
}

/// The file with these keys.
fn with(keys: &[(&str, &str)]) -> Table {
    let mut table: Table = BASE.parse().unwrap();
    for (path, value) in keys {
        put(&mut table, path, value);
    }
    table
}

/// What reading the file with these `--set` says; nothing if it is sound.
fn said(table: &Table, sets: &[String]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    fs::write(&file, toml::to_string(table).unwrap()).unwrap();
    let mut args = ExperimentArgs::of(file);
    args.sets = sets.to_vec();
    let read = read_experiment(&args, &Registry::builtin());
    if let Ok(experiment) = &read {
        // What is resolved says nothing twice either.
        let file = folder.path().join("resolved.toml");
        fs::write(&file, experiment.resolved_text()).unwrap();
        let again = read_experiment(&ExperimentArgs::of(file), &Registry::builtin()).unwrap();
        assert_eq!(again.resolved(), experiment.resolved());
    }
    read.err().map(|error| error.to_string())
}

fn refused(route: &str, table: &Table, sets: &[String], message: &str) {
    let said = said(table, sets);
    assert!(
        said.as_ref().is_some_and(|said| said.contains(message)),
        "{route}: {said:?} is not: {message}"
    );
}

#[test]
fn two_keys_for_one_thing_are_refused_in_a_file_by_set_and_in_a_sweep() {
    for &(setup, one, other, message) in PAIRS {
        let base = [setup, &[one]].concat();
        // The pair is what is wrong: without the other key all is well, or only the other key is
        // missing something.
        refused("file", &with(&[&base[..], &[other]].concat()), &[], message);
        refused(
            "--set",
            &with(&base),
            &[format!("{}={}", other.0, other.1)],
            message,
        );
        let mut swept = with(&base);
        let axis = Table::from_iter([(other.0.to_owned(), Value::Array(vec![value_of(other.1)]))]);
        swept.insert("sweep".to_owned(), Value::Table(axis));
        refused("sweep", &swept, &[], message);
    }
}

#[test]
fn two_options_of_a_strategy_for_one_thing_are_refused_in_a_file_and_by_set() {
    for &(setup, one, other, message) in OPTIONS {
        let keys = [&[("kind", "\"retexo\"")], setup, &[one]].concat();
        let paths: Vec<String> = keys
            .iter()
            .map(|(key, _)| format!("strategy.0.{key}"))
            .collect();
        let keys: Vec<(&str, &str)> = paths
            .iter()
            .map(String::as_str)
            .zip(keys.iter().map(|key| key.1))
            .collect();
        let base = [CORA, &keys[..]].concat();
        let path = format!("strategy.0.{}", other.0);
        refused(
            "file",
            &with(&[&base[..], &[(&path, other.1)]].concat()),
            &[],
            message,
        );
        refused(
            "--set",
            &with(&base),
            &[format!("{path}={}", other.1)],
            message,
        );
    }
}

#[test]
fn a_sweep_that_changes_nothing_is_refused() {
    let link = [CORA, &[("network.link", LINK)]].concat();
    let one = ("with", "{ \"partition.workers\" = 1 }");
    let one_worker: Vec<(&str, &str)> = [CORA, &[("strategy.0.with", one.1)]].concat();
    for (keys, sweep, message) in [
        // Two ways to write one bandwidth, and one list of workers.
        (
            &link[..],
            r#"{ "network.link.bandwidth" = ["1Gbps", "1000Mbps"] }"#,
            "would be the same training",
        ),
        (
            CORA,
            r#"{ "model" = [{ kind = "gcn" }, { kind = "gcn", layers = 2 }] }"#,
            "would be the same training",
        ),
        // Heads are for attention: with the other kinds the cells are the same.
        (
            CORA,
            r#"{ "model.kind" = ["gcn", "gat"], "model.heads" = [1, 2] }"#,
            "\"kind=gcn heads=1 full\" and \"kind=gcn heads=2 full\"",
        ),
        // The only strategy holds still what is swept.
        (
            &one_worker[..],
            r#"{ "partition.workers" = [2, 4] }"#,
            "would be the same training",
        ),
    ] {
        refused(
            "sweep",
            &with(&[keys, &[("sweep", sweep)]].concat()),
            &[],
            message,
        );
    }
    // A baseline that holds still beside one that does not is no mistake.
    let mut table = with(&[CORA, &[("sweep", r#"{ "partition.workers" = [2, 4] }"#)]].concat());
    let entries = format!(
        "[{{ kind = \"full\" }}, {{ kind = \"full\", label = \"one\", {} = {} }}]",
        one.0, one.1
    );
    table.insert("strategy".to_owned(), value_of(&entries));
    assert_eq!(said(&table, &[]), None);
}

#[test]
fn one_strategy_twice_under_two_names_is_refused() {
    let both = |with_: &str| {
        let mut table = with(CORA);
        let two = format!("[{{ kind = \"full\" }}, {{ kind = \"full\", label = \"b\"{with_} }}]");
        table.insert("strategy".to_owned(), value_of(&two));
        table
    };
    // A `with` that says what holds anyway makes no other of it.
    for same in ["", ", with = { \"model.self_loops\" = true }"] {
        refused(
            "file",
            &both(same),
            &[],
            "\"full\" and \"b\" are the same strategy",
        );
    }
    let other = both(", with = { \"model.self_loops\" = false }");
    assert_eq!(said(&other, &[]), None);
}

#[test]
fn a_set_that_another_set_or_a_sweep_undoes_is_refused() {
    let swept = with(&[CORA, &[("sweep", r#"{ "partition.workers" = [2, 4] }"#)]].concat());
    let set = |sets: &[&str]| sets.iter().map(|&set| set.to_owned()).collect::<Vec<_>>();
    let epochs = set(&["training.epochs=3", "training.epochs=4"]);
    refused("--set", &swept, &epochs, "undoes --set training.epochs=3");
    let section = set(&["training.epochs=3", "training={ epochs = 2 }"]);
    refused("--set", &swept, &section, "undoes --set training.epochs=3");
    refused(
        "--set",
        &swept,
        &set(&["partition.workers=3"]),
        "`partition.workers` is swept",
    );
    for sets in [
        &["training={ epochs = 2 }", "training.evaluate_every=2"][..],
        &["sweep={}", "partition.workers=3"],
        &["sweep.\"partition.workers\"=[3, 5]"],
    ] {
        assert_eq!(said(&swept, &set(sets)), None, "{sets:?}");
    }
}

#[test]
fn a_grid_that_nobody_can_run_is_refused_before_it_is_made() {
    let axis: Vec<String> = (1..=1500).map(|value| value.to_string()).collect();
    let axis = axis.join(", ");
    let sweep = format!(
        "{{ \"training.epochs\" = [{axis}], \"model.hidden\" = [{axis}], \"model.layers\" = [{axis}] }}"
    );
    refused(
        "sweep",
        &with(&[CORA, &[("sweep", &sweep)]].concat()),
        &[],
        "make 3375000000 cells",
    );
}
