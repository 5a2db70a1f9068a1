//! Arrays of published graphs that are not read but stay in their file: features on request, and
//! lists of edges that are gone through twice.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use zip::{CompressionMethod, ZipArchive};

use super::arrays::{self, Ends};
use super::element::Element;
use super::ids::signed_in_range;
use super::npy::{self, Npz};
use super::npy_header::Header;
use super::{EdgeCount, finite};
use crate::graph::coded::CodedRows;
use crate::graph::larger::{Pairs, Room};
use crate::graph::mapped::Mapped;
use crate::graph::{Csr, FeatureStorage, Features, GraphError};

/// An array in a file: its extents, and its values where they lie.
pub(crate) struct Table<T> {
    /// Extent of each dimension.
    pub shape: Vec<usize>,
    /// All values, row by row.
    pub values: Mapped<T>,
}

/// Dense features `[nodes, width]` of a `.npy` file, or of a member of an `.npz` file, held as the
/// section says; of as many nodes as there are rows, where nobody else says.
pub(super) fn features(
    path: &Path,
    member: Option<&str>,
    storage: FeatureStorage,
    nodes: Option<usize>,
) -> Result<Features, GraphError> {
    let name = member.map_or("the array".to_owned(), |member| format!("`{member}`"));
    if storage != FeatureStorage::F32 {
        let mapped = table::<f32>(path, member);
        if let (Err(what), FeatureStorage::Mapped) = (&mapped, storage) {
            let what = format!("{name} cannot be mapped: {what}; leave out `feature_storage`");
            return Err(GraphError::file(path, what));
        }
        // Whatever else is wrong with it is said when it is read.
        if let Ok(Table { shape, values }) = mapped {
            let width = arrays::width(path, &name, &shape, nodes)?;
            let rows = Features::Coded(CodedRows::mapped(width, values));
            let rows = finite(path, &name, rows)?;
            return Ok(match storage {
                FeatureStorage::Mapped => rows,
                _ => rows.compact(),
            });
        }
    }
    let array = match member {
        None => npy::read(path)?,
        Some(member) => Npz::open(path)?.read(member)?,
    };
    let nodes = nodes.or(array.shape.first().copied());
    arrays::features(path, &name, array, nodes.unwrap_or(0))
}

/// The undirected graph of a `.npy` file with an edge in each row. The pairs stay in the file.
pub(super) fn graph(
    path: &Path,
    nodes: usize,
    room: Option<&Room>,
) -> Result<(Csr, EdgeCount), GraphError> {
    let Ok(Table { shape, values }) = table::<i64>(path, None) else {
        let pairs = npy::read::<i64>(path)?.pairs(nodes, Ends::Rows);
        let pairs = pairs.map_err(|what| GraphError::file(path, what))?;
        return Ok(EdgeCount::undirected(nodes, pairs));
    };
    let [edges, 2] = shape[..] else {
        let what = format!("must have two columns, and its shape is {shape:?}");
        return Err(GraphError::file(path, what));
    };
    for end in values.values(0, 2 * edges) {
        signed_in_range(end, nodes).map_err(|what| GraphError::file(path, what))?;
    }
    let pairs = (0..edges).map(|edge| {
        let mut ends = values.values(2 * edge, 2).map(|end| end as u32);
        // Two of them, which were found to be in range just now.
        (ends.next().unwrap_or(0), ends.next().unwrap_or(0))
    });
    if room.is_none() {
        return Ok(EdgeCount::of_pairs(nodes, edges, pairs));
    }
    let mut sorted = Pairs::new(room);
    for (from, to) in pairs {
        sorted.add(from, to)?;
    }
    sorted.counted(nodes)
}

