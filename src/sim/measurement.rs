//! Measuring a network: how long messages, and loads of many at once, take on any engine.
//!
//! On real processes this measures the machines; on the emulated network it measures the emulation,
//! which must give back what it was told.

mod bursts;

use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use serde::Serialize;

pub(crate) use bursts::Bursts;

use super::{Cluster, SimError, run_workers};
use crate::names::named;
use crate::net::{
    Bytes, Communicator, Ledger, Message, NetError, NetworkSpec, Outbox, Reduce, Seconds,
    TrafficKind, floats, median, to_bytes,
};

named! {
    /// Who sends to whom, all at once.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
    #[serde(rename_all = "kebab-case")]
    pub(crate) enum Pattern {
        /// Worker 0 sends to worker 1.
        OneFlow = "one-flow",
        /// All others send to worker 0.
        Incast = "incast",
        /// Everybody sends to everybody else.
        AllToAll = "all-to-all",
        /// An all-reduce.
        AllReduce = "all-reduce",
    }
}

impl Pattern {
    /// Whether `from` sends to `to` in an exchange of this pattern.
    const fn sends(self, from: usize, to: usize) -> bool {
        from != to
            && match self {
                Self::OneFlow => from == 0 && to == 1,
                Self::Incast => to == 0,
                Self::AllToAll => true,
                Self::AllReduce => false,
            }
    }
}

/// A pattern and the bytes of each of its messages, or of the values that are all-reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// Who sends to whom.
    pub(crate) pattern: Pattern,
    /// How much; of an all-reduce in whole floats.
    pub bytes: u64,
}

/// What is measured of a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CalibrationPlan {
    /// Pairs of workers, one after another.
    pub pairs: Vec<(usize, usize)>,
    /// Sizes of messages in bytes, ascending.
    pub sizes: Vec<u64>,
    /// What is sent by all at once, one after another.
    pub loads: Vec<Load>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Calibration {
    /// For each pair of the plan: sizes and median times, one way.
    pub pairs: Vec<Vec<(Bytes, Seconds)>>,
    /// For each pair of the plan: bursts of small messages.
    pub(crate) bursts: Vec<Bursts>,
    /// For each load of the plan: the median over repetitions of the time of the slowest worker.
    pub loads: Vec<Seconds>,
}

/// All pairs of few workers are measured; of more, those at distances that are powers of two.
const ALL_PAIRS_UP_TO: usize = 8;

/// A size whose round trips take so long is the last that is measured.
const LONG: Seconds = Seconds(0.5);

/// Round trips that are not measured: buffers and connections are made in them.
const WARM_UP: usize = 3;

/// What a ping says: to be answered in kind, or that it was the last.
const PING: u8 = 1;
const LAST: u8 = 0;

const KIND: TrafficKind = TrafficKind::Control;

impl CalibrationPlan {
    /// Messages of 1 byte to 16 MiB, the patterns with 1 MB, and all-reduces of 4 kB to 16 MB,
    /// among `workers`.
    pub(crate) fn new(workers: usize) -> Self {
        let apart = |distance: usize| {
            workers <= ALL_PAIRS_UP_TO
                // A distance counts both ways around the ranks, so that the last ones are also near
                // the first.
                || distance.is_power_of_two()
                || (workers - distance).is_power_of_two()
        };
        let mut pairs = Vec::new();
        for a in 0..workers {
            pairs.extend((a + 1..workers).filter(|b| apart(b - a)).map(|b| (a, b)));
        }
        Self {
            pairs,
            // Powers of four, 4⁰ to 4¹²: evenly spread on the logarithmic scale of relative
            // residuals.
            sizes: (0..=12).map(|power| 1 << (2 * power)).collect(),
            loads: Pattern::ALL
                .into_iter()
                .filter(|pattern| *pattern != Pattern::AllReduce)
                .map(|pattern| (pattern, 1_000_000))
                .chain(
                    [4_000, 40_000, 400_000, 4_000_000, 16_000_000]
                        .map(|bytes| (Pattern::AllReduce, bytes)),
                )
                .map(|(pattern, bytes)| Load { pattern, bytes })
                .collect(),
        }
    }
}

