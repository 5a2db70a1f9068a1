//! Every reader on files that were valid and are not any more: no panic, no hang, and memory of at
//! most 16 times the files and 64 MB.
//!
//! A valid file is changed in a few places (`mutate`), within what is packed or as packed, and read
//! again: whatever comes out, a value or an error, is fine. Each execution follows from its target
//! and number alone. The test below does a few of each; with `GRAPEVINE_FUZZ=n` it does n of each
//! target, from number `GRAPEVINE_FUZZ_FROM` on, which is what `scripts/fuzz` is for.

mod heap;
mod mutate;
mod samples;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::archive::{Address, Archive};
use super::config::{PAPER, Vocabulary};
use super::{Experiment, FlowFile, Tables, read_manifest};
use crate::graph::{
    Csr, DatasetSpec, FeatureSource, FeatureStorage, Format, Known, LabelColumns, PartitionMethod,
    PartitionSpec,
};
use crate::strategies::Registry;
use mutate::mutate;
use samples::{Packing, Sample};

/// Executions of each target in the test suite.
const FEW: u64 = 250;

/// What was found, by target and number, so that it is tried again: a library that panicked on the
/// description of a Parquet file, and one that made room for an `npy` header as long as that says
/// it is.
const FINDS: [(&str, u64); 2] = [
    ("result folder: parquet, json", 82),
    ("npz-csr: zip, npy", 1499),
];

/// Longest time of an execution on this thread's processor.
const LONGEST: Duration = Duration::from_secs(10);

/// A reader with a valid input.
struct Target {
    name: &'static str,
    files: Vec<Sample>,
    /// Reads the folder; whether it was accepted.
    read: fn(&Path) -> bool,
    /// How many times fewer executions it gets than the others, for it is so much slower.
    slower: u64,
}

fn data(format: Format, folder: &Path) -> bool {
    let spec = DatasetSpec {
        path: Some(folder.to_owned()),
        format: Some(format),
        ..DatasetSpec::default()
    };
    spec.read(Path::new("")).is_ok()
}

fn experiment(path: &Path) -> bool {
    let registry = Registry::builtin();
    let vocabulary = Vocabulary {
        registry: &registry,
        figures: &[
            "accuracy-vs-bytes",
            "accuracy-vs-time",
            "bytes-by-kind",
            "pareto",
            "time-breakdown",
            "accuracy-vs-epoch",
            "compression",
        ],
    };
    Experiment::read(path, PAPER, &[], &vocabulary).is_ok()
}

fn target(name: &'static str, files: Vec<Sample>, read: fn(&Path) -> bool) -> Target {
    Target {
        name,
        files,
        read,
        slower: 1,
    }
}

/// What takes its time gets fewer executions.
fn slower(slower: u64, target: Target) -> Target {
    Target { slower, ..target }
}

fn targets() -> Vec<Target> {
    let mut all = of_text_and_results();
    all.extend(of_arrays_and_tables());
    all
}

/// Layouts of published graphs, as other libraries write them, and tables.
fn of_arrays_and_tables() -> Vec<Target> {
    vec![
        target("csv: columns by name", samples::csv(), |at| {
            let columns = vec!["age".to_owned()];
            let spec = DatasetSpec {
                path: Some(at.to_owned()),
                format: Some(Format::Csv),
                id: Some("id".to_owned()),
                label: Some(LabelColumns::One("name".to_owned())),
                source: Some("b".to_owned()),
                target: Some("a".to_owned()),
                features: Some(FeatureSource::Columns(columns)),
                ..DatasetSpec::default()
            };
            spec.read(Path::new("")).is_ok()
        }),
        target("dgl-reddit: zip, npy", samples::layout("reddit"), |at| {
            data(Format::DglReddit, at)
        }),
        target(
            "graphsaint: zip, npy, json",
            samples::layout("graphsaint"),
            |at| data(Format::GraphSaint, at),
        ),
        target(
            "graphsaint: lists of labels",
            samples::layout("graphsaint-several"),
            |at| data(Format::GraphSaint, at),
        ),
        target("graphsaint: mapped", samples::layout("graphsaint"), |at| {
            let spec = DatasetSpec {
                path: Some(at.to_owned()),
                format: Some(Format::GraphSaint),
                feature_storage: FeatureStorage::Mapped,
                ..DatasetSpec::default()
            };
            // The rows as well, which are decoded where they are gathered.
            let data = spec.read(Path::new(""));
            data.is_ok_and(|data| data.features.filled() > 0)
        }),
        target("ppi: npy, json", samples::layout("ppi"), |at| {
            data(Format::Ppi, at)
        }),
        target(
            "ogb: labels and features of edges",
            samples::layout("ogb-several"),
            |at| data(Format::Ogb, at),
        ),
        target("igb: npy", samples::layout("igb"), |at| {
            data(Format::Igb, at)
        }),
        target("ogb: npz", samples::layout("ogb"), |at| {
            data(Format::Ogb, at)
        }),
        target("wiki-cs: json", samples::wiki_cs(), |at| {
            data(Format::WikiCs, at)
        }),
        target("matrix-market", samples::matrix_market(), |at| {
            data(Format::MatrixMarket, at)
        }),
        slower(
            10,
            target("parquet", samples::parquet(), |at| {
                data(Format::Parquet, at)
            }),
        ),
    ]
}

