//! What sampling promises, by itself.

use crate::graph::{Csr, Lists, SampledLayer};
use crate::model::{Aggregation, Block};

/// The weights of a block, row by row.
fn weights(block: &Block) -> Vec<f64> {
    block.dense().concat().into_iter().map(f64::from).collect()
}

/// All sets of `size` of these.
fn subsets(of: &[u32], size: usize) -> Vec<Vec<u32>> {
    (0_u32..1 << of.len())
        .filter(|set| set.count_ones() as usize == size)
        .map(|set| {
            let chosen = (0..of.len()).filter(|at| set & (1 << at) != 0);
            chosen.map(|at| of[at]).collect()
        })
        .collect()
}

#[test]
fn the_mean_over_all_samples_of_an_aggregation_is_that_over_all_neighbours() {
    let edges = [(0, 1), (0, 2), (0, 3), (1, 2), (3, 4)];
    let graph = Csr::undirected(5, edges.into_iter());
    let degrees: Vec<usize> = (0..5).map(|v| graph.degree(v)).collect();
    for aggregation in [
        Aggregation::Mean,
        Aggregation::MeanWithSelf,
        Aggregation::SymmetricWithSelf,
        Aggregation::NeighboursAndSelf,
    ] {
        let expected = weights(&Block::new(&graph, &degrees, aggregation));
        for fanout in 1..4 {
            let choices: Vec<Vec<Vec<u32>>> = (0..5)
                .map(|v| subsets(graph.neighbours(v), fanout.min(degrees[v])))
                .collect();
            let samples: usize = choices.iter().map(Vec::len).product();
            let mut mean = vec![0.0; expected.len()];
            for sample in 0..samples {
                let mut rest = sample;
                let drawn: Lists = choices
                    .iter()
                    .map(|sets| {
                        let set = sets[rest % sets.len()].clone();
                        rest /= sets.len();
                        set
                    })
                    .collect();
                let layer = SampledLayer::of((0..5).collect(), &drawn, degrees.clone(), 5, 5);
                let block = Block::sampled(&layer, &degrees, aggregation);
                for (mean, value) in mean.iter_mut().zip(weights(&block)) {
                    *mean += value / samples as f64;
                }
            }
            for (mean, expected) in mean.iter().zip(&expected) {
                assert!((mean - expected).abs() < 1e-6, "{aggregation:?}, {fanout}");
            }
        }
    }
}
