//! What takes its time beside the workers' programs, against closed forms.

mod all_reduce;
mod turns;

use std::sync::{Arc, Mutex};

use crate::net::{
    AllReduceKind, Bandwidth, Bytes, Communicator, ExchangeKind, Framing, LinkSpec, Message,
    Outbox, Reduce, Seconds, Topology, TrafficKind, all_reduce_traffic,
};
use crate::sim::engine::EngineResults;
use crate::sim::{Cluster, Doing, SimError, run_workers};

const ALPHA: f64 = 1e-3;
/// Seconds a byte.
const BETA: f64 = 1e-6;

/// Equal links of latency α and bandwidth 1/β.
fn cluster(size: usize) -> Cluster {
    let link = LinkSpec {
        bandwidth: Bandwidth::new(8.0 / BETA).unwrap(),
        latency: Seconds(ALPHA),
    };
    let topology = Arc::new(Topology::star(&vec![link; size]));
    Cluster {
        timeline_epochs: 1,
        ..Cluster::new(topology, Framing::none())
    }
}

fn run<P>(cluster: &Cluster, program: P) -> EngineResults
where
    P: Fn(&mut dyn Communicator) -> Result<(), SimError> + Sync,
{
    let actors = cluster.topology.workers();
    run_workers(cluster, actors, |mut end| program(end.as_mut())).unwrap()
}

/// The time at which the last worker ends.
fn end(results: &EngineResults) -> f64 {
    let clocks = results.times.iter().map(|times| times.clock.0);
    clocks.fold(0.0, f64::max)
}

fn assert_time(found: f64, expected: f64, what: &str) {
    let scale = expected.abs().max(1e-12);
    assert!(
        (found - expected).abs() < 1e-9 * scale,
        "{what}: {found}, not {expected}"
    );
}

/// How long one all-reduce takes whose sum is right on every worker.
fn all_reduce(kind: &AllReduceKind, size: usize, len: usize) -> f64 {
    let cluster = Cluster {
        all_reduce: kind.clone(),
        ..cluster(size)
    };
    let results = run(&cluster, |end| {
        let mut values: Vec<f32> = (0..len).map(|at| (at + end.rank()) as f32).collect();
        end.all_reduce(&mut values, Reduce::Sum, TrafficKind::ParameterGradient)?;
        let ranks = size * (size - 1) / 2;
        for (at, &value) in values.iter().enumerate() {
            assert_eq!(value, (at * size + ranks) as f32);
        }
        Ok(())
    });
    let plan = all_reduce_traffic(kind, size, len, TrafficKind::ParameterGradient);
    assert_eq!(results.ledger.epoch(0), Some(&plan));
    // Who sends last is done when its message has left, before that has arrived.
    for times in results
        .times
        .iter()
        .filter(|_| *kind == AllReduceKind::Ring)
    {
        assert_time(
            times.exposed.0,
            times.communication.0,
            "all of it is exposed",
        );
    }
    end(&results)
}

#[test]
fn a_broadcast_takes_its_closed_form_for_any_number_of_workers_and_any_root() {
    for size in 1..=17_usize {
        for root in [0, size / 2, size - 1] {
            let results = run(&cluster(size), |end| {
                let mut values = vec![end.rank() as f32; 100];
                end.broadcast(root, &mut values, TrafficKind::Parameter)?;
                assert_eq!(values, vec![root as f32; 100]);
                Ok(())
            });
            let levels = f64::from(size.next_power_of_two().ilog2());
            assert_time(end(&results), levels * (ALPHA + 400.0 * BETA), "broadcast");
        }
    }
}

#[test]
fn nobody_passes_a_barrier_before_all_have_come() {
    for kind in [AllReduceKind::Ring, AllReduceKind::Tree] {
        let cluster = Cluster {
            all_reduce: kind,
            ..cluster(5)
        };
        run(&cluster, |end| {
            end.elapse(Seconds(end.rank() as f64));
            end.barrier(TrafficKind::Parameter)?;
            assert!(end.now().0 >= 4.0, "{}", end.now().0);
            Ok(())
        });
    }
}

