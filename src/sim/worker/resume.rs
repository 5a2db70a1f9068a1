//! A training that writes checkpoints, and goes on from one.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{PendingExchange, Restoring, Worker};
use crate::net::{
    Collective, Message, Outbox, Pending, PendingCollective, Reduce, Seconds, TrafficKind,
};
use crate::sim::checkpoint::{Checkpoints, Loading, Past, Saving, newest_of_all};
use crate::sim::plan::{Decision, Phase};
use crate::sim::record::Report;
use crate::sim::{Engine, SimError};

/// Takes down what a checkpoint has beside the state of the program.
pub(super) struct Keeper {
    checkpoints: Arc<Checkpoints>,
    past: Past,
}

impl Worker {
    /// The same with checkpoints.
    pub(in crate::sim) fn with_checkpoints(self, checkpoints: Option<Arc<Checkpoints>>) -> Self {
        let keeper = |checkpoints| Keeper {
            checkpoints,
            past: Past::default(),
        };
        Self {
            keeper: checkpoints.map(keeper),
            ..self
        }
    }

    /// The epoch with which the training begins: 0, or where a checkpoint of all workers goes on;
    /// `restore` then gives the program the state that it [saved](Self::checkpoint). To be called
    /// once, before the first epoch.
    ///
    /// # Errors
    /// If a checkpoint does not hold what is restored, or another worker failed.
    pub fn resume(
        &mut self,
        restore: impl FnOnce(&mut Restoring<'_>) -> Result<(), SimError>,
    ) -> Result<usize, SimError> {
        let Some(keeper) = &self.keeper else {
            return Ok(0);
        };
        let checkpoints = Arc::clone(&keeper.checkpoints);
        let (rank, workers) = (self.rank(), self.size());
        let epochs = match self.setting.engine {
            Engine::Simulated => checkpoints.common(workers),
            Engine::Mpi(_) => self.agreed(&checkpoints.whole(rank, workers))?,
        };
        // Newer ones, which not all have, would count as the newest until this run has passed them.
        checkpoints.forget_after(rank, workers, epochs);
        if epochs == 0 {
            return Ok(0);
        }
        let (mut past, state) = checkpoints.read(rank, workers, epochs)?;
        let under_way = self.rehearse(&past)?;
        let begun = Instant::now();
        self.communicator.go_on_with(&past.account)?;
        self.restores = true;
        let mut restoring = Restoring::new(Loading::new(&state), self, under_way);
        restore(&mut restoring)?;
        restoring.end()?;
        self.restores = false;
        let mut recorder = self.recorder();
        for &((epoch, lane), error) in &past.coding_errors {
            recorder.add_coding_error(epoch, lane, error);
        }
        for report in &past.reports {
            recorder.hear(report.clone());
        }
        // In simulation all workers have one recorder, whose time worker 0 keeps.
        if rank == 0 || matches!(self.setting.engine, Engine::Mpi(_)) {
            recorder.go_on_after(past.measured);
        } else {
            recorder.pause(begun.elapsed());
        }
        drop(recorder);
        if rank == 0 {
            (checkpoints.note)(&format!(
                "goes on from a checkpoint after epoch {}",
                epochs - 1
            ));
        }
        past.coding_errors.clear();
        if let Some(keeper) = &mut self.keeper {
            keeper.past = past;
        }
        Ok(epochs)
    }

    /// Whether checkpoints are written, for what is kept for them alone.
    pub(crate) const fn writes_checkpoints(&self) -> bool {
        self.keeper.is_some()
    }

    /// Writes a checkpoint after an epoch that has ended, if one is due; `save` adds the state of
    /// the program. Takes no virtual time, and no part of the real time of training.
    ///
    /// # Errors
    /// If it cannot be written, or another worker failed.
    pub fn checkpoint(
        &mut self,
        epoch: usize,
        save: impl FnOnce(&Self, &mut Saving),
    ) -> Result<(), SimError> {
        let (rank, workers, over) = (self.rank(), self.size(), epoch + 1);
        let due = |keeper: &Keeper| keeper.checkpoints.are_due(over, self.epochs);
        if !self.keeper.as_ref().is_some_and(due) {
            return Ok(());
        }
        // Who is here has written the checkpoint before this one.
        self.communicator.meet()?;
        self.recorder().beside.enter();
        let mut state = Saving::default();
        save(self, &mut state);
        let state = state.into_bytes()?;
        let measured = self.recorder().measured();
        let coding_errors = self.recorder().coding_errors_of(rank);
        let account = self.communicator.account();
        if let Some(Keeper { checkpoints, past }) = &mut self.keeper {
            if past.collectives > 0 {
                let what = "a checkpoint is due while a collective is under way";
                return Err(SimError::Strategy(what.to_owned()));
            }
            past.epochs = over;
            past.measured = measured;
            (past.coding_errors, past.account) = (coding_errors, account);
            checkpoints.write(rank, workers, past, &state)?;
            let all_here = matches!(self.setting.engine, Engine::Simulated);
            checkpoints.prune(rank, workers, all_here);
        }
        self.recorder().beside.leave();
        Ok(self.communicator.stand_by()?)
    }

    /// Of all processes the newest checkpoint that each has, of which this one has these.
    fn agreed(&mut self, mine: &[usize]) -> Result<usize, SimError> {
        let bytes = |list: &[usize]| {
            list.iter()
                .flat_map(|&n| (n as u64).to_le_bytes())
                .collect()
        };
        let list = |message: &Message| {
            let (words, _) = message.payload.as_chunks::<8>();
            let number = |word: &[u8; 8]| u64::from_le_bytes(*word) as usize;
            words.iter().map(number).collect::<Vec<usize>>()
        };
        let to = |peer: usize, list: &[usize]| Message {
            peer,
            payload: bytes(list),
        };
        let (rank, workers) = (self.rank(), self.size());
        if rank > 0 {
            let told = self.communicator.exchange_aside(vec![to(0, mine)], &[0])?;
            return Ok(told.first().map_or(0, |told| newest_of_all(&[list(told)])));
        }
        let others: Vec<usize> = (1..workers).collect();
        let told = self.communicator.exchange_aside(Vec::new(), &others)?;
        let mut all: Vec<Vec<usize>> = told.iter().map(list).collect();
        all.push(mine.to_vec());
        let agreed = newest_of_all(&all);
        let tell = others.iter().map(|&peer| to(peer, &[agreed]));
        self.communicator.exchange_aside(tell.collect(), &[])?;
        Ok(agreed)
    }

    /// Goes through the plan of the epochs that are over, and sends again what is under way. In
    /// simulation all messages travel again, by sizes, and computing takes the time that it took.
    fn rehearse(&mut self, past: &Past) -> Result<BTreeMap<u64, PendingExchange>, SimError> {
        let simulated = matches!(self.setting.engine, Engine::Simulated);
        let mut again = Replay {
            past,
            took: past.took.iter(),
            exchanges: 0,
            waiting: VecDeque::new(),
            collectives: VecDeque::new(),
            under_way: BTreeMap::new(),
        };
        for epoch in 0..past.epochs {
            self.following.begin(epoch, past.decisions.get(&epoch))?;
            if !simulated {
                self.following.pass_all();
                continue;
            }
            self.communicator.begin_epoch(epoch);
            while let Some(phase) = self.following.pass() {
                again.play(self, epoch, phase)?;
            }
        }
        if !simulated {
            for (&number, sent) in &past.under_way {
                again.exchanges = number;
                again.start(self, sent.clone())?;
            }
        }
        Ok(again.under_way)
    }

    pub(super) fn keep_time(&mut self, took: Duration) {
        let measured = !self.setting.models_compute();
        if let Some(keeper) = &mut self.keeper
            && measured
            && matches!(self.setting.engine, Engine::Simulated)
        {
            keeper.past.took.push(took.as_nanos() as u64);
        }
    }

    pub(super) fn keep_decision(&mut self, epoch: usize, decided: Option<&Decision>) {
        if let (Some(keeper), Some(decided)) = (&mut self.keeper, decided) {
            keeper.past.decisions.insert(epoch, decided.clone());
        }
    }

    pub(super) fn keep_report(&mut self, report: Report) {
        if let Some(keeper) = &mut self.keeper {
            keeper.past.reports.push(report);
        }
    }

    /// The number of an exchange that begins.
    pub(super) fn keep_exchange(&mut self, outbox: &Outbox) -> u64 {
        let Some(Keeper { past, .. }) = &mut self.keeper else {
            return 0;
        };
        let number = past.exchanges;
        past.exchanges += 1;
        // Nobody knows yet whether it is under way when the next checkpoint is due.
        past.under_way.insert(number, outbox.clone());
        number
    }

    pub(super) fn keep_end_of(&mut self, exchange: u64) {
        if let Some(keeper) = &mut self.keeper {
            keeper.past.under_way.remove(&exchange);
        }
    }

    pub(super) const fn keep_collective(&mut self, begins: bool) {
        if let Some(keeper) = &mut self.keeper {
            let under_way = &mut keeper.past.collectives;
            *under_way = if begins {
                *under_way + 1
            } else {
                under_way.saturating_sub(1)
            };
        }
    }
}

/// Epochs that are over, played again by one worker.
struct Replay<'a> {
    past: &'a Past,
    took: std::slice::Iter<'a, u64>,
    exchanges: u64,
    /// Exchanges and collectives whose ends come, in the order in which they began.
    waiting: VecDeque<(TrafficKind, u32, Pending)>,
    collectives: VecDeque<PendingCollective>,
    /// Exchanges whose ends come after the checkpoint.
    under_way: BTreeMap<u64, PendingExchange>,
}

