//! A divided graph as a folder of parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use half::f16;
use sha2::{Digest, Sha256};

use super::array::{FileSum, write};
use super::meta::{Divided, FORMAT, META, Meta, PartMeta, Storage};
use super::{PartData, folder_of};
use crate::atomic;
use crate::graph::{
    BoundaryCounts, BoundaryPlan, Dataset, DatasetSpec, Features, GraphError, Labels, Partition,
};

/// Name of the file that says of unfinished shards what they are to be.
const BEGUN: &str = "begun.json";

/// Files of a part by their names.
type Files = BTreeMap<String, FileSum>;

/// A graph that is to be written as shards.
pub struct Sharding<'a> {
    /// The graph, with the split that the shards have.
    pub dataset: &'a Dataset,
    /// Where it came from.
    pub spec: &'a DatasetSpec,
    /// Who owns which node.
    pub partition: &'a Partition,
    /// Who sends which rows to whom, with training nodes.
    pub boundary: &'a BoundaryPlan,
    /// How it was divided.
    pub divided: Divided,
}

impl Sharding<'_> {
    /// Writes all parts, one after another, and then `meta.json`. Files that an earlier call left
    /// are kept. Of features that lie in a file, a row is held at a time. Returns the bytes of all
    /// files.
    ///
    /// # Errors
    /// If the folder has something else, or cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<u64, GraphError> {
        let content = self.content();
        Self::may_write(folder, &content)?;
        let storage = storage(&self.dataset.features);
        let counts = BoundaryCounts::new(self.boundary, &self.dataset.features);
        let mut parts = Vec::new();
        for (rank, (part, counts)) in self.boundary.parts.iter().zip(counts.parts).enumerate() {
            let data = PartData::cut(self.dataset, part);
            let files = Writer::new(folder_of(folder, rank)).part(&data, self.partition.parts)?;
            parts.push(PartMeta { counts, files });
        }
        let files = parts.iter().flat_map(|part| part.files.values());
        let bytes = files.map(|file| file.bytes).sum();
        let meta = Meta {
            format: FORMAT,
            data: self.dataset.summary(),
            stored_edges: self.dataset.graph.edges(),
            storage,
            metric: self.dataset.metric,
            partition: self.divided.clone(),
            source: given(self.spec),
            content,
            parts,
        };
        put(&folder.join(META), &json(&meta))?;
        // All of it is in `meta.json` now; one that stays does no harm.
        let _ = fs::remove_file(folder.join(BEGUN));
        Ok(bytes)
    }

    /// Whether the folder is free, or has these shards, finished or not.
    fn may_write(folder: &Path, content: &str) -> Result<(), GraphError> {
        let of = |name: &str| -> Option<String> {
            let text = fs::read_to_string(folder.join(name)).ok()?;
            let value: serde_json::Value = serde_json::from_str(&text).ok()?;
            Some(value.get("content")?.as_str()?.to_owned())
        };
        let there = of(META).or_else(|| of(BEGUN));
        let empty = || fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        let what = match there {
            Some(there) if there == content => return Ok(()),
            Some(_) => "has shards of other data, another partition or another split",
            None if !empty() => "has files that are no shards",
            None => {
                let begun = serde_json::json!({ "format": FORMAT, "content": content });
                return put(&folder.join(BEGUN), &begun);
            }
        };
        let what = format!("{what}; remove it, or give another folder");
        Err(GraphError::file(folder, what))
    }

    /// SHA-256 of all that decides what is in the files. Features are known by where they came
    /// from: they may be more than memory holds.
    fn content(&self) -> String {
        let mut hash = Sha256::new_with_prefix(json(self.spec).to_string());
        hash.update(FORMAT.to_le_bytes());
        let dataset = self.dataset;
        for file in &dataset.reading.files {
            hash.update(file.to_string_lossy().as_bytes());
            if let Ok(about) = fs::metadata(file) {
                let changed = about.modified().ok();
                let changed = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let changed = changed.map_or(0, |time| time.as_nanos());
                hash.update(about.len().to_le_bytes());
                hash.update(changed.to_le_bytes());
            }
        }
        let split = &dataset.split;
        for list in [
            dataset.graph.indices(),
            &split.train,
            &split.validation,
            &split.test,
            &self.partition.assignment,
        ] {
            hash.update((list.len() as u64).to_le_bytes());
            for item in list {
                hash.update(item.to_le_bytes());
            }
        }
        for &start in dataset.graph.offsets() {
            hash.update((start as u64).to_le_bytes());
        }
        format!("{:x}", hash.finalize())
    }
}

/// How features are stored: as they are held, and those of a file by what its values need.
fn storage(features: &Features) -> Storage {
    match features {
        Features::Sparse { .. } => Storage::Sparse,
        Features::Coded(rows) if rows.is_half() => Storage::F16,
        Features::Dense { .. } | Features::Coded(_) => Storage::F32,
    }
}

fn json(value: &impl serde::Serialize) -> serde_json::Value {
    // It fails for keys that are no text, of which there are none.
    serde_json::to_value(value).unwrap_or_default()
}

