//! Lines of two node ids, separated by blanks; `#` starts a comment (SNAP). Nodes are the ids that
//! occur, numbered in ascending order: SNAP's ids have gaps. Topology only.

use std::path::Path;

use super::ids::{DistinctIds, Ids};
use super::text::{each_line, number, open};
use super::{only_file, topology};
use crate::graph::larger::{Pairs, Room};
use crate::graph::{GraphError, RawDataset};

/// Reads the file, or the only `.txt` (or `.txt.gz`) file of the folder: once for the ids, of which
/// each is held once, and once for the pairs.
pub(super) fn read(path: &Path, room: Option<&Room>) -> Result<RawDataset, GraphError> {
    // Where there is neither, what is missed is the plain file.
    let path =
        only_file(path, ".txt").or_else(|error| only_file(path, ".txt.gz").map_err(|_| error))?;
    let mut seen = DistinctIds::default();
    each_pair(&path, |a, b| {
        seen.add(a);
        seen.add(b);
        Ok(())
    })?;
    let ids = Ids::new(seen.into()).map_err(|what| GraphError::file(&path, what))?;
    if ids.len() == 0 {
        return Err(GraphError::file(
            &path,
            "has no edge; expected lines of two node ids",
        ));
    }
    let mut pairs = Pairs::new(room);
    let taken = each_pair(&path, |a, b| {
        let node = |id| ids.node(id).ok_or("has changed while it was read");
        pairs.push(node(a)?, node(b)?)
    });
    taken.map_err(|error| pairs.told(error))?;
    topology(path, ids.len(), pairs)
}

/// Calls `each` with the two ids of every line that has any.
fn each_pair(
    path: &Path,
    mut each: impl FnMut(u64, u64) -> Result<(), String>,
) -> Result<(), GraphError> {
    each_line(path, open(path)?, |line| {
        let text = line.split('#').next().unwrap_or_default();
        let mut fields = text.split_whitespace();
        match (fields.next(), fields.next(), fields.next()) {
            (None, ..) => Ok(()),
            (Some(a), Some(b), None) => each(number(a, "a node id")?, number(b, "a node id")?),
            _ => Err(format!("expected two node ids, found `{}`", text.trim())),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tiny(text: &str) -> Result<RawDataset, GraphError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("Tiny.txt"), text).unwrap();
        read(folder.path(), None)
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
