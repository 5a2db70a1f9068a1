//! The study against finite differences, exact sums and the cases where nothing is missing.

use super::*;
use crate::strategies::grappa::estimators::{Normalise, Shrinkage};
use rand::RngExt;

const FEATURES: usize = 3;
const CLASSES: usize = 3;

/// Eight nodes, one of them alone, features and labels at random.
fn problem(loss: Loss, self_loop: bool) -> Problem {
    let edges = [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 4),
        (1, 2),
        (3, 4),
        (4, 5),
        (5, 6),
        (2, 6),
    ];
    let mut random = stream(5, Purpose::Study, 0, 0);
    Problem {
        graph: Csr::undirected(8, edges.into_iter()),
        features: (0..8 * FEATURES)
            .map(|_| 2.0 * random.random::<f64>() - 1.0)
            .collect(),
        labels: (0..8).map(|v| v % CLASSES as u32).collect(),
        train: vec![0, 1, 2, 4, 5, 7],
        self_loop,
        toy: Toy::new([FEATURES, 4, CLASSES], loss, &mut random),
    }
}

fn problems() -> impl Iterator<Item = Problem> {
    [Loss::CrossEntropy, Loss::Squared]
        .into_iter()
        .flat_map(|loss| [false, true].map(|self_loop| problem(loss, self_loop)))
}

/// Every combination of options that goes together.
fn all_estimators() -> Vec<Estimator> {
    let mut estimators = Vec::new();
    for weight in [
        Weight::None,
        Weight::NodeHt,
        Weight::NodeHajek,
        Weight::BatchMean,
        Weight::BatchGram,
        Weight::EdgeHt,
    ] {
        for shrinkage in [
            Shrinkage::None,
            Shrinkage::Kappa,
            Shrinkage::Authors,
            Shrinkage::Lambda,
            Shrinkage::JamesStein,
        ] {
            for normalise in [Normalise::None, Normalise::Rho, Normalise::Mean] {
                for coverage_hops in 1..=LAYERS {
                    let estimator = Estimator {
                        weight,
                        shrinkage,
                        normalise,
                        coverage_hops,
                        ..Estimator::default()
                    };
                    if estimator.check().is_ok() {
                        estimators.push(estimator);
                    }
                }
            }
        }
    }
    estimators
}

/// Those that are exact where everything is seen. The authors' weight is
/// `(d + 1)/(d + 2)` there.
fn all_that_leave_the_whole() -> Vec<Estimator> {
    let mut estimators = all_estimators();
    estimators.retain(|one| one.shrinkage != Shrinkage::Authors);
    estimators
}

fn designs() -> Vec<Design> {
    vec![
        Design::of_nodes(DesignKind::Independent, 8, 2),
        Design::of_nodes(DesignKind::Random, 8, 3),
        Design::of_chunks(DesignKind::Grouping, vec![0, 0, 1, 1, 2, 2, 3, 3], 4, 2),
        Design::of_chunks(DesignKind::Sweep, vec![0, 1, 2, 0, 1, 2, 0, 1], 3, 3),
    ]
}

const EXACT: Sampling = Sampling {
    enumerate_up_to: 10_000,
    samples: 0,
    seed: 0,
};

#[test]
fn gradients_are_the_finite_differences_of_the_loss() {
    let inner = [true, true, false, true, true, true, false, true];
    for problem in problems() {
        for halo in [false, true] {
            let view = View::new(&problem, &inner, halo);
            for operators in [
                view.mean_operators(),
                view.weighted_operators(|v, u| 1.0 + f64::from(v + 2 * u) / 10.0),
            ] {
                let seeds = [0, 1, 4, 5, 7];
                let gradients = problem.toy.gradients(&problem, &operators, &seeds);
                let mut sum = vec![0.0; problem.toy.parameters().len()];
                add_weighted(&mut sum, &gradients, |_| 1.0);
                assert!(sum.iter().filter(|value| value.abs() > 1e-3).count() > sum.len() / 2);
                for (parameter, slope) in sum.iter().enumerate() {
                    // In double precision: its square, and the rounding over it, are both far below
                    // what is allowed.
                    let step = 1e-6;
                    let loss = |by| {
                        problem
                            .toy
                            .moved(parameter, by)
                            .total_loss(&problem, &operators, &seeds)
                    };
                    let difference = (loss(step) - loss(-step)) / (2.0 * step);
                    assert!(
                        (difference - slope).abs() < 1e-7,
                        "{parameter}: {difference} {slope}"
                    );
                }
            }
        }
    }
}

