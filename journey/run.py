"""Five journeys of new users through a fresh wheel in an empty environment: ``python3 journey/run.py [NAME...]``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
LANES = (("biologist", "server", "scientist"), ("text", "reader"))  # two cores: a lane each
WANTED = ("nbclient", "ipykernel", "pandas")  # what a data scientist has already


def main(asked: list[str]) -> int:
    """Build, install, walk; how long each took, and 1 where one is stuck."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="journey-") as name:
        python = installed(Path(name))
        print(f"installed after {time.perf_counter() - start:.0f} s", flush=True)
        lanes = [[step for step in lane if not asked or step in asked] for lane in LANES]
        with ThreadPoolExecutor(len(lanes)) as pool:
            stuck = sum(pool.map(lambda lane: sum(not walked(step, python, Path(name)) for step in lane), lanes))
    print(f"{'all arrived' if not stuck else f'{stuck} stuck'} after {time.perf_counter() - start:.0f} s")
    return int(stuck > 0)


def installed(folder: Path) -> Path:
    """The Python of an empty environment into which the wheel was installed."""
    subprocess.run([sys.executable, "-m", "venv", folder / "env"], check=True)
    python = folder / "env" / "bin" / "python"
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, HERE.parent], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-compile", f"{wheel}[cli,report,excel]", *WANTED], check=True)
    return python


def walked(step: str, python: Path, folder: Path) -> bool:
    """Whether the journey arrives; what it printed, where it does not."""
    start = time.perf_counter()
    place = folder / step
    place.mkdir()
    done = subprocess.run(
        [python, "-P", HERE / f"{step}.py"], cwd=place, capture_output=True, encoding="utf-8", check=False
    )
    print(
        f"{step}: {'arrived' if not done.returncode else 'stuck'} after {time.perf_counter() - start:.0f} s", flush=True
    )
    print("".join(f"  {line}\n" for line in done.stdout.splitlines()), end="", flush=True)
    if done.returncode:
        print(done.stderr, flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
