//! Rows of features that are not held as they are used: in half precision, or in their file.

use std::fmt;
use std::sync::Arc;

use half::f16;

use super::mapped::Mapped;

/// Dense rows, `[rows, width]`, that are decoded where they are gathered. Copies and choices of
/// rows share the values.
#[derive(Clone)]
pub struct CodedRows {
    width: usize,
    source: Source,
    /// Rows of the source in the order that they have here; all in their own order where this is
    /// none.
    picked: Option<Vec<u32>>,
    /// Values of rows that were appended behind them, `[appended * width]`.
    appended: Vec<f32>,
}

#[derive(Clone)]
enum Source {
    Half(Arc<Vec<f16>>),
    File(Arc<Mapped<f32>>),
}

impl CodedRows {
    /// So many rows in half precision.
    ///
    /// # Errors
    /// The place of the first value that half precision does not hold.
    pub(crate) fn half(
        rows: usize,
        width: usize,
        values: impl Iterator<Item = f32>,
    ) -> Result<Self, usize> {
        let mut narrow = Vec::with_capacity(rows * width);
        for (place, value) in values.enumerate() {
            let value = f16::from_f32(value);
            if !value.is_finite() {
                return Err(place);
            }
            narrow.push(value);
        }
        Ok(Self::of(width, Source::Half(Arc::new(narrow))))
    }

    /// Rows in a file.
    pub(crate) fn mapped(width: usize, values: Mapped<f32>) -> Self {
        Self::of(width, Source::File(Arc::new(values)))
    }

    const fn of(width: usize, source: Source) -> Self {
        Self {
            width,
            source,
            picked: None,
            appended: Vec::new(),
        }
    }

    /// Number of columns.
    pub const fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.of_source() + self.appended.len() / self.width.max(1)
    }

    /// Rows that are not appended.
    fn of_source(&self) -> usize {
        let all = match &self.source {
            Source::Half(values) => values.len(),
            Source::File(values) => values.len(),
        };
        let whole = all / self.width.max(1);
        self.picked.as_ref().map_or(whole, Vec::len)
    }

    /// Whether every value, where it is held, has half precision: none was appended.
    pub(crate) fn is_half(&self) -> bool {
        let half = match &self.source {
            Source::Half(_) => true,
            // Whole numbers may have two bytes, too.
            Source::File(values) => values.means(f16::ONE.to_le_bytes()) == Some(1.0),
        };
        half && self.appended.is_empty()
    }

    /// Whether the values are in a file, and not in memory.
    pub(crate) const fn is_mapped(&self) -> bool {
        matches!(self.source, Source::File(_))
    }

    /// Bytes that a value takes in memory.
    pub(crate) const fn value_bytes(&self) -> usize {
        match self.source {
            Source::Half(_) => size_of::<f16>(),
            Source::File(_) => 0,
        }
    }

    /// Writes one row into `target`, `[width]`.
    ///
    /// # Panics
    /// If the row is out of range or `target` has another length than the width.
    pub(crate) fn copy_row_into(&self, row: usize, target: &mut [f32]) {
        let (width, own) = (self.width, self.of_source());
        assert_eq!(target.len(), width, "the target is one row wide");
        if row >= own {
            target.copy_from_slice(&self.appended[(row - own) * width..][..width]);
            return;
        }
        let row = self.picked.as_ref().map_or(row, |rows| rows[row] as usize);
        match &self.source {
            Source::Half(values) => {
                for (target, value) in target.iter_mut().zip(&values[row * width..][..width]) {
                    *target = value.to_f32();
                }
            }
            Source::File(values) => {
                for (target, value) in target.iter_mut().zip(values.values(row * width, width)) {
                    *target = value;
                }
            }
        }
    }

    /// The given rows in the given order.
    ///
    /// # Panics
    /// If a row is out of range.
    pub(crate) fn select(&self, nodes: &[u32]) -> Self {
        let own = self.of_source();
        // A row that was appended has no place in the source; only the order of both is general.
        if nodes.iter().any(|&node| node as usize >= own) {
            let mut rows = Self {
                picked: Some(Vec::new()),
                appended: Vec::with_capacity(nodes.len() * self.width),
                ..Self::of(self.width, self.source.clone())
            };
            rows.append(&self.decoded(nodes.iter().map(|&node| node as usize)));
            return rows;
        }
        let of_source = |&node: &u32| self.picked.as_ref().map_or(node, |all| all[node as usize]);
        Self {
            picked: Some(nodes.iter().map(of_source).collect()),
            ..Self::of(self.width, self.source.clone())
        }
    }

    /// Appends rows, `[rows * width]`, which are kept as they are.
    pub(crate) fn append(&mut self, rows: &[f32]) {
        self.appended.extend_from_slice(rows);
    }

    /// Makes room for so many more rows, and for no others.
    pub(crate) fn reserve(&mut self, rows: usize) {
        self.appended.reserve_exact(rows * self.width);
    }

    /// The values of these rows, one row after another.
    ///
    /// # Panics
    /// If a row is out of range.
    pub(crate) fn decoded(&self, rows: impl ExactSizeIterator<Item = usize>) -> Vec<f32> {
        let mut values = vec![0.0; rows.len() * self.width];
        for (row, target) in rows.zip(values.chunks_exact_mut(self.width.max(1))) {
            self.copy_row_into(row, target);
        }
        values
    }

    /// All values, row by row, of which one row is decoded at a time.
    pub(crate) fn each_value(&self) -> impl Iterator<Item = f32> + '_ {
        (0..self.rows()).flat_map(|row| self.decoded(std::iter::once(row)))
    }
}

