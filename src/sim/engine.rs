//! The simulated engine: one thread per worker, one turn among them, and a seat for each that
//! computes beside it.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::SimError;
pub use super::kernel::EngineResults;
use super::kernel::{Expected, Kernel};
use super::trace::Trace;
use crate::net::{
    AllReduceKind, Collective, Communicator, ExchangeKind, Fabric, Framing, Inbox, NetError,
    Outbox, Pending, PendingCollective, Reduce, Seconds, Topology, Traffic, TrafficKind,
};

/// Stack of a worker's thread. Only the pages a worker touches take memory.
// As the main thread has on Linux; a thread's default of 2 MiB is less.
const STACK_BYTES: usize = 8 << 20;

struct Shared {
    kernel: Mutex<Kernel>,
    // One for each worker: with a single one, every change of turn would wake all threads for one
    // of them.
    turns: Vec<Condvar>,
    seats: Seats,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kernel> {
        // A panicking worker is turned into a failure of the run; the kernel's data stay consistent
        // between calls.
        self.kernel.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes who has the turn; everybody after a failure. Called without the lock, which the woken
    /// worker takes at once.
    fn wake(&self, turn: Option<usize>) {
        match turn {
            Some(rank) => self.turns[rank].notify_one(),
            None => self.turns.iter().for_each(Condvar::notify_all),
        }
    }

    fn wait_for_turn<'a>(
        &'a self,
        rank: usize,
        mut kernel: MutexGuard<'a, Kernel>,
    ) -> Result<MutexGuard<'a, Kernel>, NetError> {
        loop {
            if let Some(failure) = kernel.failure() {
                return Err(failure);
            }
            if kernel.turn() == Some(rank) {
                return Ok(kernel);
            }
            kernel = self.turns[rank]
                .wait(kernel)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Runs of this process that are under way.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// Room for those of a run who compute without the turn: runs share the cores, and each has a seat.
#[derive(Default)]
struct Seats {
    taken: Mutex<usize>,
    given_back: Condvar,
}

/// A seat, given back when it is dropped.
struct Seat(Arc<Shared>);

impl Seat {
    fn take(of: &Arc<Shared>) -> Self {
        let cores = rayon::current_num_threads();
        // This run is one of them.
        let full = |taken: &mut usize| *taken >= (cores / RUNS.load(Ordering::Relaxed)).max(1);
        let Seats { taken, given_back } = &of.seats;
        let taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = given_back.wait_while(taken, full);
        *taken.unwrap_or_else(PoisonError::into_inner) += 1;
        Self(Arc::clone(of))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Seats { taken, given_back } = &self.0.seats;
        *taken.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        given_back.notify_one();
    }
}

/// The emulated network under a run, and how messages use it.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Links and routes; one end for each worker.
    pub topology: Arc<Topology>,
    /// Headers around messages.
    pub framing: Framing,
    /// How all-reduce is carried out.
    pub all_reduce: AllReduceKind,
    /// How the messages of an exchange travel.
    pub exchange: ExchangeKind,
    /// Of how many epochs a timeline is kept.
    pub timeline_epochs: usize,
}

impl Cluster {
    /// Rings, direct exchanges and no timeline.
    pub fn new(topology: Arc<Topology>, framing: Framing) -> Self {
        Self {
            topology,
            framing,
            all_reduce: AllReduceKind::default(),
            exchange: ExchangeKind::default(),
            timeline_epochs: 0,
        }
    }
}

/// A worker's end of the emulated network.
struct SimCommunicator {
    rank: usize,
    size: usize,
    all_reduce: AllReduceKind,
    exchange: ExchangeKind,
    shared: Arc<Shared>,
    next_ticket: u64,
    pending: Vec<(u64, Expected)>,
    /// Collectives started so far, and which of them are not finished.
    collectives: u64,
    collecting: Vec<u64>,
    /// Whether it computes, or has computed, without the turn.
    ahead: Cell<bool>,
    seat: Option<Seat>,
}

impl SimCommunicator {
    /// The kernel, with the turn: whoever computed without it waits here until it comes.
    ///
    /// # Errors
    /// If the run has failed: a worker that was computing then hears of it here.
    fn kernel(&self) -> Result<MutexGuard<'_, Kernel>, NetError> {
        let kernel = self.shared.lock();
        if self.ahead.take() {
            let mut kernel = self.shared.wait_for_turn(self.rank, kernel)?;
            kernel.settle(self.rank);
            return Ok(kernel);
        }
        match kernel.failure() {
            Some(failure) => Err(failure),
            None => Ok(kernel),
        }
    }

