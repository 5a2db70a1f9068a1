//! Text for terminals: aligned columns, sizes, JSON.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::experiment::read_manifest;

/// A folder that holds no results, or not all of them.
#[derive(Debug, Error)]
#[error("{folder} {what}")]
pub(super) struct BadFolder {
    /// What was given.
    pub folder: String,
    /// What is wrong with it, and what to do.
    pub what: String,
}

impl BadFolder {
    /// The error of what is missing in a folder.
    pub(crate) fn of(folder: &Path, reason: impl Display) -> Self {
        let begun =
            |manifest: Value| manifest["started"].is_string() && manifest["finished"].is_null();
        let nothing_yet = || {
            // A run makes it first, and the manifest when a training has ended.
            let manifest = folder.join("manifest.json");
            folder.join(".lock").exists() && !manifest.exists()
        };
        let what = if nothing_yet() {
            "has no training that has ended: wait for the program that writes there, or begin again with `grapevine run … \
             --resume`"
                .to_owned()
        } else if read_manifest(folder).is_ok_and(begun) {
            format!(
                "has runs that have not all ended ({reason}); wait for the program that writes there, or go on with \
                 `grapevine run … --resume`"
            )
        } else {
            format!(
                "is not a result folder, or a damaged one, or its Parquet files were not kept ({reason}); give the folder that \
                 `grapevine run` wrote, with its tables"
            )
        };
        Self {
            folder: folder.display().to_string(),
            what,
        }
    }

    /// The manifest of a result folder.
    pub(crate) fn or_manifest(folder: &Path) -> Result<Value, Self> {
        read_manifest(folder).map_err(|error| Self::of(folder, format!("manifest.json: {error}")))
    }
}

/// An argument that does not go with the others or with the data.
#[derive(Debug, Error)]
#[error("{flag}: {what}")]
pub(super) struct BadArgument {
    /// The flag.
    pub flag: &'static str,
    /// What is wrong, and what to give instead.
    pub what: String,
}

/// Rows of text with aligned columns; the first column to the left, the others to the right.
pub(super) fn columns(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        // Characters: bytes would shift the columns beside `≤` and `–`.
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

/// How wide the last of [`left_columns`] may reach.
const WIDTH: usize = 100;

/// Rows of text with all columns to the left, the last one in as many lines as it needs.
pub(super) fn left_columns(rows: &[Vec<String>]) -> String {
    let fixed = rows.iter().map(|row| row.len() - 1).max().unwrap_or(0);
    let widths: Vec<usize> = (0..fixed)
        .map(|column| {
            let cells = rows.iter().map(|row| row[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let start: usize = widths.iter().map(|width| width + 2).sum();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(&format!("{cell:width$}  "));
        }
        let mut column = start;
        for word in row[fixed].split_whitespace() {
            let length = word.chars().count();
            if column > start && column + 1 + length > WIDTH {
                line.push('\n');
                line.push_str(&" ".repeat(start));
                column = start;
            } else if column > start {
                line.push(' ');
                column += 1;
            }
            line.push_str(word);
            column += length;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What was asked for could not be written.
#[derive(Debug, Error)]
#[error("cannot write to standard output: {0}")]
pub(super) struct Unwritten(io::Error);

/// Prints to standard output; a reader that went away is no error.
///
/// # Errors
/// [`Unwritten`]: a full disk, say.
pub(super) fn print(text: &str) -> Result<(), Unwritten> {
    write_out(&mut io::stdout().lock(), text)
}

fn write_out(out: &mut impl Write, text: &str) -> Result<(), Unwritten> {
    // Flushed at once: standard output drops what goes wrong in flushing at the end of the program.
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Unwritten(error)),
        _ => Ok(()),
    }
}

/// Prints to standard error; a reader that went away is no error.
pub(super) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// What happened and why. Many messages have their cause in them already; it is not said again.
pub(super) fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// Prints one JSON document.
///
/// # Errors
/// If the value cannot be written as JSON, or not at all.
pub(super) fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(print(&text)?)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;
    use crate::graph::GraphError;

    #[test]
    fn the_last_column_goes_on_below_itself() {
        let row = |name: &str, what: String| vec![name.to_owned(), "1".to_owned(), what];
        let text = left_columns(&[row("a", "word ".repeat(30)), row("long", "end".to_owned())]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[0].starts_with("a     1  word word"), "{text}");
        assert!(lines[1].starts_with("         word"), "{text}");
        assert_eq!(lines[2], "long  1  end");
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.matches("word").count(), 30);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_unless_the_reader_went_away() {
        struct Broken(io::ErrorKind);
        impl Write for Broken {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                Ok(bytes.len())
            }
            // Where a buffer is between, a full disk shows last.
            fn flush(&mut self) -> io::Result<()> {
                Err(self.0.into())
            }
        }
        assert!(write_out(&mut Broken(io::ErrorKind::BrokenPipe), "a").is_ok());
        let error = write_out(&mut Broken(io::ErrorKind::StorageFull), "a").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write to standard output: ")
        );
    }

    #[test]
    fn a_cause_is_told_once_whether_the_message_has_it_or_not() {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let in_it = anyhow::Error::from(GraphError::read("a.txt".as_ref(), gone()));
        assert_eq!(told(&in_it).matches("not found").count(), 1, "{in_it}");
        let not_in_it = Err::<(), _>(gone()).context("no manifest").unwrap_err();
        assert_eq!(told(&not_in_it), "no manifest: entity not found");
    }
}
