//! What came of reading a data set: what was dropped, what is missing, what was left unread.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Csr, Features, GraphError};
use crate::digits::counted;

/// Files and columns that are named; of more, the number.
const NAMED: usize = 6;

/// The pairs of nodes that a file lists, and how many of them are no edge of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EdgeCount {
    /// Pairs that are listed.
    pub listed: usize,
    /// Pairs of a node with itself: dropped.
    pub self_loops: usize,
    /// Pairs listed before, in the same order: dropped.
    pub repeated: usize,
    /// Pairs listed before, in the other order: the same edge.
    pub(crate) reversed: usize,
}

impl EdgeCount {
    /// The undirected graph on `nodes` nodes of listed pairs, and what became of them.
    ///
    /// # Panics
    /// If an end is not below `nodes`: loaders check ids where they can still name the line.
    pub(crate) fn undirected(nodes: usize, pairs: Vec<(u32, u32)>) -> (Csr, Self) {
        let (listed, self_loops) = (pairs.len(), loops(pairs.iter().copied()));
        let directed = Csr::from_edges(nodes, pairs.iter().copied());
        drop(pairs);
        Self::of_directed(&directed, listed, self_loops)
    }

    /// The same of `listed` pairs that are not held, but gone through three times.
    ///
    /// # Panics
    /// As above.
    pub(crate) fn of_pairs(
        nodes: usize,
        listed: usize,
        pairs: impl Iterator<Item = (u32, u32)> + Clone,
    ) -> (Csr, Self) {
        let self_loops = loops(pairs.clone());
        Self::of_directed(&Csr::from_edges(nodes, pairs), listed, self_loops)
    }

    /// The first graph drops pairs that are repeated in one order. The second drops those that come
    /// the other way round, too. Their sizes give both counts.
    fn of_directed(directed: &Csr, listed: usize, self_loops: usize) -> (Csr, Self) {
        let graph = Csr::undirected(directed.nodes(), directed.iter_edges());
        let count = Self {
            listed,
            self_loops,
            repeated: listed - self_loops - directed.edges(),
            reversed: directed.edges() - graph.edges() / 2,
        };
        (graph, count)
    }
}

/// Pairs of a node with itself.
fn loops(pairs: impl Iterator<Item = (u32, u32)>) -> usize {
    pairs.filter(|(a, b)| a == b).count()
}

/// How a data set was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What its files list; none of generated data.
    pub(crate) edges: Option<EdgeCount>,
    /// The files that were read.
    pub(crate) files: Vec<PathBuf>,
    /// What lies beside them in the data folder and was not.
    pub(crate) unread: Vec<String>,
    /// What was made up or guessed, in sentences.
    pub notes: Vec<String>,
}

impl Reading {
    /// Of these files, with these edges.
    pub(crate) fn of(edges: EdgeCount, files: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            edges: Some(edges),
            files: files.into_iter().collect(),
            ..Self::default()
        }
    }

    /// The same with one more sentence.
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }
}

/// What a data set holds, for the reader of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataSummary {
    /// Name for tables.
    pub name: String,
    /// Number of nodes.
    pub nodes: usize,
    /// Undirected edges.
    pub edges: usize,
    /// The pairs that they were made of; none of generated data.
    pub listed: Option<EdgeCount>,
    /// Columns of the features.
    pub features: usize,
    /// Number of classes or labels.
    pub classes: usize,
    /// Whether a node has several labels, and not one class.
    pub several: bool,
    /// Nodes without a label.
    pub unlabelled: usize,
    /// Nodes without an edge.
    pub isolated: usize,
    /// Training nodes.
    pub train: usize,
    /// Validation nodes.
    pub validation: usize,
    /// Test nodes.
    pub test: usize,
    /// Files of the data folder that were not read.
    pub(crate) unread: Vec<String>,
    /// What was made up or guessed.
    pub notes: Vec<String>,
}

