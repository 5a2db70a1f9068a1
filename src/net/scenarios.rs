//! Golden virtual-time traces: for every topology and feature a small scenario whose outcome is
//! derived by hand.
//!
//! `tests/golden/network.txt` has a block for each: the network and its flows, the derivation, and
//! when each flow finishes, in seconds. A test that fails prints the derivation, what was expected
//! and what was simulated.

use std::sync::Arc;

use serde::Deserialize;

use super::{FlowSpec, NetworkSpec, run_flows};

const SCENARIOS: &str = include_str!("../../tests/golden/network.txt");

#[derive(Deserialize)]
struct Flows {
    flow: Vec<FlowSpec>,
}

/// One block.
struct Scenario<'a> {
    title: &'a str,
    workers: usize,
    network: NetworkSpec,
    flows: Vec<FlowSpec>,
    derivation: Vec<&'a str>,
    finish: Vec<f64>,
}

/// Reads a block: the title after `==`, then lines that begin with what they are.
fn read(block: &str) -> Scenario<'_> {
    let mut lines = block.lines();
    let title = lines.next().unwrap_or_default().trim();
    let (mut workers, mut network, mut flows) = (0, String::new(), String::new());
    let (mut derivation, mut finish) = (Vec::new(), Vec::new());
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        match what {
            "workers" => workers = rest.parse().unwrap(),
            "network" => network += &format!("{rest}\n"),
            "flow" => {
                let mut words = rest.split_whitespace();
                let mut word = || words.next().unwrap_or("0");
                let (from, to, bytes, start) = (word(), word(), word(), word());
                flows += &format!(
                    "[[flow]]\nfrom = {from}\nto = {to}\nbytes = {bytes}\nstart = {start}\n"
                );
            }
            "because" => derivation.push(rest),
            "finish" => {
                let words = rest.split_whitespace();
                finish = words.map(|time| time.parse().unwrap()).collect();
            }
            other => panic!("{title}: a line cannot begin with {other}"),
        }
    }
    Scenario {
        title,
        workers,
        network: toml::from_str(&format!("framing = \"none\"\n{network}")).expect(title),
        flows: toml::from_str::<Flows>(&flows).expect(title).flow,
        derivation,
        finish,
    }
}

fn scenarios() -> impl Iterator<Item = Scenario<'static>> {
    SCENARIOS.split("\n== ").skip(1).map(read)
}

#[test]
fn every_scenario_ends_as_derived() {
    let mut failed = String::new();
    for scenario in scenarios() {
        let title = scenario.title;
        let topology = scenario.network.topology(scenario.workers).expect(title);
        let framing = scenario.network.framing();
        let results = run_flows(&Arc::new(topology), framing, &scenario.flows).expect(title);
        let simulated: Vec<f64> = results.iter().map(|result| result.finish.0).collect();
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs();
        if simulated.len() != scenario.finish.len()
            || !simulated.iter().zip(&scenario.finish).all(close)
        {
            failed += &format!(
                "{title}\n  because   {}\n  expected  {:?}\n  simulated {simulated:?}\n",
                scenario.derivation.join("\n            "),
                scenario.finish,
            );
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}

#[test]
fn there_is_a_scenario_for_every_topology_and_each_says_why() {
    let all: Vec<Scenario<'_>> = scenarios().collect();
    assert!(all.iter().all(|scenario| !scenario.derivation.is_empty()));
    for (kind, _) in super::TopologyKind::ALL {
        let kind: super::TopologyKind = serde_json::from_str(&format!("\"{kind}\"")).unwrap();
        assert!(
            all.iter().any(|one| one.network.topology == kind),
            "{kind:?}"
        );
    }
}
