//! What is unbiased and what is not, by exact sums over every outcome of small designs.

mod bias;
mod phases;
mod quadratic;

use super::outcomes::*;
use super::walks::*;
use crate::graph::Csr;
use crate::strategies::grappa::estimators::*;
use crate::strategies::grappa::variable_chunk;
use bias::*;

const WIDTH: usize = 2;

/// A design over the nodes of [`graph`] with all of its outcomes: for every node, what its worker
/// sees.
struct Design {
    name: &'static str,
    inclusion: Inclusion,
    unit: Vec<u32>,
    outcomes: Vec<Vec<Vec<bool>>>,
}

/// Seven nodes, one of them alone, degrees 0 to 4.
fn graph() -> Csr {
    let edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (3, 4), (4, 5)];
    Csr::undirected(7, edges.into_iter())
}

fn row(u: u32) -> Vec<f64> {
    let u = f64::from(u);
    vec![(1.3 * u).sin() + 0.4, 0.5 * u - (u * u).cos()]
}

/// Nodes of one worker see each other.
fn together(assignment: &[u32]) -> Vec<Vec<bool>> {
    assignment
        .iter()
        .map(|mine| assignment.iter().map(|other| other == mine).collect())
        .collect()
}

fn of_units(unit: &[u32], assignment: &[u32]) -> Vec<Vec<bool>> {
    let workers: Vec<u32> = unit
        .iter()
        .map(|&chunk| assignment[chunk as usize])
        .collect();
    together(&workers)
}

fn node_designs() -> Vec<Design> {
    let own: Vec<u32> = (0..7).collect();
    let mut designs: Vec<Design> = (1..=3)
        .map(|workers| Design {
            name: "independent",
            inclusion: Inclusion::Independent { workers },
            unit: own.clone(),
            outcomes: assignments(7, workers).map(|a| together(&a)).collect(),
        })
        .collect();
    designs.extend((1..=3).map(|workers| {
        Design {
            name: "balanced",
            inclusion: Inclusion::Balanced { units: 7, workers },
            unit: own.clone(),
            outcomes: balanced_assignments(&balanced_sizes(7, workers))
                .map(|a| together(&a))
                .collect(),
        }
    }));
    designs
}

/// Four chunks, with and without a neighbour in the own chunk for various nodes.
fn chunk_designs() -> [Design; 2] {
    let unit = vec![0, 0, 1, 2, 1, 3, 3];
    let sweep = (0..3).map(|super_epoch| {
        unit.iter()
            .map(|&base| {
                let variable = variable_chunk(base as usize, 4, 1, super_epoch).unwrap() as u32;
                unit.iter()
                    .map(|&chunk| chunk == base || chunk == variable)
                    .collect()
            })
            .collect()
    });
    [
        Design {
            name: "grouping",
            inclusion: Inclusion::Balanced {
                units: 4,
                workers: 2,
            },
            outcomes: balanced_assignments(&[2, 2])
                .map(|a| of_units(&unit, &a))
                .collect(),
            unit: unit.clone(),
        },
        Design {
            name: "sweep",
            inclusion: Inclusion::Sweep { chunks: 4 },
            outcomes: sweep.collect(),
            unit: unit.clone(),
        },
    ]
}

fn all_designs() -> Vec<Design> {
    node_designs().into_iter().chain(chunk_designs()).collect()
}

impl Design {
    /// The mean of `value(sees)` over all outcomes, where `sees` is what v's worker sees.
    fn expectation(&self, v: usize, width: usize, value: impl Fn(&[bool]) -> Vec<f64>) -> Vec<f64> {
        let mut sum = vec![0.0; width];
        for outcome in &self.outcomes {
            for (sum, value) in sum.iter_mut().zip(value(&outcome[v])) {
                *sum += value / self.outcomes.len() as f64;
            }
        }
        sum
    }

    fn chance(&self, v: usize, event: impl Fn(&[bool]) -> bool) -> f64 {
        self.expectation(v, 1, |sees| vec![f64::from(u8::from(event(sees)))])[0]
    }

    fn pair(&self, v: usize, u: u32) -> f64 {
        self.inclusion.pair(self.unit[v] == self.unit[u as usize])
    }
}

