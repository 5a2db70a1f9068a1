//! Which chunks meet when, and what moves between workers when they do.

use super::Schedule;
use crate::graph::{BoundaryPlan, Csr};
use crate::net::{Bytes, floats, to_bytes};
use crate::sim::{Shard, SimError};

/// The variable chunk of `worker` in a super-epoch: round-robin over the others, so that in `workers − 1` super-epochs each
/// ordered pair of chunks meets once. None for one worker.
#[must_use]
pub const fn variable_chunk(worker: usize, workers: usize, super_epoch: usize) -> Option<usize> {
    if workers < 2 {
        return None;
    }
    Some((worker + 1 + super_epoch % (workers - 1)) % workers)
}

/// What is loaded at one switch.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Number of the super-epoch that begins.
    pub super_epoch: usize,
    /// Whether sources of bridge edges come along.
    pub halo: bool,
}

impl Switch {
    /// The switch before `epoch`, if there is one.
    #[must_use]
    pub fn before(epoch: usize, every: usize, schedule: Schedule, halo: bool) -> Option<Self> {
        let due = match schedule {
            Schedule::Fixed => epoch == 0,
            Schedule::Sweep => epoch.is_multiple_of(every),
        };
        due.then_some(Self {
            super_epoch: epoch / every,
            halo,
        })
    }

    /// Owned rows of `from` that travel to `to` as halo. Each worker keeps the halo of its base chunk for ever, and gets that of its
    /// variable chunk anew: what it already holds, or gets with the chunk itself, is not sent.
    #[must_use]
    pub fn halo_rows(self, boundary: &BoundaryPlan, from: usize, to: usize) -> Vec<u32> {
        let Some(variable) = variable_chunk(to, boundary.workers(), self.super_epoch) else {
            return Vec::new();
        };
        if !self.halo || from == to || from == variable {
            return Vec::new();
        }
        let sends = &boundary.parts[from].sends;
        let (base, wanted) = (&sends[to], &sends[variable]);
        let mut rows: Vec<u32> = if self.super_epoch == 0 {
            base.iter().chain(wanted).copied().collect()
        } else {
            // The base chunk met this chunk, or received its rows, in the first super-epoch.
            wanted
                .iter()
                .filter(|row| base.binary_search(row).is_err())
                .copied()
                .collect()
        };
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Payload from `from` to `to`, or none.
    #[must_use]
    pub fn payload(
        self,
        boundary: &BoundaryPlan,
        width: usize,
        from: usize,
        to: usize,
    ) -> Option<Bytes> {
        let workers = boundary.workers();
        if variable_chunk(to, workers, self.super_epoch) == Some(from) {
            let part = &boundary.parts[from];
            let edges = if self.halo {
                part.internal_edges + part.cut_edges
            } else {
                part.internal_edges
            };
            return Some(chunk_bytes(part.owned.len(), edges, width));
        }
        let rows = self.halo_rows(boundary, from, to).len();
        (rows > 0).then(|| halo_bytes(rows, width))
    }
}

/// Degrees, row ends, sources and features of a chunk, 4 bytes each.
const fn chunk_bytes(nodes: usize, edges: usize, width: usize) -> Bytes {
    Bytes(4 * (2 * nodes + edges + nodes * width) as u64)
}

/// Degree and features of each row, 4 bytes each.
const fn halo_bytes(rows: usize, width: usize) -> Bytes {
    Bytes(4 * (rows * (1 + width)) as u64)
}

/// A chunk as it travels: which nodes it holds is known from the partition.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// Degree of each node in the whole graph.
    pub degrees: Vec<u32>,
    /// Global numbers of each node's in-neighbours that come along.
    pub sources: Vec<Vec<u32>>,
    /// Features row by row, `[nodes, width]`.
    pub features: Vec<f32>,
}

impl Chunk {
    /// The chunk of a shard: all its in-edges with a halo, its internal edges without.
    #[must_use]
    pub fn of(shard: &Shard, halo: bool) -> Self {
        let rows: Vec<u32> = (0_u32..).take(shard.owned).collect();
        Self {
            degrees: degrees(shard, &rows),
            sources: sources(shard, halo),
            features: shard.features.dense_rows(&rows),
        }
    }

