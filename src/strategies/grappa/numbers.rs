//! Chunks and halos of a graph that is known by its law.

use crate::graph::{ExpectedGraph, round};

/// Rows of chunks and halos, the same for all workers: chunks are equal random parts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Numbers {
    /// Nodes of each chunk.
    chunks: Vec<usize>,
    /// Rows of one chunk that have a neighbour in the chunks that a worker holds.
    read: f64,
    /// The same in those that it keeps.
    kept: f64,
}

impl Numbers {
    /// Those of workers of which each keeps `each` of so many chunks and holds `held`.
    pub(super) fn new(law: &ExpectedGraph, chunks: usize, each: usize, held: usize) -> Self {
        let one = 1.0 / chunks as f64;
        // Features have no part in how many nodes there are.
        let nodes = |chunk| law.part(chunks, chunk, 0.0, 0).owned;
        Self {
            chunks: (0..chunks).map(nodes).collect(),
            read: law.read(held as f64 * one) * one,
            kept: law.read(each as f64 * one) * one,
        }
    }

    /// Nodes of a chunk.
    pub(super) fn chunk(&self, chunk: usize) -> usize {
        self.chunks[chunk]
    }

    /// Rows of so many chunks that a worker's chunks read.
    pub(super) fn surroundings(&self, chunks: usize) -> usize {
        round(chunks as f64 * self.read)
    }

    /// Those of them that its own chunks do not read.
    pub(super) fn anew(&self, chunks: usize) -> usize {
        round(chunks as f64 * (self.read - self.kept))
    }
}
