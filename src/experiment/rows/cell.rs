//! What a field of a row is as a cell of a column.

use super::{ColumnKind, Text, Values};

/// A type that can stand in a column.
pub(super) trait Cell: Sized + Default {
    const KIND: ColumnKind;
    const NULLABLE: bool;
    const WANTED: &'static str;
    /// A column; what is `None` is null, but text is empty.
    fn collect<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Values
    where
        Self: 'a;
    fn at(values: &Values, row: usize) -> Option<Self>;
    /// The cell as a number: `None` for text and for null.
    fn number(&self) -> Option<f64>;
}

macro_rules! cells {
    ($($cell:ty, $kind:ident, $nullable:literal, $wanted:literal, $to:expr, $from:expr, $number:expr;)*) => {$(
        impl Cell for $cell {
            const KIND: ColumnKind = ColumnKind::$kind;
            const NULLABLE: bool = $nullable;
            const WANTED: &'static str = $wanted;
            fn collect<'a>(cells: impl Iterator<Item = Option<&'a Self>>) -> Values
            where
                Self: 'a,
            {
                Values::$kind(cells.map($to).collect())
            }
            fn at(values: &Values, row: usize) -> Option<Self> {
                let Values::$kind(cells) = values else { return None };
                cells.get(row).and_then($from)
            }
            fn number(&self) -> Option<f64> {
                let number: fn(&Self) -> Option<f64> = $number;
                number(self)
            }
        }
    )*};
}

cells! {
    String, Text, false, "text", |cell| cell.map_or_else(Text::default, |text| Text::from(text.as_str())),
        |cell| Some(cell.to_string()), |_| None;
    Text, Text, false, "text", |cell| cell.cloned().unwrap_or_default(), |cell| Some(cell.clone()), |_| None;
    u64, Count, false, "whole number", Option::<&_>::copied, |cell| *cell, |cell| Some(*cell as f64);
    Option<u64>, Count, true, "whole number", |cell| cell.copied().flatten(), |cell| Some(*cell),
        |cell| cell.map(|count| count as f64);
    f64, Real, false, "number", Option::<&_>::copied, |cell| *cell, |cell| Some(*cell);
    Option<f64>, Real, true, "number", |cell| cell.copied().flatten(), |cell| Some(*cell), |cell| *cell;
}
