//! Contextual stochastic block model (Deshpande, Sen, Montanari and Mossel, *Contextual Stochastic
//! Block Models*, `NeurIPS` 2018), degree-corrected (Karrer and Newman, 2011) and for any number of
//! classes: one number says how much of the class is in the neighbours, and another how much is in
//! the features.
//!
//! ```text
//! class c          1 … k, equally many nodes each
//! propensity θ     1, or a power law with mean 1
//! edge (a, b)      a with chance ~ θ, b of the class of a with chance `homophily`, else of another
//!                  class; within the class with chance ~ θ
//! features         N(`feature_signal` · u_c, 1) in each column; u_c the corners of a regular
//!                  simplex around 0, of length 1, in random directions
//! ```
//!
//! Of two classes this is the model of the paper with `λ = (2 homophily − 1) √degree` and
//! `μ / γ = feature_signal²` (there the columns have the variance 1/p).

use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rayon::prelude::*;

use super::belief::{self, Law};
use super::larger::{Pairs, Room, drawn};
use super::normal::{narrow, standard_normal};
use super::{Csr, Features, GraphError, RawDataset, Reading};
use crate::rng::{Purpose, stream};

/// Edges, or rows of features, that share one random stream; threads take streams, so their number
/// does not matter.
const BATCH: usize = 1 << 14;
/// Batches of edges that are drawn at a time.
const TOGETHER: usize = 16;

/// What the section says, without what all generated graphs have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contextual {
    /// Expected neighbours, before repeated pairs go.
    pub degree: f64,
    /// Chance that a neighbour is of the same class.
    pub homophily: f64,
    /// Distance of the class means from 0, in standard deviations of the noise.
    pub feature_signal: f64,
    /// Exponent of the power law of degrees; none where all propensities are equal.
    pub power_law: Option<f64>,
}

/// Generates graph, features `[nodes, width]` and labels. O(edges log nodes + nodes · width). With
/// room, edges and features are on disk, and both are the same; what is best is told where belief
/// propagation fits beside them.
pub(super) fn generate(
    nodes: usize,
    classes: usize,
    width: usize,
    model: Contextual,
    seed: u64,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let blocks = blocks(nodes, classes, model, seed, room)?;
    let graph = blocks.graph(model, seed, room)?;
    let means = means(classes, width, model.feature_signal, seed);
    let spare = room.map_or(u64::MAX, Room::spare);
    let fits = belief::bytes(&graph, classes).is_some_and(|bytes| bytes <= spare);
    let mut prior = Vec::new();
    let see = |rows: &[f32]| {
        if fits {
            prior.extend(belief::prior(rows, &means));
        }
        Ok(())
    };
    let draw = |batch: usize, rows: &mut [f32]| blocks.rows(&means, seed, batch, rows);
    let features = drawn((nodes, width), BATCH, room, draw, see)?;
    let law = Law {
        classes,
        homophily: model.homophily,
        degree: model.degree,
        propensity: blocks.by_node(),
    };
    let prior = fits.then_some(prior);
    let known = belief::best(&graph, &law, prior, &means, &blocks.labels);
    let reading = Reading::default().with_note(known.told());
    Ok(blocks.data(model, graph, features).read_as(reading))
}

/// The same without values of features, and without what is best: the graph and the classes.
pub(super) fn outline(
    nodes: usize,
    classes: usize,
    width: usize,
    model: Contextual,
    seed: u64,
) -> Result<RawDataset, GraphError> {
    let blocks = blocks(nodes, classes, model, seed, None)?;
    let values = Vec::new();
    let graph = blocks.graph(model, seed, None)?;
    Ok(blocks.data(model, graph, Features::Dense { width, values }))
}

/// Nodes by class.
struct Blocks {
    classes: usize,
    /// The nodes of the first class, of the second, …
    order: Vec<u32>,
    labels: Vec<u32>,
    /// Sum of the propensities of the nodes before each place of the order, `[nodes + 1]`.
    before: Vec<f64>,
}

