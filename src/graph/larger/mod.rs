//! Graphs that are larger than memory: pairs of nodes are sorted in runs on disk, rows and features
//! lie in files that are mapped, and what is held grows with the nodes alone.

mod pairs;
mod sorter;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::coded::CodedRows;
use super::mapped::Mapped;
use super::{Features, GraphError};

pub(super) use pairs::Pairs;
pub(super) use sorter::Sorter;

/// What dividing a graph may take: memory beside the program itself, and a folder for what is
/// larger. Files there have no name, so that none stays, however the program ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    folder: PathBuf,
    memory: u64,
}

impl Room {
    /// Bytes that dividing holds of each node at most: where its row starts, its class, its place
    /// in the split, its owner and row there, and what a partitioner or a plan keeps of it.
    const OF_A_NODE: u64 = 64;

    /// So many bytes of memory, and a folder, which is made.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub(crate) fn new(folder: &Path, memory: u64) -> Result<Self, GraphError> {
        let room = Self {
            folder: folder.to_owned(),
            memory,
        };
        fs::create_dir_all(folder).map_err(|error| room.unwritten(error))?;
        Ok(room)
    }

    /// Whether what is held of so many nodes fits, with so many bytes beside: half of the memory is
    /// for what is sorted and drawn.
    ///
    /// # Errors
    /// If it does not.
    pub(crate) fn check(&self, nodes: usize, beside: u64) -> Result<(), GraphError> {
        let needs = (nodes as u64 * Self::OF_A_NODE + beside) * 2;
        if needs <= self.memory {
            return Ok(());
        }
        let what = format!(
            "{} bytes are too few: of {nodes} nodes {needs} are needed, however few edges there are; raise it",
            self.memory
        );
        Err(GraphError::key("--memory", what))
    }

    /// Bytes of what is drawn, read or sorted at a time.
    pub(crate) fn piece(&self) -> usize {
        /// More makes nothing faster.
        const ENOUGH: u64 = 512 << 20;
        (self.memory / 8).min(ENOUGH) as usize
    }

    /// Bytes that may be taken for a while, before a graph is divided.
    pub(crate) const fn spare(&self) -> u64 {
        self.memory / 2
    }

    /// An empty file without a name.
    ///
    /// # Errors
    /// If there is no place for it.
    pub(crate) fn file(&self) -> Result<File, GraphError> {
        tempfile::tempfile_in(&self.folder).map_err(|error| self.unwritten(error))
    }

    /// What to say where the disk does not take what is put there.
    pub(crate) fn unwritten(&self, source: io::Error) -> GraphError {
        GraphError::Write {
            path: self.folder.clone(),
            source,
        }
    }
}

/// Dense rows `[nodes, width]` that `draw` fills, `batch` rows at a time, given the number of the
/// batch. `see` is called with all rows, in order, some batches at a time. Held in memory, or, with
/// room, in a file.
///
/// # Errors
/// If the file cannot be written, or `see` fails.
pub(super) fn drawn(
    (nodes, width): (usize, usize),
    batch: usize,
    room: Option<&Room>,
    draw: impl Fn(usize, &mut [f32]) + Sync,
    mut see: impl FnMut(&[f32]) -> Result<(), GraphError>,
) -> Result<Features, GraphError> {
    let fill = |first: usize, values: &mut [f32]| {
        let batches = values.par_chunks_mut(batch * width).enumerate();
        batches.for_each(|(number, rows)| draw(first + number, rows));
    };
    let Some(room) = room else {
        let mut values = vec![0.0; nodes * width];
        fill(0, &mut values);
        see(&values)?;
        return Ok(Features::Dense { width, values });
    };
    let size = size_of::<f32>();
    let together = (room.piece() / (batch * width * size)).max(1);
    let file = room.file()?;
    let written = |error| room.unwritten(error);
    let mut values = vec![0.0; together.saturating_mul(batch).min(nodes) * width];
    let mut bytes = Vec::new();
    let mut to = BufWriter::new(&file);
    for first in (0..nodes.div_ceil(batch)).step_by(together) {
        let rows = (nodes - first * batch).min(together.saturating_mul(batch));
        let values = &mut values[..rows * width];
        fill(first, values);
        see(values)?;
        for row in values.chunks(width) {
            bytes.clear();
            bytes.extend(row.iter().flat_map(|value| value.to_le_bytes()));
            to.write_all(&bytes).map_err(written)?;
        }
    }
    to.flush().map_err(written)?;
    drop(to);
    let decode = |raw: [u8; 8]| f32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
    let values = Mapped::new(&file, 0, nodes * width, (size, false), decode).map_err(written)?;
    Ok(Features::Coded(CodedRows::mapped(width, values)))
}