impl Replay<'_> {
    fn play(&mut self, worker: &mut Worker, epoch: usize, phase: Phase) -> Result<(), SimError> {
        let communicator = &mut worker.communicator;
        match phase {
            Phase::Compute(work) => {
                let took = Duration::from_nanos(self.took.next().copied().unwrap_or(0));
                let (rank, factor) = (communicator.rank(), worker.compute_factor);
                let time: Seconds = worker.setting.timing.time(rank, work, took, factor);
                communicator.elapse(time);
            }
            Phase::Start(exchange) => {
                let message = |&(peer, bytes): &(u32, crate::net::Bytes)| Message {
                    peer: peer as usize,
                    // No float, and no row: if anybody read it, that would show.
                    payload: vec![u8::MAX; bytes.0 as usize],
                };
                let sent = self.past.under_way.get(&self.exchanges).cloned();
                let outbox = sent.unwrap_or_else(|| Outbox {
                    kind: exchange.kind,
                    layer: exchange.layer,
                    messages: exchange.to.iter().map(message).collect(),
                    expect: exchange.from.iter().map(|&peer| peer as usize).collect(),
                });
                self.start(worker, outbox)?;
            }
            Phase::Finish(kind, layer) => {
                let of = |(k, l, _): &(TrafficKind, u32, Pending)| (*k, *l) == (kind, layer);
                let at = self.waiting.iter().position(of);
                let Some((_, _, pending)) = at.and_then(|at| self.waiting.remove(at)) else {
                    return Err(other(&format!("waits for {kind} of layer {layer}")));
                };
                communicator.finish_exchange(pending)?;
            }
            Phase::Reduce(collective, kind) => {
                let values = vec![f32::NAN; values_of(&collective, communicator.rank())];
                let pending =
                    communicator.start_collective(&collective, values, Reduce::Sum, kind)?;
                self.collectives.push_back(pending);
            }
            Phase::Collect => {
                let first = self.collectives.pop_front();
                let pending = first.ok_or_else(|| other("waits for a collective"))?;
                communicator.finish_collective(pending)?;
            }
            Phase::Share => {
                let value = (communicator.rank() == 0).then(Vec::new);
                communicator.share(value)?;
            }
            Phase::CountUnder(ahead) => communicator.begin_epoch(epoch + ahead),
            Phase::ComputeTogether { .. } | Phase::Carry(_) => {
                return Err(other("plays all workers"));
            }
        }
        Ok(())
    }

    fn start(&mut self, worker: &mut Worker, outbox: Outbox) -> Result<(), SimError> {
        let (kind, layer, number) = (outbox.kind, outbox.layer, self.exchanges);
        self.exchanges += 1;
        let pending = worker.communicator.start_exchange(outbox)?;
        if self.past.under_way.contains_key(&number) {
            let pending = PendingExchange {
                pending,
                kind,
                layer,
                number,
            };
            self.under_way.insert(number, pending);
        } else {
            self.waiting.push_back((kind, layer, pending));
        }
        Ok(())
    }
}

/// How many values a worker puts into a collective.
fn values_of(collective: &Collective, rank: usize) -> usize {
    match collective {
        Collective::AllReduce(len) | Collective::Broadcast { len, .. } => *len,
        Collective::Gather { root, lens } if *root != rank => lens[rank],
        Collective::Gather { lens, .. } | Collective::AllGather(lens) => lens.iter().sum(),
    }
}

fn other(what: &str) -> SimError {
    SimError::Strategy(format!("a plan that goes up to a checkpoint {what}"))
}
