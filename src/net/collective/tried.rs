//! Which algorithm of all-reduce is the fastest on a network: found by playing them.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::{Fabric, FlowId, Framing, Seconds, Topology, Transfer};
use super::taking::{Carrier, Taking};
use super::{AllReduceKind, Collective};
use crate::net::f32_bytes;

/// The algorithms, in the order in which they are played: few messages first, so that the ring,
/// which has by far the most of them, is given up as soon as it is slower. Those in two levels
/// where some workers are closer to each other than to others.
fn algorithms(topology: &Topology) -> Vec<AllReduceKind> {
    let mut all = vec![
        AllReduceKind::HalvingDoubling,
        AllReduceKind::Tree,
        AllReduceKind::ParameterServer,
    ];
    let groups = topology.groups().unwrap_or_default();
    if groups.iter().any(|&size| size > 1) {
        all.extend([true, false].map(|halving| topology.hierarchical(halving)));
    }
    all.push(AllReduceKind::Ring);
    all
}

/// A share of its time by which one algorithm must beat those before it: rounding decides nothing.
const EQUAL: f64 = 1e-9;

/// What `auto` knows: a network, and the fastest algorithm by the number of elements, as far as it
/// was asked for.
#[derive(Clone, Debug)]
pub struct Tried {
    topology: Arc<Topology>,
    framing: Framing,
    best: Arc<Mutex<BTreeMap<Collective, AllReduceKind>>>,
}

impl PartialEq for Tried {
    fn eq(&self, other: &Self) -> bool {
        self.framing == other.framing && self.topology == other.topology
    }
}

impl Tried {
    /// Nothing is known yet. Chance and failures have no part in the choice: all workers, and all
    /// seeds, must make the same.
    pub(crate) fn on(topology: &Topology, framing: Framing) -> Self {
        Self {
            topology: Arc::new(topology.without_chance()),
            framing,
            best: Arc::default(),
        }
    }

    /// The fastest for so many elements, where all workers begin at once and nothing else is on the
    /// network: the first of halving-doubling, tree, parameter server, hierarchical and ring among
    /// equals. Each is played once.
    pub(crate) fn best(&self, len: usize) -> AllReduceKind {
        self.fastest(Collective::AllReduce(len))
    }

    /// The same for an all-gather of so many elements of each worker, which has no levels.
    pub(crate) fn best_to_gather(&self, lens: &[usize]) -> AllReduceKind {
        self.fastest(Collective::AllGather(lens.into()))
    }

    fn fastest(&self, collective: Collective) -> AllReduceKind {
        let known = || self.best.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(best) = known().get(&collective) {
            return best.clone();
        }
        let (mut best, mut least) = (AllReduceKind::Ring, f64::INFINITY);
        for kind in algorithms(&self.topology) {
            let until = Seconds(least * (1.0 - EQUAL));
            if let Some(time) = self.play(&kind, &collective, until) {
                (best, least) = (kind, time.0);
            }
        }
        known().insert(collective, best.clone());
        best
    }

    /// When the last worker has taken its last step; nothing if that is not before `until`.
    pub(crate) fn play(
        &self,
        kind: &AllReduceKind,
        collective: &Collective,
        until: Seconds,
    ) -> Option<Seconds> {
        let size = self.topology.workers();
        let mut network = Network {
            fabric: Fabric::new(Arc::clone(&self.topology), self.framing),
            flying: HashMap::new(),
            arrived: HashMap::new(),
        };
        let steps = (0..size).map(|rank| collective.steps(kind, rank, size));
        let mut workers: Vec<Taking> = steps
            .map(|steps| Taking::new(steps, Seconds::ZERO))
            .collect();
        for (rank, worker) in workers.iter_mut().enumerate() {
            worker.go_on(&mut network.of(rank));
        }
        while let Some(deliveries) = network.fabric.advance() {
            if network.fabric.now() >= until {
                return None;
            }
            for delivery in deliveries {
                let Some((from, to)) = network.flying.remove(&delivery.flow) else {
                    continue;
                };
                let queue = network.arrived.entry((from, to)).or_default();
                queue.push_back(delivery.time);
                workers[to].go_on(&mut network.of(to));
                if workers[from].delivered(delivery.flow, delivery.time) {
                    workers[from].go_on(&mut network.of(from));
                }
            }
        }
        let end = workers.iter().map(Taking::clock).max()?;
        (end < until).then_some(end)
    }
}

/// Hash maps are only looked into.
struct Network {
    fabric: Fabric,
    flying: HashMap<FlowId, (usize, usize)>,
    arrived: HashMap<(usize, usize), VecDeque<Seconds>>,
}

impl Network {
    fn of(&mut self, rank: usize) -> End<'_> {
        End {
            rank,
            network: self,
        }
    }
}

/// One worker's end.
struct End<'a> {
    rank: usize,
    network: &'a mut Network,
}

