//! Which neighbours a mini-batch sees, and the rectangular graphs that its layers compute on.

#![allow(clippy::inline_always)] // the loop becomes part of the code for the chosen instruction set

use std::ops::Range;

use super::lists::Lists;
use super::{Csr, Peers};
use crate::rng::{Purpose, mix};
use crate::simd::vectorised;

/// The place of a row that is in no list.
const NOWHERE: u32 = u32::MAX;

/// The place of a row that was met, before it is known.
const MET: u32 = u32::MAX - 1;

/// Draws neighbours for one step of training, uniformly and without replacement (Hamilton, Ying and
/// Leskovec, 2017, algorithm 2).
///
/// Every neighbour `u` of `v` has a number that is a function of (seed, epoch, step, hop, `v`,
/// `u`), all nodes by their global numbers; the neighbours with the smallest ones are drawn. So it
/// does not matter who draws, in which order, or how the graph is divided: whoever sees the same
/// neighbours draws the same.
#[derive(Clone, Debug)]
pub struct Sampler<'a> {
    key: u64,
    fanouts: &'a [usize],
}

impl<'a> Sampler<'a> {
    /// The draws of a step; `fanouts[h]` neighbours are drawn at hop `h` from the nodes that train,
    /// or all where there are fewer.
    pub const fn new(seed: u64, epoch: usize, step: usize, fanouts: &'a [usize]) -> Self {
        let seed = mix(seed, Purpose::Sampling as u64);
        Self {
            key: mix(mix(seed, epoch as u64), step as u64),
            fanouts,
        }
    }

    /// Neighbours drawn at a hop for the node with global number `node`, in the order in which
    /// `neighbours` has them; `name` gives the global number of a neighbour. O(degree).
    pub fn draw(
        &self,
        hop: usize,
        node: u32,
        neighbours: &[u32],
        name: impl Fn(u32) -> u32,
    ) -> Vec<u32> {
        let mut drawn = Vec::new();
        let near = (node, neighbours);
        self.draw_onto(hop, near, name, &mut Candidates::default(), &mut drawn);
        drawn
    }

    /// [`draw`](Self::draw) for so many nodes on all cores: `near` gives the global number and the
    /// neighbours of each.
    pub(crate) fn draw_each<'g>(
        &self,
        hop: usize,
        nodes: usize,
        near: impl Fn(usize) -> (u32, &'g [u32]) + Sync,
        name: impl Fn(u32) -> u32 + Sync,
    ) -> Lists {
        Lists::make(nodes, Candidates::default, |candidates, at, drawn| {
            self.draw_onto(hop, near(at), &name, candidates, drawn);
        })
    }

    /// As [`draw`](Self::draw), behind what `drawn` has already; `candidates` is memory to work in.
    fn draw_onto(
        &self,
        hop: usize,
        (node, neighbours): (u32, &[u32]),
        name: impl Fn(u32) -> u32,
        candidates: &mut Candidates,
        drawn: &mut Vec<u32>,
    ) {
        let fanout = self.fanouts[hop];
        if neighbours.len() <= fanout {
            return drawn.extend_from_slice(neighbours);
        }
        if fanout == 0 {
            return;
        }
        let key = mix(mix(self.key, hop as u64), u64::from(node));
        candidates.draw_smallest(fanout, neighbours, (key, name), drawn);
    }
}

/// Neighbours that are numbered at a time: so many numbers stay in the nearest cache.
const CHUNK: usize = 256;

/// Memory for the neighbours of a node that may be those with the smallest numbers.
#[derive(Debug, Default)]
struct Candidates {
    nodes: Vec<u32>,
    numbers: Vec<u64>,
    /// The numbers once more, to be put in another order.
    some: Vec<u64>,
}

impl Candidates {
    /// Adds to `drawn` the `wanted` neighbours with the smallest numbers, in the order of the
    /// neighbours, of which there are more. A number is a mix of `key` and the neighbour's `name`.
    fn draw_smallest(
        &mut self,
        wanted: usize,
        neighbours: &[u32],
        (key, name): (u64, impl Fn(u32) -> u32),
        drawn: &mut Vec<u32>,
    ) {
        // Of a hub's neighbours few can be among the smallest, and the others need no second look.
        let bound = likely_bound(wanted, neighbours.len());
        let mut found = self.find(bound, neighbours, key, &name);
        if found < wanted {
            found = self.find(u64::MAX, neighbours, key, &name);
        }
        let (nodes, numbers) = (&self.nodes[..found], &self.numbers[..found]);
        if draw_of_few(wanted, nodes, numbers, drawn) {
            return;
        }
        self.some.clear();
        self.some.extend_from_slice(numbers);
        // `mix` with one key is one-to-one: no two neighbours have the same number.
        let last = *self.some.select_nth_unstable(wanted - 1).1;
        // In the order of the neighbours, which is that of sums.
        let smallest = nodes.iter().zip(numbers);
        drawn.extend(smallest.filter_map(|(&u, &number)| (number <= last).then_some(u)));
    }