/// The keys of the section that say something.
fn given(spec: &DatasetSpec) -> serde_json::Value {
    let mut keys = json(spec);
    if let Some(keys) = keys.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    keys
}

fn put(path: &Path, value: &serde_json::Value) -> Result<(), GraphError> {
    let text = format!("{value:#}\n");
    atomic::write_bytes(path, text.as_bytes()).map_err(|source| GraphError::Write {
        path: path.to_owned(),
        source,
    })
}

/// Writes the files of one part.
struct Writer {
    folder: PathBuf,
    files: Files,
}

impl Writer {
    const fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            files: Files::new(),
        }
    }

    fn put<const N: usize>(
        &mut self,
        name: &str,
        kind: &str,
        shape: &[usize],
        values: impl Iterator<Item = [u8; N]>,
    ) -> Result<(), GraphError> {
        let sum = write(&self.folder.join(name), kind, shape, values)?;
        self.files.insert(name.to_owned(), sum);
        Ok(())
    }

    fn ids(&mut self, name: &str, ids: &[u32]) -> Result<(), GraphError> {
        let values = ids.iter().map(|id| id.to_le_bytes());
        self.put(name, "<u4", &[ids.len()], values)
    }

    fn places(
        &mut self,
        name: &str,
        places: impl ExactSizeIterator<Item = usize>,
    ) -> Result<(), GraphError> {
        let shape = [places.len()];
        let values = places.map(|place| (place as u64).to_le_bytes());
        self.put(name, "<i8", &shape, values)
    }

    fn part(mut self, data: &PartData, workers: usize) -> Result<Files, GraphError> {
        let part = &data.part;
        self.ids("owned.npy", &part.owned)?;
        self.ids("halo.npy", &part.halo)?;
        let ends = |length: &dyn Fn(usize) -> usize| {
            let mut ends = vec![0; workers + 1];
            for peer in 0..workers {
                ends[peer + 1] = ends[peer] + length(peer);
            }
            ends.into_iter()
        };
        self.places("halo_offsets.npy", ends(&|peer| part.receives[peer].len()))?;
        let sends: Vec<u32> = (0..workers)
            .flat_map(|peer| part.sends[peer].iter().copied())
            .collect();
        self.ids("sends.npy", &sends)?;
        self.places("send_offsets.npy", ends(&|peer| part.sends[peer].len()))?;
        self.places("indptr.npy", data.adjacency.offsets().iter().copied())?;
        self.ids("indices.npy", data.adjacency.indices())?;
        // No node has more neighbours than there are nodes, whose number fits.
        let degrees: Vec<u32> = data.degrees.iter().map(|&degree| degree as u32).collect();
        self.ids("degrees.npy", &degrees)?;
        self.features(&data.features)?;
        self.labels(&data.labels)?;
        self.ids("train.npy", &data.split.train)?;
        self.ids("validation.npy", &data.split.validation)?;
        self.ids("test.npy", &data.split.test)?;
        Ok(self.files)
    }

    fn features(&mut self, features: &Features) -> Result<(), GraphError> {
        let shape = [features.rows(), features.width()];
        // A row at a time.
        let rows = (0..shape[0]).flat_map(|row| {
            let mut values = vec![0.0; shape[1]];
            features.copy_row_into(row, &mut values);
            values
        });
        match (storage(features), features) {
            (
                Storage::Sparse,
                Features::Sparse {
                    offsets,
                    columns,
                    values,
                    ..
                },
            ) => {
                self.places("features_indptr.npy", offsets.iter().copied())?;
                self.ids("features_indices.npy", columns)?;
                let stored = values.iter().map(|value| value.to_le_bytes());
                self.put("features_data.npy", "<f4", &[values.len()], stored)
            }
            (Storage::F16, _) => {
                // Exact: they were in half precision.
                let values = rows.map(|value| f16::from_f32(value).to_le_bytes());
                self.put("features.npy", "<f2", &shape, values)
            }
            _ => self.put("features.npy", "<f4", &shape, rows.map(f32::to_le_bytes)),
        }
    }

    fn labels(&mut self, labels: &Labels) -> Result<(), GraphError> {
        const UNKNOWN: i8 = -1;
        match labels {
            Labels::Classes(classes) => {
                // There are far fewer classes than 2³¹.
                let class = |class: &Option<u32>| class.map_or(i32::from(UNKNOWN), |it| it as i32);
                let values = classes.iter().map(|known| class(known).to_le_bytes());
                self.put("labels.npy", "<i4", &[classes.len()], values)
            }
            Labels::Several(of) => {
                let row = |node: usize| {
                    (0..of.labels()).map(move |label| {
                        let known = of.is_known(node);
                        let has = known.then(|| i8::from(of.has(node, label)));
                        has.unwrap_or(UNKNOWN).to_le_bytes()
                    })
                };
                let shape = [of.nodes(), of.labels()];
                self.put("labels.npy", "|i1", &shape, (0..of.nodes()).flat_map(row))
            }
        }
    }
}
