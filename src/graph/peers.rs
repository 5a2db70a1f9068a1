//! Something for each peer that there is something for.

use std::collections::BTreeMap;
use std::ops::Index;

/// A value for each of a few peers, by rank, and the empty one for all others: among thousands of
/// workers most have nothing to do with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers<T> {
    present: BTreeMap<usize, T>,
    // Indexing hands out a reference, for which the empty value must be somewhere.
    none: T,
}

impl<T> Peers<T> {
    /// The peers that there is something for, in ascending order.
    pub fn ranks(&self) -> impl Iterator<Item = usize> + '_ {
        self.present.keys().copied()
    }

    /// `(rank, value)` of these.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> + '_ {
        self.present.iter().map(|(&rank, value)| (rank, value))
    }
}

impl<T: Default> Peers<T> {
    /// The value of a peer, made if there is none.
    pub fn of(&mut self, rank: usize) -> &mut T {
        self.present.entry(rank).or_default()
    }
}

impl Peers<usize> {
    /// So many of something that a worker has of all others, equally many of each: one more of
    /// those next to it where that does not come out even.
    pub(crate) fn dealt(rank: usize, workers: usize, all: usize) -> Self {
        let others = (workers - 1).max(1);
        let mut dealt = Self::default();
        for ahead in 1..workers {
            let count = all / others + usize::from(ahead <= all % others);
            if count > 0 {
                *dealt.of((rank + ahead) % workers) = count;
            }
        }
        dealt
    }
}

impl<T> Index<usize> for Peers<T> {
    type Output = T;

    fn index(&self, rank: usize) -> &T {
        self.present.get(&rank).unwrap_or(&self.none)
    }
}

/// The places, from 0, of the items that hold; no list is longer than a graph has nodes.
pub(crate) fn places<T>(items: &[T], holds: impl Fn(&T) -> bool) -> Vec<u32> {
    let places = (0_u32..).zip(items).filter(|(_, item)| holds(item));
    places.map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_come_in_order_and_absent_ones_are_empty() {
        let mut peers: Peers<Vec<u32>> = Peers::default();
        peers.of(7).push(1);
        peers.of(2).push(3);
        peers.of(7).push(4);
        assert_eq!(peers.ranks().collect::<Vec<_>>(), [2, 7]);
        let all: Vec<_> = peers.iter().collect();
        assert_eq!(all, [(2, &vec![3]), (7, &vec![1, 4])]);
        assert!(peers[5].is_empty());
    }
}
