//! Who holds which chunk in a super-epoch, and what moves between workers for that.

use rand::seq::SliceRandom;
use serde::Deserialize;

use super::estimators::Inclusion;
use super::numbers::Numbers;
use crate::graph::{BoundaryPlan, Chunks, ExpectedGraph, Part, Steps, Task};
use crate::net::Bytes;
use crate::rng::{Purpose, mix, stream};
use crate::strategies::parts::chunks::{Carried, chunk_bytes, halo_bytes};

/// The variable chunk of `worker` in a super-epoch, of `each` chunks that every worker keeps:
/// round-robin over those of the others, so that in `each · (workers − 1)` super-epochs each worker
/// meets each of them once. None for one worker.
pub(crate) const fn variable_chunk(
    worker: usize,
    workers: usize,
    each: usize,
    super_epoch: usize,
) -> Option<usize> {
    if workers < 2 {
        return None;
    }
    let step = super_epoch % (each * (workers - 1));
    Some(((worker + 1) * each + step) % (each * workers))
}

/// When chunks move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Schedule {
    /// Round-robin.
    #[default]
    Sweep,
    /// Never after the first.
    Fixed,
    /// All of them, at random.
    Regroup,
}

/// What decides who holds what and what comes along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// When chunks move, and where to.
    pub schedule: Schedule,
    /// Whether sources of bridge edges are loaded at a switch.
    pub halo: bool,
    /// Whether those of a worker's own chunks are kept from the first switch on.
    pub keeps_halo: bool,
    /// Share of them fetched anew in every epoch.
    pub sampling: f64,
    /// Whether nodes carry their expected coverage.
    pub expected: bool,
    /// What labels are, where nodes carry them.
    pub task: Task,
}

/// Who holds what in one super-epoch.
#[derive(Clone, Debug)]
pub(super) struct Layout<'a> {
    plan: &'a BoundaryPlan,
    workers: usize,
    rules: Rules,
    first: bool,
    /// Chunks of each worker: those whose nodes it trains, then the variable one.
    held: Vec<Vec<usize>>,
    /// Rows of chunks and halos, where the graph is known by its law.
    numbers: Option<Numbers>,
}

impl<'a> Layout<'a> {
    /// The layout of a super-epoch; in a graph that is known by its law, the plan names no nodes.
    pub(super) fn new(
        boundary: &'a BoundaryPlan,
        chunks: Option<&'a Chunks>,
        law: Option<&ExpectedGraph>,
        rules: Rules,
        super_epoch: usize,
    ) -> Self {
        let (plan, seed) = match chunks {
            Some(chunks) => (&*chunks.plan, chunks.seed),
            None => (boundary, 0),
        };
        let workers = boundary.workers();
        let each = plan.workers() / workers;
        let held = if rules.schedule == Schedule::Regroup {
            regrouped(plan.workers(), each, seed, super_epoch)
        } else {
            let variable = |worker| variable_chunk(worker, workers, each, super_epoch);
            (0..workers)
                .map(|worker| {
                    (worker * each..(worker + 1) * each)
                        .chain(variable(worker))
                        .collect()
                })
                .collect()
        };
        Self {
            plan,
            workers,
            rules,
            first: super_epoch == 0,
            numbers: law.map(|law| Numbers::new(law, plan.workers(), each, held[0].len())),
            held,
        }
    }

    /// The rules it was made by.
    pub(super) const fn rules(&self) -> Rules {
        self.rules
    }

    /// Whether the halo of base chunks comes in this super-epoch's switch, to be kept.
    pub(super) const fn brings_what_is_kept(&self) -> bool {
        self.first && self.rules.keeps_halo
    }

    /// The steps of an epoch in which every worker trains the nodes of its chunks, at most `size`
    /// at a time.
    pub(super) fn steps(&self, size: usize) -> Steps {
        let trained = |worker| self.trained(worker).iter();
        let nodes = |worker| {
            trained(worker)
                .map(|&chunk| self.part(chunk).training)
                .sum()
        };
        Steps::new(size, (0..self.workers).map(nodes).collect())
    }

