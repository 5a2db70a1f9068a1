//! Where the entries of a packed matrix lie.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::model::sparse::Rows;

/// Rows of `x` that a slab reads: with 64 columns 24 KB, in the first cache of most.
// Places are bytes. No bits depend on it: slabs go by in the order of the entries.
pub(super) const DEPTH: usize = 96;

/// Entries of a row in a slab, on average, from which this pays.
const PAYS: usize = 8;

/// Where the entries of a matrix, or of its transpose, lie slab by slab, whatever their values.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Rows of the result of a product.
    pub rows: usize,
    /// Rows of what it is multiplied with.
    pub inner: usize,
    /// One for each 96 of these.
    pub slabs: Vec<Slab>,
}

/// The entries of all rows in 96 columns.
#[derive(Debug)]
pub(crate) struct Slab {
    /// `[rows + 1]`: the entries of row `r` are `ends[r]..ends[r + 1]`.
    pub ends: Vec<u32>,
    /// `[entries]`: column of each, from the slab's first.
    pub places: Vec<u8>,
    /// `[rows]`: where the entries of a row begin in the matrix; none for a transpose, in which
    /// they do not lie together.
    starts: Vec<u32>,
}

/// A matrix, or its transpose, slab by slab.
#[derive(Debug)]
pub(crate) struct Packed {
    /// Where its values belong.
    pub layout: Arc<Layout>,
    /// Of each slab, one for each entry; none at all where each is 1, as in bags of words.
    pub values: Vec<Vec<f32>>,
}

/// The layouts of a matrix `[rows, columns]` and of its transpose; none where they would not pay,
/// or where columns of a row are not in their order, which is that of its sum.
pub(super) fn layouts(rows: &Rows, columns: usize) -> Option<[Arc<Layout>; 2]> {
    let each = rows.len() * columns.div_ceil(DEPTH);
    let ordered = |row: usize| {
        let columns = &rows.columns[rows.entries(row)];
        columns.is_sorted_by(|a, b| a < b)
    };
    if each == 0 || rows.columns.len() / each < PAYS || !(0..rows.len()).all(ordered) {
        return None;
    }
    let transposed = Layout::transposed(rows, columns);
    Some([Arc::new(Layout::new(rows, columns)), Arc::new(transposed)])
}

impl Layout {
    fn new(rows: &Rows, columns: usize) -> Self {
        let slab = |number: usize| {
            let first = (number * DEPTH) as u32;
            let (mut ends, mut places, mut starts) = (vec![0], Vec::new(), Vec::new());
            for row in 0..rows.len() {
                let entries = rows.entries(row);
                let all = &rows.columns[entries.clone()];
                let before = all.partition_point(|&column| column < first);
                let within = all[before..].iter();
                let within = within.take_while(|&&column| column - first < DEPTH as u32);
                places.extend(within.map(|&column| (column - first) as u8));
                ends.push(places.len() as u32);
                starts.push((entries.start + before) as u32);
            }
            Slab {
                ends,
                places,
                starts,
            }
        };
        Self {
            rows: rows.len(),
            inner: columns,
            slabs: (0..columns.div_ceil(DEPTH))
                .into_par_iter()
                .map(slab)
                .collect(),
        }
    }

    fn transposed(rows: &Rows, columns: usize) -> Self {
        let slab = |number: usize| {
            let range = deep(number, rows.len());
            let mut ends = vec![0_u32; columns + 1];
            let entries = rows.offsets[range.start] as usize..rows.offsets[range.end] as usize;
            for &column in &rows.columns[entries.clone()] {
                ends[column as usize + 1] += 1;
            }
            for column in 0..columns {
                ends[column + 1] += ends[column];
            }
            let mut places = vec![0; entries.len()];
            each_transposed(rows, range, &ends, |slot, place, _| {
                places[slot] = place as u8;
            });
            Slab {
                ends,
                places,
                starts: Vec::new(),
            }
        };
        Self {
            rows: columns,
            inner: rows.len(),
            slabs: (0..rows.len().div_ceil(DEPTH))
                .into_par_iter()
                .map(slab)
                .collect(),
        }
    }
}

/// Rows of `x` that a slab reads, of so many.
pub(super) fn deep(number: usize, inner: usize) -> Range<usize> {
    number * DEPTH..((number + 1) * DEPTH).min(inner)
}

/// Tells for each entry of these rows where it is in the slab of the transpose that ends so, its
/// row from the slab's first on, and its number.
fn each_transposed(
    rows: &Rows,
    range: Range<usize>,
    ends: &[u32],
    mut tell: impl FnMut(usize, usize, usize),
) {
    let mut next = ends.to_vec();
    // Row by row, so that entries of a column stay in the order of rows, which is that of sums.
    for (place, row) in range.enumerate() {
        for entry in rows.entries(row) {
            let slot = &mut next[rows.columns[entry] as usize];
            tell(*slot as usize, place, entry);
            *slot += 1;
        }
    }
}

impl Packed {
    /// The entries of a layout of `rows`, with these values of theirs.
    pub(crate) fn new(layout: &Arc<Layout>, rows: &Rows, values: &[f32], transposed: bool) -> Self {
        let layout = Arc::clone(layout);
        if values.iter().all(|&value| value == 1.0) {
            let values = Vec::new();
            return Self { layout, values };
        }
        let of_slab = |(number, slab): (usize, &Slab)| {
            if transposed {
                let mut found = vec![0.0; slab.places.len()];
                let range = deep(number, rows.len());
                each_transposed(rows, range, &slab.ends, |slot, _, entry| {
                    found[slot] = values[entry];
                });
                return found;
            }
            let mut found = Vec::with_capacity(slab.places.len());
            for (&start, ends) in slab.starts.iter().zip(slab.ends.windows(2)) {
                let count = (ends[1] - ends[0]) as usize;
                found.extend_from_slice(&values[start as usize..][..count]);
            }
            found
        };
        let slabs = layout.slabs.par_iter().enumerate();
        let values = slabs.map(of_slab).collect();
        Self { layout, values }
    }
}
