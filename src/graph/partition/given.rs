//! A partition from a file of another program. Whatever its name, a file holds the worker, from 0,
//! of one node after another:
//!
//! ```text
//! *.npy   an array of whole numbers, `[nodes]`: node_map.npy of dgl.distributed
//! *.json  the configuration that dgl.distributed.partition_graph writes: where its array is, or,
//!         where nodes were numbered anew by part, the numbers [from, to) of each part
//! else    lines of one number: METIS (graph.part.N), ParMETIS, DGL's list for each type of nodes;
//!         also packed, *.gz
//! ```

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::graph::GraphError;
use crate::graph::loaders::{each_line, number, open, table};

/// Reads the assignment of `nodes` nodes to `workers` workers.
pub(super) fn partition(path: &Path, nodes: usize, workers: usize) -> Result<Vec<u32>, GraphError> {
    let kind = path.extension().and_then(|extension| extension.to_str());
    let assignment = match kind {
        Some("npy") => array(path, nodes, workers)?,
        Some("json") => match configuration(path)? {
            Map::Array(path) => array(&path, nodes, workers)?,
            Map::Ranges(ends) => ranges(path, &ends, nodes, workers)?,
        },
        _ => lines(path, nodes, workers)?,
    };
    let mut used = vec![false; workers];
    for &worker in &assignment {
        used[worker as usize] = true;
    }
    match used.iter().position(|used| !used) {
        Some(idle) => Err(GraphError::file(
            path,
            format!("gives no node to worker {idle} of {workers}; ask for fewer workers"),
        )),
        None => Ok(assignment),
    }
}

/// A worker, if it is one.
fn worker(number: i64, workers: usize) -> Result<u32, String> {
    let worker = u32::try_from(number).ok();
    let worker = worker.filter(|&worker| (worker as usize) < workers);
    worker.ok_or_else(|| {
        format!(
            "worker {number} is not one of 0 to {}, the {workers} workers asked for",
            workers - 1
        )
    })
}

fn lines(path: &Path, nodes: usize, workers: usize) -> Result<Vec<u32>, GraphError> {
    let mut assignment: Vec<u32> = Vec::new();
    each_line(path, open(path)?, |line| {
        let worker = worker(number(line, "a worker number")?, workers)?;
        if assignment.len() == nodes {
            return Err(format!(
                "is one line more than the {nodes} nodes of the graph"
            ));
        }
        assignment.push(worker);
        Ok(())
    })?;
    if assignment.len() != nodes {
        let what = format!(
            "has {} lines for the {nodes} nodes of the graph",
            assignment.len()
        );
        return Err(GraphError::file(path, what));
    }
    Ok(assignment)
}

fn array(path: &Path, nodes: usize, workers: usize) -> Result<Vec<u32>, GraphError> {
    let wrong = |what: String| GraphError::file(path, what);
    let map = table::<i64>(path, None).map_err(wrong)?;
    if map.shape != [nodes] {
        let what = format!("has the shape {:?}, and the graph {nodes} nodes", map.shape);
        return Err(wrong(what));
    }
    let all = map.values.values(0, nodes).enumerate();
    all.map(|(node, number)| {
        worker(number, workers).map_err(|what| wrong(format!("node {node} (from 0): {what}")))
    })
    .collect()
}

/// What a configuration of DGL says of its nodes.
enum Map {
    /// They are in this array.
    Array(PathBuf),
    /// The first and the end of each part.
    Ranges(Vec<[usize; 2]>),
}

fn configuration(path: &Path) -> Result<Map, GraphError> {
    let wrong = |what: &str| GraphError::file(path, what);
    let text = std::fs::read(path).map_err(|error| GraphError::read(path, error))?;
    let value: Value =
        serde_json::from_slice(&text).map_err(|error| wrong(&format!("is no JSON: {error}")))?;
    let map = match value.get("node_map") {
        Some(Value::String(file)) => {
            let name = Path::new(file).file_name().unwrap_or_default();
            // As it was written, seen from where that program ran; or beside the configuration.
            let beside = path.with_file_name(name);
            let there = Path::new(file).is_file() && !beside.is_file();
            return Ok(Map::Array(if there { file.into() } else { beside }));
        }
        Some(Value::Object(types)) => match types.values().collect::<Vec<_>>()[..] {
            [one] => one,
            _ => return Err(wrong("has nodes of several types, and this graph of one")),
        },
        Some(list) => list,
        None => {
            return Err(wrong(
                "has no `node_map`: it is no configuration of dgl.distributed",
            ));
        }
    };
    let ranges = serde_json::from_value(map.clone());
    ranges
        .map(Map::Ranges)
        .map_err(|_| wrong("has a `node_map` that is no list of [from, to) of each part"))
}

