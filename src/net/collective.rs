//! Collectives as message schedules: pure data, carried out by whatever moves bytes.

use std::ops::Range;

use super::{AllReduceKind, Lane, Traffic, TrafficKind, f32_bytes};

/// What to do with received elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// Reduce them into one's own, element by element.
    Reduce,
    /// Put them in the place of one's own.
    Replace,
}

/// One step of one worker: send, then receive. A side without elements is left out: empty messages
/// never travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Receiver, and the elements to send.
    pub send: Option<(usize, Range<usize>)>,
    /// Sender, the elements that come, and what to do with them.
    pub receive: Option<(usize, Range<usize>, Combine)>,
}

/// Chunk `index` of `len` elements cut in `parts`: the first `len % parts` chunks are one longer
/// than the rest.
fn chunk(index: usize, parts: usize, len: usize) -> Range<usize> {
    let (short, longer) = (len / parts, len % parts);
    let begin = index * short + index.min(longer);
    begin..begin + short + usize::from(index < longer)
}

/// The steps of worker `rank` of `size` in a ring all-reduce of `len` elements (Patarasuk and Yuan,
/// *Bandwidth optimal all-reduce algorithms for clusters of workstations*, JPDC 2009).
///
/// ```text
///   0 ─▶ 1 ─▶ 2 ─▶ … ─▶ P−1 ─▶ 0      everybody sends to the right and receives from the left
/// ```
///
/// * P − 1 steps of reduce-scatter: in step s worker r sends chunk r − s and reduces chunk r − s −
///   1, after which it holds the sum of chunk r + 1 (all modulo P);
/// * P − 1 steps of all-gather: in step s worker r sends chunk r + 1 − s and replaces chunk r − s.
///
/// Each chunk is summed in one order and then copied, so all workers end with the same bits. With
/// equal links, S bytes that P divides, latency α and β seconds a byte: 2(P−1)α + 2(P−1)/P·Sβ
/// seconds. Worker r sends every chunk twice, but chunks r + 1 and r + 2 once: 2(P−1)/P·S bytes
/// when P divides the elements.
///
/// One worker has nothing to do. All workers have the same number of steps.
#[must_use]
pub fn ring_all_reduce(rank: usize, size: usize, len: usize) -> Vec<Step> {
    let (right, left) = ((rank + 1) % size, (rank + size - 1) % size);
    let step = |sent: usize, received: usize, combine: Combine| {
        let filled = |index: usize| {
            Some(chunk(index % size, size, len)).filter(|elements| !elements.is_empty())
        };
        Step {
            send: filled(sent).map(|elements| (right, elements)),
            receive: filled(received).map(|elements| (left, elements, combine)),
        }
    };
    let rounds = || 0..size - 1;
    let scatter = rounds().map(|s| step(rank + size - s, rank + size - s - 1, Combine::Reduce));
    let gather = rounds().map(|s| step(rank + 1 + size - s, rank + size - s, Combine::Replace));
    scatter.chain(gather).collect()
}

/// The steps of worker `rank` of `size` in an all-reduce of `len` elements.
#[must_use]
pub fn all_reduce_steps(kind: AllReduceKind, rank: usize, size: usize, len: usize) -> Vec<Step> {
    match kind {
        AllReduceKind::Ring => ring_all_reduce(rank, size, len),
    }
}

/// All messages of one all-reduce of `len` floats among `size` workers, on layer 0, for plans.
#[must_use]
#[allow(clippy::cast_possible_truncation)] // ranks are far below 2³²
pub fn all_reduce_traffic(
    algorithm: AllReduceKind,
    size: usize,
    len: usize,
    kind: TrafficKind,
) -> Traffic {
    let mut traffic = Traffic::new();
    for from in 0..size {
        for step in all_reduce_steps(algorithm, from, size, len) {
            if let Some((to, elements)) = step.send {
                let lane = Lane {
                    layer: 0,
                    from: from as u32,
                    to: to as u32,
                    kind,
                };
                traffic.add(lane, f32_bytes(elements.len()));
            }
        }
    }
    traffic
}

