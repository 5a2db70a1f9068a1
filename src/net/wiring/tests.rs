//! Networks as files describe them.

use super::*;
use crate::net::Bandwidth;

fn spec(text: &str) -> NetworkSpec {
    toml::from_str(text).unwrap()
}

#[test]
fn a_star_route_leaves_one_nic_and_enters_the_other() {
    let star = spec("preset = \"ethernet-1g\"").topology(3).unwrap();
    let route = star.route(2, 0);
    let names: Vec<_> = route
        .links
        .iter()
        .map(|link| star.links()[link.0].name.as_str())
        .collect();
    assert_eq!(names, ["worker 2 out", "worker 0 in"]);
    assert!(star.route(1, 1).links.is_empty());
}

#[test]
fn a_straggler_has_its_own_bandwidth_latency_and_speed() {
    let text = "link = { bandwidth = \"1Gbps\", latency = \"100us\" }\n\
        [[worker]]\nrank = 1\nbandwidth = \"100Mbps\"\nlatency = \"1ms\"\ncompute = 0.5";
    let star = spec(text).topology(3).unwrap();
    assert_eq!(star.route(0, 2).latency, Seconds(1e-4));
    assert_eq!(star.route(0, 1).latency, Seconds(1e-3));
    assert_eq!(star.route(1, 0).latency, Seconds(1e-3));
    for link in star
        .route(1, 0)
        .links
        .into_iter()
        .chain(star.route(0, 1).links)
    {
        let own = star.links()[link.0].name.contains("worker 1");
        let expected = if own { 1e8 } else { 1e9 };
        assert_eq!(
            star.links()[link.0].bandwidth,
            Bandwidth::new(expected).unwrap()
        );
    }
    assert_eq!(
        [0, 1, 2].map(|rank| star.compute_factor(rank)),
        [1.0, 0.5, 1.0]
    );
}

#[test]
fn messages_cost_their_ends_what_the_preset_says_unless_the_section_does() {
    let overhead = |text: &str| spec(text).topology(2).unwrap().message_cost(0).overhead;
    assert_eq!(overhead("preset = \"ethernet-1g\""), Seconds(1.7e-6));
    assert_eq!(
        overhead("preset = \"ethernet-1g\"\noverhead = 0"),
        Seconds::ZERO
    );
    assert_eq!(overhead("preset = \"nvlink\""), Seconds::ZERO);
    let link = "link = { bandwidth = \"1Gbps\", latency = \"1ms\" }";
    assert_eq!(overhead(link), Seconds::ZERO);
}

#[test]
fn a_preset_that_was_changed_is_not_called_by_its_name_alone() {
    let named = |text: &str| spec(text).name();
    assert_eq!(
        named("preset = \"wan\"\nall_reduce = \"tree\"\nframing = \"none\""),
        "wan"
    );
    assert_eq!(
        named("link = { bandwidth = \"1Gbps\", latency = 0 }"),
        "custom"
    );
    for change in [
        "up = \"1Mbps\"",
        "loss = 0.1",
        "topology = \"ring\"",
        "[[worker]]\nrank = 0\ncompute = 2.0",
    ] {
        assert_eq!(
            named(&format!("preset = \"wan\"\n{change}")),
            "wan (changed)"
        );
    }
}

#[test]
fn a_preset_and_a_link_exclude_each_other_and_framing_is_that_of_either() {
    let text = "preset = \"nvlink\"\nlink = { bandwidth = \"1Gbps\", latency = \"1us\" }";
    let error = spec(text).topology(1).unwrap_err().to_string();
    assert!(
        error.contains("all the figures that `preset` has"),
        "{error}"
    );
    assert_eq!(spec("preset = \"nvlink\"").framing(), Framing::none());
    assert_eq!(
        spec("framing = \"ethernet\"\npreset = \"nvlink\"").framing(),
        Framing::ethernet()
    );
    assert_eq!(spec("").framing(), Framing::ethernet());
}

