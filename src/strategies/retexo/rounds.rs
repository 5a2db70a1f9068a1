//! For how long each sub-model is trained.

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::strategies::OptionError;

/// Rounds of each sub-model, one after another: epochs of the run are numbered through.
/// `rounds_per_layer` of an experiment file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Rounds {
    /// As many for all.
    Same(usize),
    /// The R of each.
    Each(Vec<usize>),
}

impl<'de> Deserialize<'de> for Rounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = || {
            D::Error::custom("must be a number of rounds, or a list with one for each sub-model")
        };
        let count = |value: &toml::Value| {
            let count = value.as_integer().and_then(|it| usize::try_from(it).ok());
            count.ok_or_else(wrong)
        };
        match toml::Value::deserialize(deserializer)? {
            toml::Value::Array(all) => {
                let all: Result<_, _> = all.iter().map(count).collect();
                all.map(Self::Each)
            }
            one => count(&one).map(Self::Same),
        }
    }
}

impl Rounds {
    /// Whether every sub-model has a round.
    ///
    /// # Errors
    /// If not.
    pub(super) fn check(&self) -> Result<(), OptionError> {
        let none = match self {
            Self::Same(rounds) => *rounds == 0,
            Self::Each(all) => all.is_empty() || all.contains(&0),
        };
        if none {
            return Err(OptionError::key("rounds_per_layer", "must be at least 1"));
        }
        Ok(())
    }

    /// Whether a list has a number for each of so many sub-models.
    ///
    /// # Errors
    /// If not.
    pub(super) fn suit(&self, sub_models: usize) -> Result<(), OptionError> {
        match self {
            Self::Each(all) if all.len() != sub_models => {
                let given = all.len();
                let what = format!(
                    "must be one number, or a list with one for each of the {sub_models} sub-models, and has {given}"
                );
                Err(OptionError::key("rounds_per_layer", what))
            }
            _ => Ok(()),
        }
    }

    /// Rounds of sub-model `k`.
    pub(super) fn of(&self, k: usize) -> usize {
        match self {
            Self::Same(rounds) => *rounds,
            Self::Each(all) => all[k],
        }
    }

    /// The epoch in which sub-model `k` begins, which is the number of epochs of `k` sub-models.
    pub(super) fn first(&self, k: usize) -> usize {
        match self {
            Self::Same(rounds) => rounds.saturating_mul(k),
            Self::Each(all) => all
                .iter()
                .take(k)
                .fold(0, |sum, &it| sum.saturating_add(it)),
        }
    }

    /// Which sub-model trains in an epoch, and in which of its rounds that is.
    pub(super) fn at(&self, epoch: usize) -> (usize, usize) {
        match self {
            Self::Same(rounds) => (epoch / rounds, epoch % rounds),
            Self::Each(all) => {
                let (mut k, mut round) = (0, epoch);
                while round >= all[k] && k + 1 < all.len() {
                    round -= all[k];
                    k += 1;
                }
                (k, round)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_epoch_is_a_round_of_the_sub_model_whose_turn_it_is(
            all in proptest::collection::vec(1..7_usize, 1..6),
        ) {
            let rounds = Rounds::Each(all.clone());
            let epochs = all.iter().enumerate().flat_map(|(k, &n)| (0..n).map(move |round| (k, round)));
            for (epoch, (k, round)) in epochs.enumerate() {
                prop_assert_eq!(rounds.at(epoch), (k, round));
                prop_assert_eq!(rounds.first(k) + round, epoch);
                prop_assert_eq!(rounds.of(k), all[k]);
            }
            prop_assert_eq!(rounds.first(all.len()), all.iter().sum::<usize>());
            let (same, each) = (Rounds::Same(all[0]), Rounds::Each(vec![all[0]; 3]));
            for k in 0..3 {
                prop_assert_eq!((same.of(k), same.first(k)), (each.of(k), each.first(k)));
            }
            for epoch in 0..3 * all[0] {
                prop_assert_eq!(same.at(epoch), each.at(epoch));
            }
        }
    }

    #[test]
    fn one_number_is_for_all_and_a_list_has_one_for_each() {
        #[derive(Deserialize)]
        struct Options {
            rounds: Rounds,
        }
        let read = |text: &str| {
            let options: Options = toml::from_str(&format!("rounds = {text}"))
                .map_err(|error| error.message().to_owned())?;
            let checked = options.rounds.check();
            let checked = checked.and_then(|()| options.rounds.suit(3));
            checked.map_err(|error| error.message)?;
            Ok::<_, String>(options.rounds)
        };
        assert_eq!(read("4"), Ok(Rounds::Same(4)));
        assert_eq!(read("[1, 2, 3]"), Ok(Rounds::Each(vec![1, 2, 3])));
        for (text, says) in [
            ("[1, 2]", "each of the 3 sub-models"),
            ("[1, 0, 2]", "at least 1"),
            ("[]", "at least 1"),
            ("-1", "must be a number of rounds"),
            ("\"all\"", "must be a number of rounds"),
            ("[1, 2, 3.5]", "must be a number of rounds"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
