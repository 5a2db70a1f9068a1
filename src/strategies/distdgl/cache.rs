//! The remote nodes whose features a worker keeps, and how many it has room for.

use std::cmp::Reverse;
use std::path::Path;

use serde::Deserialize;

use crate::graph::{Csr, ExpectedGraph, Known, PartitionMethod, PartitionSpec, places};
use crate::net::Bytes;
use crate::sim::Setting;
use crate::strategies::OptionError;

/// How much a worker may keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CacheSize {
    /// Nothing.
    #[default]
    None,
    /// Features of so many bytes, 4 bytes a value.
    Bytes(Bytes),
    /// As many rows as a worker of Grappa has beside its own chunk.
    GrappaHalo,
}

impl CacheSize {
    /// The size that an experiment file asks for.
    ///
    /// # Errors
    /// If it is none.
    pub(super) fn read(value: Option<toml::Value>) -> Result<Self, OptionError> {
        let Some(value) = value else {
            return Ok(Self::None);
        };
        if value.as_str() == Some("grappa-halo") {
            return Ok(Self::GrappaHalo);
        }
        match Bytes::deserialize(value) {
            Ok(Bytes::ZERO) => Ok(Self::None),
            Ok(bytes) => Ok(Self::Bytes(bytes)),
            Err(error) => {
                // The message alone: the text of a TOML error ends in line breaks.
                let what = format!(
                    "{}; give the bytes a worker may hold, such as \"64MB\", or \"grappa-halo\"",
                    error.message().trim()
                );
                Err(OptionError::key("cache", what))
            }
        }
    }

    /// Rows of features that each worker has room for, `[workers]`.
    ///
    /// # Errors
    /// If a graph has too few nodes for Grappa's chunks.
    pub(super) fn rooms(self, setting: &Setting) -> Result<Vec<usize>, OptionError> {
        let workers = setting.workers();
        match self {
            Self::None => Ok(vec![0; workers]),
            Self::Bytes(Bytes(bytes)) => {
                let row = 4 * setting.model.features().max(1) as u64;
                let rows = usize::try_from(bytes / row).unwrap_or(usize::MAX);
                Ok(vec![rows; workers])
            }
            Self::GrappaHalo => {
                if let Some(law) = &setting.law {
                    return Ok(vec![beside_expected(law, workers); workers]);
                }
                let spec = PartitionSpec {
                    method: PartitionMethod::Random,
                    workers,
                    ..PartitionSpec::default()
                };
                let graph = &setting.dataset.graph;
                let chunks = spec.partition(graph, Known::default(), Path::new(""), setting.seed);
                let chunks =
                    chunks.map_err(|error| OptionError::key("cache", error.to_string()))?;
                Ok(beside_own(graph, &chunks.assignment, workers))
            }
        }
    }
}

/// What [`beside_own`] is in a graph that is known by its law: the next chunk, and of the nodes in
/// neither chunk those that have a neighbour in the two.
fn beside_expected(law: &ExpectedGraph, workers: usize) -> usize {
    if workers < 2 {
        return 0;
    }
    let two = 2.0 / workers as f64;
    (law.nodes() * two / 2.0 + (1.0 - two) * law.read(two)).round() as usize
}

/// Rows that each worker of Grappa holds beside its own chunk in the first super-epoch: those of
/// the next worker's chunk, which is its variable one, and the sources of all edges into the two.
fn beside_own(graph: &Csr, chunk_of: &[u32], workers: usize) -> Vec<usize> {
    let of = |worker: usize| {
        let (own, variable) = (worker as u32, ((worker + 1) % workers) as u32);
        let held = |node: u32| [own, variable].contains(&chunk_of[node as usize]);
        let counts = |&node: &u32| {
            let is_source = || graph.neighbours(node as usize).iter().any(|&v| held(v));
            chunk_of[node as usize] != own && (held(node) || is_source())
        };
        (0..graph.nodes() as u32).filter(counts).count()
    };
    (0..workers).map(of).collect()
}

