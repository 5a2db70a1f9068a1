//! Every experiment file of the repository runs at its smallest size, and what it leaves holds together.

use std::path::{Path, PathBuf};

use grapevine::cli::{ExperimentArgs, read_experiment};
use grapevine::experiment::read_manifest;
use grapevine::strategies::Registry;
use sha2::{Digest, Sha256};

use crate::command::grapevine;

/// Experiment files below a folder; those of estimator studies and of flows are others, and have no sizes.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("it is a folder");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    paths.sort();
    paths
        .into_iter()
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => files(&path),
            Some(extension) if extension == "toml" => vec![path],
            _ => Vec::new(),
        })
        .filter(|path| {
            let text = std::fs::read_to_string(path).expect("it is text");
            text.contains("[[strategy]]")
        })
        .collect()
}

#[test]
fn every_experiment_file_runs_at_smoke_size_and_is_verified() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let results = tempfile::tempdir().expect("a folder");
    let files = files(&root.join("experiments"));
    assert!(files.len() >= 18, "{files:?}");
    for file in files {
        let name = file
            .strip_prefix(root)
            .expect("it is below")
            .to_string_lossy()
            .into_owned();
        let out = results.path().join(name.replace('/', "-"));
        let out = out.to_string_lossy();
        let arguments = ["run", &name, "--scale", "smoke", "--quiet", "--out", &out];
        grapevine(root, &arguments).expect(0);
        let ran = grapevine(root, &["verify", &out]).expect(0);
        assert!(
            !ran.stderr.contains("not checked"),
            "{name}: {}",
            ran.stderr
        );
        // A figure that the file asks for is there, or has nothing to show at any size.
        let manifest = read_manifest(Path::new(&*out)).expect("it was written");
        for figure in manifest["figures"].as_array().expect("a list") {
            let kind = figure["kind"].as_str().expect("a name");
            let drawn = Path::new(&*out)
                .join("figures")
                .join(kind)
                .with_extension("svg");
            assert!(drawn.exists(), "{name}: {kind}");
        }
    }
}

#[test]
fn kept_tables_are_those_that_their_manifests_tell() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("results/reference");
    let folders = folders_with(&kept, "manifest.json");
    assert!(folders.len() > 20, "{folders:?}");
    for folder in folders {
        let manifest = read_manifest(&folder).expect("it is whole");
        for table in ["runs.csv", "claims.csv"] {
            let bytes = std::fs::read(folder.join(table)).expect("it is kept");
            let hash = format!("{:x}", Sha256::digest(bytes));
            let said = &manifest["tables"][table];
            assert_eq!(said, hash.as_str(), "{}: {table}", folder.display());
        }
    }
}

/// What a manifest says was run can be run again: at every size, what is resolved is read as a file of its own.
#[test]
fn what_is_resolved_is_an_experiment_file_at_every_size() {
    let mut resolved = 0;
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments")) {
        let text = std::fs::read_to_string(&file).expect("it is text");
        let table: toml::Table = toml::from_str(&text).expect("it is TOML");
        let sizes = table.get("scale").and_then(toml::Value::as_table);
        let sizes = sizes.into_iter().flat_map(toml::Table::keys);
        for size in sizes.map(String::as_str).chain(["paper"]) {
            let first = match resolve(&file, size, &[]) {
                // The size of the paper, which can be projected alone.
                Err(error) if error.contains("more than 68719476736 values") => continue,
                first => {
                    first.unwrap_or_else(|error| panic!("{} at {size}: {error}", file.display()))
                }
            };
            let folder = tempfile::tempdir().expect("a folder");
            let again = folder.path().join("again.toml");
            std::fs::write(&again, &first).expect("disk");
            let again = resolve(&again, "paper", &[]);
            assert_eq!(again, Ok(first), "{} at {size}", file.display());
            resolved += 1;
        }
    }
    assert!(resolved > 100, "{resolved}");
}

/// An experiment at a size as a file that leaves nothing to defaults, or what is wrong with it.
fn resolve(file: &Path, size: &str, sets: &[&str]) -> Result<String, String> {
    let args = ExperimentArgs {
        scale: size.to_owned(),
        sets: sets.iter().map(|&set| set.to_owned()).collect(),
        ..ExperimentArgs::of(file)
    };
    let experiment = read_experiment(&args, &Registry::builtin());
    let experiment = experiment.map_err(|error| error.to_string())?;
    Ok(experiment.resolved_text())
}

/// What was run is what its file says today, in the words of this program, or results/README.md says that it is older: a page
/// may not speak of runs that are not there.
#[test]
fn kept_results_are_of_their_files_or_said_to_be_older() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("results/README.md")).expect("a page");
    let older = page.split_once("are older than the program:");
    let older = older.and_then(|(_, rest)| rest.split_once("\n## "));
    let older = names(older.expect("the list of them").0);
    let kept = root.join("results/reference");
    let mut other = Vec::new();
    for folder in folders_with(&kept, "manifest.json") {
        let name = folder.strip_prefix(&kept).expect("it is within");
        let name = name.to_str().expect("it is text");
        let manifest = read_manifest(&folder).expect("it is whole");
        let run = tempfile::tempdir().expect("a folder");
        let run = run.path().join("run.toml");
        std::fs::write(&run, manifest["config_toml"].as_str().expect("a file")).expect("disk");
        let file = name.split_once('@').map_or(name, |(file, _)| file);
        let file = root.join(format!("experiments/{file}.toml"));
        let scale = manifest["command"].as_array().expect("what was typed");
        let scale = scale.iter().skip_while(|word| *word != "--scale").nth(1);
        let scale = scale.and_then(|scale| scale.as_str()).unwrap_or("paper");
        let settings = |file: &Path, size: &str| {
            // With a change, a key that no cell has a use for is let pass, as in a size of the file.
            let text = resolve(file, size, &["name=\"kept\""])?;
            let table: Result<toml::Table, _> = toml::from_str(&text);
            let mut table = table.map_err(|error| error.to_string())?;
            // Words, and what is asked of runs afterwards.
            for key in ["name", "description", "claim", "figure", "statistics"] {
                table.remove(key);
            }
            Ok::<_, String>(table)
        };
        // A kept file may have a key that is no more: another file then, too.
        let (was, is) = (settings(&run, "paper"), settings(&file, scale));
        if was.is_err() || was != is {
            other.push(name.to_owned());
        }
    }
    other.retain(|name| !older.iter().any(|older| older == name));
    assert!(other.is_empty(), "of other files than today's: {other:?}");
}

