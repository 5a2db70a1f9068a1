//! The fabric on its own.

use super::*;
use crate::net::sharing::brute_force;
use crate::net::{Bandwidth, LinkSpec, NetworkSpec};
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
        order: 0,
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
    // 255 kB out of each worker at 1 MB/s, and half a second of latency.
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

fn network(workers: usize, text: &str, seed: u64) -> Fabric {
    let spec: NetworkSpec = toml::from_str(text).unwrap();
    let topology = spec.topology(workers).unwrap().with_seed(seed);
    Fabric::new(Arc::new(topology), spec.framing())
}

const SLOW: &str = "framing = \"none\"\nlink = { bandwidth = \"8Mbps\", latency = \"100ms\" }\n";

#[test]
fn jitter_adds_to_latency_and_keeps_the_order_of_a_channel() {
    let text = format!("{SLOW}jitter = {{ kind = \"exponential\", mean = \"1s\" }}");
    let mut fabric = network(2, &text, 3);
    for _ in 0..50 {
        fabric.send(message(0, 1, Some(0), 1000, 0.0));
    }
    for _ in 0..50 {
        fabric.send(message(0, 1, None, 0, 0.0));
    }
    let all = deliveries(&mut fabric);
    let in_channel: Vec<u64> = all.iter().map(|one| one.0).filter(|&id| id < 50).collect();
    assert!(in_channel.is_sorted(), "{in_channel:?}");
    let others: Vec<u64> = all.iter().map(|one| one.0).filter(|&id| id >= 50).collect();
    assert!(!others.is_sorted());
    for &(id, time) in all.iter().filter(|one| one.0 >= 50) {
        let drawn = crate::net::Jitter::Exponential { mean: Seconds(1.0) };
        let jitter = drawn.draw(3, LinkId(0), number((0, 1, None), id - 50));
        assert!((time - 0.1 - jitter.0).abs() < 1e-12);
    }
    assert!(fabric.last_arrival.is_empty());
}

#[test]
fn lost_packets_are_carried_again_after_a_round_trip_or_a_timeout() {
    let (mut lost_some, mut lost_none) = (false, false);
    // The model of TCP makes a message's own latency longer, and no round trip of recovery.
    for (seed, factor) in (0..20).flat_map(|seed| [(seed, 1.0), (seed, 3.0)]) {
        let text =
            format!("{SLOW}loss = 0.2\ntcp = {{ window = \"1GB\", latency_factor = {factor:.1} }}");
        let mut fabric = network(2, &text, seed);
        fabric.send(message(0, 1, None, 15_000, 0.0));
        // Without headers 15,000 bytes are ten packets of 1,500.
        let loss = crate::net::Loss::new(0.2, Seconds(0.1));
        let impairment = loss.draw(10, seed, LinkId(0), number((0, 1, None), 0));
        let latency = 0.1 * factor;
        let expected =
            latency + impairment.delay.0 + (15_000 + 1500 * impairment.lost) as f64 / 1e6;
        let all = deliveries(&mut fabric);
        assert!(
            (all[0].1 - expected).abs() < 1e-12,
            "{} and {expected}",
            all[0].1
        );
        assert_eq!(
            fabric.carried(LinkId(0)),
            Bytes(15_000 + 1500 * impairment.lost)
        );
        lost_some |= impairment.lost > 0;
        lost_none |= impairment.lost == 0;
    }
    assert!(lost_some && lost_none);
}

#[test]
fn a_link_that_never_comes_back_is_named_by_whoever_waits_for_it() {
    let text = format!("{SLOW}[[failure]]\nlink = \"worker 1 in\"\nfrom = \"500ms\"");
    let mut fabric = network(3, &text, 0);
    fabric.send(message(0, 1, None, 1_000_000, 0.0));
    fabric.send(message(0, 2, None, 1_000_000, 0.0));
    // Half of the link each until 0.5 s, a quarter of a megabyte; then all of it for the other's
    // rest.
    assert_eq!(deliveries(&mut fabric), [(1, 1.35)]);
    assert_eq!(
        fabric.stalled().unwrap().to_string(),
        "link \"worker 1 in\" is down since 500 ms and never comes back, but message 0 needs it; \
         give its [[network.failure]] an `until`, or another route"
    );
}

