//! An allocator that counts what the thread that fuzzes takes.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
#[cfg(test)]
use std::fs;
#[cfg(test)]
use std::path::Path;

#[cfg(test)]
use crate::graph::{
    BoundaryPlan, DatasetSpec, Divided, FeatureStorage, Format, Partition, PartitionMethod,
    Sharding, Shards,
};

/// One allocation of more than this, for files of a few kilobytes, is refused: the program then
/// ends, after saying in which execution.
const ABSURD: usize = 2 << 30;

thread_local! {
    /// Bytes taken and not given back since the count began; none while nothing is counted.
    static TAKEN: Cell<Option<isize>> = const { Cell::new(None) };
    /// The most of them at once.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// Which execution this is, for last words.
    static AT: Cell<(&'static str, u64)> = const { Cell::new(("", 0)) };
}

struct Counting;

#[global_allocator]
static HEAP: Counting = Counting;

fn count(change: isize) {
    // A thread that is ending has no cells any more, and nothing to count.
    let _ = TAKEN.try_with(|taken| {
        if let Some(before) = taken.get() {
            // Signed, for what was there before the count began may be given back in it.
            let now = before + change;
            taken.set(Some(now));
            let _ = PEAK.try_with(|peak| peak.set(peak.get().max(now)));
        }
    });
}

fn is_absurd(size: usize) -> bool {
    // Counting ends here, for telling allocates as well.
    let absurd = size > ABSURD
        && TAKEN
            .try_with(|taken| taken.replace(None))
            .is_ok_and(|taken| taken.is_some());
    if absurd {
        let (target, seed) = AT.with(Cell::get);
        eprintln!("{target}, execution {seed}: an allocation of {size} bytes");
    }
    absurd
}

// SAFETY: all is left to the system's allocator; a null pointer says that there is no memory, as it
// may.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_absurd(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size() as isize);
        // SAFETY: as promised to this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as promised to this function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_absurd(size) {
            return std::ptr::null_mut();
        }
        // While it is moved there are both.
        count(size as isize);
        // SAFETY: as promised to this function.
        let moved = unsafe { System.realloc(pointer, layout, size) };
        count(-(layout.size() as isize));
        moved
    }
}

/// Bytes that `action` has on this thread's heap at most, beyond what was there.
pub(super) fn peak_of<T>(
    target: &'static str,
    seed: u64,
    action: impl FnOnce() -> T,
) -> (T, usize) {
    AT.set((target, seed));
    PEAK.set(0);
    TAKEN.set(Some(0));
    let result = action();
    TAKEN.set(None);
    (result, PEAK.get().unsigned_abs())
}

#[test]
fn the_most_that_was_there_at_once_is_counted() {
    let ((), peak) = peak_of("", 0, || {
        for _ in 0..3 {
            drop(std::hint::black_box(vec![1_u8; 1 << 20]));
        }
    });
    assert!((1 << 20..1 << 21).contains(&peak), "{peak}");
}

#[test]
fn features_that_stay_in_their_file_are_not_held_and_half_precision_halves_them() {
    const NODES: usize = 20_000;
    const WIDTH: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, kind: &str, shape: &str, raw: &[u8]| {
        let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(raw);
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let floats = |count: usize| -> Vec<u8> {
        let values = (0..count).map(|at| (at % 13 + 1) as f32);
        values.flat_map(f32::to_le_bytes).collect()
    };
    write("paper/node_label_19.npy", "<f4", "20000,", &floats(NODES));
    write(
        "paper/node_feat.npy",
        "<f4",
        "20000, 64",
        &floats(NODES * WIDTH),
    );
    let ends = [0_i64, 1].map(i64::to_le_bytes).concat();
    write("paper__cites__paper/edge_index.npy", "<i8", "1, 2", &ends);
    let held = |feature_storage| {
        let spec = DatasetSpec {
            path: Some(folder.path().to_owned()),
            format: Some(Format::Igb),
            feature_storage,
            ..DatasetSpec::default()
        };
        let read = || spec.read(Path::new("")).unwrap();
        let (data, peak) = peak_of("", 0, || {
            let data = read();
            // A worker's share of them.
            let part: Vec<u32> = (0..NODES as u32).step_by(4).collect();
            let part = data.features.select(&part);
            (data, part)
        });
        assert_eq!(data.1.rows(), NODES / 4);
        peak as f64 / (NODES * WIDTH) as f64
    };
    // Bytes a value; the graph and the labels take half of one.
    let (single, half) = (held(FeatureStorage::F32), held(FeatureStorage::F16));
    let mapped = held(FeatureStorage::Mapped);
    assert!((5.0..7.0).contains(&single), "{single}");
    assert!((2.0..3.2).contains(&half), "{half}");
    assert!(mapped < 1.2, "{mapped}");
}

#[test]
fn a_shard_takes_what_its_edges_take_and_no_features_and_none_of_the_others() {
    let section =
        "synthetic = { kind = 'rmat', scale = 14, edge_factor = 8, classes = 4, features = 64 }";
    let spec: DatasetSpec = toml::from_str(section).unwrap();
    let dataset = spec.load(Path::new(""), 0).unwrap();
    let nodes = dataset.graph.nodes();
    let partition = Partition {
        parts: 4,
        assignment: (0..nodes as u32).map(|node| node % 4).collect(),
    };
    let boundary = BoundaryPlan::new(&dataset.graph, &partition);
    let folder = tempfile::tempdir().unwrap();
    let sharding = Sharding {
        dataset: &dataset,
        spec: &spec,
        partition: &partition,
        boundary: &boundary.with_training(&dataset.split.train),
        divided: Divided {
            method: PartitionMethod::Given,
            seed: 0,
            objective: None,
            concentration: None,
        },
    };
    let (written, peak) = peak_of("", 0, || sharding.write(folder.path()).unwrap());
    // Of dense features that are in memory a part is copied at a time.
    assert!(peak < 2 * written as usize / 3, "{peak} of {written}");
    let (part, peak) = peak_of("", 0, || {
        let shards = Shards::open(folder.path()).unwrap();
        shards.check(1).unwrap();
        shards.part(1).unwrap()
    });
    let values = 4 * part.features.rows() * part.features.width();
    let files = fs::read_dir(folder.path().join("part-1")).unwrap();
    let all: u64 = files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let rest = all as usize - values;
    assert!(part.features.is_mapped());
    // Places and degrees are twice as wide in memory as in files, and sends are there twice.
    assert!(
        peak < 2 * rest && peak < values,
        "{peak}, {rest} and {values}"
    );
}
