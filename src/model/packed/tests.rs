use proptest::prelude::*;

use super::*;
use crate::model::SparseMatrix;
use crate::model::sparse::drawn;

/// `[rows, columns]`, of which about so many of ten values are not zero.
fn rows_with(stored: u64, rows: usize, columns: usize, seed: u64) -> Vec<f32> {
    let values = drawn::values(rows * columns, seed);
    let kept = |at: usize| crate::rng::mix(!seed, at as u64) % 10 < stored;
    let values = values.into_iter().enumerate();
    values
        .map(|(at, value)| if kept(at) { value } else { 0.0 })
        .collect()
}

/// `m·x` or `mᵀ·x` term by term, leaving out what is zero.
fn plain(m: &[f32], columns: usize, x: &[f32], width: usize, transposed: bool) -> Vec<f32> {
    let rows = m.len() / columns;
    let mut out = vec![0.0; width * if transposed { columns } else { rows }];
    for row in 0..rows {
        for column in 0..columns {
            let value = m[row * columns + column];
            let (to, from) = if transposed {
                (column, row)
            } else {
                (row, column)
            };
            if value != 0.0 {
                for at in 0..width {
                    out[to * width + at] += value * x[from * width + at];
                }
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn slabs_give_the_bits_of_the_plain_loop_whatever_the_threads(
        stored in 3_u64..10,
        rows in 1_usize..2 * HEIGHT + 40,
        columns in 1_usize..2 * DEPTH + 20,
        width in 1_usize..150,
        transposed in any::<bool>(),
        seed in any::<u32>().prop_map(u64::from),
    ) {
        let dense = rows_with(stored, rows, columns, seed);
        let matrix = SparseMatrix::of_dense(&dense, columns);
        pack(&matrix);
        let slabs = packed(&matrix, transposed);
        // Few entries of a row in a slab are no use, and are not packed.
        prop_assume!(slabs.is_some());
        let x = drawn::values(width * if transposed { rows } else { columns }, seed + 2);
        let found = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            let product = || slabs.as_ref().map(|slabs| slabs.product(&x, width));
            pool.unwrap().install(product).unwrap()
        };
        let expected = plain(&dense, columns, &x, width, transposed);
        prop_assert_eq!(&found(1), &expected);
        prop_assert_eq!(&found(3), &expected);

        let mut sums = drawn::values(expected.len(), seed + 3);
        let before = sums.clone();
        slabs.unwrap().add_product(&x, width, &mut sums);
        for ((sum, before), term) in sums.iter().zip(before).zip(&expected) {
            prop_assert_eq!(*sum, before + term);
        }

        // Dropout has other values in the same places, and where all are ones none are kept.
        let ones = |value: &f32| f32::from(u8::from(*value != 0.0));
        let dense: Vec<f32> = dense.iter().map(ones).collect();
        let bag = matrix.with_values(vec![1.0; matrix.entries()]);
        let found = packed(&bag, transposed).map(|slabs| slabs.product(&x, width));
        prop_assert_eq!(found, Some(plain(&dense, columns, &x, width, transposed)));
        let doubled = matrix.with_values(matrix.values().iter().map(|v| 2.0 * v).collect());
        let twice = packed(&doubled, transposed).map(|slabs| slabs.product(&x, width));
        let expected: Vec<f32> = expected.iter().map(|sum| 2.0 * sum).collect();
        prop_assert_eq!(twice, Some(expected));
    }
}

#[test]
fn what_is_nearly_empty_or_out_of_order_stays_as_it_is() {
    let thin = SparseMatrix::of_dense(&rows_with(1, 30, 40, 1), 40);
    pack(&thin);
    assert!(packed(&thin, false).is_none());
    let unordered = SparseMatrix::new(30, &[0, 10], (0..10).rev().collect(), vec![1.0; 10]);
    pack(&unordered);
    assert!(packed(&unordered, false).is_none());
    let full = SparseMatrix::of_dense(&rows_with(9, 30, 40, 1), 40);
    assert!(packed(&full, false).is_none(), "before it was asked for");
    pack(&full);
    assert!(packed(&full, false).is_some() && packed(&full, true).is_some());
}
