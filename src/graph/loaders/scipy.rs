//! Sparse matrices as `scipy.sparse.save_npz` writes them.

use super::arrays::{joined, node_numbers};
use super::npy::Npz;
use crate::graph::GraphError;

/// The stored entries of a square matrix as edges of a graph of so many nodes; a stored zero is
/// none. Whether rows or columns are compressed is all the same to an undirected graph.
pub(super) fn edges(npz: &mut Npz, nodes: usize) -> Result<Vec<(u32, u32)>, GraphError> {
    let shape = npz.read::<i64>("shape")?.values;
    if shape != [nodes as i64; 2] {
        let what = format!("`shape` is {shape:?}, and there are features of {nodes} nodes");
        return Err(npz.error(what));
    }
    let weights = npz.read::<f32>("data")?.values;
    let edges = if npz.has("row") {
        let (rows, columns) = (npz.read::<i64>("row")?, npz.read::<i64>("col")?);
        joined(&rows.values, &columns.values, nodes)
    } else {
        let (offsets, columns) = (npz.read::<i64>("indptr")?, npz.read::<i64>("indices")?);
        compressed(&offsets.values, &columns.values, nodes)
    };
    edges
        .and_then(|edges| stored(edges, &weights))
        .map_err(|what| npz.error(what))
}

/// The entries of compressed rows.
fn compressed(offsets: &[i64], columns: &[i64], nodes: usize) -> Result<Vec<(u32, u32)>, String> {
    let sound = offsets.len() == nodes + 1
        && offsets[0] == 0
        && offsets.is_sorted()
        && offsets[nodes] == columns.len() as i64;
    if !sound {
        return Err(format!(
            "`indptr` has {} offsets that do not fit {nodes} rows of {} stored values",
            offsets.len(),
            columns.len()
        ));
    }
    let columns = node_numbers(columns, nodes)?;
    let rows = (0_u32..).zip(offsets.windows(2));
    Ok(rows
        .flat_map(|(row, ends)| {
            columns[ends[0] as usize..ends[1] as usize]
                .iter()
                .map(move |&to| (row, to))
        })
        .collect())
}

/// The edges whose weight is not zero.
fn stored(edges: Vec<(u32, u32)>, weights: &[f32]) -> Result<Vec<(u32, u32)>, String> {
    if weights.len() != edges.len() {
        return Err(format!(
            "has {} values at {} places",
            weights.len(),
            edges.len()
        ));
    }
    if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
        let (row, column) = edges[at];
        return Err(format!(
            "row {row}, column {column}: the weight {} is not finite",
            weights[at]
        ));
    }
    if !weights.contains(&0.0) {
        return Ok(edges);
    }
    let kept = edges
        .into_iter()
        .zip(weights)
        .filter(|(_, weight)| **weight != 0.0);
    Ok(kept.map(|(edge, _)| edge).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_rows_are_edges_and_offsets_are_checked() {
        assert_eq!(
            compressed(&[0, 2, 2, 3], &[1, 2, 0], 3),
            Ok(vec![(0, 1), (0, 2), (2, 0)])
        );
        for (offsets, columns) in [
            (&[0, 2, 3][..], &[1, 2, 0][..]),
            (&[0, 2, 1, 3], &[1, 2, 0]),
            (&[1, 2, 2, 3], &[1, 2, 0]),
            (&[0, 2, 2, 4], &[1, 2, 0]),
            (&[0, 2, 2, 3], &[1, 2, 3]),
            (&[0, 2, 2, 3], &[1, -2, 0]),
        ] {
            assert!(compressed(offsets, columns, 3).is_err(), "{offsets:?}");
        }
    }

    #[test]
    fn a_stored_zero_is_no_edge() {
        let edges = vec![(0, 1), (1, 2)];
        assert_eq!(stored(edges.clone(), &[0.0, 1.0]), Ok(vec![(1, 2)]));
        assert!(stored(edges.clone(), &[1.0]).is_err());
        assert!(
            stored(edges, &[1.0, f32::NAN])
                .unwrap_err()
                .contains("row 1, column 2")
        );
    }
}
