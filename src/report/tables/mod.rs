//! The report's tables, as data; each is written as Markdown, LaTeX and HTML.

mod budgets;
mod claims;
mod latex;
mod markdown;
mod summary;
mod targets;
mod traffic;

pub(super) use budgets::budgets;
pub(super) use claims::claims;
pub(crate) use claims::{detectable, measured, p_value};
pub(super) use latex::latex;
pub(super) use markdown::markdown;
pub(super) use summary::summary;
pub(super) use targets::targets;
pub(super) use traffic::traffic;

use serde::Serialize;

/// One cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Entry {
    /// What it says.
    pub text: String,
    /// Whether it is the best of its column.
    pub best: bool,
}

impl Entry {
    pub(super) fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            best: false,
        }
    }
}

/// One column's heading.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Column {
    /// What it says.
    pub name: String,
    /// Whether its entries are numbers, which stand to the right.
    pub numeric: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Table {
    /// The name of its files.
    pub name: &'static str,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The headings.
    pub columns: Vec<Column>,
    /// The entries, row by row.
    pub rows: Vec<Vec<Entry>>,
}

/// Columns from names; a leading `#` marks numbers.
pub(super) fn columns(names: &[&str]) -> Vec<Column> {
    names
        .iter()
        .map(|name| Column {
            name: name.trim_start_matches('#').to_owned(),
            numeric: name.starts_with('#'),
        })
        .collect()
}
