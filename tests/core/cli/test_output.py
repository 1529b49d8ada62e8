from precise_rag import Candidate, GradientSelector
from precise_rag.cli.output import print_selection


def test_the_cut_is_shown_once_with_its_reason(capsys):
    selection = GradientSelector(min_k=1).select(
        Candidate("d", 10 * i, 10 * i + 5, f"text {i}", score, "probability")
        for i, score in enumerate([0.9, 0.8, 0.1, 0.05, 0.04, 0.03])
    )
    print_selection(selection, dropped=2)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "cut after" in line] == [
        "  ── cut after rank 2: sharp drop: 0.1 is not above 0.3 × 0.8"
    ]
    assert lines[-1].strip() == "… and 2 more dropped, 0 repetitions left out"
