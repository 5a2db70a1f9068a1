"""Full-batch training epochs of DGL or PyTorch Geometric; prints one JSON line.

    train.py SYSTEM GRAPH.npz MODEL LAYERS HIDDEN EPOCHS THREADS [DEVICE]

No dropout, Adam, cross-entropy over the training nodes. The graph is prepared in advance, as each system's own examples do; features are dense. What
is timed is forward pass, loss, backward pass and step. DEVICE is one of torch's (cpu); DGL takes cpu alone.
"""

import json
import resource
import sys
import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy, elu, relu

SYSTEM, GRAPH, MODEL = sys.argv[1:4]
LAYERS, HIDDEN, EPOCHS, THREADS = map(int, sys.argv[4:8])
DEVICE = torch.device(sys.argv[8] if len(sys.argv) > 8 else "cpu")
HEADS = 8


def widths(features, classes):
    return [features] + [HIDDEN] * (LAYERS - 1) + [classes]


def dgl_model(ends, nodes, features, classes):
    import dgl
    from dgl.nn import GATConv, GraphConv, SAGEConv

    graph = dgl.to_bidirected(dgl.graph((ends[:, 0], ends[:, 1]), num_nodes=nodes))
    if MODEL != "sage":
        graph = dgl.add_self_loop(graph)
    graph.create_formats_()
    size = widths(features, classes)
    layers = torch.nn.ModuleList()
    for layer, (width, out) in enumerate(zip(size, size[1:])):
        last = layer + 1 == LAYERS
        if MODEL == "gcn":
            layers.append(GraphConv(width, out, norm="both"))
        elif MODEL == "sage":
            layers.append(SAGEConv(width, out, "mean"))
        else:
            layers.append(GATConv(width, out if last else out // HEADS, HEADS))

    def forward(x):
        for layer, convolution in enumerate(layers):
            x = convolution(graph, x)
            last = layer + 1 == LAYERS
            if MODEL == "gat":
                x = x.mean(1) if last else elu(x.flatten(1))
            elif not last:
                x = relu(x)
        return x

    return layers, forward, dgl.__version__


def pyg_model(ends, nodes, features, classes):
    import torch_geometric
    from torch_geometric.nn import GATConv, GCNConv, SAGEConv
    from torch_geometric.nn.conv.gcn_conv import gcn_norm
    from torch_geometric.utils import to_torch_csr_tensor, to_undirected

    edges = to_undirected(torch.as_tensor(ends).t().contiguous(), num_nodes=nodes)
    size = widths(features, classes)
    layers = torch.nn.ModuleList()
    for layer, (width, out) in enumerate(zip(size, size[1:])):
        last = layer + 1 == LAYERS
        if MODEL == "gcn":
            layers.append(GCNConv(width, out, normalize=False))
        elif MODEL == "sage":
            layers.append(SAGEConv(width, out))
        else:
            layers.append(GATConv(width, out if last else out // HEADS, HEADS, concat=not last))
    edges = edges.to(DEVICE)
    # Sparse matrices where the system has kernels for them: several times faster than lists of edges.
    if MODEL == "gcn":
        edges, weights = gcn_norm(edges, num_nodes=nodes)
        graph = to_torch_csr_tensor(edges, weights, size=(nodes, nodes))
    elif MODEL == "sage":
        graph = to_torch_csr_tensor(edges, size=(nodes, nodes))
    else:
        graph = edges

    def forward(x):
        for layer, convolution in enumerate(layers):
            x = convolution(x, graph)
            if layer + 1 < LAYERS:
                x = elu(x) if MODEL == "gat" else relu(x)
        return x

    return layers, forward, torch_geometric.__version__


def finished():
    """The clock, once the device has done what it was given."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize(DEVICE)
    return time.perf_counter()


def main():
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    data = np.load(GRAPH)
    labels = torch.as_tensor(data["node_labels"]).to(DEVICE)
    x = torch.as_tensor(data["node_features"]).to(DEVICE)
    train = torch.as_tensor(data["train_masks"][0]).to(DEVICE)
    build = {"dgl": dgl_model, "pyg": pyg_model}[SYSTEM]
    layers, forward, version = build(data["edges"], len(labels), x.shape[1], int(labels.max()) + 1)
    layers.to(DEVICE)
    optimizer = torch.optim.Adam(layers.parameters(), lr=0.01)
    seconds = []
    for _ in range(EPOCHS):
        begun = finished()
        loss = cross_entropy(forward(x)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(finished() - begun)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {"version": version, "torch": torch.__version__, "seconds": seconds, "peak_bytes": peak, "loss": loss.item()}
    print(json.dumps(found))


main()
