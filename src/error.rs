//! The one error type of the library's outermost functions.

use thiserror::Error;

use crate::experiment::{ConfigError, RunError, TablesError};
use crate::graph::GraphError;
use crate::net::NetError;
use crate::report::ReportError;
use crate::sim::SimError;
use crate::strategies::grappa::study::StudyError;

/// Anything that can go wrong. [`Error::is_input`] tells bad input (exit code 2) from failed work (exit code 1).
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
    /// An experiment.
    #[error(transparent)]
    Run(#[from] RunError),
    /// An estimator study.
    #[error(transparent)]
    Study(#[from] StudyError),
    /// Result tables.
    #[error(transparent)]
    Tables(#[from] TablesError),
    /// Figures and pages.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl Error {
    /// Whether the cause is something a person wrote or asked for, not a failure of the work.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Self::Config(_) | Self::Graph(_) | Self::Study(_) => true,
            Self::Net(error) => error.is_input(),
            Self::Sim(error) => error.is_input(),
            Self::Run(error) => error.is_input(),
            Self::Tables(_) | Self::Report(_) => false,
        }
    }

    /// Whether another process of the run has told what is wrong, and this one need not.
    #[must_use]
    pub fn is_told_elsewhere(&self) -> bool {
        match self {
            Self::Sim(SimError::Elsewhere { .. }) => true,
            Self::Run(RunError::Input(error)) => error.is_told_elsewhere(),
            _ => false,
        }
    }
}
