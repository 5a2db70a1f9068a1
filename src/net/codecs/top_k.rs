//! The largest entries of each row, and where they stand.

use super::bits::{BitReader, BitWriter, packed_bytes};
use super::draw::all_columns;
use crate::net::{CodecKey, Columns, NetError, RelativeError, Rows, Selection};

/// Keeps the k entries of every row that are largest in magnitude (Stich, Cordonnier and Jaggi,
/// *Sparsified SGD with Memory*, `NeurIPS` 2018); of equal ones the first, and what is not a number
/// before all.
///
/// Places cost bytes too: k is the largest for which values and places together take at most
/// 1/ratio of a plain row, at least 1. The places of a row take min(n, k·⌈log₂ n⌉) bits: a map with
/// one bit an entry, or a list, whichever is shorter. Where k = n there are none.
///
/// Biased; ‖x̃ − x‖² ≤ (1 − k/n) ‖x‖², with equality only where all entries are equally large.
///
/// The way back carries the k largest entries of the gradient with their own places: those of the
/// way forward would save the places, but say nothing about where the gradient is large, and a
/// receiver would have to remember them.
///
/// Encoded: ⌈rows·min(n, k·⌈log₂ n⌉)/8⌉ bytes of places, packed without gaps, then 4·rows·k bytes
/// of values, row after row, columns ascending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopK {
    /// Bits of a plain row over bits sent, 1 or more. Any other number sends all entries.
    pub ratio: f64,
    /// Bits that a value takes: 32, or what the second of two composed codecs makes of it, on
    /// average.
    pub value_bits: f64,
}

/// How the places of a row are written.
#[derive(Clone, Copy)]
struct Places {
    /// Bits of a column's number.
    number: u32,
    /// Whether one bit for each column is shorter.
    map: bool,
    /// Bits of a row.
    bits: usize,
}

impl Places {
    fn new(width: usize, kept: usize) -> Self {
        let number = usize::BITS - width.saturating_sub(1).leading_zeros();
        let list = kept * number as usize;
        Self {
            number,
            map: width < list,
            bits: width.min(list),
        }
    }
}

impl TopK {
    /// With values as they are.
    pub const fn new(ratio: f64) -> Self {
        Self {
            ratio,
            value_bits: 32.0,
        }
    }

    fn corrupt(self, row: usize, reason: &str) -> NetError {
        NetError::Corrupt {
            codec: self.label(),
            reason: format!("the places of row {row} {reason}"),
        }
    }
}

impl Selection for TopK {
    fn label(&self) -> String {
        format!("top_k(ratio={})", self.ratio)
    }

    fn kept(&self, width: usize) -> usize {
        let plain = 32.0 * width as f64;
        let budget = plain / self.ratio.max(f64::MIN_POSITIVE);
        let value = self.value_bits;
        if self.ratio <= 1.0 || budget >= value * width as f64 {
            return width;
        }
        let number = f64::from(Places::new(width, 1).number);
        // The casts saturate: a map that does not fit in the budget leaves nothing for values.
        // With a list each entry costs a value and its place; with a map the places cost a bit a
        // column.
        let listed = (budget / (value + number)) as usize;
        let mapped = ((budget - width as f64) / value) as usize;
        listed.max(mapped).clamp(1, width.max(1)).min(width)
    }

    fn ratio(&self) -> f64 {
        self.ratio
    }

    fn choose(&self, rows: &Rows<'_>, _key: CodecKey) -> Columns {
        let (width, kept) = (rows.width(), self.kept(rows.width()));
        let mut columns = Vec::with_capacity(rows.rows() * kept);
        let mut order = Vec::with_capacity(width);
        for row in rows.iter() {
            // One number for magnitude and column, so that the largest come first, and of equal
            // ones the first: without a sign the bits of floats ascend as they do.
            order.clear();
            order.extend((0_u32..).zip(row).map(|(column, value)| {
                let smallness = u32::MAX - value.abs().to_bits();
                u64::from(smallness) << 32 | u64::from(column)
            }));
            if kept < width {
                // Linear, where sorting a row is not. No two entries compare as equal, so what is
                // in front is determined though the algorithm is unstable.
                order.select_nth_unstable(kept);
            }
            let first = columns.len();
            columns.extend(order[..kept].iter().map(|&number| number as u32));
            // A list of places must ascend, by which the receiver knows it for sound.
            columns[first..].sort_unstable();
        }
        Columns::Each(columns)
    }

    fn index_bytes(&self, rows: usize, width: usize) -> usize {
        let kept = self.kept(width);
        if kept == width {
            return 0;
        }
        packed_bytes(rows * Places::new(width, kept).bits, 1)
    }

    fn index(&self, columns: &Columns, width: usize) -> Vec<u8> {
        let kept = self.kept(width);
        let Columns::Each(columns) = columns else {
            return Vec::new(); // not of this selection
        };
        if kept == width {
            return Vec::new();
        }
        let places = Places::new(width, kept);
        let mut bits = BitWriter::default();
        let mut map = vec![0; width];
        for row in columns.chunks_exact(kept) {
            if places.map {
                map.fill(0);
                for &place in row {
                    map[place as usize] = 1;
                }
                bits.push_all(&map, 1);
            } else {
                bits.push_all(row, places.number);
            }
        }
        bits.finish()
    }

