//! Where a data set comes from: the program, files, or a generator.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::larger::Room;
use super::{
    Dataset, DatasetSpec, FeatureStorage, Features, GraphError, NodeOrder, PublishedSet,
    RawDataset, Reading, Shards, SplitSpec,
};
use super::{bundled, catalogue, loaders, synthetic};
use crate::memory;

impl DatasetSpec {
    /// The path that is not there, if the section allows that: with `optional`, nothing at `path`,
    /// or no folder of a published graph. Files that are there and broken are errors all the same.
    pub(crate) fn absent(&self, base: &Path) -> Option<PathBuf> {
        if !self.optional {
            return None;
        }
        let path = match (
            &self.path,
            self.name.as_deref().map(catalogue::published_set),
        ) {
            (Some(path), _) => base.join(path),
            (None, Some(Some(set))) => set.folder().ok()?,
            _ => return None,
        };
        (!path.exists()).then_some(path)
    }

    /// Whether the data set is a published one, which has to be fetched.
    pub(crate) fn fetched(&self) -> bool {
        let name = self.name.as_deref();
        name.is_some_and(|name| catalogue::published_set(name).is_some())
    }

    /// Reads or generates the data set, with features normalised as the section says. Relative
    /// paths start at `base`, the folder of the experiment file.
    ///
    /// # Errors
    /// If the section does not name exactly one source, or the source cannot be read.
    pub fn read(&self, base: &Path) -> Result<RawDataset, GraphError> {
        self.read_by(base, true, None)
    }

    /// The same for a graph that is larger than memory: edges, and features that are generated, are
    /// on disk. Features of files stay there with `feature_storage = "mapped"`.
    ///
    /// # Errors
    /// Those of [`DatasetSpec::read`], and if there is no room for it.
    pub(crate) fn read_within(&self, base: &Path, room: &Room) -> Result<RawDataset, GraphError> {
        if self.order != NodeOrder::Given {
            let what =
                "needs the whole graph in memory: leave it out with --memory, or leave that out";
            return Err(GraphError::key("dataset.order", what));
        }
        self.read_by(base, true, Some(room))
    }

    /// The same for plans alone, which read the graph and no value of a feature: generated features
    /// are not drawn, unless the split or the order of nodes depends on them.
    ///
    /// # Errors
    /// Those of [`DatasetSpec::read`].
    pub(crate) fn read_outline(&self, base: &Path) -> Result<RawDataset, GraphError> {
        // A split by classes needs these, and another order has to move rows of features.
        let plain = !matches!(self.split, SplitSpec::PerClass(_)) && self.order == NodeOrder::Given;
        self.read_by(base, !plain, None)
    }

    /// With `values` as [`synthetic::generate`] takes it.
    fn read_by(
        &self,
        base: &Path,
        values: bool,
        room: Option<&Room>,
    ) -> Result<RawDataset, GraphError> {
        if self.counts.is_some() {
            let what = "is a graph in numbers alone, which `grapevine project` and `grapevine advise` take; anything \
            else needs the graph itself: `name`, `path` or `synthetic`";
            return Err(GraphError::key("dataset.counts", what));
        }
        if let (Some(folder), None, None, None) =
            (&self.shards, &self.name, &self.path, &self.synthetic)
        {
            return Ok(Shards::open(&base.join(folder))?.whole()?.raw());
        }
        let mut data = match (&self.name, &self.path, &self.synthetic) {
            (Some(name), None, None) => named(name, self.feature_storage, room)?,
            (None, Some(path), None) => self.files(&base.join(path), room)?,
            (None, None, Some(spec)) => synthetic::generate(spec, values, room)?,
            _ => {
                let what = "give exactly one of `name` (a bundled or fetched data set), `path` with \
                `format`, `synthetic`, or `shards`";
                return Err(GraphError::key("dataset", what));
            }
        };
        if self
            .normalise_features
            .unwrap_or_else(|| data.features.is_bag_of_words())
        {
            if data.features.is_mapped() && self.feature_storage == FeatureStorage::Mapped {
                let what = "cannot be true with `feature_storage = \"mapped\"`: features stay in the file as \
                they are; leave one of the two out";
                return Err(GraphError::key("dataset.normalise_features", what));
            }
            // Before `expanded`, after which no bag of words can be told by its sparse form.
            Arc::make_mut(&mut data.features).row_normalise();
        }
        // Loaders have looked at what files hold; what is generated or divided can still be
        // infinite. Of what still lies in a file neither is true.
        let drawn = !data.features.is_mapped();
        if let Some((row, column, value)) =
            drawn.then(|| data.features.first_not_finite()).flatten()
        {
            let what = format!(
                "feature {column} of node {row} of \"{}\" (both from 0) is {value}, not a finite number, \
                 as it is generated or normalised; change `normalise_features`, or what is generated",
                data.name
            );
            return Err(GraphError::key("dataset.normalise_features", what));
        }
        let features = Arc::unwrap_or_clone(data.features);
        data.features = Arc::new(features.expanded());
        self.store(&mut data)?;
        Ok(data.reordered(self.order))
    }