fn seen(graph: &Csr, v: usize, sees: &[bool]) -> Vec<u32> {
    graph
        .neighbours(v)
        .iter()
        .filter(|&&u| sees[u as usize])
        .copied()
        .collect()
}

/// The mean row; zero of none.
fn mean(nodes: &[u32]) -> Vec<f64> {
    let mut mean = vec![0.0; WIDTH];
    for &u in nodes {
        for (sum, value) in mean.iter_mut().zip(row(u)) {
            *sum += value / nodes.len() as f64;
        }
    }
    mean
}

fn scaled(factor: f64, row: &[f64]) -> Vec<f64> {
    row.iter().map(|value| factor * value).collect()
}

fn assert_close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len());
    for (f, e) in found.iter().zip(expected) {
        assert!(
            (f - e).abs() <= tolerance,
            "{what}: {found:?} and not {expected:?}"
        );
    }
}

fn differ(a: &[f64], b: &[f64]) -> bool {
    a.iter().zip(b).any(|(a, b)| (a - b).abs() > 1e-3)
}

fn with_neighbours(graph: &Csr) -> impl Iterator<Item = usize> + '_ {
    (0..graph.nodes()).filter(|&v| graph.degree(v) > 0)
}

// The numbers above tests are those of the properties in section 6 of Grappa's specification, which
// `§` in other comments means, too.

// 1.
#[test]
fn inclusion_probabilities_are_the_shares_of_outcomes() {
    let graph = graph();
    for design in all_designs() {
        for v in 0..7 {
            for u in (0..7).filter(|&u| u as usize != v) {
                let share = design.chance(v, |sees| sees[u as usize]);
                assert_close(&[design.pair(v, u)], &[share], 1e-12, design.name);
            }
            // Sets of other units, by bits.
            for set in 0..1_u32 << 7 {
                let units: Vec<u32> = (0..7)
                    .filter(|u| set >> u & 1 == 1 && design.unit.contains(u))
                    .collect();
                if units.contains(&design.unit[v]) {
                    continue;
                }
                let sees_unit = |sees: &[bool], unit| {
                    design
                        .unit
                        .iter()
                        .zip(sees)
                        .any(|(&u, &seen)| u == unit && seen)
                };
                let all = design.chance(v, |sees| units.iter().all(|&unit| sees_unit(sees, unit)));
                let none =
                    design.chance(v, |sees| !units.iter().any(|&unit| sees_unit(sees, unit)));
                assert_close(
                    &[design.inclusion.joint(units.len())],
                    &[all],
                    1e-12,
                    design.name,
                );
                assert_close(
                    &[design.inclusion.none_of(units.len())],
                    &[none],
                    1e-12,
                    design.name,
                );
            }
        }
        let empty = empty_probability(&graph, &design.unit, design.inclusion);
        for v in with_neighbours(&graph) {
            let share = design.chance(v, |sees| seen(&graph, v, sees).is_empty());
            assert_close(&[empty[v]], &[share], 1e-12, design.name);
        }
    }
}

#[test]
fn expected_coverage_is_the_mean_of_the_coverage_over_outcomes() {
    let graph = graph();
    let degrees: Vec<usize> = (0..7).map(|v| graph.degree(v)).collect();
    for design in all_designs() {
        for hops in 0..=3 {
            let expected = expected_coverage(&graph, &design.unit, design.inclusion, hops);
            for (v, expected) in expected.iter().enumerate() {
                let found = design.expectation(v, 1, |sees| {
                    let here = |u: u32| sees[u as usize];
                    let edges = graph.iter_edges().filter(|&(a, b)| here(a) && here(b));
                    vec![coverage(&Csr::from_edges(7, edges), &degrees, hops)[v]]
                });
                assert_close(&[*expected], &found, 1e-12, design.name);
            }
        }
    }
}

// 2.
#[test]
fn edge_weights_are_unbiased_for_every_design() {
    let graph = graph();
    for design in all_designs() {
        for v in with_neighbours(&graph) {
            let d = graph.degree(v) as f64;
            let found = design.expectation(v, WIDTH, |sees| {
                let mut sum = vec![0.0; WIDTH];
                for u in seen(&graph, v, sees) {
                    for (sum, value) in sum.iter_mut().zip(row(u)) {
                        *sum += edge_ht(design.pair(v, u)) * value / d;
                    }
                }
                sum
            });
            assert_close(&found, &mean(graph.neighbours(v)), 1e-12, design.name);
        }
    }
}

