//! Same file, same seed, modelled compute: identical tables, whatever the number of threads.

use std::fs;
use std::path::Path;

use polars::prelude::{CsvReadOptions, DataFrame, SerReader};

use crate::command::{EXPERIMENT, folder_with, grapevine, grapevine_with};
use grapevine::experiment::Tables;

/// What a clock or the system decides; everything else must be equal.
const MEASURED: [&str; 3] = ["measured_seconds", "partition_seconds", "peak_memory_bytes"];

fn run(folder: &Path, out: &str, threads: &str, sets: &[&str]) {
    let mut arguments = vec!["run", "x.toml", "--quiet", "--out", out];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    grapevine_with(folder, &arguments, &[("RAYON_NUM_THREADS", threads)]).expect(0);
}

fn table(folder: &Path, name: &str) -> DataFrame {
    let path = folder.join(name).with_extension("csv");
    let options = CsvReadOptions::default().with_infer_schema_length(None);
    let reader = options.try_into_reader_with_file_path(Some(path));
    reader
        .and_then(SerReader::finish)
        .expect("the program wrote it")
        .drop_many(MEASURED)
}

pub(crate) fn assert_same_tables(folder: &Path, one: &str, other: &str) {
    let (one, other) = (folder.join(one), folder.join(other));
    for name in ["runs", "epochs"] {
        let (a, b) = (table(&one, name), table(&other, name));
        for (column, expected) in b.columns().iter().zip(a.columns()) {
            assert!(
                column.equals_missing(expected),
                "{name}.{}: {column:?} is not {expected:?}",
                column.name()
            );
        }
        assert!(a.height() > 0 && a.equals_missing(&b), "{name}");
    }
    // Nothing here is measured: the files are equal byte for byte.
    for name in [
        "traffic.csv",
        "traffic.parquet",
        "claims.csv",
        "claims.parquet",
    ] {
        let bytes = |folder: &Path| fs::read(folder.join(name)).expect("it was written");
        assert_eq!(bytes(&one), bytes(&other), "{name}");
    }
}

#[test]
fn two_processes_and_any_number_of_threads_write_the_same_tables() {
    let folder = folder_with(EXPERIMENT);
    run(folder.path(), "first", "1", &[]);
    run(folder.path(), "again", "1", &[]);
    run(folder.path(), "two", "2", &[]);
    run(folder.path(), "five", "5", &[]);
    assert_same_tables(folder.path(), "first", "again");
    assert_same_tables(folder.path(), "first", "two");
    assert_same_tables(folder.path(), "first", "five");
}

#[test]
fn sage_with_layer_normalisation_and_metis_repeats_itself_too() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "model.kind=sage",
        "model.layers=3",
        "model.norm=layer",
        "partition.method=metis",
        "seeds=[5]",
    ];
    run(folder.path(), "first", "1", &sets);
    run(folder.path(), "two", "2", &sets);
    assert_same_tables(folder.path(), "first", "two");
}

#[test]
fn attention_maxima_and_sums_repeat_themselves_too() {
    let folder = folder_with(EXPERIMENT);
    for kind in ["gat", "sage-pool", "gin"] {
        let heads = if kind == "gat" { 2 } else { 1 };
        let model = format!("model={{ kind = \"{kind}\", heads = {heads}, residual = true }}");
        let sets = [&*model, "seeds=[5]"];
        run(folder.path(), "first", "1", &sets);
        run(folder.path(), "two", "2", &sets);
        assert_same_tables(folder.path(), "first", "two");
    }
}

#[test]
fn mini_batches_repeat_themselves_too() {
    let folder = folder_with(EXPERIMENT);
    let sets = [
        "training.batch={ size = 30, fanouts = [4, 3] }",
        "seeds=[5]",
    ];
    run(folder.path(), "first", "1", &sets);
    run(folder.path(), "two", "2", &sets);
    assert_same_tables(folder.path(), "first", "two");
}

