//! The program on real processes, as a user starts it: `mpirun -n 4 grapevine …`.

mod launch;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use grapevine::experiment::Tables;
use grapevine::experiment::rows::RunRow;
use launch::{Started, grapevine, mpirun, mpirun_each, start};

const EXPERIMENT: &str = r#"name = "small"
seeds = [0, 1]
[dataset]
synthetic = { kind = "sbm", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }
split = { train = 0.5, val = 0.2 }
[model]
kind = "gcn"
hidden = 8
[training]
epochs = 6
evaluate_every = 2
[partition]
method = "metis"
workers = 4
[network]
preset = "ethernet-1g"
"#;

/// Strategies of which the first is short and the second runs until it is stopped.
const SHORT_AND_ENDLESS: &str = r#"
[[strategy]]
kind = "full"
label = "short"
[[strategy]]
kind = "full"
label = "endless"
with = { "training.epochs" = 1000000 }
"#;

/// Longer than any of what is waited for takes.
const LONG: Duration = Duration::from_mins(1);

fn folder(strategies: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for the test");
    fs::write(
        folder.path().join("x.toml"),
        format!("{EXPERIMENT}{strategies}"),
    )
    .expect("the experiment can be written");
    folder
}

fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
    let start = Instant::now();
    while !there() {
        assert!(start.elapsed() < LONG, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The short cell has ended and the endless one trains.
fn in_the_endless_cell(folder: &Path) -> Started {
    let run = ["run", "x.toml", "--engine", "mpi", "--out", "out"];
    let started = start(folder, 4, &run);
    let manifest = folder.join("out/manifest.json");
    wait_until("the first cell is written", || manifest.exists());
    // Results come once per cell and seed that takes long; training goes on right after.
    std::thread::sleep(Duration::from_millis(500));
    started
}

fn finished(folder: &Path) -> Vec<RunRow> {
    Tables::read(&folder.join("out")).expect("tables").runs
}

#[test]
fn processes_train_what_the_simulation_trains_and_send_the_same_bytes() {
    let strategies = r#"
        [[strategy]]
        kind = "full"
        [[strategy]]
        kind = "varco"
        [[strategy]]
        kind = "grappa"
        repartition_every = 2
        [[strategy]]
        kind = "retexo"
        rounds_per_layer = 3
        [[strategy]]
        kind = "full"
        label = "overlapped"
        overlap = true
        with = { "network.all_reduce" = "halving-doubling" }
        [[strategy]]
        kind = "grappa"
        label = "batches"
        with = { "training.batch" = { size = 64, fanouts = [4, 4] } }
        [[strategy]]
        kind = "distdgl"
        cache = "200kB"
        with = { "training.batch" = { size = 64, fanouts = [4, 4] } }
        [[strategy]]
        kind = "llcg"
        local_steps = 2
        [[strategy]]
        kind = "cluster"
        [[strategy]]
        kind = "train"
        repartition_every = 2
    "#;
    let folder = folder(strategies);
    let run = [
        "run", "x.toml", "--engine", "mpi", "--json", "--out", "real",
    ];
    let real = mpirun(folder.path(), 4, &run);
    assert_eq!(real.code, 0, "{}", real.stderr);
    let document: serde_json::Value =
        serde_json::from_str(&real.stdout).expect("process 0 alone prints, one JSON document");
    assert_eq!(document["runs"].as_array().map(Vec::len), Some(20));
    let lines = |text: &str| {
        real.stderr
            .lines()
            .filter(|line| line.contains(text))
            .count()
    };
    assert_eq!(
        lines("full, seed 0:"),
        1,
        "process 0 alone reports progress: {}",
        real.stderr
    );

    let simulated = grapevine(folder.path(), &["run", "x.toml", "--out", "simulated"]);
    assert_eq!(simulated.code, 0, "{}", simulated.stderr);
    let verified = grapevine(folder.path(), &["verify", "real"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);

    let read = |name: &str| Tables::read(&folder.path().join(name)).expect("tables");
    let (real, simulated) = (read("real"), read("simulated"));
    assert_eq!(real.epochs.len(), simulated.epochs.len());
    for (real, simulated) in real.epochs.iter().zip(&simulated.epochs) {
        let what = format!("{}, seed {}, epoch {}", real.cell, real.seed, real.epoch);
        let loss = |of: Option<f64>| of.expect("every epoch has a loss");
        let (a, b) = (loss(real.train_loss), loss(simulated.train_loss));
        assert!((a - b).abs() <= 1e-5 * b.abs(), "{what}: {a} and {b}");
        assert_eq!(real.val_accuracy, simulated.val_accuracy, "{what}");
        assert_eq!(real.wire_bytes, simulated.wire_bytes, "{what}");
        assert_eq!(real.weight_sd, simulated.weight_sd, "{what}");
        assert_eq!(
            real.compression_error, simulated.compression_error,
            "{what}"
        );
    }
    assert_eq!(real.traffic, simulated.traffic, "message for message");
    for (real, simulated) in real.runs.iter().zip(&simulated.runs) {
        assert_eq!(
            (real.engine.as_str(), simulated.engine.as_str()),
            ("mpi", "simulated")
        );
        assert_eq!(real.parameters, simulated.parameters);
        let (real, simulated) = (real.measured.unwrap(), simulated.measured.unwrap());
        assert_eq!(real.payload_bytes, simulated.payload_bytes);
        assert!(real.compute_seconds > 0.0 && real.exposed_communication_seconds > 0.0);
        assert!(
            real.simulated_seconds <= real.measured_seconds * 1.5 + 0.1,
            "clocks are real time"
        );
    }
}

#[test]
fn workers_that_wait_for_a_larger_one_say_so_on_both_engines() {
    let strategies = r#"
        [[strategy]]
        kind = "isolated"
        with = { "training.epochs" = 30, "model.hidden" = 64 }
    "#;
    let folder = folder(strategies);
    let file = folder.path().join("x.toml");
    let parts: String = (0..6000)
        .map(|node| {
            if node < 5400 {
                "0\n"
            } else {
                ["1\n", "2\n", "3\n"][node % 3]
            }
        })
        .collect();
    fs::write(folder.path().join("parts.txt"), parts).expect("the parts can be written");
    let text = fs::read_to_string(&file).expect("the experiment");
    let given = "method = \"given\"\nfile = \"parts.txt\"";
    let text = text
        .replace("nodes = 600", "nodes = 6000")
        .replace("method = \"metis\"", given);
    fs::write(&file, text).expect("the experiment can be written");
    let real = ["run", "x.toml", "--engine", "mpi", "--out", "real"];
    let real = mpirun(folder.path(), 4, &real);
    assert_eq!(real.code, 0, "{}", real.stderr);
    let simulated = grapevine(folder.path(), &["run", "x.toml", "--out", "simulated"]);
    assert_eq!(simulated.code, 0, "{}", simulated.stderr);
    // Three of four workers have a twenty-seventh of the first one's nodes: computing takes a
    // quarter of all clocks and a little, and next to nothing is sent.
    for name in ["real", "simulated"] {
        let tables = Tables::read(&folder.path().join(name)).expect("tables");
        for run in tables.runs {
            let run = run.measured.expect("the run was measured");
            let waiting = run.waiting_seconds.expect("engines measure waiting");
            let share = waiting / run.simulated_seconds;
            assert!((0.4..0.8).contains(&share), "{name}: {share} of the clock");
            let exposed = run.exposed_communication_seconds;
            assert!(
                waiting > 2.0 * exposed,
                "{name}: {waiting} s, exposed {exposed} s"
            );
        }
    }
}

const GRAPH: &str = "{ kind = \"sbm\", nodes = 600, classes = 4, features = 32, degree_within = 8, degree_between = 2 }";
const SPLIT: &str = "split = { train = 0.5, val = 0.2";

/// The experiment on shards of its graph, which are written, and on the graph divided alike.
fn on_shards(strategies: &str) -> [tempfile::TempDir; 2] {
    let [shards, graph] = [folder(strategies), folder(strategies)];
    let text = format!("{EXPERIMENT}{strategies}");
    let synthetic = format!("synthetic = {GRAPH}\n{SPLIT} }}\n");
    let on = text.replace(&synthetic, "shards = \"shards\"\n");
    assert!(!on.contains("synthetic"), "{on}");
    fs::write(shards.path().join("x.toml"), on).expect("it can be written");
    let alike = text
        .replace(SPLIT, &format!("{SPLIT}, seed = 7"))
        .replace("workers = 4", "workers = 4\nseed = 4");
    fs::write(graph.path().join("x.toml"), alike).expect("it can be written");
    let set = format!("{SPLIT}, seed = 7 }}");
    let divide = [
        "partition",
        GRAPH,
        "--workers",
        "4",
        "--seed",
        "4",
        "--set",
        &set,
        "--out",
        "shards",
        "--shards",
    ];
    let written = grapevine(shards.path(), &divide);
    assert_eq!(written.code, 0, "{}", written.stderr);
    [shards, graph]
}

#[test]
fn processes_that_have_a_shard_each_train_what_the_simulation_trains_on_the_graph() {
    let strategies = r#"
        [[strategy]]
        kind = "full"
        [[strategy]]
        kind = "isolated"
        [[strategy]]
        kind = "fixed"
        ratio = 4
        [[strategy]]
        kind = "varco"
        [[strategy]]
        kind = "bns"
        share = 0.5
        [[strategy]]
        kind = "pipe"
        [[strategy]]
        kind = "adaqp"
        assign_every = 2
        [[strategy]]
        kind = "retexo"
        rounds_per_layer = 3
        [[strategy]]
        kind = "grappa"
        repartition_every = 1
        chunking = "partition"
        [[strategy]]
        kind = "grappa"
        label = "in batches"
        repartition_every = 2
        chunking = "partition"
        with = { "training.batch" = { size = 20, fanouts = [5, 5] } }
        [[strategy]]
        kind = "llcg"
        local_steps = 2
        [[strategy]]
        kind = "fedgcn"
        [[strategy]]
        kind = "distdgl"
        with = { "training.batch" = { size = 20, fanouts = [5, 5] } }
        # Of so many columns that messages leave only once they are taken.
        [[strategy]]
        kind = "distdgl"
        label = "wide"
        with = { "training.batch" = { size = 20, fanouts = [5, 5] }, "model.hidden" = 256 }
        [[strategy]]
        kind = "distdgl"
        label = "cached"
        cache = "grappa-halo"
        prefetch = false
        with = { "training.batch" = { size = 20, fanouts = [5, 5] } }
        [[strategy]]
        kind = "full"
        label = "full in batches"
        with = { "training.batch" = { size = 20, fanouts = [5, 5] } }
        [[strategy]]
        kind = "retexo"
        label = "retexo in batches"
        rounds_per_layer = 2
        with = { "training.batch" = { size = 20, fanouts = [5, 5] } }
        [[strategy]]
        kind = "sancus"
        [[strategy]]
        kind = "ecgraph"
        period = 2
        tune = true
        [[strategy]]
        kind = "fedavg"
        local_steps = 1
        [[strategy]]
        kind = "varco"
        label = "validation"
        schedule = { kind = "adaptive-validation", from = 8 }
    "#;
    let [shards, graph] = on_shards(strategies);
    let run = ["run", "x.toml", "--engine", "mpi", "--out", "out"];
    let real = mpirun(shards.path(), 4, &run);
    assert_eq!(real.code, 0, "{}", real.stderr);
    let verified = grapevine(shards.path(), &["verify", "out"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let simulated = grapevine(graph.path(), &["run", "x.toml", "--out", "out"]);
    assert_eq!(simulated.code, 0, "{}", simulated.stderr);
    let read = |folder: &Path| Tables::read(&folder.join("out")).expect("tables");
    let (real, simulated) = (read(shards.path()), read(graph.path()));
    assert_eq!(real.traffic, simulated.traffic, "message for message");
    assert_eq!(real.epochs.len(), simulated.epochs.len());
    for (real, simulated) in real.epochs.iter().zip(&simulated.epochs) {
        let what = format!("{}, seed {}, epoch {}", real.cell, real.seed, real.epoch);
        let loss = |of: Option<f64>| of.expect("every epoch has a loss");
        let (a, b) = (loss(real.train_loss), loss(simulated.train_loss));
        assert!((a - b).abs() <= 1e-5 * b.abs(), "{what}: {a} and {b}");
        assert_eq!(real.test_accuracy, simulated.test_accuracy, "{what}");
        assert_eq!(real.wire_bytes, simulated.wire_bytes, "{what}");
    }
    for (real, simulated) in real.runs.iter().zip(&simulated.runs) {
        assert_eq!(real.edge_cut, simulated.edge_cut);
        assert_eq!(real.boundary_rows, simulated.boundary_rows);
        assert_eq!(real.partitioner, simulated.partitioner);
    }
}

#[test]
fn a_shard_that_is_damaged_or_missing_is_told_by_the_process_that_has_it() {
    let [folder, _] = on_shards("[[strategy]]\nkind = \"full\"\n");
    let run = ["run", "x.toml", "--engine", "mpi", "--out", "out"];
    let refused = |processes: usize, sets: &[&str], expected: &str| {
        let arguments = [&run[..], sets].concat();
        let ran = mpirun(folder.path(), processes, &arguments);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        // Process 0, which may have nothing to complain of, has its lock there.
        let manifest = folder.path().join("out/manifest.json");
        assert!(!manifest.exists(), "nothing is written");
    };
    refused(
        3,
        &["--set", "partition.workers=3"],
        "is 3, and the shards are of 4 parts",
    );
    let file = folder.path().join("shards/part-2/indices.npy");
    let whole = fs::read(&file).expect("it is there");
    fs::write(&file, &whole[..whole.len() - 4]).expect("it can be written");
    refused(4, &[], "part-2/indices.npy: is damaged");
    fs::remove_file(&file).expect("it can be removed");
    refused(4, &[], "part-2/indices.npy");
}

/// Accuracies and validation loss, which process 0 puts together of what each computes on its part.
#[test]
fn processes_score_what_the_simulation_does_to_the_bit() {
    let each = "[[strategy]]\nkind = \"full\"\n[[strategy]]\nkind = \"isolated\"\n\
                [[strategy]]\nkind = \"retexo\"\nrounds_per_layer = 2\n";
    let folder = folder(each);
    let cora = "dataset={ name = \"cora\" }";
    let labels = "dataset.synthetic.labels=5";
    for (number, sets) in [
        vec![cora, "model.kind=\"gat\""],
        vec![cora, "model.kind=\"sage\"", "model.norm=\"layer\""],
        vec![labels, "task.metric=\"roc-auc\"", "model.kind=\"gin\""],
        vec![labels, "task.metric=\"micro-f1\"", "partition.workers=3"],
        vec!["training.inductive=true", "model.kind=\"gcn\""],
    ]
    .iter()
    .enumerate()
    {
        let workers = if number == 3 { 3 } else { 4 };
        let (real, simulated) = (format!("real-{number}"), format!("simulated-{number}"));
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let sets: Vec<&str> = sets.chain(["--set", "seeds=[0]"]).collect();
        let run = |out| [&["run", "x.toml", "--out", out], &sets[..]].concat();
        let of_mpi = [&run(&real)[..], &["--engine", "mpi"]].concat();
        let ran = mpirun(folder.path(), workers, &of_mpi);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let ran = grapevine(folder.path(), &run(&simulated));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let scores = |out: &str| {
            let tables = Tables::read(&folder.path().join(out)).expect("tables");
            let rows = tables.epochs.into_iter().map(|row| {
                let scores = [row.train_accuracy, row.val_accuracy, row.test_accuracy];
                let loss = row.val_loss.map(f64::to_bits);
                (
                    row.cell,
                    row.epoch,
                    scores.map(|score| score.map(f64::to_bits)),
                    loss,
                )
            });
            rows.collect::<Vec<_>>()
        };
        let found = scores(&real);
        assert!(
            found.iter().any(|(.., loss)| loss.is_some()),
            "some epochs are evaluated"
        );
        assert_eq!(found, scores(&simulated), "{sets:?}");
    }
}

#[test]
fn a_killed_process_ends_the_run_everywhere_and_what_was_finished_stays() {
    let folder = folder(SHORT_AND_ENDLESS);
    let started = in_the_endless_cell(folder.path());
    started.kill(2);
    let ran = started.wait(LONG);
    assert_ne!(ran.code, 0);
    // Each says so; what mpirun does not pass on while it ends, it does not.
    let heard = [0, 1, 3].into_iter().filter(|rank| {
        let told = format!("error: worker {rank}: the run was ended from outside");
        ran.stderr.contains(&told)
    });
    assert!(heard.count() >= 1, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("signal 9"),
        "mpirun says who died: {}",
        ran.stderr
    );
    let rows = finished(folder.path());
    assert!(
        rows.iter().any(|row| row.cell == "short" && row.is_ok()),
        "{rows:?}"
    );
}

/// The files of checkpoints in a result folder.
fn checkpoints(out: &Path) -> Vec<String> {
    let runs = fs::read_dir(out.join("checkpoints")).into_iter().flatten();
    let files = runs.filter_map(|run| fs::read_dir(run.ok()?.path()).ok());
    let name = |file: fs::DirEntry| file.path().to_string_lossy().into_owned();
    let names = files.flatten().filter_map(Result::ok).map(name);
    names.filter(|name| name.contains("worker-")).collect()
}

#[test]
fn processes_that_were_killed_go_on_from_the_checkpoints_that_each_wrote() {
    let strategies = r#"
        [[strategy]]
        kind = "full"
        [[strategy]]
        kind = "pipe"
        smoothing = "both"
        [[strategy]]
        kind = "adaqp"
        assign_every = 30
        [[strategy]]
        kind = "retexo"
        rounds_per_layer = 100
    "#;
    let [folder, _] = on_shards(strategies);
    let sets = [
        "--set",
        "seeds=[0]",
        "--set",
        "training.epochs=200",
        "--set",
        "training.checkpoint_every=10",
    ];
    let run = |more: &[&'static str]| {
        let run = ["run", "x.toml", "--engine", "mpi"];
        [&run[..], more, &sets].concat()
    };
    let whole = mpirun(folder.path(), 4, &run(&["--out", "whole"]));
    assert_eq!(whole.code, 0, "{}", whole.stderr);
    assert!(checkpoints(&folder.path().join("whole")).is_empty());
    let out = folder.path().join("out");
    let goes_on = "goes on from a checkpoint after epoch";
    let mut arguments = run(&["--out", "out"]);
    let mut went_on = 0;
    for rank in [2, 0, 3, 1] {
        let before = checkpoints(&out);
        let started = start(folder.path(), 4, &arguments);
        // Each has written two more, in this run or in a later one.
        let new = |file: &String| !before.contains(file);
        wait_until("checkpoints are written", || {
            checkpoints(&out).iter().filter(|file| new(file)).count() >= 8
        });
        started.kill(rank);
        let killed = started.wait(LONG);
        assert_ne!(killed.code, 0);
        went_on += killed.stderr.matches(goes_on).count();
        arguments = run(&["--resume", "--out", "out"]);
    }
    let ran = mpirun(folder.path(), 4, &arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    went_on += ran.stderr.matches(goes_on).count();
    assert!(went_on > 1, "most were killed within a run: {went_on}");
    let verified = grapevine(folder.path(), &["verify", "out"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let read = |name: &str| Tables::read(&folder.path().join(name)).expect("tables");
    let (found, expected) = (read("out"), read("whole"));
    assert_eq!(found.traffic, expected.traffic, "message for message");
    assert_eq!(found.epochs.len(), expected.epochs.len());
    for (found, expected) in found.epochs.iter().zip(&expected.epochs) {
        let what = format!("{}, epoch {}", found.cell, found.epoch);
        assert_eq!(found.train_loss, expected.train_loss, "{what}");
        assert_eq!(found.val_loss, expected.val_loss, "{what}");
        assert_eq!(found.test_accuracy, expected.test_accuracy, "{what}");
        assert_eq!(found.wire_bytes, expected.wire_bytes, "{what}");
    }
    for run in &found.runs {
        let measured = run.measured.as_ref().expect("it has finished");
        let parts = measured.compute_seconds + measured.exposed_communication_seconds;
        assert!(parts <= measured.simulated_seconds * 1.001, "{}", run.cell);
    }
    assert!(
        checkpoints(&out).is_empty(),
        "nothing goes on from them any more"
    );
}

#[test]
fn a_process_that_fails_is_named_by_all_and_the_exit_code_is_one() {
    // Seconds of training: long after it was found running, and within what is waited for.
    let folder = folder(&SHORT_AND_ENDLESS.replace("1000000", "1000"));
    let started = in_the_endless_cell(folder.path());
    // Process 0 can write no more when the cell ends.
    fs::rename(folder.path().join("out"), folder.path().join("kept")).expect("it can be moved");
    fs::write(folder.path().join("out"), "in the way").expect("it can be written");
    let ran = started.wait(LONG);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("error: worker 0: "), "{}", ran.stderr);
    for rank in 1..4 {
        let told = format!("error: worker {rank}: ");
        let line = ran.stderr.lines().find(|line| line.starts_with(&told));
        let line = line.unwrap_or_else(|| panic!("worker {rank}: {}", ran.stderr));
        assert!(line.contains("worker 0 failed: "), "{line}");
    }
}

#[test]
fn wrong_input_is_told_once_with_exit_code_two() {
    let full = "[[strategy]]\nkind = \"full\"\n";
    let cases: [(&str, usize, &[&str], &str); 4] = [
        (
            full,
            3,
            &["x.toml"],
            "cell \"full\" has 4 workers, but the number of processes is 3",
        ),
        (
            full,
            2,
            &["absent.toml"],
            "cannot read the experiment file absent.toml",
        ),
        (
            full,
            2,
            &["x.toml", "--set", "training.epoch=3"],
            "did you mean",
        ),
        (
            "[[strategy]]\nkind = \"retexo\"\nform = \"distributed\"\n",
            4,
            &["x.toml"],
            "plays all workers in one process",
        ),
    ];
    for (strategies, processes, arguments, expected) in cases {
        let folder = folder(strategies);
        let arguments: Vec<&str> = ["run", "--engine", "mpi", "--out", "out"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let ran = mpirun(folder.path(), processes, &arguments);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert_eq!(ran.stderr.matches("error: ").count(), 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
        assert!(!folder.path().join("out").exists(), "nothing is written");
    }
}

#[test]
fn processes_that_prepare_different_things_do_not_start() {
    let folder = folder("[[strategy]]\nkind = \"full\"\n");
    let one = [
        "run",
        "x.toml",
        "--engine",
        "mpi",
        "--set",
        "partition.workers=2",
    ];
    let other = [&one[..], &["--set", "dataset.synthetic.nodes=601"]].concat();
    let ran = mpirun_each(folder.path(), &[&one, &other]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("worker 1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("prepared other data"), "{}", ran.stderr);
}

#[test]
fn a_calibration_is_a_network_that_experiments_can_name() {
    let folder = folder("[[strategy]]\nkind = \"full\"\n");
    let ran = mpirun(folder.path(), 2, &["calibrate", "--out", "network.toml"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("0 and 1") && ran.stderr.contains("emulated"),
        "{}",
        ran.stderr
    );
    let section = fs::read_to_string(folder.path().join("network.toml")).expect("a section");
    let experiment = fs::read_to_string(folder.path().join("x.toml")).expect("an experiment");
    let experiment = experiment
        .replace("[network]\npreset = \"ethernet-1g\"\n", &section)
        .replace("workers = 4", "workers = 2");
    assert!(experiment.contains("framing = \"none\""), "{section}");
    fs::write(folder.path().join("x.toml"), experiment).expect("it can be written");
    let projected = grapevine(folder.path(), &["project", "x.toml"]);
    assert_eq!(projected.code, 0, "{}", projected.stderr);

    let alone = grapevine(folder.path(), &["calibrate"]);
    assert_eq!(alone.code, 2, "{}", alone.stderr);
    assert!(alone.stderr.contains("mpirun -n 4"), "{}", alone.stderr);
}
