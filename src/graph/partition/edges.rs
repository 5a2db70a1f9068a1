//! Edge partitioners: edges come one after another and are dealt to workers, so that few nodes
//! have edges at several of them. A stored edge is dealt by itself, each direction once.
//!
//! ```text
//! random   uniformly
//! libra    where its ends are already; the end of fewer neighbours decides, the least load among
//!          several workers (DistGNN's `libra_partition.cc`, which is named after the hash of Xie,
//!          Yan, Li and Zhang, NeurIPS 2014)
//! hdrf     where its ends are already, the end of fewer neighbours above all, and where there is
//!          room (Petroni, Querzoni, Daudjee, Kamali and Iacoboni, CIKM 2015)
//! ```

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use serde::Deserialize;

use crate::graph::Csr;

/// How edges are dealt to workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeMethod {
    /// In stored order. Of workers with both ends, else of those with the end of lower degree, or
    /// with the one end that has been seen, else of all, one that has least edges.
    #[default]
    Libra,
    /// In random order, to the highest score (Petroni et al., equations 6 to 9, λ = ε = 1).
    Hdrf,
    /// Uniformly.
    Random,
}

/// The worker of each stored edge, in the order of [`Csr::iter_edges`]. O(edges · workers).
pub(super) fn deal(
    graph: &Csr,
    workers: usize,
    method: EdgeMethod,
    random: &mut impl Rng,
) -> Vec<u32> {
    let edges: Vec<(u32, u32)> = graph.iter_edges().collect();
    let mut order: Vec<usize> = (0..edges.len()).collect();
    if method == EdgeMethod::Hdrf {
        // In stored order an edge always has an end in common with the one before, and all of
        // them would go where the first went (section 4 of the paper).
        order.shuffle(random);
    }
    let mut dealt = Dealt {
        loads: vec![0; workers],
        places: vec![Vec::new(); graph.nodes()],
    };
    let mut seen = vec![0_usize; graph.nodes()];
    let mut assignment = vec![0; edges.len()];
    for place in order {
        let ends = <[u32; 2]>::from(edges[place]).map(|node| node as usize);
        let best = match method {
            EdgeMethod::Random => (0_u32..).take(workers).collect(),
            EdgeMethod::Libra => dealt.libra(ends, ends.map(|node| graph.degree(node))),
            EdgeMethod::Hdrf => {
                for node in ends {
                    seen[node] += 1;
                }
                dealt.hdrf(ends, ends.map(|node| seen[node]))
            }
        };
        let worker = best[random.random_range(0..best.len())];
        dealt.put(ends, worker);
        assignment[place] = worker;
    }
    assignment
}

/// Edges that have been dealt.
struct Dealt {
    /// How many each worker has.
    loads: Vec<usize>,
    /// The workers that have an edge of each node.
    places: Vec<Vec<u32>>,
}

impl Dealt {
    fn put(&mut self, ends: [usize; 2], worker: u32) {
        self.loads[worker as usize] += 1;
        for node in ends {
            if !self.places[node].contains(&worker) {
                self.places[node].push(worker);
            }
        }
    }

    /// Of some workers those that have least edges.
    fn least(&self, workers: impl Iterator<Item = u32> + Clone) -> Vec<u32> {
        let load = |&worker: &u32| self.loads[worker as usize];
        let least = workers.clone().map(|worker| load(&worker)).min();
        workers
            .filter(|worker| Some(load(worker)) == least)
            .collect()
    }

    fn libra(&self, ends: [usize; 2], degrees: [usize; 2]) -> Vec<u32> {
        let [one, other] = ends.map(|node| &self.places[node]);
        let both = one.iter().copied().filter(|worker| other.contains(worker));
        if both.clone().next().is_some() {
            return self.least(both);
        }
        if one.is_empty() && other.is_empty() {
            return self.least((0_u32..).take(self.loads.len()));
        }
        let first = other.is_empty() || !one.is_empty() && degrees[0] < degrees[1];
        self.least(if first { one } else { other }.iter().copied())
    }

