"""What is held against what.

`experiments(code, graphs)` are grapevine's, each with its graph, seeds, settings and strategies. `pairs(code)` name a cell of one of these and
the job of the authors' code beside it: options of theirs, whether it starts from our weights, what of their model or program is changed, and
what is shown of the two.
"""

# GraphSAGE and GCN as BNS-GCN's and PipeGCN's authors have them. Their GraphSAGE has one bias in the first layer and two in the others.
SAGE = {"kind": "sage", "layers": 3, "hidden": 16, "norm": "layer", "self_loops": True}
GCN = {"kind": "gcn", "layers": 2, "hidden": 16, "norm": "layer"}
DRAWN_ALIKE = {**SAGE, "biases": [1, 2, 2], "init": "uniform-fan-in"}
# DGL's SAGEConv in SAR's example: weights of gain √2, features that are not dropped.
SAR = {"kind": "sage", "layers": 3, "hidden": 256, "self_loops": True, "gain": 2**0.5, "input_dropout": 0.0}
LAZY = {"layers": 2, "hidden": 256, "norm": "layer", "self_loops": False}
ADAM = {"kind": "adam", "learning_rate": 0.01}
SLOW_ADAM = {"kind": "adam", "learning_rate": 0.003, "weight_decay": 5e-4}
SEEDS = [0, 1, 2, 3, 4]

PIPES = {
    "full": {"kind": "full", "exchange": "input"},
    "pipe": {"kind": "pipe"},
    "pipe-f": {"kind": "pipe", "smoothing": "features"},
    "pipe-g": {"kind": "pipe", "smoothing": "gradients"},
    "pipe-gf": {"kind": "pipe", "smoothing": "both"},
    "pipe-resent": {"kind": "pipe", "cache_features": False},
}
RATIOS = {
    "full": {"kind": "full", "cache_features": False},
    "slope-5": {"kind": "varco", "schedule": {"kind": "linear", "slope": 5}},
    "fixed-4": {"kind": "fixed", "ratio": 4},
    "fixed-128": {"kind": "fixed", "ratio": 128},
}


def experiment(graph, model, dropout, epochs, seeds, strategies, optimizer=ADAM, every=1, **training):
    settings = {
        "model": {**model, "dropout": dropout},
        "optimizer": optimizer,
        "training": {"epochs": epochs, "evaluate_every": every, **training},
    }
    labelled = [{**strategy, "label": label} for label, strategy in strategies.items()]
    return {"graph": graph, "seeds": seeds, "settings": settings, "strategies": labelled}


def experiments(code, cora, cora_128, minesweeper):
    if code == "bns":
        shares = {"p=1": {"kind": "bns", "share": 1.0}, "p=0.1": {"kind": "bns", "share": 0.1}}
        return {
            "sage": experiment(cora, SAGE, 0.0, 40, [0], shares),
            "gcn": experiment(cora, GCN, 0.0, 20, [0], shares),
            "inductive": experiment(minesweeper, SAGE, 0.0, 20, [0], shares, inductive=True),
            "accuracy": experiment(cora, SAGE, 0.5, 60, SEEDS, shares, every=2),
            "their-draws": experiment(cora, DRAWN_ALIKE, 0.5, 60, SEEDS, {"p=0.1": shares["p=0.1"]}, every=2),
        }
    if code == "pipe":
        late = {"pipe": PIPES["pipe"]}
        return {
            "sage": experiment(cora, SAGE, 0.0, 20, [0], PIPES),
            "accuracy": experiment(cora, SAGE, 0.5, 60, SEEDS, late, every=2),
            "their-draws": experiment(cora, DRAWN_ALIKE, 0.5, 60, SEEDS, late, every=2),
        }
    if code == "retexo":
        one = {"retexo": {"kind": "retexo"}}
        made = {}
        for kind in ("gcn", "sage"):
            model = {"kind": kind, **LAZY}
            made[f"{kind}-losses"] = experiment(cora, model, 0.0, 30, [0], one, SLOW_ADAM)
            made[kind] = experiment(cora, model, 0.3, 200, SEEDS[:3], one, SLOW_ADAM)
        return made
    return {
        "losses": experiment(cora_128, SAR, 0.0, 20, [0], {"full": RATIOS["full"]}),
        "wide": experiment(cora, SAR, 0.0, 20, [0], {"full": RATIOS["full"]}),
        "accuracy": experiment(cora_128, SAR, 0.5, 60, SEEDS[:3], {name: RATIOS[name] for name in ("full", "fixed-128")}),
        "ratios": experiment(cora_128, SAR, 0.5, 60, [0], {name: RATIOS[name] for name in ("slope-5", "fixed-4")}),
    }


# Their model with our weights, and as it is.
ALIKE = {"one_bias": True, "start": "ours"}
THEIRS = {"start": "theirs"}


def pair(title, ours, shows, options, **job):
    name, cell = ours.split("/")
    return {"title": title, "experiment": name, "cell": cell, "shows": shows, "options": options.split(), **job}


