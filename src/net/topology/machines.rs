//! Machines of several workers.
//!
//! ```text
//!   machine 0                             machine 1
//!   worker 0 ──out──▶ ┌────────┐ ─ nic 0.0 out ─▶ … ─ nic 1.0 in ─▶ ┌────────┐ ──in──▶ worker 4
//!   worker 1 ──out──▶ │ inside │                                     │ inside │ ──in──▶ worker 5
//!   worker 2 ──out──▶ │        │ ─ nic 0.1 out ─▶ … ─ nic 1.1 in ─▶ │        │ ──in──▶ worker 6
//!   worker 3 ──out──▶ └────────┘                                     └────────┘ ──in──▶ worker 7
//! ```
//!
//! Workers are dealt to machines in the order of ranks, so many to each, and within a machine to
//! its NICs in equal blocks. What is wired outside are the NICs.

/// How workers are dealt to machines and NICs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::net) struct Machines {
    /// Workers in a machine; the last may have fewer.
    pub gpus: usize,
    /// NICs of a machine, no more than it has workers.
    pub nics: usize,
    /// Machines.
    pub count: usize,
}

impl Machines {
    /// Machine of a worker.
    pub(in crate::net) const fn machine(&self, rank: usize) -> usize {
        rank / self.gpus
    }

    /// NIC of a worker, numbered through all machines.
    pub(in crate::net) const fn nic(&self, rank: usize) -> usize {
        self.machine(rank) * self.nics + rank % self.gpus * self.nics / self.gpus
    }

    /// NICs of all machines.
    pub(in crate::net) const fn all_nics(&self) -> usize {
        self.count * self.nics
    }
}
