//! All parts put together again.

use std::sync::Arc;

use super::{PartData, Shards, Storage};
use crate::graph::{
    BoundaryPlan, Csr, Dataset, Features, GraphError, Labels, Part, Partition, RawDataset,
    SparseRows, Split,
};
use crate::memory;

/// The graph of all parts, and how it was divided: what they were cut from.
#[derive(Debug)]
pub struct Whole {
    /// The graph with everything known of it.
    pub dataset: Arc<Dataset>,
    /// Who owns which node.
    pub partition: Arc<Partition>,
    /// Who sends which rows to whom.
    pub boundary: Arc<BoundaryPlan>,
}

impl Whole {
    /// The graph as data that come with one split.
    pub(crate) fn raw(&self) -> RawDataset {
        let dataset = Dataset::clone(&self.dataset);
        RawDataset {
            name: dataset.name,
            graph: dataset.graph,
            features: dataset.features,
            labels: dataset.labels,
            classes: dataset.classes,
            metric: Some(dataset.metric),
            splits: vec![dataset.split],
            reading: dataset.reading,
        }
    }
}

impl Shards {
    /// The whole graph, for one process that trains all parts, and for what looks at all nodes at
    /// once. It is put together once.
    ///
    /// # Errors
    /// If a file of any part is missing or damaged, or there is no memory for all of them.
    pub fn whole(&self) -> Result<Arc<Whole>, GraphError> {
        if let Some(whole) = self.whole.get() {
            return Ok(Arc::clone(whole));
        }
        let data = &self.meta.data;
        let held = memory::bytes(&[data.nodes, data.features], self.value_bytes());
        let edges = memory::bytes(&[self.meta.stored_edges], 2 * size_of::<u32>());
        let what = || format!("the whole graph of {}", self.folder.display());
        memory::need(what, held.saturating_add(edges))?;
        let parts: Vec<PartData> = (0..self.workers())
            .map(|rank| self.part(rank))
            .collect::<Result<_, _>>()?;
        let owner = self.owners(parts.iter().map(|data| &data.part))?;
        let edges = parts.iter().map(|data| (&data.part, &data.adjacency));
        let outline = self.outline();
        let label = |&(part, row): &(u32, u32)| parts[part as usize].labels.of(row as usize);
        let dataset = Dataset {
            graph: Arc::new(graph(edges, data.nodes)),
            features: Arc::new(self.features(&parts, &owner)),
            labels: Labels::of_each(outline.task(), owner.iter().map(label)),
            split: split(&parts),
            ..outline
        };
        let parts = parts.into_iter().map(|data| data.part);
        let whole = self.divided(dataset, &owner, parts);
        Ok(Arc::clone(self.whole.get_or_init(|| whole)))
    }

    /// The whole graph without features and labels: its edges, who owns which node, which train.
    /// For plans that follow edges from part to part. It is put together once.
    ///
    /// # Errors
    /// As [`Self::whole`].
    pub(crate) fn structure(&self) -> Result<Arc<Whole>, GraphError> {
        if let Some(structure) = self.structure.get() {
            return Ok(Arc::clone(structure));
        }
        let data = &self.meta.data;
        let edges = memory::bytes(&[self.meta.stored_edges], 2 * size_of::<u32>());
        let what = || format!("the edges of {}", self.folder.display());
        memory::need(what, edges)?;
        let ranks = 0..self.workers();
        let parts: Vec<(Part, Csr)> = ranks
            .clone()
            .map(|rank| self.edges(rank))
            .collect::<Result<_, _>>()?;
        let owner = self.owners(parts.iter().map(|(part, _)| part))?;
        let mut dataset = self.outline();
        let edges = parts.iter().map(|(part, adjacency)| (part, adjacency));
        dataset.graph = Arc::new(graph(edges, data.nodes));
        for (rank, (part, _)) in parts.iter().enumerate() {
            let train = self.training_rows(rank)?.into_iter();
            let train = train.map(|row| part.owned[row as usize]);
            dataset.split.train.extend(train);
        }
        dataset.split = dataset.split.sorted();
        if self.meta.storage == Storage::Sparse {
            let stored = ranks.map(|rank| self.stored_values(rank));
            let stored: Vec<Vec<usize>> = stored.collect::<Result<_, _>>()?;
            let mut offsets = vec![0];
            for &(part, row) in &owner {
                let before = offsets.last().copied().unwrap_or(0);
                offsets.push(before + stored[part as usize][row as usize]);
            }
            // How long rows are, and not what is in them.
            dataset.features = Arc::new(Features::Sparse(SparseRows {
                width: data.features,
                offsets,
                columns: Vec::new(),
                values: Vec::new(),
            }));
        }
        let parts = parts.into_iter().map(|(part, _)| part);
        let structure = self.divided(dataset, &owner, parts);
        Ok(Arc::clone(self.structure.get_or_init(|| structure)))
    }

