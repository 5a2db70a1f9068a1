//! The products on processors, by the `gemm` crate.
//!
//! The gradient of a weight is a sum over all rows of a small matrix. Divided by the rows and
//! columns of its result, as products usually are, there is too little for each thread, and one
//! side is read across its rows. Here the rows are divided instead: each part is one product on one
//! thread, and parts are added up in their order. How many parts there are depends on the rows
//! alone, so the bits do not depend on the number of threads.

use std::mem::MaybeUninit;

use burn::backend::TensorMetadata;
use burn::backend::tensor::FloatTensor as Float;
use gemm::Parallelism;
use rayon::prelude::*;

use super::ProductKernels;
use crate::model::host::Host;

/// Multiplications below which one thread is done before others have woken up.
const SERIAL_WORK: usize = 192 * 192 * 192;

/// Values that one thread moves or adds up before others have woken up.
const SERIAL_VALUES: usize = 1 << 16;

/// Rows of a part, at least: with fewer, writing its result takes as long as the product.
const PART_ROWS: usize = 1536;

/// Columns of a left side, at most, whose rows are divided here: the library leaves threads waiting
/// for each other in such a product. A sum of so few terms has one order in all its kernels but
/// those for vectors, which are kept out of this.
const NARROW: usize = 256;

/// Rows of a piece of such a product, at least.
const PIECE_ROWS: usize = 256;

/// Most parts: the work of as many threads, and the memory of so many weights.
const MOST_PARTS: usize = 32;

/// A matrix that lies row by row in memory, or the transpose of one.
#[derive(Clone, Copy)]
struct View<'a> {
    values: &'a [f32],
    /// Rows and columns.
    shape: [usize; 2],
    /// From a value to the one below it, and to the one on its right.
    strides: [isize; 2],
}

impl<'a> View<'a> {
    /// Rows and columns are given: values of no columns do not say how many rows they are.
    fn new(values: &'a [f32], shape: [usize; 2]) -> Self {
        assert_eq!(values.len(), shape[0] * shape[1], "the values of a matrix");
        Self {
            values,
            shape,
            strides: [shape[1] as isize, 1],
        }
    }

    fn transposed(self) -> Self {
        let ([rows, columns], [down, right]) = (self.shape, self.strides);
        Self {
            values: self.values,
            shape: [columns, rows],
            strides: [right, down],
        }
    }
}

fn parallelism(rows: usize, columns: usize, inner: usize) -> Parallelism {
    if rows * columns * inner < SERIAL_WORK {
        Parallelism::None
    } else {
        Parallelism::Rayon(0)
    }
}

/// Whether a product of two sides that lie row by row is divided by its rows.
fn is_divided(rows: usize, columns: usize, inner: usize) -> bool {
    let serial = matches!(parallelism(rows, columns, inner), Parallelism::None);
    !serial && inner <= NARROW && columns > 1 && rows > PIECE_ROWS
}

/// `a·b`, or `out += a·b`, for `out [rows of a, columns of b]` row by row with room for all of it.
///
/// # Safety
/// `out` is valid for writes of all its values; for reads too, and these are set, if `adds`.
unsafe fn multiply(out: *mut f32, a: View<'_>, b: View<'_>, adds: bool, threads: Parallelism) {
    let ([rows, inner], [below, columns]) = (a.shape, b.shape);
    assert_eq!(inner, below, "columns and rows of two factors");
    // SAFETY: strides and sizes of both factors stay within their slices, as `View` checks when it
    // is made; of `out` the caller vouches. Nothing else has it.
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out,
            1,
            columns as isize,
            adds,
            a.values.as_ptr(),
            a.strides[1],
            a.strides[0],
            b.values.as_ptr(),
            b.strides[1],
            b.strides[0],
            1.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
    }
}

