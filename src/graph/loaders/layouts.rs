//! One graph in the layouts of published graphs, as their libraries wrote it (`tests/layouts`).

use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::graph::{FeatureSource, Features, LabelColumns, Split};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/layouts")
        .join(name)
}

fn spec(format: Format) -> DatasetSpec {
    let tables = format == Format::Parquet;
    let text = |text: &str| tables.then(|| text.to_owned());
    DatasetSpec {
        format: Some(format),
        id: text("key"),
        label: text("class").map(LabelColumns::One),
        source: text("src"),
        target: text("dst"),
        features: tables.then(|| FeatureSource::Columns(vec!["v".to_owned()])),
        ..DatasetSpec::default()
    }
}

fn of(format: Format, path: &Path) -> Result<RawDataset, String> {
    read(format, path, &spec(format), None).map_err(|error| error.to_string())
}

const ALL: [(Format, &str); 5] = [
    (Format::DglReddit, "reddit"),
    (Format::GraphSaint, "graphsaint"),
    (Format::Igb, "igb"),
    (Format::Ogb, "ogb"),
    (Format::Parquet, "parquet"),
];

#[test]
fn all_layouts_hold_the_same_graph() {
    for (format, name) in ALL {
        let data = of(format, &folder(name)).unwrap();
        assert_eq!(data.name, name);
        let edges: Vec<_> = data
            .graph
            .iter_edges()
            .filter(|(to, from)| to < from)
            .collect();
        assert_eq!(edges, [(0, 1), (1, 2), (2, 3)], "{name}");
        assert_eq!((data.graph.nodes(), data.classes), (5, 3), "{name}");
        // Where labels may be missing, that of node 3 is.
        let third = (!matches!(name, "ogb" | "parquet")).then_some(0);
        let labels = [Some(2), Some(0), Some(1), third, Some(2)];
        assert_eq!(data.labels.classes()[..], labels, "{name}");
        let values = (1_u8..=15).map(|value| f32::from(value) / 4.0).collect();
        assert_eq!(
            *data.features,
            Features::Dense { width: 3, values },
            "{name}"
        );
        assert!(
            data.reading.unread.is_empty(),
            "{name}: {:?}",
            data.reading.unread
        );
    }
}

/// Layouts of the same nodes with three labels each.
const SEVERAL: [(Format, &str); 4] = [
    (Format::GraphSaint, "graphsaint-several"),
    (Format::Ppi, "ppi"),
    (Format::Ogb, "ogb-several"),
    (Format::Parquet, "parquet-several"),
];

/// As [`of`], with the columns of the labels named.
fn of_several(format: Format, path: &Path) -> Result<RawDataset, String> {
    let columns = ["a", "b", "c"].map(str::to_owned).to_vec();
    let spec = DatasetSpec {
        label: Some(LabelColumns::Several(columns)),
        ..DatasetSpec::default()
    };
    read(format, path, &spec, None).map_err(|error| error.to_string())
}

