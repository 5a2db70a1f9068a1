//! Which nodes train, validate and test.

use std::sync::Arc;

use rand::seq::SliceRandom;

use super::{Dataset, GraphError, RawDataset, Reading, Split, SplitFractions, SplitSpec};
use crate::rng::{Purpose, stream};

const KEY: &str = "dataset.split";

impl RawDataset {
    /// Gives generated data a split of its own, 60 % for training, 20 % for validation and 20 % for
    /// test, so that it can be used without saying more.
    pub(super) fn with_own_split(mut self, seed: u64) -> Result<Self, GraphError> {
        let shares = SplitFractions {
            train: 0.6,
            val: 0.2,
            seed: None,
        };
        self.splits = vec![choose(&SplitSpec::Fractions(shares), &self, seed)?];
        Ok(self)
    }

    /// Chooses training, validation and test nodes; `seed` is the seed of the run. O(nodes): graph,
    /// features and labels are shared with `self`.
    ///
    /// # Errors
    /// If the data set has no such published split, if shares are out of range, or if a class is
    /// too small.
    pub fn split(&self, spec: &SplitSpec, seed: u64) -> Result<Dataset, GraphError> {
        let published = match self.splits.len() {
            1 => "the split that comes with the data is".to_owned(),
            several => format!("the {several} splits that come with the data are"),
        };
        // Generated data have a split of no meaning.
        let unused = self.reading.edges.is_some() && !self.splits.is_empty();
        let reading = if unused && !matches!(spec, SplitSpec::Named(_)) {
            let note =
                format!("{published} not used: dataset.split asks for one by shares or counts");
            Arc::new(Reading::clone(&self.reading).with_note(note))
        } else {
            Arc::clone(&self.reading)
        };
        Ok(Dataset {
            name: self.name.clone(),
            graph: Arc::clone(&self.graph),
            features: Arc::clone(&self.features),
            labels: self.labels.clone(),
            classes: self.classes,
            metric: self.labels.usual_metric(),
            split: choose(spec, self, seed)?,
            reading,
        })
    }
}

/// The split that `spec` asks for. Nodes without a label are in none of the sets; data without
/// any labels gets the empty split.
fn choose(spec: &SplitSpec, data: &RawDataset, seed: u64) -> Result<Split, GraphError> {
    if data.classes == 0 {
        return Ok(Split::default());
    }
    match spec {
        SplitSpec::Named(name) => published(name, data).map(|split| labelled(split, data)),
        SplitSpec::Fractions(shares) => {
            let (train, val) = (shares.train, shares.val);
            let sound = train > 0.0 && val > 0.0 && train + val < 1.0;
            if !sound {
                let what = format!(
                    "train = {train} and val = {val} must be above 0 and together below 1, \
                    so that a test set is left"
                );
                return Err(GraphError::key(KEY, what));
            }
            fractions([train, val], data, shares.seed.unwrap_or(seed))
        }
        SplitSpec::PerClass(counts) => {
            let validation = match (counts.val_per_class, counts.val) {
                (Some(each), None) => Validation::PerClass(each),
                (None, Some(all)) => Validation::InAll(all),
                _ => {
                    let what = "needs either val_per_class or val, the validation nodes of each class or of all";
                    return Err(GraphError::key(KEY, what));
                }
            };
            let seed = counts.seed.unwrap_or(seed);
            per_class(counts.train_per_class, validation, data, seed)
        }
    }
}

/// The same sets without nodes of which nothing is known: they would count as wrong.
fn labelled(mut split: Split, data: &RawDataset) -> Split {
    let known = data.labels.known();
    if known.len() < data.labels.len() {
        for nodes in [&mut split.train, &mut split.validation, &mut split.test] {
            nodes.retain(|node| known.binary_search(node).is_ok());
        }
    }
    split
}

