//! Which engine carries out a run.

use std::fmt::Display;
use std::sync::Arc;

use super::mpi::Processes;
use super::{Complaint, SimError};
use crate::net::{AllReduceKind, Communicator};

/// What carries out a run: the emulated cluster in this process, or real processes.
#[derive(Clone, Default)]
pub enum Engine {
    /// All workers in this process, on an emulated network in virtual time.
    #[default]
    Simulated,
    /// One process per worker, over MPI, in real time.
    Mpi(Arc<Processes>),
}

impl Engine {
    /// Starts MPI, as one of the processes that `mpirun` or `srun` has started.
    ///
    /// # Errors
    /// If this build has no MPI, or the library cannot be started.
    pub(crate) fn mpi() -> Result<Self, SimError> {
        Ok(Self::Mpi(Arc::new(Processes::open()?)))
    }

    /// The name in tables: `simulated` or `mpi`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Simulated => "simulated",
            Self::Mpi(_) => "mpi",
        }
    }

    /// How many processes there are, where workers are processes.
    pub(crate) fn processes(&self) -> Option<usize> {
        match self {
            Self::Simulated => None,
            Self::Mpi(processes) => Some(processes.size()),
        }
    }

    /// This process's number, 0 in simulation.
    pub fn rank(&self) -> usize {
        match self {
            Self::Simulated => 0,
            Self::Mpi(processes) => processes.rank(),
        }
    }

    /// Whether this process keeps the results and talks to the person.
    pub(crate) fn leads(&self) -> bool {
        self.rank() == 0
    }

    /// Makes sure that all processes have come as far as this one, with nothing wrong on any of
    /// them and with the same result, as `digest` shows it. In simulation: `mine`.
    ///
    /// # Errors
    /// Where something is wrong, one process has its own error, to be told; the others have
    /// [`SimError::Elsewhere`].
    pub(crate) fn agree<T, E>(
        &self,
        mine: Result<T, E>,
        digest: impl FnOnce(&T) -> Vec<u8>,
        is_input: impl FnOnce(&E) -> bool,
    ) -> Result<T, E>
    where
        E: From<SimError> + Display,
    {
        let Self::Mpi(processes) = self else {
            // One process agrees with itself, and no digest is made.
            return mine;
        };
        let vote = match &mine {
            Ok(value) => Ok(digest(value)),
            Err(error) => Err(Complaint {
                reason: error.to_string(),
                input: is_input(error),
            }),
        };
        match processes.agree(&vote)? {
            None => mine,
            Some((rank, complaint)) if rank == self.rank() => {
                // Its own, or one that only process 0 could see.
                mine.and_then(|_| Err(SimError::Input(complaint.reason).into()))
            }
            Some((rank, complaint)) => Err(SimError::Elsewhere { rank, complaint }.into()),
        }
    }

    /// Runs a program on every process.
    ///
    /// # Errors
    /// If the program fails here or elsewhere, or workers are no processes.
    pub(crate) fn on_processes(
        &self,
        program: impl FnOnce(Box<dyn Communicator>) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        match self {
            Self::Simulated => Err(SimError::Input(
                "this needs real processes; start it with mpirun".to_owned(),
            )),
            Self::Mpi(processes) => processes.run(AllReduceKind::Ring, program).map(drop),
        }
    }

    /// Tells all processes that this one failed; once is enough, and after a failure elsewhere
    /// nothing is told.
    pub(crate) fn fail(&self, reason: &str) {
        if let Self::Mpi(processes) = self {
            processes.fail(reason);
        }
    }

    /// Waits for the others, unless the run has failed, and ends MPI.
    ///
    /// # Errors
    /// If another process fails in its last moments.
    pub(crate) fn close(&self) -> Result<(), SimError> {
        match self {
            Self::Simulated => Ok(()),
            Self::Mpi(processes) => processes.close(),
        }
    }
}
