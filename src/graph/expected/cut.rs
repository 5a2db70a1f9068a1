//! What METIS, LDG and FENNEL make of a graph that is known by its law.
//!
//! They have no closed form. Smaller graphs of the same law are drawn and cut, and what a cut
//! leaves of a random partition's boundary rows and cut edges is extrapolated: the logarithm of
//! that share is a line in the logarithm of the number of nodes, through the means of the sizes.
//! How rows, nodes and edges are shared out among workers is that of the largest graph that was
//! cut, with rows of busy workers raised until the busiest has what a line through the sizes says.

use std::path::Path;

use super::classes::ExpectedGraph;
use super::line::Line;
use crate::graph::{
    BoundaryCounts, BoundaryPlan, Csr, GraphError, Known, PartCounts, PartitionMethod,
    PartitionSpec, RmatCounts,
};
use crate::rng::mix;

/// Confidence of the interval.
pub(super) const LEVEL: f64 = 0.95;

/// Which end of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The fewest rows and cut edges.
    Low,
    /// What is most likely.
    Middle,
    /// The most.
    High,
}

/// What smaller graphs of the same law say about a partitioner.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CutFit {
    method: PartitionMethod,
    scales: Vec<u32>,
    graphs: usize,
    rows: Trend,
    edges: Trend,
    /// Rows that the busiest worker sends or receives, over the mean.
    busiest: Trend,
    shape: Shape,
}

/// A share of what random parts have, by ln(nodes).
#[derive(Clone, Debug, PartialEq)]
struct Trend {
    line: Line,
    /// What the line through the others says of the largest size, over what was found there, − 1.
    held_out: f64,
}

/// How a cut is shared out among workers: shares of all.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    owned: Vec<f64>,
    internal: Vec<f64>,
    cut: Vec<f64>,
    /// Rows that one worker sends another, `[from][to]`.
    rows: Vec<Vec<f64>>,
}

/// Graphs that are cut for a fit.
#[derive(Clone, Debug)]
pub(crate) struct Samples<'a> {
    /// The law.
    pub law: &'a RmatCounts,
    /// 2^scale nodes each, ascending.
    pub scales: Vec<u32>,
    /// Graphs of each size.
    pub graphs: usize,
    /// Share of nodes that train.
    pub train: f64,
}

impl CutFit {
    /// Draws and cuts them; `told` hears of each size before it is begun. Deterministic by `seed`.
    ///
    /// # Errors
    /// If a graph cannot be drawn or cut, or there are too few sizes for a line that leaves one
    /// out.
    pub(crate) fn measure(
        samples: &Samples<'_>,
        spec: &PartitionSpec,
        seed: u64,
        told: impl Fn(u32),
    ) -> Result<Self, GraphError> {
        let (mut rows, mut edges, mut busiest) = (Vec::new(), Vec::new(), Vec::new());
        let mut shape = None;
        for &scale in &samples.scales {
            told(scale);
            let small = samples.law.at(scale);
            let law = small.law()?;
            let graph = law.graph();
            let (mut more_rows, mut more_edges, mut most) = (0.0, 0.0, 0.0);
            for number in 0..samples.graphs {
                let seed = mix(mix(seed, u64::from(scale)), number as u64);
                let counts = cut(&law.draw(seed)?, samples.train, spec, seed)?;
                let cut: usize = counts.parts.iter().map(|part| part.cut_edges).sum();
                more_rows += counts.boundary_rows() as f64 / samples.graphs as f64;
                more_edges += cut as f64 / samples.graphs as f64;
                let found = Shape::of(&counts);
                most += found.busiest() / samples.graphs as f64;
                if number == 0 {
                    shape = Some(found);
                }
            }
            let nodes = graph.nodes().ln();
            let random = (
                graph.boundary_rows(spec.workers),
                random_cut(&graph, spec.workers),
            );
            rows.push((nodes, (more_rows / random.0).ln()));
            edges.push((nodes, (more_edges / random.1).ln()));
            busiest.push((nodes, most.ln()));
        }
        let trends = [rows, edges, busiest].map(|points| Trend::of(&points));
        let ([Some(rows), Some(edges), Some(busiest)], Some(shape)) = (trends, shape) else {
            let what = "`fit.scales` needs four different sizes or more, of graphs with edges between workers";
            return Err(GraphError::key("dataset.counts", what));
        };
        Ok(Self {
            method: spec.method,
            scales: samples.scales.clone(),
            graphs: samples.graphs,
            rows,
            edges,
            busiest,
            shape,
        })
    }

