//! How many bits the rows of every message are sent with, from how far their entries spread.
//!
//! A group of `n_g` rows with `Σ (max − min)²` of `β_g` loses, at `b` bits, at most about
//! `β_g / (2ᵇ − 1)²` times `n/6` for width `n` (in variance), and takes `b n_g n` bits. For each
//! layer and direction the groups of all messages get the bits that minimise
//!
//! ```text
//!   λ · (V(b) − V(8)) / (V(2) − V(8)) + (1 − λ) · (T(b) − T(2)) / (T(8) − T(2))
//!   V = Σ_g β_g / (2^{b_g} − 1)²,  T = Σ_g n_g b_g
//! ```
//!
//! This is the objective of `AdaQP`'s paper and code, with their normalisation from the worst to
//! the best of either term, but for the time: there `T` is the sum over rounds of the slowest
//! message, by a measured latency and bandwidth of each pair, so that messages shorter than those
//! get more bits for nothing; here it is the time of all messages over equal links. So each group
//! has its own best choice, and no solver is needed. Where messages differ in length, as over METIS
//! parts, theirs sends more bytes than here once bits are assigned.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::graph::BoundaryCounts;
use crate::net::{Bits, Codec, CodecKey, CodecLane, ROW_BITS, RowBits, Rows, Tally, Watcher, Way};

/// A message of every epoch.
type Message = (u32, CodecLane);

/// The groups of rows of all messages that are quantised, one after another.
#[derive(Debug)]
pub(crate) struct Groups {
    /// Rows of a group; the last one of a message may have fewer.
    size: usize,
    /// The groups of a message, and its rows.
    messages: BTreeMap<Message, (Range<usize>, usize)>,
    count: usize,
}

impl Groups {
    /// Those of the rows of `layers`: forward and, from layer `first` on, their gradients back.
    pub(crate) fn new(
        boundary: &BoundaryCounts,
        layers: Range<usize>,
        first: usize,
        size: usize,
    ) -> Self {
        let (mut messages, mut count) = (BTreeMap::new(), 0);
        for layer in layers {
            for (reader, part) in boundary.parts.iter().enumerate() {
                for &(owner, rows) in &part.receives {
                    for way in [Way::Forward, Way::Back] {
                        if layer < first && way == Way::Back {
                            continue; // features have no gradient
                        }
                        let lane = CodecLane {
                            owner,
                            reader: reader as u32,
                            way,
                        };
                        let groups = count..count + rows.div_ceil(size);
                        count = groups.end;
                        messages.insert((layer as u32, lane), (groups, rows));
                    }
                }
            }
        }
        Self {
            size,
            messages,
            count,
        }
    }

    /// Number of groups of all messages.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Rows of each group of a message.
    fn rows(&self, rows: usize) -> impl Iterator<Item = usize> + use<> {
        let size = self.size;
        (0..rows)
            .step_by(size)
            .map(move |first| size.min(rows - first))
    }

    /// The bits of all groups, given the `Σ (max − min)²` of each.
    pub(crate) fn assign(&self, spreads: &[f32], lambda: f64) -> RowBits {
        let mut exchanges: BTreeMap<(u32, Way), Vec<&Message>> = BTreeMap::new();
        for message in self.messages.keys() {
            let exchange = (message.0, message.1.way);
            exchanges.entry(exchange).or_default().push(message);
        }
        let mut bits = BTreeMap::new();
        for messages in exchanges.into_values() {
            let groups = messages.iter().flat_map(|message| {
                let (places, rows) = &self.messages[*message];
                let spreads = places.clone().map(|place| f64::from(spreads[place]));
                spreads.zip(self.rows(*rows))
            });
            let groups: Vec<(f64, usize)> = groups.collect();
            let mut best = best(&groups, lambda).into_iter();
            for message in messages {
                let count = self.messages[message].0.len();
                bits.insert(*message, best.by_ref().take(count).collect());
            }
        }
        RowBits::Assigned {
            group: self.size,
            bits: Arc::new(bits),
        }
    }

