//! Experiments that were stopped, go on where they were and end with the tables of those that were not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rand::RngExt;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::determinism::assert_same_tables;
use grapevine::rng::{Purpose, stream};

/// The files of finished runs in a result folder.
fn finished(out: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(out.join("finished")) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.to_string_lossy().ends_with(".cbor.gz"))
        .collect();
    paths.sort();
    paths
}

fn kept(stderr: &str) -> usize {
    stderr
        .lines()
        .filter(|line| line.ends_with(", kept"))
        .count()
}

#[test]
fn killed_at_any_moment_it_goes_on_to_the_same_tables() {
    let folder = folder_with(EXPERIMENT);
    grapevine(folder.path(), &["run", "x.toml", "--out", "whole"]).expect(0);
    let mut moments = stream(7, Purpose::Study, 0, 0);
    let mut left = Vec::new();
    for trial in 0..10 {
        let out = format!("killed-{trial}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_grapevine"))
            .current_dir(folder.path())
            .args(["run", "x.toml", "--quiet", "--out", &out])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program was built for these tests");
        // At any moment, which is told by what has finished, for machines differ and are busy.
        let until = trial + usize::from(trial > 0) * moments.random_range(0..3);
        let at = folder.path().join(&out);
        while finished(&at).len() < until && child.try_wait().expect("it is ours").is_none() {
            sleep(Duration::from_micros(200));
        }
        sleep(Duration::from_micros(moments.random_range(0..3000)));
        child.kill().expect("it is ours"); // SIGKILL: it cannot tidy up
        child.wait().expect("it ended");
        let there = finished(&folder.path().join(&out)).len();
        left.push(there);
        let arguments = ["run", "x.toml", "--resume", "--out", &out];
        let ran = grapevine(folder.path(), &arguments).expect(0);
        assert_eq!(kept(&ran.stderr), there, "{}", ran.stderr);
        grapevine(folder.path(), &["verify", &out]).expect(0);
        assert_same_tables(folder.path(), "whole", &out);
    }
    // Some were stopped between the first run and the last.
    assert!(
        left.iter().any(|&there| 0 < there && there < 12),
        "{left:?}"
    );
}

