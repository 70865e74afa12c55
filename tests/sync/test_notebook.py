"""The notebook in examples/, in a Jupyter kernel, and the page that shows it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "examples" / "notebook" / "quotes.ipynb"
PAGE = ROOT / "docs" / "how-to" / "notebooks.md"
RUN_SECONDS = 60

RUN = """
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(notebook, timeout=30, kernel_name="python3").execute()
for cell in notebook.cells:
    for output in cell.get("outputs", ()):
        print(output.output_type, output.get("data", {}).get("text/plain") or output.get("text"))
"""


def test_notebook_runs_in_a_kernel() -> None:
    result = subprocess.run(
        [sys.executable, "-c", RUN, str(NOTEBOOK)], capture_output=True, text=True, timeout=RUN_SECONDS
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "execute_result (500, 3)",
        "execute_result 102.997",
        "execute_result [(106.0, 142)]",
    ]


def test_notebook_has_no_outputs_of_its_author() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    assert [cell["source"] for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []


def test_page_shows_the_cells_of_the_notebook() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    code = ["".join(cell["source"]) + "\n" for cell in cells if cell["cell_type"] == "code"]
    shown = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(shown) > 4 and [block for block in shown if block not in code] == []
