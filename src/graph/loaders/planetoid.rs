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
        let what = "has another number of columns than `allx` and `ally`";
        return Err(GraphError::file(&file("tx"), what));
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
