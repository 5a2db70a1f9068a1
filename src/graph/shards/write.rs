//! A divided graph as a folder of parts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use half::f16;
use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::array::{FileSum, write};
use super::folder_of;
use super::meta::{Divided, FORMAT, META, Meta, PartMeta, Storage};
use crate::atomic;
use crate::graph::{
    BoundaryCounts, BoundaryPlan, Csr, Dataset, DatasetSpec, Features, GraphError, Labels, Part,
    Partition,
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
    /// Writes all parts, as many at once as there are threads, and then `meta.json`. Files that an
    /// earlier call left are kept. Of edges and features a row is held at a time, besides what lies
    /// in memory already. Returns the bytes of all files.
    ///
    /// # Errors
    /// If the folder has something else, or cannot be written to.
    pub fn write(&self, folder: &Path) -> Result<u64, GraphError> {
        let content = self.content();
        Self::may_write(folder, &content)?;
        let storage = storage(&self.dataset.features);
        let counts = BoundaryCounts::new(self.boundary, &self.dataset.features);
        let rows = self.rows();
        let files = (self.boundary.parts.par_iter().enumerate())
            .map(|(rank, part)| {
                let mut writer = Writer::new(folder_of(folder, rank));
                writer.structure(part, self.partition.parts)?;
                writer.edges(
                    &self.dataset.graph,
                    |node| {
                        let owner = self.partition.assignment[node as usize] as usize;
                        if owner == rank {
                            return rows[node as usize];
                        }
                        let range = part.receives[owner].clone();
                        let place = part.halo[range.clone()].binary_search(&node);
                        let Ok(place) = place else {
                            unreachable!("an edge into a part comes from there or from its halo");
                        };
                        (part.owned.len() + range.start + place) as u32
                    },
                    part,
                )?;
                writer.known(self.dataset, part)
            })
            .collect::<Result<Vec<Files>, GraphError>>()?;
        let parts: Vec<PartMeta> = (counts.parts.into_iter().zip(files))
            .map(|(counts, files)| PartMeta { counts, files })
            .collect();
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

    /// The row that each node has where it is owned.
    fn rows(&self) -> Vec<u32> {
        let mut rows = vec![0; self.partition.assignment.len()];
        for part in &self.boundary.parts {
            for (row, &node) in (0_u32..).zip(&part.owned) {
                rows[node as usize] = row;
            }
        }
        rows
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
        let graph = &dataset.graph;
        hash.update((graph.edges() as u64).to_le_bytes());
        for (source, _) in graph.iter_edges() {
            hash.update(source.to_le_bytes());
        }
        for list in [
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
        Features::Sparse(_) => Storage::Sparse,
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
        self.numbers(name, ids.len(), ids.iter().copied())
    }

    fn numbers(
        &mut self,
        name: &str,
        count: usize,
        numbers: impl Iterator<Item = u32>,
    ) -> Result<(), GraphError> {
        self.put(name, "<u4", &[count], numbers.map(u32::to_le_bytes))
    }

    /// Where lists of these lengths begin that lie one after another, and where the last one ends:
    /// that is the result, too.
    fn places(
        &mut self,
        name: &str,
        lengths: impl Iterator<Item = usize>,
    ) -> Result<usize, GraphError> {
        let (mut end, mut places) = (0, vec![0]);
        places.extend(lengths.map(|length| {
            end += length;
            end
        }));
        let values = places.iter().map(|&place| (place as u64).to_le_bytes());
        self.put(name, "<i8", &[places.len()], values)?;
        Ok(end)
    }

    /// Who is where, and which rows cross.
    fn structure(&mut self, part: &Part, workers: usize) -> Result<(), GraphError> {
        self.ids("owned.npy", &part.owned)?;
        self.ids("halo.npy", &part.halo)?;
        self.ids("halo_rows.npy", &part.halo_rows)?;
        let peers = 0..workers;
        let received = peers.clone().map(|peer| part.receives[peer].len());
        self.places("halo_offsets.npy", received)?;
        let sent = peers.clone().map(|peer| part.sends[peer].len());
        let sent = self.places("send_offsets.npy", sent)?;
        let sends = peers.flat_map(|peer| part.sends[peer].iter().copied());
        self.numbers("sends.npy", sent, sends)
    }

    /// Edges that end in the nodes of a part, given the local row of each source.
    fn edges(
        &mut self,
        graph: &Csr,
        local: impl Fn(u32) -> u32,
        part: &Part,
    ) -> Result<(), GraphError> {
        let owned = part.owned.iter().map(|&node| node as usize);
        let edges = part.internal_edges + part.cut_edges;
        self.places("indptr.npy", owned.clone().map(|node| graph.degree(node)))?;
        let rows = owned.flat_map(|node| {
            let mut row: Vec<u32> = graph.neighbours(node).iter().map(|&u| local(u)).collect();
            row.sort_unstable();
            row
        });
        self.numbers("indices.npy", edges, rows)?;
        let nodes = part.owned.iter().chain(&part.halo);
        // Of the whole graph, so that normalisation does not depend on the partition. No node has
        // more neighbours than there are nodes, whose number fits.
        let degrees = nodes.map(|&node| graph.degree(node as usize) as u32);
        self.numbers("degrees.npy", part.owned.len() + part.halo.len(), degrees)
    }

    /// What is known of the nodes of a part; all its files.
    fn known(mut self, dataset: &Dataset, part: &Part) -> Result<Files, GraphError> {
        self.features(&dataset.features, &part.owned)?;
        self.labels(&dataset.labels.select(&part.owned))?;
        let split = &dataset.split;
        self.ids("train.npy", &part.training_rows(&split.train))?;
        self.ids("validation.npy", &part.training_rows(&split.validation))?;
        self.ids("test.npy", &part.training_rows(&split.test))?;
        Ok(self.files)
    }

    /// Features of these nodes, a row at a time.
    fn features(&mut self, features: &Features, nodes: &[u32]) -> Result<(), GraphError> {
        let shape = [nodes.len(), features.width()];
        let rows = nodes.iter().flat_map(|&node| {
            let mut values = vec![0.0; shape[1]];
            features.copy_row_into(node as usize, &mut values);
            values
        });
        match (storage(features), features) {
            (Storage::Sparse, Features::Sparse(sparse)) => {
                let rows = nodes.iter().map(|&node| sparse.row(node as usize));
                let lengths = rows.clone().map(|(columns, _)| columns.len());
                let stored = self.places("features_indptr.npy", lengths)?;
                let columns = rows.clone().flat_map(|(columns, _)| columns);
                self.numbers("features_indices.npy", stored, columns.copied())?;
                let values = rows.flat_map(|(_, values)| values);
                let values = values.map(|value| value.to_le_bytes());
                self.put("features_data.npy", "<f4", &[stored], values)
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
