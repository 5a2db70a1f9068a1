//! EC-Graph: rows and gradients in few bits, with what was left out sent later.

use crate::common::Case;

#[test]
fn it_trains_about_as_well_as_exact_training() {
    let [full, few_bits] = ["full", "ecgraph"].map(|kind| Case::learnt(kind, ""));
    assert!(few_bits > full - 0.03, "{few_bits} instead of {full}");
}
