//! `meta.json`: what every process knows of all parts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::array::FileSum;
use crate::graph::{BoundaryCounts, DataSummary, Metric, Objective, PartCounts, PartitionMethod};

/// Name of the file that says what the others are. It is written last.
pub(super) const META: &str = "meta.json";

/// Version of the format; a program reads its own alone.
pub(super) const FORMAT: u32 = 2;

/// How values of features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Storage {
    /// Dense rows, 4 bytes a value.
    F32,
    /// Dense rows, 2 bytes a value.
    F16,
    /// The values that are not zero, 4 bytes each, with their columns.
    Sparse,
}

/// How the graph was divided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Divided {
    /// By which method.
    pub method: PartitionMethod,
    /// With which seed.
    pub seed: u64,
    /// What METIS kept small, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// By which `concentration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concentration: Option<f64>,
}

impl Divided {
    /// What a reader of a plan should know.
    pub(crate) fn said(&self) -> String {
        let (method, seed) = (self.method.name(), self.seed);
        let aim = match self.objective {
            Some(Objective::Volume) => " for few boundary rows",
            Some(Objective::Cut) | None => "",
        };
        format!("divided before, by {method}{aim} with seed {seed}, as its shards say")
    }
}

/// All that is known without looking into a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// Version of the format.
    pub format: u32,
    /// Names and sizes, as `run` prints them.
    pub data: DataSummary,
    /// Stored (directed) edges.
    pub(crate) stored_edges: usize,
    /// How features are stored.
    pub storage: Storage,
    /// By what predictions are measured.
    pub metric: Metric,
    /// How the graph was divided.
    pub partition: Divided,
    /// Where the data came from: the keys of `[dataset]`.
    pub source: serde_json::Value,
    /// Hash of all that decides what is in the files.
    pub content: String,
    /// One per worker.
    pub parts: Vec<PartMeta>,
}

/// A part in numbers, and its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartMeta {
    /// What it holds, sends and receives.
    #[serde(flatten)]
    pub counts: PartCounts,
    /// Its files by name.
    pub files: BTreeMap<String, FileSum>,
}

impl Meta {
    /// Whether the parts add up to the graph, and what they say of each other agrees.
    pub(super) fn is_sound(&self) -> Result<(), String> {
        let sum = |of: fn(&PartCounts) -> usize| -> Option<usize> {
            let mut all = self.parts.iter().map(|part| of(&part.counts));
            all.try_fold(0_usize, usize::checked_add)
        };
        let data = &self.data;
        let sums = [
            ("owned nodes", sum(|part| part.owned), data.nodes),
            (
                "internal and cut edges",
                sum(|part| part.internal_edges.saturating_add(part.cut_edges)),
                self.stored_edges,
            ),
            ("training nodes", sum(|part| part.training), data.train),
        ];
        for (what, sum, said) in sums {
            if sum != Some(said) {
                return Err(format!("the {what} of its parts are not {said}"));
            }
        }
        let workers = self.parts.len();
        for (rank, part) in self.parts.iter().enumerate() {
            for &(peer, rows) in &part.counts.sends {
                let there = self.parts.get(peer as usize);
                let heard =
                    there.is_some_and(|it| it.counts.receives.contains(&(rank as u32, rows)));
                if !heard {
                    return Err(format!(
                        "of {workers} parts, {peer} does not receive what {rank} sends"
                    ));
                }
            }
            let rows = part.counts.receives.iter().map(|&(_, rows)| rows);
            if rows.sum::<usize>() != part.counts.halo {
                return Err(format!("part {rank} does not receive its halo"));
            }
        }
        Ok(())
    }

    /// The boundary of all parts in numbers.
    pub(crate) fn counts(&self) -> BoundaryCounts {
        BoundaryCounts {
            parts: self.parts.iter().map(|part| part.counts.clone()).collect(),
            nodes: self.data.nodes,
            edges: self.stored_edges,
            dense: self.storage != Storage::Sparse,
        }
    }
}
