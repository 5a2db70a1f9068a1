"""Counts what a program sends through torch.distributed, under grapevine's kinds of traffic.

A driver says what is being done, with `labelled` around a function of the authors. Every tensor that is sent meanwhile on the same thread is
counted there once, where it is sent: its elements times their size. A sum over all P workers of n bytes counts as the 2 (P - 1) n that a ring
carries, whatever the library does.
"""

import contextlib
import threading

import torch.distributed as dist

EPOCH = 0
SENT = {}
_lock = threading.Lock()
_now = threading.local()


def now():
    """What is being done on this thread, if anything was said."""
    return getattr(_now, "what", None)


@contextlib.contextmanager
def doing(kind, layer=None, epoch=None):
    """What is sent in here has a kind (None: it is not counted), a layer and an epoch (that under way)."""
    before = now()
    _now.what = (kind, layer, epoch)
    try:
        yield
    finally:
        _now.what = before


def labelled(function, what):
    """The function, with what it sends counted as `what(*its arguments)` says: (kind, layer, epoch), or less."""

    def inner(*arguments, **named):
        with doing(*what(*arguments, **named)):
            return function(*arguments, **named)

    return inner


def add(count, otherwise="control"):
    kind, layer, epoch = now() or (otherwise, None, None)
    if kind is None:
        return
    with _lock:
        cell = SENT.setdefault((EPOCH if epoch is None else epoch, kind, layer), [0, 0])
        cell[0] += 1
        cell[1] += count


def size(tensor):
    return tensor.numel() * tensor.element_size()


def install(after_sum=lambda: None):
    """Puts counters before the functions that send; `after_sum` is called on the thread that has a sum."""
    isend, send, all_reduce = dist.isend, dist.send, dist.all_reduce
    gather, broadcast = dist.gather, dist.broadcast

    def counted_isend(tensor, dst, *rest, **named):
        add(size(tensor))
        return isend(tensor, dst, *rest, **named)

    def counted_send(tensor, dst, *rest, **named):
        add(size(tensor))
        return send(tensor, dst, *rest, **named)

    def counted_all_reduce(tensor, *rest, **named):
        if dist.get_rank() == 0:
            add(2 * (dist.get_world_size() - 1) * size(tensor), "parameter_gradient")
        done = all_reduce(tensor, *rest, **named)
        after_sum()
        return done

    def counted_gather(tensor, gathered=None, dst=0, **named):
        if dist.get_rank() != dst:
            add(size(tensor), "parameter_gradient")
        return gather(tensor, gathered, dst=dst, **named)

    def counted_broadcast(tensor, src=0, **named):
        if dist.get_rank() == src:
            add((dist.get_world_size() - 1) * size(tensor), "parameter_gradient")
        return broadcast(tensor, src=src, **named)

    dist.isend, dist.send, dist.all_reduce = counted_isend, counted_send, counted_all_reduce
    dist.gather, dist.broadcast = counted_gather, counted_broadcast
