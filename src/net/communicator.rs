//! How a worker talks to the others: one trait, implemented by each engine.

use super::{Bytes, Lane, NetError, Seconds, Traffic, TrafficKind};

/// One message of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other end: the receiver in an [`Outbox`], the sender in an [`Inbox`].
    pub peer: usize,
    /// Encoded values.
    pub payload: Vec<u8>,
}

/// What a worker puts into a sparse all-to-all, and from whom it waits for an answer.
///
/// Both ends know from the boundary plan who sends to whom, so nobody waits for a worker that has
/// nothing to say and no synchronisation beyond the messages themselves takes place.
#[derive(Clone, Debug)]
pub struct Outbox {
    /// What the messages carry.
    pub kind: TrafficKind,
    /// Model layer they belong to.
    pub layer: u32,
    /// Messages to send, at most one per receiver.
    pub messages: Vec<Message>,
    /// Workers from which exactly one message is expected, in ascending order.
    pub expect: Vec<usize>,
}

impl Outbox {
    /// An empty outbox that expects nothing.
    #[must_use]
    pub const fn new(kind: TrafficKind, layer: u32) -> Self {
        Self {
            kind,
            layer,
            messages: Vec::new(),
            expect: Vec::new(),
        }
    }

    /// The lane of a message from `from` to `to`.
    #[must_use]
    #[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
    pub const fn lane(&self, from: usize, to: usize) -> Lane {
        Lane {
            layer: self.layer,
            from: from as u32,
            to: to as u32,
            kind: self.kind,
        }
    }
}

/// What arrived: one message per expected sender, in ascending order of sender.
pub type Inbox = Vec<Message>;

/// A started exchange that has not been waited for.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an exchange that is never finished loses its messages"]
pub struct Pending {
    /// Number of this exchange among those of its worker.
    pub ticket: u64,
}

/// How values of several workers become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduce {
    /// Element-wise sum.
    Sum,
    /// Element-wise maximum.
    Max,
}

/// A worker's connection to its peers. Calls block the caller, in virtual time or in real time,
/// until their result is there. All workers make the same collective calls in the same order.
///
/// # Errors
/// Every call fails when another worker has failed or the connection is gone.
pub trait Communicator: Send {
    /// This worker's number, `0..size`.
    fn rank(&self) -> usize;

    /// Number of workers.
    fn size(&self) -> usize;

    /// Counts what is sent from now on under this epoch.
    fn begin_epoch(&mut self, epoch: usize);

    /// This worker's clock: virtual time in simulation, real time otherwise.
    fn now(&self) -> Seconds;

    /// Moves this worker's virtual clock by the time it computed; without effect where time is
    /// real.
    fn elapse(&mut self, compute: Seconds);

    /// Sends the outbox at once and returns; the messages travel while the caller computes.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn start_exchange(&mut self, outbox: Outbox) -> Result<Pending, NetError>;

    /// Waits for the messages of a started exchange.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn finish_exchange(&mut self, pending: Pending) -> Result<Inbox, NetError>;

    /// For a program that plays all workers: moves the clock of every one, for they compute at the same time.
    fn elapse_all(&mut self, compute: Seconds);

    /// For a program that plays all workers: every message of `traffic` leaves its sender now, and the call returns when the
    /// last has arrived. They are counted and take their time like any others; what they hold stays here, where both ends are.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn carry(&mut self, traffic: &Traffic) -> Result<(), NetError>;

    /// Sparse all-to-all: sends and waits.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn exchange(&mut self, outbox: Outbox) -> Result<Inbox, NetError> {
        let pending = self.start_exchange(outbox)?;
        self.finish_exchange(pending)
    }

    /// Combines `values` over all workers in place; afterwards every worker holds the same bits.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn all_reduce(
        &mut self,
        values: &mut [f32],
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<(), NetError>;

    /// Hands `value` of worker 0 to every worker out of band: it takes no time and counts no bytes.
    /// Only for what is not part of the training being measured: evaluation results and the
    /// decision to stop.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn share(&mut self, value: Option<Vec<u8>>) -> Result<Vec<u8>, NetError>;
}

/// Bytes of `values` 4-byte floats.
#[must_use]
pub const fn f32_bytes(values: usize) -> Bytes {
    Bytes(values as u64 * 4)
}
