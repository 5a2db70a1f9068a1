//! Exchanges in two stages: inside machines first, then between them.
//!
//! ```text
//!   machine 0: workers 0 and 1       inside   0 sends 1 all that it has for 1 and for 3
//!   machine 1: workers 2 and 3       between  1 sends 3 all that 0 and 1 have for 3
//! ```
//!
//! The k-th worker of a machine passes on what all of the machine have for the k-th workers of
//! others: one message to each machine, in place of one from each worker to each worker. It does so
//! when all of its machine have begun the exchange and what they have for it is there, whatever it
//! does itself then. The ledger has the messages of the exchange; the links carry the bundles.

use std::collections::{BTreeMap, HashMap};

use super::Kernel;
use super::parcel::{Arrived, Belongs, Parcel, from_next};
use super::route::{Route, Tag, lane};
use crate::net::{Bytes, FlowId, Lane, Seconds, Transfer};
use crate::sim::trace::Flight;

/// The exchanges that are under way.
pub(super) struct Relays {
    /// The first worker of each machine, and at the end their number.
    starts: Vec<usize>,
    /// How many exchanges of a tag a worker has begun.
    begun: HashMap<(usize, Tag), u64>,
    stages: BTreeMap<Place, Stage>,
    bundles: HashMap<FlowId, Bundle>,
}

/// An exchange in a machine: its tag, and its number among those.
type Place = (usize, Tag, u64);

/// What a machine's workers pass on in an exchange.
struct Stage {
    begun: usize,
    passed: usize,
    /// By worker of the machine.
    relays: Vec<Relay>,
}

/// What one worker passes on.
#[derive(Default)]
struct Relay {
    /// Bundles on their way to it.
    missing: usize,
    /// When all of its machine had begun, and the last bundle came.
    clock: Seconds,
    /// The exchange's place among all that the worker has begun.
    order: u64,
    held: Vec<Held>,
    passed: bool,
}

/// A message of an exchange.
struct Held {
    route: Route,
    epoch: usize,
    bytes: Bytes,
    payload: Vec<u8>,
}

/// Messages that travel as one.
struct Bundle {
    from: usize,
    to: usize,
    start: Seconds,
    /// The relay that it is for, inside a machine.
    relay: Option<(Place, usize)>,
    held: Vec<Held>,
}

impl Relays {
    /// Those of machines of these sizes.
    pub(super) fn new(sizes: &[usize]) -> Self {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        Self {
            starts: std::iter::once(0).chain(ends).collect(),
            begun: HashMap::new(),
            stages: BTreeMap::new(),
            bundles: HashMap::new(),
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.stages.is_empty() && self.bundles.is_empty()
    }

    fn machine(&self, rank: usize) -> usize {
        self.starts.partition_point(|&start| start <= rank) - 1
    }

    /// The place of a worker in its machine.
    fn within(&self, rank: usize) -> usize {
        rank - self.starts[self.machine(rank)]
    }

    /// Whether a worker still has to pass on an earlier exchange of this tag. What it has for the
    /// later one may be there first, but its receivers tell the two apart by their order alone.
    fn has_earlier(&self, (machine, tag, number): Place, by: usize) -> bool {
        let earlier = (machine, tag, 0)..(machine, tag, number);
        let mut stages = self.stages.range(earlier);
        stages.any(|(_, stage)| !stage.relays[by].passed)
    }

    /// Workers of a machine.
    fn size(&self, machine: usize) -> usize {
        self.starts[machine + 1] - self.starts[machine]
    }
}

impl Kernel {
    /// Begins an exchange in two stages.
    pub(super) fn relay(&mut self, rank: usize, tag: Tag, parcels: Vec<Parcel>) {
        let Belongs { epoch, order } = self.begin(rank);
        let clock = self.actors[rank].clock;
        let (machine, own) = (self.relays.machine(rank), self.relays.within(rank));
        let size = self.relays.size(machine);
        let number = self.relays.begun.entry((rank, tag)).or_default();
        let place = (machine, tag, *number);
        *number += 1;
        let mut inside: BTreeMap<usize, Vec<Held>> = BTreeMap::new();
        for parcel in from_next(rank, parcels) {
            let route = (rank, parcel.peer, tag);
            self.ledger.record(epoch, lane(route), parcel.bytes);
            let by = self.relays.within(parcel.peer) % size;
            inside.entry(by).or_default().push(Held {
                route,
                epoch,
                bytes: parcel.bytes,
                payload: parcel.payload,
            });
        }
        let stage = self.relays.stages.entry(place).or_insert_with(|| Stage {
            begun: 0,
            passed: 0,
            relays: (0..size).map(|_| Relay::default()).collect(),
        });
        stage.begun += 1;
        // Others of the machine may have been faster, and theirs is here.
        let mine = inside.remove(&own).unwrap_or_default();
        stage.relays[own].held.extend(mine);
        stage.relays[own].order = order;
        for (at, relay) in stage.relays.iter_mut().enumerate() {
            relay.clock = relay.clock.max(clock);
            relay.missing += usize::from(inside.contains_key(&at));
        }
        for (by, held) in inside {
            let to = self.relays.starts[machine] + by;
            self.send_bundle((rank, to), Some((place, by)), (clock, order), held);
        }
        (0..size).for_each(|by| self.pass_on(place, by));
    }

