"""Runs the authors' code on the CPU: the jobs of a file one after another, each with a process for every part.

    theirs.py JOBS.json

The file has `code` (bns, pipe, retexo or varco), `clone`, `work`, `workers` and `jobs`; a job has `name`, `graph`, `parts` and what its driver
reads. A job whose result is there, of the same inputs and driver, is not run again. A driver has `install(clone)`, once, `prepare(job)` before the workers of a job start, and `run(job, rank)`, which returns `loss`,
`accuracy`, `model` and more. Of each job, what came of its workers goes to `work/<name>.json`: bytes summed, losses summed.
"""

import hashlib
import importlib
import json
import os
import socket
import sys
import time
import traceback
from pathlib import Path

sys.dont_write_bytecode = True
DRIVERS = {"bns": "partition_parallel", "pipe": "partition_parallel", "retexo": "lazy", "varco": "compressing"}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def digest(driver, job):
    """Of all that a job depends on, its clone aside, whose commit is checked."""
    found = hashlib.sha256(json.dumps(job, sort_keys=True).encode())
    for file in (driver.__file__, job["graph"], job["parts"], job.get("weights")):
        found.update(Path(file).read_bytes() if file else b"")
    return found.hexdigest()


def give_epsilon(adam, epsilon):
    """Adam with that ε, which none of the authors' programs sets."""
    init = adam.__init__
    adam.__init__ = lambda self, parameters, *rest, **named: init(self, parameters, *rest, **{**named, "eps": epsilon})


def worker(driver, job, rank, stem):
    """The process of one worker: its result in a file of its own, what it says in a log."""
    import numpy
    import torch

    import count

    log = os.open(f"{stem}.{rank}.log", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        torch.set_num_threads(1)
        # Processes that are forked share the state of generators that the authors do not seed, and those that they start do not.
        numpy.random.seed(1000 * job["seed"] + rank)
        if "epsilon" in job:
            give_epsilon(torch.optim.Adam, job["epsilon"])
        found = driver.run(job, rank)
        found["sent"] = [[*what, *cell] for what, cell in count.SENT.items()]
        Path(f"{stem}.{rank}.json").write_text(json.dumps(found))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def one(driver, job, work, workers):
    """All workers of a job; the merged result."""
    stem = work / job["name"]
    job["port"], job["workers"] = free_port(), workers
    driver.prepare(job)
    begun = time.time()
    running = {}
    for rank in range(workers):
        child = os.fork()
        if child == 0:
            worker(driver, job, rank, stem)
        running[child] = rank
    failed = []
    while running:
        child, status = os.wait()
        rank = running.pop(child, None)
        if status != 0 and not failed:
            failed.append(rank)
            for other in running:
                os.kill(other, 15)
    if failed:
        tail = "".join(open(f"{stem}.{failed[0]}.log").readlines()[-12:])
        sys.exit(f"{job['name']}: worker {failed[0]} of the authors' code ended early; its log, {stem}.{failed[0]}.log, ends with\n{tail}")
    results = [json.loads(Path(f"{stem}.{rank}.json").read_text()) for rank in range(workers)]
    return merged(results, time.time() - begun)


def merged(results, seconds):
    sent = {}
    for result in results:
        for epoch, kind, layer, messages, count in result["sent"]:
            cell = sent.setdefault((epoch, kind, layer), [0, 0])
            cell[0] += messages
            cell[1] += count
    checks = [result["model"] for result in results]
    return {
        **results[0],
        "sent": [[*what, *cell] for what, cell in sent.items()],
        "loss": [sum(losses) for losses in zip(*(result["loss"] for result in results))],
        "replicas_differ": max(checks) - min(checks),
        "failed_sums": sum(result.get("failed_sums", 0) for result in results),
        "own_counter": sum(result.get("own_counter", 0) for result in results),
        "seconds": seconds,
    }


def main():
    spec = json.loads(Path(sys.argv[1]).read_text())
    here, work = Path(__file__).resolve().parent, Path(spec["work"])
    sys.path.insert(0, str(here))
    os.environ.update(DGLBACKEND="pytorch", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", SAR_SOCKET_NAME="lo", MASTER_ADDR="127.0.0.1")
    driver = importlib.import_module(DRIVERS[spec["code"]])
    driver.install(Path(spec["clone"]), spec["code"])
    for job in spec["jobs"]:
        job["work"] = str(work)
        file, inputs = work / f"{job['name']}.json", digest(driver, {**job, "workers": spec["workers"]})
        if file.exists() and json.loads(file.read_text()).get("digest") == inputs:
            continue
        found = one(driver, job, work, spec["workers"])
        file.write_text(json.dumps({**found, "digest": inputs}))
        print(f"{spec['code']}: {job['name']}, {found['seconds']:.0f} s", file=sys.stderr, flush=True)


main()
