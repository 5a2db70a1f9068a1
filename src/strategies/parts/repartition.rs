//! Nodes that change workers while a training goes on.
//!
//! ```text
//!   epoch k, 2k, …   old owner ── `repartition`: all it knows of the node ──▶ new owner
//!   then             as at the start, with the model and optimiser as they are
//! ```
//!
//! A node comes with its features, label, sets, degree and in-neighbours, and the degrees of these.
//! The parts are as many and of the same kind as the first ones, drawn anew, and numbered so that
//! few nodes move. Who owns what follows from the seed, on all workers alike, and is not sent; nor
//! is making the parts charged, as it is not at the start: neither needs the model, so that both
//! can be done in advance.

use std::collections::BTreeMap;
use std::mem::take;
use std::sync::Arc;

use super::chunks::{Carried, Chunk, put, sources, words};
use crate::graph::{Csr, Features, Label, Labels, Peers};
use crate::net::{Inbox, Message, Outbox, TrafficKind};
use crate::sim::{Activity, Setting, Shard, SimError, Worker};

/// When nodes are dealt out anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repartition {
    /// Every so many epochs, at least 1; without it never.
    pub every: Option<usize>,
}

impl Repartition {
    /// How often they were before the end of an epoch.
    pub(crate) fn round(self, epoch: usize) -> usize {
        self.every.map_or(0, |every| epoch / every)
    }

    /// Epochs since they were last, or since the training began.
    pub(crate) fn since(self, epoch: usize) -> usize {
        self.every.map_or(epoch, |every| epoch % every)
    }

    /// Whether an epoch begins with that.
    pub(crate) fn begins(self, epoch: usize) -> bool {
        epoch > 0 && self.since(epoch) == 0
    }

    /// Whether an epoch is the last with its parts, in a training of so many.
    pub(crate) fn ends(self, epoch: usize, epochs: usize) -> bool {
        epoch + 1 == epochs || self.begins(epoch + 1)
    }
}

/// Rows of a worker that others own next, for each of them, ascending.
pub(super) fn leaving(before: &Setting, after: &Setting, rank: usize) -> Peers<Vec<u32>> {
    let mut leaving: Peers<Vec<u32>> = Peers::default();
    for (row, &node) in (0_u32..).zip(&before.boundary.parts[rank].owned) {
        let owner = after.partition.assignment[node as usize] as usize;
        if owner != rank {
            leaving.of(owner).push(row);
        }
    }
    leaving
}

/// Nodes that a worker owns next and others own now, for each of them, ascending.
fn arriving(before: &Setting, after: &Setting, rank: usize) -> Peers<Vec<u32>> {
    let mut arriving: Peers<Vec<u32>> = Peers::default();
    for &node in &after.boundary.parts[rank].owned {
        let owner = before.partition.assignment[node as usize] as usize;
        if owner != rank {
            arriving.of(owner).push(node);
        }
    }
    arriving
}

/// Moves nodes to their next owners; the worker then has its part of `after`.
///
/// # Errors
/// If communication fails.
pub(crate) fn move_nodes(worker: &mut Worker, after: &Arc<Setting>) -> Result<(), SimError> {
    let before = Arc::clone(worker.setting());
    let rank = worker.rank();
    let mut outbox = Outbox::new(TrafficKind::Repartition, 0);
    let arriving = arriving(&before, after, rank);
    outbox.expect = arriving.ranks().collect();
    outbox.messages = worker.compute(Activity::Exchange, |worker| {
        let leaving = leaving(&before, after, rank);
        let messages = leaving.iter().map(|(peer, rows)| Message {
            peer,
            payload: pack(worker.shard(), rows, Carried::of_labels(before.task())),
        });
        messages.collect()
    });
    let inbox = worker.exchange(outbox)?;
    let shard = worker.compute(Activity::Exchange, |worker| {
        unpack(worker, after, &inbox, &arriving)
    })?;
    worker.owns(Arc::clone(after), shard)
}

/// What is known of a node beside its features.
struct Known {
    node: u32,
    label: Option<Label>,
    sets: u32,
    /// Its in-neighbours, ascending.
    sources: Vec<u32>,
}

impl Known {
    fn of(shard: &Shard, row: u32) -> Self {
        Self {
            node: shard.nodes[row as usize],
            label: shard.labels.of(row as usize),
            sets: sets(shard, row),
            sources: sources(shard, row),
        }
    }
}

/// The sets of a split that a row is in, a bit each.
fn sets(shard: &Shard, row: u32) -> u32 {
    let sets = [&shard.train, &shard.validation, &shard.test];
    let bits = (0..).zip(sets).map(|(bit, set)| {
        let is_in = set.binary_search(&row).is_ok();
        u32::from(is_in) << bit
    });
    bits.sum()
}

/// A message with these rows: a chunk, their sets, and the degrees of their in-neighbours.
fn pack(shard: &Shard, rows: &[u32], carried: Carried) -> Vec<u8> {
    let mut payload = Vec::new();
    let chunk = Chunk {
        // Of all, and not of those alone that train.
        labels: rows
            .iter()
            .map(|&row| shard.labels.of(row as usize))
            .collect(),
        ..Chunk::of(shard, rows, |_| true, Carried::default(), &[])
    };
    chunk.encode(carried, &mut payload);
    put(&mut payload, rows.iter().map(|&row| sets(shard, row)));
    let mut sources: Vec<u32> = rows
        .iter()
        .flat_map(|&row| shard.adjacency.neighbours(row as usize))
        .copied()
        .collect();
    sources.sort_unstable_by_key(|&local| shard.nodes[local as usize]);
    sources.dedup();
    let degree = |&local: &u32| shard.degrees[local as usize] as u32;
    put(&mut payload, sources.iter().map(degree));
    payload
}

