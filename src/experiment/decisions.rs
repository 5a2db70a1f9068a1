//! What training decided on its way, as rows of a table and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::rows::{DecisionKind, DecisionRow};
use crate::net::{Bits, CodecLane, ROW_BITS, RowBits, TrafficKind, Way};
use crate::sim::{Broadcasts, Decision};

/// A row in which everything but the run it belongs to is filled in.
type Blank<'a> = &'a dyn Fn() -> DecisionRow;

/// The rows of a decision.
pub(super) fn rows_of(epoch: usize, decision: &Decision, blank: Blank<'_>) -> Vec<DecisionRow> {
    let row = |value: f64, decision: DecisionKind| DecisionRow {
        epoch: epoch as u64,
        decision,
        value,
        ..blank()
    };
    match decision {
        Decision::Ratio(ratio) => vec![row(*ratio, DecisionKind::Ratio)],
        Decision::Bits(RowBits::Assigned { group, bits }) => {
            // Features have no gradient: where rows of the first layer have one, they are a
            // product.
            let back = |(layer, lane): &(u32, CodecLane)| *layer == 0 && lane.way == Way::Back;
            let first = if bits.keys().any(back) {
                TrafficKind::Activation
            } else {
                TrafficKind::Feature
            };
            let message = |(&(layer, lane), bits): (&(u32, CodecLane), &Vec<Bits>)| {
                let lane = lane.lane(layer, first);
                let row = |(number, bits): (usize, &Bits)| DecisionRow {
                    kind: Some(lane.kind),
                    layer: Some(layer.into()),
                    from: Some(lane.from.into()),
                    to: Some(lane.to.into()),
                    group: Some(number as u64),
                    rows: Some(*group as u64),
                    ..row(bits.count().into(), DecisionKind::Bits)
                };
                bits.iter().enumerate().map(row).collect::<Vec<_>>()
            };
            bits.iter().flat_map(message).collect()
        }
        Decision::ReaderBits(bits) => {
            let row = |(reader, bits): (u64, &Bits)| DecisionRow {
                to: Some(reader),
                ..row(bits.count().into(), DecisionKind::Bits)
            };
            (0..).zip(bits).map(row).collect()
        }
        Decision::Broadcasts(broadcasts) => {
            let lane = |(&(layer, way), workers): (&(u32, Way), &Vec<bool>)| {
                let row = |(worker, &sends): (u64, &bool)| DecisionRow {
                    kind: Some(match way {
                        Way::Forward => TrafficKind::Activation,
                        Way::Back => TrafficKind::ActivationGradient,
                    }),
                    layer: Some(layer.into()),
                    from: Some(worker),
                    ..row(f64::from(u8::from(sends)), DecisionKind::Broadcast)
                };
                (0..).zip(workers).map(row).collect::<Vec<_>>()
            };
            broadcasts.iter().flat_map(lane).collect()
        }
        // Uniform and random bits follow from options and seed: nothing was decided.
        Decision::Bits(_) => Vec::new(),
    }
}