/// `public` or `public-K`.
fn published(name: &str, data: &RawDataset) -> Result<Split, GraphError> {
    let number = match name.strip_prefix("public") {
        Some("") => Some(0),
        Some(rest) => rest
            .strip_prefix('-')
            .and_then(|number| number.parse::<usize>().ok()),
        None => None,
    };
    let Some(number) = number else {
        let what = format!(
            "there is no split `{name}`; write \"public\", \"public-3\" for the fourth of \
            several, {SEEDED}"
        );
        return Err(GraphError::key(KEY, what));
    };
    data.splits.get(number).cloned().ok_or_else(|| {
        let what = match data.splits.len() {
            0 => format!(
                "the data set `{}` comes without a split; write {SEEDED}",
                data.name
            ),
            1 => format!(
                "the data set `{}` comes with one split, \"public\"",
                data.name
            ),
            many => format!(
                "the data set `{}` comes with {many} splits, \"public\" to \"public-{}\"",
                data.name,
                many - 1
            ),
        };
        GraphError::key(KEY, what)
    })
}

const SEEDED: &str = "{ train = 0.6, val = 0.2 } or { train_per_class = 20, val_per_class = 30 } (or val = 500) for a seeded one";

/// Shares of all labelled nodes; what is left is the test set.
fn fractions(shares: [f64; 2], data: &RawDataset, seed: u64) -> Result<Split, GraphError> {
    let mut nodes = data.labels.known();
    let [train, val] = shares.map(|share| (share * nodes.len() as f64).round() as usize);
    if train == 0 || val == 0 || train + val >= nodes.len() {
        let what = format!(
            "{} labelled nodes are too few: {train} would train, {val} validate and {} test",
            nodes.len(),
            nodes.len().saturating_sub(train + val)
        );
        return Err(GraphError::key(KEY, what));
    }
    nodes.shuffle(&mut stream(seed, Purpose::Split, 0, 0));
    let test = nodes.split_off(train + val);
    let validation = nodes.split_off(train);
    Ok(Split::new(nodes, validation, test).sorted())
}

/// How many nodes validate.
#[derive(Clone, Copy)]
enum Validation {
    /// Of each class.
    PerClass(usize),
    /// Of all that do not train.
    InAll(usize),
}