/// The shard that a worker has next: rows that stay, and those that came.
fn unpack(
    worker: &Worker,
    after: &Setting,
    inbox: &Inbox,
    arriving: &Peers<Vec<u32>>,
) -> Result<Shard, SimError> {
    let (shard, rank) = (worker.shard(), worker.rank());
    let width = shard.features.width();
    let stays = |&row: &u32| {
        let node = shard.nodes[row as usize] as usize;
        after.partition.assignment[node] as usize == rank
    };
    let stay: Vec<u32> = (0_u32..).take(shard.owned).filter(stays).collect();
    let mut known: Vec<Known> = stay.iter().map(|&row| Known::of(shard, row)).collect();
    let here = shard.nodes.iter().copied();
    let mut degrees: BTreeMap<u32, usize> = here.zip(shard.degrees.iter().copied()).collect();
    let mut rows: BTreeMap<u32, &[f32]> = BTreeMap::new();
    let chunks = inbox.iter().map(|message| {
        let mut bytes = &message.payload[..];
        let nodes = &arriving[message.peer];
        let chunk = Chunk::decode(
            &mut bytes,
            nodes.len(),
            width,
            Carried::of_labels(after.task()),
        )?;
        Ok((nodes, chunk, bytes))
    });
    let mut chunks = chunks.collect::<Result<Vec<_>, SimError>>()?;
    for (nodes, chunk, bytes) in &mut chunks {
        let mut rest = words(bytes);
        let sets: Vec<u32> = rest.by_ref().take(nodes.len()).collect();
        let mut sources: Vec<u32> = chunk.sources.concat();
        sources.sort_unstable();
        sources.dedup();
        if bytes.len() != 4 * (nodes.len() + sources.len()) {
            let what = "a message of another length arrived about nodes that move";
            return Err(SimError::Strategy(what.to_owned()));
        }
        degrees.extend(sources.into_iter().zip(rest.map(|degree| degree as usize)));
        let own = chunk.degrees.iter().map(|&degree| degree as usize);
        degrees.extend(nodes.iter().copied().zip(own));
        let (labels, sources) = (take(&mut chunk.labels), take(&mut chunk.sources));
        let each = nodes.iter().zip(labels).zip(sets).zip(sources);
        known.extend(each.map(|(((&node, label), sets), sources)| Known {
            node,
            label,
            sets,
            sources,
        }));
        let features = chunk.features.chunks_exact(width.max(1));
        rows.extend(nodes.iter().copied().zip(features));
    }
    known.sort_unstable_by_key(|known| known.node);
    // Row by row in their final order, so that no more than these are there beside the old ones.
    let mut features = shard.features.select(&[]);
    features.reserve(known.len());
    let owned = &shard.nodes[..shard.owned];
    for Known { node, .. } in &known {
        if let Some(row) = rows.get(node) {
            features.append(row);
        } else if let Ok(row) = owned.binary_search(node) {
            features.append(&shard.features.dense_rows(&[row as u32]));
        } else {
            let what = format!("nobody told the features of node {node}");
            return Err(SimError::Strategy(what));
        }
    }
    if matches!(&shard.features, Features::Coded(rows) if rows.is_half()) {
        // They came from half precision, and so go back to it as they are.
        let beyond = |_| SimError::Strategy("features grew as they moved".to_owned());
        features = features.halved().map_err(beyond)?;
    }
    assemble(after, rank, (known, features), &degrees)
}

/// The shard of a worker of whose nodes this is known, ascending, with the degrees of all that are
/// in it.
fn assemble(
    setting: &Setting,
    rank: usize,
    (known, features): (Vec<Known>, Features),
    degrees: &BTreeMap<u32, usize>,
) -> Result<Shard, SimError> {
    let part = &setting.boundary.parts[rank];
    let mut nodes = part.owned.clone();
    nodes.extend(&part.halo);
    let mut local: Vec<(u32, u32)> = nodes.iter().copied().zip(0_u32..).collect();
    local.sort_unstable();
    let row_of = |node: u32| {
        let place = local.binary_search_by_key(&node, |&(node, _)| node);
        place.ok().map(|place| local[place].1)
    };
    let unknown = |node| SimError::Strategy(format!("nobody told who has node {node}"));
    let mut edges = Vec::new();
    for (row, known) in (0_u32..).zip(&known) {
        for &source in &known.sources {
            edges.push((row_of(source).ok_or_else(|| unknown(source))?, row));
        }
    }
    let in_set = |bit: u32| {
        let rows = (0_u32..).zip(&known);
        let rows = rows.filter(move |(_, known)| known.sets >> bit & 1 == 1);
        rows.map(|(row, _)| row).collect()
    };
    let degree = |node| {
        degrees
            .get(node)
            .copied()
            .ok_or_else(|| SimError::Strategy(format!("nobody told the degree of node {node}")))
    };
    Ok(Shard {
        owned: part.owned.len(),
        adjacency: Csr::rectangular(part.owned.len(), nodes.len(), edges.iter().copied()),
        degrees: nodes.iter().map(degree).collect::<Result<_, _>>()?,
        nodes,
        halo_rows: part.halo_rows.clone(),
        sends: part.sends.clone(),
        receives: part.receives.clone(),
        features,
        train: in_set(0),
        validation: in_set(1),
        test: in_set(2),
        labels: Labels::of_each(setting.task(), known.into_iter().map(|known| known.label)),
    })
}
