//! What neighbour sampling meets in a graph that is known by its law.
//!
//! Nodes are told apart by their class k and by the *population* p that they are in, such as those
//! that a worker owns and all others. A node has a Poisson number of neighbours, δ on average. Each
//! node of the frontier draws min(fan-out, neighbours) of them; draws spread over classes as
//! neighbours do. Let nodes of class k have been drawn Λ times each by now, on average. They were
//! drawn through their edges, so one with d neighbours has not been with chance `e^(−dΛ/δ)`, and of
//! all of them, with `x = Λ/δ`,
//!
//! ```text
//!   not drawn           Σ Poisson(d; δ) e^(−xd) = e^(−δ (1 − e^(−x)))
//!   neighbours of such  Poisson(δ e^(−x)): fewer than others have, and none cannot be drawn at all
//!   in the frontier     1 − (1 − π_p) · not drawn, for the share π_p of seeds
//! ```
//!
//! A node that was drawn through δ (1 − e^(−x)) of its edges draws through them again as it does
//! through others. At their ends are nodes that are there already, so these draws are left out of
//! Λ.

use super::classes::{ExpectedGraph, NodeClass};

/// Nodes that stand alike to who samples: a random share of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Population {
    /// Share of all nodes.
    pub share: f64,
    /// How many of them the step starts at, chosen uniformly.
    pub seeds: f64,
    /// Whether neighbours are drawn for them. Rows of a halo whose edges are elsewhere have none.
    pub(crate) spreads: bool,
}

impl Population {
    /// The nodes of one worker of so many, some of which it starts at, and those of all others, if
    /// there are any; neighbours are drawn for all.
    pub(crate) fn of_one(workers: usize, seeds: usize) -> Vec<Self> {
        let own = 1.0 / workers as f64;
        let population = |share: f64, seeds: usize| Self {
            share,
            seeds: seeds as f64,
            spreads: true,
        };
        let mut all = vec![population(own, seeds), population(1.0 - own, 0)];
        all.retain(|one| one.share > 0.0);
        all
    }
}

/// Nodes of one population in a frontier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Reached {
    /// Expected number of them.
    pub nodes: f64,
    /// Neighbours that the next hop draws for them.
    pub edges: f64,
    /// Neighbours that it looks at for that.
    pub(crate) looked_at: f64,
}

/// Expected frontiers of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frontiers {
    /// Unique nodes before the first hop and after each, `[hops + 1, populations]`.
    pub rows: Vec<Vec<Reached>>,
    /// Chance of a node to be in each, `[hops + 1, populations, classes]`.
    pub(crate) chances: Vec<Vec<Vec<f64>>>,
    /// Neighbours that each hop draws for the nodes of a population, by their class, `[hops,
    /// populations, classes]`.
    pub(crate) draws: Vec<Vec<Vec<f64>>>,
}

impl Frontiers {
    /// Chance of a node to be among the outermost inputs, `[populations, classes]`.
    pub(crate) fn inputs(&self) -> &[Vec<f64>] {
        self.chances.last().map_or(&[], Vec::as_slice)
    }
}

impl NodeClass {
    /// Edges of a node of this class, each counted once, along which neighbours were drawn in so
    /// many `steps`, in each of which it drew with this chance: of d edges along min(fan-out, d).
    pub(crate) fn edges_drawn(&self, fanout: usize, chance: f64, steps: i32) -> f64 {
        let of = |degree: f64| {
            let share = (fanout as f64 / degree).min(1.0);
            degree * (1.0 - (1.0 - chance * share).powi(steps))
        };
        let certain = self.chances.iter().all(|&(_, chance)| chance >= 1.0);
        // So many neighbours are never far from their mean.
        if certain || self.degree > 100.0 {
            return if self.degree > 0.0 {
                of(self.degree)
            } else {
                0.0
            };
        }
        let (mut known, mut expected) = ((-self.degree).exp(), 0.0);
        // Ten deviations above the mean there are none.
        let most = self.degree + 10.0 * self.degree.sqrt() + 10.0;
        for degree in 1..=most as u32 {
            known *= self.degree / f64::from(degree);
            expected += known * of(f64::from(degree));
        }
        expected
    }
}

/// The chance of a node of a class to be among so many neighbours that were drawn of the class.
pub(crate) fn drawn(class: &NodeClass, draws: f64) -> f64 {
    if class.nodes == 0.0 {
        return 0.0;
    }
    let mut met = Met::nothing(class, 1.0, 1.0);
    met.draw(draws / class.nodes);
    1.0 - met.not_drawn
}