    /// Bits of a row, on average over all messages.
    pub(crate) fn mean_bits(&self, bits: &RowBits, widths: &[usize]) -> Option<f64> {
        let RowBits::Assigned { bits, .. } = bits else {
            return None;
        };
        let (mut sum, mut entries) = (0.0, 0.0);
        for (message, (_, rows)) in &self.messages {
            let width = widths[message.0 as usize] as f64;
            for (bits, rows) in bits[message].iter().zip(self.rows(*rows)) {
                entries += rows as f64 * width;
                sum += rows as f64 * width * f64::from(bits.count());
            }
        }
        (entries > 0.0).then(|| sum / entries)
    }
}

/// What a level loses, but for a factor: 1 / (2ᵇ − 1)².
fn loss(bits: Bits) -> f64 {
    f64::from((1_u32 << bits.count()) - 1).powi(-2)
}

/// The bits of each group of one exchange, given its spread and rows; the fewest of equally good
/// ones.
fn best(groups: &[(f64, usize)], lambda: f64) -> Vec<Bits> {
    let [lowest, .., highest] = ROW_BITS;
    let spread: f64 = groups.iter().map(|(spread, _)| spread).sum();
    let rows: usize = groups.iter().map(|(_, rows)| rows).sum();
    let variance = spread * (loss(lowest) - loss(highest));
    let time = rows as f64 * f64::from(highest.count() - lowest.count());
    let choose = |&(spread, rows): &(f64, usize)| {
        let cost = |bits: &Bits| {
            let lost = if variance > 0.0 {
                lambda * spread * loss(*bits) / variance
            } else {
                0.0 // there is nothing to lose
            };
            lost + (1.0 - lambda) * rows as f64 * f64::from(bits.count()) / time
        };
        let better = |a: &Bits, b: &Bits| cost(a).total_cmp(&cost(b));
        ROW_BITS.into_iter().min_by(better).unwrap_or(highest)
    };
    groups.iter().map(choose).collect()
}

/// Where the spreads of an epoch's rows, `Σ (max − min)²` of each group, are taken down.
#[derive(Clone)]
pub(crate) struct Spreads {
    /// Where each message's groups are.
    pub groups: Arc<Groups>,
    /// Those of all groups.
    pub tally: Arc<Tally>,
}

impl Watcher for Spreads {
    fn sees(&self, _codec: &dyn Codec, rows: &Rows<'_>, _bytes: &[u8], key: CodecKey) {
        let message = key.lane.map(|lane| (key.layer, lane));
        let known = message.and_then(|message| self.groups.messages.get(&message));
        if let Some((places, _)) = known {
            let groups = rows.values().chunks(self.groups.size * rows.width().max(1));
            let spreads: Vec<f32> = groups
                .map(|group| group.chunks(rows.width().max(1)).map(spread).sum())
                .collect();
            self.tally.set(places.start, &spreads);
        }
    }
}