/// The decisions of one run, by epoch. Rows that say nothing are left out.
pub(super) fn decisions_of<'a>(
    rows: impl Iterator<Item = &'a DecisionRow>,
) -> BTreeMap<usize, Decision> {
    let mut decisions = BTreeMap::new();
    let mut of_readers: BTreeMap<usize, Vec<Bits>> = BTreeMap::new();
    let mut assigned: BTreeMap<usize, (usize, BTreeMap<_, Vec<Bits>>)> = BTreeMap::new();
    let mut broadcasts: BTreeMap<usize, Broadcasts> = BTreeMap::new();
    for row in rows {
        let epoch = row.epoch as usize;
        if row.decision == DecisionKind::Ratio {
            decisions.insert(epoch, Decision::Ratio(row.value));
            continue;
        }
        let way = if row.kind == Some(TrafficKind::ActivationGradient) {
            Way::Back
        } else {
            Way::Forward
        };
        if let (DecisionKind::Broadcast, Some(layer)) = (row.decision, row.layer) {
            // Those of all workers, in their order.
            let of_epoch = broadcasts.entry(epoch).or_default();
            let workers = of_epoch.entry((layer as u32, way)).or_default();
            workers.push(row.value > 0.0);
            continue;
        }
        let of_bits = |bits: &Bits| f64::from(bits.count()) == row.value;
        if row.from.is_none() {
            let bits = Bits::ALL.into_iter().find(of_bits);
            // Those of all workers, in their order.
            of_readers.entry(epoch).or_default().extend(bits);
            continue;
        }
        let (Some(layer), Some(from), Some(to), Some(rows), Some(bits)) = (
            row.layer,
            row.from,
            row.to,
            row.rows,
            ROW_BITS.into_iter().find(of_bits),
        ) else {
            continue;
        };
        let lane = CodecLane::between(from as u32, to as u32, way);
        let (group, messages) = assigned.entry(epoch).or_default();
        // All groups of an epoch are of one size, and those of a message come in their order.
        *group = rows as usize;
        messages.entry((layer as u32, lane)).or_default().push(bits);
    }
    let of_readers = of_readers.into_iter();
    decisions.extend(of_readers.map(|(epoch, bits)| (epoch, Decision::ReaderBits(bits))));
    let broadcasts = broadcasts.into_iter();
    decisions.extend(broadcasts.map(|(epoch, of)| (epoch, Decision::Broadcasts(of))));
    for (epoch, (group, bits)) in assigned {
        let bits = Arc::new(bits);
        decisions.insert(epoch, Decision::Bits(RowBits::Assigned { group, bits }));
    }
    decisions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_survive_the_table() {
        let lanes = [
            (0, 1, Way::Forward),
            (1, 0, Way::Forward),
            (1, 0, Way::Back),
        ];
        let bits = lanes.into_iter().map(|(owner, reader, way)| {
            let lane = CodecLane { owner, reader, way };
            ((2, lane), vec![Bits::Two, Bits::Eight, Bits::Four])
        });
        let assigned = Decision::Bits(RowBits::Assigned {
            group: 100,
            bits: Arc::new(bits.collect()),
        });
        let of_readers = Decision::ReaderBits(vec![Bits::One, Bits::Eight, Bits::One]);
        let broadcasts = Decision::Broadcasts(BTreeMap::from([
            ((1, Way::Forward), vec![true, false, false]),
            ((1, Way::Back), vec![false; 3]),
        ]));
        let all = BTreeMap::from([
            (3, Decision::Ratio(21.375)),
            (5, broadcasts),
            (7, of_readers),
            (50, assigned),
        ]);
        let rows = all.iter();
        let rows = rows.flat_map(|(&at, decision)| rows_of(at, decision, &DecisionRow::default));
        let rows: Vec<DecisionRow> = rows.collect();
        assert_eq!(rows.len(), 1 + 3 + 9 + 6);
        assert_eq!(decisions_of(rows.iter()), all);
    }

    #[test]
    fn rows_of_the_first_layer_are_features_unless_they_have_a_gradient() {
        let kinds = |ways: &[Way]| {
            let lane = |&way: &Way| {
                let lane = CodecLane {
                    owner: 0,
                    reader: 1,
                    way,
                };
                ((0, lane), vec![Bits::Two])
            };
            let assigned = Decision::Bits(RowBits::Assigned {
                group: 100,
                bits: Arc::new(ways.iter().map(lane).collect()),
            });
            let rows = rows_of(0, &assigned, &DecisionRow::default);
            let kinds: Vec<_> = rows.into_iter().filter_map(|row| row.kind).collect();
            kinds
        };
        assert_eq!(kinds(&[Way::Forward]), [TrafficKind::Feature]);
        let both = [TrafficKind::Activation, TrafficKind::ActivationGradient];
        assert_eq!(kinds(&[Way::Forward, Way::Back]), both);
    }
}
