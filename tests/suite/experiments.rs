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
