//! Arrays in `.npy` files and in `.npz` files, which are zips of them. Values are decoded as they
//! come: what is held is the array and no second copy of it.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use zip::ZipArchive;

use super::element::{Element, whole};
use super::npy_header::Header;
use crate::graph::GraphError;
use crate::memory;

/// An open `.npz` file.
pub(super) struct Npz<'a> {
    path: &'a Path,
    archive: ZipArchive<BufReader<File>>,
}

/// An array of any number of dimensions, row by row.
#[derive(Debug, PartialEq)]
pub(crate) struct Array<T> {
    /// Extent of each dimension.
    pub shape: Vec<usize>,
    /// All values.
    pub values: Vec<T>,
}

/// All arrays of an `.npz` file by their names, in the file's order.
///
/// # Errors
/// If it is no such file, or an array has other values than numbers.
pub(crate) fn all_arrays(path: &Path) -> Result<Vec<(String, Array<f32>)>, GraphError> {
    let mut npz = Npz::open(path)?;
    let names: Vec<String> = npz.names().map(str::to_owned).collect();
    let read = |name: String| npz.read(&name).map(|array| (name, array));
    names.into_iter().map(read).collect()
}

/// Most bytes that are allocated because a file says so, before they are there.
const MOST_AT_ONCE: usize = 64 << 20;

/// Bytes that are decoded at once; a multiple of every size of a value.
const PIECE: usize = 1 << 16;

/// Reads an array of `bytes` bytes in all; what it is called where there is no memory for it, and
/// the error of one that is not as it has to be.
fn array<T: Element>(
    mut from: impl Read,
    bytes: u64,
    name: impl FnOnce() -> String,
    wrong: impl Fn(String) -> GraphError,
) -> Result<Array<T>, GraphError> {
    let broken = |error: std::io::Error| wrong(error.to_string());
    let header = Header::read(&mut from, bytes).map_err(&wrong)?;
    let (size, highest_first, decode) = header.decoder::<T>().map_err(&wrong)?;
    let count = header.count(size, bytes).map_err(&wrong)?;
    memory::need(name, memory::bytes(&[count], size_of::<T>()))?;
    let mut values = Vec::with_capacity(count.min(MOST_AT_ONCE / size_of::<T>()));
    let mut piece = vec![0; PIECE];
    let mut left = count;
    while left > 0 {
        let now = left.min(PIECE / size);
        let raw = &mut piece[..now * size];
        from.read_exact(raw).map_err(broken)?;
        values.extend(raw.chunks_exact_mut(size).map(|raw| {
            if highest_first {
                raw.reverse();
            }
            decode(whole(raw))
        }));
        left -= now;
    }
    // A zip checks its sum at the end, which this reaches.
    if from.read(&mut [0]).map_err(broken)? > 0 {
        return Err(wrong("it has more bytes than it says".to_owned()));
    }
    by_rows(header, values).map_err(wrong)
}

/// The values row by row.
fn by_rows<T: Element>(header: Header, values: Vec<T>) -> Result<Array<T>, String> {
    let values = match header.shape[..] {
        [rows, columns] if header.by_columns => {
            let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            places
                .map(|(row, column)| values[column * rows + row])
                .collect()
        }
        [_, _, ..] if header.by_columns => {
            return Err(
                "its first dimension changes fastest, which is read of two dimensions alone"
                    .to_owned(),
            );
        }
        _ => values,
    };
    Ok(Array {
        shape: header.shape,
        values,
    })
}

/// Reads an `.npy` file.
pub(super) fn read<T: Element>(path: &Path) -> Result<Array<T>, GraphError> {
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (bytes, file) = opened.map_err(|source| GraphError::read(path, source))?;
    let wrong = |what| GraphError::file(path, format!("is not read as an array: {what}"));
    let name = || path.display().to_string();
    array(BufReader::new(file), bytes, name, wrong)
}

