"""Training epochs of DGL or PyTorch Geometric; prints one JSON line.

    train.py SYSTEM GRAPH.npz MODEL LAYERS HIDDEN EPOCHS THREADS [--device cuda] [--compile] [--batch 1024 --fanouts 15 10 5]

No dropout, Adam, cross-entropy over the training nodes. The graph is prepared in advance, as each system's own examples do; features are dense. What
is timed is forward pass, loss, backward pass and step; with --batch, which is for GraphSAGE, sampling and gathering of features too, and sampling
alone in epochs of its own. --fanouts has the neighbours drawn at each hop, from the nodes that train on. --device is one of torch's; DGL takes cpu alone.
"""

import argparse
import json
import resource
import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy, elu, relu

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
for text in ("system", "graph", "model"):
    parser.add_argument(text)
for number in ("layers", "hidden", "epochs", "threads"):
    parser.add_argument(number, type=int)
parser.add_argument("--device", type=torch.device, default=torch.device("cpu"))
parser.add_argument("--compile", action="store_true")
parser.add_argument("--batch", type=int)
parser.add_argument("--fanouts", type=int, nargs="*")
ASKED = parser.parse_args()
SYSTEM, GRAPH, MODEL, DEVICE = ASKED.system, ASKED.graph, ASKED.model, ASKED.device
LAYERS, HIDDEN, EPOCHS, THREADS = ASKED.layers, ASKED.hidden, ASKED.epochs, ASKED.threads
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


def dgl_loader(ends, nodes, train):
    """Mini-batches, and of one its input nodes, its seeds, what its layers compute on, and its edges."""
    import dgl

    graph = dgl.to_bidirected(dgl.graph((ends[:, 0], ends[:, 1]), num_nodes=nodes))
    graph.create_formats_()
    # Its list begins with the first layer, which draws last.
    sampler = dgl.dataloading.NeighborSampler(ASKED.fanouts[::-1])
    loader = dgl.dataloading.DataLoader(graph, train, sampler, batch_size=ASKED.batch, shuffle=True)

    def parts(batch):
        inputs, seeds, blocks = batch
        return inputs, seeds, blocks, sum(block.num_edges() for block in blocks)

    return loader, parts


def pyg_loader(ends, nodes, train):
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader
    from torch_geometric.utils import to_undirected

    edges = to_undirected(torch.as_tensor(ends).t().contiguous(), num_nodes=nodes)
    data = Data(edge_index=edges, num_nodes=nodes)
    loader = NeighborLoader(data, ASKED.fanouts, input_nodes=train, batch_size=ASKED.batch, shuffle=True)

    def parts(batch):
        return batch.n_id, batch.n_id[: batch.batch_size], batch, batch.edge_index.shape[1]

    return loader, parts


def on_batch(layers, graph, x, seeds):
    """What a GraphSAGE makes of the seeds, whose rows are the first; each layer computes the rows alone that the next one reads."""
    edges = None if SYSTEM == "dgl" else graph.edge_index
    for layer, convolution in enumerate(layers):
        if SYSTEM == "dgl":
            x = convolution(graph[layer], x)
        else:
            from torch_geometric.utils import trim_to_layer

            x, edges, _ = trim_to_layer(layer, graph.num_sampled_nodes, graph.num_sampled_edges, x, edges)
            x = convolution(x, edges)
        if layer + 1 < LAYERS:
            x = relu(x)
    return x[: len(seeds)]


def in_batches(layers, optimizer, edges, x, labels, train):
    """Seconds of each epoch, those of an epoch that samples alone, and the edges of that."""
    make = {"dgl": dgl_loader, "pyg": pyg_loader}[SYSTEM]
    loader, parts = make(edges, len(labels), train.nonzero().flatten())
    seconds, sampling = [], []
    for _ in range(EPOCHS):
        begun = time.perf_counter()
        sampled = sum(parts(batch)[-1] for batch in loader)
        sampling.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        for batch in loader:
            inputs, seeds, graph, _ = parts(batch)
            loss = cross_entropy(on_batch(layers, graph, x[inputs], seeds), labels[seeds])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds.append(time.perf_counter() - begun)
    return {"seconds": seconds, "sampling_seconds": sampling, "sampled_edges": sampled, "loss": loss.item()}


def finished():
    """The clock, once the device has done what it was given."""
    if DEVICE.type == "cuda":
        torch.cuda.synchronize(DEVICE)
    return time.perf_counter()


def whole(forward, optimizer, x, labels, train):
    """Seconds of each epoch, and the last loss."""
    seconds = []
    for _ in range(EPOCHS):
        begun = finished()
        loss = cross_entropy(forward(x)[train], labels[train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seconds.append(finished() - begun)
    return {"seconds": seconds, "loss": loss.item()}


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
    ends = np.unique(np.concatenate([data["edges"], data["edges"][:, ::-1]]), axis=0)
    sizes = {"nodes": len(labels), "edges": len(ends), "features": x.shape[1], "classes": int(labels.max()) + 1}
    sizes["filled"] = float((x != 0).float().mean())
    found = {"version": version, "torch": torch.__version__, "sizes": sizes}
    if ASKED.batch:
        found.update(in_batches(layers, optimizer, data["edges"], x, labels, train))
    else:
        found.update(whole(torch.compile(forward) if ASKED.compile else forward, optimizer, x, labels, train))
    found["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(found))


main()
