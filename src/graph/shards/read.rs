//! One part out of its folder.

use std::ops::Range;
use std::path::PathBuf;

use super::array::FileSum;
use super::{PartData, Shards, Storage, folder_of};
use crate::graph::coded::CodedRows;
use crate::graph::loaders::{Element, Table, table};
use crate::graph::{
    BoundaryPlan, Csr, Features, GraphError, Labels, Part, Peers, Several, SparseRows, Split,
};

impl Shards {
    /// Holds all files of a part against their hashes, of which each is read once.
    ///
    /// # Errors
    /// If one is missing or damaged.
    pub(crate) fn check(&self, rank: usize) -> Result<(), GraphError> {
        let mut files = self.meta.parts[rank].files.keys();
        files.try_for_each(|name| self.file(rank, name).map(drop))
    }

    /// A part. Dense features stay in their file.
    ///
    /// # Errors
    /// If a file is missing, damaged or not of this part.
    ///
    /// # Panics
    /// If there is no such part.
    pub(crate) fn part(&self, rank: usize) -> Result<PartData, GraphError> {
        let files = PartFiles { of: self, rank };
        let counts = &self.meta.parts[rank].counts;
        let (part, adjacency) = self.edges(rank)?;
        let rows = part.owned.len() + part.halo.len();
        let degrees = files.ids("degrees.npy", self.meta.data.nodes.max(1))?;
        let features = files.features()?;
        let labels = files.labels()?;
        files.have([
            ("degrees.npy", degrees.len(), rows),
            ("features", features.rows(), counts.owned),
            ("labels.npy", labels.len(), counts.owned),
        ])?;
        let split = Split {
            train: self.training_rows(rank)?,
            validation: files.ids("validation.npy", counts.owned)?,
            test: files.ids("test.npy", counts.owned)?,
        };
        Ok(PartData {
            part,
            adjacency,
            degrees: degrees.into_iter().map(|degree| degree as usize).collect(),
            features,
            labels,
            split,
        })
    }

    /// Who sends which rows to whom, of all parts: their lists of nodes, and nothing else of them.
    ///
    /// # Errors
    /// If a file with such a list is missing, damaged or not of its part.
    pub(crate) fn boundary(&self) -> Result<BoundaryPlan, GraphError> {
        let parts = (0..self.workers()).map(|rank| self.lists(rank));
        Ok(BoundaryPlan {
            parts: parts.collect::<Result<_, _>>()?,
            nodes: self.meta.data.nodes,
            edges: self.meta.stored_edges,
        })
    }

    /// A part's own rows that train.
    pub(super) fn training_rows(&self, rank: usize) -> Result<Vec<u32>, GraphError> {
        let files = PartFiles { of: self, rank };
        files.ids("train.npy", self.meta.parts[rank].counts.owned)
    }

    /// How many values are stored of each row of a part, where those of rows differ.
    pub(super) fn stored_values(&self, rank: usize) -> Result<Vec<usize>, GraphError> {
        let files = PartFiles { of: self, rank };
        let ends = files.places("features_indptr.npy")?;
        let owned = self.meta.parts[rank].counts.owned;
        files.have([("features_indptr.npy", ends.len(), owned + 1)])?;
        if !ends.is_sorted() {
            return Err(files.wrong("features_indptr.npy", "is no list of rows"));
        }
        Ok(ends.windows(2).map(|ends| ends[1] - ends[0]).collect())
    }

    /// The nodes of a part and its boundary, and the edges that end in its nodes.
    pub(super) fn edges(&self, rank: usize) -> Result<(Part, Csr), GraphError> {
        let files = PartFiles { of: self, rank };
        let counts = &self.meta.parts[rank].counts;
        let part = self.lists(rank)?;
        let rows = part.owned.len() + part.halo.len();
        let offsets = files.places("indptr.npy")?;
        let neighbours = files.ids("indices.npy", rows)?;
        let Some(adjacency) = Csr::from_rows(rows, offsets, neighbours) else {
            return Err(files.wrong("indptr.npy", "is no list of rows of indices.npy"));
        };
        files.have([
            ("indptr.npy", adjacency.nodes(), counts.owned),
            (
                "indices.npy",
                adjacency.edges(),
                counts.internal_edges + counts.cut_edges,
            ),
        ])?;
        Ok((part, adjacency))
    }

