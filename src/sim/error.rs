//! What can go wrong while a cell runs.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::net::NetError;

/// What is wrong on one process, as it tells the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complaint {
    /// Whether the cause is something a person wrote (exit code 2), not a failure of the run (exit
    /// code 1).
    pub input: bool,
    /// What it is.
    pub reason: String,
}

/// An error of a running cell.
#[derive(Debug, Error)]
pub enum SimError {
    /// A device that cannot be had, or that computes wrongly.
    #[error("device: {0}")]
    Device(String),
    /// The experiment asks for something the data or the build cannot give.
    #[error("{0}")]
    Input(String),
    /// Communication failed.
    #[error(transparent)]
    Net(#[from] NetError),
    /// A checkpoint cannot be written.
    #[error("checkpoint: {0}")]
    Checkpoint(String),
    /// A strategy broke its own rules.
    #[error("strategy: {0}")]
    Strategy(String),
    /// A worker's program panicked.
    #[error("worker {rank} panicked: {message}")]
    Panicked {
        /// Which worker.
        rank: usize,
        /// What it said.
        message: String,
    },
    /// Another process of the run has told the person what is wrong; nothing is to be added.
    #[error("worker {rank}: {}", complaint.reason)]
    Elsewhere {
        /// Which process.
        rank: usize,
        /// What it found.
        complaint: Complaint,
    },
}

impl SimError {
    /// Whether the cause is something a person wrote (exit code 2), not a failure of the run (exit
    /// code 1).
    pub(crate) const fn is_input(&self) -> bool {
        match self {
            // What is wrong with a device is a person's to mend: another backend, another adapter,
            // a newer driver.
            Self::Device(_) | Self::Input(_) => true,
            Self::Net(error) => error.is_input(),
            Self::Elsewhere { complaint, .. } => complaint.input,
            Self::Checkpoint(_) | Self::Strategy(_) | Self::Panicked { .. } => false,
        }
    }
}
