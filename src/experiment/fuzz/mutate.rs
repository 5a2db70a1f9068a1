//! Changes of bytes, as accidents and attackers make them.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;

/// Numbers at which programs break, as text.
const NUMBERS: [&str; 14] = [
    "0",
    "-1",
    "1",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "1e39",
    "nan",
    "-inf",
    "0.0000001",
];

/// No file grows beyond this.
const LONGEST: usize = 1 << 16;

/// Changes the bytes in one to six places.
pub(super) fn mutate(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    for _ in 0..random.random_range(1..=6) {
        one(bytes, random);
    }
    bytes.truncate(LONGEST);
}

fn place(bytes: &[u8], random: &mut ChaCha8Rng) -> usize {
    random.random_range(0..=bytes.len())
}

/// A range of up to 32 bytes, or sometimes of any length.
fn range(bytes: &[u8], random: &mut ChaCha8Rng) -> std::ops::Range<usize> {
    let start = place(bytes, random);
    let left = bytes.len() - start;
    let most = if random.random_bool(0.9) {
        left.min(32)
    } else {
        left
    };
    start..start + random.random_range(0..=most)
}

fn one(bytes: &mut Vec<u8>, random: &mut ChaCha8Rng) {
    let at = place(bytes, random);
    match random.random_range(0..10) {
        0 | 1 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
        2 if at < bytes.len() => {
            let odd = [
                0, 1, 0x7f, 0x80, 0xff, b'\n', b',', b'"', b' ', b'-', b'{', b'[',
            ];
            bytes[at] = odd[random.random_range(0..odd.len())];
        }
        3 => bytes.insert(at, (random.next_u32() & 0xff) as u8),
        4 => {
            let gone = range(bytes, random);
            bytes.drain(gone);
        }
        5 => {
            // Again, elsewhere, once or often.
            let piece = bytes[range(bytes, random)].to_vec();
            let times = if random.random_bool(0.95) {
                1
            } else {
                random.random_range(2..200)
            };
            let pieces = piece.repeat(times.min(LONGEST / piece.len().max(1)));
            bytes.splice(at..at, pieces);
        }
        6 => {
            // Over what is there.
            let piece = bytes[range(bytes, random)].to_vec();
            for (old, new) in bytes[at..].iter_mut().zip(piece) {
                *old = new;
            }
        }
        7 => number(bytes, at, random),
        8 => {
            // A binary number at which programs break.
            let value = [
                0_u64,
                1,
                0x7fff_ffff,
                0xffff_ffff,
                1 << 32,
                u64::MAX,
                1 << 63,
            ][random.random_range(0..7)];
            let width = [1, 2, 4, 8][random.random_range(0..4)];
            for (old, new) in bytes[at..].iter_mut().zip(&value.to_le_bytes()[..width]) {
                *old = *new;
            }
        }
        _ if random.random_bool(0.1) => bytes.truncate(at),
        _ => {
            let word = random.next_u32().to_le_bytes();
            for (old, new) in bytes[at..].iter_mut().zip(word) {
                *old = new;
            }
        }
    }
}

/// Puts another number in place of the next that is written in digits.
fn number(bytes: &mut Vec<u8>, from: usize, random: &mut ChaCha8Rng) {
    let Some(start) = bytes[from..]
        .iter()
        .position(u8::is_ascii_digit)
        .map(|at| from + at)
    else {
        return;
    };
    let length = bytes[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let new = NUMBERS[random.random_range(0..NUMBERS.len())];
    bytes.splice(start..start + length, new.bytes());
}
