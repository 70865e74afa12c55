"""A disk for the logs of a server's sessions. The server may be killed at any write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Died(BaseException):
    """The server was killed."""


class Disk:
    """The durable data, and the write before or after which the next process is killed."""

    def __init__(self) -> None:
        self.logs: dict[str, list[bytes]] = {}
        self.writes = 0
        self.dies_at = -1
        self.dies_after = False

    def write(self, change: Callable[[], None]) -> None:
        self.writes += 1
        if self.writes == self.dies_at and not self.dies_after:
            raise Died
        change()
        if self.writes == self.dies_at:
            raise Died


class Logs:
    """The logs as one process sees them."""

    def __init__(self, disk: Disk, late: bool = False) -> None:
        self.disk = disk
        self.late = late
        self.open_now: set[str] = set()
        self.asked: deque[tuple[Callable[[], None], Callable[[Exception | None], None]]] = deque()

    def run(self, work: Callable[[], None], done: Callable[[Exception | None], None]) -> None:
        self.asked.append((work, done))
        if not self.late:
            self.sync()

    def sync(self) -> bool:
        """Do one pending write; return whether there was one."""
        if not self.asked:
            return False
        work, done = self.asked.popleft()
        error: Exception | None = None
        try:
            work()
        except Exception as failed:
            error = failed
        done(error)
        return True

    def __len__(self) -> int:
        return len(self.disk.logs.keys() | self.open_now)

    def create(self, name: str) -> Log | None:
        return None if name in self.disk.logs or name in self.open_now else Log(self, name)

    def open(self, name: str) -> tuple[Log, list[bytes]] | None:
        if name not in self.disk.logs or name in self.open_now:
            return None
        return Log(self, name), list(self.disk.logs[name])


class Log:
    def __init__(self, logs: Logs, name: str) -> None:
        self.disk, self.logs, self.name = logs.disk, logs, name
        self.logs.open_now.add(name)

    @property
    def size(self) -> int:
        return sum(map(len, self.disk.logs.get(self.name, [])))

    def append(self, record: bytes) -> None:
        self.disk.write(lambda: self.disk.logs[self.name].append(record))

    def rewrite(self, record: bytes) -> None:
        self.disk.write(lambda: self.disk.logs.update({self.name: [record]}))

    def remove(self) -> None:
        self.disk.logs.pop(self.name, None)
        self.close()

    def close(self) -> None:
        self.logs.open_now.discard(self.name)