#[test]
fn killed_within_a_long_run_it_goes_on_from_a_checkpoint_to_the_same_tables() {
    let folder = folder_with(EXPERIMENT);
    let long = ["--set", "seeds=[0]", "--set", "training.epochs=300"];
    let often = [&long[..], &["--set", "training.checkpoint_every=20"]].concat();
    let run = |more: &[&str], sets: &[&str]| {
        let arguments = [&["run", "x.toml"], more, sets].concat();
        grapevine(folder.path(), &arguments).expect(0)
    };
    run(&["--out", "whole"], &long);
    let out = folder.path().join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_grapevine"))
        .current_dir(folder.path())
        .args([&["run", "x.toml", "--quiet", "--out", "out"][..], &often].concat())
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built for these tests");
    let written = || {
        let runs = fs::read_dir(out.join("checkpoints")).into_iter().flatten();
        let files = runs.flat_map(|run| fs::read_dir(run.expect("it can be listed").path()));
        files.flatten().count()
    };
    while written() < 4 && child.try_wait().expect("it is ours").is_none() {
        sleep(Duration::from_micros(200));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it ended");
    assert!(written() > 0, "it was killed within a run");
    let ran = run(&["--resume", "--out", "out"], &often);
    let note = "goes on from a checkpoint after epoch";
    assert_eq!(ran.stderr.matches(note).count(), 1, "{}", ran.stderr);
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    assert_same_tables(folder.path(), "whole", "out");
    assert_eq!(written(), 0, "nothing goes on from them any more");
    // How often they are written makes no other run.
    let again = run(&["--resume", "--out", "out"], &long);
    assert_eq!(kept(&again.stderr), finished(&out).len());
}

#[test]
fn broken_runs_are_done_again_and_more_seeds_are_added() {
    let folder = folder_with(EXPERIMENT);
    let seeds = ["--set", "seeds=[0]"];
    let run = |more: &[&str]| {
        let arguments = [&["run", "x.toml", "--out", "out"], more].concat();
        kept(&grapevine(folder.path(), &arguments).expect(0).stderr)
    };
    assert_eq!(run(&seeds), 0);
    let files = finished(&folder.path().join("out"));
    assert_eq!(files.len(), 6);
    let text = fs::read(&files[2]).unwrap();
    fs::write(&files[2], &text[..text.len() / 2]).unwrap();
    assert_eq!(run(&["--resume"]), 5);
    assert_eq!(finished(&folder.path().join("out")).len(), 12);
    grapevine(folder.path(), &["run", "x.toml", "--out", "whole"]).expect(0);
    assert_same_tables(folder.path(), "whole", "out");
    // Another setting is another run, and does not harm those that are there.
    let arguments = [
        "run",
        "x.toml",
        "--out",
        "out",
        "--resume",
        "--set",
        "model.hidden=9",
    ];
    let other = grapevine(folder.path(), &arguments).expect(0);
    assert_eq!(kept(&other.stderr), 0);
    let note = "note: out holds 12 finished runs, of other settings (model.hidden 8 → 9): all";
    assert!(other.stderr.contains(note), "{}", other.stderr);
    assert_eq!(finished(&folder.path().join("out")).len(), 24);
    assert_eq!(run(&["--resume"]), 12);
    // Without being asked, nothing is kept, and a note says so.
    let anew = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    assert_eq!(kept(&anew.stderr), 0);
    let note = "note: out holds 12 finished runs, which new ones replace now; --resume keeps";
    assert!(anew.stderr.contains(note), "{}", anew.stderr);
    assert_eq!(finished(&folder.path().join("out")).len(), 12);
}

#[test]
fn a_changed_file_of_data_changes_the_runs() {
    let text = EXPERIMENT.replace(
        "synthetic = { kind = \"sbm\", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }",
        "path = \"graph\"\nformat = \"csv\"",
    );
    let folder = folder_with(&text);
    let write = |last: usize| {
        let edges: String = (0..60).map(|v| format!("{v},{}\n", (v + 1) % 60)).collect();
        let edges = format!("id_1,id_2\n{edges}0,{last}\n");
        let target: String = (0..60).map(|v| format!("{v},{}\n", v % 3)).collect();
        let graph = folder.path().join("graph");
        fs::create_dir_all(&graph).unwrap();
        fs::write(graph.join("graph_edges.csv"), edges).unwrap();
        fs::write(
            graph.join("graph_target.csv"),
            format!("id,target\n{target}"),
        )
        .unwrap();
    };
    let run = || {
        let arguments = ["run", "x.toml", "--resume", "--out", "out"];
        kept(&grapevine(folder.path(), &arguments).expect(0).stderr)
    };
    write(30);
    assert_eq!(run(), 0);
    assert_eq!(run(), 12);
    write(31);
    assert_eq!(run(), 0);
}

#[test]
fn changed_background_traffic_changes_the_runs() {
    let text = EXPERIMENT.replace(
        "preset = \"ethernet-1g\"",
        "preset = \"ethernet-1g\"\nbackground = \"busy.csv\"",
    );
    let folder = folder_with(&text);
    let run = |taken: &str| {
        let changes = format!("time,link,taken\n0,*,{taken}\n");
        fs::write(folder.path().join("busy.csv"), changes).unwrap();
        let arguments = ["run", "x.toml", "--resume", "--out", "out"];
        kept(&grapevine(folder.path(), &arguments).expect(0).stderr)
    };
    assert_eq!([run("0.5"), run("0.5"), run("0.6")], [0, 12, 0]);
}

#[test]
fn traces_are_kept_with_their_runs() {
    let folder = folder_with(EXPERIMENT);
    let run = |more: &[&str]| {
        let arguments = [&["run", "x.toml", "--trace", "--out", "out"], more].concat();
        kept(&grapevine(folder.path(), &arguments).expect(0).stderr)
    };
    assert_eq!(run(&[]), 0);
    let timeline = || fs::read(folder.path().join("out/timeline.csv")).unwrap();
    let first = timeline();
    fs::remove_file(folder.path().join("out/traces/full-0.json")).unwrap();
    assert_eq!(run(&["--resume"]), 11);
    assert!(folder.path().join("out/traces/full-0.json").exists());
    assert_eq!(timeline(), first);
}

/// The experiment with a strategy that waits for ever, between two that do not.
fn stuck() -> String {
    let dead = "[[strategy]]\nkind = \"full\"\nlabel = \"stuck\"\n\
                with = { \"network.failure\" = [{ worker = 1, from = 0.0 }] }\n[[strategy]]\nkind = \"fixed\"";
    EXPERIMENT.replacen("[[strategy]]\nkind = \"fixed\"", dead, 1)
}

#[test]
fn the_other_runs_go_on_if_they_are_asked_to() {
    let folder = folder_with(&stuck());
    let arguments = ["run", "x.toml", "--keep-going", "--out", "out"];
    let ran = grapevine(folder.path(), &arguments).expect(1);
    for text in [
        "2 of 14 runs failed",
        "cell \"stuck\", seed 1",
        "never comes back",
    ] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    let out = folder.path().join("out");
    assert_eq!(finished(&out).len(), 12);
    let runs = fs::read_to_string(out.join("runs.csv")).unwrap();
    let failed = runs.lines().filter(|line| line.contains("failed: "));
    assert_eq!(failed.count(), 2, "{runs}");
    assert!(out.join("report.html").exists());
    let verified = grapevine(folder.path(), &["verify", "out"]).expect(0);
    let failed = "failed in out: 2 runs of stuck";
    assert!(verified.stderr.contains(failed), "{}", verified.stderr);
    let compared = grapevine(folder.path(), &["compare", "out", "out"]).expect(0);
    assert!(compared.stdout.contains(failed), "{}", compared.stdout);
    // What failed is tried again, the rest is kept.
    let ran = grapevine(folder.path(), &[&arguments[..], &["--resume"]].concat()).expect(1);
    assert_eq!(kept(&ran.stderr), 12);
    // Where it ends the rest, what had finished stays in the tables.
    let arguments = ["run", "x.toml", "--resume", "--out", "out"];
    grapevine(folder.path(), &arguments).expect(1);
    let runs = fs::read_to_string(out.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 12 + 1, "{runs}");
}

#[test]
fn a_failure_ends_the_rest_otherwise_and_leaves_a_report_of_what_was_done() {
    let folder = folder_with(&stuck());
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(1);
    assert!(
        ran.stderr.contains("cell \"stuck\", seed 0"),
        "{}",
        ran.stderr
    );
    let out = folder.path().join("out");
    let runs = fs::read_to_string(out.join("runs.csv")).unwrap();
    assert_eq!(runs.lines().count(), 1 + 2 + 1);
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("stuck") && report.contains("isolated"));
    assert!(report.contains("Not finished"), "{report:.2000}");
}

