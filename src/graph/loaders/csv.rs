//! `*edges.csv` and `*target.csv` or `*nodes.csv`, with or without `*features.json` (Rozemberczki,
//! Allen and Sarkar, 2021; Rozemberczki and Sarkar, 2020), or a CSV file of features.
//!
//! The first column of the target file is the node id and the last the class, unless the section
//! names others, empty or `nan` where it is not known; nodes are numbered by ascending id. The JSON
//! object maps an id to the list of its features, each of value 1; a CSV file of features has an id
//! and numbers in each line, and columns of the target file may be features. Without any of these
//! each node is its own feature, and that is said.
//!
//! A first line without a node id is a header; one with an id is data, unless the section says
//! otherwise, or names columns.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ids::{Ids, is_known};
use super::tabular::{Node, Nodes, each_once, file_of};
use super::text::{each_record, finite, number, open, place, truth};
use super::{Reading, data_set_name, entries, file_name, only_file};
use crate::atomic::folder_of;
use crate::graph::larger::{Pairs, Room};
use crate::graph::reading::some_of;
use crate::graph::{DatasetSpec, FeatureSource, Features, GraphError, LabelColumns, RawDataset};

/// Where features come from unless a file is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Nowhere.
    Plain,
    /// `*features.json`.
    Json,
}

/// Reads the folder, or the target file and those beside it whose names start like its own.
pub(super) fn read(
    path: &Path,
    form: Form,
    spec: &DatasetSpec,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let mut notes = Vec::new();
    let (folder, targets, start) = if path.is_file() {
        let full = file_name(path);
        let named = stem(&full).ok_or_else(|| {
            let what = "is not a file `*target.csv` or `*nodes.csv`; give that file or its folder as `path`";
            GraphError::file(path, what)
        })?;
        let folder = folder_of(path);
        (folder, path.to_owned(), named.to_owned())
    } else {
        let has = |ending: &str| -> Result<bool, GraphError> {
            let named = |entry: &PathBuf| file_name(entry).ends_with(ending);
            Ok(entries(path)?.iter().any(named))
        };
        let ending = match (has("target.csv")?, has("nodes.csv")?) {
            (false, true) => "nodes.csv",
            (false, false) if spec.nodes.is_none() => {
                let what = "has no file `*target.csv` or `*nodes.csv`; check `path` and `format` of the data set, or name \
                            the file in `nodes`";
                return Err(GraphError::file(path, what));
            }
            _ => "target.csv",
        };
        let targets = file_of(path, spec.nodes.as_deref(), ending)?;
        (path, targets, String::new())
    };
    let named = |ending: &str| format!("{start}{ending}");
    let (listed, headed, unread) = nodes(&targets, spec)?;
    notes.extend(headless(&targets, headed));
    if listed.is_empty() {
        return Err(GraphError::file(&targets, "has no nodes"));
    }
    let nodes = Nodes::new(&targets, listed, spec.label.as_ref())?;
    notes.extend(nodes.doubt);
    let pairs = file_of(folder, spec.edges.as_deref(), &named("edges.csv"))?;
    let mut edges = Pairs::new(room);
    let headed = read_edges(&pairs, &nodes.ids, &file_name(&targets), spec, &mut edges);
    let headed = headed.map_err(|error| edges.told(error))?;
    notes.extend(headless(&pairs, headed));
    let (graph, count) = edges.counted(nodes.ids.len())?;
    let mut reading = Reading::of(count, [targets.clone(), pairs]);
    let features = match (&spec.features, form) {
        (Some(FeatureSource::File(name)), _) => {
            let path = folder.join(name);
            let (features, header) = listed_features(&path, &nodes.ids, spec)?;
            notes.extend(headless(&path, header));
            reading.files.push(path);
            features
        }
        (None, Form::Json) => {
            let path = only_file(folder, &named("features.json"))?;
            let features = json_features(&path, &nodes.ids)?;
            reading.files.push(path);
            features
        }
        _ => nodes.features.unwrap_or_else(|| {
            let columns = match &unread[..] {
                [] => String::new(),
                some => format!(
                    ", or columns of `{}`, of which these are not read: {}",
                    file_name(&targets),
                    some_of(some)
                ),
            };
            notes.push(format!(
                "no features: each of the {} nodes is its own, an identity matrix; `features` of [dataset] names a CSV file of them{columns}",
                nodes.ids.len()
            ));
            Features::identity(nodes.ids.len())
        }),
    };
    reading.notes = notes;
    let name = file_name(&targets);
    let name = match stem(&name).unwrap_or(&name).trim_end_matches('_') {
        "" => data_set_name(folder),
        name => name.to_owned(),
    };
    let (labels, classes) = (nodes.labels, nodes.classes);
    Ok(RawDataset::new(name, graph, features, labels, classes, vec![]).read_as(reading))
}

