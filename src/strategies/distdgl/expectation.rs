//! Sampling in a graph that is known by its law: what workers ask each other for, in expectation.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::drawn::Drawn;
use super::sampled_requests::{Draws, Hop};
use crate::graph::sampling::{Frontiers, Population, Reached, frontiers};
use crate::graph::{Batches, ExpectedGraph, Peers, Steps, round};
use crate::model::InputShape;

/// The sampling of all workers of a run, step after step.
pub(super) struct Expectation {
    law: Arc<ExpectedGraph>,
    batches: Arc<Batches>,
    steps: Steps,
    /// Columns of the features.
    width: usize,
    /// Workers that take the same steps with as much room have one cache in expectation.
    caches: Vec<Cache>,
    /// The cache of each worker.
    cache_of: Vec<usize>,
    /// What is met by so many training nodes.
    met: BTreeMap<usize, Arc<Frontiers>>,
    /// The last steps that differ from each other, by seeds and fetched rows of each worker.
    last: Vec<(Asked, Arc<Drawn>)>,
    /// How many steps differed from those before them.
    drawn: usize,
}

/// Seeds and fetched rows of each worker.
type Asked = Vec<(usize, usize)>;

/// Most steps that are remembered: an epoch has whole batches and one that is not.
const REMEMBERED: usize = 4;

/// What a worker keeps of the nodes of others, by class.
struct Cache {
    /// The first worker whose cache this is.
    rank: usize,
    /// The share that there is room for, those with most neighbours first.
    room: Vec<f64>,
    /// The chance that one of these has come.
    here: Vec<f64>,
}

impl Cache {
    /// That of a worker, with room for so many of these nodes.
    fn new(law: &ExpectedGraph, others: f64, rank: usize, room: usize) -> Self {
        let mut order: Vec<usize> = (0..law.classes.len()).collect();
        order.sort_by(|&a, &b| law.classes[b].degree.total_cmp(&law.classes[a].degree));
        let (mut left, mut share) = (room as f64, vec![0.0; order.len()]);
        for class in order {
            let nodes = law.classes[class].nodes * others;
            let kept = left.min(nodes);
            share[class] = if nodes > 0.0 { kept / nodes } else { 0.0 };
            left -= kept;
        }
        Self {
            rank,
            here: vec![0.0; share.len()],
            room: share,
        }
    }
}

impl Expectation {
    /// That of a run with these steps and columns of features, and caches with room for so many
    /// rows each.
    pub(super) fn new(
        law: Arc<ExpectedGraph>,
        batches: Arc<Batches>,
        (steps, width): (Steps, usize),
        rooms: &[usize],
    ) -> Self {
        let others = 1.0 - 1.0 / rooms.len() as f64;
        let mut caches: Vec<Cache> = Vec::new();
        let mut known: BTreeMap<(usize, usize), usize> = BTreeMap::new();
        let cache = |(rank, &room): (usize, &usize)| {
            *known.entry((steps.nodes(rank), room)).or_insert_with(|| {
                caches.push(Cache::new(&law, others, rank, room));
                caches.len() - 1
            })
        };
        let cache_of = rooms.iter().enumerate().map(cache).collect();
        Self {
            caches,
            cache_of,
            law,
            batches,
            steps,
            width,
            met: BTreeMap::new(),
            last: Vec::new(),
            drawn: 0,
        }
    }

    /// What is done in a step of an epoch; steps are taken in their order, as caches fill. Where
    /// that is what was done in one of the last steps, it is held once.
    pub(super) fn play(&mut self, step: usize) -> Arc<Drawn> {
        let others = 1.0 - 1.0 / self.cache_of.len() as f64;
        let mut of_caches = Vec::with_capacity(self.caches.len());
        for number in 0..self.caches.len() {
            let seeds = self.steps.range(self.caches[number].rank, step).len();
            let met = self.met(seeds);
            let fetched = self.caches[number].fetch(&self.law, &met, others);
            of_caches.push((seeds, round(fetched)));
        }
        let asked: Asked = self.cache_of.iter().map(|&of| of_caches[of]).collect();
        if let Some((_, known)) = self.last.iter().find(|(of, _)| *of == asked) {
            return Arc::clone(known);
        }
        self.drawn += 1;
        let expected = Arc::new(self.expect(&asked));
        if self.last.len() == REMEMBERED {
            self.last.remove(0);
        }
        self.last.push((asked, Arc::clone(&expected)));
        expected
    }

    /// What workers with so many seeds do, which fetch so many rows.
    fn expect(&mut self, asked: &[(usize, usize)]) -> Drawn {
        let workers = asked.len();
        let alike = asked.iter().all(|one| *one == asked[0]);
        let written = if alike { &asked[..1] } else { asked };
        let hops = self.batches.spec.fanouts.len();
        let mut expected = Drawn {
            number: self.drawn,
            workers,
            hops: vec![Vec::with_capacity(workers); hops],
            ..Drawn::default()
        };
        for (rank, &(seeds, fetched)) in written.iter().enumerate() {
            let met = self.met(seeds);
            for (hop, pair) in met.rows.windows(2).enumerate() {
                expected.hops[hop].push(hop_of(rank, workers, &pair[0], &pair[1]));
            }
            let inputs = round(total(&met.rows[hops], |rows| rows.nodes));
            let input = InputShape::dense(inputs, self.width);
            expected.inputs.push((inputs > 0).then_some(input));
            expected.fetched.push(Peers::dealt(rank, workers, fetched));
        }
        expected
    }

    /// What a worker meets with so many seeds.
    fn met(&mut self, seeds: usize) -> Arc<Frontiers> {
        let (law, fanouts) = (&self.law, &self.batches.spec.fanouts);
        let workers = self.cache_of.len();
        let met = self.met.entry(seeds).or_insert_with(|| {
            Arc::new(frontiers(law, &Population::of_one(workers, seeds), fanouts))
        });
        Arc::clone(met)
    }
}

impl Cache {
    /// Rows that come in a step, after which some of them are kept.
    fn fetch(&mut self, law: &ExpectedGraph, met: &Frontiers, others: f64) -> f64 {
        let Some(chances) = met.inputs().get(1) else {
            return 0.0;
        };
        let mut rows = 0.0;
        for (class, chance) in chances.iter().enumerate() {
            let kept = self.room[class] * self.here[class];
            rows += law.classes[class].nodes * others * chance * (1.0 - kept);
            self.here[class] += (1.0 - self.here[class]) * chance;
        }
        rows
    }
}

/// What a worker does at a hop, given what it begins and ends with: of its own nodes and of others.
fn hop_of(rank: usize, workers: usize, before: &[Reached], after: &[Reached]) -> Hop {
    let others = before.get(1).copied().unwrap_or_default();
    let [nodes, neighbours, looked_at] = [others.nodes, others.edges, others.looked_at]
        .map(|all| Peers::dealt(rank, workers, round(all)));
    let mut asks = Peers::default();
    for (owner, &nodes) in nodes.iter() {
        *asks.of(owner) = Draws {
            nodes,
            neighbours: neighbours[owner],
            looked_at: looked_at[owner],
        };
    }
    Hop {
        outputs: round(total(before, |rows| rows.nodes)),
        inputs: round(total(after, |rows| rows.nodes)),
        edges: round(total(before, |rows| rows.edges)),
        looked_at: before.first().map_or(0, |own| round(own.looked_at)),
        asks,
    }
}

fn total(rows: &[Reached], of: fn(&Reached) -> f64) -> f64 {
    rows.iter().map(of).sum()
}
