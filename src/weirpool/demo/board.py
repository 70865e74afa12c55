"""Shows how far the demo is: bars on a terminal, lines elsewhere."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Board"]


class Board:
    """The progress of the flights: ``with Board(total) as board``.

    Args:
        total: The number of flights.

    """

    def __init__(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._console = Console()
        self._bars: Progress | None = None
        if self._console.is_terminal:
            columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
            self._bars = Progress(*columns, console=self._console)
        self._total = total
        self._collected = self._add("in journal")
        self._stored = self._add("in Parquet")

    def __enter__(self) -> Board:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def collected(self, rows: int) -> None:
        """Show that this many flights are in the journal."""
        if self._bars is not None:
            self._bars.update(self._collected, completed=rows)

    def stored(self, rows: int, rate: float) -> None:
        """Show that Spark has written this many flights, so many per second."""
        if self._bars is not None:
            self._bars.update(self._stored, completed=rows)
        else:
            print(f"Spark: {rows:,} flights in Parquet, {rate:,.0f}/s", flush=True)

    def _add(self, what: str) -> TaskID:
        from rich.progress import TaskID

        return TaskID(0) if self._bars is None else self._bars.add_task(what, total=self._total)
