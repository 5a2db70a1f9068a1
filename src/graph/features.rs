//! Node features, dense or sparse.

use rayon::prelude::*;

use super::coded::CodedRows;

/// One row of numbers per node, `[nodes, width]`. Bags of words stay sparse from the file to the
/// first layer: Cora's are 1.3 % full, so the dense form would be 60 times as large.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// All values, row by row.
    Dense {
        /// Number of columns, at least 1.
        width: usize,
        /// `[rows * width]`.
        values: Vec<f32>,
    },
    /// The values that are stored, row by row.
    Sparse(SparseRows),
    /// Dense rows that are decoded where they are gathered.
    Coded(CodedRows),
}

/// Rows of which not all values are stored; the others are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows {
    /// Number of columns.
    pub width: usize,
    /// Where each row starts, `[rows + 1]`.
    pub offsets: Vec<usize>,
    /// Columns of the stored values, ascending within a row, `[stored]`.
    pub columns: Vec<u32>,
    /// The stored values, `[stored]`.
    pub values: Vec<f32>,
}

impl SparseRows {
    /// Columns and values that are stored of a row.
    pub(crate) fn row(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// How many values are stored of each row.
    pub(crate) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.offsets.windows(2).map(|ends| ends[1] - ends[0])
    }
}

/// Below this share of non-zero values the sparse form is smaller and faster.
const SPARSE_BELOW: f64 = 0.1;

/// From this share of stored values on the dense product is faster than the sparse one: it does
/// several times as many multiply-adds a second.
const DENSE_FROM: f64 = 0.2;

/// Rows that a thread gathers before it asks for others.
const ROWS_AT_A_TIME: usize = 256;

/// Values that are looked at together when zeros are passed over.
const ZEROS: usize = 16;

impl Features {
    /// No features at all (`width` 0) for a graph that is topology only.
    pub fn none(rows: usize) -> Self {
        Self::Sparse(SparseRows {
            width: 0,
            offsets: vec![0; rows + 1],
            columns: vec![],
            values: vec![],
        })
    }

    /// The identity matrix: each node its own feature, for labelled data without features (Kipf and
    /// Welling, 2017, do this for NELL and Zachary's club).
    pub fn identity(rows: usize) -> Self {
        Self::Sparse(SparseRows {
            width: rows,
            offsets: (0..=rows).collect(),
            // A node id is a `u32` everywhere, so the range holds every row.
            columns: (0_u32..).take(rows).collect(),
            values: vec![1.0; rows],
        })
    }

