//! What arrays of published graphs mean: edges, classes, sets of nodes.

use super::ids::{in_range, signed_in_range};
use super::npy::Array;
use super::numpy::Matrix;
use crate::graph::{Features, GraphError, Split};
use std::path::Path;

use super::finite;

/// How an array holds the two ends of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// One edge in each row, `[edges, 2]`.
    Rows,
    /// Starts in the first row, goals in the second, `[2, edges]`.
    Columns,
}

impl Array<i64> {
    /// The edges of a graph of so many nodes.
    pub(super) fn pairs(&self, nodes: usize, ends: Ends) -> Result<Vec<(u32, u32)>, String> {
        let node = |end: i64| signed_in_range(end, nodes);
        match (&self.shape[..], ends) {
            ([_, 2], Ends::Rows) => {
                let rows = self.values.chunks_exact(2);
                rows.map(|row| Ok((node(row[0])?, node(row[1])?))).collect()
            }
            ([2, edges], Ends::Columns) => {
                joined(&self.values[..*edges], &self.values[*edges..], nodes)
            }
            (shape, Ends::Rows) => {
                Err(format!("must have two columns, and its shape is {shape:?}"))
            }
            (shape, Ends::Columns) => {
                Err(format!("must have two rows, and its shape is {shape:?}"))
            }
        }
    }
}

/// The nodes of these numbers.
pub(super) fn node_numbers(numbers: &[i64], nodes: usize) -> Result<Vec<u32>, String> {
    let node = |&number: &i64| signed_in_range(number, nodes);
    numbers.iter().map(node).collect()
}

/// Three sets of nodes, if no node is in two of them.
pub(super) fn split(
    train: Vec<u32>,
    validation: Vec<u32>,
    test: Vec<u32>,
    nodes: usize,
) -> Result<Split, String> {
    let mut taken = vec![false; nodes];
    for &node in [&train, &validation, &test].into_iter().flatten() {
        if std::mem::replace(&mut taken[node as usize], true) {
            return Err(format!(
                "node {node} is in two of the sets of training, validation and test nodes, or twice in one"
            ));
        }
    }
    Ok(Split::new(train, validation, test).sorted())
}

/// The edges from each start to the goal in the same place.
pub(super) fn joined(
    starts: &[i64],
    goals: &[i64],
    nodes: usize,
) -> Result<Vec<(u32, u32)>, String> {
    if starts.len() != goals.len() {
        return Err(format!(
            "there are {} starts and {} goals",
            starts.len(),
            goals.len()
        ));
    }
    let (starts, goals) = (node_numbers(starts, nodes)?, node_numbers(goals, nodes)?);
    Ok(starts.into_iter().zip(goals).collect())
}

/// The classes that are known: negative numbers stand for none.
pub(super) fn known(labels: &[i64]) -> Vec<Option<i64>> {
    labels
        .iter()
        .map(|&label| (label >= 0).then_some(label))
        .collect()
}

/// Classes that are written as decimals, for some are not known: `nan` and negative numbers.
pub(super) fn known_of_decimals(labels: &[f64]) -> Result<Vec<Option<i64>>, String> {
    let class = |(node, &label): (usize, &f64)| match label {
        _ if label.is_nan() || label < 0.0 => Ok(None),
        _ if label.fract() == 0.0 && label < 9e15 => Ok(Some(label as i64)),
        _ => Err(format!("row {node} (from 0): {label} is no class")),
    };
    labels.iter().enumerate().map(class).collect()
}

/// The stored entries of a square matrix as edges; a stored zero is none.
pub(super) fn entries(adjacency: &Matrix) -> Result<Vec<(u32, u32)>, String> {
    let nodes = adjacency.rows();
    let mut edges = Vec::with_capacity(adjacency.columns.len());
    for row in 0..nodes {
        let from = in_range(row as u64, nodes)?;
        let range = adjacency.offsets[row]..adjacency.offsets[row + 1];
        let stored = adjacency.columns[range.clone()]
            .iter()
            .zip(&adjacency.values[range]);
        for (&to, &weight) in stored {
            if !weight.is_finite() {
                return Err(format!(
                    "row {row}, column {to}: the weight {weight} is not finite"
                ));
            }
            if weight != 0.0 {
                edges.push((from, to));
            }
        }
    }
    Ok(edges)
}

/// Dense features `[nodes, width]`, if they are of all nodes and finite.
pub(super) fn features(
    path: &Path,
    name: &str,
    array: Array<f32>,
    nodes: usize,
) -> Result<Features, GraphError> {
    let width = width(path, name, &array.shape, Some(nodes))?;
    let values = array.values;
    Ok(finite(path, name, Features::Dense { width, values })?.compact())
}

/// The width of features of this shape, if there is a row for each node.
pub(super) fn width(
    path: &Path,
    name: &str,
    shape: &[usize],
    nodes: Option<usize>,
) -> Result<usize, GraphError> {
    let [rows, width] = *shape else {
        return Err(GraphError::file(
            path,
            format!("{name} must have one row per node"),
        ));
    };
    let nodes = nodes.unwrap_or(rows);
    if rows != nodes || width == 0 {
        let what = format!("{name} has {rows} rows, {width} values each, for {nodes} nodes");
        return Err(GraphError::file(path, what));
    }
    Ok(width)
}

/// The first 60 % train, the next 20 % validate, the rest tests.
pub(super) fn in_order(nodes: usize) -> Split {
    // As the authors round: down, both.
    let (train, validation) = (nodes * 3 / 5, nodes / 5);
    let range = |from: usize, to: usize| (from as u32..to as u32).collect();
    let test = range(train + validation, nodes);
    Split::new(range(0, train), range(train, train + validation), test)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_in_rows_or_in_columns() {
        let array = |shape: &[usize], values: &[i64]| Array {
            shape: shape.to_vec(),
            values: values.to_vec(),
        };
        let by_rows = array(&[3, 2], &[0, 1, 2, 3, 4, 5]);
        assert_eq!(
            by_rows.pairs(6, Ends::Rows),
            Ok(vec![(0, 1), (2, 3), (4, 5)])
        );
        assert!(
            by_rows
                .pairs(6, Ends::Columns)
                .unwrap_err()
                .contains("two rows")
        );
        let by_columns = array(&[2, 3], &[0, 1, 2, 3, 4, 5]);
        assert_eq!(
            by_columns.pairs(6, Ends::Columns),
            Ok(vec![(0, 3), (1, 4), (2, 5)])
        );
        assert!(
            by_columns
                .pairs(5, Ends::Columns)
                .unwrap_err()
                .contains("node 5 is not one of the 5")
        );
        assert!(array(&[1, 2], &[0, -1]).pairs(5, Ends::Rows).is_err());
        assert!(joined(&[1], &[], 5).is_err());
    }

    #[test]
    fn decimals_are_classes_where_they_are_whole() {
        assert_eq!(
            known_of_decimals(&[2.0, f64::NAN, -1.0, 0.0]),
            Ok(vec![Some(2), None, None, Some(0)])
        );
        assert!(
            known_of_decimals(&[0.0, 1.5])
                .unwrap_err()
                .contains("row 1 (from 0): 1.5")
        );
        assert!(known_of_decimals(&[f64::INFINITY]).is_err());
        assert_eq!(known(&[3, -1]), [Some(3), None]);
    }

    #[test]
    fn shares_in_order_are_rounded_as_igb_does() {
        let split = in_order(9);
        assert_eq!(
            (split.train.len(), split.validation.len(), split.test.len()),
            (5, 1, 3)
        );
        assert_eq!(split.test, [6, 7, 8]);
    }
}
