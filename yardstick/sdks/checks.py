"""What every Python client does in every cell, given a thin adapter over its SDK. Standard library only; checks.mjs does the same.

A client module has NAME, VERSION and `connected(target, seen)`: an asynchronous context manager that gives a session with
    can                              what this client has a way for, of progress, log, elicitation, sampling, list_changed
    protocol                         the revision that was agreed on
    listens                          whether it hears of changes in that revision: not without a stream for it in 2026-07-28
    tools()                          the names of the tools
    call(name, arguments, notes)     the text of the answer and whether it is an error; `notes` takes each progress note
    cancelled(name, arguments, when) calls, and cancels as this SDK does once `when()` returns
It reads its cells as one JSON document from stdin, says {"ready": true} when those that wait for the restart all do, goes on at the
next line, and writes a JSON line for each cell.
"""
import asyncio
import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

UNICODE = "Zażółć gęślą jaźń 🦀 \u2028 漢字 \U0001f468\u200d\U0001f469\u200d\U0001f467 ñ"
CALLS = ("list", "call", "unicode", "900kB", "progress", "log", "elicitation", "sampling", "list_changed", "cancel", "fail")
# Cells at work at the same time, and seconds that each check, an opening and a close may take.
AT_ONCE = int(os.environ.get("YARD_CELLS", 6))
CHECK_S, OPEN_S, CLOSE_S = 30, 60, 5


class Need(Exception):
    """What a check missed."""


def must(ok, why):
    if not ok:
        raise Need(why)


def why(error):
    while getattr(error, "exceptions", None):
        error = error.exceptions[0]
    said = str(error) if isinstance(error, Need) else f"{type(error).__name__}: {error}"
    return " ".join(said.split())[:240]


