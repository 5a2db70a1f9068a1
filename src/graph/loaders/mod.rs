//! One reader per published file format; each returns the data set as it was published.
//!
//! ```text
//! text   lines, CSV records, .gz         pickle   objects of a Python 2 pickle, running nothing
//! ids    ids and names → 0, 1, 2, …      machine  the instructions of a pickle
//! npy    arrays, also in an .npz file    numpy    arrays and sparse matrices among its objects
//! arrays what they mean: edges, classes  tabular  nodes of a table, however it is written
//! scipy  sparse matrices of .npz files  element  values of arrays
//! stored arrays that stay in their file
//!
//! planetoid   linqs   npz_csr   npz_edges   csv (and JSON)   edge_list   metis_graph   ogb
//! reddit   graphsaint   igb   wiki_cs   matrix_market   parquet
//! ```
//!
//! What all of them do: symmetrise, drop duplicates and self-loops and count them, number nodes and
//! classes from 0, check every number before it is used as an index, refuse features that are no
//! finite numbers, and allocate no more than the file is long. What lies in the folder and was not
//! read is named afterwards.

mod arrays;
mod csv;
mod edge_list;
mod element;
mod graphsaint;
mod ids;
mod igb;
#[cfg(test)]
mod layouts;
pub(super) mod linqs;
mod machine;
mod matrix_market;
mod metis_graph;
mod npy;
mod npy_header;
mod npz_csr;
mod npz_edges;
mod numpy;
mod ogb;
mod ogb_binary;
mod parquet;
mod pickle;
mod planetoid;
mod ppi;
#[cfg(test)]
mod published;
mod reddit;
mod scipy;
mod stored;
mod tabular;
mod text;
mod wiki_cs;

use std::path::{Path, PathBuf};

use std::sync::Arc;

use super::larger::{Pairs, Room};
use super::reading::finite;
use super::{
    DatasetSpec, EdgeCount, Features, Format, GraphError, LabelColumns, RawDataset, Reading,
};

pub(super) use element::Element;
pub(crate) use npy::all_arrays;
pub(super) use stored::{Table, table};
pub(super) use text::{each_line, number, open};

/// Reads the data set at `path`, a folder or a file. With room, formats of large graphs keep their
/// edges on disk: `edge-list`, `csv`, `csv-json`, `ogb` and `igb`.
pub(super) fn read(
    format: Format,
    path: &Path,
    spec: &DatasetSpec,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let storage = spec.feature_storage;
    let mut data = match format {
        Format::Planetoid => planetoid::read(path),
        Format::Linqs => linqs::read(path),
        Format::NpzCsr => npz_csr::read(path),
        Format::NpzEdges => npz_edges::read(path, storage),
        Format::CsvJson => csv::read(path, csv::Form::Json, spec, room),
        Format::Csv => csv::read(path, csv::Form::Plain, spec, room),
        Format::EdgeList => edge_list::read(path, room),
        Format::Metis => metis_graph::read(path),
        Format::Ogb => ogb::read(path, storage, room),
        Format::DglReddit => reddit::read(path, storage),
        Format::GraphSaint => graphsaint::read(path, storage),
        Format::Ppi => ppi::read(path),
        Format::Igb => {
            let label = spec.label.as_ref().and_then(LabelColumns::one);
            igb::read(path, label, storage, room)
        }
        Format::WikiCs => wiki_cs::read(path),
        Format::MatrixMarket => matrix_market::read(path),
        Format::Parquet => parquet::read(path, spec),
    }?;
    if data.graph.nodes() == 0 {
        return Err(GraphError::file(path, "has no nodes"));
    }
    apart(&data).map_err(|what| GraphError::file(path, what))?;
    if data.name.is_empty() || (path.is_dir() && !names_its_data(format)) {
        data.name = name_of_folder(path);
    }
    if path.is_dir() {
        let reading = Arc::make_mut(&mut data.reading);
        left(path, "", &reading.files, &mut reading.unread)?;
    }
    Ok(data)
}

