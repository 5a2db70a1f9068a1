//! A graph with features, labels and a split.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Csr, DatasetSpec, Features, GraphError, Split, SplitFractions, SplitSpec};
use super::{bundled, loaders, synthetic};

/// A data set as it was published or generated, before a seed chooses a split. The large parts are
/// shared: several seeds train on one copy.
#[derive(Clone, Debug)]
pub struct RawDataset {
    /// Name for tables: `cora`, or what the files are called.
    pub name: String,
    /// Undirected, without self-loops and duplicates.
    pub graph: Arc<Csr>,
    /// `[nodes, width]`; width 0 if there are neither features nor labels.
    pub features: Arc<Features>,
    /// The class of each node where it is known, `[nodes]`.
    pub labels: Arc<[Option<u32>]>,
    /// Number of classes; 0 for data that is topology only, which can be partitioned but not
    /// trained on.
    pub classes: usize,
    /// The splits that come with the data: `public` is the first, `public-1` the second.
    pub splits: Vec<Split>,
}

/// A data set with the nodes that train, validate and test.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Name for tables.
    pub name: String,
    /// Undirected, without self-loops and duplicates.
    pub graph: Arc<Csr>,
    /// `[nodes, width]`.
    pub features: Arc<Features>,
    /// The class of each node where it is known, `[nodes]`.
    pub labels: Arc<[Option<u32>]>,
    /// Number of classes; 0 for data that is topology only.
    pub classes: usize,
    /// Which nodes train, validate and test; empty for data that is topology only.
    pub split: Split,
}

impl RawDataset {
    /// Puts the parts together.
    pub fn new(
        name: String,
        graph: Csr,
        features: Features,
        labels: Vec<Option<u32>>,
        classes: usize,
        splits: Vec<Split>,
    ) -> Self {
        let (graph, features) = (Arc::new(graph), Arc::new(features));
        Self {
            name,
            graph,
            features,
            labels: labels.into(),
            classes,
            splits,
        }
    }

    /// Gives generated data a split of its own, 60 % for training, 20 % for validation and 20 % for
    /// test, so that it can be used without saying more.
    pub(super) fn with_own_split(mut self, seed: u64) -> Result<Self, GraphError> {
        let shares = SplitFractions {
            train: 0.6,
            val: 0.2,
            seed: None,
        };
        self.splits = vec![Split::choose(&SplitSpec::Fractions(shares), &self, seed)?];
        Ok(self)
    }

    /// Chooses training, validation and test nodes; `seed` is the seed of the run. O(nodes): graph,
    /// features and labels are shared with `self`.
    ///
    /// # Errors
    /// If the data set has no such published split, if shares are out of range, or if a class is
    /// too small.
    pub fn split(&self, spec: &SplitSpec, seed: u64) -> Result<Dataset, GraphError> {
        Ok(Dataset {
            name: self.name.clone(),
            graph: Arc::clone(&self.graph),
            features: Arc::clone(&self.features),
            labels: Arc::clone(&self.labels),
            classes: self.classes,
            split: Split::choose(spec, self, seed)?,
        })
    }
}

impl DatasetSpec {
    /// The path that is not there, if the section allows that: with `optional`, nothing at `path`. Files that are there and
    /// broken are errors all the same.
    #[must_use]
    pub fn absent(&self, base: &Path) -> Option<PathBuf> {
        let path = base.join(self.path.as_ref().filter(|_| self.optional)?);
        (!path.exists()).then_some(path)
    }

