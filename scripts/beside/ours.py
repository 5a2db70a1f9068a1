"""Runs grapevine on the same, and reads what it left."""

import csv
import json
import subprocess
from collections import defaultdict

import inputs

SAME = """
[partition]
method = "given"
workers = {workers}
file = "{parts}"
[network]
preset = "ethernet-1g"
[compute]
timing = {{ profile = "t4" }}
"""


class Refused(Exception):
    """What the program says of an experiment that it does not take."""


def value(thing):
    """As TOML writes it."""
    if isinstance(thing, dict):
        return "{ " + ", ".join(f"{key} = {value(inner)}" for key, inner in thing.items()) + " }"
    return json.dumps(thing)


def section(name, settings):
    return f"[{name}]\n" + "".join(f"{key} = {value(of)}\n" for key, of in settings.items())


class Ours:
    """One experiment, whose strategies are cells under their labels."""

    def __init__(self, program, work, name, experiment, workers, parts):
        self.program, self.name, self.given = program, name, (work, experiment, workers, parts)
        self.file, self.out, self.weights = work / f"{name}.toml", work / name, work / f"{name}-weights"
        dataset = {"path": str(experiment["graph"]), "format": "npz-edges", "split": "public", "normalise_features": False}
        text = f"name = {value(name)}\nseeds = {value(experiment['seeds'])}\n"
        for title, settings in (("dataset", dataset), *experiment["settings"].items()):
            text += section(title, settings)
        text += SAME.format(workers=workers, parts=parts)
        for strategy in experiment["strategies"]:
            text += "[[strategy]]\n" + "".join(f"{key} = {value(of)}\n" for key, of in strategy.items())
        work.mkdir(parents=True, exist_ok=True)
        self.file.write_text(text)

    def call(self, *arguments):
        called = subprocess.run([str(self.program), *map(str, arguments)], capture_output=True, text=True)
        if called.returncode == 2:
            raise Refused(called.stderr.strip().splitlines()[0])
        if called.returncode != 0:
            raise SystemExit(f"grapevine {' '.join(map(str, arguments))} failed:\n{called.stderr}")

    def write_weights(self):
        self.call("weights", self.file, "--out", self.weights)

    def run(self):
        self.call("run", self.file, "--out", self.out, "--quiet", "--resume")

    def moved(self, cell):
        """The same run of seed 0 from weights that are moved by a rounding: what single precision alone does to losses."""
        work, experiment, workers, parts = self.given
        weights = work / f"{self.name}-moved.npz"
        inputs.move_by_a_rounding(self.weights / f"{cell}-0.npz", weights)
        settings = {**experiment["settings"], "model": {**experiment["settings"]["model"], "weights": str(weights)}}
        again = Ours(self.program, work, f"{self.name}-moved", {**experiment, "seeds": [0], "settings": settings}, workers, parts)
        again.run()
        return again

    def table(self, name, cell):
        with (self.out / f"{name}.csv").open() as file:
            return [row for row in csv.DictReader(file) if row["cell"] == cell]

    def result(self, cell, seed):
        """Losses, bytes by kind and layer, accuracies: as theirs.py has them."""
        mine = lambda table: [row for row in self.table(table, cell) if row["seed"] == str(seed)]  # noqa: E731
        sent = defaultdict(int)
        for row in mine("traffic"):
            sent[int(row["epoch"]), row["kind"], int(row["layer"])] += int(row["payload_bytes"])
        of_run = mine("runs")[0]
        return {
            "loss": [float(row["train_loss"]) for row in mine("epochs")],
            "sent": [[*what, 0, count] for what, count in sent.items()],
            "parameters": int(of_run["parameters"]),
            "test": float(of_run["test_accuracy"]),
            "own_counter": int(of_run["both_ends_bytes"]),
        }