    /// What is known of all nodes, with who owns which and whose rows cross.
    fn divided(
        &self,
        dataset: Dataset,
        owner: &[(u32, u32)],
        parts: impl Iterator<Item = Part>,
    ) -> Arc<Whole> {
        let partition = Partition {
            parts: self.workers(),
            assignment: owner.iter().map(|&(part, _)| part).collect(),
        };
        let boundary = BoundaryPlan {
            parts: parts.collect(),
            nodes: self.meta.data.nodes,
            edges: self.meta.stored_edges,
        };
        Arc::new(Whole {
            dataset: Arc::new(dataset),
            partition: Arc::new(partition),
            boundary: Arc::new(boundary),
        })
    }

    /// Bytes of a value of features; of sparse ones, of which few are stored, none.
    const fn value_bytes(&self) -> usize {
        match self.meta.storage {
            Storage::F32 => 4,
            Storage::F16 => 2,
            Storage::Sparse => 0,
        }
    }

    /// The part and row of each node.
    fn owners<'a>(
        &self,
        parts: impl Iterator<Item = &'a Part>,
    ) -> Result<Vec<(u32, u32)>, GraphError> {
        const NOBODY: u32 = u32::MAX;
        let mut owner = vec![(NOBODY, 0); self.meta.data.nodes];
        for (rank, part) in (0_u32..).zip(parts) {
            for (row, &node) in (0_u32..).zip(&part.owned) {
                owner[node as usize] = (rank, row);
            }
        }
        match owner.iter().position(|&(part, _)| part == NOBODY) {
            None => Ok(owner),
            Some(node) => {
                let what = format!("no part has node {node}; write the shards anew");
                Err(GraphError::file(&self.folder, what))
            }
        }
    }

    /// Features of all nodes in the order of their numbers.
    fn features(&self, parts: &[PartData], owner: &[(u32, u32)]) -> Features {
        let width = self.meta.data.features;
        if self.meta.storage == Storage::Sparse {
            let row = |&(part, row): &(u32, u32)| match &parts[part as usize].features {
                Features::Sparse(rows) => {
                    let (columns, values) = rows.row(row as usize);
                    columns
                        .iter()
                        .copied()
                        .zip(values.iter().copied())
                        .collect()
                }
                // All parts are stored alike.
                Features::Dense { .. } | Features::Coded(_) => Vec::new(),
            };
            return Features::from_rows(width, owner.iter().map(row));
        }
        let mut values = vec![0.0; owner.len() * width];
        for (&(part, row), target) in owner.iter().zip(values.chunks_exact_mut(width.max(1))) {
            parts[part as usize]
                .features
                .copy_row_into(row as usize, target);
        }
        let dense = Features::Dense { width, values };
        match self.meta.storage {
            // Exact, as they were in half precision.
            Storage::F16 => dense.clone().halved().unwrap_or(dense),
            _ => dense,
        }
    }
}

/// The graph of all parts under the numbers of its nodes.
fn graph<'a>(parts: impl Iterator<Item = (&'a Part, &'a Csr)> + Clone, nodes: usize) -> Csr {
    let edges = parts.flat_map(|(part, adjacency)| {
        let name = move |row: u32| {
            let row = row as usize;
            let halo = row.checked_sub(part.owned.len());
            halo.map_or_else(|| part.owned[row], |row| part.halo[row])
        };
        let edges = adjacency.iter_edges();
        edges.map(move |(source, row)| (name(source), part.owned[row as usize]))
    });
    Csr::from_edges(nodes, edges)
}

/// The nodes of all sets.
fn split(parts: &[PartData]) -> Split {
    let mut all = Split::default();
    for PartData { part, split, .. } in parts {
        let own = split.map(|rows| rows.iter().map(|&row| part.owned[row as usize]).collect());
        all.train.extend(own.train);
        all.validation.extend(own.validation);
        all.test.extend(own.test);
    }
    all.sorted()
}
