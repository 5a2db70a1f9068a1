use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::array::FileSum;
use super::*;
use crate::graph::{
    BoundaryPlan, DatasetSpec, Known, Partition, PartitionMethod, PartitionSpec, RawDataset, Room,
};

/// Data that a test writes, and what they were divided into.
struct Cut {
    dataset: Dataset,
    partition: Partition,
    boundary: BoundaryPlan,
    spec: DatasetSpec,
}

impl Cut {
    fn new(dataset: Dataset, partition: Partition) -> Self {
        let boundary = BoundaryPlan::new(&dataset.graph, &partition);
        Self {
            boundary: boundary.with_training(&dataset.split.train),
            dataset,
            partition,
            spec: DatasetSpec::default(),
        }
    }

    fn of(section: &str, workers: usize) -> Self {
        Self::by(section, PartitionMethod::Random, workers, None)
    }

    fn by(section: &str, method: PartitionMethod, workers: usize, room: Option<&Room>) -> Self {
        let spec: DatasetSpec = toml::from_str(section).unwrap();
        let here = Path::new("");
        let raw = room.map_or_else(|| spec.read(here), |room| spec.read_within(here, room));
        let raw = raw.unwrap();
        let dataset = raw.split(&spec.split, 3).unwrap();
        let dataset = dataset.measured_by(raw.metric).unwrap();
        let partition = PartitionSpec {
            method,
            workers,
            ..PartitionSpec::default()
        };
        let partition = partition.partition(&dataset.graph, Known::default(), Path::new(""), 5);
        Self {
            spec,
            ..Self::new(dataset, partition.unwrap())
        }
    }

    fn write(&self, folder: &Path) -> Result<u64, GraphError> {
        let sharding = Sharding {
            dataset: &self.dataset,
            spec: &self.spec,
            partition: &self.partition,
            boundary: &self.boundary,
            divided: Divided {
                objective: None,
                method: PartitionMethod::Random,
                seed: 5,
                concentration: None,
            },
        };
        sharding.write(folder)
    }

    /// What is read is what was cut, part by part and put together.
    fn comes_back(&self, folder: &Path) {
        let shards = Shards::open(folder).unwrap();
        assert_eq!(
            shards.counts(),
            BoundaryCounts::new(&self.boundary, &self.dataset.features)
        );
        assert_eq!(shards.boundary().unwrap(), self.boundary);
        for (rank, part) in self.boundary.parts.iter().enumerate() {
            let cut = PartData::cut(&self.dataset, part);
            let read = shards.part(rank).unwrap();
            assert_eq!(read.features.is_dense(), cut.features.is_dense());
            let plain = |data: PartData| PartData {
                features: data.features.decoded(),
                ..data
            };
            assert_eq!(plain(read), plain(cut), "part {rank}");
        }
        let whole = shards.whole().unwrap();
        assert_eq!(*whole.partition, self.partition);
        assert_eq!(*whole.boundary, self.boundary);
        assert_eq!(whole.dataset.fingerprint(), self.dataset.fingerprint());
        assert_eq!(whole.dataset.features, self.dataset.features);
        assert_eq!(whole.dataset.metric, self.dataset.metric);
        assert_eq!(whole.dataset.summary(), self.dataset.summary());
        assert_eq!(shards.outline().task(), self.dataset.task());
        let structure = shards.structure().unwrap();
        assert_eq!(*structure.partition, self.partition);
        assert_eq!(*structure.boundary, self.boundary);
        assert_eq!(structure.dataset.graph, self.dataset.graph);
        assert_eq!(structure.dataset.split.train, self.dataset.split.train);
        for node in (0_u32..).take(self.dataset.graph.nodes()) {
            let stored = structure.dataset.features.stored_of(node);
            assert_eq!(stored, self.dataset.features.stored_of(node));
        }
    }
}

const SBM: &str = "synthetic = { kind = 'sbm', nodes = 90, classes = 3, features = 5, degree_within = 3.0, degree_between = 2.0 }";

