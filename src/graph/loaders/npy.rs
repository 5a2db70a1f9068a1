//! Arrays in an `.npz` file, which is a zip of `.npy` members.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use ndarray::{ArrayView, IxDyn};
use ndarray_npy::{ViewElement, ViewNpyError, ViewNpyExt};
use zip::ZipArchive;

use crate::graph::GraphError;
use crate::memory;

/// An open `.npz` file.
pub struct Npz<'a> {
    path: &'a Path,
    archive: ZipArchive<BufReader<File>>,
}

/// An array of any number of dimensions, row by row.
pub struct Array<T> {
    /// Extent of each dimension.
    pub shape: Vec<usize>,
    /// All values.
    pub values: Vec<T>,
}

/// Bytes in which the header of a member ends, if it is any that a program writes.
const HEADER: u64 = 4096;

/// Most bytes that are allocated because a file says so, before they are there.
const MOST_AT_ONCE: u64 = 64 << 20;

/// Where the header of an `.npy` file ends, as its first bytes say.
fn header_end(start: &[u8]) -> Option<u64> {
    match *start.get(..12)? {
        // Version 1 writes the length of the header in two bytes, later ones in four.
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, low, high, ..] => {
            Some(10 + u64::from(u16::from_le_bytes([low, high])))
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', _, _, a, b, c, d] => {
            Some(12 + u64::from(u32::from_le_bytes([a, b, c, d])))
        }
        _ => None,
    }
}

/// The length that the start of an `.npy` file says the whole has: its header, and the values of
/// its type and shape. None where it cannot be told; whoever reads the whole then says what is
/// wrong.
fn promised(start: &[u8]) -> Option<u64> {
    let end = usize::try_from(header_end(start)?).ok()?;
    let values = if start[6] == 1 { 10 } else { 12 };
    let text = std::str::from_utf8(start.get(values..end)?).ok()?;
    let after = |name: &str| Some(text.split_once(name)?.1.split_once(':')?.1.trim_start());
    let kind = after("'descr'")?.strip_prefix('\'')?.split('\'').next()?;
    let size: u64 = kind
        .trim_start_matches(|c: char| !c.is_ascii_digit())
        .parse()
        .ok()?;
    let shape = after("'shape'")?.strip_prefix('(')?.split(')').next()?;
    let extents = shape
        .split(',')
        .map(str::trim)
        .filter(|extent| !extent.is_empty());
    let all = extents
        .map(str::parse::<u64>)
        .try_fold(size, |all, extent| all.checked_mul(extent.ok()?))?;
    all.checked_add(end as u64)
}

/// What members may hold; `read` tries the types that files use for one meaning.
pub trait Element: Sized {
    /// The array in `bytes`, a whole `.npy` file.
    fn view(bytes: &[u8]) -> Result<Array<Self>, ViewNpyError>;
}

impl Element for f32 {
    fn view(bytes: &[u8]) -> Result<Array<Self>, ViewNpyError> {
        let narrow = |value: f64| value as Self;
        copy(bytes, |value: Self| value).or_else(|_| copy(bytes, narrow))
    }
}

impl Element for i64 {
    fn view(bytes: &[u8]) -> Result<Array<Self>, ViewNpyError> {
        // Published files have whole numbers of either width.
        copy(bytes, |value: i32| Self::from(value)).or_else(|_| copy(bytes, |value: Self| value))
    }
}

impl Element for bool {
    fn view(bytes: &[u8]) -> Result<Array<Self>, ViewNpyError> {
        copy(bytes, |value: Self| value)
    }
}

/// Looks at the bytes as an array, which checks its declared size against them, and copies it.
fn copy<A: ViewElement + Copy, T>(
    bytes: &[u8],
    convert: impl Fn(A) -> T,
) -> Result<Array<T>, ViewNpyError> {
    let view = ArrayView::<A, IxDyn>::view_npy(bytes)?;
    // In logical order, also where the file has columns first.
    Ok(Array {
        shape: view.shape().to_vec(),
        values: view.iter().map(|&value| convert(value)).collect(),
    })
}