    fn send_bundle(
        &mut self,
        (from, to): (usize, usize),
        relay: Option<(Place, usize)>,
        (start, order): (Seconds, u64),
        held: Vec<Held>,
    ) {
        let Some((kind, layer)) = held.first().map(|held| held.route.2.what()) else {
            return;
        };
        // Inside and between, bundles keep their order apart from each other.
        let stage = if relay.is_some() { 3 } else { 4 };
        let flow = self.fabric.send(Transfer {
            from,
            to,
            channel: Some(kind as u64 | stage << 8 | u64::from(layer) << 16),
            order,
            payload: Bytes(held.iter().map(|held| held.bytes.0).sum()),
            start,
        });
        let bundle = Bundle {
            from,
            to,
            start,
            relay,
            held,
        };
        self.relays.bundles.insert(flow, bundle);
    }

    /// A worker sends on what it has for others, once all of it is there.
    fn pass_on(&mut self, place: Place, by: usize) {
        let (machine, tag, number) = place;
        if self.relays.has_earlier(place, by) {
            return;
        }
        let Some(stage) = self.relays.stages.get_mut(&place) else {
            return;
        };
        let (all, relay) = (stage.begun == stage.relays.len(), &mut stage.relays[by]);
        if !all || relay.missing > 0 || relay.passed {
            return;
        }
        relay.passed = true;
        stage.passed += 1;
        let (moment, held) = ((relay.clock, relay.order), std::mem::take(&mut relay.held));
        if stage.passed == stage.relays.len() {
            self.relays.stages.remove(&place);
        }
        let from = self.relays.starts[machine] + by;
        let mut between: BTreeMap<usize, Vec<Held>> = BTreeMap::new();
        for held in held {
            between.entry(held.route.1).or_default().push(held);
        }
        // It begins with the machine after its own, so that not all send to one.
        let before = between.split_off(&from);
        for (to, held) in before.into_iter().chain(between) {
            self.send_bundle((from, to), None, moment, held);
        }
        self.pass_on((machine, tag, number + 1), by);
    }

