//! A training that follows its plan.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Decision, Exchange, Phase, Planner, Timeline, Track};
use crate::model::Work;
use crate::net::{AllReduceKind, Bytes, Collective, Ledger, Outbox, Traffic, TrafficKind};
use crate::sim::SimError;

/// The plan of a run, of which all workers of this process read.
pub(crate) struct Script {
    all_reduce: AllReduceKind,
    state: Mutex<State>,
}

struct State {
    planner: Box<dyn Planner>,
    /// Plans that not all workers have asked for, and how many have.
    open: BTreeMap<usize, (Arc<Timeline>, usize)>,
    readers: usize,
    /// Every message of the plans so far.
    traffic: Ledger,
    last: Arc<Timeline>,
    /// Whether any of it was counted under another epoch than its own.
    elsewhere: bool,
    decisions: BTreeMap<usize, Decision>,
}

impl Script {
    /// A script for so many workers.
    pub(crate) fn new(
        planner: Box<dyn Planner>,
        readers: usize,
        all_reduce: AllReduceKind,
    ) -> Self {
        Self {
            all_reduce,
            state: Mutex::new(State {
                planner,
                open: BTreeMap::new(),
                readers,
                traffic: Ledger::new(),
                last: Arc::default(),
                elsewhere: false,
                decisions: BTreeMap::new(),
            }),
        }
    }

    /// The plan of an epoch, which every worker asks for once. All of them decide the same, so the
    /// first one's decision counts.
    fn epoch(&self, epoch: usize, decided: Option<&Decision>) -> Result<Arc<Timeline>, SimError> {
        // A worker that panicked here has ended the run.
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = &mut *guard;
        if !state.open.contains_key(&epoch) {
            let timeline = state.planner.next(decided);
            // A planner goes forward only. An epoch that is not open has to be the next one.
            if timeline.epoch != epoch {
                return Err(SimError::Strategy(format!(
                    "it begins epoch {epoch} where its plan goes on with epoch {}",
                    timeline.epoch
                )));
            }
            state.elsewhere |= timeline.counts_elsewhere();
            if !state.elsewhere && epoch > 0 && timeline.is_held_as(&state.last) {
                state.traffic.repeat(state.last.epoch, epoch);
            } else {
                timeline.traffic(&self.all_reduce, &mut state.traffic);
            }
            state.last = Arc::clone(&timeline);
            if let Some(decided) = decided {
                state.decisions.insert(epoch, decided.clone());
            }
            state.open.insert(epoch, (timeline, 0));
        }
        // It has just been put there, if it was not there before. The error stands in for a panic.
        let Some((timeline, readers)) = state.open.get_mut(&epoch) else {
            return Err(SimError::Strategy(format!("there is no epoch {epoch}")));
        };
        let timeline = Arc::clone(timeline);
        *readers += 1;
        // A plan is dropped after its last reader: only those between the slowest and the fastest
        // worker are held.
        if *readers == state.readers {
            state.open.remove(&epoch);
        }
        Ok(timeline)
    }

    /// Every message that was planned, and what was decided.
    pub(crate) fn into_parts(self) -> (Ledger, BTreeMap<usize, Decision>) {
        let state = self.state.into_inner();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        (state.traffic, state.decisions)
    }
}

/// Where a worker is in its plan.
pub(crate) struct Following {
    script: Arc<Script>,
    rank: usize,
    timeline: Arc<Timeline>,
    /// Place of the next phase: its stretch, how often that was followed, and within it.
    stretch: usize,
    followed: usize,
    next: usize,
    /// How many phases of the epoch are over.
    over: usize,
    begun: bool,
    /// How the program departed from its plan, which ends it at its next step that can fail.
    departed: Option<String>,
}