#[test]
fn what_was_drawn_of_earlier_results_does_not_stay_beside_those_of_a_run_that_was_stopped() {
    let folder = folder_with(EXPERIMENT);
    grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    let out = folder.path().join("out");
    let drawn = ["report.html", "figures/pareto.svg", "tables/summary.md"];
    let there = || drawn.iter().filter(|name| out.join(name).exists()).count();
    assert_eq!(there(), drawn.len());
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(!report.contains("Not finished"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_grapevine"))
        .current_dir(folder.path())
        .args(["run", "x.toml", "--quiet", "--out", "out"])
        .args(["--set", "training.epochs=1000000"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the program was built for these tests");
    while there() > 0 && child.try_wait().expect("it is ours").is_none() {
        sleep(Duration::from_millis(1));
    }
    child.kill().expect("it is ours");
    child.wait().expect("it ended");
    assert_eq!(there(), 0);
}

#[test]
fn where_every_run_fails_each_failure_is_told_and_reported() {
    let folder = folder_with(EXPERIMENT);
    // Nothing reaches the second worker, or leaves it.
    let down = "network.failure=[{ worker = 1, from = \"0s\" }]";
    let arguments = [
        "run",
        "x.toml",
        "--keep-going",
        "--out",
        "out",
        "--set",
        down,
    ];
    let more = [
        "--set",
        "seeds=[0]",
        "--set",
        "strategy=[{ kind = \"full\" }, { kind = \"varco\" }]",
        "--set",
        "claim=[]",
    ];
    let ran = grapevine(folder.path(), &[&arguments[..], &more].concat()).expect(1);
    let all = "2 of 2 runs failed; the report is in out";
    assert!(ran.stderr.contains(all), "{}", ran.stderr);
    assert!(ran.stderr.contains("down"), "{}", ran.stderr);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("Runs that failed") && page.contains("Every run failed"));
    assert!(!page.contains("0 parameters"));
}

#[test]
fn results_that_cannot_be_kept_end_the_run_and_lose_nothing() {
    let folder = folder_with(EXPERIMENT);
    let seeds = ["run", "x.toml", "--set", "seeds=[0]", "--out", "out"];
    grapevine(folder.path(), &seeds).expect(0);
    let out = folder.path().join("out");
    let before = fs::read(out.join("runs.parquet")).unwrap();
    // Root may write anywhere; a file where a folder should be stops it too.
    let aside = out.join("aside");
    fs::rename(out.join("finished"), &aside).unwrap();
    fs::write(out.join("finished"), "").unwrap();
    let arguments = ["run", "x.toml", "--resume", "--keep-going", "--out", "out"];
    let ran = grapevine(folder.path(), &arguments).expect(1);
    assert!(ran.stderr.contains("cannot write"), "{}", ran.stderr);
    assert!(ran.stderr.contains("finished"), "{}", ran.stderr);
    fs::remove_file(out.join("finished")).unwrap();
    fs::rename(&aside, out.join("finished")).unwrap();
    let ran = grapevine(folder.path(), &[&seeds[..], &["--resume"]].concat()).expect(0);
    assert_eq!(kept(&ran.stderr), 6);
    let after = fs::read(out.join("runs.parquet")).unwrap();
    assert_eq!(before, after);
}