/// Equal numbers from each class for training; what is left is the test set.
fn per_class(
    train: usize,
    validation: Validation,
    data: &RawDataset,
    seed: u64,
) -> Result<Split, GraphError> {
    let (val, in_all) = match validation {
        Validation::PerClass(each) => (each, 0),
        Validation::InAll(all) => (0, all),
    };
    if train == 0 || val + in_all == 0 {
        return Err(GraphError::key(
            KEY,
            "train_per_class and val_per_class, or val, must be at least 1",
        ));
    }
    if data.labels.several().is_some() {
        let what = "counts nodes of each class, and nodes of this data set have several labels; take shares, \
            { train = 0.6, val = 0.2 }";
        return Err(GraphError::key(KEY, what));
    }
    let mut members = vec![Vec::new(); data.classes];
    for (node, label) in (0_u32..).zip(data.labels.classes()) {
        if let Some(class) = label {
            members[*class as usize].push(node);
        }
    }
    let mut split = Split::default();
    for (class, mut nodes) in (0_u64..).zip(members) {
        if nodes.len() < train.saturating_add(val) {
            let what = format!(
                "class {class} has {} nodes, fewer than the {} that train_per_class and \
                val_per_class ask for; lower them",
                nodes.len(),
                train.saturating_add(val)
            );
            return Err(GraphError::key(KEY, what));
        }
        // A stream of its own for each class, whose choice then does not depend on the other
        // classes.
        nodes.shuffle(&mut stream(seed, Purpose::Split, 0, class));
        split.test.extend(nodes.split_off(train + val));
        split.validation.extend(nodes.split_off(train));
        split.train.extend(nodes);
    }
    if in_all > 0 {
        // A stream that no class has.
        let mut random = stream(seed, Purpose::Split, 0, data.classes as u64);
        // By number again: they were put together class by class.
        split.test.sort_unstable();
        split.test.shuffle(&mut random);
        split.validation = split
            .test
            .split_off(split.test.len().saturating_sub(in_all));
    }
    if split.test.is_empty() {
        return Err(GraphError::key(
            KEY,
            "leaves no node for the test set; lower the counts",
        ));
    }
    Ok(split.sorted())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Csr, Features, SplitFractions, SplitPerClass};
    use proptest::prelude::*;

    fn data(labels: Vec<Option<u32>>, splits: Vec<Split>) -> RawDataset {
        let nodes = labels.len();
        let classes = labels
            .iter()
            .flatten()
            .max()
            .map_or(0, |&class| class as usize + 1);
        let graph = Csr::from_edges(nodes, std::iter::empty());
        RawDataset::new(
            "toy".into(),
            graph,
            Features::none(nodes),
            labels,
            classes,
            splits,
        )
    }

    /// 100 nodes: every tenth without a label, the others of class 0, 1 or 2.
    fn hundred() -> RawDataset {
        data(
            (0..100).map(|v| (v % 10 != 0).then_some(v % 3)).collect(),
            vec![],
        )
    }

    fn shares(train: f64, val: f64, seed: Option<u64>) -> SplitSpec {
        SplitSpec::Fractions(SplitFractions { train, val, seed })
    }

    fn counts(train_per_class: usize, val_per_class: usize) -> SplitSpec {
        SplitSpec::PerClass(SplitPerClass {
            train_per_class,
            val_per_class: Some(val_per_class),
            val: None,
            seed: None,
        })
    }

    fn total(train_per_class: usize, val: usize) -> SplitSpec {
        SplitSpec::PerClass(SplitPerClass {
            train_per_class,
            val_per_class: None,
            val: Some(val),
            seed: None,
        })
    }

    fn message(spec: &SplitSpec, data: &RawDataset) -> String {
        data.split(spec, 0).unwrap_err().to_string()
    }

    #[test]
    fn nodes_without_a_label_are_in_no_set_of_a_published_split_either() {
        let published = Split::new(vec![0, 1, 2], vec![3, 10], vec![20, 21, 22]);
        let mut data = hundred();
        data.splits = vec![published];
        let split = data.split(&SplitSpec::default(), 0).unwrap().split;
        assert_eq!(
            (&split.train[..], &split.validation[..], &split.test[..]),
            (&[1, 2][..], &[3][..], &[21, 22][..])
        );
    }

    #[test]
    fn shares_are_of_the_labelled_nodes() {
        let split = hundred().split(&shares(0.6, 0.2, None), 1).unwrap().split;
        assert_eq!(
            (split.train.len(), split.validation.len(), split.test.len()),
            (54, 18, 18)
        );
    }

    #[test]
    fn each_class_gives_as_many_nodes_as_asked_for() {
        let data = hundred();
        let split = data.split(&counts(5, 7), 1).unwrap().split;
        for class in 0..3 {
            let of_class = |nodes: &[u32]| {
                nodes
                    .iter()
                    .filter(|&&v| data.labels.classes()[v as usize] == Some(class))
                    .count()
            };
            assert_eq!(
                (of_class(&split.train), of_class(&split.validation)),
                (5, 7)
            );
        }
        assert_eq!(split.test.len(), 90 - 36);
    }

    #[test]
    fn a_total_validates_on_so_many_of_all_that_do_not_train() {
        // CiteSeer's 3,327 nodes as RETEXO's authors divide them: 178 of each of six classes train,
        // 357 validate and 1,902 are left.
        let sizes = [264, 590, 668, 701, 596, 508];
        let labels = (0_u32..).zip(sizes);
        let labels = labels.flat_map(|(class, size)| vec![Some(class); size]);
        let citeseer = data(labels.collect(), vec![]);
        let of = |seed| citeseer.split(&total(178, 357), seed).unwrap().split;
        let split = of(1);
        let found = [split.train.len(), split.validation.len(), split.test.len()];
        assert_eq!(found, [1068, 357, 1902]);
        let class = |v: &u32| citeseer.labels.classes()[*v as usize].unwrap() as usize;
        let mut training = [0; 6];
        let mut validating = [0; 6];
        split.train.iter().for_each(|v| training[class(v)] += 1);
        split
            .validation
            .iter()
            .for_each(|v| validating[class(v)] += 1);
        assert_eq!(training, [178; 6]);
        // Of each class about 357/2259 of what is left, 14 of the smallest and 83 of the largest.
        assert!(validating[0] < 30 && validating[3] > 55, "{validating:?}");
        assert_ne!(of(1), of(2));
        let greedy = message(&total(20, 40), &hundred());
        assert!(
            greedy.contains("leaves no node for the test set"),
            "{greedy}"
        );
        assert!(message(&total(5, 0), &hundred()).contains("at least 1"));
    }

    #[test]
    fn validation_is_counted_one_way() {
        for (val_per_class, val) in [(None, None), (Some(3), Some(9))] {
            let spec = SplitSpec::PerClass(SplitPerClass {
                train_per_class: 5,
                val_per_class,
                val,
                seed: None,
            });
            let said = message(&spec, &hundred());
            assert!(said.contains("either val_per_class or val"), "{said}");
        }
    }

    #[test]
    fn a_fixed_seed_wins_over_the_seed_of_the_run() {
        let data = hundred();
        let of = |spec: &SplitSpec, seed| data.split(spec, seed).unwrap().split;
        assert_eq!(
            of(&shares(0.5, 0.2, Some(9)), 1),
            of(&shares(0.5, 0.2, None), 9)
        );
        assert_ne!(
            of(&shares(0.5, 0.2, None), 1),
            of(&shares(0.5, 0.2, None), 2)
        );
    }

    #[test]
    fn a_class_that_is_too_small_is_named() {
        let text = message(&counts(20, 20), &hundred());
        assert!(
            text.starts_with("dataset.split: class 0 has 30 nodes, fewer than the 40"),
            "{text}"
        );
        assert!(message(&counts(0, 5), &hundred()).contains("at least 1"));
    }

    #[test]
    fn shares_that_leave_nothing_to_test_are_refused() {
        assert!(message(&shares(0.8, 0.2, None), &hundred()).contains("together below 1"));
        assert!(message(&shares(f64::NAN, 0.2, None), &hundred()).contains("above 0"));
        let two = data(vec![Some(0), Some(1)], vec![]);
        assert!(message(&shares(0.6, 0.2, None), &two).contains("2 labelled nodes are too few"));
    }

    #[test]
    fn published_splits_are_found_by_number_or_refused_by_name() {
        let one = |node| Split {
            train: vec![node],
            ..Split::default()
        };
        let named = |name: &str| SplitSpec::Named(name.to_owned());
        let ten = data(vec![Some(0); 4], (0..3).map(one).collect());
        assert_eq!(ten.split(&named("public"), 0).unwrap().split, one(0));
        assert_eq!(ten.split(&named("public-2"), 0).unwrap().split, one(2));
        assert!(message(&named("public-3"), &ten).contains("3 splits, \"public\" to \"public-2\""));
        assert!(message(&named("pubic"), &ten).contains("no split `pubic`"));
        assert!(message(&named("public"), &hundred()).contains("comes without a split"));
    }

    #[test]
    fn data_without_labels_gets_the_empty_split() {
        let topology = data(vec![None; 5], vec![]);
        assert_eq!(
            topology.split(&SplitSpec::default(), 0).unwrap().split,
            Split::default()
        );
    }

    proptest! {
        #[test]
        fn the_three_sets_are_sorted_disjoint_and_cover_the_labelled_nodes(
            seed: u64, form in 0..3_usize
        ) {
            let spec = [counts(4, 3), total(4, 9), shares(0.3, 0.3, None)][form].clone();
            let split = hundred().split(&spec, seed).unwrap().split;
            let sets = [&split.train, &split.validation, &split.test];
            prop_assert!(sets.iter().all(|set| set.is_sorted()));
            let mut all = sets.map(Vec::as_slice).concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..100).filter(|v| v % 10 != 0).collect::<Vec<u32>>());
        }
    }
}
