//! Claims over settings, planned seeds, and other questions of runs that are there.

use std::fs;
use std::path::Path;

use crate::command::{folder_with, grapevine};

const FILE: &str = r#"name = "asked"
seeds = [0, 1, 2]
dataset = { synthetic = { kind = "sbm", nodes = 60, classes = 2, features = 4, degree_within = 3, degree_between = 2 } }
model = { kind = "gcn", hidden = 4 }
training = { epochs = 3 }
partition = { workers = 2, method = "random" }
network = { preset = "ethernet-1g" }
compute = { timing = { profile = "t4" } }
strategy = [{ kind = "full" }, { kind = "isolated" }]
sweep = { "model.hidden" = [4, 8] }

[[claim]]
id = "accuracy"
source = "ours"
statement = "Isolation costs no accuracy"
measure = "test_accuracy"
compare = { strategy = "isolated", to = "full", at_most_below = 0.01 }
"#;

/// Judges the runs in `out` by the claims of such a file, and returns the table of claims.
fn asked_again(here: &Path, text: &str) -> String {
    fs::write(here.join("other.toml"), text).expect("a file");
    grapevine(here, &["report", "out", "--claims", "other.toml"]).expect(0);
    fs::read_to_string(here.join("out/tables/claims.md")).expect("a table")
}

#[test]
fn runs_that_are_there_answer_other_claims_and_say_how_many_seeds_these_need() {
    let folder = folder_with(FILE);
    let here = folder.path();
    let run = ["run", "x.toml", "--out", "out", "--quiet", "--plan-seeds"];
    let said = grapevine(here, &run).expect(0).stdout;
    assert!(said.contains("in each of 2 settings (worst: "), "{said}");
    for column in ["can be told", "seeds as measured", "seeds if equal"] {
        assert!(said.contains(column), "{said}");
    }

    let no_claims = ["--set", "claim=[]"];
    let refused = grapevine(here, &[&run[..], &no_claims].concat())
        .expect(2)
        .stderr;
    assert!(refused.contains("the file has no [[claim]]"), "{refused}");

    // The same runs, on average.
    let margin = "at_most_below = 0.01";
    let on_average = FILE.replace(margin, r#"at_most_below = 0.5, over = "mean""#);
    let table = asked_again(here, &on_average);
    let asked = "at most 0.5 below full, on average over 2 settings";
    assert!(table.contains(asked), "{table}");
    // Who judges after a look is told so; of other runs than those that were made nothing is asked.
    let again = ["report", "out", "--claims", "other.toml"];
    let told = grapevine(here, &again).expect(0).stderr;
    assert!(told.contains("take the p-value twice"), "{told}");
    let longer = ["--set", "training.epochs=4"];
    let refused = grapevine(here, &[&again[..], &longer].concat()).expect(2);
    let why = "training.epochs = 4, and its runs had 3";
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
    // A note that is new stands on the page.
    let noted = on_average.replace("measure =", "note = \"half is much\"\nmeasure =");
    asked_again(here, &noted);
    let page = fs::read_to_string(here.join("out/report.html")).expect("a page");
    assert!(page.contains("half is much"));
    assert!(page.contains("as long as on t4, modelled"));
    // A projection has a folder of its own.
    let project = ["project", "x.toml", "--out", "out"];
    let refused = grapevine(here, &project).expect(2).stderr;
    assert!(refused.contains("holds results of runs"), "{refused}");
    grapevine(here, &["verify", "out"]).expect(0);

    // Where nothing but the CSV files was kept: what follows from runs.csv is made anew, and equal.
    let summary = here.join("out/tables/summary.md");
    let before = fs::read_to_string(&summary).expect("a table");
    fs::remove_file(&summary).expect("it was there");
    for entry in fs::read_dir(here.join("out")).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|name| name == "parquet") {
            fs::remove_file(path).expect("it was there");
        }
    }
    let table = asked_again(here, FILE);
    assert!(table.contains("in each of 2 settings"), "{table}");
    let again = fs::read_to_string(&summary).expect("a table");
    assert_eq!(again, before);

    let stranger = FILE.replace(r#"name = "asked""#, r#"name = "stranger""#);
    fs::write(here.join("other.toml"), stranger).expect("a file");
    let refused = grapevine(here, &["report", "out", "--claims", "other.toml"]).expect(2);
    let why = r#"is of the experiment "stranger""#;
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
}

