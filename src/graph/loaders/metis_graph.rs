//! METIS graph files: a header `nodes edges [format [constraints]]`, then one line per node with
//! its neighbours, numbered from 1. `%` starts a comment line. Weights and sizes of nodes and
//! weights of edges are read over. Topology only.

use std::path::Path;

use super::text::{each_line, number, open};
use super::{only_file, topology};
use crate::graph::larger::Pairs;
use crate::graph::{GraphError, RawDataset};

/// What the first line says.
struct Header {
    nodes: u32,
    edges: usize,
    /// Numbers before the neighbours of a line.
    skipped: usize,
    /// Whether each neighbour is followed by a weight.
    weighted: bool,
}

/// Reads the file, or the only `.graph` file of the folder.
pub(super) fn read(path: &Path) -> Result<RawDataset, GraphError> {
    let path = only_file(path, ".graph")?;
    let (mut header, mut node, mut edges) = (None::<Header>, 0_u32, Vec::new());
    each_line(&path, open(&path)?, |line| {
        if line.starts_with('%') {
            return Ok(());
        }
        let Some(header) = &header else {
            header = Some(parse_header(line)?);
            return Ok(());
        };
        // An empty line is a node without neighbours, unless all nodes had theirs.
        if node == header.nodes {
            return if line.trim().is_empty() {
                Ok(())
            } else {
                Err(format!(
                    "is one line more than the {} nodes of the header",
                    header.nodes
                ))
            };
        }
        let fields = line.split_whitespace().skip(header.skipped);
        for field in fields.step_by(if header.weighted { 2 } else { 1 }) {
            let neighbour: u32 = number(field, "a node number")?;
            if !(1..=header.nodes).contains(&neighbour) {
                return Err(format!(
                    "node {neighbour} is not one of 1 to {}",
                    header.nodes
                ));
            }
            // METIS counts nodes from 1.
            edges.push((node, neighbour - 1));
        }
        node += 1;
        Ok(())
    })?;
    let Some(header) = header else {
        return Err(GraphError::file(
            &path,
            "is empty; expected a header `nodes edges`",
        ));
    };
    // Each edge is listed at both of its ends.
    if node != header.nodes || Some(edges.len()) != header.edges.checked_mul(2) {
        let what = format!(
            "has {node} nodes and {} neighbours where the header promises {} and twice {}; is it \
            cut short?",
            edges.len(),
            header.nodes,
            header.edges
        );
        return Err(GraphError::file(&path, what));
    }
    topology(path, header.nodes as usize, Pairs::Held(edges))
}

fn parse_header(line: &str) -> Result<Header, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (nodes, edges, format, constraints) = match fields[..] {
        [nodes, edges] => (nodes, edges, "0", "1"),
        [nodes, edges, format] => (nodes, edges, format, "1"),
        [nodes, edges, format, constraints] => (nodes, edges, format, constraints),
        _ => return Err(format!("expected a header `nodes edges`, found `{line}`")),
    };
    // Leading zeros may be left out: 1 is 001.
    let format: u32 = number(format, "a format such as 011")?;
    let [sizes, weights, weighted] = [format / 100, format / 10 % 10, format % 10];
    if sizes.max(weights).max(weighted) > 1 {
        return Err(format!(
            "expected a format of zeros and ones, found `{format}`"
        ));
    }
    let constraints: usize = number(constraints, "a number of node weights")?;
    Ok(Header {
        nodes: number(nodes, "a number of nodes")?,
        edges: number(edges, "a number of edges")?,
        skipped: sizes as usize + if weights == 1 { constraints } else { 0 },
        weighted: weighted == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(text: &str) -> Result<RawDataset, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.graph");
        std::fs::write(&path, text).unwrap();
        read(&path)
    }

    fn edges(text: &str) -> Vec<(u32, u32)> {
        tiny(text).unwrap().graph.iter_edges().collect()
    }

    #[test]
    fn nodes_count_from_one_and_an_empty_line_is_a_node_without_neighbours() {
        assert_eq!(edges("% a path\n3 1\n3\n\n1\n"), [(2, 0), (0, 2)]);
    }

    #[test]
    fn weights_are_read_over() {
        assert_eq!(edges("2 1 11 2\n7 7 2 9\n8 8 1 9\n"), [(1, 0), (0, 1)]);
    }

    #[test]
    fn a_file_that_ends_early_or_goes_on_is_refused() {
        for (text, message) in [
            ("3 2\n2\n1 3\n", "has 2 nodes and 3 neighbours"),
            // Twice as many are 2 in 64 bits.
            (
                "2 9223372036854775809\n2\n1\n",
                "has 2 nodes and 2 neighbours where the header promises 2 and twice 9223372036854775809",
            ),
            (
                "2 1\n2\n1\n1\n",
                "t.graph:4: is one line more than the 2 nodes",
            ),
            ("2 1\n3\n1\n", "t.graph:2: node 3 is not one of 1 to 2"),
            ("2 1\n0\n1\n", "t.graph:2: node 0 is not one of 1 to 2"),
            ("", "is empty"),
            ("nodes\n", "expected a header"),
        ] {
            let error = tiny(text).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
