//! The program as a user starts it.

use std::fs;
use std::path::Path;
use std::process::Command;

/// All six strategies on a small graph, with modelled compute.
pub(crate) const EXPERIMENT: &str = r#"name = "small"
seeds = [0, 1]
[dataset]
synthetic = { kind = "sbm", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }
split = { train = 0.5, val = 0.2 }
[model]
kind = "gcn"
hidden = 8
[training]
epochs = 6
target_accuracy = 0.3
[partition]
method = "random"
workers = 3
[network]
preset = "ethernet-1g"
[compute]
timing = { profile = "a100" }
[[strategy]]
kind = "full"
[[strategy]]
kind = "isolated"
[[strategy]]
kind = "fixed"
ratio = 8
[[strategy]]
kind = "varco"
[[strategy]]
kind = "grappa"
repartition_every = 2
[[strategy]]
kind = "retexo"
rounds_per_layer = 3
[statistics]
minimum_seeds = 2
[[claim]]
id = "isolated-bytes"
source = "by construction"
statement = "isolated sends less than full"
measure = "payload_bytes"
compare = { strategy = "isolated", to = "full", times_less = 1 }
"#;

/// What a call of the program left.
pub(crate) struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("not one JSON document: {error}\n{}", self.stdout))
    }

    /// Asserts the exit code, and shows what was said if it is another.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs the program in `folder`.
pub(crate) fn grapevine(folder: &Path, arguments: &[&str]) -> Ran {
    grapevine_with(folder, arguments, &[])
}

/// Runs the program in `folder` with environment variables.
pub(crate) fn grapevine_with(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_grapevine"))
        .current_dir(folder)
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .expect("the program was built for these tests");
    Ran {
        code: output.status.code().expect("it was not killed"),
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A new folder with an experiment in `x.toml`.
pub(crate) fn folder_with(experiment: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("x.toml"), experiment).expect("it can be written");
    folder
}

#[test]
fn more_steps_than_equal_parts_would_have_are_said() {
    // Random parts have 200 nodes each, of which about 100 train.
    let text = |size: usize| {
        let batch = format!("epochs = 1\nbatch = {{ size = {size}, fanouts = [3, 3] }}");
        let all = EXPERIMENT.split("[[strategy]]").next().unwrap_or_default();
        all.replace("epochs = 6", &batch) + "[[strategy]]\nkind = \"distdgl\"\n"
    };
    for (size, expected) in [(100, true), (300, false)] {
        let folder = folder_with(&text(size));
        for command in ["run", "project"] {
            let ran = grapevine(folder.path(), &[command, "x.toml"]);
            assert_eq!(ran.code, 0, "{}", ran.stderr);
            let said = "distdgl: up to 2 steps an epoch where parts with equally many training nodes would have 1";
            let all = ran.stdout + &ran.stderr;
            assert_eq!(all.contains(said), expected, "{command} {size}: {all}");
        }
    }
}
