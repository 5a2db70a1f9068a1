"""What is held against what.

`experiments(code, graphs)` are grapevine's, each with its graph, seeds, settings and strategies. `pairs(code)` name a cell of one of these and
the job of the authors' code beside it: options of theirs, whether it starts from our weights, what of their model or program is changed, and
what is shown of the two.
"""

SAGE = {"kind": "sage", "layers": 3, "hidden": 16, "norm": "layer"}
GCN = {"kind": "gcn", "layers": 2, "hidden": 16, "norm": "layer"}
# As the code of BNS-GCN's and PipeGCN's authors has it.
LIKE_THEIRS = {**SAGE, "self_loops": True, "biases": 2, "init": "uniform-fan-in"}
WIDE = {"kind": "sage", "layers": 3, "hidden": 256}
# As SAR's example has it: weights of gain √2, features that are not dropped.
LIKE_SAR = {**WIDE, "self_loops": True, "gain": 2**0.5, "input_dropout": 0.0}
LAZY = {"layers": 2, "hidden": 256, "norm": "layer", "self_loops": False}
ADAM = {"kind": "adam", "learning_rate": 0.01}
SLOW_ADAM = {"kind": "adam", "learning_rate": 0.003, "weight_decay": 5e-4}

PIPES = {
    "full": {"kind": "full"},
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


def experiment(graph, model, dropout, epochs, seeds, strategies, optimizer=ADAM, every=1):
    settings = {
        "model": {**model, "dropout": dropout},
        "optimizer": optimizer,
        "training": {"epochs": epochs, "evaluate_every": every},
    }
    labelled = [{**strategy, "label": label} for label, strategy in strategies.items()]
    return {"graph": graph, "seeds": seeds, "settings": settings, "strategies": labelled}


def experiments(code, cora, cora_128):
    if code == "bns":
        shares = {"p=1": {"kind": "bns", "share": 1.0}, "p=0.1": {"kind": "bns", "share": 0.1}}
        return {
            "sage": experiment(cora, SAGE, 0.0, 40, [0], shares),
            "gcn": experiment(cora, GCN, 0.0, 20, [0], shares),
            "plain": experiment(cora, SAGE, 0.5, 60, SEEDS, shares, every=2),
            "like-theirs": experiment(cora, LIKE_THEIRS, 0.5, 60, SEEDS, shares, every=2),
        }
    if code == "pipe":
        two = {name: PIPES[name] for name in ("full", "pipe")}
        return {
            "sage": experiment(cora, SAGE, 0.0, 20, [0], PIPES),
            "plain": experiment(cora, SAGE, 0.5, 60, SEEDS, two, every=2),
            "like-theirs": experiment(cora, LIKE_THEIRS, 0.5, 60, SEEDS, two, every=2),
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
        "losses": experiment(cora_128, WIDE, 0.0, 20, [0], {"full": RATIOS["full"]}),
        "plain": experiment(cora_128, WIDE, 0.5, 60, SEEDS[:3], RATIOS),
        "like-theirs": experiment(cora_128, LIKE_SAR, 0.5, 60, SEEDS[:3], RATIOS),
    }


SEEDS = [0, 1, 2, 3, 4]
# Both sides' model where the two are the same without settings that say so: no self-loops, one bias a layer, our weights.
COMMON = {"self_loops": False, "one_bias": True, "start": "ours"}
THEIRS = {"self_loops": True, "start": "theirs"}


def pair(title, ours, shows, options, **job):
    name, cell = ours.split("/")
    return {"title": title, "experiment": name, "cell": cell, "shows": shows, "options": options.split(), **job}


def pairs(code):
    if code == "bns":
        sage = "--model graphsage --n-layers 3 --n-hidden 16 --use-pp --log-every 2"
        gcn = "--model gcn --n-layers 2 --n-hidden 16 --use-pp --no-eval --dropout 0 --sampling-rate 1.0"
        still = f"{sage} --dropout 0 --no-eval"
        return [
            pair("GraphSAGE, p = 1", "sage/p=1", ["bytes", "losses"], f"{still} --sampling-rate 1.0", **COMMON),
            pair("GraphSAGE, p = 0.1", "sage/p=0.1", ["bytes"], f"{still} --sampling-rate 0.1", **COMMON),
            pair("GCN, p = 1", "gcn/p=1", ["bytes", "losses"], gcn, self_loops=True, start="ours"),
            pair("GCN, p = 1, degrees mended", "gcn/p=1", ["losses"], gcn, self_loops=True, start="ours", mend_halo=True),
            pair("p = 1, models alike", "plain/p=1", ["accuracy"], f"{sage} --sampling-rate 1.0", **COMMON),
            pair("p = 0.1, models alike", "plain/p=0.1", ["accuracy"], f"{sage} --sampling-rate 0.1", **COMMON),
            pair("p = 0.1, their model", "like-theirs/p=0.1", ["accuracy"], f"{sage} --sampling-rate 0.1", **THEIRS),
        ]
    if code == "pipe":
        bare = "--model graphsage --n-layers 3 --n-hidden 16 --log-every 2"
        still, late = f"{bare} --dropout 0 --no-eval", "--enable-pipeline"
        return [
            pair("no pipeline", "sage/full", ["bytes", "losses"], f"{still} --use-pp", **COMMON),
            pair("PipeGCN", "sage/pipe", ["bytes", "losses"], f"{still} --use-pp {late}", **COMMON),
            pair("PipeGCN-F", "sage/pipe-f", ["losses"], f"{still} --use-pp {late} --feat-corr", **COMMON),
            pair("PipeGCN-G", "sage/pipe-g", ["losses"], f"{still} --use-pp {late} --grad-corr", **COMMON),
            pair("PipeGCN-GF", "sage/pipe-gf", ["losses"], f"{still} --use-pp {late} --feat-corr --grad-corr", **COMMON),
            pair("without --use-pp", "sage/pipe-resent", ["bytes", "losses"], f"{still} {late}", **COMMON),
            pair("PipeGCN, models alike", "plain/pipe", ["accuracy"], f"{bare} --use-pp {late}", **COMMON),
            pair("PipeGCN, their model", "like-theirs/pipe", ["accuracy"], f"{bare} --use-pp {late}", **THEIRS),
        ]
    if code == "retexo":
        made = []
        for kind in ("gcn", "sage"):
            upper, still = kind.upper(), "dropout=0.0"
            made.append(pair(f"{upper}, 30 rounds", f"{kind}-losses/retexo", ["bytes", "losses"], still, conv=kind, start="ours"))
            if kind == "gcn":
                title = "GCN, 30 rounds, degrees mended"
                made.append(pair(title, "gcn-losses/retexo", ["losses"], still, conv=kind, start="ours", mend_degrees=True))
            made.append(pair(f"{upper}, 200 rounds", f"{kind}/retexo", ["total", "accuracy"], "", conv=kind, start="theirs"))
        return made
    dropout = "--enable_cr --compression_type dropout --comp_ratio"
    slope = "--enable_cr --compression_type variable_dropout --max_comp_ratio 128 --min_comp_ratio 1 --variable_compression_slope 5"
    options = {"full": "--comp_ratio 1", "slope-5": slope, "fixed-4": f"{dropout} 4", "fixed-128": f"{dropout} 128"}
    alike = {"self_loops": False, "start": "ours"}
    made = [pair("no compression", "losses/full", ["bytes", "losses"], options["full"], dropout=0.0, **alike)]
    for cell, said in options.items():
        made.append(pair(f"{cell}, models alike", f"plain/{cell}", ["total", "accuracy"], said, **alike))
    for cell, said in options.items():
        made.append(pair(f"{cell}, their model", f"like-theirs/{cell}", ["total", "accuracy"], said, **THEIRS))
    return made
