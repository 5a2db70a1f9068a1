//! The raw folder of an Open Graph Benchmark data set in its binary form, which ogbn-papers100M
//! has:
//!
//! ```text
//! data.npz          edge_index [2, edges], node_feat [nodes, width],
//!                   num_nodes_list and num_edges_list, a number each
//! node-label.npz    node_label [nodes, 1], decimals, `nan` where it is not known
//! ```

use std::path::{Path, PathBuf};

use super::arrays::{Ends, known_of_decimals};
use super::ids::number_classes;
use super::npy::Npz;
use super::stored;
use crate::graph::larger::{Pairs, Room};
use crate::graph::{FeatureStorage, Features, GraphError, Labels};

/// What a raw folder holds.
pub(super) struct Raw<'a> {
    /// Number of nodes.
    pub nodes: usize,
    /// Pairs as they are listed.
    pub edges: Pairs<'a>,
    /// `[nodes, width]`.
    pub features: Features,
    /// What is known of each node.
    pub labels: Labels,
    /// Number of classes or labels.
    pub classes: usize,
    /// What is used in place of something that is not there.
    pub note: Option<String>,
    /// The files that were read.
    pub files: Vec<PathBuf>,
}

/// Reads the raw folder.
pub(super) fn read<'a>(
    raw: &Path,
    storage: FeatureStorage,
    room: Option<&'a Room>,
) -> Result<Raw<'a>, GraphError> {
    let (data, labels) = (raw.join("data.npz"), raw.join("node-label.npz"));
    let mut npz = Npz::open(&data)?;
    let mut single = |name: &str| {
        let list = npz.read::<i64>(name)?.values;
        match list[..] {
            [one] => usize::try_from(one).map_err(|_| npz.error(format!("`{name}` is {one}"))),
            _ => Err(npz.error(format!(
                "`{name}` must hold one number: data sets of many graphs are not supported"
            ))),
        }
    };
    let (nodes, promised) = (single("num_nodes_list")?, single("num_edges_list")?);
    // Before anything is made for so many nodes.
    let features = stored::features(&data, Some("node_feat"), storage, Some(nodes))?;
    let edges = match room {
        Some(room) => stored::pairs(&data, "edge_index", nodes, room)?,
        None => None,
    };
    let edges = if let Some(edges) = edges {
        edges
    } else {
        // Where it is compressed, it has to be in memory.
        let index = npz.read::<i64>("edge_index")?;
        let edges = index.pairs(nodes, Ends::Columns);
        Pairs::Held(edges.map_err(|what| npz.error(format!("`edge_index`: {what}")))?)
    };
    if edges.len() != promised {
        let what = format!("promises {promised} edges, but there are {}", edges.len());
        return Err(npz.error(what));
    }
    let mut npz = Npz::open(&labels)?;
    let array = npz.read::<f64>("node_label")?;
    if array.values.len() != nodes {
        let what = format!(
            "`node_label` has the shape {:?}, and there are {nodes} nodes of one label each",
            array.shape
        );
        return Err(npz.error(what));
    }
    let names = known_of_decimals(&array.values);
    let names = names.map_err(|what| npz.error(format!("`node_label`, {what}")))?;
    let (classes_of, classes) = number_classes(&names);
    Ok(Raw {
        nodes,
        edges,
        features,
        labels: classes_of.into(),
        classes,
        note: None,
        files: vec![data, labels],
    })
}