    /// The nodes of a part and its boundary.
    fn lists(&self, rank: usize) -> Result<Part, GraphError> {
        let files = PartFiles { of: self, rank };
        let counts = &self.meta.parts[rank].counts;
        let nodes = self.meta.data.nodes;
        let owned = files.ids("owned.npy", nodes)?;
        let halo = files.ids("halo.npy", nodes)?;
        let halo_rows = files.ids("halo_rows.npy", nodes)?;
        let receives = of_peers(files.ranges("halo_offsets.npy", halo.len())?);
        let sent = files.ids("sends.npy", owned.len())?;
        let sends = files.ranges("send_offsets.npy", sent.len())?;
        files.have([
            ("owned.npy", owned.len(), counts.owned),
            ("halo.npy", halo.len(), counts.halo),
            ("halo_rows.npy", halo_rows.len(), counts.halo),
        ])?;
        for (peer, range) in receives.iter() {
            let most = self.meta.parts[peer].counts.owned;
            if halo_rows[range.clone()]
                .iter()
                .any(|&row| row as usize >= most)
            {
                let what = format!("has a row that is not below {most}, those of part {peer}");
                return Err(files.wrong("halo_rows.npy", &what));
            }
        }
        Ok(Part {
            sends: of_peers(sends.map(|(peer, range)| (peer, sent[range].to_vec()))),
            receives,
            internal_edges: counts.internal_edges,
            cut_edges: counts.cut_edges,
            training: counts.training,
            owned,
            halo_rows,
            halo,
        })
    }

    /// An array of a part, whose hash is checked at its first use.
    fn file(&self, rank: usize, name: &str) -> Result<PathBuf, GraphError> {
        let path = folder_of(&self.folder, rank).join(name);
        let said = self.meta.parts[rank].files.get(name);
        let Some((said, checked)) = said.zip(self.checked.get(&path)) else {
            return Err(GraphError::file(
                &path,
                "is not among the files of meta.json; write the shards anew",
            ));
        };
        if checked.get().is_some() {
            return Ok(path);
        }
        // A length is looked at in no time, and a file may be large.
        let length = std::fs::metadata(&path).map(|about| about.len());
        let length = length.map_err(|error| GraphError::read(&path, error))?;
        let whole = length == said.bytes && {
            let found = FileSum::of(&path).map_err(|error| GraphError::read(&path, error))?;
            found == *said
        };
        if !whole {
            let what = "is damaged: its hash is not that of meta.json; copy it anew, or remove the folder and write the \
                        shards again";
            return Err(GraphError::file(&path, what));
        }
        // Two that come at once both look, and find the same.
        checked.get_or_init(|| ());
        Ok(path)
    }
}

/// What there is for each peer for whom there is something.
fn of_peers<T: Default>(all: impl Iterator<Item = (usize, T)>) -> Peers<T> {
    let mut peers = Peers::default();
    for (peer, value) in all {
        *peers.of(peer) = value;
    }
    peers
}

/// The files of one part.
struct PartFiles<'a> {
    of: &'a Shards,
    rank: usize,
}

