//! A sparse matrix in the coordinate form of Matrix Market (Boisvert, Pozo and Remington, 1996), as
//! `SuiteSparse` and `scipy.io.mmwrite` write it. Rows are nodes, numbered from 1; entries are
//! edges, and those that are stored as zero are none. Topology only.

use std::path::Path;

use super::text::{each_line, number, open};
use super::{only_file, topology};
use crate::graph::larger::Pairs;
use crate::graph::{GraphError, RawDataset};

/// More nodes than this need an entry for each so many of them: room is made for all.
const FREE_NODES: usize = 1 << 20;
const NODES_PER_ENTRY: usize = 64;

/// What the lines so far have said.
enum State {
    Banner,
    Size {
        values: usize,
    },
    Entries {
        values: usize,
        nodes: usize,
        entries: usize,
    },
}

/// Reads the file, or the only `.mtx` (or `.mtx.gz`) file of the folder.
pub(super) fn read(path: &Path) -> Result<RawDataset, GraphError> {
    // Where there is neither, what is missed is the plain file.
    let path =
        only_file(path, ".mtx").or_else(|error| only_file(path, ".mtx.gz").map_err(|_| error))?;
    let mut state = State::Banner;
    let (mut edges, mut seen) = (Vec::new(), 0);
    each_line(&path, open(&path)?, |line| {
        let text = line.trim();
        match state {
            State::Banner => {
                state = State::Size {
                    values: banner(text)?,
                }
            }
            _ if text.is_empty() || text.starts_with('%') => {}
            State::Size { values } => {
                let (nodes, entries) = size(text)?;
                state = State::Entries {
                    values,
                    nodes,
                    entries,
                };
            }
            State::Entries { values, nodes, .. } => {
                seen += 1;
                edges.extend(entry(text, values, nodes)?);
            }
        }
        Ok(())
    })?;
    let State::Entries { nodes, entries, .. } = state else {
        let what = "ends before its size line; it is cut short";
        return Err(GraphError::file(&path, what));
    };
    if seen != entries {
        let what =
            format!("promises {entries} entries and has {seen}; it is cut short or not whole");
        return Err(GraphError::file(&path, what));
    }
    if nodes > FREE_NODES && nodes / NODES_PER_ENTRY > entries {
        let what = format!("has {nodes} rows and only {entries} entries; is its size line right?");
        return Err(GraphError::file(&path, what));
    }
    topology(path, nodes, Pairs::Held(edges))
}

/// `%%MatrixMarket matrix coordinate real general`: how many values an entry has.
fn banner(line: &str) -> Result<usize, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ["%%matrixmarket", "matrix", form, field, symmetry] = words[..] else {
        return Err("expected `%%MatrixMarket matrix coordinate …` in the first line".to_owned());
    };
    if form != "coordinate" {
        return Err(format!(
            "is a matrix of form `{form}`; the form `coordinate` is read"
        ));
    }
    if !["general", "symmetric", "skew-symmetric", "hermitian"].contains(&symmetry) {
        return Err(format!(
            "has the symmetry `{symmetry}`, which is none of Matrix Market's"
        ));
    }
    match field {
        "pattern" => Ok(0),
        "real" | "integer" | "double" => Ok(1),
        "complex" => Ok(2),
        _ => Err(format!(
            "has values of type `{field}`, which is none of Matrix Market's"
        )),
    }
}

/// `5 5 6`: nodes, and entries.
fn size(line: &str) -> Result<(usize, usize), String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [rows, columns, entries] = fields[..] else {
        return Err(format!(
            "expected rows, columns and entries, found `{line}`"
        ));
    };
    let of = |field| number::<usize>(field, "a number");
    let (rows, columns, entries) = (of(rows)?, of(columns)?, of(entries)?);
    if rows != columns {
        return Err(format!(
            "is a matrix of {rows} rows and {columns} columns; a graph has as many of both"
        ));
    }
    if u32::try_from(rows).is_err() {
        return Err(format!("{rows} nodes are more than the 2^32 - 1 that fit"));
    }
    Ok((rows, entries))
}

/// `2 1 0.5`: an edge, unless all its values are zero.
fn entry(line: &str, values: usize, nodes: usize) -> Result<Option<(u32, u32)>, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    if fields.len() != 2 + values {
        return Err(format!(
            "expected a row, a column and {values} values, found `{line}`"
        ));
    }
    let node = |field| {
        let node: u32 = number(field, "a row or a column")?;
        match node.checked_sub(1) {
            Some(from_zero) if (from_zero as usize) < nodes => Ok(from_zero),
            _ => Err(format!(
                "{node} is not one of the rows and columns 1 to {nodes}"
            )),
        }
    };
    let edge = (node(fields[0])?, node(fields[1])?);
    let mut is_zero = values > 0;
    for field in &fields[2..] {
        let value: f64 = number(field, "a value")?;
        if !value.is_finite() {
            return Err(format!("the value `{field}` is not finite"));
        }
        is_zero &= value == 0.0;
    }
    Ok((!is_zero).then_some(edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<RawDataset, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.mtx"), text).unwrap();
        read(folder.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn entries_are_edges_and_zeros_are_none() {
        let data = of(
            "%%MatrixMarket matrix coordinate real general\n% c\n\n4 4 4\n1 2 0.5\n2 1 1\n2 3 0\n4 4 1\n",
        );
        let data = data.unwrap();
        assert_eq!(
            (data.graph.nodes(), data.graph.edges(), data.classes),
            (4, 2, 0)
        );
        let complex = of("%%matrixmarket MATRIX Coordinate complex hermitian\n3 3 1\n3 1 0 1\n");
        assert_eq!(complex.unwrap().graph.neighbours(2), [0]);
    }

    #[test]
    fn what_is_wrong_is_named_by_line() {
        let whole = "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n";
        assert!(of(whole).is_ok());
        for (from, to, message) in [
            (
                "%%Matrix",
                "%Matrix",
                "t.mtx:1: expected `%%MatrixMarket matrix coordinate",
            ),
            (
                "coordinate",
                "array",
                "t.mtx:1: is a matrix of form `array`",
            ),
            ("pattern", "quaternion", "values of type `quaternion`"),
            ("symmetric", "odd", "the symmetry `odd`"),
            (
                "3 3 2",
                "3 4 2",
                "t.mtx:2: is a matrix of 3 rows and 4 columns",
            ),
            (
                "3 3 2",
                "3 3",
                "t.mtx:2: expected rows, columns and entries",
            ),
            ("3 3 2", "3 3 3", "promises 3 entries and has 2"),
            ("3 3 2", "9999999 9999999 2", "only 2 entries"),
            (
                "2 1",
                "2 0",
                "t.mtx:3: 0 is not one of the rows and columns 1 to 3",
            ),
            ("\n3 2\n", "\n4 2\n", "t.mtx:4: 4 is not one of"),
            (
                "2 1",
                "2 1 5",
                "t.mtx:3: expected a row, a column and 0 values",
            ),
            ("3 3 2\n2 1\n3 2\n", "", "ends before its size line"),
        ] {
            let error = of(&whole.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
