//! When the next flow of each link ends, and which is first.

/// Two numbers a link, in trees of minima: to change one link costs the logarithm of their number,
/// to find the first nothing.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    leaves: usize,
    /// When the next flow ends; infinite without one. Node n is the smaller of nodes 2n and 2n + 1.
    end: Vec<f64>,
    /// From when on what it lacks is negligible.
    early: Vec<f64>,
}

impl Ends {
    pub(super) fn new(links: usize) -> Self {
        // A full tree, so that parents and children follow from a node's number.
        let leaves = links.next_power_of_two();
        Self {
            leaves,
            end: vec![f64::INFINITY; 2 * leaves],
            early: vec![f64::INFINITY; 2 * leaves],
        }
    }

    pub(super) fn grow(&mut self, links: usize) {
        if links > self.leaves {
            let mut larger = Self::new(links);
            for link in 0..self.leaves {
                let (end, early) = (self.end[self.leaves + link], self.early[self.leaves + link]);
                larger.set(link, end, early);
            }
            *self = larger;
        }
    }

    pub(super) fn end(&self, link: usize) -> f64 {
        self.end[self.leaves + link]
    }

    /// The first end of all.
    pub(super) fn first(&self) -> f64 {
        self.end[1]
    }

    pub(super) fn set(&mut self, link: usize, end: f64, early: f64) {
        let mut node = self.leaves + link;
        (self.end[node], self.early[node]) = (end, early);
        while node > 1 {
            node /= 2;
            let end = self.end[2 * node].min(self.end[2 * node + 1]);
            let early = self.early[2 * node].min(self.early[2 * node + 1]);
            // Nothing further up depends on anything that has changed.
            if end == self.end[node] && early == self.early[node] {
                return;
            }
            (self.end[node], self.early[node]) = (end, early);
        }
    }

    /// The numbers of all links, to be written, after which [`Self::rebuild`] is due.
    pub(super) fn all(&mut self) -> (&mut [f64], &mut [f64]) {
        let leaves = self.leaves;
        (&mut self.end[leaves..], &mut self.early[leaves..])
    }

    pub(super) fn rebuild(&mut self) {
        for tree in [&mut self.end, &mut self.early] {
            let mut first = self.leaves;
            while first > 1 {
                let (above, below) = tree.split_at_mut(first);
                let pairs = below[..first].as_chunks::<2>().0;
                for (node, [a, b]) in above[first / 2..].iter_mut().zip(pairs) {
                    *node = a.min(*b);
                }
                first /= 2;
            }
        }
    }

    /// Links whose next flow ends until `end`, or lacks nothing that counts from `early` on;
    /// ascending.
    pub(super) fn until(&self, end: f64, early: f64) -> Vec<usize> {
        let mut found = Vec::new();
        let mut ahead = vec![1];
        while let Some(node) = ahead.pop() {
            if self.end[node] <= end || self.early[node] <= early {
                if node >= self.leaves {
                    found.push(node - self.leaves);
                } else {
                    // The right one first, as the last is taken first: links come out in ascending
                    // order.
                    ahead.extend([2 * node + 1, 2 * node]);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_found_however_numbers_were_set(
            changes in prop::collection::vec((0..11_usize, 0..50_u8), 1..60), all in any::<bool>(),
        ) {
            let mut ends = Ends::new(3);
            ends.grow(11);
            let mut plain = [f64::INFINITY; 11];
            for &(link, end) in &changes {
                plain[link] = f64::from(end);
                if all {
                    ends.all().0[link] = plain[link];
                    ends.all().1[link] = plain[link] - 5.0;
                } else {
                    ends.set(link, plain[link], plain[link] - 5.0);
                }
            }
            if all {
                ends.rebuild();
            }
            prop_assert_eq!(ends.first(), plain.iter().copied().fold(f64::INFINITY, f64::min));
            // Early is five before the end, as set above.
            let early: Vec<usize> = (0..11).filter(|&link| plain[link] <= 25.0).collect();
            prop_assert_eq!(ends.until(0.0, 20.0), early);
        }
    }
}