/// The pairs of a member of an `.npz` file, `[2, edges]`, on disk; none if it does not lie there as
/// it is, or has another shape.
pub(super) fn pairs<'a>(
    path: &Path,
    member: &str,
    nodes: usize,
    room: &'a Room,
) -> Result<Option<Pairs<'a>>, GraphError> {
    let Ok(Table { shape, values }) = table::<i64>(path, Some(member)) else {
        return Ok(None);
    };
    let [2, edges] = shape[..] else {
        return Ok(None);
    };
    let mut pairs = Pairs::new(Some(room));
    let node = |end: i64| {
        let node = signed_in_range(end, nodes);
        node.map_err(|what| GraphError::file(path, format!("`{member}`: {what}")))
    };
    for (from, to) in values.values(0, edges).zip(values.values(edges, edges)) {
        pairs.add(node(from)?, node(to)?)?;
    }
    Ok(Some(pairs))
}

/// The array as it lies in the file, if it lies there row by row and as it is.
pub(crate) fn table<T: Element>(path: &Path, member: Option<&str>) -> Result<Table<T>, String> {
    let (start, bytes) = match member {
        None => (0, std::fs::metadata(path).map_err(text)?.len()),
        Some(member) => within(path, member)?,
    };
    let mut file = File::open(path).map_err(text)?;
    std::io::Seek::seek(&mut file, std::io::SeekFrom::Start(start)).map_err(text)?;
    let header = Header::read(&mut BufReader::new(file), bytes)?;
    let (size, highest_first, decode) = header.decoder()?;
    if header.by_columns && header.shape.len() > 1 {
        return Err(
            "its columns come one after another, and rows have to (`numpy.ascontiguousarray`)"
                .to_owned(),
        );
    }
    let count = header.count(size, bytes)?;
    let start = start + header.end();
    let values = Mapped::open(path, start, count, (size, highest_first), decode).map_err(text)?;
    let shape = header.shape;
    Ok(Table { shape, values })
}

/// Where a member of an `.npz` file starts, and its length, if it is not compressed.
fn within(path: &Path, member: &str) -> Result<(u64, u64), String> {
    let file = File::open(path).map_err(text)?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(text)?;
    let member = archive.by_name(&format!("{member}.npy")).map_err(text)?;
    if member.compression() != CompressionMethod::Stored {
        return Err("it is compressed (`numpy.savez` does not compress)".to_owned());
    }
    Ok((member.data_start(), member.size()))
}