/// As [`multiply`], on the threads that it pays for: a narrow left side is divided by its rows,
/// where both sides lie row by row.
///
/// # Safety
/// The values of `out` are set, if `adds`.
unsafe fn multiply_on_all(out: &mut [MaybeUninit<f32>], a: View<'_>, b: View<'_>, adds: bool) {
    let ([rows, inner], [_, columns]) = (a.shape, b.shape);
    assert_eq!(
        out.len(),
        rows * columns,
        "a product and what it is added to"
    );
    let threads = parallelism(rows, columns, inner);
    let straight = a.strides[1] == 1 && b.strides[1] == 1;
    if !(straight && is_divided(rows, columns, inner)) {
        // SAFETY: as many values as the product has; of what they are the caller vouches.
        return unsafe { multiply(out.as_mut_ptr().cast(), a, b, adds, threads) };
    }
    // A single row at the end would be the library's product of a vector, which adds in another
    // order.
    let height = (PIECE_ROWS..=rows).find(|height| rows % height != 1);
    let height = height.unwrap_or(rows);
    let pieces = out.par_chunks_mut(height * columns);
    let pieces = pieces.zip(a.values.par_chunks(height * inner));
    pieces.for_each(|(out, values)| {
        let a = View::new(values, [values.len() / inner, inner]);
        // SAFETY: as above, of a piece.
        unsafe { multiply(out.as_mut_ptr().cast(), a, b, adds, Parallelism::None) };
    });
}

/// `a·b` in fresh memory, which is written once and never cleared.
///
/// # Safety
/// `fill` sets every value.
#[allow(unsafe_code)]
unsafe fn made(a: View<'_>, b: View<'_>, fill: impl FnOnce(&mut [MaybeUninit<f32>])) -> Vec<f32> {
    let ([rows, inner], [_, columns]) = (a.shape, b.shape);
    let count = rows * columns;
    if count == 0 || inner == 0 {
        return vec![0.0; count];
    }
    let mut out = Vec::with_capacity(count);
    fill(&mut out.spare_capacity_mut()[..count]);
    // SAFETY: there is room for `count` values, all of which were set.
    unsafe { out.set_len(count) };
    out
}

/// `a·b` on the threads that it pays for.
#[allow(unsafe_code)]
fn product(a: View<'_>, b: View<'_>) -> Vec<f32> {
    // SAFETY: the product sets all values, and nothing is added to what they were.
    unsafe { made(a, b, |out| multiply_on_all(out, a, b, false)) }
}

/// `a·b`, divided by the library, if it is to be.
#[allow(unsafe_code)]
fn product_on(a: View<'_>, b: View<'_>, threads: Parallelism) -> Vec<f32> {
    // SAFETY: as many values as the product has, which sets them, and nothing is added.
    unsafe {
        made(a, b, |out| {
            multiply(out.as_mut_ptr().cast(), a, b, false, threads);
        })
    }
}

/// `xᵀ·g` for `x [rows, inputs]` and `g [rows, outputs]`: `[inputs, outputs]`.
fn weight_gradient(x: &[f32], inputs: usize, g: &[f32], outputs: usize) -> Vec<f32> {
    let rows = x.len().checked_div(inputs).unwrap_or(0);
    if rows == 0 || outputs == 0 {
        return vec![0.0; inputs * outputs];
    }
    let part = rows.div_ceil((rows / PART_ROWS).clamp(1, MOST_PARTS));
    // Each part is `gᵀ·x`, the transpose of what is wanted: so the wider side is read along its
    // rows.
    let one = |(x, g): (&[f32], &[f32]), threads| {
        let rows = x.len() / inputs;
        let g = View::new(g, [rows, outputs]).transposed();
        product_on(g, View::new(x, [rows, inputs]), threads)
    };
    let sum = if part == rows {
        one((x, g), parallelism(inputs, outputs, rows))
    } else {
        let parts = x
            .par_chunks(part * inputs)
            .zip(g.par_chunks(part * outputs));
        let parts: Vec<Vec<f32>> = parts.map(|part| one(part, Parallelism::None)).collect();
        added_up(parts)
    };
    transposed(&sum, outputs, inputs)
}

