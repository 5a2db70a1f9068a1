"""The graph, the parts and the weights that both sides get."""

import csv
import gzip
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def cora():
    """Cora as it is bundled, with its public split."""
    sys.path.insert(0, str(ROOT / "scripts/peers"))
    import graphs

    folder = ROOT / "data/cora"
    ends, features, labels = graphs.cora(folder)
    names = [line.split()[0] for line in gzip.open(folder / "cora.content.gz", "rt")]
    part = {row["paper_id"]: row["split"] for row in csv.DictReader(gzip.open(folder / "planetoid-split.csv.gz", "rt"))}
    split = np.array([part[name] for name in names])
    return ends, features, labels, split


def write(file, ends, features, labels, train, validation, test):
    """One file in the form that `format = "npz-edges"` reads."""
    ends = np.sort(np.asarray(ends, dtype=np.int64), axis=1)
    ends = np.unique(ends[ends[:, 0] != ends[:, 1]], axis=0)
    masks = {"train_masks": train[None], "val_masks": validation[None], "test_masks": test[None]}
    np.savez(file, edges=ends, node_features=features.astype("float32"), node_labels=labels.astype("int64"), **masks)


def public_cora(file):
    ends, features, labels, split = cora()
    write(file, ends, features, labels, *(split == name for name in ("train", "val", "test")))


def public_minesweeper(file):
    """As it is bundled: of 10,000 nodes half train, and a quarter of the edges is between these."""
    folder = ROOT / "data/minesweeper"
    rows = np.loadtxt(folder / "minesweeper.content.gz", dtype=int)
    ends = np.loadtxt(folder / "minesweeper.cites.gz", dtype=int)
    split = np.array([row["split"] for row in csv.DictReader(gzip.open(folder / "split.csv.gz", "rt"))])
    write(file, ends, rows[:, 1:-1], rows[:, -1], *(split == name for name in ("train", "val", "test")))


def of_training(source, file):
    """The training nodes, in their order, and the edges between them."""
    z = np.load(source)
    train = z["train_masks"][0].astype(bool)
    number = np.cumsum(train) - 1
    ends = number[z["edges"][train[z["edges"]].all(1)]]
    nodes = train.sum()
    none = np.zeros(nodes, bool)
    write(file, ends, z["node_features"][train], z["node_labels"][train], ~none, none, none)


def reduced(source, file, columns):
    """The same graph with so many columns of features, by singular values, and 60, 20 and 20 % of the nodes as sets."""
    z = np.load(source)
    features = z["node_features"]
    shares = features / np.maximum(features.sum(1, keepdims=True), 1e-12)
    u, s, _ = np.linalg.svd(shares, full_matrices=False)
    rows = u[:, :columns] * s[:columns]
    order = np.random.default_rng(0).permutation(len(rows))
    a, b = round(0.6 * len(order)), round(0.8 * len(order))
    masks = np.zeros((3, len(order)), bool)
    for mask, nodes in zip(masks, (order[:a], order[a:b], order[b:])):
        mask[nodes] = True
    write(file, z["edges"], rows / rows.std(), z["node_labels"], *masks)


class Graph:
    """What is in such a file; `ends` has each edge in both directions."""

    def __init__(self, file):
        z = np.load(file)
        self.features, self.labels = z["node_features"], z["node_labels"]
        self.nodes, self.classes = len(self.labels), int(self.labels.max()) + 1
        self.ends = np.concatenate([z["edges"], z["edges"][:, ::-1]])
        self.masks = {name: z[f"{name}_masks"][0] for name in ("train", "val", "test")}

    def boundary_rows(self, parts):
        """Pairs of a node and another part that reads it."""
        u, v = self.ends.T
        cut = parts[u] != parts[v]
        return len(np.unique(np.stack([u[cut], parts[v[cut]]], axis=1), axis=0))

    def dgl(self, self_loops, names=("feat", "label")):
        import dgl
        import torch

        u, v = (torch.from_numpy(end.copy()) for end in self.ends.T)
        graph = dgl.graph((u, v), num_nodes=self.nodes)
        graph.ndata[names[0]] = torch.from_numpy(self.features)
        graph.ndata[names[1]] = torch.from_numpy(self.labels)
        for name, mask in self.masks.items():
            graph.ndata[f"{name}_mask"] = torch.from_numpy(mask)
        return dgl.add_self_loop(graph) if self_loops else graph


def give_parts(parts):
    """DGL cuts graphs as `parts` has it, where it is asked for METIS."""
    import dgl.distributed.partition as cutting
    import torch

    cutting.metis_partition_assignment = lambda *_, **__: torch.from_numpy(np.asarray(parts, dtype=np.int64))


def weights(file):
    """Arrays by name, as `grapevine weights` wrote them."""
    z = np.load(file)
    return {name: z[name] for name in z.files}


def move_by_a_rounding(source, file):
    """Each weight becomes the next larger number of single precision, the next smaller one, or stays: drawn, the same at every call."""
    draws = np.random.default_rng(0)
    moved = {}
    for name, values in sorted(weights(source).items()):
        towards = draws.choice([-np.inf, 0.0, np.inf], size=values.shape).astype(values.dtype)
        moved[name] = np.where(towards == 0, values, np.nextafter(values, towards))
    np.savez(file, **moved)
