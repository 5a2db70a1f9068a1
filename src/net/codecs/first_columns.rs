//! The first part of the columns: what a wise choice should be better than.

use super::draw::all_columns;
use crate::net::{CodecKey, Columns, NetError, RelativeError, Rows, Selection};

/// Keeps the first k = ⌊n / ratio⌋ columns, at least 1: always the same, so the others are never
/// heard of. Biased; E‖x̃ − x‖² ≤ ‖x‖², and no better for rows that live in the other columns.
///
/// Encoded: 4·rows·k bytes, row after row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstColumns {
    /// Width of a row over columns sent, 1 or more. Any other number sends all columns.
    pub ratio: f64,
}

impl Selection for FirstColumns {
    fn label(&self) -> String {
        format!("first_columns(ratio={})", self.ratio)
    }

    fn ratio(&self) -> f64 {
        self.ratio
    }

    fn choose(&self, rows: &Rows<'_>, _key: CodecKey) -> Columns {
        Columns::Same(all_columns(self.kept(rows.width())))
    }

    fn recall(
        &self,
        _index: &[u8],
        [_, width]: [usize; 2],
        _key: CodecKey,
    ) -> Result<Columns, NetError> {
        Ok(Columns::Same(all_columns(self.kept(width))))
    }

    fn error(&self, width: usize) -> RelativeError {
        if self.kept(width) == width {
            RelativeError::Exact(0.0)
        } else {
            RelativeError::AtMost(1.0)
        }
    }
}
