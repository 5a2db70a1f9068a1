//! What the classes of a contextual stochastic block model can be told from without knowing any:
//! features alone in closed form, features and graph by belief propagation (Decelle, Krzakala,
//! Moore and Zdeborová, 2011) with the law that the data were drawn by.
//!
//! After `t` rounds a node has heard of all nodes within `t` hops. As long as the neighbourhood
//! is a tree, which large sparse graphs nearly are, no guess from these by the law alone is
//! better. Two things stand beyond that. A model that trains on classes of the same graph knows
//! more than the law: with many labels and weak features it finds more. And where features tell
//! little of many classes, or neighbourhoods are full of circles, the rounds may end in a worse
//! state than they passed through.

use rayon::prelude::*;
use statrs::distribution::{ContinuousCDF, Normal};

use super::Csr;

/// Rounds until nothing changes, at most.
const ROUNDS: usize = 60;
/// What counts as no change of a belief.
const STILL: f32 = 1e-3;
/// Hops of which the accuracy is told.
pub(super) const HOPS: usize = 3;
/// Most numbers of messages that are held, twice: 400 MB each.
const MOST: usize = 100_000_000;

/// What edges were drawn by.
#[derive(Debug)]
pub(super) struct Law {
    /// Number of classes, equally many nodes each.
    pub classes: usize,
    /// Chance that a neighbour is of the same class.
    pub homophily: f64,
    /// Mean degree.
    pub degree: f64,
    /// How likely each node is to have edges, 1 in the mean, `[nodes]`.
    pub propensity: Vec<f64>,
}

/// Accuracies over all nodes, in [0, 1].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Best {
    /// Of the best guess by features alone, in closed form.
    pub features: f64,
    /// From what lies within 0, 1, … hops; the last entry that of the whole graph. Empty where the
    /// graph is too large for it.
    pub hops: Vec<f64>,
}

impl Best {
    /// For the reader of a run.
    pub(super) fn told(&self) -> String {
        let percent = |share: f64| format!("{:.1} %", 100.0 * share);
        let features = format!(
            "features alone tell {} of the classes",
            percent(self.features)
        );
        let Some((whole, hops)) = self.hops.split_last() else {
            return format!(
                "{features} at best; belief propagation would need more memory than it is given"
            );
        };
        let hops: Vec<String> = hops.iter().skip(1).map(|&share| percent(share)).collect();
        format!(
            "{features} at best; belief propagation with the law of the data, which is told no class, finds {} within 1, 2, … \
             hops, and {} in the end",
            hops.join(", "),
            percent(*whole)
        )
    }
}

/// Bytes that belief propagation takes; none where messages would be too many.
pub(super) fn bytes(graph: &Csr, classes: usize) -> Option<u64> {
    let messages = graph.edges().checked_mul(classes);
    let messages = messages.filter(|&messages| messages <= MOST)?;
    let beliefs = graph.nodes() * classes;
    // Of this round and of the last, and where the other direction of each edge is.
    let values = 2 * (messages + beliefs) * size_of::<f32>();
    Some((values + graph.edges() * size_of::<usize>()) as u64)
}

/// What can be told of the data without any class, given the [`prior`] of their features, with
/// noise of variance 1 around the means of the classes, `[classes][width]`; without it, from the
/// features alone.
pub(super) fn best(
    graph: &Csr,
    law: &Law,
    prior: Option<Vec<f32>>,
    means: &[Vec<f64>],
    labels: &[u32],
) -> Best {
    let distance = means[0].iter().map(|x| x * x).sum::<f64>().sqrt();
    let features = of_features(distance, law.classes);
    let Some(prior) = prior else {
        let hops = Vec::new();
        return Best { features, hops };
    };
    let mut spread = Spread::new(graph, law, prior);
    let mut hops = vec![spread.accuracy(labels)];
    for round in 1..=ROUNDS {
        let change = spread.round();
        if round <= HOPS {
            hops.push(spread.accuracy(labels));
        }
        if change < STILL && round >= HOPS {
            break;
        }
    }
    hops.push(spread.accuracy(labels));
    Best { features, hops }
}

