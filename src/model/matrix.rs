//! Dense rows on a device, in stripes where one of its buffers does not hold them all.
//!
//! A kernel on a graphics device reaches so many bytes of a buffer and no more: 128 MiB on software
//! drivers, 2 or 4 GiB on most cards; past that some compute nothing, without a word. So whatever
//! has a row for each node is a [`Matrix`]: one tensor where there is no such bound, or several
//! that stand one below the other. What is done to rows one by one is done to each stripe; what
//! gathers rows of neighbours is in [`tiles`](super::tiles).

use std::any::Any;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use super::head::first_rows;
use super::stripes::stripes;

/// Where the matrices of a worker lie.
#[derive(Clone, Debug)]
pub struct Place {
    /// The device, without automatic differentiation.
    pub device: Device,
    /// Most rows of one tensor, at least 1.
    pub stripe: usize,
}

impl Place {
    /// A device that holds matrices of any size in one tensor.
    pub const fn unbounded(device: Device) -> Self {
        Self {
            device,
            stripe: usize::MAX,
        }
    }
}

/// Rows of `width` columns from the host, in tensors of at most `stripe` rows.
fn upload(values: Vec<f32>, width: usize, stripe: usize, device: &Device) -> Vec<Tensor<2>> {
    let one = |values: Vec<f32>| {
        // Without columns nothing says how many rows there are.
        let rows = values.len().checked_div(width).unwrap_or(0);
        Tensor::from_data(TensorData::new(values, [rows, width]), device)
    };
    // Without a bound the product would overflow.
    let each = stripe.saturating_mul(width);
    if values.len() <= each {
        return vec![one(values)];
    }
    values.chunks(each).map(|rows| one(rows.to_vec())).collect()
}

/// Rows on a device, `[rows, width]`.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// At least one; each has `stripe` rows, but the last, which has no more.
    parts: Vec<Tensor<2>>,
    stripe: usize,
    memo: Option<Memo>,
}

/// What was last made of a matrix, beside what else it was made of.
type Memo = Arc<Mutex<Option<(Arc<dyn Any + Send + Sync>, Matrix)>>>;

impl From<Tensor<2>> for Matrix {
    /// One tensor, whatever its size.
    fn from(rows: Tensor<2>) -> Self {
        Self::of(vec![rows], usize::MAX)
    }
}

impl Matrix {
    /// Values on the host, row by row.
    ///
    /// # Panics
    /// If they are no rows of `width` columns.
    pub fn from_values(values: Vec<f32>, width: usize, place: &Place) -> Self {
        Self::of(
            upload(values, width, place.stripe, &place.device),
            place.stripe,
        )
    }

    /// Stripes of `stripe` rows each, but the last.
    pub(super) fn of(parts: Vec<Tensor<2>>, stripe: usize) -> Self {
        debug_assert!(!parts.is_empty(), "a matrix has a stripe");
        Self {
            parts,
            stripe,
            memo: None,
        }
    }

    /// The matrix as one that a training reads again and again: it remembers what was last made of
    /// it by `once`, as long as it is there.
    pub(crate) fn lasting(self) -> Self {
        Self {
            memo: Some(Memo::default()),
            ..self
        }
    }

