//! Messages within the kernel: on their way in, in flight, and arrived.

use super::route::Route;
use crate::net::{Bytes, Message, Outbox, Seconds};
use crate::sim::plan;

/// A message on its way into the kernel; played plans have sizes alone.
pub(super) struct Parcel {
    pub(super) peer: usize,
    pub(super) bytes: Bytes,
    pub(super) payload: Vec<u8>,
}

pub(super) fn parcels(outbox: Outbox) -> Vec<Parcel> {
    let parcel = |message: Message| Parcel {
        peer: message.peer,
        bytes: Bytes(message.payload.len() as u64),
        payload: message.payload,
    };
    outbox.messages.into_iter().map(parcel).collect()
}

pub(super) fn sizes(exchange: &plan::Exchange) -> Vec<Parcel> {
    let parcel = |&(peer, bytes): &(u32, Bytes)| Parcel {
        peer: peer as usize,
        bytes,
        payload: Vec::new(),
    };
    exchange.to.iter().map(parcel).collect()
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

pub(super) struct InFlight {
    pub(super) route: Route,
    pub(super) epoch: usize,
    pub(super) bytes: Bytes,
    pub(super) start: Seconds,
    pub(super) payload: Vec<u8>,
}
