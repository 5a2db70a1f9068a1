//! Covariances and the biases they make of a gradient that is quadratic in the aggregate.

use super::*;

const CLASSES: usize = 3;

#[test]
fn the_covariance_of_edge_weights_is_the_closed_form() {
    let graph = graph();
    for design in node_designs() {
        for v in with_neighbours(&graph) {
            let neighbours = graph.neighbours(v);
            let d = neighbours.len() as f64;
            let rows: Vec<Vec<f64>> = neighbours.iter().map(|&u| row(u)).collect();
            let joint = |a, b| design.inclusion.joint(if a == b { 1 } else { 2 });
            let expected = ht_covariance(&vec![1.0 / d; rows.len()], &rows, joint);
            let target = mean(neighbours);
            let found = design.expectation(v, WIDTH * WIDTH, |sees| {
                let error: Vec<f64> = (0..WIDTH)
                    .map(|i| {
                        seen(&graph, v, sees)
                            .into_iter()
                            .map(|u| row(u)[i] / design.pair(v, u) / d)
                            .sum::<f64>()
                            - target[i]
                    })
                    .collect();
                outer(&error, &error)
            });
            assert_close(&found, &expected, 1e-12, design.name);
            if let Inclusion::Independent { workers } = design.inclusion {
                let simple = (0..WIDTH * WIDTH).map(|k| {
                    let squares = rows.iter().map(|x| x[k / WIDTH] * x[k % WIDTH]);
                    (workers - 1) as f64 * squares.sum::<f64>() / (d * d)
                });
                assert_close(
                    &expected,
                    &simple.collect::<Vec<f64>>(),
                    1e-12,
                    "(K − 1) Σ a² x xᵀ",
                );
            }
        }
    }
}

fn outer(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter()
        .flat_map(|x| b.iter().map(move |y| x * y))
        .collect()
}

/// `W (row of classes)`, the head of the T5 tests.
fn head() -> Vec<f64> {
    (0_u32..)
        .take(CLASSES * WIDTH)
        .map(|k| f64::from(k).sin())
        .collect()
}

/// `(W z − y) zᵀ`.
fn gradient(z: &[f64]) -> Vec<f64> {
    let y = [0.3, -0.2, 1.0];
    let errors: Vec<f64> = head()
        .chunks_exact(WIDTH)
        .zip(y)
        .map(|(w, y)| w.iter().zip(z).map(|(w, z)| w * z).sum::<f64>() - y)
        .collect();
    outer(&errors, z)
}

// 5.
#[test]
fn the_biases_of_one_layer_with_squared_loss_are_the_closed_forms() {
    let graph = graph();
    let size = CLASSES * WIDTH;
    for design in node_designs() {
        let empty = empty_probability(&graph, &design.unit, design.inclusion);
        let rho = expected_coverage(&graph, &design.unit, design.inclusion, 1);
        for v in with_neighbours(&graph) {
            if rho[v] == 0.0 {
                continue;
            }
            let neighbours = graph.neighbours(v);
            let d = neighbours.len();
            let rows: Vec<Vec<f64>> = neighbours.iter().map(|&u| row(u)).collect();
            let target = gradient(&mean(neighbours));
            let added = |factor: f64| {
                squared_loss_bias(
                    &head(),
                    &scaled(factor, &population_covariance(&rows)),
                    WIDTH,
                )
            };
            let bias = |found: &[f64]| -> Vec<f64> {
                found.iter().zip(&target).map(|(f, t)| f - t).collect()
            };

            let node = design.expectation(v, size, |sees| {
                let local = seen(&graph, v, sees);
                let c = local.len() as f64 / d as f64;
                scaled(over_expectation(c, rho[v]), &gradient(&mean(&local)))
            });
            let expected = added(node_weight_factor(rho[v], empty[v], d));
            assert_close(&bias(&node), &expected, 1e-10, design.name);

            let plain = design.expectation(v, size, |sees| {
                let local = seen(&graph, v, sees);
                scaled(
                    over_expectation(node_hajek(local.len(), d), 1.0 - empty[v]),
                    &gradient(&mean(&local)),
                )
            });
            let local: Vec<f64> = (0..=d)
                .map(|m| design.chance(v, |sees| seen(&graph, v, sees).len() == m))
                .collect();
            let expected = added(nonempty_factor(mean_inverse(&local), d));
            assert_close(&bias(&plain), &expected, 1e-10, design.name);

            let edges = design.expectation(v, size, |sees| {
                let local = seen(&graph, v, sees);
                gradient(&scaled(
                    local.len() as f64 / d as f64 / rho[v],
                    &mean(&local),
                ))
            });
            let joint = |a, b| design.inclusion.joint(if a == b { 1 } else { 2 });
            let covariance = ht_covariance(&vec![1.0 / d as f64; d], &rows, joint);
            assert_close(
                &bias(&edges),
                &squared_loss_bias(&head(), &covariance, WIDTH),
                1e-10,
                design.name,
            );
        }
    }
}
