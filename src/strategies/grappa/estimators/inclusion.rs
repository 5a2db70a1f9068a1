//! How likely a random design shows one node to the worker of another.

/// A design over *units*: nodes, or chunks of nodes that stay together. Two nodes of one unit
/// always see each other; what follows is about others. *(Derived, by counting; §4.1.)*
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inclusion {
    /// Every unit goes to one of the workers, independently and with equal chances.
    Independent {
        /// Number of workers, at least 1.
        workers: usize,
    },
    /// Units are dealt to workers in random order, so that counts differ by at most one: balanced
    /// random nodes, or a random grouping of chunks.
    Balanced {
        /// Number of units, at least `workers`.
        units: usize,
        /// Number of workers, at least 1.
        workers: usize,
    },
    /// One worker a chunk, which sees its own and one other, all others equally often: a random
    /// super-epoch of the sweep.
    Sweep {
        /// Number of chunks, which is that of workers.
        chunks: usize,
    },
}

impl Inclusion {
    /// `π_uv`, the probability that `v`'s worker sees `u`: 1 within a unit; otherwise `1/K`
    /// (independent), `(n/K − 1)/(n − 1)` (balanced, if K divides n), `1/(N − 1)` (sweep).
    /// *(Derived, §4.1.)*
    pub(crate) fn pair(self, same_unit: bool) -> f64 {
        if same_unit { 1.0 } else { self.joint(1) }
    }

    /// The probability that a worker sees all of `others` further distinct units beside its own:
    /// `K^−m`, the product of `(s − i)/(n − i)` over i = 1…m averaged over sizes s, and in the
    /// sweep 1, `1/(N − 1)`, 0, 0, …. *(Derived: draws without replacement.)*
    pub(crate) fn joint(self, others: usize) -> f64 {
        match self {
            Self::Independent { workers } => (1.0 / workers as f64).powi(others as i32),
            Self::Balanced { units, workers } => {
                average_over_sizes(units, workers, |size| product(size - 1, units - 1, others))
            }
            Self::Sweep { chunks } => match others {
                0 => 1.0,
                1 if chunks > 1 => 1.0 / (chunks - 1) as f64,
                _ => 0.0,
            },
        }
    }

    /// The probability that a worker sees none of `others` distinct units beside its own:
    /// `(1 − 1/K)^m`, the product of `(n − s − i)/(n − 1 − i)` over i = 0…m−1, and in the sweep
    /// `1 − m/(N − 1)`. *(Derived; §4.4 T2 for the first.)*
    pub(crate) fn none_of(self, others: usize) -> f64 {
        match self {
            _ if others == 0 => 1.0,
            Self::Independent { workers } => (1.0 - 1.0 / workers as f64).powi(others as i32),
            Self::Balanced { units, workers } => average_over_sizes(units, workers, |size| {
                product(units - size, units - 1, others)
            }),
            Self::Sweep { chunks } if chunks > 1 => {
                (1.0 - others as f64 / (chunks - 1) as f64).max(0.0)
            }
            Self::Sweep { .. } => 1.0,
        }
    }
}

/// The mean of `value(s)` over a random unit, `s` being the size (in units) of the worker it is
/// dealt to.
fn average_over_sizes(units: usize, workers: usize, value: impl Fn(usize) -> f64) -> f64 {
    let (size, larger) = (units / workers, units % workers);
    let share = |count: usize, size: usize| (count * size) as f64 / units as f64;
    let mut mean = 0.0;
    for (count, size) in [(workers - larger, size), (larger, size + 1)] {
        if count > 0 && size > 0 {
            mean += share(count, size) * value(size);
        }
    }
    mean
}

/// The probability that `draws` draws without replacement from `all` all fall among `wanted`.
fn product(wanted: usize, all: usize, draws: usize) -> f64 {
    let factor = |i| match wanted.checked_sub(i) {
        Some(left @ 1..) => left as f64 / (all - i) as f64,
        _ => 0.0,
    };
    (0..draws).map(factor).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sizes_give_the_known_fractions() {
        let balanced = Inclusion::Balanced {
            units: 12,
            workers: 3,
        };
        assert!((balanced.pair(false) - 3.0 / 11.0).abs() < 1e-15);
        let grouping = Inclusion::Balanced {
            units: 8,
            workers: 4,
        };
        assert!((grouping.pair(false) - 1.0 / 7.0).abs() < 1e-15);
        assert_eq!(grouping.pair(true), 1.0);
        assert_eq!(Inclusion::Independent { workers: 4 }.pair(false), 0.25);
        assert_eq!(Inclusion::Sweep { chunks: 5 }.pair(false), 0.25);
    }

    #[test]
    fn one_worker_sees_everything_in_every_design() {
        for design in [
            Inclusion::Independent { workers: 1 },
            Inclusion::Balanced {
                units: 9,
                workers: 1,
            },
        ] {
            assert!((0..9).all(|others| design.joint(others) == 1.0));
            assert!((1..9).all(|others| design.none_of(others) == 0.0));
        }
    }

    #[test]
    fn more_units_than_a_worker_holds_are_never_seen_together() {
        let balanced = Inclusion::Balanced {
            units: 6,
            workers: 3,
        };
        assert_eq!((balanced.joint(2), balanced.joint(9)), (0.0, 0.0));
        assert_eq!(balanced.none_of(5), 0.0);
        assert_eq!(Inclusion::Sweep { chunks: 1 }.none_of(1), 1.0);
    }
}
