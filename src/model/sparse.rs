//! Sparse matrices that stay constant while a model trains: the graph, and bag-of-words features.

#![cfg_attr(not(feature = "wgpu"), allow(dead_code))] // caches on devices are for the wgpu kernels

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;

use super::stripes::stripes;

/// What is made of a matrix once and dropped with it: what it has left on devices, by device, and
/// the tiles it was cut into.
#[derive(Clone, Default)]
pub(super) struct Cache(Arc<Mutex<Vec<(String, Kept)>>>);

/// What one backend keeps on one device, say; only who made it knows the type.
type Kept = Arc<dyn Any + Send + Sync>;

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cache")
    }
}

impl Cache {
    /// What is called so, made when it is not there yet.
    pub(super) fn get<T: Any + Send + Sync>(&self, name: &str, make: impl FnOnce() -> T) -> Arc<T> {
        // Held while it is made, so that who asks meanwhile waits and shares it; `make` must
        // therefore not ask the same cache. A panic in it leaves the list as it was, so poison says
        // nothing.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = among(&entries, name) {
            return found;
        }
        let made = Arc::new(make());
        entries.push((name.to_owned(), Arc::clone(&made) as Kept));
        made
    }

    /// What is called so, if it is there.
    pub(super) fn find<T: Any + Send + Sync>(&self, name: &str) -> Option<Arc<T>> {
        among(&self.0.lock().unwrap_or_else(PoisonError::into_inner), name)
    }
}

/// What is called so among these.
fn among<T: Any + Send + Sync>(entries: &[(String, Kept)], name: &str) -> Option<Arc<T>> {
    let (_, any) = entries.iter().find(|(known, _)| known == name)?;
    // Names say the type too, so what is found is of it.
    Arc::clone(any).downcast::<T>().ok()
}

/// A sparse matrix `[rows, columns]` in compressed sparse rows, with its transpose beside it.
///
/// The structure is shared: `with_values` makes a matrix with other values over the
/// same structure, which is how dropout of sparse features and edge weights come about without
/// touching the indices.
#[derive(Clone, Debug)]
pub struct SparseMatrix {
    structure: Arc<Structure>,
    values: Arc<[f32]>,
    cache: Cache,
}

/// Compressed sparse rows: entries of row `r` are `offsets[r]..offsets[r + 1]`.
#[derive(Debug, Default)]
pub struct Rows {
    /// `[rows + 1]`
    pub offsets: Vec<u32>,
    /// `[entries]`, column of each entry.
    pub columns: Vec<u32>,
    /// Boundaries of blocks of rows with about equally many entries: units of parallel work. A row
    /// of 16,384 entries or more is one by itself.
    pub blocks: Vec<usize>,
}

#[derive(Debug)]
struct Structure {
    columns: usize,
    forward: Rows,
    // Gradients read by column and nothing else does, so it is made when the first one asks.
    transposed: OnceLock<Transposed>,
    // Apart from that of values, as dropout makes new values in every step.
    cache: Cache,
}

/// The same entries by column.
#[derive(Debug)]
pub struct Transposed {
    /// The structure of the transpose.
    pub rows: Rows,
    /// `[entries]`, for each entry of the transpose its position in the matrix itself.
    pub positions: Vec<u32>,
    /// Where the transpose lies on devices.
    pub(super) cache: Cache,
}

/// A part of a matrix: some of its rows, which are numbered anew, and some of its columns, too.
#[derive(Debug)]
pub(crate) struct Tile {
    /// The part.
    pub matrix: Arc<SparseMatrix>,
    /// Which entries of these rows it has, if not all: ones, `[entries, entries of these rows]`.
    pub picks: Option<Arc<SparseMatrix>>,
}

/// Where a tile is in its matrix, whatever the values.
#[derive(Debug)]
struct Cut {
    /// The tile, all ones.
    matrix: SparseMatrix,
    picks: Option<Arc<SparseMatrix>>,
    /// `[entries]`, the position of each in the matrix.
    positions: Vec<u32>,
}

impl Tile {
    /// All of a matrix.
    pub(crate) fn whole(matrix: &Arc<SparseMatrix>) -> Self {
        Self {
            matrix: Arc::clone(matrix),
            picks: None,
        }
    }
}

/// Entries per block: long enough to outweigh the cost of handing a block to a thread.
// Rows are summed by themselves, so that no result depends on where blocks end.
const BLOCK_ENTRIES: usize = 2048;

/// Entries of a row that is shared between threads by its columns: in graphs with a power law one
/// row can outlast all others.
// Larger than a block, so that a hub always ends one; results depend on neither number.
pub(super) const HUB_ENTRIES: usize = 1 << 14;

