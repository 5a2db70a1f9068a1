//! A plan by itself takes the time of the program that follows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Course, Decision, Exchange, Planner, Timeline, play};
use crate::model::Work;
use crate::net::{
    AllReduceKind, Bytes, Collective, DeviceCost, Message, NetworkSpec, Outbox, Reduce, Seconds,
    SumCost, TrafficKind, Tried,
};
use crate::sim::{Cluster, ComputeTiming, DeviceProfile, run_workers};

/// Computes, exchanges and sums, in every epoch alike.
struct Alike {
    workers: usize,
    epoch: usize,
}

/// What worker `rank` sends to the next two, and what it computes.
fn uneven(rank: usize, size: usize) -> (Work, Exchange) {
    let work = Work {
        operations: 1e7 * (1 + rank % 3) as f64,
        launches: 2.0,
        ..Work::default()
    };
    let peers = |steps: [usize; 2]| {
        let mut peers = steps.map(|step| ((rank + step) % size) as u32);
        peers.sort_unstable();
        peers
    };
    let bytes = |peer: &u32| (*peer, Bytes(100 + 300 * u64::from(*peer)));
    let exchange = Exchange {
        kind: TrafficKind::Activation,
        layer: 1,
        to: peers([1, 2]).iter().map(bytes).collect(),
        from: peers([size - 1, size - 2]).to_vec(),
    };
    (work, exchange)
}

impl Planner for Alike {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let workers = self.workers;
        let timeline = Timeline::of(self.epoch, workers, |rank, track| {
            let (work, exchange) = uneven(rank, workers);
            track.compute(work);
            track.exchange(exchange);
            track.all_reduce(1_000, TrafficKind::ParameterGradient);
        });
        self.epoch += 1;
        Arc::new(timeline)
    }
}

#[test]
fn a_plan_takes_the_time_of_its_program_whatever_messages_cost_and_however_they_are_summed() {
    const EPOCHS: usize = 3;
    for (device, costs) in [
        ("cpu-core", ""),
        ("t4", ""),
        ("cpu-core", "overhead = \"20us\""),
        ("t4", "overhead = \"5us\"\ngap = \"30us\"\nloss = 0.05"),
        (
            "t4",
            "machine = { gpus = 2, nic = { bandwidth = \"100Mbps\", latency = \"50us\" } }\nall_reduce = \"hierarchical\"",
        ),
    ] {
        let profile = DeviceProfile::named(device).unwrap();
        let timing = ComputeTiming::Modelled([profile; 6].into());
        let text = format!("preset = \"ethernet-1g\"\n{costs}");
        let network: NetworkSpec = toml::from_str(&text).unwrap();
        let topology = timing.between(network.topology(6).unwrap());
        let cluster = Cluster {
            all_reduce: network.all_reduce_on(&topology),
            ..Cluster::new(Arc::new(topology), network.framing())
        };
        let auto = matches!(cluster.all_reduce, AllReduceKind::Auto(_));
        assert_ne!(auto, costs.contains("all_reduce"));
        let results = run_workers(&cluster, 6, |mut end| {
            let (rank, size) = (end.rank(), end.size());
            for epoch in 0..EPOCHS {
                end.begin_epoch(epoch);
                let (work, exchange) = uneven(rank, size);
                end.elapse(profile.time(work));
                let mut outbox = Outbox::new(exchange.kind, exchange.layer);
                outbox.expect = exchange.from.iter().map(|&peer| peer as usize).collect();
                let messages = exchange.to.iter().map(|&(peer, bytes)| Message {
                    peer: peer as usize,
                    payload: vec![0; bytes.0 as usize],
                });
                outbox.messages = messages.collect();
                end.exchange(outbox)?;
                let kind = TrafficKind::ParameterGradient;
                end.all_reduce(&mut vec![1.0; 1_000], Reduce::Sum, kind)?;
            }
            Ok(())
        });
        let results = results.unwrap();
        let mut planner = Alike {
            workers: 6,
            epoch: 0,
        };
        let none = BTreeMap::new();
        let played = play(
            &cluster,
            &timing,
            &mut planner,
            Course::whole(EPOCHS),
            &none,
            |_| (),
        );
        let played = played.unwrap();
        assert_eq!(played.times, results.times, "{costs}");
        assert_eq!(played.ledger, results.ledger, "{costs}");
    }
}

#[test]
fn workers_sum_what_arrives_as_the_choice_of_a_schedule_expects() {
    let text = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"1ms\" }";
    let network: NetworkSpec = toml::from_str(text).unwrap();
    let device = DeviceCost {
        copy_per_byte: Seconds::ZERO,
        sums: SumCost {
            start: Seconds(1e-4),
            per_value: Seconds(1e-6),
        },
    };
    let topology = network.topology(4).unwrap();
    let topology = Arc::new(topology.with_devices(vec![device; 4]));
    for kind in [AllReduceKind::Ring, AllReduceKind::Tree] {
        let tried = Tried::on(&topology, network.framing());
        let expected = tried
            .play(&kind, &Collective::AllReduce(1_000), Seconds(f64::INFINITY))
            .unwrap();
        let cluster = Cluster {
            all_reduce: kind.clone(),
            ..Cluster::new(Arc::clone(&topology), network.framing())
        };
        let results = run_workers(&cluster, 4, |mut end| {
            let kind = TrafficKind::ParameterGradient;
            end.all_reduce(&mut vec![1.0; 1_000], Reduce::Sum, kind)?;
            Ok(())
        });
        let times = results.unwrap().times;
        let end = times.iter().map(|times| times.clock).max().unwrap();
        assert!((end.0 - expected.0).abs() < 1e-12, "{kind:?}");
        // A sum is part of what the collective takes: no computing, and no waiting for others.
        if kind == AllReduceKind::Ring {
            // Three steps of four are summed, 250 values in each.
            assert!((expected.0 - (6.0 * 2e-3 + 3.0 * 3.5e-4)).abs() < 1e-12);
            assert!(
                times.iter().all(|times| times.waiting.0 < 1e-12),
                "{times:?}"
            );
        }
    }
}

#[test]
fn waiting_for_who_has_not_begun_to_send_is_no_communication() {
    let text = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"1ms\" }";
    let network: NetworkSpec = toml::from_str(text).unwrap();
    let topology = Arc::new(network.topology(2).unwrap());
    let cluster = Cluster::new(topology, network.framing());
    // Worker 1 computes 7 ms longer than worker 0, which waits for its 4,000 bytes: 7 ms until they
    // are sent, and 5 ms while they are on their way.
    let results = run_workers(&cluster, 2, |mut end| {
        let (rank, peer) = (end.rank(), 1 - end.rank());
        end.elapse(Seconds(1e-3 + 7e-3 * rank as f64));
        let mut outbox = Outbox::new(TrafficKind::Activation, 0);
        if rank == 1 {
            outbox.messages = vec![Message {
                peer,
                payload: vec![0; 4_000],
            }];
        } else {
            outbox.expect = vec![peer];
        }
        end.exchange(outbox)?;
        Ok(())
    });
    let results = results.unwrap();
    let times = &results.times[0];
    for (found, expected) in [
        (times.compute, 1e-3),
        (times.waiting, 7e-3),
        (times.exposed, 5e-3),
        (times.clock, 13e-3),
    ] {
        assert!((found.0 - expected).abs() < 1e-12, "{times:?}");
    }
    assert_eq!(results.times[1].waiting, Seconds::ZERO);
}
