use std::path::PathBuf;

use super::*;
use crate::experiment::config::{PAPER, Vocabulary};
use crate::experiment::rows::{ClaimVerdict, RunRow};
use crate::net::Seconds;
use crate::strategies::Registry;

#[test]
fn what_is_done_once_or_now_and_then_is_no_part_of_an_epoch() {
    let projected = |epochs: usize, strategy: &str| {
        let (before, _) = SAMPLED.split_once("[[strategy]]").unwrap();
        let text = before
            .replace("epochs = 16", &format!("epochs = {epochs}"))
            .replace("batch = { size = 60, fanouts = [5, 5] }", "");
        let asked = experiment(&format!("{text}[[strategy]]\n{strategy}"));
        let registry = Registry::builtin();
        let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
        let mut found = project(&asked, &mut preparation, |_| ()).expect("it can be projected");
        let found = found.remove(0);
        let (epoch, setup) = (found.epoch_seconds, found.setup_seconds);
        let whole = epoch * found.epochs as f64 + setup;
        assert!((whole / found.simulated_seconds - 1.0).abs() < 1e-12);
        [epoch, setup]
    };
    // Workers wait a little longer or shorter for others beside other work.
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.05, "{a} and {b}");
    // Rows of each layer are heard once, however many rounds its sub-model trains.
    let rounds = |rounds: &str| {
        let strategy = format!("kind = \"retexo\"\nrounds_per_layer = {rounds}");
        projected(1, &strategy)
    };
    let one = rounds("[1, 1]");
    for more in ["[2, 2]", "[50, 50]"] {
        near(rounds(more)[0], one[0]);
        assert!((rounds(more)[1] / one[1] - 1.0).abs() < 1e-9);
    }
    // Features come once, or in every epoch.
    let [few, many] = [3, 30].map(|epochs| projected(epochs, "kind = \"full\""));
    near(few[0], many[0]);
    assert!((few[1] / many[1] - 1.0).abs() < 1e-9);
    let resent = projected(3, "kind = \"full\"\ncache_features = false");
    assert_eq!(resent[1], 0.0);
    // A switch more is as much set-up more, and epochs stay as they are.
    let every = |every: usize, epochs| {
        let strategy = format!("kind = \"grappa\"\nrepartition_every = {every}");
        projected(epochs, &strategy)
    };
    let [none, one, two] = [4, 5, 9].map(|epochs| every(4, epochs));
    near(two[1] - one[1], one[1] - none[1]);
    near(two[0], none[0]);
    let each = every(1, 5);
    near(each[0], none[0]);
    near(each[1] - none[1], 4.0 * (one[1] - none[1]));
    // Rounds of fewer steps are no set-up.
    assert_eq!(projected(7, "kind = \"fedavg\"")[1], 0.0);
}

fn experiment(text: &str) -> Experiment {
    let registry = Registry::builtin();
    let vocabulary = Vocabulary {
        registry: &registry,
        figures: &[],
    };
    let read = Experiment::parse(text, "x.toml", PAPER, &[], &vocabulary);
    read.expect("it is right")
}

#[test]
fn messages_that_pass_by_nvlink_through_the_host_are_told_of() {
    let note = |preset: &str, timing: &str| {
        let text = SAMPLED.replace("ethernet-10g", preset);
        experiment(&text.replace("{ profile = \"t4\" }", timing)).note_on_nvlink()
    };
    let staged = "{ profile = \"t4\" }";
    for preset in ["nvlink", "dgx-a100"] {
        let told = note(preset, staged).unwrap();
        assert!(told.starts_with(preset), "{told}");
        assert_eq!(note(preset, "\"measured\""), None);
        assert_eq!(note(preset, "{ profile = \"t4\", staging = false }"), None);
    }
    assert_eq!(note("ethernet-10g", staged), None);
}

#[test]
fn servers_that_are_clients_are_told_of() {
    let note = |rank: &str| {
        let edge = format!(
            "topology = \"edge\"\nserver = {{ bandwidth = \"1Gbps\", latency = \"1ms\"{rank} }}\n\
             preset = \"ethernet-10g\""
        );
        experiment(&SAMPLED.replace("preset = \"ethernet-10g\"", &edge)).note_on_server()
    };
    assert!(note("").is_some_and(|note| note.contains("worker 0")));
    assert!(note(", rank = 1").is_some());
    assert_eq!(note(", rank = 0"), None);
    assert_eq!(experiment(SAMPLED).note_on_server(), None);
}

