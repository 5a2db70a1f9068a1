//! The folder of an Open Graph Benchmark node data set as downloaded (Hu et al., 2020).
//!
//! ```text
//! raw/num-node-list.csv                        number of nodes
//! raw/edge.csv                                 source,destination
//! raw/node-feat.csv                            one row of numbers per node
//! raw/node-label.csv                           one class per node, or nothing or `nan`
//! split/<scheme>/{train,valid,test}.csv        one node per line
//! ```
//!
//! Every file may end in `.gz`. Where there is `raw/data.npz`, the raw folder is in its binary
//! form, as that of ogbn-papers100M. The scheme is `time` for ogbn-arxiv and `sales_ranking` for
//! ogbn-products; of several, the first by name is `public`. Directed graphs are made undirected,
//! as the leaderboard's baselines do.

use std::path::{Path, PathBuf};

use super::ids::{in_range, is_known, number_classes};
use super::ogb_binary::{self, Raw};
use super::text::{each_line, finite, number, open};
use super::{EdgeCount, Reading, entries, file_name};
use crate::graph::{Features, GraphError, RawDataset, Split};

/// Reads the folder.
pub fn read(folder: &Path) -> Result<RawDataset, GraphError> {
    let raw = folder.join("raw");
    let Raw {
        nodes,
        edges,
        features,
        names,
        mut files,
    } = if raw.join("data.npz").is_file() {
        ogb_binary::read(&raw)?
    } else {
        text(&raw)?
    };
    let (labels, classes) = number_classes(&names);
    let (graph, count) = EdgeCount::undirected(nodes, edges);
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
    Ok(RawDataset::new(
        file_name(folder).to_lowercase(),
        graph,
        features,
        labels,
        classes,
        splits,
    )
    .read_as(Reading::of(count, files)))
}

/// Reads the raw folder in its CSV form.
fn text(raw: &Path) -> Result<Raw, GraphError> {
    let mut files = vec![find(raw, "num-node-list.csv")?];
    let nodes = single_number(&files[0])?;

    let path = find(raw, "edge.csv")?;
    let mut edges = Vec::new();
    each_line(&path, open(&path)?, |line| {
        let (source, destination) = line.split_once(',').ok_or("expected source,destination")?;
        let node = |field| in_range(number(field, "a node number")?, nodes);
        edges.push((node(source)?, node(destination)?));
        Ok(())
    })?;
    files.push(path);
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
    let names = names(&path)?;
    if names.len() != nodes {
        let what = format!("has {} lines for {nodes} nodes", names.len());
        return Err(GraphError::file(&path, what));
    }
    files.push(path);
    let path = find(raw, "node-feat.csv")?;
    let features = features(&path, nodes)?;
    files.push(path);
    Ok(Raw {
        nodes,
        edges,
        features,
        names,
        files,
    })
}

/// The class of each node.
fn names(path: &Path) -> Result<Vec<Option<i64>>, GraphError> {
    let mut names: Vec<Option<i64>> = Vec::new();
    each_line(path, open(path)?, |line| {
        names.push(match line.trim() {
            label if !is_known(label) => None,
            label if label.contains(',') => {
                return Err(
                    "several labels per node (multi-task data) are not supported".to_owned(),
                );
            }
            // Labels of data with gaps are written as decimals: `4.0`.
            label => Some(number(label.trim_end_matches(".0"), "a class number")?),
        });
        Ok(())
    })?;
    Ok(names)
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
    Ok(Split {
        train,
        validation,
        test,
    }
    .sorted())
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
        let data = read(folder.path()).unwrap();
        assert_eq!(
            data.graph.iter_edges().collect::<Vec<_>>(),
            [(1, 0), (0, 1), (2, 1), (1, 2)]
        );
        assert_eq!(
            (data.labels.classes(), data.classes),
            (&[Some(1), Some(0), None][..], 2)
        );
        assert_eq!(data.features.select(&[2]).values(), [4.0, 0.5]);
        assert_eq!(
            data.splits,
            [Split {
                train: vec![1],
                validation: vec![0],
                test: vec![]
            }]
        );
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
                "0,1\n1,1\n0,0\n",
                "node-label.csv:1: several labels per node",
            ),
            ("raw/num-node-list.csv", "3\n4\n", "must hold one number"),
            ("split/time/test.csv", "7\n", "test.csv:1: node 7"),
        ] {
            let folder = made_up();
            std::fs::write(folder.path().join(name), text).unwrap();
            let error = read(folder.path()).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
        let error = read(Path::new("nowhere")).unwrap_err().to_string();
        assert!(
            error.contains("has neither `num-node-list.csv` nor"),
            "{error}"
        );
    }
}