    /// A bundle arrives, if that is what this flow is.
    pub(super) fn unbundle(&mut self, flow: FlowId, at: Seconds) -> bool {
        let Some(bundle) = self.relays.bundles.remove(&flow) else {
            return false;
        };
        let Bundle {
            from,
            to,
            start,
            relay,
            held,
        } = bundle;
        for end in [from, self.at_home(from, to).1] {
            self.actors[end].flights.add(start, at);
        }
        if let Some(first) = held.first() {
            let (kind, layer) = first.route.2.what();
            self.timeline.add_flight(Flight {
                lane: Lane::new(layer, from, to, kind),
                epoch: first.epoch,
                payload: Bytes(held.iter().map(|held| held.bytes.0).sum()),
                start,
                end: at,
            });
        }
        let (here, on): (Vec<Held>, Vec<Held>) =
            held.into_iter().partition(|held| held.route.1 == to);
        if let Some((place, by)) = relay
            && let Some(stage) = self.relays.stages.get_mut(&place)
        {
            let relay = &mut stage.relays[by];
            relay.missing -= 1;
            relay.clock = relay.clock.max(at);
            relay.held.extend(on);
            self.pass_on(place, by);
        }
        for Held { route, payload, .. } in here {
            let ((from, to), tag) = (self.at_home(route.0, route.1), route.2);
            let queue = self.arrived.entry((from, to, tag)).or_default();
            let first = queue.is_empty();
            queue.push_back(Arrived { at, payload });
            if first {
                self.received(from, to, tag);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::net::{
        ExchangeKind, Fabric, Framing, LinkId, Message, NetworkSpec, Outbox, Topology, TrafficKind,
    };
    use crate::sim::plan;
    use crate::sim::trace::Trace;

    const KIND: TrafficKind = TrafficKind::Activation;
    const HOW: ExchangeKind = ExchangeKind::Hierarchical;

    fn topology(workers: usize, machine: &str) -> Arc<Topology> {
        let text = format!(
            "framing = \"none\"\nlink = {{ bandwidth = \"8Mbps\", latency = \"1ms\" }}\n{machine}"
        );
        let spec: NetworkSpec = toml::from_str(&text).unwrap();
        Arc::new(spec.topology(workers).unwrap())
    }

    /// All workers exchange so many bytes once, `[from][to]`; none where there are none. Each
    /// begins so much later than the one before it.
    fn exchanged(topology: &Arc<Topology>, bytes: &[Vec<u64>], late: f64) -> Kernel {
        let workers = bytes.len();
        let fabric = Fabric::new(Arc::clone(topology), Framing::none());
        let mut kernel = Kernel::new(fabric, workers, workers, Trace::new(0));
        let mut begun = vec![false; workers];
        while let Some(rank) = kernel.turn() {
            if begun[rank] {
                kernel.finish(rank);
                continue;
            }
            begun[rank] = true;
            kernel.compute(rank, Seconds(late * rank as f64));
            let others = || (0..workers).filter(|&other| other != rank);
            let to = others().filter(|&to| bytes[rank][to] > 0);
            let from = others().filter(|&from| bytes[from][rank] > 0);
            let exchange = plan::Exchange {
                kind: KIND,
                layer: 0,
                to: to.map(|to| (to as u32, Bytes(bytes[rank][to]))).collect(),
                from: from.map(|from| from as u32).collect(),
            };
            let expected = kernel.start_exchange(rank, HOW, &exchange).unwrap();
            kernel.finish_exchange(rank, HOW, expected);
            if !kernel.is_runnable(rank) {
                kernel.pass_turn();
            }
        }
        assert_eq!(kernel.failure(), None);
        assert!(kernel.relays.is_idle());
        kernel
    }

    fn carried(kernel: &Kernel, name: &str) -> u64 {
        let links = kernel.fabric.topology().links();
        let link = links.iter().position(|link| link.name == name);
        kernel.fabric.carried(LinkId(link.expect("it is there"))).0
    }

    proptest! {
        #[test]
        fn each_link_carries_what_its_machine_and_relay_have_for_others(
            gpus in 1..4_usize, workers in 2..9_usize,
            sizes in prop::collection::vec(prop::collection::vec(0..2_000_u64, 8), 8),
        ) {
            let bytes: Vec<Vec<u64>> = (0..workers).map(|from| sizes[from][..workers].to_vec()).collect();
            let machine = format!("machine = {{ gpus = {gpus}, nic = {{ bandwidth = \"4Mbps\", latency = \"2ms\" }} }}");
            let kernel = exchanged(&topology(workers, &machine), &bytes, 0.05);
            let at = |rank: usize| (rank / gpus, rank % gpus);
            let size = |machine: usize| gpus.min(workers - machine * gpus);
            let sum = |of: &dyn Fn(usize, usize) -> bool| -> u64 {
                let pairs = (0..workers).flat_map(|from| (0..workers).map(move |to| (from, to)));
                pairs.filter(|&(from, to)| from != to && of(from, to)).map(|(from, to)| bytes[from][to]).sum()
            };
            for machine in 0..workers.div_ceil(gpus) {
                let out = sum(&|from, to| at(from).0 == machine && at(to).0 != machine);
                let back = sum(&|from, to| at(from).0 != machine && at(to).0 == machine);
                prop_assert_eq!(carried(&kernel, &format!("nic {machine}.0 out")), out);
                prop_assert_eq!(carried(&kernel, &format!("nic {machine}.0 in")), back);
            }
            for rank in 0..workers {
                let (machine, place) = at(rank);
                let relay = |to: usize| at(to).1 % size(machine);
                // To relays inside, and as a relay to other machines.
                let inside = sum(&|from, to| from == rank && relay(to) != place);
                let passed = sum(&|from, to| at(from).0 == machine && at(to).0 != machine && relay(to) == place);
                prop_assert_eq!(carried(&kernel, &format!("worker {rank} out")), inside + passed);
            }
            let ledger = kernel.into_results().ledger;
            let all = ledger.traffic().payload_of(KIND).0;
            prop_assert_eq!(all, sum(&|_, _| true));
        }
    }

    #[test]
    fn a_later_exchange_does_not_pass_on_before_an_earlier_one() {
        // Worker 0 has a long message for worker 3, by way of worker 1, in the first exchange
        // alone.
        let machine = "machine = { gpus = 2, nic = { bandwidth = \"4Mbps\", latency = \"2ms\" } }";
        let fabric = Fabric::new(topology(4, machine), Framing::none());
        let mut kernel = Kernel::new(fabric, 4, 4, Trace::new(0));
        let mut begun = [false; 4];
        let to_last = |payload| Message { peer: 3, payload };
        let outbox = |rank: usize, number: u8| {
            let mut outbox = Outbox::new(KIND, 0);
            if rank == 0 && number == 0 {
                outbox.messages.push(to_last(vec![9; 5_000]));
            }
            if rank == 3 {
                outbox.expect = (usize::from(number)..2).collect();
            }
            if rank == 1 {
                outbox.messages.push(to_last(vec![number; 10]));
            }
            outbox
        };
        let mut received = Vec::new();
        let mut expected = Vec::new();
        while let Some(rank) = kernel.turn() {
            if !begun[rank] {
                begun[rank] = true;
                let start = |number| kernel.start_exchange(rank, HOW, outbox(rank, number));
                expected = [0, 1].map(start).map(Result::unwrap).into();
                if rank != 3 {
                    kernel.finish(rank);
                    continue;
                }
                kernel.finish_exchange(rank, HOW, expected.remove(0));
            } else if received.is_empty() {
                received.push(kernel.take_inbox(rank));
                kernel.finish_exchange(rank, HOW, expected.remove(0));
            } else {
                received.push(kernel.take_inbox(rank));
                kernel.finish(rank);
                continue;
            }
            if !kernel.is_runnable(rank) {
                kernel.pass_turn();
            }
        }
        assert_eq!(kernel.failure(), None);
        let from_one = received
            .iter()
            .flatten()
            .filter(|message| message.peer == 1);
        let numbers: Vec<u8> = from_one.map(|message| message.payload[0]).collect();
        assert_eq!(numbers, [0, 1]);
    }

    #[test]
    fn equal_messages_take_the_time_of_both_stages() {
        // Two machines of two, each worker with a NIC of its own; 1,000 bytes for everybody. Inside
        // 2,000 bytes to the other at 1 MB/s, then 2,000 to the other machine, and both latencies.
        let nics =
            "machine = { gpus = 2, nics = 2, nic = { bandwidth = \"8Mbps\", latency = \"3ms\" } }";
        let topology = topology(4, nics);
        let [inside, between] = [1, 2].map(|to| topology.route(0, to).latency.0);
        assert!(between > inside);
        let kernel = exchanged(&topology, &vec![vec![1_000; 4]; 4], 0.0);
        for times in kernel.times() {
            let expected = 2e-3 + inside + 2e-3 + between;
            assert!((times.clock.0 - expected).abs() < 1e-9, "{times:?}");
        }
    }

    #[test]
    fn where_nothing_is_a_machine_all_goes_directly() {
        let kernel = exchanged(&topology(3, ""), &vec![vec![1_000; 3]; 3], 0.0);
        assert!(
            kernel
                .times()
                .iter()
                .all(|times| (times.clock.0 - 3e-3).abs() < 1e-9)
        );
    }
}
