//! Reddit (Hamilton, Ying and Leskovec, 2017) as DGL publishes it: `*_graph.npz`, a `SciPy` matrix,
//! and `*_data.npz` with `feature`, `label` and `node_types`, 1 of training, 2 of validation, 3 of
//! test nodes.

use std::path::Path;

use super::arrays::{known, split};
use super::ids::number_classes;
use super::npy::Npz;
use super::{EdgeCount, Reading, data_set_name, only_file, scipy, stored};
use crate::graph::{FeatureStorage, GraphError, RawDataset};

/// Reads the folder.
pub(super) fn read(folder: &Path, storage: FeatureStorage) -> Result<RawDataset, GraphError> {
    let graph = only_file(folder, "_graph.npz")?;
    let data = only_file(folder, "_data.npz")?;
    let mut npz = Npz::open(&data)?;
    let labels = npz.read::<i64>("label")?.values;
    let nodes = labels.len();
    let features = stored::features(&data, Some("feature"), storage, Some(nodes))?;
    let types = npz.read::<i64>("node_types")?.values;
    if types.len() != nodes {
        let what = format!(
            "has the types of {} nodes, and labels of {nodes}",
            types.len()
        );
        return Err(npz.error(what));
    }
    let of = |kind: i64| -> Vec<u32> {
        let own = (0_u32..).zip(&types).filter(|(_, own)| **own == kind);
        own.map(|(node, _)| node).collect()
    };
    let split = split(of(1), of(2), of(3), nodes);
    let split = split.map_err(|what| npz.error(what))?;
    let edges = scipy::edges(&mut Npz::open(&graph)?, nodes)?;
    let (labels, classes) = number_classes(&known(&labels));
    let (edges, count) = EdgeCount::undirected(nodes, edges);
    let name = data_set_name(&graph).trim_end_matches("_graph").to_owned();
    let reading = Reading::of(count, [graph, data]);
    Ok(RawDataset::new(name, edges, features, labels, classes, vec![split]).read_as(reading))
}