/// Measured times of a size: enough of the short ones that chance evens out.
const fn repetitions(bytes: u64) -> usize {
    match bytes {
        // Odd numbers, so that the median is one of the times.
        0..=65_536 => 31,
        65_537..=1_048_576 => 11,
        _ => 5,
    }
}

/// Measures as planned; every worker calls this. Worker 0 has the result, the others an empty one.
///
/// # Errors
/// If another worker failed.
pub(crate) fn calibrate(
    communicator: &mut dyn Communicator,
    plan: &CalibrationPlan,
) -> Result<Calibration, NetError> {
    let mut found = Calibration::default();
    let rank = communicator.rank();
    for &(a, b) in &plan.pairs {
        // One pair at a time: messages of two pairs could share a link.
        wait_for_all(communicator)?;
        let times = match rank {
            _ if rank == a => ping(communicator, b, &plan.sizes)?,
            _ if rank == b => {
                echo(communicator, a)?;
                Vec::new()
            }
            _ => Vec::new(),
        };
        let times = report(communicator, a, &times)?;
        let sizes = plan.sizes.iter().map(|&size| Bytes(size));
        // A ping ends early where trips take long. Sizes without a time are left out.
        found.pairs.push(sizes.zip(times).collect());
        // Bursts begin with quiet links, too: the report of the times may still be under way.
        wait_for_all(communicator)?;
        let bursts = match rank {
            _ if rank == a => bursts::throw(communicator, b)?,
            _ if rank == b => {
                bursts::catch(communicator, a)?;
                Vec::new()
            }
            _ => Vec::new(),
        };
        let bursts = report(communicator, a, &bursts)?;
        found.bursts.push(Bursts::read(&bursts));
    }
    for &load in &plan.loads {
        found.loads.push(carry(communicator, load)?);
    }
    Ok(if rank == 0 {
        found
    } else {
        Calibration::default()
    })
}

/// The same on the emulated network of `spec`, and every message that was sent for it.
///
/// # Errors
/// If the network cannot be built.
pub(crate) fn calibrate_emulated(
    spec: &NetworkSpec,
    workers: usize,
    plan: &CalibrationPlan,
) -> Result<(Calibration, Ledger), SimError> {
    let topology = spec.topology(workers)?;
    let cluster = Cluster {
        all_reduce: spec.all_reduce_on(&topology),
        ..Cluster::new(Arc::new(topology), spec.framing())
    };
    let found = Mutex::new(Calibration::default());
    let results = run_workers(&cluster, workers, |mut worker| {
        let mine = calibrate(worker.as_mut(), plan)?;
        if worker.rank() == 0 {
            *found.lock().unwrap_or_else(PoisonError::into_inner) = mine;
        }
        Ok(())
    })?;
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((found, results.ledger))
}

/// One message to `peer`.
fn send(
    communicator: &mut dyn Communicator,
    peer: usize,
    payload: Vec<u8>,
) -> Result<(), NetError> {
    let mut outbox = Outbox::new(KIND, 0);
    outbox.messages.push(Message { peer, payload });
    communicator.exchange(outbox).map(drop)
}

/// One message from `peer`.
fn receive(communicator: &mut dyn Communicator, peer: usize) -> Result<Vec<u8>, NetError> {
    let mut outbox = Outbox::new(KIND, 0);
    outbox.expect.push(peer);
    let mut inbox = communicator.exchange(outbox)?;
    Ok(inbox
        .pop()
        // One sender is expected, so there is one message.
        .map(|message| message.payload)
        .unwrap_or_default())
}