#[test]
fn failures_that_nobody_meets_change_nothing() {
    let text = format!("{SLOW}[[failure]]\nworker = 1\nfrom = \"5s\"");
    let mut fabric = network(2, &text, 0);
    fabric.send(message(0, 1, None, 1_000_000, 0.0));
    assert_eq!(deliveries(&mut fabric), [(0, 1.1)]);
    assert_eq!(fabric.stalled(), None);
}

#[test]
fn thousands_of_edge_clients_leave_nothing_behind() {
    let text = "topology = \"edge\"\npreset = \"broadband\"\n\
                server = { bandwidth = \"10Gbps\", latency = \"1ms\" }";
    let mut fabric = network(4096, text, 0);
    let mut most = 0;
    for round in 0..3 {
        let start = fabric.now().0;
        for from in 0..4096 {
            let to = (from + 1 + round * 17) % 4096;
            fabric.send(message(
                from,
                to,
                Some(0),
                // Three lengths, so that not all end at one instant.
                1000 + 100 * (from as u64 % 3),
                start,
            ));
        }
        while fabric.advance().is_some() {}
        // A bundle for each message in flight at once, however many there were.
        most = fabric.sharing.most_bundles();
        assert!(most <= 4096, "{most}");
        assert!(fabric.channels.is_empty() && fabric.arriving.is_empty());
        assert_eq!(fabric.free.len(), fabric.transmitting.len());
    }
    assert!(most > 0);
}

/// One of each wiring for six workers, without headers.
const WIRINGS: [&str; 5] = [
    "",
    "topology = \"racks\"\nracks = 2\nuplink = { bandwidth = \"6Mbps\", latency = \"1ms\" }",
    "topology = \"ring\"",
    "topology = \"regions\"\nregions = { bandwidth = \"5Mbps\", latency = [[0, 0.1], [0.2, 0]] }",
    "topology = \"edge\"\nup = \"3Mbps\"\nserver = { bandwidth = \"9Mbps\", latency = 0 }",
];

fn messages() -> impl Strategy<Value = Vec<(usize, usize, u64, u8)>> {
    let one = (0..6_usize, 0..6_usize, 1..900_000_u64, 0..5_u8);
    prop::collection::vec(one, 1..25)
}

/// Sends all, and returns when each arrives.
fn arrivals(wiring: &str, sent: &[(usize, usize, u64, u8)]) -> (Fabric, Vec<f64>) {
    let mut fabric = network(6, &format!("{SLOW}{wiring}"), 0);
    for &(from, to, bytes, start) in sent {
        fabric.send(message(from, to, None, bytes, f64::from(start) / 8.0));
    }
    let mut all = deliveries(&mut fabric);
    all.sort_by_key(|one| one.0);
    (fabric, all.into_iter().map(|one| one.1).collect())
}

/// When each message arrives, by the definition alone: a fluid whose rates are worked out anew
/// whenever a message starts or ends, and behind it the latency of the route. With a window, a flow
/// gets no more than one of it in each round trip.
fn fluid(topology: &Topology, window: Option<f64>, sent: &[(usize, usize, u64, u8)]) -> Vec<f64> {
    let links = topology.links().iter();
    let mut capacity: Vec<f64> = links
        .map(|link| link.bandwidth.bytes_per_second())
        .collect();
    let routes: Vec<_> = sent
        .iter()
        .map(|&(from, to, ..)| topology.route(from, to))
        .collect();
    let mut over = Vec::new();
    for route in &routes {
        let mut links = route.links.clone();
        if let Some(window) = window.filter(|_| route.latency.0 > 0.0) {
            links.push(LinkId(capacity.len()));
            capacity.push(window / (2.0 * route.latency.0));
        }
        over.push(links);
    }
    let starts: Vec<f64> = sent.iter().map(|one| f64::from(one.3) / 8.0).collect();
    let mut left: Vec<f64> = sent.iter().map(|one| one.2 as f64).collect();
    let mut ends: Vec<Option<f64>> = vec![None; sent.len()];
    let mut now = 0.0;
    while ends.contains(&None) {
        let open: Vec<usize> = (0..sent.len())
            .filter(|&flow| ends[flow].is_none() && starts[flow] <= now)
            .collect();
        let active: Vec<Vec<LinkId>> = open.iter().map(|&flow| over[flow].clone()).collect();
        let rates = brute_force(&capacity, &active);
        let lasts = |(&flow, rate): (&usize, &f64)| left[flow] / rate;
        let shortest = open
            .iter()
            .zip(&rates)
            .map(lasts)
            .fold(f64::INFINITY, f64::min);
        let later = starts.iter().filter(|start| **start > now);
        let until = later.fold(now + shortest, |first, start| first.min(*start));
        for (&flow, rate) in open.iter().zip(&rates) {
            let rest = if rate.is_finite() {
                left[flow] - rate * (until - now)
            } else {
                0.0
            };
            left[flow] = rest;
            if rest <= 1e-9 * sent[flow].2 as f64 {
                ends[flow] = Some(until);
            }
        }
        now = until;
    }
    let routes = routes.iter().zip(ends);
    routes
        .map(|(route, end)| end.expect("all ended") + route.latency.0)
        .collect()
}

