//! Runs that train at the same time, in parts, and until claims are decided: the same tables.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use crate::determinism::assert_same_tables;

fn run(folder: &Path, out: &str, more: &[&str]) -> String {
    let arguments = [&["run", "x.toml", "--out", out], more].concat();
    grapevine(folder, &arguments).expect(0).stderr
}

/// Files of runs that have finished.
fn finished(out: &Path) -> usize {
    let entries = fs::read_dir(out.join("finished"));
    entries.map_or(0, |entries| {
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.ends_with(".cbor.gz")).count()
    })
}

#[test]
fn however_many_train_at_a_time_the_tables_are_the_same() {
    let folder = folder_with(EXPERIMENT);
    run(folder.path(), "one", &["--trace"]);
    for jobs in ["2", "5"] {
        let told = run(folder.path(), jobs, &["--trace", "--jobs", jobs]);
        assert!(told.contains(" 12/12 "), "{told}");
        assert_same_tables(folder.path(), "one", jobs);
        for file in ["timeline.csv", "traces/varco-1.json"] {
            let bytes = |out: &str| fs::read(folder.path().join(out).join(file)).unwrap();
            assert_eq!(bytes("one"), bytes(jobs), "{file}");
        }
        grapevine(folder.path(), &["verify", jobs]).expect(0);
    }
}

#[test]
fn killed_while_several_train_it_goes_on_to_the_same_tables() {
    let folder = folder_with(EXPERIMENT);
    run(folder.path(), "whole", &[]);
    for until in [1, 4, 9] {
        let out = format!("killed-{until}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_grapevine"))
            .current_dir(folder.path())
            .args(["run", "x.toml", "--quiet", "--jobs", "3", "--out", &out])
            .stdout(Stdio::null())
            .spawn()
            .expect("the program was built for these tests");
        let at = folder.path().join(&out);
        while finished(&at) < until && child.try_wait().expect("it is ours").is_none() {
            sleep(Duration::from_micros(200));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it ended");
        let there = finished(&at);
        let told = run(folder.path(), &out, &["--resume", "--jobs", "2"]);
        assert_eq!(
            told.lines().filter(|line| line.ends_with(", kept")).count(),
            there
        );
        assert_same_tables(folder.path(), "whole", &out);
    }
}

#[test]
fn a_failure_is_told_once_and_what_ran_beside_it_is_kept() {
    let dead = "[[strategy]]\nkind = \"full\"\nlabel = \"stuck\"\n\
                with = { \"network.failure\" = [{ worker = 1, from = 0.0 }] }\n[[strategy]]\nkind = \"fixed\"";
    let folder = folder_with(&EXPERIMENT.replacen("[[strategy]]\nkind = \"fixed\"", dead, 1));
    let arguments = ["run", "x.toml", "--jobs", "2", "--out", "out"];
    let ran = grapevine(folder.path(), &arguments).expect(1);
    let told = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "));
    assert_eq!(told.count(), 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cell \"stuck\", seed "),
        "{}",
        ran.stderr
    );
    let runs = fs::read_to_string(folder.path().join("out/runs.csv")).unwrap();
    assert!(runs.contains("failed: "), "{runs}");
    assert!(finished(&folder.path().join("out")) >= 2, "{runs}");
    let going = [&arguments[..], &["--resume", "--keep-going"]].concat();
    let ran = grapevine(folder.path(), &going).expect(1);
    assert!(ran.stderr.contains("2 of 14 runs failed"), "{}", ran.stderr);
    assert_eq!(finished(&folder.path().join("out")), 12);
}

#[test]
fn times_that_would_disturb_each_other_are_not_taken_at_once() {
    let folder = folder_with(EXPERIMENT);
    let arguments = [
        "run",
        "x.toml",
        "--jobs",
        "2",
        "--set",
        "compute.timing=measured",
    ];
    let ran = grapevine(folder.path(), &arguments).expect(2);
    assert!(
        ran.stderr.contains("compute of cell \"full\" is measured"),
        "{}",
        ran.stderr
    );
    assert!(!folder.path().join("results").exists());
}

