"""Runs the authors' programs and grapevine on the same and prints the two side by side; scripts/authors calls it.

    beside.py CLONES --program GRAPEVINE --out DIR [--only bns pipe retexo varco] [--graph FILE.npz] [--parts FILE]
        [--weights DIR] [--epsilon 1e-8] [--workers 4] [--seeds 5] [--quick]
"""

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy

import cases
import inputs
import tables
from ours import Ours, Refused

HERE = Path(__file__).resolve().parent
# Folder of the clone, where it is from, and the commit that the drivers were written for.
CLONES = {
    "bns": ("BNS-GCN", "github.com/GATECH-EIC/BNS-GCN", "b4a48bdaf25212bfddce46ec84af0ca2e351be7a"),
    "pipe": ("PipeGCN", "github.com/GATECH-EIC/PipeGCN", "73ab9496f4467c84b0491bb5623a83ebd258045e"),
    "retexo": ("retexo-distributed", "github.com/aashishkolluri/retexo-distributed", "05a04d7ba0e919b40711e322fc40e19a1fb8bf32"),
    "varco": ("SAR", "github.com/mturja-vf-ic-bd/SAR", "0f404570d183f174ae436d340c87646f5587629f"),
}
NAMES = {"bns": "BNS-GCN", "pipe": "PipeGCN", "retexo": "RETEXO", "varco": "VARCO"}


def wrong(what):
    print(f"error: {what}", file=sys.stderr)
    sys.exit(2)


def git(folder, *arguments):
    called = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True)
    return called.stdout.strip() if called.returncode == 0 else None


def clone(folder, code):
    """The clone, which must be unedited and at the commit that its driver knows."""
    name, source, commit = CLONES[code]
    path = folder / name
    if not path.is_dir():
        wrong(f"{path} is not there; clone https://{source} into it and check out {commit[:7]}, or leave {code} out with --only")
    at = git(path, "rev-parse", "HEAD")
    if at is None or Path(git(path, "rev-parse", "--show-toplevel")).resolve() != path.resolve():
        wrong(f"{path} is not a git clone, so its commit is not known; clone https://{source} into it")
    if at != commit:
        wrong(f"{path} is at {at[:7]}, and the driver was written for {commit[:7]}; run `git checkout {commit[:7]}` there")
    if git(path, "status", "--porcelain", "--untracked-files=no"):
        wrong(f"{path} has been edited; run `git stash` there, for what runs here must be the authors' code")
    return path