#[test]
fn looking_at_the_model_changes_no_time() {
    let more = "[[strategy]]\nkind = \"pipe\"\n[[strategy]]\nkind = \"full\"\nlabel = \"overlapped\"\noverlap = true\n";
    let folder = folder_with(&format!("{EXPERIMENT}{more}"));
    // Workers that are never at the same place.
    let network = "network.worker=[{ rank = 0, bandwidth = \"20Mbps\", compute = 0.5 }, { rank = 1, latency = \"3ms\" }]";
    let times = |out: &str, every: &str| {
        run(folder.path(), out, "2", &["seeds=[5]", network, every]);
        let tables = Tables::read(&folder.path().join(out)).expect("tables");
        // Where the model is looked at decides how RETEXO's training goes on.
        let runs = tables
            .runs
            .into_iter()
            .filter(|run| run.strategy != "retexo");
        let times = runs.map(|run| {
            let measured = run.measured.unwrap();
            let times = [
                measured.simulated_seconds,
                measured.compute_seconds,
                measured.communication_seconds,
                measured.exposed_communication_seconds,
            ];
            (run.cell, times.map(f64::to_bits))
        });
        times.collect::<Vec<_>>()
    };
    let often = times("often", "training.evaluate_every=1");
    assert!(often.len() > 5);
    assert_eq!(often, times("seldom", "training.evaluate_every=5"));
}

#[test]
fn strategies_with_steps_of_their_own_repeat_themselves_too() {
    let more = "[[strategy]]\nkind = \"distdgl\"\ncache = \"200kB\"\nwith = { \"training.batch\" = { size = 30, fanouts = [4, 3] } }\n\
                [[strategy]]\nkind = \"llcg\"\nlocal_steps = 2\nrho = 1.5\n\
                [[strategy]]\nkind = \"cluster\"\n";
    let folder = folder_with(&format!("{EXPERIMENT}{more}"));
    run(folder.path(), "first", "1", &["seeds=[5]"]);
    run(folder.path(), "two", "2", &["seeds=[5]"]);
    assert_same_tables(folder.path(), "first", "two");
    grapevine(folder.path(), &["verify", "two"]).expect(0);
    grapevine(folder.path(), &["project", "x.toml"]).expect(0);
}

#[test]
fn drawn_late_and_quantised_rows_repeat_themselves_too() {
    let rivals = [
        "kind = \"bns\"\nshare = 0.5",
        "kind = \"pipe\"\nsmoothing = \"both\"",
        "kind = \"adaqp\"\nassign_every = 2\ngroup = 5",
        "kind = \"adaqp\"\nbits = \"random\"",
        "kind = \"ecgraph\"\nperiod = 3\ntune = true",
    ];
    let rivals = rivals.map(|rival| format!("[[strategy]]\n{rival}\n"));
    let folder = folder_with(&format!("{EXPERIMENT}{}", rivals.concat()));
    run(folder.path(), "first", "1", &["seeds=[5]"]);
    run(folder.path(), "two", "2", &["seeds=[5]"]);
    assert_same_tables(folder.path(), "first", "two");
    grapevine(folder.path(), &["verify", "two"]).expect(0);
}

#[test]
fn another_seed_gives_another_training_of_every_strategy() {
    let folder = folder_with(EXPERIMENT);
    run(folder.path(), "out", "2", &[]);
    run(folder.path(), "other", "2", &["seeds=[2]"]);
    let (both, other) = (
        Tables::read(&folder.path().join("out")).unwrap(),
        Tables::read(&folder.path().join("other")).unwrap(),
    );
    let mut cells: Vec<&str> = both.runs.iter().map(|run| run.cell.as_str()).collect();
    cells.dedup();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        let losses = |tables: &Tables, seed| -> Vec<u64> {
            let rows = tables.epochs.iter();
            rows.filter(|row| row.cell == cell && row.seed == seed)
                .map(|row| row.train_loss.expect("there is a loss").to_bits())
                .collect()
        };
        let (zero, one, two) = (losses(&both, 0), losses(&both, 1), losses(&other, 2));
        assert_eq!(zero.len(), 6);
        assert!(zero != one && one != two && zero != two, "{cell}");
    }
}
