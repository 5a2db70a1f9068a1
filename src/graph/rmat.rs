//! Recursive matrix graphs (Chakrabarti, Zhan and Faloutsos, *R-MAT*, 2004) with the parameters of
//! Graph500, and labels that a graph neural network can learn.

use rand::Rng;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::larger::{Pairs, Room, Sorter, drawn};
use super::normal::{narrow, standard_normal};
use super::propagated::Scores;
use super::{Csr, Features, GraphError, RawDataset};
use crate::rng::{Purpose, stream};

/// Edges, or rows of features, that share one random stream; threads take streams, so their number
/// does not matter.
// Part of what a seed means: with another number the same seed gives another graph.
const BATCH: usize = 1 << 14;
/// Batches that are drawn at a time.
// Some 4 million edges, 32 MiB: little beside the whole, enough for any number of threads.
const TOGETHER: usize = 256;
/// Rounds of drawing in which a number of distinct edges must be reached.
const ROUNDS: u64 = 200;

/// Edges drawn per node where nothing is said (Graph500).
pub(crate) const EDGE_FACTOR: usize = 16;

/// Quadrant probabilities a, b, c where nothing is said (Graph500).
pub(crate) const fn graph500() -> [f64; 3] {
    [0.57, 0.19, 0.19]
}

/// Rounding that shares of three decimals may add to their sum.
const ROUNDING: f64 = 1e-12;

/// Whether these can be the chances a, b, c of three quadrants: each from 0 to 1, and together no
/// more than 1 but for rounding.
pub(crate) fn are_quadrants(quadrants: [f64; 3]) -> bool {
    let [a, b, c] = quadrants;
    quadrants.iter().all(|p| (0.0..=1.0).contains(p)) && a + b + c <= 1.0 + ROUNDING
}

/// How many edges.
#[derive(Clone, Copy)]
pub(super) enum Size {
    /// So many draws, before duplicates, loops and nodes that are not kept go.
    Draws(usize),
    /// So many distinct undirected edges.
    Distinct(usize),
}

/// The graph on the first `nodes` of 2^`scale` randomly relabelled nodes, undirected. O(edges ·
/// scale) time. With room, edges are on disk, and the graph is the same.
pub(super) fn graph(
    scale: u32,
    nodes: usize,
    size: Size,
    quadrants: [f64; 3],
    seed: u64,
    room: Option<&Room>,
) -> Result<Csr, GraphError> {
    let all = 1_usize << scale;
    if nodes > all {
        return Err(GraphError::synthetic(
            "nodes",
            format!("{nodes} is more than 2^scale = {all}; raise `scale`"),
        ));
    }
    if !are_quadrants(quadrants) {
        let what = format!("{quadrants:?} must be 0 or more and together at most 1");
        return Err(GraphError::synthetic("quadrants", what));
    }
    if let Some(room) = room {
        room.check(nodes, (all * size_of::<u32>()) as u64)?;
    }
    // `synthetic` has checked that node numbers fit.
    let mut names: Vec<u32> = (0_u32..).take(all).collect();
    // Small numbers have large degrees in R-MAT: shuffled, a number tells nothing.
    names.shuffle(&mut stream(seed, Purpose::Graph, 0, 0));
    let draws = Draws {
        scale,
        nodes,
        quadrants,
        names,
        seed,
        together: room.map_or(TOGETHER, |room| {
            (room.piece() / (BATCH * size_of::<(u32, u32)>())).clamp(1, TOGETHER)
        }),
    };
    let mut pairs = Pairs::new(room);
    let mut add = |(from, to)| pairs.add(from, to);
    match size {
        // Rounds count from 1: round 0 has shuffled the names.
        Size::Draws(count) => draws.each(count, 1, &mut add)?,
        Size::Distinct(count) if count > nodes * (nodes - 1) / 2 => {
            let what = format!("{count} is more than {nodes} nodes can have");
            return Err(GraphError::synthetic("edges", what));
        }
        Size::Distinct(count) => match room {
            None => {
                let edges = draws.distinct(count)?;
                edges.into_iter().try_for_each(add)?;
            }
            Some(room) => draws.distinct_on_disk(count, room, &mut add)?,
        },
    }
    drop(draws);
    pairs.graph(nodes)
}

/// What edges are drawn by.
struct Draws {
    scale: u32,
    nodes: usize,
    quadrants: [f64; 3],
    names: Vec<u32>,
    seed: u64,
    /// Batches that are drawn at a time.
    together: usize,
}