#[test]
fn a_gather_shares_the_link_of_its_root() {
    let lens = [10, 0, 30, 20];
    let results = run(&cluster(4), |end| {
        let own = vec![end.rank() as f32; lens[end.rank()]];
        let all = end.gather(3, &own, &lens, TrafficKind::Control)?;
        let expected: Vec<f32> = (0..4)
            .flat_map(|rank| vec![rank as f32; lens[rank]])
            .collect();
        assert_eq!(
            all,
            if end.rank() == 3 {
                expected
            } else {
                Vec::new()
            }
        );
        let wrong = end.gather(3, &own, &[1, 1, 1], TrafficKind::Control);
        assert!(
            wrong
                .unwrap_err()
                .to_string()
                .contains("4 workers have [1, 1, 1]")
        );
        Ok(())
    });
    assert_time(
        end(&results),
        ALPHA + 160.0 * BETA,
        "40 floats into one link",
    );
}

/// Everybody sends `bytes(from, to)` to everybody.
fn all_to_all(
    end: &mut dyn Communicator,
    layer: u32,
    bytes: impl Fn(usize, usize) -> usize,
) -> Result<(), SimError> {
    let (rank, size) = (end.rank(), end.size());
    let others = || (0..size).filter(move |&peer| peer != rank);
    let mut outbox = Outbox::new(TrafficKind::Activation, layer);
    outbox.messages = others()
        .filter(|&to| bytes(rank, to) > 0)
        .map(|peer| Message {
            peer,
            payload: vec![rank as u8; bytes(rank, peer)],
        })
        .collect();
    outbox.expect = others().filter(|&from| bytes(from, rank) > 0).collect();
    let expected: Vec<(usize, usize)> = outbox
        .expect
        .iter()
        .map(|&from| (from, bytes(from, rank)))
        .collect();
    let inbox = end.exchange(outbox)?;
    let found: Vec<(usize, usize)> = inbox
        .iter()
        .map(|message| (message.peer, message.payload.len()))
        .collect();
    assert_eq!(found, expected);
    assert!(inbox.iter().all(|message| {
        message
            .payload
            .iter()
            .all(|&byte| usize::from(byte) == message.peer)
    }));
    Ok(())
}

fn pairwise(size: usize) -> Cluster {
    Cluster {
        exchange: ExchangeKind::Pairwise,
        ..cluster(size)
    }
}

#[test]
fn a_pairwise_all_to_all_takes_its_closed_form() {
    for size in 2..=17_usize {
        let rounds = (size - 1) as f64;
        let results = run(&pairwise(size), |end| all_to_all(end, 0, |_, _| 1_000));
        assert_time(end(&results), rounds * (ALPHA + 1_000.0 * BETA), "pairwise");
        // All at once, everything shares the links and latency is paid once.
        let direct = run(&cluster(size), |end| all_to_all(end, 0, |_, _| 1_000));
        assert_time(end(&direct), ALPHA + rounds * 1_000.0 * BETA, "direct");
        assert_eq!(results.ledger.epoch(0), direct.ledger.epoch(0));
    }
}

#[test]
fn pairwise_exchanges_without_some_messages_and_of_several_layers_end_well() {
    let results = run(&pairwise(5), |end| {
        for round in 0..3 {
            for layer in 0..2 {
                all_to_all(end, layer, |from, to| (from * 7 + to * 3 + round) % 4 * 100)?;
            }
        }
        Ok(())
    });
    assert!(end(&results) > 0.0);
}