/// Times of round trips to `peer`, halved; one a size, in order, as far as they are measured.
fn ping(
    communicator: &mut dyn Communicator,
    peer: usize,
    sizes: &[u64],
) -> Result<Vec<f32>, NetError> {
    let mut medians = Vec::new();
    for &size in sizes {
        let repetitions = repetitions(size);
        let mut times = Vec::with_capacity(repetitions);
        for trip in 0..WARM_UP + repetitions {
            // Made before the clock is read, and at least one byte long, for the mark.
            let mut payload = vec![0; size as usize];
            payload[0] = PING;
            let start = communicator.now();
            send(communicator, peer, payload)?;
            receive(communicator, peer)?;
            if trip >= WARM_UP {
                times.push((communicator.now() - start).0 / 2.0);
            }
        }
        let time = median(times);
        medians.push(time as f32);
        if time > LONG.0 {
            break;
        }
    }
    // The other end does not know when sizes are given up, and answers until it is told.
    send(communicator, peer, vec![LAST])?;
    Ok(medians)
}

/// Answers pings until the last.
fn echo(communicator: &mut dyn Communicator, peer: usize) -> Result<(), NetError> {
    loop {
        let payload = receive(communicator, peer)?;
        if payload.first() != Some(&PING) {
            return Ok(());
        }
        // Sent back as it came: both ways are alike, and one is half of the trip.
        send(communicator, peer, payload)?;
    }
}

/// Brings what `from` measured to worker 0.
fn report(
    communicator: &mut dyn Communicator,
    from: usize,
    times: &[f32],
) -> Result<Vec<Seconds>, NetError> {
    let bytes = match (communicator.rank(), from) {
        (0, 0) => to_bytes(times),
        (0, _) => receive(communicator, from)?,
        (rank, _) if rank == from => {
            send(communicator, 0, to_bytes(times))?;
            Vec::new()
        }
        _ => Vec::new(),
    };
    Ok(floats(&bytes)
        .map(|time| Seconds(f64::from(time)))
        .collect())
}

/// The median time of a load, that of the slowest worker.
fn carry(communicator: &mut dyn Communicator, load: Load) -> Result<Seconds, NetError> {
    // A load is many messages at once, and takes longer than one of its size.
    let repetitions = repetitions(load.bytes).min(11);
    let mut times = Vec::with_capacity(repetitions);
    // The largest of ones is one. Sums would grow from trip to trip, for the values go around
    // again.
    let mut values = vec![1.0; load.bytes as usize / 4];
    for trip in 0..WARM_UP + repetitions {
        // Built before all meet, so that making the payloads is not measured.
        let outbox = outbox(communicator, load);
        wait_for_all(communicator)?;
        let start = communicator.now();
        match load.pattern {
            Pattern::AllReduce => communicator.all_reduce(&mut values, Reduce::Max, KIND)?,
            _ => drop(communicator.exchange(outbox)?),
        }
        // All-reduce carries single precision, whose seven digits are enough for a measured time.
        let mut time = [(communicator.now() - start).0 as f32];
        // A load is over when the last worker has what it waits for.
        communicator.all_reduce(&mut time, Reduce::Max, KIND)?;
        if trip >= WARM_UP {
            times.push(f64::from(time[0]));
        }
    }
    Ok(Seconds(median(times)))
}

/// What this worker sends and expects in a load that is an exchange.
fn outbox(communicator: &dyn Communicator, load: Load) -> Outbox {
    let (rank, size) = (communicator.rank(), communicator.size());
    let mut outbox = Outbox::new(KIND, 0);
    for peer in 0..size {
        if load.pattern.sends(rank, peer) {
            let payload = vec![0; load.bytes as usize];
            outbox.messages.push(Message { peer, payload });
        }
        if load.pattern.sends(peer, rank) {
            outbox.expect.push(peer);
        }
    }
    outbox
}

