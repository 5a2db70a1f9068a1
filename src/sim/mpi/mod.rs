//! Training on real processes: one per worker, over the MPI library of the system.
//!
//! ```text
//!   mpirun -n P ─→ P × Processes ─(one Worker each)─→ Report, every epoch ─┐
//!                     │ Port: MPI's messages, and failures                 ├→ rank 0: Recorder,
//!                     ▼                                                    │          Outcome
//!                  MpiCommunicator ─→ Account: clock, ledger, at the end ──┘
//! ```
//!
//! Every process prepares the whole experiment by itself, which is deterministic, and trains on its
//! own shard alone. Process 0 evaluates, keeps the tables and talks to the person. Collectives run
//! the same message schedules as in the simulation, in the same order, so that results agree to the
//! bit wherever computing does.

// What needs no MPI is tested without.
#[cfg(any(feature = "mpi", test))]
#[cfg_attr(not(feature = "mpi"), allow(dead_code))]
mod account;
#[cfg(feature = "mpi")]
mod collective;
#[cfg(feature = "mpi")]
mod communicator;
#[cfg(feature = "mpi")]
mod port;
#[cfg(feature = "mpi")]
mod processes;
#[cfg(any(feature = "mpi", test))]
mod results;
#[cfg(feature = "mpi")]
mod run;
#[cfg(feature = "mpi")]
mod signals;
#[cfg(any(feature = "mpi", test))]
mod tags;

#[cfg(not(feature = "mpi"))]
mod absent;

#[cfg(not(feature = "mpi"))]
pub use absent::Processes;
#[cfg(feature = "mpi")]
pub use processes::Processes;