impl Rows {
    fn new(offsets: Vec<u32>, columns: Vec<u32>) -> Self {
        let rows = offsets.len() - 1;
        let mut blocks = vec![0];
        let mut start = 0_usize;
        for row in 0..rows {
            let end = offsets[row + 1] as usize;
            // Ends the block before a hub; the next test ends the hub's own, which is longer than
            // any block.
            if end - offsets[row] as usize >= HUB_ENTRIES && start < row {
                start = row;
                blocks.push(start);
            }
            // Empty rows cost time too: each is written with zeros.
            if end - offsets[start] as usize + 8 * (row + 1 - start) >= BLOCK_ENTRIES {
                start = row + 1;
                blocks.push(start);
            }
        }
        if *blocks.last().unwrap_or(&0) < rows {
            blocks.push(rows);
        }
        Self {
            offsets,
            columns,
            blocks,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The entries of one row.
    pub fn entries(&self, row: usize) -> Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// The row of a block that is shared between threads by its columns, if it is such a one.
    pub(crate) fn hub(&self, block: &Range<usize>) -> Option<usize> {
        let alone = block.len() == 1 && self.entries(block.start).len() >= HUB_ENTRIES;
        alone.then_some(block.start)
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl SparseMatrix {
    /// A matrix from its compressed rows.
    ///
    /// # Panics
    /// If the arrays do not describe a `[offsets.len() - 1, columns]` matrix, or hold 2³² entries
    /// or more.
    pub fn new(columns: usize, offsets: &[usize], indices: Vec<u32>, values: Vec<f32>) -> Self {
        assert_eq!(indices.len(), values.len(), "one value per entry");
        assert_eq!(
            offsets.last().copied(),
            Some(indices.len()),
            "offsets end at the last entry"
        );
        // Offsets are 32 bits wide, as kernels on graphics devices read them.
        assert!(
            u32::try_from(indices.len()).is_ok(),
            "fewer than 2³² entries"
        );
        // Those kernels do not look again: an index past the end would read other memory.
        assert!(
            indices.iter().all(|&c| (c as usize) < columns),
            "columns are in range"
        );
        let offsets = offsets.iter().map(|&o| o as u32).collect();
        Self {
            structure: Arc::new(Structure {
                columns,
                forward: Rows::new(offsets, indices),
                transposed: OnceLock::new(),
                cache: Cache::default(),
            }),
            values: values.into(),
            cache: Cache::default(),
        }
    }

    /// The values of dense rows of so many columns that are not zero.
    ///
    /// # Panics
    /// As [`SparseMatrix::new`].
    pub(crate) fn of_dense(values: &[f32], columns: usize) -> Self {
        let rows: Vec<(Vec<u32>, Vec<f32>)> = (values.par_chunks(columns.max(1)))
            .map(|row| {
                let stored = (0_u32..).zip(row).filter(|&(_, &value)| value != 0.0);
                stored.map(|(column, &value)| (column, value)).unzip()
            })
            .collect();
        let mut offsets = vec![0];
        for (stored, _) in &rows {
            offsets.push(offsets[offsets.len() - 1] + stored.len());
        }
        let entries = offsets[rows.len()];
        let (mut indices, mut kept) = (Vec::with_capacity(entries), Vec::with_capacity(entries));
        for (stored, values) in rows {
            indices.extend(stored);
            kept.extend(values);
        }
        Self::new(columns, &offsets, indices, kept)
    }

    /// The same structure with other values, in the order of the entries.
    ///
    /// # Panics
    /// If there is not one value per entry.
    pub(crate) fn with_values(&self, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), self.entries(), "one value per entry");
        Self {
            structure: Arc::clone(&self.structure),
            values: values.into(),
            // What was made of the old values does not hold for these. What was made of the
            // structure does, and is shared.
            cache: Cache::default(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.structure.forward.len()
    }

    /// Number of rows of a product with it, or with its transpose.
    pub fn outputs(&self, transposed: bool) -> usize {
        if transposed {
            self.columns()
        } else {
            self.rows()
        }
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.structure.columns
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.values.len()
    }

    /// Values, in the order of the entries.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The structure by rows.
    pub fn by_row(&self) -> &Rows {
        &self.structure.forward
    }

    /// The structure by columns; made when first asked for.
    pub(crate) fn by_column(&self) -> &Transposed {
        self.structure
            .transposed
            .get_or_init(|| transpose(&self.structure.forward, self.columns()))
    }

    /// The first `rows` rows.
    pub fn head(&self, rows: usize) -> Self {
        let forward = self.by_row();
        let offsets: Vec<usize> = forward.offsets[..=rows]
            .iter()
            .map(|&o| o as usize)
            .collect();
        let end = offsets[rows];
        Self::new(
            self.columns(),
            &offsets,
            forward.columns[..end].to_vec(),
            self.values[..end].to_vec(),
        )
    }

    /// The given rows in the given order.
    ///
    /// # Panics
    /// If a row is out of range.
    pub fn select(&self, rows: &[u32]) -> Self {
        let forward = self.by_row();
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let entries = forward.entries(row as usize);
            columns.extend_from_slice(&forward.columns[entries.clone()]);
            values.extend_from_slice(&self.values[entries]);
            offsets.push(columns.len());
        }
        Self::new(self.columns(), &offsets, columns, values)
    }

    /// The matrix cut into stripes of so many rows, each with its stripes of so many columns; made
    /// when first asked for.
    pub(crate) fn tiles(self: &Arc<Self>, rows: usize, columns: usize) -> Arc<Vec<Vec<Tile>>> {
        if self.rows() <= rows && self.columns() <= columns {
            return Arc::new(vec![vec![Tile::whole(self)]]);
        }
        let key = format!("tiles {rows} × {columns}");
        // Cuts follow from the structure alone, so matrices with other values share them. Only
        // values are filled in anew.
        let cuts = self.structure.cache.get(&key, || {
            let stripe = |stripe: Range<usize>| {
                let within = |columns| self.cut(stripe.clone(), columns);
                stripes(self.columns(), columns).map(within).collect()
            };
            stripes(self.rows(), rows)
                .map(stripe)
                .collect::<Vec<Vec<Cut>>>()
        });
        let fill = |cut: &Cut| Tile {
            matrix: Arc::new(cut.matrix.with_values(self.values_at(&cut.positions))),
            picks: cut.picks.clone(),
        };
        self.cache.get(&key, || {
            (cuts.iter().map(|row| row.iter().map(fill).collect())).collect()
        })
    }

    fn values_at(&self, positions: &[u32]) -> Vec<f32> {
        let value = |&position: &u32| self.values[position as usize];
        positions.iter().map(value).collect()
    }

    fn cut(&self, rows: Range<usize>, columns: Range<usize>) -> Cut {
        let forward = self.by_row();
        let bounds = forward.offsets[rows.start] as usize..forward.offsets[rows.end] as usize;
        let (mut offsets, mut indices, mut positions) = (vec![0], Vec::new(), Vec::new());
        for row in rows {
            for entry in forward.entries(row) {
                let column = forward.columns[entry] as usize;
                if columns.contains(&column) {
                    indices.push((column - columns.start) as u32);
                    positions.push(entry as u32);
                }
            }
            offsets.push(indices.len());
        }
        let ones = vec![1.0; positions.len()];
        let picks = || {
            let local = positions.iter().map(|&entry| entry - bounds.start as u32);
            let each: Vec<usize> = (0..=positions.len()).collect();
            Arc::new(Self::new(
                bounds.len(),
                &each,
                local.collect(),
                ones.clone(),
            ))
        };
        Cut {
            // A tile of all columns has all entries of its rows: nothing to pick.
            picks: (columns.len() < self.columns()).then(picks),
            matrix: Self::new(columns.len(), &offsets, indices, ones),
            positions,
        }
    }

    pub(super) fn value_cache(&self) -> &Cache {
        &self.cache
    }

    pub(super) fn structure_cache(&self) -> &Cache {
        &self.structure.cache
    }
}

fn transpose(forward: &Rows, columns: usize) -> Transposed {
    let mut offsets = vec![0_u32; columns + 1];
    for &column in &forward.columns {
        offsets[column as usize + 1] += 1;
    }
    for column in 0..columns {
        offsets[column + 1] += offsets[column];
    }
    // A counting sort by column: linear, and stable, which the order of sums below relies on.
    let mut next = offsets.clone();
    let mut rows = vec![0_u32; forward.columns.len()];
    let mut positions = vec![0_u32; forward.columns.len()];
    // Row by row, so that entries of a column stay in the order of rows, which is that of sums.
    for row in 0..forward.len() {
        for entry in forward.offsets[row]..forward.offsets[row + 1] {
            let slot = &mut next[forward.columns[entry as usize] as usize];
            rows[*slot as usize] = row as u32;
            positions[*slot as usize] = entry;
            *slot += 1;
        }
    }
    Transposed {
        rows: Rows::new(offsets, rows),
        positions,
        cache: Cache::default(),
    }
}

/// Matrices for tests.
#[cfg(test)]
pub(super) mod drawn {
    use super::SparseMatrix;
    use crate::rng::mix;

    /// Values from −2 to 2.
    pub(crate) fn values(count: usize, seed: u64) -> Vec<f32> {
        let draw = |at: usize| mix(seed, at as u64) % 2001;
        (0..count).map(|at| draw(at) as f32 / 500.0 - 2.0).collect()
    }

    /// Rows with so many entries, in any columns, the same one more than once too.
    pub(crate) fn matrix(lengths: &[usize], columns: usize, seed: u64) -> SparseMatrix {
        let mut offsets = vec![0];
        for length in lengths {
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let entries = offsets[lengths.len()];
        let column = |at: usize| (mix(!seed, at as u64) % columns as u64) as u32;
        let indices = (0..entries).map(column).collect();
        SparseMatrix::new(columns, &offsets, indices, values(entries, seed))
    }
}
