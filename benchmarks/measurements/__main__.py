"""Compose docs/measurements.md from the newest results, so that no figure is typed by hand.

    python -m benchmarks.measurements             # write docs/measurements.md
    python -m benchmarks.measurements --readme    # print the table for README.md
    python -m benchmarks.measurements --check     # exit 1 if the page or README's table is out of date

README.md takes its table between the lines <!-- measurements --> and <!-- /measurements -->.
"""

import argparse
import sys

from benchmarks.measurements.page import PAGE, ROOT, compose, out_of_date, readme_table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.measurements", description=__doc__.splitlines()[0]
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="exit 1 if the page or README.md is out of date")
    what.add_argument("--readme", action="store_true", help="print the table for README.md")
    args = parser.parse_args()
    if args.readme:
        print(readme_table())
    elif args.check:
        found = out_of_date()
        print("\n".join(found) or "up to date")
        return int(bool(found))
    else:
        PAGE.write_text(compose(), encoding="utf-8")
        print(PAGE.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
