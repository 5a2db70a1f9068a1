//! Compressed sparse rows: who sends to whom.

use std::ops::Range;
use std::sync::Arc;

use super::mapped::MappedIds;

/// A graph, or the part of one that a worker sees: row v lists the in-neighbours (sources) of node
/// v in ascending order, without duplicates and without self-loops. Aggregation is then a product
/// of this matrix with the rows of features, `[columns, width]` → `[nodes, width]`.
///
/// A whole graph is square. The local graph of a worker has more columns than rows, because rows
/// from elsewhere (its halo) are read and not written.
///
/// ```text
///  0 → 1        row 0: []       offsets     0 0 1 3
///  0 → 2        row 1: [0]      neighbours  0 0 1
///  1 → 2        row 2: [0, 1]
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csr {
    columns: usize,
    offsets: Vec<usize>,
    neighbours: Rows,
}

/// The rows one after another.
#[derive(Clone, Debug)]
enum Rows {
    Held(Vec<u32>),
    /// In a file, of which little is in memory at a time.
    Mapped(Arc<MappedIds>),
}

impl Rows {
    fn get(&self, range: Range<usize>) -> &[u32] {
        match self {
            Self::Held(all) => &all[range],
            Self::Mapped(file) => file.get(range),
        }
    }

    fn all(&self) -> &[u32] {
        match self {
            Self::Held(all) => all,
            Self::Mapped(file) => file.all(),
        }
    }
}

impl PartialEq for Rows {
    fn eq(&self, other: &Self) -> bool {
        self.all() == other.all()
    }
}

impl Eq for Rows {}

impl Csr {
    /// A graph on `nodes` nodes from (source, destination) pairs in any order. Duplicates and
    /// self-loops are dropped. O(nodes + edges log degree) time. The pairs are gone through twice
    /// and not kept: 4 bytes for each of them, and 16 for each node.
    ///
    /// # Panics
    /// If an end is not below `nodes`: loaders check ids where they can still name the line.
    pub fn from_edges(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let loopless = edges.filter(|(source, destination)| source != destination);
        Self::rectangular(nodes, nodes, loopless)
    }

    /// The symmetric graph on `nodes` nodes of unordered pairs: each pair becomes an edge in both
    /// directions, once, however often and in whichever order it is listed.
    ///
    /// # Panics
    /// If an end is not below `nodes`.
    pub fn undirected(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        Self::from_edges(nodes, edges.flat_map(|(a, b)| [(a, b), (b, a)]))
    }

    /// A rectangular matrix from (column, row) pairs. Equal indices are not self-loops here: a
    /// column may stand for another node than the row of the same number.
    ///
    /// # Panics
    /// If a row or column is out of range.
    pub fn rectangular(
        rows: usize,
        columns: usize,
        entries: impl Iterator<Item = (u32, u32)> + Clone,
    ) -> Self {
        let mut starts = vec![0; rows + 1];
        for (column, row) in entries.clone() {
            assert!(
                (column as usize) < columns,
                "column {column} of a matrix with {columns}"
            );
            // A row out of range fails at this index.
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut next = starts.clone();
        let mut neighbours = vec![0; starts[rows]];
        for (column, row) in entries {
            neighbours[next[row as usize]] = column;
            next[row as usize] += 1;
        }
        // Rows are sorted and compacted in place: the write position never overtakes the read
        // position.
        let mut offsets = vec![0; rows + 1];
        let mut end = 0;
        for row in 0..rows {
            let range = starts[row]..starts[row + 1];
            // Equal columns are one entry afterwards, so that stability would show nowhere.
            neighbours[range.clone()].sort_unstable();
            for read in range {
                if end == offsets[row] || neighbours[end - 1] != neighbours[read] {
                    neighbours[end] = neighbours[read];
                    end += 1;
                }
            }
            offsets[row + 1] = end;
        }
        neighbours.truncate(end);
        // Lists may name most pairs twice, and a graph stays for the whole run.
        neighbours.shrink_to_fit();
        Self {
            columns,
            offsets,
            neighbours: Rows::Held(neighbours),
        }
    }

    /// A matrix of rows that are in order already: `offsets` as of [`Csr::offsets`], `neighbours`
    /// as of [`Csr::indices`]. None if they are no such rows. O(rows + entries).
    pub fn from_rows(columns: usize, offsets: Vec<usize>, neighbours: Vec<u32>) -> Option<Self> {
        let spans = offsets.first() == Some(&0) && offsets.last() == Some(&neighbours.len());
        let rising = offsets.windows(2).all(|ends| ends[0] <= ends[1]);
        let sound = spans && rising && {
            let mut rows = offsets.windows(2).map(|ends| &neighbours[ends[0]..ends[1]]);
            rows.all(|row| {
                row.windows(2).all(|pair| pair[0] < pair[1])
                    && row.last().is_none_or(|&last| (last as usize) < columns)
            })
        };
        sound.then_some(Self {
            columns,
            offsets,
            neighbours: Rows::Held(neighbours),
        })
    }

    /// A whole graph of rows that are in order already and lie in a file. 8 bytes for each node.
    ///
    /// # Panics
    /// If the file has another number of entries than the last offset.
    pub(super) fn mapped(offsets: Vec<usize>, neighbours: MappedIds) -> Self {
        assert_eq!(
            offsets.last(),
            Some(&neighbours.len()),
            "rows are of one file"
        );
        Self {
            columns: offsets.len() - 1,
            offsets,
            neighbours: Rows::Mapped(Arc::new(neighbours)),
        }
    }

    /// Number of rows, which are the nodes that receive.
    pub const fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of columns, which are the nodes that send; equal to [`Csr::nodes`] for a whole graph.
    pub const fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored (directed) edges: an undirected edge counts twice.
    pub fn edges(&self) -> usize {
        // There is a first offset, of no node.
        self.offsets.last().copied().unwrap_or(0)
    }

    /// Sources of the edges that end in node `v`, ascending.
    #[inline]
    pub fn neighbours(&self, v: usize) -> &[u32] {
        self.neighbours.get(self.offsets[v]..self.offsets[v + 1])
    }

    /// Number of edges that end in node `v`.
    pub fn degree(&self, v: usize) -> usize {
        self.offsets[v + 1] - self.offsets[v]
    }

    /// Where each row starts in [`Csr::indices`], `[nodes + 1]`, the last being the number of
    /// edges.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The rows one after another, `[edges]`.
    pub fn indices(&self) -> &[u32] {
        self.neighbours.all()
    }

    /// All edges as (source, destination), ordered by destination and then source.
    pub fn iter_edges(&self) -> impl Iterator<Item = (u32, u32)> + Clone + '_ {
        (0_u32..)
            .zip(self.offsets.windows(2))
            .flat_map(|(destination, range)| {
                let row = self.neighbours.get(range[0]..range[1]);
                row.iter().map(move |&source| (source, destination))
            })
    }

