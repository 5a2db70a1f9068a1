//! What an array in `NumPy`'s format says of itself, before its values.

use std::io::Read;

use super::element::Element;
use crate::graph::mapped::Decode;

/// Longest header: programs write some hundred bytes.
const LONGEST_HEADER: usize = 1 << 16;

/// What an array says of itself.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    /// Where it ends.
    end: u64,
    /// As the file writes it: `<f4`.
    kind: String,
    /// Whether columns come one after another.
    pub(crate) by_columns: bool,
    /// Extent of each dimension.
    pub shape: Vec<usize>,
}

impl Header {
    /// Reads the header of an array of `size` bytes in all.
    pub(super) fn read(from: &mut impl Read, size: u64) -> Result<Self, String> {
        let mut start = [0; 10];
        from.read_exact(&mut start)
            .map_err(|error| error.to_string())?;
        let version = start[6];
        if start[..6] != *b"\x93NUMPY" || !(1..=3).contains(&version) {
            return Err("it does not start as a NumPy array does".to_owned());
        }
        // Version 1 writes the length of the header in two bytes, later ones in four.
        let mut high = [0; 2];
        let mut begin = 10;
        if version > 1 {
            from.read_exact(&mut high)
                .map_err(|error| error.to_string())?;
            begin = 12;
        }
        let length = u32::from_le_bytes([start[8], start[9], high[0], high[1]]) as usize;
        let end = begin + length as u64;
        if end > size {
            return Err(format!("its header ends at byte {end}, and it has {size}"));
        }
        if length > LONGEST_HEADER {
            return Err(format!(
                "its header has {length} bytes, which no program writes"
            ));
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)
            .map_err(|error| error.to_string())?;
        let text = std::str::from_utf8(&text).unwrap_or_default();
        Self::parse(text, end).ok_or_else(|| {
            let text: String = text.chars().take(80).collect();
            format!(
                "its header is not that of an array of plain numbers: `{}`",
                text.trim()
            )
        })
    }

    /// `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 5), }`.
    fn parse(text: &str, end: u64) -> Option<Self> {
        let after = |name: &str| Some(text.split_once(name)?.1.split_once(':')?.1.trim_start());
        let kind = after("'descr'")?.strip_prefix('\'')?.split('\'').next()?;
        let shape = after("'shape'")?.strip_prefix('(')?.split(')').next()?;
        let extents = shape
            .split(',')
            .map(str::trim)
            .filter(|extent| !extent.is_empty());
        Some(Self {
            end,
            kind: kind.to_owned(),
            by_columns: after("'fortran_order'")?.starts_with("True"),
            shape: extents
                .map(|extent| extent.parse().ok())
                .collect::<Option<_>>()?,
        })
    }

    /// Where the values start, counted from the start of the array.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Number of values, each of so many bytes, where the array has `bytes` in all.
    pub(super) fn count(&self, width: usize, bytes: u64) -> Result<usize, String> {
        let factors = self.shape.iter();
        let count = factors.copied().try_fold(1_usize, usize::checked_mul);
        let promised = count.and_then(|count| count.checked_mul(width));
        let promised = promised.and_then(|values| (values as u64).checked_add(self.end));
        match (count, promised) {
            (Some(count), Some(promised)) if promised == bytes => Ok(count),
            (_, Some(promised)) => Err(format!(
                "its header promises {promised} bytes, and it has {bytes}"
            )),
            _ => Err(format!(
                "its header promises more bytes than there can be, and it has {bytes}"
            )),
        }
    }

    /// Bytes of a value, whether the highest comes first, and what they mean.
    pub(super) fn decoder<T: Element>(&self) -> Result<(usize, bool, Decode<T>), String> {
        let decoder = self.kind().and_then(|(letter, size, highest_first)| {
            Some((size, highest_first, T::decoder(letter, size)?))
        });
        decoder.ok_or_else(|| {
            let (found, expected) = (&self.kind, T::WHAT);
            format!("it has values of type `{found}`, and {expected} are expected")
        })
    }

    /// Letter and size of the type, and whether the highest byte comes first.
    fn kind(&self) -> Option<(u8, usize, bool)> {
        let (&order, rest) = self.kind.as_bytes().split_first()?;
        let (&letter, size) = rest.split_first()?;
        let size = std::str::from_utf8(size).ok()?.parse().ok()?;
        let highest_first = match order {
            b'<' | b'|' => false,
            b'>' => true,
            b'=' => cfg!(target_endian = "big"),
            _ => return None,
        };
        (1..=8)
            .contains(&size)
            .then_some((letter, size, highest_first))
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{Array, Ix2};
    use ndarray_npy::WriteNpyExt;

    use super::*;

    #[test]
    fn a_header_is_read_as_it_is_written() {
        let mut bytes = Vec::new();
        Array::<f32, Ix2>::zeros((3, 5))
            .write_npy(&mut bytes)
            .unwrap();
        let header = Header::read(&mut &bytes[..], bytes.len() as u64).unwrap();
        assert_eq!(
            (header.kind.as_str(), &header.shape[..]),
            ("<f4", &[3, 5][..])
        );
        assert_eq!(header.count(4, bytes.len() as u64), Ok(15));
        for (bytes, message) in [
            (&b"\x93NUMPY\x01\0"[..], "failed to fill whole buffer"),
            // A header of the second version, of four gigabytes.
            (
                b"\x93NUMPY\x02\0\xff\xff\xff\xff",
                "its header ends at byte 4294967307, and it has 100",
            ),
            (b"PK\x03\x04 no array", "does not start as"),
            (
                b"\x93NUMPY\x01\0\x0b\0{'descr': 1",
                "not that of an array of plain numbers",
            ),
        ] {
            let error = Header::read(&mut &bytes[..], 100).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
