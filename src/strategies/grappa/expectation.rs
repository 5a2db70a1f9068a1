//! What the coverage of a worker's nodes is on average over all super-epochs.

use super::estimators::{Weight, none_seen, stay};
use super::layout::Layout;
use crate::graph::PartCounts;
use crate::model::Work;
use crate::net::{Bytes, Outbox, TrafficKind, floats};
use crate::sim::{Activity, SimError, Track, Worker};
use crate::strategies::parts::plan::{exchange_of, peers};
use crate::strategies::parts::server::floats_to;

/// The expected weight of each owned node, for `normalise = "rho"`: its coverage over `hops` steps
/// as if each were seen independently, `(P ∘ π)^hops · 1` *(derived; exact for one hop)*, or for
/// `node_hajek` the probability `1 − p0` that it sees any neighbour.
///
/// Each hop but the first needs what the one before gave for halo nodes: one number per boundary
/// row travels (`control`), see [`plan`].
///
/// # Errors
/// If communication fails.
pub(super) fn expected(
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
        stays = worker.compute(Activity::Exchange, |worker| {
            step(worker, layout, &chunk_of, &stays)
        });
    }
    stays.truncate(worker.shard().owned);
    Ok(stays)
}

/// What worker `rank` does in [`expected`].
pub(super) fn plan(track: &mut Track, part: &PartCounts, weight: Weight, hops: usize) {
    if weight == Weight::NodeHajek {
        return;
    }
    for hop in 0..hops {
        if hop > 0 {
            let numbers = |&(reader, rows): &(u32, usize)| (reader, Bytes(4 * rows as u64));
            let to = part.sends.iter().map(numbers).collect();
            let from = peers(&part.receives);
            track.exchange(exchange_of(TrafficKind::Control, 0, to, from));
        }
        track.compute(Work::pass(part.internal_edges + part.cut_edges));
    }
}

/// One hop: of owned rows; the halo's stay as they are until they are refreshed.
fn step(worker: &Worker, layout: &Layout, chunk_of: &[usize], stays: &[f32]) -> Vec<f32> {
    let (shard, apart) = (worker.shard(), layout.inclusion().pair(false));
    let chunk = |row: usize| chunk_of[shard.nodes[row] as usize];
    let mut next = stays.to_vec();
    for (v, next) in next.iter_mut().enumerate().take(shard.owned) {
        let neighbours = shard.adjacency.neighbours(v);
        let seen = |u: usize| {
            let together = layout.together(chunk(v), chunk(u));
            (if together { 1.0 } else { apart }) * f64::from(stays[u])
        };
        *next = stay(neighbours, neighbours.len(), seen) as f32;
    }
    next
}

fn nonempty(worker: &Worker, layout: &Layout) -> Vec<f32> {
    let (shard, rules) = (worker.shard(), layout.rules());
    if rules.halo {
        return vec![1.0; shard.owned];
    }
    let chunk_of = layout.chunk_of();
    let chunk = |row: usize| chunk_of[shard.nodes[row] as usize];
    let of = |v: usize| {
        let neighbours = shard.adjacency.neighbours(v).iter();
        let chunks = neighbours.map(|&u| chunk(u as usize)).collect();
        let together = |other| layout.together(chunk(v), other);
        (1.0 - none_seen(layout.inclusion(), chunks, together)) as f32
    };
    (0..shard.owned).map(of).collect()
}

/// Gets the halo's numbers from those who own them.
fn refresh_halo(worker: &mut Worker, values: &mut [f32]) -> Result<(), SimError> {
    let shard = worker.shard();
    let mut outbox = Outbox::new(TrafficKind::Control, 0);
    for (peer, rows) in shard.sends.iter() {
        let sent: Vec<f32> = rows.iter().map(|&row| values[row as usize]).collect();
        outbox.messages.push(floats_to(peer, &sent));
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