async def until(ok, seconds=4.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if ok():
            return True
        await asyncio.sleep(0.02)
    return ok()


class Seen:
    """What came to the client by itself."""

    def __init__(self):
        self.logged, self.changed, self.asked, self.sampled = [], 0, 0, 0


class Checks:
    """Each method is a check of one session; it raises what is wrong, or returns "n/a"."""

    def __init__(self, cell, session, seen):
        self.cell, self.session, self.seen, self.prefix = cell, session, seen, ""

    def has(self, ability):
        return ability in self.session.can

    async def names(self):
        names = await self.session.tools()
        own = next((name for name in names if name == "echo" or name.endswith("__echo")), None)
        must(own, f"no echo among {len(names)} tools: {names[:3]}")
        self.prefix = own.removesuffix("echo")
        return names

    async def use(self, tool, notes=None, **arguments):
        text, is_error = await self.session.call(self.prefix + tool, arguments, notes)
        must(not is_error, f"{tool}: {text[:160]}")
        return text

    async def echoes(self, text):
        got = await self.use("echo", text=text)
        must(got == text, f"echo answered {got[:80]!r}")

    async def list(self):
        names = await self.names()
        wanted = {"echo", "big", "steps", "say", "ask", "sample", "grow", "wait", "fail"}
        missing = wanted - {name.removeprefix(self.prefix) for name in names}
        must(not missing, f"missing: {missing}")

    async def call(self):
        await self.echoes("hello")

    async def unicode(self):
        await self.echoes(UNICODE)

    async def big(self):
        got = await self.use("big", length=900_000)
        must(got == "0123456789" * 90_000, f"{len(got)} characters of 900000")

    async def progress(self):
        if not self.has("progress"):
            return "n/a"
        for _ in range(3):  # an SDK may drop the notes that it reads together with the answer
            notes = []
            await self.use("steps", notes.append, count=5)
            if await until(lambda: len(notes) >= 5, 0.5):
                break
        must(notes == [1, 2, 3, 4, 5], f"notes {notes} of 1 to 5")

    async def log(self, text="a log note"):
        if not self.has("log"):
            return "n/a"
        await self.use("say", text=text)
        must(await until(lambda: any(text in note for note in self.seen.logged)), f"no log note ({text})")
        self.cell["logs"] = True

    async def elicitation(self):
        if not self.has("elicitation"):
            return "n/a"
        got = await self.use("ask")
        must(self.seen.asked and got == "accept: blue", f"asked {self.seen.asked} times, answer {got!r}")

    async def sampling(self):
        if not self.has("sampling"):
            return "n/a"
        got = await self.use("sample")
        must(self.seen.sampled and got == "sampled", f"asked {self.seen.sampled} times, answer {got!r}")

    async def list_changed(self):
        if not self.has("list_changed"):
            return "n/a"
        before, name = self.seen.changed, f"t{self.cell['key']}"
        await self.use("grow", name=name)
        is_told = await until(lambda: self.seen.changed > before)
        must(self.prefix + name in await self.names(), f"told: {is_told}; the new tool is not in the list that was asked for then")
        # A client of 2026-07-28 that opens no stream for it is told nothing, by whomever: it has the tool when it lists again.
        must(is_told or not self.session.listens, "no tools/list_changed")
        return None if is_told else "later"

    async def cancel(self):
        word = Path(self.cell["folder"], f"c{self.cell['key']}")
        said = lambda: word.read_text() if word.exists() else "not begun"

        async def begun():
            must(await until(lambda: said() == "waiting", 15), f"the call to be cancelled is {said()}")

        await self.session.cancelled(f"{self.prefix}wait", {"key": word.name, "seconds": 15}, begun)
        must(await until(lambda: said() == "cancelled"), f"the server was not told: {said()}")
        await self.echoes("after the cancel")
        if self.cell.get("logs"):
            await self.log("after the cancel")

    async def fail(self):
        text, is_error = await self.session.call(f"{self.prefix}fail", {}, None)
        must(is_error and "the disk is full" in text, f"is an error: {is_error}, answer {text[:80]!r}")
        await self.echoes("after the error")

    async def lost(self):
        """A call that Prism has to give up: the server ends in the middle of it, or never answers."""
        arguments = {"wait": {"key": f"l{self.cell['key']}", "seconds": 60}, "die": {}}
        tool = self.cell["lost"]["tool"]
        call = self.session.call(self.prefix + tool, arguments[tool], None)
        try:
            text, is_error = await asyncio.wait_for(call, 12)
        except asyncio.TimeoutError:
            raise Need("the lost call is never answered") from None
        except Exception as error:
            text, is_error = why(error), True
        must(is_error, f"the lost call is answered with {text[:80]!r}")
        self.cell["said"] = text
        await self.echoes("after the lost call")

    async def restart(self):
        await self.echoes("after the restart")


async def play(cell, connected, gate):
    """Plays the checks of a cell, in one session for as long as it lives and in a new one after that."""
    out = {name: cell[name] for name in ("server", "way", "direct")} | {"protocol": None, "checks": {}, "errors": {}}
    targets = [(cell["target"], name) for name in CALLS]
    if not cell["direct"]:
        targets += [(cell["lost"]["target"], "lost"), (cell["target"], "restart")]
    async with Work(gate, arrived=cell["direct"]) as work:
        while targets:
            await one_session(out, cell, targets, connected, work)
    out |= {name: cell[name] for name in ("said", "again") if name in cell}
    return out


async def one_session(out, cell, targets, connected, work):
    """Opens a session and plays what is at the head of `targets`, which it takes off, until the session or its server changes."""
    target = targets[0][0]
    state = {"now": "open", "since": time.monotonic(), "open": False}

    async def session():
        seen = Seen()
        async with connected(target, seen) as opened:
            state["open"] = True
            out["protocol"] = out["protocol"] or opened.protocol
            checks = Checks(cell, opened, seen)
            if targets[0][1] not in ("list", "restart"):
                await asyncio.wait_for(checks.names(), CHECK_S)
            while targets and targets[0][0] == target:
                name = targets[0][1]
                if name == "restart":
                    await asyncio.wait_for(checks.names(), CHECK_S)
                    state["now"] = "wait"
                    await work.wait_for_the_restart()
                state.update(now=name, since=time.monotonic())
                try:
                    said = await asyncio.wait_for(getattr(checks, {"900kB": "big"}.get(name, name))(), CHECK_S)
                    out["checks"][name] = said or ("again" if name == "restart" and cell.get("again") else True)
                except asyncio.TimeoutError:
                    raise Need(f"not done in {CHECK_S} s") from None
                except Exception as error:
                    if name == "restart":
                        raise
                    out["checks"][name], out["errors"][name] = False, why(error)
                    if not isinstance(error, Need):
                        targets.pop(0)
                        state.update(now="close", since=time.monotonic())
                        return  # the session may be gone: the next check has a right to its own
                targets.pop(0)
                state["now"] = None
            state.update(now="close", since=time.monotonic())

    task = asyncio.create_task(session())
    while not task.done():
        await asyncio.wait({task}, timeout=0.5)
        limit = {"open": OPEN_S, "close": CLOSE_S, "wait": 1000, None: 1000}.get(state["now"], CHECK_S + 10)
        if not task.done() and time.monotonic() - state["since"] > limit:
            task.cancel()
            await asyncio.wait({task}, timeout=3)
            break
    error = task.exception() if task.done() and not task.cancelled() else Need("it hung, and was cut off")
    if error is None and not task.cancelled():
        return
    now = state["now"]
    if now == "close":  # whatever an SDK says on its way out
        out["errors"].setdefault("close", why(error))
    elif targets and targets[0][0] == target:
        name = targets.pop(0)[1]
        if name == "restart" and now == name and not cell.get("again"):
            cell["again"] = why(error)
            targets.insert(0, (target, name))
            return
        out["checks"][name] = False
        place = "" if now == name else "cannot open a session: " if not state["open"] else "the session is gone: "
        out["errors"][name] = place + why(error)
        if not state["open"]:  # the rest would only wait as long
            while targets and targets[0][0] == target:
                name = targets.pop(0)[1]
                out["checks"][name], out["errors"][name] = False, "cannot open a session"


class Gate:
    """Lets some cells work at a time, and holds those that have come to the restart."""

    def __init__(self, cells):
        self.slots = asyncio.Semaphore(AT_ONCE)
        self.expected = sum(not cell["direct"] for cell in cells)
        self.waiting = 0
        self.open = asyncio.Event()

    def arrive(self):
        self.waiting += 1
        if self.waiting == self.expected:
            print(json.dumps({"ready": True}), flush=True)


class Work:
    def __init__(self, gate, arrived):
        self.gate, self.arrived, self.holds = gate, arrived, False

    async def __aenter__(self):
        await self.gate.slots.acquire()
        self.holds = True
        return self

    async def wait_for_the_restart(self):
        if self.gate.open.is_set():
            return
        self.gate.slots.release()
        self.holds = False
        if not self.arrived:
            self.arrived = True
            self.gate.arrive()
        await self.gate.open.wait()
        await self.gate.slots.acquire()
        self.holds = True

    async def __aexit__(self, *_):
        if self.holds:
            self.gate.slots.release()
        if not self.arrived:  # it never came so far, and must keep nobody waiting
            self.arrived = True
            self.gate.arrive()


def main(name, version, connected):
    async def go():
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(64))  # an SDK's thread that hangs must not keep the others waiting
        cells = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
        gate = Gate(cells)
        # An SDK that loses its connection may say so in a task of its own.
        loop.set_exception_handler(lambda *_: None)

        async def opened():
            await loop.run_in_executor(None, sys.stdin.readline)
            gate.open.set()

        go_on = asyncio.create_task(opened())

        async def one(cell):
            try:
                out = await play(cell, connected, gate)
            except Exception as error:
                out = {"server": cell["server"], "way": cell["way"], "direct": cell["direct"], "checks": {}, "errors": {"run": why(error)}}
            print(json.dumps({"client": name, "version": version, **out}), flush=True)

        await asyncio.gather(*(one(cell) for cell in cells))
        go_on.cancel()

    with suppress(KeyboardInterrupt):
        asyncio.run(go())
    sys.stdout.flush()
    os._exit(0)


def text_of(result):
    """The text and the error flag of an answer, in the words of either SDK."""
    is_error = getattr(result, "is_error", None) if hasattr(result, "is_error") else getattr(result, "isError", False)
    return "\n".join(getattr(part, "text", None) or "" for part in result.content), bool(is_error)


async def cancel_the_task(call, when):
    """Cancels as asyncio does, which the SDK has to pass on."""
    task = asyncio.create_task(call)
    try:
        await when()
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=3)
