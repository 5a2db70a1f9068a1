//! What one worker does at one point of a collective.

use std::ops::Range;

/// What to do with received elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// Reduce them into one's own, element by element.
    Reduce,
    /// Put them in the place of one's own.
    Replace,
}

/// One step of one worker: send, then receive. A side without elements is left out: empty messages
/// never travel.
///
/// A step without anything to receive ends at once, so consecutive sends leave together and share
/// the sender's link, unless `until_delivered` says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Receiver, and the elements of this worker's values to send.
    pub send: Option<(usize, Range<usize>)>,
    /// Sender, where in this worker's values the elements go that come, and what to do with them.
    pub(crate) receive: Option<(usize, Range<usize>, Combine)>,
    /// Whether the step also lasts until what it sends has arrived, as a blocking send does.
    pub(crate) until_delivered: bool,
}

/// The steps of one worker, made one after the other: a ring of thousands has thousands of steps on
/// each of them.
pub(crate) type Steps = Box<dyn Iterator<Item = Step> + Send>;

impl Step {
    /// Sends to `to` and goes on at once. Nothing if there are no elements.
    pub(super) fn send(to: usize, elements: Range<usize>) -> Option<Self> {
        Self::both(Some((to, elements)), None)
    }

    /// Waits for elements from `from`. Nothing if there are none.
    pub(super) fn receive(from: usize, elements: Range<usize>, combine: Combine) -> Option<Self> {
        Self::both(None, Some((from, elements, combine)))
    }

    /// Sends to `to` and waits until it is there. Nothing if there are no elements.
    pub(super) fn deliver(to: usize, elements: Range<usize>) -> Option<Self> {
        Self::swap(Some((to, elements)), None)
    }

    /// As [`Step::both`], until what is sent has arrived too.
    pub(super) fn swap(
        send: Option<(usize, Range<usize>)>,
        receive: Option<(usize, Range<usize>, Combine)>,
    ) -> Option<Self> {
        Self::both(send, receive).map(|step| Self {
            until_delivered: step.send.is_some(),
            ..step
        })
    }

    /// Sends, then receives; without the sides that have no elements. Nothing if neither has any.
    pub(super) fn both(
        send: Option<(usize, Range<usize>)>,
        receive: Option<(usize, Range<usize>, Combine)>,
    ) -> Option<Self> {
        let step = Self {
            send: send.filter(|(_, elements)| !elements.is_empty()),
            receive: receive.filter(|(_, elements, _)| !elements.is_empty()),
            until_delivered: false,
        };
        (step.send.is_some() || step.receive.is_some()).then_some(step)
    }
}

/// Chunks `from..to` of `len` elements cut in `parts`: the first `len % parts` chunks are one
/// longer than the rest.
pub(super) fn chunks(from: usize, to: usize, parts: usize, len: usize) -> Range<usize> {
    let begin = |index: usize| index * (len / parts) + index.min(len % parts);
    begin(from)..begin(to)
}
