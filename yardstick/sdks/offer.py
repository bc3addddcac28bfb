"""How both servers are offered: at a free port of loopback whose URL is the first line on stdout, or on stdio.

On stdio a server is a process for each session, some hundred of them in all, and would spend most of its life on importing its SDK. So one
process imports it and is forked for whoever starts `on_stdio.py`.
"""
import asyncio
import os
import signal
import socket
import sys
from pathlib import Path


def at_a_port(app, path):
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}{path}", flush=True)
    config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


def to_each_that_comes(run, door):
    """Runs `run` in a fork for each connection to the socket `door`, with the stdin, stdout and stderr that come by it."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(door)
    listener.listen(64)
    print(door, flush=True)
    while True:
        guest, _ = listener.accept()
        _, files, *_ = socket.recv_fds(guest, 1, 3)
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            sys.stdin, sys.stdout = open(0), open(1, "w")
            try:
                run()
            finally:
                os._exit(0)
        for file in files:
            os.close(file)
        guest.close()


async def wait(folder, key, seconds):
    """Waits in silence, and leaves word of how that went where the check can read it: calls may be on several processes."""
    word = Path(folder, key)
    word.write_text("waiting")
    try:
        await asyncio.sleep(seconds)
    except BaseException:
        word.write_text("cancelled")
        raise
    word.write_text("done")
    return "done"
