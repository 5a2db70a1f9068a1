//! Tags of the messages of the training.

use crate::net::{NetError, TrafficKind};

/// Tag of values that worker 0 shares, on the control channel.
#[cfg(feature = "mpi")]
pub(super) const SHARED: i32 = 1;

/// Tag of rows and counts of an evaluation, on the control channel.
#[cfg(feature = "mpi")]
pub(super) const ASIDE: i32 = 7;

/// Tag of processes that wait for each other, on the control channel.
#[cfg(feature = "mpi")]
pub(super) const MEETING: i32 = 8;

/// Every MPI library takes tags up to this number.
const LARGEST_TAG: u32 = 32_767;

/// Tag of a message of the training: exchanges and collectives, kinds and layers apart.
pub(super) fn tag(
    rank: usize,
    collective: bool,
    kind: TrafficKind,
    layer: u32,
) -> Result<i32, NetError> {
    layer
        // Eight kinds of traffic, each in exchanges and in collectives.
        .checked_mul(16)
        .map(|tag| tag + 2 * kind as u32 + u32::from(collective))
        .filter(|tag| *tag <= LARGEST_TAG)
        .and_then(|tag| i32::try_from(tag).ok())
        .ok_or_else(|| NetError::Protocol {
            rank,
            reason: format!("it sends on layer {layer}, and MPI has tags for 2,048 layers"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_and_collectives_kinds_and_layers_have_tags_of_their_own() {
        let mut seen = std::collections::BTreeSet::new();
        for layer in 0..5 {
            for kind in TrafficKind::ALL {
                for collective in [false, true] {
                    assert!(seen.insert(tag(0, collective, kind, layer).unwrap()));
                }
            }
        }
        assert!(tag(0, false, TrafficKind::Control, 2_047).is_ok());
        assert!(tag(0, false, TrafficKind::Feature, 2_048).is_err());
        assert!(tag(0, false, TrafficKind::Feature, u32::MAX).is_err());
    }
}
