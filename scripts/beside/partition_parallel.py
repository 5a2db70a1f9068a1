"""The driver of BNS-GCN and PipeGCN, which are built alike: `train.py` over `helper` and `module`.

What is replaced in the authors' program, and why:
- CUDA by the CPU (cpu.py);
- `load_data`, which downloads: by the graph that both sides get; METIS's assignment: by the parts that both sides get;
- functions that send, by the same with a label for counting; the loss function and `calc_acc`, by the same that keep their values;
- with `weights`: the initial weights that `create_model` draws;
- with `one_bias`: `linear1.bias` of their GraphSAGE is left out, so that all layers have one bias and not the first alone;
- with `mend_halo`: BNS-GCN's GCN divides by the degree of the halo node that is meant;
- a worker waits for autograd to store a gradient before the sum goes there (see `after_sum`); with `race` it does not, as in their code.
"""

import multiprocessing.pool
import os
import sys
import time
from pathlib import Path

import count
import cpu
import inputs

KEPT = {"loss": [], "accuracy": [], "failed": 0}
NOW = {}


def after_sum():
    """`Reducer.reduce` copies the sum to `param.grad`. Where the sum is there before autograd has made that, the copy fails, the pool keeps the
    error, `handle.wait()` does not look, and the worker goes on with a gradient of its own."""
    parameter = sys._getframe(2).f_locals.get("param")
    while not NOW["job"].get("race") and parameter is not None and parameter.grad is None:
        time.sleep(1e-4)


def install(clone, code):
    cpu.stub("ogb")
    cpu.stub("ogb.nodeproppred", DglNodePropPredDataset=None)
    cpu.stub("sklearn")
    cpu.stub("sklearn.metrics", f1_score=None)
    cpu.stub("sklearn.preprocessing", StandardScaler=None)
    cpu.install()
    import dgl.function
    import torch

    if not hasattr(dgl.function, "copy_src"):  # PipeGCN names it as DGL 0.8 did
        dgl.function.copy_src = lambda src, out: dgl.function.copy_u(src, out)
    count.install(after_sum)
    sys.path.insert(0, str(clone))
    import helper.utils as utils

    NOW["code"] = code
    utils.load_data = lambda _: (NOW["graph"].dgl(self_loops=True), NOW["graph"].features.shape[1], NOW["graph"].classes)
    cut = utils.partition_graph
    utils.partition_graph = lambda *arguments, **named: cut(*arguments, **{k: v for k, v in named.items() if k != "reshuffle"})
    import train

    label_sends(train)
    keep_values(train, torch)


def label_sends(train):
    from helper.feature_buffer import Buffer

    labelled = count.labelled
    train.get_boundary = labelled(train.get_boundary, lambda *_: ("control",))
    train.precompute = labelled(train.precompute, lambda *_: ("feature", 0))
    if NOW["code"] == "bns":
        train.collect_out_degree = labelled(train.collect_out_degree, lambda *_: ("control",))
        train.data_transfer = labelled(train.data_transfer, lambda *_, **__: count.now() or ("sample",))
        Buffer.update = labelled(Buffer.update, lambda _, layer, __: ("activation", layer))
        hook = Buffer._Buffer__grad_hook
        back = lambda layer: lambda _: ("activation_gradient", layer)  # noqa: E731
        Buffer._Buffer__grad_hook = lambda self, layer: labelled(hook(self, layer), back(layer))
    else:
        forward = lambda _, epoch, layer, __: ("activation" if layer else "feature", layer, epoch)  # noqa: E731
        backward = lambda _, epoch, layer, __: ("activation_gradient", layer, epoch)  # noqa: E731
        Buffer._Buffer__feat_transfer = labelled(Buffer._Buffer__feat_transfer, forward)
        Buffer._Buffer__grad_transfer = labelled(Buffer._Buffer__grad_transfer, backward)


