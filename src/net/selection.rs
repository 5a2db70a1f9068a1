//! Codecs that keep some entries of every row: which ones, and how the kept values are carried.
//!
//! A [`Selection`] says which. On its own it is a [`Codec`] that carries the kept values as they
//! are; in a [`Compose`](super::Compose) another codec carries them.

use super::codec::{check_length, floats, to_bytes};
use super::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, f32_bytes};

/// Columns kept of each row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// The same of all rows, `[kept]`.
    Same(Vec<u32>),
    /// Each row's own, row after row, `[rows, kept]`.
    Each(Vec<u32>),
}

impl Columns {
    /// Kept columns of one row.
    fn of(&self, row: usize, kept: usize) -> &[u32] {
        match self {
            Self::Same(columns) => columns,
            Self::Each(columns) => &columns[row * kept..(row + 1) * kept],
        }
    }
}

/// A choice of the same number of entries of every row; the others decode as zero.
pub trait Selection: Codec {
    /// Its name in tables: kind and options.
    fn label(&self) -> String;

    /// Width of a row over what is sent of it, 1 or more; any other number keeps rows whole.
    fn ratio(&self) -> f64;

    /// Number k of entries kept of a row of `width`: at least 1 and at most all.
    fn kept(&self, width: usize) -> usize {
        kept_at(self.ratio(), width)
    }

    /// Whether rows of any width are kept whole.
    fn is_whole(&self) -> bool {
        self.ratio() <= 1.0
    }

    /// Whether decoded values are multiplied by n/k.
    fn rescales(&self) -> bool {
        false
    }

    /// What decoded values are multiplied by.
    fn factor(&self, width: usize) -> f32 {
        if !self.rescales() {
            return 1.0;
        }
        (width as f64 / self.kept(width).max(1) as f64) as f32
    }

    /// Which entries of `rows` are kept, if not all are.
    fn choose(&self, rows: &Rows<'_>, key: CodecKey) -> Columns;

    /// Bytes that tell the receiver which entries were kept; none where it can work that out.
    fn index_bytes(&self, _rows: usize, _width: usize) -> usize {
        0
    }

    /// Those bytes.
    fn index(&self, _columns: &Columns, _width: usize) -> Vec<u8> {
        Vec::new()
    }

    /// What the sender chose of rows of the shape `[rows, width]`, from [`Selection::index_bytes`]
    /// bytes.
    ///
    /// # Errors
    /// [`NetError::Corrupt`] if [`Selection::index`] cannot have made them.
    fn recall(&self, index: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Columns, NetError>;

    /// Whether E\[x̃\] = x for every row, over keys.
    fn is_unbiased(&self) -> bool {
        self.rescales() || self.is_whole()
    }

    /// Expected error of rows of `width` floats.
    fn error(&self, width: usize) -> RelativeError;
}

/// Entries that a ratio leaves of a row of `width`: `⌊width/ratio⌋`, at least 1 (VARCO's code would
/// send nothing where the ratio exceeds the width, and so would never learn), at most all. A ratio
/// that is not a number of at least 1 leaves all.
fn kept_at(ratio: f64, width: usize) -> usize {
    // The cast saturates, which is what is wanted.
    ((width as f64 / ratio.max(f64::MIN_POSITIVE)) as usize)
        .clamp(1, width.max(1))
        .min(width)
}

/// Errors of k entries kept at random of n: plain 1 − k/n, rescaled by n/k n/k − 1.
pub(super) fn random_error(kept: usize, width: usize, rescale: bool) -> RelativeError {
    let (n, k) = (width.max(1) as f64, kept.max(1) as f64);
    RelativeError::Exact(if rescale { n / k - 1.0 } else { 1.0 - k / n })
}

/// The first stage of encoding: the index, and the kept values, `[rows, kept]`.
pub(super) fn split(
    selection: &dyn Selection,
    rows: &Rows<'_>,
    key: CodecKey,
) -> (Vec<u8>, Vec<f32>) {
    let kept = selection.kept(rows.width());
    let columns = selection.choose(rows, key);
    let mut values = Vec::with_capacity(rows.rows() * kept);
    for (number, row) in rows.iter().enumerate() {
        values.extend(columns.of(number, kept).iter().map(|&c| row[c as usize]));
    }
    (selection.index(&columns, rows.width()), values)
}

/// The last stage of decoding: kept values back at their places, `[rows, width]`.
pub(super) fn join(
    selection: &dyn Selection,
    index: &[u8],
    values: impl Iterator<Item = f32>,
    shape: [usize; 2],
    key: CodecKey,
) -> Result<Vec<f32>, NetError> {
    let [rows, width] = shape;
    let kept = selection.kept(width);
    let factor = selection.factor(width);
    let columns = selection.recall(index, shape, key)?;
    let mut all = vec![0.0; rows * width];
    let mut values = values;
    for (number, row) in all.chunks_exact_mut(width.max(1)).enumerate() {
        for (&column, value) in columns.of(number, kept).iter().zip(&mut values) {
            row[column as usize] = value * factor;
        }
    }
    Ok(all)
}

/// The kept values as they are: [`Selection::index_bytes`], then 4·rows·k bytes, row after row.
impl<S: Selection> Codec for S {
    fn name(&self) -> String {
        self.label()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        let values = f32_bytes(rows) * self.kept(width) as u64;
        if self.kept(width) == width {
            return values;
        }
        values + Bytes(self.index_bytes(rows, width) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, key: CodecKey) -> Vec<u8> {
        // Rows as they lie: an order that was drawn would only be undone by the receiver.
        if self.kept(rows.width()) == rows.width() {
            return to_bytes(rows.values());
        }
        let (mut bytes, values) = split(self, rows, key);
        bytes.append(&mut to_bytes(&values));
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        if self.kept(width) == width {
            return Ok(floats(bytes).collect());
        }
        let (index, values) = bytes.split_at(self.index_bytes(rows, width));
        join(self, index, floats(values), shape, key)
    }

    fn is_lossless(&self) -> bool {
        self.is_whole()
    }

    fn is_biased(&self) -> bool {
        !self.is_unbiased()
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        self.error(width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_leaves_the_floor_of_width_over_ratio_but_never_nothing() {
        for (width, ratio, kept) in [
            (128, 4.0, 32),
            (100, 3.0, 33),
            (100, 128.0, 1),
            (47, 1.0, 47),
            (128, 106.7, 1),
            (0, 2.0, 0),
        ] {
            assert_eq!(kept_at(ratio, width), kept, "{width} / {ratio}");
        }
        for strange in [0.0, -1.0, 0.5, f64::NAN] {
            assert_eq!(kept_at(strange, 10), 10, "{strange}");
        }
        assert_eq!(kept_at(f64::INFINITY, 10), 1);
    }
}