impl Draws {
    /// Draws `count` edges and takes those that are no loop and whose ends are kept, smaller end
    /// first.
    fn each(
        &self,
        count: usize,
        round: u64,
        take: &mut dyn FnMut((u32, u32)) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        let batches = count.div_ceil(BATCH);
        // Some at a time: what threads have drawn is taken once it is whole.
        for first in (0..batches).step_by(self.together) {
            let last = batches.min(first + self.together);
            let drawn = (first..last).into_par_iter();
            let drawn =
                drawn.map(|batch| self.batch(batch, BATCH.min(count - batch * BATCH), round));
            let drawn: Vec<Vec<(u32, u32)>> = drawn.collect();
            drawn.into_iter().flatten().try_for_each(&mut *take)?;
        }
        Ok(())
    }

    fn batch(&self, batch: usize, length: usize, round: u64) -> Vec<(u32, u32)> {
        let [a, b, c] = self.quadrants;
        // Thresholds on a random 32-bit number; 2^32 itself means always.
        let thresholds = [a, a + b, a + b + c].map(|p| (p * 4_294_967_296.0).round() as u64);
        let mut random = stream(self.seed, Purpose::Graph, batch as u64 + 1, round);
        let mut edges = Vec::with_capacity(length);
        for _ in 0..length {
            let (mut row, mut column) = (0_usize, 0_usize);
            for _ in 0..self.scale {
                let draw = u64::from(random.next_u32());
                let quadrant = thresholds
                    .iter()
                    .filter(|&&threshold| draw >= threshold)
                    .count();
                // The quadrants a, b, c, d are 0 to 3: their two bits are the next ones of row and
                // column.
                row = row << 1 | quadrant >> 1;
                column = column << 1 | quadrant & 1;
            }
            let (from, to) = (self.names[row], self.names[column]);
            if from != to && (from.max(to) as usize) < self.nodes {
                edges.push((from.min(to), from.max(to)));
            }
        }
        edges
    }

    /// Draws until there are `count` different edges.
    fn distinct(&self, count: usize) -> Result<Vec<(u32, u32)>, GraphError> {
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for round in 1..=ROUNDS {
            // Only as many as are missing, so that the count is met and never exceeded.
            let mut fresh = Vec::new();
            self.each(count - edges.len(), round, &mut |edge| {
                fresh.push(edge);
                Ok(())
            })?;
            fresh.retain(|edge| edges.binary_search(edge).is_err());
            edges.append(&mut fresh);
            // Equal edges are alike, so that the outcome is one, whatever threads do.
            edges.par_sort_unstable();
            edges.dedup();
            if edges.len() == count {
                return Ok(edges);
            }
        }
        Err(too_few(edges.len(), count))
    }

    /// The same with edges in sorted runs.
    fn distinct_on_disk(
        &self,
        count: usize,
        room: &Room,
        take: &mut dyn FnMut((u32, u32)) -> Result<(), GraphError>,
    ) -> Result<(), GraphError> {
        let (mut edges, mut found) = (Sorter::new(room), 0);
        for round in 1..=ROUNDS {
            self.each(count - found, round, &mut |(from, to)| {
                edges.push(u64::from(from) << 32 | u64::from(to))
            })?;
            found = edges.distinct()? as usize;
            if found == count {
                for edge in edges.finish()? {
                    let edge = edge.map_err(|error| room.unwritten(error))?;
                    take(((edge >> 32) as u32, edge as u32))?;
                }
                return Ok(());
            }
        }
        Err(too_few(found, count))
    }
}

fn too_few(found: usize, count: usize) -> GraphError {
    let what = format!(
        "only {found} of {count} distinct edges were found; ask for fewer, or raise `nodes`"
    );
    GraphError::synthetic("edges", what)
}

/// Normal features `[nodes, width]`, and as class of a node the largest of `classes` random
/// projections of the features, averaged twice over neighbourhoods (the node included) and
/// standardised over nodes: neighbours tend to agree, two aggregations make the classes separable,
/// and no class is rare.
pub(super) fn label(
    graph: Csr,
    classes: usize,
    width: usize,
    seed: u64,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let nodes = graph.nodes();
    let mut random = stream(seed, Purpose::Features, 0, 0);
    let projection: Vec<f64> = (0..width * classes)
        .map(|_| standard_normal(&mut random))
        .collect();
    let mut scores = Scores::new(nodes, projection, width, room)?;
    let draw = |batch: usize, rows: &mut [f32]| {
        // Stream 0 has drawn the projection.
        let mut random = stream(seed, Purpose::Features, batch as u64 + 1, 0);
        for value in rows {
            *value = narrow(standard_normal(&mut random));
        }
    };
    let see = |rows: &[f32]| scores.see(rows);
    let features = drawn((nodes, width), BATCH, room, draw, see)?;
    let labels = scores.largest(&graph)?;
    Ok(dataset(graph, features, labels, classes))
}