    /// What `make` makes of this matrix and of `other`; of one that is [lasting](Self::lasting) it
    /// is made once, until it is asked for with another `other`.
    pub(super) fn once<T: Any + Send + Sync>(
        &self,
        other: &Arc<T>,
        make: impl FnOnce() -> Self,
    ) -> Self {
        let Some(memo) = &self.memo else {
            return make();
        };
        // A panic while it was held left it as it was, or empty: either is right.
        let last = || memo.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, made)) = &*last()
            && std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(other))
        {
            return made.clone();
        }
        // What is remembered holds `other`, too, so that no later one can have its address.
        let made = make();
        *last() = Some((Arc::clone(other) as _, made.clone()));
        made
    }

    /// The stripes, from the first row on.
    pub fn parts(&self) -> &[Tensor<2>] {
        &self.parts
    }

    /// The only stripe of a matrix that is not [lasting](Self::lasting).
    pub(super) fn passing(&self) -> Option<&Tensor<2>> {
        match (&self.parts[..], &self.memo) {
            ([rows], None) => Some(rows),
            _ => None,
        }
    }

    /// Most rows of a stripe.
    pub const fn stripe(&self) -> usize {
        self.stripe
    }

    /// Whether it lies in the memory of the host, of which no buffer is too small.
    pub(crate) fn is_on_host(&self) -> bool {
        self.stripe == usize::MAX && self.parts[0].device() == Device::flex()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.dims()[0]).sum()
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.parts[0].dims()[1]
    }

    /// The values on the host, row by row; empty when the device failed.
    pub fn into_values(self) -> Vec<f32> {
        let host = |part: Tensor<2>| part.into_data().try_into_vec::<f32>().ok();
        let parts: Option<Vec<Vec<f32>>> = self.parts.into_iter().map(host).collect();
        let mut parts = parts.unwrap_or_default().into_iter();
        let mut values = parts.next().unwrap_or_default();
        parts.for_each(|part| values.extend(part));
        values
    }

    /// All rows in one tensor; for narrow matrices.
    pub(crate) fn into_tensor(mut self) -> Tensor<2> {
        if self.parts.len() == 1 {
            return self.parts.remove(0);
        }
        Tensor::cat(self.parts, 0)
    }

    /// With each stripe through `action`, which keeps its rows.
    pub fn map(self, action: impl FnMut(Tensor<2>) -> Tensor<2>) -> Self {
        Self::of(self.parts.into_iter().map(action).collect(), self.stripe)
    }

    /// The stripes beside those of another matrix.
    fn pairs(self, other: Self) -> impl Iterator<Item = (Tensor<2>, Tensor<2>)> {
        let heights = |matrix: &Self| -> Vec<usize> {
            matrix.parts.iter().map(|part| part.dims()[0]).collect()
        };
        // Else the zip below would drop what one of them has more, without a word.
        assert_eq!(heights(&self), heights(&other), "stripes of two matrices");
        self.parts.into_iter().zip(other.parts)
    }

    /// With each stripe and that of another matrix through `action`.
    ///
    /// # Panics
    /// If the two have not the same stripes.
    pub fn zip(self, other: Self, action: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>) -> Self {
        let stripe = self.stripe;
        let pairs = self.pairs(other);
        Self::of(
            pairs.map(|(own, other)| action(own, other)).collect(),
            stripe,
        )
    }

    /// The sum of what `action` makes of each stripe and that of another matrix.
    ///
    /// # Panics
    /// If the two have not the same stripes.
    pub fn zip_sum(
        self,
        other: Self,
        action: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<1>,
    ) -> Tensor<1> {
        let mut pairs = self.pairs(other);
        let (own, others) = pairs.next().expect("a matrix has a stripe");
        let first = action(own, others);
        // From the first stripe on: the order of the sum is fixed, and one stripe has no sum at
        // all.
        pairs.fold(first, |sum, (own, others)| sum + action(own, others))
    }

    /// The first `rows` rows; there has to be one.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn head(&self, rows: usize) -> Self {
        let kept = stripes(rows, self.stripe).zip(&self.parts);
        let part = |(range, part): (Range<usize>, &Tensor<2>)| match range.len() {
            // A whole stripe is shared and not copied.
            all if all == part.dims()[0] => part.clone(),
            some => first_rows(part.clone(), some),
        };
        let head = Self::of(kept.map(part).collect(), self.stripe);
        assert_eq!(head.rows(), rows, "so many rows of a matrix");
        head
    }

    /// The values of the rows from `start` on, on the host; empty when the device failed.
    pub(crate) fn values_from(&self, start: usize) -> Vec<f32> {
        let mut rest = Vec::new();
        for (range, part) in stripes(self.rows(), self.stripe).zip(&self.parts) {
            let skipped = start.saturating_sub(range.start).min(range.len());
            if skipped < range.len() {
                rest.push(part.clone().narrow(0, skipped, range.len() - skipped));
            }
        }
        // None are left where `start` is the end, so that this is no matrix by itself.
        let rows = Self {
            parts: rest,
            stripe: self.stripe,
            memo: None,
        };
        rows.into_values()
    }

    /// With more rows below, which come from the host.
    pub(crate) fn followed_by(mut self, mut values: Vec<f32>, place: &Place) -> Self {
        let (width, stripe) = (self.width(), self.stripe);
        // It becomes another matrix.
        self.memo = None;
        let last = self.parts.pop().expect("a matrix has a stripe");
        // The last stripe is filled up first: all but the last must be full.
        let room = (stripe - last.dims()[0]).saturating_mul(width);
        let rest = values.split_off(room.min(values.len()));
        let upload = |values| upload(values, width, stripe, &place.device);
        self.parts.push(if values.is_empty() {
            last
        } else {
            Tensor::cat([vec![last], upload(values)].concat(), 0)
        });
        if !rest.is_empty() {
            self.parts.extend(upload(rest));
        }
        self
    }

    /// The given rows in the given order; there has to be one.
    pub fn select(&self, rows: &[u32]) -> Self {
        let device = self.parts[0].device();
        let index = |rows: &[u32]| -> Tensor<1, Int> {
            // Integers of burn are 32 bits and signed on flex and wgpu; a row's number is below
            // 2³¹.
            let rows: Vec<i32> = rows.iter().map(|&row| row as i32).collect();
            let count = rows.len();
            Tensor::from_data(TensorData::new(rows, [count]), &device)
        };
        let part = |rows: &[u32]| {
            if let [all] = self.parts.as_slice() {
                return all.clone().select(0, index(rows));
            }
            // Those of each stripe one after another, and then into their order.
            let (mut found, mut order, mut next) = (Vec::new(), vec![0; rows.len()], 0);
            for (range, part) in stripes(self.rows(), self.stripe).zip(&self.parts) {
                let mut within = Vec::new();
                for (place, &row) in rows.iter().enumerate() {
                    if range.contains(&(row as usize)) {
                        // less than the row's own number
                        within.push(row - range.start as u32);
                        order[place] = next;
                        next += 1;
                    }
                }
                if !within.is_empty() {
                    found.push(part.clone().select(0, index(&within)));
                }
            }
            Tensor::cat(found, 0).select(0, index(&order))
        };
        Self::of(rows.chunks(self.stripe).map(part).collect(), self.stripe)
    }

    /// The values without their history.
    pub fn inner(self) -> Self {
        self.map(Tensor::inner)
    }

    /// The values as what gradients are asked of.
    pub fn leaf(self) -> Self {
        self.map(|part| Tensor::from_inner(part).require_grad())
    }

    /// The gradient with respect to this leaf, if anything depends on it.
    pub fn gradient(self, gradients: &mut Gradients) -> Option<Self> {
        // Removed, so that a gradient's memory is free as soon as it has been used.
        let found = self.parts.iter().map(|part| part.grad_remove(gradients));
        let found: Vec<Option<Tensor<2>>> = found.collect();
        if found.iter().all(Option::is_none) {
            return None;
        }
        // Where only some stripes have a gradient, the others have zeros: a matrix keeps its
        // stripes.
        let zeros = |part: Tensor<2>| part.inner().zeros_like();
        let pairs = found.into_iter().zip(self.parts);
        let parts = pairs.map(|(found, part)| found.unwrap_or_else(|| zeros(part)));
        Some(Self::of(parts.collect(), self.stripe))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(stripe: usize) -> Place {
        Place {
            device: Device::flex(),
            stripe,
        }
    }

    /// As many rows of `width` columns as asked for, all values different.
    fn numbered(rows: usize, width: usize, first: usize) -> Vec<f32> {
        (first..first + rows * width).map(|at| at as f32).collect()
    }

    fn assert_stripes(matrix: &Matrix, rows: usize) {
        let heights = matrix.parts().iter().map(|part| part.dims()[0]);
        let expected = stripes(rows, matrix.stripe()).map(|range| range.len());
        assert!(heights.eq(expected), "every stripe but the last is full");
    }

    #[test]
    fn of_a_lasting_matrix_the_same_is_made_once() {
        use std::cell::Cell;

        let made = Cell::new(0.0);
        let next = || {
            made.set(made.get() + 1.0);
            Matrix::from_values(vec![made.get()], 1, &place(8))
        };
        let of = |matrix: &Matrix, other| matrix.once(other, next).into_values();
        let (one, two) = (Arc::new(1), Arc::new(1));
        let plain = Matrix::from_values(numbered(3, 2, 0), 2, &place(8));
        assert_eq!((of(&plain, &one), of(&plain, &one)), (vec![1.0], vec![2.0]));
        let lasting = plain.lasting();
        assert_eq!(
            (of(&lasting, &one), of(&lasting, &one)),
            (vec![3.0], vec![3.0])
        );
        // Equal is not the same, of copies that share values it is remembered for all, and of
        // what was made of it for none.
        assert_eq!(
            (of(&lasting, &two), of(&lasting, &one)),
            (vec![4.0], vec![5.0])
        );
        assert_eq!(of(&lasting.clone(), &one), [5.0]);
        assert_eq!(of(&lasting.map(|rows| rows), &one), [6.0]);
    }

    proptest! {
        #[test]
        fn stripes_are_taken_apart_and_put_together_as_one_matrix_is(
            rows in 1_usize..30,
            width in 1_usize..4,
            stripe in 1_usize..40,
            more in 0_usize..30,
            cut in 0.0_f64..1.0,
            picks in prop::collection::vec(0.0_f64..1.0, 1..40),
        ) {
            let (values, place) = (numbered(rows, width, 0), place(stripe));
            let matrix = Matrix::from_values(values.clone(), width, &place);
            assert_stripes(&matrix, rows);
            prop_assert_eq!((matrix.rows(), matrix.width()), (rows, width));
            prop_assert_eq!(&matrix.clone().into_values(), &values);

            let at = |share: f64| (share * rows as f64) as usize;
            let head = matrix.head(at(cut) + 1);
            assert_stripes(&head, at(cut) + 1);
            prop_assert_eq!(head.into_values(), values[..(at(cut) + 1) * width].to_vec());
            prop_assert_eq!(matrix.values_from(at(cut)), values[at(cut) * width..].to_vec());

            let below = numbered(more, width, 1000);
            let longer = matrix.clone().followed_by(below.clone(), &place);
            assert_stripes(&longer, rows + more);
            prop_assert_eq!(longer.into_values(), [values.clone(), below].concat());

            let picked: Vec<u32> = picks.iter().map(|&pick| at(pick) as u32).collect();
            let selected = matrix.select(&picked);
            assert_stripes(&selected, picked.len());
            let row = |&row: &u32| values[row as usize * width..][..width].to_vec();
            prop_assert_eq!(selected.into_values(), picked.iter().flat_map(row).collect::<Vec<f32>>());
        }
    }
}