    /// Holds features as the section says.
    fn store(&self, data: &mut RawDataset) -> Result<(), GraphError> {
        const KEY: &str = "dataset.feature_storage";
        match self.feature_storage {
            FeatureStorage::F32 => Ok(()),
            FeatureStorage::Mapped if data.features.is_mapped() => Ok(()),
            FeatureStorage::Mapped => {
                let what = format!(
                    "\"mapped\" needs dense features in a NumPy file, as the formats graphsaint, igb, dgl-reddit, \
                     npz-edges and ogb (binary) have them; those of \"{}\" are not; leave it out, or write \"f16\"",
                    data.name
                );
                Err(GraphError::key(KEY, what))
            }
            FeatureStorage::F16 if !data.features.is_dense() => {
                let note = "features are stored sparse, in single precision: feature_storage = \"f16\" is for dense ones";
                let reading = Reading::clone(&data.reading).with_note(note);
                data.reading = Arc::new(reading);
                Ok(())
            }
            FeatureStorage::F16 => {
                let half = memory::bytes(&[data.features.rows(), data.features.width()], 2);
                memory::need(|| format!("{KEY} of {}", data.name), half)?;
                let features = std::mem::replace(&mut data.features, Arc::new(Features::none(0)));
                let features = Arc::unwrap_or_clone(features);
                let halved = features.halved().map_err(|(row, column)| {
                    let what = format!(
                        "feature {column} of node {row} of \"{}\" (both from 0) is beyond 65504, the largest number \
                         in half precision; leave it out, or divide the features",
                        data.name
                    );
                    GraphError::key(KEY, what)
                })?;
                data.features = Arc::new(halved);
                Ok(())
            }
        }
    }

    /// The files at `path`, as the section says that they are written.
    fn files(&self, path: &Path, room: Option<&Room>) -> Result<RawDataset, GraphError> {
        let format = self.format.ok_or_else(|| {
            let what = "is missing; a `path` needs the format of the files there, for example \
                \"planetoid\"";
            GraphError::key("dataset.format", what)
        })?;
        loaders::read(format, path, self, room)
    }

    /// [`DatasetSpec::read`], then [`RawDataset::split`] with the split of the section.
    ///
    /// # Errors
    /// Those of both.
    pub fn load(&self, base: &Path, seed: u64) -> Result<Dataset, GraphError> {
        self.read(base)?.split(&self.split, seed)
    }
}

/// What is part of the program, or was fetched.
fn named(
    name: &str,
    storage: FeatureStorage,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    match catalogue::published_set(name) {
        Some(set) => read_set(set, &set.folder()?, storage, room),
        None => bundled::bundled(name),
    }
}

/// A published graph whose files are in `folder`.
fn read_set(
    set: &PublishedSet,
    folder: &Path,
    feature_storage: FeatureStorage,
    room: Option<&Room>,
) -> Result<RawDataset, GraphError> {
    let spec = DatasetSpec {
        feature_storage,
        ..set.spec(folder)?
    };
    let data = spec.files(spec.path.as_deref().unwrap_or(folder), room)?;
    // Its files may be called anything: tables have the name that experiments use.
    Ok(RawDataset {
        name: set.name.clone(),
        metric: set.metric,
        ..data
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Format, SplitFractions, SplitSpec};

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
        // Shares are single-precision numbers.
        assert!((total(bundled("cora")) - 2708.0).abs() < 1e-3);
        let kept = DatasetSpec {
            normalise_features: Some(false),
            ..bundled("cora")
        };
        assert!((total(kept) - 49_216.0).abs() < 1e-9);
    }

    #[test]
    fn an_outline_has_the_graph_and_draws_no_features_unless_the_split_asks_for_classes() {
        let data =
            "synthetic = { kind = 'rmat', scale = 8, edge_factor = 4, classes = 3, features = 5 }";
        let spec =
            |split: &str| toml::from_str::<DatasetSpec>(&format!("{data}\n{split}")).unwrap();
        let here = Path::new("");
        let (all, outline) = (
            spec("").read(here).unwrap(),
            spec("").read_outline(here).unwrap(),
        );
        assert_eq!(outline.graph, all.graph);
        assert_eq!(outline.features.width(), 5);
        assert!(outline.features.values().is_empty() && !all.features.values().is_empty());
        let by_class = spec("split = { train_per_class = 2, val_per_class = 2 }");
        assert_eq!(by_class.read_outline(here).unwrap().features, all.features);
    }

    #[test]
    fn a_published_split_that_is_not_used_is_said() {
        let raw = bundled("cora").read(Path::new("")).unwrap();
        let notes = |spec: &SplitSpec| raw.split(spec, 1).unwrap().reading.notes.join("; ");
        assert_eq!(notes(&SplitSpec::default()), "");
        let shares = SplitSpec::Fractions(SplitFractions {
            train: 0.6,
            val: 0.2,
            seed: None,
        });
        assert!(notes(&shares).starts_with("the split that comes with the data is not used"));
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
    fn a_published_graph_is_read_in_its_folder_under_its_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let set = catalogue::published_set("web-google").unwrap();
        std::fs::write(folder.path().join("web-Google.txt"), "# a\n5\t7\n7\t9\n").unwrap();
        let data = read_set(set, folder.path(), FeatureStorage::F32, None).unwrap();
        assert_eq!((data.name.as_str(), data.graph.nodes()), ("web-google", 3));
    }

    #[test]
    fn a_graph_in_numbers_says_which_commands_take_it() {
        let text = "counts = { rmat = { scale = 8, edge_factor = 4 }, features = 16, classes = 4, train = 0.6 }";
        let spec: DatasetSpec = toml::from_str(text).unwrap();
        let error = spec.read(Path::new("")).unwrap_err().to_string();
        let takers = "which `grapevine project` and `grapevine advise` take";
        assert!(error.contains(takers), "{error}");
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
                "dataset.name: there is no data set `coral`: cora and minesweeper are part of the program",
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
