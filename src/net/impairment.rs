//! What chance adds to a message: jitter and lost packets.
//!
//! Draws are keyed by (seed, link, message number): they depend neither on what other messages draw
//! nor on when anything is sent. Message numbers count from 0 in the order of sending.

use rand_chacha::rand_core::Rng;
use serde::{Deserialize, Serialize};

use super::{LinkId, Seconds};
use crate::rng::{Purpose, mix, stream};

/// Random, non-negative extra latency of each message on a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Jitter {
    /// Exponential: −mean · ln u.
    Exponential {
        /// Its mean.
        mean: Seconds,
    },
    /// Uniform between two bounds.
    Uniform {
        /// The lower bound. Default: 0.
        #[serde(default)]
        min: Seconds,
        /// The upper bound.
        max: Seconds,
    },
    /// Log-normal: median · exp(sigma · z) with z standard normal.
    Lognormal {
        /// Its median.
        median: Seconds,
        /// Standard deviation of its logarithm, not negative; the mean is median · exp(sigma² / 2).
        sigma: f64,
    },
}

impl Jitter {
    /// What is wrong with its figures, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        match *self {
            Self::Uniform { min, max } if min > max => {
                Some(format!("its min, {min}, is above its max, {max}"))
            }
            // Up to 10 every draw is finite: with 53 random bits z is at most 8.6.
            Self::Lognormal { sigma, .. } if !(0.0..=10.0).contains(&sigma) => {
                Some(format!("its sigma must be from 0 to 10, not {sigma}"))
            }
            _ => None,
        }
    }

    /// E\[jitter\].
    pub fn mean(&self) -> Seconds {
        match *self {
            Self::Exponential { mean } => mean,
            Self::Uniform { min, max } => (min + max) / 2.0,
            Self::Lognormal { median, sigma } => median * (sigma * sigma / 2.0).exp(),
        }
    }

    /// The jitter of a message on a link.
    pub(crate) fn draw(&self, seed: u64, link: LinkId, message: u64) -> Seconds {
        let mut random = stream(seed, Purpose::Link, link.0 as u64, message);
        let mut uniform = || open_unit(random.next_u64());
        match *self {
            Self::Exponential { mean } => mean * -uniform().ln(),
            Self::Uniform { min, max } => min + (max - min) * uniform(),
            Self::Lognormal { median, sigma } => {
                // Box and Muller (1958).
                let (u, v) = (uniform(), uniform());
                let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
                median * (sigma * normal).exp()
            }
        }
    }
}

/// What the draws of a message belong to: who sends it to whom on which channel, and how many were
/// before it there. Not how many were sent in all: in what order workers send at one time is not
/// the same in a training, in its plan and after a checkpoint.
pub(crate) fn number((from, to, channel): (usize, usize, Option<u64>), before: u64) -> u64 {
    let pair = mix(from as u64, to as u64);
    mix(mix(pair, channel.map_or(0, |channel| channel + 1)), before)
}

/// Packets lost on the way, and what they cost.
///
/// Every packet of a message is lost with the same probability p, each time it is sent. All packets
/// that a round lost are sent again in the next round, as selective acknowledgement has it (RFC
/// 2018). When that begins depends on where they were:
///
/// * at least three packets of the round followed every one that was lost: their acknowledgements
///   tell the sender (RFC 6675, `DupThresh`; by time, RFC 8985), a round trip R later;
/// * one of the last three was lost, or the round has no more than three packets: nothing tells the
///   sender, which waits for a timeout, T = max(200 ms, 2·R), and twice as long after every further
///   one of the message (RFC 6298 doubles in the same way; its minimum is 1 s, that of Linux 200
///   ms).
///
/// Waiting takes no bandwidth; packets sent again do. What the links between had already carried of
/// a lost packet counts as if it had got through, and windows and slow start are left out.
///
/// With n packets, the expected number sent again is n·p / (1 − p). The expected delay of n ≤ 3 is
/// T · Σₖ 2ᵏ (1 − (1 − p^(k+1))ⁿ), finite for p < ½; that of many is about R · (1 − (1 − p)ⁿ) + 3p
/// · T.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// p: that any link of the route loses a packet.
    pub probability: f64,
    /// R.
    pub(crate) round_trip: Seconds,
    /// T.
    pub(crate) timeout: Seconds,
}

