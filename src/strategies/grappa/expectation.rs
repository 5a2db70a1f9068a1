//! What the coverage of a worker's nodes is on average over all super-epochs.

use super::estimators::Weight;
use super::layout::Layout;
use crate::graph::BoundaryPlan;
use crate::model::Work;
use crate::net::{Bytes, Lane, Message, Outbox, Traffic, TrafficKind, floats, to_bytes};
use crate::sim::{Activity, SimError, Worker};

/// The expected weight of each owned node, for `normalise = "rho"`: its coverage over `hops` steps as if each were seen independently,
/// `(P ∘ π)^hops · 1` *(derived; exact for one hop)*, or for `node_hajek` the probability `1 − p0` that it sees any neighbour.
///
/// Each hop but the first needs what the one before gave for halo nodes: one number per boundary row travels (`control`), see [`traffic`].
///
/// # Errors
/// If communication fails.
pub fn expected(
    worker: &mut Worker,
    layout: &Layout,
    weight: Weight,
    hops: usize,
) -> Result<Vec<f32>, SimError> {
    if weight == Weight::NodeHajek {
        return Ok(nonempty(worker, layout));
    }
    let chunk_of = layout.chunk_of();
    let mut stays = vec![1.0_f32; worker.shard().nodes.len()];
    for hop in 0..hops {
        if hop > 0 {
            refresh_halo(worker, &mut stays)?;
        }
        let work = Work::pass(worker.shard().adjacency.edges());
        stays = worker.compute(Activity::Exchange, work, |worker| {
            step(worker, layout, &chunk_of, &stays)
        });
    }
    stays.truncate(worker.shard().owned);
    Ok(stays)
}

/// The messages of [`expected`].
#[must_use]
#[allow(clippy::cast_possible_truncation)] // ranks are few
pub fn traffic(boundary: &BoundaryPlan, weight: Weight, hops: usize) -> Traffic {
    let mut traffic = Traffic::new();
    let rounds = match weight {
        Weight::NodeHajek => 0,
        _ => hops.saturating_sub(1),
    };
    for (from, part) in boundary.parts.iter().enumerate() {
        for (to, rows) in part.sends.iter() {
            let lane = Lane {
                layer: 0,
                from: from as u32,
                to: to as u32,
                kind: TrafficKind::Control,
            };
            traffic.add_many(lane, Bytes(4 * rows.len() as u64), rounds as u64);
        }
    }
    traffic
}

/// One hop: of owned rows; the halo's stay as they are until they are refreshed.
#[allow(clippy::cast_possible_truncation)] // what travels is single precision
fn step(worker: &Worker, layout: &Layout, chunk_of: &[usize], stays: &[f32]) -> Vec<f32> {
    let (shard, apart) = (worker.shard(), layout.inclusion().pair(false));
    let chunk = |row: usize| chunk_of[shard.nodes[row] as usize];
    let mut next = stays.to_vec();
    for (v, next) in next.iter_mut().enumerate().take(shard.owned) {
        let neighbours = shard.adjacency.neighbours(v);
        let seen = neighbours.iter().map(|&u| {
            let together = layout.together(chunk(v), chunk(u as usize));
            (if together { 1.0 } else { apart }) * f64::from(stays[u as usize])
        });
        if !neighbours.is_empty() {
            *next = (seen.sum::<f64>() / neighbours.len() as f64) as f32;
        }
    }
    next
}

#[allow(clippy::cast_possible_truncation)] // weights are single precision
fn nonempty(worker: &Worker, layout: &Layout) -> Vec<f32> {
    let (shard, rules) = (worker.shard(), layout.rules());
    if rules.halo {
        return vec![1.0; shard.owned];
    }
    let chunk_of = layout.chunk_of();
    let chunk = |row: usize| chunk_of[shard.nodes[row] as usize];
    let of = |v: usize| {
        let neighbours = shard.adjacency.neighbours(v).iter();
        let mut chunks: Vec<usize> = neighbours.map(|&u| chunk(u as usize)).collect();
        if chunks.iter().any(|&other| layout.together(chunk(v), other)) {
            return 1.0;
        }
        chunks.sort_unstable();
        chunks.dedup();
        if chunks.is_empty() {
            return 1.0;
        }
        (1.0 - layout.inclusion().none_of(chunks.len())) as f32
    };
    (0..shard.owned).map(of).collect()
}

/// Gets the halo's numbers from those who own them.
fn refresh_halo(worker: &mut Worker, values: &mut [f32]) -> Result<(), SimError> {
    let shard = worker.shard();
    let mut outbox = Outbox::new(TrafficKind::Control, 0);
    for (peer, rows) in shard.sends.iter() {
        let sent: Vec<f32> = rows.iter().map(|&row| values[row as usize]).collect();
        let payload = to_bytes(&sent);
        outbox.messages.push(Message { peer, payload });
    }
    outbox.expect.extend(shard.receives.ranks());
    let inbox = worker.exchange(outbox)?;
    let shard = worker.shard();
    for message in &inbox {
        let range = shard.receives[message.peer].clone();
        let halo = &mut values[shard.owned..][range];
        for (value, new) in halo.iter_mut().zip(floats(&message.payload)) {
            *value = new;
        }
    }
    Ok(())
}
