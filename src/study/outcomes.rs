//! Every outcome of a small design, so that expectations are exact sums.

/// All `workers^units` assignments of units to workers, each as the worker of every unit; all
/// equally likely under independent assignment.
pub(super) fn assignments(units: usize, workers: usize) -> impl Iterator<Item = Vec<u32>> {
    let mut next = (workers > 0 || units == 0).then(|| vec![0_u32; units]);
    std::iter::from_fn(move || {
        let current = next.take()?;
        // Counts in base `workers`.
        let mut successor = current.clone();
        for digit in successor.iter_mut().rev() {
            *digit += 1;
            if (*digit as usize) < workers {
                next = Some(successor);
                break;
            }
            *digit = 0;
        }
        Some(current)
    })
}

/// All assignments in which worker k holds `sizes[k]` units, in lexicographic order; all equally
/// likely under balanced random assignment.
pub(super) fn balanced_assignments(sizes: &[usize]) -> impl Iterator<Item = Vec<u32>> + use<> {
    let first: Vec<u32> = (0_u32..)
        .zip(sizes)
        .flat_map(|(worker, &size)| std::iter::repeat_n(worker, size))
        .collect();
    let mut next = Some(first);
    std::iter::from_fn(move || {
        let current = next.take()?;
        let mut successor = current.clone();
        if permute(&mut successor) {
            next = Some(successor);
        }
        Some(current)
    })
}

/// The next permutation in lexicographic order, or false at the last.
fn permute(values: &mut [u32]) -> bool {
    let Some(pivot) = values.windows(2).rposition(|pair| pair[0] < pair[1]) else {
        return false;
    };
    // The pivot's right neighbour is larger, so there is one.
    let larger = values
        .iter()
        .rposition(|&value| value > values[pivot])
        .unwrap_or(pivot + 1);
    values.swap(pivot, larger);
    values[pivot + 1..].reverse();
    true
}

/// The sizes of workers that `units` units are dealt to in turn: equal, or one more for the first
/// ones.
pub(super) fn balanced_sizes(units: usize, workers: usize) -> Vec<usize> {
    (0..workers)
        .map(|worker| units / workers + usize::from(worker < units % workers))
        .collect()
}

/// How many [`balanced_assignments`] there are, `n!/Π s_k!`; as a float, for it is soon large.
pub(super) fn count_of_balanced_assignments(sizes: &[usize]) -> f64 {
    let (mut count, mut placed) = (1.0, 0.0);
    for &size in sizes {
        for i in 1..=size {
            placed += 1.0;
            // Divided on the way: factorials would leave the range of a float much sooner.
            count *= placed / i as f64;
        }
    }
    count.round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assignments_count_through_every_one_once() {
        let all: Vec<Vec<u32>> = assignments(3, 2).collect();
        assert_eq!(
            (all.len(), &all[0], &all[5]),
            (8, &vec![0, 0, 0], &vec![1, 0, 1])
        );
        assert!(all.is_sorted() && all.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(assignments(4, 1).count(), 1);
        assert_eq!(assignments(0, 3).count(), 1);
    }

    #[test]
    fn balanced_assignments_are_the_assignments_of_those_sizes() {
        for (units, workers) in [(6, 3), (5, 2), (7, 3), (4, 4), (3, 1)] {
            let sizes = balanced_sizes(units, workers);
            let holds = |assignment: &Vec<u32>| {
                (0_u32..).zip(&sizes).all(|(worker, &size)| {
                    assignment.iter().filter(|&&w| w == worker).count() == size
                })
            };
            let expected: Vec<Vec<u32>> = assignments(units, workers).filter(holds).collect();
            let found: Vec<Vec<u32>> = balanced_assignments(&sizes).collect();
            assert_eq!(found, expected);
            assert_eq!(count_of_balanced_assignments(&sizes), found.len() as f64);
        }
    }
}