    fn hdrf(&self, ends: [usize; 2], seen: [usize; 2]) -> Vec<u32> {
        let most = self.loads.iter().max().copied().unwrap_or(0);
        let least = self.loads.iter().min().copied().unwrap_or(0);
        let scores = (0_u32..).zip(&self.loads).map(|(worker, &load)| {
            let there = ends.map(|node| self.places[node].contains(&worker));
            (score(there, seen, [load, least, most]), worker)
        });
        let scores: Vec<(f64, u32)> = scores.collect();
        let best = scores.iter().map(|(score, _)| *score);
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let best = scores.into_iter().filter(|(score, _)| *score >= best);
        best.map(|(_, worker)| worker).collect()
    }
}

/// What speaks for a worker with `load` edges, where the least has `least` and the most `most`
/// (Petroni et al., equations 6 to 9, with λ = ε = 1): for each end that is there
/// `1 + (1 − θ)`, with its share θ of the edges of both ends seen so far, and
/// `(most − load)/(1 + most − least)`.
fn score(there: [bool; 2], seen: [usize; 2], [load, least, most]: [usize; 3]) -> f64 {
    let all = (seen[0] + seen[1]) as f64;
    let of = |end: usize| {
        if there[end] {
            2.0 - seen[end] as f64 / all
        } else {
            0.0
        }
    };
    of(0) + of(1) + (most - load) as f64 / (1 + most - least) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    fn dealt(loads: &[usize], places: [&[u32]; 2]) -> Dealt {
        Dealt {
            loads: loads.to_vec(),
            places: places.map(<[u32]>::to_vec).to_vec(),
        }
    }

    #[test]
    fn libra_follows_its_rules() {
        let best = |loads: &[usize], places, degrees| {
            let mut best = dealt(loads, places).libra([0, 1], degrees);
            best.sort_unstable();
            best
        };
        // New ends: the least load; several of it.
        assert_eq!(best(&[3, 1, 1], [&[], &[]], [1, 1]), [1, 2]);
        // One end is known: the least load among its workers.
        assert_eq!(best(&[3, 5, 0], [&[0, 1], &[]], [1, 9]), [0]);
        assert_eq!(best(&[3, 5, 0], [&[], &[1]], [1, 9]), [1]);
        // A worker in common wins over an empty one.
        assert_eq!(best(&[9, 5, 0], [&[0, 1], &[2, 0]], [1, 9]), [0]);
        // None in common: the end of higher degree is split; of equal ones the first.
        assert_eq!(best(&[9, 5, 0], [&[0], &[1, 2]], [2, 3]), [0]);
        assert_eq!(best(&[9, 5, 0], [&[0], &[1, 2]], [3, 2]), [2]);
        assert_eq!(best(&[9, 5, 0], [&[0], &[1, 2]], [3, 3]), [2]);
    }

    #[test]
    fn hdrf_scores_as_by_hand() {
        // Ends seen three times and once: θ = 3/4 and 1/4; loads of 4 between 2 and 6.
        let of = |there| score(there, [3, 1], [4, 2, 6]);
        assert!((of([false, false]) - 0.4).abs() < 1e-12);
        assert!((of([true, false]) - 1.65).abs() < 1e-12);
        assert!((of([false, true]) - 2.15).abs() < 1e-12);
        assert!((of([true, true]) - 3.4).abs() < 1e-12);
        // The end that is seen more often is split, where nothing else speaks for a worker.
        let here = dealt(&[4, 4], [&[0], &[1]]);
        assert_eq!(here.hdrf([0, 1], [3, 1]), [1]);
        assert_eq!(here.hdrf([0, 1], [2, 2]), [0, 1]);
    }

    #[test]
    fn edges_are_shared_out_and_the_stream_decides() {
        let graph = crate::graph::cora().unwrap().graph;
        for method in [EdgeMethod::Libra, EdgeMethod::Hdrf, EdgeMethod::Random] {
            let of = |seed| {
                deal(
                    &graph,
                    4,
                    method,
                    &mut stream(seed, Purpose::Partition, 1, 0),
                )
            };
            let found = of(1);
            assert_eq!((found.len(), &found), (graph.edges(), &of(1)));
            assert_ne!(found, of(2), "{method:?}");
            for worker in 0..4 {
                let load = found.iter().filter(|&&one| one == worker).count();
                let share = load as f64 * 4.0 / graph.edges() as f64;
                assert!((0.9..1.1).contains(&share), "{method:?}: {share}");
            }
        }
    }
}