/// A node has several labels.
const SEVERAL: &str = "synthetic = { kind = 'sbm', nodes = 60, classes = 3, features = 5, degree_within = 3.0, degree_between = 2.0, labels = 4 }\nsplit = { train = 0.5, val = 0.2 }";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn what_is_written_is_what_is_read(
        edges in prop::collection::vec((0_u32..20, 0_u32..20), 0..60),
        assignment in prop::collection::vec(0_u32..3, 20),
        classes in prop::collection::vec(prop::option::of(0_u32..4), 20),
        values in prop::collection::vec(-1e3_f32..1e3, 40),
        sets in prop::collection::vec(0_u8..4, 20),
    ) {
        let of = |set: u8| {
            let nodes = (0_u32..).zip(&sets).filter(|&(_, &it)| it == set);
            nodes.map(|(node, _)| node).collect()
        };
        let split = Split::new(of(0), of(1), of(2));
        let graph = Csr::undirected(20, edges.into_iter());
        let dense = Features::Dense { width: 2, values };
        let sparse = Features::from_rows(7, (0_u32..20).map(|row| match row % 3 {
            0 => vec![],
            one => vec![(row % 7, 0.5), ((row + one) % 7, -1.0)],
        }));
        let half = dense.clone().halved().unwrap();
        for features in [dense, sparse, half] {
            let raw = RawDataset::new(
                "toy".to_owned(), graph.clone(), features, classes.clone(), 4, vec![split.clone()],
            );
            let dataset = raw.split(&crate::graph::SplitSpec::default(), 0).unwrap();
            let partition = Partition { parts: 3, assignment: assignment.clone() };
            let divided = Cut::new(dataset, partition);
            let folder = tempfile::tempdir().unwrap();
            let into = folder.path().join("shards");
            divided.write(&into).unwrap();
            divided.comes_back(&into);
        }
    }
}

#[test]
fn graphs_of_all_kinds_come_back() {
    for section in [
        "name = 'cora'",
        "name = 'minesweeper'",
        SBM,
        SEVERAL,
        "synthetic = { kind = 'rmat', scale = 7, edge_factor = 4, classes = 3, features = 4 }\nfeature_storage = 'f16'",
    ] {
        let divided = Cut::of(section, 4);
        let folder = tempfile::tempdir().unwrap();
        divided.write(folder.path()).unwrap();
        divided.comes_back(folder.path());
    }
}

/// Every file below a folder with its content.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    all
}

#[test]
fn shards_of_a_graph_on_disk_are_the_same_to_the_byte() {
    let source = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = source.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let pairs: Vec<(u32, u32)> = (0..3000)
        .map(|at| (at * 7919 % 211, at * 104_729 % 199))
        .collect();
    let lines = |between: &str| -> String {
        let line = |(a, b): &(u32, u32)| format!("{a}{between}{b}\n");
        pairs.iter().map(line).collect()
    };
    let nodes = |line: &dyn Fn(u32) -> String| (0..211).map(line).collect::<String>();
    write("list/pairs.txt", &lines("\t"));
    write("csv/toy_edges.csv", &lines(","));
    write(
        "csv/toy_target.csv",
        &nodes(&|node| format!("{node},{}\n", node % 3)),
    );
    write("ogb/raw/num-node-list.csv", "211\n");
    write("ogb/raw/edge.csv", &lines(","));
    write(
        "ogb/raw/node-feat.csv",
        &nodes(&|node| format!("{node},0.5\n")),
    );
    write(
        "ogb/raw/node-label.csv",
        &nodes(&|node| format!("{}\n", node % 4)),
    );
    let of = |name: &str, format: &str, rest: &str| {
        let path = source.path().join(name);
        format!("path = '{}'\nformat = '{format}'\n{rest}", path.display())
    };
    let shares = "split = { train = 0.5, val = 0.2 }";
    let tiny = 64 << 10;
    for (section, bytes) in [
        ("synthetic = { kind = 'rmat', scale = 8, edge_factor = 40, classes = 3, features = 4 }".to_owned(), tiny),
        ("synthetic = { kind = 'rmat', scale = 8, edges = 2500, classes = 3, features = 4 }\nfeature_storage = 'f16'".to_owned(), tiny),
        // Belief propagation is in a note of the summary, and needs room.
        ("synthetic = { kind = 'csbm', nodes = 300, degree = 30, homophily = 0.8, feature_signal = 1.0 }".to_owned(), 1 << 20),
        (SBM.to_owned(), tiny),
        ("name = 'cora'".to_owned(), 1 << 20),
        (of("list", "edge-list", ""), tiny),
        (of("csv", "csv", shares), tiny),
        (of("ogb", "ogb", shares), tiny),
    ] {
        for (method, workers) in [
            (PartitionMethod::Random, 3),
            (PartitionMethod::Ldg, 2),
            (PartitionMethod::Fennel, 4),
            (PartitionMethod::Metis, 3),
        ] {
            let (held, on_disk) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            Cut::by(&section, method, workers, None).write(held.path()).unwrap();
            let room = Room::new(on_disk.path(), bytes).unwrap();
            Cut::by(&section, method, workers, Some(&room)).write(on_disk.path()).unwrap();
            let inside = |folder: &Path| -> Vec<(PathBuf, Vec<u8>)> {
                let named = |(path, content): (PathBuf, Vec<u8>)| {
                    (path.strip_prefix(folder).unwrap().to_owned(), content)
                };
                files(folder).into_iter().map(named).collect()
            };
            let (held, on_disk) = (inside(held.path()), inside(on_disk.path()));
            assert!(held.len() > 13 * workers);
            assert!(held == on_disk, "{section} by {method:?}");
        }
    }
}

