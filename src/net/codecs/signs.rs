//! Signs alone, and how large entries are on average.

use super::bits::{BitReader, BitWriter, packed_bytes};
use crate::net::codec::{check_length, corrupt};
use crate::net::{Bytes, Codec, CodecKey, NetError, RelativeError, Rows, floats, to_bytes};

/// Sends the sign of each entry, and for each row the mean magnitude ‖x‖₁/n, by which a sign is
/// multiplied (the scaled sign of Karimireddy, Rebjock, Stich and Jaggi, *Error Feedback Fixes
/// `SignSGD`*, ICML 2019). Zero counts as positive.
///
/// Biased; ‖x̃ − x‖² = ‖x‖² − ‖x‖₁²/n ≤ (1 − 1/n) ‖x‖².
///
/// A row with a value that is not finite decodes as not a number throughout.
///
/// Encoded: 4·rows + ⌈rows·n/8⌉ bytes; none for rows without width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signs;

impl Codec for Signs {
    fn name(&self) -> String {
        "sign".to_owned()
    }

    fn encoded_bytes(&self, rows: usize, width: usize) -> Bytes {
        if width == 0 {
            return Bytes(0);
        }
        Bytes((4 * rows + packed_bytes(rows * width, 1)) as u64)
    }

    fn encode(&self, rows: &Rows<'_>, _key: CodecKey) -> Vec<u8> {
        let mut signs = BitWriter::default();
        let mut row_signs = vec![0; rows.width()];
        let mut scales = Vec::with_capacity(rows.rows());
        for row in rows.iter() {
            let sum: f64 = row.iter().map(|value| f64::from(value.abs())).sum();
            let scale = (sum / row.len() as f64) as f32;
            scales.push(if scale.is_finite() { scale } else { f32::NAN });
            for (sign, &value) in row_signs.iter_mut().zip(row) {
                *sign = u32::from(value < 0.0);
            }
            signs.push_all(&row_signs, 1);
        }
        let mut bytes = to_bytes(&scales);
        bytes.append(&mut signs.finish());
        bytes
    }

    fn decode(&self, bytes: &[u8], shape: [usize; 2], key: CodecKey) -> Result<Vec<f32>, NetError> {
        check_length(self, bytes, shape, key)?;
        let [rows, width] = shape;
        if width == 0 {
            return Ok(Vec::new());
        }
        let (scales, signs) = bytes.split_at(4 * rows);
        let mut signs = BitReader::new(signs);
        let mut row_signs = vec![0; width];
        let mut values = Vec::with_capacity(rows * width);
        for scale in floats(scales) {
            if scale.is_infinite() || scale < 0.0 {
                return Err(corrupt(
                    self,
                    format!("a row has the mean magnitude {scale}"),
                ));
            }
            signs.take_all(&mut row_signs, 1);
            let sign = |&bit: &u32| if bit == 1 { -scale } else { scale };
            values.extend(row_signs.iter().map(sign));
        }
        signs.expect_end(self)?;
        Ok(values)
    }

    fn is_biased(&self) -> bool {
        true
    }

    fn expected_error(&self, width: usize) -> RelativeError {
        RelativeError::AtMost(1.0 - 1.0 / width.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_an_entry_and_the_mean_magnitude_of_a_row() {
        let key = CodecKey::new(0, 0, 0);
        let row = [1.0, -2.0, 0.0, 5.0, -2.0];
        let bytes = Signs.encode(&Rows::new(&row, 5), key);
        assert_eq!(bytes.len(), 4 + 1);
        let decoded = Signs.decode(&bytes, [1, 5], key).unwrap();
        assert_eq!(decoded, [2.0, -2.0, 2.0, 2.0, -2.0]);
    }
}
