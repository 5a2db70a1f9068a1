//! The grid of workers of the algorithms that divide the graph's edges too.
//!
//! ```text
//!              1.5D, c = 2                              2D
//!   row 0   worker 0   worker 1    the same rows    worker 0   worker 1    half of the columns
//!   row 1   worker 2   worker 3    in both          worker 2   worker 3    each
//!   row 2   worker 4   worker 5
//!   edges from rows 0      from rows 1, 2           from all rows
//! ```

use std::ops::Range;

use crate::graph::{BoundaryPlan, Csr};
use crate::strategies::OptionError;

/// Workers in rows and columns, numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    /// Rows of workers, each with rows of its own of all layers: those of the nodes of its workers.
    pub(super) rows: usize,
    /// Workers of a row.
    pub(super) columns: usize,
    /// Whether each column of workers has columns of its own of all layers (2D), or edges that
    /// begin in nodes of its own (1.5D).
    pub(super) slices: bool,
}

impl Grid {
    /// That of 1.5D with so many workers that have the same rows.
    ///
    /// # Errors
    /// If there is none.
    pub(super) fn replicated(workers: usize, replication: usize) -> Result<Self, OptionError> {
        let refuse = |what: String| Err(OptionError::key("replication", what));
        if replication == 0 || !workers.is_multiple_of(replication) {
            return refuse(format!(
                "is {replication}, which does not divide partition.workers = {workers}: choose a divisor"
            ));
        }
        if replication * replication > workers {
            return refuse(format!(
                "is {replication}, whose square is more than partition.workers = {workers}: some workers would have no edges; choose a smaller one"
            ));
        }
        Ok(Self {
            rows: workers / replication,
            columns: replication,
            slices: false,
        })
    }

    /// That of 2D.
    ///
    /// # Errors
    /// If the number of workers is not a square.
    pub(super) fn square(workers: usize) -> Result<Self, OptionError> {
        let side = workers.isqrt();
        if side * side != workers {
            let next = side + 1;
            let what = format!(
                "\"2d\" needs a square number of workers, and partition.workers is {workers}: take {} or {}",
                side * side,
                next * next
            );
            return Err(OptionError::key("algorithm", what));
        }
        Ok(Self {
            rows: side,
            columns: side,
            slices: true,
        })
    }

    /// Row and column of a worker.
    pub(super) const fn place(self, rank: usize) -> (usize, usize) {
        (rank / self.columns, rank % self.columns)
    }

    /// The other workers of a worker's column, ascending.
    pub(super) fn beside_in_column(self, rank: usize) -> impl Iterator<Item = usize> {
        let (row, column) = self.place(rank);
        let others = (0..self.rows).filter(move |other| *other != row);
        others.map(move |other| other * self.columns + column)
    }

    /// The other workers of a worker's row, ascending.
    pub(super) fn beside_in_row(self, rank: usize) -> impl Iterator<Item = usize> {
        let (row, column) = self.place(rank);
        let others = (0..self.columns).filter(move |other| *other != column);
        others.map(move |other| row * self.columns + other)
    }

    /// The rows of workers whose rows of layers a column of workers reads.
    pub(super) fn read(self, column: usize) -> Range<usize> {
        if self.slices {
            return 0..self.rows;
        }
        share(self.rows, self.columns, column)
    }

    /// Of rows of so many columns those that a column of workers has.
    pub(super) fn slice(self, column: usize, width: usize) -> Range<usize> {
        if self.slices {
            return share(width, self.columns, column);
        }
        0..width
    }

    /// Of so many rows those that a worker of this column adds up for all of its row.
    pub(super) fn added(self, column: usize, rows: usize) -> Range<usize> {
        share(rows, self.columns, column)
    }

    /// The nodes of each row of workers, ascending.
    pub(super) fn nodes(self, boundary: &BoundaryPlan) -> Vec<Vec<u32>> {
        let of_row = |parts: &[crate::graph::Part]| {
            let owned = parts.iter().flat_map(|part| part.owned.iter().copied());
            let mut nodes: Vec<u32> = owned.collect();
            nodes.sort_unstable();
            nodes
        };
        boundary.parts.chunks(self.columns).map(of_row).collect()
    }

    /// The edges of a worker: from the nodes that its column reads, one below the other, into those
    /// of its row.
    pub(super) fn edges(self, graph: &Csr, nodes: &[Vec<u32>], rank: usize) -> Csr {
        let (row, column) = self.place(rank);
        let read: Vec<u32> = nodes[self.read(column)].concat();
        let mut places = vec![None; graph.nodes()];
        for (place, &node) in (0_u32..).zip(&read) {
            places[node as usize] = Some(place);
        }
        let of = |(row, &node): (u32, &u32)| {
            let neighbours = graph.neighbours(node as usize).iter();
            let places = neighbours.filter_map(|&other| places[other as usize]);
            places.map(|place| (place, row)).collect::<Vec<_>>()
        };
        let entries: Vec<(u32, u32)> = (0..).zip(&nodes[row]).flat_map(of).collect();
        Csr::rectangular(nodes[row].len(), read.len(), entries.into_iter())
    }
}

/// The part of `all` that falls to one of `shares`, as even as can be.
const fn share(all: usize, shares: usize, one: usize) -> Range<usize> {
    one * all / shares..(one + 1) * all / shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_columns_read_is_all_rows_once_or_all_columns_once() {
        for (workers, replication) in [(4, 1), (4, 2), (6, 2), (8, 2), (12, 3), (18, 3)] {
            let grid = Grid::replicated(workers, replication).expect("there is one");
            let read: Vec<usize> = (0..grid.columns).flat_map(|at| grid.read(at)).collect();
            assert_eq!(read, (0..workers / replication).collect::<Vec<_>>());
            assert!((0..grid.columns).all(|at| !grid.read(at).is_empty()));
            assert_eq!(grid.slice(0, 7), 0..7);
        }
        let grid = Grid::square(9).expect("it is a square");
        let columns: Vec<usize> = (0..3).flat_map(|at| grid.slice(at, 7)).collect();
        assert_eq!(columns, (0..7).collect::<Vec<_>>());
        assert_eq!(grid.read(1), 0..3);
        assert_eq!(grid.beside_in_column(4).collect::<Vec<_>>(), [1, 7]);
        assert_eq!(grid.beside_in_row(4).collect::<Vec<_>>(), [3, 5]);
    }

    #[test]
    fn grids_that_are_none_are_refused_with_what_to_take() {
        let says = |found: Result<Grid, OptionError>| found.expect_err("there is none").message;
        assert!(says(Grid::replicated(4, 3)).contains("does not divide"));
        assert!(says(Grid::replicated(4, 0)).contains("does not divide"));
        assert!(says(Grid::replicated(6, 3)).contains("whose square is more"));
        assert!(says(Grid::square(6)).contains("take 4 or 9"));
    }
}
