//! What a table is: columns, and rows that are made of them and make them up.

use thiserror::Error;

use super::field::{ColumnKind, Field, Values};

/// One column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The name, `snake_case`.
    pub name: &'static str,
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether null is allowed in every row.
    pub(crate) nullable: bool,
    /// What it says, in the words of its documentation, line by line.
    pub about: &'static [&'static str],
}

/// Why columns do not make up a table.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RowError {
    /// Not every column was given, or columns differ in length.
    #[error("column `{column}` has {found} rows where {expected} were expected")]
    Length {
        /// The column.
        column: &'static str,
        /// Its number of entries; 0 if it is absent.
        found: usize,
        /// Number of entries of the first column.
        expected: usize,
    },
    /// A null or a value of another kind where this column allows none.
    #[error(
        "column `{column}`, row {row} (from 0): what stands there, if anything, is no {wanted}"
    )]
    Entry {
        /// The column.
        column: &'static str,
        /// The row, counted from 0.
        row: usize,
        /// What the column holds.
        wanted: &'static str,
    },
}

impl RowError {
    /// The same of a table of which so many rows were read before.
    pub(in crate::experiment) fn after(mut self, before: usize) -> Self {
        if let Self::Entry { row, .. } = &mut self {
            *row += before;
        }
        self
    }
}

/// A row of one of the result tables.
pub trait Row: Sized + Clone {
    /// The table's name, and its files' without the extension.
    const TABLE: &'static str;
    /// The columns, in the order of the files.
    const COLUMNS: &'static [ColumnSpec];

    /// The columns' entries, in the order of [`Self::COLUMNS`].
    fn to_columns(rows: &[Self]) -> Vec<Values>;

    /// Rows from columns in the order of [`Self::COLUMNS`].
    ///
    /// # Errors
    /// A column is missing, is shorter than others, holds another kind or a null it must not.
    fn from_columns(columns: &[Values]) -> Result<Vec<Self>, RowError>;

    /// The number in the named column; `None` for null, for text and for a name that is no column.
    fn number(&self, column: &str) -> Option<f64>;
}

/// How many rows there are.
pub(super) fn height(specs: &[ColumnSpec], columns: &[Values]) -> Result<usize, RowError> {
    let expected = columns.first().map_or(0, Values::len);
    let found = |place| columns.get(place).map_or(0, Values::len);
    match (0..specs.len()).find(|&place| found(place) != expected) {
        None => Ok(expected),
        Some(place) => Err(RowError::Length {
            column: specs[place].name,
            found: found(place),
            expected,
        }),
    }
}

/// The columns of one row that have not been read yet.
pub(super) struct Rest<'a> {
    pub columns: &'a [Values],
    pub row: usize,
}

impl Rest<'_> {
    /// The field in the next column.
    pub(super) fn next<F: Field>(&mut self, column: &'static str) -> Result<F, RowError> {
        let (first, rest) = self.columns.split_first().unzip();
        self.columns = rest.unwrap_or_default();
        let wanted = F::WANTED;
        let row = self.row;
        first
            .and_then(|values| F::at(values, row))
            .ok_or(RowError::Entry {
                column,
                row,
                wanted,
            })
    }

    /// Whether the next columns are all null; they are passed over then.
    pub(super) fn passes_nulls(&mut self, count: usize) -> bool {
        let (next, rest) = self.columns.split_at(count.min(self.columns.len()));
        // All of them, for a run that finished has some that are null.
        let nothing = next.iter().all(|values| values.text(self.row).is_none());
        if nothing {
            self.columns = rest;
        }
        nothing
    }
}

/// A row's struct, which is the schema of its table. Columns after `=>` are those of a struct of
/// their own, of which a row has all or, as nulls, none.
macro_rules! table {
    (
        $(#[$about:meta])*
        $row:ident = $table:literal {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty, )*
            $(
                => $(#[$measured_about:meta])* $measured:ident {
                    $( $(#[doc = $measured_doc:literal])* $of:ident: $of_type:ty, )*
                }
                $( $(#[doc = $last_doc:literal])* $last:ident: $last_type:ty, )*
            )?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $row {
            $( $(#[doc = $doc])* pub $field: $type, )*
            $(
                /// What was measured; `None` of a run that failed.
                #[serde(flatten)]
                pub measured: Option<$measured>,
                $( $(#[doc = $last_doc])* pub $last: $last_type, )*
            )?
        }

        $(
            $(#[$measured_about])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
            pub struct $measured {
                $( $(#[doc = $measured_doc])* pub $of: $of_type, )*
            }
        )?

        impl Row for $row {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [ColumnSpec] = &[
                $( spec!($field: $type, $($doc),*), )*
                $(
                    $( spec!($of: $of_type, $($measured_doc),*), )*
                    $( spec!($last: $last_type, $($last_doc),*), )*
                )?
            ];

            fn to_columns(rows: &[Self]) -> Vec<Values> {
                vec![
                    $( <$type as Field>::collect(rows.iter().map(|row| Some(&row.$field))), )*
                    $(
                        $( <$of_type as Field>::collect(
                            rows.iter().map(|row| Some(&row.measured.as_ref()?.$of)),
                        ), )*
                        $( <$last_type as Field>::collect(
                            rows.iter().map(|row| Some(&row.$last)),
                        ), )*
                    )?
                ]
            }

            fn from_columns(columns: &[Values]) -> Result<Vec<Self>, RowError> {
                let height = height(Self::COLUMNS, columns)?;
                let read = |row| {
                    let mut rest = Rest { columns, row };
                    Ok(Self {
                        $( $field: rest.next(stringify!($field))?, )*
                        $(
                            // A macro cannot count; an array of the names can.
                            measured: if rest.passes_nulls([$(stringify!($of)),*].len()) {
                                None
                            } else {
                                Some($measured { $( $of: rest.next(stringify!($of))?, )* })
                            },
                            $( $last: rest.next(stringify!($last))?, )*
                        )?
                    })
                };
                (0..height).map(read).collect()
            }

            fn number(&self, column: &str) -> Option<f64> {
                match column {
                    $( stringify!($field) => Field::number(&self.$field), )*
                    $(
                        $( stringify!($of) => Field::number(&self.measured.as_ref()?.$of), )*
                        $( stringify!($last) => Field::number(&self.$last), )*
                    )?
                    _ => None,
                }
            }
        }
    };
}

macro_rules! spec {
    ($field:ident: $type:ty, $($doc:literal),*) => {
        ColumnSpec {
            name: stringify!($field),
            kind: <$type as Field>::KIND,
            nullable: <$type as Field>::NULLABLE,
            about: &[$($doc),*],
        }
    };
}

pub(super) use {spec, table};