#[test]
fn descriptions_that_make_no_network_are_refused_by_key() {
    for (text, workers, expected) in [
        ("", 2, "network: say how fast"),
        ("preset = \"wan\"", 0, "at least one worker"),
        ("preset = \"lan\"", 2, "did you mean \"wan\"?"),
        (
            "preset = \"wan\"\n[[worker]]\nrank = 2",
            2,
            "names worker 2, but the workers are numbered 0 to 1",
        ),
        (
            "preset = \"wan\"\n[[worker]]\nrank = 1\n[[worker]]\nrank = 1",
            2,
            "network.worker.1.rank",
        ),
        (
            "preset = \"wan\"\n[[worker]]\nrank = 1\ncompute = -1.0",
            2,
            "network.worker.0.compute",
        ),
    ] {
        let error = spec(text).topology(workers).expect_err(text);
        assert!(
            error.is_input() && error.to_string().contains(expected),
            "{text}: {error}"
        );
    }
}

/// A file for each wiring of four workers, without a worker of its own figures.
const WIRINGS: [&str; 6] = [
    "",
    "topology = \"racks\"\nracks = 2\nuplink = { bandwidth = \"10Gbps\", latency = 0 }",
    "topology = \"ring\"",
    "topology = \"regions\"\nregions = { bandwidth = \"10Gbps\", latency = [[0, 0], [0, 0]] }",
    "topology = \"edge\"\nserver = { bandwidth = \"10Gbps\", latency = 0 }",
    "duplex = \"half\"",
];

#[test]
fn a_straggler_is_slow_on_every_topology() {
    for wiring in WIRINGS {
        let text = format!(
            "{wiring}\n[[worker]]\nrank = 1\nbandwidth = \"100Mbps\"\nlatency = \"1ms\"\n\
             compute = 0.5"
        );
        let base = "link = { bandwidth = \"1Gbps\", latency = \"100us\" }\n";
        let topology = spec(&format!("{base}{text}")).topology(4).unwrap();
        let narrowest = |from, to| {
            let route = topology.route(from, to);
            let links = route.links.iter().map(|link| &topology.links()[link.0]);
            links
                .map(|link| link.bandwidth.bps())
                .fold(f64::INFINITY, f64::min)
        };
        for other in [0, 2, 3] {
            assert_eq!(narrowest(1, other), 1e8, "{wiring}");
            assert_eq!(narrowest(other, 1), 1e8, "{wiring}");
            assert!(
                topology.route(1, other).latency >= Seconds(1e-3),
                "{wiring}"
            );
        }
        assert_eq!(narrowest(2, 3), 1e9, "{wiring}");
        assert_eq!(topology.compute_factor(1), 0.5);
    }
}

#[test]
fn presets_have_a_faster_way_down_to_edge_clients_only() {
    let edge = "preset = \"broadband\"\ntopology = \"edge\"\nserver = { bandwidth = \"1Gbps\", latency = 0 }";
    let bandwidth = |text: &str, link: usize| {
        spec(text).topology(2).unwrap().links()[link]
            .bandwidth
            .bps()
    };
    assert_eq!([bandwidth(edge, 0), bandwidth(edge, 2)], [20e6, 100e6]);
    assert_eq!(bandwidth("preset = \"broadband\"", 2), 20e6);
}

#[test]
fn a_ring_of_two_has_one_cable_and_a_ring_of_one_none_in_use() {
    let ring = spec("preset = \"wan\"\ntopology = \"ring\"");
    let two = ring.topology(2).unwrap();
    assert_eq!(two.route(0, 1).links.len(), 1);
    assert_ne!(two.route(0, 1).links, two.route(1, 0).links);
    assert!(ring.topology(1).unwrap().route(0, 0).links.is_empty());
}

