//! All published data sets that a neighbouring folder holds, against the counts that their authors
//! report. Without that folder these tests say so and pass: they need files that are not part of
//! the repository.

use std::path::PathBuf;

use super::*;
use crate::graph::{DatasetSpec, Features, RawDataset, cora};

/// A data set of the neighbouring folder, raw, if it is there.
fn published(format: Format, path: &str) -> Option<RawDataset> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/datasets"));
    if !folder.join(path).exists() {
        eprintln!("{path} is not here: not tested");
        return None;
    }
    let spec = DatasetSpec {
        path: Some(path.into()),
        format: Some(format),
        normalise_features: Some(false),
        ..DatasetSpec::default()
    };
    Some(spec.read(&folder).unwrap())
}

/// Nodes, undirected edges, features, classes; then sizes of the first split and the number of
/// splits.
fn check(format: Format, path: &str, counts: [usize; 4], split: Option<[usize; 3]>, splits: usize) {
    let Some(data) = published(format, path) else {
        return;
    };
    assert!(data.graph.transpose() == *data.graph);
    let edges = data.graph.edges() / 2;
    let found = [
        data.graph.nodes(),
        edges,
        data.features.width(),
        data.classes,
    ];
    assert_eq!(found, counts, "{path}");
    assert_eq!(data.features.rows(), counts[0]);
    assert_eq!(data.splits.len(), splits, "{path}");
    let sizes = data.splits.first();
    let sizes = sizes.map(|split| [&split.train, &split.validation, &split.test].map(Vec::len));
    assert_eq!(sizes, split, "{path}");
}

#[test]
fn planetoid_data_has_the_published_counts() {
    let read = |path, counts, train| {
        check(Format::Planetoid, path, counts, Some([train, 500, 1000]), 1);
    };
    read("cora", [2_708, 5_278, 1_433, 7], 140);
    read("citeseer", [3_327, 4_552, 3_703, 6], 120);
    read("pubmed", [19_717, 44_324, 500, 3], 60);
}

#[test]
fn any_planetoid_file_names_its_own_data_in_a_folder_of_several() {
    if published(Format::Planetoid, "cora").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let from = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/datasets"));
    for name in ["cora", "citeseer"] {
        for part in planetoid::PARTS {
            let file = format!("ind.{name}.{part}");
            std::fs::copy(from.join(name).join(&file), folder.path().join(&file)).unwrap();
        }
    }
    for part in planetoid::PARTS {
        let path = folder.path().join(format!("ind.cora.{part}"));
        assert_eq!(
            planetoid::read(&path).unwrap().graph.nodes(),
            2708,
            "{part}"
        );
    }
    let error = planetoid::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has 2 files `*.graph`"), "{error}");
}

#[test]
fn citeseer_has_fifteen_nodes_without_features_and_label() {
    let Some(data) = published(Format::Planetoid, "citeseer") else {
        return;
    };
    let missing: Vec<u32> = (0..3327)
        .filter(|&v| data.labels.of(v as usize).is_none())
        .collect();
    assert_eq!(missing.len(), 15);
    assert!(missing.iter().all(|v| (2312..=3326).contains(v)));
    assert!(data.features.select(&missing).values().is_empty());
}

