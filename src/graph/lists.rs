//! Lists of numbers, one after another in memory.

use rayon::prelude::*;

/// Lists that a thread makes before it asks for others.
const AT_A_TIME: usize = 256;

/// Many short lists in two vectors, in place of a vector each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists {
    /// Where each list begins among the values, and where the last one ends: `[lists + 1]`.
    offsets: Vec<usize>,
    values: Vec<u32>,
}

impl Default for Lists {
    fn default() -> Self {
        Self::of(Vec::new(), Vec::new())
    }
}

impl Lists {
    /// None, in memory for what these can hold.
    fn of(mut offsets: Vec<usize>, values: Vec<u32>) -> Self {
        offsets.push(0);
        Self { offsets, values }
    }

    /// So many lists, made on all cores: `add` appends the values of the list with this number to
    /// what is there. Each piece of the work has a `state` to itself, which others may have had
    /// before.
    pub(crate) fn make<S>(
        count: usize,
        state: impl Fn() -> S + Sync + Send,
        add: impl Fn(&mut S, usize, &mut Vec<u32>) + Sync,
    ) -> Self {
        let starts: Vec<usize> = (0..count).step_by(AT_A_TIME).collect();
        let some = |state: &mut S, start: usize| {
            let mut lists = Self::default();
            for number in start..count.min(start + AT_A_TIME) {
                add(state, number, &mut lists.values);
                lists.offsets.push(lists.values.len());
            }
            lists
        };
        let parts: Vec<Self> = starts.into_par_iter().map_init(state, some).collect();
        let values = parts.iter().map(|part| part.values.len()).sum();
        let mut all = Self::of(Vec::with_capacity(count + 1), Vec::with_capacity(values));
        for part in parts {
            let (before, ends) = (all.values.len(), &part.offsets[1..]);
            all.offsets.extend(ends.iter().map(|end| before + end));
            all.values.extend(part.values);
        }
        all
    }

    /// The list with this number, empty beyond the last.
    pub(crate) fn get(&self, number: usize) -> &[u32] {
        match self.offsets.get(number..number + 2) {
            Some(ends) => &self.values[ends[0]..ends[1]],
            None => &[],
        }
    }

    /// The values of all lists.
    pub(crate) fn values(&self) -> &[u32] {
        &self.values
    }

    /// Where lists begin and the last one ends, `[lists + 1]`, and the values.
    pub(crate) fn into_parts(self) -> (Vec<usize>, Vec<u32>) {
        (self.offsets, self.values)
    }
}

impl<L: IntoIterator<Item = u32>> FromIterator<L> for Lists {
    fn from_iter<T: IntoIterator<Item = L>>(lists: T) -> Self {
        let mut all = Self::default();
        for list in lists {
            all.values.extend(list);
            all.offsets.push(all.values.len());
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
            let made = Lists::make(count, Vec::new, |made, number, values| {
                made.clear();
                made.extend(list(number));
                values.append(made);
            });
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
