//! Small numbers packed without gaps, low bits first.

use crate::net::codec::corrupt;
use crate::net::{Codec, NetError};

/// Bytes that `count` numbers of `bits` bits take.
pub(super) const fn packed_bytes(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Packs numbers; the last byte is filled up with zeros.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl BitWriter {
    /// Appends the lowest `bits` bits, at most 32, of `value`, which has no others.
    pub(super) fn push(&mut self, value: u32, bits: u32) {
        // Fewer than 8 bits wait, so 32 more always fit.
        self.pending |= u64::from(value) << self.filled;
        self.filled += bits;
        while self.filled >= 8 {
            self.bytes.push(self.pending as u8); // the lowest eight bits
            self.pending >>= 8;
            self.filled -= 8;
        }
    }

    /// [`push`](Self::push) of each of these numbers.
    pub(super) fn push_all(&mut self, numbers: &[u32], bits: u32) {
        match bits {
            1 => self.push_bytes::<8>(numbers),
            2 => self.push_bytes::<4>(numbers),
            4 => self.push_bytes::<2>(numbers),
            8 => self.push_bytes::<1>(numbers),
            _ => {
                for &number in numbers {
                    self.push(number, bits);
                }
            }
        }
    }

    /// Numbers of which `N` fill a byte.
    fn push_bytes<const N: usize>(&mut self, numbers: &[u32]) {
        let bits = 8 / N as u32;
        let (bytes, rest) = numbers.as_chunks::<N>();
        let join = |numbers: &[u32; N]| {
            let joined = numbers
                .iter()
                .rev()
                .fold(0, |byte, number| byte << bits | number);
            joined as u8
        };
        if self.filled == 0 {
            self.bytes.extend(bytes.iter().map(join));
        } else {
            for numbers in bytes {
                self.push(u32::from(join(numbers)), 8);
            }
        }
        for &number in rest {
            self.push(number, bits);
        }
    }

    /// All bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.bytes.push(self.pending as u8);
        }
        self.bytes
    }
}

/// Reads what a [`BitWriter`] packed.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: std::slice::Iter<'a, u8>,
    pending: u64,
    filled: u32,
}

impl<'a> BitReader<'a> {
    /// A reader from the first bit on.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
            pending: 0,
            filled: 0,
        }
    }

    /// The next number of `bits` bits, at most 32; zeros past the end.
    pub(super) fn take(&mut self, bits: u32) -> u32 {
        while self.filled < bits {
            let byte = self.bytes.next().copied().unwrap_or(0);
            self.pending |= u64::from(byte) << self.filled;
            self.filled += 8;
        }
        let value = self.pending & ((1_u64 << bits) - 1);
        self.pending >>= bits;
        self.filled -= bits;
        value as u32 // at most 32 bits are left
    }

    /// [`take`](Self::take) for each of these numbers.
    pub(super) fn take_all(&mut self, numbers: &mut [u32], bits: u32) {
        match bits {
            1 => self.take_bytes::<8>(numbers),
            2 => self.take_bytes::<4>(numbers),
            4 => self.take_bytes::<2>(numbers),
            8 => self.take_bytes::<1>(numbers),
            _ => {
                for number in numbers {
                    *number = self.take(bits);
                }
            }
        }
    }

    /// Numbers of which `N` fill a byte.
    fn take_bytes<const N: usize>(&mut self, numbers: &mut [u32]) {
        let bits = 8 / N as u32;
        let (mut whole, rest) = numbers.as_chunks_mut::<N>();
        let split = |byte: u32, numbers: &mut [u32; N]| {
            for (place, number) in numbers.iter_mut().enumerate() {
                *number = byte >> (place as u32 * bits) & ((1 << bits) - 1);
            }
        };
        if self.filled == 0 {
            let (bytes, left) = self
                .bytes
                .as_slice()
                .split_at(whole.len().min(self.bytes.len()));
            for (&byte, numbers) in bytes.iter().zip(&mut *whole) {
                split(u32::from(byte), numbers);
            }
            whole = &mut whole[bytes.len()..];
            self.bytes = left.iter();
        }
        for numbers in whole {
            split(self.take(8), numbers);
        }
        for number in rest {
            *number = self.take(bits);
        }
    }

    /// Whether nothing but zeros is left.
    pub(super) fn is_spent(&self) -> bool {
        // Zeros fill up the last byte; anything else was not written by the codec that reads.
        self.pending == 0 && self.bytes.as_slice().iter().all(|&byte| byte == 0)
    }

    /// Refuses the message of a codec that has more entries than were read.
    pub(super) fn expect_end(&self, codec: &dyn Codec) -> Result<(), NetError> {
        if self.is_spent() {
            return Ok(());
        }
        Err(corrupt(codec, "bits follow the last entry".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_is_read_back(numbers in prop::collection::vec((any::<u32>(), 0..33_u32), 0..60)) {
            let cut = |(value, bits): (u32, u32)| (value & ((1_u64 << bits) - 1) as u32, bits);
            let numbers: Vec<(u32, u32)> = numbers.into_iter().map(cut).collect();
            let mut writer = BitWriter::default();
            for &(value, bits) in &numbers {
                writer.push(value, bits);
            }
            let bytes = writer.finish();
            let bits: u32 = numbers.iter().map(|(_, bits)| bits).sum();
            prop_assert_eq!(bytes.len(), packed_bytes(1, bits));
            let mut reader = BitReader::new(&bytes);
            for (value, bits) in numbers {
                prop_assert_eq!(reader.take(bits), value);
            }
            prop_assert!(reader.is_spent());
        }
    }

    proptest! {
        #[test]
        fn many_numbers_at_once_are_packed_and_read_as_one_after_another(
            parts in prop::collection::vec((0_u32..10, prop::collection::vec(any::<u32>(), 0..40)), 0..6),
            lost in 0_usize..4,
        ) {
            let cut = |(bits, numbers): (u32, Vec<u32>)| {
                (bits, numbers.into_iter().map(|number| number & ((1 << bits) - 1)).collect())
            };
            let parts: Vec<(u32, Vec<u32>)> = parts.into_iter().map(cut).collect();
            let (mut many, mut one) = (BitWriter::default(), BitWriter::default());
            for (bits, numbers) in &parts {
                many.push_all(numbers, *bits);
                for &number in numbers {
                    one.push(number, *bits);
                }
            }
            let bytes = many.finish();
            prop_assert_eq!(&bytes, &one.finish());
            // Of a message that was cut short, too.
            let bytes = &bytes[..bytes.len().saturating_sub(lost)];
            let (mut many, mut one) = (BitReader::new(bytes), BitReader::new(bytes));
            for (bits, numbers) in parts {
                let mut found = vec![0; numbers.len()];
                many.take_all(&mut found, bits);
                prop_assert!(found.iter().all(|&number| number == one.take(bits)));
            }
            prop_assert_eq!(many.is_spent(), one.is_spent());
        }
    }

    #[test]
    fn bits_that_nobody_wrote_are_noticed() {
        let mut reader = BitReader::new(&[0b1000_0001]);
        assert_eq!(reader.take(4), 1);
        assert!(!reader.is_spent());
    }
}
