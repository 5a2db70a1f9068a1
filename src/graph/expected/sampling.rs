//! What neighbour sampling meets in a graph that is known by its law.
//!
//! Before a hop a node of class k is in the frontier with chance `π_k`. Each such node draws
//! min(fan-out, neighbours) of its neighbours, whose number is Poisson; the draws spread over
//! classes as neighbours do. A node of class l is drawn `Poisson(λ_l)` times, so it is in the next
//! frontier, or was there already, with chance `1 − (1 − π_l) e^(−λ_l)`.

use super::classes::ExpectedGraph;

/// Expected unique nodes before the first hop and after each, and the draws of each hop.
#[derive(Clone, Debug, PartialEq)]
pub struct Frontiers {
    /// Unique nodes, from the seeds to the outermost inputs: one more than hops.
    pub nodes: Vec<f64>,
    /// Drawn edges of each hop.
    pub edges: Vec<f64>,
    /// Chance of a node of each class to be among the outermost inputs.
    pub inputs: Vec<f64>,
}

/// A step that starts at `seeds` nodes, uniformly chosen, with a fan-out for each hop.
///
/// `spreading` is the share of the frontier that draws neighbours: 1 where owners sample for
/// others, 1 / workers where rows of others do not spread (a halo whose edges are not here).
pub fn frontiers(
    graph: &ExpectedGraph,
    seeds: f64,
    fanouts: &[usize],
    spreading: impl Fn(usize) -> f64,
) -> Frontiers {
    let all = graph.nodes();
    let classes = &graph.classes;
    let mut chance = vec![(seeds / all).min(1.0); classes.len()];
    let count = |chance: &[f64]| -> f64 {
        let nodes = classes.iter().zip(chance);
        nodes.map(|(class, chance)| class.nodes * chance).sum()
    };
    let mut found = Frontiers {
        nodes: vec![count(&chance)],
        edges: Vec::new(),
        inputs: Vec::new(),
    };
    for (hop, &fanout) in fanouts.iter().enumerate() {
        let mut drawn = vec![0.0; classes.len()];
        let mut edges = 0.0;
        for (class, chance) in classes.iter().zip(&chance) {
            // There is nobody to draw, and shares of neighbours are divided by their number.
            if class.degree == 0.0 {
                continue;
            }
            let draws = class.nodes * chance * spreading(hop) * draws(fanout, class.degree);
            edges += draws;
            for (drawn, neighbours) in drawn.iter_mut().zip(&class.neighbours) {
                *drawn += draws * neighbours / class.degree;
            }
        }
        for ((class, chance), drawn) in classes.iter().zip(&mut chance).zip(drawn) {
            if class.nodes > 0.0 {
                *chance = 1.0 - (1.0 - *chance) * (-drawn / class.nodes).exp();
            }
        }
        found.nodes.push(count(&chance));
        found.edges.push(edges);
    }
    found.inputs = chance;
    found
}

/// E[min(`fanout`, D)] of a Poisson number of neighbours D with this mean: the sum over places of
/// the chance that there is a neighbour for it.
fn draws(fanout: usize, mean: f64) -> f64 {
    // e^(−mean) is zero above this, and so many neighbours are more than any fan-out.
    if mean > 700.0 {
        return mean.min(fanout as f64);
    }
    let (mut chance, mut below, mut expected) = ((-mean).exp(), 0.0, 0.0);
    for place in 0..fanout {
        below += chance;
        // Rounding may take the sum of chances above 1.
        expected += (1.0 - below).max(0.0);
        chance *= mean / (place as f64 + 1.0);
    }
    expected
}

#[cfg(test)]
mod tests {
    use super::super::degrees;
    use super::*;

    #[test]
    fn draws_are_the_mean_of_the_smaller_number() {
        assert!((draws(1, 2.0) - (1.0 - (-2.0_f64).exp())).abs() < 1e-12);
        assert!((draws(100, 3.0) - 3.0).abs() < 1e-12);
        assert!((draws(5, 1e4) - 5.0).abs() < 1e-12);
        let by_hand: f64 = (0..60)
            .scan((-8.0_f64).exp(), |chance, n| {
                let now = *chance;
                *chance *= 8.0 / f64::from(n + 1);
                Some(now * f64::from(n.min(10)))
            })
            .sum();
        assert!((draws(10, 8.0) - by_hand).abs() < 1e-9);
    }

    #[test]
    fn seeds_alone_are_the_inputs_without_hops() {
        let graph = degrees::graph(&[(10.0, 1000.0)]);
        let found = frontiers(&graph, 100.0, &[], |_| 1.0);
        assert_eq!((found.nodes, found.edges), (vec![100.0], vec![]));
    }

    #[test]
    fn a_frontier_never_outgrows_the_graph() {
        let graph = degrees::graph(&[(50.0, 1000.0)]);
        let found = frontiers(&graph, 500.0, &[25, 25, 25], |_| 1.0);
        assert!(found.nodes.windows(2).all(|pair| pair[0] <= pair[1]));
        assert!(found.nodes[3] > 999.0 && found.nodes[3] <= 1000.0);
    }
}
