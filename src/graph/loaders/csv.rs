//! `*edges.csv` and `*target.csv`, with or without `*features.json` (Rozemberczki, Allen and
//! Sarkar, 2021; Rozemberczki and Sarkar, 2020).
//!
//! The first column of the target file is the node id and the last the class; nodes are numbered by
//! ascending id. The JSON object maps an id to the list of its features, each of value 1. Without
//! it each node is its own feature.

use std::collections::BTreeMap;
use std::path::Path;

use super::ids::{Ids, number_classes};
use super::text::{each_record, number, open};
use super::{file_name, only_file};
use crate::graph::{Csr, Features, GraphError, RawDataset};

/// Reads the folder.
pub fn read(folder: &Path, with_features: bool) -> Result<RawDataset, GraphError> {
    let targets = only_file(folder, "target.csv")?;
    let mut listed: Vec<(u64, String)> = Vec::new();
    each_record(&targets, open(&targets)?, |record| {
        let [id, .., class] = record else {
            return Err("expected a node id and a class".to_owned());
        };
        listed.push((number(id, "a node id")?, class.clone()));
        Ok(())
    })?;
    let ids = Ids::new(listed.iter().map(|&(id, _)| id).collect())
        .map_err(|what| GraphError::file(&targets, what))?;
    if ids.len() != listed.len() {
        return Err(GraphError::file(
            &targets,
            "lists a node twice; every node has one class",
        ));
    }
    listed.sort_unstable_by_key(|&(id, _)| id);
    let names: Vec<Option<String>> = listed.into_iter().map(|(_, class)| Some(class)).collect();
    let (labels, classes) = number_labels(&names);

    let pairs = only_file(folder, "edges.csv")?;
    let mut edges = Vec::new();
    each_record(&pairs, open(&pairs)?, |record| {
        let [a, b] = record else {
            return Err("expected two node ids".to_owned());
        };
        let node = |field: &String| {
            let id = number(field, "a node id")?;
            ids.node(id)
                .ok_or_else(|| format!("node {id} has no line in `{}`", file_name(&targets)))
        };
        edges.push((node(a)?, node(b)?));
        Ok(())
    })?;
    let graph = Csr::undirected(ids.len(), edges.into_iter());
    let features = if with_features {
        features(folder, &ids)?
    } else {
        Features::identity(ids.len())
    };
    let name = file_name(&targets);
    let name = name
        .trim_end_matches("target.csv")
        .trim_end_matches('_')
        .to_owned();
    Ok(RawDataset::new(
        name,
        graph,
        features,
        labels,
        classes,
        vec![],
    ))
}

/// Classes that are all numbers are ordered as numbers, others as text.
fn number_labels(names: &[Option<String>]) -> (Vec<Option<u32>>, usize) {
    let numbers: Option<Vec<Option<i64>>> = names
        .iter()
        .map(|name| name.as_ref().and_then(|name| name.parse().ok()).map(Some))
        .collect();
    numbers.map_or_else(|| number_classes(names), |numbers| number_classes(&numbers))
}

fn features(folder: &Path, ids: &Ids) -> Result<Features, GraphError> {
    let path = only_file(folder, "features.json")?;
    let text = std::fs::read(&path).map_err(|source| GraphError::read(&path, source))?;
    let listed: BTreeMap<u64, Vec<u32>> = serde_json::from_slice(&text).map_err(|error| {
        let what = format!("expected an object of lists of feature numbers: {error}");
        GraphError::file(&path, what)
    })?;
    let mut rows = vec![Vec::new(); ids.len()];
    for (id, columns) in listed {
        let node = ids.node(id).ok_or_else(|| {
            GraphError::file(&path, format!("node {id} is not in the target file"))
        })?;
        rows[node as usize] = columns.into_iter().map(|column| (column, 1.0)).collect();
    }
    let width = rows
        .iter()
        .flatten()
        .map(|&(column, _)| column as usize + 1)
        .max()
        .unwrap_or(0);
    Ok(Features::from_rows(width, rows.into_iter()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(edges: &str, target: &str, json: Option<&str>) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tiny_edges.csv"), edges).unwrap();
        std::fs::write(folder.path().join("tiny_target.csv"), target).unwrap();
        if let Some(json) = json {
            std::fs::write(folder.path().join("tiny_features.json"), json).unwrap();
        }
        folder
    }

    #[test]
    fn ids_with_gaps_and_features_of_some_nodes_are_read() {
        let folder = folder(
            "a,b\n30,10\n10,30\n20,20\n",
            "id,name,kind\n30,\"x, y\",tv\n10,z,shop\n20,w,tv\n",
            Some("{\"30\": [4, 0, 4], \"10\": []}"),
        );
        let data = read(folder.path(), true).unwrap();
        assert_eq!(data.name, "tiny");
        assert_eq!(data.labels[..], [Some(0), Some(1), Some(1)]);
        assert_eq!(
            data.graph.iter_edges().collect::<Vec<_>>(),
            [(2, 0), (0, 2)]
        );
        assert_eq!(data.features.width(), 5);
        assert_eq!(data.features.values(), [1.0, 1.0]);
    }

    #[test]
    fn without_a_feature_file_each_node_is_its_own_feature() {
        let folder = folder("a,b\n1,2\n", "id,target\n1,10\n2,9\n", None);
        let data = read(folder.path(), false).unwrap();
        assert_eq!(*data.features, Features::identity(2));
        assert_eq!(
            data.labels[..],
            [Some(1), Some(0)],
            "9 comes before 10 among numbers"
        );
        assert!(
            read(folder.path(), true)
                .unwrap_err()
                .to_string()
                .contains("features.json")
        );
    }

    #[test]
    fn an_edge_of_an_unknown_node_is_named_by_line() {
        let folder = folder("a,b\n1,2\n1,3\n", "id,target\n1,0\n2,1\n", None);
        let error = read(folder.path(), false).unwrap_err().to_string();
        assert!(
            error.ends_with("tiny_edges.csv:3: node 3 has no line in `tiny_target.csv`"),
            "{error}"
        );
    }
}
