"""The page of `recipe report` about 200 variants: its size, the time to write it, and the time to open it."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import recipe_program as program
from timing import machine

sys.path[:0] = [str(program.ROOT), str(program.ROOT / "tests" / "support")]
import browsers  # noqa: E402
import report_pages  # noqa: E402

from engine.report.page import page  # noqa: E402

_OPENED = """() => { const [load] = performance.getEntriesByType("navigation");
  return [load.domContentLoadedEventEnd, performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0] }"""


def main() -> None:
    """Write the page and open it in Chromium; print medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variants", type=int, default=200)
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args()
    parts = report_pages.prepared(options.variants)
    began = time.perf_counter()
    text = page.html(*parts, "recipe")
    written = time.perf_counter() - began
    opened, sorted_ms = [], []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(text, "utf-8")
        for browser in browsers.started():
            for _ in range(options.runs):
                with browsers.Visit(browser, path, width=1280) as visit:
                    visit.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
                    opened.append(visit.page.evaluate(_OPENED))
                    sorted_ms.append(visit.page.evaluate(
                        "() => { const at = performance.now(); document.querySelector('th button').click();"
                        " document.body.offsetHeight; return performance.now() - at }"
                    ))  # fmt: skip
    ready, painted = (statistics.median(each[place] for each in opened) for place in (0, 1))
    print(f"| variants | size | written in | first paint | ready | sorting by a column |\n{'|---' * 6}|")
    print(
        f"| {options.variants} | {len(text.encode()) / 1e6:.2f} MB | {written:.2f} s | {painted:.0f} ms "
        f"| {ready:.0f} ms | {statistics.median(sorted_ms):.0f} ms |"
    )
    print(f"\n{machine()}; medians of {options.runs} runs, Chromium without a window")


if __name__ == "__main__":
    main()
