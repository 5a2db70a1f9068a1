//! By what the rows of a sampled block are normalised.

use serde::Deserialize;

use crate::graph::SampledLayer;
use crate::model::{Aggregation, Block};

/// The rule of a GCN and of means with self-loops.
///
/// A mean over neighbours alone, that of GraphSAGE without self-loops, is the same by both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum BlockDegrees {
    /// Degrees in the whole graph, and messages scaled by neighbours over those drawn: on average
    /// over all draws, what exact training aggregates.
    #[default]
    Global,
    /// As DGL's `GraphConv` has it: the number of neighbours drawn for a row that reads, and the
    /// number of rows that drew it for a row that is read; only rows that read are among their own
    /// messages.
    Block,
}

impl BlockDegrees {
    /// The block of a layer; `whole` has each input's degree in the whole graph.
    pub(super) fn block(
        self,
        layer: &SampledLayer,
        whole: &[usize],
        aggregation: Aggregation,
    ) -> Block {
        match self {
            Self::Global => Block::sampled(layer, whole, aggregation),
            Self::Block => Block::of_drawn(layer, aggregation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Lists;

    /// Rows 0, 1 and 2 drew one or both of their neighbours, row 3 of others among them.
    fn block(rule: BlockDegrees, aggregation: Aggregation) -> Vec<Vec<f32>> {
        let drawn: Lists = [vec![1, 3], vec![0, 3], vec![3]].into_iter().collect();
        let layer = SampledLayer::of(vec![0, 1, 2], &drawn, vec![5, 2, 4], 4, 4);
        rule.block(&layer, &[5, 2, 4, 7], aggregation).dense()
    }

    fn assert_close(ours: &[Vec<f32>], expected: &[[f32; 4]; 3]) {
        for (ours, expected) in ours.iter().flatten().zip(expected.iter().flatten()) {
            assert!((ours - expected).abs() < 5e-5, "{ours} is {expected} there");
        }
    }

    #[test]
    fn a_gcn_by_the_block_is_dgls() {
        // DGL 2.1.0: GraphConv(4, 4, norm="both", weight=False, bias=False) of the rows of an
        // identity, on to_block of these edges and loops of 0, 1 and 2.
        let dgl = [
            [0.4082, 0.4082, 0.0, 0.3333],
            [0.4082, 0.4082, 0.0, 0.3333],
            [0.0, 0.0, std::f32::consts::FRAC_1_SQRT_2, 0.4082],
        ];
        let ours = block(BlockDegrees::Block, Aggregation::SymmetricWithSelf);
        assert_close(&ours, &dgl);
    }

    #[test]
    fn a_mean_over_neighbours_is_that_of_those_drawn_by_both_rules() {
        let mean = [
            [0.0, 0.5, 0.0, 0.5],
            [0.5, 0.0, 0.0, 0.5],
            [0.0, 0.0, 0.0, 1.0],
        ];
        for rule in [BlockDegrees::Global, BlockDegrees::Block] {
            assert_close(&block(rule, Aggregation::Mean), &mean);
        }
    }

    #[test]
    fn a_mean_with_self_loops_counts_those_drawn_and_one() {
        let third = 1.0 / 3.0;
        let mean = [
            [third, third, 0.0, third],
            [third, third, 0.0, third],
            [0.0, 0.0, 0.5, 0.5],
        ];
        let ours = block(BlockDegrees::Block, Aggregation::MeanWithSelf);
        assert_close(&ours, &mean);
    }
}