impl PartFiles<'_> {
    fn wrong(&self, name: &str, what: &str) -> GraphError {
        let path = folder_of(&self.of.folder, self.rank).join(name);
        GraphError::file(&path, format!("{what}; write the shards anew"))
    }

    /// Whether files have as many rows as `meta.json` says: name, rows there, rows said.
    fn have<const N: usize>(&self, lengths: [(&str, usize, usize); N]) -> Result<(), GraphError> {
        match lengths.into_iter().find(|(_, there, said)| there != said) {
            None => Ok(()),
            Some((name, there, said)) => {
                let what = format!("has {there} rows, and meta.json says {said}");
                Err(self.wrong(name, &what))
            }
        }
    }

    fn table<T: Element>(&self, name: &str) -> Result<Table<T>, GraphError> {
        let path = self.of.file(self.rank, name)?;
        table(&path, None).map_err(|what| self.wrong(name, &what))
    }

    fn whole_numbers(&self, name: &str) -> Result<Table<i64>, GraphError> {
        self.table(name)
    }

    /// Numbers below `end`.
    fn ids(&self, name: &str, end: usize) -> Result<Vec<u32>, GraphError> {
        let table = self.whole_numbers(name)?;
        let all = table.values.values(0, table.values.len());
        let id = |value: i64| u32::try_from(value).ok().filter(|&id| (id as usize) < end);
        let ids: Option<Vec<u32>> = all.map(id).collect();
        ids.ok_or_else(|| self.wrong(name, &format!("has a number that is not below {end}")))
    }

    fn places(&self, name: &str) -> Result<Vec<usize>, GraphError> {
        let table = self.whole_numbers(name)?;
        let all = table.values.values(0, table.values.len());
        let places: Option<Vec<usize>> = all.map(|value| usize::try_from(value).ok()).collect();
        places.ok_or_else(|| self.wrong(name, "has a number below zero"))
    }

    /// For each peer that has something of a list of this length, where.
    fn ranges(
        &self,
        name: &str,
        length: usize,
    ) -> Result<impl Iterator<Item = (usize, Range<usize>)> + use<>, GraphError> {
        let places = self.places(name)?;
        let sound = places.len() == self.of.workers() + 1
            && places[0] == 0
            && places.last() == Some(&length)
            && places.windows(2).all(|ends| ends[0] <= ends[1]);
        if !sound {
            return Err(self.wrong(name, "does not say where the rows of each part are"));
        }
        let ranges = (0..places.len() - 1).map(move |peer| (peer, places[peer]..places[peer + 1]));
        Ok(ranges.filter(|(_, range)| !range.is_empty()))
    }

    fn features(&self) -> Result<Features, GraphError> {
        let width = self.of.meta.data.features;
        if self.of.meta.storage == Storage::Sparse {
            let offsets = self.places("features_indptr.npy")?;
            let columns = self.ids("features_indices.npy", width)?;
            let table: Table<f32> = self.table("features_data.npy")?;
            let values: Vec<f32> = table.values.values(0, table.values.len()).collect();
            // The same rows as those of a matrix of edges.
            let rows = Csr::from_rows(width, offsets.clone(), columns.clone());
            if rows.is_none() || values.len() != columns.len() {
                return Err(self.wrong("features_indptr.npy", "is no list of rows"));
            }
            return Ok(Features::Sparse(SparseRows {
                width,
                offsets,
                columns,
                values,
            }));
        }
        let table: Table<f32> = self.table("features.npy")?;
        match table.shape[..] {
            [_, columns] if columns == width && width > 0 => {
                Ok(Features::Coded(CodedRows::mapped(width, table.values)))
            }
            _ => Err(self.wrong("features.npy", &format!("has no {width} columns"))),
        }
    }

    fn labels(&self) -> Result<Labels, GraphError> {
        let data = &self.of.meta.data;
        let table = self.whole_numbers("labels.npy")?;
        let count = table.values.len();
        if !data.several {
            let class = |value: i64| match value {
                -1 => Some(None),
                class => {
                    let class = u32::try_from(class).ok();
                    class.filter(|&it| (it as usize) < data.classes).map(Some)
                }
            };
            let classes: Option<Vec<Option<u32>>> =
                table.values.values(0, count).map(class).collect();
            let classes = classes
                .ok_or_else(|| self.wrong("labels.npy", "has a class that meta.json has not"))?;
            return Ok(classes.into());
        }
        let labels = data.classes;
        if !matches!(table.shape[..], [_, columns] if columns == labels) {
            return Err(self.wrong("labels.npy", &format!("has no {labels} columns")));
        }
        let mut several = Several::new(labels);
        let mut has = Vec::with_capacity(labels);
        for node in 0..table.shape[0] {
            has.clear();
            has.extend(table.values.values(node * labels, labels));
            let unknown = has.iter().filter(|&&value| value == -1).count();
            let sound = has.iter().all(|value| (-1..=1).contains(value));
            if !sound || (unknown > 0 && unknown < labels) {
                let what = format!("has labels of row {node} that are not 0 and 1, or all -1");
                return Err(self.wrong("labels.npy", &what));
            }
            let has: Vec<bool> = has.iter().map(|&value| value == 1).collect();
            several.push((unknown == 0).then_some(&has));
        }
        Ok(several.into())
    }
}
