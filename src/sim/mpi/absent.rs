//! What stands for real processes in a build without MPI: nothing, so that none can be had.

use crate::net::{AllReduceKind, Communicator};
use crate::sim::engine::EngineResults;
use crate::sim::record::{Recorder, Relay};
use crate::sim::{Complaint, Outcome, SimError};

/// Processes over MPI, of which this build has none.
#[derive(Debug)]
// Without variants, so that callers need no condition of their own and the compiler sees that
// nothing here can be called.
pub enum Processes {}

impl Processes {
    pub(in crate::sim) fn open() -> Result<Self, SimError> {
        Err(SimError::Input(
            "this build has no MPI; install an MPI library (on Debian: libopenmpi-dev openmpi-bin libclang-dev) and \
             build with `cargo build --release --features mpi`"
                .to_owned(),
        ))
    }

    pub(in crate::sim) const fn rank(&self) -> usize {
        match *self {}
    }

    pub(in crate::sim) const fn size(&self) -> usize {
        match *self {}
    }

    pub(in crate::sim) fn agree(
        &self,
        _: &Result<Vec<u8>, Complaint>,
    ) -> Result<Option<(usize, Complaint)>, SimError> {
        match *self {}
    }

    pub(in crate::sim) fn fail(&self, _: &str) {
        match *self {}
    }

    pub(in crate::sim) fn close(&self) -> Result<(), SimError> {
        match *self {}
    }

    pub(in crate::sim) fn run(
        self: &std::sync::Arc<Self>,
        _: AllReduceKind,
        _: impl FnOnce(Box<dyn Communicator>) -> Result<(), SimError>,
    ) -> Result<EngineResults, SimError> {
        match **self {}
    }

    pub(in crate::sim) fn relay(self: &std::sync::Arc<Self>) -> Relay {
        match **self {}
    }

    pub(in crate::sim) fn rest(&self, _: &mut Recorder) -> Result<(), SimError> {
        match *self {}
    }

    pub(in crate::sim) fn gather(&self, _: Outcome) -> Result<Outcome, SimError> {
        match *self {}
    }
}