#[test]
fn two_started_pairwise_exchanges_of_one_kind_keep_their_messages_apart() {
    run(&pairwise(3), |end| {
        let (rank, size) = (end.rank(), end.size());
        // The first lacks the message from 0 to 1, so that worker 1 could take the second's for it.
        let mut start = |mark: u8| {
            let skip = |from: usize, to: usize| mark == 1 && (from, to) == (0, 1);
            let mut outbox = Outbox::new(TrafficKind::Sample, 0);
            outbox.messages = (0..size)
                .filter(|&to| to != rank && !skip(rank, to))
                .map(|peer| Message {
                    peer,
                    payload: vec![mark; 50],
                })
                .collect();
            outbox.expect = (0..size)
                .filter(|&from| from != rank && !skip(from, rank))
                .collect();
            end.start_exchange(outbox)
        };
        let started = [start(1)?, start(2)?];
        for (mark, pending) in (1..).zip(started) {
            let inbox = end.finish_exchange(pending)?;
            assert!(
                inbox.iter().all(|message| message.payload == [mark; 50]),
                "{rank}: {inbox:?}"
            );
        }
        Ok(())
    });
}

#[test]
fn what_computing_hides_of_an_exchange_is_not_exposed() {
    // Two workers exchange 4,000 bytes each way: α + 4,000β = 5 ms, and compute meanwhile.
    for how in [ExchangeKind::Direct, ExchangeKind::Pairwise] {
        for compute in [0.0, 1e-3, 4e-3, 5e-3, 7e-3] {
            let cluster = Cluster {
                exchange: how,
                ..cluster(2)
            };
            let results = run(&cluster, |end| {
                let peer = 1 - end.rank();
                let mut outbox = Outbox::new(TrafficKind::Activation, 0);
                outbox.messages = vec![Message {
                    peer,
                    payload: vec![0; 4_000],
                }];
                outbox.expect = vec![peer];
                let pending = end.start_exchange(outbox)?;
                end.elapse(Seconds(compute));
                end.finish_exchange(pending)?;
                Ok(())
            });
            let transfer = ALPHA + 4_000.0 * BETA;
            for times in &results.times {
                let close = |found: f64, expected: f64| {
                    assert!((found - expected).abs() < 1e-12, "{compute}: {times:?}");
                };
                close(times.communication.0, transfer);
                close(times.exposed.0, (transfer - compute).max(0.0));
                close(times.clock.0, transfer.max(compute));
            }
        }
    }
}

#[test]
fn what_computing_hides_of_an_all_reduce_is_not_exposed() {
    // Ring of four, 16,000 bytes: 6 (α + 4,000β) = 30 ms. The steps go on while everybody computes,
    // in pieces.
    for kind in [AllReduceKind::Ring, AllReduceKind::HalvingDoubling] {
        let alone = all_reduce(&kind, 4, 4_000);
        for compute in [0.0, 1e-3, 11e-3, 25e-3, 50e-3] {
            let cluster = Cluster {
                all_reduce: kind.clone(),
                ..cluster(4)
            };
            let results = run(&cluster, |end| {
                let pending = end.start_all_reduce(
                    vec![1.0; 4_000],
                    Reduce::Sum,
                    TrafficKind::ParameterGradient,
                )?;
                for _ in 0..4 {
                    end.elapse(Seconds(compute / 4.0));
                }
                assert_eq!(end.finish_collective(pending)?, vec![4.0; 4_000]);
                Ok(())
            });
            for times in &results.times {
                let close = |found: f64, expected: f64| {
                    assert!((found - expected).abs() < 1e-12, "{compute}: {times:?}");
                };
                close(times.communication.0, alone);
                close(times.exposed.0, (alone - compute).max(0.0));
                close(times.clock.0, alone.max(compute));
            }
        }
    }
}

