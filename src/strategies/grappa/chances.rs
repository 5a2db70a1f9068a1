//! Weights of edges by the chance that they are seen.

use super::estimators::edge_ht;
use super::layout::Layout;

/// What `edge_ht` multiplies the message from `u` to `v` by, rows of a working graph whose first
/// `inner` rows have in-edges: one over the probability that the worker of `v` holds `u`, and
/// nothing if this worker does not hold it now. `chunks` are those of the rows.
pub(super) fn inverse_chances(
    layout: &Layout<'_>,
    chunks: &[usize],
    inner: usize,
) -> impl Fn(u32, u32) -> f32 {
    let apart = edge_ht(layout.inclusion().pair(false)) as f32;
    move |v, u| {
        let (v, u) = (v as usize, u as usize);
        if v == u {
            1.0
        } else if u >= inner {
            0.0
        } else if layout.together(chunks[v], chunks[u]) {
            1.0
        } else {
            apart
        }
    }
}