/// What chance did to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Impairment {
    /// Jitter, and what it took to notice losses.
    pub delay: Seconds,
    /// Packets that were sent again.
    pub lost: u64,
}

impl Loss {
    /// From this probability on, the expected delay is infinite.
    pub(crate) const LIMIT: f64 = 0.5;

    /// So many packets at the end of a round are acknowledged by too few that follow.
    const TAIL: f64 = 3.0;

    /// The model for a route of this one-way latency.
    pub fn new(probability: f64, latency: Seconds) -> Self {
        Self {
            probability,
            round_trip: latency * 2.0,
            timeout: Seconds(0.2).max(latency * 4.0),
        }
    }

    /// What becomes of a message of so many packets. `link` is the first of its route that loses
    /// packets.
    ///
    /// Takes O(1 + packets lost) time: it draws how many packets get through before the next that
    /// does not.
    pub(crate) fn draw(&self, packets: u64, seed: u64, link: LinkId, message: u64) -> Impairment {
        /// Apart from the draws of jitter.
        const LOSSES: u64 = 1;
        let mut random = stream(seed, Purpose::Link, link.0 as u64, mix(message, LOSSES));
        let mut impairment = Impairment::default();
        let (mut outstanding, mut timeout) = (packets, self.timeout);
        // ln(1 − p), exact also for a p that 1 − p would round away.
        let log_through = (-self.probability).ln_1p();
        while outstanding > 0 && self.probability > 0.0 {
            let mut lost = 0;
            // A message has far fewer than 2⁵³ packets, so a double counts them exactly.
            let mut left = outstanding as f64;
            let mut noticed = true;
            loop {
                left -= (open_unit(random.next_u64()).ln() / log_through).floor() + 1.0;
                if left < 0.0 {
                    break;
                }
                lost += 1;
                noticed = left >= Self::TAIL;
            }
            if lost > 0 && noticed {
                impairment.delay += self.round_trip;
            } else if lost > 0 {
                impairment.delay += timeout;
                timeout = timeout * 2.0;
            }
            impairment.lost += lost;
            outstanding = lost;
        }
        impairment
    }
}