#[test]
fn several_labels_of_a_node_are_the_same_in_all_layouts() {
    for (format, name) in SEVERAL {
        let data = of_several(format, &folder(name)).unwrap();
        assert_eq!((data.graph.nodes(), data.classes), (5, 3), "{name}");
        let several = data.labels.several().expect(name);
        let has = |v: usize| [0, 1, 2].map(|label| u8::from(several.has(v, label)));
        let expected = [[1, 0, 1], [0, 0, 0], [0, 1, 1], [1, 1, 1], [0, 0, 1]];
        assert_eq!([0, 1, 2, 3, 4].map(has), expected, "{name}");
        assert_eq!(data.labels.known(), [0, 1, 2, 3, 4], "{name}");
        let edges = data.graph.iter_edges().filter(|(to, from)| to < from);
        let edges: Vec<_> = edges.collect();
        // No edge joins two of the graphs of PPI.
        let all = [(0, 1), (1, 2), (2, 3)];
        assert_eq!(edges, all[..if name == "ppi" { 2 } else { 3 }], "{name}");
        if name == "ogb-several" {
            // Each node the mean of its edges: OGB's `adj_t.mean(dim=1)`.
            let values = [0.5, 1.0, 0.375, 0.5, 0.625, 0.25, 1.0, 0.5, 0.0, 0.0];
            assert_eq!(data.features.values(), values);
        } else {
            let values: Vec<f32> = (1_u8..=15).map(|value| f32::from(value) / 4.0).collect();
            assert_eq!(data.features.values(), values, "{name}");
        }
        for file in &data.reading.files {
            let copy = copied(name);
            let path = copy.path().join(file.strip_prefix(folder(name)).unwrap());
            let whole = fs::read(&path).unwrap();
            fs::write(&path, &whole[..whole.len() - 4]).unwrap();
            let error = of_several(format, copy.path()).unwrap_err();
            let called = file.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(called), "{called}: {error}");
        }
    }
    let data = of_several(Format::Ppi, &folder("ppi")).unwrap();
    let sets = &data.splits[0];
    assert_eq!(
        (&sets.train[..], &sets.validation[..], &sets.test[..]),
        (&[0, 1, 2][..], &[3][..], &[4][..])
    );
    assert_eq!(
        data.reading.unread.len(),
        3,
        "what a node is of is not needed"
    );
}

#[test]
fn splits_are_those_of_the_files() {
    let split = |train: &[u32], validation: &[u32], test: &[u32]| {
        Split::new(train.to_vec(), validation.to_vec(), test.to_vec())
    };
    for (format, name, expected) in [
        (Format::DglReddit, "reddit", split(&[0, 1], &[2], &[3, 4])),
        (
            Format::GraphSaint,
            "graphsaint",
            split(&[0, 1], &[2], &[3, 4]),
        ),
        (Format::Igb, "igb", split(&[0, 1, 2], &[3], &[4])),
        (Format::Ogb, "ogb", split(&[0, 1], &[2], &[4])),
    ] {
        assert_eq!(
            of(format, &folder(name)).unwrap().splits,
            [expected],
            "{name}"
        );
    }
}

#[test]
fn matrices_of_either_symmetry_are_the_same_graph() {
    for name in ["general", "symmetric"] {
        let path = folder("matrix-market").join(name).with_extension("mtx");
        let data = of(Format::MatrixMarket, &path).unwrap();
        let edges: Vec<_> = data
            .graph
            .iter_edges()
            .filter(|(to, from)| to < from)
            .collect();
        assert_eq!(
            (edges, data.graph.nodes()),
            (vec![(0, 1), (1, 2), (2, 3)], 5)
        );
    }
}

#[test]
fn features_may_be_of_the_other_byte_order_and_several_columns() {
    let values = npy::read::<f32>(&folder("big-endian/feats.npy")).unwrap();
    assert_eq!(
        values,
        npy::read::<f32>(&folder("graphsaint/feats.npy")).unwrap()
    );
    let spec = DatasetSpec {
        features: Some(FeatureSource::Columns(vec!["y".to_owned(), "x".to_owned()])),
        ..spec(Format::Parquet)
    };
    let data = read(Format::Parquet, &folder("parquet"), &spec, None).unwrap();
    assert_eq!(data.features.values()[..4], [0.5, 0.25, 1.25, 1.0]);
}

