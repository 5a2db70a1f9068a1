//! The folder of an Open Graph Benchmark node data set as downloaded (Hu et al., 2020).
//!
//! ```text
//! raw/num-node-list.csv                        number of nodes
//! raw/edge.csv                                 source,destination
//! raw/node-feat.csv                            one row of numbers per node
//! raw/edge-feat.csv                            where there is no such file: one per edge
//! raw/node-label.csv                           one class per node, or nothing or `nan`; or 0 and 1
//!                                              for each of several labels
//! split/<scheme>/{train,valid,test}.csv        one node per line
//! ```
//!
//! Every file may end in `.gz`. Where there is `raw/data.npz`, the raw folder is in its binary
//! form, as that of ogbn-papers100M. Nodes without features of their own, those of ogbn-proteins,
//! have the mean of the features of their edges, as in OGB's own example. The scheme is `time` for
//! ogbn-arxiv and `sales_ranking` for ogbn-products; of several, the first by name is `public`.
//! Directed graphs are made undirected, as the leaderboard's baselines do.

use std::path::{Path, PathBuf};

use super::ids::{in_range, is_known, number_classes};
use super::ogb_binary::{self, Raw};
use super::text::{each_line, finite, number, open};
use super::{Reading, entries, file_name};
use crate::graph::larger::{Pairs, Room};
use crate::graph::{FeatureStorage, Features, GraphError, Labels, RawDataset, Several, Split};

/// Reads the folder.
pub(super) fn read(
    folder: &Path,
    storage: FeatureStorage,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let raw = folder.join("raw");
    let Raw {
        nodes,
        edges,
        features,
        labels,
        classes,
        note,
        mut files,
    } = if raw.join("data.npz").is_file() {
        ogb_binary::read(&raw, storage, room)?
    } else {
        text(&raw, room)?
    };
    let (graph, count) = edges.counted(nodes)?;
    let mut splits = Vec::new();
    let schemes = folder.join("split");
    for scheme in if schemes.is_dir() {
        entries(&schemes)?
    } else {
        vec![]
    } {
        if scheme.is_dir() {
            splits.push(split(&scheme, nodes, &mut files)?);
        }
    }
    let name = file_name(folder).to_lowercase();
    let mut reading = Reading::of(count, files);
    reading.notes.extend(note);
    Ok(RawDataset::new(name, graph, features, labels, classes, splits).read_as(reading))
}

/// Reads the raw folder in its CSV form.
fn text<'a>(raw: &Path, room: Option<&'a Room>) -> Result<Raw<'a>, GraphError> {
    let mut files = vec![find(raw, "num-node-list.csv")?];
    let nodes = single_number(&files[0])?;

    let listed = find(raw, "edge.csv")?;
    let mut edges = Pairs::new(room);
    let taken = each_edge(&listed, nodes, |from, to| edges.push(from, to));
    taken.map_err(|error| edges.told(error))?;
    files.push(listed.clone());
    // A check where the file is there: nothing else needs it.
    if let Ok(path) = find(raw, "num-edge-list.csv") {
        let promised = single_number(&path)?;
        if promised != edges.len() {
            let what = format!("promises {promised} edges, but there are {}", edges.len());
            return Err(GraphError::file(&path, what));
        }
        files.push(path);
    }

    let path = find(raw, "node-label.csv")?;
    let (labels, classes) = labels(&path)?;
    if labels.len() != nodes {
        let what = format!("has {} lines for {nodes} nodes", labels.len());
        return Err(GraphError::file(&path, what));
    }
    files.push(path);
    let (path, features, note) = match (find(raw, "node-feat.csv"), find(raw, "edge-feat.csv")) {
        (Err(_), Ok(path)) => {
            // In memory: features of edges come in the order of the list.
            let mut ends = Vec::with_capacity(edges.len());
            each_edge(&listed, nodes, |from, to| {
                ends.push((from, to));
                Ok(())
            })?;
            let features = mean_of_edges(&path, nodes, &ends)?;
            let note = "no features of nodes: each has the mean of the features of its edges";
            (path, features, Some(note.to_owned()))
        }
        (path, _) => {
            let path = path?;
            let features = features(&path, nodes)?;
            (path, features, None)
        }
    };
    files.push(path);
    Ok(Raw {
        nodes,
        edges,
        features,
        labels,
        classes,
        note,
        files,
    })
}

/// Calls `each` with the ends of every listed edge.
fn each_edge(
    path: &Path,
    nodes: usize,
    mut each: impl FnMut(u32, u32) -> Result<(), String>,
) -> Result<(), GraphError> {
    each_line(path, open(path)?, |line| {
        let (source, destination) = line.split_once(',').ok_or("expected source,destination")?;
        let node = |field| in_range(number(field, "a node number")?, nodes);
        each(node(source)?, node(destination)?)
    })
}