/// (max − min)² of a row; 0 of one that is not finite.
fn spread(row: &[f32]) -> f32 {
    let low = row.iter().copied().fold(f32::INFINITY, f32::min);
    let high = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let spread = (high - low) * (high - low);
    if spread.is_finite() { spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{BoundaryPlan, Csr, Features, Partition};
    use crate::net::{QuantiseRows, Watched};
    use proptest::prelude::*;

    /// The objective, as the head of this file has it.
    fn objective(groups: &[(f64, usize)], bits: &[Bits], lambda: f64) -> f64 {
        let variance = |bits: &[Bits]| -> f64 {
            let each = groups.iter().zip(bits);
            each.map(|((spread, _), &bits)| spread * loss(bits)).sum()
        };
        let time = |bits: &[Bits]| -> f64 {
            let each = groups.iter().zip(bits);
            each.map(|((_, rows), bits)| *rows as f64 * f64::from(bits.count()))
                .sum()
        };
        let all = |bits| vec![bits; groups.len()];
        let (two, eight) = (all(Bits::Two), all(Bits::Eight));
        lambda * (variance(bits) - variance(&eight)) / (variance(&two) - variance(&eight))
            + (1.0 - lambda) * (time(bits) - time(&two)) / (time(&eight) - time(&two))
    }

    proptest! {
        #[test]
        fn no_other_assignment_is_better(
            groups in prop::collection::vec((1e-3_f64..100.0, 1_usize..50), 1..6), lambda in 0.0_f64..1.0,
        ) {
            let found = objective(&groups, &best(&groups, lambda), lambda);
            for number in 0..3_usize.pow(u32::try_from(groups.len()).unwrap()) {
                let digit = |at: u32| ROW_BITS[number / 3_usize.pow(at) % 3];
                let other: Vec<Bits> = (0..).take(groups.len()).map(digit).collect();
                prop_assert!(found <= objective(&groups, &other, lambda) + 1e-12);
            }
        }

        #[test]
        fn a_group_that_spreads_more_has_no_fewer_bits_and_more_weight_on_variance_none_fewer(
            spreads in prop::collection::vec(0.0_f64..100.0, 2..20), lambda in 0.0_f64..0.9,
        ) {
            let mut groups: Vec<(f64, usize)> = spreads.into_iter().map(|s| (s, 10)).collect();
            groups.sort_by(|a, b| a.0.total_cmp(&b.0));
            let bits = best(&groups, lambda);
            prop_assert!(bits.is_sorted());
            let heavier = best(&groups, lambda + 0.1);
            prop_assert!(bits.iter().zip(&heavier).all(|(a, b)| a <= b));
        }
    }

    #[test]
    fn all_weight_on_time_takes_two_bits_and_all_on_variance_eight() {
        let groups = [(1.0, 3), (5.0, 100), (0.1, 1)];
        assert_eq!(best(&groups, 0.0), [Bits::Two; 3]);
        assert_eq!(best(&groups, 1.0), [Bits::Eight; 3]);
        assert_eq!(best(&[(0.0, 3), (0.0, 2)], 0.5), [Bits::Two; 2]);
    }

    #[test]
    fn messages_are_cut_in_groups_and_traced_in_their_places() {
        // Nodes 0 to 4 of worker 0 are all read by worker 1, whose nodes 5 and 6 are read by worker
        // 0.
        let edges = [(0, 5), (1, 5), (2, 5), (3, 6), (4, 6)];
        let graph = Csr::undirected(7, edges.into_iter());
        let partition = Partition {
            parts: 2,
            assignment: vec![0, 0, 0, 0, 0, 1, 1],
        };
        let boundary = BoundaryPlan::new(&graph, &partition);
        let boundary = BoundaryCounts::new(&boundary, &Features::none(7));
        let groups = Arc::new(Groups::new(&boundary, 0..2, 1, 2));
        // Three groups of five rows and one of two; forward at layer 0, and both ways at layer 1.
        assert_eq!(groups.count(), 3 * (3 + 1));
        let spreads = Arc::new(Tally::new(12));
        let traced = Watched {
            codec: Arc::new(QuantiseRows {
                bits: RowBits::Uniform(Bits::Eight),
            }),
            watcher: Arc::new(Spreads {
                groups: Arc::clone(&groups),
                tally: Arc::clone(&spreads),
            }),
        };
        let key = CodecKey::new(0, 1, 0).between(0, 1, Way::Back);
        let values = [0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 4.0, 0.0, 5.0];
        let _ = traced.encode(&Rows::new(&values, 2), key);
        let (places, rows) = groups.messages[&(1, key.lane.unwrap())].clone();
        assert_eq!((places.len(), rows), (3, 5));
        let values = spreads.values();
        assert_eq!(values[places.clone()], [1.0 + 4.0, 9.0 + 16.0, 25.0]);
        assert_eq!(values.iter().sum::<f32>(), 55.0, "nothing else is written");
        let assigned = groups.assign(&values, 0.5);
        assert!(groups.mean_bits(&assigned, &[3, 2]).unwrap() < 8.0);
        let RowBits::Assigned { group: 2, bits } = assigned else {
            panic!("it is assigned in groups of two");
        };
        assert_eq!(bits.len(), 2 * 3);
        assert!(bits[&(1, key.lane.unwrap())].is_sorted());
    }
}