    /// Finds the neighbours with numbers up to `bound`, and says how many there are.
    fn find(
        &mut self,
        bound: u64,
        neighbours: &[u32],
        key: u64,
        name: impl Fn(u32) -> u32,
    ) -> usize {
        if self.nodes.len() < neighbours.len() {
            self.nodes.resize(neighbours.len(), 0);
            self.numbers.resize(neighbours.len(), 0);
        }
        let (nodes, numbers) = (&mut self.nodes[..], &mut self.numbers[..]);
        vectorised(
            #[inline(always)]
            || numbered(neighbours, key, &name, bound, (nodes, numbers)),
        )
    }
}

/// Writes down the neighbours with numbers up to `bound`, and their numbers; there is room for all.
/// Returns how many there are.
#[inline(always)]
fn numbered(
    neighbours: &[u32],
    key: u64,
    name: impl Fn(u32) -> u32,
    bound: u64,
    (nodes, numbers): (&mut [u32], &mut [u64]),
) -> usize {
    let mut found = 0;
    let (mut names, mut all) = ([0_u32; CHUNK], [0_u64; CHUNK]);
    for chunk in neighbours.chunks(CHUNK) {
        // Each of these loops by itself: then several neighbours are numbered at once.
        for (into, &u) in names.iter_mut().zip(chunk) {
            *into = name(u);
        }
        for (into, &name) in all.iter_mut().zip(&names[..chunk.len()]) {
            *into = mix(key, u64::from(name));
        }
        // Each is written down, and the next one over it where its number is too large: a branch
        // for each would be one that no processor can guess.
        for (&number, &u) in all.iter().zip(chunk) {
            (nodes[found], numbers[found]) = (u, number);
            found += usize::from(number <= bound);
        }
    }
    found
}

/// As [`Candidates::draw_smallest`] does, of few neighbours, and says whether that was possible.
fn draw_of_few(wanted: usize, nodes: &[u32], numbers: &[u64], drawn: &mut Vec<u32>) -> bool {
    let before = drawn.len();
    drawn.resize(before + nodes.len(), 0);
    let into = &mut drawn[before..];
    let found = vectorised(
        #[inline(always)]
        || match nodes.len() {
            ..=16 => ranked::<16>(wanted, nodes, numbers, into),
            17..=32 => ranked::<32>(wanted, nodes, numbers, into),
            33..=64 => ranked::<64>(wanted, nodes, numbers, into),
            _ => 0,
        },
    );
    let right = found == wanted;
    drawn.truncate(before + if right { wanted } else { 0 });
    right
}

/// Writes down those of at most `N` nodes that have fewer than `wanted` numbers below their own, by
/// the upper halves of these, and says how many they are: `wanted`, unless halves are alike at the
/// border. Ranks take no guess, as looking for the border does.
#[inline(always)]
fn ranked<const N: usize>(
    wanted: usize,
    nodes: &[u32],
    numbers: &[u64],
    into: &mut [u32],
) -> usize {
    let mut halves = [u32::MAX; N];
    for (half, &number) in halves.iter_mut().zip(numbers) {
        *half = (number >> 32) as u32;
    }
    let mut ranks = [0_u32; N];
    for &other in &halves[..numbers.len()] {
        for (rank, &half) in ranks.iter_mut().zip(&halves) {
            *rank += u32::from(other < half);
        }
    }
    let mut found = 0;
    for (&node, &rank) in nodes.iter().zip(&ranks) {
        // As in `numbered`. There is room: none is written behind as many as there are nodes.
        into[found] = node;
        found += usize::from((rank as usize) < wanted);
    }
    found
}

/// A number up to which `wanted` of so many uniform ones lie, and some more: by about three
/// standard deviations, so that fewer than `wanted` are rare. No draw depends on it.
fn likely_bound(wanted: usize, of: usize) -> u64 {
    let wanted = wanted as f64;
    let share = (wanted + 3.0 * wanted.sqrt() + 4.0) / of as f64;
    // Saturates where that is all of them.
    (share * 2.0_f64.powi(64)) as u64
}

/// A worker's piece of the graph that is drawn from: own rows first, then those of others.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// In-neighbours of own rows, as rows; rows beyond its own have none.
    pub adjacency: &'a Csr,
    /// Global numbers of all rows.
    pub nodes: &'a [u32],
    /// Number of own rows.
    pub own: usize,
}

/// What one layer computes on in a step: the rows that it makes and the rows that it reads for
/// that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledLayer {
    /// Inputs, as rows of the view: first the outputs, then other own rows, ascending, then rows of
    /// others, ascending.
    pub rows: Vec<u32>,
    /// Number of rows whose new representation is computed.
    pub outputs: usize,
    /// Number of inputs that are own rows.
    pub own: usize,
    /// Neighbours drawn, `[outputs, inputs]`, as places in `rows`.
    pub adjacency: Csr,
    /// Number of neighbours that each output has in the view, `[outputs]`.
    pub degrees: Vec<usize>,
}

