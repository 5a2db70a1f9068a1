//! A worker's connection to the others when each is a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Processes;
use super::account::Account;
use super::collective::Collectives;
use super::port::{Channel, Port};
use super::tags::{ASIDE, MEETING, SHARED, tag};
use crate::net::{
    AllReduceKind, Collective, Communicator, Inbox, Lane, Message, NetError, Outbox, Pending,
    PendingCollective, Reduce, Seconds, Traffic, TrafficKind,
};

struct Started {
    ticket: u64,
    tag: i32,
    expect: Vec<usize>,
}

pub(super) struct MpiCommunicator {
    pub processes: Arc<Processes>,
    pub(crate) account: Arc<Mutex<Account>>,
    pub all_reduce: AllReduceKind,
    pub(crate) next_ticket: u64,
    pending: Vec<Started>,
    collectives: Collectives,
}

impl MpiCommunicator {
    pub(super) fn new(
        processes: Arc<Processes>,
        account: Arc<Mutex<Account>>,
        all_reduce: AllReduceKind,
    ) -> Self {
        Self {
            processes,
            account,
            all_reduce,
            next_ticket: 0,
            pending: Vec::new(),
            collectives: Collectives::default(),
        }
    }

    fn account(&self) -> MutexGuard<'_, Account> {
        locked(&self.account)
    }

    /// Does something that communicates, and counts the time it takes, less what `action` says does
    /// not count.
    fn timed<T>(
        &mut self,
        action: impl FnOnce(
            &mut Port,
            &mut Account,
            &mut Collectives,
        ) -> Result<(T, Duration), NetError>,
    ) -> Result<T, NetError> {
        let start = Instant::now();
        // The port and then the account: whoever holds both takes them in this order.
        let mut port = self.processes.port();
        let mut account = locked(&self.account);
        account.enter();
        port.take_idle();
        let outcome = action(&mut port, &mut account, &mut self.collectives);
        let idle = port.take_idle();
        let free = outcome.as_ref().map_or(Duration::ZERO, |(_, free)| *free);
        account.waited(start.elapsed().saturating_sub(free), idle);
        account.leave();
        outcome.map(|(value, _)| value)
    }

    fn only_simulated(&self) -> NetError {
        NetError::Protocol {
            rank: self.processes.rank(),
            reason: "it plays all workers, which here are processes of their own".to_owned(),
        }
    }
}

impl Communicator for MpiCommunicator {
    fn rank(&self) -> usize {
        self.processes.rank()
    }

    fn size(&self) -> usize {
        self.processes.size()
    }

    fn begin_epoch(&mut self, epoch: usize) {
        self.account().epoch = epoch;
    }

    fn now(&self) -> Seconds {
        self.account().clock()
    }

    fn elapse(&mut self, compute: Seconds) {
        self.account().computed(compute);
    }

    fn start_exchange(&mut self, mut outbox: Outbox) -> Result<Pending, NetError> {
        let (rank, size) = (self.rank(), self.size());
        // Each begins with the worker after it, as in the simulation.
        let after = outbox
            .messages
            .partition_point(|message| message.peer < rank);
        outbox.messages.rotate_left(after);
        let tag = tag(rank, false, outbox.kind, outbox.layer)?;
        let lanes: Vec<Lane> = outbox
            .messages
            .iter()
            .map(|message| outbox.lane(rank, message.peer))
            .collect();
        self.timed(|port, account, _| {
            for (message, lane) in outbox.messages.into_iter().zip(lanes) {
                if message.peer >= size || message.peer == rank {
                    return Err(NetError::Protocol {
                        rank,
                        reason: format!("it addressed a message to worker {}", message.peer),
                    });
                }
                account.record(lane, message.payload.len());
                port.send(message.peer, Channel::Data, tag, message.payload)?;
            }
            // Sending never waits, and so never hears of a failure. Here it does.
            port.listen()?;
            Ok(((), Duration::ZERO))
        })?;
        // When sent messages arrive shows at the other end only. What is expected is under way
        // until it is waited for.
        if !outbox.expect.is_empty() {
            self.account().enter();
        }
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.pending.push(Started {
            ticket,
            tag,
            expect: outbox.expect,
        });
        Ok(Pending { ticket })
    }

    fn finish_exchange(&mut self, pending: Pending) -> Result<Inbox, NetError> {
        let Some(place) = self
            .pending
            .iter()
            .position(|started| started.ticket == pending.ticket)
        else {
            return Err(NetError::Protocol {
                rank: self.rank(),
                reason: "it finished an exchange that it did not start".to_owned(),
            });
        };
        let Started { tag, expect, .. } = self.pending.remove(place);
        if expect.is_empty() {
            return Ok(Inbox::new());
        }
        let inbox = self.timed(|port, account, collectives| {
            // Others may wait for this worker's part in a collective before they send.
            let payloads = port.receive_from_all(&expect, Channel::Data, tag, |port| {
                collectives.go_on(port, account)
            })?;
            let inbox: Inbox = expect
                .into_iter()
                .zip(payloads)
                .map(|(peer, payload)| Message { peer, payload })
                .collect();
            Ok((inbox, Duration::ZERO))
        });
        self.account().leave();
        inbox
    }

