//! Messages within the kernel: on their way in, in flight, and arrived.

use super::route::Route;
use crate::net::{Bytes, Message, Outbox, Seconds, TrafficKind};
use crate::sim::plan;

/// A message on its way into the kernel; played plans have sizes alone.
pub(super) struct Parcel {
    pub(super) peer: usize,
    pub(super) bytes: Bytes,
    pub(super) payload: Vec<u8>,
}

/// What a worker waits for at the end of an exchange: a message from each of these.
pub(crate) struct Expected {
    pub(crate) kind: TrafficKind,
    pub(crate) layer: u32,
    pub(crate) from: Vec<usize>,
}

/// An exchange as a worker starts it.
pub(crate) struct Started {
    pub(super) parcels: Vec<Parcel>,
    pub(super) expected: Expected,
}

impl From<Outbox> for Started {
    fn from(outbox: Outbox) -> Self {
        let parcel = |message: Message| Parcel {
            peer: message.peer,
            bytes: Bytes(message.payload.len() as u64),
            payload: message.payload,
        };
        Self {
            parcels: outbox.messages.into_iter().map(parcel).collect(),
            expected: Expected {
                kind: outbox.kind,
                layer: outbox.layer,
                from: outbox.expect,
            },
        }
    }
}

/// By sizes alone.
impl From<&plan::Exchange> for Started {
    fn from(exchange: &plan::Exchange) -> Self {
        let parcel = |&(peer, bytes): &(u32, Bytes)| Parcel {
            peer: peer as usize,
            bytes,
            payload: Vec::new(),
        };
        Self {
            parcels: exchange.to.iter().map(parcel).collect(),
            expected: Expected {
                kind: exchange.kind,
                layer: exchange.layer,
                from: exchange.from.iter().map(|&peer| peer as usize).collect(),
            },
        }
    }
}

/// In the order in which a worker sends them: it begins with the worker after it. From the same one
/// on, all would send to that one first.
pub(super) fn from_next(rank: usize, mut parcels: Vec<Parcel>) -> Vec<Parcel> {
    let after = parcels.partition_point(|parcel| parcel.peer < rank);
    parcels.rotate_left(after);
    parcels
}

pub(super) struct Arrived {
    pub(super) at: Seconds,
    pub(super) payload: Vec<u8>,
}

/// What a message belongs to.
#[derive(Clone, Copy)]
pub(super) struct Belongs {
    /// The epoch under which it is counted.
    pub(super) epoch: usize,
    /// The place of its exchange or collective among all that its sender has begun, which says
    /// which of two messages goes first.
    pub(super) order: u64,
}

pub(super) struct InFlight {
    pub(super) route: Route,
    pub(super) epoch: usize,
    pub(super) bytes: Bytes,
    pub(super) start: Seconds,
    pub(super) payload: Vec<u8>,
}
