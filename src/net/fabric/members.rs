//! Which transmissions share a route.

const NONE: u32 = u32::MAX;

/// Slots by bundle, as doubly linked lists: most bundles have one, and need no memory of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// By bundle.
    first: Vec<u32>,
    /// By slot: the one before and the one after.
    beside: Vec<[u32; 2]>,
}

impl Members {
    pub(super) fn add(&mut self, bundle: usize, slot: u32) {
        if self.first.len() <= bundle {
            self.first.resize(bundle + 1, NONE);
        }
        if self.beside.len() <= slot as usize {
            self.beside.resize(slot as usize + 1, [NONE; 2]);
        }
        let after = std::mem::replace(&mut self.first[bundle], slot);
        self.beside[slot as usize] = [NONE, after];
        // No slot has the number `NONE`, so that nobody is found behind the last.
        if let Some(after) = self.beside.get_mut(after as usize) {
            after[0] = slot;
        }
    }

    pub(super) fn remove(&mut self, bundle: usize, slot: u32) {
        let [before, after] = self.beside[slot as usize];
        match self.beside.get_mut(before as usize) {
            Some(before) => before[1] = after,
            None => self.first[bundle] = after,
        }
        if let Some(after) = self.beside.get_mut(after as usize) {
            after[0] = before;
        }
    }

    /// The slots of a bundle, the latest first.
    pub(super) fn of(&self, bundle: usize) -> impl Iterator<Item = u32> {
        let exists = |slot: &u32| *slot != NONE;
        let first = self.first.get(bundle).copied().filter(exists);
        std::iter::successors(first, move |&slot| {
            Some(self.beside[slot as usize][1]).filter(exists)
        })
    }
}
