"""Script that draws docs/demo.svg, the picture of the README: the output of ``probewise demo``."""

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

if __name__ == "__main__":
    printed = subprocess.run(
        [sys.executable, "-m", "probewise", "demo"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text("$ make demo", style="bold"))
    for line in printed.splitlines():
        style = "green" if "✓" in line else "bold" if line.startswith(("Tournament puts", "Found by")) else ""
        console.print(Text(line, style=style))
    svg = console.export_svg(title="make demo")
    # The font of rich comes from the network: a font of the reader's machine is used instead.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
    Path(__file__).with_name("demo.svg").write_text(svg)
