//! Where a matrix in stripes is cut.

use std::ops::Range;

/// The rows of each stripe, of `rows` in all; one stripe without any for none.
pub(super) fn stripes(rows: usize, stripe: usize) -> impl Iterator<Item = Range<usize>> {
    (0..rows.max(1))
        .step_by(stripe)
        // `usize::MAX` stands for no bound, to which nothing can be added.
        .map(move |start| start..start.saturating_add(stripe).min(rows))
}
