//! Whole numbers in order and without repetition, more of them than memory holds: runs that fit are
//! sorted and written, and merged, so many at a time (Knuth, *The Art of Computer Programming* 3,
//! §5.4.1).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};

use rayon::prelude::*;

use super::Room;
use crate::graph::GraphError;

/// Runs that are merged at once.
const FAN: usize = 16;
/// Fewest numbers that are held, whatever the room.
const FEWEST: usize = 64;
/// Bytes of a number in a run.
const SIZE: usize = size_of::<u64>();

/// Takes numbers in any order.
pub(crate) struct Sorter<'a> {
    room: &'a Room,
    /// Those that are in no run, at most `most`.
    held: Vec<u64>,
    most: usize,
    /// Runs that were written, those merged of `FAN^level` together.
    levels: Vec<Vec<File>>,
}

impl<'a> Sorter<'a> {
    /// An empty one, which holds an eighth of the room.
    pub(crate) fn new(room: &'a Room) -> Self {
        let most = (room.piece() / SIZE).max(FEWEST);
        Self {
            room,
            held: Vec::new(),
            most,
            levels: Vec::new(),
        }
    }

    /// Takes one more.
    ///
    /// # Errors
    /// If a run cannot be written.
    pub(crate) fn push(&mut self, number: u64) -> Result<(), GraphError> {
        if self.held.len() == self.most {
            self.settle()?;
        }
        if self.held.capacity() == 0 {
            // At once: a list that grows is copied, and holes stay where it was.
            self.held.reserve_exact(self.most);
        }
        self.held.push(number);
        Ok(())
    }

    /// Makes place: what is held goes into a run, unless most of it was there twice.
    fn settle(&mut self) -> Result<(), GraphError> {
        self.held.par_sort_unstable();
        self.held.dedup();
        if self.held.len() <= self.most / 2 {
            return Ok(());
        }
        self.spill()
    }

    /// Writes what is held, which is sorted, as a run.
    fn spill(&mut self) -> Result<(), GraphError> {
        let run = self.write(&mut self.held.iter().copied().map(Ok))?;
        self.held.clear();
        self.place(0, run)
    }

    /// Puts a run on a level, whose runs become one of the next where there are enough.
    fn place(&mut self, level: usize, run: File) -> Result<(), GraphError> {
        if self.levels.len() == level {
            self.levels.push(Vec::new());
        }
        self.levels[level].push(run);
        if self.levels[level].len() < FAN {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.levels[level]);
        let merged = self.write(&mut self.merge(runs)?)?;
        self.place(level + 1, merged)
    }

    fn write(
        &self,
        numbers: &mut dyn Iterator<Item = io::Result<u64>>,
    ) -> Result<File, GraphError> {
        let mut file = self.room.file()?;
        let mut to = BufWriter::with_capacity(self.buffer(), &file);
        let all = || {
            for number in numbers {
                to.write_all(&number?.to_le_bytes())?;
            }
            to.flush()
        };
        let done = all();
        drop(to);
        done.and_then(|()| file.rewind())
            .map_err(|error| self.room.unwritten(error))?;
        Ok(file)
    }

    /// Bytes that are read or written at once, of each of the runs that are merged.
    fn buffer(&self) -> usize {
        (self.room.piece() / FAN).clamp(1 << 9, 1 << 20)
    }

    fn merge(&self, runs: Vec<File>) -> Result<Merged, GraphError> {
        let runs = runs.into_iter();
        let runs = runs.map(|run| BufReader::with_capacity(self.buffer(), run));
        Merged::new(runs.collect()).map_err(|error| self.room.unwritten(error))
    }

    /// How many different numbers there are so far. All runs are merged for it.
    ///
    /// # Errors
    /// If they cannot be read or written.
    pub(crate) fn distinct(&mut self) -> Result<u64, GraphError> {
        self.held.par_sort_unstable();
        self.held.dedup();
        self.spill()?;
        let runs = std::mem::take(&mut self.levels)
            .into_iter()
            .flatten()
            .collect();
        let one = self.write(&mut self.merge(runs)?)?;
        let bytes = one.metadata().map_err(|error| self.room.unwritten(error))?;
        self.place(0, one)?;
        Ok(bytes.len() / SIZE as u64)
    }

    /// All numbers in ascending order, each once.
    ///
    /// # Errors
    /// If a run cannot be written or read.
    pub(crate) fn finish(mut self) -> Result<Merged, GraphError> {
        self.held.par_sort_unstable();
        self.held.dedup();
        self.spill()?;
        self.held = Vec::new();
        let runs = std::mem::take(&mut self.levels)
            .into_iter()
            .flatten()
            .collect();
        self.merge(runs)
    }
}

/// Runs as one.
pub(crate) struct Merged {
    runs: Vec<BufReader<File>>,
    /// The next number of each run that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merged {
    fn new(runs: Vec<BufReader<File>>) -> io::Result<Self> {
        let next = BinaryHeap::with_capacity(runs.len());
        let mut merged = Self { runs, next };
        for run in 0..merged.runs.len() {
            merged.advance(run)?;
        }
        Ok(merged)
    }

    fn advance(&mut self, run: usize) -> io::Result<()> {
        let mut raw = [0; SIZE];
        let from = &mut self.runs[run];
        // A run has whole numbers: it ends before one, or not at all.
        match from.read_exact(&mut raw) {
            Ok(()) => self.next.push(Reverse((u64::from_le_bytes(raw), run))),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<Option<u64>> {
        let Some(&Reverse((least, _))) = self.next.peek() else {
            return Ok(None);
        };
        while let Some(&Reverse((number, run))) = self.next.peek()
            && number == least
        {
            self.next.pop();
            self.advance(run)?;
        }
        Ok(Some(least))
    }
}

impl Iterator for Merged {
    type Item = io::Result<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}