    fn recall(&self, index: &[u8], shape: [usize; 2], _key: CodecKey) -> Result<Columns, NetError> {
        let [rows, width] = shape;
        let kept = self.kept(width);
        if kept == width {
            return Ok(Columns::Same(all_columns(width)));
        }
        let places = Places::new(width, kept);
        let mut bits = BitReader::new(index);
        let mut map = vec![0; width];
        let mut columns = Vec::with_capacity(rows * kept);
        for number in 0..rows {
            let start = columns.len();
            if places.map {
                bits.take_all(&mut map, 1);
                let mapped = (0_u32..).zip(&map).filter(|&(_, &is_kept)| is_kept == 1);
                columns.extend(mapped.map(|(column, _)| column));
            } else {
                columns.resize(start + kept, 0);
                bits.take_all(&mut columns[start..], places.number);
            }
            let row = &columns[start..];
            if row.len() != kept {
                let reason = format!("are {}, not {kept}", row.len());
                return Err(self.corrupt(number, &reason));
            }
            if !row.is_sorted_by(|a, b| a < b) || row.iter().any(|&at| at as usize >= width) {
                return Err(self.corrupt(number, "do not ascend within the row"));
            }
        }
        if !bits.is_spent() {
            return Err(self.corrupt(rows, "are given, but there is no such row"));
        }
        Ok(Columns::Each(columns))
    }

    fn error(&self, width: usize) -> RelativeError {
        let kept = self.kept(width);
        if kept == width {
            return RelativeError::Exact(0.0);
        }
        RelativeError::AtMost(1.0 - kept as f64 / width as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Codec;
    use proptest::prelude::*;

    const KEY: CodecKey = CodecKey::new(0, 0, 0);

    #[test]
    fn the_largest_entries_travel_and_ties_go_to_the_first() {
        let codec = TopK::new(3.0);
        // 2 values of 32 bits and 2 places of 3 bits are 70 of the 85 bits that a third of 8 floats
        // is.
        assert_eq!(codec.kept(8), 2);
        let row = [0.5, -3.0, 1.0, 2.0, 0.0, -2.0, 2.0, 1.0];
        let bytes = codec.encode(&Rows::new(&row, 8), KEY);
        assert_eq!(bytes.len(), 1 + 8);
        let decoded = codec.decode(&bytes, [1, 8], KEY).unwrap();
        assert_eq!(decoded, [0.0, -3.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn places_are_a_list_where_few_are_kept_and_a_map_where_many_are() {
        // 128 columns have numbers of 7 bits: 18 of them are shorter than a map, 19 are not.
        assert!(!Places::new(128, 18).map && Places::new(128, 18).bits == 126);
        assert!(Places::new(128, 19).map && Places::new(128, 19).bits == 128);
        assert_eq!(Places::new(1, 1).bits, 0);
    }

    #[test]
    fn places_that_cannot_be_are_refused() {
        let codec = TopK::new(3.0);
        // Places of three bits: 5 twice, and 5 before 1.
        for places in [0b10_1101, 0b00_1101] {
            let mut bytes = vec![places];
            bytes.extend([0; 8]);
            let error = codec.decode(&bytes, [1, 8], KEY).unwrap_err();
            assert!(error.to_string().contains("row 0"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn k_is_the_largest_that_the_ratio_pays_for(
            width in 1..300_usize, ratio in 1.01..200.0_f64, value_bits in 1.0..33.0_f64,
        ) {
            let codec = TopK { ratio, value_bits };
            let kept = codec.kept(width);
            let bits = |kept: usize| {
                let places = if kept == width { 0 } else { Places::new(width, kept).bits };
                value_bits * kept as f64 + places as f64
            };
            let budget = 32.0 * width as f64 / ratio;
            prop_assert!(kept == 1 || bits(kept) <= budget, "{} bits in {budget}", bits(kept));
            prop_assert!(kept == width || bits(kept + 1) > budget);
        }

        #[test]
        fn nothing_that_is_dropped_is_larger_than_what_is_kept(
            values in prop::collection::vec(-9_i8..10, 12..=12), ratio in 1.5..12.0_f64,
        ) {
            let codec = TopK::new(ratio);
            let values: Vec<f32> = values.into_iter().map(f32::from).collect();
            let Columns::Each(kept) = codec.choose(&Rows::new(&values, 12), KEY) else {
                panic!("each row has its own");
            };
            let smallest = kept.iter().map(|&at| values[at as usize].abs()).fold(f32::MAX, f32::min);
            let mut dropped = (0_u32..12).filter(|at| !kept.contains(at));
            prop_assert!(dropped.all(|at| values[at as usize].abs() <= smallest));
        }
    }
}
