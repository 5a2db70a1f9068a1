//! One zip with two CSR matrices, `adj_*` and `attr_*`, and `labels` (Shchur et al., *Pitfalls of
//! Graph Neural Network Evaluation*, 2018). The adjacency need not be symmetric; labels need not
//! start at 0. Members with names of classes, nodes and words are not opened: some are pickled.

use std::path::Path;

use super::arrays::{entries, known};
use super::ids::number_classes;
use super::npy::Npz;
use super::numpy::Matrix;
use super::{EdgeCount, Reading, data_set_name, finite, only_file};
use crate::graph::{Features, GraphError, RawDataset};

/// Reads the file, or the only `.npz` file of the folder.
pub(super) fn read(path: &Path) -> Result<RawDataset, GraphError> {
    let path = only_file(path, ".npz")?;
    let mut npz = Npz::open(&path)?;
    let adjacency = matrix(&mut npz, "adj")?;
    let words = matrix(&mut npz, "attr")?;
    let labels = npz.read::<i64>("labels")?.values;
    let nodes = adjacency.rows();
    if adjacency.width != nodes || words.rows() != nodes || labels.len() != nodes {
        let what = format!(
            "the adjacency is {nodes} by {}, there are features of {} and labels of {} nodes; \
            all must be equal",
            adjacency.width,
            words.rows(),
            labels.len()
        );
        return Err(npz.error(what));
    }
    let edges = entries(&adjacency).map_err(|what| npz.error(format!("`adj_*`, {what}")))?;
    let (labels, classes) = number_classes(&known(&labels));
    let (graph, count) = EdgeCount::undirected(nodes, edges);
    let features = Features::from_rows(words.width, (0..nodes).map(|row| words.row(row)));
    let features = finite(&path, "`attr_*`", features)?;
    let masks: Vec<&str> = npz.names().filter(|name| name.contains("mask")).collect();
    let masks = masks.join("`, `");
    let (name, mut reading) = (data_set_name(&path), Reading::of(count, [path]));
    if !masks.is_empty() {
        reading = reading.with_note(format!(
            "`{masks}` not read: files of this format come without a split; \"npz-edges\" has masks"
        ));
    }
    Ok(RawDataset::new(name, graph, features, labels, classes, vec![]).read_as(reading))
}

/// The matrix of the four members `<prefix>_{shape,indptr,indices,data}`.
fn matrix(npz: &mut Npz, prefix: &str) -> Result<Matrix, GraphError> {
    let mut whole = |part: &str| {
        let array = npz.read::<i64>(&format!("{prefix}_{part}"))?;
        // As pickles have them: so one check serves both.
        Ok::<Vec<f64>, GraphError>(array.values.into_iter().map(|value| value as f64).collect())
    };
    let (shape, offsets, columns) = (whole("shape")?, whole("indptr")?, whole("indices")?);
    let values = npz.read::<f32>(&format!("{prefix}_data"))?.values;
    let values: Vec<f64> = values.into_iter().map(f64::from).collect();
    let shape: Result<Vec<usize>, String> = shape.into_iter().map(super::numpy::index).collect();
    shape
        .and_then(|shape| {
            <[usize; 2]>::try_from(shape).map_err(|_| "two extents expected".to_owned())
        })
        .and_then(|shape| Matrix::new(shape, &offsets, &columns, &values))
        .map_err(|what| npz.error(format!("`{prefix}_*`: {what}")))
}

#[cfg(test)]
mod tests {
    use super::super::npy::tests::add1;
    use super::*;
    use ndarray_npy::NpzWriter;
    use std::fs::File;

    fn write(path: &Path, labels: &[i64], columns: &[i32]) {
        let mut npz = NpzWriter::new(File::create(path).unwrap());
        // 0 → 1, 0 → 2 with weight 0, 1 → 1, 2 → 1
        add1(&mut npz, "adj_shape", &[3_i64, 3]);
        add1(&mut npz, "adj_indptr", &[0_i32, 2, 3, 4]);
        add1(&mut npz, "adj_indices", columns);
        add1(&mut npz, "adj_data", &[1_f32, 0.0, 1.0, 1.0]);
        add1(&mut npz, "attr_shape", &[3_i64, 5]);
        add1(&mut npz, "attr_indptr", &[0_i32, 1, 1, 2]);
        add1(&mut npz, "attr_indices", &[4_i32, 0]);
        add1(&mut npz, "attr_data", &[2_f32, 3.0]);
        add1(&mut npz, "labels", labels);
        add1(&mut npz, "train_mask", &[true, false, false]);
        npz.finish().unwrap();
    }

    #[test]
    fn one_way_edges_loops_and_labels_from_one_are_put_right() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("Tiny.npz"), &[2, 1, 2], &[1, 2, 1, 1]);
        let data = read(folder.path()).unwrap();
        assert_eq!(data.name, "tiny");
        let note = &data.reading.notes[0];
        assert!(note.starts_with("`train_mask` not read: "), "{note}");
        assert_eq!(
            data.graph.iter_edges().collect::<Vec<_>>(),
            [(1, 0), (0, 1), (2, 1), (1, 2)]
        );
        assert_eq!(
            (data.labels.classes(), data.classes),
            (&[Some(1), Some(0), Some(1)][..], 2)
        );
        assert_eq!(
            (data.features.width(), data.features.values()),
            (5, &[2.0, 3.0][..])
        );
    }

    #[test]
    fn parts_that_disagree_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.npz");
        write(&path, &[2, 1], &[1, 2, 1, 1]);
        assert!(
            read(&path)
                .unwrap_err()
                .to_string()
                .contains("labels of 2 nodes")
        );
        write(&path, &[2, 1, 1], &[1, 3, 1, 1]);
        let error = read(&path).unwrap_err().to_string();
        assert!(
            error.ends_with("`adj_*`: column 3 is not below the width 3"),
            "{error}"
        );
    }
}