/// Says which node is in two sets of a split that comes with the data: what is learnt by heart
/// would be taken for what generalises.
fn apart(data: &RawDataset) -> Result<(), String> {
    const SETS: [&str; 4] = ["no", "training", "validation", "test"];
    for (number, split) in data.splits.iter().enumerate() {
        // A byte each: graphs of 10⁸ nodes come with a split.
        let mut set_of = vec![0_u8; data.graph.nodes()];
        for (set, nodes) in (1..).zip([&split.train, &split.validation, &split.test]) {
            for &node in nodes {
                let other = std::mem::replace(&mut set_of[node as usize], set);
                if other != 0 && other != set {
                    let [other, set] = [other, set].map(|set| SETS[usize::from(set)]);
                    return Err(format!(
                        "has node {node} in the {other} set and in the {set} set of split {number} (both from 0); a node is in one"
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Whether a format has the name of the data in that of its files. Files of others may be called
/// alike in many folders, such as `edges.csv`.
const fn names_its_data(format: Format) -> bool {
    matches!(
        format,
        Format::Planetoid | Format::Linqs | Format::DglReddit
    )
}

/// The last part of a path that has a name, for data whose files have none.
fn name_of_folder(path: &Path) -> String {
    // A path such as `.` has no name until it is spelt out.
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = if whole.is_dir() {
        Some(whole.as_path())
    } else {
        whole.parent()
    };
    let name = folder.map_or(String::new(), |folder| file_name(folder).to_lowercase());
    if name.is_empty() {
        "data".to_owned()
    } else {
        name
    }
}

/// What is in a folder and not among the files that were read: files by name, folders in which none
/// was read as a whole. Hidden ones are passed over.
fn left(
    folder: &Path,
    within: &str,
    read: &[PathBuf],
    unread: &mut Vec<String>,
) -> Result<(), GraphError> {
    for entry in entries(folder)? {
        let name = file_name(&entry);
        if name.starts_with('.') || read.contains(&entry) {
            continue;
        }
        if !entry.is_dir() {
            unread.push(format!("{within}{name}"));
        } else if read.iter().any(|file| file.starts_with(&entry)) {
            left(&entry, &format!("{within}{name}/"), read, unread)?;
        } else {
            unread.push(format!("{within}{name}/"));
        }
    }
    Ok(())
}

/// The file at `path`, or the only file in the folder `path` whose name ends in `ending`.
fn only_file(path: &Path, ending: &str) -> Result<PathBuf, GraphError> {
    only_file_or(path, ending, "check `path` and `format` of the data set")
}

/// [`only_file`], with what to do where there is none.
fn only_file_or(path: &Path, ending: &str, what_to_do: &str) -> Result<PathBuf, GraphError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    let mut found: Vec<PathBuf> = entries(path)?;
    found.retain(|entry| file_name(entry).ends_with(ending) && entry.is_file());
    match <[PathBuf; 1]>::try_from(found) {
        Ok([file]) => Ok(file),
        Err(none) if none.is_empty() => Err(GraphError::file(
            path,
            format!("has no file `*{ending}`; {what_to_do}"),
        )),
        Err(several) => Err(GraphError::file(
            path,
            format!(
                "has {} files `*{ending}`; name one of them in `path`",
                several.len()
            ),
        )),
    }
}

/// What is in a folder, in order of name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, GraphError> {
    let listed = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<PathBuf> = listed
        .map_err(|source| GraphError::read(folder, source))?
        .into_iter()
        .map(|entry| entry.path())
        .collect();
    // File systems list in any order.
    paths.sort_unstable();
    Ok(paths)
}

/// What a file of edges alone says.
fn topology(path: PathBuf, nodes: usize, edges: Pairs<'_>) -> Result<RawDataset, GraphError> {
    let (graph, count) = edges.counted(nodes)?;
    let (name, labels) = (data_set_name(&path), vec![None; nodes]);
    let data = RawDataset::new(name, graph, Features::none(nodes), labels, 0, vec![]);
    Ok(data.read_as(Reading::of(count, [path])))
}

/// The last part of a path, for comparing and for naming data sets.
fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// File name up to its first dot, in lower case, as the name of a data set.
fn data_set_name(path: &Path) -> String {
    file_name(path)
        .split('.')
        .next()
        .unwrap_or_default()
        .to_lowercase()
}
