//! Graphs that are larger than memory are divided within what `--memory` says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::grapevine;

/// What is written below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("it is below");
                found.insert(name.to_owned(), fs::read(&path).expect("a file"));
            }
        }
    }
    found
}

/// Exit code and what was said, after a line of the shell that limits the process.
fn limited(folder: &Path, limit: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let line = format!("{limit}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &line, env!("CARGO_BIN_EXE_grapevine")])
        .args(arguments)
        .env("RAYON_NUM_THREADS", "2")
        .current_dir(folder)
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), said)
}

#[test]
fn the_program_writes_the_same_shards_and_statistics_within_any_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = "{ kind = \"rmat\", scale = 10, edge_factor = 32, classes = 4, features = 8 }";
    let divide = |out: &str, memory: &[&str]| {
        let mut arguments = vec!["partition", graph, "--workers", "3", "--method", "fennel"];
        arguments.extend(["--shards", "--out", out]);
        arguments.extend(memory);
        let ran = grapevine(folder.path(), &arguments).expect(0);
        (ran.stdout, files(&folder.path().join(out)))
    };
    let expected = divide("held", &[]);
    for memory in ["192KB", "2MB", "1GB"] {
        let found = divide(memory, &["--memory", memory]);
        assert!(found == expected, "{memory}");
    }
    // It goes on with what is there.
    fs::remove_file(folder.path().join("2MB/meta.json")).expect("it is there");
    fs::remove_file(folder.path().join("2MB/part-1/indices.npy")).expect("it is there");
    let begun: serde_json::Value =
        serde_json::from_slice(&expected.1[Path::new("meta.json")]).expect("JSON");
    let begun = serde_json::json!({ "content": begun["content"] });
    fs::write(folder.path().join("2MB/begun.json"), begun.to_string()).expect("written");
    assert!(divide("2MB", &["--memory", "2MB"]) == expected);
}

#[test]
fn too_little_memory_is_said_before_anything_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let divide = |scale: u32, method: &str, memory: &str| {
        let graph = format!("{{ kind = \"rmat\", scale = {scale}, classes = 4, features = 2 }}");
        let arguments = ["partition", &graph, "--workers", "3", "--method", method];
        let rest = ["--shards", "--out", "out", "--memory", memory];
        let ran = grapevine(folder.path(), &[&arguments[..], &rest].concat()).expect(2);
        assert!(files(&folder.path().join("out")).is_empty());
        ran.stderr
    };
    let said = divide(10, "ldg", "64KB");
    assert!(
        said.contains("--memory: 64000 bytes are too few: of 1024 nodes 139264 are needed"),
        "{said}"
    );
    let said = divide(17, "metis", "90MB");
    assert!(
        said.contains(
            "METIS, which holds the whole graph (\"ldg\" and \"fennel\" do not), needs at least"
        ),
        "{said}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_graph_is_divided_in_less_memory_than_it_takes_to_hold() {
    let folder = tempfile::tempdir().expect("a folder");
    // 8 million draws: 64 MB as they are drawn, and as much again as rows.
    let graph = "{ kind = \"rmat\", scale = 15, edge_factor = 256, classes = 2, features = 2 }";
    let divide = |more: &[&str]| {
        let arguments = ["partition", graph, "--workers", "4", "--method", "ldg"];
        let rest = ["--shards", "--out", "out"];
        // Memory of its own, in kilobytes: files that are mapped do not count.
        limited(
            folder.path(),
            "ulimit -d 100000",
            &[&arguments[..], &rest, more].concat(),
        )
    };
    let (code, said) = divide(&[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("what `ulimit -d` leaves"), "{said}");
    let (code, said) = divide(&["--memory", "24MB"]);
    assert_eq!(code, Some(0), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let graph = "{ kind = \"rmat\", scale = 12, edge_factor = 32, classes = 2, features = 2 }";
    let arguments = ["partition", graph, "--workers", "2", "--method", "ldg"];
    let rest = ["--shards", "--out", "out", "--memory", "2MB"];
    // No file longer than 100 blocks of 512 bytes, and an error in place of a signal.
    let limit = "trap '' XFSZ; ulimit -f 100";
    let (code, said) = limited(folder.path(), limit, &[&arguments[..], &rest].concat());
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("cannot write out: "), "{said}");
    assert!(files(&folder.path().join("out")).is_empty());
}
