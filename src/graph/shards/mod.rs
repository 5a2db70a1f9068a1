//! Shards: a divided graph on disk, a folder for each part, so that a process holds its own part
//! and nothing of the others.
//!
//! ```text
//!   meta.json                       sizes, rows between each two parts, hash of every file
//!   part-0/  owned  halo  halo_offsets        node numbers; rows of owner o are halo[o..o + 1]
//!            halo_rows                        the row of each at its owner
//!            indptr  indices  degrees         edges that end here, columns [owned, halo]
//!            sends  send_offsets              own rows that others need
//!            features  labels                 of owned nodes
//!            train  validation  test          own rows
//!   part-1/  …
//! ```
//!
//! All but `meta.json` are `.npy` files. Each appears whole or not at all, and `meta.json` last, so
//! that a folder without it is unfinished. A file is held against its hash when it is first used.
//! See `docs/shards.md`.

mod array;
mod meta;
mod part_data;
mod read;
#[cfg(test)]
mod tests;
mod whole;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use sha2::{Digest, Sha256};

pub use meta::Divided;
pub(crate) use meta::{Meta, Storage};
pub(crate) use part_data::PartData;
pub use whole::Whole;
pub use write::Sharding;

use super::{BoundaryCounts, Csr, Dataset, Features, GraphError, Labels, Reading, Several, Split};
use meta::{FORMAT, META};

/// A folder of shards: what is known of all parts, and each part where it is asked for.
#[derive(Debug)]
pub struct Shards {
    folder: PathBuf,
    meta: Meta,
    hash: [u8; 32],
    /// The arrays of all parts; set is what was found to be as `meta.json` says.
    checked: BTreeMap<PathBuf, OnceLock<()>>,
    whole: OnceLock<Arc<Whole>>,
    /// The same without features and labels.
    structure: OnceLock<Arc<Whole>>,
}

impl Shards {
    /// Opens a folder, of which `meta.json` is read.
    ///
    /// # Errors
    /// If it is missing, unfinished, damaged or of another version of the format.
    pub fn open(folder: &Path) -> Result<Self, GraphError> {
        let path = folder.join(META);
        let wrong = |what: String| Err(GraphError::file(&path, what));
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => {
                let what = "has no meta.json, which is written last: these are no shards, or unfinished ones; the same \
                            `grapevine partition … --shards` finishes them";
                return Err(GraphError::file(folder, what));
            }
            Err(error) => return Err(GraphError::read(&path, error)),
        };
        let value: serde_json::Value = match serde_json::from_slice(&text) {
            Ok(value) => value,
            Err(error) => return wrong(format!("is not whole: {error}; write the shards anew")),
        };
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => {
                return wrong(format!(
                    "these shards have version {format} of the format, and this program reads version {FORMAT}: \
                     write them anew with it"
                ));
            }
            None => return wrong("does not say its `format`: these are no shards".to_owned()),
        }
        let meta: Meta = match serde_json::from_value(value) {
            Ok(meta) => meta,
            Err(error) => return wrong(format!("is not as it was written: {error}")),
        };
        if let Err(what) = meta.is_sound() {
            return wrong(format!("is not as it was written: {what}"));
        }
        let files = meta.parts.iter().enumerate().flat_map(|(rank, part)| {
            let names = part.files.keys();
            names.map(move |name| (folder_of(folder, rank).join(name), OnceLock::new()))
        });
        let checked = files.collect();
        Ok(Self {
            folder: folder.to_owned(),
            meta,
            hash: Sha256::digest(&text).into(),
            checked,
            whole: OnceLock::new(),
            structure: OnceLock::new(),
        })
    }

    /// Number of parts.
    pub const fn workers(&self) -> usize {
        self.meta.parts.len()
    }

    /// What is known of all parts.
    pub(crate) const fn meta(&self) -> &Meta {
        &self.meta
    }

    /// SHA-256 of `meta.json`, and so of everything.
    pub(crate) const fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// The boundary of all parts in numbers.
    pub fn counts(&self) -> BoundaryCounts {
        self.meta.counts()
    }

    /// The data set without its nodes: names, widths and kinds.
    pub fn outline(&self) -> Dataset {
        let data = &self.meta.data;
        let width = data.features;
        let features = match self.meta.storage {
            Storage::F32 | Storage::F16 => Features::Dense {
                width,
                values: Vec::new(),
            },
            Storage::Sparse => Features::from_rows(width, std::iter::empty()),
        };
        let labels = if data.several {
            Labels::from(Several::new(data.classes))
        } else {
            Vec::new().into()
        };
        Dataset {
            name: data.name.clone(),
            graph: Csr::undirected(0, std::iter::empty()).into(),
            features: features.into(),
            labels,
            classes: data.classes,
            metric: self.meta.metric,
            split: Split::default(),
            reading: Arc::new(self.reading()),
        }
    }

    /// How the data were read when they were divided.
    fn reading(&self) -> Reading {
        let data = &self.meta.data;
        Reading {
            edges: data.listed,
            files: vec![self.folder.join(META)],
            unread: data.unread.clone(),
            notes: data.notes.clone(),
        }
    }
}

/// The folder of one part.
fn folder_of(folder: &Path, rank: usize) -> PathBuf {
    folder.join(format!("part-{rank}"))
}
