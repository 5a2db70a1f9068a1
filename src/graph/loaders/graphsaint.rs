//! The folder of a `GraphSAINT` data set (Zeng et al., 2020): `adj_full.npz`, a `SciPy` matrix of
//! the whole graph; `feats.npy`; `class_map.json`, from node to class, or to a list of 0 and 1 for
//! several labels, as that of Yelp; `role.json`, the nodes that train (`tr`), validate (`va`) and
//! test (`te`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::arrays::split;
use super::ids::{in_range, number_classes};
use super::npy::Npz;
use super::{EdgeCount, Reading, scipy, stored};
use crate::graph::{FeatureStorage, GraphError, Labels, RawDataset, Several};

/// What a node belongs to.
#[derive(Deserialize)]
#[serde(untagged)]
enum Classes {
    One(i64),
    Several(Vec<Flag>),
}

/// Whether a node has a label: 1, 0, or neither.
#[derive(Clone, Copy, Deserialize)]
#[serde(from = "f64")]
struct Flag(u8);

impl From<f64> for Flag {
    fn from(value: f64) -> Self {
        // One byte each: Yelp has 72 million of them.
        Self(if value == 0.0 || value == 1.0 {
            value as u8
        } else {
            u8::MAX
        })
    }
}

#[derive(Deserialize)]
struct Roles {
    tr: Vec<u64>,
    va: Vec<u64>,
    te: Vec<u64>,
}

/// Reads the folder.
pub(super) fn read(folder: &Path, storage: FeatureStorage) -> Result<RawDataset, GraphError> {
    let at = |name: &str| folder.join(name);
    let files = [
        at("adj_full.npz"),
        at("feats.npy"),
        at("class_map.json"),
        at("role.json"),
    ];
    let [adjacency, feats, class_map, role] = &files;
    let features = stored::features(feats, None, storage, None)?;
    let nodes = features.rows();
    let edges = scipy::edges(&mut Npz::open(adjacency)?, nodes)?;

    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |what: String| GraphError::file(&path, what)
    };
    let (labels, classes) = labels(json(class_map)?, nodes).map_err(wrong(class_map))?;
    let roles: Roles = json(role)?;
    let of = |nodes_of: Vec<u64>| {
        nodes_of
            .into_iter()
            .map(|node| in_range(node, nodes))
            .collect::<Result<_, _>>()
    };
    let split = of(roles.tr)
        .and_then(|train| split(train, of(roles.va)?, of(roles.te)?, nodes))
        .map_err(wrong(role))?;
    let (graph, count) = EdgeCount::undirected(nodes, edges);
    // Named after the folder.
    let (name, reading) = (String::new(), Reading::of(count, files));
    Ok(RawDataset::new(name, graph, features, labels, classes, vec![split]).read_as(reading))
}

/// What is known of each node, and the number of classes or labels. In order of nodes, so that of
/// several mistakes the same one is told every time.
fn labels(map: BTreeMap<u64, Classes>, nodes: usize) -> Result<(Labels, usize), String> {
    let (mut names, mut lists) = (vec![None; nodes], Vec::new());
    lists.resize_with(nodes, Vec::new);
    let (mut ones, mut width) = (0, None);
    for (node, class) in map {
        let place = in_range(node, nodes)? as usize;
        match class {
            Classes::One(class) => {
                ones += 1;
                names[place] = (class >= 0).then_some(class);
            }
            Classes::Several(list) => {
                width.get_or_insert(list.len());
                lists[place] = list;
            }
        }
    }
    match width {
        None => {
            let (labels, classes) = number_classes(&names);
            Ok((labels.into(), classes))
        }
        Some(_) if ones > 0 => Err(format!(
            "has a class of {ones} nodes, and lists of labels of the others"
        )),
        Some(0) => Err("has lists of no labels".to_owned()),
        Some(width) => {
            let strange = |list: &Vec<Flag>| list.iter().any(|flag| flag.0 == u8::MAX);
            if let Some(node) = lists.iter().position(strange) {
                return Err(format!("node {node} has a label that is neither 0 nor 1"));
            }
            let nothing = vec![Flag(u8::MAX); width];
            let row = |list: &'_ Vec<Flag>| {
                let list = if list.is_empty() { &nothing } else { list };
                let known = |flag: &Flag| match flag.0 {
                    u8::MAX => f64::NAN,
                    flag => f64::from(flag),
                };
                list.iter().map(known).collect::<Vec<f64>>()
            };
            let rows = lists.iter().map(|list| row(list).into_iter());
            let several = Several::from_rows(width, rows)?;
            Ok((several.into(), width))
        }
    }
}

/// What a JSON file holds.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, GraphError> {
    let text = std::fs::read(path).map_err(|source| GraphError::read(path, source))?;
    serde_json::from_slice(&text).map_err(|error| {
        GraphError::file(
            path,
            format!("does not hold what is expected there: {error}"),
        )
    })
}
