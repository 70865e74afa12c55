"""The output of the demo: a table and a chart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import Row

__all__ = ["draw_chart", "print_table"]

TABLE_ROWS: Final = 10


def print_table(rows: list[Row]) -> None:
    """Print the worst delays by origin and hour."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title="Worst departure delays, by origin and hour")
    for name in ("origin", "hour", "mean delay, min", "flights"):
        table.add_column(name, justify="left" if name == "origin" else "right")
    for row in rows[:TABLE_ROWS]:
        table.add_row(row["origin"], f"{row['hour']}:00", f"{row['delay']:.1f}", f"{row['flights']:,}")
    Console().print(table)


def draw_chart(rows: list[Row], path: Path) -> None:
    """Draw the delays over the day to a PNG, with a line for each origin."""
    import matplotlib

    # No display is needed.
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 5))
    for origin in sorted({row["origin"] for row in rows}):
        points = sorted((row["hour"], row["delay"]) for row in rows if row["origin"] == origin)
        axes.plot([hour for hour, _ in points], [delay for _, delay in points], marker="o", label=origin)
    axes.set(xlabel="scheduled hour of departure", ylabel="mean delay, minutes", title="New York City, 2013")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