impl<'a> Npz<'a> {
    /// Opens the file and reads its table of contents.
    pub fn open(path: &'a Path) -> Result<Self, GraphError> {
        let file = File::open(path).map_err(|source| GraphError::read(path, source))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| {
            let what = format!("is not a whole .npz file ({error}); fetch it again");
            GraphError::file(path, what)
        })?;
        Ok(Self { path, archive })
    }

    /// The array called `name`.
    pub fn read<T: Element>(&mut self, name: &str) -> Result<Array<T>, GraphError> {
        let path = self.path;
        let broken = |error: &dyn std::fmt::Display| {
            GraphError::file(path, format!("member `{name}` cannot be read: {error}"))
        };
        let mut member = self
            .archive
            .by_name(&format!("{name}.npy"))
            .map_err(|e| broken(&e))?;
        let size = member.size();
        // What it says of itself is read first, so that nothing is unpacked in vain.
        let mut bytes = Vec::new();
        let mut start = (&mut member).take(HEADER);
        start
            .read_to_end(&mut bytes)
            .map_err(|error| broken(&error))?;
        if let Some(end) = header_end(&bytes).filter(|end| *end > size) {
            // Whoever reads it would make room for all of it first.
            let what = format!("its header ends at byte {end}, and it has {size}");
            return Err(broken(&what));
        }
        if let Some(promised) = promised(&bytes).filter(|promised| *promised != size) {
            let what = format!("its header promises {promised} bytes, and it has {size}");
            return Err(broken(&what));
        }
        // As it is packed, and its values.
        let what = || format!("member `{name}` of {}", path.display());
        memory::need(what, size.saturating_mul(2))?;
        bytes.reserve_exact(
            usize::try_from(size.min(MOST_AT_ONCE))
                .unwrap_or(0)
                .saturating_sub(bytes.len()),
        );
        (&mut member)
            // No more than the archive promised, whatever the packed bytes grow to.
            .take(size.saturating_sub(bytes.len() as u64))
            .read_to_end(&mut bytes)
            .map_err(|error| broken(&error))?;
        T::view(&bytes).map_err(|error| broken(&error))
    }

    /// Whether there is an array called `name`.
    pub fn has(&self, name: &str) -> bool {
        let member = format!("{name}.npy");
        self.archive.file_names().any(|file| file == member)
    }

    /// An error about this file.
    pub fn error(&self, what: impl Into<String>) -> GraphError {
        GraphError::file(self.path, what)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use ndarray::{Array as Owned, Ix1, Ix2};
    use ndarray_npy::{NpzWriter, WritableElement, WriteNpyExt};
    use std::io::Write;

    /// Adds a one-dimensional array.
    pub fn add1<T: WritableElement + Clone>(npz: &mut NpzWriter<File>, name: &str, values: &[T]) {
        npz.add_array(name, &Owned::<T, Ix1>::from_vec(values.to_vec()))
            .unwrap();
    }

    /// Adds a two-dimensional array.
    pub fn add2<T: WritableElement + Clone>(
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
    fn a_member_that_is_not_as_long_as_it_says_is_refused_before_it_is_unpacked() {
        let mut bytes = Vec::new();
        Owned::<f32, Ix2>::zeros((3, 5))
            .write_npy(&mut bytes)
            .unwrap();
        assert_eq!(promised(&bytes), Some(bytes.len() as u64));
        assert_eq!(promised(b"\x93NUMPY\x01\0"), None);
        // A header of the second version, of four gigabytes.
        assert_eq!(
            header_end(b"\x93NUMPY\x02\0\xff\xff\xff\xff"),
            Some(12 + 0xffff_ffff)
        );
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
                "member `short` cannot be read: incorrect descriptor",
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
