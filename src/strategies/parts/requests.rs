//! How workers that sample together get the rows of others: ids to the owners, features back.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::Wire;
use super::crossing::{encode, outbox};
use crate::graph::{Features, Peers, SampledLayer};
use crate::net::{Message, TrafficKind, Way};
use crate::sim::{Activity, PendingExchange, Restoring, Saving, SimError, Worker};

/// Who asked whom for which rows.
pub struct Asked {
    /// Own rows, by who asked for them.
    pub of_me: Peers<Vec<u32>>,
    /// Of the rows that this worker asked for, which each owner sends.
    pub by_me: Peers<Range<usize>>,
}

/// Owners who were asked, and have not heard of all who ask yet.
pub struct PendingRequests {
    pending: PendingExchange,
    by_me: Peers<Range<usize>>,
}

impl Asked {
    /// Saves who asked whom.
    pub fn save(&self, into: &mut Saving) {
        into.put(&self.of_me.iter().collect::<Vec<_>>());
        into.put(&self.by_me.iter().collect::<Vec<_>>());
    }

    /// What [`Self::save`] saved.
    ///
    /// # Errors
    /// If something else was saved.
    pub fn restored(from: &mut Restoring<'_>) -> Result<Self, SimError> {
        Ok(Self {
            of_me: peers(from)?,
            by_me: peers(from)?,
        })
    }
}

impl PendingRequests {
    /// Saves who was asked, and what is under way.
    pub fn save(&self, into: &mut Saving) {
        into.put(&self.pending.number());
        into.put(&self.by_me.iter().collect::<Vec<_>>());
    }

    /// What [`Self::save`] saved.
    ///
    /// # Errors
    /// If something else was saved.
    pub fn restored(from: &mut Restoring<'_>) -> Result<Self, SimError> {
        let number = from.saved().take()?;
        Ok(Self {
            pending: from.exchange(number)?,
            by_me: peers(from)?,
        })
    }
}

/// Something for each peer, as it is saved.
fn peers<T: Default + DeserializeOwned>(from: &mut Restoring<'_>) -> Result<Peers<T>, SimError> {
    let saved: Vec<(usize, T)> = from.saved().take()?;
    let mut peers = Peers::default();
    for (peer, value) in saved {
        *peers.of(peer) = value;
    }
    Ok(peers)
}

/// Asks the owners of halo rows, in ascending order, for them, and hears what others ask for; 4
/// bytes a row.
pub(super) fn ask(worker: &mut Worker, layer: usize, wanted: &[u32]) -> Result<Asked, SimError> {
    ask_owners(worker, layer, |worker| {
        let shard = worker.shard();
        // By global numbers, as the owner numbers its rows in another way.
        let nodes = wanted.iter().map(|&row| shard.nodes[row as usize]);
        let by_owner = SampledLayer::by_owner(wanted, shard.owned, &shard.receives);
        (nodes.collect(), by_owner)
    })
}

/// Asks the owners of nodes for them, and hears what others ask for; 4 bytes a node. `wanted` says
/// which nodes, and which of them each owner has.
///
/// # Errors
/// If communication fails.
pub fn ask_owners(
    worker: &mut Worker,
    layer: usize,
    wanted: impl FnOnce(&Worker) -> (Vec<u32>, Peers<Range<usize>>),
) -> Result<Asked, SimError> {
    let asking = start_asking(worker, layer, wanted)?;
    finish_asking(worker, asking)
}

/// The first half of [`ask_owners`], after which the numbers travel.
///
/// # Errors
/// If communication fails.
pub fn start_asking(
    worker: &mut Worker,
    layer: usize,
    wanted: impl FnOnce(&Worker) -> (Vec<u32>, Peers<Range<usize>>),
) -> Result<PendingRequests, SimError> {
    // Who will ask is in the plan: sampling is a function of the seed.
    let askers = worker.planned_senders();
    let mut outbox = outbox(TrafficKind::Sample, layer, askers.into_iter());
    let by_me = worker.compute(Activity::Exchange, |worker| {
        let (nodes, by_me) = wanted(worker);
        outbox.messages.extend(by_me.iter().map(|(peer, range)| {
            let nodes = nodes[range.clone()].iter().copied();
            let payload = nodes.flat_map(u32::to_le_bytes).collect();
            Message { peer, payload }
        }));
        by_me
    });
    let pending = worker.start_exchange(outbox)?;
    Ok(PendingRequests { pending, by_me })
}

/// The second half of [`ask_owners`].
///
/// # Errors
/// If communication fails.
pub fn finish_asking(worker: &mut Worker, asking: PendingRequests) -> Result<Asked, SimError> {
    let PendingRequests { pending, by_me } = asking;
    let rank = worker.rank();
    let inbox = worker.finish_exchange(pending)?;
    let of_me = worker.compute(Activity::Exchange, |worker| {
        let part = &worker.setting().boundary.parts[rank];
        let mut of_me = Peers::default();
        for message in &inbox {
            let (nodes, _) = message.payload.as_chunks();
            let nodes: Vec<u32> = nodes.iter().map(|&four| u32::from_le_bytes(four)).collect();
            *of_me.of(message.peer) = part.rows_of(&nodes);
        }
        of_me
    });
    Ok(Asked { of_me, by_me })
}

