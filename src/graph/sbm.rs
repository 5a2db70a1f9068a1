//! Stochastic block model (Holland, Laskey and Leinhardt, 1983) with one block per class and
//! Gaussian class features.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::normal::{standard_normal, unit_vector};
use super::{Csr, Features, GraphError, RawDataset};
use crate::rng::{Purpose, stream};

/// Generates graph, features `[nodes, width]` and labels.
///
/// Blocks differ by at most one node. A pair in one block is an edge with the probability that
/// gives each node `within` expected neighbours there, a pair in two blocks with the one that gives
/// `between` neighbours elsewhere. Features are the mean of the class, a random direction of length
/// 1, plus normal noise of standard deviation `noise` per column. Node numbers say nothing about
/// classes. O(nodes + edges + classes²): pairs that are no edge are skipped, not visited (Batagelj
/// and Brandes, 2005).
pub(super) fn generate(
    nodes: usize,
    classes: usize,
    width: usize,
    [within, between]: [f64; 2],
    noise: f64,
    seed: u64,
) -> Result<RawDataset, GraphError> {
    let block = nodes as f64 / classes as f64;
    let probability = |key, degree: f64, others: f64| {
        if degree >= 0.0 && degree <= others.max(0.0) {
            // Where there are no others, 0 of them is no neighbour, and not 0/0.
            Ok(if degree == 0.0 { 0.0 } else { degree / others })
        } else {
            Err(GraphError::synthetic(
                key,
                format!("{degree} is not between 0 and the {others:.1} nodes there are"),
            ))
        }
    };
    let inside = probability("degree_within", within, block - 1.0)?;
    let across = probability("degree_between", between, nodes as f64 - block)?;
    // `synthetic` has checked that node numbers fit.
    let mut order: Vec<u32> = (0_u32..).take(nodes).collect();
    let mut random = stream(seed, Purpose::Graph, 0, 0);
    order.shuffle(&mut random);
    let start = |class: usize| class * nodes / classes;
    let mut edges = Vec::new();
    for a in 0..classes {
        let rows = &order[start(a)..start(a + 1)];
        // A block has a node: `synthetic` has checked that there are no more classes than nodes.
        let pairs = (rows.len() as u64) * (rows.len() as u64 - 1) / 2;
        skip(pairs, inside, &mut random, |pair| {
            let (high, low) = triangle(pair);
            edges.push((rows[high], rows[low]));
        });
        // Each pair of blocks once, as edges have no direction.
        for b in a + 1..classes {
            let columns = &order[start(b)..start(b + 1)];
            let wide = columns.len() as u64;
            skip(rows.len() as u64 * wide, across, &mut random, |pair| {
                edges.push((rows[to_index(pair / wide)], columns[to_index(pair % wide)]));
            });
        }
    }

    let mut labels = vec![None; nodes];
    let mut values = vec![0.0; nodes * width];
    for (class, number) in (0..classes).zip(0_u32..) {
        let mut random = stream(seed, Purpose::Features, 0, u64::from(number));
        let mean = unit_vector(width, &mut random);
        for &node in &order[start(class)..start(class + 1)] {
            labels[node as usize] = Some(number);
            let row = &mut values[node as usize * width..][..width];
            for (value, mean) in row.iter_mut().zip(&mean) {
                let value_f32 = (mean + noise * standard_normal(&mut random)) as f32;
                *value = value_f32;
            }
        }
    }
    let graph = Csr::undirected(nodes, edges.iter().copied());
    let features = Features::Dense { width, values };
    Ok(RawDataset::new(
        format!("sbm-{nodes}"),
        graph,
        features,
        labels,
        classes,
        vec![],
    ))
}

/// Calls `each` with every number below `count` that a coin of this probability chooses, by drawing
/// how many it skips.
fn skip(count: u64, probability: f64, random: &mut impl rand::Rng, mut each: impl FnMut(u64)) {
    if probability >= 1.0 {
        (0..count).for_each(each);
        return;
    }
    if probability <= 0.0 {
        return;
    }
    let scale = (-probability).ln_1p();
    let mut next = 0_u64;
    loop {
        // 1 − u lies in (0, 1]. A skip beyond the range of u64 saturates, which ends the loop.
        let skipped = ((1.0 - random.random::<f64>()).ln() / scale).floor();
        let chosen = next.saturating_add(skipped as u64);
        if chosen >= count {
            return;
        }
        each(chosen);
        next = chosen + 1;
    }
}

/// Pair number k of the pairs (1, 0), (2, 0), (2, 1), (3, 0), …
fn triangle(k: u64) -> (usize, usize) {
    // The larger i with i (i − 1) / 2 ≤ k.
    let high = (8 * k + 1).isqrt().div_ceil(2);
    (to_index(high), to_index(k - high * (high - 1) / 2))
}

/// An index into a block: below the number of nodes, which fits.
const fn to_index(value: u64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy(nodes: usize, degrees: [f64; 2], seed: u64) -> RawDataset {
        generate(nodes, 4, 8, degrees, 0.5, seed).unwrap()
    }

    #[test]
    fn pairs_are_numbered_without_gap() {
        let pairs: Vec<_> = (0..6).map(triangle).collect();
        assert_eq!(pairs, [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]);
        assert_eq!(triangle(499_999_500_000), (1_000_000, 0));
    }

    #[test]
    fn degrees_are_as_expected_within_and_between_blocks() {
        let data = toy(4000, [6.0, 2.0], 1);
        let same = |&(a, b): &(u32, u32)| data.labels.of(a as usize) == data.labels.of(b as usize);
        let within = data.graph.iter_edges().filter(same).count() as f64 / 4000.0;
        let between = data.graph.edges() as f64 / 4000.0 - within;
        // Standard deviations of these means are about 0.05 and 0.03.
        assert!(
            (within - 6.0).abs() < 0.25 && (between - 2.0).abs() < 0.15,
            "{within} {between}"
        );
    }

    #[test]
    fn features_scatter_around_a_mean_of_length_one() {
        let data = toy(4000, [1.0, 1.0], 2);
        let mut sums = vec![vec![0.0; 8]; 4];
        let mut row = vec![0.0; 8];
        for (node, label) in data.labels.classes().iter().enumerate() {
            data.features.copy_row_into(node, &mut row);
            for (sum, value) in sums[label.unwrap() as usize].iter_mut().zip(&row) {
                *sum += f64::from(*value) / 1000.0;
            }
        }
        for mean in sums {
            let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((length - 1.0).abs() < 0.1, "{length}");
        }
    }

    #[test]
    fn the_seed_decides_and_node_numbers_do_not_give_the_class_away() {
        let (one, again, other) = (
            toy(60, [3.0, 1.0], 1),
            toy(60, [3.0, 1.0], 1),
            toy(60, [3.0, 1.0], 2),
        );
        assert_eq!((&one.graph, &one.features), (&again.graph, &again.features));
        assert_ne!(one.graph, other.graph);
        assert!(!one.labels.classes().is_sorted());
        for class in 0..4 {
            assert_eq!(
                one.labels
                    .classes()
                    .iter()
                    .filter(|&&label| label == Some(class))
                    .count(),
                15
            );
        }
    }

    #[test]
    fn all_pairs_and_no_pairs_are_possible() {
        assert_eq!(toy(20, [4.0, 15.0], 1).graph.edges(), 20 * 19);
        assert_eq!(toy(20, [0.0, 0.0], 1).graph.edges(), 0);
        let error = generate(20, 4, 8, [5.0, 1.0], 1.0, 0)
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "dataset.synthetic: degree_within: 5 is not between 0 and the 4.0 nodes there are"
        );
    }
}
