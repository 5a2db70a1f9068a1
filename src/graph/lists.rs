//! Lists of numbers, one after another in memory.

use rayon::prelude::*;

/// Lists that a thread makes before it asks for others.
const AT_A_TIME: usize = 256;

/// Many short lists in two vectors, in place of a vector each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lists {
    /// Where each list ends among the values.
    ends: Vec<usize>,
    values: Vec<u32>,
}

impl Lists {
    /// So many lists, made on all cores: `add` appends the values of the list with this number to
    /// what is there. Each piece of the work has a `state` of its own.
    pub(crate) fn make<S>(
        count: usize,
        state: impl Fn() -> S + Sync,
        add: impl Fn(&mut S, usize, &mut Vec<u32>) + Sync,
    ) -> Self {
        let starts: Vec<usize> = (0..count).step_by(AT_A_TIME).collect();
        let some = |start: usize| {
            let (mut state, mut lists) = (state(), Self::default());
            for number in start..count.min(start + AT_A_TIME) {
                add(&mut state, number, &mut lists.values);
                lists.ends.push(lists.values.len());
            }
            lists
        };
        let parts: Vec<Self> = starts.into_par_iter().map(some).collect();
        let mut all = Self {
            ends: Vec::with_capacity(count),
            values: Vec::with_capacity(parts.iter().map(|part| part.values.len()).sum()),
        };
        for part in parts {
            let before = all.values.len();
            all.ends.extend(part.ends.iter().map(|end| before + end));
            all.values.extend(part.values);
        }
        all
    }

    /// The list with this number, empty beyond the last.
    pub(crate) fn get(&self, number: usize) -> &[u32] {
        let Some(&end) = self.ends.get(number) else {
            return &[];
        };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..end]
    }

    /// The values of all lists.
    pub(crate) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Where lists begin and the last one ends, `[lists + 1]`, and the values.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        let mut offsets = self.ends;
        offsets.insert(0, 0);
        (offsets, self.values)
    }
}

impl<L: IntoIterator<Item = u32>> FromIterator<L> for Lists {
    fn from_iter<T: IntoIterator<Item = L>>(lists: T) -> Self {
        let mut all = Self::default();
        for list in lists {
            all.values.extend(list);
            all.ends.push(all.values.len());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_made_on_all_cores_are_those_made_one_by_one() {
        let list = |number: usize| (0..number as u32 % 5).map(move |at| number as u32 + at);
        for count in [0, 1, AT_A_TIME, 3 * AT_A_TIME + 7] {
            let made = Lists::make(
                count,
                || 0,
                |met, number, values| {
                    assert!(*met < AT_A_TIME, "a state for each piece of work");
                    *met += 1;
                    values.extend(list(number));
                },
            );
            assert_eq!(made, (0..count).map(list).collect());
            for number in 0..count {
                assert!(made.get(number).iter().copied().eq(list(number)));
            }
            assert!(made.get(count).is_empty());
            let (offsets, values) = made.clone().into_parts();
            assert_eq!((offsets.len(), offsets[count]), (count + 1, values.len()));
            assert_eq!(values, made.values());
        }
    }
}