/// The same without values of features, and all nodes in the first class.
pub(super) fn outline(graph: Csr, classes: usize, width: usize) -> RawDataset {
    let labels = vec![Some(0); graph.nodes()];
    let values = Vec::new();
    dataset(graph, Features::Dense { width, values }, labels, classes)
}

fn dataset(graph: Csr, features: Features, labels: Vec<Option<u32>>, classes: usize) -> RawDataset {
    let name = format!("rmat-{}", graph.nodes());
    RawDataset::new(name, graph, features, labels, classes, vec![])
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH500: [f64; 3] = [0.57, 0.19, 0.19];

    #[test]
    fn the_asked_for_number_of_distinct_edges_is_met_exactly() {
        let made = graph(10, 700, Size::Distinct(3000), GRAPH500, 1, None).unwrap();
        assert_eq!((made.nodes(), made.edges()), (700, 6000));
        assert!(made.transpose() == made);
    }

    #[test]
    fn draws_lose_only_loops_and_duplicates() {
        let made = graph(10, 1024, Size::Draws(4096), GRAPH500, 1, None).unwrap();
        let edges = made.edges() / 2;
        assert!((2800..=4096).contains(&edges), "{edges}");
        // A skewed matrix has hubs: far above the mean degree of 8.
        let largest = (0..1024).map(|v| made.degree(v)).max().unwrap();
        assert!(largest > 60, "{largest}");
        let even = graph(10, 1024, Size::Draws(4096), [0.25; 3], 1, None).unwrap();
        assert!((0..1024).all(|v| even.degree(v) < 30));
    }

    #[test]
    fn threads_do_not_change_the_data() {
        let make = |threads| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let made = graph(12, 4096, Size::Distinct(40_000), GRAPH500, 5, None).unwrap();
                label(made, 5, 6, 5, None).unwrap()
            })
        };
        let (one, three) = (make(1), make(3));
        assert_eq!(
            (&one.graph, &one.features, &one.labels),
            (&three.graph, &three.features, &three.labels)
        );
    }

    #[test]
    fn neighbours_tend_to_agree_and_no_class_is_rare() {
        let data = label(
            graph(11, 2048, Size::Draws(16_000), GRAPH500, 3, None).unwrap(),
            4,
            16,
            3,
            None,
        )
        .unwrap();
        let agree = |&(a, b): &(u32, u32)| data.labels.of(a as usize) == data.labels.of(b as usize);
        let share =
            data.graph.iter_edges().filter(agree).count() as f64 / data.graph.edges() as f64;
        assert!(share > 0.35, "{share}, where 0.25 is chance");
        for class in 0..4 {
            let size = data
                .labels
                .classes()
                .iter()
                .filter(|&&label| label == Some(class))
                .count();
            assert!(size > 200, "{size}");
        }
    }

    #[test]
    fn quadrants_that_are_one_but_for_rounding_can_be_drawn() {
        let quadrants = [0.55, 0.34, 0.11];
        assert!(quadrants.iter().sum::<f64>() > 1.0);
        let made = graph(8, 256, Size::Draws(1024), quadrants, 0, None).unwrap();
        assert!(made.edges() > 600, "{}", made.edges());
        for wrong in [
            [0.55, 0.34, 0.110_001],
            [1.1, -0.1, 0.0],
            [f64::NAN, 0.1, 0.1],
        ] {
            assert!(!are_quadrants(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let message = |nodes, size, quadrants| {
            graph(3, nodes, size, quadrants, 0, None)
                .unwrap_err()
                .to_string()
        };
        assert!(message(9, Size::Draws(8), GRAPH500).contains("more than 2^scale = 8"));
        assert!(message(8, Size::Distinct(29), GRAPH500).contains("more than 8 nodes can have"));
        assert!(message(8, Size::Distinct(28), [1.0, 0.0, 0.0]).contains("only 0 of 28"));
        assert!(message(8, Size::Draws(8), [0.9, 0.9, 0.0]).contains("together at most 1"));
    }
}
