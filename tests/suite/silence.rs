//! Nothing wrong passes in silence: what was read is said, what cannot be is refused before it begins, what cannot be written is an error.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use grapevine::experiment::Tables;
use grapevine::experiment::rows::{Measured, RunRow};

use crate::command::{EXPERIMENT, folder_with, grapevine};

const DATA: &str = r#"synthetic = { kind = "sbm", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }
split = { train = 0.5, val = 0.2 }"#;

/// The experiment on a CSV graph of 60 nodes in a folder of its own, without a header, with a node without a label, an isolated one,
/// and an edge three times.
fn csv_experiment(keys: &str) -> tempfile::TempDir {
    let data =
        format!("path = \"d\"\nformat = \"csv\"\n{keys}\nsplit = {{ train = 0.5, val = 0.2 }}");
    let folder = folder_with(&EXPERIMENT.replace(DATA, &data));
    let at = |name: &str| folder.path().join("d").join(name);
    fs::create_dir(folder.path().join("d")).unwrap();
    let mut edges = String::from("1,2\n2,1\n1,2\n3,3\n");
    let mut labels = String::new();
    let mut features = String::from("id,a,b\n");
    for node in 1..=60 {
        let label = if node == 7 {
            String::new()
        } else {
            (node % 2).to_string()
        };
        labels.push_str(&format!("{node},{label}\n"));
        features.push_str(&format!("{node},{},0.5\n", node % 2));
        if node > 2 && node < 60 {
            edges.push_str(&format!("{node},{}\n", node - 1));
        }
    }
    for (name, text) in [
        ("_edges.csv", edges),
        ("_target.csv", labels),
        ("x.csv", features),
    ] {
        fs::write(at(name), text).unwrap();
    }
    folder
}

