//! Nodes as a table has them, however it is written.

use std::path::{Path, PathBuf};

use super::ids::{Ids, doubtful, number_classes};
use super::only_file_or;
use super::text::truth;
use crate::graph::{Features, GraphError, LabelColumns, Labels, Several};

/// One row of a table of nodes.
pub(super) struct Node {
    /// Its id, any number.
    pub id: u64,
    /// Its class, or what is said of each of several labels, where it is known.
    pub labels: Vec<Option<String>>,
    /// Its features, as many in all rows.
    pub values: Vec<f32>,
}

/// All nodes of a table, numbered by ascending id.
pub(super) struct Nodes {
    /// The ids.
    pub ids: Ids,
    /// What is known of each, `[nodes]`.
    pub labels: Labels,
    /// Number of classes or labels.
    pub classes: usize,
    /// The features, if rows have any.
    pub features: Option<Features>,
    /// What is to be said of names of classes that may stand for none.
    pub doubt: Option<String>,
}

impl Nodes {
    /// The nodes of the rows of the table at `path`.
    pub(super) fn new(
        path: &Path,
        mut listed: Vec<Node>,
        label: Option<&LabelColumns>,
    ) -> Result<Self, GraphError> {
        let ids = Ids::new(listed.iter().map(|node| node.id).collect())
            .map_err(|what| GraphError::file(path, what))?;
        // As `ids` are, so that the place of a row is the number of its node.
        listed.sort_unstable_by_key(|node| node.id);
        let same = |pair: &&[Node]| pair[0].id == pair[1].id;
        if let Some([node, _]) = listed.windows(2).find(same) {
            let what = format!("lists node {} twice; every node has one line", node.id);
            return Err(GraphError::file(path, what));
        }
        let width = listed.first().map_or(0, |node| node.values.len());
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for node in listed {
            names.push(node.labels);
            values.extend(node.values);
        }
        let mut doubt = None;
        let (labels, classes) = if let Some(LabelColumns::Several(columns)) = label {
            let rows = names.iter().map(|row| said(row));
            let several = Several::from_rows(columns.len(), rows);
            let several = several.map_err(|what| GraphError::file(path, what))?;
            (several.into(), columns.len())
        } else {
            let names: Vec<Option<String>> = names.into_iter().flatten().collect();
            if let Some(name) = names.iter().flatten().find(|name| is_fraction(name)) {
                let what = format!("has the class {name}; classes are whole numbers or words");
                return Err(GraphError::file(path, what));
            }
            let (labels, classes) = number_labels(&names);
            doubt = doubtful(&names, classes);
            (labels.into(), classes)
        };
        let features = (width > 0).then(|| Features::Dense { width, values }.compact());
        Ok(Self {
            ids,
            labels,
            classes,
            features,
            doubt,
        })
    }
}

/// What a row says of each label; not a number where that is nothing, and out of range where it is
/// no number.
fn said(labels: &[Option<String>]) -> impl Iterator<Item = f64> {
    labels.iter().map(|label| match label {
        None => f64::NAN,
        Some(text) => {
            truth(text).map_or_else(|| text.trim().parse().unwrap_or(f64::INFINITY), f64::from)
        }
    })
}

/// Whether a text is a number between two whole ones, which is a quantity and no class.
fn is_fraction(text: &str) -> bool {
    let number = text.trim().parse::<f64>();
    number.is_ok_and(|number| number.is_finite() && number.fract() != 0.0)
}

/// Classes that are all numbers are ordered as numbers, others as text.
fn number_labels(names: &[Option<String>]) -> (Vec<Option<u32>>, usize) {
    let number = |name: &Option<String>| match name {
        None => Some(None),
        Some(name) => name.trim().parse::<i64>().ok().map(Some),
    };
    let numbers: Option<Vec<Option<i64>>> = names.iter().map(number).collect();
    numbers.map_or_else(|| number_classes(names), |numbers| number_classes(&numbers))
}

/// Refuses a column with two uses, named or by default: a label among the features would be learnt
/// from. Columns come with the key that each is for; `name` says what one is called.
pub(super) fn each_once<T: PartialEq>(
    columns: &[(&str, T)],
    name: impl Fn(&T) -> String,
) -> Result<(), String> {
    for (at, (key, column)) in columns.iter().enumerate() {
        let earlier = columns[..at].iter().find(|(_, other)| other == column);
        if let Some((other, _)) = earlier {
            return Err(format!(
                "the column `{}` would be used twice, as `{other}` and as `{key}` of [dataset]; each column is for one",
                name(column)
            ));
        }
    }
    Ok(())
}

/// The file of a folder that a section names, or the only one whose name ends so.
pub(super) fn file_of(
    folder: &Path,
    named: Option<&Path>,
    ending: &str,
) -> Result<PathBuf, GraphError> {
    let what_to_do =
        "check `path` and `format` of the data set, or name the file in `nodes` or `edges`";
    let only = || only_file_or(folder, ending, what_to_do);
    named.map_or_else(only, |name| Ok(folder.join(name)))
}
