//! From the ids and class names of a file to the numbers 0, 1, 2, …

/// Ids as they come, any number of times, of which little more than one of each is held.
#[derive(Default)]
pub(crate) struct DistinctIds(Vec<u64>);

impl DistinctIds {
    /// Takes one more.
    pub(crate) fn add(&mut self, id: u64) {
        if self.0.len() == self.0.capacity() {
            self.0.sort_unstable();
            self.0.dedup();
            // With as much place again, so that each sort is paid by those that came since.
            self.0.reserve(self.0.len() + (1 << 12));
        }
        self.0.push(id);
    }
}

impl From<DistinctIds> for Vec<u64> {
    fn from(seen: DistinctIds) -> Self {
        seen.0
    }
}

/// The ids of all nodes; node k is the k-th smallest id.
pub(super) struct Ids(Vec<u64>);

impl Ids {
    /// All ids that occur, in any order and any number of times. At most 2³² of them.
    pub(super) fn new(mut ids: Vec<u64>) -> Result<Self, String> {
        ids.sort_unstable();
        ids.dedup();
        if u32::try_from(ids.len()).is_err() {
            return Err(format!(
                "{} nodes are more than the 2^32 - 1 that fit",
                ids.len()
            ));
        }
        Ok(Self(ids))
    }

    /// Number of nodes.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// The node with this id.
    pub(super) fn node(&self, id: u64) -> Option<u32> {
        self.0
            .binary_search(&id)
            .ok()
            .and_then(|index| u32::try_from(index).ok())
    }
}

/// Numbers classes from 0 in ascending order of their names: files count from 0, from 1
/// (`blogcatalog`) or not at all. Returns the class of each node, `[nodes]`, and the number of
/// classes.
pub(super) fn number_classes<T: Ord + Clone>(names: &[Option<T>]) -> (Vec<Option<u32>>, usize) {
    let mut classes: Vec<T> = names.iter().flatten().cloned().collect();
    classes.sort_unstable();
    classes.dedup();
    // The list holds every name, and classes are fewer than nodes, whose number fits.
    let class = |name: &T| {
        classes
            .binary_search(name)
            .ok()
            .and_then(|class| u32::try_from(class).ok())
    };
    (
        names
            .iter()
            .map(|name| name.as_ref().and_then(class))
            .collect(),
        classes.len(),
    )
}

/// Whether a field names a class: nothing and `nan`, which programs write for missing values, do
/// not.
pub(super) fn is_known(label: &str) -> bool {
    let label = label.trim();
    !label.is_empty() && !label.eq_ignore_ascii_case("nan")
}

/// What to say of names that other programs write where no class is known, and that are classes
/// here. Of two classes −1 is one, as a rule.
pub(super) fn doubtful(names: &[Option<String>], classes: usize) -> Option<String> {
    const NONE: [&str; 6] = ["-1", "na", "n/a", "none", "null", "?"];
    let stands = |name: &&str| NONE.iter().any(|none| name.eq_ignore_ascii_case(none));
    let named = names.iter().flatten().map(|name| name.trim());
    let some: Vec<&str> = named.filter(stands).collect();
    let first = some.first().filter(|_| classes > 2)?;
    Some(format!(
        "`{first}` is read as a class like any other, and so of {} nodes; leave the field empty where no class is known",
        some.len()
    ))
}

/// Checks that a node number is one of `nodes`.
pub(super) fn in_range(node: u64, nodes: usize) -> Result<u32, String> {
    u32::try_from(node)
        .ok()
        .filter(|&node| (node as usize) < nodes)
        .ok_or_else(|| {
            format!(
                "node {node} is not one of the {nodes} nodes, 0 to {}",
                nodes.saturating_sub(1)
            )
        })
}

/// The same of a number that may be negative, and then is out of range.
pub(super) fn signed_in_range(node: i64, nodes: usize) -> Result<u32, String> {
    in_range(u64::try_from(node).unwrap_or(u64::MAX), nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_with_gaps_become_consecutive_nodes() {
        let ids = Ids::new(vec![84_424, 7, 276, 7]).unwrap();
        assert_eq!(ids.len(), 3);
        assert_eq!(
            [7, 276, 84_424, 8].map(|id| ids.node(id)),
            [Some(0), Some(1), Some(2), None]
        );
    }

    #[test]
    fn classes_are_numbered_in_the_order_of_their_names() {
        let (labels, classes) = number_classes(&[Some(6), None, Some(1), Some(6)]);
        assert_eq!(
            (labels, classes),
            (vec![Some(1), None, Some(0), Some(1)], 2)
        );
    }

    #[test]
    fn names_that_often_stand_for_no_class_are_told_unless_minus_one_is_one_of_two() {
        let names = |names: &[&str]| -> Vec<Option<String>> {
            names.iter().map(|name| Some((*name).to_owned())).collect()
        };
        let told = doubtful(&names(&["0", "-1", "1", " -1"]), 3).unwrap();
        assert!(told.starts_with("`-1` is read as a class"), "{told}");
        assert!(told.contains("of 2 nodes"), "{told}");
        assert_eq!(doubtful(&names(&["1", "-1"]), 2), None);
        assert_eq!(doubtful(&names(&["a", "b", "nay"]), 3), None);
    }

    #[test]
    fn a_node_beyond_the_last_is_refused() {
        assert_eq!(in_range(4, 5), Ok(4));
        assert!(in_range(5, 5).unwrap_err().contains("0 to 4"));
    }
}