#[test]
fn what_was_read_is_said_once_and_kept_in_the_manifest() {
    let folder = csv_experiment("");
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    for said in [
        "d: 60 nodes, 58 edges (of 61 listed pairs: 1 repeated and 1 self-loops dropped, 1 the other way round), 60 features, \
         2 classes; 1 unlabelled, 1 isolated",
        "`_target.csv` has no header",
        "an identity matrix",
        "not read from its folder: x.csv",
    ] {
        assert_eq!(
            ran.stderr.matches(said).count(),
            1,
            "`{said}` in: {}",
            ran.stderr
        );
    }
    let manifest = fs::read_to_string(folder.path().join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    let data = &manifest["data"];
    assert_eq!(data["name"], "d");
    assert_eq!(
        (&data["unlabelled"], &data["isolated"]),
        (&1.into(), &1.into())
    );
    assert_eq!(
        (&data["listed"]["repeated"], &data["listed"]["self_loops"]),
        (&1.into(), &1.into())
    );
    assert_eq!(manifest["data_sets"].as_array().map(Vec::len), Some(1));

    let folder = csv_experiment("features = \"x.csv\"");
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    assert!(
        ran.stderr.contains("2 features, 2 classes") && !ran.stderr.contains("not read"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_feature_that_is_not_a_number_is_refused_with_file_line_and_column() {
    let folder = csv_experiment("features = \"x.csv\"");
    let path = folder.path().join("d/x.csv");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("\n5,1,0.5\n", "\n5,1,nan\n");
    fs::write(&path, text).unwrap();
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(2);
    assert!(
        ran.stderr
            .contains("x.csv:6: column 3: expected a number, and `nan` is not finite"),
        "{}",
        ran.stderr
    );
    assert!(!folder.path().join("out").exists());
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_is_taken() {
    let folder = folder_with(EXPERIMENT);
    let synthetic = |what: &str| format!("dataset.synthetic={what}");
    for (set, says) in [
        (
            synthetic(
                "{ kind = \"sbm\", nodes = 60, classes = 4, features = 1_000_000_000, degree_within = 8, degree_between = 2 }",
            ),
            "dataset.synthetic needs at least 240 GB",
        ),
        (
            synthetic("{ kind = \"rmat\", scale = 31, classes = 4, features = 8 }"),
            "dataset.synthetic needs at least",
        ),
        (
            "training.epochs=1_000_000_000".to_owned(),
            "the record of 1000000000 epochs needs at least",
        ),
    ] {
        let ran = grapevine(
            folder.path(),
            &["--memory", "8GB", "run", "x.toml", "--set", &set],
        )
        .expect(2);
        assert!(
            ran.stderr.contains(says) && ran.stderr.contains("of memory are left ("),
            "{says}: {}",
            ran.stderr
        );
    }
    let wide = [
        "run",
        "x.toml",
        "--set",
        "model.hidden=65536",
        "--set",
        "model.layers=3",
        "--memory",
        "2GB",
    ];
    let ran = grapevine(folder.path(), &wide).expect(2);
    for says in [
        "model.hidden=65536",
        "65536 hidden columns on 3 workers needs at least",
        "--memory",
    ] {
        assert!(ran.stderr.contains(says), "{}", ran.stderr);
    }
    let ran = grapevine(folder.path(), &["--memory", "lots", "list", "datasets"]).expect(2);
    assert!(ran.stderr.contains("--memory"), "{}", ran.stderr);
    assert!(!folder.path().join("results").exists());
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let folder = folder_with(EXPERIMENT);
    for arguments in [
        &["run", "x.toml", "--json", "-q", "--out", "out"][..],
        &["run", "x.toml", "-q", "--out", "out"],
        &["project", "x.toml", "-q"],
        &["list", "strategies"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_grapevine"))
            .current_dir(folder.path())
            .args(arguments)
            .stdout(Stdio::from(
                fs::OpenOptions::new().write(true).open(full).unwrap(),
            ))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{arguments:?}: {said}");
        let of_ours = arguments != ["--help"];
        assert!(
            !of_ours || said.contains("error: cannot write to standard output"),
            "{arguments:?}: {said}"
        );
    }
}

/// A folder with two results of one epoch, `a` and `b`.
fn two_runs() -> tempfile::TempDir {
    let folder = folder_with(EXPERIMENT);
    for name in ["a", "b"] {
        let short = ["-q", "--set", "training.epochs=1", "--out", name];
        let arguments = [&["run", "x.toml"], &short[..]].concat();
        grapevine(folder.path(), &arguments).expect(0);
    }
    folder
}

#[test]
fn a_manifest_that_is_none_is_an_error() {
    let folder = two_runs();
    grapevine(folder.path(), &["compare", "a", "b"]).expect(0);
    for (text, says) in [
        ("{}", "no manifest: it has not the `name`"),
        ("[1, 2]", "no manifest"),
        (
            "{\"name\": \"small\"}",
            "no manifest: it has not its `config`",
        ),
        ("{", "manifest.json: "),
    ] {
        fs::write(folder.path().join("b/manifest.json"), text).unwrap();
        for command in [
            &["compare", "a", "b"][..],
            &["verify", "b"],
            &["report", "b"],
        ] {
            let ran = grapevine(folder.path(), command).expect(2);
            assert!(
                ran.stderr.contains("b is not a result folder") && ran.stderr.contains(says),
                "{command:?}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn measured_runs_say_how_busy_the_machine_was_and_modelled_ones_do_not() {
    let folder = folder_with(EXPERIMENT);
    let short = ["run", "x.toml", "-q", "--set", "training.epochs=2", "--out"];
    let run = |out: &str, more: &[&str]| {
        let arguments = [&short[..], &[out], more].concat();
        grapevine(folder.path(), &arguments).expect(0);
        Tables::read(&folder.path().join(out)).unwrap().runs
    };
    let all = |runs: &[RunRow], holds: fn(&Measured) -> bool| {
        !runs.is_empty()
            && runs
                .iter()
                .all(|run| run.measured.as_ref().is_some_and(holds))
    };
    let modelled = run("modelled", &[]);
    assert!(all(&modelled, |run| run.calibration_spread.is_none()
        && !run.is_noisy()));
    let measured = run("measured", &["--set", "compute={}"]);
    let slowed = |run: &Measured| run.calibration_spread.is_some_and(|spread| spread >= 1.0);
    assert!(all(&measured, slowed));
    grapevine(folder.path(), &["verify", "measured"]).expect(0);
}

#[test]
fn a_table_of_runs_that_is_none_is_no_result_without_runs() {
    let folder = two_runs();
    fs::remove_file(folder.path().join("b/runs.parquet")).unwrap();
    grapevine(folder.path(), &["compare", "a", "b"]).expect(0);
    let path = folder.path().join("b/runs.csv");
    let text = fs::read_to_string(&path).unwrap();
    for none in ["", "a,b\n1,2\n"] {
        fs::write(&path, none).unwrap();
        let ran = grapevine(folder.path(), &["compare", "a", "b"]).expect(2);
        assert!(
            ran.stderr.contains("cannot read b/runs.csv: no"),
            "{}",
            ran.stderr
        );
    }
    let header = text.lines().next().unwrap();
    let seed = header.split(',').position(|name| name == "seed").unwrap();
    let changed: Vec<String> = (text.lines().enumerate())
        .map(|(line, text)| {
            let mut cells: Vec<&str> = text.split(',').collect();
            if line == 1 {
                cells[seed] = "x";
            }
            cells.join(",")
        })
        .collect();
    fs::write(&path, changed.join("\n")).unwrap();
    let ran = grapevine(folder.path(), &["compare", "a", "b"]).expect(2);
    assert!(
        ran.stderr.contains("cannot read b/runs.csv") && ran.stderr.contains("column 'seed'"),
        "{}",
        ran.stderr
    );
}
