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

/// What changes in the experiment, the strategy, and the megabytes that its process had allocated when it held most, as `heaptrack`
/// counted them: the runs of `docs/scale.md` that were fullest while they trained.
const ALLOCATED: [(&[&str], &str, f64); 15] = [
    (&[], r#"kind = "full""#, 342.0),
    (&["model.dropout=0.0"], r#"kind = "full""#, 261.0),
    (&[], r#"kind = "fixed", ratio = 8"#, 367.0),
    (&[], r#"kind = "pipe""#, 528.0),
    (&[], r#"kind = "bns", share = 0.1"#, 274.0),
    (&[], r#"kind = "sylvie""#, 409.0),
    (&[], r#"kind = "sancus""#, 607.0),
    (&[], r#"kind = "ecgraph""#, 652.0),
    (&[], r#"kind = "grappa", repartition_every = 1"#, 556.0),
    (
        &[],
        r#"kind = "grappa", repartition_every = 1, halo = false"#,
        332.0,
    ),
    (&WIDE, r#"kind = "full""#, 265.0),
    (&["model.kind=gcn"], r#"kind = "full""#, 287.0),
    (&["model.kind=gin"], r#"kind = "full""#, 427.0),
    (
        &["model.kind=gat", "model.layers=2"],
        r#"kind = "full""#,
        220.0,
    ),
    (&["model.kind=gat"], r#"kind = "full""#, 382.0),
];

#[test]
fn what_a_worker_is_said_to_hold_is_what_processes_allocated() {
    let folder = folder_with(EXPERIMENT);
    for (sets, strategy, allocated) in ALLOCATED {
        let strategy = format!("strategy=[{{ {strategy} }}]");
        let mut arguments = vec!["project", "x.toml", "--json", "--set", &strategy];
        arguments.extend(sets.iter().flat_map(|set| ["--set", *set]));
        let projected = grapevine(folder.path(), &arguments).expect(0);
        let projected: Value = serde_json::from_str(&projected.stdout).expect("JSON");
        let stated = projected[0]["memory_bytes"].as_f64().expect("a number");
        let ratio = stated / 1e6 / allocated;
        assert!(
            (0.85..1.15).contains(&ratio),
            "{strategy} {sets:?}: {ratio}"
        );
    }
}