    /// What each worker holds, sends and receives in a graph of this law, rounded to whole numbers;
    /// `left` is what communities, which R-MAT has none of, leave of its boundary rows and cut
    /// edges.
    pub(crate) fn counts(
        &self,
        graph: &ExpectedGraph,
        (end, left): (End, f64),
        training: f64,
        columns: usize,
    ) -> BoundaryCounts {
        let workers = self.shape.owned.len();
        let nodes = graph.nodes();
        let all = graph.edges();
        let rows = graph.boundary_rows(workers) * self.rows.share(nodes, end) * left;
        let cut = (random_cut(graph, workers) * self.edges.share(nodes, end) * left).min(all);
        let owned = dealt(nodes, &self.shape.owned);
        let cuts = dealt(cut, &self.shape.cut);
        let internal = dealt(all - cut, &self.shape.internal);
        let trains = dealt(training, &self.shape.owned);
        let mut parts: Vec<PartCounts> = (0..workers)
            .map(|rank| PartCounts {
                owned: owned[rank],
                internal_edges: internal[rank],
                cut_edges: cuts[rank],
                training: trains[rank].min(owned[rank]),
                own_values: owned[rank] * columns,
                ..PartCounts::default()
            })
            .collect();
        let shape = self.shape.raised(self.busiest.times(nodes, end));
        let sent = shared_out(rows, &shape, &owned);
        for (from, row) in (0_u32..).zip(sent) {
            for (to, sent) in (0_u32..).zip(row) {
                if sent > 0 {
                    parts[from as usize].sends.push((to, sent));
                    let receiver = &mut parts[to as usize];
                    receiver.receives.push((from, sent));
                    receiver.halo += sent;
                    receiver.halo_values += sent * columns;
                }
            }
        }
        BoundaryCounts {
            parts,
            nodes: nodes.round() as usize,
            edges: all.round() as usize,
            dense: true,
        }
    }

    /// What is assumed of a graph of so many nodes, and how good that was where it could be seen.
    pub(crate) fn said(&self, nodes: f64) -> String {
        let share = |trend: &Trend| {
            let [low, middle, high] =
                [End::Low, End::Middle, End::High].map(|e| trend.share(nodes, e));
            format!("{middle:.3} ({low:.3} to {high:.3})")
        };
        // No zero is negative.
        let off = |trend: &Trend| format!("{:+.1} %", (1e3 * trend.held_out).round() / 10.0 + 0.0);
        format!(
            "parts of {} by a fit: {} of the boundary rows and {} of the cut edges of random parts, with intervals of \
             {:.0} %, and {:.2} times the mean rows at the busiest worker, by lines through {} graphs of 2^{} to 2^{} nodes \
             each; the largest left out, they say {}, {} and {}",
            self.method.name(),
            share(&self.rows),
            share(&self.edges),
            100.0 * LEVEL,
            self.busiest.times(nodes, End::Middle),
            self.graphs,
            self.scales.first().unwrap_or(&0),
            self.scales.last().unwrap_or(&0),
            off(&self.rows),
            off(&self.edges),
            off(&self.busiest),
        )
    }
}

/// So many rows by these shares, `[from][to]`. Nobody has more rows to send than it owns: what is
/// too much for one comes from the others, as far as they have it.
fn shared_out(rows: f64, shares: &[Vec<f64>], owned: &[usize]) -> Vec<Vec<usize>> {
    let sent = |times: f64| {
        let of_worker = |(shares, &owned): (&Vec<f64>, &usize)| {
            let row = shares
                .iter()
                .map(|share| (times * rows * share).min(owned as f64));
            row.collect::<Vec<f64>>()
        };
        shares.iter().zip(owned).map(of_worker).collect::<Vec<_>>()
    };
    let mut times = 1.0;
    // Each time those who can make good what was missing; where nobody can, it stays missing.
    for _ in 0..20 {
        let all: f64 = sent(times).iter().flatten().sum();
        if all <= 0.0 || all >= rows * (1.0 - 1e-6) {
            break;
        }
        times *= rows / all;
    }
    let whole = |row: Vec<f64>| row.into_iter().map(|rows| rows.round() as usize).collect();
    sent(times).into_iter().map(whole).collect()
}

impl Trend {
    /// The line through `(ln nodes, ln share)`, and what it says of the last point without it.
    fn of(points: &[(f64, f64)]) -> Option<Self> {
        let (last, others) = points.split_last()?;
        if points.iter().any(|(_, share)| !share.is_finite()) {
            return None;
        }
        let without = Line::through(others)?;
        Some(Self {
            line: Line::through(points)?,
            held_out: (without.at(last.0) - last.1).exp_m1(),
        })
    }

