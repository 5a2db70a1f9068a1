//! Traces: what `run --trace` leaves behind.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use grapevine::experiment::Tables;
use grapevine::experiment::rows::Activity;

const SHORT: [&str; 4] = ["--quiet", "--out", "out", "--set"];

fn run(folder: &std::path::Path, more: &[&str]) {
    let mut arguments = vec!["run", "x.toml"];
    arguments.extend(SHORT);
    arguments.push("training.epochs=4");
    arguments.extend(more);
    grapevine(folder, &arguments).expect(0);
}

#[test]
fn every_run_leaves_a_trace_whose_tracks_do_not_overlap() {
    let folder = folder_with(EXPERIMENT);
    let out = folder.path().join("out");
    run(folder.path(), &["--trace", "--trace-epochs", "2"]);
    let mut names: Vec<String> = fs::read_dir(out.join("traces"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let expected = ["fixed", "full", "grappa", "isolated", "retexo", "varco"]
        .iter()
        .flat_map(|cell| [format!("{cell}-0.json"), format!("{cell}-1.json")]);
    assert_eq!(names, expected.collect::<Vec<_>>());
    for name in names {
        let text = fs::read_to_string(out.join("traces").join(&name)).unwrap();
        let trace: Value = serde_json::from_str(&text).unwrap();
        let mut tracks: BTreeMap<(u64, u64), f64> = BTreeMap::new();
        let mut links: BTreeMap<String, i64> = BTreeMap::new();
        let mut spans: Vec<&Value> = Vec::new();
        for event in trace["traceEvents"].as_array().unwrap() {
            match event["ph"].as_str().unwrap() {
                "X" => spans.push(event),
                "C" => {
                    let count = event["args"]["messages"].as_i64().unwrap();
                    assert!(count >= 0, "{name}: {event}");
                    links.insert(event["name"].as_str().unwrap().to_owned(), count);
                }
                "M" => {}
                other => panic!("{name}: {other}"),
            }
        }
        assert!(spans.iter().any(|span| span["name"] == "compute"), "{name}");
        assert!(
            spans
                .iter()
                .any(|span| span["name"] == "parameter_gradient to 1"),
            "{name}"
        );
        assert!(
            spans
                .iter()
                .all(|span| span["args"]["epoch"].as_u64() < Some(2)),
            "{name}"
        );
        spans.sort_by(|a, b| {
            a["ts"]
                .as_f64()
                .unwrap()
                .total_cmp(&b["ts"].as_f64().unwrap())
        });
        for span in spans {
            let number = |key: &str| span[key].as_f64().unwrap();
            let track = (span["pid"].as_u64().unwrap(), span["tid"].as_u64().unwrap());
            let busy = tracks.entry(track).or_insert(0.0);
            assert!(number("ts") >= *busy - 1e-6, "{name}: {span}");
            *busy = number("ts") + number("dur");
        }
        assert_eq!(links.len(), 6, "{name}: three workers, two directions");
        assert!(links.values().all(|&count| count == 0), "{name}: {links:?}");
    }
}

#[test]
fn the_timeline_is_of_the_first_seed_and_goes_with_the_next_run() {
    let folder = folder_with(EXPERIMENT);
    let out = folder.path().join("out");
    run(folder.path(), &["--trace"]);
    let tables = Tables::read(&out).unwrap();
    assert!(
        tables
            .timeline
            .iter()
            .all(|row| row.seed == 0 && row.epoch < 3)
    );
    assert!(tables.timeline.iter().any(|row| row.epoch == 2));
    for run in tables.runs.iter().filter(|run| run.seed == 0) {
        for worker in 0..run.workers {
            let mine = |activity| {
                let rows = tables.timeline.iter();
                rows.filter(|row| row.cell == run.cell && row.worker == worker)
                    .filter(|row| row.activity == activity)
                    .count()
            };
            assert!(
                mine(Activity::Compute) > 0 && mine(Activity::Send) > 0,
                "{}",
                run.cell
            );
        }
    }
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    let figure = out.join("figures/timeline.svg");
    let drawn = fs::read(&figure).unwrap();
    fs::remove_file(&figure).unwrap();
    grapevine(folder.path(), &["report", "out"]).expect(0);
    assert_eq!(fs::read(&figure).unwrap(), drawn);

    run(folder.path(), &[]);
    for gone in ["figures/timeline.svg", "timeline.csv", "traces/full-0.json"] {
        assert!(!out.join(gone).exists(), "{gone}");
    }
}

#[test]
fn a_trace_changes_nothing_else() {
    let folder = folder_with(EXPERIMENT);
    run(folder.path(), &["--trace"]);
    let read = || fs::read(folder.path().join("out/traffic.csv")).unwrap();
    let simulated = || {
        let tables = Tables::read(&folder.path().join("out")).unwrap();
        tables
            .runs
            .iter()
            .map(|run| run.measured.unwrap().simulated_seconds.to_bits())
            .collect::<Vec<_>>()
    };
    let traced = (read(), simulated());
    run(folder.path(), &[]);
    assert_eq!((read(), simulated()), traced);
}

#[test]
fn epochs_to_trace_need_a_trace_and_are_at_least_one() {
    let folder = folder_with(EXPERIMENT);
    for (arguments, expected) in [
        (["--trace-epochs", "2", "--quiet"], "--trace"),
        (["--trace", "--trace-epochs", "0"], "0 is not in 1.."),
    ] {
        let ran = grapevine(
            folder.path(),
            &[&["run", "x.toml"], &arguments[..]].concat(),
        )
        .expect(2);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

#[test]
fn algorithms_of_the_network_are_keys_that_can_be_swept() {
    let folder = folder_with(EXPERIMENT);
    let sweep = "sweep.\"network.all_reduce\"=[\"ring\", \"halving-doubling\", \"tree\", \"parameter-server\", \"auto\"]";
    let sets = ["network.exchange=pairwise", "seeds=[0]", sweep];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    run(folder.path(), &sets);
    let tables = Tables::read(&folder.path().join("out")).unwrap();
    assert_eq!(tables.runs.len(), 5 * 6);
    let found = |cell: &str| {
        let run = tables
            .runs
            .iter()
            .find(|run| run.cell.contains(cell) && run.strategy == "isolated");
        let run = run.unwrap_or_else(|| panic!("no {cell}"));
        run.measured.unwrap().parameter_gradient_bytes
    };
    // Of three workers, four trees or stars of messages of all parameters, in each of four epochs.
    assert_eq!(found("tree"), found("parameter-server"));
    assert!(found("ring") <= found("tree"));
    let typo = ["run", "x.toml", "--set", "network.all_reduce=rign"];
    let ran = grapevine(folder.path(), &typo).expect(2);
    assert!(
        ran.stderr.contains("all_reduce") && ran.stderr.contains("ring"),
        "{}",
        ran.stderr
    );
    let listed = grapevine(folder.path(), &["list", "networks"]).expect(0);
    assert!(
        listed.stdout.contains("halving-doubling"),
        "{}",
        listed.stdout
    );
}
