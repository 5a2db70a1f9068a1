//! From measured transfer times to a network that can be emulated.
//!
//! 1. Each pair of workers: a line t(n) = α + β·n through the times of messages of n bytes, α being
//!    the latency and β the time per byte. Residuals count relative to the time, so that short
//!    messages say what α is and long ones what β is; those far off count less (Huber, *Robust
//!    estimation of a location parameter*, Ann. Math. Statist. 1964).
//! 2. The star: between two workers the slower end decides, in latency as in bandwidth. So a worker
//!    is as fast as the best of its pairs, and one that differs from the others gets figures of its
//!    own.

use super::{
    Bandwidth, Bytes, FramingKind, LinkSpec, Links, MessageCost, NetError, NetworkSpec, Seconds,
    WorkerLinkSpec,
};

/// A line through transfer times, and how well it fits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LineFit {
    /// α: the time of an empty message, one way.
    pub latency: Seconds,
    /// 8/β: what long messages see.
    pub bandwidth: Bandwidth,
    /// Median over sizes of |fitted / measured − 1|.
    pub median_error: f64,
    /// The largest of them.
    pub worst_error: f64,
}

impl LineFit {
    /// The fitted time of a message.
    pub(crate) fn time(&self, size: Bytes) -> Seconds {
        self.latency + size / self.bandwidth
    }
}

/// What messages cost their ends, from bursts of `(number of messages, time until the last was
/// answered)` and how long the sender was busy with each. The time of a burst grows by the larger
/// of o and g with each message: that is g here. o is what the sender itself notices. Both are
/// beside what the byte of a message takes by `line`, and nothing where they are no more than that.
pub(crate) fn fit_message_cost(
    bursts: &[(usize, Seconds)],
    busy: Seconds,
    line: &LineFit,
) -> MessageCost {
    let byte = Bytes(1) / line.bandwidth;
    // The number of messages stands where sizes do: the same robust line then gives the time of
    // each.
    let samples = bursts
        .iter()
        .map(|&(count, time)| (Bytes(count as u64), time));
    let each = fit_line(&samples.collect::<Vec<_>>())
        .map_or(Seconds::ZERO, |fit| Bytes(1) / fit.bandwidth);
    let beyond = |time: Seconds| {
        if time > byte * 2.0 {
            time - byte
        } else {
            Seconds::ZERO
        }
    };
    MessageCost {
        overhead: beyond(busy),
        gap: beyond(each),
        ..MessageCost::default()
    }
}

/// Rounds of reweighting; the weights of a few points settle in fewer.
const ROUNDS: usize = 30;

/// Huber's constant: 95 % efficiency where errors are normal.
const HUBER: f64 = 1.345;

/// A median absolute deviation times this estimates a standard deviation.
const NORMAL: f64 = 1.4826;

/// Fits a line to `(size, time one way)`.
///
/// # Errors
/// With fewer than two sizes, a time that is not greater than zero, or times that do not grow with
/// the size: nothing can be said of the bandwidth.
pub(crate) fn fit_line(samples: &[(Bytes, Seconds)]) -> Result<LineFit, NetError> {
    let refused = |reason: &str| NetError::description("calibration", reason);
    if samples
        .iter()
        .any(|(_, time)| !time.0.is_finite() || time.0 <= 0.0)
    {
        return Err(refused("a transfer took no time; measure again"));
    }
    let mut weights = vec![1.0; samples.len()];
    let (mut alpha, mut beta) = (0.0, 0.0);
    // A fixed number, without a test for convergence: the same measurements always give the same
    // fit.
    for _ in 0..ROUNDS {
        (alpha, beta) = weighted_line(samples, &weights)
            .ok_or_else(|| refused("measure messages of at least two sizes"))?;
        let errors: Vec<f64> = samples
            .iter()
            .map(|(size, time)| ((alpha + beta * size.0 as f64) / time.0 - 1.0).abs())
            .collect();
        // Below a millionth all points are on the line.
        let scale = (NORMAL * median(errors.clone())).max(1e-6);
        for (weight, error) in weights.iter_mut().zip(errors) {
            // A point on the line would divide by zero; its weight is 1 all the same.
            *weight = (HUBER * scale / error.max(1e-12)).min(1.0);
        }
    }
    if beta <= 0.0 {
        return Err(refused(
            "long messages take no longer than short ones; measure longer ones",
        ));
    }
    let fit = LineFit {
        // The line may meet the axis below zero by noise, and no message arrives before it was
        // sent.
        latency: Seconds(alpha.max(0.0)),
        bandwidth: Bandwidth::new(8.0 / beta)?,
        median_error: 0.0,
        worst_error: 0.0,
    };
    let errors: Vec<f64> = samples
        .iter()
        .map(|&(size, time)| (fit.time(size).0 / time.0 - 1.0).abs())
        .collect();
    Ok(LineFit {
        worst_error: errors.iter().copied().fold(0.0, f64::max),
        median_error: median(errors),
        ..fit
    })
}