/// A step with a fan-out for each hop, from the batch outwards. Neighbours outside all populations
/// are not seen: where shares add up to less than 1, only that share of neighbours is there.
/// O(hops · classes · (classes + populations)).
pub(crate) fn frontiers(
    graph: &ExpectedGraph,
    populations: &[Population],
    fanouts: &[usize],
) -> Frontiers {
    let (all, classes) = (graph.nodes(), &graph.classes);
    let sum = |some: fn(&&Population) -> bool| -> f64 {
        populations.iter().filter(some).map(|one| one.share).sum()
    };
    let (seen, spreading) = (sum(|_| true), sum(|one| one.spreads));
    let mut met: Vec<Met> = classes
        .iter()
        .map(|class| Met::nothing(class, seen, spreading))
        .collect();
    let seeds = |one: &Population| (one.seeds / (one.share * all)).min(1.0);
    let (mut rows, mut chances, mut draws) = (Vec::new(), Vec::new(), Vec::new());
    for hop in 0..=fanouts.len() {
        // After the last hop nothing is drawn.
        let fanout = fanouts.get(hop).copied().unwrap_or(0);
        let mut drawn = vec![0.0; classes.len()];
        let mut before = Vec::with_capacity(populations.len());
        let (mut there, mut of_all) = (Vec::new(), Vec::new());
        for population in populations {
            let mut reached = Reached::default();
            let (mut chance, mut own) = (Vec::new(), vec![0.0; classes.len()]);
            for (class, met) in classes.iter().zip(&met) {
                let nodes = class.nodes * population.share;
                let unmet = (1.0 - seeds(population)) * met.not_drawn;
                chance.push(1.0 - unmet);
                reached.nodes += nodes * (1.0 - unmet);
                // There is nobody to draw, and shares of neighbours are divided by their number.
                if !population.spreads || class.degree == 0.0 || hop == fanouts.len() {
                    continue;
                }
                let edges =
                    nodes * (met.draws(fanout, met.mean) - unmet * met.draws(fanout, met.left));
                reached.edges += edges;
                reached.looked_at += nodes * (met.mean - unmet * met.left);
                let new = (edges - nodes * met.back(fanout)).max(0.0);
                let to = drawn.iter_mut().zip(&mut own).zip(&class.neighbours);
                for ((drawn, own), neighbours) in to {
                    *drawn += new * neighbours / class.degree;
                    *own += edges * neighbours / class.degree;
                }
            }
            before.push(reached);
            there.push(chance);
            of_all.push(own);
        }
        rows.push(before);
        chances.push(there);
        if hop < fanouts.len() {
            draws.push(of_all);
        }
        for ((class, met), drawn) in classes.iter().zip(&mut met).zip(&drawn) {
            if class.nodes > 0.0 {
                met.draw(drawn / (class.nodes * seen));
            }
        }
    }
    Frontiers {
        rows,
        chances,
        draws,
    }
}

/// What has become of the nodes of a class.
struct Met {
    /// Whether all have as many neighbours.
    certain: bool,
    /// Neighbours that are seen, on average, and those of them that draw.
    mean: f64,
    drawing: f64,
    /// How often each was drawn, on average.
    times: f64,
    /// The chance of one not to have been, and how many neighbours such have that are seen.
    not_drawn: f64,
    left: f64,
}

impl Met {
    fn nothing(class: &NodeClass, seen: f64, spreading: f64) -> Self {
        let mean = class.degree * seen;
        Self {
            // A part of the neighbours is drawn by chance, however many there are.
            certain: seen >= 1.0 && class.chances.iter().all(|&(_, chance)| chance >= 1.0),
            mean,
            drawing: class.degree * spreading,
            times: 0.0,
            not_drawn: 1.0,
            left: mean,
        }
    }

    /// Each is drawn so many times more.
    fn draw(&mut self, times: f64) {
        self.times += times;
        if self.certain {
            self.not_drawn = (-self.times).exp();
        } else if self.drawing > 0.0 {
            let through = (-self.times / self.drawing).exp_m1();
            self.not_drawn = (self.drawing * through).exp();
            self.left = self.mean + self.drawing * through;
        }
    }

    /// Draws of a node along edges through which it was drawn itself: they meet nobody new.
    fn back(&self, fanout: usize) -> f64 {
        if self.drawing <= 0.0 {
            return 0.0;
        }
        let edges = -self.drawing * (-self.times / self.drawing).exp_m1();
        edges * self.draws(fanout, self.mean) / self.mean
    }

