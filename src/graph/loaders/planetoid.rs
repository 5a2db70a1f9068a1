//! `ind.<name>.{x,y,tx,ty,allx,ally,graph,test.index}` (Yang, Cohen and Salakhutdinov, 2016).
//!
//! `allx`, `ally` are nodes 0, 1, …; row i of `tx`, `ty` is node `test.index[i]`. Training nodes
//! are the rows of `y`, validation nodes the 500 after them, test nodes those of `test.index`. In
//! `CiteSeer` 15 numbers of the test range are not in `test.index`: those nodes have no features
//! and no label. `x` and `tx` repeat what `allx` and the rest say, so `x` is not opened.

use std::path::Path;

use super::ids::in_range;
use super::npy::Array;
use super::numpy::{Matrix, array, matrix};
use super::pickle::{Pickle, Value};
use super::text::{each_line, number, open};
use super::{EdgeCount, Reading, file_name, finite, only_file};
use crate::graph::{Features, GraphError, RawDataset, Split};

/// Validation nodes of the public split.
const VALIDATION: usize = 500;

/// How the names of the eight files end.
pub(super) const PARTS: [&str; 8] = ["graph", "test.index", "allx", "ally", "tx", "ty", "x", "y"];

/// Reads the folder, or the folder of any of the eight files.
pub(super) fn read(path: &Path) -> Result<RawDataset, GraphError> {
    // Its name tells those of the others.
    let one = only_file(path, ".graph")?;
    let full = file_name(&one);
    let name = full.strip_prefix("ind.").and_then(|rest| {
        let without = |part| rest.strip_suffix(part)?.strip_suffix('.');
        PARTS.into_iter().find_map(without)
    });
    let name = name.ok_or_else(|| {
        let what = "is not named `ind.<name>.graph` or as one of the seven files beside it";
        GraphError::file(&one, what)
    })?;
    let file = |part: &str| one.with_file_name(format!("ind.{name}.{part}"));
    let graph_file = file("graph");

    let test_file = file("test.index");
    let mut test: Vec<u32> = Vec::new();
    each_line(&test_file, open(&test_file)?, |line| {
        test.push(number(line, "a node number")?);
        Ok(())
    })?;

    let known = matrix_of(&file("allx"))?;
    let tested = matrix_of(&file("tx"))?;
    for (part, matrix) in [("allx", &known), ("tx", &tested)] {
        // Made to be looked at alone: an error can still name the file.
        let rows = (0..matrix.rows()).map(|row| matrix.row(row));
        finite(
            &file(part),
            "features",
            Features::from_rows(matrix.width, rows),
        )?;
    }
    let known_labels = array_of(&file("ally"))?;
    let tested_labels = array_of(&file("ty"))?;
    let training = array_of(&file("y"))?.shape[0];
    let classes = known_labels.shape[1];
    let width = known.width;

    let last = test.iter().max().map_or(0, |&node| node as usize + 1);
    let nodes = known.rows().max(last);
    let lengths = [
        ("ally", known_labels.shape[0], known.rows()),
        ("tx", tested.rows(), test.len()),
        ("ty", tested_labels.shape[0], test.len()),
        // Unequal where `y` has more rows than `allx`, of which it repeats the first.
        ("y", training.min(known.rows()), training),
    ];
    for (part, found, expected) in lengths {
        if found != expected {
            let what = format!("has {found} rows where the other files say {expected}");
            return Err(GraphError::file(&file(part), what));
        }
    }
    if tested.width != width || tested_labels.shape[1] != classes {
        let part = if tested.width == width { "ty" } else { "tx" };
        let what = "has another number of columns than `allx` and `ally`";
        return Err(GraphError::file(&file(part), what));
    }
    // The test range is a block at the end: a number far beyond it would make memory of nothing.
    if nodes > 2 * (known.rows() + test.len()) {
        let what = format!(
            "names node {}, but there are {} rows",
            last - 1,
            known.rows() + test.len()
        );
        return Err(GraphError::file(&test_file, what));
    }
    let mut seen = vec![false; nodes];
    for &node in &test {
        if (node as usize) < known.rows() || std::mem::replace(&mut seen[node as usize], true) {
            let what = format!("node {node} is there twice or is already in `allx`");
            return Err(GraphError::file(&test_file, what));
        }
    }

    let mut rows: Vec<Vec<(u32, f32)>> = (0..known.rows()).map(|row| known.row(row)).collect();
    let mut labels: Vec<Option<u32>> = (0..known.rows())
        .map(|row| class(&known_labels, row))
        .collect();
    // What `test.index` leaves out stays without features and without a class.
    rows.resize(nodes, vec![]);
    labels.resize(nodes, None);
    for (row, &node) in test.iter().enumerate() {
        rows[node as usize] = tested.row(row);
        labels[node as usize] = class(&tested_labels, row);
    }

    let (graph, count) = EdgeCount::undirected(nodes, edges(&graph_file, nodes)?);
    let read = ["graph", "test.index", "allx", "tx", "ally", "ty", "y"].map(file);
    let reading = Reading::of(count, read);
    let labelled = |node: &u32| labels[*node as usize].is_some();
    // Row numbers are below the number of nodes, which fits because node numbers in the files are
    // `u32`.
    let range = |from: usize, to: usize| (0_u32..).take(to).skip(from).filter(labelled).collect();
    let validation = range(training, (training + VALIDATION).min(known.rows()));
    let test = test.iter().copied().filter(labelled).collect();
    let split = Split::new(range(0, training), validation, test);
    let features = Features::from_rows(width, rows.into_iter());
    let (name, splits) = (name.to_owned(), vec![split.sorted()]);
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}