    /// Reads or generates the data set, with features normalised as the section says. Relative
    /// paths start at `base`, the folder of the experiment file.
    ///
    /// # Errors
    /// If the section does not name exactly one source, or the source cannot be read.
    pub fn read(&self, base: &Path) -> Result<RawDataset, GraphError> {
        let mut data = match (&self.name, &self.path, &self.synthetic) {
            (Some(name), None, None) => bundled::bundled(name)?,
            (None, Some(path), None) => {
                let format = self.format.ok_or_else(|| {
                    GraphError::key(
                        "dataset.format",
                        "is missing; a `path` needs the format of the files there, for example \
                        \"planetoid\"",
                    )
                })?;
                loaders::read(format, &base.join(path))?
            }
            (None, None, Some(spec)) => synthetic::generate(spec)?,
            _ => {
                let what = "give exactly one of `name` (a bundled data set), `path` with \
                `format`, or `synthetic`";
                return Err(GraphError::key("dataset", what));
            }
        };
        if self
            .normalise_features
            .unwrap_or_else(|| data.features.is_bag_of_words())
        {
            Arc::make_mut(&mut data.features).row_normalise();
        }
        let features = Arc::unwrap_or_clone(data.features);
        data.features = Arc::new(features.expanded());
        Ok(data.reordered(self.order))
    }

    /// [`DatasetSpec::read`], then [`RawDataset::split`] with the split of the section.
    ///
    /// # Errors
    /// Those of both.
    pub fn load(&self, base: &Path, seed: u64) -> Result<Dataset, GraphError> {
        self.read(base)?.split(&self.split, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Format;

    fn bundled(name: &str) -> DatasetSpec {
        DatasetSpec {
            name: Some(name.to_owned()),
            ..DatasetSpec::default()
        }
    }

    #[test]
    fn words_are_normalised_unless_the_section_says_otherwise() {
        let total = |spec: DatasetSpec| {
            let data = spec.read(Path::new("")).unwrap();
            data.features
                .values()
                .iter()
                .map(|&value| f64::from(value))
                .sum::<f64>()
        };
        // Every paper has a word, so that normalised rows sum to 1 each; there are 49,216 words.
        assert!((total(bundled("cora")) - 2708.0).abs() < 1e-3);
        let kept = DatasetSpec {
            normalise_features: Some(false),
            ..bundled("cora")
        };
        assert!((total(kept) - 49_216.0).abs() < 1e-9);
    }

    #[test]
    fn seeds_share_one_graph() {
        let raw = bundled("cora").read(Path::new("")).unwrap();
        let one = raw.split(&SplitSpec::default(), 1).unwrap();
        let two = raw.split(&SplitSpec::default(), 2).unwrap();
        assert!(Arc::ptr_eq(&one.graph, &two.graph) && Arc::ptr_eq(&one.features, &two.features));
        assert_eq!(one.split, two.split);
    }

    #[test]
    fn only_an_optional_path_where_nothing_is_counts_as_absent() {
        let spec = |path: &str, optional| DatasetSpec {
            path: Some(path.into()),
            optional,
            ..DatasetSpec::default()
        };
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let absent = |spec: DatasetSpec| spec.absent(here);
        assert_eq!(absent(spec("nowhere", true)), Some(here.join("nowhere")));
        assert_eq!(absent(spec("nowhere", false)), None);
        assert_eq!(absent(spec("src", true)), None);
        assert_eq!(absent(bundled("cora")), None);
    }

    #[test]
    fn a_source_that_is_missing_doubled_or_unknown_is_named() {
        let path = Some("nowhere".into());
        for (spec, message) in [
            (DatasetSpec::default(), "dataset: give exactly one of"),
            (
                DatasetSpec {
                    path: path.clone(),
                    ..bundled("cora")
                },
                "dataset: give exactly one of",
            ),
            (
                DatasetSpec {
                    path: path.clone(),
                    ..DatasetSpec::default()
                },
                "dataset.format: is missing",
            ),
            (
                bundled("coral"),
                "dataset.name: there is no bundled data set `coral` (there are: cora, minesweeper)",
            ),
            (
                DatasetSpec {
                    path,
                    format: Some(Format::NpzCsr),
                    ..DatasetSpec::default()
                },
                "cannot read base/nowhere: No such file",
            ),
        ] {
            let error = spec.read(Path::new("base")).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