/// What a program does, for comparison with its plan.
// Borrowed, for one is made in every step, and written out only where a program departs.
enum Deed<'a> {
    Compute,
    Start(&'a Outbox),
    Finish(TrafficKind, u32),
    Reduce(&'a Collective, TrafficKind),
    Collect,
    Share,
    CountUnder(usize),
    ComputeTogether(&'a [usize]),
    Carry(&'a Traffic),
    End,
}

impl Following {
    /// A worker that has not begun.
    pub(crate) fn new(script: Arc<Script>, rank: usize) -> Self {
        Self {
            script,
            rank,
            timeline: Arc::default(),
            stretch: 0,
            followed: 0,
            next: 0,
            over: 0,
            begun: false,
            departed: None,
        }
    }

    /// Goes to the plan of an epoch; stays where it is in one that has begun.
    pub(crate) fn begin(
        &mut self,
        epoch: usize,
        decided: Option<&Decision>,
    ) -> Result<(), SimError> {
        // RETEXO begins the first epoch of a stage for what it hands over before, and again in the
        // loop over its rounds.
        if self.begun && self.timeline.epoch == epoch {
            return self.check();
        }
        if self.begun {
            self.end()?;
        }
        self.timeline = self.script.epoch(epoch, decided)?;
        (self.stretch, self.followed) = (0, 0);
        (self.next, self.over, self.begun) = (0, 0, true);
        self.settle();
        Ok(())
    }

    /// The next phase of an epoch that has begun, which is over with that; none after the last.
    pub(crate) fn pass(&mut self) -> Option<Phase> {
        let phase = self.phases().get(self.next).cloned()?;
        self.go_on();
        Some(phase)
    }

    /// All phases of an epoch that has begun are over.
    pub(crate) fn pass_all(&mut self) {
        (self.stretch, self.next) = (self.timeline.stretches.len(), 0);
    }

    /// The program has come to the end of an epoch, or of all of them.
    pub(crate) fn end(&mut self) -> Result<(), SimError> {
        if self.begun && self.next < self.phases().len() {
            self.depart(&Deed::End);
        }
        self.check()
    }

    /// The error of a program that has departed from its plan.
    pub(crate) fn check(&self) -> Result<(), SimError> {
        match &self.departed {
            Some(how) => Err(SimError::Strategy(how.clone())),
            None => Ok(()),
        }
    }

    /// The work of a piece of computing; none once the program has departed.
    pub(crate) fn compute(&mut self) -> Work {
        match self.phases().get(self.next) {
            Some(&Phase::Compute(work)) if self.departed.is_none() => {
                self.go_on();
                work
            }
            _ => {
                self.depart(&Deed::Compute);
                Work::default()
            }
        }
    }

    /// As [`Self::compute`], of all workers.
    pub(crate) fn compute_together(&mut self, busy: &[usize]) -> Work {
        match self.phases().get(self.next) {
            Some(Phase::ComputeTogether {
                work,
                busy: planned,
            }) if **planned == *busy && self.departed.is_none() => {
                let work = *work;
                self.go_on();
                work
            }
            _ => {
                self.depart(&Deed::ComputeTogether(busy));
                Work::default()
            }
        }
    }

    pub(crate) fn start_exchange(&mut self, outbox: &Outbox) -> Result<(), SimError> {
        self.take(&Deed::Start(outbox), |phase| match phase {
            Phase::Start(exchange) => is_planned(exchange, outbox),
            _ => false,
        })
    }

    pub(crate) fn finish_exchange(
        &mut self,
        kind: TrafficKind,
        layer: u32,
    ) -> Result<(), SimError> {
        let planned = |phase: &Phase| *phase == Phase::Finish(kind, layer);
        self.take(&Deed::Finish(kind, layer), planned)
    }

    pub(crate) fn start_collective(
        &mut self,
        collective: &Collective,
        kind: TrafficKind,
    ) -> Result<(), SimError> {
        let planned = |phase: &Phase| matches!(phase, Phase::Reduce(one, as_kind) if one == collective && *as_kind == kind);
        self.take(&Deed::Reduce(collective, kind), planned)
    }

    pub(crate) fn finish_collective(&mut self) -> Result<(), SimError> {
        self.take(&Deed::Collect, |phase| *phase == Phase::Collect)
    }

    pub(crate) fn share(&mut self) -> Result<(), SimError> {
        self.take(&Deed::Share, |phase| *phase == Phase::Share)
    }

    pub(crate) fn count_under(&mut self, epoch: usize) -> Result<(), SimError> {
        // No plan goes back, and what is before this epoch is far ahead.
        let ahead = epoch.wrapping_sub(self.timeline.epoch);
        let planned = |phase: &Phase| *phase == Phase::CountUnder(ahead);
        self.take(&Deed::CountUnder(ahead), planned)
    }

    pub(crate) fn carry(&mut self, traffic: &Traffic) -> Result<(), SimError> {
        let planned = |phase: &Phase| matches!(phase, Phase::Carry(all) if **all == *traffic);
        self.take(&Deed::Carry(traffic), planned)
    }

    /// From whom the next exchange expects messages.
    pub(crate) fn senders(&self) -> Vec<usize> {
        let mut rest = self.phases()[self.next..].iter();
        let exchange = rest.find_map(|phase| match phase {
            Phase::Start(exchange) => Some(exchange),
            _ => None,
        });
        exchange.map_or_else(Vec::new, |exchange| {
            exchange.from.iter().map(|&peer| peer as usize).collect()
        })
    }

    fn phases(&self) -> &[Phase] {
        let stretch = self.timeline.stretches.get(self.stretch);
        let track = stretch.and_then(|stretch| stretch.workers.get(self.rank));
        track.map_or(&[], Track::phases)
    }

    /// A phase is over.
    fn go_on(&mut self) {
        self.next += 1;
        self.over += 1;
        self.settle();
    }

    /// At the end of a stretch goes to the next phase, if there is one.
    fn settle(&mut self) {
        while let Some(stretch) = self.timeline.stretches.get(self.stretch)
            && self.next >= self.phases().len()
        {
            self.followed += 1;
            if self.followed >= stretch.times {
                (self.stretch, self.followed) = (self.stretch + 1, 0);
            }
            self.next = 0;
        }
    }

    fn take(&mut self, deed: &Deed<'_>, planned: impl Fn(&Phase) -> bool) -> Result<(), SimError> {
        self.check()?;
        if self.phases().get(self.next).is_some_and(planned) {
            self.go_on();
            return Ok(());
        }
        self.depart(deed);
        self.check()
    }

    fn depart(&mut self, deed: &Deed<'_>) {
        let planned = match self.phases().get(self.next) {
            Some(phase) => phase.to_string(),
            None => "nothing more".to_owned(),
        };
        let (rank, epoch, number) = (self.rank, self.timeline.epoch, self.over + 1);
        let how = format!(
            "worker {rank} departs from its plan in epoch {epoch}: phase {number} was to be {planned}, and it is {deed}"
        );
        // The first departure is the cause of those that follow it.
        self.departed.get_or_insert(how);
    }
}

fn is_planned(exchange: &Exchange, outbox: &Outbox) -> bool {
    let peers = |to: &(u32, Bytes), message: &crate::net::Message| {
        *to == (message.peer as u32, Bytes(message.payload.len() as u64))
    };
    (exchange.kind, exchange.layer) == (outbox.kind, outbox.layer)
        && exchange.to.len() == outbox.messages.len()
        && exchange
            .to
            .iter()
            .zip(&outbox.messages)
            .all(|(to, message)| peers(to, message))
        && exchange.from.len() == outbox.expect.len()
        && exchange
            .from
            .iter()
            .zip(&outbox.expect)
            .all(|(one, other)| *one as usize == *other)
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compute(work) => {
                write!(f, "computing ({:.0} operations)", work.operations)
            }
            Self::Start(exchange) => {
                let (kind, layer) = (exchange.kind, exchange.layer);
                write!(f, "sending {kind} of layer {layer} (to each: ")?;
                for (peer, bytes) in &exchange.to {
                    write!(f, "{peer}: {bytes}, ")?;
                }
                write!(f, "expecting {:?})", exchange.from)
            }
            Self::Finish(kind, layer) => write!(f, "waiting for {kind} of layer {layer}"),
            Self::Reduce(collective, kind) => write!(f, "starting {collective:?} of {kind}"),
            Self::Collect => write!(f, "waiting for a collective"),
            Self::Share => write!(f, "hearing worker 0"),
            Self::CountUnder(ahead) => write!(f, "counting under the epoch {ahead} ahead"),
            Self::ComputeTogether { busy, .. } => {
                write!(f, "computing of {} workers together", busy.len())
            }
            Self::Carry(traffic) => {
                write!(f, "carrying {} kinds of messages", traffic.iter().count())
            }
        }
    }
}

impl fmt::Display for Deed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self {
            // How much work it is, the plan alone says.
            Self::Compute => return write!(f, "computing"),
            Self::End => return write!(f, "the end of the epoch"),
            Self::ComputeTogether(busy) => {
                return write!(f, "computing of {} workers together", busy.len());
            }
            Self::Start(outbox) => Phase::Start(Exchange {
                kind: outbox.kind,
                layer: outbox.layer,
                to: (outbox.messages.iter())
                    .map(|m| (m.peer as u32, Bytes(m.payload.len() as u64)))
                    .collect(),
                from: outbox.expect.iter().map(|&peer| peer as u32).collect(),
            }),
            Self::Finish(kind, layer) => Phase::Finish(*kind, *layer),
            Self::Reduce(collective, kind) => Phase::Reduce((*collective).clone(), *kind),
            Self::Collect => Phase::Collect,
            Self::Share => Phase::Share,
            Self::CountUnder(ahead) => Phase::CountUnder(*ahead),
            Self::Carry(traffic) => Phase::Carry(Arc::new((*traffic).clone())),
        };
        write!(f, "{phase}")
    }
}