#[test]
fn an_option_that_says_what_holds_by_default_has_the_errors_of_what_was_trained() {
    let trained = include_str!("../../../experiments/scale/validate.toml");
    let errors = |text: &str| -> Vec<Option<[Option<f64>; 2]>> {
        let cells = experiment(text).cells().to_vec();
        cells.iter().map(validated).collect()
    };
    let found = errors(trained);
    assert!(found.iter().any(Option::is_some));
    let said = trained.replacen(
        "kind = \"full\"",
        "kind = \"full\"\nexchange = \"narrower\"",
        1,
    );
    assert_eq!(errors(&said), found);
    let silent = trained.replace("share = 0.1\n", "");
    assert_eq!(errors(&silent), found);
    let other = trained.replacen(
        "kind = \"full\"",
        "kind = \"full\"\nexchange = \"input\"",
        1,
    );
    assert_ne!(errors(&other), found);
}

const SAMPLED: &str = r#"
name = "sampled"
seeds = [0]
[dataset]
counts = { rmat = { scale = 13, edge_factor = 8 }, features = 32, classes = 4, train = 0.4 }
[model]
kind = "sage"
layers = 2
hidden = 16
[training]
epochs = 16
batch = { size = 60, fanouts = [5, 5] }
[partition]
method = "random"
workers = 4
[network]
preset = "ethernet-10g"
[compute]
timing = { profile = "t4" }
[[strategy]]
kind = "grappa"
repartition_every = 6
[[strategy]]
kind = "grappa"
label = "grappa without halo"
halo = false
chunks = 8
repartition_every = 8
[[strategy]]
kind = "distdgl"
label = "distdgl plain"
prefetch = false
[[strategy]]
kind = "distdgl"
[[strategy]]
kind = "distdgl"
label = "distdgl cached"
cache = "grappa-halo"
[[strategy]]
kind = "full"
[[strategy]]
kind = "fixed"
ratio = 4
[[strategy]]
kind = "isolated"
"#;

#[test]
fn what_is_multiplied_is_what_all_steps_of_all_epochs_come_to() {
    let experiment = experiment(SAMPLED);
    let registry = Registry::builtin();
    let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
    for cell in experiment.cells() {
        let name = &cell.name;
        let fitted = preparation.fit(cell, 0).expect("it fits");
        let played = |multiplied: bool| {
            let course = Course {
                multiplied,
                ..Course::whole(fitted.training.epochs())
            };
            let (cluster, timing) = (fitted.setting.cluster(), &fitted.setting.timing);
            let mut planner = fitted.training.planner();
            let none = BTreeMap::new();
            let played = play(&cluster, timing, &mut *planner, course, &none, |_| ());
            played.expect("it can be played")
        };
        let (whole, part) = (played(false), played(true));
        // A cache that fills makes steps differ, and so do features that are kept.
        let fills = name.ends_with("cached") || name == "full";
        let most = if fills { 1 } else { 2 };
        assert!(
            part.steps * most < whole.steps,
            "{name}: {} of {} phases",
            part.steps,
            whole.steps
        );
        let close = |found: Seconds, expected: Seconds| {
            let gap = (found.0 - expected.0).abs();
            assert!(gap <= 1e-9 * expected.0, "{name}: {found:?}, {expected:?}");
        };
        for (found, expected) in part.times.iter().zip(&whole.times) {
            close(found.clock, expected.clock);
            close(found.compute, expected.compute);
            close(found.communication, expected.communication);
            close(found.exposed, expected.exposed);
            close(found.set_up, expected.set_up);
        }
        for (found, expected) in part.epochs.iter().zip(&whole.epochs) {
            close(*found, *expected);
        }
        assert_eq!(part.epochs.len(), whole.epochs.len());
        assert_eq!(part.ledger, whole.ledger, "{name}");
    }
}

#[test]
fn one_of_equal_workers_is_planned_and_played_for_all_that_sample() {
    // Large enough for all parts to be alike, and parameters in eighths.
    let text = SAMPLED
        .replace("scale = 13", "scale = 24")
        .replace("classes = 4", "classes = 8")
        .replace("size = 60", "size = 60_000")
        .replace("epochs = 16", "epochs = 9")
        .replace("workers = 4", "workers = 8")
        .replace("chunks = 8", "chunks = 16")
        .replace("10g\"", "10g\"\nall_reduce = \"ring\"");
    let experiment = experiment(&text);
    let registry = Registry::builtin();
    let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
    for cell in experiment.cells() {
        let name = &cell.name;
        let fitted = preparation.fit(cell, 0).expect("it fits");
        let (cluster, timing) = (fitted.setting.cluster(), &fitted.setting.timing);
        let course = Course {
            multiplied: true,
            ..Course::whole(fitted.training.epochs())
        };
        let planner = || fitted.training.planner();
        let sole = planner().next_of_equals().expect("workers are alike");
        assert_eq!(sole.workers(), 1);
        let none = BTreeMap::new();
        let all = play(&cluster, timing, &mut *planner(), course, &none, |_| ());
        let one = play_equals(&cluster, timing, &mut *planner(), course, |_| ());
        let (all, one) = (
            all.expect("it plays"),
            one.expect("it plays").expect("alike"),
        );
        let total = |played: &Played| played.ledger.total(&cluster.framing);
        assert_eq!(total(&all), total(&one), "{name}");
        // The sum of the weights makes the values that Grappa adds up one more than eighths.
        let most = if name.starts_with("grappa") {
            1e-3
        } else {
            1e-9
        };
        for (all, one) in all.times.iter().zip(&one.times) {
            let gap = (all.clock.0 - one.clock.0).abs();
            assert!(gap <= most * all.clock.0, "{name}: {all:?}, {one:?}");
        }
    }
}

