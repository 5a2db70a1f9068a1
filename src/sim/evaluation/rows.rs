//! Rows as they travel from their owners to who reads them in an evaluation, nothing rounded.

use crate::graph::{Features, SparseRows};
use crate::model::Matrix;
use crate::net::{floats, to_bytes};
use crate::sim::SimError;

/// Rows from their owner: how many, and their bytes.
type Arrived<'a> = [(usize, &'a [u8])];

/// The error of rows that cannot be read.
pub(super) fn broken() -> SimError {
    SimError::Strategy(
        "rows for an evaluation are not what was expected; do all processes run the same program?"
            .to_owned(),
    )
}

/// The given rows of dense ones.
pub(super) fn packed_rows(rows: &Matrix, sent: &[u32]) -> Vec<u8> {
    to_bytes(&rows.select(sent).into_values())
}

/// The given rows of features: dense as they are; sparse how many values each has, their columns,
/// and the values.
pub(super) fn packed_features(features: &Features, sent: &[u32]) -> Vec<u8> {
    match features.select(sent) {
        Features::Sparse(rows) => {
            // A row has no more values than columns, which are numbered in 32 bits.
            let lengths = rows.lengths().map(|length| length as u32);
            let numbers = lengths.chain(rows.columns.iter().copied());
            let numbers = numbers.flat_map(u32::to_le_bytes);
            numbers.chain(to_bytes(&rows.values)).collect()
        }
        Features::Dense { values, .. } => to_bytes(&values),
        coded @ Features::Coded(_) => {
            let all: Vec<u32> = (0_u32..).take(sent.len()).collect();
            to_bytes(&coded.dense_rows(&all))
        }
    }
}

/// The values of rows of the halo, and zeros, that make so many rows of `own`.
///
/// # Errors
/// If what arrived is not so many rows.
pub(super) fn below(own: &Matrix, halo: &Arrived<'_>, rows: usize) -> Result<Vec<f32>, SimError> {
    let (before, width) = (own.rows(), own.width());
    let mut values = Vec::with_capacity((rows - before) * width);
    for (count, bytes) in halo {
        if bytes.len() != 4 * count * width {
            return Err(broken());
        }
        values.extend(floats(bytes));
    }
    values.resize((rows - before) * width, 0.0);
    Ok(values)
}

/// Own features with those of the halo below, and zeros up to so many rows.
///
/// # Errors
/// If what arrived is not so many rows.
pub(super) fn append_features(
    own: &Features,
    halo: &Arrived<'_>,
    rows: usize,
) -> Result<Features, SimError> {
    let width = own.width();
    let mut all = own.clone().decoded();
    match &mut all {
        Features::Sparse(sparse) => {
            for (count, bytes) in halo {
                append_sparse(*count, bytes, sparse).ok_or_else(broken)?;
            }
            sparse.offsets.resize(rows + 1, sparse.values.len());
        }
        Features::Dense { values, .. } => {
            values.reserve_exact((rows * width).saturating_sub(values.len()));
            for (count, bytes) in halo {
                if bytes.len() != 4 * count * width {
                    return Err(broken());
                }
                values.extend(floats(bytes));
            }
            values.resize(rows * width, 0.0);
        }
        Features::Coded(_) => {}
    }
    Ok(all)
}

/// Appends rows of [`packed_features`]; nothing where there are not so many.
fn append_sparse(count: usize, bytes: &[u8], rows: &mut SparseRows) -> Option<()> {
    let numbers = |bytes: &[u8]| -> Vec<u32> {
        let words = bytes.as_chunks().0.iter();
        words.map(|&word| u32::from_le_bytes(word)).collect()
    };
    let (lengths, rest) = bytes.split_at_checked(4 * count)?;
    let mut end = rows.values.len();
    for length in numbers(lengths) {
        end += length as usize;
        rows.offsets.push(end);
    }
    let stored = end - rows.values.len();
    let (columns, values) = rest.split_at_checked(4 * stored)?;
    rows.columns.extend(numbers(columns));
    rows.values.extend(floats(values));
    (rows.values.len() == end).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse() -> Features {
        let rows = [
            vec![(0, 1.5), (4, -0.0)],
            vec![],
            vec![(2, 3.0)],
            vec![(1, 2.0)],
        ];
        Features::from_rows(5, rows.into_iter())
    }

    fn dense() -> Features {
        Features::Dense {
            width: 2,
            values: vec![0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        }
    }

    #[test]
    fn rows_from_elsewhere_stand_below_own_ones_and_zeros_below_them() {
        for features in [sparse(), dense()] {
            let own = features.select(&[3]);
            let sent = [
                packed_features(&features, &[2, 0]),
                packed_features(&features, &[1]),
            ];
            let halo = [(2, &sent[0][..]), (1, &sent[1][..])];
            let all = append_features(&own, &halo, 6).unwrap();
            assert_eq!(all.rows(), 6);
            assert_eq!(all.select(&[0, 1, 2, 3]), features.select(&[3, 2, 0, 1]));
            let rest = all.dense_rows(&[4, 5]);
            assert!(rest.iter().all(|&value| value == 0.0), "{rest:?}");
        }
    }

    #[test]
    fn rows_of_another_length_are_an_error() {
        for features in [sparse(), dense()] {
            let own = features.select(&[3]);
            let sent = packed_features(&features, &[2, 0]);
            for (count, bytes) in [(2, &sent[..sent.len() - 4]), (3, &sent[..]), (1, &sent[..])] {
                assert!(
                    append_features(&own, &[(count, bytes)], 6).is_err(),
                    "{count}"
                );
            }
        }
    }
}
