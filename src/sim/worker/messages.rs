//! What a worker sends and receives, as its plan says.

use super::Worker;
use crate::net::{Collective, Inbox, Outbox, Pending, PendingCollective, Reduce, TrafficKind};
use crate::sim::SimError;

/// An exchange that is under way.
pub struct PendingExchange {
    pub(super) pending: Pending,
    pub(super) kind: TrafficKind,
    pub(super) layer: u32,
    /// Which of the exchanges of its worker it is.
    pub(super) number: u64,
}

impl PendingExchange {
    /// Which of the exchanges of its worker it is, by which a checkpoint names it.
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl Worker {
    /// Sparse all-to-all; see [`Communicator::exchange`](crate::net::Communicator::exchange).
    ///
    /// # Errors
    /// If another worker failed, or the exchange is not planned.
    pub fn exchange(&mut self, outbox: Outbox) -> Result<Inbox, SimError> {
        let pending = self.start_exchange(outbox)?;
        self.finish_exchange(pending)
    }

    /// See [`Communicator::start_exchange`](crate::net::Communicator::start_exchange).
    ///
    /// # Errors
    /// If another worker failed, or the exchange is not planned.
    pub fn start_exchange(&mut self, outbox: Outbox) -> Result<PendingExchange, SimError> {
        self.following.start_exchange(&outbox)?;
        let (kind, layer) = (outbox.kind, outbox.layer);
        let number = self.keep_exchange(&outbox);
        let pending = self.communicator.start_exchange(outbox)?;
        Ok(PendingExchange {
            pending,
            kind,
            layer,
            number,
        })
    }

    /// See [`Communicator::finish_exchange`](crate::net::Communicator::finish_exchange).
    ///
    /// # Errors
    /// If another worker failed, or waiting is not planned here.
    pub fn finish_exchange(&mut self, started: PendingExchange) -> Result<Inbox, SimError> {
        let PendingExchange {
            pending,
            kind,
            layer,
            number,
        } = started;
        self.following.finish_exchange(kind, layer)?;
        self.keep_end_of(number);
        Ok(self.communicator.finish_exchange(pending)?)
    }

    /// See [`Communicator::all_reduce`](crate::net::Communicator::all_reduce).
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn all_reduce(
        &mut self,
        values: &mut [f32],
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<(), SimError> {
        let pending = self.start_all_reduce(values.to_vec(), op, kind)?;
        values.copy_from_slice(&self.finish_collective(pending)?);
        Ok(())
    }

    /// See [`Communicator::start_all_reduce`](crate::net::Communicator::start_all_reduce).
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn start_all_reduce(
        &mut self,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, SimError> {
        // Asked of the plan before anything is sent: a departure is an error here and not a hang
        // elsewhere.
        let collective = Collective::AllReduce(values.len());
        self.following.start_collective(&collective, kind)?;
        self.keep_collective(true);
        Ok(self.communicator.start_all_reduce(values, op, kind)?)
    }

    /// See [`Communicator::finish_collective`](crate::net::Communicator::finish_collective).
    ///
    /// # Errors
    /// If another worker failed, or waiting is not planned here.
    pub fn finish_collective(&mut self, pending: PendingCollective) -> Result<Vec<f32>, SimError> {
        self.following.finish_collective()?;
        self.keep_collective(false);
        Ok(self.communicator.finish_collective(pending)?)
    }

    /// See [`Communicator::barrier`](crate::net::Communicator::barrier).
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn barrier(&mut self, kind: TrafficKind) -> Result<(), SimError> {
        self.all_reduce(&mut [0.0], Reduce::Max, kind)
    }

    /// See [`Communicator::broadcast`](crate::net::Communicator::broadcast).
    ///
    /// # Errors
    /// If another worker failed, or the collective is not planned.
    pub fn broadcast(
        &mut self,
        root: usize,
        values: &mut [f32],
        kind: TrafficKind,
    ) -> Result<(), SimError> {
        // A broadcast is one call, but its plan has the start and the end as two phases.
        let len = values.len();
        self.following
            .start_collective(&Collective::Broadcast { root, len }, kind)?;
        self.following.finish_collective()?;
        Ok(self.communicator.broadcast(root, values, kind)?)
    }

    /// See [`Communicator::gather`](crate::net::Communicator::gather).
    ///
    /// # Errors
    /// If another worker failed, the lengths are wrong, or the collective is not planned.
    pub fn gather(
        &mut self,
        root: usize,
        values: &[f32],
        lens: &[usize],
        kind: TrafficKind,
    ) -> Result<Vec<f32>, SimError> {
        let planned = Collective::Gather {
            root,
            lens: lens.into(),
        };
        self.following.start_collective(&planned, kind)?;
        self.following.finish_collective()?;
        Ok(self.communicator.gather(root, values, lens, kind)?)
    }

    /// See [`Communicator::all_gather`](crate::net::Communicator::all_gather).
    ///
    /// # Errors
    /// If another worker failed, the lengths are wrong, or the collective is not planned.
    pub fn all_gather(
        &mut self,
        values: &[f32],
        lens: &[usize],
        kind: TrafficKind,
    ) -> Result<Vec<f32>, SimError> {
        let planned = Collective::AllGather(lens.into());
        self.following.start_collective(&planned, kind)?;
        self.following.finish_collective()?;
        Ok(self.communicator.all_gather(values, lens, kind)?)
    }
}