/// What a file of nodes is called before the ending that says so.
fn stem(name: &str) -> Option<&str> {
    let endings = ["target.csv", "nodes.csv"];
    endings.iter().find_map(|ending| name.strip_suffix(ending))
}

/// What an id of a node has to be.
const NODE_ID: &str = "a node id, a whole number (ids of any text go with format = \"linqs\")";

/// Where a record of the file of nodes has what.
struct Places {
    id: usize,
    labels: Vec<usize>,
    features: Vec<usize>,
}

/// The lines of the file of nodes, whether it has a header, and the columns that are not read, by
/// name or number.
fn nodes(path: &Path, spec: &DatasetSpec) -> Result<(Vec<Node>, bool, Vec<String>), GraphError> {
    let columns: &[String] = match &spec.features {
        Some(FeatureSource::Columns(columns)) => columns,
        _ => &[],
    };
    let named = spec.id.is_some() || spec.label.is_some() || !columns.is_empty();
    let (mut listed, places, first) = (Vec::new(), OnceCell::new(), OnceCell::new());
    let headed = each_record(
        path,
        open(path)?,
        |record| {
            // The first record comes once.
            let _ = first.set(record.to_vec());
            // Classes may be words, so only an id tells data from a header.
            if !named {
                return header(spec, &record[..1]);
            }
            let places_of = |key, names: &[String]| {
                let places = names.iter().map(|name| place(record, key, name));
                places.collect::<Result<Vec<usize>, String>>()
            };
            let labels = spec.label.as_ref().map_or(&[][..], LabelColumns::names);
            let found = Places {
                id: places_of("id", spec.id.as_slice())?.pop().unwrap_or(0),
                labels: if labels.is_empty() {
                    vec![record.len() - 1]
                } else {
                    places_of("label", labels)?
                },
                features: places_of("features", columns)?,
            };
            let id = std::iter::once(("id", found.id));
            let labels = found.labels.iter().map(|&at| ("label", at));
            let features = found.features.iter().map(|&at| ("features", at));
            let all = id.chain(labels).chain(features);
            each_once(&all.collect::<Vec<_>>(), |&at| record[at].clone()).map_err(|what| {
                let by_default = "; without `label` the last column is the class";
                what + if spec.label.is_none() { by_default } else { "" }
            })?;
            let _ = places.set(found);
            Ok(true)
        },
        |record| {
            if record.len() < 2 {
                return Err("expected a node id and a class".to_owned());
            }
            let places = places.get_or_init(|| Places {
                id: 0,
                labels: vec![record.len() - 1],
                features: vec![],
            });
            let values = places
                .features
                .iter()
                .map(|&at| truth(&record[at]).map_or_else(|| finite(&record[at], "a number"), Ok));
            let label =
                |&at: &usize| Some(record[at].trim().to_owned()).filter(|label| is_known(label));
            listed.push(Node {
                id: number(&record[places.id], NODE_ID)?,
                labels: places.labels.iter().map(label).collect(),
                values: values.collect::<Result<_, _>>()?,
            });
            Ok(())
        },
    )?;
    let first: &[String] = first.get().map_or(&[], |first| first);
    let unread = first.iter().enumerate().filter(|(at, _)| {
        let used = |places: &Places| {
            places.id == *at || places.labels.contains(at) || places.features.contains(at)
        };
        places.get().is_some_and(|places| !used(places))
    });
    let named = |(at, name): (usize, &String)| {
        if headed {
            name.trim().to_owned()
        } else {
            format!("column {}", at + 1)
        }
    };
    let unread = unread.map(named).collect();
    Ok((listed, headed, unread))
}

