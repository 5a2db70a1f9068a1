//! All-reduce in two levels.

use std::sync::Arc;

use super::halving_doubling::halving_doubling_all_reduce;
use super::ring::ring_all_reduce;
use super::step::{Combine, Step, chunks};

/// How groups of neighbouring workers sum first among themselves, then with the other groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    /// The first rank of each group, and at the end the number of workers.
    starts: Arc<[usize]>,
    /// How many workers of each group sum a chunk: all of the smallest group.
    owners: usize,
    /// Whether groups sum by halving and doubling, not around a ring.
    halving: bool,
}

impl Hierarchy {
    /// Groups of these sizes, none empty. Between groups sums go round a ring, or by halving and
    /// doubling.
    pub fn new(sizes: &[usize], halving: bool) -> Self {
        let ends = sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        });
        Self {
            starts: std::iter::once(0).chain(ends).collect(),
            owners: sizes.iter().copied().min().unwrap_or(1).max(1),
            halving,
        }
    }

    fn groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many workers each group has, where all have as many.
    pub(super) fn group_size(&self) -> Option<usize> {
        let mut sizes = self.starts.windows(2).map(|ends| ends[1] - ends[0]);
        sizes.all(|size| size == self.owners).then_some(self.owners)
    }

    /// The group of a worker.
    fn group(&self, rank: usize) -> usize {
        self.starts.partition_point(|&start| start <= rank) - 1
    }

    /// What the k-th worker of each group sums.
    fn chunk(&self, owner: usize, len: usize) -> std::ops::Range<usize> {
        chunks(owner, owner + 1, self.owners, len)
    }

    /// The steps of worker `rank` in an all-reduce of `len` elements, as Horovod's hierarchical one
    /// (`NCCLHierarchicalAllreduce`, its pull request 411) and `BlueConnect` (Cho et al., `MLSys`
    /// 2019).
    ///
    /// ```text
    ///   group 0: 0 1 2 3    reduce-scatter inside: worker k gets chunk k of all
    ///   group 1: 4 5 6 7    all-reduce of chunk k between the k-th workers: 0 and 4, 1 and 5, …
    ///                       all-gather inside: worker k sends chunk k to all
    /// ```
    ///
    /// There are as many chunks as workers in the smallest group. Inside, everybody sends its
    /// chunks to their owners at once and owners sum them in the order of ranks, their own first.
    /// Each element is summed in one order and then copied: all end with the same bits.
    ///
    /// With M groups of G workers and equal links inside: 2α + 2(G−1)/G·Sβ seconds there and, of
    /// S/G bytes each, those of the ring or of halving and doubling between groups. A worker sends
    /// 2(G−1)/G·S bytes inside and 2(M−1)/M·S/G out of its group: a group together 2(M−1)/M·S,
    /// whereas by halving and doubling among all workers it would send G times that.
    pub(super) fn steps(&self, rank: usize, len: usize) -> Vec<Step> {
        let group = self.group(rank);
        let (start, end) = (self.starts[group], self.starts[group + 1]);
        let owner = |member: usize| member - start < self.owners;
        let others = || (start..end).filter(move |&other| other != rank);
        let chunk = |member: usize| self.chunk(member - start, len);
        let mut steps: Vec<Option<Step>> = Vec::new();
        let owners = || others().filter(|&other| owner(other));
        steps.extend(owners().map(|other| Step::send(other, chunk(other))));
        if owner(rank) {
            let own = chunk(rank);
            let summed = |other| Step::receive(other, own.clone(), Combine::Reduce);
            steps.extend(others().map(summed));
            steps.extend(self.between(rank - start, group, len).into_iter().map(Some));
            steps.extend(others().map(|other| Step::send(other, own.clone())));
        }
        steps.extend(owners().map(|other| Step::receive(other, chunk(other), Combine::Replace)));
        steps.into_iter().flatten().collect()
    }

    /// The all-reduce of one chunk between its owners, in the terms of all workers and elements.
    fn between(&self, owner: usize, group: usize, len: usize) -> Vec<Step> {
        let chunk = self.chunk(owner, len);
        let steps = if self.halving {
            halving_doubling_all_reduce(group, self.groups(), chunk.len())
        } else {
            ring_all_reduce(group, self.groups(), chunk.len()).collect()
        };
        let rank = |group: usize| self.starts[group] + owner;
        let place =
            |range: std::ops::Range<usize>| chunk.start + range.start..chunk.start + range.end;
        let moved = |step: Step| Step {
            send: step.send.map(|(to, range)| (rank(to), place(range))),
            receive: (step.receive)
                .map(|(from, range, combine)| (rank(from), place(range), combine)),
            ..step
        };
        steps.into_iter().map(moved).collect()
    }

    /// The sums inside groups of what worker `owner` of each sums: `[groups, elements of its
    /// chunk]`.
    pub(super) fn sums<T: Copy>(
        &self,
        owner: usize,
        values: &[Vec<T>],
        combine: &impl Fn(T, T) -> T,
    ) -> Vec<Vec<T>> {
        let chunk = self.chunk(owner, values.first().map_or(0, Vec::len));
        let sum = |ends: &[usize]| {
            let own = ends[0] + owner;
            let mut sum = values[own][chunk.clone()].to_vec();
            for other in (ends[0]..ends[1]).filter(|&other| other != own) {
                let pairs = sum.iter_mut().zip(&values[other][chunk.clone()]);
                pairs.for_each(|(own, received)| *own = combine(*own, *received));
            }
            sum
        };
        self.starts.windows(2).map(sum).collect()
    }

    /// How many chunks there are.
    pub(super) const fn chunks(&self) -> usize {
        self.owners
    }

    /// Whether groups sum by halving and doubling.
    pub(super) const fn is_halving(&self) -> bool {
        self.halving
    }
}