/// The neighbour lists of `graph` as edges.
fn edges(path: &Path, nodes: usize) -> Result<Vec<(u32, u32)>, GraphError> {
    let bytes = bytes(path)?;
    let pickle = Pickle::read(path, &bytes)?;
    let Value::Dict(entries) = pickle.get(pickle.root()) else {
        return Err(pickle.error("expected a dictionary of neighbour lists"));
    };
    let node = |id| {
        let number = pickle.int(id).and_then(|number| u64::try_from(number).ok());
        let number = number.ok_or_else(|| pickle.error("a node that is not a number"))?;
        in_range(number, nodes).map_err(|what| pickle.error(what))
    };
    let mut edges = Vec::new();
    for &(key, list) in entries {
        let from = node(key)?;
        let list = pickle
            .sequence(list)
            .ok_or_else(|| pickle.error("expected lists of nodes"))?;
        for &neighbour in list {
            edges.push((from, node(neighbour)?));
        }
    }
    Ok(edges)
}

/// The class of a one-hot row; none if the row is all zero.
fn class(one_hot: &Array<f64>, row: usize) -> Option<u32> {
    let width = one_hot.shape[1];
    let row = &one_hot.values[row * width..][..width];
    row.iter()
        .position(|&value| value > 0.0)
        .and_then(|class| u32::try_from(class).ok())
}

fn matrix_of(path: &Path) -> Result<Matrix, GraphError> {
    let bytes = bytes(path)?;
    matrix(&Pickle::read(path, &bytes)?)
}

/// A two-dimensional array.
fn array_of(path: &Path) -> Result<Array<f64>, GraphError> {
    let bytes = bytes(path)?;
    let pickle = Pickle::read(path, &bytes)?;
    let array = array(&pickle, pickle.root())?;
    if array.shape.len() != 2 {
        return Err(pickle.error("expected an array of one row per node"));
    }
    if let Some(at) = array.values.iter().position(|value| !value.is_finite()) {
        let (row, column) = (at / array.shape[1], at % array.shape[1]);
        let what = format!(
            "row {row}, column {column} is {}, not a finite number",
            array.values[at]
        );
        return Err(pickle.error(what));
    }
    Ok(array)
}

fn bytes(path: &Path) -> Result<Vec<u8>, GraphError> {
    std::fs::read(path).map_err(|source| GraphError::read(path, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array within a pickle, as Python 2 writes it.
    fn array(shape: &[u8], kind: &str, values: &[[u8; 4]]) -> Vec<u8> {
        let mut bytes = b"cnumpy.core.multiarray\n_reconstruct\n".to_vec();
        bytes.extend(b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01(");
        bytes.extend(shape.iter().flat_map(|&extent| [b'K', extent]));
        bytes.extend(b"tcnumpy\ndtype\nU\x02");
        bytes.extend(kind.bytes());
        bytes.extend(b"K\x00K\x01\x87R(K\x03U\x01<NNNtb\x89U");
        bytes.extend([values.len() as u8 * 4]);
        bytes.extend(values.concat());
        bytes.extend(b"tb");
        bytes
    }

    /// An array in which each row is of class 0, pickled.
    fn classes(rows: u8, width: u8) -> Vec<u8> {
        let value = |at: u8| f32::from(u8::from(at.is_multiple_of(width))).to_le_bytes();
        let values: Vec<[u8; 4]> = (0..rows * width).map(value).collect();
        let mut bytes = b"\x80\x02".to_vec();
        bytes.extend(array(&[rows, width], "f4", &values));
        bytes.extend(b".");
        bytes
    }

    /// A matrix with a one in the first column of each row, pickled.
    fn features(rows: u8, width: u8) -> Vec<u8> {
        let ends: Vec<[u8; 4]> = (0..=u32::from(rows)).map(u32::to_le_bytes).collect();
        let (zeros, ones) = ([[0; 4]; 2], [1_f32.to_le_bytes(); 2]);
        let stored = usize::from(rows);
        let mut bytes = b"\x80\x02cscipy.sparse.csr\ncsr_matrix\n)\x81}(U\x06_shape".to_vec();
        bytes.extend([b'K', rows, b'K', width, b'\x86']);
        bytes.extend(b"U\x06indptr");
        bytes.extend(array(&[rows + 1], "i4", &ends));
        bytes.extend(b"U\x07indices");
        bytes.extend(array(&[rows], "i4", &zeros[..stored]));
        bytes.extend(b"U\x04data");
        bytes.extend(array(&[rows], "f4", &ones[..stored]));
        bytes.extend(b"ub.");
        bytes
    }

    #[test]
    fn the_file_with_another_number_of_columns_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |part: &str| folder.path().join(format!("ind.toy.{part}"));
        let write = |part: &str, bytes: &[u8]| std::fs::write(file(part), bytes).unwrap();
        write("graph", b"\x80\x02}(K\x00]K\x01aK\x01]K\x00aK\x02]u.");
        write("test.index", b"2\n");
        write("allx", &features(2, 3));
        write("ally", &classes(2, 2));
        write("tx", &features(1, 3));
        write("ty", &classes(1, 2));
        write("y", &classes(1, 2));
        let data = read(folder.path()).unwrap();
        assert_eq!((data.graph.nodes(), data.classes), (3, 2));
        let error = |part: &str, bytes: &[u8]| {
            let whole = std::fs::read(file(part)).unwrap();
            write(part, bytes);
            let error = read(folder.path()).unwrap_err().to_string();
            write(part, &whole);
            let expected = format!("ind.toy.{part}: has another number of columns");
            assert!(error.contains(&expected), "{error}");
        };
        error("ty", &classes(1, 3));
        error("tx", &features(1, 4));
    }
}