#[test]
fn columns_of_tables_that_are_missing_or_of_another_type_are_named() {
    let of = |change: &dyn Fn(&mut DatasetSpec)| {
        let mut spec = spec(Format::Parquet);
        change(&mut spec);
        read(Format::Parquet, &folder("parquet"), &spec, None)
            .unwrap_err()
            .to_string()
    };
    let text = |text: &str| Some(text.to_owned());
    for (error, said) in [
        (
            of(&|spec| spec.id = None),
            "has no column `id`; `id` of [dataset] names another; its columns: key, class, x, y, v",
        ),
        (
            of(&|spec| spec.id = text("class")),
            "column `class` must hold whole numbers",
        ),
        (
            of(&|spec| spec.id = text("x")),
            "column `x` must hold whole numbers",
        ),
        (
            of(&|spec| {
                spec.label = text("x").map(LabelColumns::One);
                spec.features = Some(FeatureSource::Columns(vec!["class".to_owned()]));
            }),
            "column `class` must hold a number or a list",
        ),
        (
            of(&|spec| spec.features = Some(FeatureSource::Columns(vec!["class".to_owned()]))),
            "the column `class` would be used twice, as `label` and as `features`",
        ),
        (
            of(&|spec| spec.target = text("src")),
            "the column `src` would be used twice, as `source` and as `target`",
        ),
    ] {
        assert!(error.contains(said), "{error}");
    }
}

/// A copy of a layout in which a file can be changed.
fn copied(name: &str) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in entries(from).unwrap() {
            let goal = to.join(entry.file_name().unwrap());
            if entry.is_dir() {
                copy(&entry, &goal);
            } else {
                fs::copy(&entry, goal).unwrap();
            }
        }
    }
    let copied = tempfile::tempdir().unwrap();
    copy(&folder(name), copied.path());
    copied
}

#[test]
fn a_file_that_is_cut_short_or_missing_is_an_error_that_names_it() {
    for (format, name) in ALL {
        for file in of(format, &folder(name)).unwrap().reading.files.clone() {
            let within = file.strip_prefix(folder(name)).unwrap();
            let copy = copied(name);
            let path = copy.path().join(within);
            let whole = fs::read(&path).unwrap();
            fs::write(&path, &whole[..whole.len() - 4]).unwrap();
            let error = of(format, copy.path()).unwrap_err();
            let called = within.file_name().unwrap().to_str().unwrap();
            assert!(error.contains(called), "{called}: {error}");
            fs::remove_file(&path).unwrap();
            of(format, copy.path()).unwrap_err();
        }
    }
}

#[test]
fn what_is_out_of_range_or_no_label_is_told() {
    for (format, name, file, text, said) in [
        (
            Format::GraphSaint,
            "graphsaint",
            "role.json",
            r#"{"tr": [0, 5], "va": [], "te": []}"#,
            "node 5 is not one of the 5 nodes",
        ),
        (
            Format::GraphSaint,
            "graphsaint",
            "role.json",
            r#"{"tr": [0], "va": [1], "te": [0]}"#,
            "node 0 is in two of the sets",
        ),
        (
            Format::GraphSaint,
            "graphsaint",
            "role.json",
            r#"{"tr": [0], "va": [1]}"#,
            "missing field `te`",
        ),
        (
            Format::GraphSaint,
            "graphsaint",
            "class_map.json",
            r#"{"7": 0}"#,
            "node 7 is not one of",
        ),
        (
            Format::GraphSaint,
            "graphsaint",
            "class_map.json",
            r#"{"0": [0, 1, 1], "3": 1}"#,
            "has a class of 1 nodes, and lists of labels of the others",
        ),
        (
            Format::GraphSaint,
            "graphsaint-several",
            "class_map.json",
            r#"{"0": [0, 1, 1], "3": [0, 2, 1]}"#,
            "node 3 has a label that is neither 0 nor 1",
        ),
        (
            Format::GraphSaint,
            "graphsaint-several",
            "class_map.json",
            r#"{"0": [0, 1, 1], "3": [0, 1]}"#,
            "row 3 (from 0) has 2 labels where the first has 3",
        ),
        (
            Format::Ppi,
            "ppi",
            "train_graph.json",
            r#"{"nodes": [{}, {}, {}], "links": [{"source": 0, "target": 3}]}"#,
            "node 3 is not one of the 3 nodes",
        ),
        (
            Format::Ppi,
            "ppi",
            "valid_graph.json",
            r#"{"nodes": [{}, {}], "links": []}"#,
            "has 2 nodes, and there are features of 1",
        ),
    ] {
        let copy = copied(name);
        fs::write(copy.path().join(file), text).unwrap();
        let error = of(format, copy.path()).unwrap_err();
        assert!(error.contains(file) && error.contains(said), "{error}");
    }
    // Features of four nodes beside an adjacency of five.
    let copy = copied("graphsaint");
    let mut bytes = Vec::new();
    ndarray_npy::WriteNpyExt::write_npy(&ndarray::Array2::<f32>::ones((4, 3)), &mut bytes).unwrap();
    fs::write(copy.path().join("feats.npy"), bytes).unwrap();
    let error = of(Format::GraphSaint, copy.path()).unwrap_err();
    assert!(
        error.contains("`shape` is [5, 5], and there are features of 4 nodes"),
        "{error}"
    );
    // Edges and labels that do not fit, in the other layouts of arrays.
    let copy = copied("igb");
    let mut bytes = Vec::new();
    ndarray_npy::WriteNpyExt::write_npy(&ndarray::arr2(&[[0_i64, 5]]), &mut bytes).unwrap();
    fs::write(
        copy.path().join("paper__cites__paper/edge_index.npy"),
        bytes,
    )
    .unwrap();
    let error = of(Format::Igb, copy.path()).unwrap_err();
    assert!(
        error.contains("edge_index.npy: node 5 is not one of the 5 nodes"),
        "{error}"
    );
}