/// The expectation of `c/ρ` times the local mean.
fn node_weighted(design: &Design, graph: &Csr, v: usize) -> Vec<f64> {
    let rho = expected_coverage(graph, &design.unit, design.inclusion, 1)[v];
    design.expectation(v, WIDTH, |sees| {
        let local = seen(graph, v, sees);
        let c = local.len() as f64 / graph.degree(v) as f64;
        scaled(over_expectation(c, rho), &mean(&local))
    })
}

// 3.
#[test]
fn node_weights_are_unbiased_where_all_neighbours_are_seen_equally_often() {
    let graph = graph();
    for design in node_designs() {
        for v in with_neighbours(&graph) {
            let found = node_weighted(&design, &graph, v);
            assert_close(&found, &mean(graph.neighbours(v)), 1e-12, design.name);
        }
    }
}

#[test]
fn node_weights_go_to_the_inclusion_weighted_mean_where_they_are_not() {
    let graph = graph();
    for design in chunk_designs() {
        let mut wrong = 0;
        for v in with_neighbours(&graph) {
            let neighbours = graph.neighbours(v);
            let total: f64 = neighbours.iter().map(|&u| design.pair(v, u)).sum();
            let limit: Vec<f64> = (0..WIDTH)
                .map(|i| {
                    neighbours
                        .iter()
                        .map(|&u| design.pair(v, u) * row(u)[i])
                        .sum::<f64>()
                        / total
                })
                .collect();
            assert_close(
                &node_weighted(&design, &graph, v),
                &limit,
                1e-12,
                design.name,
            );
            wrong += usize::from(differ(&limit, &mean(neighbours)));
        }
        assert!(
            wrong >= 2,
            "{}: nodes with neighbours in their own chunk are biased",
            design.name
        );
    }
}

// 4.
#[test]
fn the_local_mean_is_unbiased_given_that_it_is_not_of_nothing() {
    let graph = graph();
    for design in node_designs() {
        let empty = empty_probability(&graph, &design.unit, design.inclusion);
        for v in with_neighbours(&graph) {
            let found = design.expectation(v, WIDTH, |sees| {
                let local = seen(&graph, v, sees);
                scaled(
                    over_expectation(node_hajek(local.len(), graph.degree(v)), 1.0 - empty[v]),
                    &mean(&local),
                )
            });
            // A worker that never sees a neighbour has nothing to be unbiased about.
            if empty[v] < 1.0 {
                assert_close(&found, &mean(graph.neighbours(v)), 1e-12, design.name);
            }
        }
    }
}

// 11.
#[test]
fn a_cycle_of_the_sweep_pairs_every_chunk_with_every_other_once() {
    for workers in 2..9 {
        let mut met: Vec<(usize, usize)> = (0..workers - 1)
            .flat_map(|super_epoch| {
                (0..workers).map(move |w| (w, variable_chunk(w, workers, 1, super_epoch).unwrap()))
            })
            .collect();
        met.sort_unstable();
        let pairs: Vec<(usize, usize)> = (0..workers)
            .flat_map(|a| (0..workers).filter(move |&b| b != a).map(move |b| (a, b)))
            .collect();
        assert_eq!(met, pairs);
    }
}

// 15.
#[test]
fn a_node_alone_is_covered_and_gives_no_nan() {
    let graph = graph();
    for design in all_designs() {
        for hops in 0..=3 {
            for values in [
                expected_coverage(&graph, &design.unit, design.inclusion, hops),
                expected_coverage_by_hop(&graph, &design.unit, design.inclusion, hops),
                coverage(
                    &graph,
                    &(0..7).map(|v| graph.degree(v)).collect::<Vec<_>>(),
                    hops,
                ),
            ] {
                assert_eq!(values[6], 1.0);
                assert!(values.iter().all(|value| value.is_finite()));
            }
        }
        assert_eq!(
            empty_probability(&graph, &design.unit, design.inclusion)[6],
            0.0
        );
    }
}
