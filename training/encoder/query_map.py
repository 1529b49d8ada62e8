"""Fit the linear map of the vectors of questions, which takes them near those of answers in any language.

    python -m training.encoder.query_map OUT --data DIR

OUT gets query_map.npy, (d, d + 1) float16: for the vector of a question and a one behind it. It adds the mean
answer, so that cosines stay near their range. XQuAD's questions are asked across languages."""

from collections.abc import Iterable

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

from precise_rag.encoders.local import E5, QUERY_MAP
from precise_rag.encoders.onnx import OnnxEncoder
from training.candidate_lists import SETS, is_kept, new_parser
from training.multilingual.lists import FOREIGN, Asked, human, xquad

QUESTIONS, IN_OTHERS, BEFORE, LONGEST = 400, 3_000, 150, 600
"""Questions of a set in English and in others; characters before the evidence, and of an answer with them."""
STEPS, BATCH, RATE, TEMPERATURE, NEAR_IDENTITY = 800, 1_536, 1e-3, 0.02, 0.02
MEAN = 1.2
"""Of the mean answer: with less, developers' questions find less, with more, those across languages."""


def pairs(collections: Iterable[Asked], n_wanted: int) -> list[tuple[str, str]]:
    """Return questions drawn from some collections, each with the text that answers it."""
    found = []
    for documents, questions in collections:
        texts = {document.id: document.text for document in documents}
        for one in questions:
            if one.evidence and not is_kept(one.group):
                first = max(0, one.evidence[0].start - BEFORE)
                found.append((one.text, texts[one.evidence[0].doc_id][first : first + LONGEST]))
    return [found[row] for row in np.random.default_rng(0).permutation(len(found))[:n_wanted]]


def fitted(questions: torch.Tensor, answers: torch.Tensor, same: torch.Tensor) -> np.ndarray:
    """Return the map. questions, answers: (n, d) vectors. same: (n,) equal for equal answers."""
    start = torch.eye(questions.shape[1], questions.shape[1] + 1)
    given, weight = torch.nn.functional.pad(questions, (0, 1), value=1.0), start.clone().requires_grad_()
    optimizer = torch.optim.Adam([weight], lr=RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, STEPS)
    for _ in range(STEPS):
        rows = torch.randperm(len(given))[:BATCH]
        near = normalize(given[rows] @ weight.T) @ answers[rows].T / TEMPERATURE
        others = (same[rows][:, None] == same[rows]).fill_diagonal_(fill_value=False)
        loss = cross_entropy(near.masked_fill(others, -torch.inf), torch.arange(len(rows)))
        optimizer.zero_grad()
        (loss + NEAR_IDENTITY * (weight - start).square().sum()).backward()
        optimizer.step()
        schedule.step()
    made = weight.detach() / (given @ weight.T).norm(dim=1).mean().item()
    made[:, -1] += MEAN * normalize(answers.mean(dim=0), dim=0)
    return made.numpy().astype(np.float16)


def main() -> None:
    options = new_parser("training.encoder.query_map", __doc__).parse_args()
    torch.manual_seed(0)
    sets = {"xquad": xquad(options.data)} | {name: human(name, options.data) for name in (*SETS, *FOREIGN)}
    asked = [one for n, its in sets.items() for one in pairs(its, QUESTIONS if n in SETS else IN_OTHERS)]
    questions, texts = zip(*asked, strict=True)
    encoder, roles = OnnxEncoder(E5), ((questions, "query"), (texts, "document"))
    vectors = [torch.from_numpy(encoder._encode(rows, role, True)) for rows, role in roles]  # not mapped yet
    vectors.append(torch.from_numpy(np.unique(texts, return_inverse=True)[1]))
    options.out.mkdir(parents=True, exist_ok=True)
    np.save(options.out / QUERY_MAP, fitted(*vectors))


if __name__ == "__main__":
    main()
