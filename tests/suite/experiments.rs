//! Every experiment file of the repository runs at its smallest size, and what it leaves holds together.

use std::path::{Path, PathBuf};

use grapevine::experiment::read_manifest;
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