/// Who is of which class, and how likely each node is to have edges.
fn blocks(
    nodes: usize,
    classes: usize,
    model: Contextual,
    seed: u64,
    room: Option<&Room>,
) -> Result<Blocks, GraphError> {
    if let Some(room) = room {
        room.check(nodes, 0)?;
    }
    // `synthetic` has checked that node numbers fit.
    let mut order: Vec<u32> = (0_u32..).take(nodes).collect();
    let mut random = stream(seed, Purpose::Graph, 0, 0);
    order.shuffle(&mut random);
    let mut labels = vec![0; nodes];
    for (class, number) in (0..classes).zip(0_u32..) {
        for &node in &order[class * nodes / classes..(class + 1) * nodes / classes] {
            labels[node as usize] = number;
        }
    }
    let mut propensity: Vec<f64> = (0..nodes)
        .map(|_| draw_propensity(model, nodes, &mut random))
        .collect();
    let mean = propensity.iter().sum::<f64>() / nodes as f64;
    for one in &mut propensity {
        *one /= mean;
    }
    let mut before = vec![0.0];
    for one in propensity {
        before.push(before[before.len() - 1] + one);
    }
    Ok(Blocks {
        classes,
        order,
        labels,
        before,
    })
}

/// Of the power law with density ~ θ^−exponent from 1 on. Where two nodes would be joined more than
/// once it ends: `degree θ² / nodes = 1` for those of mean 1.
fn draw_propensity(model: Contextual, nodes: usize, random: &mut impl Rng) -> f64 {
    let Some(exponent) = model.power_law else {
        return 1.0;
    };
    // 1 − u lies in (0, 1].
    let drawn = (1.0 - random.random::<f64>()).powf(-1.0 / (exponent - 1.0));
    drawn.min((nodes as f64 / model.degree.max(1.0)).sqrt().max(1.0))
}

impl Blocks {
    fn start(&self, class: usize) -> usize {
        class * self.order.len() / self.classes
    }

    /// A node among the places of the order, as likely as its propensity says.
    fn pick(&self, from: usize, to: usize, random: &mut impl Rng) -> usize {
        let (low, high) = (self.before[from], self.before[to]);
        let at = low + random.random::<f64>() * (high - low);
        let places = &self.before[from + 1..to];
        from + places.partition_point(|&end| end <= at)
    }

    fn graph(&self, model: Contextual, seed: u64, room: Option<&Room>) -> Result<Csr, GraphError> {
        let count = (self.order.len() as f64 * model.degree / 2.0).round() as usize;
        let batch = |batch: usize| {
            // Stream 0 has drawn the classes.
            let mut random = stream(seed, Purpose::Graph, batch as u64 + 1, 0);
            let length = BATCH.min(count - batch * BATCH);
            (0..length)
                .map(|_| self.edge(model.homophily, &mut random))
                .collect::<Vec<_>>()
        };
        let batches = count.div_ceil(BATCH);
        let mut pairs = Pairs::new(room);
        for first in (0..batches).step_by(TOGETHER) {
            let some = (first..batches.min(first + TOGETHER)).into_par_iter();
            let edges: Vec<Vec<(u32, u32)>> = some.map(batch).collect();
            for (from, to) in edges.into_iter().flatten() {
                pairs.add(from, to)?;
            }
        }
        pairs.graph(self.order.len())
    }

    fn edge(&self, homophily: f64, random: &mut impl Rng) -> (u32, u32) {
        let from = self.order[self.pick(0, self.order.len(), random)];
        let mine = self.labels[from as usize] as usize;
        let alike = random.random::<f64>() < homophily;
        let class = if alike {
            mine
        } else {
            let other = random.random_range(0..self.classes - 1);
            other + usize::from(other >= mine)
        };
        let to = self.pick(self.start(class), self.start(class + 1), random);
        (from, self.order[to])
    }

    /// The propensity of each node.
    fn by_node(&self) -> Vec<f64> {
        let mut all = vec![0.0; self.order.len()];
        for (&node, ends) in self.order.iter().zip(self.before.windows(2)) {
            all[node as usize] = ends[1] - ends[0];
        }
        all
    }