    /// Does something that may block, and returns when this worker has the turn again.
    fn blocking<T>(
        &self,
        enter: impl FnOnce(&mut Kernel),
        leave: impl FnOnce(&mut Kernel) -> T,
    ) -> Result<T, NetError> {
        // One lock for everything: only the holder of the turn does more than wait, so nobody
        // contends.
        let mut kernel = self.kernel()?;
        enter(&mut kernel);
        if !kernel.is_runnable(self.rank) {
            kernel.pass_turn();
            let turn = kernel.turn();
            drop(kernel);
            self.shared.wake(turn);
            kernel = self.shared.wait_for_turn(self.rank, self.shared.lock())?;
        }
        Ok(leave(&mut kernel))
    }
}

impl Communicator for SimCommunicator {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn begin_epoch(&mut self, epoch: usize) {
        // As below: after a failure no epoch counts.
        if let Ok(mut kernel) = self.kernel() {
            kernel.set_epoch(self.rank, epoch);
        }
    }

    fn now(&self) -> Seconds {
        self.shared.lock().clock(self.rank)
    }

    fn elapse(&mut self, compute: Seconds) {
        // After a failure no clock counts, and the next call that can tell of it does.
        if let Ok(mut kernel) = self.kernel() {
            kernel.compute(self.rank, compute);
        }
    }

    fn elapse_ahead(&mut self, compute: Seconds) {
        let mut kernel = self.shared.lock();
        let had_turn = kernel.turn() == Some(self.rank);
        kernel.compute_ahead(self.rank, compute);
        let turn = kernel.turn();
        drop(kernel);
        if had_turn {
            self.shared.wake(turn);
        }
        self.ahead.set(true);
        self.seat = Some(Seat::take(&self.shared));
    }

    fn caught_up(&mut self) {
        self.seat = None;
    }

    fn elapse_all(&mut self, compute: Seconds, busy: &[usize]) {
        if let Ok(mut kernel) = self.kernel() {
            kernel.compute_all(self.rank, compute, busy);
        }
    }

    fn carry(&mut self, traffic: &Traffic) -> Result<(), NetError> {
        self.kernel()?.check_conductor(self.rank)?;
        self.blocking(|kernel| kernel.carry(traffic), |_| ())
    }

    fn start_exchange(&mut self, outbox: Outbox) -> Result<Pending, NetError> {
        let (rank, how) = (self.rank, self.exchange);
        let expected = self.kernel()?.start_exchange(rank, how, outbox)?;
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.pending.push((ticket, expected));
        Ok(Pending { ticket })
    }

    fn finish_exchange(&mut self, pending: Pending) -> Result<Inbox, NetError> {
        let Some(place) = self
            .pending
            .iter()
            .position(|(ticket, _)| *ticket == pending.ticket)
        else {
            return Err(NetError::Protocol {
                rank: self.rank,
                reason: "it finished an exchange that it did not start".to_owned(),
            });
        };
        let (_, expected) = self.pending.remove(place);
        // Who expects nothing has nothing to wait for, and keeps the turn.
        if expected.from.is_empty() {
            return Ok(Inbox::new());
        }
        let (rank, how) = (self.rank, self.exchange);
        self.blocking(
            |kernel| kernel.finish_exchange(rank, how, expected),
            |kernel| kernel.take_inbox(rank),
        )
    }