#[test]
fn every_step_of_descent_lowers_the_loss() {
    for mut problem in problems() {
        let everything = vec![true; 8];
        let loss = |problem: &Problem| {
            let operators = View::new(problem, &everything, false).mean_operators();
            problem.toy.total_loss(problem, &operators, &problem.train)
        };
        for _ in 0..50 {
            let before = loss(&problem);
            problem.descend(1, 0.1);
            assert!(loss(&problem) < before);
        }
    }
}

#[test]
fn one_worker_estimates_the_full_gradient_to_the_bit_whatever_the_weights() {
    let estimators = all_that_leave_the_whole();
    assert!(estimators.len() > 30);
    for problem in problems() {
        for design in [
            Design::of_nodes(DesignKind::Independent, 8, 1),
            Design::of_nodes(DesignKind::Random, 8, 1),
            Design::of_chunks(DesignKind::Grouping, vec![0, 1, 0, 1, 0, 1, 0, 1], 2, 1),
            Design::of_chunks(DesignKind::Sweep, vec![0; 8], 1, 1),
        ] {
            for halo in [false, true] {
                let found = problem.measure(&design, halo, &estimators, EXACT).unwrap();
                assert!(found.exact && found.outcomes == 1 && (found.coverage - 1.0).abs() < 1e-12);
                for (estimator, summary) in estimators.iter().zip(found.estimators) {
                    assert_eq!(summary.rmse, 0.0, "{}", estimator.label());
                }
            }
        }
    }
}

#[test]
fn two_swept_chunks_are_the_whole_graph() {
    let design = Design::of_chunks(DesignKind::Sweep, vec![0, 1, 0, 1, 0, 1, 0, 1], 2, 2);
    for problem in problems() {
        let found = problem
            .measure(&design, false, &all_that_leave_the_whole(), EXACT)
            .unwrap();
        assert!(found.estimators.iter().all(|summary| summary.rmse < 1e-12));
    }
}

/// With squared loss, the output layer's gradient is a bilinear form of aggregates; with edge
/// weights and the halo, hidden rows are exact and outputs are unbiased, so that the mean *error*
/// of the outputs vanishes although that of the gradient does not.
#[test]
fn edge_weights_with_a_halo_leave_outputs_unbiased() {
    let problem = problem(Loss::Squared, true);
    for design in designs() {
        let mut bias = vec![0.0; CLASSES];
        let mut outcomes = 0.0;
        for workers in design.all() {
            outcomes += 1.0;
            for worker in &workers {
                let inner = design.nodes(&worker.sees);
                let view = View::new(&problem, &inner, true);
                let weighted = view.weighted_operators(|v, u| edge_ht(design.pair(v, u)));
                let everything = vec![true; 8];
                let full = View::new(&problem, &everything, false).mean_operators();
                for v in [0, 4]
                    .into_iter()
                    .filter(|&v| design.nodes(&worker.base)[v])
                {
                    let found = problem.toy.outputs(&problem, &weighted, v);
                    let expected = problem.toy.outputs(&problem, &full, v);
                    for (bias, (found, expected)) in bias.iter_mut().zip(found.iter().zip(expected))
                    {
                        *bias += found - expected;
                    }
                }
            }
        }
        assert!(
            bias.iter().all(|bias| (bias / outcomes).abs() < 1e-12),
            "{design:?}: {bias:?}"
        );
    }
}

#[test]
fn samples_agree_with_exact_sums_within_their_errors() {
    let estimators = all_estimators();
    let problem = problem(Loss::CrossEntropy, true);
    let sampling = Sampling {
        enumerate_up_to: 0,
        samples: 2000,
        seed: 1,
    };
    for design in designs() {
        let exact = problem.measure(&design, false, &estimators, EXACT).unwrap();
        let sampled = problem
            .measure(&design, false, &estimators, sampling)
            .unwrap();
        assert!(exact.exact && !sampled.exact && sampled.outcomes == 2000);
        assert_eq!(exact.outcomes as f64, design.outcomes());
        for ((estimator, exact), sampled) in estimators
            .iter()
            .zip(&exact.estimators)
            .zip(&sampled.estimators)
        {
            for (e, s, error) in [
                (exact.bias, sampled.bias, sampled.bias_error),
                (exact.sd, sampled.sd, sampled.sd_error),
                (exact.rmse, sampled.rmse, sampled.rmse_error),
            ] {
                // Five standard errors, which about one in a million normal deviates exceeds.
                assert!(
                    (e - s).abs() < 5.0 * error + 1e-9,
                    "{}: {e} {s} ± {error}",
                    estimator.label()
                );
            }
            assert!(
                (exact.cosine - sampled.cosine).abs() < 0.02,
                "{}",
                estimator.label()
            );
        }
    }
}