    /// Chunks per worker.
    const fn each(&self) -> usize {
        self.plan.workers() / self.workers
    }

    /// Number of chunks.
    pub(super) const fn chunks(&self) -> usize {
        self.plan.workers()
    }

    /// The worker that stores a chunk.
    pub(super) const fn home(&self, chunk: usize) -> usize {
        chunk / self.each()
    }

    /// What the boundary plan says of a chunk.
    pub(super) fn part(&self, chunk: usize) -> &'a Part {
        &self.plan.parts[chunk]
    }

    /// The chunks whose in-edges a worker holds.
    pub(super) fn held(&self, worker: usize) -> &[usize] {
        &self.held[worker]
    }

    /// Those of them whose nodes it trains.
    pub(super) fn trained(&self, worker: usize) -> &[usize] {
        &self.held[worker][..self.each()]
    }

    /// Chunks that travel from their home to a worker.
    pub(super) fn fetched(&self, from: usize, to: usize) -> Vec<usize> {
        let held = self.held[to].iter().copied();
        held.filter(|&chunk| from != to && self.home(chunk) == from)
            .collect()
    }

    /// The chunk of each node, `[nodes]`.
    pub(super) fn chunk_of(&self) -> Vec<usize> {
        let mut chunks = vec![0; self.plan.nodes];
        for (chunk, part) in self.plan.parts.iter().enumerate() {
            for &node in &part.owned {
                chunks[node as usize] = chunk;
            }
        }
        chunks
    }

    /// The chunk of each of these nodes.
    pub(super) fn chunks_of(&self, nodes: &[u32]) -> Vec<usize> {
        let all = self.chunk_of();
        nodes.iter().map(|&node| all[node as usize]).collect()
    }

    /// How likely the worker of a node of `chunk` sees one of another chunk or unit.
    pub(super) const fn inclusion(&self) -> Inclusion {
        match self.rules.schedule {
            Schedule::Regroup => Inclusion::Balanced {
                units: self.plan.workers(),
                workers: self.workers,
            },
            // A worker's own chunks are one unit; of the others' it sees one at a time.
            Schedule::Sweep | Schedule::Fixed => Inclusion::Sweep {
                chunks: self.each() * (self.workers - 1) + 1,
            },
        }
    }

    /// Whether nodes of these chunks always see each other.
    pub(super) fn together(&self, one: usize, other: usize) -> bool {
        match self.rules.schedule {
            Schedule::Regroup => one == other,
            Schedule::Sweep | Schedule::Fixed => self.home(one) == self.home(other),
        }
    }

    /// In-neighbours that `from` stores of nodes in the chunks `into`, which `to` does not hold
    /// itself; ascending.
    fn sources(&self, from: usize, to: usize, into: &[usize]) -> Vec<u32> {
        let home = from * self.each()..(from + 1) * self.each();
        let mut nodes: Vec<u32> = home
            .filter(|chunk| !self.held[to].contains(chunk))
            .flat_map(|chunk| into.iter().map(move |&reader| (chunk, reader)))
            .flat_map(|(chunk, reader)| {
                let part = self.part(chunk);
                part.sends[reader]
                    .iter()
                    .map(|&row| part.owned[row as usize])
            })
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Halo nodes of `to` that `from` stores; those of the worker's own are local.
    pub(super) fn surroundings(&self, from: usize, to: usize) -> Vec<u32> {
        self.sources(from, to, self.held(to))
    }

    /// How many those are.
    pub(super) fn surrounding_rows(&self, from: usize, to: usize) -> usize {
        match &self.numbers {
            Some(numbers) => numbers.surroundings(self.apart(from, to)),
            None => self.surroundings(from, to).len(),
        }
    }

    /// Chunks that `from` stores and `to` does not hold.
    fn apart(&self, from: usize, to: usize) -> usize {
        let home = from * self.each()..(from + 1) * self.each();
        home.filter(|chunk| !self.held[to].contains(chunk)).count()
    }

    /// Halo rows that a worker has in an epoch.
    pub(super) fn halo_rows(&self, to: usize) -> usize {
        let of = |from: usize| match from {
            from if self.rules.halo || from == to => self.surrounding_rows(from, to),
            from => self.share(self.surrounding_rows(from, to)),
        };
        let any = self.rules.halo || self.rules.sampling > 0.0;
        (0..self.workers).filter(|_| any).map(of).sum()
    }

    /// Halo nodes that travel at the switch. Where that of base chunks is kept, that of the
    /// variable chunk comes anew: what is held already, or comes with a chunk itself, is not sent.
    pub(super) fn halo(&self, from: usize, to: usize) -> Vec<u32> {
        if !self.rules.halo || from == to {
            return Vec::new();
        }
        if self.all_travels() {
            return self.surroundings(from, to);
        }
        let kept = self.sources(from, to, self.trained(to));
        let mut nodes = self.sources(from, to, &self.held[to][self.each()..]);
        nodes.retain(|node| kept.binary_search(node).is_err());
        nodes
    }

    /// Whether nothing of the halo is held before this super-epoch's switch.
    const fn all_travels(&self) -> bool {
        self.first || !self.rules.keeps_halo
    }

    /// How many those are.
    fn travelling(&self, from: usize, to: usize) -> usize {
        let Some(numbers) = &self.numbers else {
            return self.halo(from, to).len();
        };
        if !self.rules.halo || from == to {
            return 0;
        }
        let apart = self.apart(from, to);
        if self.all_travels() {
            numbers.surroundings(apart)
        } else {
            numbers.anew(apart)
        }
    }

    /// Nodes of a chunk.
    pub(super) fn nodes(&self, chunk: usize) -> usize {
        match &self.numbers {
            Some(numbers) => numbers.chunk(chunk),
            None => self.part(chunk).owned.len(),
        }
    }

    /// Halo nodes that travel in one epoch when a share of them is fetched: as many in every epoch,
    /// others in each.
    pub(super) fn sampled(&self, from: usize, to: usize, seed: u64, epoch: usize) -> Vec<u32> {
        let mut nodes = self.surroundings(from, to);
        let pair = mix(from as u64, to as u64);
        nodes.shuffle(&mut stream(seed, Purpose::Sampling, pair, epoch as u64));
        nodes.truncate(self.share(nodes.len()));
        nodes.sort_unstable();
        nodes
    }

    /// All halo nodes that a worker has in an epoch, ascending.
    pub(super) fn halo_of(&self, to: usize, seed: u64, epoch: usize) -> Vec<u32> {
        let whole = self.rules.halo;
        let of = |from: usize| match from {
            _ if whole => self.surroundings(from, to),
            _ if self.rules.sampling == 0.0 => Vec::new(),
            from if from == to => self.surroundings(from, to),
            from => self.sampled(from, to, seed, epoch),
        };
        let mut nodes: Vec<u32> = (0..self.workers).flat_map(of).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    }

    /// Payload of the features fetched in one epoch, or none.
    pub(super) fn sampled_payload(&self, width: usize, from: usize, to: usize) -> Option<Bytes> {
        if from == to || self.rules.sampling == 0.0 {
            return None;
        }
        let rows = self.share(self.surrounding_rows(from, to));
        (rows > 0).then(|| halo_bytes(rows, width))
    }

    fn share(&self, rows: usize) -> usize {
        (self.rules.sampling * rows as f64).round() as usize
    }

    /// Whether chunks come with all in-edges of their nodes; if not, only with those inside, as the
    /// worker knows the ones from and to its own.
    pub(super) fn all_edges(&self) -> bool {
        self.rules.halo || self.rules.sampling > 0.0 || self.rules.schedule == Schedule::Regroup
    }

    /// What nodes of a chunk carry besides degree and features.
    pub(super) fn carried(&self) -> Carried {
        let trained = self.rules.schedule == Schedule::Regroup;
        Carried {
            labels: trained.then_some(self.rules.task),
            expected: trained && self.rules.expected,
        }
    }

    /// Payload of a chunk.
    fn chunk_bytes(&self, width: usize, chunk: usize) -> u64 {
        let part = self.part(chunk);
        let cut = if self.all_edges() { part.cut_edges } else { 0 };
        let edges = part.internal_edges + cut;
        chunk_bytes(self.nodes(chunk), edges, width, self.carried()).0
    }

    /// What a worker keeps from one switch to the next: chunks of others, as they came, and the
    /// halo that it keeps of its own (in a graph known by its law, its chunks are its parts).
    pub(super) fn kept(&self, width: usize, worker: usize, halo: usize) -> Bytes {
        let others = self.held(worker).iter();
        let others = others.filter(|&&chunk| self.home(chunk) != worker);
        let chunks: u64 = others.map(|&chunk| self.chunk_bytes(width, chunk)).sum();
        let halo = halo_bytes(if self.rules.keeps_halo { halo } else { 0 }, width);
        Bytes(chunks + halo.0)
    }

    /// Payload of the message from `from` to `to` at the switch, or none.
    pub(super) fn payload(&self, width: usize, from: usize, to: usize) -> Option<Bytes> {
        let chunks = self.fetched(from, to).into_iter();
        let chunks: u64 = chunks.map(|chunk| self.chunk_bytes(width, chunk)).sum();
        let bytes = chunks + halo_bytes(self.travelling(from, to), width).0;
        (bytes > 0).then_some(Bytes(bytes))
    }
}

