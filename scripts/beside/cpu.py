"""Lets code that was written for CUDA run on the CPU, unedited.

`.cuda()` becomes a copy, as it is on a GPU; streams and events do nothing; `device="cuda"` and `pin_memory` are dropped.
"""

import contextlib
import importlib.machinery
import sys
import types

import torch


def stub(name, **things):
    """A module that is not installed, and of which nothing is needed but its name."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(things)
    sys.modules[name] = module


class Nothing:
    """A stream or an event."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return lambda *_, **__: None


def on_the_cpu(function):
    def inner(*arguments, **named):
        named.pop("pin_memory", None)
        if str(named.get("device", "")).startswith("cuda"):
            named["device"] = "cpu"
        return function(*arguments, **named)

    return inner


def install():
    import dgl
    import torch._dynamo  # noqa: F401  (before its functions are replaced)

    for name in ("zeros", "zeros_like", "as_tensor", "tensor", "empty", "ones", "arange"):
        setattr(torch, name, on_the_cpu(getattr(torch, name)))
    torch.Tensor.cuda = lambda self, *_, **__: self.clone()
    torch.Tensor.pin_memory = lambda self, *_, **__: self
    torch.nn.Module.cuda = lambda self, *_, **__: self
    dgl.DGLGraph.to = lambda self, *_, **__: self
    torch.cuda.Stream = torch.cuda.Event = Nothing
    torch.cuda.current_stream = lambda *_, **__: Nothing()
    torch.cuda.stream = lambda *_, **__: contextlib.nullcontext()
    for name in ("reset_peak_memory_stats", "synchronize", "set_device"):
        setattr(torch.cuda, name, lambda *_, **__: None)
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved"):
        setattr(torch.cuda, name, lambda *_, **__: 0)