/// Least squares of relative residuals; none where all sizes are the same.
fn weighted_line(samples: &[(Bytes, Seconds)], weights: &[f64]) -> Option<(f64, f64)> {
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for ((size, time), weight) in samples.iter().zip(weights) {
        let (n, weight) = (size.0 as f64, weight / (time.0 * time.0));
        w += weight;
        x += weight * n;
        y += weight * time.0;
        xx += weight * n * n;
        xy += weight * n * time.0;
    }
    let determinant = w * xx - x * x;
    // Beside the terms it is the difference of: equal sizes leave what was rounded off, not 0.
    if determinant <= f64::EPSILON * w * xx {
        return None;
    }
    let beta = (w * xy - x * y) / determinant;
    Some(((y - beta * x) / w, beta))
}

/// The middle value; of an even number the mean of the two; 0 of none.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        length if length % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Workers that differ less than this from the others share their figures.
const ALIKE: f64 = 0.1;

/// A star that explains the fits of pairs `(worker, worker, fit)` and what messages cost their
/// ends in each: one link and one cost for all, and links of their own for workers that differ.
/// Sizes are those of messages, so no framing is added.
///
/// # Errors
/// If a worker is in no pair.
pub(crate) fn fit_star(
    workers: usize,
    pairs: &[(usize, usize, LineFit)],
    costs: &[MessageCost],
) -> Result<NetworkSpec, NetError> {
    let typical = |of: fn(&MessageCost) -> Seconds| {
        let time = rounded(median(costs.iter().map(|cost| of(cost).0).collect()));
        (time > 0.0).then_some(Seconds(time))
    };
    let (overhead, gap) = (typical(|cost| cost.overhead), typical(|cost| cost.gap));
    // The time of an empty message is L + 2 o.
    let both = 2.0 * overhead.unwrap_or_default().0;
    let latency = ends(workers, pairs, |fit| (fit.latency.0 - both).max(0.0))?;
    let slowness = ends(workers, pairs, |fit| 8.0 / fit.bandwidth.bps())?;
    let (common_latency, common_slowness) = (median(latency.clone()), median(slowness.clone()));
    let differs = |own: f64, common: f64| (own / common.max(f64::MIN_POSITIVE) - 1.0).abs() > ALIKE;
    let mut own = Vec::new();
    for rank in 0..workers {
        let bandwidth = if differs(slowness[rank], common_slowness) {
            Some(bandwidth(slowness[rank])?)
        } else {
            None
        };
        let latency =
            differs(latency[rank], common_latency).then(|| Seconds(rounded(latency[rank])));
        if bandwidth.is_some() || latency.is_some() {
            own.push(WorkerLinkSpec {
                rank,
                bandwidth,
                up: None,
                down: None,
                latency,
                compute: None,
            });
        }
    }
    Ok(NetworkSpec {
        link: Some(Links::Each(LinkSpec {
            bandwidth: bandwidth(common_slowness)?,
            latency: Seconds(rounded(common_latency)),
        })),
        // What was timed were payloads: their headers are in the times already.
        framing: Some(FramingKind::None),
        overhead,
        // Messages are never closer than their overhead, so a smaller gap says nothing.
        gap: gap.filter(|gap| overhead.is_none_or(|overhead| *gap > overhead)),
        workers: own,
        ..NetworkSpec::default()
    })
}