/// What is known of each node, and the number of classes or labels.
fn labels(path: &Path) -> Result<(Labels, usize), GraphError> {
    let mut names: Vec<Option<i64>> = Vec::new();
    // Of several labels, where the first line has more than one.
    let (mut said, mut width) = (Vec::new(), None);
    each_line(path, open(path)?, |line| {
        let fields = line.split(',').count();
        if *width.get_or_insert(fields) != fields {
            return Err(format!(
                "has {fields} labels where the first line has {}",
                width.unwrap_or(1)
            ));
        }
        if fields > 1 {
            for label in line.split(',') {
                said.push(match label {
                    label if is_known(label) => number(label, "a label, 0 or 1")?,
                    _ => f32::NAN,
                });
            }
            return Ok(());
        }
        names.push(match line.trim() {
            label if !is_known(label) => None,
            // Labels of data with gaps are written as decimals: `4.0`.
            label => Some(number(
                label.strip_suffix(".0").unwrap_or(label),
                "a class number",
            )?),
        });
        Ok(())
    })?;
    let Some(width @ 2..) = width else {
        let (labels, classes) = number_classes(&names);
        return Ok((labels.into(), classes));
    };
    let rows = said.chunks_exact(width);
    let several = Several::from_rows(width, rows.map(|row| row.iter().copied().map(f64::from)));
    let several = several.map_err(|what| GraphError::file(path, what))?;
    Ok((several.into(), width))
}

/// The mean over its edges, both ends of which have them, of the features of edges; zeros for nodes
/// without any.
fn mean_of_edges(path: &Path, nodes: usize, edges: &[(u32, u32)]) -> Result<Features, GraphError> {
    let (mut width, mut row) = (None, 0);
    let (mut sums, mut counts) = (Vec::<f64>::new(), vec![0_u32; nodes]);
    each_line(path, open(path)?, |line| {
        let fields = line.split(',').count();
        let width = *width.get_or_insert(fields);
        if fields != width {
            return Err(format!(
                "has {fields} numbers where the first line has {width}"
            ));
        }
        sums.resize(nodes * width, 0.0);
        let Some(&(from, to)) = edges.get(row) else {
            return Err(format!("is more than the {} edges there are", edges.len()));
        };
        row += 1;
        for (column, field) in line.split(',').enumerate() {
            let value =
                finite(field, "a number").map_err(|what| format!("column {column}: {what}"))?;
            for end in [from, to] {
                sums[end as usize * width + column] += f64::from(value);
            }
        }
        for end in [from, to] {
            counts[end as usize] += 1;
        }
        Ok(())
    })?;
    let width = width.unwrap_or(0);
    if row != edges.len() || width == 0 {
        let what = format!("has {row} lines for {} edges", edges.len());
        return Err(GraphError::file(path, what));
    }
    let of_node = |(sums, &count): (&[f64], &u32)| {
        let divide = move |sum: &f64| (sum / f64::from(count.max(1))) as f32;
        sums.iter().map(divide).collect::<Vec<f32>>()
    };
    let values = sums.chunks_exact(width).zip(&counts).flat_map(of_node);
    Ok(Features::Dense {
        width,
        values: values.collect(),
    })
}

/// The file, or its compressed form.
fn find(folder: &Path, name: &str) -> Result<PathBuf, GraphError> {
    let (plain, packed) = (folder.join(name), folder.join(format!("{name}.gz")));
    if plain.is_file() {
        Ok(plain)
    } else if packed.is_file() {
        Ok(packed)
    } else {
        let what = format!(
            "has neither `{name}` nor `{name}.gz`; `path` must be the folder that holds `raw` \
            and `split`"
        );
        Err(GraphError::file(folder, what))
    }
}

fn single_number(path: &Path) -> Result<usize, GraphError> {
    let mut found = Vec::new();
    each_line(path, open(path)?, |line| {
        found.push(number(line, "a number")?);
        Ok(())
    })?;
    match found[..] {
        [one] => Ok(one),
        _ => Err(GraphError::file(
            path,
            "must hold one number: data sets of many graphs are not supported",
        )),
    }
}

fn features(path: &Path, nodes: usize) -> Result<Features, GraphError> {
    let (mut width, mut rows, mut values) = (0, 0, Vec::new());
    each_line(path, open(path)?, |line| {
        let before = values.len();
        for field in line.split(',') {
            let column = values.len() - before;
            let value =
                finite(field, "a number").map_err(|what| format!("column {column}: {what}"))?;
            values.push(value);
        }
        let found = values.len() - before;
        if rows == 0 {
            width = found;
        }
        rows += 1;
        if found == width {
            Ok(())
        } else {
            Err(format!(
                "has {found} numbers where the first line has {width}"
            ))
        }
    })?;
    if rows != nodes || width == 0 {
        return Err(GraphError::file(
            path,
            format!("has {rows} lines for {nodes} nodes"),
        ));
    }
    Ok(Features::Dense { width, values }.compact())
}