#[test]
fn a_generated_graph_is_the_same_in_any_number_of_parts_by_any_number_of_threads() {
    for section in [
        "synthetic = { kind = 'rmat', scale = 9, edge_factor = 20, classes = 3, features = 4 }",
        "synthetic = { kind = 'csbm', nodes = 500, degree = 20, homophily = 0.3, feature_signal = 1.0, power_law = 2.5 }",
    ] {
        let held = Cut::of(section, 1).dataset;
        for (workers, threads) in [(1, 3), (2, 1), (5, 2)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let folder = tempfile::tempdir().unwrap();
            pool.unwrap().install(|| {
                let room = Room::new(folder.path(), 160 << 10).unwrap();
                let cut = Cut::by(section, PartitionMethod::Ldg, workers, Some(&room));
                cut.write(folder.path()).unwrap();
            });
            let whole = Shards::open(folder.path()).unwrap().whole().unwrap();
            assert_eq!(whole.boundary.workers(), workers);
            assert_eq!(whole.dataset.fingerprint(), held.fingerprint());
            assert_eq!(whole.dataset.features, held.features);
        }
    }
}

/// Overwrites the end of a file, and gives it the hash of that.
fn forge(folder: &Path, name: &str, end: &[u8]) {
    let (path, meta) = (folder.join(name), folder.join("meta.json"));
    let mut content = fs::read(&path).unwrap();
    let from = content.len() - end.len();
    content[from..].copy_from_slice(end);
    let before = FileSum::of(&path).unwrap();
    fs::write(&path, content).unwrap();
    let after = FileSum::of(&path).unwrap();
    let text = fs::read_to_string(&meta).unwrap();
    fs::write(&meta, text.replace(&before.sha256, &after.sha256)).unwrap();
}

fn said<T>(result: Result<T, GraphError>) -> String {
    result.err().expect("it is refused").to_string()
}

