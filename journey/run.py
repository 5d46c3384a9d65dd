"""User journeys: scripts of new users, run with a fresh wheel in an empty environment: ``journey/run.py [NAME...]``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOLDER = Path(__file__).parent
LANES = (
    ("biologist", "server", "scientist", "chemist"),
    ("text", "analyst", "reader"),
)  # run at the same time, one per core
OTHER_PACKAGES = ("nbclient", "ipykernel", "pandas")  # packages that a data scientist has already


def main(names: list[str]) -> int:
    """Build, install and run; return 1 if a journey failed."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="journey-") as folder:
        python = install(Path(folder))
        print(f"installed after {time.perf_counter() - start:.0f} s", flush=True)
        lanes = [[name for name in lane if not names or name in names] for lane in LANES]
        with ThreadPoolExecutor(len(lanes)) as pool:
            n_failed = sum(pool.map(lambda lane: sum(not succeeds(name, python, Path(folder)) for name in lane), lanes))
    outcome = f"{n_failed} journeys failed" if n_failed else "all journeys succeeded"
    print(f"{outcome} after {time.perf_counter() - start:.0f} s")
    return int(n_failed > 0)


def install(folder: Path) -> Path:
    """Install the wheel into an empty environment and return the Python of that environment."""
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, FOLDER.parent], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-compile", f"{wheel}[cli,report,excel]", *OTHER_PACKAGES], check=True)
    return python


def succeeds(name: str, python: Path, folder: Path) -> bool:
    """Run a journey in a folder of its own, print its output, and return whether it succeeded."""
    start = time.perf_counter()
    (folder / name).mkdir()
    command = [python, "-P", FOLDER / f"{name}.py"]
    done = subprocess.run(command, cwd=folder / name, capture_output=True, encoding="utf-8", check=False)
    outcome = "failed" if done.returncode else "succeeded"
    print(f"{name}: {outcome} after {time.perf_counter() - start:.0f} s", flush=True)
    print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode:
        print(done.stderr, flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
