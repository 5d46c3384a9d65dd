"""A page in the browser for a `FeedbackSession`: it shows pictures, and a person clicks on the relevant ones."""

from __future__ import annotations

import json
import secrets
import struct
import threading
import webbrowser
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from os import PathLike
from typing import Any

import numpy as np

from .feedback import FeedbackSession
from .validation.errors import ParameterError

PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Relevance feedback</title><link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 1rem auto; padding: 0 1rem; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(6rem, 1fr)); gap: .5rem; }
.pictures button { padding: .25rem; border: 4px solid transparent; border-radius: .5rem; background: #8882; }
.pictures button[aria-pressed=true] { border-color: #16803c; }
img { width: 100%; aspect-ratio: 1; object-fit: contain; image-rendering: pixelated; display: block; }
p button { font: inherit; padding: .4rem 1rem; margin-right: .5rem; }
</style>
<h1>Which pictures are relevant?</h1>
<p>Click every relevant picture, then ask for the next ones; pictures without a mark then count as not relevant.</p>
<div id="asked" class="pictures"></div>
<p><button id="next">Next pictures</button><button id="finish">Save and finish</button>
<span id="status" role="status"></span></p>
<h2>Relevant so far</h2>
<p>Click a picture to remove its mark.</p>
<div id="relevant" class="pictures"></div>
<script>
const at = (id) => document.getElementById(id), buttons = () => [...document.querySelectorAll("button")];
const isMarked = (button) => button.getAttribute("aria-pressed") === "true";
function picture(row, marked) {
  const button = document.createElement("button"), image = document.createElement("img");
  button.dataset.row = row;
  button.setAttribute("aria-pressed", marked);
  button.onclick = () => button.setAttribute("aria-pressed", !isMarked(button));
  image.src = "picture/" + row;
  image.alt = button.title = "row " + row;
  button.append(image);
  return button;
}
async function send(path) {
  // A person who finishes may not have looked at all pictures.
  const shown = buttons().filter((button) => button.dataset.row &&
    (path === "next" || isMarked(button) || at("relevant").contains(button)));
  const body = JSON.stringify({ rows: shown.map((b) => +b.dataset.row), labels: shown.map(isMarked) });
  buttons().forEach((button) => button.disabled = true);
  at("status").textContent = "Please wait...";
  try {
    const reply = await fetch(path, { method: "POST", body }), state = await reply.json();
    if (!reply.ok) throw new Error(state.error);
    at("asked").replaceChildren(...state.rows.map((row) => picture(row, false)));
    at("relevant").replaceChildren(...state.relevant.map((row) => picture(row, true)));
    at("status").textContent = state.status;
    buttons().forEach((button) => button.disabled = state.finished);
  } catch (error) {
    at("status").textContent = "Error: " + error.message;
    buttons().forEach((button) => button.disabled = false);
  }
}
at("next").onclick = () => send("next");
at("finish").onclick = () => send("finish");
send("next");
</script>
</html>
"""


def serve(
    session: FeedbackSession,
    pictures: Any,
    *,
    n_rows: int = 20,
    save_as: str | PathLike[str] | None = None,
    open_page: Callable[[str], Any] = webbrowser.open,
) -> FeedbackSession:
    """Show pictures in the browser until the person clicks "Save and finish", or the program is interrupted.

    Parameters
    ----------
    session : FeedbackSession
        It learns from the answers, and is returned.
    pictures : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), or callable
        A picture for each row of the table, gray or in color. Bytes (uint8) are shown as they are, other numbers are
        scaled to the range of all pictures. A callable gets a row number and returns the content of an image file.
    n_rows : int, default=20
        Number of pictures that are shown at a time.
    save_as : path-like, default=None
        File for `FeedbackSession.save`, written after every step; None: nothing is saved.
    open_page : callable, default=webbrowser.open
        Called with the secret address of the page, which is available on this computer only.
    """
    picture = pictures if callable(pictures) else _as_files(pictures, session.X.shape[0])
    root, lock = f"/{secrets.token_urlsafe(16)}/", threading.Lock()

    def step(answers: Any, *, finished: bool) -> dict[str, Any]:
        """Learn from the answers, save them, and choose what the page shows next."""
        session.tell(np.array(answers["rows"], np.int64), np.array(answers["labels"], bool))
        if save_as is not None:
            session.save(save_as)
        rows = [] if finished else session.ask(n_rows).tolist()
        relevant = session.rows[session.labels].tolist()
        status = f"{len(session.rows)} of {session.X.shape[0]} pictures are labeled, {len(relevant)} are relevant."
        status += " You can close this page." if finished else "" if rows else " No unlabeled picture is left."
        return {"rows": rows, "relevant": relevant, "status": status, "finished": finished}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            row = self.path.removeprefix(f"{root}picture/")
            if self.path == root:
                self.reply(200, PAGE.encode(), "text/html")
            elif row.isdigit() and int(row) < session.X.shape[0]:
                self.reply(200, picture(int(row)), "image/*")
            else:
                self.reply(404, b"There is no such page.", "text/plain")

        def do_POST(self) -> None:
            if self.path not in (f"{root}next", f"{root}finish"):
                self.reply(404, b"There is no such page.", "text/plain")
                return
            try:
                answers = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    state = step(answers, finished=self.path.endswith("finish"))
                self.reply(200, json.dumps(state).encode(), "application/json")
                if state["finished"]:
                    server.shutdown()
            except Exception as error:  # the page shows the error, and the person can continue
                self.reply(400, json.dumps({"error": str(error)}).encode(), "application/json")

        def reply(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: Any) -> None:
            """Print nothing, because the server runs in a person's terminal or notebook."""

    # Several threads, because browsers open connections in advance and leave them idle.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        address = f"http://127.0.0.1:{server.server_port}{root}"
        print(f"The page is at {address} (Ctrl-C ends it).", flush=True)
        open_page(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("The page is closed.")
    return session


def _as_files(pictures: Any, n_samples: int) -> Callable[[int], bytes]:
    """A function that returns the picture of a row as the content of a PNG file."""
    pictures = np.asarray(pictures)
    if len(pictures) != n_samples or pictures.shape[3:] not in ((), (3,)) or pictures.ndim < 3:
        raise ParameterError(
            f"pictures has shape {pictures.shape}: give ({n_samples}, height, width), with 3 colors "
            f"({n_samples}, height, width, 3), or a function that returns the content of an image file"
        )
    low, high = (0.0, 255.0) if pictures.dtype == np.uint8 else (float(np.nanmin(pictures)), float(np.nanmax(pictures)))

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    def file(row: int) -> bytes:
        share = (np.nan_to_num(pictures[row].astype(np.float64), nan=low) - low) / ((high - low) or 1)
        lines = b"".join(b"\0" + line.tobytes() for line in np.rint(255 * share).astype(np.uint8))  # 0: no filter
        kind = 2 if pictures.ndim == 4 else 0  # colors or gray
        header = struct.pack(">IIBBBBB", pictures.shape[2], pictures.shape[1], 8, kind, 0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)

    return file