/// What each worker has of something of which a pair shows the larger of its two ends'.
fn ends(
    workers: usize,
    pairs: &[(usize, usize, LineFit)],
    of: impl Fn(&LineFit) -> f64,
) -> Result<Vec<f64>, NetError> {
    let with = |rank: usize| {
        pairs
            .iter()
            .filter(move |(a, b, _)| *a == rank || *b == rank)
            // One of the two is this worker, so what is left of the sum is the other.
            .map(|(a, b, fit)| (a + b - rank, of(fit)))
            .collect::<Vec<_>>()
    };
    let best: Vec<f64> = (0..workers)
        .map(|rank| {
            with(rank)
                .iter()
                .map(|(_, value)| *value)
                .fold(f64::INFINITY, f64::min)
        })
        .collect();
    if let Some(alone) = best.iter().position(|best| best.is_infinite()) {
        let reason = format!("worker {alone} was not measured with any other");
        return Err(NetError::description("calibration", reason));
    }
    // The best of many pairs errs to the good side; with partners that are no worse, every pair
    // shows the worker itself.
    let typical = |rank: usize| {
        let limit = best[rank] * (1.0 + ALIKE);
        let own = with(rank)
            .into_iter()
            .filter(|&(peer, value)| best[peer] <= limit && value <= limit);
        // Its best is there in any case, as the partner of that pair may itself be slower.
        median(own.map(|(_, value)| value).chain([best[rank]]).collect())
    };
    Ok((0..workers).map(typical).collect())
}

fn bandwidth(seconds_per_byte: f64) -> Result<Bandwidth, NetError> {
    Bandwidth::new(rounded(8.0 / seconds_per_byte))
}