/// Sends the features that others asked for, and returns those that were asked for here, dense, in
/// the order in which they were.
///
/// # Errors
/// If communication fails.
pub fn exchange_features(
    worker: &mut Worker,
    asked: &Asked,
    wire: &Wire,
) -> Result<Vec<f32>, SimError> {
    let pending = send_features(worker, asked, wire)?;
    receive_features(worker, pending, asked, wire)
}

/// The first half of [`exchange_features`], after which the rows travel.
///
/// # Errors
/// If communication fails.
pub fn send_features(
    worker: &mut Worker,
    asked: &Asked,
    wire: &Wire,
) -> Result<PendingExchange, SimError> {
    let (rank, width) = (worker.rank(), worker.shard().features.width());
    let mut outbox = outbox(TrafficKind::Feature, 0, asked.by_me.ranks());
    outbox.messages = worker.compute(Activity::Exchange, |worker| {
        let features = &worker.shard().features;
        let message = |(peer, rows): (usize, &Vec<u32>)| {
            let wire = wire.between(rank, peer, Way::Forward);
            let payload = encode(&features.dense_rows(rows), width, &wire);
            Message { peer, payload }
        };
        asked.of_me.iter().map(message).collect()
    });
    worker.start_exchange(outbox)
}

/// The second half of [`exchange_features`].
///
/// # Errors
/// If communication fails.
pub fn receive_features(
    worker: &mut Worker,
    pending: PendingExchange,
    asked: &Asked,
    wire: &Wire,
) -> Result<Vec<f32>, SimError> {
    let (rank, width) = (worker.rank(), worker.shard().features.width());
    let inbox = worker.finish_exchange(pending)?;
    let came: usize = asked.by_me.iter().map(|(_, range)| range.len()).sum();
    worker.compute(Activity::Exchange, |_| {
        let mut rows = Vec::with_capacity(came * width);
        // Messages come by ascending owner, and that is how the rows were asked for.
        for message in &inbox {
            let count = asked.by_me[message.peer].len();
            let wire = wire.between(message.peer, rank, Way::Forward);
            let payload = &message.payload;
            rows.extend(wire.codec.decode(payload, [count, width], wire.key)?);
        }
        Ok(rows)
    })
}

/// Features that stay once they came: those of own rows, and below them others'.
#[derive(Default)]
pub(super) struct Kept {
    features: Option<Features>,
    /// Where the features of a halo row are, if they came.
    places: Vec<Option<u32>>,
}

impl Kept {
    /// Of these halo rows, those whose features did not come yet.
    pub(super) fn missing(&mut self, worker: &Worker, rows: &[u32]) -> Vec<u32> {
        let shard = worker.shard();
        // `Default` knows no shard, so the table gets its size on first use.
        self.places.resize(shard.halo(), None);
        let missing = |row: &u32| self.places[*row as usize - shard.owned].is_none();
        rows.iter().copied().filter(missing).collect()
    }

    /// Keeps the features that `arrived` of halo rows.
    pub(super) fn take(&mut self, worker: &Worker, rows: &[u32], arrived: &[f32]) {
        let shard = worker.shard();
        let features = self.features.get_or_insert_with(|| shard.features.clone());
        let first = u32::try_from(features.rows()).unwrap_or(u32::MAX);
        features.append(arrived);
        for (place, &row) in (first..).zip(rows) {
            self.places[row as usize - shard.owned] = Some(place);
        }
    }

    /// Saves what came.
    pub(super) fn save(&self, worker: &Worker, into: &mut Saving) {
        let owned = worker.shard().owned as u32;
        let came = self.features.as_ref();
        let came = came.map(|all| all.dense_rows(&(owned..all.rows() as u32).collect::<Vec<_>>()));
        into.put(&(self.features.is_some(), &self.places));
        into.floats(&came.unwrap_or_default());
    }

    /// Takes back what was saved.
    pub(super) fn restore(&mut self, from: &mut Restoring<'_>) -> Result<(), SimError> {
        let (any, places): (bool, _) = from.saved().take()?;
        let came = from.saved().floats()?;
        self.places = places;
        self.features = any.then(|| {
            let mut features = from.worker().shard().features.clone();
            features.append(&came);
            features
        });
        Ok(())
    }

    /// The features of a layer's inputs, all of which are here.
    pub(super) fn select(&self, worker: &Worker, sampled: &SampledLayer) -> Features {
        let shard = worker.shard();
        let halo = |row: u32| self.places[row as usize - shard.owned];
        let (own, others) = sampled.rows.split_at(sampled.own);
        let others = others.iter().filter_map(|&row| halo(row));
        let places: Vec<u32> = own.iter().copied().chain(others).collect();
        // Where nothing was ever taken, the shard's own features are all there is.
        let features = self.features.as_ref().unwrap_or(&shard.features);
        features.select(&places)
    }
}
