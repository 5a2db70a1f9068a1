"""Python environments of the systems that grapevine is held against.

    environment.py FOLDER NAME      makes FOLDER/NAME if it is not there, and prints its python
"""

import subprocess
import sys
from pathlib import Path

DGL = ["torch==2.2.1", "numpy<2", "dgl==2.1.0", "pandas", "pydantic", "pyyaml", "torchdata<0.8"]
PACKAGES = {
    "dgl": DGL,
    "pyg": ["torch", "torch_geometric", "numpy"],
    # What the authors' programs import besides: of RETEXO the first three, of SAR the last.
    "authors": [*DGL, "hydra-core==1.3.*", "torchmetrics<1.5", "torch_geometric", "ifaddr"],
}


def make(folder, name):
    """The python of an environment, which is installed if it is not there."""
    home = Path(folder) / name
    if not (home / "ready").exists():
        print(f"installing {name} in {home}", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(home / "bin/pip"), "install", "--quiet", *PACKAGES[name]], check=True)
        (home / "ready").touch()
    return home / "bin/python"


if __name__ == "__main__":
    print(make(sys.argv[1], sys.argv[2]))
