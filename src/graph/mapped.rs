//! Arrays that stay in their file: the system brings in the pages that are read, and takes them
//! back when something else needs the memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::{Mmap, MmapOptions};

/// The bytes of a value, lowest first and zero beyond, and what they mean.
pub(super) type Decode<T> = fn([u8; 8]) -> T;

/// A map of which little is in memory at a time. Pages that were looked at count as memory of this
/// process until the system wants them back; here they go back by themselves.
#[derive(Debug)]
struct Lent {
    map: Mmap,
    /// Bytes that were looked at since pages went back last.
    seen: AtomicUsize,
}

impl Lent {
    /// Bytes that may be in memory.
    const KEPT: usize = 64 << 20;
    /// Bytes that the system maps around one that is looked at.
    const AROUND: usize = 64 << 10;

    /// Maps `bytes` bytes of a file, which has them.
    #[allow(unsafe_code)]
    fn new(file: &File, start: u64, bytes: usize) -> io::Result<Self> {
        // SAFETY: the map is read and never written, and the caller has looked at the length of the
        // file. Another program that cuts the file short while it is mapped ends this one, which
        // the documentation of the key says.
        let map = unsafe { MmapOptions::new().offset(start).len(bytes).map(file)? };
        let seen = AtomicUsize::new(0);
        Ok(Self { map, seen })
    }

    /// These bytes.
    #[allow(unsafe_code)]
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        let near = range.len().max(Self::AROUND);
        // Relaxed: how much is in memory shows in no value.
        if self.seen.fetch_add(near, Ordering::Relaxed) >= Self::KEPT {
            self.seen.store(near, Ordering::Relaxed);
            #[cfg(unix)]
            // SAFETY: the map is shared with its file and never written, so that pages that went
            // come back from there as they were. A system that refuses keeps them, which is slower.
            let _ = unsafe {
                self.map
                    .unchecked_advise(memmap2::UncheckedAdvice::DontNeed)
            };
        }
        &self.map[range]
    }
}

/// Node numbers in a file of this process's own.
#[derive(Debug)]
pub(super) struct MappedIds(Lent);

impl MappedIds {
    /// The numbers of a file that this machine wrote: 4 bytes each, in its own order of bytes.
    ///
    /// # Errors
    /// If the file cannot be mapped.
    pub(super) fn new(file: &File) -> io::Result<Self> {
        let bytes = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        Lent::new(file, 0, bytes).map(Self)
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.0.map.len() / size_of::<u32>()
    }

    /// Those from one place to another.
    ///
    /// # Panics
    /// If there are not so many.
    pub(super) fn get(&self, range: Range<usize>) -> &[u32] {
        const SIZE: usize = size_of::<u32>();
        numbers(self.0.bytes(range.start * SIZE..range.end * SIZE))
    }

    /// All of them. Their pages stay until others are looked at.
    pub(super) fn all(&self) -> &[u32] {
        numbers(&self.0.map)
    }
}

/// Bytes as numbers of 4 bytes each.
#[allow(unsafe_code)]
fn numbers(bytes: &[u8]) -> &[u32] {
    // SAFETY: every 4 bytes are a number. A map starts with a page, and rows with a number, so that
    // nothing is left over at either end.
    unsafe { bytes.align_to() }.1
}

/// Values of one size, one after another in a file.
#[derive(Debug)]
pub(crate) struct Mapped<T> {
    lent: Lent,
    /// Bytes of a value, 1 to 8.
    size: usize,
    highest_first: bool,
    decode: Decode<T>,
}

impl<T> Mapped<T> {
    /// The `count` values from byte `start` on, each of `size` bytes.
    ///
    /// # Errors
    /// If the file cannot be mapped, or ends before they do.
    pub(crate) fn new(
        file: &File,
        start: u64,
        count: usize,
        (size, highest_first): (usize, bool),
        decode: Decode<T>,
    ) -> io::Result<Self> {
        let bytes = count.checked_mul(size).ok_or(io::ErrorKind::FileTooLarge)?;
        let there = file.metadata()?.len();
        if start
            .checked_add(bytes as u64)
            .is_none_or(|end| end > there)
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self {
            lent: Lent::new(file, start, bytes)?,
            size,
            highest_first,
            decode,
        })
    }

    /// The same of the file of this name.
    ///
    /// # Errors
    /// Also if it cannot be opened.
    pub(crate) fn open(
        path: &Path,
        start: u64,
        count: usize,
        layout: (usize, bool),
        decode: Decode<T>,
    ) -> io::Result<Self> {
        Self::new(&File::open(path)?, start, count, layout, decode)
    }

    /// What a value of these bytes, lowest first, would be; none of values of another size.
    pub(crate) fn means<const N: usize>(&self, raw: [u8; N]) -> Option<T> {
        let mut whole = [0; 8];
        whole.get_mut(..N)?.copy_from_slice(&raw);
        (N == self.size).then(|| (self.decode)(whole))
    }

    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        self.lent.map.len() / self.size
    }

    /// `count` values from number `first` on.
    ///
    /// # Panics
    /// If there are not so many.
    pub(crate) fn values(&self, first: usize, count: usize) -> impl Iterator<Item = T> + '_ {
        let raw = self
            .lent
            .bytes(first * self.size..(first + count) * self.size);
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
