//! What can be wrong with a data set, a split or a partition.

use std::path::{Path, PathBuf};

use crate::memory::Shortage;

/// An error in the input: every variant says what is wrong, where, and what to do about it. The
/// program ends with exit code 2 on any of them but [`GraphError::Write`] and
/// [`GraphError::Stopped`], for none of the others can be cured by running again.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// A file or folder cannot be opened or read.
    #[error(
        "cannot read {}: {source}; check that the path is right and the file whole",
        path.display()
    )]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error(
        "cannot write {}: {source}; what was written stays, and the same command goes on from there",
        path.display()
    )]
    Write {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A file is not what its format says; `what` tells also what to do.
    #[error("{}: {what}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// A line of a text file is not what its format says.
    #[error("{}:{line}: {what}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong, and what was expected.
        what: String,
    },
    /// A partitioner stopped before its end.
    #[error(
        "METIS was told to stop (SIGTERM), which it hears while it works, or failed by itself; run again, or take another \
         `method` of [partition]"
    )]
    Stopped,
    /// There is not enough memory for it.
    #[error(transparent)]
    Memory(#[from] Shortage),
    /// A key of the `[dataset]` or `[partition]` section has a value that cannot be used.
    #[error("{key}: {what}")]
    Key {
        /// Full key, for example `dataset.split`.
        key: &'static str,
        /// What is wrong, and what to write instead.
        what: String,
    },
}

impl GraphError {
    /// A [`GraphError::Read`].
    pub fn read(path: &Path, source: std::io::Error) -> Self {
        Self::Read {
            path: path.to_owned(),
            source,
        }
    }

    /// A [`GraphError::Key`] about one key of `[dataset] synthetic`.
    pub(crate) fn synthetic(key: &str, what: impl std::fmt::Display) -> Self {
        Self::key("dataset.synthetic", format!("{key}: {what}"))
    }

    /// A [`GraphError::File`].
    pub(crate) fn file(path: &Path, what: impl Into<String>) -> Self {
        Self::File {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// A [`GraphError::Line`].
    pub(crate) fn line(path: &Path, line: usize, what: impl Into<String>) -> Self {
        Self::Line {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }

    /// A [`GraphError::Key`].
    pub fn key(key: &'static str, what: impl Into<String>) -> Self {
        Self::Key {
            key,
            what: what.into(),
        }
    }
}
