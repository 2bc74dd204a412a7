#!/usr/bin/env python3
"""Plays a scene in two terminals with the real command, and draws docs/pictures/demo.svg of it.

  record_demo.py DLOCK           writes the picture
  record_demo.py --check DLOCK   exits with 1 if the scene no longer prints what the picture shows

What differs each time is replaced by fixed values: tokens (in their order), times, the host, process ids."""
import html
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

PICTURE = pathlib.Path(__file__).resolve().parents[1] / "pictures" / "demo.svg"
WORK = '#!/bin/sh\necho "working with token $DLOCK_TOKEN"\nexec sleep "$SLEEP"\n'

# Terminal, what is typed there, and what some terminal prints before the next step.
SCENE = [
    (0, "dlock run report -- ./work &", 0, "working"),
    (1, 'dlock run --try report -- ./work || echo "exit status $?"', 1, "exit status"),
    (1, "dlock run report -- ./work", 1, "waiting"),
    (0, "kill -9 $!", 1, "working"),
]
TITLES = ["terminal 1", "terminal 2"]


class Terminal:
    """A shell whose output is read line by line."""

    def __init__(self, directory, dlock, seconds, record):
        path = f"{pathlib.Path(dlock).resolve().parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "DLOCK_URL": f"file://{directory}/locks", "SLEEP": seconds}
        self.shell = subprocess.Popen(["bash"], cwd=directory, env=environment, stdin=subprocess.PIPE, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.printed = []
        self.news = threading.Condition()
        threading.Thread(target=self.read, args=[record], daemon=True).start()

    def read(self, record):
        for line in self.shell.stdout:
            if line.startswith("bash: line"):
                continue  # the shell's own news of the killed job
            with self.news:
                record(line.rstrip())
                self.printed.append(line)
                self.news.notify()

    def type(self, command):
        self.shell.stdin.write(command + "\n")
        self.shell.stdin.flush()

    def wait_for(self, text):
        with self.news:
            if not self.news.wait_for(lambda: any(text in line for line in self.printed), timeout=60):
                sys.exit(f'nothing with "{text}" was printed, but: {self.printed}')
            self.printed.clear()


def play(dlock):
    """Lines as (terminal, whether it was typed, text), in order."""
    lines = []
    with tempfile.TemporaryDirectory() as directory:
        work = pathlib.Path(directory, "work")
        work.write_text(WORK, encoding="utf-8")
        work.chmod(0o700)
        terminals = [Terminal(directory, dlock, seconds, lambda line, n=n: lines.append((n, False, line)))
                     for n, seconds in enumerate(["60", "0"])]
        for n, command, other, text in SCENE:
            lines.append((n, True, command))
            terminals[n].type(command)
            terminals[other].wait_for(text)
        for terminal in terminals:
            terminal.shell.communicate(timeout=60)
    return constant(lines)


def constant(lines):
    tokens = [int(token) for _, _, text in lines for token in re.findall(r"\d{16}", text)]
    if tokens != sorted(set(tokens)):
        sys.exit(f"tokens do not grow: {tokens}")
    shown = {str(token): str(1763719872512034 + 4104771 * n) for n, token in enumerate(tokens)}
    lines = [(n, typed, re.sub(r"\d{16}", lambda found: shown[found.group()], text)) for n, typed, text in lines]
    lines = [(n, typed, re.sub(r"[\w.-]+:\d+:work", "web1:4711:work", text)) for n, typed, text in lines]
    times = itertools.count(1.0, 2.0)
    return [(n, typed, re.sub(r"\d+(\.\d+)? s\b", lambda _: f"{next(times)} s", text)) for n, typed, text in lines]


STYLE = """
    .ground { fill: #f6f8fa; stroke: #d0d7de; }
    text { fill: #59636e; white-space: pre; }
    .typed { fill: #0a3069; font-weight: 600; }
    .printed { fill: #1f2328; }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #0d1117; stroke: #3d444d; }
      text { fill: #9198a1; }
      .typed { fill: #79c0ff; }
      .printed { fill: #f0f6fc; }
    }
    .typed, .printed { animation: appear 0.2s both; }
    @keyframes appear { from { opacity: 0; } }
    @media (prefers-reduced-motion: reduce) { .typed, .printed { animation: none; } }
  """


def draw(lines):
    shown, seconds, top = [], 0.0, {}
    height = 8
    for n, title in enumerate(TITLES):
        count = sum(1 for line in lines if line[0] == n)
        size = f'y="{height + 0.5}" height="{38 + 20 * count}"'
        shown.append(f'  <rect class="ground" x="8.5" {size} width="743" rx="6"/>')
        shown.append(f'  <text x="20" y="{height + 20}" font-family="sans-serif" font-size="12">{title}</text>')
        top[n] = height + 42
        height += 38 + 20 * count + 10
    for n, typed, text in lines:
        seconds += 1.6 if typed else 0.6
        kind, text = ("typed", "$ " + text) if typed else ("printed", text)
        shown.append(f'  <text class="{kind}" x="20" y="{top[n]}" style="animation-delay: {seconds:.1f}s">'
                     f"{html.escape(text, quote=False)}</text>")
        top[n] += 20
    spoken = " ".join(f"{TITLES[n]}: {text}." for n, _, text in lines)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" width="760" height="{height}"',
        '  role="img" aria-labelledby="title description" font-size="13"',
        "  font-family=\"ui-monospace, 'DejaVu Sans Mono', monospace\">",
        '  <title id="title">Two terminals, one lock</title>',
        f'  <desc id="description">{html.escape(spoken, quote=False)}</desc>',
        f"  <style>{STYLE}</style>", *shown, "</svg>", ""])


def main(arguments):
    picture = draw(play(arguments[-1]))
    if arguments[0] != "--check":
        PICTURE.write_text(picture, encoding="utf-8")
    elif picture != PICTURE.read_text(encoding="utf-8"):
        sys.exit(f"{PICTURE.name} would now be:\n{picture}")


if __name__ == "__main__":
    main(sys.argv[1:])
