//! Pairs of nodes as they are listed or drawn, until they are a graph.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter::Peekable;

use super::sorter::Merged;
use super::{Room, Sorter};
use crate::graph::mapped::MappedIds;
use crate::graph::{Csr, EdgeCount, GraphError};

/// Pairs in memory, or, with room, in sorted runs on disk.
pub(crate) enum Pairs<'a> {
    /// As they came.
    Held(Vec<(u32, u32)>),
    /// By rows.
    Sorted(Box<ByRows<'a>>),
}

/// Pairs on disk.
pub(crate) struct ByRows<'a> {
    room: &'a Room,
    listed: usize,
    self_loops: usize,
    /// Of each pair the second end, then the first.
    forward: Sorter<'a>,
    /// The first end, then the second.
    backward: Sorter<'a>,
    /// Why a pair was not taken.
    failed: Option<GraphError>,
}

impl<'a> Pairs<'a> {
    /// None so far.
    pub(crate) fn new(room: Option<&'a Room>) -> Self {
        let Some(room) = room else {
            return Self::Held(Vec::new());
        };
        Self::Sorted(Box::new(ByRows {
            room,
            listed: 0,
            self_loops: 0,
            forward: Sorter::new(room),
            backward: Sorter::new(room),
            failed: None,
        }))
    }

    /// How many were listed.
    pub(crate) const fn len(&self) -> usize {
        match self {
            Self::Held(all) => all.len(),
            Self::Sorted(rows) => rows.listed,
        }
    }

    /// Takes one more.
    ///
    /// # Errors
    /// If the disk is full.
    pub(crate) fn add(&mut self, from: u32, to: u32) -> Result<(), GraphError> {
        match self {
            Self::Held(all) => {
                all.push((from, to));
                Ok(())
            }
            Self::Sorted(rows) => rows.add(from, to),
        }
    }

    /// The same where what is wrong is told with a line of a file; [`Pairs::told`] has the error
    /// itself.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn push(&mut self, from: u32, to: u32) -> Result<(), String> {
        let added = self.add(from, to);
        added.map_err(|error| {
            let what = error.to_string();
            if let Self::Sorted(rows) = self {
                rows.failed = Some(error);
            }
            what
        })
    }

    /// What is to be said of an error while pairs were taken: that of the disk, if there was one.
    pub(crate) fn told(&mut self, error: GraphError) -> GraphError {
        match self {
            Self::Held(_) => error,
            Self::Sorted(rows) => rows.failed.take().unwrap_or(error),
        }
    }

    /// The undirected graph on `nodes` nodes, and what became of the pairs.
    ///
    /// # Errors
    /// If the disk is full, or there is no room for so many nodes.
    ///
    /// # Panics
    /// If an end is not below `nodes`: loaders check ids where they can still name the line.
    pub(crate) fn counted(self, nodes: usize) -> Result<(Csr, EdgeCount), GraphError> {
        match self {
            Self::Held(all) => Ok(EdgeCount::undirected(nodes, all)),
            Self::Sorted(rows) => rows.graph(nodes),
        }
    }

    /// The graph alone.
    ///
    /// # Errors
    /// As above.
    pub(crate) fn graph(self, nodes: usize) -> Result<Csr, GraphError> {
        match self {
            Self::Held(all) => Ok(Csr::undirected(nodes, all.iter().copied())),
            Self::Sorted(rows) => rows.graph(nodes).map(|(graph, _)| graph),
        }
    }
}

impl ByRows<'_> {
    fn add(&mut self, from: u32, to: u32) -> Result<(), GraphError> {
        self.listed += 1;
        if from == to {
            self.self_loops += 1;
            return Ok(());
        }
        self.forward.push(entry(to, from))?;
        self.backward.push(entry(from, to))
    }

    fn graph(self, nodes: usize) -> Result<(Csr, EdgeCount), GraphError> {
        let room = self.room;
        room.check(nodes, 0)?;
        let both = [self.forward.finish()?, self.backward.finish()?];
        let file = room.file()?;
        let made = Made::of(nodes, both, &file);
        let made = made.map_err(|error| room.unwritten(error))?;
        let graph = match MappedIds::new(&file) {
            Ok(neighbours) => Csr::mapped(made.offsets, neighbours),
            Err(error) => return Err(room.unwritten(error)),
        };
        let count = EdgeCount {
            listed: self.listed,
            self_loops: self.self_loops,
            repeated: self.listed - self.self_loops - made.directed,
            reversed: made.directed - graph.edges() / 2,
        };
        Ok((graph, count))
    }
}

/// Where rows start that were written, and how many entries were listed as they stand.
struct Made {
    offsets: Vec<usize>,
    directed: usize,
}

impl Made {
    /// Writes the entries of both lists into a file, each once.
    fn of(nodes: usize, [forward, backward]: [Merged; 2], file: &File) -> io::Result<Self> {
        let mut offsets = vec![0; nodes + 1];
        let mut directed = 0;
        let mut to = BufWriter::with_capacity(1 << 16, file);
        let (mut forward, mut backward) = (forward.peekable(), backward.peekable());
        loop {
            let (ahead, behind) = (peek(&mut forward)?, peek(&mut backward)?);
            let Some(least) = [ahead, behind].into_iter().flatten().min() else {
                break;
            };
            if ahead == Some(least) {
                directed += 1;
                forward.next();
            }
            if behind == Some(least) {
                backward.next();
            }
            // The halves of an entry: its row, which fails at this index if there is none, and its
            // column.
            offsets[(least >> 32) as usize + 1] += 1;
            to.write_all(&(least as u32).to_ne_bytes())?;
        }
        to.flush()?;
        for row in 0..nodes {
            offsets[row + 1] += offsets[row];
        }
        Ok(Self { offsets, directed })
    }
}

fn peek(list: &mut Peekable<Merged>) -> io::Result<Option<u64>> {
    match list.peek() {
        None => Ok(None),
        Some(Ok(entry)) => Ok(Some(*entry)),
        Some(Err(_)) => list.next().transpose(),
    }
}

/// An entry of the matrix as a number, in the order of rows.
fn entry(row: u32, column: u32) -> u64 {
    u64::from(row) << 32 | u64::from(column)
}