#[test]
fn both_forms_of_cora_are_the_same_data() {
    let (Some(pickled), Some(text)) = (
        published(Format::Planetoid, "cora"),
        published(Format::Linqs, "cora-linqs"),
    ) else {
        return;
    };
    assert_eq!(text.graph, cora().unwrap().graph);
    assert_eq!(text.splits, cora().unwrap().splits);
    let degrees = |data: &RawDataset| {
        let mut all: Vec<usize> = (0..2708).map(|v| data.graph.degree(v)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(degrees(&pickled), degrees(&text));
    let words = |data: &RawDataset| data.features.values().len();
    assert_eq!(words(&pickled), words(&text));
    // The first test paper has the same words and as many neighbours in both.
    let split = |data: &RawDataset| data.features.select(&data.splits[0].train).values().len();
    assert_eq!(split(&pickled), split(&text));
}

#[test]
fn npz_data_has_the_published_counts() {
    let read = |path, counts| check(Format::NpzCsr, path, counts, None, 0);
    read("citation-cora-ml", [2_995, 8_158, 2_879, 7]);
    read(
        "amazon-photo/amazon_electronics_photo.npz",
        [7_650, 119_081, 745, 8],
    );
    read("amazon-computers", [13_752, 245_861, 767, 10]);
    read("coauthor-cs", [18_333, 81_894, 6_805, 15]);
    read("blogcatalog", [5_196, 171_743, 8_189, 6]);
}

#[test]
fn heterophilous_data_has_the_published_counts_and_ten_splits() {
    let read = |path, counts, split| check(Format::NpzEdges, path, counts, Some(split), 10);
    read("minesweeper", [10_000, 39_402, 7, 2], [5_000, 2_500, 2_500]);
    read("actor", [7_600, 26_659, 932, 5], [3_648, 2_432, 1_520]);
    read("chameleon", [890, 8_854, 2_325, 5], [409, 287, 194]);
    read("squirrel", [2_223, 46_998, 2_089, 5], [1_053, 718, 452]);
}

#[test]
fn bags_of_words_stay_sparse() {
    let Some(data) = published(Format::NpzEdges, "actor") else {
        return;
    };
    assert!(matches!(&*data.features, Features::Sparse(_)));
    assert!(data.features.density() < 0.1 && data.features.is_bag_of_words());
}

#[test]
fn text_data_has_the_published_counts() {
    let public = Some([140, 500, 1000]);
    check(
        Format::Linqs,
        "cora-linqs",
        [2_708, 5_278, 1_433, 7],
        public,
        1,
    );
    check(
        Format::CsvJson,
        "facebook-pages",
        [22_470, 170_823, 4_714, 4],
        None,
        0,
    );
    check(
        Format::Csv,
        "lastfm-asia",
        [7_624, 27_806, 7_624, 18],
        None,
        0,
    );
    check(
        Format::EdgeList,
        "ca-astroph",
        [18_772, 198_050, 0, 0],
        None,
        0,
    );
    check(
        Format::Metis,
        "metis-graphs/4elt.graph",
        [15_606, 45_878, 0, 0],
        None,
        0,
    );
    check(
        Format::Metis,
        "metis-graphs/copter2.graph",
        [55_476, 352_238, 0, 0],
        None,
        0,
    );
}

#[test]
fn a_folder_with_several_graphs_asks_for_one_of_them() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../shared/datasets/metis-graphs"
    );
    if Path::new(folder).is_dir() {
        let error = read(
            Format::Metis,
            Path::new(folder),
            &DatasetSpec::default(),
            None,
        )
        .unwrap_err()
        .to_string();
        assert!(
            error.contains("has 3 files `*.graph`; name one of them"),
            "{error}"
        );
    }
}

#[test]
fn a_corrupt_pickle_of_a_real_data_set_is_an_error() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/datasets/cora");
    if !Path::new(folder).is_dir() {
        return;
    }
    let copy = tempfile::tempdir().unwrap();
    for entry in entries(Path::new(folder)).unwrap() {
        std::fs::write(
            copy.path().join(file_name(&entry)),
            std::fs::read(&entry).unwrap(),
        )
        .unwrap();
    }
    let allx = copy.path().join("ind.cora.allx");
    let bytes = std::fs::read(&allx).unwrap();
    std::fs::write(&allx, &bytes[..bytes.len() / 2]).unwrap();
    let error = read(
        Format::Planetoid,
        copy.path(),
        &DatasetSpec::default(),
        None,
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains("ind.cora.allx: at byte") && error.contains("cut short"),
        "{error}"
    );
}