/// The parts of nodes that are numbered by part.
fn ranges(
    path: &Path,
    parts: &[[usize; 2]],
    nodes: usize,
    workers: usize,
) -> Result<Vec<u32>, GraphError> {
    let wrong = |what: String| GraphError::file(path, what);
    if parts.len() != workers {
        let what = format!(
            "has {} parts, and {workers} workers are asked for",
            parts.len()
        );
        return Err(wrong(what));
    }
    let mut assignment = Vec::new();
    for (part, &[from, to]) in (0_u32..).zip(parts) {
        if from != assignment.len() || to < from || to > nodes {
            let what = format!(
                "part {part} has the nodes {from} to {to} of {nodes}, and the parts before it end with {}",
                assignment.len()
            );
            return Err(wrong(what));
        }
        assignment.resize(to, part);
    }
    if assignment.len() != nodes {
        let what = format!("has {} nodes, and the graph has {nodes}", assignment.len());
        return Err(wrong(what));
    }
    Ok(assignment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<u32>, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parts.txt");
        std::fs::write(&path, text).unwrap();
        partition(&path, 3, 2)
    }

    #[test]
    fn one_number_per_line_is_read() {
        assert_eq!(read("0\n1\r\n0\n").unwrap(), [0, 1, 0]);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused_with_its_line() {
        for (text, message) in [
            (
                "0\n1\n",
                "parts.txt: has 2 lines for the 3 nodes of the graph",
            ),
            (
                "0\n1\n0\n1\n",
                "parts.txt:4: is one line more than the 3 nodes of the graph",
            ),
            (
                "0\n2\n0\n",
                "parts.txt:2: worker 2 is not one of 0 to 1, the 2 workers asked for",
            ),
            (
                "0\nx\n0\n",
                "parts.txt:2: expected a worker number, found `x`",
            ),
            (
                "0\n0\n0\n",
                "parts.txt: gives no node to worker 1 of 2; ask for fewer workers",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.ends_with(message), "{error}");
        }
    }

    fn of(name: &str, text: &[u8]) -> Result<Vec<u32>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        partition(&path, 3, 2).map_err(|error| error.to_string())
    }

    /// numpy.array(values, dtype="<i8") as numpy.save writes it.
    fn map(values: &[i64]) -> Vec<u8> {
        let head = format!(
            "{{'descr': '<i8', 'fortran_order': False, 'shape': ({},), }}\n",
            values.len()
        );
        let length = u16::try_from(head.len()).unwrap().to_le_bytes();
        let mut bytes = [b"\x93NUMPY\x01\0", &length[..], head.as_bytes()].concat();
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    #[test]
    fn what_dgl_writes_is_read_as_an_array_and_as_ranges() {
        assert_eq!(of("node_map.npy", &map(&[1, 0, 1])).unwrap(), [1, 0, 1]);
        let config =
            r#"{"num_parts": 2, "node_map": {"_N": [[0, 2], [2, 3]]}, "ntypes": {"_N": 0}}"#;
        assert_eq!(of("toy.json", config.as_bytes()).unwrap(), [0, 0, 1]);
        let older = r#"{"num_parts": 2, "node_map": [[0, 1], [1, 3]]}"#;
        assert_eq!(of("toy.json", older.as_bytes()).unwrap(), [0, 1, 1]);
        // Where nodes keep their numbers, the array lies beside the configuration.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("toy.json");
        std::fs::write(&path, r#"{"node_map": "/elsewhere/node_map.npy"}"#).unwrap();
        std::fs::write(folder.path().join("node_map.npy"), map(&[0, 1, 1])).unwrap();
        assert_eq!(partition(&path, 3, 2).unwrap(), [0, 1, 1]);
    }

    #[test]
    fn what_is_not_of_this_graph_is_refused() {
        for (name, text, message) in [
            (
                "a.npy",
                map(&[0, 1]),
                "a.npy: has the shape [2], and the graph 3 nodes",
            ),
            (
                "a.npy",
                map(&[0, 1, 2]),
                "a.npy: node 2 (from 0): worker 2 is not one of 0 to 1",
            ),
            (
                "a.npy",
                map(&[0, -1, 1]),
                "node 1 (from 0): worker -1 is not one of 0 to 1",
            ),
            ("a.json", b"{}".to_vec(), "a.json: has no `node_map`"),
            ("a.json", b"{".to_vec(), "a.json: is no JSON"),
            (
                "a.json",
                br#"{"node_map": {"a": [[0, 3]], "b": []}}"#.to_vec(),
                "a.json: has nodes of several types",
            ),
            (
                "a.json",
                br#"{"node_map": 3}"#.to_vec(),
                "is no list of [from, to) of each part",
            ),
            (
                "a.json",
                br#"{"node_map": [[0, 3]]}"#.to_vec(),
                "has 1 parts, and 2 workers are asked for",
            ),
            (
                "a.json",
                br#"{"node_map": [[0, 1], [2, 3]]}"#.to_vec(),
                "part 1 has the nodes 2 to 3 of 3, and the parts before it end with 1",
            ),
            (
                "a.json",
                br#"{"node_map": [[0, 1], [1, 2]]}"#.to_vec(),
                "has 2 nodes, and the graph has 3",
            ),
            (
                "a.json",
                br#"{"node_map": [[0, 3], [3, 3]]}"#.to_vec(),
                "gives no node to worker 1 of 2",
            ),
        ] {
            let error = of(name, &text).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