impl SampledLayer {
    /// Draws for distinct own rows `outputs`. O(view rows + edges of the outputs).
    pub fn draw(sampler: &Sampler<'_>, hop: usize, view: &View<'_>, outputs: Vec<u32>) -> Self {
        let name = |row: u32| view.nodes[row as usize];
        let neighbours = |row: u32| view.adjacency.neighbours(row as usize);
        let near = |at: usize| (name(outputs[at]), neighbours(outputs[at]));
        let drawn = sampler.draw_each(hop, outputs.len(), near, name);
        let degrees = outputs.iter().map(|&row| neighbours(row).len()).collect();
        Self::of(outputs, &drawn, degrees, view.own, view.nodes.len())
    }

    /// The layer of distinct own rows `outputs` for none of which anything was drawn; `own` and
    /// `all` as for [`of`](Self::of).
    pub(crate) fn without_neighbours(outputs: Vec<u32>, own: usize, all: usize) -> Self {
        Self::of(outputs, &Lists::default(), Vec::new(), own, all)
    }

    /// The layer of distinct rows `outputs` for each of which these neighbours, of so many, were
    /// `drawn`, each once: rows of a view of `all` rows, of which the first `own` are own ones.
    /// Where there are no lists, nothing was drawn of any. O(all + neighbours drawn).
    pub(crate) fn of(
        outputs: Vec<u32>,
        drawn: &Lists,
        degrees: Vec<usize>,
        own: usize,
        all: usize,
    ) -> Self {
        let count = outputs.len();
        let mut place = vec![NOWHERE; all];
        for (at, &row) in (0_u32..).zip(&outputs) {
            place[row as usize] = at;
        }
        for &u in drawn.values() {
            let place = &mut place[u as usize];
            *place = (*place).min(MET);
        }
        let mut rows = outputs;
        for (row, place) in (0_u32..).zip(&mut place) {
            if *place == MET {
                *place = rows.len() as u32;
                rows.push(row);
            }
        }
        let each = Lists::make(
            count,
            || (),
            |(), at, places| {
                let start = places.len();
                places.extend(drawn.get(at).iter().map(|&u| place[u as usize]));
                places[start..].sort_unstable();
            },
        );
        let (offsets, places) = each.into_parts();
        let adjacency = Csr::from_rows(rows.len(), offsets, places)
            .expect("places are sorted, and within the rows");
        let others = rows[count..].partition_point(|&row| (row as usize) < own);
        Self {
            own: count + others,
            outputs: count,
            rows,
            adjacency,
            degrees,
        }
    }

    /// Inputs that are rows of others, as rows of the view.
    pub fn others(&self) -> &[u32] {
        &self.rows[self.own..]
    }

    /// What the message to output `v` is multiplied by so that a sum over the neighbours drawn is,
    /// on average over all draws, the sum over all of them: `d_v / s_v`.
    pub fn scale(&self, v: usize) -> f32 {
        let drawn = self.adjacency.degree(v).max(1);
        (self.degrees[v].max(1) as f64 / drawn as f64) as f32
    }

    /// For rows of others, ascending: where those of each owner are, `receives` being where the
    /// owners' rows are in the halo.
    pub(crate) fn by_owner(
        others: &[u32],
        own: usize,
        receives: &Peers<Range<usize>>,
    ) -> Peers<Range<usize>> {
        let mut found = Peers::default();
        let mut start = 0;
        for (owner, range) in receives.iter() {
            let rest = &others[start..];
            let end = start + rest.partition_point(|&row| (row as usize) < own + range.end);
            if end > start {
                *found.of(owner) = start..end;
            }
            // Rows ascend as owners do in the halo, so that each search begins where the last
            // ended.
            start = end;
        }
        found
    }

    /// What the layer below has to compute, as own rows: the own inputs of this layer, and after
    /// them the rows that others `asked` for; with the places among these of what goes to each of
    /// those who asked.
    pub fn below(&self, asked: &Peers<Vec<u32>>) -> (Vec<u32>, Peers<Vec<u32>>) {
        let mine = &self.rows[..self.own];
        if asked.iter().next().is_none() {
            return (mine.to_vec(), Peers::default());
        }
        let wanted = || asked.iter().flat_map(|(_, rows)| rows);
        let last = mine.iter().chain(wanted()).max();
        let mut place = vec![NOWHERE; last.map_or(0, |&row| row as usize + 1)];
        for (at, &row) in (0_u32..).zip(mine) {
            place[row as usize] = at;
        }
        let mut new: Vec<u32> = wanted()
            .copied()
            .filter(|&row| place[row as usize] == NOWHERE)
            .collect();
        new.sort_unstable();
        new.dedup();
        let mut rows = mine.to_vec();
        rows.extend(&new);
        for (at, &row) in (0_u32..).zip(&rows).skip(self.own) {
            place[row as usize] = at;
        }
        let mut sends: Peers<Vec<u32>> = Peers::default();
        for (peer, wanted) in asked.iter() {
            *sends.of(peer) = wanted.iter().map(|&row| place[row as usize]).collect();
        }
        (rows, sends)
    }
}

#[cfg(test)]
mod tests;