const CUT: &str = r#"
name = "cut"
seeds = [0]
[dataset]
counts = { rmat = { scale = 14, edge_factor = 8 }, features = 32, classes = 4, train = 0.5, fit = { scales = [8, 9, 10, 11], graphs = 2 } }
[model]
kind = "sage"
layers = 2
hidden = 16
[training]
epochs = 2
[partition]
method = "metis"
workers = 4
[network]
preset = "ethernet-10g"
[compute]
timing = { profile = "t4" }
[[strategy]]
kind = "full"
[[strategy]]
kind = "isolated"
[[claim]]
id = "fewer"
source = "nobody"
statement = "So many times fewer bytes"
measure = "payload_bytes"
compare = { strategy = "isolated", to = "full", times_less = TIMES }
"#;

#[test]
fn a_claim_on_a_fitted_cut_is_decided_where_both_ends_of_the_interval_agree() {
    let text = |times: f64| CUT.replace("TIMES", &times.to_string());
    let asked = experiment(&text(1.0));
    let registry = Registry::builtin();
    let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
    let projections = project(&asked, &mut preparation, |_| ()).expect("it can be projected");
    let bytes = |row: &RunRow| row.measured.expect("it is projected").payload_bytes as f64;
    let at = |end: usize| {
        let [full, isolated] = [0, 1].map(|cell: usize| {
            let ends = projections[cell].ends.as_ref();
            bytes(&ends.expect("the cut is fitted")[end])
        });
        full / isolated
    };
    let middle = bytes(&projections[0].run) / bytes(&projections[1].run);
    let (low, high) = (at(0), at(1));
    assert!(low < middle && middle < high, "{low} {middle} {high}");
    for (times, verdict) in [
        (0.99 * low, ClaimVerdict::Reproduced),
        (0.5 * (low + middle), ClaimVerdict::Inconclusive),
        (0.5 * (middle + high), ClaimVerdict::Inconclusive),
        (1.01 * high, ClaimVerdict::NotReproduced),
    ] {
        let judged = verdicts(&experiment(&text(times)), &projections);
        let [claim] = &judged.claims[..] else {
            panic!("{judged:?}");
        };
        assert_eq!(claim.verdict, verdict, "{times} of {low} to {high}");
        let ends = (claim.low.expect("an end"), claim.high.expect("an end"));
        assert!((ends.0 - low).abs() < 1e-9 && (ends.1 - high).abs() < 1e-9);
    }
    // Bytes themselves: fewer than are asked for at one end, and more at the other.
    let [few, many] = [0, 1].map(|end: usize| {
        let ends = projections[0].ends.as_ref();
        bytes(&ends.expect("the cut is fitted")[end])
    });
    let compare = "{ strategy = \"isolated\", to = \"full\", times_less = TIMES }";
    for (bounds, verdict) in [
        ([0.99 * few, 1.01 * many], ClaimVerdict::Reproduced),
        (
            [0.6 * few + 0.4 * many, 0.4 * few + 0.6 * many],
            ClaimVerdict::Inconclusive,
        ),
        ([1.01 * many, 1.02 * many], ClaimVerdict::NotReproduced),
    ] {
        let between = format!("{{ strategy = \"full\", between = {bounds:?} }}");
        let judged = verdicts(&experiment(&CUT.replace(compare, &between)), &projections);
        assert_eq!(
            judged.claims[0].verdict, verdict,
            "{bounds:?} of {few} to {many}"
        );
    }
}