#[cfg(test)]
#[allow(clippy::needless_range_loop)] // steps of all ranks side by side
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::net::{Bandwidth, Bytes, Fabric, Framing, LinkSpec, Seconds, Topology, Transfer};
    use proptest::prelude::*;

    /// Carries out all ranks' schedules in memory, step by step, as a sum.
    fn execute(mut values: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
        let (size, len) = (values.len(), values[0].len());
        let steps: Vec<Vec<Step>> = (0..size)
            .map(|rank| ring_all_reduce(rank, size, len))
            .collect();
        for at in 0..steps[0].len() {
            let before = values.clone();
            for (rank, mine) in values.iter_mut().enumerate() {
                let Some((from, elements, combine)) = steps[rank][at].receive.clone() else {
                    continue;
                };
                assert_eq!(
                    steps[from][at].send,
                    Some((rank, elements.clone())),
                    "nobody sends this"
                );
                for element in elements {
                    match combine {
                        Combine::Reduce => mine[element] += before[from][element],
                        Combine::Replace => mine[element] = before[from][element],
                    }
                }
            }
        }
        values
    }

    /// The time at which the last worker has everything, with every worker starting a step once it
    /// has received the step before.
    fn time(size: usize, len: usize, link: LinkSpec) -> Seconds {
        let mut fabric = Fabric::new(Arc::new(Topology::star(&vec![link; size])), Framing::none());
        let steps: Vec<Vec<Step>> = (0..size)
            .map(|rank| ring_all_reduce(rank, size, len))
            .collect();
        let mut next = vec![0; size];
        let mut receivers = std::collections::BTreeMap::new();
        let mut go =
            |fabric: &mut Fabric, receivers: &mut std::collections::BTreeMap<_, _>, rank: usize| {
                let step = steps[rank].get(next[rank]);
                next[rank] += 1;
                if let Some((to, elements)) = step.and_then(|step| step.send.clone()) {
                    let payload = f32_bytes(elements.len());
                    let start = fabric.now();
                    let flow = fabric.send(Transfer {
                        from: rank,
                        to,
                        channel: Some(0),
                        payload,
                        start,
                    });
                    receivers.insert(flow, to);
                }
            };
        (0..size).for_each(|rank| go(&mut fabric, &mut receivers, rank));
        while let Some(deliveries) = fabric.advance() {
            for delivery in deliveries {
                let rank = receivers[&delivery.flow];
                go(&mut fabric, &mut receivers, rank);
            }
        }
        fabric.now()
    }

    #[test]
    fn the_first_chunks_are_the_longer_ones() {
        let chunks: Vec<_> = (0..4).map(|index| chunk(index, 4, 6)).collect();
        assert_eq!(chunks, [0..2, 2..4, 4..5, 5..6]);
    }

    #[test]
    fn one_worker_has_nothing_to_do() {
        assert!(ring_all_reduce(0, 1, 10).is_empty());
        assert!(all_reduce_traffic(AllReduceKind::Ring, 1, 10, TrafficKind::Control).is_empty());
    }

    #[test]
    fn fewer_elements_than_workers_send_no_empty_message() {
        let traffic = all_reduce_traffic(AllReduceKind::Ring, 5, 2, TrafficKind::Control);
        assert!(traffic.iter().all(|(_, payload, _)| payload == Bytes(4)));
        assert_eq!(
            traffic.payload_of(TrafficKind::Control),
            Bytes(2 * 4 * 4 * 2)
        );
    }

    #[test]
    fn the_ring_takes_its_closed_form() {
        // Expectation: 2(P−1)α + 2(P−1)/P·Sβ.
        let link = LinkSpec {
            bandwidth: Bandwidth::new(1e9).unwrap(),
            latency: Seconds(1e-4),
        };
        for size in [2, 3, 4, 7, 16] {
            let len = size * 1000;
            let rounds = 2.0 * (size as f64 - 1.0);
            let expected = rounds * 1e-4 + rounds / size as f64 * (len as f64 * 4.0) * 8.0 / 1e9;
            let simulated = time(size, len, link).0;
            assert!(
                (simulated / expected - 1.0).abs() < 1e-9,
                "{size}: {simulated} and {expected}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_worker_ends_with_the_same_bits_of_the_sum(
            size in 1..9_usize, len in 0..40_usize, seed in any::<u32>(),
        ) {
            let value = |rank: usize, at: usize| {
                let hash = crate::rng::mix(u64::from(seed), (rank * 100 + at) as u64);
                (hash % 2001) as f32 / 7.0 - 143.0
            };
            let values: Vec<Vec<f32>> =
                (0..size).map(|rank| (0..len).map(|at| value(rank, at)).collect()).collect();
            let results = execute(values.clone());
            for result in &results {
                prop_assert!(result.iter().zip(&results[0]).all(|(a, b)| a.to_bits() == b.to_bits()));
            }
            for at in 0..len {
                let sum: f64 = values.iter().map(|mine| f64::from(mine[at])).sum();
                prop_assert!((f64::from(results[0][at]) - sum).abs() < 1e-2);
            }
        }

        #[test]
        fn each_worker_sends_every_chunk_twice_but_two_of_them_once(
            size in 2..9_usize, len in 0..60_usize,
        ) {
            let traffic = all_reduce_traffic(AllReduceKind::Ring, size, len, TrafficKind::Parameter);
            for rank in 0..size {
                let sent: u64 = traffic.iter()
                    .filter(|(lane, _, _)| lane.from as usize == rank)
                    .map(|(_, payload, count)| payload.0 * count)
                    .sum();
                let once = |ahead: usize| chunk((rank + ahead) % size, size, len).len();
                prop_assert_eq!(sent, 4 * (2 * len - once(1) - once(2)) as u64);
                if len % size == 0 {
                    prop_assert_eq!(sent, (4 * len / size * 2 * (size - 1)) as u64);
                }
            }
        }
    }
}
