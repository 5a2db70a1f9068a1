//! Chunks and halo rows as they travel.

use serde::{Deserialize, Serialize};

use crate::graph::{Csr, Label, Task};
use crate::net::{Bytes, floats, to_bytes};
use crate::sim::{Shard, SimError};

/// What nodes of a chunk carry besides degree and features: what their trainer needs to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Their classes or labels, as this task has them; none if they stay.
    pub labels: Option<Task>,
    /// Their expected coverage.
    pub expected: bool,
}

impl Carried {
    /// Labels of such a task alone.
    pub(crate) const fn of_labels(task: Task) -> Self {
        Self {
            labels: Some(task),
            expected: false,
        }
    }

    /// Numbers per node.
    const fn words(self) -> usize {
        self.label_words() + self.expected as usize
    }

    /// Of these, numbers of a node's label.
    const fn label_words(self) -> usize {
        match self.labels {
            Some(task) => task.words(),
            None => 0,
        }
    }
}

/// Degrees, row ends, what is carried, sources and features of a chunk, 4 bytes each.
pub const fn chunk_bytes(nodes: usize, edges: usize, width: usize, carried: Carried) -> Bytes {
    Bytes(4 * ((2 + carried.words() + width) * nodes + edges) as u64)
}

/// Degree and features of each row, 4 bytes each.
pub const fn halo_bytes(rows: usize, width: usize) -> Bytes {
    Bytes(4 * (rows * (1 + width)) as u64)
}

/// A chunk as it travels: which nodes it holds is known from the partition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// Degree of each node in the whole graph.
    pub degrees: Vec<u32>,
    /// Global numbers of each node's in-neighbours that come along.
    pub sources: Vec<Vec<u32>>,
    /// What is known of each node that trains; empty if not carried.
    pub labels: Vec<Option<Label>>,
    /// Expected coverage of each node; empty if not carried.
    pub expected: Vec<f32>,
    /// Features row by row, `[nodes, width]`.
    pub features: Vec<f32>,
}

impl Chunk {
    /// The chunk of these owned rows, with the in-edges whose source `keep` wants.
    pub fn of(
        shard: &Shard,
        rows: &[u32],
        keep: impl Fn(u32) -> bool,
        carried: Carried,
        expected: &[f32],
    ) -> Self {
        let mut chunk = Self {
            degrees: degrees(shard, rows),
            sources: rows.iter().map(|&row| sources(shard, row)).collect(),
            features: shard.features.dense_rows(rows),
            ..Self::default()
        };
        for sources in &mut chunk.sources {
            sources.retain(|&u| keep(u));
        }
        if carried.labels.is_some() {
            chunk.labels = rows.iter().map(|&row| label(shard, row)).collect();
        }
        if carried.expected {
            chunk.expected = rows.iter().map(|&row| expected[row as usize]).collect();
        }
        chunk
    }

    /// Appends its bytes: as many as the plan says.
    pub fn encode(&self, carried: Carried, bytes: &mut Vec<u8>) {
        put(bytes, self.degrees.iter().copied());
        let mut end = 0_u32;
        for sources in &self.sources {
            end += count(sources.len());
            put(bytes, [end]);
        }
        if let Some(task) = carried.labels {
            for label in &self.labels {
                put(bytes, Label::to_words(label.as_ref(), task));
            }
        }
        bytes.extend(to_bytes(&self.expected));
        put(bytes, self.sources.iter().flatten().copied());
        bytes.extend(to_bytes(&self.features));
    }

    /// Takes a chunk of `nodes` nodes with features of `width` from the front of `bytes`.
    ///
    /// # Errors
    /// If the bytes do not begin with such a chunk.
    pub fn decode(
        bytes: &mut &[u8],
        nodes: usize,
        width: usize,
        carried: Carried,
    ) -> Result<Self, SimError> {
        let wrong = || SimError::Strategy("a chunk of another size arrived".to_owned());
        let mut take = |count: usize| {
            let (front, rest) = bytes.split_at_checked(4 * count).ok_or_else(wrong)?;
            *bytes = rest;
            Ok::<&[u8], SimError>(front)
        };
        let degrees = words(take(nodes)?).collect();
        let ends: Vec<usize> = words(take(nodes)?).map(|end| end as usize).collect();
        let labels: Vec<u32> = words(take(carried.label_words() * nodes)?).collect();
        let labels = carried.labels.map_or_else(Vec::new, |task| {
            let labels = labels.chunks_exact(task.words());
            labels.map(|words| Label::from_words(words, task)).collect()
        });
        let expected = floats(take(if carried.expected { nodes } else { 0 })?).collect();
        let sources: Vec<u32> = words(take(ends.last().copied().unwrap_or(0))?).collect();
        let features = floats(take(nodes * width)?).collect();
        let mut start = 0;
        let mut rows = Vec::with_capacity(nodes);
        for end in ends {
            rows.push(sources.get(start..end).ok_or_else(wrong)?.to_vec());
            start = end;
        }
        Ok(Self {
            degrees,
            sources: rows,
            labels,
            expected,
            features,
        })
    }
}

