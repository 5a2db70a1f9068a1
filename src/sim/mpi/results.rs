//! What a process sends of its part of a run to process 0 when the run ends.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::net::{Bytes, CodingError, Lane, NetError, Seconds};
use crate::sim::{Outcome, WorkerTimes};

/// The part of an [`Outcome`] that a process has by itself.
#[derive(Serialize, Deserialize)]
pub(super) struct Part {
    clock: f64,
    compute: f64,
    communication: f64,
    exposed: f64,
    waiting: f64,
    /// Epoch, lane, payload of one message, number of messages.
    ledger: Vec<(usize, Lane, u64, u64)>,
    coding_errors: Vec<(usize, Lane, CodingError)>,
    parameters: usize,
    peak_memory_bytes: u64,
}

impl Part {
    /// What this process has of `outcome`.
    pub(super) fn of(outcome: &Outcome) -> Self {
        let times = outcome.times.first().cloned().unwrap_or_default();
        let messages = outcome.ledger.iter().flat_map(|(epoch, traffic)| {
            traffic
                .iter()
                .map(move |(lane, payload, count)| (epoch, lane, payload.0, count))
        });
        let errors = outcome.coding_errors.iter();
        Self {
            clock: times.clock.0,
            compute: times.compute.0,
            communication: times.communication.0,
            exposed: times.exposed.0,
            waiting: times.waiting.0,
            ledger: messages.collect(),
            coding_errors: errors
                .map(|(&(epoch, lane), error)| (epoch, lane, *error))
                .collect(),
            parameters: outcome.parameters,
            peak_memory_bytes: outcome.peak_memory_bytes,
        }
    }

    /// Adds the part of the next process to that of those before it.
    pub(super) fn add_to(self, outcome: &mut Outcome) {
        outcome.times.push(WorkerTimes {
            clock: Seconds(self.clock),
            compute: Seconds(self.compute),
            communication: Seconds(self.communication),
            exposed: Seconds(self.exposed),
            waiting: Seconds(self.waiting),
            set_up: Seconds::ZERO,
        });
        for (epoch, lane, payload, count) in self.ledger {
            outcome
                .ledger
                .record_many(epoch, lane, Bytes(payload), count);
        }
        for (epoch, lane, error) in self.coding_errors {
            let so_far = outcome.coding_errors.entry((epoch, lane)).or_default();
            *so_far = so_far.plus(error);
        }
        // The largest: a process that stated none has 0.
        outcome.parameters = outcome.parameters.max(self.parameters);
        // The largest: the number is that of one process, here as in simulation.
        outcome.peak_memory_bytes = outcome.peak_memory_bytes.max(self.peak_memory_bytes);
    }
}

/// Bytes of anything, numbers to the bit.
pub(super) fn packed<T: Serialize>(value: &T) -> Result<Vec<u8>, NetError> {
    let mut bytes = Vec::new();
    // CBOR and not JSON, in which what is not a number has no place.
    ciborium::into_writer(value, &mut bytes).map_err(|error| broken(&error.to_string()))?;
    Ok(bytes)
}

/// Anything from its bytes.
pub(super) fn unpacked<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NetError> {
    ciborium::from_reader(bytes).map_err(|error| broken(&error.to_string()))
}

fn broken(what: &str) -> NetError {
    NetError::Disconnected(format!(
        "a message of the program to itself makes no sense ({what}); do all processes run the same program?"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::net::{Ledger, TrafficKind};

    fn outcome(from: u32, clock: f64) -> Outcome {
        let to = 1 - from;
        let kind = TrafficKind::Activation;
        let lane = Lane {
            layer: 2,
            from,
            to,
            kind,
        };
        let mut ledger = Ledger::new();
        ledger.record(3, lane, Bytes(100));
        ledger.record(3, lane, Bytes(100));
        Outcome {
            epochs: Vec::new(),
            ledger,
            coding_errors: BTreeMap::from([(
                (3, lane),
                CodingError {
                    lost: 0.1,
                    sent: 0.3,
                },
            )]),
            decisions: BTreeMap::new(),
            timeline: crate::sim::Trace::default(),
            times: vec![WorkerTimes {
                clock: Seconds(clock),
                ..WorkerTimes::default()
            }],
            parameters: 7,
            measured: Duration::from_secs(1),
            model: Duration::ZERO,
            peak_memory_bytes: 10 * u64::from(from),
        }
    }

    #[test]
    fn the_parts_of_two_processes_make_one_outcome_to_the_bit() {
        let (mut whole, other) = (outcome(0, 0.1), outcome(1, 1.0 / 3.0));
        let bytes = packed(&Part::of(&other)).unwrap();
        unpacked::<Part>(&bytes).unwrap().add_to(&mut whole);
        assert_eq!(whole.simulated(), Seconds(1.0 / 3.0));
        assert_eq!(whole.times.len(), 2);
        let sent = whole.ledger.epoch(3).unwrap();
        assert_eq!(sent.payload_of(TrafficKind::Activation), Bytes(400));
        assert_eq!(sent.iter().count(), 2, "two lanes");
        assert_eq!(whole.coding_errors.len(), 2);
        assert_eq!(whole.peak_memory_bytes, 10);
    }

    #[test]
    fn bytes_of_another_program_are_an_error() {
        assert!(unpacked::<Part>(b"nonsense").is_err());
    }
}