    /// Draws a batch of rows of features.
    fn rows(&self, means: &[Vec<f64>], seed: u64, batch: usize, rows: &mut [f32]) {
        let width = means[0].len();
        // Stream 0 has drawn the directions.
        let mut random = stream(seed, Purpose::Features, batch as u64 + 1, 0);
        let labels = &self.labels[batch * BATCH..];
        for (row, &class) in rows.chunks_exact_mut(width).zip(labels) {
            for (value, mean) in row.iter_mut().zip(&means[class as usize]) {
                *value = narrow(mean + standard_normal(&mut random));
            }
        }
    }

    fn data(self, model: Contextual, graph: Csr, features: Features) -> RawDataset {
        let labels: Vec<Option<u32>> = self.labels.into_iter().map(Some).collect();
        let (homophily, signal) = (model.homophily, model.feature_signal);
        let name = format!("csbm-{}-h{homophily}-s{signal}", labels.len());
        RawDataset::new(name, graph, features, labels, self.classes, vec![])
    }
}

/// The corners of a regular simplex around 0 at this distance from it, `[classes][width]`, in
/// random directions.
fn means(classes: usize, width: usize, distance: f64, seed: u64) -> Vec<Vec<f64>> {
    let mut random = stream(seed, Purpose::Features, 0, 0);
    let axes = orthonormal(classes - 1, width, &mut random);
    let mut corners = vec![vec![0.0; width]; classes];
    // Along each axis one corner stands apart from those after it, all at distance 1 from 0.
    for (number, axis) in axes.iter().enumerate() {
        let left = (classes - number) as f64;
        let all = classes as f64;
        let apart = (all / (all - 1.0) * (left - 1.0) / left).sqrt();
        for (corner, mean) in corners.iter_mut().enumerate().skip(number) {
            let along = if corner == number {
                apart
            } else {
                -apart / (left - 1.0)
            };
            for (mean, axis) in mean.iter_mut().zip(axis) {
                *mean += distance * along * axis;
            }
        }
    }
    corners
}

/// So many directions at right angles (Gram and Schmidt).
fn orthonormal(count: usize, width: usize, random: &mut impl Rng) -> Vec<Vec<f64>> {
    let mut axes: Vec<Vec<f64>> = Vec::with_capacity(count);
    while axes.len() < count {
        let mut axis: Vec<f64> = (0..width).map(|_| standard_normal(random)).collect();
        for before in &axes {
            let along: f64 = axis.iter().zip(before).map(|(a, b)| a * b).sum();
            for (a, b) in axis.iter_mut().zip(before) {
                *a -= along * b;
            }
        }
        let length = axis.iter().map(|a| a * a).sum::<f64>().sqrt();
        // What is left of a direction that lies almost within the others is mostly rounding.
        if length > 1e-6 {
            for a in &mut axis {
                *a /= length;
            }
            axes.push(axis);
        }
    }
    axes
}

#[cfg(test)]
mod tests {
    use super::super::DataProfile;
    use super::*;

    const NODES: usize = 20_000;

    fn model(homophily: f64, feature_signal: f64, power_law: Option<f64>) -> Contextual {
        Contextual {
            degree: 8.0,
            homophily,
            feature_signal,
            power_law,
        }
    }

    fn drawn(classes: usize, model: Contextual, seed: u64) -> RawDataset {
        generate(NODES, classes, 6, model, seed, None).unwrap()
    }

    #[test]
    fn degrees_and_homophily_are_those_asked_for() {
        for (classes, homophily, law) in [
            (2, 0.85, None),
            (4, 0.1, None),
            (2, 0.7, Some(2.5)),
            (3, 0.6, Some(4.0)),
        ] {
            let profile = DataProfile::new(&drawn(classes, model(homophily, 1.0, law), 1));
            // Repeated pairs go: more of them between hubs.
            let lost = if law.is_some() { 0.5 } else { 0.05 };
            let mean = profile.degrees.mean;
            assert!((8.0 - lost..=8.0).contains(&mean), "{mean}");
            let edge = profile.homophily.unwrap().edge;
            // Of 80,000 edges: 0.0018; hubs' classes are not balanced.
            let near = if law.is_some() { 0.02 } else { 0.006 };
            assert!((edge - homophily).abs() < near, "{edge} {homophily}");
            assert!(
                profile
                    .classes
                    .iter()
                    .all(|&size| size.abs_diff(NODES / classes) <= 1)
            );
        }
    }

