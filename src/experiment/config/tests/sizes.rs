//! The sizes of an experiment file.

use super::*;

/// The experiment in one of its sizes.
fn scaled(more: &str, scale: &str, sets: &[String]) -> Result<Experiment, String> {
    let text = format!("{FILE}{more}");
    at(scale, &text, "x.toml", sets).map_err(|error| error.to_string())
}

const SMOKE: &str = "[scale.smoke]\nseeds = [7]\n\"training.epochs\" = 3\n\
    sweep = { \"partition.workers\" = [2] }\n'strategy.1.ratio' = 2\n";

#[test]
fn a_size_changes_what_it_names_and_the_paper_size_is_the_file_as_it_stands() {
    let paper = scaled(SMOKE, PAPER, &[]).unwrap();
    assert_eq!(paper, parse(FILE, &[]).unwrap());
    let smoke = scaled(SMOKE, "smoke", &[]).unwrap();
    assert_eq!(smoke.name, "quickstart-smoke");
    assert_eq!(
        (&smoke.seeds[..], smoke.settings.training.epochs),
        (&[7][..], 3)
    );
    assert_eq!((smoke.cells().len(), paper.cells().len()), (2, 4));
    assert_eq!(smoke.strategies[1].options["ratio"].as_integer(), Some(2));
    // What is resolved has no sizes, and is in this one.
    let again = smoke.resolved().to_string();
    let again = at(PAPER, &again, "again", &[]).unwrap();
    assert_eq!(again.resolved(), smoke.resolved());
    let set = ["training.epochs=5".to_owned()];
    let changed = scaled(SMOKE, "smoke", &set).unwrap();
    assert_eq!(
        changed.settings.training.epochs, 5,
        "--set has the last word"
    );
}

#[test]
fn sizes_that_are_not_there_or_lead_nowhere_are_refused() {
    for (more, scale, expected) in [
        (
            SMOKE,
            "smok",
            "--scale smok: the experiment file has no such size; it has smoke, paper",
        ),
        (
            "[scale.paper]\nseeds = [1]\n",
            PAPER,
            "x.toml:35: in [scale]: `paper` is the file as it stands; choose another name",
        ),
        (
            "[scale.smoke]\n'training epochs' = 1\n",
            PAPER,
            "x.toml:36: in [scale.smoke]: `training epochs` is not a key path; write it like \"training.epochs\"",
        ),
        (
            "[scale.smoke]\n'training.epoch' = 1\n",
            "smoke",
            "x.toml:36: in [training]: unknown key `epoch`; did you mean `epochs`? …",
        ),
        (
            // Also where another size was asked for.
            "[scale.smoke]\n'training.epoch' = 1\n",
            PAPER,
            "x.toml:36: in [training]: unknown key `epoch`; did you mean `epochs`? …",
        ),
        (
            "[scale.smoke]\ntraining.epochs = 1\n",
            PAPER,
            "x.toml:36: in [scale.smoke]: `training` would replace the whole section; write its keys in quotes, like \"training.epochs\"",
        ),
        (
            "[scale.smoke]\n'scale.smoke' = { seeds = [1] }\n",
            "smoke",
            "x.toml:36: a size cannot be changed by --set or by a size; …",
        ),
        (
            "[scale]\nsmoke = 3\n",
            PAPER,
            "x.toml:36: in [scale]: `smoke`: expected a table, found 3",
        ),
    ] {
        let found = scaled(more, scale, &[]).unwrap_err();
        let fits = match expected.split_once('…') {
            Some((start, _)) => found.starts_with(start),
            None => found == expected,
        };
        assert!(fits, "expected {expected}\n   found {found}");
    }
}