    // Nothing to refuse with: `carry`, which such a program calls as well, is an error here.
    fn elapse_all(&mut self, _compute: Seconds, _busy: &[usize]) {}

    fn carry(&mut self, _traffic: &Traffic) -> Result<(), NetError> {
        Err(self.only_simulated())
    }

    fn start_collective(
        &mut self,
        collective: &Collective,
        values: Vec<f32>,
        op: Reduce,
        kind: TrafficKind,
    ) -> Result<PendingCollective, NetError> {
        let tag = tag(self.rank(), true, kind, 0)?;
        let steps = collective.steps(&self.all_reduce, self.rank(), self.size());
        let ticket = self.timed(|port, account, collectives| {
            let ticket = collectives.start(account.epoch, tag, kind, (steps, values, op));
            collectives.go_on(port, account)?;
            Ok((ticket, Duration::ZERO))
        })?;
        // From the start to the end of a collective its messages count as under way.
        self.account().enter();
        Ok(PendingCollective { ticket })
    }

    fn finish_collective(&mut self, pending: PendingCollective) -> Result<Vec<f32>, NetError> {
        let outcome = self.timed(|port, account, collectives| {
            let values = collectives.finish(pending.ticket, port, account)?;
            Ok((values, Duration::ZERO))
        });
        self.account().leave();
        outcome
    }

    /// Worker 0 also says how long it was busy with what does not count, for which the others wait
    /// without counting it.
    fn share(&mut self, value: Option<Vec<u8>>) -> Result<Vec<u8>, NetError> {
        let (rank, size) = (self.rank(), self.size());
        let start = Instant::now();
        self.timed(|port, account, collectives| {
            if rank == 0 {
                let value = value.unwrap_or_default();
                let busy = account.uncounted();
                let mut message = busy.as_secs_f64().to_le_bytes().to_vec();
                message.extend(&value);
                for to in 1..size {
                    port.send(to, Channel::Control, SHARED, message.clone())?;
                }
                // All of the call is left out: worker 0 tells what is no part of the training.
                return Ok((value, start.elapsed()));
            }
            let tag = SHARED;
            let messages = port.receive_from_all(&[0], Channel::Control, tag, |port| {
                collectives.go_on(port, account)
            })?;
            let message = messages.first().map_or(&[][..], Vec::as_slice);
            let Some((busy, value)) = message.split_first_chunk::<8>() else {
                return Err(NetError::Protocol {
                    rank: 0,
                    reason: "it shared less than the time it took".to_owned(),
                });
            };
            let busy = Duration::try_from_secs_f64(f64::from_le_bytes(*busy)).unwrap_or_default();
            // No more than this call took: who comes late has not waited all that time.
            Ok((value.to_vec(), busy.min(start.elapsed())))
        })
    }

    fn exchange_aside(
        &mut self,
        messages: Vec<Message>,
        expect: &[usize],
    ) -> Result<Inbox, NetError> {
        let (mut port, mut account) = (self.processes.port(), locked(&self.account));
        let outcome = swap(&mut port, messages, expect, ASIDE, |port| {
            self.collectives.go_on(port, &mut account)
        });
        // Nobody is charged for it.
        port.take_idle();
        outcome
    }

    fn meet(&mut self) -> Result<(), NetError> {
        let (rank, size) = (self.rank(), self.size());
        self.timed(|port, account, collectives| {
            // One byte, as a message.
            let to = |peers: std::ops::Range<usize>| -> Vec<Message> {
                let here = |peer| Message {
                    peer,
                    payload: vec![0],
                };
                peers.map(here).collect()
            };
            let mut all = |port: &mut Port, messages, expect: &[usize]| {
                let meanwhile = |port: &mut Port| collectives.go_on(port, account);
                swap(port, messages, expect, MEETING, meanwhile)
            };
            if rank == 0 {
                let others: Vec<usize> = (1..size).collect();
                all(port, Vec::new(), &others)?;
                all(port, to(1..size), &[])?;
            } else {
                all(port, to(0..1), &[0])?;
            }
            Ok(((), Duration::ZERO))
        })
    }

    fn account(&self) -> Vec<u8> {
        MpiCommunicator::account(self).saved()
    }

    fn go_on_with(&mut self, account: &[u8]) -> Result<(), NetError> {
        MpiCommunicator::account(self).restore(account)
    }

    fn stand_by(&mut self) -> Result<(), NetError> {
        // Worker 0 shares nothing but the time it was busy, for which nobody else is charged.
        self.share(None).map(drop)
    }
}

fn locked(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends messages on the control channel, and returns one from each of `expect`.
fn swap(
    port: &mut Port,
    messages: Vec<Message>,
    expect: &[usize],
    tag: i32,
    meanwhile: impl FnMut(&mut Port) -> Result<(), NetError>,
) -> Result<Inbox, NetError> {
    for Message { peer, payload } in messages {
        port.send(peer, Channel::Control, tag, payload)?;
    }
    let payloads = port.receive_from_all(expect, Channel::Control, tag, meanwhile)?;
    let peers = expect.iter().zip(payloads);
    Ok(peers
        .map(|(&peer, payload)| Message { peer, payload })
        .collect())
}