    /// Its bytes: as many as the plan says.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put(&mut bytes, self.degrees.iter().copied());
        let mut end = 0_u32;
        for sources in &self.sources {
            end += count(sources.len());
            put(&mut bytes, [end]);
        }
        put(&mut bytes, self.sources.iter().flatten().copied());
        bytes.extend(to_bytes(&self.features));
        bytes
    }

    /// A chunk of `nodes` nodes with features of `width`.
    ///
    /// # Errors
    /// If the bytes do not hold such a chunk.
    pub fn decode(bytes: &[u8], nodes: usize, width: usize) -> Result<Self, SimError> {
        let wrong = || SimError::Strategy("a chunk of another size arrived".to_owned());
        let (degrees, rest) = bytes.split_at_checked(4 * nodes).ok_or_else(wrong)?;
        let (ends, rest) = rest.split_at_checked(4 * nodes).ok_or_else(wrong)?;
        let ends: Vec<usize> = words(ends).map(|end| end as usize).collect();
        let edges = ends.last().copied().unwrap_or(0);
        let (sources, features) = rest.split_at_checked(4 * edges).ok_or_else(wrong)?;
        if features.len() != 4 * nodes * width {
            return Err(wrong());
        }
        let sources: Vec<u32> = words(sources).collect();
        let mut start = 0;
        let mut rows = Vec::with_capacity(nodes);
        for &end in &ends {
            rows.push(sources.get(start..end).ok_or_else(wrong)?.to_vec());
            start = end;
        }
        Ok(Self {
            degrees: words(degrees).collect(),
            sources: rows,
            features: floats(features).collect(),
        })
    }
}

/// Global in-neighbours of each owned node, ascending: all of them with a halo, the owned ones without.
#[must_use]
pub fn sources(shard: &Shard, halo: bool) -> Vec<Vec<u32>> {
    let of = |v: usize| {
        let neighbours = shard.adjacency.neighbours(v).iter();
        let mut sources: Vec<u32> = neighbours
            .filter(|&&u| halo || (u as usize) < shard.owned)
            .map(|&u| shard.nodes[u as usize])
            .collect();
        sources.sort_unstable();
        sources
    };
    (0..shard.owned).map(of).collect()
}

/// Degrees and features of halo rows as they travel.
#[must_use]
pub fn encode_halo(shard: &Shard, rows: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, degrees(shard, rows));
    bytes.extend(to_bytes(&shard.features.dense_rows(rows)));
    bytes
}

/// The other end of [`encode_halo`]: degrees `[rows]` and features `[rows, width]`.
///
/// # Errors
/// If the bytes do not hold so many rows.
pub fn decode_halo(
    bytes: &[u8],
    rows: usize,
    width: usize,
) -> Result<(Vec<u32>, Vec<f32>), SimError> {
    if bytes.len() != 4 * rows * (1 + width) {
        return Err(SimError::Strategy(
            "halo rows of another size arrived".to_owned(),
        ));
    }
    let (degrees, features) = bytes.split_at(4 * rows);
    Ok((words(degrees).collect(), floats(features).collect()))
}

fn degrees(shard: &Shard, rows: &[u32]) -> Vec<u32> {
    rows.iter()
        .map(|&row| count(shard.degrees[row as usize]))
        .collect()
}

fn put(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

/// Words of four bytes; their number was checked.
fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

#[allow(clippy::cast_possible_truncation)] // nodes and edges of a chunk are below 2³²
const fn count(number: usize) -> u32 {
    number as u32
}

/// Local rows of a working graph, from global in-neighbours: sources that are not there are dropped.
#[must_use]
pub fn local_adjacency(rows: usize, nodes: &[u32], sources: &[Vec<u32>]) -> Csr {
    let mut order: Vec<(u32, u32)> = nodes.iter().copied().zip(0_u32..).collect();
    order.sort_unstable();
    let local = |global: u32| {
        order
            .binary_search_by_key(&global, |&(node, _)| node)
            .ok()
            .map(|place| order[place].1)
    };
    let edges = (0_u32..).zip(sources).flat_map(|(v, sources)| {
        sources
            .iter()
            .filter_map(move |&u| local(u).map(|u| (u, v)))
            .collect::<Vec<_>>()
    });
    Csr::from_edges(rows, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cycle_pairs_every_chunk_with_every_other_once() {
        for workers in 2..9 {
            let mut met = vec![vec![0; workers]; workers];
            for super_epoch in 0..workers - 1 {
                for (worker, row) in met.iter_mut().enumerate() {
                    let chunk = variable_chunk(worker, workers, super_epoch);
                    row[chunk.expect("there are others")] += 1;
                }
            }
            for (worker, row) in met.iter().enumerate() {
                for (chunk, &times) in row.iter().enumerate() {
                    assert_eq!(times, usize::from(chunk != worker));
                }
            }
        }
    }

    #[test]
    fn a_chunk_survives_the_journey() {
        let chunk = Chunk {
            degrees: vec![2, 0, 1],
            sources: vec![vec![4, 9], vec![], vec![0]],
            features: vec![0.5, -1.0, 0.0, 2.0, 3.0, f32::MIN_POSITIVE],
        };
        let bytes = chunk.encode();
        assert_eq!(Bytes(bytes.len() as u64), chunk_bytes(3, 3, 2));
        assert_eq!(Chunk::decode(&bytes, 3, 2).expect("whole"), chunk);
        assert!(Chunk::decode(&bytes[4..], 3, 2).is_err());
        assert!(Chunk::decode(&bytes[..bytes.len() - 1], 3, 2).is_err());
    }
}
