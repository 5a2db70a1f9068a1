//! How a worker talks to the others: one trait, implemented by each engine.

use serde::{Deserialize, Serialize};

use super::{Bytes, Collective, Lane, NetError, Seconds, Traffic, TrafficKind};

/// One message of an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    pub const fn new(kind: TrafficKind, layer: u32) -> Self {
        Self {
            kind,
            layer,
            messages: Vec::new(),
            expect: Vec::new(),
        }
    }

    /// The lane of a message from `from` to `to`.
    pub const fn lane(&self, from: usize, to: usize) -> Lane {
        Lane::new(self.layer, from, to, self.kind)
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

/// A started collective that has not been waited for.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a collective that is never finished loses its result"]
pub struct PendingCollective {
    /// Number of this collective among those of its worker.
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

impl Reduce {
    /// One's own value and a received one.
    pub fn of(self, own: f32, received: f32) -> f32 {
        match self {
            Self::Sum => own + received,
            Self::Max => own.max(received),
        }
    }
}

/// A worker's connection to its peers. Calls block the caller, in virtual time or in real time,
/// until their result is there. All workers make the same collective calls in the same order.
///
/// # Errors
/// Every call fails when another worker has failed or the connection is gone.
///
/// # Example
/// Four workers over emulated Ethernet of 1 Gb/s sum a thousand floats around a ring: each sends
/// six messages of a quarter of them, 24 kB in all.
///
/// ```
/// use grapevine::net::{NetworkSpec, Reduce, TrafficKind};
/// use grapevine::sim::{Cluster, SimError, run_workers};
///
/// let network: NetworkSpec = toml::from_str("preset = 'ethernet-1g'").expect("it is TOML");
/// let cluster = Cluster::new(network.topology(4)?.into(), network.framing());
/// let results = run_workers(&cluster, 4, |mut worker| {
///     worker.begin_epoch(0);
///     let mut values = vec![worker.rank() as f32; 1000];
///     worker.all_reduce(&mut values, Reduce::Sum, TrafficKind::ParameterGradient)?;
///     assert_eq!(values[0], 6.0);
///     Ok(())
/// })?;
/// assert_eq!(results.ledger.traffic().payload_of(TrafficKind::ParameterGradient).0, 24_000);
/// # Ok::<(), SimError>(())
/// ```
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

    /// As [`Self::elapse`], told before the computing is done: what follows up to
    /// [`Self::caught_up`] may be done while other workers go on.
    fn elapse_ahead(&mut self, compute: Seconds) {
        self.elapse(compute);
    }

    /// What [`Self::elapse_ahead`] told of has been done.
    fn caught_up(&mut self) {}

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

    /// For a program that plays all workers: moves the clock of every one while those that are
    /// `busy` compute, at the same time; the others wait for them.
    ///
    /// # Panics
    /// If one of `busy` is no worker.
    fn elapse_all(&mut self, compute: Seconds, busy: &[usize]);

    /// For a program that plays all workers: every message of `traffic` leaves its sender now, and
    /// the call returns when the last has arrived. They are counted and take their time like any
    /// others; what they hold stays here, where both ends are.
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

    /// Starts this worker's part of a collective on its values and returns; its steps are taken, as
    /// far as messages arrive, while the caller computes. All workers start the same one.
    ///
    /// The root of a gather has room for all values, with its own in their place; who gets nothing
    /// may end with anything.
    ///
    /// Collectives of one worker are carried out one after another in the order in which they were
    /// started, as on one stream of a device; exchanges go their own ways beside them.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn start_collective(
        &mut self,
        collective: &Collective,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, NetError>;

    /// Waits for a started collective and returns what became of the values.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn finish_collective(&mut self, pending: PendingCollective) -> Result<Vec<f32>, NetError>;

    /// Starts to combine `values` over all workers; [`Communicator::finish_collective`] returns the
    /// result, the same bits on every worker.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn start_all_reduce(
        &mut self,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, NetError> {
        self.start_collective(&Collective::AllReduce(values.len()), values, op, kind)
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
    ) -> Result<(), NetError> {
        let pending = self.start_all_reduce(values.to_vec(), op, kind)?;
        values.copy_from_slice(&self.finish_collective(pending)?);
        Ok(())
    }

    /// Returns when every worker has called it: an all-reduce of one number, whose messages are
    /// counted as `kind`.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn barrier(&mut self, kind: TrafficKind) -> Result<(), NetError> {
        // One number, as a message of none is not sent and would keep nobody waiting.
        self.all_reduce(&mut [0.0], Reduce::Max, kind)
    }

    /// Puts the values of worker `root` in the place of everybody's, along a binomial tree.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn broadcast(
        &mut self,
        root: usize,
        values: &mut [f32],
        kind: TrafficKind,
    ) -> Result<(), NetError> {
        let len = values.len();
        let broadcast = Collective::Broadcast { root, len };
        // A broadcast combines nothing; the operation is there because every collective names one.
        let pending = self.start_collective(&broadcast, values.to_vec(), Reduce::Sum, kind)?;
        values.copy_from_slice(&self.finish_collective(pending)?);
        Ok(())
    }

    /// The values of all workers in the order of ranks on worker `root`, of which each worker r has
    /// `lens[r]`; nothing on the others.
    ///
    /// # Errors
    /// If `lens` has not one entry for each worker, or this worker's is not the number of its
    /// values; and see [`Communicator`].
    fn gather(
        &mut self,
        root: usize,
        values: &[f32],
        lens: &[usize],
        kind: TrafficKind,
    ) -> Result<Vec<f32>, NetError> {
        let rank = self.rank();
        let mut mine = own_in_place(rank, self.size(), values, lens)?;
        if rank != root {
            mine = values.to_vec();
        }
        let lens = lens.into();
        let gather = Collective::Gather { root, lens };
        let pending = self.start_collective(&gather, mine, Reduce::Sum, kind)?;
        let gathered = self.finish_collective(pending)?;
        Ok(if rank == root { gathered } else { Vec::new() })
    }

    /// The values of all workers in the order of ranks on every worker, of which each worker r has
    /// `lens[r]`.
    ///
    /// # Errors
    /// As [`Communicator::gather`].
    fn all_gather(
        &mut self,
        values: &[f32],
        lens: &[usize],
        kind: TrafficKind,
    ) -> Result<Vec<f32>, NetError> {
        let all = own_in_place(self.rank(), self.size(), values, lens)?;
        let gather = Collective::AllGather(lens.into());
        let pending = self.start_collective(&gather, all, Reduce::Sum, kind)?;
        self.finish_collective(pending)
    }

    /// Hands `value` of worker 0 to every worker out of band: it travels in no time and counts no
    /// bytes. Who asks before worker 0 gives it waits. Only for what is not part of the training
    /// being measured and yet decides how it goes on: evaluation results.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn share(&mut self, value: Option<Vec<u8>>) -> Result<Vec<u8>, NetError>;

    /// Sends each message to its peer and returns one from each of `expect`, which ascend, out of
    /// band: neither counted nor timed. Only for what is no part of the training being measured, on
    /// real processes; in simulation one worker does that for all.
    ///
    /// # Errors
    /// In simulation, and see [`Communicator`].
    fn exchange_aside(
        &mut self,
        _messages: Vec<Message>,
        _expect: &[usize],
    ) -> Result<Inbox, NetError> {
        Err(NetError::Protocol {
            rank: self.rank(),
            reason: "it sends aside of the network, which is for real processes".to_owned(),
        })
    }

    /// Waits until every worker has come, in real time, which counts as waiting. In virtual time
    /// nobody waits.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn meet(&mut self) -> Result<(), NetError> {
        Ok(())
    }

    /// Clock and ledger of this worker as bytes, where it has its own; nothing in simulation, where
    /// they are everybody's.
    fn account(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Goes on with what [`Communicator::account`] gave, instead of what there is.
    ///
    /// # Errors
    /// If it gave something else.
    fn go_on_with(&mut self, _account: &[u8]) -> Result<(), NetError> {
        Ok(())
    }

    /// Waits, in real time and out of the account, until worker 0 has done what is not part of the
    /// training. In virtual time that takes none, and nobody waits.
    ///
    /// # Errors
    /// See [`Communicator`].
    fn stand_by(&mut self) -> Result<(), NetError> {
        Ok(())
    }
}

/// Room for the values of all workers, with those of `rank` in their place.
fn own_in_place(
    rank: usize,
    size: usize,
    values: &[f32],
    lens: &[usize],
) -> Result<Vec<f32>, NetError> {
    if lens.len() != size || lens[rank] != values.len() {
        let reason = format!(
            "it gathers {} values and says that the {size} workers have {lens:?}",
            values.len(),
        );
        return Err(NetError::Protocol { rank, reason });
    }
    let mut all = vec![0.0; lens.iter().sum()];
    let start: usize = lens[..rank].iter().sum();
    all[start..][..values.len()].copy_from_slice(values);
    Ok(all)
}

/// Bytes of `values` 4-byte floats.
pub(crate) const fn f32_bytes(values: usize) -> Bytes {
    Bytes(values as u64 * 4)
}
