//! A server, which is worker 0 as well: it takes the mean of models, and hands it out.
//!
//! Some of the workers take part in a round; the others send nothing and hear nothing. Their models
//! weigh as much as they have training nodes, and all the same if nobody who takes part has any.

use crate::model::{Gnn, Work, parameter_count, parameters, with_parameters};
use crate::net::{Bytes, Message, Outbox, TrafficKind, f32_bytes, floats, to_bytes};
use crate::sim::{Activity, SimError, Track, Worker};

use super::plan::exchange_of;

/// The worker that is the server as well.
pub const SERVER: usize = 0;

/// What a worker does in [`average`].
pub fn plan_average(track: &mut Track, rank: usize, takes_part: &[bool], parameters: usize) {
    let senders = others(takes_part);
    if senders.contains(&rank) {
        track.compute(Work::pass(parameters)); // packing
    }
    plan_from(
        track,
        TrafficKind::Parameter,
        rank,
        &senders,
        f32_bytes(parameters),
    );
    if rank == SERVER {
        track.compute(Work::pass(parameters * (senders.len() + 1)));
    }
}

/// What a worker does in [`hand_out`].
pub fn plan_handing_out(track: &mut Track, rank: usize, takes_part: &[bool], parameters: usize) {
    let kind = TrafficKind::Parameter;
    let readers = others(takes_part);
    if rank == SERVER {
        let pack = |_| track.compute(Work::pass(parameters));
        readers.iter().for_each(pack);
        let message = |&peer: &usize| (peer as u32, f32_bytes(parameters));
        let to = readers.iter().map(message).collect();
        track.exchange(exchange_of(kind, 0, to, Vec::new()));
    } else if takes_part[rank] {
        track.exchange(exchange_of(kind, 0, Vec::new(), vec![SERVER as u32]));
        track.compute(Work::pass(parameters));
    } else {
        track.exchange(exchange_of(kind, 0, Vec::new(), Vec::new()));
    }
}

/// A message of everybody else to the server, of which this worker's has so many bytes.
pub fn plan_to_server(
    track: &mut Track,
    kind: TrafficKind,
    rank: usize,
    workers: usize,
    bytes: Bytes,
) {
    let all: Vec<usize> = (1..workers).collect();
    plan_from(track, kind, rank, &all, bytes);
}

fn plan_from(track: &mut Track, kind: TrafficKind, rank: usize, senders: &[usize], bytes: Bytes) {
    if rank == SERVER {
        let from = senders.iter().map(|&peer| peer as u32).collect();
        track.exchange(exchange_of(kind, 0, Vec::new(), from));
    } else {
        let sends = senders.contains(&rank);
        let to = sends.then_some((SERVER as u32, bytes));
        track.exchange(exchange_of(kind, 0, to.into_iter().collect(), Vec::new()));
    }
}

/// On the server the mean of the models of those who take part, weighted by training nodes;
/// elsewhere the worker's own.
///
/// # Errors
/// If communication fails.
pub fn average(worker: &mut Worker, model: Gnn, takes_part: &[bool]) -> Result<Gnn, SimError> {
    let mut outbox = Outbox::new(TrafficKind::Parameter, 0);
    if worker.rank() != SERVER {
        if takes_part[worker.rank()] {
            outbox.messages.push(packed(worker, &model, SERVER));
        }
        // Without a message too, for workers of one machine may pass on those of each other.
        worker.exchange(outbox)?;
        return Ok(model);
    }
    outbox.expect = others(takes_part);
    let inbox = worker.exchange(outbox)?;
    worker.compute(Activity::Exchange, |worker| {
        let shares = shares(worker, takes_part);
        // In double precision, so that the mean is rounded once.
        let mut mean: Vec<f64> = parameters(&model)
            .into_iter()
            .map(|value| shares[SERVER] * f64::from(value))
            .collect();
        for message in &inbox {
            let values = unpacked(message, mean.len())?;
            for (sum, value) in mean.iter_mut().zip(values) {
                *sum += shares[message.peer] * f64::from(value);
            }
        }
        let mean: Vec<f32> = mean.into_iter().map(|value| value as f32).collect();
        Ok(with_parameters(model, &mean))
    })
}

/// How much each model weighs in the mean.
pub fn shares(worker: &Worker, takes_part: &[bool]) -> Vec<f64> {
    let parts = worker.setting().counts.parts.iter();
    let of = |nodes: usize, takes: bool| if takes { nodes } else { 0 };
    let nodes = parts
        .zip(takes_part)
        .map(|(part, &takes)| of(part.training, takes));
    let mut nodes: Vec<usize> = nodes.collect();
    if nodes.iter().all(|&nodes| nodes == 0) {
        nodes = takes_part.iter().map(|&takes| of(1, takes)).collect();
    }
    let all = nodes.iter().sum::<usize>() as f64;
    nodes.into_iter().map(|nodes| nodes as f64 / all).collect()
}

/// The server's model, on all workers that take part.
///
/// # Errors
/// If communication fails.
pub fn hand_out(worker: &mut Worker, model: Gnn, takes_part: &[bool]) -> Result<Gnn, SimError> {
    let mut outbox = Outbox::new(TrafficKind::Parameter, 0);
    if worker.rank() == SERVER {
        let peers = others(takes_part).into_iter();
        outbox.messages = peers.map(|peer| packed(worker, &model, peer)).collect();
    } else if takes_part[worker.rank()] {
        outbox.expect = vec![SERVER];
    }
    let inbox = worker.exchange(outbox)?;
    let Some(message) = inbox.first() else {
        return Ok(model);
    };
    let count = parameter_count(&model);
    worker.compute(Activity::Exchange, |_| {
        let values = unpacked(message, count)?;
        Ok(with_parameters(model, &values))
    })
}

/// A model on its way to `peer`.
fn packed(worker: &mut Worker, model: &Gnn, peer: usize) -> Message {
    worker.compute(Activity::Exchange, |_| floats_to(peer, &parameters(model)))
}

/// Numbers on their way to `peer`, as they are.
pub(crate) fn floats_to(peer: usize, values: &[f32]) -> Message {
    let payload = to_bytes(values);
    Message { peer, payload }
}

/// Adds to each number its other.
pub(crate) fn add(sums: &mut [f32], others: &[f32]) {
    let pairs = sums.iter_mut().zip(others);
    pairs.for_each(|(sum, other)| *sum += other);
}

/// So many numbers as they arrived.
///
/// # Errors
/// If there are more or fewer.
pub fn unpacked(message: &Message, count: usize) -> Result<Vec<f32>, SimError> {
    let values: Vec<f32> = floats(&message.payload).collect();
    if values.len() == count {
        return Ok(values);
    }
    Err(SimError::Strategy(
        "a message of another size arrived".to_owned(),
    ))
}

/// All of these workers but the server's.
pub fn others(takes_part: &[bool]) -> Vec<usize> {
    let all = takes_part.iter().enumerate();
    let others = all.filter(|(rank, takes)| *rank != SERVER && **takes);
    others.map(|(rank, _)| rank).collect()
}
