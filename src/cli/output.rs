//! Text for terminals: aligned columns, sizes, JSON.

use std::io::{self, Write};

use serde::Serialize;
use thiserror::Error;

/// A folder that holds no results.
#[derive(Debug, Error)]
#[error("{folder} is not a result folder ({reason}); give the folder that `grapevine run` wrote")]
pub struct BadFolder {
    /// What was given.
    pub folder: String,
    /// What is missing.
    pub reason: String,
}

/// Rows of text with aligned columns; the first column to the left, the others to the right.
#[must_use]
pub fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
        widest.max(header[column].chars().count())
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut text = String::new();
    let header: Vec<String> = header.iter().map(|&name| name.to_owned()).collect();
    for row in std::iter::once(&header).chain(rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            if column == 0 {
                line.push_str(cell);
                line.push_str(&padding);
            } else {
                line.push_str("  ");
                line.push_str(&padding);
                line.push_str(cell);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Prints to standard output; a reader that went away is no error.
pub fn print(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}

/// Prints one JSON document.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    print(&text);
    Ok(())
}

/// A size in decimal units.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    crate::net::Bytes(bytes).to_string()
}
