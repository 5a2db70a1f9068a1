//! The command line, subcommand by subcommand.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::command::{EXPERIMENT, folder_with, grapevine};
use grapevine::experiment::Tables;
use grapevine::experiment::rows::{ClaimVerdict, Measured, RunRow};

/// Runs the experiment into `out`.
fn results() -> (tempfile::TempDir, PathBuf) {
    let folder = folder_with(EXPERIMENT);
    grapevine(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]).expect(0);
    let out = folder.path().join("out");
    (folder, out)
}

/// Paths of all files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("it is a folder") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

const FIGURES: [&str; 7] = [
    "accuracy-vs-bytes",
    "accuracy-vs-epoch",
    "accuracy-vs-time",
    "bytes-by-kind",
    "compression",
    "pareto",
    "time-breakdown",
];

#[test]
fn a_run_leaves_tables_figures_a_manifest_and_a_page() {
    let (_folder, out) = results();
    let mut expected: Vec<String> = vec!["manifest.json".into(), "report.html".into()];
    for table in ["runs", "epochs", "traffic", "claims"] {
        expected.extend(["csv", "parquet"].map(|kind| format!("{table}.{kind}")));
    }
    for figure in FIGURES {
        expected.extend(["svg", "png"].map(|kind| format!("figures/{figure}.{kind}")));
    }
    for table in [
        "summary",
        "traffic",
        "claims",
        "targets",
        "budgets",
        "budget-winners",
    ] {
        expected.extend(["md", "tex"].map(|kind| format!("tables/{table}.{kind}")));
    }
    let mut expected: Vec<PathBuf> = expected.into_iter().map(|name| out.join(name)).collect();
    expected.sort();
    let (finished, found): (Vec<PathBuf>, Vec<PathBuf>) = files(&out)
        .into_iter()
        .filter(|path| !path.ends_with(".lock")) // empty
        .partition(|path| path.starts_with(out.join("finished")));
    assert_eq!(found, expected, "these files and no others");
    let runs = fs::read_to_string(out.join("runs.csv")).unwrap();
    assert_eq!(finished.len(), runs.lines().count() - 1, "one a run");

    for path in &expected {
        let bytes = fs::read(path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        match path.extension().unwrap().to_str().unwrap() {
            "svg" => assert!(text.contains("<svg") && text.trim_end().ends_with("</svg>")),
            "png" => assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n")),
            "parquet" => assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")),
            "csv" => assert!(text.lines().count() > 1, "{}", path.display()),
            // Budgets are of node data, of which isolated workers send none.
            "md" | "tex" => {
                let name = path.file_name().unwrap().to_string_lossy();
                let strategy = if name.starts_with("budget") {
                    "varco"
                } else {
                    "isolated"
                };
                assert!(text.contains(strategy), "{}: {text}", path.display());
            }
            "html" => {
                assert!(text.trim_end().ends_with("</html>") && text.contains("<svg"));
                for outside in ["src=\"http", "href=\"http", "<link", "@import"] {
                    assert!(!text.contains(outside), "the page needs nothing but itself");
                }
            }
            _ => {}
        }
    }
    let manifest: Value =
        serde_json::from_slice(&fs::read(out.join("manifest.json")).unwrap()).unwrap();
    for key in [
        "config",
        "config_hash",
        "version",
        "machine",
        "devices",
        "command",
        "started",
        "finished",
    ] {
        assert!(!manifest[key].is_null(), "manifest.json has {key}");
    }
    assert_eq!(manifest["config"]["training"]["epochs"], 6);
    let tables = Tables::read(&out).unwrap();
    assert_eq!(tables.runs.len(), 12, "six strategies, two seeds");
    assert_eq!(tables.epochs.len(), 12 * 6);
    assert!(tables.runs.iter().all(RunRow::is_ok));
}

#[test]
fn results_pass_verification() {
    let (folder, _out) = results();
    let ran = grapevine(folder.path(), &["verify", "out"]).expect(0);
    assert!(ran.stdout.contains("12 runs") && ran.stdout.contains("every invariant holds"));
    let ran = grapevine(folder.path(), &["verify", "out", "--json"]).expect(0);
    assert_eq!(ran.json()["breaches"], Value::Array(Vec::new()));
    let one = [
        "run",
        "x.toml",
        "-q",
        "--out",
        "one",
        "--set",
        "seeds=[0]",
        "--set",
    ];
    let one = [
        &one[..],
        &["strategy=[{ kind = \"full\" }]", "--set", "claim=[]"],
    ]
    .concat();
    grapevine(folder.path(), &one).expect(0);
    let ran = grapevine(folder.path(), &["verify", "one"]).expect(0);
    let told = ran.stdout;
    assert!(told.starts_with("one: 1 run, 6 epochs, "), "{told}");
    assert!(told.contains(" traffic rows, 0 claims: "), "{told}");
}

#[test]
fn a_run_that_diverges_is_told_and_decides_no_claim_about_accuracy() {
    let diverging = EXPERIMENT
        .replace(
            "[training]",
            "[optimizer]\nkind = \"sgd\"\nlearning_rate = 1e20\n[training]",
        )
        .replace("\"payload_bytes\"", "\"test_accuracy\"")
        .replace("times_less = 1", "at_most_below = 0.5");
    let folder = folder_with(&diverging);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    assert!(
        ran.stdout.contains("inconclusive: isolated-bytes"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("note: training diverged"),
        "{}",
        ran.stdout
    );
    let tables = Tables::read(&folder.path().join("out")).unwrap();
    assert_eq!(
        tables.claims[0].censored, 2,
        "of both seeds a bound alone is known"
    );
    let full: Vec<&RunRow> = tables
        .runs
        .iter()
        .filter(|run| run.strategy == "full")
        .collect();
    let lost = |run: &&RunRow| {
        run.measured
            .unwrap()
            .diverged_at
            .is_some_and(|epoch| epoch > 0)
    };
    assert!(full.iter().all(lost));
    grapevine(folder.path(), &["verify", "out"]).expect(0);
}

#[test]
fn changed_results_fail_verification_by_table_and_row() {
    type Change = fn(&mut Tables);
    fn of(tables: &mut Tables, row: usize) -> &mut Measured {
        tables.runs[row].measured.as_mut().unwrap()
    }
    let changes: [(&str, Change); 9] = [
        ("runs, row 0: ", |t| of(t, 0).payload_bytes += 1),
        ("runs, row 1: ", |t| of(t, 1).wire_bytes += 1),
        ("runs, row 2: ", |t| of(t, 2).parameter_gradient_bytes += 4),
        ("runs, row 3: ", |t| of(t, 3).test_accuracy = Some(0.99)),
        ("runs, row 4: ", |t| of(t, 4).messages -= 1),
        ("epochs", |t| drop(t.epochs.remove(3))),
        ("epochs, row 4: ", |t| t.epochs[4].simulated_seconds = -1.0),
        ("traffic", |t| t.traffic[7].payload_bytes += 8),
        ("claims, row 0: ", |t| {
            t.claims[0].verdict = ClaimVerdict::NotReproduced;
        }),
    ];
    let (folder, out) = results();
    let sound = Tables::read(&out).unwrap();
    for (place, change) in changes {
        let mut tables = sound.clone();
        change(&mut tables);
        tables.write(&out).unwrap();
        let ran = grapevine(folder.path(), &["verify", "out"]).expect(1);
        assert!(ran.stdout.contains(place), "{place}: {}", ran.stdout);
        assert!(ran.stderr.contains("breach"), "{}", ran.stderr);
        let ran = grapevine(folder.path(), &["verify", "out", "--json"]).expect(1);
        assert!(!ran.json()["breaches"].as_array().unwrap().is_empty());
    }
    sound.write(&out).unwrap();
    grapevine(folder.path(), &["verify", "out"]).expect(0);
}

#[test]
fn times_that_agree_with_each_other_are_held_against_the_plan() {
    let (folder, out) = results();
    let mut tables = Tables::read(&out).unwrap();
    for epoch in &mut tables.epochs {
        epoch.simulated_seconds /= 2.0;
    }
    for run in &mut tables.runs {
        let measured = run.measured.as_mut().unwrap();
        measured.simulated_seconds /= 2.0;
        measured.compute_seconds /= 2.0;
        measured.communication_seconds /= 2.0;
        measured.exposed_communication_seconds /= 2.0;
        for seconds in [
            &mut measured.waiting_seconds,
            &mut measured.seconds_to_target,
        ] {
            *seconds = seconds.map(|seconds| seconds / 2.0);
        }
    }
    tables.write(&out).unwrap();
    grapevine(folder.path(), &["report", "out"]).expect(0);
    let ran = grapevine(folder.path(), &["verify", "out"]).expect(1);
    for place in [
        "runs, row 0: simulated_seconds is ",
        "runs, row 0: compute_seconds is ",
        "epochs, row 0: simulated_seconds is ",
    ] {
        assert!(ran.stdout.contains(place), "{place}: {}", ran.stdout);
    }
    assert!(
        ran.stdout.contains(", but its plan takes "),
        "{}",
        ran.stdout
    );
    // The tables agree with each other, but have no more the hashes that they were written with.
    let mut lines = ran.stdout.lines();
    assert!(
        lines.all(|line| line.starts_with("manifest: ") || line.contains("but its plan takes")),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_report_comes_back_from_the_tables_alone() {
    let (folder, out) = results();
    let before: Vec<(PathBuf, Vec<u8>)> = files(&out)
        .into_iter()
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    fs::remove_dir_all(out.join("figures")).unwrap();
    fs::remove_dir_all(out.join("tables")).unwrap();
    fs::remove_file(out.join("report.html")).unwrap();
    let ran = grapevine(folder.path(), &["report", "out"]).expect(0);
    assert!(ran.stdout.contains("report.html") && ran.stdout.contains("pareto.svg"));
    for (path, bytes) in before {
        let again = fs::read(&path).unwrap_or_else(|_| panic!("{} is back", path.display()));
        assert!(again == bytes, "{} is as it was", path.display());
    }
}

#[test]
fn a_folder_without_results_is_named() {
    let folder = folder_with(EXPERIMENT);
    for command in ["report", "verify"] {
        for place in ["nowhere", "."] {
            let ran = grapevine(folder.path(), &[command, place]).expect(2);
            assert!(
                ran.stderr.contains("is not a result folder"),
                "{}",
                ran.stderr
            );
            assert!(ran.stderr.contains("manifest.json"), "{}", ran.stderr);
        }
    }
}

#[test]
fn json_is_one_document_on_standard_output_and_nothing_else() {
    let folder = folder_with(EXPERIMENT);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--json", "--out", "out"]).expect(0);
    let document = ran.json();
    assert_eq!(document["runs"].as_array().unwrap().len(), 12);
    assert_eq!(document["claims"][0]["verdict"], "reproduced");
    assert_eq!(document["out"], "out");
    assert!(
        ran.stderr.contains("12/12"),
        "progress is told on standard error: {}",
        ran.stderr
    );
    let quiet = ["run", "x.toml", "--json", "--quiet", "--out", "out"];
    let ran = grapevine(folder.path(), &quiet).expect(0);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.json()["runs"].as_array().unwrap().len(), 12);
}

#[test]
fn without_json_the_table_and_the_verdicts_are_on_standard_output() {
    let folder = folder_with(EXPERIMENT);
    let ran = grapevine(folder.path(), &["run", "x.toml", "-q"]).expect(0);
    assert_eq!(ran.stderr, "");
    for text in [
        "strategy",
        "retexo",
        "reproduced: isolated-bytes",
        "inside model computation",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
    let page = folder.path().join("results/small/report.html");
    assert!(page.is_file(), "results/<name> is the default folder");
}

#[test]
fn everything_can_be_listed() {
    let folder = folder_with("");
    for (what, names) in [
        (
            "datasets",
            &[
                "cora",
                "planetoid",
                "npz-csr",
                "edge-list",
                "sbm",
                "csbm",
                "rmat",
                "ogbn-papers100M",
            ][..],
        ),
        (
            "strategies",
            &[
                "full", "isolated", "fixed", "varco", "bns", "pipe", "adaqp", "sylvie", "ecgraph",
                "cagnet", "sancus", "distgnn", "grappa", "retexo", "fedavg", "fedgcn",
            ],
        ),
        ("models", &["gcn", "sage", "sage-pool", "gat", "gin"]),
        (
            "partitioners",
            &["random", "metis", "ldg", "fennel", "dirichlet", "given"],
        ),
        ("networks", &["nvlink", "ethernet-1g", "wan", "bluetooth"]),
        ("devices", &["flex", "a100"]),
    ] {
        let ran = grapevine(folder.path(), &["list", what]).expect(0);
        let listed = grapevine(folder.path(), &["list", what, "--json"])
            .expect(0)
            .json();
        let listed = listed.as_array().expect("a list").clone();
        for name in names {
            assert!(ran.stdout.contains(name), "{what}: {name}");
            let width = ran.stdout.lines().map(|line| line.chars().count()).max();
            assert!(width <= Some(110), "{what}: {width:?}");
            let has = |entry: &Value| {
                entry["name"]
                    .as_str()
                    .is_some_and(|text| text.ends_with(name))
            };
            assert!(listed.iter().any(has), "{what}: {name}");
        }
    }
    let strategies = grapevine(folder.path(), &["list", "strategies", "--json"]).json();
    for strategy in strategies.as_array().unwrap() {
        for key in ["paper", "sends"] {
            assert!(!strategy[key].as_str().unwrap().is_empty());
        }
        for option in strategy["options"].as_array().unwrap() {
            assert!(!option["meaning"].as_str().unwrap().is_empty());
        }
    }
    grapevine(folder.path(), &["list", "things"]).expect(2);
    let varco = &["list", "strategies", "varco"];
    let said = grapevine(folder.path(), varco).expect(0).stdout;
    assert!(said.starts_with("varco\n  paper  "), "{said}");
    assert!(said.contains("\n  option schedule  "), "{said}");
    assert_eq!(said.matches("  paper  ").count(), 1, "{said}");
    let said = grapevine(folder.path(), &[&varco[..], &["--json"]].concat()).json();
    assert_eq!(said.as_array().unwrap().len(), 1);
    for (arguments, says) in [
        (
            ["list", "strategies", "varko"],
            "NAME: no strategy is called \"varko\"; did you mean varco?",
        ),
        (["list", "models", "gcn"], "NAME: \"gcn\" is too much"),
    ] {
        let said = grapevine(folder.path(), &arguments).expect(2).stderr;
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn partition_statistics_of_cora_are_printed() {
    let folder = folder_with("");
    let arguments = ["partition", "cora", "--workers", "4", "--method"];
    let with = |method, json: bool| {
        let mut all = arguments.to_vec();
        all.push(method);
        all.extend(json.then_some("--json"));
        grapevine(folder.path(), &all).expect(0)
    };
    for text in [
        "2708",
        "5278",
        "cut edges",
        "boundary rows",
        "coverage mean",
    ] {
        assert!(with("metis", false).stdout.contains(text), "{text}");
    }
    let (metis, random) = (with("metis", true).json(), with("random", true).json());
    let cut = |stats: &Value| stats["cut_share"].as_f64().expect("a share");
    assert!(cut(&metis) < 0.15, "METIS cuts little: {metis}");
    assert!(
        (0.7..0.8).contains(&cut(&random)),
        "random cuts three quarters: {random}"
    );
    let missing = [
        "partition",
        "nowhere",
        "--workers",
        "4",
        "--format",
        "edge-list",
    ];
    let ran = grapevine(folder.path(), &missing).expect(2);
    assert!(ran.stderr.contains("nowhere"), "{}", ran.stderr);
}

#[test]
fn a_partition_that_was_written_is_the_one_that_given_reads() {
    let folder = folder_with("");
    let graph = "{ kind = \"rmat\", scale = 8, classes = 4, features = 8 }";
    for data in ["cora", graph] {
        let with = |more: &[&str]| {
            let arguments = [&["partition", data, "-w", "3", "--json"][..], more].concat();
            grapevine(folder.path(), &arguments).expect(0).json()
        };
        let made = with(&["-m", "random", "--seed", "7", "--out", "new/parts.txt"]);
        let read = with(&["-m", "given", "--file", "new/parts.txt"]);
        assert_eq!(made, read, "{data}");
        assert_ne!(made, with(&["-m", "random"]), "{data}");
        let skewed = ["-m", "dirichlet", "--concentration", "0.5"];
        let made_so = with(&[&skewed[..], &["--out", "skewed.txt"]].concat());
        let read = with(&["-m", "given", "--file", "skewed.txt"]);
        assert_eq!(made_so, read, "{data}");
        let text = fs::read_to_string(folder.path().join("new/parts.txt")).unwrap();
        assert_eq!(made["nodes"], text.lines().count(), "{data}");
    }
}

#[test]
fn an_outage_is_projected_once() {
    let folder = folder_with(EXPERIMENT);
    let seconds = |sets: &[&str]| {
        let arguments = [
            "project",
            "x.toml",
            "--json",
            "--set",
            "strategy=[{ kind = \"full\" }]",
            "--set",
            "claim=[]",
        ];
        let projected = grapevine(folder.path(), &[&arguments[..], sets].concat()).expect(0);
        projected.json()[0]["simulated_seconds"].as_f64().unwrap()
    };
    let quiet = seconds(&[]);
    let from_the_start = "network.failure=[{ worker = 1, from = \"0s\", until = \"10s\" }]";
    let early = seconds(&["--set", from_the_start]);
    assert!(
        (early - quiet - 10.0).abs() < quiet,
        "{early} against {quiet}"
    );
    // Some of the training is over by then.
    let later = format!(
        "network.failure=[{{ worker = 1, from = \"{}s\", until = \"10s\" }}]",
        quiet / 2.0
    );
    let late = seconds(&["--set", &later]);
    assert!(late > 10.0 && late < early, "{late} against {early}");
}

#[test]
fn a_projection_of_skewed_clients_looks_at_classes_as_the_run_does() {
    let data = "synthetic = { kind = \"rmat\", scale = 9, classes = 4, features = 32 }";
    let lines = EXPERIMENT.lines().map(|line| match line {
        line if line.starts_with("synthetic") => data,
        "method = \"random\"" => "method = \"dirichlet\"\nconcentration = 0.3",
        line => line,
    });
    let folder = folder_with(&lines.collect::<Vec<_>>().join("\n"));
    let out = folder.path().join("out");
    let of = |arguments: &[&str]| grapevine(folder.path(), arguments).expect(0);
    of(&["run", "x.toml", "--quiet", "--out", "out"]);
    let runs = Tables::read(&out).unwrap().runs;
    let projected = of(&["project", "x.toml", "--json"]).json();
    for cell in projected.as_array().unwrap() {
        let run = (runs.iter()).find(|run| cell["cell"] == run.cell.as_str() && run.seed == 0);
        let sent = run.expect("its first seed").measured.unwrap();
        assert_eq!(cell["payload_bytes"], sent.payload_bytes, "{cell}");
    }
}

#[test]
fn the_projection_is_what_the_run_sends() {
    let (folder, out) = results();
    let projected = grapevine(folder.path(), &["project", "x.toml", "--json"])
        .expect(0)
        .json();
    let projected = projected.as_array().unwrap().clone();
    let runs = Tables::read(&out).unwrap().runs;
    assert_eq!(projected.len(), 6);
    for cell in &projected {
        let run = runs
            .iter()
            .find(|run| cell["cell"] == run.cell.as_str() && run.seed == 0);
        let run = run.expect("the first seed of every cell");
        let sent = run.measured.unwrap();
        assert_eq!(cell["messages"], sent.messages, "{}", run.cell);
        assert_eq!(cell["payload_bytes"], sent.payload_bytes, "{}", run.cell);
        assert_eq!(cell["wire_bytes"], sent.wire_bytes, "{}", run.cell);
        assert_eq!(cell["epochs"], run.epochs, "{}", run.cell);
        let kinds = &cell["bytes_by_kind"];
        let of = |kind: &str| kinds[kind].as_u64().unwrap_or(0);
        assert_eq!(of("feature"), sent.feature_bytes);
        assert_eq!(of("activation"), sent.activation_bytes);
        assert_eq!(of("parameter_gradient"), sent.parameter_gradient_bytes);
        assert_eq!(of("repartition"), sent.repartition_bytes);
        // Nothing overlaps in a projection, and what these strategies send cannot overlap either.
        let (planned, spent) = (
            cell["communication_seconds"].as_f64(),
            sent.communication_seconds,
        );
        let ratio = planned.unwrap() / spent;
        assert!(
            (0.8..1.2).contains(&ratio),
            "{}: {planned:?} against {spent}",
            run.cell
        );
    }
    let ran = grapevine(folder.path(), &["project", "x.toml"]).expect(0);
    assert!(ran.stdout.contains("on the wire") && ran.stdout.contains("retexo"));
    assert!(
        ran.stdout
            .contains("note: Graphs that are held are partitioned with seed 0, the first of 2"),
        "{}",
        ran.stdout
    );
    assert!(
        !folder.path().join("results").exists(),
        "a projection writes nothing"
    );
}

#[test]
fn the_quickstart_is_a_sound_experiment() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = grapevine(root, &["project", "experiments/quickstart.toml", "--json"]).expect(0);
    let cells = ran.json();
    let of = |cell: &Value| cell["cell"].as_str().map(str::to_owned);
    let names: Vec<_> = cells.as_array().unwrap().iter().filter_map(of).collect();
    let expected = [
        "one worker",
        "full",
        "isolated",
        "fixed",
        "varco",
        "bns",
        "pipe",
        "adaqp",
        "distdgl plain",
        "distdgl",
        "distdgl cached",
        "llcg",
        "cluster",
        "grappa",
        "retexo",
    ];
    assert_eq!(names, expected);
    // What it is for: node data is what costs there.
    let full = &cells[1];
    let of = |kind: &str| full["bytes_by_kind"][kind].as_u64().unwrap_or(0);
    let node_data = of("feature") + of("activation") + of("activation_gradient");
    assert!(node_data >= 5 * of("parameter_gradient"), "{full}");
}

#[test]
fn few_rounds_of_llcg_are_told_of() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "--set",
        "strategy=[{ kind = \"llcg\" }]",
        "--set",
        "claim=[]",
    ];
    let note = "llcg: 6 local steps are 1 round (local_steps = 15)";
    for (command, out) in [("run", &["--out", "out"][..]), ("project", &[][..])] {
        let arguments = [
            &[command, "x.toml", "--set", "training.epochs=6"],
            &sets[..],
            out,
        ];
        let ran = grapevine(folder.path(), &arguments.concat()).expect(0);
        let stdout = ran.stdout;
        assert!(stdout.contains(&format!("note: {note}")), "{stdout}");
    }
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains(note), "{page}");
}

#[test]
fn what_does_nothing_is_told_of() {
    let folder = folder_with(EXPERIMENT);
    let strategies = "strategy=[{ kind = \"fixed\", ratio = 100 }, { kind = \"fixed\", label = \"mild\", ratio = 4 }, \
                      { kind = \"grappa\" }, { kind = \"train\", rows = \"none\", repartition_every = 6 }, \
                      { kind = \"isolated\", gradients = { every = 6 } }, { kind = \"distgnn\", delay = 6 }, \
                      { kind = \"fedavg\", absent = 0.3 }, { kind = \"retexo\", gradients = { every = 6 } }, \
                      { kind = \"adaqp\", gradients = { every = 6 } }, { kind = \"ecgraph\", gradients = { every = 6 } }, \
                      { kind = \"cagnet\", gradients = { every = 6 } }, { kind = \"cluster\", gradients = { every = 99 } }, \
                      { kind = \"full\", gradients = { every = 5 } }, { kind = \"distdgl\", cache = \"10B\", \
                      with = { \"training.batch\" = { size = 100, fanouts = [2, 2] } } }]";
    let sets = ["--set", strategies, "--set", "claim=[]"];
    let other = [
        "--set",
        "model.residual=true",
        "--set",
        "model.activation=\"elu\"",
    ];
    let ran = [&["project", "x.toml"], &sets[..], &other[..]].concat();
    let ran = grapevine(folder.path(), &ran).expect(0);
    for note in [
        "note: retexo: its sub-models are the paper's: model.residual and model.activation are for others alone",
        "note: retexo: its workers agree at the end alone: gradients.every = 6, and it takes 6 steps",
        "note: adaqp: its workers agree at the end alone",
        "note: ecgraph: its workers agree at the end alone",
        "note: cagnet: its workers agree at the end alone",
        "note: cluster: its workers agree at the end alone: gradients.every = 99, and it takes ",
        "note: fixed: asks for a ratio of 100, and rows of at most 8 columns become no more than 8.0 times smaller",
        "note: grappa: its chunks are dealt in the first epoch and never again: repartition_every = 50, and it trains for 6 epochs",
        "note: train: no node changes workers: repartition_every = 6, and it trains for 6 epochs",
        "note: isolated: its workers agree at the end alone: gradients.every = 6, and it takes 6 steps",
        "note: distgnn: what its workers send is never used: delay = 6, and it trains for 6 epochs",
        "note: distdgl: its cache holds no row: the features of a node take 128 B",
        "note: fedavg: nobody drops out: absent = 0.3 of 3 clients, rounded down",
    ] {
        assert!(ran.stdout.contains(note), "{note}: {}", ran.stdout);
    }
    for nothing in ["note: mild", "note: full"] {
        assert!(!ran.stdout.contains(nothing), "{}", ran.stdout);
    }
    let pair = ["project", "x.toml", "--set", "partition.workers=2"];
    let pair = grapevine(folder.path(), &pair).expect(0).stdout;
    let dealt =
        "note: grappa: its chunks are dealt in the first epoch and never again: of two workers";
    assert!(pair.contains(dealt), "{pair}");
}

#[test]
fn what_was_trained_on_a_part_of_the_graph_is_projected_beside_it() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "--set",
        "training.inductive=true",
        "--set",
        "strategy=[{ kind = \"full\" }]",
        "--set",
        "claim=[]",
    ];
    grapevine(
        folder.path(),
        &[&["run", "x.toml", "--out", "out"], &sets[..]].concat(),
    )
    .expect(0);
    let beside = [&["project", "x.toml", "--beside", "out"], &sets[..]].concat();
    let ran = grapevine(folder.path(), &beside).expect(0);
    assert!(
        ran.stdout.contains("bytes and time where trained"),
        "{}",
        ran.stdout
    );
}