/// `wᵀ` for `w [inputs, outputs]`, as so many rows are multiplied with it soonest: put row by row
/// into `room` where they are divided, for a weight is small beside them.
fn turned<'a>(
    w: &'a [f32],
    [inputs, outputs]: [usize; 2],
    rows: usize,
    room: &'a mut Vec<f32>,
) -> View<'a> {
    if !is_divided(rows, inputs, outputs) {
        return View::new(w, [inputs, outputs]).transposed();
    }
    *room = transposed(w, inputs, outputs);
    View::new(room, [outputs, inputs])
}

/// The sum of vectors of one length, in their order.
fn added_up(parts: Vec<Vec<f32>>) -> Vec<f32> {
    /// Values that stay in the cache while all parts go by.
    const STRETCH: usize = 1 << 12;
    let mut parts = parts.into_iter();
    let mut sum = parts.next().unwrap_or_default();
    let rest: Vec<Vec<f32>> = parts.collect();
    let stretches = sum.par_chunks_mut(STRETCH).enumerate();
    let stretches = stretches.with_min_len(SERIAL_VALUES / STRETCH);
    stretches.for_each(|(number, sum)| {
        for part in &rest {
            let terms = &part[number * STRETCH..][..sum.len()];
            for (sum, term) in sum.iter_mut().zip(terms) {
                *sum += term;
            }
        }
    });
    sum
}

/// The transpose of `[rows, columns]`.
fn transposed(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    /// Rows of the result that one thread writes at a time: a cache line of what it reads.
    const BAND: usize = 16;
    let mut out = vec![0.0; values.len()];
    let bands = out.par_chunks_mut(BAND * rows).enumerate();
    let bands = bands.with_min_len(SERIAL_VALUES / (BAND * rows).max(1));
    bands.for_each(|(band, out)| {
        for row in 0..rows {
            let line = &values[row * columns + band * BAND..];
            for (place, value) in out.iter_mut().skip(row).step_by(rows).zip(line) {
                *place = *value;
            }
        }
    });
    out
}

impl<B: Host> ProductKernels for B {
    #[allow(unsafe_code)]
    fn times(x: Float<Self>, w: Float<Self>, base: Option<Float<Self>>) -> Float<Self> {
        let ([rows, inputs], outputs) = (x.shape().dims(), w.shape()[1]);
        let (x, w) = (B::values(x), B::values(w));
        let (x, w) = (
            View::new(&x, [rows, inputs]),
            View::new(&w, [inputs, outputs]),
        );
        let Some(base) = base else {
            return B::tensor(product(x, w), [rows, outputs]);
        };
        if rows * outputs == 0 || inputs == 0 {
            return base;
        }
        B::update(base, |sums| {
            let sums = std::ptr::from_mut(sums) as *mut [MaybeUninit<f32>];
            // SAFETY: the same values, all of them set, and nothing takes them away.
            unsafe { multiply_on_all(&mut *sums, x, w, true) }
        })
    }

    fn rows_gradient(g: Float<Self>, w: Float<Self>) -> Float<Self> {
        let ([rows, outputs], inputs) = (g.shape().dims(), w.shape()[0]);
        let (g, w, mut room) = (B::values(g), B::values(w), Vec::new());
        let w = turned(&w, [inputs, outputs], rows, &mut room);
        B::tensor(product(View::new(&g, [rows, outputs]), w), [rows, inputs])
    }

    #[allow(unsafe_code)]
    fn rows_gradient_onto(base: Float<Self>, g: Float<Self>, w: Float<Self>) -> Float<Self> {
        let ([rows, outputs], inputs) = (g.shape().dims(), w.shape()[0]);
        if rows * inputs == 0 || outputs == 0 {
            return base;
        }
        let (g, w, mut room) = (B::values(g), B::values(w), Vec::new());
        let w = turned(&w, [inputs, outputs], rows, &mut room);
        B::update(base, |sums| {
            let first = std::ptr::from_mut(&mut sums[..rows * inputs]) as *mut [MaybeUninit<f32>];
            // SAFETY: the same values, all of them set, and nothing takes them away.
            unsafe { multiply_on_all(&mut *first, View::new(&g, [rows, outputs]), w, true) }
        })
    }

