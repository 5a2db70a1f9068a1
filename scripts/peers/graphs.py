"""Writes the graphs of the comparison as .npz files that all systems read.

    graphs.py rmat OUT          R-MAT with the nodes and edges of ogbn-arxiv (Hu et al., 2020), 128 features, 40 classes
    graphs.py cora OUT FOLDER   Cora, from the repository's data/cora
    graphs.py amazon OUT FILE   amazon_electronics_computers.npz (Shchur et al., 2018)
"""

import gzip
import sys
from pathlib import Path

import numpy as np

NODES, EDGES, SCALE = 169_343, 1_166_243, 18
QUADRANTS = (0.57, 0.19, 0.19, 0.05)


def rmat():
    draw = np.random.default_rng(0)
    names = draw.permutation(1 << SCALE)
    found = np.empty(0, dtype=np.int64)
    while len(found) < EDGES:
        count = 2 * (EDGES - len(found)) + 1000
        ends = np.zeros((2, count), dtype=np.int64)
        for _ in range(SCALE):
            quadrant = draw.choice(4, size=count, p=QUADRANTS)
            ends = 2 * ends + np.stack([quadrant // 2, quadrant % 2])
        low, high = np.sort(names[ends], axis=0)
        kept = (low != high) & (high < NODES)
        fresh = np.setdiff1d(np.unique(low[kept] * NODES + high[kept]), found)
        fresh = draw.permutation(fresh)[: EDGES - len(found)]
        found = np.sort(np.concatenate([found, fresh]))
    edges = np.stack([found // NODES, found % NODES], axis=1)
    features = draw.standard_normal((NODES, 128), dtype=np.float32)
    return edges, features, draw.integers(0, 40, NODES)


def cora(folder):
    lines = gzip.open(Path(folder) / "cora.content.gz", "rt").read().splitlines()
    rows = [line.split() for line in lines]
    number = {row[0]: at for at, row in enumerate(rows)}
    features = np.array([row[1:-1] for row in rows], dtype=np.float32)
    _, labels = np.unique([row[-1] for row in rows], return_inverse=True)
    cites = gzip.open(Path(folder) / "cora.cites.gz", "rt").read().split()
    ends = np.array([number[paper] for paper in cites]).reshape(-1, 2)
    return ends, features, labels


def amazon(file):
    data = np.load(file, allow_pickle=True)

    def matrix(name):
        shape, starts = data[f"{name}_shape"], data[f"{name}_indptr"]
        row = np.repeat(np.arange(shape[0]), np.diff(starts))
        return shape, row, data[f"{name}_indices"], data[f"{name}_data"]

    _, row, column, _ = matrix("adj")
    shape, at, word, value = matrix("attr")
    features = np.zeros(shape, dtype=np.float32)
    features[at, word] = value
    return np.stack([row, column], axis=1), features, data["labels"]


def main():
    kind, out, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    edges, features, labels = {"rmat": rmat, "cora": cora, "amazon": amazon}[kind](*rest)
    low, high = np.sort(np.asarray(edges, dtype=np.int64), axis=1).T
    ends = np.unique(np.stack([low, high], axis=1)[low != high], axis=0)
    part = np.random.default_rng(1).random(len(labels))
    masks = {
        "train_masks": part < 0.6,
        "val_masks": (part >= 0.6) & (part < 0.8),
        "test_masks": part >= 0.8,
    }
    masks = {name: mask[None] for name, mask in masks.items()}
    labels = np.asarray(labels, dtype=np.int64)
    np.savez(out, edges=ends, node_features=features, node_labels=labels, **masks)
    print(f"{out}: {len(labels)} nodes, {len(ends)} edges, {features.shape[1]} features, {labels.max() + 1} classes")


if __name__ == "__main__":
    main()
