//! Which neighbours a mini-batch sees, and the rectangular graphs that its layers compute on.

use std::ops::Range;

use rayon::prelude::*;

use super::lists::Lists;
use super::{Csr, Peers};
use crate::rng::{Purpose, mix};

/// Numbers that are worked out before any is looked at: so they do not wait for each other.
const TOGETHER: usize = 16;

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
    /// `neighbours` has them; `name` gives the global number of a neighbour. O(degree +
    /// fan-out · log fan-out).
    pub fn draw(
        &self,
        hop: usize,
        node: u32,
        neighbours: &[u32],
        name: impl Fn(u32) -> u32,
    ) -> Vec<u32> {
        let mut drawn = Vec::new();
        let numbered = &mut Vec::new();
        self.draw_onto(hop, (node, neighbours), name, numbered, &mut drawn);
        drawn
    }

    /// As [`draw`](Self::draw), behind what `drawn` has already; `numbered` is memory to work in.
    pub(crate) fn draw_onto(
        &self,
        hop: usize,
        (node, neighbours): (u32, &[u32]),
        name: impl Fn(u32) -> u32,
        numbered: &mut Vec<(u64, usize)>,
        drawn: &mut Vec<u32>,
    ) {
        let fanout = self.fanouts[hop];
        if neighbours.len() <= fanout {
            return drawn.extend_from_slice(neighbours);
        }
        let key = mix(mix(self.key, hop as u64), u64::from(node));
        // `mix` with one key is one-to-one, so no two neighbours have the same number.
        let number = |&u: &u32| mix(key, u64::from(name(u)));
        let bound = likely_bound(fanout, neighbours.len());
        numbered.clear();
        // Of a hub's neighbours few can be among the smallest: most are not even written down.
        for (start, some) in (0..).step_by(TOGETHER).zip(neighbours.chunks(TOGETHER)) {
            let mut numbers = [u64::MAX; TOGETHER];
            for (place, u) in numbers.iter_mut().zip(some) {
                *place = number(u);
            }
            if numbers.iter().any(|&number| number < bound) {
                let below = numbers.into_iter().zip(start..);
                numbered.extend(below.filter(|&(number, _)| number < bound));
            }
        }
        if numbered.len() < fanout {
            numbered.clear();
            numbered.extend(neighbours.iter().map(number).zip(0..));
        }
        if numbered.len() > fanout {
            numbered.select_nth_unstable(fanout);
            numbered.truncate(fanout);
        }
        // Back in the order of the neighbours, which is that of sums.
        numbered.sort_unstable_by_key(|&(_, at)| at);
        drawn.extend(numbered.iter().map(|&(_, at)| neighbours[at]));
    }
}

/// A number below which some more than `wanted` of so many uniform ones lie: by about four standard
/// deviations or more, so that fewer than `wanted` are rare. No draw depends on it.
fn likely_bound(wanted: usize, of: usize) -> u64 {
    let wanted = wanted as f64;
    let share = (wanted + 5.0 * wanted.sqrt() + 8.0) / of as f64;
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
        let drawn = Lists::make(outputs.len(), Vec::new, |numbered, at, drawn| {
            let row = outputs[at];
            let near = (name(row), neighbours(row));
            sampler.draw_onto(hop, near, name, numbered, drawn);
        });
        let degrees = outputs.iter().map(|&row| neighbours(row).len()).collect();
        Self::of(outputs, &drawn, degrees, view.own, view.nodes.len())
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
        const NOWHERE: u32 = u32::MAX;
        let count = outputs.len();
        let mut place = vec![NOWHERE; all];
        for (at, &row) in (0_u32..).zip(&outputs) {
            place[row as usize] = at;
        }
        let mut rows = outputs;
        for &u in drawn.values() {
            if place[u as usize] == NOWHERE {
                place[u as usize] = 0; // its place is known when all are
                rows.push(u);
            }
        }
        // Rows differ, so that an unstable sort has one outcome.
        rows[count..].par_sort_unstable();
        for (at, &row) in (0_u32..).zip(&rows) {
            place[row as usize] = at;
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
        let mut known: Vec<(u32, u32)> = (0_u32..)
            .zip(&self.rows[..self.own])
            .map(|(place, &row)| (row, place))
            .collect();
        known.sort_unstable();
        let mine = |row: u32| {
            let found = known.binary_search_by_key(&row, |&(known, _)| known);
            found.ok().map(|at| known[at].1)
        };
        let mut rows = self.rows[..self.own].to_vec();
        let new = asked.iter().flat_map(|(_, rows)| rows).copied();
        let mut new: Vec<u32> = new.filter(|&row| mine(row).is_none()).collect();
        new.sort_unstable();
        new.dedup();
        let mut sends: Peers<Vec<u32>> = Peers::default();
        for (peer, wanted) in asked.iter() {
            let place = |&row: &u32| {
                mine(row).unwrap_or_else(|| (self.own + new.partition_point(|&n| n < row)) as u32)
            };
            *sends.of(peer) = wanted.iter().map(place).collect();
        }
        rows.extend(&new);
        (rows, sends)
    }
}

#[cfg(test)]
mod tests;
