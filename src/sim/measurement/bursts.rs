//! Bursts of small messages: what a message costs its ends.

use super::{WARM_UP, receive, send};
use crate::net::{Communicator, Message, NetError, Outbox, Seconds, median};

/// How many messages leave at once.
const LENGTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Measured bursts of a length, an odd number.
const REPETITIONS: usize = 31;

/// What was measured of bursts from one worker to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bursts {
    /// Numbers of messages of one byte, and the median time until the answer to the last is there.
    pub times: Vec<(usize, Seconds)>,
    /// How long the sender itself was busy with each message: the median over lengths.
    pub busy: Seconds,
}

impl Bursts {
    /// Those of a report; see [`throw`].
    pub(super) fn read(values: &[Seconds]) -> Self {
        // Empty on all processes but that of worker 0, which alone is told.
        let (times, busy) = values.split_at(LENGTHS.len().min(values.len()));
        Self {
            times: LENGTHS.into_iter().zip(times.iter().copied()).collect(),
            busy: busy.first().copied().unwrap_or_default(),
        }
    }
}

/// Sends bursts to `peer`, which answers each when it has all of it. Returns the median time of
/// each length, and how long a message kept this worker busy (Hoefler, Lichei and Rehm,
/// *Low-Overhead `LogGP` Parameter Assessment*, IPDPS 2007: PRTT(n, 0, 1), with n messages).
pub(super) fn throw(
    communicator: &mut dyn Communicator,
    peer: usize,
) -> Result<Vec<f32>, NetError> {
    let (mut found, mut busy) = (Vec::new(), Vec::new());
    for length in LENGTHS {
        let (mut times, mut posts) = (Vec::new(), Vec::new());
        for trip in 0..WARM_UP + REPETITIONS {
            // Made before the clock is read.
            let messages: Vec<Outbox> = (0..length).map(|_| small(peer)).collect();
            let start = communicator.now();
            let mut pending = Vec::with_capacity(length);
            for outbox in messages {
                pending.push(communicator.start_exchange(outbox)?);
            }
            let posted = communicator.now();
            for started in pending {
                communicator.finish_exchange(started)?;
            }
            receive(communicator, peer)?;
            if trip >= WARM_UP {
                times.push((communicator.now() - start).0);
                // What starting alone took: the sender is not busy with messages that are on their
                // way.
                posts.push((posted - start).0 / length as f64);
            }
        }
        found.push(median(times) as f32);
        busy.push(median(posts));
    }
    found.push(median(busy) as f32);
    Ok(found)
}

/// Takes the bursts of `peer` and answers them.
pub(super) fn catch(communicator: &mut dyn Communicator, peer: usize) -> Result<(), NetError> {
    for length in LENGTHS {
        for _ in 0..WARM_UP + REPETITIONS {
            for _ in 0..length {
                receive(communicator, peer)?;
            }
            send(communicator, peer, vec![0])?;
        }
    }
    Ok(())
}

fn small(peer: usize) -> Outbox {
    let mut outbox = Outbox::new(super::KIND, 0);
    outbox.messages.push(Message {
        peer,
        payload: vec![0],
    });
    outbox
}
