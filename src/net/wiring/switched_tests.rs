//! Machines of several workers, fat trees and dragonflies as files describe them.

use super::*;

fn topology(text: &str, workers: usize) -> Result<Topology, NetError> {
    let spec: NetworkSpec = toml::from_str(text).expect(text);
    spec.topology(workers)
}

fn names(topology: &Topology, from: usize, to: usize) -> Vec<&str> {
    let links = topology.route(from, to).links;
    links
        .iter()
        .map(|link| topology.links()[link.0].name.as_str())
        .collect()
}

const LINK: &str = "link = { bandwidth = \"10Gbps\", latency = \"10us\" }\n";

#[test]
fn presets_of_machines_wire_what_their_data_sheets_say() {
    // Two DGX H100: eight NICs of 400 Gb/s each, 3.6 Tb/s from each GPU.
    let dgx = topology("preset = \"dgx-h100\"", 16).unwrap();
    assert_eq!(names(&dgx, 0, 7), ["worker 0 out", "worker 7 in"]);
    let outside = ["worker 3 out", "nic 0.3 out", "nic 1.5 in", "worker 13 in"];
    assert_eq!(names(&dgx, 3, 13), outside);
    let bandwidth = |name: &str| {
        let link = dgx.links().iter().find(|link| link.name == name);
        link.unwrap().bandwidth.bps()
    };
    assert_eq!(
        [bandwidth("worker 0 in"), bandwidth("nic 1.5 in")],
        [3.6e12, 4e11]
    );
    assert!((dgx.route(3, 13).latency.0 - 4.6e-6).abs() < 1e-12);
    assert_eq!(dgx.groups(), Some(vec![8, 8]));
    assert_eq!(dgx.period().map(|period| period.workers), Some(8));
    // Eight V100 share one NIC; four network cards of a P4d are shared by two GPUs each.
    let shared = topology("preset = \"ec2-p3.16xlarge\"", 12).unwrap();
    assert_eq!(names(&shared, 7, 8)[1..3], ["nic 0.0 out", "nic 1.0 in"]);
    assert_eq!(shared.groups(), Some(vec![8, 4]));
    let cards = topology("preset = \"ec2-p4d.24xlarge\"", 16).unwrap();
    let nic = |from: usize| names(&cards, from, 8)[1].to_owned();
    assert_eq!(
        [0, 1, 2, 7].map(nic),
        ["nic 0.0 out", "nic 0.0 out", "nic 0.1 out", "nic 0.3 out"]
    );
}

#[test]
fn machines_take_the_place_of_workers_in_every_topology() {
    let machine = format!(
        "{LINK}machine = {{ gpus = 4, nics = 2, nic = {{ bandwidth = \"1Gbps\", latency = \"5us\" }} }}\n"
    );
    // 64 workers on 16 machines with 32 NICs: NIC 31 is that of workers 62 and 63.
    for (text, middle) in [
        ("", &[][..]),
        (
            "topology = \"racks\"\nracks = 4\nuplink = { bandwidth = \"1Gbps\", latency = 0 }",
            &["rack 0 up", "rack 3 down"],
        ),
        (
            "topology = \"fat-tree\"\nfat_tree = { k = 6 }",
            &[
                "edge 0.0 to aggregation 0.1",
                "aggregation 0.1 to core 4",
                "core 4 to aggregation 3.1",
                "aggregation 3.1 to edge 3.1",
            ],
        ),
        // Balanced with h = 2: NIC 31 is in group 3, of 8 NICs each, at its last router.
        (
            "topology = \"dragonfly\"",
            &[
                "router 0.0 to router 0.1",
                "group 0 to group 3",
                "router 3.2 to router 3.3",
            ],
        ),
    ] {
        let topology = topology(&format!("{machine}{text}"), 64).unwrap();
        let found = names(&topology, 0, 63);
        let ends = ["worker 0 out", "nic 0.0 out", "nic 15.1 in", "worker 63 in"];
        assert_eq!([found[0], found[1]], ends[..2], "{text}");
        assert_eq!(&found[2..found.len() - 2], middle, "{text}");
        assert_eq!(found[found.len() - 2..], ends[2..], "{text}");
        assert_eq!(topology.groups(), Some(vec![4; 16]));
    }
}

