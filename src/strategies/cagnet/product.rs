//! Products of the adjacency matrix with rows, over a grid of workers.
//!
//! ```text
//!   down a column:  rows, or slices of them ──▶ all that read them ── times own edges ──▶ partial
//!   along a row:    1.5D  partial sums ──▶ who adds up this share of the rows ──▶ totals to all
//!                   2D    slices of totals ──▶ all
//! ```

use std::ops::Range;

use super::grid::Grid;
use crate::model::{Block, Matrix, sums};
use crate::net::{Inbox, Message, TrafficKind};
use crate::sim::{Activity, SimError, Worker};
use crate::strategies::parts::server::{add, floats_to, unpacked};
use crate::strategies::parts::{Lane, Totals, lane_outbox};

/// One worker's part of the products.
pub(super) struct Product<'a> {
    grid: Grid,
    /// Of each row of workers.
    nodes: &'a [Vec<u32>],
    /// Weights of own edges; and of the same edges the other way, for gradients.
    forward: Block,
    back: Block,
}

impl<'a> Product<'a> {
    /// That of a worker.
    pub(super) fn new(worker: &Worker, grid: Grid, nodes: &'a [Vec<u32>]) -> Self {
        let (setting, rank) = (worker.setting(), worker.rank());
        let (row, column) = grid.place(rank);
        let (graph, aggregation) = (&setting.dataset.graph, setting.model.aggregation());
        let edges = grid.edges(graph, nodes, rank);
        let degrees = |nodes: &[u32]| -> Vec<usize> {
            nodes.iter().map(|&v| graph.degree(v as usize)).collect()
        };
        let own = degrees(&nodes[row]);
        let others = degrees(&nodes[grid.read(column)].concat());
        let weight = |v: u32, u: u32| aggregation.weight(own[v as usize], others[u as usize]);
        // The graph has each edge both ways, so the transpose has its entries in the same places.
        let back = |v: u32, u: u32| aggregation.weight(others[u as usize], own[v as usize]);
        Self {
            grid,
            nodes,
            forward: Block::between(&edges, others.len(), weight),
            back: Block::between(&edges, others.len(), back),
        }
    }

    /// The rows that this worker's column reads, one below the other, given its own; of their
    /// columns those of the slice.
    fn down(
        &self,
        worker: &mut Worker,
        lane: Lane,
        rows: Matrix,
        slice: &Range<usize>,
    ) -> Result<(Vec<f32>, Inbox), SimError> {
        let (grid, rank) = (self.grid, worker.rank());
        let (row, column) = grid.place(rank);
        let read = grid.read(column);
        let (own, messages) = worker.compute(Activity::Exchange, |_| {
            let width = rows.width();
            let own = cut(&rows.into_values(), width, slice);
            let receivers = grid.beside_in_column(rank).filter(|_| read.contains(&row));
            let messages: Vec<Message> = receivers.map(|peer| floats_to(peer, &own)).collect();
            (own, messages)
        });
        let others = grid.beside_in_column(rank);
        let expect = others.filter(|&peer| read.contains(&grid.place(peer).0));
        if grid.rows == 1 {
            return Ok((own, Inbox::new()));
        }
        Ok((own, worker.exchange(lane_outbox(lane, messages, expect))?))
    }

    /// Sums over own edges.
    fn partial(
        &self,
        worker: &mut Worker,
        kind: TrafficKind,
        (own, inbox): (Vec<f32>, &Inbox),
        width: usize,
    ) -> Result<Vec<f32>, SimError> {
        let (row, column) = self.grid.place(worker.rank());
        let block = match kind {
            TrafficKind::ActivationGradient => &self.back,
            _ => &self.forward,
        };
        worker.compute(Activity::Model, |worker| {
            let mut gathered = Vec::with_capacity(block.inputs() * width);
            let mut messages = inbox.iter();
            for read in self.grid.read(column) {
                if read == row {
                    gathered.extend(&own);
                } else if let Some(message) = messages.next() {
                    gathered.extend(unpacked(message, self.nodes[read].len() * width)?);
                }
            }
            let rows = Matrix::from_values(gathered, width, worker.place());
            Ok(sums(block, &rows).into_values())
        })
    }