fn split(scheme: &Path, nodes: usize, files: &mut Vec<PathBuf>) -> Result<Split, GraphError> {
    let mut part = |name| {
        let path = find(scheme, name)?;
        let mut chosen = Vec::new();
        each_line(&path, open(&path)?, |line| {
            chosen.push(in_range(number(line, "a node number")?, nodes)?);
            Ok(())
        })?;
        files.push(path);
        Ok::<_, GraphError>(chosen)
    };
    let (train, validation, test) = (part("train.csv")?, part("valid.csv")?, part("test.csv")?);
    Ok(Split::new(train, validation, test).sorted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    /// Three nodes on a directed path, the last without a label; features compressed, the rest not.
    fn made_up() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("raw")).unwrap();
        std::fs::create_dir_all(at("split/time")).unwrap();
        for (name, text) in [
            ("raw/num-node-list.csv", "3\n"),
            ("raw/num-edge-list.csv", "2\n"),
            ("raw/edge.csv", "0,1\n2,1\n"),
            ("raw/node-label.csv", "1.0\n0.0\nnan\n"),
            ("split/time/train.csv", "1\n"),
            ("split/time/valid.csv", "0\n"),
            ("split/time/test.csv", "\n"),
        ] {
            std::fs::write(at(name), text.trim_start_matches('\n')).unwrap();
        }
        std::fs::write(at("raw/node-feat.csv.gz"), packed("0.5,-1\n2,3\n4,5e-1\n")).unwrap();
        folder
    }

    #[test]
    fn a_folder_with_plain_and_compressed_files_is_read() {
        let folder = made_up();
        let data = read(folder.path(), FeatureStorage::F32, None).unwrap();
        assert_eq!(
            data.graph.iter_edges().collect::<Vec<_>>(),
            [(1, 0), (0, 1), (2, 1), (1, 2)]
        );
        assert_eq!(
            (data.labels.classes(), data.classes),
            (&[Some(1), Some(0), None][..], 2)
        );
        assert_eq!(data.features.select(&[2]).values(), [4.0, 0.5]);
        assert_eq!(data.splits, [Split::new(vec![1], vec![0], vec![])]);
    }

    #[test]
    fn several_labels_and_features_of_edges_alone_are_read() {
        let folder = made_up();
        let at = |name: &str| folder.path().join(name);
        std::fs::remove_file(at("raw/node-feat.csv.gz")).unwrap();
        std::fs::write(at("raw/node-label.csv"), "0,1\n1,1\nnan,nan\n").unwrap();
        // Edges 0–1 and 2–1: node 1 has the mean of both.
        std::fs::write(at("raw/edge-feat.csv.gz"), packed("1,0\n0,0.5\n")).unwrap();
        let data = read(folder.path(), FeatureStorage::F32, None).unwrap();
        let several = data.labels.several().unwrap();
        assert_eq!((data.classes, several.labels()), (2, 2));
        assert!(!several.has(0, 0) && several.has(0, 1) && several.has(1, 0));
        assert_eq!(data.labels.known(), [0, 1]);
        assert_eq!(data.features.values(), [1.0, 0.0, 0.5, 0.25, 0.0, 0.5]);
        assert!(data.reading.notes[0].contains("mean of the features of its edges"));
        std::fs::write(at("raw/edge-feat.csv.gz"), packed("1,0\n")).unwrap();
        let error = read(folder.path(), FeatureStorage::F32, None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("has 1 lines for 2 edges"), "{error}");
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        for (name, text, message) in [
            (
                "raw/edge.csv",
                "0,3\n2,1\n",
                "edge.csv:1: node 3 is not one of the 3 nodes",
            ),
            ("raw/edge.csv", "0,1\n", "promises 2 edges, but there are 1"),
            ("raw/node-label.csv", "0\n1\n", "has 2 lines for 3 nodes"),
            (
                "raw/node-label.csv",
                "0,1\n1,1\n0\n",
                "node-label.csv:3: has 1 labels where the first line has 2",
            ),
            (
                "raw/node-label.csv",
                "0,1\n1,2\n0,0\n",
                "row 1 (from 0): 2 is no label",
            ),
            ("raw/num-node-list.csv", "3\n4\n", "must hold one number"),
            ("split/time/test.csv", "7\n", "test.csv:1: node 7"),
        ] {
            let folder = made_up();
            std::fs::write(folder.path().join(name), text).unwrap();
            let error = read(folder.path(), FeatureStorage::F32, None)
                .unwrap_err()
                .to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = read(Path::new("nowhere"), FeatureStorage::F32, None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("has neither `num-node-list.csv` nor"),
            "{error}"
        );
    }
}