#[test]
fn keys_of_other_topologies_and_figures_out_of_range_are_refused_by_key() {
    let racks = "topology = \"racks\"\nuplink = { bandwidth = \"1Gbps\", latency = 0 }\n";
    let custom =
        "topology = \"custom\"\n[[link]]\nname = \"a\"\nbandwidth = \"1Gbps\"\nlatency = 0\n";
    let route = "[[route]]\nfrom = 0\nto = 1\nlinks = [\"a\"]\n";
    for (text, expected) in [
        ("preset = \"wan\"\nracks = 2".to_owned(), "network.racks: goes with topology = \"racks\""),
        ("preset = \"wan\"\ntopology = \"edge\"".to_owned(), "network.server: is missing; topology = \"edge\" needs it"),
        (format!("preset = \"wan\"\n{racks}racks = 5"), "network.racks: there must be 1 to 4"),
        ("preset = \"wan\"\nloss = 0.5".to_owned(), "network.loss: must be at least 0 and below 0.5"),
        ("preset = \"wan\"\nup = 1e6\nduplex = \"half\"".to_owned(), "network.duplex: \"half\" shares"),
        ("preset = \"wan\"\ntcp = { window = 0 }".to_owned(), "network.tcp.window"),
        ("preset = \"wan\"\ntcp = { window = 1, latency_factor = 0 }".to_owned(), "network.tcp.latency_factor"),
        ("preset = \"wan\"\ntcp = { window = 1, bandwidth_factor = -1 }".to_owned(), "network.tcp.bandwidth_factor"),
        (
            "preset = \"wan\"\ntcp = { window = 1, bandwidth_factor = 1.5 }".to_owned(),
            "network.tcp.bandwidth_factor: must be above 0 and at most 1, not 1.5",
        ),
        ("preset = \"wan\"\ntcp = { window = 1, latency_factor = 1e300 }".to_owned(), "network.tcp.latency_factor"),
        ("preset = \"wan\"\njitter = { kind = \"uniform\", min = 2, max = 1 }".to_owned(), "network.jitter: its min"),
        ("preset = \"wan\"\n[[failure]]\nfrom = 1".to_owned(), "network.failure.0.*: takes either"),
        ("preset = \"wan\"\n[[failure]]\nworker = 1\nfrom = 1\nuntil = 1".to_owned(), "network.failure.0.until"),
        (
            "preset = \"wan\"\n[[failure]]\nlink = \"worker 1 inn\"\nfrom = 1".to_owned(),
            "did you mean \"worker 1 in\"?",
        ),
        (
            "preset = \"wan\"\ntopology = \"regions\"\nregions = { bandwidth = 1e6, latency = [[0, 1], [1]] }".to_owned(),
            "network.regions.latency.1: has 1 entries",
        ),
        (custom.to_owned(), "network.route: is missing; topology = \"custom\" needs it"),
        (format!("{custom}{route}{route}"), "network.route.1.from: there is a route from 0 to 1 already"),
        (format!("{custom}{}", route.replace("[\"a\"]", "[\"a\", \"a\"]")), "network.route.0.links.1"),
        (format!("preset = \"wan\"\n{custom}{route}"), "network.preset: does not go with"),
    ] {
        let error = spec(&text).topology(4).expect_err(&text);
        assert!(error.is_input() && error.to_string().contains(expected), "{text}: {error}");
    }
    let some = spec(&format!("{custom}{route}")).topology(2).unwrap();
    assert!(some.check_route(0, 1).is_ok());
    let error = some.check_all_routes().unwrap_err().to_string();
    assert_eq!(
        error,
        "network.route: has no way from worker 1 to worker 0; add one"
    );
}

#[test]
fn what_is_read_is_written_as_it_was() {
    for text in [
        "link = { bandwidth = \"1Gbps\", latency = \"1ms\" }\noverhead = \"5us\"\ngap = \"8us\"\ntcp = { window = \"4MiB\", latency_factor = 13.01, bandwidth_factor = 0.97 }",
        "topology = \"custom\"\n[[link]]\nname = \"a\"\nbandwidth = 1e6\nlatency = 0\njitter = { kind = \"exponential\", mean = 1 }\n\
         [[route]]\nfrom = 0\nto = 1\nlinks = [\"a\"]\n[[failure]]\nlink = \"a\"\nfrom = 3",
        "preset = \"dgx-h100\"\ntopology = \"fat-tree\"\nall_reduce = \"hierarchical-halving-doubling\"\nbackground = \"others.csv\"\n\
         fat_tree = { k = 8, routing = \"ecmp\" }\nmachine = { gpus = 4, nics = 2, nic = { bandwidth = 1e9, latency = 0 } }",
        "preset = \"wan\"\ntopology = \"dragonfly\"\ndragonfly = { global_links = 3, groups = 5, local = { bandwidth = 1e9, latency = 0 } }",
        "preset = \"lte\"\ntcp = { window = \"4MiB\" }\ntopology = \"edge\"\nserver = { bandwidth = 1e9, latency = 0, rank = 1 }",
    ] {
        let read = spec(text);
        let written = toml::to_string(&read).unwrap();
        assert_eq!(spec(&written), read, "{written}");
    }
}