#[test]
fn a_fat_tree_has_full_bisection_bandwidth_and_half_of_it_at_half_the_uplinks() {
    for (share, expected) in [(1.0, 64.0), (0.5, 32.0)] {
        let uplink = format!("uplink = {{ bandwidth = {}, latency = 0 }}", 1e10 * share);
        let text = format!("{LINK}topology = \"fat-tree\"\n{uplink}");
        // k = 8: 128 workers, of which 64 send 10 Gb/s each from one half to the other.
        let tree = topology(&text, 128).unwrap();
        let routes: Vec<_> = (0..64)
            .map(|from| tree.route(from, from + 64).links)
            .collect();
        let capacity = tree.links().iter().map(|link| link.bandwidth.bps());
        let rates = crate::net::sharing::max_min(&capacity.collect::<Vec<f64>>(), &routes);
        let across: f64 = rates.iter().sum();
        assert!((across / 1e10 - expected).abs() < 1e-9, "{across}");
        let ranks = tree.groups().unwrap();
        assert_eq!(ranks, [4; 32], "four workers at an edge switch");
    }
}

#[test]
fn by_hash_two_messages_may_share_a_way_while_another_is_free() {
    let text = format!("{LINK}topology = \"fat-tree\"\nfat_tree = {{ routing = \"ecmp\" }}");
    let route = |seed| {
        let tree = topology(&text, 128).unwrap().with_seed(seed);
        (0..64)
            .map(|from| tree.route(from, from + 64).links)
            .collect::<Vec<_>>()
    };
    assert_eq!(route(1), route(1));
    assert_ne!(route(1), route(2));
    let tree = topology(&text, 128).unwrap();
    let capacity: Vec<f64> = tree
        .links()
        .iter()
        .map(|link| link.bandwidth.bps())
        .collect();
    let across: f64 = crate::net::sharing::max_min(&capacity, &route(1))
        .iter()
        .sum();
    // Raiciu et al. (SIGCOMM 2011), figure 2: random ways give a permutation less than half to two
    // thirds.
    assert!(
        (0.3..0.75).contains(&(across / 64e10)),
        "{}",
        across / 64e10
    );
}

#[test]
fn switches_that_cannot_be_are_refused_by_key() {
    let nic = "nic = { bandwidth = \"1Gbps\", latency = 0 }";
    for (text, expected) in [
        (
            "fat_tree = { k = 4 }".to_owned(),
            "network.fat_tree: goes with topology = \"fat-tree\"",
        ),
        (
            "dragonfly = {}".to_owned(),
            "network.dragonfly: goes with topology = \"dragonfly\"",
        ),
        (
            "topology = \"fat-tree\"\nfat_tree = { k = 5 }".to_owned(),
            "network.fat_tree.k: must be an even number",
        ),
        (
            "topology = \"fat-tree\"\nfat_tree = { k = 4000000 }".to_owned(),
            "network.fat_tree.k: must be an even number of ports, from 2 to 128",
        ),
        (
            "topology = \"dragonfly\"\ndragonfly = { routers = 256, global_links = 256 }"
                .to_owned(),
            "network.dragonfly.groups: 65537 groups have",
        ),
        (
            "topology = \"fat-tree\"\nfat_tree = { k = 4 }".to_owned(),
            "network.fat_tree.k: makes room for 16 workers, or NICs of machines, and there are 20",
        ),
        (
            "topology = \"fat-tree\"\nuplink = { bandwidth = 1e9, latency = 0, loss = 0.7 }"
                .to_owned(),
            "network.uplink.loss",
        ),
        (
            "topology = \"dragonfly\"\ndragonfly = { global_links = 2, groups = 10 }".to_owned(),
            "network.dragonfly.groups: must be 1 to 9",
        ),
        (
            "topology = \"dragonfly\"\ndragonfly = { routers = 0 }".to_owned(),
            "network.dragonfly.routers: must be 1 to 256",
        ),
        (
            "topology = \"dragonfly\"\ndragonfly = { global_links = 2, groups = 2 }".to_owned(),
            "network.dragonfly.*: makes room for 16",
        ),
        (
            format!("machine = {{ gpus = 0, {nic} }}"),
            "network.machine.gpus: must be at least 1",
        ),
        (
            format!("machine = {{ gpus = 2, nics = 3, {nic} }}"),
            "network.machine.nics: must be 1 to 2",
        ),
        (
            "exchange = \"hierarchical\"".to_owned(),
            "network.exchange: exchanges first among neighbours",
        ),
        (
            format!("topology = \"ring\"\nmachine = {{ gpus = 2, {nic} }}"),
            "network.machine: describes machines",
        ),
    ] {
        let error = topology(&format!("{LINK}{text}"), 20).expect_err(&text);
        assert!(
            error.is_input() && error.to_string().contains(expected),
            "{text}: {error}"
        );
    }
    let error = topology("preset = \"dgx-a100\"\ntopology = \"ring\"", 16).unwrap_err();
    assert!(
        error.to_string().contains("network.preset: is of machines"),
        "{error}"
    );
}