    /// A sparse matrix from the (column, value) pairs of each row in any order. The last of several
    /// values for one place counts.
    pub(crate) fn from_rows(width: usize, rows: impl Iterator<Item = Vec<(u32, f32)>>) -> Self {
        let (mut offsets, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for mut row in rows {
            // A stable sort: of several values for one place the last one must stay the last.
            row.sort_by_key(|&(column, _)| column);
            for (column, value) in row {
                // An equal column before it counts only if it is of this row.
                if columns.len() > offsets[offsets.len() - 1] && columns.last() == Some(&column) {
                    values.pop();
                    columns.pop();
                }
                columns.push(column);
                values.push(value);
            }
            offsets.push(columns.len());
        }
        Self::Sparse(SparseRows {
            width,
            offsets,
            columns,
            values,
        })
    }

    /// The sparse form where less than a tenth of a dense matrix is non-zero, else the matrix as it
    /// is.
    pub(crate) fn compact(self) -> Self {
        match self {
            Self::Dense { width, values } => {
                let filled = values.iter().filter(|&&value| value != 0.0).count();
                if (filled as f64) >= SPARSE_BELOW * values.len() as f64 {
                    return Self::Dense { width, values };
                }
                let rows = values.chunks_exact(width).map(|row| {
                    let stored = (0_u32..).zip(row).filter(|&(_, &value)| value != 0.0);
                    stored.map(|(column, &value)| (column, value)).collect()
                });
                Self::from_rows(width, rows)
            }
            Self::Coded(rows) => {
                let (count, width) = (rows.rows(), rows.width());
                let filled = rows.each_value().filter(|&value| value != 0.0).count();
                if (filled as f64) >= SPARSE_BELOW * (count * width) as f64 {
                    return Self::Coded(rows);
                }
                let stored = |row| {
                    let values = rows.decoded(std::iter::once(row));
                    let stored = (0_u32..).zip(values).filter(|&(_, value)| value != 0.0);
                    stored.collect()
                };
                Self::from_rows(width, (0..count).map(stored))
            }
            sparse @ Self::Sparse(_) => sparse,
        }
    }

    /// Dense rows in half precision, each value rounded; the sparse form as it is.
    ///
    /// # Errors
    /// Row and column of the first value beyond what half precision holds.
    pub fn halved(self) -> Result<Self, (usize, usize)> {
        let (rows, width) = (self.rows(), self.width());
        let half = match &self {
            Self::Dense { values, .. } => CodedRows::half(rows, width, values.iter().copied()),
            Self::Coded(coded) => CodedRows::half(rows, width, coded.each_value()),
            Self::Sparse(_) => return Ok(self),
        };
        half.map(Self::Coded)
            .map_err(|place| (place / width, place % width))
    }

    /// The dense form where a fifth of the values or more are stored, else the matrix as it is.
    pub(crate) fn expanded(self) -> Self {
        if self.density() < DENSE_FROM {
            return self;
        }
        let nodes: Vec<u32> = (0..self.rows()).map(|row| row as u32).collect();
        match &self {
            Self::Dense { .. } | Self::Coded(_) => self,
            Self::Sparse(sparse) => Self::Dense {
                width: sparse.width,
                values: self.dense_rows(&nodes),
            },
        }
    }

    /// Whether all values are stored.
    pub(crate) const fn is_dense(&self) -> bool {
        matches!(self, Self::Dense { .. } | Self::Coded(_))
    }

    /// Whether values are here, and not only how many of each row are stored.
    pub(crate) fn has_values(&self) -> bool {
        match self {
            Self::Sparse(rows) => rows.offsets.last() == Some(&rows.values.len()),
            Self::Dense { .. } | Self::Coded(_) => true,
        }
    }

    /// Whether the values are in a file, and not in memory.
    pub(crate) const fn is_mapped(&self) -> bool {
        matches!(self, Self::Coded(rows) if rows.is_mapped())
    }

    /// Bytes that a stored value takes in memory, with its column where that is stored.
    pub(crate) const fn value_bytes(&self) -> usize {
        match self {
            Self::Dense { .. } => size_of::<f32>(),
            Self::Sparse(_) => size_of::<f32>() + size_of::<u32>(),
            Self::Coded(rows) => rows.value_bytes(),
        }
    }

    /// Bytes that all of them take in memory.
    pub(crate) fn bytes(&self) -> usize {
        let values = match self {
            Self::Dense { values, .. } | Self::Sparse(SparseRows { values, .. }) => values.len(),
            Self::Coded(rows) if rows.is_mapped() => 0,
            Self::Coded(rows) => rows.rows() * rows.width(),
        };
        values * self.value_bytes()
    }

    /// Number of values that are stored of a row.
    pub(crate) fn stored_of(&self, row: u32) -> usize {
        match self {
            Self::Dense { width, .. } => *width,
            Self::Coded(rows) => rows.width(),
            Self::Sparse(SparseRows { offsets, .. }) => {
                offsets[row as usize + 1] - offsets[row as usize]
            }
        }
    }

    /// Number of nodes.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense { width, values } => values.len() / width,
            Self::Coded(rows) => rows.rows(),
            Self::Sparse(sparse) => sparse.offsets.len() - 1,
        }
    }

    /// Number of columns.
    pub const fn width(&self) -> usize {
        match self {
            Self::Dense { width, .. } | Self::Sparse(SparseRows { width, .. }) => *width,
            Self::Coded(rows) => rows.width(),
        }
    }

    /// The stored values in single precision; none of rows that have to be decoded.
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Dense { values, .. } | Self::Sparse(SparseRows { values, .. }) => values,
            Self::Coded(_) => &[],
        }
    }

    /// Number of values that are not zero.
    pub(crate) fn filled(&self) -> usize {
        match self {
            Self::Dense { values, .. } | Self::Sparse(SparseRows { values, .. }) => {
                values.iter().filter(|&&value| value != 0.0).count()
            }
            Self::Coded(rows) => rows.each_value().filter(|&value| value != 0.0).count(),
        }
    }

    /// The first stored value that is not a finite number: its row, its column, and what it is.
    pub(crate) fn first_not_finite(&self) -> Option<(usize, usize, f32)> {
        if let Self::Coded(rows) = self {
            let mut values = rows.each_value().enumerate();
            let (place, value) = values.find(|(_, value)| !value.is_finite())?;
            return Some((place / rows.width(), place % rows.width(), value));
        }
        let place = self.values().iter().position(|value| !value.is_finite())?;
        let value = self.values()[place];
        Some(match self {
            Self::Dense { width, .. } => (place / width, place % width, value),
            Self::Sparse(sparse) => {
                // Empty rows start where the next one does: of equal starts the last is that of the
                // row.
                let row = sparse.offsets.partition_point(|&start| start <= place) - 1;
                (row, sparse.columns[place] as usize, value)
            }
            Self::Coded(_) => return None,
        })
    }

    /// Share of values that are stored, in [0, 1]; 1 for the dense form.
    pub(crate) fn density(&self) -> f64 {
        match self.rows() * self.width() {
            0 => 0.0,
            _ if self.is_dense() => 1.0,
            all => self.values().len() as f64 / all as f64,
        }
    }

    /// Whether this is counted or weighted words: sparse, and no value negative.
    pub(crate) fn is_bag_of_words(&self) -> bool {
        matches!(self, Self::Sparse(rows) if rows.values.iter().all(|&value| value >= 0.0))
    }

    /// The dense form of rows that have to be decoded, else the matrix as it is.
    pub(crate) fn decoded(self) -> Self {
        match self {
            Self::Coded(rows) => Self::Dense {
                width: rows.width(),
                values: rows.decoded(0..rows.rows()),
            },
            plain => plain,
        }
    }

    /// Divides each row by its sum (Kipf and Welling, 2017). Rows with sum 0 stay as they are.
    /// Coded rows become dense.
    pub(crate) fn row_normalise(&mut self) {
        let divide = |row: &mut [f32]| {
            // In double precision, so that the sum does not depend on how a row is stored.
            let sum: f64 = row.iter().map(|&value| f64::from(value)).sum();
            if sum != 0.0 {
                for value in row {
                    *value = (f64::from(*value) / sum) as f32;
                }
            }
        };
        if let Self::Coded(_) = self {
            *self = self.clone().decoded();
        }
        match self {
            // Decoded above.
            Self::Coded(_) => {}
            Self::Dense { width, values } => values.chunks_exact_mut(*width).for_each(divide),
            Self::Sparse(sparse) => {
                for range in sparse.offsets.windows(2) {
                    divide(&mut sparse.values[range[0]..range[1]]);
                }
            }
        }
    }

    /// The given rows in the given order, `[nodes.len(), width]`.
    ///
    /// # Panics
    /// If a row is out of range.
    pub fn select(&self, nodes: &[u32]) -> Self {
        match self {
            Self::Coded(rows) => Self::Coded(rows.select(nodes)),
            Self::Dense { width, values } => {
                let count = nodes.len() * width;
                let mut picked = Vec::with_capacity(count);
                // Not cleared before: one thread would take as long for that as all for the rows.
                let rows = picked.spare_capacity_mut()[..count]
                    .par_chunks_exact_mut(*width)
                    .with_min_len(ROWS_AT_A_TIME);
                rows.zip(nodes).for_each(|(row, &node)| {
                    row.write_copy_of_slice(&values[node as usize * width..][..*width]);
                });
                // SAFETY: there is room for `count` values, in rows that have all been written.
                #[allow(unsafe_code)]
                unsafe {
                    picked.set_len(count);
                }
                Self::Dense {
                    width: *width,
                    values: picked,
                }
            }
            Self::Sparse(sparse) => {
                let mut offsets = vec![0];
                let (mut picked, mut weights) = (Vec::new(), Vec::new());
                for &node in nodes {
                    let (columns, values) = sparse.row(node as usize);
                    picked.extend_from_slice(columns);
                    weights.extend_from_slice(values);
                    offsets.push(picked.len());
                }
                Self::Sparse(SparseRows {
                    width: sparse.width,
                    offsets,
                    columns: picked,
                    values: weights,
                })
            }
        }
    }

    /// The given rows in the given order, dense, `[nodes.len() * width]`: how features travel.
    ///
    /// # Panics
    /// If a row is out of range.
    pub fn dense_rows(&self, nodes: &[u32]) -> Vec<f32> {
        let width = self.width();
        let mut dense = vec![0.0; nodes.len() * width];
        // Topology alone has no columns, and chunks of none are a panic.
        for (&node, target) in nodes.iter().zip(dense.chunks_exact_mut(width.max(1))) {
            self.copy_row_into(node as usize, target);
        }
        dense
    }

    /// Makes room for so many more rows, and for no others; none where how much they take depends
    /// on what they are.
    pub(crate) fn reserve(&mut self, rows: usize) {
        match self {
            Self::Coded(before) => before.reserve(rows),
            Self::Dense { width, values } => values.reserve_exact(rows * *width),
            Self::Sparse(_) => {}
        }
    }

    /// Appends dense rows, `[rows * width]`, in the form of the rows that are here: zeros are
    /// dropped from the sparse form, and nothing is rounded.
    pub fn append(&mut self, rows: &[f32]) {
        match self {
            Self::Coded(before) => before.append(rows),
            Self::Dense { values, .. } => values.extend_from_slice(rows),
            Self::Sparse(sparse) => {
                for row in rows.chunks_exact(sparse.width.max(1)) {
                    // Mostly zeros, which are passed over several at a time.
                    for (first, group) in (0_u32..).step_by(ZEROS).zip(row.chunks(ZEROS)) {
                        // All bits at once: none is set where all are zeros, and −0 and what is no
                        // number have some.
                        if group.iter().fold(0, |bits, value| bits | value.to_bits()) == 0 {
                            continue;
                        }
                        for (column, &value) in (first..).zip(group) {
                            if value != 0.0 {
                                sparse.columns.push(column);
                                sparse.values.push(value);
                            }
                        }
                    }
                    sparse.offsets.push(sparse.columns.len());
                }
            }
        }
    }

    /// Writes one row into `target`, `[width]`, zeros included.
    ///
    /// # Panics
    /// If the row is out of range or `target` has another length than the width.
    pub(crate) fn copy_row_into(&self, row: usize, target: &mut [f32]) {
        match self {
            Self::Coded(rows) => rows.copy_row_into(row, target),
            Self::Dense { width, values } => {
                target.copy_from_slice(&values[row * width..][..*width]);
            }
            Self::Sparse(sparse) => {
                assert_eq!(target.len(), sparse.width, "the target is one row wide");
                target.fill(0.0);
                let (columns, values) = sparse.row(row);
                for (&column, &value) in columns.iter().zip(values) {
                    target[column as usize] = value;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
