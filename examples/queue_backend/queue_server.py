"""A small lock service over TCP: each lock is a queue of owners, and the first one holds it.

  queue_server.py [PORT [PROGRAM ARGUMENT...]]

Port 0, the default, is a free one. Prints the URL, or runs the program with the URL as its last argument and ends with
it. A connection is a session, which ends when it is closed or sends nothing for its timeout: then its locks are free.
A request is a line of words between tabs. Each is answered by one line, in the order of the requests:

  HELLO timeout-in-ms holder   WELCOME; first
  PING                         PONG, and the number of other requests so far
  LOCK name owner wait|try     GRANTED token, QUEUED or BUSY; if repeated, what is true now
  UNLOCK name owner            FREED, or ABSENT: the owner neither held the lock nor waited for it
  INSPECT name                 LOCK token holder waiters, or FREE
  BREAK name, EXPEL name       FREED or ABSENT; EXPEL ends the session of the holder

Lines without a request: TURN owner token (it holds the lock now), BROKEN owner (it no longer does).
"""
import asyncio
import sys
import time
from types import SimpleNamespace

queues = {}  # by the name of the lock: its owners; none is empty
last_token = requests = 0


def grant(owner):
    global last_token  # at least the wall clock, so that it grows although a restart loses the state
    last_token = owner.token = max(last_token + 1, time.time_ns() // 1000)


def remove(name, owner):
    queue = queues[name]
    queue.remove(owner)
    if not queue:
        del queues[name]
    elif not queue[0].token:
        grant(queue[0])
        queue[0].session.send("TURN", queue[0].owner, queue[0].token)


class Session:
    def __init__(self, writer):
        self.writer, self.timeout, self.holder = writer, 10, ""

    def send(self, *words):
        self.writer.write(("\t".join(map(str, words)) + "\n").encode())

    def answer(self, verb, name="", owner="", how=""):
        global requests
        queue = queues.get(name, [])
        own = next((each for each in queue if (each.session, each.owner) == (self, owner)), None)
        if verb == "PING":
            return "PONG", requests
        requests += 1
        if verb == "HELLO":
            self.timeout, self.holder = int(name) / 1000, owner
            return ("WELCOME",)
        if verb == "LOCK":
            if queue and not own and how == "try":
                return ("BUSY",)
            if not own:
                own = SimpleNamespace(session=self, owner=owner, token=None)
                queues.setdefault(name, []).append(own)
                if not queue:
                    grant(own)
            return ("GRANTED", own.token) if own.token else ("QUEUED",)
        if verb == "INSPECT":
            return ("LOCK", queue[0].token, queue[0].session.holder, len(queue) - 1) if queue else ("FREE",)
        if verb in ("BREAK", "EXPEL") and queue:
            own = queue[0]
            own.session.send("BROKEN", own.owner) if verb == "BREAK" else own.session.writer.transport.abort()
        if own and verb != "EXPEL":
            remove(name, own)
        return ("FREED" if own else "ABSENT",)


async def serve(reader, writer):
    session = Session(writer)
    try:
        while line := await asyncio.wait_for(reader.readline(), session.timeout):
            session.send(*session.answer(*line.decode().rstrip("\n").split("\t")))
    except (asyncio.TimeoutError, ConnectionError):
        pass
    finally:
        for name, queue in list(queues.items()):
            for own in [each for each in reversed(queue) if each.session is session]:
                remove(name, own)  # the last first, so that no other of this session is granted the lock
        writer.close()


async def main(port="0", *program):
    server = await asyncio.start_server(serve, "127.0.0.1", int(port))
    url = "queue://127.0.0.1:%d" % server.sockets[0].getsockname()[1]
    if program:
        return await (await asyncio.create_subprocess_exec(*program, url)).wait()
    print(url, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