#[test]
fn the_largest_class_is_that_of_the_test_nodes_also_where_those_are_unseen() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "--set",
        "dataset={ name = \"cora\" }",
        "--set",
        "strategy=[{ kind = \"isolated\" }]",
        "--set",
        "claim=[]",
        "--set",
        "training.epochs=1",
    ];
    let unseen = ["--set", "training.inductive=true"];
    for (out, more) in [("all", &[][..]), ("unseen", &unseen[..])] {
        let run = [&["run", "x.toml", "-q", "--out", out], &sets[..], more].concat();
        grapevine(folder.path(), &run).expect(0);
        grapevine(folder.path(), &["verify", out]).expect(0);
        let out = folder.path().join(out);
        let tables = Tables::read(&out).unwrap();
        // Of the public split's 1,000 test nodes 319 are of one class.
        assert_eq!(tables.runs[0].largest_class, Some(0.319));
        let manifest = fs::read_to_string(out.join("manifest.json")).unwrap();
        let said = manifest.contains("trained on 140 of 2708 nodes and ");
        assert_eq!(said, !more.is_empty(), "{manifest}");
    }
}

#[test]
fn set_reaches_any_key() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "training.epochs=2",
        "model.hidden=5",
        "seeds=[9]",
        "partition.workers=2",
        "strategy.2.ratio=4",
        "strategy.5.rounds_per_layer=1",
        "name=other",
    ];
    let mut arguments = vec!["run", "x.toml", "--quiet"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    grapevine(folder.path(), &arguments).expect(0);
    let tables = Tables::read(&folder.path().join("results/other")).unwrap();
    assert_eq!(tables.runs.len(), 6);
    for run in &tables.runs {
        assert_eq!(
            (run.epochs, run.hidden, run.seed, run.workers),
            (2, 5, 9, 2)
        );
    }
    let fixed = |row: &&grapevine::experiment::rows::EpochRow| row.cell == "fixed";
    let ratio = tables.epochs.iter().find(fixed).unwrap().compression_ratio;
    assert_eq!(ratio, Some(4.0));
}