impl<'a> Npz<'a> {
    /// Opens the file and reads its table of contents.
    pub(super) fn open(path: &'a Path) -> Result<Self, GraphError> {
        let file = File::open(path).map_err(|source| GraphError::read(path, source))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            let what = format!("is not a whole .npz file ({error}); fetch it again");
            GraphError::file(path, what)
        })?;
        Ok(Self { path, archive })
    }

    /// The array called `name`.
    pub(super) fn read<T: Element>(&mut self, name: &str) -> Result<Array<T>, GraphError> {
        let path = self.path;
        let wrong = |what: String| {
            GraphError::file(path, format!("member `{name}` cannot be read: {what}"))
        };
        let member = (self.archive.by_name(&format!("{name}.npy")))
            .map_err(|error| wrong(error.to_string()))?;
        let size = member.size();
        let name = || format!("member `{name}` of {}", path.display());
        array(member, size, name, wrong)
    }

    /// Whether there is an array called `name`.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names().any(|there| there == name)
    }

    /// The names of its arrays, in the file's order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let members = self.archive.file_names();
        members.filter_map(|member| member.strip_suffix(".npy"))
    }

    /// An error about this file.
    pub(super) fn error(&self, what: impl Into<String>) -> GraphError {
        GraphError::file(self.path, what)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use half::f16;
    use ndarray::{Array as Owned, Ix1, Ix2};
    use ndarray_npy::{NpzWriter, WritableElement, WriteNpyExt};
    use std::io::Write;

    /// Adds a one-dimensional array.
    pub(crate) fn add1<T: WritableElement + Clone>(
        npz: &mut NpzWriter<File>,
        name: &str,
        values: &[T],
    ) {
        npz.add_array(name, &Owned::<T, Ix1>::from_vec(values.to_vec()))
            .unwrap();
    }

    /// Adds a two-dimensional array.
    pub(crate) fn add2<T: WritableElement + Clone>(
        npz: &mut NpzWriter<File>,
        name: &str,
        width: usize,
        values: &[T],
    ) {
        let shape = (values.len() / width, width);
        npz.add_array(
            name,
            &Owned::<T, Ix2>::from_shape_vec(shape, values.to_vec()).unwrap(),
        )
        .unwrap();
    }

    fn written(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("a.npz");
        let mut npz = NpzWriter::new(File::create(&path).unwrap());
        add1(&mut npz, "short", &[1_i32, -2]);
        add1(&mut npz, "long", &[1_i64, -2]);
        add2(&mut npz, "words", 2, &[0.5_f64, 1.0, 2.0, 4.0]);
        npz.finish().unwrap();
        path
    }

    #[test]
    fn every_order_of_bytes_and_of_rows_gives_the_same_numbers() {
        // np.array([[1, -2, 3], [4, 5, 6]]) in the types that files have.
        let file = |kind: &str, by_columns: bool, raw: &[u8]| {
            let order = if by_columns { "True" } else { "False" };
            let head =
                format!("{{'descr': '{kind}', 'fortran_order': {order}, 'shape': (2, 3), }}\n");
            let mut bytes = b"\x93NUMPY\x01\0".to_vec();
            bytes.extend(u16::try_from(head.len()).unwrap().to_le_bytes());
            bytes.extend(head.as_bytes());
            bytes.extend(raw);
            bytes
        };
        let rows = [1_i16, -2, 3, 4, 5, 6];
        let columns = [1_i16, 4, -2, 5, 3, 6];
        let of = |order: &[i16], each: &dyn Fn(i16) -> Vec<u8>| {
            order.iter().flat_map(|&v| each(v)).collect::<Vec<u8>>()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        for bytes in [
            file("<i2", false, &of(&rows, &|v| v.to_le_bytes().to_vec())),
            file(">i2", false, &of(&rows, &|v| v.to_be_bytes().to_vec())),
            file(
                "<i4",
                true,
                &of(&columns, &|v| i32::from(v).to_le_bytes().to_vec()),
            ),
            file(
                ">i8",
                true,
                &of(&columns, &|v| i64::from(v).to_be_bytes().to_vec()),
            ),
            file(
                "|i1",
                false,
                &of(&rows, &|v| (v as i8).to_le_bytes().to_vec()),
            ),
        ] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read::<i64>(&path).unwrap().values, [1, -2, 3, 4, 5, 6]);
            assert_eq!(
                read::<f32>(&path).unwrap().values,
                [1.0, -2.0, 3.0, 4.0, 5.0, 6.0]
            );
        }
        for bytes in [
            file(
                "<f2",
                false,
                &of(&rows, &|v| f16::from_f32(v.into()).to_le_bytes().to_vec()),
            ),
            file(
                ">f4",
                false,
                &of(&rows, &|v| f32::from(v).to_be_bytes().to_vec()),
            ),
            file(
                "<f8",
                true,
                &of(&columns, &|v| f64::from(v).to_le_bytes().to_vec()),
            ),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(
                read::<f64>(&path).unwrap().values,
                [1.0, -2.0, 3.0, 4.0, 5.0, 6.0]
            );
            let error = read::<i64>(&path).unwrap_err().to_string();
            assert!(error.contains("and whole numbers are expected"), "{error}");
            std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
            let error = read::<f64>(&path).unwrap_err().to_string();
            assert!(
                error.contains("a.npy: is not read as an array: its header promises"),
                "{error}"
            );
        }
        std::fs::write(&path, file("|O", false, b"")).unwrap();
        assert!(
            read::<f32>(&path)
                .unwrap_err()
                .to_string()
                .contains("values of type `|O`")
        );
    }

    #[test]
    fn a_member_that_is_not_as_long_as_it_says_is_refused_before_it_is_unpacked() {
        let mut bytes = Vec::new();
        Owned::<f32, Ix2>::zeros((3, 5))
            .write_npy(&mut bytes)
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file("x.npy", options).unwrap();
        zip.write_all(&bytes).unwrap();
        zip.write_all(&[0; 1000]).unwrap();
        zip.finish().unwrap();
        let error = Npz::open(&path)
            .unwrap()
            .read::<f32>("x")
            .err()
            .unwrap()
            .to_string();
        let said = format!(
            "its header promises {} bytes, and it has {}",
            bytes.len(),
            bytes.len() + 1000
        );
        assert!(error.contains(&said), "{error}");
    }

    #[test]
    fn numbers_are_read_whatever_their_width() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let mut npz = Npz::open(&path).unwrap();
        assert_eq!(npz.read::<i64>("short").unwrap().values, [1, -2]);
        assert_eq!(npz.read::<i64>("long").unwrap().values, [1, -2]);
        let words = npz.read::<f32>("words").unwrap();
        assert_eq!(
            (words.shape, words.values),
            (vec![2, 2], vec![0.5, 1.0, 2.0, 4.0])
        );
        for (error, message) in [
            (
                npz.read::<bool>("short").err(),
                "member `short` cannot be read: it has values of type `<i4`, and truth values",
            ),
            (
                npz.read::<i64>("none").err(),
                "member `none` cannot be read: specified file not found",
            ),
        ] {
            let error = error.unwrap().to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn a_truncated_or_changed_file_is_an_error_and_never_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path());
        let whole = std::fs::read(&path).unwrap();
        let read_all = || {
            let mut npz = Npz::open(&path)?;
            npz.read::<i64>("short")?;
            npz.read::<i64>("long")?;
            npz.read::<f32>("words")
        };
        std::fs::write(&path, &whole[..whole.len() - 30]).unwrap();
        let error = read_all().err().unwrap().to_string();
        assert!(error.contains("a.npz: is not a whole .npz file"), "{error}");
        for at in (0..whole.len()).step_by(3) {
            let mut changed = whole.clone();
            changed[at] ^= 0x5a;
            std::fs::write(&path, &changed).unwrap();
            let _ = read_all();
        }
    }
}