    /// What the most is of a mean, which is no more than it however far the line falls.
    fn times(&self, nodes: f64, end: End) -> f64 {
        self.at(nodes, end).max(1.0)
    }

    /// What is of that of random parts, which no partitioner makes more of.
    fn share(&self, nodes: f64, end: End) -> f64 {
        self.at(nodes, end).min(1.0)
    }

    fn at(&self, nodes: f64, end: End) -> f64 {
        let x = nodes.ln();
        let half = self.line.half(x, LEVEL);
        let middle = self.line.at(x);
        match end {
            End::Low => (middle - half).exp(),
            End::Middle => middle.exp(),
            End::High => (middle + half).exp(),
        }
    }
}

impl Shape {
    fn of(counts: &BoundaryCounts) -> Self {
        let workers = counts.workers();
        let shares = |of: fn(&PartCounts) -> usize| {
            let all: usize = counts.parts.iter().map(of).sum();
            let share = |part| of(part) as f64 / all.max(1) as f64;
            counts.parts.iter().map(share).collect()
        };
        let all = counts.boundary_rows().max(1) as f64;
        let rows = counts.parts.iter().map(|part| {
            let mut rows = vec![0.0; workers];
            for &(to, sent) in &part.sends {
                rows[to as usize] = sent as f64 / all;
            }
            rows
        });
        Self {
            rows: rows.collect(),
            owned: shares(|part| part.owned),
            internal: shares(|part| part.internal_edges),
            cut: shares(|part| part.cut_edges),
        }
    }

    /// The share of rows that the busiest worker sends or receives, over that of a mean one.
    fn busiest(&self) -> f64 {
        busiest(&self.rows)
    }

