//! Clients that differ in their classes: the nodes of each class are shared out by a draw of its
//! own from a symmetric Dirichlet distribution, as the code of `FedGCN` and `FedGraph` does (Yao
//! and others, `NeurIPS` 2023, `label_dirichlet_partition`).
//!
//! ```text
//! concentration → 0    each class has one worker
//!               = 1    all ways to share a class out are equally likely
//!               → ∞    each class is shared out equally
//! ```
//!
//! Classes come one after another, and a worker that already has as many nodes as an equal share
//! gets none of the next. The authors set such a worker's proportion to 0 and divide by what is
//! left; proportions of the others are then a draw from their own Dirichlet distribution, and here
//! they are drawn as one.

use rand::Rng;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, Gamma, Open01};

use crate::graph::{GraphError, Labels};

/// Concentrations that a draw can tell from 0 and from infinity.
pub(super) const CONCENTRATIONS: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// The authors draw again until every worker has so many nodes.
const LEAST: usize = 10;
/// The authors draw without end.
const DRAWS: usize = 1000;

/// Shares out the nodes of each class. Every worker has 10 nodes with a class at least, a tenth of
/// an equal share where that is less, and 1 where that is none. Nodes without a class are shared
/// out equally and at random, as `FedGraph` does. O(nodes), and O(classes · workers) a draw.
///
/// # Errors
/// If no node has one class, or workers are left with too little in each of many draws.
pub(super) fn partition(
    labels: &Labels,
    workers: usize,
    concentration: f64,
    random: &mut impl Rng,
) -> Result<Vec<u32>, GraphError> {
    let (mut classes, mut unknown) = (Vec::<Vec<u32>>::new(), Vec::new());
    for (node, class) in (0_u32..).zip(labels.classes()) {
        let Some(class) = class.map(|class| class as usize) else {
            unknown.push(node);
            continue;
        };
        classes.resize(classes.len().max(class + 1), Vec::new());
        classes[class].push(node);
    }
    classes.retain(|nodes| !nodes.is_empty());
    let nodes: usize = classes.iter().map(Vec::len).sum();
    if nodes == 0 {
        let what = "\"dirichlet\" shares out the nodes of each class, and here no node has one class: take \"random\"";
        return Err(GraphError::key("partition.method", what));
    }
    let least = (nodes / (10 * workers)).clamp(1, LEAST);
    let counts: Vec<usize> = classes.iter().map(Vec::len).collect();
    let drawn = (0..DRAWS)
        .map(|_| shares(&counts, workers, concentration, random))
        .find(|shares| (0..workers).all(|w| shares.iter().map(|of| of[w]).sum::<usize>() >= least));
    let Some(shares) = drawn else {
        let what = format!(
            "leaves a worker of {workers} with fewer than {least} of {nodes} nodes in each of {DRAWS} draws, at \
             {concentration}: raise it, or take fewer workers"
        );
        return Err(GraphError::key("partition.concentration", what));
    };
    let equal =
        (1..=workers).map(|w| w * unknown.len() / workers - (w - 1) * unknown.len() / workers);
    let equal: Vec<usize> = equal.collect();
    let mut assignment = vec![0; labels.len()];
    for (of, mut nodes) in shares
        .into_iter()
        .chain([equal])
        .zip(classes.into_iter().chain([unknown]))
    {
        nodes.shuffle(random);
        let owners = (0_u32..)
            .zip(of)
            .flat_map(|(w, count)| std::iter::repeat_n(w, count));
        for (node, worker) in nodes.into_iter().zip(owners) {
            assignment[node as usize] = worker;
        }
    }
    Ok(assignment)
}