#[test]
fn bias_variance_and_error_are_a_right_triangle() {
    let problem = problem(Loss::CrossEntropy, false);
    for design in designs() {
        for halo in [false, true] {
            for summary in problem
                .measure(&design, halo, &all_estimators(), EXACT)
                .unwrap()
                .estimators
            {
                let sides = summary.bias.powi(2) + summary.sd.powi(2);
                assert!((sides - summary.rmse.powi(2)).abs() < 1e-9);
                assert!(
                    summary.best_rmse <= summary.rmse + 1e-12
                        && summary.scaled_rmse <= summary.rmse + 1e-12
                );
                assert!(summary.rmse.is_finite() && summary.cosine.is_finite());
            }
        }
    }
}

#[test]
fn dropping_rho_only_rescales_where_it_is_the_same_for_all_nodes() {
    let problem = problem(Loss::CrossEntropy, true);
    let design = Design::of_nodes(DesignKind::Independent, 8, 3);
    let estimator = |normalise| Estimator {
        weight: Weight::NodeHt,
        normalise,
        coverage_hops: 1,
        ..Estimator::default()
    };
    // The isolated training node has ρ = 1; without it all have 1/3.
    let problem = Problem {
        train: vec![0, 1, 2, 4, 5],
        ..problem
    };
    let pair = [estimator(Normalise::None), estimator(Normalise::Rho)];
    let [plain, divided] = <[Summary; 2]>::try_from(
        problem
            .measure(&design, false, &pair, EXACT)
            .unwrap()
            .estimators,
    )
    .unwrap();
    assert!(
        (plain.cosine - divided.cosine).abs() < 1e-9
            && (plain.scaled_rmse - divided.scaled_rmse).abs() < 1e-9
    );
    assert!((divided.sd - 3.0 * plain.sd).abs() < 1e-9);
}

/// Where all neighbours are alike it does not matter which are seen, and the expected weight is all
/// there is to the estimate.
#[test]
fn node_weights_over_their_expectation_are_unbiased_where_neighbours_are_alike() {
    for mut problem in problems() {
        problem.features = [0.5, -0.3, 0.8].repeat(8);
        let rho = |estimator: &Estimator| {
            let of_nodes = matches!(estimator.weight, Weight::NodeHt | Weight::NodeHajek);
            // Smoothing gives nodes a weight of which nothing is seen; only with themselves in it
            // is their mean the same.
            let whole = problem.self_loop || estimator.shrinkage == Shrinkage::None;
            of_nodes && whole && estimator.normalise == Normalise::Rho
        };
        let mut estimators: Vec<Estimator> = all_estimators().into_iter().filter(rho).collect();
        estimators.push(Estimator {
            weight: Weight::NodeHajek,
            ..Estimator::default()
        });
        // Halo nodes have no in-edges. Without self-loops their hidden rows are zeros, and
        // neighbours are not alike.
        for design in designs() {
            for halo in [false, true]
                .into_iter()
                .take(1 + usize::from(problem.self_loop))
            {
                let found = problem.measure(&design, halo, &estimators, EXACT).unwrap();
                let (undivided, divided) = found.estimators.split_last().unwrap();
                for (estimator, summary) in estimators.iter().zip(divided) {
                    assert!(summary.bias < 1e-12, "{}: {summary:?}", estimator.label());
                }
                let empty = empty_probability(&problem.graph, design.units(), design.inclusion());
                let misses = !halo && problem.train.iter().any(|&v| empty[v as usize] > 0.0);
                assert_eq!(undivided.bias > 1e-3, misses, "{design:?}");
            }
        }
    }
}

#[test]
fn a_gradient_that_is_zero_is_an_error() {
    let mut problem = problem(Loss::Squared, true);
    problem.features.fill(0.0);
    let found = problem.measure(&designs()[0], false, &[], EXACT);
    assert_eq!(found.unwrap_err(), StudyError::NoGradient);
}