/// What is known of an owned row that trains.
pub fn label(shard: &Shard, row: u32) -> Option<Label> {
    shard
        .train
        .binary_search(&row)
        .ok()
        .and_then(|_| shard.labels.of(row as usize))
}

/// Global in-neighbours of an owned row, ascending.
pub fn sources(shard: &Shard, row: u32) -> Vec<u32> {
    let neighbours = shard.adjacency.neighbours(row as usize).iter();
    let mut sources: Vec<u32> = neighbours.map(|&u| shard.nodes[u as usize]).collect();
    sources.sort_unstable();
    sources
}

/// Appends degrees and features of halo rows as they travel.
pub fn encode_halo(shard: &Shard, rows: &[u32], bytes: &mut Vec<u8>) {
    put(bytes, degrees(shard, rows));
    bytes.extend(to_bytes(&shard.features.dense_rows(rows)));
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

pub(super) fn put(bytes: &mut Vec<u8>, words: impl IntoIterator<Item = u32>) {
    for word in words {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
}

/// Words of four bytes; their number was checked.
pub(super) fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

const fn count(number: usize) -> u32 {
    number as u32
}

/// In-neighbours as rows of `nodes`, whose first have these global in-neighbours: sources that are
/// not there are dropped. Edges between those first nodes are known to both ends, as graphs are
/// stored in both directions.
pub fn local_adjacency(nodes: &[u32], sources: &[Vec<u32>]) -> Csr {
    let mut order: Vec<(u32, u32)> = nodes.iter().copied().zip(0_u32..).collect();
    order.sort_unstable();
    let local = |global: u32| {
        order
            .binary_search_by_key(&global, |&(node, _)| node)
            .ok()
            .map(|place| order[place].1)
    };
    let inner = sources.len();
    let mut edges = Vec::new();
    for (v, sources) in (0_u32..).zip(sources) {
        for u in sources.iter().filter_map(|&u| local(u)) {
            edges.push((u, v));
            if (u as usize) < inner {
                edges.push((v, u));
            }
        }
    }
    Csr::from_edges(nodes.len(), edges.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_survives_the_journey() {
        let several = Task::Labels(40);
        let known = |words: &[u32]| Label::from_words(words, several);
        for (labels, of, expected) in [
            (None, vec![], false),
            (
                Some(Task::Classes(2)),
                vec![Some(Label::Class(1)), None, Some(Label::Class(0))],
                false,
            ),
            (
                Some(several),
                vec![known(&[7, 3]), None, known(&[1, 0])],
                true,
            ),
        ] {
            let carried = Carried { labels, expected };
            let some = |given: bool| if given { 3 } else { 0 };
            let chunk = Chunk {
                degrees: vec![2, 0, 1],
                sources: vec![vec![4, 9], vec![], vec![0]],
                labels: of,
                expected: [0.5, 1.0, 0.25][..some(expected)].to_vec(),
                features: vec![0.5, -1.0, 0.0, 2.0, 3.0, f32::MIN_POSITIVE],
            };
            let mut bytes = Vec::new();
            chunk.encode(carried, &mut bytes);
            assert_eq!(Bytes(bytes.len() as u64), chunk_bytes(3, 3, 2, carried));
            let decode = |mut bytes: &[u8]| Chunk::decode(&mut bytes, 3, 2, carried);
            assert_eq!(decode(&bytes).expect("whole"), chunk);
            assert!(decode(&bytes[4..]).is_err());
            assert!(decode(&bytes[..bytes.len() - 1]).is_err());
            bytes.extend([1, 2, 3, 4]);
            let mut rest = &bytes[..];
            Chunk::decode(&mut rest, 3, 2, carried).expect("whole");
            assert_eq!(rest, [1, 2, 3, 4], "what follows is left");
        }
    }

    #[test]
    fn edges_between_held_nodes_need_be_known_at_one_end_only() {
        // Nodes 7 and 3 are held, 5 is halo; 3 does not say that it hears 7.
        let graph = local_adjacency(&[7, 3, 5], &[vec![3, 9], vec![5]]);
        assert_eq!(graph.neighbours(0), [1]);
        assert_eq!(graph.neighbours(1), [0, 2]);
        assert!(graph.neighbours(2).is_empty());
    }
}
