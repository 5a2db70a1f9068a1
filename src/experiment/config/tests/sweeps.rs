//! Sweeps and the cells that they make.

use super::*;

fn cell_names(experiment: &Experiment) -> Vec<&str> {
    let cells = experiment.cells().iter();
    cells.map(|cell| cell.name.as_str()).collect()
}

/// The file with two data sets, each a whole section, and no claims.
fn with_data_swept() -> String {
    let sections = "[sweep]\ndataset = [{ name = \"cora\" }, { synthetic = { kind = \"rmat\", scale = 4, \
        classes = 2, features = 3 }, split = { train = 0.5, val = 0.2 } }]\n";
    let (text, _) = FILE.split_once("[[claim]]").unwrap();
    text.replace("[sweep]\n", sections)
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
    let names = cell_names(&experiment);
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
    let names = cell_names(&experiment);
    let data = "dataset=rmat-16";
    let expected = [(2, "gcn"), (2, "sage"), (4, "gcn"), (4, "sage")].map(|(workers, kind)| {
        format!("workers={workers} model.kind={kind} {data} optimizer.kind=adam full")
    });
    assert_eq!(names, expected);
}

#[test]
fn the_resolved_text_keeps_the_order_of_the_sweep_and_with_it_the_names_of_cells() {
    let text = with_data_swept();
    let experiment = parse(&text, &[]).unwrap();
    let names = cell_names(&experiment);
    assert_eq!(names[0], "dataset=cora workers=2 full");
    assert_eq!(names[4], "dataset=rmat-16 workers=2 full");
    let again = parse(&experiment.resolved_text(), &[]).unwrap();
    let again = cell_names(&again);
    assert_eq!(again, names);
}

#[test]
fn a_section_that_is_swept_as_a_whole_need_not_stand_alone() {
    let text = with_data_swept();
    let alone = text.replace("[dataset]\nname = \"cora\"\n", "");
    assert_ne!(alone, text);
    let experiment = parse(&alone, &[]).unwrap();
    assert_eq!(experiment, parse(&text, &[]).unwrap());
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
