//! Lines of two node ids, separated by blanks; `#` starts a comment (SNAP). Nodes are the ids that
//! occur, numbered in ascending order: SNAP's ids have gaps. Topology only.

use std::path::Path;

use super::ids::Ids;
use super::text::{each_line, number, open};
use super::{only_file, topology};
use crate::graph::{GraphError, RawDataset};

/// Reads the file, or the only `.txt` (or `.txt.gz`) file of the folder.
pub fn read(path: &Path) -> Result<RawDataset, GraphError> {
    // Where there is neither, what is missed is the plain file.
    let path =
        only_file(path, ".txt").or_else(|error| only_file(path, ".txt.gz").map_err(|_| error))?;
    let mut ends: Vec<u64> = Vec::new();
    each_line(&path, open(&path)?, |line| {
        let text = line.split('#').next().unwrap_or_default();
        let mut fields = text.split_whitespace();
        match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => {}
            (Some(a), Some(b), None) => {
                ends.push(number(a, "a node id")?);
                ends.push(number(b, "a node id")?);
            }
            _ => return Err(format!("expected two node ids, found `{}`", text.trim())),
        }
        Ok(())
    })?;
    if ends.is_empty() {
        return Err(GraphError::file(
            &path,
            "has no edge; expected lines of two node ids",
        ));
    }
    let ids = Ids::new(ends.clone()).map_err(|what| GraphError::file(&path, what))?;
    // Every id is in the list, because the list was made of them.
    let pairs = ends
        .chunks_exact(2)
        .filter_map(|pair| ids.node(pair[0]).zip(ids.node(pair[1])));
    Ok(topology(path, ids.len(), pairs.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(text: &str) -> Result<RawDataset, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Tiny.txt"), text).unwrap();
        read(folder.path())
    }

    #[test]
    fn ids_with_gaps_comments_loops_and_both_directions_make_one_edge() {
        let data = tiny("# from\tto\n900\t7\n7\t900 # again\n\n5 5\r\n").unwrap();
        assert_eq!(
            (data.graph.nodes(), data.graph.edges(), data.classes),
            (3, 2, 0)
        );
        assert_eq!(data.graph.neighbours(1), [2]);
        assert_eq!(data.graph.degree(0), 0);
    }

    #[test]
    fn lines_that_are_not_edges_are_named() {
        assert!(
            tiny("1 2\n3\n")
                .unwrap_err()
                .to_string()
                .ends_with("Tiny.txt:2: expected two node ids, found `3`")
        );
        assert!(
            tiny("1 -2\n")
                .unwrap_err()
                .to_string()
                .ends_with(":1: expected a node id, found `-2`")
        );
        assert!(
            tiny("# nothing\n")
                .unwrap_err()
                .to_string()
                .contains("has no edge")
        );
    }
}
