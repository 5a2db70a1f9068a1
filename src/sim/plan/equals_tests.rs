//! One of equal workers takes the time of all of them together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Course, Decision, Exchange, Planner, Played, Timeline, play, play_equals};
use crate::model::Work;
use crate::net::{
    AllReduceKind, Bytes, Count, ExchangeKind, Framing, Hierarchy, NetworkSpec, TrafficKind, Tried,
};
use crate::sim::{Cluster, ComputeTiming, DeviceProfile};

/// Everybody computes, sends to everybody, and sums so many values while features for the next
/// epoch are under way. Messages are longer by one row to those who are near.
struct Turned {
    workers: usize,
    values: usize,
    /// Who computes longer, if anybody.
    slow: Option<usize>,
    epoch: usize,
}

impl Turned {
    fn exchange(&self, rank: usize, kind: TrafficKind) -> Exchange {
        let peers = (0..self.workers as u32).filter(|&peer| peer as usize != rank);
        let bytes = |peer: u32| {
            let ahead = (peer as usize + self.workers - rank) % self.workers;
            let near = ahead.min(self.workers - ahead);
            Bytes(40_000 + 256 * u64::from(near < 3))
        };
        Exchange {
            kind,
            layer: 0,
            to: peers.clone().map(|peer| (peer, bytes(peer))).collect(),
            from: peers.collect(),
        }
    }
}

impl Planner for Turned {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let epoch = self.epoch;
        let timeline = Timeline::of(epoch, self.workers, |rank, track| {
            let work = |bytes: f64| Work {
                operations: 0.0,
                bytes,
                launches: 1.0,
            };
            track.compute(work(1e6 * f64::from(1 + u8::from(self.slow == Some(rank)))));
            track.exchange(self.exchange(rank, TrafficKind::Activation));
            track.start_exchange(self.exchange(rank, TrafficKind::Feature));
            track.start_all_reduce(self.values, TrafficKind::ParameterGradient);
            track.compute(work(3e5));
            track.finish_collective();
            track.all_gather(
                &vec![self.values / 10; self.workers],
                TrafficKind::Parameter,
            );
            track.finish_exchange(TrafficKind::Feature, 0);
            track.share();
            track.count_under(1);
            track.exchange(self.exchange(rank, TrafficKind::ActivationGradient));
        });
        self.epoch += 1;
        Arc::new(timeline)
    }
}

const EPOCHS: usize = 3;

fn timing(workers: usize) -> ComputeTiming {
    ComputeTiming::Modelled(vec![DeviceProfile::named("t4").unwrap(); workers].into())
}

fn cluster(network: &str, workers: usize) -> Cluster {
    let network: NetworkSpec = toml::from_str(network).unwrap();
    let topology = timing(workers).between(network.topology(workers).unwrap());
    Cluster::new(Arc::new(topology), network.framing())
}

fn both(cluster: &Cluster, values: usize, slow: Option<usize>) -> (Played, Option<Played>) {
    let planner = || Turned {
        workers: cluster.topology.workers(),
        values,
        slow,
        epoch: 0,
    };
    let timing = timing(cluster.topology.workers());
    let none = BTreeMap::new();
    let all = play(
        cluster,
        &timing,
        &mut planner(),
        Course::whole(EPOCHS),
        &none,
        |_| (),
    )
    .unwrap();
    let one = play_equals(
        cluster,
        &timing,
        &mut planner(),
        Course::whole(EPOCHS),
        |_| (),
    )
    .unwrap();
    (all, one)
}

/// Messages and bytes of each epoch.
fn totals(played: &Played, framing: &Framing) -> Vec<(usize, Count)> {
    let epochs = played.ledger.iter();
    epochs
        .map(|(at, traffic)| (at, traffic.total(framing)))
        .collect()
}

#[test]
fn one_of_equal_workers_takes_the_time_of_all_and_stands_for_their_messages() {
    for workers in [2_usize, 3, 4, 7, 16, 64] {
        for exchange in [ExchangeKind::Direct, ExchangeKind::Pairwise] {
            for all_reduce in [AllReduceKind::Ring, AllReduceKind::HalvingDoubling] {
                let halving = all_reduce == AllReduceKind::HalvingDoubling;
                if halving && !workers.is_power_of_two() {
                    continue;
                }
                let cluster = Cluster {
                    exchange,
                    all_reduce: all_reduce.clone(),
                    ..cluster("preset = \"ethernet-10g\"", workers)
                };
                // As many values as all workers share evenly.
                let (all, one) = both(&cluster, 70 * workers, None);
                let one = one.expect("they are equal");
                let name = format!("{workers} {exchange:?} {all_reduce:?}");
                assert_alike(&all, &one, &cluster.framing, &name);
            }
        }
    }
}

fn assert_alike(all: &Played, one: &Played, framing: &Framing, name: &str) {
    for (rank, (all, one)) in all.times.iter().zip(&one.times).enumerate() {
        for (all, one) in [
            (all.clock, one.clock),
            (all.compute, one.compute),
            (all.communication, one.communication),
            (all.exposed, one.exposed),
            (all.waiting, one.waiting),
        ] {
            let near = (all.0 - one.0).abs() <= 1e-12 * all.0.max(1e-3);
            assert!(near, "{name}, worker {rank}: {all} {one}");
        }
    }
    assert_eq!(totals(all, framing), totals(one, framing), "{name}");
    for kind in TrafficKind::ALL {
        let of = |played: &Played| played.ledger.traffic().payload_of(kind);
        assert_eq!(of(all), of(one), "{name}: {kind}");
    }
}