    fn start_collective(
        &mut self,
        collective: &Collective,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, NetError> {
        let (rank, ticket) = (self.rank, self.collectives);
        let steps = collective.steps(&self.all_reduce, rank, self.size);
        let what = (collective, op);
        self.kernel()?
            .start_collective(rank, ticket, what, steps, values, kind);
        self.collectives += 1;
        self.collecting.push(ticket);
        Ok(PendingCollective { ticket })
    }

    fn finish_collective(&mut self, pending: PendingCollective) -> Result<Vec<f32>, NetError> {
        let rank = self.rank;
        let Some(place) = self.collecting.iter().position(|&at| at == pending.ticket) else {
            return Err(NetError::Protocol {
                rank,
                reason: "it finished a collective that it did not start".to_owned(),
            });
        };
        self.collecting.remove(place);
        self.blocking(
            |kernel| kernel.finish_collective(rank, pending.ticket),
            |kernel| kernel.take_reduced(rank, pending.ticket, &self.all_reduce),
        )
    }

    fn share(&mut self, value: Option<Vec<u8>>) -> Result<Vec<u8>, NetError> {
        let rank = self.rank;
        self.blocking(
            |kernel| kernel.share(rank, value),
            |kernel| kernel.take_shared(rank),
        )
    }
}

/// Runs `program` on the emulated network: once per worker, or once for the first `actors` of them
/// alone, which then play the others' parts too.
///
/// # Errors
/// The first error of any worker; the others are stopped.
pub fn run_workers<P>(
    cluster: &Cluster,
    actors: usize,
    program: P,
) -> Result<EngineResults, SimError>
where
    P: Fn(Box<dyn Communicator>) -> Result<(), SimError> + Sync,
{
    let workers = cluster.topology.workers();
    let fabric = Fabric::new(Arc::clone(&cluster.topology), cluster.framing);
    let timeline = Trace::new(cluster.timeline_epochs);
    let shared = Arc::new(Shared {
        kernel: Mutex::new(Kernel::new(fabric, workers, actors, timeline)),
        turns: (0..workers).map(|_| Condvar::new()).collect(),
        seats: Seats::default(),
    });
    RUNS.fetch_add(1, Ordering::Relaxed);
    // Threads, although one has the turn: a program waits where it stands, as it does on real
    // processes.
    let outcomes: Vec<Result<(), SimError>> = thread::scope(|scope| {
        let handles: Vec<_> = (0..actors)
            .map(|rank| {
                let (shared, program) = (Arc::clone(&shared), &program);
                let all = Arc::clone(&shared);
                thread::Builder::new()
                    .name(format!("worker {rank}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || run_worker(rank, cluster, &shared, program))
                    .map_err(|error| {
                        // At once, for others wait for what this one would send.
                        let message = format!("cannot start its thread: {error}");
                        all.lock().fail(rank, message.clone());
                        all.wake(None);
                        SimError::Panicked { rank, message }
                    })
            })
            .collect();
        handles
            .into_iter()
            .enumerate()
            .map(|(rank, handle)| match handle {
                Ok(handle) => handle
                    .join()
                    .unwrap_or_else(|panic| Err(panicked(rank, &*panic))),
                Err(error) => Err(error),
            })
            .collect()
    });
    RUNS.fetch_sub(1, Ordering::Relaxed);
    // The failing worker's own error says more than what its peers saw of it.
    let mut echo = None;
    for outcome in outcomes {
        match outcome {
            Ok(()) => {}
            // What peers saw comes back as this error; any of them tells the same cause.
            Err(SimError::Net(error @ NetError::PeerFailed { .. })) => echo = Some(error),
            Err(error) => return Err(error),
        }
    }
    // No worker failed by itself: the kernel found that they wait for each other, or for a link
    // that never comes back.
    if let Some(error) = echo {
        return Err(error.into());
    }
    // All threads have ended, so that only a communicator kept somewhere can hold the kernel.
    let shared = Arc::into_inner(shared).ok_or_else(|| {
        SimError::Strategy("a worker kept its communicator after it had ended".to_owned())
    })?;
    let kernel = shared
        .kernel
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    Ok(kernel.into_results())
}

fn run_worker<P>(
    rank: usize,
    cluster: &Cluster,
    shared: &Arc<Shared>,
    program: &P,
) -> Result<(), SimError>
where
    P: Fn(Box<dyn Communicator>) -> Result<(), SimError>,
{
    // Nothing of a program runs before its turn, not even the making of its worker, so that it
    // disturbs nobody's measured computing.
    drop(shared.wait_for_turn(rank, shared.lock())?);
    let communicator = SimCommunicator {
        rank,
        // All of them, also those whose parts worker 0 plays.
        size: cluster.topology.workers(),
        all_reduce: cluster.all_reduce.clone(),
        exchange: cluster.exchange,
        shared: Arc::clone(shared),
        next_ticket: 0,
        pending: Vec::new(),
        collectives: 0,
        collecting: Vec::new(),
        ahead: Cell::new(false),
        seat: None,
    };
    // The kernel is consistent between calls, and nothing else of a program that panicked is looked
    // at again.
    let outcome = catch_unwind(AssertUnwindSafe(|| program(Box::new(communicator))))
        .unwrap_or_else(|panic| Err(panicked(rank, &*panic)));
    let mut kernel = shared.lock();
    match &outcome {
        // Who computed last has not the turn.
        Ok(()) => {
            kernel = shared.wait_for_turn(rank, kernel)?;
            kernel.settle(rank);
            kernel.finish(rank);
        }
        Err(error) => kernel.fail(rank, error.to_string()),
    }
    let turn = kernel.turn();
    drop(kernel);
    shared.wake(turn);
    outcome
}

/// The error of a program that panicked.
pub(super) fn panicked(rank: usize, panic: &(dyn Any + Send)) -> SimError {
    let message = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_else(|| "no message".to_owned());
    SimError::Panicked { rank, message }
}