impl DataSummary {
    /// The summary as text: one line, and one for each thing that a reader may not expect.
    pub(crate) fn text(&self) -> String {
        let dropped = self.listed.map_or(String::new(), |listed| {
            format!(
                " (of {} listed pairs: {} repeated and {} self-loops dropped, {} the other way round)",
                listed.listed, listed.repeated, listed.self_loops, listed.reversed
            )
        });
        let mut text = format!(
            "{}: {}, {}{dropped}, {}, {}; {} unlabelled, {} isolated",
            self.name,
            counted(self.nodes as u64, "node"),
            counted(self.edges as u64, "edge"),
            counted(self.features as u64, "feature"),
            counted(
                self.classes as u64,
                if self.several { "label" } else { "class" }
            ),
            self.unlabelled,
            self.isolated
        );
        if self.train > 0 {
            text.push_str(&format!(
                "; {} train, {} validate, {} test",
                self.train, self.validation, self.test
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("\n{}: {note}", self.name));
        }
        if !self.unread.is_empty() {
            text.push_str(&format!(
                "\n{}: not read from its folder: {}",
                self.name,
                some_of(&self.unread)
            ));
        }
        text
    }
}

/// `a, b, c and 4 more`.
pub(super) fn some_of(names: &[String]) -> String {
    let named = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The features, if every value is a finite number.
///
/// # Errors
/// The first value that is none, by its place in `what` of the file.
pub(super) fn finite(path: &Path, what: &str, features: Features) -> Result<Features, GraphError> {
    match features.first_not_finite() {
        None => Ok(features),
        Some((row, column, value)) => Err(GraphError::file(
            path,
            format!(
                "{what}, row {row}, column {column} (both from 0): {value} is not a finite number in \
                 single precision; mend the file, or leave the node out"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_pair_is_an_edge_or_counted_as_what_it_is() {
        let pairs = vec![(0, 1), (0, 1), (1, 0), (2, 2), (1, 2), (2, 2)];
        let (graph, count) = EdgeCount::undirected(4, pairs);
        assert_eq!(graph.edges() / 2, 2);
        let expected = EdgeCount {
            listed: 6,
            self_loops: 2,
            repeated: 1,
            reversed: 1,
        };
        assert_eq!(count, expected);
        assert_eq!(graph, Csr::undirected(4, [(0, 1), (1, 2)].into_iter()));
    }

    #[test]
    fn one_of_something_is_told_without_a_plural() {
        let of = |count: usize, several: bool, train: usize| DataSummary {
            name: "g".to_owned(),
            nodes: 5,
            edges: count,
            listed: None,
            features: count,
            classes: count,
            several,
            unlabelled: 0,
            isolated: 3,
            train,
            validation: 1,
            test: 2,
            unread: Vec::new(),
            notes: Vec::new(),
        };
        let one = "g: 5 nodes, 1 edge, 1 feature, 1 label; 0 unlabelled, 3 isolated";
        assert_eq!(of(1, true, 0).text(), one);
        let seven = "g: 5 nodes, 7 edges, 7 features, 7 classes; 0 unlabelled, 3 isolated; 2 train, 1 validate, 2 test";
        assert_eq!(of(7, false, 2).text(), seven);
    }

    #[test]
    fn a_value_that_is_no_number_is_named_by_row_and_column() {
        let dense = |values: Vec<f32>| Features::Dense { width: 2, values };
        let error = finite(
            Path::new("a.npz"),
            "`x`",
            dense(vec![0.0, 1.0, 2.0, f32::NAN]),
        );
        let error = error.unwrap_err().to_string();
        assert!(
            error.starts_with("a.npz: `x`, row 1, column 1 (both from 0): NaN is not"),
            "{error}"
        );
        let sparse = [vec![(5, 1.0)], vec![], vec![(3, f32::INFINITY)]];
        let sparse = Features::from_rows(6, sparse.into_iter());
        assert_eq!(sparse.first_not_finite(), Some((2, 3, f32::INFINITY)));
        assert!(finite(Path::new("a"), "", dense(vec![f32::MAX, -0.0])).is_ok());
    }
}
