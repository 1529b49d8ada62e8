import re

from benchmarks.measurements import PAGE, out_of_date
from benchmarks.results import newest, tables


def test_the_page_and_the_readme_hold_what_the_newest_results_say():
    assert out_of_date() == []


def test_every_result_that_the_page_names_says_how_it_was_made():
    text = PAGE.read_text(encoding="utf-8")
    for topic, name in (("peers", "peers"), ("ablation", "ablation"), ("reranking", "measure")):
        result = newest(topic, name)
        assert result.made["command"] in text
        assert result.date in text


def test_tables_are_read_with_their_empty_cells():
    text = "before\n\n| a | b |\n| --- | ---: |\n| 1 |  |\n\nbetween\n\n| c |\n|---|\n| 2 |\n"
    assert tables(text) == [(["a", "b"], [["1", ""]]), (["c"], [["2"]])]


def test_the_list_of_benchmarks_links_the_newest_results():
    folder = PAGE.parents[1] / "benchmarks"
    text = (folder / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((\w+)/results/([\w-]+)-(\d{4}-\d\d-\d\d)\.(md|json)\)", text)
    assert len(links) > 20
    for topic, name, date, suffix in links:
        assert date == newest(topic, name).date
        assert (folder / topic / "results" / f"{name}-{date}.{suffix}").exists()