#[test]
fn memory_is_held_against_the_device_of_each_worker() {
    let registry = Registry::builtin();
    let first = |text: &str| {
        let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
        let found = project(&experiment(text), &mut preparation, |_| ());
        found.expect("it can be projected").remove(0)
    };
    let large = SAMPLED.replace("profile = \"t4\" }", "profile = \"h100\" }");
    let (all, one) = (
        first(&large),
        first(&large.replace(
            "[[strategy]]\nkind = \"grappa\"\nrepartition",
            "[[compute.worker]]\nrank = 2\nprofile = \"t4\"\n[[strategy]]\nkind = \"grappa\"\nrepartition",
        )),
    );
    // All hold as much, and the smallest device is the fullest.
    assert_eq!(all.memory_bytes, one.memory_bytes);
    assert_eq!(all.device_memory_bytes, Some(80_000_000_000));
    assert_eq!(one.device_memory_bytes, Some(16_000_000_000));
    // The slower worker keeps the others waiting.
    assert!(one.simulated_seconds > all.simulated_seconds);
    assert!(one.waiting_seconds > all.waiting_seconds);
}

#[test]
fn a_process_is_held_against_the_larger_of_training_and_evaluation() {
    let registry = Registry::builtin();
    let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
    let found = project(&experiment(SAMPLED), &mut preparation, |_| ());
    let mut cell = found.expect("it can be projected").remove(0);
    let mut measured = cell.run.measured.expect("as if it had run");
    measured.peak_memory_bytes = 5_000;
    cell.run.measured = Some(measured);
    let process = RunRow {
        engine: "mpi".to_owned(),
        ..cell.run.clone()
    };
    for (evaluating, larger) in [(7_000, 7_000.0), (3_000, 5_000.0)] {
        cell.evaluation_memory_bytes = Some(evaluating);
        let found = beside(
            std::slice::from_ref(&cell),
            std::slice::from_ref(&process),
            &[],
        );
        let rows = found.expect("it is the same cell").rows;
        let memory = rows.iter().find(|row| row.measure == "peak_memory_bytes");
        assert_eq!(memory.map(|row| row.projected), Some(larger));
    }
}

#[test]
fn what_workers_hold_is_planned_whether_compute_is_modelled_or_measured() {
    const GRAPH: &str = "synthetic = { kind = \"sbm\", nodes = 400, classes = 4, features = 12, \
        degree_within = 6.0, degree_between = 2.0 }\nsplit = { train = 0.5, val = 0.2 }";
    let registry = Registry::builtin();
    let batch = "batch = { size = 20, fanouts = [3, 3] }";
    let cases: [(&str, &[&str]); 2] = [
        (batch, &["full", "isolated", "grappa", "distdgl", "retexo"]),
        ("", &["full", "bns", "cluster", "retexo"]),
    ];
    for (batch, kinds) in cases {
        let strategies: Vec<String> = kinds
            .iter()
            .map(|kind| format!("[[strategy]]\nkind = \"{kind}\""))
            .collect();
        let held = |timing: &str| -> Vec<Option<u64>> {
            // The graph is here: plans draw from it and count its edges.
            let line = |line: &str| match line.split(' ').next() {
                Some("counts") => GRAPH.to_owned(),
                Some("timing") => format!("timing = {timing}"),
                Some("epochs") => format!("{line}\n{batch}"),
                _ => line.replace("metis", "random"),
            };
            let all = CUT.split("[[strategy]]").next().unwrap_or_default();
            let lines: Vec<String> = all.lines().map(line).collect();
            let text = [lines.as_slice(), &strategies].concat().join("\n");
            let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
            let found = project(&experiment(&text), &mut preparation, |_| ());
            let found = found.expect("it can be projected");
            found.iter().map(|cell| cell.memory_bytes).collect()
        };
        let (measured, modelled) = (held("\"measured\""), held("{ profile = \"t4\" }"));
        assert!(
            measured
                .iter()
                .all(|bytes| bytes.is_some_and(|bytes| bytes > 0))
        );
        assert_eq!(measured, modelled, "{kinds:?} {batch}");
    }
}

#[test]
fn a_claim_on_time_is_left_out_where_computing_is_measured() {
    let claim = CUT.replace("payload_bytes", "simulated_seconds");
    let text = claim.replace("TIMES", "1");
    let text = text.replace("timing = { profile = \"t4\" }", "");
    let text = text.replace(", fit = { scales = [8, 9, 10, 11], graphs = 2 }", "");
    let text = text.replace("method = \"metis\"", "method = \"random\"");
    let asked = experiment(&text);
    let registry = Registry::builtin();
    let mut preparation = Preparation::new(&registry, PathBuf::new()).for_plans();
    let projections = project(&asked, &mut preparation, |_| ()).expect("it can be projected");
    let judged = verdicts(&asked, &projections);
    assert_eq!(
        (judged.claims.len(), judged.left_out),
        (0, vec!["fewer".to_owned()])
    );
    let bytes = text.replace("simulated_seconds", "payload_bytes");
    assert_eq!(verdicts(&experiment(&bytes), &projections).claims.len(), 1);
}
