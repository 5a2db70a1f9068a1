"""The driver of RETEXO: `trainers/trainer.py`, whose `init_process` is the program of one worker.

What is replaced in the authors' program, and why:
- CUDA's streams by nothing, `time.sleep` by no sleep (five seconds a layer, "for printing purposes");
- `load_data`, which downloads, by the graph that both sides get; METIS's assignment by the parts that both sides get;
- functions that send, by the same with a label for counting; the loss function, by the same that keeps its values;
- with `weights`: the initial weights of `setup_model`;
- with `mend_degrees`: GraphConv divides by the degrees of the whole graph, not of the subgraph of a split;
- with `mend_ties`: validation accuracies are equal where as many nodes are right, so that the first of the best models is kept;
- with `mend_mean`: SAGE's neighbour mean is taken anew in every round, not kept as the first round's dropout left it.
"""

import os
import sys
import time
from pathlib import Path

import count
import cpu
import inputs

KEPT = {"loss": []}
NOW = {}


def install(clone, _):
    cpu.stub("ogb")
    cpu.stub("ogb.nodeproppred", DglNodePropPredDataset=None)
    cpu.stub("sklearn")
    cpu.stub("sklearn.preprocessing", StandardScaler=None)
    cpu.install()
    import torch

    count.install()
    sys.path.insert(0, str(clone))
    NOW["clone"] = clone
    import trainers.trainer as trainer

    labelled = count.labelled
    rows = lambda _, __, tag, *___: ("activation" if tag != "feat_0" else "feature", int(tag[5:]))  # noqa: E731
    trainer.send_and_receive_embeddings = labelled(trainer.send_and_receive_embeddings, rows)
    trainer.get_boundary_nodes = labelled(trainer.get_boundary_nodes, lambda *_: ("control",))
    trainer.aggregate_metrics = labelled(trainer.aggregate_metrics, lambda *_: ("control",))
    trainer.sync_model = labelled(trainer.sync_model, lambda *_: ("parameter",))

    class Loss(torch.nn.CrossEntropyLoss):
        def forward(self, logits, labels):
            value = super().forward(logits, labels)
            if torch.is_grad_enabled():
                KEPT["loss"].append(value.item() * len(labels) / int(NOW["graph"].masks["train"].sum()))
            return value

    class Adam(torch.optim.Adam):
        def step(self, *rest, **named):
            super().step(*rest, **named)
            count.EPOCH += 1
            parameters = [p for group in self.param_groups for p in group["params"]]
            KEPT["model"] = float(sum(p.detach().double().sum() for p in parameters))

    torch.nn.CrossEntropyLoss, torch.optim.Adam = Loss, Adam
    setup = trainer.setup_model
    trainer.setup_model = lambda model, layer, device: sub_model_of(setup(model, layer, device), layer, NOW["job"])


def sub_model_of(model, layer, job):
    """Their sub-model with the weights and biases that the job asks for."""
    import torch

    KEPT["parameters"] = KEPT.get("parameters", 0) + sum(p.numel() for p in model.parameters())
    if not job.get("weights"):
        return model
    given = {name: torch.from_numpy(values) for name, values in inputs.weights(job["weights"]).items()}
    of = lambda name: given[f"{layer}.{name}"]  # noqa: E731
    conv = model.agg_layer
    if job["conv"] == "gcn":
        conv.weight.data.copy_(of("conv.weight"))
        conv.bias.data.copy_(of("conv.bias"))
    else:
        both = torch.cat([of("conv.weight_self"), of("conv.weight_neighbour")])
        conv.fc_int.weight.data.copy_(both.t())
        conv.fc_int.bias.data.copy_(of("conv.bias"))
    if len(model.following_layers):
        norm, _, head = model.following_layers
        norm.weight.data.copy_(of("norm.gain"))
        norm.bias.data.copy_(of("norm.shift"))
        head.weight.data.copy_(of("head_weight").t())
        head.bias.data.copy_(of("head_bias"))
    return model


def partition(job):
    return f"retexo-{Path(job['graph']).stem}-{job['workers']}"