// The signature is that of what `map_err` takes.
#[allow(clippy::needless_pass_by_value)]
fn text(error: impl ToString) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use half::f16;

    use super::super::npy::tests::{add1, add2};
    use super::*;

    /// A `.npy` file as `NumPy` writes it.
    fn file(folder: &Path, kind: &str, fortran: bool, shape: &str, raw: &[u8]) -> PathBuf {
        let order = if fortran { "True" } else { "False" };
        let head = format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
        bytes.extend(head.as_bytes());
        bytes.extend(raw);
        let path = folder.join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    const VALUES: [f32; 6] = [1.0, -2.5, 3.0, 0.25, 0.0, 6.0];

    fn of(storage: FeatureStorage, path: &Path) -> Result<Features, String> {
        features(path, None, storage, Some(3)).map_err(|error| error.to_string())
    }

    #[test]
    fn every_type_and_order_of_bytes_is_mapped_to_the_values_that_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let raw = |each: &dyn Fn(f32) -> Vec<u8>| -> Vec<u8> {
            VALUES.iter().flat_map(|&value| each(value)).collect()
        };
        for (kind, raw) in [
            ("<f2", raw(&|v| f16::from_f32(v).to_le_bytes().to_vec())),
            (">f2", raw(&|v| f16::from_f32(v).to_be_bytes().to_vec())),
            ("<f4", raw(&|v| v.to_le_bytes().to_vec())),
            (">f4", raw(&|v| v.to_be_bytes().to_vec())),
            ("<f8", raw(&|v| f64::from(v).to_le_bytes().to_vec())),
            (">f8", raw(&|v| f64::from(v).to_be_bytes().to_vec())),
        ] {
            let path = file(folder.path(), kind, false, "(3, 2)", &raw);
            let read = of(FeatureStorage::F32, &path).unwrap();
            assert_eq!(read.values(), VALUES, "{kind}");
            let mapped = of(FeatureStorage::Mapped, &path).unwrap();
            assert!(mapped.is_mapped() && mapped.is_dense());
            assert_eq!(mapped.dense_rows(&[0, 1, 2]), VALUES, "{kind}");
            assert_eq!(mapped.select(&[2]).dense_rows(&[0]), VALUES[4..]);
            let half = of(FeatureStorage::F16, &path).unwrap().halved().unwrap();
            assert!(!half.is_mapped() && half.value_bytes() == 2);
            assert_eq!(half.dense_rows(&[0, 1, 2]), VALUES, "{kind}");
        }
    }

    #[test]
    fn what_cannot_be_mapped_says_why_and_is_read_where_half_precision_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let raw: Vec<u8> = VALUES.iter().flat_map(|v| v.to_le_bytes()).collect();
        let path = file(folder.path(), "<f4", true, "(3, 2)", &raw);
        let error = of(FeatureStorage::Mapped, &path).unwrap_err();
        assert!(error.contains("a.npy: the array cannot be mapped: its columns"));
        let (read, half) = (FeatureStorage::F32, FeatureStorage::F16);
        assert_eq!(of(half, &path).unwrap(), of(read, &path).unwrap());
        let path = file(folder.path(), "<f4", false, "(3, 2)", &raw[..23]);
        for storage in [FeatureStorage::Mapped, half, read] {
            let error = of(storage, &path).unwrap_err();
            assert!(error.contains("its header promises"), "{error}");
        }
        let path = file(folder.path(), "<f4", false, "(2, 3)", &raw);
        let error = of(FeatureStorage::Mapped, &path).unwrap_err();
        assert!(error.contains("2 rows, 3 values each, for 3 nodes"));
        let mut broken = raw;
        broken[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
        let path = file(folder.path(), "<f4", false, "(3, 2)", &broken);
        let error = of(FeatureStorage::Mapped, &path).unwrap_err();
        assert!(error.contains("row 1, column 0 (both from 0): NaN"));
    }

    #[test]
    fn members_of_a_zip_are_mapped_unless_they_are_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut npz = ndarray_npy::NpzWriter::new(File::create(&path).unwrap());
        add1(&mut npz, "other", &[1_i32, -2]);
        add2(&mut npz, "x", 2, &VALUES);
        npz.finish().unwrap();
        let of = |path: &Path| features(path, Some("x"), FeatureStorage::Mapped, Some(3));
        let mapped = of(&path).unwrap();
        assert!(mapped.is_mapped());
        assert_eq!(mapped.dense_rows(&[0, 1, 2]), VALUES);

        let packed = folder.path().join("b.npz");
        let mut zip = zip::ZipWriter::new(File::create(&packed).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(
            "x.npy",
            options.compression_method(CompressionMethod::Deflated),
        )
        .unwrap();
        zip.write_all(b"\x93NUMPY").unwrap();
        zip.finish().unwrap();
        let error = of(&packed).unwrap_err().to_string();
        assert!(
            error.contains("`x` cannot be mapped: it is compressed"),
            "{error}"
        );
    }

    #[test]
    fn edges_in_a_file_make_the_graph_of_edges_that_are_held() {
        let folder = tempfile::tempdir().unwrap();
        let raw = |ends: &[i64]| -> Vec<u8> { ends.iter().flat_map(|v| v.to_be_bytes()).collect() };
        let ends = [0, 1, 1, 0, 2, 2, 1, 2, 0, 1];
        let path = file(folder.path(), ">i8", false, "(5, 2)", &raw(&ends));
        let pairs = vec![(0, 1), (1, 0), (2, 2), (1, 2), (0, 1)];
        assert_eq!(
            graph(&path, 3, None).unwrap(),
            EdgeCount::undirected(3, pairs)
        );
        for (ends, what) in [
            ([0, 3], "node 3 is not one of the 3 nodes"),
            ([0, -1], "is not one of the 3 nodes"),
        ] {
            let path = file(folder.path(), ">i8", false, "(1, 2)", &raw(&ends));
            let error = graph(&path, 3, None).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
        let path = file(folder.path(), ">i8", false, "(2, 1)", &raw(&[0, 1]));
        assert!(
            graph(&path, 3, None)
                .unwrap_err()
                .to_string()
                .contains("two columns")
        );
    }
}
