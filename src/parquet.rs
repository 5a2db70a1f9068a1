//! Parquet files, read without the panics of the table library.

use std::fs::File;
use std::iter;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use polars::prelude::{DataFrame, ParquetReader, PolarsError, SerReader};

/// The table in a file.
///
/// # Errors
/// If it cannot be opened, or is damaged.
pub(crate) fn read(path: &Path) -> Result<DataFrame, PolarsError> {
    let file = File::open(path)?;
    without_panics(|| ParquetReader::new(file).finish())
}

/// The table in a file, so many rows at a time, in order: of an empty table one part without rows.
/// Sooner read where it was written in groups of as many.
///
/// # Errors
/// If it cannot be opened, or is damaged; a part, if that is damaged.
pub(crate) fn parts(
    path: &Path,
    rows: usize,
) -> Result<impl Iterator<Item = Result<DataFrame, PolarsError>>, PolarsError> {
    let file = File::open(path)?;
    let again = file.try_clone()?;
    let metadata = without_panics(|| ParquetReader::new(again).get_metadata().cloned())?;
    let mut start = Some(0);
    Ok(iter::from_fn(move || {
        let from = start.take()?;
        let part = file
            .try_clone()
            .map_err(PolarsError::from)
            .and_then(|file| {
                let mut reader = ParquetReader::new(file).with_slice(Some((from, rows)));
                reader.set_metadata(metadata.clone());
                without_panics(|| reader.finish())
            });
        // What the metadata of a damaged file says of its length is not relied upon.
        let full = part.as_ref().is_ok_and(|part| part.height() == rows);
        start = (full && from + rows < metadata.num_rows).then_some(from + rows);
        Some(part)
    }))
}

/// What `read` reads. On a damaged file the table library panics, sometimes on a thread of its own,
/// and says so: here that is an error like others.
fn without_panics<T>(read: impl FnOnce() -> Result<T, PolarsError>) -> Result<T, PolarsError> {
    // A hook belongs to the whole process. It is set once, and is silent only about the library's
    // own panics while something is read. A count tells that, for several threads may read at once.
    static READING: AtomicUsize = AtomicUsize::new(0);
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |told| {
            let theirs = told
                .location()
                .is_some_and(|place| place.file().contains("polars"));
            if !theirs || READING.load(Ordering::Relaxed) == 0 {
                usual(told);
            }
        }));
    });
    // Relaxed: the count decides only whether a text is shown.
    READING.fetch_add(1, Ordering::Relaxed);
    // Whatever state a panic leaves is dropped with the reader: nobody looks at it afterwards.
    let outcome = panic::catch_unwind(AssertUnwindSafe(read));
    READING.fetch_sub(1, Ordering::Relaxed);
    outcome.unwrap_or_else(|_| {
        let what = "the file is damaged";
        Err(PolarsError::ComputeError(what.into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_library_is_an_error() {
        let found: Result<DataFrame, _> = without_panics(|| panic!("as the library does"));
        let error = found.unwrap_err().to_string();
        assert!(error.contains("the file is damaged"), "{error}");
    }
}