#[test]
fn one_of_equal_machines_or_racks_takes_the_time_of_all_and_stands_for_their_messages() {
    let machines = "preset = \"ethernet-10g\"\nmachine = { gpus = 4, nics = NICS, nic = { bandwidth = \"3Gbps\", latency = \"5us\" } }";
    let racks =
        "topology = \"racks\"\nracks = 2\nuplink = { bandwidth = \"7Gbps\", latency = \"9us\" }";
    let own = machines.replace("NICS", "4");
    let shared = machines.replace("NICS", "1");
    let pairs = machines.replace("NICS", "2") + "\noverhead = \"3us\"\ngap = \"8us\"";
    // A way in that is narrower than the way out.
    let narrow = (0..5).map(|rank| format!("{{ rank = {rank}, down = \"4Gbps\" }},"));
    let narrow = narrow.collect::<String>();
    let narrow = format!("preset = \"ethernet-10g\"\nworker = [{narrow}]");
    // The second worker of each machine is slow: those of a block differ, and blocks do not.
    let slow = "worker = [{ rank = 1, compute = 0.5 }, { rank = 5, compute = 0.5 }]";
    for (network, workers, period) in [
        (own.clone(), 16, 4),
        (shared.clone(), 12, 4),
        (pairs, 8, 4),
        (format!("preset = \"ethernet-10g\"\n{racks}"), 8, 4),
        (format!("{own}\n{racks}"), 16, 8),
        (narrow, 5, 1),
        (format!("{own}\n{slow}"), 8, 4),
    ] {
        let star = cluster(&network, workers);
        let (found, groups) = (star.topology.period(), star.topology.groups());
        assert_eq!(found.map(|found| found.workers), Some(period), "{network}");
        let groups = groups.unwrap_or_else(|| vec![1; workers]);
        // Of what halves, the number has to be a power of two.
        for (all_reduce, halving) in [
            (AllReduceKind::Ring, 1),
            (AllReduceKind::HalvingDoubling, workers),
            (
                AllReduceKind::Hierarchical(Hierarchy::new(&groups, false)),
                1,
            ),
            (
                AllReduceKind::Hierarchical(Hierarchy::new(&groups, true)),
                groups.len(),
            ),
        ] {
            for exchange in [
                ExchangeKind::Direct,
                ExchangeKind::Pairwise,
                ExchangeKind::Hierarchical,
            ] {
                let all_reduce = all_reduce.clone();
                let name = format!("{network}: {exchange:?} {all_reduce:?}");
                let cluster = Cluster {
                    all_reduce,
                    exchange,
                    ..star.clone()
                };
                let (all, one) = both(&cluster, 70 * workers, None);
                assert_eq!(one.is_some(), halving.is_power_of_two(), "{name}");
                if let Some(one) = one {
                    assert_alike(&all, &one, &cluster.framing, &name);
                }
            }
        }
        // A slow worker of the second block.
        assert!(both(&star, 80, Some(period)).1.is_none(), "{network}");
    }
    // A machine that is not full, racks that are not alike, a worker that has a way of its own.
    let uneven = "preset = \"ethernet-10g\"\ntopology = \"racks\"\nracks = 3\nuplink = { bandwidth = \"7Gbps\", latency = 0 }";
    let odd = format!("{own}\nworker = [{{ rank = 5, down = \"1Gbps\" }}]");
    for (network, workers) in [(shared.as_str(), 10), (uneven, 8), (odd.as_str(), 8)] {
        assert!(
            cluster(network, workers).topology.period().is_none(),
            "{network}"
        );
    }
}

#[test]
fn values_that_do_not_divide_are_rounded_up() {
    let cluster = Cluster {
        all_reduce: AllReduceKind::Ring,
        ..cluster("preset = \"ethernet-1g\"", 7)
    };
    let (all, one) = both(&cluster, 1_000_003, None);
    let one = one.expect("they are equal");
    let end = |played: &Played| played.times[0].clock.0;
    assert!((end(&one) / end(&all) - 1.0).abs() < 1e-5);
    // Bytes are those of the whole.
    let framing = cluster.framing;
    assert_eq!(totals(&all, &framing), totals(&one, &framing));
}

#[test]
fn workers_that_differ_are_not_taken_for_one() {
    let same = "preset = \"ethernet-10g\"";
    let costly = "preset = \"ethernet-10g\"\noverhead = \"10us\"\ngap = \"30us\"";
    for network in [same, "preset = \"broadband\"", costly] {
        assert!(
            both(&cluster(network, 8), 80, None).1.is_some(),
            "{network}"
        );
    }
    assert!(both(&cluster(same, 8), 80, Some(5)).1.is_none());
    for network in [
        "preset = \"ethernet-10g\"\nworker = [{ rank = 2, down = \"100Mbps\" }]",
        "preset = \"ethernet-10g\"\nworker = [{ rank = 2, compute = 0.5 }]",
        "preset = \"ethernet-10g\"\nduplex = \"half\"",
        "preset = \"ethernet-10g\"\nloss = 0.01",
    ] {
        assert!(
            both(&cluster(network, 8), 80, None).1.is_none(),
            "{network}"
        );
    }
    let tree = Cluster {
        all_reduce: AllReduceKind::Tree,
        ..cluster(same, 8)
    };
    assert!(both(&tree, 80, None).1.is_none());
    let auto = cluster(same, 8);
    let auto = Cluster {
        all_reduce: AllReduceKind::Auto(Tried::on(&auto.topology, auto.framing)),
        ..auto
    };
    // Eight workers halve and double, whatever they sum.
    assert!(both(&auto, 800_000, None).1.is_some());
}
