//! The folder of PPI as DGL has it (Zitnik and Leskovec, 2017; Hamilton, Ying and Leskovec, 2017):
//! for each of `train`, `valid` and `test` a graph of its own, which the whole is made of.
//!
//! ```text
//! {train,valid,test}_graph.json    nodes and links, as networkx writes them
//! {train,valid,test}_feats.npy     [nodes, width]
//! {train,valid,test}_labels.npy    [nodes, labels] of 0 and 1
//! ```
//!
//! `*_graph_id.npy` says which of 24 tissues a node is of: no edge joins two of them, so that it is
//! left unread.

use std::path::Path;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::arrays::features;
use super::graphsaint::json;
use super::ids::in_range;
use super::npy;
use super::{EdgeCount, Reading};
use crate::graph::{Features, GraphError, RawDataset, Several, Split};

#[derive(Deserialize)]
struct Graph {
    nodes: Vec<IgnoredAny>,
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    source: u64,
    target: u64,
}

/// Reads the folder.
pub(super) fn read(folder: &Path) -> Result<RawDataset, GraphError> {
    let (mut edges, mut values, mut said) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sets, mut files) = (Vec::new(), Vec::new());
    let (mut width, mut labels, mut nodes) = (None, None, 0);
    for set in ["train", "valid", "test"] {
        let at = |name: &str| folder.join(format!("{set}_{name}"));
        let [graph, feats, of] = [at("graph.json"), at("feats.npy"), at("labels.npy")];
        let array = npy::read::<f32>(&feats)?;
        let own = array.shape.first().copied().unwrap_or(0);
        let read = features(&feats, "the array", array, own)?;
        same(&feats, &mut width, read.width())?;
        values.extend(read.dense_rows(&numbers(0, own)));
        let array = npy::read::<f64>(&of)?;
        let [rows, columns] = array.shape[..] else {
            return Err(GraphError::file(&of, "must have a row of labels per node"));
        };
        if rows != own || columns == 0 {
            return Err(GraphError::file(
                &of,
                format!("has {rows} rows of {columns} labels for {own} nodes"),
            ));
        }
        same(&of, &mut labels, columns)?;
        said.extend(array.values);
        edges.extend(links(&graph, own, nodes)?);
        sets.push(numbers(nodes, own));
        nodes += own;
        files.extend([graph, feats, of]);
    }
    let (width, labels) = (width.unwrap_or(1), labels.unwrap_or(1));
    let rows = said.chunks_exact(labels).map(|row| row.iter().copied());
    let several = Several::from_rows(labels, rows)
        .map_err(|what| GraphError::file(folder, format!("labels, {what}")))?;
    let [train, validation, test] = <[_; 3]>::try_from(sets).unwrap_or_default();
    let split = Split::new(train, validation, test);
    let (graph, count) = EdgeCount::undirected(nodes, edges);
    let features = Features::Dense { width, values }.compact();
    // Named after the folder.
    let (name, reading) = (String::new(), Reading::of(count, files));
    Ok(RawDataset::new(name, graph, features, several, labels, vec![split]).read_as(reading))
}

/// So many node numbers from one on.
fn numbers(first: usize, count: usize) -> Vec<u32> {
    (first..first + count).map(|node| node as u32).collect()
}

/// Whether the three sets have arrays of one width.
fn same(path: &Path, known: &mut Option<usize>, found: usize) -> Result<(), GraphError> {
    let first = *known.get_or_insert(found);
    if first == found {
        return Ok(());
    }
    let what = format!("has {found} columns, and that of the training nodes {first}");
    Err(GraphError::file(path, what))
}

/// The links of one graph of `own` nodes, which come after `before` others.
fn links(path: &Path, own: usize, before: usize) -> Result<Vec<(u32, u32)>, GraphError> {
    let graph: Graph = json(path)?;
    if graph.nodes.len() != own {
        let what = format!(
            "has {} nodes, and there are features of {own}",
            graph.nodes.len()
        );
        return Err(GraphError::file(path, what));
    }
    let node = |node: u64| Ok::<u32, String>(in_range(node, own)? + before as u32);
    let links = graph.links.iter();
    let links = links.map(|link| Ok((node(link.source)?, node(link.target)?)));
    links
        .collect::<Result<_, String>>()
        .map_err(|what| GraphError::file(path, what))
}
