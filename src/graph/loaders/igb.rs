//! A homogeneous graph of the Illinois Graph Benchmark (Khatua et al., 2023):
//!
//! ```text
//! paper/node_feat.npy                       [nodes, 1024], single precision
//! paper/node_label_19.npy, node_label_2K    [nodes], decimals
//! paper__cites__paper/edge_index.npy        [edges, 2]
//! ```
//!
//! The first 60 % of the nodes train and the next 20 % validate, as in the authors' loader until
//! June 2025 (`igb/dataloader.py` of `IllinoisGraphBenchmark/IGB-Datasets`). Since its commit
//! 7eae2f4 it draws them anew each time, without a seed, for all sizes but the full one.

use std::path::Path;

use super::arrays::{in_order, known_of_decimals};
use super::ids::number_classes;
use super::{Reading, npy, stored};
use crate::graph::larger::Room;
use crate::graph::{FeatureStorage, GraphError, RawDataset};

/// Reads the folder with `paper` in it, or in its folder `processed`, with the classes of a file.
pub(super) fn read(
    folder: &Path,
    label: Option<&str>,
    storage: FeatureStorage,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let inner = folder.join("processed");
    let folder = if inner.is_dir() { &inner } else { folder };
    let label = label.unwrap_or("node_label_19");
    let feats = folder.join("paper/node_feat.npy");
    let classes_of = folder.join(format!("paper/{label}.npy"));
    let pairs = folder.join("paper__cites__paper/edge_index.npy");
    let names = npy::read::<f64>(&classes_of)?.values;
    let nodes = names.len();
    let (graph, count) = stored::graph(&pairs, nodes, room)?;
    let features = stored::features(&feats, None, storage, Some(nodes))?;
    let names = known_of_decimals(&names).map_err(|what| GraphError::file(&classes_of, what))?;
    let (labels, classes) = number_classes(&names);
    let reading = Reading::of(count, [feats, classes_of, pairs]);
    // Named after the folder.
    let (name, splits) = (String::new(), vec![in_order(nodes)]);
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}