    #[test]
    fn degrees_are_poisson_or_a_power_law() {
        let degrees = |law| {
            let data = drawn(2, model(0.8, 1.0, law), 2);
            let degrees: Vec<f64> = (0..NODES).map(|v| data.graph.degree(v) as f64).collect();
            let mean = degrees.iter().sum::<f64>() / NODES as f64;
            let variance = degrees.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / NODES as f64;
            (degrees, mean, variance)
        };
        let (_, mean, variance) = degrees(None);
        // A variance of 8; that of its estimate is 8 √(2.1 / 20,000).
        assert!((variance / mean - 1.0).abs() < 0.05, "{variance} {mean}");
        let (degrees, ..) = degrees(Some(2.5));
        // Hill's estimate of the exponent, by the nodes of more than 20 and fewer than 45
        // neighbours beyond which the law is cut: a maximum of the likelihood of a bounded law.
        let tail: Vec<f64> = degrees
            .into_iter()
            .filter(|d| (20.0..45.0).contains(d))
            .collect();
        let likelihood = |exponent: f64| {
            let sum: f64 = (20..45).map(|d| f64::from(d).powf(-exponent)).sum();
            tail.iter().map(|d| -exponent * d.ln()).sum::<f64>() - tail.len() as f64 * sum.ln()
        };
        let exponents = (10..60).map(|tenths| f64::from(tenths) / 10.0);
        let found = exponents.max_by(|a, b| likelihood(*a).total_cmp(&likelihood(*b)));
        let found = found.unwrap();
        assert!(
            (found - 2.5).abs() <= 0.4,
            "{found} of {} nodes",
            tail.len()
        );
    }

    #[test]
    fn features_scatter_with_variance_one_around_corners_at_the_same_distance() {
        let classes = 4;
        let data = drawn(classes, model(0.5, 1.5, None), 3);
        let rows = data.features.values().chunks_exact(6);
        let (mut sums, mut squares) = (vec![[0.0; 6]; classes], 0.0);
        for (row, class) in rows.clone().zip(data.labels.classes()) {
            for (sum, value) in sums[class.unwrap() as usize].iter_mut().zip(row) {
                *sum += f64::from(*value) / (NODES / classes) as f64;
            }
        }
        for (row, class) in rows.zip(data.labels.classes()) {
            let mean = &sums[class.unwrap() as usize];
            squares += row
                .iter()
                .zip(mean)
                .map(|(x, m)| (f64::from(*x) - m).powi(2))
                .sum::<f64>();
        }
        let variance = squares / (6 * NODES) as f64;
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        for (a, one) in sums.iter().enumerate() {
            for (b, other) in sums.iter().enumerate() {
                let product: f64 = one.iter().zip(other).map(|(x, y)| x * y).sum();
                let expected = if a == b { 2.25 } else { -2.25 / 3.0 };
                assert!((product - expected).abs() < 0.12, "{a} {b} {product}");
            }
        }
    }

    #[test]
    fn the_seed_decides_and_an_outline_has_the_same_graph() {
        let small = |seed| generate(300, 2, 3, model(0.7, 1.0, Some(3.0)), seed, None).unwrap();
        let (one, again, other) = (small(1), small(1), small(2));
        assert_eq!((&one.graph, &one.features), (&again.graph, &again.features));
        assert_ne!(one.graph, other.graph);
        let plan = outline(300, 2, 3, model(0.7, 1.0, Some(3.0)), 1).unwrap();
        assert_eq!((&plan.graph, &plan.labels), (&one.graph, &one.labels));
        assert!(plan.reading.notes.is_empty() && !one.reading.notes.is_empty());
    }
}
