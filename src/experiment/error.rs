//! What ends an experiment before its end.

use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ConfigError;
use super::tables::TablesError;
use crate::graph::GraphError;
use crate::net::NetError;
use crate::sim::SimError;
use crate::study::StudyError;

/// Anything that can go wrong. `Error::is_input` tells bad input (exit code 2) from failed work
/// (exit code 1).
#[derive(Debug, Error)]
pub enum Error {
    /// The experiment file.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Data or partitions.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The network.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A running cell.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// An estimator study.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Result tables.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// A run failed; what was finished before is in the result folder.
    #[error("cell \"{cell}\", seed {seed}: {source}")]
    Failed {
        /// Name of the cell.
        cell: String,
        /// Seed of the run.
        seed: u64,
        /// What happened.
        source: Box<Error>,
    },
    /// The folder for results has those of another experiment, or cannot be a folder.
    #[error("{}: {what}; give another folder with --out", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
        /// What is there.
        what: String,
    },
    /// A folder cannot be joined with others.
    #[error("{}: {what}", path.display())]
    Part {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Runs failed, and the others went on.
    #[error("{} of {of} runs failed; {} {}{}", failures.len(), if failures.len() == *of { "the report is in" } else { "the others are in" }, out.display(), listed(failures))]
    Some {
        /// What happened to each.
        failures: Vec<Error>,
        /// Number of runs.
        of: usize,
        /// The result folder.
        out: PathBuf,
    },
    /// The program cannot tell which version of it is running.
    #[error("cannot read the program's own file, whose hash marks the runs that it finished: {0}")]
    Program(std::io::Error),
}

impl Error {
    /// Makes an error of what the file system says of a file or folder of results.
    pub(super) fn folder(path: &Path) -> impl FnOnce(std::io::Error) -> Self + use<> {
        let failed = TablesError::file("write", path);
        move |source| Self::Tables(failed(source))
    }

    /// Makes an error of what is wrong with a folder that is to be joined with others.
    pub(super) fn part(path: &Path, what: String) -> Self {
        Self::Part {
            path: path.to_owned(),
            what,
        }
    }

    /// Whether the cause is something a person wrote or asked for (exit code 2), not a failure of
    /// the work (exit code 1).
    pub(crate) fn is_input(&self) -> bool {
        match self {
            Self::Graph(GraphError::Write { .. } | GraphError::Stopped)
            | Self::Tables(_)
            | Self::Failed { .. }
            | Self::Some { .. }
            | Self::Program(_) => false,
            Self::Config(_)
            | Self::Graph(_)
            | Self::Study(_)
            | Self::Taken { .. }
            | Self::Part { .. } => true,
            Self::Net(error) => error.is_input(),
            Self::Sim(error) => error.is_input(),
        }
    }

    /// Whether another process of the run has told what is wrong, and this one need not.
    pub(crate) const fn is_told_elsewhere(&self) -> bool {
        matches!(self, Self::Sim(SimError::Elsewhere { .. }))
    }
}

/// Errors below each other.
fn listed(failures: &[Error]) -> String {
    failures
        .iter()
        .map(|failure| format!("\n  {failure}"))
        .collect()
}