#[test]
fn parts_are_joined_to_the_tables_of_one_machine() {
    let folder = folder_with(EXPERIMENT);
    let at = folder.path();
    run(at, "one", &["--trace"]);
    for number in 1..=5 {
        let part = format!("{number}/5");
        let arguments = ["run", "x.toml", "--trace", "--part", &part];
        let ran = grapevine(at, &arguments).expect(0);
        assert!(
            ran.stdout.contains("claims wait until `grapevine merge`"),
            "{}",
            ran.stdout
        );
        grapevine(at, &["verify", &format!("results/small-{number}-of-5")]).expect(0);
    }
    let parts = |numbers: &[usize]| -> Vec<String> {
        let name = |number: &usize| format!("results/small-{number}-of-5");
        numbers.iter().map(name).collect()
    };
    let merge = |folders: &[String], code| {
        let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
        grapevine(at, &[&["merge"], &folders[..]].concat()).expect(code)
    };
    let ran = merge(&parts(&[3, 1, 5, 4, 2]), 0);
    assert!(ran.stdout.contains("isolated-bytes"), "{}", ran.stdout);
    assert_same_tables(at, "one", "results/small");
    for file in ["timeline.csv", "traces/varco-1.json"] {
        let bytes = |out: &str| fs::read(at.join(out).join(file)).unwrap();
        assert_eq!(bytes("one"), bytes("results/small"), "{file}");
    }
    grapevine(at, &["verify", "results/small"]).expect(0);
    assert_eq!(finished(&at.join("results/small")), 12);

    run(
        at,
        "other",
        &["--part", "2/5", "--set", "training.epochs=2"],
    );
    let beside = |numbers: &[usize], more: &str| [parts(numbers), vec![more.to_owned()]].concat();
    for (folders, told) in [
        (parts(&[1, 2, 4]), "and parts 3, 5 of 5 are missing"),
        (
            parts(&[1, 2, 3, 4, 5, 2]),
            "is part 2/5, as results/small-2-of-5 is",
        ),
        (
            beside(&[1, 3, 4, 5], "other"),
            "was run with another experiment file",
        ),
        (
            beside(&[1, 2, 3, 4], "one"),
            "holds no part of an experiment",
        ),
    ] {
        let ran = merge(&folders, 2);
        assert!(ran.stderr.contains(told), "{}", ran.stderr);
    }
    fs::copy(
        at.join("one/runs.csv"),
        at.join("results/small-4-of-5/runs.csv"),
    )
    .unwrap();
    let ran = merge(&parts(&[1, 2, 3, 4, 5]), 2);
    assert!(
        ran.stderr.contains("are not those that were written"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_parts_say_by_themselves_is_said_once_of_all() {
    let diverging = "optimizer = { kind = \"sgd\", learning_rate = 1e30 }";
    let folder = folder_with(EXPERIMENT);
    let at = folder.path();
    let sets = ["--keep-going", "--set", diverging];
    let code = |arguments: &[&str]| grapevine(at, arguments).code;
    let all = [&["run", "x.toml", "--out", "one"], &sets[..]].concat();
    let ended = code(&all);
    for part in ["1/2", "2/2"] {
        code(&[&["run", "x.toml", "--part", part], &sets[..]].concat());
    }
    let merged = ["merge", "results/small-1-of-2", "results/small-2-of-2"];
    assert_eq!(code(&merged), ended);
    let notes = |out: &str| -> serde_json::Value {
        let text = fs::read_to_string(at.join(out).join("manifest.json")).expect("a manifest");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON")["notes"].clone()
    };
    assert!(
        notes("one").to_string().contains("diverged"),
        "{}",
        notes("one")
    );
    assert_eq!(notes("results/small"), notes("one"));
}

/// The experiment with seeds until decided, and a claim about noise.
fn until_decided() -> String {
    let text = EXPERIMENT.replace("seeds = [0, 1]", "seeds = { first = 2, most = 8 }");
    format!(
        "{text}[[claim]]\nid = \"noise\"\nsource = \"ours\"\nstatement = \"the same to a thousandth\"\n\
         measure = \"test_accuracy\"\ncompare = {{ strategy = \"varco\", to = \"fixed\", within = 0.00001 }}\n"
    )
}

#[test]
fn seeds_are_added_to_cells_of_open_claims_and_the_reason_is_said() {
    let folder = folder_with(&until_decided());
    let at = folder.path();
    let told = run(at, "one", &[]);
    assert!(told.contains("2 seeds leave claims open"), "{told}");
    let runs = fs::read_to_string(at.join("one/runs.csv")).unwrap();
    let of = |cell: &str| {
        runs.lines()
            .filter(|line| line.starts_with(&format!("small,{cell},")))
            .count()
    };
    assert_eq!((of("retexo"), of("grappa")), (2, 2), "in no claim");
    assert_eq!((of("varco"), of("fixed")), (8, 8), "{runs}");
    let manifest = fs::read_to_string(at.join("one/manifest.json")).unwrap();
    assert!(manifest.contains("8 seeds of fixed, varco ("), "{manifest}");
    grapevine(at, &["verify", "one"]).expect(0);
    run(at, "two", &["--jobs", "2"]);
    assert_same_tables(at, "one", "two");
    // A folder in which a later look was cut short.
    let files: Vec<_> = fs::read_dir(at.join("two/finished")).unwrap().collect();
    for file in files.into_iter().step_by(3) {
        fs::remove_file(file.unwrap().path()).unwrap();
    }
    run(at, "two", &["--resume"]);
    assert_same_tables(at, "one", "two");
    grapevine(at, &["report", "two"]).expect(0);
    assert_same_tables(at, "one", "two");

    let refused = grapevine(at, &["run", "x.toml", "--part", "1/2"]).expect(2);
    assert!(
        refused.stderr.contains("give a list of seeds"),
        "{}",
        refused.stderr
    );
}