/// Three significant digits, which is more than a measurement gives.
fn rounded(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(2 - value.log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZES: [u64; 7] = [1, 64, 4_096, 65_536, 1_048_576, 4_194_304, 16_777_216];

    fn line(latency: f64, bps: f64) -> Vec<(Bytes, Seconds)> {
        SIZES
            .iter()
            .map(|&size| (Bytes(size), Seconds(latency + size as f64 * 8.0 / bps)))
            .collect()
    }

    #[test]
    fn one_wild_measurement_moves_the_line_little() {
        let mut samples = line(50e-6, 1e9);
        samples[3].1 = samples[3].1 * 20.0;
        let fit = fit_line(&samples).unwrap();
        assert!((fit.latency.0 / 50e-6 - 1.0).abs() < 0.02, "{fit:?}");
        assert!((fit.bandwidth.bps() / 1e9 - 1.0).abs() < 0.02, "{fit:?}");
        assert!(fit.median_error < 0.02 && fit.worst_error > 0.9, "{fit:?}");
    }

    #[test]
    fn what_says_nothing_of_the_bandwidth_is_refused() {
        let error = |samples: &[(u64, f64)]| {
            let samples: Vec<_> = samples
                .iter()
                .map(|&(size, time)| (Bytes(size), Seconds(time)))
                .collect();
            fit_line(&samples).unwrap_err().to_string()
        };
        assert!(error(&[]).contains("two sizes"));
        assert!(error(&[(8, 1e-6), (8, 2e-6)]).contains("two sizes"));
        assert!(error(&[(8, 2e-6), (800, 1e-6)]).contains("no longer than short"));
        assert!(error(&[(8, 0.0), (800, 1e-6)]).contains("no time"));
    }

    #[test]
    fn a_slow_worker_and_a_distant_one_get_figures_of_their_own() {
        let (bps, latency) = ([1e9, 1e9, 1e8, 1e9, 1e9], [1e-4, 1e-4, 1e-4, 1e-3, 1e-4]);
        let mut pairs = Vec::new();
        for a in 0..5 {
            for b in a + 1..5 {
                let (alpha, rate) = (f64::max(latency[a], latency[b]), f64::min(bps[a], bps[b]));
                pairs.push((a, b, fit_line(&line(alpha, rate)).unwrap()));
            }
        }
        let spec = fit_star(5, &pairs, &[]).unwrap();
        let text = "framing = \"none\"\nlink = { bandwidth = \"1Gbps\", latency = \"100us\" }\n\
            [[worker]]\nrank = 2\nbandwidth = \"100Mbps\"\n[[worker]]\nrank = 3\nlatency = \"1ms\"";
        assert_eq!(spec, toml::from_str(text).unwrap());
        let written = toml::to_string(&spec).unwrap();
        assert_eq!(toml::from_str::<NetworkSpec>(&written).unwrap(), spec);
    }

    #[test]
    fn what_a_sender_notices_is_overhead_and_no_latency() {
        // L = 100 us and o = 5 us: an empty message takes 110 us, and one more of a burst o or g.
        let fit = fit_line(&line(110e-6, 1e9)).unwrap();
        for (each, gap) in [(5e-6, None), (8e-6, Some(Seconds(8e-6)))] {
            let times = [1, 2, 4, 8, 16].map(|n: usize| (n, Seconds(220e-6 + n as f64 * each)));
            let cost = fit_message_cost(&times, Seconds(5e-6), &fit);
            let spec = fit_star(2, &[(0, 1, fit)], &[cost]).unwrap();
            let link = LinkSpec {
                bandwidth: Bandwidth::new(1e9).unwrap(),
                latency: Seconds(100e-6),
            };
            assert_eq!(spec.link, Some(Links::Each(link)));
            assert_eq!(
                (spec.overhead, spec.gap),
                // Less the 8 ns of a message's one byte at 1 Gb/s, in three digits.
                (Some(Seconds(4.99e-6)), gap.map(|_| Seconds(7.99e-6)))
            );
        }
    }

    #[test]
    fn a_worker_without_a_partner_is_an_error() {
        let fit = fit_line(&line(1e-4, 1e9)).unwrap();
        let error = fit_star(3, &[(0, 1, fit)], &[]).unwrap_err().to_string();
        assert!(error.contains("worker 2 was not measured"), "{error}");
    }

    proptest! {
        #[test]
        fn times_on_a_line_give_the_line(latency in 1e-7..1e-1_f64, bps in 1e6..1e12_f64) {
            let fit = fit_line(&line(latency, bps)).unwrap();
            prop_assert!((fit.latency.0 / latency - 1.0).abs() < 1e-6);
            prop_assert!((fit.bandwidth.bps() / bps - 1.0).abs() < 1e-6);
            prop_assert!(fit.worst_error < 1e-6);
        }

        #[test]
        fn noise_of_a_twentieth_moves_the_line_by_a_tenth_at_most(
            latency in 1e-6..1e-3_f64, bps in 1e8..1e10_f64, seed in any::<u64>(),
        ) {
            let mut samples = line(latency, bps);
            for (at, sample) in samples.iter_mut().enumerate() {
                let noise = (crate::rng::mix(seed, at as u64) % 1001) as f64 / 1000.0 - 0.5;
                sample.1 = sample.1 * (1.0 + 0.1 * noise);
            }
            let fit = fit_line(&samples).unwrap();
            prop_assert!((fit.latency.0 / latency - 1.0).abs() < 0.1);
            prop_assert!((fit.bandwidth.bps() / bps - 1.0).abs() < 0.1);
        }
    }
}