def arguments():
    options = argparse.ArgumentParser(prog="scripts/authors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("clones", type=Path)
    options.add_argument("--program", type=Path, required=True)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--only", nargs="+", choices=list(CLONES), default=list(CLONES))
    options.add_argument("--graph", type=Path, help="a graph in the form of `npz-edges` with features and masks (default: Cora)")
    options.add_argument("--parts", type=Path, help="a line with the worker of each node (default: random parts)")
    options.add_argument("--weights", type=Path, help="a folder with initial weights, <program>-<experiment>-<seed>.npz (default: drawn ones)")
    options.add_argument("--epsilon", type=float, help="Adam's ε on both sides (default: their 1e-8)")
    options.add_argument("--workers", type=int, default=4)
    options.add_argument("--seeds", type=int, default=5, help="at most so many for accuracies")
    options.add_argument("--quick", action="store_true", help="bytes and losses alone, without the runs that accuracies take")
    chosen = options.parse_args()
    if chosen.graph and not chosen.graph.is_file():
        wrong(f"--graph {chosen.graph} is not a file")
    if chosen.parts and not chosen.parts.is_file():
        wrong(f"--parts {chosen.parts} is not a file")
    if chosen.weights:
        check_weights(chosen)
    if chosen.epsilon is not None and not 0 < chosen.epsilon < float("inf"):
        wrong("--epsilon must be above 0: Adam divides by the root of a mean square plus it")
    if chosen.workers < 2:
        wrong("--workers must be at least 2: the authors' programs send nothing with one")
    if chosen.seeds < 1:
        wrong("--seeds must be at least 1")
    return chosen


def check_weights(chosen):
    """The folder with weights must have some for what is to run."""
    if not chosen.weights.is_dir():
        wrong(f"--weights {chosen.weights} is not a folder")
    names = [f"{code}-{name}" for code in chosen.only for name in cases.experiments(code, None, None, None)]
    if not any((chosen.weights / f"{name}-0.npz").exists() for name in names):
        wrong(f"{chosen.weights} has no weights for any experiment of {', '.join(chosen.only)}; files are called as {names[0]}-0.npz")


def graphs(chosen, out):
    """The graph; the same with 128 columns: the compressor of VARCO's authors fails where features are wider than hidden layers; and one that is
    trained inductively: of Cora's public training nodes hardly any are neighbours."""
    whole, narrow, split = out / "cora.npz", out / "cora-128.npz", out / "minesweeper.npz"
    if chosen.graph:
        whole, narrow = chosen.graph.resolve(), out / f"{chosen.graph.stem}-128.npz"
        split = whole
        missing = {"edges", "node_features", "node_labels", "train_masks", "val_masks", "test_masks"} - set(numpy.load(whole).files)
        if missing:
            wrong(f"{whole} has no {', '.join(sorted(missing))}; docs/experiments.md says what `npz-edges` is")
    elif not whole.exists():
        inputs.public_cora(whole)
    if chosen.graph or not narrow.exists():
        inputs.reduced(whole, narrow, 128)
    if not split.exists():
        inputs.public_minesweeper(split)
    return whole, narrow, split


def cut(chosen, out, graph):
    """The parts that were given, or parts by grapevine, at random: a line with the worker of each node."""
    if chosen.parts:
        return given(chosen, graph)
    file = out / f"{graph.stem}-{chosen.workers}.parts"
    call = ["partition", graph, "--format", "npz-edges", "--workers", chosen.workers, "--method", "random", "--out", file]
    called = subprocess.run([str(chosen.program), *map(str, call)], capture_output=True, text=True)
    if called.returncode:
        wrong(f"grapevine cannot cut {graph}: {called.stderr.strip()}")
    return file


def parts_of(chosen, out, experiment):
    """The parts of the graph that an experiment trains on: the whole, or that of the training nodes."""
    graph = experiment["graph"]
    if not experiment["settings"]["training"].get("inductive"):
        return cut(chosen, out, graph)
    file = out / f"{graph.stem}-training.npz"
    if not chosen.parts:
        inputs.of_training(graph, file)
        return cut(chosen, out, file)
    of_nodes = given(chosen, graph).read_text().split()
    parts = file.with_suffix(".parts")
    parts.write_text("".join(f"{part}\n" for part, trains in zip(of_nodes, inputs.Graph(graph).masks["train"]) if trains))
    return parts


def given(chosen, graph):
    """The parts that were given, which must be for this graph and so many workers."""
    parts, nodes = chosen.parts.read_text().split(), inputs.Graph(graph).nodes
    if len(parts) != nodes:
        wrong(f"--parts {chosen.parts} has {len(parts):,} lines, and {graph} {nodes:,} nodes; give the worker of each node, a line each")
    if set(parts) != {str(worker) for worker in range(chosen.workers)}:
        wrong(f"--parts {chosen.parts} does not name workers 0 to {chosen.workers - 1}, each at least once; or give --workers")
    return chosen.parts.resolve()


def give_weights(code, experiments, pairs, folder):
    """Experiments from which both sides start begin with the files of the folder, those without any with drawn weights. The names of the former."""
    given = []
    for name in sorted({pair["experiment"] for pair in pairs if pair["start"] == "ours"}):
        experiment = experiments[name]
        files = [folder / f"{code}-{name}-{seed}.npz" for seed in experiment["seeds"]]
        if not any(file.exists() for file in files):
            continue
        missing = [file for file in files if not file.exists()]
        if missing:
            wrong(f"{missing[0]} is not there, and other seeds of `{name}` are; give all, or fewer with --seeds")
        experiment["settings"]["model"]["weights"] = str(folder.resolve() / f"{code}-{name}-{{seed}}.npz")
        given.append(name)
    return given


def jobs_of(code, pairs, experiments, parts):
    """The authors' side: a job for each pair and seed."""
    for number, pair in enumerate(pairs):
        ours = experiments[pair["experiment"]]
        for seed in ours["seeds"]:
            job = {key: of for key, of in pair.items() if key not in ("title", "experiment", "cell", "shows", "start", "weights")}
            job.update(name=f"{code}-{number}-{seed}", seed=seed, graph=str(ours["graph"]), parts=str(parts[pair["experiment"]]))
            job["epochs"] = ours["settings"]["training"]["epochs"]
            if "epsilon" in ours["settings"]["optimizer"]:
                job["epsilon"] = ours["settings"]["optimizer"]["epsilon"]
            if pair["start"] == "ours":
                job["weights"] = str(pair["weights"] / f"{pair['cell']}-{seed}.npz")
            yield job


def compare(code, chosen, out, path, files):
    """Runs one of the programs and grapevine; rows of all tables."""
    work = out / code
    experiments = cases.experiments(code, *files)
    for experiment in experiments.values():
        experiment["seeds"] = experiment["seeds"][: chosen.seeds]
        if chosen.epsilon is not None:
            experiment["settings"]["optimizer"]["epsilon"] = chosen.epsilon
    pairs = [pair for pair in cases.pairs(code) if not chosen.quick or "accuracy" not in pair["shows"]]
    given = give_weights(code, experiments, pairs, chosen.weights) if chosen.weights else []
    parts = {name: parts_of(chosen, out, experiment) for name, experiment in experiments.items()}
    made, moved, shown = {}, {}, {kind: [] for kind in ("bytes", "total", "losses", "epochs", "accuracy", "notes")}
    losses = {pair["experiment"] for pair in pairs if "losses" in pair["shows"]}
    for pair in pairs:
        name = pair["experiment"]
        if name not in made:
            made[name] = Ours(chosen.program, work / "ours", name, experiments[name], chosen.workers, parts[name])
            try:
                print(f"{code}: grapevine, {name}", file=sys.stderr, flush=True)
                made[name].write_weights()
                made[name].run()
                if name in losses:
                    moved[name] = made[name].moved(pair["cell"])
            except Refused as refused:
                made[name] = None
                shown["notes"].append(f"not run: `{name}`, which this program refuses ({refused})")
    pairs = [pair for pair in pairs if made[pair["experiment"]]]
    for pair in pairs:
        pair["weights"] = made[pair["experiment"]].weights
    spec = {"code": code, "clone": str(path), "work": str(work), "workers": chosen.workers}
    spec["jobs"] = list(jobs_of(code, pairs, experiments, parts))
    (work / "jobs.json").write_text(json.dumps(spec, indent=1))
    with (work / "theirs.log").open("w") as log:
        ran = subprocess.run([sys.executable, "-W", "ignore", str(HERE / "theirs.py"), str(work / "jobs.json")], stdout=log)
    if ran.returncode:
        sys.exit(1)
    for number, pair in enumerate(pairs):
        seeds, mine = experiments[pair["experiment"]]["seeds"], made[pair["experiment"]]
        theirs = [json.loads((work / f"{code}-{number}-{seed}.json").read_text()) for seed in seeds]
        ours = [mine.result(pair["cell"], seed) for seed in seeds]
        add_rows(code, shown, pair, theirs, ours, moved.get(pair["experiment"]))
    graph = inputs.Graph(files[0])
    boundary = graph.boundary_rows(numpy.loadtxt(cut(chosen, out, files[0]), dtype=int))
    kind = "given" if chosen.parts else "random"
    for name in given:
        shown["notes"].append(f"`{name}` starts from the weights in {chosen.weights}")
    if chosen.epsilon is not None:
        shown["notes"].append(f"Adam's ε is {chosen.epsilon:g} on both sides")
    shown["notes"].insert(0, f"{graph.nodes:,} nodes, {chosen.workers} {kind} parts, {boundary:,} boundary rows")
    with (out / f"{code}-losses.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([["program", "case", "epoch", "theirs", "ours"], *shown["epochs"]])
    return tables.side_by_side(f"{NAMES[code]} ({CLONES[code][1]} at {CLONES[code][2][:7]})", shown)


def add_rows(code, shown, pair, theirs, ours, moved):
    title = pair["title"]
    if "bytes" in pair["shows"]:
        shown["bytes"] += tables.bytes_rows(title, theirs[0], ours[0])
    if "total" in pair["shows"]:
        shown["total"].append(tables.total_row(title, theirs[0], ours[0], code == "retexo"))
    if "losses" in pair["shows"]:
        shown["losses"].append(tables.loss_row(title, theirs[0], ours[0], moved.result(pair["cell"], 0)))
        shown["epochs"] += tables.epochs(code, title, theirs[0], ours[0])
    if "accuracy" in pair["shows"]:
        best = tables.varco_best if code == "varco" else tables.of_best
        shown["accuracy"].append(tables.accuracy_row(title, [best(one) for one in theirs], [one["test"] for one in ours]))
    if theirs[0]["parameters"] != ours[0]["parameters"]:
        shown["notes"].append(f"{title}: {theirs[0]['parameters']:,} parameters of theirs, {ours[0]['parameters']:,} of ours")
    drifted = sum(one["replicas_differ"] > 0 for one in theirs)
    failed = sum(one["failed_sums"] for one in theirs)
    if drifted or failed:
        shown["notes"].append(f"{title}: {failed} sums of theirs failed without a word; replicas differ at the end of {drifted} runs")


def main():
    chosen = arguments()
    chosen.program, out = chosen.program.resolve(), chosen.out.resolve()
    clones = {code: clone(chosen.clones, code) for code in chosen.only}
    out.mkdir(parents=True, exist_ok=True)
    files = graphs(chosen, out)
    for code, path in clones.items():
        (out / code).mkdir(exist_ok=True)
        text = compare(code, chosen, out, path.resolve(), files)
        (out / f"{code}.md").write_text(text)
        print(text, flush=True)


if __name__ == "__main__":
    main()