/// How many nodes of each class each worker gets, `[class][worker]`.
fn shares(
    counts: &[usize],
    workers: usize,
    concentration: f64,
    random: &mut impl Rng,
) -> Vec<Vec<usize>> {
    let nodes: usize = counts.iter().sum();
    let mut held = vec![0; workers];
    let class = |&count: &usize| {
        // Somebody has less than an equal share as long as there is a class to share out.
        let open = held.iter().map(|&held| held * workers < nodes);
        let weights = weights(open, concentration, random);
        let total: f64 = weights.iter().sum();
        let (mut upto, mut dealt) = (0.0, 0);
        let of = weights.iter().map(|weight| {
            upto += weight;
            // The sum is taken as the total is: the last that may have nodes gets what is left.
            let before = std::mem::replace(&mut dealt, (upto / total * count as f64) as usize);
            dealt - before
        });
        let of: Vec<usize> = of.collect();
        held.iter_mut()
            .zip(&of)
            .for_each(|(held, more)| *held += more);
        of
    };
    counts.iter().map(class).collect()
}

/// Proportions of a draw from a symmetric Dirichlet distribution over those that are open; 0 for
/// others. The largest is 1.
///
/// Variables of a Gamma distribution over their sum are such a draw. One of shape a is one of shape
/// a + 1 times `U^(1/a)` (Marsaglia and Tsang, 2000): below shape 0.001 most are less than any
/// number but 0, and their logarithms are not.
fn weights(
    open: impl Iterator<Item = bool>,
    concentration: f64,
    random: &mut impl Rng,
) -> Vec<f64> {
    // Shape and scale are positive and finite.
    let Ok(gamma) = Gamma::new(concentration + 1.0, 1.0) else {
        return Vec::new();
    };
    let mut logarithm = || {
        let uniform: f64 = Open01.sample(random);
        gamma.sample(random).ln() + uniform.ln() / concentration
    };
    let draws = open.map(|open| if open { logarithm() } else { f64::NEG_INFINITY });
    let draws: Vec<f64> = draws.collect();
    let largest = draws.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    draws.iter().map(|draw| (draw - largest).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Several;
    use crate::rng::{Purpose, stream};
    use proptest::prelude::*;

    fn divide(
        labels: &Labels,
        workers: usize,
        concentration: f64,
        seed: u64,
    ) -> Result<Vec<u32>, String> {
        let mut random = stream(seed, Purpose::Partition, 0, 0);
        partition(labels, workers, concentration, &mut random).map_err(|error| error.to_string())
    }

    /// How many nodes of each class each worker has, `[class][worker]`.
    fn counted(labels: &Labels, assignment: &[u32], workers: usize) -> Vec<Vec<f64>> {
        let mut counts = vec![vec![0.0; workers]; 16];
        for (class, &worker) in labels.classes().iter().zip(assignment) {
            if let Some(class) = class {
                counts[*class as usize][worker as usize] += 1.0;
            }
        }
        counts.retain(|of| of.iter().sum::<f64>() > 0.0);
        counts
    }

    #[test]
    fn proportions_have_the_moments_of_their_distribution() {
        let mut random = stream(3, Purpose::Study, 0, 0);
        for concentration in [1e-9, 0.02, 0.5, 1.0, 30.0] {
            let (mut squares, mut first) = (0.0, 0.0);
            for _ in 0..4000 {
                let open = [true, true, false, true, true, true];
                let weights = weights(open.into_iter(), concentration, &mut random);
                assert_eq!(weights[2], 0.0);
                let total: f64 = weights.iter().sum();
                squares += weights.iter().map(|w| (w / total).powi(2)).sum::<f64>() / 4000.0;
                first += weights[0] / total / 4000.0;
            }
            // E Σp² of five proportions.
            let expected = (concentration + 1.0) / (5.0 * concentration + 1.0);
            assert!(
                (squares / expected - 1.0).abs() < 0.02,
                "{concentration}: {squares}"
            );
            assert!((first - 0.2).abs() < 0.025, "{concentration}: {first}");
        }
    }

    #[test]
    fn clients_of_cora_are_as_skewed_as_those_of_the_authors_procedure() {
        let labels = crate::graph::cora().unwrap().labels;
        // Means of 20,000 draws in NumPy (4,000 at 0.1), step by step as in the authors' code: the
        // sum of squares of workers' shares of all nodes; that of classes' shares of a worker, mean
        // over workers; that of workers' shares of a class, mean over classes.
        for (workers, concentration, expected) in [
            (10, 1.0, [0.106_44, 0.304_07, 0.216_61]),
            (10, 0.1, [0.144_83, 0.674_23, 0.597_72]),
            (5, 0.5, [0.217_07, 0.356_96, 0.494_67]),
            (10, 100.0, [0.100_12, 0.181_02, 0.101_82]),
        ] {
            let mut found = [0.0; 3];
            for seed in 0..400 {
                let assignment = divide(&labels, workers, concentration, seed).unwrap();
                let counts = counted(&labels, &assignment, workers);
                let size = |w: usize| counts.iter().map(|of| of[w]).sum::<f64>();
                let (total, classes) = (labels.len() as f64, counts.len() as f64);
                for w in 0..workers {
                    found[0] += (size(w) / total).powi(2) / 400.0;
                    for of in &counts {
                        found[1] += (of[w] / size(w)).powi(2) / workers as f64 / 400.0;
                        let class: f64 = of.iter().sum();
                        found[2] += (of[w] / class).powi(2) / classes / 400.0;
                    }
                }
            }
            for (found, expected) in found.into_iter().zip(expected) {
                // Four standard errors of the mean of 400.
                let close = (found / expected - 1.0).abs() < 0.03;
                assert!(close, "{workers} at {concentration}: {found} {expected}");
            }
        }
    }

    #[test]
    fn what_cannot_be_shared_out_is_refused() {
        let two: Labels = (0..100).map(|v| Some(v % 2)).collect::<Vec<_>>().into();
        let error = divide(&two, 3, 1e-9, 0).unwrap_err();
        assert_eq!(
            error,
            "partition.concentration: leaves a worker of 3 with fewer than 3 of 100 nodes in each of 1000 draws, at \
             0.000000001: raise it, or take fewer workers"
        );
        let mut several = Several::new(2);
        several.push(Some(&[true, true]));
        for labels in [several.into(), Labels::from(vec![None, None])] {
            let error = divide(&labels, 1, 1.0, 0).unwrap_err();
            assert!(
                error.starts_with("partition.method: \"dirichlet\" shares out"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_node_has_a_worker_and_skew_goes_from_equal_shares_to_one_worker_a_class(
            sizes in prop::collection::vec(120_usize..400, 2..5),
            unknown in 0_usize..50,
            workers in 2_usize..5,
            concentration in -2.0_f64..3.0,
            seed in any::<u64>(),
        ) {
            let classes = sizes.iter().zip(3..).flat_map(|(&n, class)| vec![Some(class); n]);
            let mut classes: Vec<Option<u32>> = classes.chain(vec![None; unknown]).collect();
            classes.shuffle(&mut stream(seed, Purpose::Study, 0, 0));
            let labels = Labels::from(classes.clone());
            let of = |concentration| divide(&labels, workers, concentration, seed);

            let concentration = 10_f64.powf(concentration);
            if let Ok(some) = of(concentration) {
                prop_assert_eq!(some.len(), labels.len());
                let counts = counted(&labels, &some, workers);
                let held = |w| counts.iter().map(|of| of[w]).sum::<f64>();
                prop_assert!((0..workers).all(|w| held(w) >= 6.0));
                prop_assert_eq!(&some, &of(concentration).unwrap());
                let rest = (0..workers as u32).map(|w| {
                    classes.iter().zip(&some).filter(|&(class, &at)| class.is_none() && at == w).count()
                });
                let rest: Vec<usize> = rest.collect();
                prop_assert_eq!(rest.iter().sum::<usize>(), unknown);
                prop_assert!(rest.iter().all(|&n| n.abs_diff(unknown / workers) <= 1));
            }

            for of in counted(&labels, &of(1e9).unwrap(), workers) {
                let equal = of.iter().sum::<f64>() / workers as f64;
                prop_assert!(of.iter().all(|n| (n - equal).abs() < 1.5), "{:?}", of);
            }
            if workers <= sizes.len() {
                for of in counted(&labels, &of(1e-9).unwrap(), workers) {
                    prop_assert_eq!(of.iter().filter(|&&n| n > 0.0).count(), 1, "{:?}", of);
                }
            } else {
                prop_assert!(of(1e-9).is_err());
            }
        }
    }
}
