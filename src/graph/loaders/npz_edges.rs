//! One zip with `node_features`, `node_labels`, `edges` and ten splits as `{train,val,test}_masks`
//! (Platonov et al., *A Critical Look at the Evaluation of GNNs under Heterophily*, 2023), or one
//! as `{train,val,test}_mask`. Without any masks the data come without a split. So do the files in
//! which `PyTorch` Geometric keeps Facebook and `LastFM` Asia, with `features`, `target` and
//! `edges`.

use std::path::Path;

use super::arrays::{Ends, known};
use super::ids::number_classes;
use super::npy::Npz;
use super::{EdgeCount, Reading, data_set_name, only_file, stored};
use crate::graph::{FeatureStorage, GraphError, RawDataset, Split};

/// Reads the file, or the only `.npz` file of the folder.
pub(super) fn read(path: &Path, storage: FeatureStorage) -> Result<RawDataset, GraphError> {
    let path = only_file(path, ".npz")?;
    let mut npz = Npz::open(&path)?;
    let named = |npz: &Npz<'_>, [here, there]: [&'static str; 2]| {
        // Where neither is there, the error that follows names the usual one.
        if npz.has(there) && !npz.has(here) {
            there
        } else {
            here
        }
    };
    let of_features = named(&npz, ["node_features", "features"]);
    let of_labels = named(&npz, ["node_labels", "target"]);
    let labels = npz.read::<i64>(of_labels)?.values;
    let pairs = npz.read::<i64>("edges")?;
    let nodes = labels.len();
    let features = stored::features(&path, Some(of_features), storage, Some(nodes))?;
    let pairs = pairs
        .pairs(nodes, Ends::Rows)
        .map_err(|what| npz.error(format!("`edges`: {what}")))?;
    let (graph, count) = EdgeCount::undirected(nodes, pairs);
    let (labels, classes) = number_classes(&known(&labels));

    let several = ["train_masks", "val_masks", "test_masks"];
    let one = ["train_mask", "val_mask", "test_mask"];
    let there = |names: &&[&str; 3]| names.iter().any(|name| npz.has(name));
    let [train, validation, test] = match [several, one].iter().find(there) {
        Some(names) => {
            let mut of = |name| masks(&mut npz, name, nodes);
            [of(names[0])?, of(names[1])?, of(names[2])?]
        }
        None => [vec![], vec![], vec![]],
    };
    if train.len() != validation.len() || train.len() != test.len() {
        return Err(npz.error("has different numbers of training, validation and test masks"));
    }
    let split = |((train, validation), test)| Split::new(train, validation, test);
    let splits = train.into_iter().zip(validation).zip(test).map(split);
    let splits = splits.collect();
    let (name, reading) = (data_set_name(&path), Reading::of(count, [path]));
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}

/// The node numbers of each row of a mask, ascending.
fn masks(npz: &mut Npz, name: &str, nodes: usize) -> Result<Vec<Vec<u32>>, GraphError> {
    let mask = npz.read::<bool>(name)?;
    // Chunks of no nodes would be a panic.
    if mask.shape.last() != Some(&nodes) || nodes == 0 {
        return Err(npz.error(format!(
            "`{name}` has rows of another length than {nodes} nodes"
        )));
    }
    let chosen = |row: &[bool]| {
        (0_u32..)
            .zip(row)
            .filter(|(_, on)| **on)
            .map(|(v, _)| v)
            .collect()
    };
    Ok(mask.values.chunks_exact(nodes).map(chosen).collect())
}

#[cfg(test)]
mod tests {
    use super::super::npy::tests::{add1, add2};
    use super::*;
    use crate::graph::{DatasetSpec, Features, Format};
    use ndarray_npy::NpzWriter;
    use std::fs::File;

    fn write(path: &Path, edges: &[i64]) {
        let mut npz = NpzWriter::new(File::create(path).unwrap());
        add2(
            &mut npz,
            "node_features",
            2,
            &[1_f32, 2.0, 3.0, 4.0, 5.0, 6.0],
        );
        add1(&mut npz, "node_labels", &[1_i64, 0, 1]);
        add2(&mut npz, "edges", 2, edges);
        add2(
            &mut npz,
            "train_masks",
            3,
            &[true, false, false, false, true, false],
        );
        add2(
            &mut npz,
            "val_masks",
            3,
            &[false, true, false, true, false, false],
        );
        add2(
            &mut npz,
            "test_masks",
            3,
            &[false, false, true, false, false, true],
        );
        npz.finish().unwrap();
    }

    #[test]
    fn the_names_of_pytorch_geometric_are_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facebook.npz");
        let mut npz = NpzWriter::new(File::create(&path).unwrap());
        add2(&mut npz, "features", 2, &[1.5_f64, 2.0, 3.0, 4.0, 5.0, 6.0]);
        add1(&mut npz, "target", &[3_i64, 0, 3]);
        add2(&mut npz, "edges", 2, &[0_i64, 1, 2, 1]);
        npz.finish().unwrap();
        let data = read(&path, FeatureStorage::F32).unwrap();
        assert_eq!((data.graph.nodes(), data.graph.edges()), (3, 4));
        assert_eq!((data.features.width(), data.classes), (2, 2));
        assert_eq!(data.labels.classes(), [Some(1), Some(0), Some(1)]);
        assert!(data.splits.is_empty());
    }

    #[test]
    fn one_split_is_there_and_none_that_puts_a_node_in_two_sets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tiny.npz");
        let of = |test: [bool; 3]| {
            let mut npz = NpzWriter::new(File::create(&path).unwrap());
            add2(&mut npz, "node_features", 2, &[1_f32; 6]);
            add1(&mut npz, "node_labels", &[1_i64, 0, 1]);
            add2(&mut npz, "edges", 2, &[0_i64, 1, 2, 1]);
            add1(&mut npz, "train_mask", &[true, false, false]);
            add1(&mut npz, "val_mask", &[false, true, false]);
            add1(&mut npz, "test_mask", &test);
            npz.finish().unwrap();
            let spec = DatasetSpec::default();
            super::super::read(Format::NpzEdges, &path, &spec, None)
        };
        let splits = of([false, false, true]).unwrap().splits;
        assert_eq!(splits, [Split::new(vec![0], vec![1], vec![2])]);
        let refused = of([false, true, true]).unwrap_err().to_string();
        let said = "has node 1 in the validation set and in the test set of split 0";
        assert!(refused.contains(said), "{refused}");
    }

    #[test]
    fn every_published_split_is_there() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("tiny_filtered.npz"), &[0, 1, 2, 1]);
        let data = read(folder.path(), FeatureStorage::F32).unwrap();
        assert_eq!(data.graph.edges(), 4);
        assert_eq!(data.splits.len(), 2);
        assert_eq!(data.splits[1], Split::new(vec![1], vec![0], vec![2]));
        assert!(matches!(&*data.features, Features::Dense { width: 2, .. }));
    }

    #[test]
    fn an_edge_to_a_node_that_is_not_there_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        write(&path, &[0, 3]);
        let error = read(&path, FeatureStorage::F32).unwrap_err().to_string();
        assert!(
            error.contains("`edges`: node 3 is not one of the 3 nodes, 0 to 2"),
            "{error}"
        );
        write(&path, &[0, -1]);
        assert!(
            read(&path, FeatureStorage::F32)
                .unwrap_err()
                .to_string()
                .contains("is not one of the 3 nodes")
        );
    }
}
