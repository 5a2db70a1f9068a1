//! Parquet files, read without the panics of the table library.

use std::fs::File;
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

/// What `read` reads. On a damaged file the table library panics, sometimes on a thread of its own,
/// and says so: here that is an error like others.
fn without_panics(
    read: impl FnOnce() -> Result<DataFrame, PolarsError>,
) -> Result<DataFrame, PolarsError> {
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
        let found = without_panics(|| panic!("as the library does"));
        let error = found.unwrap_err().to_string();
        assert!(error.contains("the file is damaged"), "{error}");
    }
}
