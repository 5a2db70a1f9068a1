//! What columns hold, and what a field of a row is in one.

use super::sweep::Sweep;
use super::{Activity, ClaimVerdict, DecisionKind, Quantity, Text};
use crate::graph::Metric;
use crate::net::TrafficKind;
use crate::strategies::EpochKind;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// UTF-8 text.
    Text,
    /// Unsigned 64-bit whole numbers: counts, bytes, seeds, indices.
    Count,
    /// 64-bit floating-point numbers.
    Real,
}

/// The entries of one column, top to bottom.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Text, never null. Shared, because millions of rows say the same few words.
    Text(Vec<Text>),
    /// Whole numbers.
    Count(Vec<Option<u64>>),
    /// Floating-point numbers.
    Real(Vec<Option<f64>>),
}

impl Values {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Text(entries) => entries.len(),
            Self::Count(entries) => entries.len(),
            Self::Real(entries) => entries.len(),
        }
    }

    /// The entry as a person reads it; `None` for null.
    pub(crate) fn text(&self, row: usize) -> Option<String> {
        match self {
            Self::Text(entries) => Some(entries[row].to_string()),
            Self::Count(entries) => entries[row].map(|count| count.to_string()),
            Self::Real(entries) => entries[row].map(|real| real.to_string()),
        }
    }
}

/// A type that can stand in a column.
pub(super) trait Field: Sized {
    const KIND: ColumnKind;
    /// Whether the column may be absent or empty.
    const NULLABLE: bool = false;
    /// Whether the column of an `Option` of it may be absent.
    const NULL_IF_OPTIONAL: bool = true;
    /// What is missed where there is none.
    const WANTED: &'static str;
    /// A column; what is `None` is null, but text is empty.
    fn collect<'a>(fields: impl Iterator<Item = Option<&'a Self>>) -> Values
    where
        Self: 'a;
    fn at(values: &Values, row: usize) -> Option<Self>;
    /// The field as a number: `None` for text and for null.
    fn number(&self) -> Option<f64> {
        None
    }
}

macro_rules! numbers {
    ($($number:ty, $kind:ident, $wanted:literal;)*) => {$(
        impl Field for $number {
            const KIND: ColumnKind = ColumnKind::$kind;
            const WANTED: &'static str = $wanted;
            fn collect<'a>(fields: impl Iterator<Item = Option<&'a Self>>) -> Values {
                Values::$kind(fields.map(Option::<&_>::copied).collect())
            }
            fn at(values: &Values, row: usize) -> Option<Self> {
                let Values::$kind(entries) = values else { return None };
                *entries.get(row)?
            }
            fn number(&self) -> Option<f64> {
                Some(*self as f64)
            }
        }
    )*};
}

numbers! {
    u64, Count, "whole number";
    f64, Real, "number";
}

macro_rules! texts {
    ($($type:ty, $nullable:literal, $wanted:literal, $to:expr, $from:expr;)*) => {$(
        impl Field for $type {
            const KIND: ColumnKind = ColumnKind::Text;
            const NULLABLE: bool = $nullable;
            const WANTED: &'static str = $wanted;
            fn collect<'a>(fields: impl Iterator<Item = Option<&'a Self>>) -> Values {
                let to: fn(&Self) -> Text = $to;
                Values::Text(fields.map(|field| field.map_or_else(Text::default, to)).collect())
            }
            fn at(values: &Values, row: usize) -> Option<Self> {
                let Values::Text(entries) = values else { return None };
                let from: fn(&Text) -> Option<Self> = $from;
                entries.get(row).and_then(from)
            }
        }
    )*};
}

texts! {
    String, false, "text", |text| Text::from(text.as_str()), |text| Some(text.to_string());
    Text, false, "text", Text::clone, |text| Some(text.clone());
    Sweep, true, "sweep", |sweep| Text::from(sweep.to_json()), |text| Sweep::from_json(text);
}

macro_rules! names {
    ($($type:ty, $null_if_optional:literal, $wanted:literal;)*) => {$(
        impl Field for $type {
            const KIND: ColumnKind = ColumnKind::Text;
            const NULL_IF_OPTIONAL: bool = $null_if_optional;
            const WANTED: &'static str = $wanted;
            fn collect<'a>(fields: impl Iterator<Item = Option<&'a Self>>) -> Values {
                // A column has millions of entries and few names.
                let names = Self::ALL.map(|one| (one, Text::from(one.name())));
                let name = |field: &Self| {
                    let known = names.iter().find(|(one, _)| one == field);
                    known.map_or_else(Text::default, |(_, name)| name.clone())
                };
                Values::Text(fields.map(|field| field.map_or_else(Text::default, name)).collect())
            }
            fn at(values: &Values, row: usize) -> Option<Self> {
                let Values::Text(entries) = values else { return None };
                let name = entries.get(row)?;
                Self::ALL.into_iter().find(|one| **name == *one.name())
            }
        }
    )*};
}

names! {
    // Empty for what is sent by nobody, which is another thing than a column that is not there.
    TrafficKind, false, "kind of traffic";
    Activity, true, "activity";
    DecisionKind, true, "kind of decision";
    Metric, true, "metric";
    EpochKind, true, "kind of epoch";
    Quantity, true, "quantity";
    ClaimVerdict, true, "verdict";
}

// Null, or empty text.
impl<T: Field> Field for Option<T> {
    const KIND: ColumnKind = T::KIND;
    const NULLABLE: bool = T::NULL_IF_OPTIONAL;
    const WANTED: &'static str = T::WANTED;
    fn collect<'a>(fields: impl Iterator<Item = Option<&'a Self>>) -> Values
    where
        Self: 'a,
    {
        T::collect(fields.map(|field| field.and_then(Option::as_ref)))
    }
    fn at(values: &Values, row: usize) -> Option<Self> {
        let none = match (T::KIND, values) {
            (ColumnKind::Text, Values::Text(entries)) => entries.get(row)?.is_empty(),
            (ColumnKind::Count, Values::Count(entries)) => entries.get(row)?.is_none(),
            (ColumnKind::Real, Values::Real(entries)) => entries.get(row)?.is_none(),
            _ => return None,
        };
        if none {
            Some(None)
        } else {
            T::at(values, row).map(Some)
        }
    }
    fn number(&self) -> Option<f64> {
        self.as_ref()?.number()
    }
}
