//! Published graphs by name: where they are, what they hold, and how they are read.
//!
//! `sets.toml` has a table for each. `grapevine fetch` puts the files of a set into a folder called
//! after it, within the [data folder](data_folder); `[dataset] name = "…"` reads them there.
//! Nothing here uses the network.

mod folder;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::Deserialize;

use super::{BUNDLED, DatasetSpec, GraphError, Metric, PUBLISHED};

pub(crate) use folder::{data_folder, keep_data_in};

const SETS: &str = include_str!("sets.toml");

/// One published graph.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedSet {
    /// What experiment files and `grapevine fetch` call it.
    #[serde(default)]
    pub name: String,
    /// What nodes, edges and features are.
    pub about: String,
    /// The files to download.
    pub files: Vec<PublishedFile>,
    /// How they are read, once they are unpacked; `path` is within the folder of the set.
    pub read: DatasetSpec,
    /// Most bytes that archives may unpack to.
    #[serde(default)]
    pub unpacked: Option<u64>,
    /// Nodes, as the authors state them.
    pub nodes: u64,
    /// Edges, as the authors state them.
    pub edges: u64,
    /// Whether they count each edge in both directions.
    #[serde(default)]
    pub both_directions: bool,
    /// Columns of the features.
    pub features: u64,
    /// Classes, or labels of which a node may have several.
    pub classes: u64,
    /// The measure that the authors report; none for edges alone.
    #[serde(default)]
    pub metric: Option<Metric>,
    /// The split that comes with the files.
    pub split: String,
    /// The licence that its source states.
    #[serde(default)]
    pub licence: Option<String>,
    /// The paper to cite.
    pub cite: String,
}

/// One file of a published graph.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedFile {
    /// Its address; what follows the last `/` is its name.
    pub at: String,
    /// Other addresses of the same file, tried in order.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// Its length, if it is known.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Its length as a page says it, where the exact one is not known.
    #[serde(default)]
    pub roughly: Option<u64>,
    /// Its checksum, `sha256:…`, `md5:…` or `git:…` (the id of a git blob), if one is known.
    #[serde(default)]
    pub sum: Option<String>,
}

impl PublishedFile {
    /// The name of the file: the last part of its address.
    pub(crate) fn name(&self) -> &str {
        self.at.rsplit('/').next().unwrap_or(&self.at)
    }
}

impl PublishedSet {
    /// Bytes to download, as far as they are known.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let known = |file: &PublishedFile| file.bytes.or(file.roughly);
        self.files.iter().map(known).sum()
    }

    /// Where its files are, or would be.
    ///
    /// # Errors
    /// If there is no data folder.
    pub(crate) fn folder(&self) -> Result<PathBuf, GraphError> {
        Ok(data_folder()?.join(&self.name))
    }

    /// Whether its files are there.
    pub(crate) fn is_here(&self) -> bool {
        self.folder().is_ok_and(|folder| folder.is_dir())
    }

    /// How its files in `folder` are read.
    ///
    /// # Errors
    /// If they are not there.
    pub(super) fn spec(&self, folder: &Path) -> Result<DatasetSpec, GraphError> {
        let (name, read) = (&self.name, &self.read);
        if !folder.is_dir() {
            let known = PUBLISHED.iter().any(|size| size.name == *name);
            let size = if known {
                format!(
                    "; `project` and `advise` take its size alone: counts = {{ like = \"{name}\" }}"
                )
            } else {
                String::new()
            };
            let what = format!(
                "`{name}` is not here, there is no folder {}; `grapevine fetch {name}` brings it{size}",
                folder.display()
            );
            return Err(GraphError::key("dataset.name", what));
        }
        Ok(DatasetSpec {
            path: Some(match &read.path {
                Some(path) => folder.join(path),
                None => folder.to_owned(),
            }),
            ..read.clone()
        })
    }
}

/// All published graphs, in the order of the file.
pub(crate) fn published_sets() -> &'static [PublishedSet] {
    static READ: OnceLock<Vec<PublishedSet>> = OnceLock::new();
    READ.get_or_init(|| {
        // The file is part of the program, and a test reads it.
        let table: toml::Table = toml::from_str(SETS).expect("sets.toml is valid");
        let set = |(name, value): (String, toml::Value)| {
            let set: PublishedSet = value.try_into().expect("sets.toml is valid");
            PublishedSet { name, ..set }
        };
        table.into_iter().map(set).collect()
    })
}

/// The published graph of this name.
pub(crate) fn published_set(name: &str) -> Option<&'static PublishedSet> {
    published_sets().iter().find(|set| set.name == name)
}

/// The names that `dataset.name` may have: what is part of the program, and what is published.
pub(crate) fn dataset_names() -> &'static [&'static str] {
    static NAMES: OnceLock<Vec<&'static str>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let published = published_sets().iter().map(|set| set.name.as_str());
        BUNDLED.iter().copied().chain(published).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_set_says_what_it_is_and_how_it_is_read() {
        assert!(published_sets().len() >= 25);
        for set in published_sets() {
            let name = &set.name;
            assert!(
                !set.files.is_empty() && set.nodes > 0 && set.edges > 0,
                "{name}"
            );
            let read = &set.read;
            assert!(read.format.is_some() && read.name.is_none(), "{name}");
            let names: BTreeSet<&str> = set.files.iter().map(PublishedFile::name).collect();
            assert_eq!(
                names.len(),
                set.files.len(),
                "{name}: two files of one name"
            );
            for file in &set.files {
                let is_address = file.at.starts_with("https://") || file.at.starts_with("http://");
                assert!(is_address && !file.name().is_empty(), "{}", file.at);
            }
        }
    }

    #[test]
    fn no_name_is_used_twice() {
        let names: BTreeSet<&str> = dataset_names().iter().copied().collect();
        assert_eq!(names.len(), dataset_names().len());
        assert_eq!(names.len(), BUNDLED.len() + published_sets().len());
    }

    #[test]
    fn a_set_that_is_not_here_is_asked_for() {
        let nowhere = Path::new("/nowhere/citeseer");
        let said = |name: &str| {
            let error = published_set(name).unwrap().spec(nowhere);
            error.unwrap_err().to_string()
        };
        assert_eq!(
            said("citeseer"),
            "dataset.name: `citeseer` is not here, there is no folder /nowhere/citeseer; \
             `grapevine fetch citeseer` brings it"
        );
    }
}