#[test]
fn a_sweep_makes_a_cell_of_every_value() {
    let text = format!("{EXPERIMENT}[sweep]\n\"partition.workers\" = [1, 2]\n");
    let folder = folder_with(&text);
    grapevine(
        folder.path(),
        &["run", "x.toml", "-q", "--set", "claim=[]", "--out", "out"],
    )
    .expect(0);
    let tables = Tables::read(&folder.path().join("out")).unwrap();
    assert_eq!(tables.runs.len(), 2 * 6 * 2);
    for run in &tables.runs {
        assert!(
            run.cell.contains(&format!("workers={}", run.workers)),
            "{}",
            run.cell
        );
        let sent = run.measured.unwrap().payload_bytes;
        assert_eq!(sent > 0, run.workers > 1, "{}", run.cell);
    }
    grapevine(folder.path(), &["verify", "out"]).expect(0);
}

#[test]
fn shells_get_completions() {
    let folder = folder_with("");
    for shell in ["bash", "zsh", "fish"] {
        let ran = grapevine(folder.path(), &["completions", shell]).expect(0);
        for command in ["run", "report", "verify", "project", "partition", "list"] {
            assert!(ran.stdout.contains(command), "{shell}: {command}");
        }
    }
    grapevine(folder.path(), &["completions", "csh"]).expect(2);
}