/// The accuracy of the best guess of one of `classes` equally likely normal distributions of
/// variance 1 around the corners of a regular simplex at this distance from 0:
/// `∫ φ(t) Φ(t + d √(k / (k − 1)))^(k − 1) dt`, which is `Φ(d)` of two.
pub(super) fn of_features(distance: f64, classes: usize) -> f64 {
    const STEPS: i32 = 4000;
    const END: f64 = 10.0;
    let normal = Normal::standard();
    let others = classes as f64 - 1.0;
    let apart = distance * (classes as f64 / others).sqrt();
    let density = |t: f64| (-t * t / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let step = 2.0 * END / f64::from(STEPS);
    // The integrand vanishes at both ends with all its derivatives, so that the sum converges fast.
    (0..=STEPS)
        .map(|at| f64::from(at) * step - END)
        .map(|t| density(t) * normal.cdf(t + apart).powf(others) * step)
        .sum()
}

/// Logarithms of how likely the features of each node are in each class, `[nodes, classes]`, but
/// for a constant.
pub(super) fn prior(values: &[f32], means: &[Vec<f64>]) -> Vec<f32> {
    let width = means[0].len();
    let row = |row: &[f32]| {
        let of = |mean: &Vec<f64>| -> f32 {
            let product: f64 = row.iter().zip(mean).map(|(&x, m)| f64::from(x) * m).sum();
            // All means are as long.
            product as f32
        };
        means.iter().map(of).collect::<Vec<f32>>()
    };
    values.par_chunks(width).flat_map_iter(row).collect()
}

/// Messages along all edges, and what nodes believe.
struct Spread<'a> {
    graph: &'a Csr,
    law: &'a Law,
    prior: Vec<f32>,
    /// Of each stored edge, from the neighbour to the node of the row, `[edges, classes]`.
    messages: Vec<f32>,
    /// Where the edge in the other direction is stored, `[edges]`.
    reverse: Vec<usize>,
    /// Logarithms of what nodes believe, but for a constant, `[nodes, classes]`.
    beliefs: Vec<f32>,
}

impl<'a> Spread<'a> {
    fn new(graph: &'a Csr, law: &'a Law, prior: Vec<f32>) -> Self {
        let mut next = graph.offsets().to_vec();
        let mut reverse = vec![0; graph.edges()];
        // Rows list neighbours in ascending order: node after node takes the next place in the row
        // of each neighbour.
        for node in 0..graph.nodes() {
            for (&other, here) in graph.neighbours(node).iter().zip(graph.offsets()[node]..) {
                let there = &mut next[other as usize];
                reverse[here] = *there;
                *there += 1;
            }
        }
        let mut spread = Self {
            graph,
            law,
            beliefs: prior.clone(),
            prior,
            messages: Vec::new(),
            reverse,
        };
        let classes = law.classes;
        // At first nodes know their own features.
        let mut messages = vec![0.0; graph.edges() * classes];
        let edges = messages.par_chunks_mut(classes).zip(graph.indices());
        edges.for_each(|(message, &source)| {
            message.copy_from_slice(&spread.prior[source as usize * classes..][..classes]);
            softmax(message);
        });
        spread.messages = messages;
        spread
    }

    /// How much likelier an edge to a node is than by degrees alone, given what that believes.
    fn factor(&self, belief: f32) -> f32 {
        let (same, classes) = (self.law.homophily, self.law.classes as f64);
        let [same, other] = [same * classes, (1.0 - same) * classes / (classes - 1.0)];
        // Certainty cannot be told from rounding.
        (other + (same - other) * f64::from(belief)).max(1e-12) as f32
    }

    /// What the edges that are not there say of a class: `θ Σ θ' (factor − 1) degree / nodes`,
    /// without θ of the node itself.
    fn absent(&self) -> Vec<f64> {
        let classes = self.law.classes;
        let mut sums = vec![0.0; classes];
        let mut belief = vec![0.0; classes];
        for (logs, theta) in self.beliefs.chunks_exact(classes).zip(&self.law.propensity) {
            belief.copy_from_slice(logs);
            softmax(&mut belief);
            for (sum, &belief) in sums.iter_mut().zip(&belief) {
                *sum += theta * f64::from(self.factor(belief));
            }
        }
        let scale = self.law.degree / self.graph.nodes() as f64;
        sums.into_iter().map(|sum| sum * scale).collect()
    }