    /// Partial sums of the workers of a row, added up at all of them.
    fn added(
        &self,
        worker: &mut Worker,
        lane: Lane,
        mut partial: Vec<f32>,
        width: usize,
    ) -> Result<Vec<f32>, SimError> {
        let (grid, rank) = (self.grid, worker.rank());
        let (row, column) = grid.place(rank);
        let rows = self.nodes[row].len();
        let values = |column: usize| {
            let rows = grid.added(column, rows);
            rows.start * width..rows.end * width
        };
        let peers: Vec<usize> = grid.beside_in_row(rank).collect();
        let messages = worker.compute(Activity::Exchange, |_| {
            let part = |peer| &partial[values(grid.place(peer).1)];
            let message = |&peer: &usize| floats_to(peer, part(peer));
            peers.iter().map(message).collect()
        });
        let inbox = worker.exchange(lane_outbox(lane, messages, peers.iter().copied()))?;
        let messages = worker.compute(Activity::Exchange, |_| {
            let own = &mut partial[values(column)];
            for message in &inbox {
                let others = unpacked(message, own.len())?;
                add(own, &others);
            }
            let message = |&peer: &usize| floats_to(peer, own);
            Ok::<_, SimError>(peers.iter().map(message).collect())
        })?;
        let inbox = worker.exchange(lane_outbox(lane, messages, peers))?;
        worker.compute(Activity::Exchange, |_| {
            for message in &inbox {
                let place = values(grid.place(message.peer).1);
                let total = unpacked(message, place.len())?;
                partial[place].copy_from_slice(&total);
            }
            Ok(partial)
        })
    }

    /// Slices of the workers of a row, side by side at all of them.
    fn joined(
        &self,
        worker: &mut Worker,
        lane: Lane,
        slice: &[f32],
        width: usize,
    ) -> Result<Vec<f32>, SimError> {
        let (grid, rank) = (self.grid, worker.rank());
        let (row, column) = grid.place(rank);
        let rows = self.nodes[row].len();
        let peers = || grid.beside_in_row(rank);
        let messages = worker.compute(Activity::Exchange, |_| {
            let message = |peer| floats_to(peer, slice);
            peers().map(message).collect()
        });
        let inbox = worker.exchange(lane_outbox(lane, messages, peers()))?;
        worker.compute(Activity::Exchange, |_| {
            let mut all = vec![0.0; rows * width];
            paste(&mut all, width, &grid.slice(column, width), slice);
            for message in &inbox {
                let columns = grid.slice(grid.place(message.peer).1, width);
                let slice = unpacked(message, rows * columns.len())?;
                paste(&mut all, width, &columns, &slice);
            }
            Ok(all)
        })
    }
}

impl Totals for Product<'_> {
    fn total(
        &mut self,
        worker: &mut Worker,
        _epoch: usize,
        lane: Lane,
        rows: Matrix,
    ) -> Result<Matrix, SimError> {
        let (width, grid) = (rows.width(), self.grid);
        let slice = grid.slice(grid.place(worker.rank()).1, width);
        let (own, inbox) = self.down(worker, lane, rows, &slice)?;
        let partial = self.partial(worker, lane.0, (own, &inbox), slice.len())?;
        let total = match (grid.columns, grid.slices) {
            (1, _) => partial,
            (_, true) => self.joined(worker, lane, &partial, width)?,
            (_, false) => self.added(worker, lane, partial, width)?,
        };
        Ok(Matrix::from_values(total, width, worker.place()))
    }
}

/// Some columns of rows of so many.
fn cut(rows: &[f32], width: usize, columns: &Range<usize>) -> Vec<f32> {
    let of_row = |row: &[f32]| row[columns.clone()].to_vec();
    rows.chunks_exact(width).flat_map(of_row).collect()
}

/// Puts columns of rows in their places.
fn paste(all: &mut [f32], width: usize, columns: &Range<usize>, part: &[f32]) {
    let rows = all.chunks_exact_mut(width);
    for (row, part) in rows.zip(part.chunks_exact(columns.len())) {
        row[columns.clone()].copy_from_slice(part);
    }
}
