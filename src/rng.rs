//! Random streams keyed by what they are for, never by history.
//!
//! Every draw in a run comes from a [`stream`] named by (seed, purpose, worker, round). The four
//! numbers *are* the key of the generator, so a stream does not depend on how many draws were made
//! elsewhere, in which order workers ran, or on how many threads there were.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// What a stream of random numbers is used for. The discriminants are part of the file format of
/// results: a published seed must give the same numbers in every later version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Purpose {
    /// Structure of a synthetic graph.
    Graph = 1,
    /// Node features of a synthetic graph.
    Features = 2,
    /// Train, validation and test nodes.
    Split = 3,
    /// Assignment of nodes to workers or chunks.
    Partition = 4,
    /// Initial model parameters.
    Parameters = 5,
    /// Dropout masks.
    Dropout = 6,
    /// Lossy codecs: which columns travel, stochastic rounding.
    Codec = 7,
    /// Sampling of neighbours, boundary nodes and batches.
    Sampling = 8,
    /// Jitter, loss and failures of links.
    Link = 9,
    /// Monte Carlo studies and tests.
    Study = 10,
    /// Bootstrap intervals.
    Statistics = 11,
}

/// The generator for one purpose of one worker in one round.
///
/// `worker` is 0 where all workers must draw alike; `round` is an epoch, a step or a layer, or a
/// combination made with [`mix`].
pub fn stream(seed: u64, purpose: Purpose, worker: u64, round: u64) -> ChaCha8Rng {
    let mut key = [0_u8; 32];
    // Little-endian on every machine, for a seed must give the same numbers on all.
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
    key[16..24].copy_from_slice(&worker.to_le_bytes());
    key[24..].copy_from_slice(&round.to_le_bytes());
    // The four words fill the 32 bytes of a key, so that two different keys never meet, as hashes
    // of them could. ChaCha is named because `StdRng` of rand may be another generator in a later
    // version.
    ChaCha8Rng::from_seed(key)
}

/// A statistically independent 64-bit number for each pair: the `SplitMix64` finaliser (Steele, Lea
/// and Flood, 2014) over both words. Used where a stream per item would be too slow, such as
/// dropout masks.
pub const fn mix(a: u64, b: u64) -> u64 {
    // The odd factor keeps (a, b) and (b, a) apart. Without the last addend the pair (0, 0) would
    // stay 0.
    // The first factor is 2⁶⁴ over the golden ratio, the step of SplitMix64; the others are its
    // mixer's.
    let mut z = a
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(b)
        .wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn streams_with_one_differing_key_word_differ() {
        let draw = |s, p, w, r| stream(s, p, w, r).next_u64();
        let base = draw(1, Purpose::Graph, 0, 0);
        assert_eq!(base, draw(1, Purpose::Graph, 0, 0));
        for other in [
            draw(2, Purpose::Graph, 0, 0),
            draw(1, Purpose::Split, 0, 0),
            draw(1, Purpose::Graph, 1, 0),
            draw(1, Purpose::Graph, 0, 1),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn the_first_draw_of_a_known_key_never_changes() {
        assert_eq!(stream(7, Purpose::Dropout, 3, 11).next_u64(), FIRST_DRAW);
    }

    // As it was first drawn; nothing but keeping it makes it right.
    const FIRST_DRAW: u64 = 17_661_976_927_325_375_025;
}
