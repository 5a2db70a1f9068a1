//! Totals of partial sums.
//!
//! ```text
//!   epoch e         clones ──partial sums──▶ owners                     the bin e mod r is on
//!   epoch e + r                owners, with new sums of their own ──totals──▶ clones
//!   epoch e + 2r                                          clones use them
//! ```
//!
//! With r = 0 all of this is done in one epoch.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::routes::Routes;
use crate::graph::{Csr, CutPart, Peers};
use crate::model::Matrix;
use crate::net::{Inbox, Message, Outbox};
use crate::sim::{Activity, PendingExchange, Restoring, Saving, SimError, Worker};
use crate::strategies::parts::server::{add, floats_to, unpacked};
use crate::strategies::parts::{Lane, Totals, lane_outbox};

/// Which way messages go.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Leg {
    ToOwners,
    ToClones,
}

/// Of each row of a part all neighbours over those by edges that are here; 1 where there are none.
pub(super) fn shares(graph: &Csr, part: &CutPart) -> Vec<f32> {
    let share = |(row, &node): (usize, &u32)| match part.adjacency.degree(row) {
        0 => 1.0,
        here => graph.degree(node as usize) as f32 / here as f32,
    };
    part.nodes.iter().enumerate().map(share).collect()
}

/// The exchange of partial sums of one worker.
pub(super) struct Sums<'a> {
    /// By bin.
    routes: &'a [Routes],
    delay: usize,
    /// What each row's sum is multiplied with while it is of the edges that are here alone.
    shares: Vec<f32>,
    /// What has been sent and not waited for, oldest first.
    under_way: BTreeMap<Lane, VecDeque<(Leg, PendingExchange)>>,
}

impl<'a> Sums<'a> {
    /// One for rows of these shares.
    pub(super) const fn new(routes: &'a [Routes], delay: usize, shares: Vec<f32>) -> Self {
        Self {
            routes,
            delay,
            shares,
            under_way: BTreeMap::new(),
        }
    }

    /// Sends, and waits for what was sent so many epochs ago, if anything was.
    fn send(
        &mut self,
        worker: &mut Worker,
        leg: Leg,
        lane: Lane,
        outbox: Outbox,
    ) -> Result<Option<Inbox>, SimError> {
        let queue = self.under_way.entry(lane).or_default();
        queue.push_back((leg, worker.start_exchange(outbox)?));
        if queue.iter().filter(|(other, _)| *other == leg).count() <= self.delay {
            return Ok(None);
        }
        // The oldest of its leg is the oldest of all: both legs take turns, and totals begin last.
        let oldest = queue.pop_front();
        oldest
            .map(|(_, pending)| worker.finish_exchange(pending))
            .transpose()
    }

    /// Waits for what is under way after the last epoch, which nobody uses.
    ///
    /// # Errors
    /// If communication fails.
    pub(super) fn finish(&mut self, worker: &mut Worker) -> Result<(), SimError> {
        for (_, pending) in std::mem::take(&mut self.under_way).into_values().flatten() {
            worker.finish_exchange(pending)?;
        }
        Ok(())
    }
}

impl Sums<'_> {
    /// Saves which exchanges are under way.
    pub(super) fn save(&self, into: &mut Saving) {
        let number = |(leg, pending): &(Leg, PendingExchange)| (*leg, pending.number());
        let lane = |(&lane, queue): (&Lane, &VecDeque<_>)| {
            (lane, queue.iter().map(number).collect::<Vec<_>>())
        };
        into.put(&self.under_way.iter().map(lane).collect::<Vec<_>>());
    }

    /// Takes back what was saved.
    ///
    /// # Errors
    /// If something else was.
    pub(super) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        let saved: Vec<(Lane, Vec<(Leg, u64)>)> = from.saved().take()?;
        for (lane, numbers) in saved {
            let queue = self.under_way.entry(lane).or_default();
            for (leg, number) in numbers {
                queue.push_back((leg, from.exchange(number)?));
            }
        }
        Ok(())
    }
}

impl Totals for Sums<'_> {
    /// What stands for the totals; gradients of totals add up in the same way.
    fn total(
        &mut self,
        worker: &mut Worker,
        epoch: usize,
        lane: Lane,
        partial: Matrix,
    ) -> Result<Matrix, SimError> {
        let (width, routes) = (partial.width(), &self.routes[epoch % self.routes.len()]);
        let (mut values, messages) = worker.compute(Activity::Exchange, |_| {
            let values = partial.into_values();
            let messages = packed(&values, width, &routes.clones);
            (values, messages)
        });
        let mut whole = vec![false; self.shares.len()];
        let outbox = lane_outbox(lane, messages, routes.own.ranks());
        if let Some(inbox) = self.send(worker, Leg::ToOwners, lane, outbox)? {
            let messages = worker.compute(Activity::Exchange, |_| {
                // In ascending order of senders, so that sums have the same last bits in every run.
                each(&inbox, &routes.own, width, |row, found| {
                    whole[row] = true;
                    add(&mut values[row * width..][..width], found);
                })?;
                Ok::<_, SimError>(packed(&values, width, &routes.own))
            })?;
            let outbox = lane_outbox(lane, messages, routes.clones.ranks());
            if let Some(inbox) = self.send(worker, Leg::ToClones, lane, outbox)? {
                worker.compute(Activity::Exchange, |_| {
                    each(&inbox, &routes.clones, width, |row, found| {
                        whole[row] = true;
                        values[row * width..][..width].copy_from_slice(found);
                    })
                })?;
            }
        }
        Ok(worker.compute(Activity::Exchange, |worker| {
            for (row, values) in values.chunks_exact_mut(width).enumerate() {
                if !whole[row] {
                    let share = self.shares[row];
                    for value in values {
                        *value *= share;
                    }
                }
            }
            Matrix::from_values(values, width, worker.place())
        }))
    }
}

/// The rows of each peer in a message.
fn packed(values: &[f32], width: usize, rows: &Peers<Vec<u32>>) -> Vec<Message> {
    let message = |(peer, rows): (usize, &Vec<u32>)| {
        let rows = rows
            .iter()
            .map(|&row| &values[row as usize * width..][..width]);
        floats_to(peer, &rows.flatten().copied().collect::<Vec<f32>>())
    };
    rows.iter().map(message).collect()
}

/// Hands over each row of what arrived.
fn each(
    inbox: &Inbox,
    rows: &Peers<Vec<u32>>,
    width: usize,
    mut take: impl FnMut(usize, &[f32]),
) -> Result<(), SimError> {
    for message in inbox {
        let rows = &rows[message.peer];
        let values = unpacked(message, rows.len() * width)?;
        for (&row, values) in rows.iter().zip(values.chunks_exact(width)) {
            take(row as usize, values);
        }
    }
    Ok(())
}