/// The remote nodes whose features a worker keeps.
#[derive(Debug)]
pub(super) struct Cache {
    /// Of all nodes; none where nothing is kept.
    states: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// To be fetched whenever it is needed.
    Passing,
    /// To be kept when it is asked for.
    Wanted,
    Kept,
}

impl Cache {
    /// Room for so many of the nodes that others own, for those with most neighbours; of equals the
    /// one that comes first.
    pub(super) fn new(graph: &Csr, owner: &[u32], rank: usize, room: usize) -> Self {
        if room == 0 {
            return Self { states: Vec::new() };
        }
        let mut remote = places(owner, |&owner| owner as usize != rank);
        remote.sort_by_key(|&node| Reverse(graph.degree(node as usize)));
        let mut states = vec![State::Passing; graph.nodes()];
        for &node in remote.iter().take(room) {
            states[node as usize] = State::Wanted;
        }
        Self { states }
    }

    /// Whether the features of a remote node are here, or come before they are needed.
    pub(super) fn has(&self, node: u32) -> bool {
        self.states.get(node as usize) == Some(&State::Kept)
    }

    /// The nodes whose features are here, or come before they are needed.
    pub(super) fn kept(&self) -> Vec<u32> {
        places(&self.states, |state| *state == State::Kept)
    }

    /// Takes note that features are asked for; says whether they are to be kept.
    pub(super) fn asks(&mut self, node: u32) -> bool {
        match self.states.get_mut(node as usize) {
            Some(state @ State::Wanted) => {
                *state = State::Kept;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_the_remote_nodes_with_most_neighbours_once_they_were_asked_for() {
        // Node 0 is the worker's own; of the others 3 has three neighbours, 1 and 2 have two.
        let graph = Csr::undirected(5, [(0, 1), (1, 3), (2, 3), (3, 4), (0, 2)].into_iter());
        let owner = [0, 1, 1, 1, 1];
        let kept = |room: usize| -> Vec<u32> {
            let mut cache = Cache::new(&graph, &owner, 0, room);
            assert!((0..5).all(|node| !cache.has(node)), "nothing came");
            let keeps = |&node: &u32| {
                let keeps = cache.asks(node);
                assert_eq!(cache.has(node), keeps);
                keeps
            };
            (0..5).filter(keeps).collect()
        };
        assert!(kept(0).is_empty());
        assert_eq!(kept(1), [3]);
        assert_eq!(kept(2), [1, 3]);
        assert_eq!(kept(9), [1, 2, 3, 4]);
    }

    #[test]
    fn grappas_worker_holds_the_next_chunk_and_what_the_two_read() {
        // A path of six nodes, two to a chunk: worker 0 holds 0 to 3 and reads 4, worker 1 holds 2
        // to 5 and reads 1, worker 2 holds 4, 5, 0 and 1 and reads 2 and 3.
        let graph = Csr::undirected(6, (0..5).map(|v| (v, v + 1)));
        assert_eq!(beside_own(&graph, &[0, 0, 1, 1, 2, 2], 3), [3, 3, 4]);
        assert_eq!(beside_own(&graph, &[0; 6], 1), [0]);
    }

    #[test]
    fn sizes_are_bytes_with_a_unit_or_grappas() {
        let read = |value: &str| CacheSize::read(Some(toml::Value::String(value.to_owned())));
        assert_eq!(read("64MB"), Ok(CacheSize::Bytes(Bytes(64_000_000))));
        assert_eq!(read("grappa-halo"), Ok(CacheSize::GrappaHalo));
        assert_eq!(CacheSize::read(None), Ok(CacheSize::None));
        for bad in [toml::Value::Float(0.3), toml::Value::Boolean(true)] {
            let error = CacheSize::read(Some(bad)).unwrap_err();
            assert_eq!(error.key.as_deref(), Some("cache"));
            assert!(error.message.contains("grappa-halo"), "{}", error.message);
        }
    }
}