    fn weight_gradient(x: Float<Self>, g: Float<Self>) -> Float<Self> {
        let (inputs, outputs) = (x.shape()[1], g.shape()[1]);
        let (x, g) = (B::values(x), B::values(g));
        B::tensor(weight_gradient(&x, inputs, &g, outputs), [inputs, outputs])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::sparse::drawn;

    /// `xᵀ·g` term by term, in double precision.
    fn plain(x: &[f32], inputs: usize, g: &[f32], outputs: usize) -> Vec<f64> {
        let mut sums = vec![0.0; inputs * outputs];
        for (x, g) in x.chunks(inputs).zip(g.chunks(outputs)) {
            for (i, x) in x.iter().enumerate() {
                for (o, g) in g.iter().enumerate() {
                    sums[i * outputs + o] += f64::from(*x) * f64::from(*g);
                }
            }
        }
        sums
    }

    fn in_a_pool_of(threads: usize, task: impl FnOnce() -> Vec<f32> + Send) -> Vec<f32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(task)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_product_divided_by_rows_has_the_bits_of_the_whole(
            // From those on that are worth several threads, and such as leave a single row.
            more in prop_oneof![0..5 * PIECE_ROWS, Just(PIECE_ROWS + 1)],
            inner in 100..NARROW + 9,
            columns in prop_oneof![1_usize..9, 64_usize..90],
            seed in any::<u32>().prop_map(u64::from),
            adds in any::<bool>(),
        ) {
            let least = SERIAL_WORK.div_ceil(inner * columns).next_multiple_of(PIECE_ROWS);
            let rows = least + more;
            let (a, b) = (drawn::values(rows * inner, seed), drawn::values(inner * columns, seed + 1));
            let (a, b) = (View::new(&a, [rows, inner]), View::new(&b, [inner, columns]));
            let mut sums = [(); 2].map(|()| drawn::values(rows * columns, seed + 2));
            let [divided, whole] = &mut sums;
            let divided = std::ptr::from_mut(divided.as_mut_slice()) as *mut [MaybeUninit<f32>];
            // SAFETY: values of vectors, all of them set, as many as the product has.
            #[allow(unsafe_code)]
            unsafe {
                multiply_on_all(&mut *divided, a, b, adds);
                multiply(whole.as_mut_ptr(), a, b, adds, Parallelism::None);
            }
            let [divided, whole] = sums.map(|sums| sums.into_iter().map(f32::to_bits));
            prop_assert!(divided.eq(whole), "{rows} rows");

            // A right side that lies column by column, and the same put row by row.
            let (w, mut room) = (drawn::values(columns * inner, seed + 3), Vec::new());
            let lying = View::new(&w, [columns, inner]).transposed();
            let whole = product_on(a, lying, Parallelism::None);
            let divided = product(a, turned(&w, [columns, inner], rows, &mut room));
            let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits);
            prop_assert!(bits(divided).eq(bits(whole)), "{rows} rows, turned");
        }

        #[test]
        fn the_gradient_of_a_weight_is_the_sum_over_all_rows_whatever_the_threads(
            // With one part, with several, and with one that is shorter than the others.
            rows in prop_oneof![0_usize..40, 3 * PART_ROWS - 9..3 * PART_ROWS + 40],
            inputs in 1_usize..40,
            outputs in 1_usize..40,
            seed in any::<u32>().prop_map(u64::from),
        ) {
            let x = drawn::values(rows * inputs, seed);
            let g = drawn::values(rows * outputs, seed + 1);
            let found = in_a_pool_of(1, || weight_gradient(&x, inputs, &g, outputs));
            let expected = plain(&x, inputs, &g, outputs);
            prop_assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                let off = (f64::from(*found) - expected).abs();
                prop_assert!(off < 1e-5 * (rows as f64 + 1.0), "{found} for {expected}");
            }
            let with_three = in_a_pool_of(3, || weight_gradient(&x, inputs, &g, outputs));
            prop_assert_eq!(found, with_three);
        }
    }
}
