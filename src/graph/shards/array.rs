//! Arrays of shards: plain `.npy` files, which appear whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::atomic;
use crate::graph::GraphError;

/// By what a file is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileSum {
    /// Its length.
    pub bytes: u64,
    /// SHA-256 of all of it, in hexadecimal digits.
    pub sha256: String,
}

/// Bytes that are written at once.
const PIECE: usize = 1 << 16;

impl FileSum {
    /// That of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let mut hash = Sha256::new();
        let bytes = io::copy(&mut File::open(path)?, &mut hash)?;
        Ok(Self::new(bytes, hash))
    }

    fn new(bytes: u64, hash: Sha256) -> Self {
        let sha256 = format!("{:x}", hash.finalize());
        Self { bytes, sha256 }
    }
}

/// The header of an array of these extents and this type, as `NumPy` writes it.
fn header(kind: &str, shape: &[usize]) -> Vec<u8> {
    /// What values are aligned to.
    const ALIGNED: usize = 64;
    const MAGIC: &[u8] = b"\x93NUMPY\x01\0";
    let extents: String = shape.iter().map(|extent| format!("{extent},")).collect();
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({extents}), }}");
    let before = MAGIC.len() + 2;
    let length = (before + text.len() + 1).next_multiple_of(ALIGNED) - before;
    text.push_str(&" ".repeat(length - text.len() - 1));
    text.push('\n');
    // Of two extents it has some hundred bytes.
    let length = u16::try_from(length).unwrap_or(u16::MAX);
    [MAGIC, &length.to_le_bytes(), text.as_bytes()].concat()
}

/// Writes an array of values of `N` bytes each, row by row, unless a file of that length is there:
/// files appear whole, so that one that is there is from an earlier call.
///
/// # Errors
/// [`GraphError::Write`].
pub(super) fn write<const N: usize>(
    path: &Path,
    kind: &str,
    shape: &[usize],
    values: impl Iterator<Item = [u8; N]>,
) -> Result<FileSum, GraphError> {
    let unwritten = |source| GraphError::Write {
        path: path.to_owned(),
        source,
    };
    let header = header(kind, shape);
    let count: usize = shape.iter().product();
    let bytes = (header.len() + count * N) as u64;
    if fs::metadata(path).is_ok_and(|there| there.len() == bytes) {
        return FileSum::of(path).map_err(unwritten);
    }
    let mut hash = Sha256::new();
    atomic::write(path, |file| {
        let mut put = |piece: &[u8]| {
            hash.update(piece);
            file.write_all(piece)
        };
        put(&header)?;
        let mut piece = Vec::with_capacity(PIECE + N);
        for value in values {
            piece.extend(value);
            if piece.len() >= PIECE {
                put(&piece)?;
                piece.clear();
            }
        }
        put(&piece)
    })
    .map_err(unwritten)?;
    Ok(FileSum::new(bytes, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_numpy_writes_it_and_is_not_written_twice() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let values = || [1_u32, 2, 3, 4, 5, 6].into_iter().map(u32::to_le_bytes);
        let sum = write(&path, "<u4", &[2, 3], values()).unwrap();
        let there = fs::read(&path).unwrap();
        // numpy.save of numpy.arange(1, 7, dtype="<u4").reshape(2, 3), but for the header's spaces.
        let text = b"{'descr': '<u4', 'fortran_order': False, 'shape': (2,3,), }";
        assert_eq!(&there[..10], b"\x93NUMPY\x01\0\x76\0");
        assert_eq!(&there[10..10 + text.len()], text);
        assert_eq!(there.len(), 128 + 24);
        assert_eq!(there[128 + 8..][..4], 3_u32.to_le_bytes());
        assert_eq!(sum, FileSum::of(&path).unwrap());
        let none = values().inspect(|_| unreachable!("it is there"));
        let again = write(&path, "<u4", &[2, 3], none);
        assert_eq!(again.unwrap(), sum);
        let longer = write(&path, "<u4", &[7], (0_u32..7).map(u32::to_le_bytes)).unwrap();
        assert_eq!((longer.bytes, longer == sum), (128 + 28, false));
    }
}