#[test]
fn a_graph_without_nodes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x_target.csv"), "id,class\n").unwrap();
    fs::write(folder.path().join("x_edges.csv"), "from,to\n").unwrap();
    let error = of(Format::Csv, folder.path()).unwrap_err();
    assert!(error.contains("has no nodes"), "{error}");
}

#[test]
fn several_columns_of_0_and_1_are_labels() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("t_edges.csv", "a,b\n3,8\n");
    write("t_target.csv", "id,red,round\n3,1,True\n8,0,1.0\n9,,nan\n");
    let columns = |names: &[&str]| {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        DatasetSpec {
            label: Some(LabelColumns::Several(names)),
            ..DatasetSpec::default()
        }
    };
    let data = read(
        Format::Csv,
        folder.path(),
        &columns(&["round", "red"]),
        None,
    )
    .unwrap();
    let several = data.labels.several().unwrap();
    assert_eq!((data.classes, data.labels.known()), (2, vec![0, 1]));
    assert!(several.has(0, 0) && several.has(0, 1) && several.has(1, 0) && !several.has(1, 1));
    write("t_target.csv", "id,red,round\n3,1,7\n8,0,1\n");
    let error = read(
        Format::Csv,
        folder.path(),
        &columns(&["red", "round"]),
        None,
    )
    .unwrap_err();
    let said = "row 0 (from 0): 7 is no label, which a node has, 1, or has not, 0";
    assert!(error.to_string().contains(said), "{error}");
}

#[test]
fn folders_whose_files_are_called_alike_have_names_of_their_own() {
    let parent = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        let folder = parent.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("nodes.csv"), "id,class\n1,x\n2,y\n").unwrap();
        fs::write(folder.join("pairs.csv"), "from,to\n1,2\n").unwrap();
        let spec = DatasetSpec {
            nodes: Some("nodes.csv".into()),
            edges: Some("pairs.csv".into()),
            ..DatasetSpec::default()
        };
        let data = read(Format::Csv, &folder, &spec, None).unwrap();
        assert_eq!(data.name, name);
        let edges = parent.path().join(format!("edges-{name}"));
        fs::create_dir(&edges).unwrap();
        fs::write(edges.join("edges.txt"), "1 2\n").unwrap();
        let spec = DatasetSpec::default();
        let data = read(Format::EdgeList, &edges, &spec, None).unwrap();
        assert_eq!(data.name, format!("edges-{name}"));
        // A file that is named itself is one of several, maybe.
        let file = edges.join("edges.txt");
        let data = read(Format::EdgeList, &file, &spec, None).unwrap();
        assert_eq!(data.name, "edges");
    }
}
