//! Arrays that stay in their file: the system brings in the pages that are read, and takes them
//! back when something else needs the memory.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

/// The bytes of a value, lowest first and zero beyond, and what they mean.
pub type Decode<T> = fn([u8; 8]) -> T;

/// Values of one size, one after another in a file.
#[derive(Debug)]
pub struct Mapped<T> {
    map: Mmap,
    /// Bytes of a value, 1 to 8.
    size: usize,
    highest_first: bool,
    decode: Decode<T>,
}

impl<T> Mapped<T> {
    /// The `count` values from byte `start` on, each of `size` bytes.
    ///
    /// # Errors
    /// If the file cannot be opened, or ends before they do.
    #[allow(unsafe_code)]
    pub fn open(
        path: &Path,
        start: u64,
        count: usize,
        (size, highest_first): (usize, bool),
        decode: Decode<T>,
    ) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = count.checked_mul(size).ok_or(io::ErrorKind::FileTooLarge)?;
        let there = file.metadata()?.len();
        if start
            .checked_add(bytes as u64)
            .is_none_or(|end| end > there)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the map is read and never written, and its length was checked just now. Another
        // program that cuts the file short while it is mapped ends this one, which the
        // documentation of the key says.
        let map = unsafe { MmapOptions::new().offset(start).len(bytes).map(&file)? };
        Ok(Self {
            map,
            size,
            highest_first,
            decode,
        })
    }

    /// What a value of these bytes, lowest first, would be; none of values of another size.
    pub fn means<const N: usize>(&self, raw: [u8; N]) -> Option<T> {
        let mut whole = [0; 8];
        whole.get_mut(..N)?.copy_from_slice(&raw);
        (N == self.size).then(|| (self.decode)(whole))
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.map.len() / self.size
    }

    /// `count` values from number `first` on.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn values(&self, first: usize, count: usize) -> impl Iterator<Item = T> + '_ {
        let raw = &self.map[first * self.size..][..count * self.size];
        raw.chunks_exact(self.size).map(|raw| {
            let mut whole = [0; 8];
            whole[..self.size].copy_from_slice(raw);
            if self.highest_first {
                whole[..self.size].reverse();
            }
            (self.decode)(whole)
        })
    }
}
