use proptest::prelude::*;

use super::*;
use crate::graph::{Csr, DatasetSpec, EdgeCount, RawDataset};

/// Room for so many nodes and hardly anything beside.
fn room(folder: &tempfile::TempDir, nodes: usize) -> Room {
    Room::new(folder.path(), nodes as u64 * Room::OF_A_NODE * 2).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn numbers_come_in_order_and_each_once(
        numbers in prop::collection::vec(0_u64..6000, 0..4000),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let room = room(&folder, 1);
        let (mut sorter, mut counted) = (Sorter::new(&room), Sorter::new(&room));
        for (at, &number) in numbers.iter().enumerate() {
            sorter.push(number).unwrap();
            counted.push(number).unwrap();
            // More come after they were counted.
            if at == numbers.len() / 2 {
                let mut half = numbers[..=at].to_vec();
                half.sort_unstable();
                half.dedup();
                prop_assert_eq!(counted.distinct().unwrap(), half.len() as u64);
            }
        }
        let mut expected = numbers;
        expected.sort_unstable();
        expected.dedup();
        for sorter in [sorter, counted] {
            let found: Vec<u64> = sorter.finish().unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn pairs_on_disk_make_the_graph_and_the_counts_of_pairs_in_memory(
        pairs in prop::collection::vec((0_u32..20, 0_u32..20), 0..2000),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let room = room(&folder, 20);
        let on_disk = || {
            let mut all = Pairs::new(Some(&room));
            for &(from, to) in &pairs {
                all.push(from, to).unwrap();
            }
            all
        };
        prop_assert_eq!(on_disk().len(), pairs.len());
        let expected = EdgeCount::undirected(20, pairs.clone());
        prop_assert_eq!(on_disk().counted(20).unwrap(), expected);
        let expected = Csr::undirected(20, pairs.iter().copied());
        prop_assert_eq!(on_disk().graph(20).unwrap(), expected);
    }
}

#[test]
fn the_largest_node_numbers_keep_their_bits() {
    let folder = tempfile::tempdir().unwrap();
    let room = room(&folder, 1);
    let mut sorter = Sorter::new(&room);
    for number in [u64::MAX, 0, u64::MAX - 1, u64::MAX] {
        sorter.push(number).unwrap();
    }
    let found: Vec<u64> = sorter.finish().unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [0, u64::MAX - 1, u64::MAX]);
}

fn spec(section: &str) -> DatasetSpec {
    toml::from_str(&format!("synthetic = {{ {section} }}")).unwrap()
}

/// Of a generated graph everything, with features as they are used.
fn all_of(
    data: &RawDataset,
) -> (
    &Csr,
    Features,
    &crate::graph::Labels,
    Vec<crate::graph::Split>,
) {
    let features = Features::clone(&data.features).decoded();
    (&data.graph, features, &data.labels, data.splits.clone())
}

#[test]
fn generated_graphs_are_the_same_on_disk_and_by_any_number_of_threads() {
    for section in [
        "kind = 'rmat', scale = 9, edge_factor = 64, classes = 5, features = 3",
        "kind = 'rmat', scale = 9, nodes = 400, edges = 9000, classes = 3, features = 2",
        "kind = 'csbm', nodes = 500, classes = 3, features = 4, degree = 40, homophily = 0.7, feature_signal = 1.0",
        "kind = 'csbm', nodes = 500, degree = 9, homophily = 0.2, feature_signal = 0.5, power_law = 2.5",
        // More nodes than rows of features that share a stream.
        "kind = 'rmat', scale = 15, edge_factor = 2, classes = 4, features = 2",
    ] {
        let spec = spec(section);
        let held = spec.read(Path::new("")).unwrap();
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            let folder = tempfile::tempdir().unwrap();
            let nodes = held.graph.nodes();
            let room = room(&folder, 2 * nodes);
            let found = pool.install(|| spec.read_within(Path::new(""), &room).unwrap());
            assert!(found.features.is_mapped(), "{section}");
            assert_eq!(all_of(&found), all_of(&held), "{section}");
            let left = fs::read_dir(folder.path()).unwrap().count();
            assert_eq!(left, 0, "no file stays that has a name");
        }
    }
}

#[test]
fn what_belief_propagation_finds_is_left_out_where_it_does_not_fit() {
    let spec =
        spec("kind = 'csbm', nodes = 500, degree = 40, homophily = 0.7, feature_signal = 1.0");
    let folder = tempfile::tempdir().unwrap();
    let note = |room: &Room| {
        spec.read_within(Path::new(""), room)
            .unwrap()
            .reading
            .notes
            .join("; ")
    };
    let held = spec.read(Path::new("")).unwrap().reading.notes.join("; ");
    // 20,000 stored edges of two classes: 8 bytes for each class, and 8.
    assert_eq!(note(&Room::new(folder.path(), 4 << 20).unwrap()), held);
    assert!(note(&room(&folder, 500)).contains("would need more memory than it is given"));
}

#[test]
fn too_little_for_the_nodes_is_said_with_what_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let spec = spec("kind = 'rmat', scale = 9, classes = 5, features = 3");
    let little = Room::new(folder.path(), 64 << 10).unwrap();
    let said = spec
        .read_within(Path::new(""), &little)
        .unwrap_err()
        .to_string();
    // 512 nodes of 64 bytes and their names of 4, twice.
    assert!(
        said.starts_with("--memory: 65536 bytes are too few: of 512 nodes 69632 are needed"),
        "{said}"
    );
    let ordered = DatasetSpec {
        order: crate::graph::NodeOrder::Degree,
        ..spec
    };
    let said = ordered
        .read_within(Path::new(""), &little)
        .unwrap_err()
        .to_string();
    assert!(
        said.starts_with("dataset.order: needs the whole graph in memory"),
        "{said}"
    );
}

#[test]
fn a_folder_that_is_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "").unwrap();
    let said = Room::new(&file.join("b"), 1 << 20).unwrap_err().to_string();
    assert!(said.starts_with("cannot write "), "{said}");
}