    /// One round; the largest change of a message.
    fn round(&mut self) -> f32 {
        let classes = self.law.classes;
        let absent = self.absent();
        let heard: Vec<f32> = (self.messages.par_iter())
            .map(|&belief| self.factor(belief).ln())
            .collect();
        let belief = |node: usize| {
            let offsets = self.graph.offsets();
            let mut logs: Vec<f64> = (0..classes)
                .map(|c| f64::from(self.prior[node * classes + c]))
                .collect();
            let rows = &heard[offsets[node] * classes..offsets[node + 1] * classes];
            for row in rows.chunks_exact(classes) {
                for (log, &heard) in logs.iter_mut().zip(row) {
                    *log += f64::from(heard);
                }
            }
            for (log, absent) in logs.iter_mut().zip(&absent) {
                *log -= self.law.propensity[node] * absent;
            }
            let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            logs.into_iter().map(move |log| (log - most) as f32)
        };
        let nodes = (0..self.graph.nodes()).into_par_iter();
        self.beliefs = nodes.flat_map_iter(belief).collect();
        // To each node all that its neighbour believes but for what it has from the node itself.
        let mut fresh = vec![0.0; self.messages.len()];
        let edges = fresh.par_chunks_mut(classes).zip(self.graph.indices());
        let edges = edges.zip(&self.reverse);
        edges.for_each(|((message, &source), &reverse)| {
            let logs = &self.beliefs[source as usize * classes..][..classes];
            let back = &heard[reverse * classes..][..classes];
            for (message, (log, back)) in message.iter_mut().zip(logs.iter().zip(back)) {
                *message = log - back;
            }
            softmax(message);
        });
        let pairs = fresh.par_iter().zip(&self.messages);
        let change = pairs.map(|(new, old)| (new - old).abs());
        let change = change.reduce(|| 0.0, f32::max);
        self.messages = fresh;
        change
    }

    /// The share of nodes whose likeliest class is theirs.
    fn accuracy(&self, labels: &[u32]) -> f64 {
        let rows = self.beliefs.chunks_exact(self.law.classes);
        let right = rows.zip(labels).filter(|(row, label)| {
            let best = (0_u32..).zip(*row).max_by(|a, b| a.1.total_cmp(b.1));
            best.is_some_and(|(class, _)| class == **label)
        });
        right.count() as f64 / labels.len() as f64
    }
}

