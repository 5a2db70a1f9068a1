//! Estimates that gather what several repartitions show.

/// The ratio estimator of a mean over phases, `Σ_s Σ_u I x/π / Σ_s Σ_u I/π`: as phases gather it
/// goes to the full mean with a bias of the order 1/S, if every neighbour can be seen. With `π = 1`
/// for all, it goes to the mean weighted by how often each is seen instead. *(Derived, §4.4 T3.)*
#[derive(Clone, Debug)]
pub(super) struct Ratio {
    sum: Vec<f64>,
    count: f64,
}

impl Ratio {
    /// Of vectors of that width.
    pub(super) fn new(width: usize) -> Self {
        Self {
            sum: vec![0.0; width],
            count: 0.0,
        }
    }

    /// One neighbour that a phase shows, `[width]`, and how likely a phase is to show it (more than
    /// 0).
    pub(super) fn add(&mut self, row: &[f64], inclusion: f64) {
        for (sum, value) in self.sum.iter_mut().zip(row) {
            *sum += value / inclusion;
        }
        self.count += 1.0 / inclusion;
    }

    /// The estimate, `[width]`; `None` while nothing was seen.
    pub(super) fn estimate(&self) -> Option<Vec<f64>> {
        (self.count > 0.0).then(|| self.sum.iter().map(|sum| sum / self.count).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::binomial;
    use super::*;

    /// The exact expectation over S independent phases that always show the neighbour `own` and
    /// show `other` with this probability, which `weighted` as such.
    fn expectation(phases: usize, probability: f64, weighted: f64) -> f64 {
        let (own, other) = (1.0, 5.0);
        let shown = binomial(phases, probability);
        let estimates = (0..=phases).map(|times| {
            let mut ratio = Ratio::new(1);
            (0..phases).for_each(|_| ratio.add(&[own], 1.0));
            (0..times).for_each(|_| ratio.add(&[other], weighted));
            ratio.estimate().unwrap()[0]
        });
        shown
            .iter()
            .zip(estimates)
            .map(|(chance, estimate)| chance * estimate)
            .sum()
    }

    #[test]
    fn the_bias_halves_when_phases_double() {
        for probability in [1.0 / 3.0, 1.0 / 7.0] {
            for phases in [64, 128, 256] {
                let bias = |phases| expectation(phases, probability, probability) - 3.0;
                let ratio = bias(phases) / bias(2 * phases);
                assert!((ratio - 2.0).abs() < 0.2, "{phases} phases: {ratio}");
            }
        }
    }

    #[test]
    fn unit_weights_go_to_the_mean_weighted_by_inclusion() {
        let probability = 1.0 / 3.0;
        let wrong = (1.0 + probability * 5.0) / (1.0 + probability);
        let distance = |phases| (expectation(phases, probability, 1.0) - wrong).abs();
        assert!(distance(512) < 1e-3 && distance(512) < 0.6 * distance(256));
        // The full mean is 3, the wrong limit 2.
        assert!((wrong - 2.0).abs() < 1e-12);
    }

    #[test]
    fn nothing_seen_is_no_estimate() {
        assert_eq!(Ratio::new(2).estimate(), None);
    }
}
