//! Mini-batches of parts with unequally many training nodes.

use super::rows::distinct;

/// What to know of strategies, by their labels, that take more steps an epoch than parts with
/// equally many training nodes would give them, and how many these would be.
///
/// A larger batch by a few nodes may halve the number of updates, and with it what is learnt in so
/// many epochs: partitioners are then compared by something else.
pub(super) fn note_on_steps<'a>(
    cells: impl Iterator<Item = (&'a str, Option<[usize; 2]>)>,
) -> Option<String> {
    let found: Vec<(&str, [usize; 2])> = cells
        .filter_map(|(label, steps)| Some((label, steps?)))
        .collect();
    let more = |[steps, equal]: [usize; 2]| steps as f64 / equal as f64;
    let worst = (found.iter()).max_by(|a, b| more(a.1).total_cmp(&more(b.1)));
    worst.map(|&(_, [steps, equal])| {
        let labels = distinct(found.iter().map(|&(label, _)| label)).join(", ");
        format!(
            "{labels}: up to {steps} steps an epoch where parts with equally many training nodes would have {equal}, as all take \
             as many as the fullest part needs; `partition.balance = [\"training\"]` with METIS or a larger batch evens them out"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_factor_is_named_and_equal_parts_are_not() {
        assert_eq!(note_on_steps([("a", None)].into_iter()), None);
        let cells = [
            ("a", Some([12, 11])),
            ("b", Some([2, 1])),
            ("c", None),
            ("a", Some([3, 2])),
        ];
        let note = note_on_steps(cells.into_iter()).unwrap();
        assert!(note.starts_with("a, b: up to 2 steps"), "{note}");
        assert!(note.contains("would have 1,"), "{note}");
    }
}