#[test]
fn tables_with_columns_by_name_are_described_before_anything_is_trained() {
    let folder = folder_with(FILE);
    let here = folder.path();
    let nodes = "number,age,team\n1,3,red\n2,4,blue\n3,5,red\n";
    fs::write(here.join("nodes.csv"), nodes).expect("a file");
    fs::write(here.join("edges.csv"), "from,to\n1,2\n2,3\n").expect("a file");
    let mut arguments = vec!["info", ".", "--format", "csv"];
    for key in [
        "nodes=nodes.csv",
        "edges=edges.csv",
        "id=number",
        "label=team",
        "features=[\"age\"]",
    ] {
        arguments.extend(["--set", key]);
    }
    let said = grapevine(here, &[&arguments[..], &["--json"]].concat());
    let said = said.expect(0).json();
    assert_eq!(
        (said["nodes"].as_u64(), said["edges"].as_u64()),
        (Some(3), Some(2))
    );
    // `nodes.csv` and `edges.csv` are found by themselves, and a split that is set is shown.
    let short = [
        "info",
        ".",
        "--format",
        "csv",
        "--set",
        "split={ train = 0.4, val = 0.3 }",
    ];
    let said = grapevine(here, &[&short[..], &["--json"]].concat());
    assert_eq!(said.expect(0).json()["split"], serde_json::json!([1, 1, 1]));
    // A file of them by its bare name, too.
    let bare = ["info", "nodes.csv", "--format", "csv", "--json"];
    assert_eq!(grapevine(here, &bare).expect(0).json()["nodes"], 3);
    for command in [&["info"][..], &["partition", "--workers", "2"]] {
        let split = ["--set", "split={ train = 0.9, val = 0.9 }"];
        let asked = [command, &[".", "--format", "csv"], &split].concat();
        let refused = grapevine(here, &asked).expect(2).stderr;
        assert!(refused.contains("together below 1"), "{refused}");
    }
    arguments.extend(["--set", "lable=team"]);
    let refused = grapevine(here, &arguments).expect(2).stderr;
    assert!(refused.contains("unknown field `lable`"), "{refused}");
}

#[test]
fn a_folder_says_when_its_runs_have_not_ended_and_when_it_cannot_be_written_to() {
    let folder = folder_with(FILE);
    let here = folder.path();
    let run = [
        "run",
        "x.toml",
        "--quiet",
        "--set",
        "training.epochs=1",
        "--out",
    ];
    grapevine(here, &[&run[..], &["out"]].concat()).expect(0);
    // As a program leaves it that was killed.
    let path = here.join("out/manifest.json");
    let manifest = fs::read_to_string(&path).expect("a manifest");
    let mut manifest: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    manifest["finished"] = serde_json::Value::Null;
    fs::write(&path, manifest.to_string()).expect("a file");
    fs::remove_file(here.join("out/runs.parquet")).expect("it was there");
    let refused = grapevine(here, &["report", "out"]).expect(2).stderr;
    assert!(refused.contains("have not all ended"), "{refused}");
    assert!(refused.contains("--resume"), "{refused}");
    fs::create_dir_all(here.join("taken/.lock")).expect("a folder");
    let refused = grapevine(here, &[&run[..], &["taken"]].concat())
        .expect(2)
        .stderr;
    assert!(refused.contains("cannot be written to"), "{refused}");
}

#[test]
fn a_graph_without_edges_is_not_trained_on() {
    let folder = folder_with(FILE);
    let none = "dataset.synthetic={ kind = \"sbm\", nodes = 60, classes = 2, features = 4, degree_within = 0, degree_between = 0 }";
    let refused = grapevine(folder.path(), &["run", "x.toml", "--set", none])
        .expect(2)
        .stderr;
    assert!(refused.contains("has no edges"), "{refused}");
}

#[test]
fn a_page_says_links_unless_a_sweep_has_others() {
    let folder = folder_with(FILE);
    let here = folder.path();
    let link =
        "network={ topology = \"star\", link = { bandwidth = \"200Mbps\", latency = \"2ms\" } }";
    let page = |more: &[&str], out: &str| {
        let run = [
            "run",
            "x.toml",
            "--quiet",
            "--set",
            link,
            "--set",
            "seeds=[0]",
            "--out",
            out,
        ];
        grapevine(here, &[&run[..], more].concat()).expect(0);
        fs::read_to_string(here.join(out).join("report.html")).expect("a page")
    };
    assert!(page(&[], "one").contains("bandwidth 200Mbps, latency 2ms"));
    let sweep = "sweep={ \"network.link.latency\" = [\"1ms\", \"3ms\"] }";
    let said = "bandwidth 200Mbps, latency 2ms";
    assert!(!page(&["--set", sweep], "two").contains(said));
}