/// Names of experiments between backticks, such as `compare/{arxiv, graphs@facebook}`, each by itself.
fn names(text: &str) -> Vec<String> {
    let words = text.split('`').skip(1).step_by(2);
    words
        .flat_map(|word| match word.split_once('{') {
            Some((folder, rest)) => {
                let names = rest.trim_end_matches('}').split(',');
                names
                    .map(|name| format!("{folder}{}", name.trim()))
                    .collect()
            }
            None => vec![word.to_owned()],
        })
        .collect()
}

/// What `scripts/results scale/…` keeps is what the program projects, but for last digits of the
/// processor's own logarithms and powers.
#[test]
fn kept_projections_are_those_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = folders_with(&root.join("results/reference/scale"), "projection.csv");
    assert!(kept.len() >= 8, "{kept:?}");
    // The others take longer.
    let quick = [
        "grappa-size@published",
        "retexo-bytes",
        "trillion",
        "trillion@thousand",
    ];
    for name in quick {
        let folder = kept
            .iter()
            .find(|folder| folder.ends_with(name))
            .expect(name);
        let (file, size) = name.split_once('@').unwrap_or((name, "paper"));
        let file = root.join(format!("experiments/scale/{file}.toml"));
        let file = file.to_str().expect("a path");
        let out = tempfile::tempdir().expect("a folder");
        let arguments = ["project", file, "--scale", size, "--out", "out", "--quiet"];
        grapevine(out.path(), &arguments).expect(0);
        let read = |folder: &Path| {
            let text = std::fs::read_to_string(folder.join("projection.csv"));
            text.expect("a table")
        };
        let (was, is) = (read(folder), read(&out.path().join("out")));
        assert_eq!(was.lines().count(), is.lines().count(), "{name}");
        for (was, is) in was.lines().zip(is.lines()) {
            let (was, is): (Vec<_>, Vec<_>) = (was.split(',').collect(), is.split(',').collect());
            assert_eq!(was.len(), is.len(), "{name}");
            for (was, is) in was.iter().zip(&is) {
                match (was.parse::<f64>(), is.parse::<f64>()) {
                    (Ok(was), Ok(is)) => {
                        assert!(
                            (was - is).abs() <= 1e-6 * was.abs(),
                            "{name}: {was} and {is}"
                        );
                    }
                    _ => assert_eq!(was, is, "{name}"),
                }
            }
        }
    }
}

/// The folders within this one that hold a file of this name.
fn folders_with(folder: &Path, name: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(folders_with(&path, name));
        }
    }
    if folder.join(name).is_file() {
        found.push(folder.to_owned());
    }
    found
}

/// The tables and figures of the kept results that follow from their runs are what the program
/// makes of them. Curves need the epochs, which are not kept.
#[test]
fn kept_tables_and_figures_are_those_of_the_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let reference = root.join("results/reference");
    let kept = folders_with(&reference, "runs.csv");
    assert!(kept.len() >= 30, "{kept:?}");
    let follow = [
        "pareto",
        "heatmap",
        "bytes-by-kind",
        "scaling",
        "time-breakdown",
    ];
    let mut compared = 0;
    for folder in kept {
        let name = folder.strip_prefix(&reference).expect("below it");
        let name = name.to_str().expect("a path");
        let (file, size) = name.split_once('@').unwrap_or((name, ""));
        let file = root.join(format!("experiments/{file}.toml"));
        let text = std::fs::read_to_string(&file).expect("an experiment");
        // As `scripts/results` takes the size.
        let size = match size {
            "" if text.contains("\n[scale.medium") => "medium",
            "" => "paper",
            size => size,
        };
        let copy = tempfile::tempdir().expect("a folder");
        let runs = ["manifest.json", "runs.csv"].map(str::to_owned);
        let figures = follow.map(|kind| format!("figures/{kind}.svg"));
        std::fs::create_dir(copy.path().join("figures")).expect("it can be made");
        for kept in runs.iter().chain(&figures) {
            if folder.join(kept).exists() {
                std::fs::copy(folder.join(kept), copy.path().join(kept)).expect("it can be copied");
            }
        }
        let file = file.to_str().expect("a path");
        let arguments = ["report", ".", "--claims", file, "--scale", size];
        grapevine(copy.path(), &arguments).expect(0);
        for made in ["tables", "figures"].map(|part| copy.path().join(part)) {
            for made in std::fs::read_dir(made).expect("a folder") {
                let made = made.expect("it can be read").path();
                let place = folder.join(made.strip_prefix(copy.path()).expect("below it"));
                // The kept ones have no LaTeX, and tables of targets only where there are any.
                let Ok(was) = std::fs::read_to_string(&place) else {
                    continue;
                };
                let is = std::fs::read_to_string(&made).expect("text");
                assert!(was == is, "{} is of another program", place.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 90, "{compared}");
}
