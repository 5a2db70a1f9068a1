"""The driver of VARCO: `examples/train_homogeneous_graph_advanced.py` of SAR's branch `variable_compression`.

What is replaced in the authors' program, and why:
- METIS's assignment by the parts that both sides get; their example partitions ogbn-arxiv, which downloads, so the graph that both sides get
  is cut by the same DGL function;
- `initialize_comms`, by the same with a port of the job's own;
- functions that send, by the same with a label for counting; `cross_entropy` and `infer_pass`, by the same that keep their values;
- with `weights`: the initial weights of `GNNModel`; with `dropout`: its probability, which is 0.5 in the code.
"""

import os
import sys
from pathlib import Path

import count
import inputs

KEPT = {"loss": [], "accuracy": []}
NOW = {}


def install(clone, _):
    count.install()
    count.EPOCH = -1  # until training begins
    sys.path[:0] = [str(clone), str(clone / "examples")]
    import sar
    import sar.core.full_partition_block as blocks
    import train_homogeneous_graph_advanced as program
    from sar.config import Config

    exchange = blocks.SimpleExchangeOp
    forward, backward = exchange.forward, exchange.backward

    def labelled_forward(context, sizes, *rows):
        context.layer = Config.current_layer_index
        features = context.layer == 0 and rows[0].shape[1] <= NOW["graph"].features.shape[1]
        with count.doing(*(count.now() or ("feature" if features else "activation", context.layer))):
            return forward(context, sizes, *rows)

    def labelled_backward(context, *gradients):
        with count.doing("activation_gradient", context.layer):
            return backward(context, *gradients)

    exchange.forward, exchange.backward = staticmethod(labelled_forward), staticmethod(labelled_backward)
    train, infer, entropy, start = program.train_pass, program.infer_pass, program.F.cross_entropy, sar.initialize_comms

    def train_pass(model, *arguments, **named):
        count.EPOCH += 1
        train(model, *arguments, **named)
        KEPT["model"] = float(sum(p.detach().double().sum() for p in model.parameters()))
        KEPT["parameters"] = sum(p.numel() for p in model.parameters())

    def infer_pass(*arguments, **named):
        with count.doing(None):
            found = infer(*arguments, **named)
        KEPT["accuracy"] += [float(found[3]), float(found[5])]
        return found

    def cross_entropy(logits, labels, **named):
        value = entropy(logits, labels, **named)
        if value.requires_grad:
            KEPT["loss"].append(value.item() / int(NOW["graph"].masks["train"].sum()))
        return value

    program.train_pass, program.infer_pass, program.F.cross_entropy = train_pass, infer_pass, cross_entropy
    sar.initialize_comms = lambda rank, world, _, backend, device: start(rank, world, "127.0.0.1", backend, device, NOW["job"]["port"])
    drawn = program.GNNModel

    class Given(drawn):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            give(self, NOW["job"])

    program.GNNModel = Given


def give(model, job):
    """The weights and the dropout that the job asks for."""
    import torch

    if "dropout" in job:
        model.dropout.p = job["dropout"]
    if not job.get("weights"):
        return
    given = {name: torch.from_numpy(values) for name, values in inputs.weights(job["weights"]).items()}
    for number, conv in enumerate(model.convs):
        conv.fc_self.weight.data.copy_(given[f"convs.{number}.weight_self"].t())
        conv.fc_neigh.weight.data.copy_(given[f"convs.{number}.weight_neighbour"].t())
        conv.fc_self.bias.data.copy_(given[f"convs.{number}.bias"])


def partition(job):
    return f"varco-{Path(job['graph']).stem}-{job['workers']}"


def prepare(job):
    import dgl
    import numpy

    NOW.update(job=job, graph=inputs.Graph(job["graph"]))
    folder = Path(job["work"]) / "cut" / partition(job)
    (Path(job["work"]) / "ip").unlink(missing_ok=True)
    if not folder.exists():
        inputs.give_parts(numpy.loadtxt(job["parts"], dtype=int))
        graph = NOW["graph"].dgl(True, ("features", "labels"))
        dgl.distributed.partition_graph(graph, partition(job), job["workers"], str(folder), num_hops=1, part_method="metis")


def run(job, rank):
    import torch
    import train_homogeneous_graph_advanced as program

    os.chdir(job["work"])
    torch.manual_seed(100 * job["seed"] + rank)
    sys.argv = [
        "train", "--partitioning-json-file", f"{job['work']}/cut/{partition(job)}/{partition(job)}.json", "--cpu-run", "--backend", "gloo",
        "--train-mode", "one_shot_aggregation", "--rank", str(rank), "--world-size", str(job["workers"]), "--train-iters", str(job["epochs"]),
        "--ip-file", "ip", "--output_dir", job["name"], "--log-level", "ERROR", *job["options"],
    ]  # fmt: skip
    program.main()
    return {"loss": KEPT["loss"], "accuracy": KEPT["accuracy"], "model": KEPT["model"], "parameters": KEPT["parameters"]}
