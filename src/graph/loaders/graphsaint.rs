//! The folder of a `GraphSAINT` data set (Zeng et al., 2020): `adj_full.npz`, a `SciPy` matrix of
//! the whole graph; `feats.npy`; `class_map.json`, from node to class; `role.json`, the nodes that
//! train (`tr`), validate (`va`) and test (`te`).

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::arrays::{features, split};
use super::ids::{in_range, number_classes};
use super::npy::{self, Npz};
use super::{EdgeCount, Reading, scipy};
use crate::graph::{GraphError, RawDataset};

/// What a node belongs to.
#[derive(Deserialize)]
#[serde(untagged)]
enum Classes {
    One(i64),
    Several(Vec<f64>),
}

#[derive(Deserialize)]
struct Roles {
    tr: Vec<u64>,
    va: Vec<u64>,
    te: Vec<u64>,
}

/// Reads the folder.
pub fn read(folder: &Path) -> Result<RawDataset, GraphError> {
    let at = |name: &str| folder.join(name);
    let files = [
        at("adj_full.npz"),
        at("feats.npy"),
        at("class_map.json"),
        at("role.json"),
    ];
    let [adjacency, feats, class_map, role] = &files;
    let array = npy::read::<f32>(feats)?;
    let nodes = array.shape.first().copied().unwrap_or(0);
    let features = features(feats, "the array", array, nodes)?;
    let edges = scipy::edges(&mut Npz::open(adjacency)?, nodes)?;

    let wrong = |path: &Path| {
        let path = path.to_owned();
        move |what: String| GraphError::file(&path, what)
    };
    let mut names = vec![None; nodes];
    // In order, so that of several mistakes the same one is told every time.
    for (node, class) in json::<BTreeMap<u64, Classes>>(class_map)? {
        let node = in_range(node, nodes).map_err(wrong(class_map))?;
        names[node as usize] = match class {
            Classes::One(class) => (class >= 0).then_some(class),
            Classes::Several(labels) => {
                return Err(GraphError::file(
                    class_map,
                    format!(
                        "node {node} has a list of {} labels: data with several labels a node are not read yet",
                        labels.len()
                    ),
                ));
            }
        };
    }
    let (labels, classes) = number_classes(&names);
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
    Ok(
        RawDataset::new(String::new(), graph, features, labels, classes, vec![split])
            .read_as(Reading::of(count, files)),
    )
}

/// What a JSON file holds.
fn json<T: DeserializeOwned>(path: &Path) -> Result<T, GraphError> {
    let text = std::fs::read(path).map_err(|source| GraphError::read(path, source))?;
    serde_json::from_slice(&text)
        .map_err(|error| GraphError::file(path, format!("is not what GraphSAINT writes: {error}")))
}