/// A random grouping of chunks, as many to each worker, all equally likely.
fn regrouped(chunks: usize, each: usize, seed: u64, super_epoch: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..chunks).collect();
    // Round 0 is that in which the chunks themselves were drawn.
    order.shuffle(&mut stream(
        seed,
        Purpose::Partition,
        0,
        super_epoch as u64 + 1,
    ));
    let groups = order.chunks(each);
    groups
        .map(|group| {
            let mut group = group.to_vec();
            group.sort_unstable();
            group
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cycle_pairs_every_worker_with_every_other_chunk_once() {
        for (workers, each) in (2..9).flat_map(|n| (1..4).map(move |r| (n, r))) {
            let mut met = vec![vec![0; workers * each]; workers];
            for super_epoch in 0..each * (workers - 1) {
                for (worker, row) in met.iter_mut().enumerate() {
                    let chunk = variable_chunk(worker, workers, each, super_epoch);
                    row[chunk.expect("there are others")] += 1;
                }
            }
            for (worker, row) in met.iter().enumerate() {
                for (chunk, &times) in row.iter().enumerate() {
                    assert_eq!(times, usize::from(chunk / each != worker));
                }
            }
        }
    }

    #[test]
    fn groupings_deal_out_every_chunk_once_and_all_pairs_meet_equally_often() {
        let (chunks, each, rounds) = (6, 2, 4000);
        let mut met = vec![0; chunks * chunks];
        for round in 0..rounds {
            let groups = regrouped(chunks, each, 7, round);
            let mut all = groups.concat();
            all.sort_unstable();
            assert!(all.into_iter().eq(0..chunks));
            for group in groups {
                met[group[0] * chunks + group[1]] += 1;
            }
        }
        // A pair meets with probability (C/N − 1)/(C − 1) = 1/5; five standard deviations are 126.
        for (one, other) in (0..chunks).flat_map(|a| (a + 1..chunks).map(move |b| (a, b))) {
            let times: i32 = met[one * chunks + other];
            assert!((times - 800).abs() < 127, "{one} and {other}: {times}");
        }
    }
}