    /// The rows, with those of busy workers raised or lowered until the busiest has so much, as far
    /// as the differences that there are go: their fourth power at most.
    fn raised(&self, wanted: f64) -> Vec<Vec<f64>> {
        let loads = loads(&self.rows);
        let mean = loads.iter().sum::<f64>() / loads.len() as f64;
        let with = |power: f64| {
            let factor: Vec<f64> = loads.iter().map(|load| (load / mean).powf(power)).collect();
            let mut rows = self.rows.clone();
            for (row, from) in rows.iter_mut().zip(&factor) {
                for (share, to) in row.iter_mut().zip(&factor) {
                    // Who has no rows at all keeps none.
                    *share = if *share > 0.0 {
                        *share * from * to
                    } else {
                        0.0
                    };
                }
            }
            let all: f64 = rows.iter().flatten().sum();
            rows.iter_mut().flatten().for_each(|share| *share /= all);
            rows
        };
        // The larger the power, the busier the busiest; halved until no number lies between.
        let (mut low, mut high) = (-1.0, 3.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if busiest(&with(middle)) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        with(high)
    }
}

/// Rows that each worker sends or receives, whichever are more.
fn loads(rows: &[Vec<f64>]) -> Vec<f64> {
    let received = |to: usize| rows.iter().map(|row| row[to]).sum::<f64>();
    let load = |(rank, row): (usize, &Vec<f64>)| row.iter().sum::<f64>().max(received(rank));
    rows.iter().enumerate().map(load).collect()
}

fn busiest(rows: &[Vec<f64>]) -> f64 {
    loads(rows).into_iter().fold(0.0, f64::max) * rows.len() as f64
}

/// A graph, cut. Nodes are numbered at random, so that the first ones train.
fn cut(
    graph: &Csr,
    train: f64,
    spec: &PartitionSpec,
    seed: u64,
) -> Result<BoundaryCounts, GraphError> {
    let training = ((graph.nodes() as f64 * train).round().max(1.0) as usize).min(graph.nodes());
    let train: Vec<u32> = (0_u32..).take(training).collect();
    let known = Known {
        train: &train,
        labels: None,
    };
    let own = PartitionSpec {
        // Of the fit's graphs each is cut by a seed of its own.
        seed: None,
        ..spec.clone()
    };
    let partition = own.partition(graph, known, Path::new(""), seed)?;
    let plan = BoundaryPlan::new(graph, &partition);
    Ok(BoundaryCounts::of_rows(&plan))
}

/// Ends of edges between workers that random parts have.
fn random_cut(graph: &ExpectedGraph, workers: usize) -> f64 {
    graph.edges() * (1.0 - 1.0 / workers as f64)
}

/// So much of something by shares that add up to 1, in whole numbers that add up, too.
fn dealt(all: f64, shares: &[f64]) -> Vec<usize> {
    let (mut sum, mut before) = (0.0, 0.0_f64);
    let each = shares.iter().map(|share| {
        sum += share;
        let until = (all * sum).round();
        let own = until - before;
        before = until;
        own as usize
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_of_random_parts_is_more_than_all() {
        let points = [(5.0, -2.0), (6.0, -1.6), (7.0, -1.1), (8.0, -0.7)];
        let trend = Trend::of(&points).unwrap();
        let nodes = 20.0_f64.exp();
        assert!(trend.at(nodes, End::Middle) > 1.0);
        assert_eq!(trend.share(nodes, End::Middle).to_bits(), 1.0_f64.to_bits());
        assert!(trend.share(6.0_f64.exp(), End::Middle) < 0.3);
    }

    #[test]
    fn a_fitted_cut_holds_every_node_and_edge_once_and_says_what_is_sent_both_ways() {
        let law: RmatCounts = toml::from_str("scale = 12").unwrap();
        let samples = Samples {
            law: &law,
            scales: vec![7, 8, 9, 10],
            graphs: 1,
            train: 0.25,
        };
        let spec: PartitionSpec = toml::from_str("method = 'fennel'\nworkers = 5").unwrap();
        let measure = || CutFit::measure(&samples, &spec, 3, |_| ()).unwrap();
        let fit = measure();
        assert_eq!(fit, measure(), "the seed decides");
        let graph = law.law().unwrap().graph();
        let at = |end| fit.counts(&graph, (end, 1.0), 1024.0, 8);
        let counts = at(End::Middle);
        let sum = |of: fn(&PartCounts) -> usize| counts.parts.iter().map(of).sum::<usize>();
        assert_eq!(sum(|part| part.owned), 4096);
        assert_eq!(sum(|part| part.training), 1024);
        let ends = sum(|part| part.internal_edges + part.cut_edges);
        assert!(ends.abs_diff(counts.edges) <= 1, "{ends} {}", counts.edges);
        for (rank, part) in (0_u32..).zip(&counts.parts) {
            let received: usize = part.receives.iter().map(|(_, rows)| rows).sum();
            assert_eq!(part.halo, received);
            for (to, rows) in &part.sends {
                assert!(counts.parts[*to as usize].receives.contains(&(rank, *rows)));
            }
        }
        let rows = |end| at(end).boundary_rows();
        assert!(rows(End::Low) < rows(End::Middle) && rows(End::Middle) < rows(End::High));
        assert!((rows(End::Middle) as f64) < graph.boundary_rows(5));
        // The interval of the busiest worker is in the ends, too.
        let busy = |end| Shape::of(&at(end)).busiest();
        assert!(busy(End::Low) <= busy(End::Middle) && busy(End::Middle) < busy(End::High));
        let few = fit.counts(&graph, (End::Low, 0.25), 1024.0, 8);
        let share = few.boundary_rows() as f64 / rows(End::Low) as f64;
        assert!((share - 0.25).abs() < 0.01, "{share}");
        // Evened out half-way, and as it is; what is already even cannot be raised far.
        let wanted = f64::midpoint(1.0, fit.shape.busiest());
        let (evened, own) = (
            fit.shape.raised(wanted),
            fit.shape.raised(fit.shape.busiest()),
        );
        assert!(
            (busiest(&evened) - wanted).abs() < 1e-9,
            "{wanted} {}",
            busiest(&evened)
        );
        let mut pairs = own.iter().flatten().zip(fit.shape.rows.iter().flatten());
        assert!(pairs.all(|(one, other)| (one - other).abs() < 1e-9));
    }

    #[test]
    fn what_one_does_not_own_comes_from_the_others() {
        let shares = [vec![0.0, 0.5], vec![0.5, 0.0]];
        let sent = |rows, owned: [usize; 2]| shared_out(rows, &shares, &owned);
        assert_eq!(sent(100.0, [60, 60]), [[0, 50], [50, 0]]);
        assert_eq!(sent(100.0, [10, 1000]), [[0, 10], [90, 0]]);
        assert_eq!(sent(100.0, [10, 20]), [[0, 10], [20, 0]], "nobody has more");
        assert_eq!(sent(0.0, [10, 20]), [[0, 0], [0, 0]]);
    }

    #[test]
    fn the_most_is_no_less_than_the_mean_however_far_a_line_falls() {
        let falls = (0..5).map(|x| (f64::from(x), -0.1 * f64::from(x)));
        let trend = Trend::of(&falls.collect::<Vec<_>>()).unwrap();
        assert_eq!(trend.times(100.0_f64.exp(), End::Middle), 1.0);
    }
}
