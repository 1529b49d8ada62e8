"""The human question sets with a training split, in English."""

KINDS = {
    "encyclopedia": ("selqa", "squad-sentences", "squad2-part", "squadshifts"),
    "web": ("afriqa", "nq"),
    "two-hop": ("multihop",),
    "stories": ("fairytaleqa",),
    "meetings": ("qmsum",),
    "dialogues": ("friendsqa",),
    "contracts": ("cuad",),
    "medicine": ("medquad", "pubmedqa"),
    "science": ("pira",),
    "finance": ("tatqa",),
    "help": ("faq", "headings"),
}
"""Names of the sets, by kind of text."""