    /// The same edges turned round: row u lists the destinations of u. The backward pass of an
    /// aggregation. O(nodes + edges).
    #[cfg(test)]
    pub(crate) fn transpose(&self) -> Self {
        let turned = self
            .iter_edges()
            .map(|(source, destination)| (destination, source));
        Self::rectangular(self.columns, self.nodes(), turned)
    }

    /// The graph among these nodes, ascending, under their places in the list; each is a row and a
    /// column. O(columns + their edges).
    ///
    /// # Panics
    /// If a node is not a row.
    pub(crate) fn induced(&self, nodes: &[u32]) -> Self {
        const NOWHERE: u32 = u32::MAX;
        // Columns beyond the rows, which are a worker's halo, stay nowhere.
        let mut place = vec![NOWHERE; self.columns];
        for (at, &node) in (0_u32..).zip(nodes) {
            place[node as usize] = at;
        }
        let place = &place;
        let edges = (0_u32..).zip(nodes).flat_map(|(v, &node)| {
            let sources = self.neighbours(node as usize).iter();
            sources
                .map(|&u| place[u as usize])
                .filter(|&u| u != NOWHERE)
                .map(move |u| (u, v))
        });
        Self::from_edges(nodes.len(), edges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_induced_graph_has_the_edges_that_begin_and_end_in_it() {
        let graph = Csr::undirected(5, [(0, 1), (1, 3), (3, 4), (0, 4)].into_iter());
        let part = graph.induced(&[0, 3, 4]);
        assert_eq!((part.nodes(), part.columns(), part.edges()), (3, 3, 4));
        assert_eq!(part.neighbours(2), [0, 1]);
        assert_eq!(graph.induced(&[0, 1, 2, 3, 4]), graph);
    }

    #[test]
    fn a_row_lists_the_sources_of_a_node_in_order() {
        let graph = Csr::from_edges(4, [(2, 1), (0, 1), (3, 0), (0, 1)].into_iter());
        assert_eq!(graph.neighbours(0), [3]);
        assert_eq!(graph.neighbours(1), [0, 2]);
        assert_eq!(graph.degree(2), 0);
        assert_eq!((graph.nodes(), graph.edges()), (4, 3));
        assert_ne!(graph.transpose(), graph);
    }

    #[test]
    fn an_undirected_graph_forgets_loops_duplicates_and_the_order_of_ends() {
        let graph = Csr::undirected(3, [(0, 1), (1, 0), (1, 1), (2, 1), (2, 1)].into_iter());
        assert_eq!(
            graph.iter_edges().collect::<Vec<_>>(),
            [(1, 0), (0, 1), (2, 1), (1, 2)]
        );
        assert_eq!(graph.transpose(), graph);
    }

    #[test]
    fn a_rectangular_matrix_keeps_its_diagonal_and_its_shape() {
        let local = Csr::rectangular(2, 3, [(0, 0), (2, 1), (2, 0)].into_iter());
        assert_eq!(local.neighbours(0), [0, 2]);
        let back = local.transpose();
        assert_eq!((back.nodes(), back.columns()), (3, 2));
        assert_eq!(back.neighbours(2), [0, 1]);
    }

    proptest! {
        #[test]
        fn turning_all_edges_twice_changes_nothing(
            edges in prop::collection::vec((0_u32..20, 0_u32..20), 0..80)
        ) {
            let graph = Csr::from_edges(20, edges.iter().copied());
            let mut kept: Vec<_> = edges.into_iter().filter(|(a, b)| a != b).collect();
            kept.sort_unstable_by_key(|&(source, destination)| (destination, source));
            kept.dedup();
            prop_assert_eq!(graph.iter_edges().collect::<Vec<_>>(), kept);
            prop_assert_eq!(graph.transpose().transpose(), graph);
        }
    }
}