/// A number in (0, 1\], evenly spread.
fn open_unit(bits: u64) -> f64 {
    // 53 bits, as many as a double holds, over 2⁵³; one is added because the logarithm of 0 is
    // infinite.
    ((bits >> 11) + 1) as f64 / 9_007_199_254_740_992.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard error of a quantity over many messages.
    fn mean(of: impl Fn(u64) -> f64) -> (f64, f64) {
        const MESSAGES: u32 = 20_000;
        let values: Vec<f64> = (0..u64::from(MESSAGES)).map(of).collect();
        let mean = values.iter().sum::<f64>() / f64::from(MESSAGES);
        let square = values.iter().map(|value| (value - mean).powi(2));
        let variance = square.sum::<f64>() / f64::from(MESSAGES - 1);
        (mean, (variance / f64::from(MESSAGES)).sqrt())
    }

    #[track_caller]
    fn assert_mean(expected: f64, of: impl Fn(u64) -> f64) {
        let (mean, error) = mean(of);
        assert!(
            // Draws are keyed: whether the mean lies within four standard errors is the same every
            // time.
            (mean - expected).abs() < 4.0 * error,
            "{mean} ± {error} instead of {expected}"
        );
    }

    #[test]
    fn jitter_has_the_mean_it_states_and_is_never_negative() {
        for jitter in [
            Jitter::Exponential { mean: Seconds(2.0) },
            Jitter::Uniform {
                min: Seconds(1.0),
                max: Seconds(4.0),
            },
            Jitter::Lognormal {
                median: Seconds(1.0),
                sigma: 0.5,
            },
        ] {
            assert_mean(jitter.mean().0, |message| {
                let drawn = jitter.draw(7, LinkId(3), message);
                assert!(drawn >= Seconds::ZERO);
                drawn.0
            });
        }
    }

    #[test]
    fn seed_link_and_message_tell_draws_apart() {
        let jitter = Jitter::Exponential { mean: Seconds(1.0) };
        let one = jitter.draw(1, LinkId(1), 1);
        assert_eq!(one, jitter.draw(1, LinkId(1), 1));
        for other in [
            jitter.draw(2, LinkId(1), 1),
            jitter.draw(1, LinkId(2), 1),
            jitter.draw(1, LinkId(1), 2),
        ] {
            assert_ne!(one, other);
        }
    }

    /// That of `of` among `from` packets.
    fn binomial(from: u32, of: u32, p: f64) -> f64 {
        let ways = (0..of).map(|k| f64::from(from - k) / f64::from(k + 1));
        ways.product::<f64>() * p.powf(f64::from(of)) * (1.0 - p).powf(f64::from(from - of))
    }

    /// The expected delay by the rules as they are written down, over all that may get lost in each
    /// of so many rounds.
    fn expected(packets: u32, p: f64, timeout: f64, round_trip: f64, rounds: u32) -> f64 {
        if packets == 0 || rounds == 0 {
            return 0.0;
        }
        let tail = packets.min(3);
        let mut sum = 0.0;
        for early in 0..=packets - tail {
            for late in 0..=tail {
                let chance = binomial(packets - tail, early, p) * binomial(tail, late, p);
                if early + late == 0 || chance < 1e-12 {
                    continue;
                }
                let (delay, then) = match late {
                    0 => (round_trip, timeout),
                    _ => (timeout, 2.0 * timeout),
                };
                let rest = expected(early + late, p, then, round_trip, rounds - 1);
                sum += chance * (delay + rest);
            }
        }
        sum
    }

    #[test]
    fn lost_packets_and_delays_have_the_expectation_of_the_model() {
        for (packets, p) in [(1_u32, 0.15), (3, 0.1), (4, 0.1), (10, 0.05), (60, 0.01)] {
            let loss = Loss::new(p, Seconds(0.01));
            let n = f64::from(packets);
            let draw = |message| loss.draw(u64::from(packets), 5, LinkId(0), message);
            assert_mean(n * p / (1.0 - p), |message| draw(message).lost as f64);
            // Of finite variance, as 4ᵏ · pᵏ is summable for p < ¼.
            let delay = expected(packets, p, 0.2, 0.02, 7);
            assert_mean(delay, |message| draw(message).delay.0);
            if packets <= 3 {
                let all =
                    (0..7).map(|k| 0.2 * 2_f64.powi(k) * (1.0 - (1.0 - p.powi(k + 1)).powf(n)));
                assert!((all.sum::<f64>() - delay).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn a_loss_in_a_long_flow_costs_a_round_trip() {
        // 100 MB in packets of 1,460 bytes; seven get lost, hardly ever one of the last three.
        let (packets, p, latency) = (68_494_u64, 1e-4, 25e-6);
        let loss = Loss::new(p, Seconds(latency));
        let some = 1.0 - (1.0 - p).powf(packets as f64);
        let late = 1.0 - (1.0 - p).powi(3);
        let again = packets as f64 * p * p;
        let delay = (some - late) * 2.0 * latency + (late + again) * 0.2;
        let (mean, error) = mean(|message| loss.draw(packets, 1, LinkId(0), message).delay.0);
        assert!(
            (mean - delay).abs() < 4.0 * error + 1e-6,
            "{mean} ± {error} and {delay}"
        );
        assert!(
            mean < 0.001,
            "it was 0.2 s when every loss waited for a timeout"
        );
    }

    #[test]
    fn the_timeout_is_two_round_trips_and_200_ms_at_least() {
        assert_eq!(Loss::new(0.1, Seconds(0.001)).timeout, Seconds(0.2));
        assert_eq!(Loss::new(0.1, Seconds(0.1)).timeout, Seconds(0.4));
    }

    #[test]
    fn without_loss_nothing_is_lost() {
        let none = Loss::new(0.0, Seconds(0.1)).draw(1000, 1, LinkId(0), 0);
        assert_eq!(none, Impairment::default());
    }
}