fn of_text_and_results() -> Vec<Target> {
    vec![
        target("planetoid: pickle", samples::planetoid(), |at| {
            data(Format::Planetoid, at)
        }),
        target("npz-csr: zip, npy", samples::npz_csr(), |at| {
            data(Format::NpzCsr, at)
        }),
        target("npz-edges: zip, npy", samples::npz_edges(), |at| {
            data(Format::NpzEdges, at)
        }),
        target("csv", samples::csv(), |at| {
            let spec = DatasetSpec {
                path: Some(at.to_owned()),
                format: Some(Format::Csv),
                features: Some(FeatureSource::File("x.csv".into())),
                ..DatasetSpec::default()
            };
            spec.read(Path::new("")).is_ok()
        }),
        target("csv-json", samples::csv_json(), |at| {
            data(Format::CsvJson, at)
        }),
        target("edge-list", samples::edge_list(false), |at| {
            data(Format::EdgeList, at)
        }),
        target("edge-list.gz", samples::edge_list(true), |at| {
            data(Format::EdgeList, at)
        }),
        target("metis", samples::metis(), |at| data(Format::Metis, at)),
        target("linqs", samples::linqs(), |at| data(Format::Linqs, at)),
        target("ogb: csv, gz", samples::ogb(), |at| data(Format::Ogb, at)),
        target("given", samples::given(), |at| given(at, "parts.txt")),
        target("given: npy", samples::given_array(), |at| {
            given(at, "node_map.npy")
        }),
        target("given: json", samples::given_ranges(), |at| {
            given(at, "parts.json")
        }),
        slower(
            10,
            target("experiment: toml", samples::experiment(), |at| {
                experiment(&at.join("x.toml"))
            }),
        ),
        slower(
            10,
            target("flows: toml", samples::flows(), |at| {
                FlowFile::read(&at.join("x.toml"), &[]).is_ok()
            }),
        ),
        slower(
            10,
            target(
                "result folder: parquet, json",
                samples::result_folder(),
                |at| {
                    let manifest =
                        read_manifest(at).is_ok_and(|manifest| super::judged_by(&manifest).is_ok());
                    Tables::read(at).is_ok() && manifest
                },
            ),
        ),
        target("runs.csv", samples::reference(), |at| {
            Tables::read_runs(at).is_ok()
        }),
        target("finished: gz, cbor", samples::finished(), |at| {
            Archive::of(at)
                .get(&Address::of_text("0123"), "full", 7)
                .is_some()
        }),
    ]
}

/// Whether a partition of a path of eight nodes is read from a file.
fn given(at: &Path, file: &str) -> bool {
    let spec = PartitionSpec {
        method: PartitionMethod::Given,
        workers: 2,
        file: Some(file.into()),
        ..PartitionSpec::default()
    };
    let graph = Csr::undirected(8, (0..7).map(|v| (v, v + 1)));
    spec.partition(&graph, Known::default(), at, 0).is_ok()
}

/// What came of the executions of a target.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    executions: u64,
    accepted: u64,
    /// The most memory, in bytes.
    peak: usize,
}

