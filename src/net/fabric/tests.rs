//! The fabric on its own.

use super::*;
use crate::net::{Bandwidth, LinkSpec};
use proptest::prelude::*;

fn fabric(workers: usize, latency: f64) -> Fabric {
    let link = LinkSpec {
        bandwidth: Bandwidth::new(8e6).unwrap(),
        latency: Seconds(latency),
    };
    Fabric::new(
        Arc::new(Topology::star(&vec![link; workers])),
        Framing::none(),
    )
}

fn message(from: usize, to: usize, channel: Option<u64>, payload: u64, start: f64) -> Transfer {
    Transfer {
        from,
        to,
        channel,
        payload: Bytes(payload),
        start: Seconds(start),
    }
}

fn deliveries(fabric: &mut Fabric) -> Vec<(u64, f64)> {
    let mut all = Vec::new();
    while let Some(some) = fabric.advance() {
        all.extend(
            some.into_iter()
                .map(|delivery| (delivery.flow.0, delivery.time.0)),
        );
    }
    all
}

#[test]
fn nothing_in_flight_is_nothing_to_wait_for() {
    assert_eq!(fabric(2, 0.5).advance(), None);
}

#[test]
fn messages_of_one_channel_go_one_after_another_in_the_order_sent() {
    let mut fabric = fabric(2, 0.5);
    // The second is ready earlier and shorter, and still second; the third is on a channel of
    // its own.
    fabric.send(message(0, 1, Some(1), 2_000_000, 1.0));
    fabric.send(message(0, 1, Some(1), 1_000_000, 0.0));
    fabric.send(message(0, 1, Some(2), 500_000, 0.0));
    assert_eq!(deliveries(&mut fabric), [(2, 1.0), (0, 3.5), (1, 4.5)]);
}

#[test]
fn a_channel_pays_latency_once_in_a_row_of_messages() {
    let mut fabric = fabric(2, 10.0);
    for _ in 0..3 {
        fabric.send(message(0, 1, Some(0), 1_000_000, 0.0));
    }
    assert_eq!(deliveries(&mut fabric), [(0, 11.0), (1, 12.0), (2, 13.0)]);
}

#[test]
fn empty_messages_on_a_channel_arrive_together_in_order() {
    let mut fabric = fabric(2, 0.5);
    for _ in 0..3 {
        fabric.send(message(0, 1, Some(0), 0, 1.0));
    }
    let arrived = fabric.advance().unwrap();
    assert_eq!(
        arrived
            .iter()
            .map(|delivery| delivery.flow.0)
            .collect::<Vec<_>>(),
        [0, 1, 2]
    );
    assert_eq!(fabric.now(), Seconds(1.5));
}

#[test]
fn a_start_in_the_past_counts_as_now() {
    let mut fabric = fabric(2, 0.5);
    fabric.send(message(0, 1, None, 1_000_000, 0.0));
    fabric.advance();
    fabric.send(message(0, 1, None, 1_000_000, 0.0));
    assert_eq!(deliveries(&mut fabric), [(1, 3.0)]);
}

#[test]
fn late_in_a_long_run_short_messages_still_arrive() {
    // At 1e9 s a double tells times 1e-7 s apart, much longer than a message of one byte takes:
    // it must not get stuck.
    let mut fabric = fabric(3, 1e-9);
    for from in [0, 1] {
        fabric.send(message(from, 2, None, 1, 1e9));
    }
    assert_eq!(deliveries(&mut fabric).len(), 2);
}

#[test]
fn an_all_to_all_among_256_workers_is_one_instant() {
    let mut fabric = fabric(256, 0.5);
    for from in 0..256 {
        for to in (0..256).filter(|&to| to != from) {
            fabric.send(message(from, to, Some(0), 1000, 0.0));
        }
    }
    let arrived = fabric.advance().unwrap();
    assert_eq!(arrived.len(), 65_280);
    assert!((fabric.now().0 - 0.755).abs() < 1e-9 && fabric.advance().is_none());
}

proptest! {
    #[test]
    fn every_message_arrives_once_and_links_carry_exactly_its_bytes(
        sent in prop::collection::vec((0..4_usize, 0..4_usize, 0..3_u64, 0..5_000_u64, 0..9_u8), 1..40)
    ) {
        let mut fabric = fabric(4, 0.01);
        let mut expected = vec![Bytes::ZERO; 8];
        for &(from, to, channel, payload, start) in &sent {
            let channel = (channel > 0).then_some(channel);
            fabric.send(message(from, to, channel, payload, f64::from(start) * 1e-3));
            for link in fabric.topology().route(from, to).links {
                expected[link.0] += Bytes(payload);
            }
        }
        let arrived = deliveries(&mut fabric);
        prop_assert!(arrived.is_sorted_by_key(|(flow, time)| (Seconds(*time), *flow)));
        let mut flows: Vec<u64> = arrived.iter().map(|(flow, _)| *flow).collect();
        flows.sort_unstable();
        prop_assert_eq!(flows, (0..sent.len() as u64).collect::<Vec<_>>());
        for (link, expected) in expected.into_iter().enumerate() {
            prop_assert_eq!(fabric.carried(LinkId(link)), expected);
            // 1 MB/s from time zero on: no link has carried more than it can.
            prop_assert!(expected.0 as f64 <= fabric.now().0 * 1e6 * (1.0 + 1e-9));
        }
        let time = |flow: usize| arrived.iter().find(|(id, _)| *id == flow as u64).map(|(_, at)| *at);
        for later in 0..sent.len() {
            for earlier in 0..later {
                let same = |i: usize| (sent[i].0, sent[i].1, sent[i].2);
                if same(earlier) == same(later) && sent[later].2 > 0 {
                    prop_assert!(time(earlier) <= time(later));
                }
            }
        }
    }
}
