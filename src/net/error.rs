//! What can go wrong with a network: in its description, or while it is used.

use thiserror::Error;

/// An error of this folder.
///
/// Callers need one distinction, `NetError::is_input`: whether a person wrote something wrong,
/// which editing the experiment file mends, or whether a run failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// A bandwidth, time or size that cannot be read or makes no sense.
    #[error("\"{text}\" is not a valid {quantity}: {reason}")]
    Quantity {
        /// What it should have been: `bandwidth`, `time`, `size`.
        quantity: &'static str,
        /// What was written.
        text: String,
        /// Why it is refused and what to write instead.
        reason: String,
    },
    /// A preset that does not exist.
    #[error(
        "there is no network preset \"{name}\"; {advice} (`grapevine list networks` shows all)"
    )]
    UnknownPreset {
        /// What was written.
        name: String,
        /// The nearest name, or all names.
        advice: String,
    },
    /// A network that cannot be built as described.
    #[error("{key}: {reason}")]
    Description {
        /// The offending key of the `[network]` section, dotted.
        key: String,
        /// What is wrong with it and what to do.
        reason: String,
    },
    /// A worker that does not exist.
    #[error("{what} names worker {rank}, but the workers are numbered 0 to {}", workers.saturating_sub(1))]
    Rank {
        /// Where the number came from.
        what: &'static str,
        /// The number.
        rank: usize,
        /// How many workers there are.
        workers: usize,
    },
    /// A message needs a link that is down and never comes back.
    #[error(
        "link \"{link}\" is down since {since} and never comes back, but message {flow} needs it; \
         give its [[network.failure]] an `until`, or another route"
    )]
    LinkDown {
        /// Name of the link.
        link: String,
        /// Virtual time of its failure.
        since: String,
        /// The first message that waits for it, in the order of sending.
        flow: u64,
    },
    /// Another worker has failed, so nothing more can be expected from it.
    #[error("worker {rank} failed: {reason}")]
    PeerFailed {
        /// The worker that failed.
        rank: usize,
        /// Its own error.
        reason: String,
    },
    /// The connection is gone: the other end was dropped, or the run was stopped.
    #[error("the connection between workers is gone: {0}")]
    Disconnected(String),
    /// Workers that do not make matching calls, such as waiting for a message nobody sends.
    #[error("worker {rank} broke the order of communication: {reason}")]
    Protocol {
        /// The worker that noticed.
        rank: usize,
        /// What it expected and what happened.
        reason: String,
    },
    /// A payload that the codec cannot have produced.
    #[error("corrupt payload for {codec}: {reason}")]
    Corrupt {
        /// The codec that was to decode it.
        codec: String,
        /// What was expected and what arrived.
        reason: String,
    },
}

impl NetError {
    /// Whether the cause is something a person wrote (exit code 2), not a failure of the run (exit
    /// code 1).
    pub(crate) const fn is_input(&self) -> bool {
        match self {
            Self::Quantity { .. }
            | Self::UnknownPreset { .. }
            | Self::Description { .. }
            | Self::Rank { .. }
            // A link that never comes back was described so by a person, though it shows only in
            // the run.
            | Self::LinkDown { .. } => true,
            Self::PeerFailed { .. }
            | Self::Disconnected(_)
            | Self::Protocol { .. }
            | Self::Corrupt { .. } => false,
        }
    }

    pub(super) fn description(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Description {
            key: key.into(),
            reason: reason.into(),
        }
    }
}

/// Advice that names the nearest of the names that there are, if one is near.
pub(super) fn did_you_mean(name: &str, known: &[&str]) -> Option<String> {
    let likeness = |known: &&str| strsim::jaro_winkler(known, name);
    let near = known.iter().map(|known| (likeness(known), known));
    near.max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.6)
        .map(|(_, near)| format!("did you mean \"{near}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_wrote_is_input_and_a_lost_peer_is_not() {
        let typo = NetError::UnknownPreset {
            name: "lan".into(),
            advice: "use wan".into(),
        };
        let lost = NetError::PeerFailed {
            rank: 2,
            reason: "out of memory".into(),
        };
        assert!(typo.is_input());
        assert!(!lost.is_input());
    }
}
