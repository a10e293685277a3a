"""Runs a command at a terminal: terminal.py COMMAND... -- EXPECTED INPUT EXPECTED INPUT ...

Waits until the terminal shows each expected text ("FOREGROUND": until the command itself is in the foreground), then
types the input behind it ("^C" is Ctrl-C). Prints what the terminal has shown, and the exit status. Every wait has a
limit.
"""

import os
import pty
import select
import sys
import time

LIMIT_SECONDS = 100

at = sys.argv.index("--")
command, dialogue = sys.argv[1:at], sys.argv[at + 1 :]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)

shown = seen = b""


def read(deadline):
    """Reads once; false at the end of the terminal, or of the time."""
    global shown, seen
    ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
    try:
        data = os.read(terminal, 4096) if ready else b""
    except OSError:
        data = b""
    shown, seen = shown + data, seen + data
    return bool(data)


deadline = time.monotonic() + LIMIT_SECONDS
for expected, typed in zip(dialogue[::2], dialogue[1::2]):
    while expected == "FOREGROUND" and os.tcgetpgrp(terminal) != child:
        if time.monotonic() > deadline:
            sys.exit("waited for the command to be in the foreground")
    while expected != "FOREGROUND" and expected.encode() not in seen:
        if not read(deadline):
            sys.exit(f"waited for {expected!r} in {shown.decode(errors='replace')}")
    seen = b""
    os.write(terminal, b"\x03" if typed == "^C" else typed.encode() + b"\n")
while read(deadline):
    pass
print(shown.decode(errors="replace"))
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