def keep_values(train, torch):
    class Loss(torch.nn.CrossEntropyLoss):
        def forward(self, logits, labels):
            value = super().forward(logits, labels)
            KEPT["loss"].append(value.item())
            return value

    class Adam(torch.optim.Adam):
        def step(self, *rest, **named):
            super().step(*rest, **named)
            count.EPOCH += 1
            parameters = [p for group in self.param_groups for p in group["params"]]
            KEPT["model"] = float(sum(p.detach().double().sum() for p in parameters))
            KEPT["parameters"] = sum(p.numel() for p in parameters)

    torch.nn.CrossEntropyLoss, torch.optim.Adam = Loss, Adam
    accuracy = train.calc_acc

    def kept_accuracy(logits, labels):
        KEPT["accuracy"].append(accuracy(logits, labels))
        return KEPT["accuracy"][-1]

    train.calc_acc = kept_accuracy
    wait = multiprocessing.pool.ApplyResult.wait

    def looking(self, timeout=None):
        wait(self, timeout)
        if self.ready() and not self._success:
            KEPT["failed"] += 1
            print("failed in the pool:", self._value, flush=True)

    multiprocessing.pool.ApplyResult.wait = looking
    make = train.create_model
    train.create_model = lambda size, arguments: model_of(make(size, arguments), NOW["job"])


def model_of(model, job):
    """The authors' model with the weights and biases that the job asks for."""
    import torch

    given = inputs.weights(job["weights"]) if job.get("weights") else None
    for number, layer in enumerate(model.layers):
        two = hasattr(layer, "linear1")
        if job.get("one_bias") and two:
            layer.linear1.bias = None
        if given is None:
            continue
        of = lambda name: torch.from_numpy(given[f"convs.{number}.{name}"]).t()  # noqa: B023, E731
        if two:
            layer.linear1.weight.data.copy_(of("weight_self"))
            layer.linear2.weight.data.copy_(of("weight_neighbour"))
        elif f"convs.{number}.weight" in given:
            layer.linear.weight.data.copy_(of("weight"))
        else:
            layer.linear.weight.data.copy_(torch.cat([of("weight_self"), of("weight_neighbour")], 1))
        if not two:
            layer.linear.bias.data.copy_(of("bias"))
        elif layer.linear1.bias is None:
            layer.linear2.bias.data.copy_(of("bias"))
        else:
            layer.linear1.bias.data.copy_(of("bias"))
            layer.linear2.bias.data.copy_(of("bias_neighbour"))
    return model


def mended_out_norm(num, norm, pos, one_hops):
    """`norm` has the own nodes, then those of each other part by their numbers; `pos` has local numbers, whose order is another."""
    import torch

    found, start = [norm[:num]], num
    for places, nodes in zip(pos, one_hops):
        if places is None:
            continue
        there = places >= 0
        found.append(norm[start + (there.long().cumsum(0) - 1)[nodes]])
        start += int(there.sum())
    return torch.cat(found)


def arguments(job):
    from helper.parser import create_parser

    graph, name = NOW["graph"], Path(job["graph"]).stem
    if "--inductive" in job["options"]:
        name += "-training"
    sys.argv = [
        "main.py", *job["options"], "--dataset", name, "--graph-name", f"{NOW['code']}-{name}-{job['workers']}",
        "--n-partitions", str(job["workers"]), "--partition-method", "metis", "--fix-seed", "--seed", str(job["seed"]),
        "--n-epochs", str(job["epochs"]), "--port", str(job["port"]),
    ]  # fmt: skip
    found = create_parser()
    found.n_feat, found.n_class, found.n_train = graph.features.shape[1], graph.classes, int(graph.masks["train"].sum())
    return found


def prepare(job):
    import numpy
    import helper.utils as utils

    NOW.update(job=job, graph=inputs.Graph(job["graph"]))
    os.chdir(job["work"])
    for folder in ("model", "results", "checkpoint"):
        os.makedirs(folder, exist_ok=True)
    inputs.give_parts(numpy.loadtxt(job["parts"], dtype=int))
    found = arguments(job)
    if NOW["code"] == "bns":
        utils.graph_partition(found)
    else:
        utils.graph_partition(utils.load_data(None)[0], found)


def run(job, rank):
    import train

    if job.get("mend_halo"):
        train.construct_out_norm = mended_out_norm
    training = int(NOW["graph"].masks["train"].sum())
    train.init_processes(rank, job["workers"], arguments(job))
    return {
        "loss": [value / training for value in KEPT["loss"]],
        "accuracy": KEPT["accuracy"],
        "model": KEPT["model"],
        "parameters": KEPT["parameters"],
        "failed_sums": KEPT["failed"],
    }
