//! The command that asks on a network of the reader's what the page tells of its own.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::series::Entrant;
use super::story;

/// Flags of the reader's own run, each with a value, that this one keeps: which data, how large,
/// with what changed. Others say where results go and how they come about.
const KEPT: [&str; 4] = ["--scale", "--data", "--memory", "--set"];

/// A question, and the command that answers it.
#[derive(Debug, Serialize)]
pub(super) struct Recipe {
    /// The question.
    pub question: String,
    /// What to type into a shell.
    pub command: String,
}

/// Whether the fastest strategy is as fast as another; none with fewer than two strategies. Times
/// that are equal pass, and the words say so.
pub(super) fn recipe(cells: &[Entrant], manifest: &Value) -> Option<Recipe> {
    let [fast, slow] = story::rivals(cells)?;
    // A string in JSON is one in TOML, too.
    let quoted = |text: &str| Value::from(text).to_string();
    let claim = format!(
        "claim=[{{ id = \"as-fast\", source = \"ours\", statement = {}, measure = \"simulated_seconds\", \
         compare = {{ strategy = {}, to = {}, times_less = 1 }} }}]",
        quoted(&format!("{fast} takes no longer than {slow}")),
        quoted(fast),
        quoted(slow)
    );
    let network = "network={ link = { bandwidth = \"100Mbps\", latency = \"5ms\" } }";
    let mut sets = vec![network, &claim];
    let sweep = without_networks(&manifest["config"]["sweep"]);
    sets.extend(sweep.as_deref());
    let seeds = enough_seeds(manifest);
    sets.extend(seeds.as_deref());
    let typed = Typed::of(&manifest["command"]);
    let file = typed.file.unwrap_or("FILE.toml");
    let mut lines = vec![vec![
        "grapevine",
        "run",
        file,
        "--out",
        "results/my-network",
    ]];
    let replaced = |value: &str| sets.iter().any(|set| section(set) == section(value));
    let kept = typed.kept.into_iter();
    let kept = kept.filter(|(flag, value)| *flag != "--set" || !replaced(value));
    lines.extend(kept.map(|(flag, value)| vec![flag, value]));
    lines.extend(sets.iter().map(|set| vec!["--set", *set]));
    let lines: Result<Vec<String>, _> = lines.into_iter().map(shlex::try_join).collect();
    Some(Recipe {
        question: format!("Is {fast} at least as fast as {slow} on your network?"),
        command: lines.ok()?.join(" \\\n    "),
    })
}

/// As many seeds as a verdict needs, where the experiment has fewer.
fn enough_seeds(manifest: &Value) -> Option<String> {
    let seeds = manifest["config"]["seeds"].as_array()?;
    let needed = manifest["statistics"]["minimum_seeds"].as_u64()?;
    let all: Vec<u64> = (0..needed).collect();
    (seeds.len() < all.len()).then(|| format!("seeds={all:?}"))
}

/// The sweep without what it says of networks, which it would put in place of the reader's; none if
/// it says nothing of them.
fn without_networks(sweep: &Value) -> Option<String> {
    let sweep = sweep.as_object()?;
    let mut rest = sweep.clone();
    rest.retain(|key, _| section(key) != "network");
    if rest.len() == sweep.len() {
        return None;
    }
    // JSON has null, which TOML has not; a sweep that was read has none.
    let rest: toml::Value = serde_json::from_value(Value::Object(rest)).ok()?;
    Some(format!("sweep={rest}"))
}

/// The first part of the key that a `--set` changes.
fn section(set: &str) -> &str {
    let key = set.split(['=', '.']).next().unwrap_or_default();
    key.trim().trim_matches(['"', '\''])
}

/// What of a command line holds for another run, too.
#[derive(Debug, Default, PartialEq)]
struct Typed<'a> {
    /// The experiment file.
    file: Option<&'a str>,
    /// Flags that are kept, with their values.
    kept: Vec<(&'static str, &'a str)>,
}

impl<'a> Typed<'a> {
    fn of(command: &'a Value) -> Self {
        let mut words = (command.as_array().into_iter().flatten()).filter_map(Value::as_str);
        let mut typed = Self::default();
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            if let Some(flag) = KEPT.into_iter().find(|flag| *flag == name) {
                let value = value.or_else(|| words.next());
                typed.kept.extend(value.map(|value| (flag, value)));
            } else if Path::new(word).extension().is_some_and(|end| end == "toml") {
                typed.file.get_or_insert(word);
            }
        }
        typed
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::experiment::rows::{Measured, RunRow};
    use crate::report::series;

    fn asked(manifest: &Value) -> Recipe {
        let run = |strategy: &str, seconds: f64| RunRow {
            cell: strategy.into(),
            strategy: strategy.into(),
            workers: 4,
            ..RunRow::finished(Measured {
                simulated_seconds: seconds,
                ..Measured::default()
            })
        };
        let runs = [run("full", 2.0), run("bns", 1.0)];
        recipe(&series::cells(&runs, &[]), manifest).unwrap()
    }

    #[test]
    fn what_the_reader_typed_stays_but_for_what_is_asked_anew() {
        let mut manifest = json!({ "command": [
            "grapevine", "--data=there", "run", "--set", "dataset.path=x.toml", "mine.toml",
            "--set", "network.preset=wan", "--scale", "small", "--set=seeds=[0, 1]",
            "--set", "claim=[]", "--set", "sweep.workers=[2, 4]", "--out", "old", "--resume",
        ]});
        let command = asked(&manifest).command;
        let lines: Vec<&str> = command.lines().map(str::trim).collect();
        let expected = [
            "grapevine run mine.toml --out results/my-network \\",
            "--data there \\",
            "--set 'dataset.path=x.toml' \\",
            "--scale small \\",
            "--set 'seeds=[0, 1]' \\",
            "--set 'sweep.workers=[2, 4]' \\",
        ];
        assert_eq!(lines[..6], expected, "{command}");
        assert_eq!(lines.len(), 8, "{command}");
        assert!(lines[6].contains("network={ link"), "{command}");
        assert!(
            lines[7].contains("bns takes no longer than full"),
            "{command}"
        );
        // What is swept over networks goes, and so does what the reader said of the sweep.
        manifest["config"]["sweep"] = json!({ "network.preset": ["wan", "lte"] });
        let command = asked(&manifest).command;
        assert!(!command.contains("sweep.workers"), "{command}");
        assert!(command.contains("sweep={}"), "{command}");
        // The rest of the sweep stays, and seeds become enough for a verdict.
        manifest["config"] = json!({
            "sweep": { "partition.workers": [4, 8], "network.preset": ["wan", "lte"], "dataset": [{ "name": "cora" }] },
            "seeds": [7],
        });
        manifest["statistics"]["minimum_seeds"] = json!(3);
        let command = asked(&manifest).command;
        let sweep = r#"sweep={ "partition.workers" = [4, 8], dataset = [{ name = "cora" }] }"#;
        assert!(command.contains(sweep), "{command}");
        assert!(
            command.contains("seeds=[0, 1, 2]") && !command.contains("seeds=[0, 1]"),
            "{command}"
        );
    }

    #[test]
    fn without_a_command_there_is_a_file_to_be_named() {
        let command = asked(&Value::Null).command;
        assert!(
            command.starts_with("grapevine run FILE.toml --out"),
            "{command}"
        );
    }
}