/// Takes the pairs of the file of edges, and says whether it has a header.
fn read_edges(
    path: &Path,
    ids: &Ids,
    targets: &str,
    spec: &DatasetSpec,
    edges: &mut Pairs<'_>,
) -> Result<bool, GraphError> {
    let named = spec.source.is_some() || spec.target.is_some();
    let places = OnceCell::new();
    each_record(
        path,
        open(path)?,
        |record| {
            if !named {
                return header(spec, record);
            }
            let column = |key, name: Option<&String>, default| {
                name.map_or(Ok(default), |name| place(record, key, name))
            };
            let ends = (
                column("source", spec.source.as_ref(), 0)?,
                column("target", spec.target.as_ref(), 1)?,
            );
            let columns = [("source", ends.0), ("target", ends.1)];
            each_once(&columns, |&at| record.get(at).cloned().unwrap_or_default())?;
            // A header comes once.
            let _ = places.set(ends);
            Ok(true)
        },
        |record| {
            let (from, to) = match places.get() {
                Some(&(from, to)) => (from, to),
                None if record.len() == 2 => (0, 1),
                None => {
                    let what = "expected two node ids; where there is more, `source` and `target` of [dataset] name the columns";
                    return Err(what.to_owned());
                }
            };
            let node = |at: usize| {
                let field = record.get(at).map_or("", String::as_str);
                let id = number(field, "a node id, a whole number")?;
                ids.node(id)
                    .ok_or_else(|| format!("node {id} has no line in `{targets}`"))
            };
            edges.push(node(from)?, node(to)?)
        },
    )
}

/// Whether a record is a header, by its fields that would hold ids.
fn header(spec: &DatasetSpec, ids: &[String]) -> Result<bool, String> {
    if let Some(said) = spec.header {
        return Ok(said);
    }
    let numbers = ids
        .iter()
        .filter(|id| number::<u64>(id, "").is_ok())
        .count();
    match numbers {
        0 => Ok(true),
        all if all == ids.len() => Ok(false),
        _ => Err(format!(
            "this may be a header or data (`{}`); say which with `header = true` or `header = false` in [dataset]",
            ids.join(",")
        )),
    }
}

/// What to say of a file that starts with data.
fn headless(path: &Path, header: bool) -> Option<String> {
    let name = file_name(path);
    (!header).then(|| format!("`{name}` has no header: its first line is data"))
}

/// Features from a CSV file: a node id and numbers in each line, one line for each node. Also
/// whether it had a header.
fn listed_features(
    path: &Path,
    ids: &Ids,
    spec: &DatasetSpec,
) -> Result<(Features, bool), GraphError> {
    let mut rows: Vec<Option<Vec<f32>>> = vec![None; ids.len()];
    let mut width = 0;
    let headed = each_record(
        path,
        open(path)?,
        |record| header(spec, &record[..1]),
        |record| {
            let id = number(&record[0], "a node id, a whole number")?;
            let node = ids
                .node(id)
                .ok_or_else(|| format!("node {id} is not in the target file"))?;
            let value = |(column, field): (usize, &String)| {
                finite(field, "a number").map_err(|what| format!("column {}: {what}", column + 1))
            };
            let row: Vec<f32> = (record.iter().enumerate().skip(1))
                .map(value)
                .collect::<Result<_, _>>()?;
            // All lines have as many fields: `each_record` sees to that.
            width = row.len();
            match rows[node as usize].replace(row) {
                None => Ok(()),
                Some(_) => Err(format!("node {id} is there a second time; remove one")),
            }
        },
    )?;
    if width == 0 {
        let what = "expected a node id and at least one number in each line";
        return Err(GraphError::file(path, what));
    }
    let missing = rows.iter().filter(|row| row.is_none()).count();
    if missing > 0 {
        let what = format!(
            "has no line for {missing} of the {} nodes; give each its features",
            ids.len()
        );
        return Err(GraphError::file(path, what));
    }
    let values = rows.into_iter().flatten().flatten().collect();
    Ok((Features::Dense { width, values }.compact(), headed))
}

fn json_features(path: &Path, ids: &Ids) -> Result<Features, GraphError> {
    let text = std::fs::read(path).map_err(|source| GraphError::read(path, source))?;
    // In order, so that of several mistakes the same one is told every time.
    let listed: BTreeMap<u64, Vec<u32>> = serde_json::from_slice(&text).map_err(|error| {
        let what = format!("expected an object of lists of feature numbers: {error}");
        GraphError::file(path, what)
    })?;
    let mut rows = vec![Vec::new(); ids.len()];
    for (id, columns) in listed {
        let node = ids.node(id).ok_or_else(|| {
            GraphError::file(path, format!("node {id} is not in the target file"))
        })?;
        rows[node as usize] = columns.into_iter().map(|column| (column, 1.0)).collect();
    }
    // The file does not say how many features there are; the largest number does.
    let width = rows
        .iter()
        .flatten()
        .map(|&(column, _)| column as usize + 1)
        .max()
        .unwrap_or(0);
    Ok(Features::from_rows(width, rows.into_iter()))
}

#[cfg(test)]
mod tests;