impl Carrier for End<'_> {
    fn send(&mut self, to: usize, elements: usize, at: Seconds) -> FlowId {
        let flow = self.network.fabric.send(Transfer {
            from: self.rank,
            to,
            channel: Some(0),
            order: 0,
            payload: f32_bytes(elements),
            start: at,
        });
        self.network.flying.insert(flow, (self.rank, to));
        flow
    }

    fn take(&mut self, from: usize) -> Option<Seconds> {
        self.network
            .arrived
            .get_mut(&(from, self.rank))?
            .pop_front()
    }

    fn sum(&mut self, elements: usize, at: Seconds) -> Seconds {
        at + self.network.fabric.topology().sum_time(self.rank, elements)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{DeviceCost, NetworkSpec, SumCost};

    fn tried(text: &str, workers: usize) -> Tried {
        let spec: NetworkSpec = toml::from_str(text).unwrap();
        Tried::on(&spec.topology(workers).unwrap(), spec.framing())
    }

    const STAR: &str = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"1ms\" }";

    #[test]
    fn played_schedules_take_their_closed_forms() {
        // 1 MB/s and 1 ms: 16 workers, 64,000 bytes. Halving-doubling: 8 ms and 2 · 15/16 · 64 ms.
        let star = tried(STAR, 16);
        for (kind, expected) in [
            (AllReduceKind::Ring, 0.03 + 0.12),
            (AllReduceKind::HalvingDoubling, 0.008 + 0.12),
            (AllReduceKind::Tree, 8.0 * 0.065),
            (AllReduceKind::ParameterServer, 0.002 + 30.0 * 0.064),
        ] {
            let found = star
                .play(
                    &kind,
                    &Collective::AllReduce(16_000),
                    Seconds(f64::INFINITY),
                )
                .unwrap();
            assert!((found.0 - expected).abs() < 1e-9, "{kind:?}: {found}");
            assert_eq!(
                star.play(&kind, &Collective::AllReduce(16_000), found),
                None
            );
        }
        assert_eq!(star.best(16_000), AllReduceKind::HalvingDoubling);
        // 4 bytes: two latencies and 30 · 4 µs.
        assert_eq!(star.best(1), AllReduceKind::ParameterServer);
        // Six workers: the ring moves fewer bytes than two rounds of folding.
        assert_eq!(tried(STAR, 6).best(1_000_000), AllReduceKind::Ring);
        assert_eq!(tried(STAR, 1).best(10), AllReduceKind::HalvingDoubling);
    }

    #[test]
    fn small_gradients_of_many_workers_do_not_go_around_a_ring() {
        // 17,000 values over 10 Gb/s and 100 us, in milliseconds: measured around a ring and along
        // a tree before the fastest schedule was the default.
        for (workers, ring, tree) in [(64, 12.8, 1.95), (256, 51.0, 2.6)] {
            let star = tried(
                "link = { bandwidth = \"10Gbps\", latency = \"100us\" }",
                workers,
            );
            let gradients = Collective::AllReduce(17_000);
            let time = |kind: &AllReduceKind| {
                let found = star.play(kind, &gradients, Seconds(f64::INFINITY));
                1e3 * found.unwrap().0
            };
            let [around, along] =
                [AllReduceKind::Ring, AllReduceKind::Tree].map(|kind| time(&kind));
            assert!((around / ring - 1.0).abs() < 0.01, "{workers}: {around}");
            assert!((along / tree - 1.0).abs() < 0.04, "{workers}: {along}");
            let chosen = time(&star.best(17_000));
            assert!(chosen <= along, "{workers}: {chosen}");
        }
    }

    #[test]
    fn links_that_many_share_are_known() {
        // Four racks of four with narrow uplinks, which halving and doubling crosses eight at a
        // time and the ring one at a time.
        let text = format!(
            "{STAR}\ntopology = \"racks\"\nracks = 4\nuplink = {{ bandwidth = \"800kbps\", latency = 0 }}"
        );
        let racks = tried(&text, 16);
        let time = |kind| {
            racks
                .play(
                    &kind,
                    &Collective::AllReduce(16_000),
                    Seconds(f64::INFINITY),
                )
                .unwrap()
                .0
        };
        assert!(time(AllReduceKind::Ring) < 0.7 * time(AllReduceKind::HalvingDoubling));
        // Racks sum inside first: 3/4 of all crosses an uplink twice, in place of 15/16.
        let levels = racks.topology.hierarchical(true);
        assert!(time(levels.clone()) < 0.9 * time(AllReduceKind::Ring));
        assert_eq!(racks.best(16_000), levels);
    }

    #[test]
    fn where_messages_cost_their_ends_a_server_of_all_is_slow() {
        // 16 workers sum one float, o = L = 1 ms. Over a server 1 + 1 + 15 ms until it has all, and
        // 15 + 1 + 1 ms until all have the sum. Along a tree eight steps of 3 ms.
        assert_eq!(tried(STAR, 16).best(1), AllReduceKind::ParameterServer);
        let costly = tried(&format!("{STAR}\noverhead = \"1ms\""), 16);
        let time = |kind| {
            costly
                .play(&kind, &Collective::AllReduce(1), Seconds(f64::INFINITY))
                .unwrap()
                .0
        };
        assert!((time(AllReduceKind::ParameterServer) - 0.034).abs() < 1e-4);
        assert!((time(AllReduceKind::Tree) - 0.024).abs() < 1e-4);
        assert_ne!(costly.best(1), AllReduceKind::ParameterServer);
    }

    #[test]
    fn an_all_gather_takes_the_least_time_of_its_own_algorithms() {
        // 100 values of each of 8 workers. One of an all-reduce of 800 gives another answer.
        let star = tried(STAR, 8);
        let gather = Collective::AllGather(vec![100; 8].into());
        let best = star.best_to_gather(&[100; 8]);
        let time =
            |kind: &AllReduceKind| star.play(kind, &gather, Seconds(f64::INFINITY)).unwrap().0;
        for kind in algorithms(&star.topology) {
            assert!(time(&best) <= time(&kind) * (1.0 + 1e-9), "{kind:?}");
        }
        assert_eq!(best, AllReduceKind::HalvingDoubling);
    }

    #[test]
    fn sums_take_their_time_where_they_are_made() {
        // 1 MB/s and 1 ms, 16 workers, 16,000 values, 1 us each to sum. Around a ring and by
        // halving each worker sums 15/16 of them; up a tree worker 0 sums all of them four times,
        // and a server fifteen times, while what has not come yet is on its way.
        let spec: NetworkSpec = toml::from_str(STAR).unwrap();
        let device = DeviceCost {
            copy_per_byte: Seconds::ZERO,
            sums: SumCost {
                start: Seconds::ZERO,
                per_value: Seconds(1e-6),
            },
        };
        let star = spec.topology(16).unwrap();
        let star = Tried::on(&star.with_devices(vec![device; 16]), spec.framing());
        for (kind, expected) in [
            (AllReduceKind::Ring, 0.15 + 0.015),
            (AllReduceKind::HalvingDoubling, 0.128 + 0.015),
            (AllReduceKind::Tree, 8.0 * 0.065 + 4.0 * 0.016),
            (
                AllReduceKind::ParameterServer,
                0.002 + 30.0 * 0.064 + 15.0 * 0.016,
            ),
        ] {
            let found = star
                .play(
                    &kind,
                    &Collective::AllReduce(16_000),
                    Seconds(f64::INFINITY),
                )
                .unwrap();
            assert!((found.0 - expected).abs() < 1e-9, "{kind:?}: {found}");
        }
    }

    #[test]
    fn two_levels_take_their_time_and_are_chosen_between_machines() {
        // Four machines of four, 10 MB/s and 1 ms inside, 1 MB/s for a machine and 2·2 ms outside.
        // 64,000 bytes: inside 2 · (1 + 3/4 · 6.4) ms. Between, chunks of 16,000 bytes, of which
        // four share a NIC: around a ring six times 5 ms and 16 ms, by halving four times 5 ms and
        // as long.
        let text = "framing = \"none\"\nlink = { bandwidth = \"80Mbps\", latency = \"1ms\" }\n\
                    machine = { gpus = 4, nic = { bandwidth = \"8Mbps\", latency = \"2ms\" } }";
        let machines = tried(text, 16);
        let levels = |halving| machines.topology.hierarchical(halving);
        let time = |kind| {
            machines
                .play(
                    &kind,
                    &Collective::AllReduce(16_000),
                    Seconds(f64::INFINITY),
                )
                .unwrap()
                .0
        };
        let inside = 2.0 * (0.001 + 0.75 * 0.0064);
        for (kind, expected) in [
            (levels(false), inside + 6.0 * (0.005 + 0.016)),
            (levels(true), inside + 4.0 * 0.005 + 6.0 * 0.016),
        ] {
            let found = time(kind.clone());
            assert!(
                (found - expected).abs() < 1e-9,
                "{kind:?}: {found} for {expected}"
            );
        }
        // 640 bytes: 23.1 ms, a server 25.4, a tree 26.8.
        assert_eq!(machines.best(160), levels(true));
        // A ring of all keeps one NIC of a machine busy: 30 times 4 ms. Two levels keep all four.
        let four = text.replace("gpus = 4", "gpus = 4, nics = 4");
        let (four, ring) = (tried(&four, 16), AllReduceKind::Ring);
        let time = |kind| {
            four.play(
                &kind,
                &Collective::AllReduce(16_000),
                Seconds(f64::INFINITY),
            )
            .unwrap()
            .0
        };
        let found = time(levels(false));
        assert!((found - (inside + 6.0 * 0.009)).abs() < 1e-9, "{found}");
        assert!(time(ring) > 0.12);
    }

    #[test]
    fn seeds_and_losses_change_no_choice() {
        let lossy = format!("{STAR}\nloss = 0.2\njitter = {{ kind = \"exponential\", mean = 1 }}");
        assert_eq!(tried(&lossy, 16), tried(STAR, 16));
    }
}
