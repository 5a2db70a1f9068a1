//! What a worker is said to hold, beside what processes allocated.

use serde_json::Value;

use crate::command::{folder_with, grapevine};

/// A part of an R-MAT graph of 2^17 nodes that four processes share.
const EXPERIMENT: &str = r#"
name = "memory"
seeds = [0]
dataset = { counts = { rmat = { scale = 17, edge_factor = 16 }, features = 128, classes = 16, train = 0.6 } }
model = { kind = "sage", layers = 3, hidden = 128, dropout = 0.5 }
training = { epochs = 3, evaluate_every = 3 }
partition = { method = "random", workers = 4 }
network = { preset = "ethernet-10g" }
compute = { timing = { profile = "t4" } }
"#;

const WIDE: [&str; 2] = ["model.layers=2", "model.hidden=256"];
const BATCHES: &str = r#"with = { "training.batch" = { size = 1024, fanouts = [10, 10, 5] } }"#;

/// What changes in the experiment, the strategy, and the megabytes that its process had allocated
/// when it held most, training or evaluating, as `heaptrack` counted them: the runs of
/// `docs/scale.md`.
const ALLOCATED: [(&[&str], &str, f64); 26] = [
    (&[], r#"kind = "full""#, 278.0),
    (&["model.dropout=0.0"], r#"kind = "full""#, 218.0),
    (&[], r#"kind = "fixed", ratio = 8"#, 302.0),
    (&[], r#"kind = "pipe""#, 430.0),
    (&[], r#"kind = "bns", share = 0.1"#, 221.0),
    (&[], r#"kind = "adaqp", bits = 8"#, 333.0),
    (&[], r#"kind = "sylvie""#, 310.0),
    (&[], r#"kind = "sancus""#, 593.0),
    (&[], r#"kind = "ecgraph""#, 555.0),
    (&[], r#"kind = "retexo""#, 249.0),
    (&[], r#"kind = "isolated""#, 153.0),
    (&[], r#"kind = "llcg", local_steps = 1"#, 515.0),
    (
        &["model.kind=gcn"],
        r#"kind = "fedgcn", local_steps = 1"#,
        303.0,
    ),
    (&[], r#"kind = "grappa", repartition_every = 1"#, 455.0),
    (
        &[],
        r#"kind = "grappa", repartition_every = 1, halo = false"#,
        269.0,
    ),
    (
        &[],
        r#"kind = "grappa", repartition_every = 1, BATCHES"#,
        256.0,
    ),
    (&[], r#"kind = "distdgl", BATCHES"#, 153.0),
    (&WIDE, r#"kind = "full""#, 263.0),
    (&["model.kind=gcn"], r#"kind = "full""#, 287.0),
    (&["model.kind=gcn"], r#"kind = "retexo""#, 249.0),
    (
        &["model.kind=gcn", WIDE[0], WIDE[1]],
        r#"kind = "full""#,
        280.0,
    ),
    (&["model.kind=gin"], r#"kind = "full""#, 426.0),
    (&["model.kind=gin"], r#"kind = "retexo""#, 258.0),
    (
        &["model.kind=gat", "model.layers=2"],
        r#"kind = "full""#,
        219.0,
    ),
    (&["model.kind=gat"], r#"kind = "full""#, 380.0),
    (&["model.kind=gat"], r#"kind = "retexo""#, 289.0),
];

#[test]
fn what_a_worker_is_said_to_hold_is_what_processes_allocated() {
    let folder = folder_with(EXPERIMENT);
    for (sets, strategy, allocated) in ALLOCATED {
        let strategy = strategy.replace("BATCHES", BATCHES);
        let strategy = format!("strategy=[{{ {strategy} }}]");
        let mut arguments = vec!["project", "x.toml", "--json", "--set", &strategy];
        arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
        let projected = grapevine(folder.path(), &arguments).expect(0);
        let projected: Value = serde_json::from_str(&projected.stdout).expect("JSON");
        let [training, evaluating] = ["memory_bytes", "evaluation_memory_bytes"]
            .map(|key| projected[0][key].as_f64().expect("a number"));
        let stated = training.max(evaluating);
        let ratio = stated / 1e6 / allocated;
        assert!(
            (0.85..1.15).contains(&ratio),
            "{strategy} {sets:?}: {ratio}"
        );
    }
    // The terminal has an evaluation where it takes more.
    let shown = |strategy: &str| {
        let strategy = format!("strategy=[{{ {} }}]", strategy.replace("BATCHES", BATCHES));
        let arguments = ["project", "x.toml", "--set", &strategy];
        grapevine(folder.path(), &arguments).expect(0).stdout
    };
    let batches = shown(r#"kind = "distdgl", BATCHES"#);
    assert!(batches.contains(" MB; evaluating 161 MB"), "{batches}");
    assert!(!shown(r#"kind = "full""#).contains("; evaluating"));
}

#[test]
fn what_is_kept_beside_a_pass_counts() {
    let folder = folder_with(EXPERIMENT);
    let of = |strategy: &str| {
        let strategy = strategy.replace("BATCHES", BATCHES);
        let strategy = format!("strategy=[{{ {strategy} }}]");
        let arguments = ["project", "x.toml", "--json", "--set", &strategy];
        let projected = grapevine(folder.path(), &arguments).expect(0);
        let projected: Value = serde_json::from_str(&projected.stdout).expect("JSON");
        [
            &projected[0]["memory_bytes"],
            &projected[0]["bytes_by_kind"]["feature"],
        ]
        .map(|bytes| bytes.as_f64().unwrap_or(0.0))
    };
    // Features that came in mini-batches, once, to four workers.
    let [keeping, came] = of(r#"kind = "full", BATCHES"#);
    let [fresh, _] = of(r#"kind = "full", cache_features = false, exchange = "input", BATCHES"#);
    let kept = (keeping - fresh) / (came / 4.0);
    assert!((0.95..1.05).contains(&kept), "{kept}");

    // Features that come for the next of three times twenty batches.
    let [ahead, came] = of(r#"kind = "distdgl", BATCHES"#);
    let [waiting, _] = of(r#"kind = "distdgl", prefetch = false, BATCHES"#);
    let under_way = (ahead - waiting) / (came / 4.0 / 60.0);
    assert!((0.9..1.1).contains(&under_way), "{under_way}");

    // A worker has no more rows of others to keep than there are: 3 of 4.
    let cached = |rows: usize| {
        let cache = format!(r#"cache = "{}B", prefetch = false"#, rows * 4 * 128);
        of(&format!(r#"kind = "distdgl", {cache}, BATCHES"#))[0]
    };
    assert_eq!(cached(98_304) - waiting, 98_304.0 * 4.0 * 128.0);
    assert_eq!(cached(131_072), cached(98_304));

    // What a codec keeps back, a gradient that waits and models that are averaged: as many values
    // as the model has.
    let values = 2.0 * (2.0 * 128.0 * 128.0 + 128.0) + (2.0 * 128.0 * 16.0 + 16.0);
    let [plain, _] = of(r#"kind = "isolated""#);
    for (gradients, times) in [
        (r#"codec = "top_k""#, 1.0),
        (r#"codec = "top_k", feedback = false"#, 0.0),
        ("every = 2", 1.0),
        (r#"every = 2, average = "models""#, 1.0),
        (r#"every = 2, codec = "sign""#, 2.0),
    ] {
        let [with, _] = of(&format!(
            r#"kind = "isolated", gradients = {{ {gradients} }}"#
        ));
        assert_eq!(with - plain, times * 4.0 * values, "{gradients}");
    }
}