/// Nobody goes on before all are here. With a value for each, the ring lets them out no more than P
/// latencies apart.
fn wait_for_all(communicator: &mut dyn Communicator) -> Result<(), NetError> {
    let mut values = vec![0.0; communicator.size()];
    communicator.all_reduce(&mut values, Reduce::Max, KIND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{fit_line, fit_message_cost, fit_star};

    /// What the emulation is told, as the calibration says it.
    const STAR: &str = "framing = \"none\"\nlink = { bandwidth = \"1Gbps\", latency = \"100us\" }\n\
        [[worker]]\nrank = 2\nbandwidth = \"200Mbps\"\nlatency = \"2ms\"\n";

    #[test]
    fn the_emulation_measures_as_what_it_was_told() {
        // A gap is seen as such; no worker notices an overhead, which is latency and a gap then.
        for (told, found) in [
            (STAR.to_owned(), STAR.to_owned()),
            (
                format!("gap = \"20us\"\n{STAR}"),
                format!("gap = \"20us\"\n{STAR}"),
            ),
            (
                format!("overhead = \"5us\"\n{STAR}"),
                format!("gap = \"5us\"\n{STAR}")
                    .replace("100us", "110us")
                    .replace("2ms", "2.01ms"),
            ),
        ] {
            let told: NetworkSpec = toml::from_str(&told).unwrap();
            assert_eq!(measured_star(&told), toml::from_str(&found).unwrap());
        }
    }

    fn measured_star(spec: &NetworkSpec) -> NetworkSpec {
        let plan = CalibrationPlan::new(4);
        let (measured, _) = calibrate_emulated(spec, 4, &plan).unwrap();
        let fits = plan.pairs.iter().zip(&measured.pairs);
        let fits: Vec<_> = fits
            .map(|(&(a, b), times)| (a, b, fit_line(times).unwrap()))
            .collect();
        assert!(
            fits.iter().all(|(.., fit)| fit.worst_error < 1e-3),
            "{fits:?}"
        );
        let costs = fits.iter().zip(&measured.bursts);
        let costs: Vec<_> = costs
            .map(|((.., line), bursts)| fit_message_cost(&bursts.times, bursts.busy, line))
            .collect();
        fit_star(4, &fits, &costs).unwrap()
    }

    #[test]
    fn emulated_loads_take_their_closed_forms() {
        let spec: NetworkSpec = toml::from_str(
            "framing = \"none\"\nlink = { bandwidth = \"1Gbps\", latency = \"10us\" }",
        )
        .unwrap();
        let mut plan = CalibrationPlan::new(4);
        plan.pairs.clear();
        let (measured, ledger) = calibrate_emulated(&spec, 4, &plan).unwrap();
        for (load, time) in plan.loads.iter().zip(&measured.loads) {
            // Messages through the busiest link, and how often latency is paid.
            let (messages, latencies) = match load.pattern {
                Pattern::OneFlow => (1.0, 1.0),
                Pattern::Incast | Pattern::AllToAll => (3.0, 1.0),
                Pattern::AllReduce => (2.0 * 3.0 / 4.0, 2.0 * 3.0),
            };
            let expected = latencies * 1e-5 + messages * load.bytes as f64 * 8.0 / 1e9;
            // Workers begin no more than P latencies apart.
            assert!(
                (time.0 - expected).abs() < 4.1e-5 + 1e-3 * expected,
                "{load:?}: {time:?}, {expected}"
            );
        }
        assert!(ledger.traffic().payload_of(KIND).0 > 16_000_000);
    }

    #[test]
    fn every_worker_is_in_a_pair_however_many_there_are() {
        for workers in 2..40 {
            let plan = CalibrationPlan::new(workers);
            let with = |rank: usize| {
                plan.pairs
                    .iter()
                    .filter(|(a, b)| *a == rank || *b == rank)
                    .count()
            };
            assert!((0..workers).all(|rank| with(rank) >= 1), "{workers}");
            assert!(
                // Six powers of two below 40, and each both ways around.
                plan.pairs.len() <= workers * 12,
                "{workers}: {}",
                plan.pairs.len()
            );
        }
        assert_eq!(CalibrationPlan::new(4).pairs.len(), 6);
    }
}