/// The file of this execution that is changed, and what becomes of it.
fn changed(target: &Target, execution: u64) -> (usize, Vec<u8>) {
    let mut random = ChaCha8Rng::seed_from_u64(execution);
    let which = random.random_range(0..target.files.len());
    let file = &target.files[which];
    // Packed bytes rarely survive their checksums, so that what is in them is changed more often.
    if file.packing == Packing::Plain || random.random_bool(0.3) {
        let mut bytes = file.packed();
        mutate(&mut bytes, &mut random);
        return (which, bytes);
    }
    let bytes = if let Packing::Zip(members) = &file.packing {
        let mut members = members.clone();
        let member = random.random_range(0..members.len());
        mutate(&mut members[member].1, &mut random);
        samples::zip(&members)
    } else {
        let mut content = file.content.clone();
        mutate(&mut content, &mut random);
        samples::gzip(&content)
    };
    (which, bytes)
}

/// Does the executions with these numbers.
fn run(
    target: &Target,
    executions: std::ops::Range<u64>,
    begun: &AtomicU64,
    start: Instant,
) -> Tally {
    // In memory, where there is such a place.
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() {
        tempfile::tempdir_in(shared)
    } else {
        tempfile::tempdir()
    }
    .unwrap();
    let write = |file: &Sample, bytes: &[u8]| {
        let path = folder.path().join(&file.name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let sizes: usize = target.files.iter().map(|file| file.packed().len()).sum();
    for file in &target.files {
        write(file, &file.packed());
    }
    assert!(
        (target.read)(folder.path()),
        "{}: what is valid is refused",
        target.name
    );
    let mut tally = Tally::default();
    for execution in executions {
        let (which, bytes) = changed(target, execution);
        let file = &target.files[which];
        write(file, &bytes);
        begun.store(start.elapsed().as_millis() as u64, Ordering::Relaxed);
        let read = || catch_unwind(AssertUnwindSafe(|| (target.read)(folder.path())));
        let (outcome, peak) = heap::peak_of(target.name, execution, read);
        begun.store(u64::MAX, Ordering::Relaxed);
        let Ok(accepted) = outcome else {
            panic!("{}, execution {execution}: a panic", target.name);
        };
        let most = 16 * (sizes + bytes.len()) + (64 << 20);
        assert!(
            peak <= most,
            "{}, execution {execution}: {peak} bytes of memory",
            target.name
        );
        tally.executions += 1;
        tally.accepted += u64::from(accepted);
        tally.peak = tally.peak.max(peak);
        // Valid again, for the next execution may change another file.
        write(file, &file.packed());
    }
    tally
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn no_reader_panics_hangs_or_takes_too_much_memory() {
    let each = number("GRAPEVINE_FUZZ");
    let from = number("GRAPEVINE_FUZZ_FROM").unwrap_or(0);
    let only = std::env::var("GRAPEVINE_FUZZ_ONLY").unwrap_or_default();
    let (begun, start) = (AtomicU64::new(u64::MAX), Instant::now());
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        // An execution that does not come back cannot be stopped, but told.
        scope.spawn(|| {
            while done.load(Ordering::Relaxed) == 0 {
                std::thread::sleep(Duration::from_millis(20));
                let since = begun.load(Ordering::Relaxed);
                let now = start.elapsed().as_millis() as u64;
                // Several times as long: this is time on the wall, and others may use the
                // processor.
                if since != u64::MAX && now.saturating_sub(since) > 6 * LONGEST.as_millis() as u64 {
                    eprintln!("an execution has not ended after {:?}", 6 * LONGEST);
                    std::process::abort();
                }
            }
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            for target in targets()
                .iter()
                .filter(|target| target.name.starts_with(&only))
            {
                let executions =
                    each.unwrap_or(FEW) / if each.is_some() { target.slower } else { 1 };
                for (_, find) in FINDS.iter().filter(|(name, _)| *name == target.name) {
                    run(target, *find..*find + 1, &begun, start);
                }
                let time = Instant::now();
                let tally = run(target, from..from + executions, &begun, start);
                println!(
                    "{:30} {:>9} executions, {:>8} accepted, {:>6} kB at most, {:>6.1} s",
                    target.name,
                    tally.executions,
                    tally.accepted,
                    tally.peak / 1000,
                    time.elapsed().as_secs_f64()
                );
                // Changes that are always or never refused test little.
                let refused = tally.executions - tally.accepted;
                assert!(
                    executions < FEW || (refused > 0),
                    "{}: nothing was refused",
                    target.name
                );
            }
        }));
        done.store(1, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}