    /// E[min(`fanout`, D)] of the neighbours D of nodes with so many on average.
    fn draws(&self, fanout: usize, mean: f64) -> f64 {
        if self.certain {
            self.mean.min(fanout as f64)
        } else {
            poisson_draws(fanout, mean)
        }
    }
}

/// E[min(`fanout`, D)] of a Poisson number D with this mean: the sum over places of the chance that
/// there is one for it.
fn poisson_draws(fanout: usize, mean: f64) -> f64 {
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
    use super::super::rmat::RmatLaw;
    use super::*;

    /// All nodes, of which so many are seeds.
    fn everybody(seeds: f64) -> [Population; 1] {
        [Population {
            share: 1.0,
            seeds,
            spreads: true,
        }]
    }

    #[test]
    fn draws_are_the_mean_of_the_smaller_number() {
        assert!((poisson_draws(1, 2.0) - (1.0 - (-2.0_f64).exp())).abs() < 1e-12);
        assert!((poisson_draws(100, 3.0) - 3.0).abs() < 1e-12);
        assert!((poisson_draws(5, 1e4) - 5.0).abs() < 1e-12);
        let by_hand: f64 = (0..60)
            .scan((-8.0_f64).exp(), |chance, n| {
                let now = *chance;
                *chance *= 8.0 / f64::from(n + 1);
                Some(now * f64::from(n.min(10)))
            })
            .sum();
        assert!((poisson_draws(10, 8.0) - by_hand).abs() < 1e-9);
    }

    #[test]
    fn seeds_alone_are_the_inputs_without_hops() {
        let graph = degrees::graph(&[(10.0, 1000.0)]);
        let found = frontiers(&graph, &everybody(100.0), &[]);
        assert_eq!(found.rows.len(), 1);
        assert!((found.rows[0][0].nodes - 100.0).abs() < 1e-9);
    }

    #[test]
    fn a_frontier_never_outgrows_the_graph() {
        let graph = degrees::graph(&[(50.0, 1000.0)]);
        let found = frontiers(&graph, &everybody(500.0), &[25, 25, 25]);
        let nodes: Vec<f64> = found.rows.iter().map(|rows| rows[0].nodes).collect();
        assert!(nodes.windows(2).all(|pair| pair[0] <= pair[1]), "{nodes:?}");
        assert!(nodes[3] > 999.0 && nodes[3] <= 1000.0);
        assert_eq!(found.rows[0][0].edges, 500.0 * 25.0);
    }

    #[test]
    fn populations_divide_what_one_would_reach() {
        // A tenth of the nodes holds all seeds. Whose rows do not spread have no edges.
        let graph = degrees::graph(&[(8.0, 10_000.0)]);
        let split = |spreads| {
            let own = Population {
                share: 0.1,
                seeds: 100.0,
                spreads: true,
            };
            let others = Population {
                share: 0.9,
                seeds: 0.0,
                spreads,
            };
            frontiers(&graph, &[own, others], &[5, 5])
        };
        let found = split(true);
        // 500 draws over all nodes: e^(-0.05) are not drawn.
        let drawn = 1.0 - (-0.05_f64).exp();
        assert!((found.rows[1][1].nodes - 9_000.0 * drawn).abs() < 1e-6);
        assert!((found.rows[1][0].nodes - (100.0 + 900.0 * drawn)).abs() < 1e-6);
        let still = split(false);
        assert_eq!(still.rows[1][1].edges, 0.0);
        assert!(still.rows[2][1].nodes < found.rows[2][1].nodes);
    }

    #[test]
    fn nodes_without_neighbours_are_never_drawn() {
        // Half an edge a node on average: e^(-1/2) have none, however often others are drawn.
        let graph = RmatLaw::new(12, 0.25, [0.25; 3]).graph();
        let found = frontiers(&graph, &everybody(2_000.0), &[50; 20]);
        let (degree, nodes) = (graph.edges() / 4_096.0, found.rows[20][0].nodes);
        let connected = 1.0 - (1.0 - 2_000.0 / 4_096.0) * (-degree).exp();
        assert!(nodes <= 4_096.0 * connected + 1e-6, "{nodes}");
    }

    #[test]
    fn what_is_not_there_is_not_drawn() {
        // A tenth of the nodes is seen, so of 50 neighbours 5.
        let graph = degrees::graph(&[(50.0, 1000.0)]);
        let own = Population {
            share: 0.1,
            seeds: 10.0,
            spreads: true,
        };
        let found = frontiers(&graph, &[own], &[100]);
        assert!((found.rows[0][0].edges - 50.0).abs() < 1e-9);
        assert!(found.rows[1][0].nodes <= 100.0);
    }
}