def pairs(code):
    if code == "bns":
        sage = "--model graphsage --n-layers 3 --n-hidden 16 --use-pp --log-every 2"
        gcn = "--model gcn --n-layers 2 --n-hidden 16 --use-pp --no-eval --dropout 0 --sampling-rate 1.0"
        still = f"{sage} --dropout 0 --no-eval"
        return [
            pair("GraphSAGE, p = 1", "sage/p=1", ["bytes", "losses"], f"{still} --sampling-rate 1.0", **ALIKE),
            pair("GraphSAGE, p = 0.1", "sage/p=0.1", ["bytes"], f"{still} --sampling-rate 0.1", **ALIKE),
            pair("GCN, p = 1", "gcn/p=1", ["bytes", "losses"], gcn, start="ours"),
            pair("GCN, p = 1, degrees mended", "gcn/p=1", ["losses"], gcn, start="ours", mend_halo=True),
            pair("inductive, p = 1", "inductive/p=1", ["bytes", "losses"], f"{still} --sampling-rate 1.0 --inductive", **ALIKE),
            pair("inductive, p = 0.1", "inductive/p=0.1", ["bytes"], f"{still} --sampling-rate 0.1 --inductive", **ALIKE),
            pair("p = 1, same weights", "accuracy/p=1", ["accuracy"], f"{sage} --sampling-rate 1.0", **ALIKE),
            pair("p = 0.1, same weights", "accuracy/p=0.1", ["accuracy"], f"{sage} --sampling-rate 0.1", **ALIKE),
            pair("p = 0.1, weights of their kind", "their-draws/p=0.1", ["accuracy"], f"{sage} --sampling-rate 0.1", **THEIRS),
        ]
    if code == "pipe":
        bare = "--model graphsage --n-layers 3 --n-hidden 16 --log-every 2"
        still, late = f"{bare} --dropout 0 --no-eval", "--enable-pipeline"
        return [
            pair("no pipeline", "sage/full", ["bytes", "losses"], f"{still} --use-pp", **ALIKE),
            pair("PipeGCN", "sage/pipe", ["bytes", "losses"], f"{still} --use-pp {late}", **ALIKE),
            pair("PipeGCN-F", "sage/pipe-f", ["losses"], f"{still} --use-pp {late} --feat-corr", **ALIKE),
            pair("PipeGCN-G", "sage/pipe-g", ["losses"], f"{still} --use-pp {late} --grad-corr", **ALIKE),
            pair("PipeGCN-GF", "sage/pipe-gf", ["losses"], f"{still} --use-pp {late} --feat-corr --grad-corr", **ALIKE),
            pair("without --use-pp", "sage/pipe-resent", ["bytes", "losses"], f"{still} {late}", **ALIKE),
            pair("PipeGCN, same weights", "accuracy/pipe", ["accuracy"], f"{bare} --use-pp {late}", **ALIKE),
            pair("PipeGCN, weights of their kind", "their-draws/pipe", ["accuracy"], f"{bare} --use-pp {late}", **THEIRS),
        ]
    if code == "retexo":
        made = []
        for kind in ("gcn", "sage"):
            upper, still = kind.upper(), "dropout=0.0"
            made.append(pair(f"{upper}, 30 rounds", f"{kind}-losses/retexo", ["bytes", "losses"], still, conv=kind, start="ours"))
            if kind == "gcn":
                title, mended = "GCN, 30 rounds, degrees and ties mended", {"mend_degrees": True, "mend_ties": True}
                made.append(pair(title, "gcn-losses/retexo", ["losses"], still, conv=kind, start="ours", **mended))
            made.append(pair(f"{upper}, 200 rounds", f"{kind}/retexo", ["total", "accuracy"], "", conv=kind, start="ours"))
        return made
    dropout = "--enable_cr --compression_type dropout --comp_ratio"
    slope = "--enable_cr --compression_type variable_dropout --max_comp_ratio 128 --min_comp_ratio 1 --variable_compression_slope 5"
    options = {"full": "--comp_ratio 1", "slope-5": slope, "fixed-4": f"{dropout} 4", "fixed-128": f"{dropout} 128"}
    made = [pair("no compression, 20 epochs", "losses/full", ["bytes", "losses"], options["full"], dropout=0.0, start="ours")]
    # Where nothing is compressed, features may be wider than hidden rows.
    made.append(pair("no compression, all columns of features", "wide/full", ["losses"], options["full"], dropout=0.0, start="ours"))
    for cell in ("full", "fixed-128"):
        shows = ["total", "accuracy"] if cell == "full" else ["bytes", "total", "accuracy"]
        made.append(pair(f"{cell}, 60 epochs", f"accuracy/{cell}", shows, options[cell], start="ours"))
    for cell in ("slope-5", "fixed-4"):
        made.append(pair(f"{cell}, 60 epochs", f"ratios/{cell}", ["bytes", "total"], options[cell], start="ours"))
    return made