proptest! {
    #[test]
    fn on_every_wiring_messages_arrive_when_a_fluid_that_shares_links_fairly_does(
        wiring in prop::sample::select(&WIRINGS[..]), sent in messages(), capped in any::<bool>(),
    ) {
        let window = capped.then_some(60_000.0);
        let tcp = if capped { "\ntcp = { window = \"60kB\" }" } else { "" };
        let (fabric, arrived) = arrivals(&format!("{wiring}{tcp}"), &sent);
        let expected = fluid(fabric.topology(), window, &sent);
        for (found, expected) in arrived.iter().zip(&expected) {
            let close = (found - expected).abs() <= 1e-8 * expected.max(1.0);
            prop_assert!(close, "{arrived:?} and {expected:?}");
        }
    }

    #[test]
    fn on_every_wiring_bytes_are_conserved_and_no_link_carries_more_than_it_can(
        wiring in prop::sample::select(&WIRINGS[..]), sent in messages(),
    ) {
        let (fabric, arrived) = arrivals(wiring, &sent);
        prop_assert_eq!(arrived.len(), sent.len());
        let mut expected = vec![0_u64; fabric.topology().links().len()];
        for (&(from, to, bytes, start), arrived) in sent.iter().zip(&arrived) {
            let route = fabric.topology().route(from, to);
            let links = fabric.topology().links();
            let alone = route.links.iter()
                .map(|link| bytes as f64 / links[link.0].bandwidth.bytes_per_second())
                .fold(0.0, f64::max);
            let earliest = f64::from(start) / 8.0 + route.latency.0 + alone;
            prop_assert!(*arrived >= earliest * (1.0 - 1e-9));
            for link in &route.links {
                expected[link.0] += bytes;
            }
        }
        for (link, expected) in expected.into_iter().enumerate() {
            prop_assert_eq!(fabric.carried(LinkId(link)), Bytes(expected));
            let most = fabric.topology().links()[link].bandwidth.bytes_per_second() * fabric.now().0;
            prop_assert!(expected as f64 <= most * (1.0 + 1e-9));
        }
    }

    #[test]
    fn on_every_wiring_a_larger_flow_ends_no_earlier(
        wiring in prop::sample::select(&WIRINGS[..]), sent in messages(), extra in 1..500_000_u64,
    ) {
        let before = arrivals(wiring, &sent).1[0];
        let mut larger = sent;
        larger[0].2 += extra;
        prop_assert!(arrivals(wiring, &larger).1[0] >= before * (1.0 - 1e-9));
    }

    #[test]
    fn alone_on_its_route_a_flow_in_two_halves_ends_when_the_whole_does(
        wiring in prop::sample::select(&WIRINGS[..]), from in 0..6_usize, to in 0..6_usize,
        half in 1..500_000_u64,
    ) {
        let whole = arrivals(wiring, &[(from, to, 2 * half, 0)]).1[0];
        for halves in arrivals(wiring, &[(from, to, half, 0); 2]).1 {
            prop_assert!((halves - whole).abs() <= 1e-9 * whole);
        }
    }
}