impl PartialEq for CodedRows {
    fn eq(&self, other: &Self) -> bool {
        self.width == other.width
            && self.rows() == other.rows()
            && self.each_value().eq(other.each_value())
    }
}

impl fmt::Debug for CodedRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = if self.is_mapped() { "file" } else { "half" };
        f.debug_struct("CodedRows")
            .field("held", &held)
            .field("rows", &self.rows())
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> CodedRows {
        CodedRows::half(4, 2, (0_u8..8).map(f32::from)).unwrap()
    }

    #[test]
    fn rows_are_chosen_from_what_was_chosen_and_what_was_appended() {
        let mut some = rows().select(&[3, 1]);
        assert_eq!(some.decoded(0..2), [6.0, 7.0, 2.0, 3.0]);
        some.append(&[0.1, 0.2]);
        assert_eq!(some.rows(), 3);
        // Appended rows are not rounded.
        assert_eq!(some.select(&[2, 0]).decoded(0..2), [0.1, 0.2, 6.0, 7.0]);
        assert_eq!(some.select(&[1]).decoded(0..1), [2.0, 3.0]);
        assert_eq!(rows().select(&[0, 1, 2, 3]), rows());
        assert_ne!(some, rows());
    }

    #[test]
    fn a_value_is_rounded_once_and_one_beyond_the_range_is_found() {
        let exact = [1.0 / 3.0, -0.1, 65_504.0, 6e-8, 0.0];
        let coded = CodedRows::half(1, 5, exact.into_iter()).unwrap();
        for (coded, exact) in coded.each_value().zip(exact) {
            // Eleven bits: half a unit in the last place; below 2⁻¹⁴ a fixed step of 2⁻²⁴.
            let most = (exact.abs() * 2_f32.powi(-11)).max(2_f32.powi(-25));
            assert!((coded - exact).abs() <= most, "{coded} {exact}");
        }
        let again = CodedRows::half(1, 5, coded.each_value()).unwrap();
        assert_eq!(coded, again);
        assert_eq!(CodedRows::half(2, 1, [1.0, 65_520.0].into_iter()), Err(1));
    }
}