def prepare(job):
    import numpy
    from data.dataset import graph_partition

    NOW.update(job=job, graph=inputs.Graph(job["graph"]))
    inputs.give_parts(numpy.loadtxt(job["parts"], dtype=int))
    folder = Path(job["work"]) / job["name"]
    for inner in ("results", "checkpoint"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    for old in folder.glob("results/*/*/*/best_stats.txt"):
        old.unlink()
    cut = str(Path(job["work"]) / "cut")
    graph_partition(NOW["graph"].dgl(self_loops=False), partition(job), cut, job["workers"], "metis", "vol")


def whole_degrees(job):
    """Degrees of all nodes, by the numbers that DGL gave them when it cut the graph."""
    import dgl
    import torch

    found, config = {}, Path(job["work"]) / "cut" / partition(job) / f"{partition(job)}.json"
    for part in range(job["workers"]):
        graph, features, *_ = dgl.distributed.load_partition(str(config), part)
        nodes = graph.ndata[dgl.NID][graph.ndata["inner_node"].bool()]
        found.update(zip(nodes.tolist(), features["_N/in_deg"].tolist()))
    return torch.tensor([float(found[node]) for node in range(len(found))])


def mend_degrees(job, trainer):
    import dgl
    import dgl.nn

    load, degrees = trainer.load_partition, whole_degrees(job)

    def loaded(*arguments):
        found = load(*arguments)
        found[0].ndata["whole_degree"] = degrees[found[1][dgl.NID]]
        return found

    def forward(self, graph, rows):
        norm = graph.ndata["whole_degree"].clamp(min=1).pow(-0.5).unsqueeze(1)
        with graph.local_scope():
            graph.ndata["h"] = rows * norm
            graph.update_all(dgl.function.copy_u("h", "m"), dgl.function.sum("m", "n"))
            return (graph.ndata["n"] * norm) @ self.weight + self.bias

    trainer.load_partition, dgl.nn.GraphConv.forward = loaded, forward


def mend_mean():
    import models.sage as sage

    class Never(dict):
        def __contains__(self, _):
            return False

    init = sage.CustomSAGEConv.__init__

    def fresh(self, *arguments, **named):
        init(self, *arguments, **named)
        self.precomputed_feat = Never()

    sage.CustomSAGEConv.__init__ = fresh


def mend_ties(trainer):
    """Accuracies summed over workers are rounded to what single precision tells of so many nodes."""
    sum_up = trainer.aggregate_metrics

    def rounded(metrics):
        found = sum_up(metrics)
        metrics["accuracy"] = metrics["accuracy"].round(decimals=5)
        return found

    trainer.aggregate_metrics = rounded


def run(job, rank):
    import trainers.trainer as trainer
    from hydra import compose, initialize_config_dir
    from omegaconf import OmegaConf

    time.sleep = lambda _: None
    if job.get("mend_degrees"):
        mend_degrees(job, trainer)
    if job.get("mend_ties"):
        mend_ties(trainer)
    if job.get("mend_mean"):
        mend_mean()
    rounds, out = job["epochs"], Path(job["work"]) / job["name"]
    os.chdir(out)
    with initialize_config_dir(str(NOW["clone"] / "conf"), version_base=None):
        changes = [
            f"num_partitions={job['workers']}", f"partition_dir={Path(job['work']) / 'cut'}", f"num_rounds=[{rounds},{rounds},{rounds}]",
            "device=cpu", "measure_dv=true", f"seed={job['seed']}", f"dataset.partition.dataset_name={partition(job)}", "+batch_size=1",
            f'distributed.master_port="{job["port"]}"', *job.get("options", []),
        ]  # fmt: skip
        config = compose(f"node_classification_{job['conv']}", overrides=changes)
    OmegaConf.set_struct(config, False)
    trainer.init_process(rank, config, str(out))
    best = sorted(out.glob("results/*/rank_0/layer_*/best_stats.txt"))
    return {
        "loss": KEPT["loss"],
        "accuracy": [float(value) for value in best[-1].read_text().split(",")[1:3]] if rank == 0 else [],
        "model": KEPT["model"],
        "parameters": KEPT["parameters"],
        "own_counter": trainer.comm_volume_perf_store.get_communication_volume(),
    }