#[test]
fn collectives_of_one_worker_take_place_one_after_another() {
    let kind = TrafficKind::ParameterGradient;
    let one = all_reduce(&AllReduceKind::Ring, 4, 4_000);
    let results = run(&cluster(4), |end| {
        let first = end.start_all_reduce(vec![1.0; 4_000], Reduce::Sum, kind)?;
        let second = end.start_all_reduce(vec![2.0; 4_000], Reduce::Max, kind)?;
        // Asked for in another order, and with the clock far ahead of what is under way.
        end.elapse(Seconds(1.5 * 30e-3));
        assert_eq!(end.finish_collective(second)?, vec![2.0; 4_000]);
        assert_eq!(end.finish_collective(first)?, vec![4.0; 4_000]);
        Ok(())
    });
    assert_time(end(&results), 2.0 * one, "two in a row");
}

#[test]
fn an_exchange_goes_its_own_way_beside_a_collective() {
    // The all-reduce of 30 ms is under way while 4 bytes are exchanged; they share links and do not
    // wait for it.
    let clocks = Mutex::new(Vec::new());
    run(&cluster(4), |end| {
        let kind = TrafficKind::ParameterGradient;
        let pending = end.start_all_reduce(vec![1.0; 4_000], Reduce::Sum, kind)?;
        all_to_all(end, 0, |_, _| 4)?;
        clocks.lock().unwrap().push(end.now().0);
        end.finish_collective(pending)?;
        Ok(())
    });
    let clocks = clocks.into_inner().unwrap();
    // The latency of 1 ms, and next to nothing for a dozen bytes.
    assert!(clocks.iter().all(|&clock| clock < 1.1e-3), "{clocks:?}");
}

#[test]
fn what_nobody_started_cannot_be_finished() {
    let error = run_workers(&cluster(2), 2, |mut end| {
        let pending = end.start_all_reduce(vec![1.0], Reduce::Sum, TrafficKind::Control)?;
        let ticket = pending.ticket;
        end.finish_collective(pending)?;
        end.finish_collective(crate::net::PendingCollective { ticket })?;
        Ok(())
    });
    let error = error.err().unwrap().to_string();
    assert!(error.contains("did not start"), "{error}");
    let error = run_workers(&cluster(2), 2, |mut end| {
        if end.rank() == 0 {
            end.all_reduce(&mut [1.0], Reduce::Sum, TrafficKind::Control)?;
        }
        Ok(())
    });
    let error = error.err().unwrap().to_string();
    assert!(error.contains("others did not enter"), "{error}");
}

#[test]
fn the_timeline_holds_computing_waiting_and_messages_of_the_first_epochs() {
    let results = run(&cluster(2), |end| {
        let rank = end.rank();
        for epoch in 0..3 {
            end.begin_epoch(epoch);
            end.elapse(Seconds(1e-3));
            end.elapse(Seconds(1e-3 * rank as f64));
            all_to_all(end, 2, |_, _| 1_000)?;
        }
        Ok(())
    });
    let timeline = results.timeline;
    let spans: Vec<_> = timeline
        .spans()
        .iter()
        .map(|span| {
            (
                span.worker,
                span.epoch,
                span.doing,
                (span.start.0 * 1e6).round(),
                (span.end.0 * 1e6).round(),
            )
        })
        .collect();
    // Worker 1 computes 1 ms longer; a message takes 2 ms.
    assert_eq!(
        spans,
        [
            (0, 0, Doing::Compute, 0.0, 1_000.0),
            (1, 0, Doing::Compute, 0.0, 2_000.0),
            (1, 0, Doing::Wait, 2_000.0, 3_000.0),
            (0, 0, Doing::Wait, 1_000.0, 4_000.0),
        ]
    );
    let flights: Vec<_> = timeline
        .flights()
        .iter()
        .map(|flight| {
            (
                flight.lane.from,
                flight.lane.layer,
                flight.payload,
                (flight.end.0 * 1e6).round(),
            )
        })
        .collect();
    assert_eq!(
        flights,
        [(0, 2, Bytes(1_000), 3_000.0), (1, 2, Bytes(1_000), 4_000.0)]
    );
    assert!(!timeline.is_cut());
}
