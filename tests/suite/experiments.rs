//! Every experiment file of the repository runs at its smallest size, and what it leaves holds together.

use std::path::{Path, PathBuf};

use crate::command::grapevine;
use grapevine::experiment::read_manifest;

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
