//! What is multiplied is what playing all of it comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Course, Decision, Exchange, Planner, Played, Stretch, Timeline, Track, play};
use crate::model::Work;
use crate::net::{Bytes, ExchangeKind, NetworkSpec, Seconds, TrafficKind};
use crate::sim::{Cluster, ComputeTiming, DeviceProfile};

const WORKERS: usize = 5;
const EPOCHS: usize = 24;
const STEPS: usize = 30;

/// Steps that fetch ahead of time, within an epoch and from one to the next. Every tenth epoch
/// begins with something else.
struct Stepping {
    epoch: usize,
    last: Arc<Timeline>,
    /// What is computed grows with the step's number, so that no two are alike.
    uneven: bool,
}

/// Unequal messages among all.
fn exchange(rank: usize, kind: TrafficKind, rows: u64) -> Exchange {
    let peers = (0..WORKERS as u32).filter(|&peer| peer as usize != rank);
    let bytes = |peer: u32| Bytes(rows * (100 + 7 * u64::from(peer) + 3 * rank as u64));
    Exchange {
        kind,
        layer: 0,
        to: peers.clone().map(|peer| (peer, bytes(peer))).collect(),
        from: peers.collect(),
    }
}

fn all(write: impl Fn(usize, &mut Track)) -> Vec<Track> {
    let track = |rank| {
        let mut track = Track::default();
        write(rank, &mut track);
        track
    };
    (0..WORKERS).map(track).collect()
}

fn work(bytes: f64) -> Work {
    Work {
        operations: 0.0,
        bytes,
        launches: 1.0,
    }
}

impl Planner for Stepping {
    fn next(&mut self, _: Option<&Decision>) -> Arc<Timeline> {
        let epoch = self.epoch;
        self.epoch += 1;
        let begin = all(|rank, track| {
            if epoch == 0 {
                track.start_exchange(exchange(rank, TrafficKind::Sample, 20));
            }
            if epoch.is_multiple_of(10) {
                track.exchange(exchange(rank, TrafficKind::Repartition, 900));
                track.share();
            }
            track.finish_exchange(TrafficKind::Sample, 0);
            track.start_exchange(exchange(rank, TrafficKind::Feature, 50));
        });
        let step = |more: f64| {
            all(|rank, track| {
                track.start_exchange(exchange(rank, TrafficKind::Feature, 50));
                track.finish_exchange(TrafficKind::Feature, 0);
                track.compute(work(1e5 * (1 + rank) as f64 + more));
                track.start_all_reduce(2_003, TrafficKind::ParameterGradient);
                track.compute(work(2e5));
                track.finish_collective();
            })
        };
        let end = all(|rank, track| {
            track.finish_exchange(TrafficKind::Feature, 0);
            if epoch + 1 < EPOCHS {
                track.count_under(1);
                track.start_exchange(exchange(rank, TrafficKind::Sample, 20));
                track.count_under(0);
            }
        });
        let mut stretches = vec![Stretch::once(begin)];
        if self.uneven {
            let number = |step: usize| (epoch * STEPS + step) as f64;
            let steps = (0..STEPS).map(|at| Stretch::once(step(1e3 * number(at))));
            stretches.extend(steps);
        } else {
            stretches.push(Stretch {
                times: STEPS,
                ..Stretch::once(step(0.0))
            });
        }
        stretches.push(Stretch::once(end));
        self.last = Timeline::after(&self.last, epoch, stretches);
        Arc::clone(&self.last)
    }
}

fn timing(workers: usize) -> ComputeTiming {
    ComputeTiming::Modelled(vec![DeviceProfile::named("t4").unwrap(); workers].into())
}

fn cluster(network: &str, exchange: ExchangeKind) -> Cluster {
    let network: NetworkSpec = toml::from_str(network).unwrap();
    let topology = timing(WORKERS).between(network.topology(WORKERS).unwrap());
    Cluster {
        all_reduce: network.all_reduce_on(&topology),
        exchange,
        ..Cluster::new(Arc::new(topology), network.framing())
    }
}

fn played(cluster: &Cluster, uneven: bool, multiplied: bool) -> Played {
    let mut planner = Stepping {
        epoch: 0,
        last: Arc::default(),
        uneven,
    };
    let course = Course {
        multiplied,
        ..Course::whole(EPOCHS)
    };
    let none = BTreeMap::new();
    play(
        cluster,
        &timing(WORKERS),
        &mut planner,
        course,
        &none,
        |_| (),
    )
    .unwrap()
}

fn close(found: Seconds, expected: Seconds, what: &str) {
    let gap = (found.0 - expected.0).abs();
    assert!(
        gap <= 1e-9 * expected.0.max(1e-3),
        "{what}: {found:?}, {expected:?}"
    );
}

fn are_close(found: &Played, expected: &Played, what: &str) {
    for (found, expected) in found.times.iter().zip(&expected.times) {
        close(found.clock, expected.clock, what);
        close(found.compute, expected.compute, what);
        close(found.communication, expected.communication, what);
        close(found.exposed, expected.exposed, what);
        close(found.waiting, expected.waiting, what);
    }
    assert_eq!(found.epochs.len(), EPOCHS);
    for (found, expected) in found.epochs.iter().zip(&expected.epochs) {
        close(*found, *expected, what);
    }
    assert_eq!(found.ledger, expected.ledger, "{what}");
}

#[test]
fn steps_and_epochs_that_repeat_themselves_take_the_time_and_messages_of_all_of_them() {
    let network = "preset = \"ethernet-1g\"";
    for exchange in [ExchangeKind::Direct, ExchangeKind::Pairwise] {
        let cluster = cluster(network, exchange);
        let (whole, part) = (
            played(&cluster, false, false),
            played(&cluster, false, true),
        );
        assert!(part.steps * 3 < whole.steps, "{exchange:?}: {}", part.steps);
        are_close(&part, &whole, "what is multiplied");
    }
}

#[test]
fn what_never_repeats_itself_or_is_left_to_chance_is_played_as_a_whole() {
    for (network, uneven) in [
        ("preset = \"ethernet-1g\"", true),
        ("preset = \"ethernet-1g\"\nloss = 0.01", false),
    ] {
        let cluster = cluster(network, ExchangeKind::Direct);
        let (whole, part) = (
            played(&cluster, uneven, false),
            played(&cluster, uneven, true),
        );
        assert_eq!(part.steps, whole.steps);
        assert_eq!(part.times, whole.times);
        assert_eq!(part.epochs, whole.epochs);
        assert_eq!(part.ledger, whole.ledger);
    }
}