#[test]
fn help_and_version_are_there_and_anything_else_is_an_error() {
    let folder = folder_with("");
    let ran = grapevine(folder.path(), &["--version"]).expect(0);
    assert_eq!(
        ran.stdout.trim(),
        format!("grapevine {}", env!("CARGO_PKG_VERSION"))
    );
    for command in [
        "run",
        "report",
        "verify",
        "project",
        "partition",
        "list",
        "completions",
    ] {
        let ran = grapevine(folder.path(), &[command, "--help"]).expect(0);
        assert!(ran.stdout.contains("Usage: grapevine"), "{command}");
    }
    for wrong in [&[][..], &["rum"], &["run"], &["run", "x.toml", "--fast"]] {
        let ran = grapevine(folder.path(), wrong).expect(2);
        assert_eq!(ran.stdout, "", "{wrong:?}");
        assert!(!ran.stderr.is_empty(), "{wrong:?}");
    }
}

#[test]
fn readers_that_go_away_end_the_program_quietly() {
    let folder = folder_with(EXPERIMENT);
    let small = "training.epochs=1";
    for arguments in [
        &["completions", "bash"][..],
        &["list", "strategies"],
        &["list", "networks", "--json"],
        &["partition", "cora", "-w", "2"],
        &["project", "x.toml"],
        &["run", "x.toml", "--set", small, "--out", "out"],
        &["report", "out"],
        &["verify", "out"],
        &["--help"],
    ] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_grapevine"))
            .current_dir(folder.path())
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program was built for these tests");
        drop((child.stdout.take(), child.stderr.take()));
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn a_cause_is_told_once() {
    let folder = folder_with(EXPERIMENT);
    fs::write(folder.path().join("binary.toml"), [0xff, 0xfe, 0]).unwrap();
    for (arguments, cause) in [
        (&["run", "nowhere.toml"][..], "No such file"),
        (&["run", "binary.toml"], "valid UTF-8"),
        (
            &["partition", "nowhere", "-w", "2", "--format", "edge-list"],
            "No such file",
        ),
    ] {
        let ran = grapevine(folder.path(), arguments).expect(2);
        assert_eq!(ran.stderr.matches(cause).count(), 1, "{}", ran.stderr);
    }
}

#[test]
fn flags_of_partition_that_do_not_go_together_are_named() {
    let folder = folder_with("");
    fs::write(folder.path().join("parts.txt"), "0\n1\n").unwrap();
    for (arguments, says) in [
        (
            "cora -w 4 --format planetoid",
            &["--format", "known data set"][..],
        ),
        (
            "parts.txt -w 4",
            &["--format", "not a known data set", "edge-list, metis"],
        ),
        (
            "here -w 4",
            &["DATASET", "not a known data set", "--format"],
        ),
        ("coora -w 4", &["DATASET", "did you mean cora?"]),
        ("arxiv -w 4", &["DATASET", "did you mean ogbn-arxiv?"]),
        (
            "cora -w 2 --file parts.txt",
            &["--file: goes with `method = \"given\"` only"],
        ),
        (
            "cora -w 2 -m given",
            &["--method: \"given\" needs `file` beside it"],
        ),
        ("cora -w 2 -m given --file nope", &["cannot read nope"]),
        (
            "cora -w 2 -m given --file parts.txt",
            &["parts.txt", "2708"],
        ),
        (
            "cora -w 2 -m dirichlet",
            &["--method: \"dirichlet\" and `concentration` need each other"],
        ),
        (
            "cora -w 2 --concentration 1",
            &["--concentration: and `method = \"dirichlet\"` need each other"],
        ),
        (
            "cora -w 2 -m dirichlet --concentration 0",
            &["--concentration: must be from 1e-9", "not 0"],
        ),
        (
            "cora -w 20 -m dirichlet --concentration 1e-9",
            &["--concentration: leaves a worker of 20"],
        ),
        (
            "{kind=\"sbm\",nodes=90,classes=3,features=4,degree_within=4,degree_between=1,labels=5} -w 2 -m dirichlet --concentration 1",
            &[
                "--method: \"dirichlet\" shares out",
                "no node has one class",
            ],
        ),
        ("cora -w 0", &["--workers: must be at least 1, not 0"]),
        ("cora -w 2 -m met", &["--method", "'metis'"]),
        ("here -w 2 --format planetoi", &["--format", "'planetoid'"]),
        (
            "{kind=\"rma\"} -w 2",
            &["DATASET", "`rma`", "features = 16"],
        ),
        (
            "{kind=\"rmat\"} -w 2 --format ogb",
            &["--format", "remove it"],
        ),
        ("cora -w 2 --out .", &["--out: cannot write ."]),
    ] {
        let arguments: Vec<&str> = ["partition"]
            .into_iter()
            .chain(arguments.split(' '))
            .collect();
        let ran = grapevine(folder.path(), &arguments).expect(2);
        for text in says {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        for text in ["experiment file", "partition.", "panicked"] {
            assert!(!ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
        assert_eq!(ran.stdout, "");
    }
}

#[test]
fn a_changed_csv_fails_verification() {
    let (folder, out) = results();
    let path = out.join("runs.csv");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(",ok,"));
    fs::write(&path, text.replacen(",ok,", ",fine,", 1)).unwrap();
    let ran = grapevine(folder.path(), &["verify", "out"]).expect(1);
    let says = "manifest: runs.csv is not the file that was written";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}

#[test]
fn results_of_another_experiment_are_not_overwritten() {
    let (folder, out) = results();
    let before = fs::read(out.join("runs.csv")).unwrap();
    let again = |name: &str| {
        let set = format!("name={name}");
        let few = ["--set", "training.epochs=1", "--out", "out", "-q"];
        let figure = ["--set", "figure=[{ kind = \"pareto\" }]", "--set", &set];
        let arguments = [&["run", "x.toml"][..], &few, &figure].concat();
        grapevine(folder.path(), &arguments)
    };
    let ran = again("other").expect(2);
    for text in ["out", "\"small\"", "\"other\"", "--out"] {
        assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
    }
    assert_eq!(fs::read(out.join("runs.csv")).unwrap(), before);

    // The same experiment may be run again; figures that it has no more do not stay.
    fs::write(out.join("figures/mine.svg"), "mine").unwrap();
    again("small").expect(0);
    assert_ne!(fs::read(out.join("runs.csv")).unwrap(), before);
    let left = ["mine.svg", "pareto.png", "pareto.svg"].map(|name| out.join("figures").join(name));
    assert_eq!(files(&out.join("figures")), left);
}

#[test]
fn two_runs_do_not_write_to_one_folder() {
    let (folder, out) = results();
    let before = fs::read(out.join("runs.csv")).unwrap();
    let lock = fs::File::open(out.join(".lock")).unwrap();
    lock.try_lock().expect("the run has ended");
    let again = || grapevine(folder.path(), &["run", "x.toml", "-q", "--out", "out"]);
    let ran = again().expect(2);
    let says = "out: another run is writing its results there; give another folder with --out";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert_eq!(fs::read(out.join("runs.csv")).unwrap(), before);
    drop(lock);
    again().expect(0);
}

#[test]
fn a_place_for_results_that_is_a_file_is_wrong_input() {
    let folder = folder_with(EXPERIMENT);
    fs::write(folder.path().join("taken"), "mine").unwrap();
    for out in ["taken", "taken/below"] {
        let ran = grapevine(folder.path(), &["run", "x.toml", "-q", "--out", out]).expect(2);
        assert!(
            ran.stderr.contains(&format!("{out}: taken is a file")),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stdout, "");
    }
    assert_eq!(
        fs::read_to_string(folder.path().join("taken")).unwrap(),
        "mine"
    );
}

#[test]
fn an_optional_data_set_that_is_not_there_is_skipped_and_said_to_be() {
    let data = "synthetic = { kind = \"sbm\", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }";
    let absent = "path = \"gone/citeseer\", format = \"planetoid\", optional = true";
    let (head, _) = EXPERIMENT.split_once("[[claim]]").expect("it has a claim");
    let claim = |cell: &str| {
        format!(
            "[[claim]]\nid = \"{cell}\"\nsource = \"s\"\nstatement = \"x\"\nmeasure = \"feature_bytes\"\n\
             compare = {{ strategy = \"{cell}\", equals = 0 }}\n"
        )
    };
    let swept = format!(
        "{head}[sweep]\ndataset = [{{ {data} }}, {{ {absent} }}]\n{}{}",
        claim("isolated"),
        claim("dataset=citeseer isolated")
    );
    let folder = folder_with(&swept);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(0);
    let note = "skipped the cells with the optional data set gone/citeseer: it is not there";
    assert!(ran.stderr.contains(note), "{}", ran.stderr);
    assert!(
        ran.stdout.contains(&format!("note: {note}")),
        "{}",
        ran.stdout
    );
    let tables = Tables::read(&folder.path().join("out")).expect("tables");
    assert_eq!(
        tables.runs.len(),
        6 * 2,
        "six strategies on the one that is there"
    );
    let verdicts: Vec<ClaimVerdict> = tables.claims.iter().map(|c| c.verdict).collect();
    let expected = [ClaimVerdict::Reproduced, ClaimVerdict::Inconclusive];
    assert_eq!(verdicts, expected);
    grapevine(folder.path(), &["verify", "out"]).expect(0);
    let projected = grapevine(folder.path(), &["project", "x.toml", "--quiet"]).expect(0);
    let note = format!("note: {note}");
    assert!(projected.stdout.contains(&note), "{}", projected.stdout);

    let alone = format!("{head}[sweep]\ndataset = [{{ {absent} }}]\n");
    let folder = folder_with(&alone);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(2);
    assert!(
        ran.stderr
            .contains("no data set of the experiment is there"),
        "{}",
        ran.stderr
    );
    let required = alone.replace(", optional = true", "");
    let folder = folder_with(&required);
    let ran = grapevine(folder.path(), &["run", "x.toml", "--out", "out"]).expect(2);
    assert!(ran.stderr.contains("cannot read"), "{}", ran.stderr);
}

#[test]
fn folders_are_compared_by_cell_and_seed() {
    let folder = folder_with(EXPERIMENT);
    let run = |out: &str, sets: &[&str]| {
        let arguments = ["run", "x.toml", "--quiet", "--out", out];
        grapevine(folder.path(), &[&arguments[..], sets].concat()).expect(0);
    };
    run("one", &["--set", "training.epochs=3"]);
    run("two", &["--set", "training.epochs=3"]);
    run("longer", &["--set", "seeds=[0, 1, 5]"]);
    let same = grapevine(folder.path(), &["compare", "one", "two", "--json"]).expect(0);
    let same = same.json();
    let changes = same[0]["comparison"]["changes"].as_array().unwrap().clone();
    // Six cells, of which each has all measures but the time to a target that not all reach.
    assert!(changes.len() >= 6 * 8, "{}", changes.len());
    for change in changes {
        let measured = ["measured_seconds", "peak_memory_bytes"];
        if !measured.contains(&change["measure"].as_str().unwrap()) {
            assert_eq!(change["verdict"], "equal", "{change}");
        }
    }
    let ran = grapevine(folder.path(), &["compare", "one", "two"]).expect(0);
    let all = "all results; the others are time and memory of the machine";
    assert!(ran.stdout.contains(all), "{}", ran.stdout);
    let ran = grapevine(folder.path(), &["compare", "one", "longer"]).expect(0);
    assert!(!ran.stdout.contains(all), "{}", ran.stdout);
    // What the machine took stands below what was measured of trainings.
    let (results, machine) = ("simulated_seconds", "measured_seconds");
    let places = [ran.stdout.rfind(results), ran.stdout.find(machine)];
    assert!(
        places[0].is_some() && places[0] < places[1],
        "{}",
        ran.stdout
    );
    for text in [
        "longer against one",
        "another seeds: [0,1] → [0,1,5]",
        "payload_bytes",
        "differs",
    ] {
        assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    }
    // The same seeds are compared, and those of one folder alone are not.
    assert!(!ran.stdout.contains("only in"), "{}", ran.stdout);
    let ran = grapevine(folder.path(), &["compare", "one", "nowhere"]).expect(2);
    assert!(
        ran.stderr.contains("nowhere is not a result folder"),
        "{}",
        ran.stderr
    );
    grapevine(folder.path(), &["compare", "one"]).expect(2);
}

#[test]
fn weights_are_files_of_what_each_run_starts_from() {
    let folder = folder_with(EXPERIMENT);
    let ran = grapevine(folder.path(), &["weights", "x.toml", "--out", "w"]).expect(0);
    // Six strategies with two seeds each.
    assert_eq!(ran.stdout.lines().count(), 12);
    let quiet = ["weights", "x.toml", "--out", "quiet", "-q"];
    let quiet = grapevine(folder.path(), &quiet).expect(0);
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));
    assert!(folder.path().join("quiet/full-1.npz").exists());
    let shapes = |cell: &str| {
        let path = folder.path().join("w").join(format!("{cell}-1.npz"));
        let mut npz = ndarray_npy::NpzReader::new(fs::File::open(path).unwrap()).unwrap();
        let mut found = Vec::new();
        for name in npz.names().unwrap() {
            let array: ndarray::ArrayD<f32> = npz.by_name(&name).unwrap();
            if let &[inputs, outputs] = array.shape() {
                // Glorot and Bengio (2010), eq. 16.
                let bound = (6.0 / (inputs + outputs) as f32).sqrt();
                let largest = array
                    .iter()
                    .fold(0.0_f32, |most, value| most.max(value.abs()));
                assert!(
                    (0.8 * bound..=bound).contains(&largest),
                    "{name}: {largest}"
                );
            } else {
                assert!(array.iter().all(|value| *value == 0.0 || *value == 1.0));
            }
            found.push((name, array.shape().to_vec()));
        }
        found.sort();
        found
    };
    let of = |named: &[(&str, &[usize])]| -> Vec<(String, Vec<usize>)> {
        let owned = |&(name, shape): &(&str, &[usize])| (name.to_owned(), shape.to_vec());
        named.iter().map(owned).collect()
    };
    let gcn: &[(&str, &[usize])] = &[
        ("convs.0.bias", &[8]),
        ("convs.0.weight", &[32, 8]),
        ("convs.1.bias", &[4]),
        ("convs.1.weight", &[8, 4]),
    ];
    assert_eq!(shapes("full"), of(gcn));
    assert_eq!(shapes("varco"), of(gcn));
    // RETEXO's first sub-model has a normalisation and a head to the classes.
    let sub_models: &[(&str, &[usize])] = &[
        ("0.conv.bias", &[8]),
        ("0.conv.weight", &[32, 8]),
        ("0.head_bias", &[4]),
        ("0.head_weight", &[8, 4]),
        ("0.norm.gain", &[8]),
        ("0.norm.shift", &[8]),
        ("1.conv.bias", &[4]),
        ("1.conv.weight", &[8, 4]),
    ];
    assert_eq!(shapes("retexo"), of(sub_models));
    let again = grapevine(folder.path(), &["weights", "x.toml", "--out", "x.toml/w"]);
    let refused = again.expect(2).stderr;
    assert!(
        refused.contains("x.toml is a file, not a folder"),
        "{refused}"
    );
}

#[test]
fn runs_start_from_weights_of_a_file() {
    // Without its claims, which are about other strategies.
    let folder = folder_with(EXPERIMENT.split("[[claim]]").next().unwrap());
    let strategies = |with: &dyn Fn(&str) -> String| {
        let of = |label: &str, options: &str| {
            format!("{{ label = \"{label}\", {options}{} }}", with(label))
        };
        let entries = [
            of("full", "kind = \"full\""),
            of("retexo", "kind = \"retexo\""),
            of("clients", "kind = \"retexo\", form = \"distributed\""),
        ];
        format!("strategy=[{}]", entries.join(", "))
    };
    let drawn = strategies(&|_| String::new());
    let from = |file: &str| {
        strategies(&|label| {
            format!(
                ", with = {{ \"model.weights\" = \"{}\" }}",
                file.replace("CELL", label)
            )
        })
    };
    let call = |command: &str, out: &str, sets: &[&str]| {
        let mut arguments = vec![command, "x.toml", "--out", out, "--quiet"];
        for set in sets {
            arguments.extend(["--set", set]);
        }
        grapevine(folder.path(), &arguments)
    };
    call("weights", "w", &[&drawn]).expect(0);
    // The same weights by another way: the same training.
    call("run", "drawn", &[&drawn]).expect(0);
    call("run", "given", &[&from("w/CELL-{seed}.npz")]).expect(0);
    let losses = |out: &str| {
        let epochs = fs::read_to_string(folder.path().join(out).join("epochs.csv")).unwrap();
        let mut rows = epochs.lines().map(|row| row.split(',').map(str::to_owned));
        let loss = rows.next().unwrap().position(|head| head == "train_loss");
        rows.map(|mut row| row.nth(loss.unwrap()).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(losses("drawn"), losses("given"));
    // Another seed draws others, but starts where the file says.
    let other = ["seeds=[7]", &from("w/CELL-1.npz")];
    call("weights", "other", &other).expect(0);
    for cell in ["full", "retexo", "clients"] {
        let read = |file: String| fs::read(folder.path().join(file)).unwrap();
        assert_eq!(
            read(format!("other/{cell}-7.npz")),
            read(format!("w/{cell}-1.npz"))
        );
    }
    // Other values under the same name are another run.
    let one = [
        "seeds=[0]",
        "strategy=[{ kind = \"full\" }]",
        "model.weights=changing.npz",
    ];
    let copy = |from: &str| {
        fs::copy(folder.path().join(from), folder.path().join("changing.npz")).unwrap()
    };
    copy("w/full-0.npz");
    call("run", "changed", &one).expect(0);
    let before = losses("changed");
    copy("w/full-1.npz");
    let resumed = ["run", "x.toml", "--out", "changed", "--resume", "--quiet"];
    let sets = one.iter().flat_map(|set| ["--set", set]);
    grapevine(
        folder.path(),
        &resumed.into_iter().chain(sets).collect::<Vec<_>>(),
    )
    .expect(0);
    assert_ne!(losses("changed"), before);
    let other_model = "retexo-0.npz: has no array `convs.0.weight` of 32 × 8; without `weights`, `grapevine weights` writes a file with all arrays that are needed (cell \"full\")";
    for (weights, told) in [
        ("w/none-{seed}.npz", "cannot read"),
        ("w/retexo-{seed}.npz", other_model),
    ] {
        let refused = call(
            "run",
            "refused",
            &[&drawn, &format!("model.weights={weights}")],
        );
        let stderr = refused.expect(2).stderr;
        assert!(stderr.contains(told), "{stderr}");
    }
    let wider = call(
        "run",
        "refused",
        &[
            "model.hidden=9",
            "strategy=[{ kind = \"full\" }]",
            "model.weights=w/full-0.npz",
        ],
    );
    let stderr = wider.expect(2).stderr;
    let told = "array `convs.0.weight` has 32 × 8 values; the model has 32 × 9";
    assert!(stderr.contains(told), "{stderr}");
}

#[test]
fn the_operations_of_an_epoch_are_timed_on_a_device() {
    let folder = tempfile::tempdir().unwrap();
    let kernels = |arguments: &[&str]| {
        let start = ["kernels", "--nodes", "100", "--readings", "2"];
        grapevine(folder.path(), &[&start, arguments].concat())
    };
    let found = kernels(&["--json"]).expect(0).json();
    assert_eq!(found["nodes"], 100);
    let operations = found["operations"].as_array().unwrap();
    assert_eq!(operations[0]["operation"], "copy");
    for operation in operations {
        let seconds = operation["seconds"].as_array().unwrap();
        assert_eq!(seconds.len(), 2);
        assert!(seconds.iter().all(|time| time.as_f64().unwrap() > 0.0));
    }
    let told = kernels(&[]).expect(0).stdout;
    assert_eq!(told.lines().count(), 1 + operations.len(), "{told}");
    assert!(told.lines().nth(1).unwrap().contains("100 %"), "{told}");
    for (bad, said) in [
        (["--backend", "cuda"], "flex, ndarray or wgpu"),
        (["--adapter", "some"], "device.adapters"),
        (["--threads", "2"], "--threads"),
    ] {
        let refused = kernels(&bad).expect(2).stderr;
        assert!(refused.contains(said), "{refused}");
    }
}
