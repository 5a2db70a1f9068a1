//! How long messages occupy their ends.

use super::super::{Bytes, MessageCost, Seconds, Topology};

/// When each worker has time for the next message.
#[derive(Clone, Debug)]
pub(super) struct Ports {
    /// Of each worker.
    costs: Vec<MessageCost>,
    sends: Vec<Seconds>,
    receives: Vec<Seconds>,
    /// How many workers there are, or stand for all.
    first: usize,
}

impl Ports {
    /// Those of a network; nothing where messages cost their ends nothing.
    pub(super) fn of(topology: &Topology) -> Option<Self> {
        let cost = |rank| topology.message_cost(rank);
        let costs: Vec<MessageCost> = (0..topology.workers()).map(cost).collect();
        let any = costs.iter().any(|cost| *cost != MessageCost::default());
        any.then(|| Self {
            costs,
            sends: vec![Seconds::ZERO; topology.workers()],
            receives: vec![Seconds::ZERO; topology.workers()],
            first: topology.workers(),
        })
    }

    /// From here on the first workers stand for all.
    pub(super) const fn stand_for_all(&mut self, first: usize) {
        self.first = first;
    }

    /// From when on each has time for the next message, as a sender and as a receiver.
    pub(super) fn free(&self) -> impl Iterator<Item = Seconds> {
        self.sends.iter().chain(&self.receives).copied()
    }

    /// When a worker that is handed a message now is done with it.
    pub(super) fn send(&mut self, worker: usize, payload: Bytes, now: Seconds) -> Seconds {
        occupy(&mut self.sends[worker], self.costs[worker], payload, now)
    }

    /// When a worker has taken a message that arrives now.
    pub(super) fn receive(&mut self, worker: usize, payload: Bytes, now: Seconds) -> Seconds {
        // What is sent to another block of workers stands for what another sends to the first.
        let worker = worker % self.first;
        occupy(&mut self.receives[worker], self.costs[worker], payload, now)
    }
}

fn occupy(free: &mut Seconds, cost: MessageCost, payload: Bytes, now: Seconds) -> Seconds {
    let (start, time) = ((*free).max(now), cost.time(payload));
    // The gap runs from one message's beginning to the next one's, and contains what the first
    // costs.
    *free = start + time.max(cost.gap);
    start + time
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::net::{DeviceCost, Fabric, NetworkSpec, Transfer};

    /// When messages of no length arrive, sent at once over a latency of 1 ms.
    fn arrivals(costs: &str, messages: &[(usize, usize)]) -> Vec<f64> {
        let text = format!(
            "framing = \"none\"\nlink = {{ bandwidth = \"8Mbps\", latency = \"1ms\" }}\n{costs}"
        );
        let spec: NetworkSpec = toml::from_str(&text).unwrap();
        let mut fabric = Fabric::new(Arc::new(spec.topology(5).unwrap()), spec.framing());
        for &(from, to) in messages {
            fabric.send(Transfer {
                from,
                to,
                channel: Some(0),
                order: 0,
                payload: Bytes(0),
                start: Seconds::ZERO,
            });
        }
        let mut found = Vec::new();
        while let Some(deliveries) = fabric.advance() {
            found.extend(
                deliveries
                    .iter()
                    .map(|one| (one.time.0 * 1e7).round() / 10.0),
            );
        }
        found
    }

    const FAN: [(usize, usize); 4] = [(0, 1), (0, 2), (0, 3), (0, 4)];
    const INCAST: [(usize, usize); 4] = [(1, 0), (2, 0), (3, 0), (4, 0)];

    #[test]
    fn many_small_messages_cost_as_many_overheads() {
        // L = 1,000 µs, o = 10 µs: the k-th of P − 1 messages takes k·o + L + o, in both
        // directions.
        for messages in [FAN, INCAST] {
            let found = arrivals("overhead = \"10us\"", &messages);
            assert_eq!(found, [1020.0, 1030.0, 1040.0, 1050.0]);
            assert_eq!(arrivals("", &messages), [1000.0; 4]);
        }
    }

    #[test]
    fn messages_are_a_gap_apart() {
        // g = 25 µs: the k-th leaves (k − 1)·g + o after the first is handed over.
        for messages in [FAN, INCAST] {
            let found = arrivals("overhead = \"10us\"\ngap = \"25us\"", &messages);
            assert_eq!(found, [1020.0, 1045.0, 1070.0, 1095.0]);
        }
        assert_eq!(arrivals("gap = \"25us\"", &FAN[..2]), [1000.0, 1025.0]);
    }

    #[test]
    fn bytes_are_copied_one_message_after_another() {
        // 1,000 bytes over 1 MB/s and 1 ms, copied at 10 MB/s: 0.1 ms at either end, and the second
        // message of a sender begins when its copy is done.
        let spec = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"1ms\" }";
        let spec: NetworkSpec = toml::from_str(spec).unwrap();
        let topology = spec.topology(3).unwrap();
        let copying = DeviceCost {
            copy_per_byte: Seconds(1e-7),
            ..DeviceCost::default()
        };
        let workers = topology.workers();
        let topology = topology.with_devices(vec![copying; workers]);
        let mut fabric = Fabric::new(Arc::new(topology), spec.framing());
        for to in [1, 2] {
            fabric.send(Transfer {
                from: 0,
                to,
                channel: None,
                order: 0,
                payload: Bytes(1_000),
                start: Seconds::ZERO,
            });
        }
        // Alone from 0.1 to 0.2 ms, then both at half the rate: 2.0 and 2.1 ms.
        let mut times = Vec::new();
        while let Some(deliveries) = fabric.advance() {
            times.extend(
                deliveries
                    .iter()
                    .map(|one| (one.time.0 * 1e7).round() / 1e4),
            );
        }
        assert_eq!(times, [3.1, 3.2]);
    }

    #[test]
    fn a_message_to_oneself_costs_nothing() {
        assert_eq!(arrivals("overhead = \"10us\"", &[(2, 2)]), [0.0]);
    }

    proptest! {
        /// Workers 1 and 2 send to worker 0 at one time, and each two messages of different sizes,
        /// whoever of them has the turn first.
        #[test]
        fn who_was_asked_first_counts_for_nothing(turns in Just([0, 1, 2, 3]).prop_shuffle()) {
            let arrivals = |turns: [usize; 4]| {
                let text = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"1ms\" }\n\
                            overhead = \"10us\"\ngap = \"25us\"";
                let spec: NetworkSpec = toml::from_str(text).unwrap();
                let mut fabric = Fabric::new(Arc::new(spec.topology(3).unwrap()), spec.framing());
                let mut found = [0.0; 4];
                let mut numbers = std::collections::BTreeMap::new();
                for turn in turns {
                    let (from, order) = (1 + turn / 2, turn as u64 % 2);
                    let flow = fabric.send(Transfer {
                        from,
                        to: 0,
                        channel: Some(order),
                        order,
                        payload: Bytes(100 * order),
                        start: Seconds(0.5),
                    });
                    numbers.insert(flow, turn);
                }
                while let Some(deliveries) = fabric.advance() {
                    for delivery in deliveries {
                        found[numbers[&delivery.flow]] = delivery.time.0;
                    }
                }
                found
            };
            prop_assert_eq!(arrivals(turns), arrivals([0, 1, 2, 3]));
        }
    }
}