#[test]
fn a_second_call_goes_on_where_the_first_was_stopped() {
    let divided = Cut::of(SBM, 3);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bytes = divided.write(folder).unwrap();
    let meta = fs::read(folder.join("meta.json")).unwrap();
    // As if it had been stopped before the last part.
    let begun = format!(
        "{{\"content\": \"{}\"}}",
        Shards::open(folder).unwrap().meta().content
    );
    fs::remove_file(folder.join("meta.json")).unwrap();
    fs::write(folder.join("begun.json"), begun).unwrap();
    fs::remove_dir_all(folder.join("part-2")).unwrap();
    fs::remove_file(folder.join("part-1/test.npy")).unwrap();
    fs::write(folder.join("part-1/train.npy"), "cut short").unwrap();
    let kept = folder.join("part-0/features.npy");
    let written = || fs::metadata(&kept).unwrap().modified().unwrap();
    let before = written();
    let unfinished = said(Shards::open(folder));
    assert!(unfinished.contains("has no meta.json"), "{unfinished}");
    assert_eq!(divided.write(folder).unwrap(), bytes);
    assert_eq!(fs::read(folder.join("meta.json")).unwrap(), meta);
    assert_eq!(written(), before, "what is whole is not written again");
    divided.comes_back(folder);
    // Other parts of the same graph do not go into the same folder, nor into one of another's.
    let other = Cut::of(SBM, 2);
    let refused = said(other.write(folder));
    assert!(refused.contains("has shards of other data"), "{refused}");
    let full = tempfile::tempdir().unwrap();
    fs::write(full.path().join("notes.txt"), "mine").unwrap();
    let refused = said(other.write(full.path()));
    assert!(
        refused.contains("has files that are no shards"),
        "{refused}"
    );
}

#[test]
fn every_fault_is_a_sentence_that_names_the_file() {
    let divided = Cut::of(SBM, 3);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    divided.write(folder).unwrap();
    let missing = said(Shards::open(&folder.join("absent")));
    assert!(missing.starts_with("cannot read "), "{missing}");
    // Each file of a part, altered in a byte, cut short and away.
    let files = fs::read_dir(folder.join("part-1")).unwrap();
    let files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 14);
    for path in files {
        let whole = fs::read(&path).unwrap();
        let mut altered = whole.clone();
        *altered.last_mut().unwrap() ^= 1;
        for content in [Some(&altered[..]), Some(&whole[..whole.len() - 1]), None] {
            match content {
                Some(content) => fs::write(&path, content).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let shards = Shards::open(folder).unwrap();
            assert!(shards.part(0).is_ok(), "the other parts are whole");
            for wrong in [
                said(shards.part(1)),
                said(shards.check(1)),
                said(shards.whole()),
            ] {
                assert!(wrong.contains(&path.display().to_string()), "{wrong}");
                let expected = content.map_or("cannot read", |_| "is damaged: its hash");
                assert!(wrong.contains(expected), "{wrong}");
            }
        }
        fs::write(&path, &whole).unwrap();
    }
    let meta = folder.join("meta.json");
    let text = fs::read_to_string(&meta).unwrap();
    for (from, to, expected) in [
        (
            "\"format\": 2",
            "\"format\": 1",
            "have version 1 of the format",
        ),
        ("\"format\": 2,", "", "does not say its `format`"),
        ("{", "", "is not whole"),
        (
            "\"owned\"",
            "\"own\"",
            "is not as it was written: missing field `owned`",
        ),
        (
            "\"nodes\": 90",
            "\"nodes\": 91",
            "owned nodes of its parts are not 91",
        ),
    ] {
        fs::write(&meta, text.replacen(from, to, 1)).unwrap();
        let wrong = said(Shards::open(folder));
        assert!(wrong.contains(expected), "{wrong}");
    }
    // Numbers that belong to nothing are found, also where the hashes are right.
    fs::write(&meta, &text).unwrap();
    forge(folder, "part-1/train.npy", &90_u32.to_le_bytes());
    let wrong = said(Shards::open(folder).unwrap().part(1));
    assert!(
        wrong.contains("train.npy: has a number that is not below 30"),
        "{wrong}"
    );
}

#[test]
fn labels_that_a_node_neither_has_nor_has_not_are_refused() {
    let divided = Cut::of(SEVERAL, 2);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    divided.write(folder).unwrap();
    assert!(Shards::open(folder).unwrap().part(1).is_ok());
    // Of no meaning; or not known, where the other labels of the node are.
    for last in [5_i8, -1] {
        forge(folder, "part-1/labels.npy", &last.to_le_bytes());
        let wrong = said(Shards::open(folder).unwrap().part(1));
        let expected = "labels.npy: has labels of row 29 that are not 0 and 1, or all -1";
        assert!(wrong.contains(expected), "{wrong}");
    }
}
