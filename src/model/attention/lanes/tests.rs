use proptest::prelude::*;

use super::super::heads;
use super::*;
use crate::model::gather::{sums_for_heads, weighted_sums};
use crate::model::sparse::{HUB_ENTRIES, drawn};

/// As many values, each within so much of the other's.
fn near(found: &[f32], wanted: &[f32], most: f32) -> bool {
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= most * (1.0 + b.abs());
    found.len() == wanted.len() && found.iter().zip(wanted).all(close)
}

/// The mean over heads of weighted sums, in double precision: over a long row, sums in single
/// precision differ by their order more than lanes may.
fn exact_mean(
    rows: &Rows,
    weight: impl Fn(usize, usize) -> f32,
    heads: usize,
    x: &[f32],
    part: usize,
) -> Vec<f32> {
    let of = |row: usize, at: usize| {
        let mut sum = 0.0;
        for entry in rows.entries(row) {
            let from = rows.columns[entry] as usize * heads * part;
            for head in 0..heads {
                sum += f64::from(weight(entry, head)) * f64::from(x[from + head * part + at]);
            }
        }
        (sum / heads as f64) as f32
    };
    let places = (0..rows.len()).flat_map(|row| (0..part).map(move |at| (row, at)));
    places.map(|(row, at)| of(row, at)).collect()
}

/// All passes beside those for any number of heads.
fn check<const HEADS: usize>(lengths: &[usize], part: usize, seed: u64) {
    let (matrix, width) = (drawn::matrix(lengths, 11, seed), HEADS * part);
    let rows = matrix.by_row();
    let draw = |count, number| drawn::values(count, seed + number);
    let (left, right) = (draw(rows.len() * HEADS, 1), draw(11 * HEADS, 2));
    let weights = softmax::<HEADS>(rows, &left, &right);
    assert!(near(
        &weights,
        &heads::softmax(rows, &left, &right, HEADS),
        1e-6
    ));
    let gradient = draw(matrix.entries() * HEADS, 3);
    let plain = heads::softmax_gradient(rows, &left, &right, &weights, &gradient, HEADS);
    let found = softmax_gradient::<HEADS>(rows, &left, &right, &weights, &gradient);
    assert_eq!(found, plain);

    let x = draw(11 * width, 4);
    let weight = |entry: usize, head: usize| weights[entry * HEADS + head];
    let plain = weighted_sums(rows, weight, HEADS, &x, width);
    assert_eq!(sums::<HEADS>(rows, None, &weights, &x, width), plain);
    let exact = exact_mean(rows, weight, HEADS, &x, part);
    assert!(near(
        &mean::<HEADS>(rows, &weights, &x, width),
        &exact,
        5e-5
    ));
    let g = draw(rows.len() * width, 5);
    let plain = heads::dots(rows, &g, &x, width, HEADS, HEADS);
    assert!(near(&dots::<HEADS>(rows, &g, &x, width), &plain, 1e-4));
    let one = &g[..rows.len() * part];
    let plain = heads::dots(rows, one, &x, width, HEADS, 1);
    let plain: Vec<f32> = plain.iter().map(|dot| dot / HEADS as f32).collect();
    assert!(near(
        &mean_dots::<HEADS>(rows, one, &x, width),
        &plain,
        1e-4
    ));

    let by_column = matrix.by_column();
    let (columns, positions) = (&by_column.rows, &by_column.positions);
    let weight = |entry: usize, head| weights[positions[entry] as usize * HEADS + head];
    let plain = weighted_sums(columns, weight, HEADS, &g, width);
    let found = sums::<HEADS>(columns, Some(positions), &weights, &g, width);
    assert_eq!(found, plain);
    let share = 1.0 / HEADS as f32;
    let plain = sums_for_heads(columns, |e, h| share * weight(e, h), HEADS, one, part);
    assert_eq!(
        spread::<HEADS>(columns, positions, &weights, one, part),
        plain
    );
}

fn check_all(lengths: &[usize], part: usize, seed: u64) {
    check::<2>(lengths, part, seed);
    check::<4>(lengths, part, seed);
    check::<8>(lengths, part, seed);
    check::<16>(lengths, part, seed);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn lanes_give_what_heads_one_by_one_give(
        lengths in prop::collection::vec(0_usize..9, 1..40),
        part in 1_usize..40,
        seed in any::<u32>().prop_map(u64::from),
    ) {
        check_all(&lengths, part, seed);
    }

    #[test]
    fn an_exponential_is_within_a_few_roundings(x in -100.0_f32..=0.0) {
        let exact = f64::from(x).exp();
        prop_assert!((f64::from(exp(x)) - exact).abs() <= 3e-7 * exact + 1.2e-38);
    }
}

#[test]
fn a_row_that_threads_share_is_summed_alike() {
    check_all(&[3, HUB_ENTRIES + 5, 0, 2], 13, 6);
}

#[test]
fn the_exponential_of_nothing_is_one_and_of_no_number_none() {
    assert_eq!(exp(0.0), 1.0);
    assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    assert!(exp(f32::NAN).is_nan());
}