/// Of logarithms, in place.
fn softmax(values: &mut [f32]) {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - most).exp();
        sum += *value;
    }
    for value in values {
        *value /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::super::SyntheticSpec;
    use super::super::synthetic::generate;
    use super::*;
    use crate::graph::RawDataset;

    #[test]
    fn features_alone_tell_what_tables_of_the_normal_distribution_say() {
        // Φ(1) and Φ(0.5).
        assert!((of_features(1.0, 2) - 0.841_344_746_068_543).abs() < 1e-9);
        assert!((of_features(0.5, 2) - 0.691_462_461_274_013).abs() < 1e-9);
        assert!((of_features(0.0, 7) - 1.0 / 7.0).abs() < 1e-9);
        assert!((of_features(9.0, 5) - 1.0).abs() < 1e-9);
    }

    fn drawn(rest: &str) -> RawDataset {
        let text = format!("kind = 'csbm'\nnodes = 20000\n{rest}");
        let spec: SyntheticSpec = toml::from_str(&text).unwrap();
        generate(&spec, true, None).unwrap()
    }

    /// The accuracy on the second half of the nodes of the linear classifier by class means of the
    /// first (Fisher's, as the noise is the same in all directions): it knows nothing of the law.
    fn linear(data: &RawDataset) -> f64 {
        let width = data.features.width();
        let labels = data.labels.classes();
        let row = |v: usize| &data.features.values()[v * width..][..width];
        let half = labels.len() / 2;
        let mut means = vec![vec![0.0; width]; data.classes];
        let mut sizes = vec![0.0; data.classes];
        for (v, class) in labels[..half].iter().enumerate() {
            let class = class.unwrap() as usize;
            sizes[class] += 1.0;
            for (mean, x) in means[class].iter_mut().zip(row(v)) {
                *mean += f64::from(*x);
            }
        }
        for (mean, size) in means.iter_mut().zip(&sizes) {
            for x in mean {
                *x /= size;
            }
        }
        let distance = |v: usize, mean: &[f64]| -> f64 {
            row(v)
                .iter()
                .zip(mean)
                .map(|(x, m)| (f64::from(*x) - m).powi(2))
                .sum()
        };
        let right = (half..labels.len()).filter(|&v| {
            let near = (0..data.classes)
                .min_by(|&a, &b| distance(v, &means[a]).total_cmp(&distance(v, &means[b])));
            near == labels[v].map(|class| class as usize)
        });
        right.count() as f64 / (labels.len() - half) as f64
    }

    #[test]
    fn the_best_linear_classifier_of_features_alone_reaches_the_closed_form() {
        for (classes, signal) in [(2, 0.6), (2, 1.5), (5, 1.2)] {
            let rest = format!(
                "classes = {classes}\nfeatures = 8\ndegree = 2\nhomophily = 0.5\nfeature_signal = {signal}"
            );
            let found = linear(&drawn(&rest));
            let expected = of_features(signal, classes);
            // Of 10,000 nodes: 0.005 at most, and the means are not known exactly.
            assert!(
                (found - expected).abs() < 0.015,
                "{classes}: {found} {expected}"
            );
        }
    }

    /// What is known of a data set, from the sentence that a reader sees.
    fn known(rest: &str) -> Vec<f64> {
        let data = drawn(rest);
        let [note] = &data.reading.notes[..] else {
            panic!("one note");
        };
        let before = note
            .split(" %")
            .map(|part| part.rsplit(' ').next().unwrap());
        let shares: Vec<f64> = before.filter_map(|text| text.parse().ok()).collect();
        assert_eq!(shares.len(), HOPS + 2, "{note}");
        shares.into_iter().map(|share| share / 100.0).collect()
    }

    #[test]
    fn neighbours_that_say_nothing_add_nothing_and_certain_ones_all() {
        let blind = known("degree = 6\nhomophily = 0.5\nfeature_signal = 1.0");
        for share in &blind[1..] {
            assert!((share - 0.841).abs() < 0.01, "{blind:?}");
        }
        // Components of one class each: nearly all nodes are in the two giant ones.
        let sure = known("degree = 8\nhomophily = 1.0\nfeature_signal = 1.0");
        assert!(*sure.last().unwrap() > 0.998, "{sure:?}");
    }

    #[test]
    fn one_hop_is_the_exact_posterior_of_a_star() {
        // Two classes, signal s, and a neighbour of the same class with chance h. Given its own
        // feature and those of its d neighbours, a node's log odds are 2 s x + Σ log((h e + 1 − h)
        // / ((1 − h) e + h)), e = exp(2 s x'). Drawn here anew, without graph, messages or fields.
        use crate::graph::normal::standard_normal;
        use crate::rng::{Purpose, stream};
        use rand::RngExt;
        let (h, s, degree): (f64, f64, f64) = (0.8, 0.7, 6.0);
        let mut random = stream(5, Purpose::Study, 0, 0);
        let (mut right, all) = (0_u32, 200_000_u32);
        for _ in 0..all {
            let mut odds = 2.0 * s * (s + standard_normal(&mut random));
            // A Poisson number of neighbours (Knuth).
            let (mut product, end) = (random.random::<f64>(), (-degree).exp());
            while product > end {
                let mine = if random.random::<f64>() < h { s } else { -s };
                let e = (2.0 * s * (mine + standard_normal(&mut random))).exp();
                odds += ((h * e + 1.0 - h) / ((1.0 - h) * e + h)).ln();
                product *= random.random::<f64>();
            }
            right += u32::from(odds > 0.0);
        }
        let expected = f64::from(right) / f64::from(all);
        let found = known("degree = 6\nhomophily = 0.8\nfeature_signal = 0.7");
        assert!((found[1] - expected).abs() < 0.01, "{found:?} {expected}");
        // More is known of more, but for what chance makes of 20,000 nodes.
        let more = found.windows(2).all(|pair| pair[1] > pair[0] - 0.003);
        assert!(more, "{found:?}");
    }

    #[test]
    fn other_than_by_chance_is_as_good_as_like_with_like_of_two_classes() {
        let like = known("degree = 7\nhomophily = 0.8\nfeature_signal = 0.6\npower_law = 2.6");
        let unlike = known("degree = 7\nhomophily = 0.2\nfeature_signal = 0.6\npower_law = 2.6");
        for (like, unlike) in like.iter().zip(&unlike) {
            assert!((like - unlike).abs() < 0.012, "{like} {unlike}");
        }
    }
}
