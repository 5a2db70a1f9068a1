//! Sums of neighbours' features, made together: `Σ_u A_vu x_u` with the weights of a GCN's first
//! layer, `1/√((d_v + 1)(d_u + 1))`, of each node itself too.

use crate::model::{Aggregation, Input, Matrix, ModelKind, ModelSpec, Work};
use crate::net::{Outbox, TrafficKind, f32_bytes};
use crate::sim::{Activity, Setting, Shard, SimError, Track, Worker};
use crate::strategies::parts::plan::exchange_of;
use crate::strategies::parts::server::{SERVER, add, floats_to, others, plan_to_server, unpacked};

const KIND: TrafficKind = TrafficKind::Feature;

/// Whether a model begins with such sums.
pub(super) fn can_be_made(model: &ModelSpec) -> bool {
    model.kind == ModelKind::Gcn && model.aggregation() == Aggregation::SymmetricWithSelf
}

/// Rows of sums that a client of so many own nodes and others next to them gets: with 2 hops those
/// of its neighbours too, where there is a second layer to gather them.
pub(super) const fn rows(hops: usize, layers: usize, [owned, halo]: [usize; 2]) -> usize {
    if hops == 2 && layers > 1 {
        owned + halo
    } else {
        owned
    }
}

/// What a worker does in [`exchanged`].
pub(super) fn plan(track: &mut Track, setting: &Setting, rank: usize, hops: usize) {
    let (counts, width) = (&setting.counts, setting.model.features());
    let known = |rank: usize| counts.parts[rank].owned + counts.parts[rank].halo;
    let part = &counts.parts[rank];
    let edges = part.internal_edges + part.cut_edges;
    track.compute(Work::pass(width * (known(rank) + edges)));
    let workers = counts.workers();
    plan_to_server(track, KIND, rank, workers, f32_bytes(known(rank) * width));
    let got = |rank: usize| {
        let part = &counts.parts[rank];
        width * rows(hops, setting.model.layers(), [part.owned, part.halo])
    };
    if rank == SERVER {
        let all = (0..workers).map(known).sum::<usize>();
        track.compute(Work::pass(width * all));
        // What came, or what goes back, beside the sums.
        track.passes_with(4 * (width * (all + counts.nodes)) as u64, 0);
        let to = (1..workers).map(|peer| (peer as u32, f32_bytes(got(peer))));
        track.exchange(exchange_of(KIND, 0, to.collect(), Vec::new()));
    } else {
        track.exchange(exchange_of(KIND, 0, Vec::new(), vec![SERVER as u32]));
        track.compute(Work::pass(got(rank)));
    }
}

/// The sums of a worker's own nodes, and below them those of their neighbours where it gets them.
///
/// # Errors
/// If communication fails.
pub(super) fn exchanged(worker: &mut Worker, hops: usize) -> Result<Input, SimError> {
    let width = worker.shard().features.width();
    let mine = worker.compute(Activity::Exchange, |worker| parts_of(worker.shard()));
    let mut outbox = Outbox::new(KIND, 0);
    if worker.rank() != SERVER {
        outbox.messages.push(floats_to(SERVER, &mine));
        worker.exchange(outbox)?;
        let mut answer = Outbox::new(KIND, 0);
        answer.expect = vec![SERVER];
        let inbox = worker.exchange(answer)?;
        return worker.compute(Activity::Exchange, |worker| {
            let shard = worker.shard();
            let layers = worker.setting().model.layers();
            let rows = rows(hops, layers, [shard.owned, shard.halo()]);
            let values = unpacked(&inbox[0], rows * width)?; // one message was expected
            Ok(input(worker, values, width))
        });
    }
    outbox.expect = others(&vec![true; worker.size()]);
    let inbox = worker.exchange(outbox)?;
    let mut answer = Outbox::new(KIND, 0);
    let own = worker.compute(Activity::Exchange, |worker| {
        let setting = worker.setting();
        let parts = &setting.boundary.parts;
        let mut sums = vec![0.0_f32; setting.boundary.nodes * width];
        add_rows(&mut sums, &known(worker, SERVER, false), &mine, width);
        // Let go one by one, before as much is written for the way back.
        drop(mine);
        for message in inbox {
            let nodes = known(worker, message.peer, false);
            let values = unpacked(&message, nodes.len() * width)?;
            add_rows(&mut sums, &nodes, &values, width);
        }
        let alone = rows(hops, setting.model.layers(), [0, 1]) == 0;
        let of = |rank| selected(&sums, &known(worker, rank, alone), width);
        let message = |peer| floats_to(peer, &of(peer));
        answer.messages = (1..parts.len()).map(message).collect();
        Ok::<_, SimError>(of(SERVER))
    })?;
    worker.exchange(answer)?;
    Ok(input(worker, own, width))
}

fn input(worker: &Worker, values: Vec<f32>, width: usize) -> Input {
    Input::Dense(Matrix::from_values(values, width, worker.place()))
}

/// What the features of a client's own nodes add to the sums of these, and of those that its nodes
/// have edges to: `[owned + halo, width]`. The graph has each edge both ways.
fn parts_of(shard: &Shard) -> Vec<f32> {
    let (owned, width) = (shard.owned, shard.features.width());
    let rows: Vec<u32> = (0_u32..).take(owned).collect();
    let features = shard.features.dense_rows(&rows);
    let mut sums = vec![0.0_f32; shard.nodes.len() * width];
    let weight = |u: usize, v: usize| {
        let product = (shard.degrees[u] + 1) * (shard.degrees[v] + 1);
        (1.0 / (product as f64).sqrt()) as f32
    };
    let mut give = |from: usize, to: usize| {
        let weight = weight(from, to);
        let values = &features[from * width..][..width];
        for (sum, value) in sums[to * width..][..width].iter_mut().zip(values) {
            *sum += weight * value;
        }
    };
    for row in 0..owned {
        give(row, row);
        for &other in shard.adjacency.neighbours(row) {
            let other = other as usize;
            if other < owned {
                give(other, row);
            } else {
                give(row, other);
            }
        }
    }
    sums
}

/// The nodes of a client, with those that it has edges to unless they are its own `alone`.
fn known(worker: &Worker, rank: usize, alone: bool) -> Vec<u32> {
    let part = &worker.setting().boundary.parts[rank];
    let halo = if alone { &[][..] } else { &part.halo };
    [&part.owned[..], halo].concat()
}

fn add_rows(sums: &mut [f32], nodes: &[u32], values: &[f32], width: usize) {
    for (&node, values) in nodes.iter().zip(values.chunks_exact(width.max(1))) {
        add(&mut sums[node as usize * width..][..width], values);
    }
}

fn selected(sums: &[f32], nodes: &[u32], width: usize) -> Vec<f32> {
    let rows = nodes.iter().map(|&node| node as usize * width);
    rows.flat_map(|start| &sums[start..start + width])
        .copied()
        .collect()
}
