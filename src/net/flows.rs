//! A list of flows over a network, without any graph: what `grapevine net` prints.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Bytes, Fabric, FlowId, Framing, NetError, Seconds, Topology, Transfer};

/// One flow of a list, as a `[[flow]]` entry of a file.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// Sending worker.
    pub from: usize,
    /// Receiving worker.
    pub to: usize,
    /// Payload.
    pub bytes: Bytes,
    /// When it is handed over. Default: 0.
    #[serde(default)]
    pub start: Seconds,
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowResult {
    /// Payload with framing.
    pub wire: Bytes,
    /// When it was handed over.
    pub start: Seconds,
    /// When its last byte arrived.
    pub finish: Seconds,
}

impl FlowResult {
    /// Wire bits over the time from start to finish, latency included. Of a flow that takes no time
    /// infinite, and not a number if it is also of no bytes.
    pub(crate) fn mean_rate_bps(&self) -> f64 {
        self.wire.0 as f64 * 8.0 / (self.finish - self.start).0
    }
}

/// Runs independent flows over an otherwise quiet network; results are in the order of the list.
/// Cost: see `fabric`.
///
/// # Errors
/// [`NetError::Rank`] if a flow names a worker that does not exist, [`NetError::Description`] if it
/// has no route, [`NetError::LinkDown`] if it needs a link that fails and never comes back.
pub fn run_flows(
    topology: &Arc<Topology>,
    framing: Framing,
    flows: &[FlowSpec],
) -> Result<Vec<FlowResult>, NetError> {
    for flow in flows {
        // Before any is sent: the fabric takes ranks and routes for granted.
        topology.check_rank("[[flow]] from", flow.from)?;
        topology.check_rank("[[flow]] to", flow.to)?;
        topology.check_route(flow.from, flow.to)?;
    }
    let mut fabric = Fabric::new(Arc::clone(topology), framing);
    let mut results = Vec::with_capacity(flows.len());
    let mut number: BTreeMap<FlowId, usize> = BTreeMap::new();
    for flow in flows {
        let id = fabric.send(Transfer {
            from: flow.from,
            to: flow.to,
            channel: None,
            order: 0,
            payload: flow.bytes,
            start: flow.start,
        });
        number.insert(id, results.len());
        results.push(FlowResult {
            wire: framing.wire(flow.bytes),
            start: flow.start,
            finish: flow.start,
        });
    }
    while let Some(deliveries) = fabric.advance() {
        for delivery in deliveries {
            results[number[&delivery.flow]].finish = delivery.time;
        }
    }
    // A flow behind a link that is down for good never arrives, and nothing else would say so.
    fabric.stalled().map_or(Ok(results), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Bandwidth, LinkSpec};
    use proptest::prelude::*;

    /// 1 MB/s and 0.1 s each, without framing, so that expectations are read off.
    const LATENCY: f64 = 0.1;

    fn star(workers: usize) -> Arc<Topology> {
        let link = LinkSpec {
            bandwidth: Bandwidth::new(8e6).unwrap(),
            latency: Seconds(LATENCY),
        };
        Arc::new(Topology::star(&vec![link; workers]))
    }

    fn flow(from: usize, to: usize, bytes: u64, start: f64) -> FlowSpec {
        FlowSpec {
            from,
            to,
            bytes: Bytes(bytes),
            start: Seconds(start),
        }
    }

    fn finish(workers: usize, flows: &[FlowSpec]) -> Vec<f64> {
        let results = run_flows(&star(workers), Framing::none(), flows).unwrap();
        results.into_iter().map(|result| result.finish.0).collect()
    }

    #[track_caller]
    fn expect(workers: usize, flows: &[FlowSpec], expected: &[f64]) {
        let simulated = finish(workers, flows);
        assert_eq!(simulated.len(), expected.len());
        for (simulated, expected) in simulated.iter().zip(expected) {
            assert!(
                (simulated / expected - 1.0).abs() < 1e-9,
                "{simulated} instead of {expected}"
            );
        }
    }

    #[test]
    fn a_flow_alone_takes_latency_plus_transmission() {
        expect(2, &[flow(0, 1, 2_000_000, 3.0)], &[3.0 + LATENCY + 2.0]);
    }

    #[test]
    fn equal_flows_through_one_link_end_together() {
        let flows = [flow(0, 1, 1_000_000, 0.0); 7];
        expect(2, &flows, &[LATENCY + 7.0; 7]);
        let finish = finish(2, &flows);
        assert!(
            finish
                .iter()
                .all(|time| time.to_bits() == finish[0].to_bits())
        );
    }

    #[test]
    fn a_flow_that_joins_half_way_shares_what_is_left() {
        // First: 1 MB alone in [0, 1], then half speed; second joins at 1 with 1 MB. Both have 1 MB
        // left at 1, both end at 3.
        expect(
            2,
            &[flow(0, 1, 2_000_000, 0.0), flow(0, 1, 1_000_000, 1.0)],
            &[3.1, 3.1],
        );
        // With 2 MB the second has 1 MB left when the first ends, and goes on alone.
        expect(
            2,
            &[flow(0, 1, 2_000_000, 0.0), flow(0, 1, 2_000_000, 1.0)],
            &[3.1, 4.1],
        );
    }

    #[test]
    fn incast_is_bound_by_the_receivers_link() {
        let flows: Vec<_> = (1..9).map(|from| flow(from, 0, 1_000_000, 0.0)).collect();
        expect(9, &flows, &[LATENCY + 8.0; 8]);
    }

    #[test]
    fn an_all_to_all_takes_everybodys_outbox() {
        let pairs = (0..6).flat_map(|from| (0..6).map(move |to| (from, to)));
        let flows: Vec<_> = pairs
            .filter(|(a, b)| a != b)
            .map(|(a, b)| flow(a, b, 1_000_000, 0.0))
            .collect();
        expect(6, &flows, &[LATENCY + 5.0; 30]);
    }

    #[test]
    fn a_flow_held_up_elsewhere_leaves_its_share_to_others() {
        // Into worker 2: one flow from 0, two from 1. Out of 0: another flow, to 1. Shares: 1/3
        // each into 2, 2/3 for 0 → 1.
        let flows = [
            flow(0, 2, 1_000_000, 0.0),
            flow(1, 2, 1_000_000, 0.0),
            flow(1, 2, 1_000_000, 0.0),
            flow(0, 1, 2_000_000, 0.0),
        ];
        expect(3, &flows, &[3.1; 4]);
    }

    #[test]
    fn a_flow_to_oneself_or_of_no_bytes_takes_no_transmission() {
        let flows = [flow(0, 0, 5_000_000, 2.0), flow(0, 1, 0, 2.0)];
        expect(2, &flows, &[2.0, 2.1]);
    }

    #[test]
    fn framing_counts_in_time_and_result() {
        let results = run_flows(&star(2), Framing::ethernet(), &[flow(0, 1, 1444, 0.0)]).unwrap();
        assert_eq!(results[0].wire, Bytes(1538));
        assert!((results[0].finish.0 - LATENCY - 1538e-6).abs() < 1e-12);
        assert!((results[0].mean_rate_bps() - 1538.0 * 8.0 / 0.101_538).abs() < 1e-3);
    }

    #[test]
    fn a_flow_of_a_worker_that_does_not_exist_is_refused() {
        let error = run_flows(&star(2), Framing::none(), &[flow(0, 2, 1, 0.0)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "[[flow]] to names worker 2, but the workers are numbered 0 to 1"
        );
    }

    fn flows() -> impl Strategy<Value = Vec<FlowSpec>> {
        let one = (0..5_usize, 0..5_usize, 1..9_u64, 0..4_u8);
        let make = |(from, to, size, start)| flow(from, to, size * 100_000, f64::from(start) / 4.0);
        prop::collection::vec(one.prop_map(make), 1..15)
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
    }

    proptest! {
        #[test]
        fn new_names_for_workers_change_nothing(
            flows in flows(), names in Just([0, 1, 2, 3, 4]).prop_shuffle(),
        ) {
            let renamed: Vec<_> = flows.iter()
                .map(|flow| FlowSpec { from: names[flow.from], to: names[flow.to], ..*flow })
                .collect();
            prop_assert_eq!(finish(5, &flows), finish(5, &renamed));
        }

        #[test]
        fn a_larger_flow_ends_no_earlier(flows in flows(), extra in 1..500_000_u64) {
            let before = finish(5, &flows)[0];
            let mut larger = flows;
            larger[0].bytes += Bytes(extra);
            prop_assert!(finish(5, &larger)[0] >= before * (1.0 - 1e-12));
        }

        #[test]
        fn no_flow_beats_an_empty_network_nor_waits_for_more_than_everything(flows in flows()) {
            let total: u64 = flows.iter().map(|flow| flow.bytes.0).sum();
            for (flow, finish) in flows.iter().zip(finish(5, &flows)) {
                if flow.from != flow.to {
                    let alone = flow.start.0 + LATENCY + flow.bytes.0 as f64 / 1e6;
                    prop_assert!(finish >= alone * (1.0 - 1e-12));
                }
                // The last starts at 0.75 s.
                prop_assert!(finish <= 0.75 + LATENCY + total as f64 / 1e6 + 1e-9);
            }
        }

        #[test]
        fn everything_twice_as_late_in_a_network_half_as_fast(flows in flows()) {
            let link = LinkSpec { bandwidth: Bandwidth::new(4e6).unwrap(), latency: Seconds(2.0 * LATENCY) };
            let slow = Arc::new(Topology::star(&[link; 5]));
            let later: Vec<_> =
                flows.iter().map(|flow| FlowSpec { start: flow.start * 2.0, ..*flow }).collect();
            let results = run_flows(&slow, Framing::none(), &later).unwrap();
            for (slow, fast) in results.iter().zip(finish(5, &flows)) {
                prop_assert!(close(slow.finish.0, 2.0 * fast));
            }
        }
    }
}
