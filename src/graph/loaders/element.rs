//! Values of arrays: what files may hold where a reader wants numbers of one type.

use half::f16;

/// What values files may hold where a reader wants these.
pub(crate) trait Element: Copy {
    /// What a person calls them.
    const WHAT: &'static str;

    /// Makes one of the bytes of a value of this kind and size, lowest first and zero beyond.
    fn decoder(kind: u8, size: usize) -> Option<fn([u8; 8]) -> Self>;
}

/// The bytes of a value and zeros beyond, as a decoder takes them.
pub(super) fn whole(value: &[u8]) -> [u8; 8] {
    let mut whole = [0; 8];
    whole[..value.len()].copy_from_slice(value);
    whole
}

/// The first bytes of eight.
fn first<const N: usize>(bytes: [u8; 8]) -> [u8; N] {
    std::array::from_fn(|at| bytes[at])
}

macro_rules! floats {
    ($($float:ty),*) => {$(
        impl Element for $float {
            const WHAT: &'static str = "numbers";

            // Beyond what its digits hold not exact; what is an index is read as such.
            #[allow(clippy::cast_lossless)] // one text for both
            fn decoder(kind: u8, size: usize) -> Option<fn([u8; 8]) -> Self> {
                match (kind, size) {
                    (b'f', 8) => Some(|bytes| f64::from_le_bytes(bytes) as Self),
                    (b'f', 4) => Some(|bytes| f32::from_le_bytes(first(bytes)) as Self),
                    (b'f', 2) => Some(|bytes| f16::from_le_bytes(first(bytes)).into()),
                    (b'i', 8) => Some(|bytes| i64::from_le_bytes(bytes) as Self),
                    (b'i', 4) => Some(|bytes| i32::from_le_bytes(first(bytes)) as Self),
                    (b'i', 2) => Some(|bytes| i16::from_le_bytes(first(bytes)).into()),
                    (b'i', 1) => Some(|bytes| i8::from_le_bytes(first(bytes)).into()),
                    // Zero beyond their size.
                    (b'u' | b'b', 1 | 2 | 4 | 8) => Some(|bytes| u64::from_le_bytes(bytes) as Self),
                    _ => None,
                }
            }
        }
    )*};
}

floats!(f32, f64);

impl Element for i64 {
    const WHAT: &'static str = "whole numbers";

    fn decoder(kind: u8, size: usize) -> Option<fn([u8; 8]) -> Self> {
        match (kind, size) {
            (b'i', 8) => Some(Self::from_le_bytes),
            (b'i', 4) => Some(|bytes| i32::from_le_bytes(first(bytes)).into()),
            (b'i', 2) => Some(|bytes| i16::from_le_bytes(first(bytes)).into()),
            (b'i', 1) => Some(|bytes| i8::from_le_bytes(first(bytes)).into()),
            // No file has so many of anything: whoever checks the range refuses it.
            (b'u', 1 | 2 | 4 | 8) => {
                Some(|bytes| Self::try_from(u64::from_le_bytes(bytes)).unwrap_or(Self::MAX))
            }
            _ => None,
        }
    }
}

impl Element for bool {
    const WHAT: &'static str = "truth values";

    fn decoder(kind: u8, size: usize) -> Option<fn([u8; 8]) -> Self> {
        (kind == b'b' && size == 1).then_some(|bytes| bytes[0] != 0)
    }
}
