//! Features held in single precision, in half precision and in their file: training is the same to the bit.

use std::fs;
use std::path::Path;

use crate::common::{Case, losses};
use grapevine::graph::BatchSpec;
use half::f16;

/// Strategies in which features travel, are kept, or arrive late.
const OF_SEVERAL: [(&str, &str); 17] = [
    ("full", ""),
    ("full", "exchange = \"product\"\ncache_features = false"),
    ("isolated", ""),
    ("fixed", "ratio = 2"),
    ("varco", ""),
    ("bns", "share = 0.5\ncache_features = false"),
    ("pipe", ""),
    ("pipe", "cache_features = false\nsmoothing = \"both\""),
    ("adaqp", "bits = 8"),
    ("grappa", "repartition_every = 2"),
    ("grappa", "halo = false"),
    ("llcg", ""),
    ("fedavg", ""),
    ("fedgcn", ""),
    ("cluster", ""),
    ("retexo", ""),
    ("retexo", "form = \"distributed\""),
];

const NODES: usize = 90;
const WIDTH: usize = 6;

/// A `.npy` file as `NumPy` writes it.
fn npy(path: &Path, kind: &str, shape: &str, raw: impl Iterator<Item = Vec<u8>>) {
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
    let mut bytes = b"\x93NUMPY\x01\0".to_vec();
    bytes.extend(u16::try_from(head.len()).expect("short").to_le_bytes());
    bytes.extend(head.as_bytes());
    raw.for_each(|raw| bytes.extend(raw));
    fs::write(path, bytes).expect("it is written");
}

/// A graph in the layout of IGB, with features in single precision or rounded to half of it.
fn write(folder: &Path, half: bool) {
    let papers = folder.join("paper");
    let cites = folder.join("paper__cites__paper");
    for folder in [&papers, &cites] {
        fs::create_dir_all(folder).expect("a folder");
    }
    let labels = (0..NODES).map(|v| (v as f32 % 3.0).to_le_bytes().to_vec());
    npy(
        &papers.join("node_label_19.npy"),
        "<f4",
        &format!("{NODES},"),
        labels,
    );
    let ends = (0..NODES as i64).flat_map(|v| [[v, (v * 7 + 3) % 90], [v, (v + 3) % 90]]);
    let ends = ends.flatten().map(|end| end.to_le_bytes().to_vec());
    npy(
        &cites.join("edge_index.npy"),
        "<i8",
        &format!("{}, 2", 2 * NODES),
        ends,
    );
    let value = |at: usize| ((at * 37 + at / 5) % 101) as f32 / 47.0 - (at / WIDTH % 3) as f32;
    let shape = format!("{NODES}, {WIDTH}");
    let feats = papers.join("node_feat.npy");
    let values = (0..NODES * WIDTH).map(value);
    if half {
        let values = values.map(|value| f16::from_f32(value).to_le_bytes().to_vec());
        npy(&feats, "<f2", &shape, values);
    } else {
        npy(
            &feats,
            "<f4",
            &shape,
            values.map(|value| value.to_le_bytes().to_vec()),
        );
    }
}

fn case(folder: &Path, storage: &str) -> Case {
    let path = folder.display();
    let data = format!("path = '{path}'\nformat = 'igb'\nfeature_storage = '{storage}'");
    Case {
        // A test ends soon enough to leave this to the system.
        data: data.leak(),
        workers: 3,
        ..Case::default()
    }
}

/// Trains on the same data held in two ways; scores, losses and bytes have to be equal.
fn assert_same(one: &Case, other: &Case, kind: &str, options: &str) {
    let [one, other] = [one, other].map(|case| case.run(kind, options));
    let bits = |losses: Vec<f64>| -> Vec<u64> { losses.into_iter().map(f64::to_bits).collect() };
    assert_eq!(bits(losses(&one)), bits(losses(&other)), "{kind} {options}");
    let scores = |outcome: &grapevine::sim::Outcome| -> Vec<_> {
        outcome.epochs.iter().map(|record| record.scores).collect()
    };
    assert_eq!(scores(&one), scores(&other), "{kind} {options}");
    assert_eq!(one.ledger, other.ledger, "{kind} {options}");
}

#[test]
fn every_strategy_trains_on_features_in_their_file_as_on_those_that_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), false);
    let (read, mapped) = (case(folder.path(), "f32"), case(folder.path(), "mapped"));
    for (kind, options) in OF_SEVERAL {
        assert_same(&read, &mapped, kind, options);
    }
    let sampled = |case: &Case| Case {
        layers: 2,
        batch: Some(BatchSpec {
            size: 8,
            fanouts: vec![3, 3],
        }),
        ..case.clone()
    };
    for (kind, options) in [("distdgl", ""), ("distdgl", "cache = 300"), ("full", "")] {
        assert_same(&sampled(&read), &sampled(&mapped), kind, options);
    }
}

#[test]
fn half_precision_is_rounding_once_as_if_the_file_had_it() {
    let [single, half] = [false, true].map(|half| {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), half);
        folder
    });
    let (rounded, in_file) = (case(single.path(), "f16"), case(half.path(), "f32"));
    for (kind, options) in [("full", ""), ("grappa", ""), ("llcg", ""), ("pipe", "")] {
        assert_same(&rounded, &in_file, kind, options);
    }
}

#[test]
fn features_take_what_their_storage_takes() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), false);
    let [single, half, mapped] = ["f32", "f16", "mapped"].map(|storage| {
        let strategy = Case::strategy("full", "");
        let setting = case(folder.path(), storage).setting(strategy.as_ref());
        let ranks = 0..setting.workers();
        ranks.map(|rank| setting.feature_bytes(rank)).sum::<u64>()
    });
    let values = (NODES * WIDTH) as u64;
    assert_eq!((single - half, single - mapped), (2 * values, 4 * values));
}
