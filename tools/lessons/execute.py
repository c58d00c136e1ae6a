"""Execute the lessons and write their outputs: `make refresh`, or `make refresh LESSONS="01 02"`."""

from __future__ import annotations

import base64
import os
import sys
import time

from nbclient import NotebookClient

from tools.lessons import notebooks

README_PICTURE = (
    "02",
    "layouts",
    notebooks.ROOT / ".github" / "layouts.png",
)  # the lesson and the cell that draw the README's picture, and the picture's file


def main(numbers: list[str]) -> None:
    try:
        paths = [notebooks.lesson(number) for number in numbers] or notebooks.lessons()
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
    os.environ["COURSE_PROGRESS"] = "off"
    for path in paths:
        start = time.perf_counter()
        notebook = notebooks.read(path)
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
        ).execute()
        notebooks.write(notebook, path)
        lesson, name, picture = README_PICTURE
        for cell in notebook.cells if path.name.startswith(lesson) else []:
            if cell.id == name:
                picture.write_bytes(base64.b64decode(cell.outputs[0].data["image/png"]))
        print(f"{path.name}: {time.perf_counter() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
