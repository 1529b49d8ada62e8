"""Every figure that needs a GPU, from one command.

    python -m benchmarks.gpu --data DIR --pack gpu.tar.gz   # here: all that it needs, under 64 MB
    tar xf gpu.tar.gz && sh gpu/run.sh                      # on a machine with a GPU: installs, measures

or, in a checkout of this project, after `pip install '.[torch,faiss-gpu]'`:

    python -m benchmarks.gpu --data DIR --out FILE

DIR needs dev_qa_docs_squad, dev_qa_docs_nq and dev_qa_questions_squad, less than 1 MB. FILE is JSON, written
again after each part; a part that fails is in it with its error, and the others go on. The default sizes are
meant for under ten minutes. --device cpu and small sizes run everything without a GPU.
"""

import io
import json
import tarfile
import time
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.segmentation.share import run_share
from benchmarks.timing import percentiles
from benchmarks.timing import timed as clocked
from precise_rag import Segmenter, load_encoder, load_reranker
from precise_rag.documents import read_documents
from precise_rag.evaluation import load_development_set
from precise_rag.evaluation.runs.environment import peak_mb
from precise_rag.index import BM25Index, DenseIndex, HybridIndex, SentenceContextIndex, WordSentenceIndex
from precise_rag.index.arrays.faiss_rows import FaissBackend, FaissRows
from precise_rag.rerank.pairs import Piece
from precise_rag.segmentation.pretrained import load_model
from precise_rag.sentences import split_sentences
from precise_rag.types import Document

SETS = ("squad", "nq")
TOP_K, DIMENSION, QUESTIONS = 10, 384, 32
LEAST_COSINE, MOST_OF_A_LOGIT, LEAST_SHARE = 0.99, 0.6, 0.95
"""Tolerances of `compare`: a GPU computes in bfloat16, and the cascade on a CPU in int8."""
MOST_PACKED = 64_000_000
RUN = """\
set -e
cd "$(dirname "$0")"
python3 -c 'import torch, sentence_transformers, faiss' 2>/dev/null ||
  python3 -m pip install --quiet '.[torch,faiss-gpu]' ||
  python3 -m pip install --quiet '.[torch]'
PYTHONPATH=core:. python3 -m benchmarks.gpu --data data --out "${1:-gpu.json}"
"""
"""What runs the packed command; without faiss its parts say so in the result."""
INDEXES = (DenseIndex, SentenceContextIndex, WordSentenceIndex, HybridIndex, BM25Index)


def main() -> None:
    parser = record.new_parser(__spec__.name, __doc__)
    doing = parser.add_mutually_exclusive_group(required=True)
    doing.add_argument("--out", type=Path, metavar="FILE", help="result, JSON")
    doing.add_argument("--pack", type=Path, metavar="FILE", help="write code, models and data to a .tar.gz")
    parser.add_argument("--device", default="cuda", help="of torch (%(default)s)")
    parser.add_argument(
        "--megabytes", type=float, default=4.0, help="of text to cut and encode (%(default)s)"
    )
    parser.add_argument("--vectors", default="1000000,10000000", help="sizes to search (%(default)s)")
    parser.add_argument("--parts", help="only these, with commas between (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    if args.pack:
        print(f"{args.pack}: {pack(Path(args.data), args.pack) / 1e6:.1f} MB")
        return
    run(args, record.made(__spec__.name, args, device=device_name(args.device)))


def run(args: Namespace, made: dict[str, Any]) -> dict[str, Any]:
    """Run the parts and write FILE after each. Returns what is in it."""
    parts = parts_of(args)
    names = args.parts.split(",") if args.parts else list(parts)
    result: dict[str, Any] = {"made": made, "parts": {}}
    for name in names:
        started = time.perf_counter()
        reset_peak(args.device)
        try:
            found = parts[name]()
        except Exception as error:  # the other parts are worth their time
            found = {"failed": f"{type(error).__name__}: {error}"[:500]}
        found |= {"seconds": round(time.perf_counter() - started, 2), **peaks(args.device)}
        result["parts"][name] = found
        print(f"{name}: {json.dumps(found)}", flush=True)
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def parts_of(args: Namespace) -> dict[str, Callable[[], dict[str, Any]]]:
    """The parts by name."""
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        "cut small": partial(cut_small, args),
        "cut sage-minilm": lambda: run_share(documents(args), args.megabytes, args.device),
        "encode": partial(encode, args),
        "encode on several devices": partial(encode_on_several, args),
    }
    for kind in INDEXES:
        parts[f"build {kind.scheme_type.kind}"] = partial(build, args, kind)
    for size in map(int, args.vectors.split(",")):
        parts[f"search torch {size:,}"] = partial(search_torch, args, size)
        parts[f"search faiss {size:,}"] = partial(search_faiss, args, size)
    smallest = min(map(int, args.vectors.split(",")))
    parts["faiss with parameters and many rows"] = partial(faiss_rows, args, min(smallest, 200_000))
    parts["cascade"] = partial(cascade, args)
    parts["equal to the CPU"] = partial(compare, args)
    return parts


def documents(args: Namespace) -> list[Document]:
    """Documents of the sets, repeated up to --megabytes."""
    pool = list(read_documents(*(Path(args.data) / f"dev_qa_docs_{name}.jsonl.gz" for name in SETS)))
    found, size = [], 0
    for number, document in enumerate(cycle(pool)):
        if size >= args.megabytes * 1e6:
            return found
        text = document.text[: int(args.megabytes * 1e6)]
        found.append(Document(f"{number}", text))
        size += len(text.encode())
    raise AssertionError


def sentences(args: Namespace) -> list[str]:
    return [d.text[span.start : span.end] for d in documents(args) for span in split_sentences(d.text)]


def questions(args: Namespace) -> list[str]:
    asked = load_development_set("squad", args.data).sample(QUESTIONS, args.seed).questions
    return [question.text for question in asked]


def cut_small(args: Namespace) -> dict[str, Any]:
    """Cutting by `small`, with its network on the device."""
    texts, segmenter = documents(args), Segmenter.from_pretrained("small", device=args.device)
    segmenter.segment(texts[0])
    size = sum(len(document.text.encode()) for document in texts)
    seconds = timed(args, lambda: sum(map(len, segmenter.segment_many(texts))))
    return {"MB": round(size / 1e6, 2), "MB/s": round(size / 1e6 / seconds, 3)}


def encode(args: Namespace) -> dict[str, Any]:
    encoder, texts = load_encoder(device=args.device), sentences(args)
    encoder.encode(texts[:64])
    n_tokens = int(encoder.count_tokens(texts).sum())
    seconds = timed(args, lambda: encoder.encode(texts))
    return {"sentences": len(texts), "tokens": n_tokens, "tokens/s": round(n_tokens / seconds)}


def encode_on_several(args: Namespace) -> dict[str, Any]:
    """The same texts on all GPUs of the machine; without a second one, on the device twice."""
    devices = [args.device] * 2
    if args.device.startswith("cuda"):
        import torch

        devices = [f"cuda:{place}" for place in range(torch.cuda.device_count())] or devices
    encoder, texts = load_encoder(device=devices), sentences(args)
    encoder.encode(texts[:64])
    seconds = timed(args, lambda: encoder.encode(texts))
    tokens = int(encoder.count_tokens(texts).sum())
    return {"devices": devices, "tokens/s": round(tokens / seconds)}


def faiss_rows(args: Namespace, size: int) -> dict[str, Any]:
    """Our IVF index with search="nprobe=16": recall, latency, and more rows than a GPU finds."""
    random = np.random.default_rng(args.seed)
    centres = random.standard_normal((max(size // 500, 1), DIMENSION), dtype=np.float32)
    vectors = centres[random.integers(len(centres), size=size)]
    vectors = vectors + 0.5 * random.standard_normal((size, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    lists = max(1, min(1024, size // 40))
    backend = FaissBackend(f"IVF{lists},Flat", "nprobe=16", args.device.startswith("cuda"))
    built, _, rows = clocked(lambda: FaissRows.of(vectors, backend))
    asked = vectors[random.integers(size, size=50)]
    found = [set(rows.best(query, TOP_K)[0].tolist()) for query in asked]
    exact = [set(np.argsort(-(vectors @ query))[:TOP_K].tolist()) for query in asked]
    recall = np.mean([len(a & b) / len(b) for a, b in zip(found, exact, strict=True)])
    many = len(rows.best(asked[0], 5_000)[0])
    seconds = [timed(args, partial(rows.best, query, TOP_K)) for query in asked]
    facts = {"lists": lists, "build s": round(built, 2), "recall": round(float(recall), 4)}
    return {**facts, "rows of 5,000": many, **percentiles(seconds, digits=3)}


def build(args: Namespace, kind: Any) -> dict[str, Any]:
    encoder = load_encoder(device=args.device)
    texts = documents(args)
    given = (texts,) if kind is BM25Index else (texts, encoder)
    seconds = timed(args, lambda: kind.build(*given))
    return {"documents": len(texts), "build s": round(seconds, 3)}


def search_torch(args: Namespace, size: int) -> dict[str, Any]:
    """Exact search over float16 vectors that were made on the device."""
    import torch

    from precise_rag.index.arrays.products import TorchProducts

    torch.manual_seed(args.seed)
    kept = torch.float16 if torch.device(args.device).type == "cuda" else torch.float32
    vectors = torch.empty((size, DIMENSION), dtype=kept, device=args.device)
    for part in vectors.split(1_000_000):
        part.copy_(torch.nn.functional.normalize(torch.randn(part.shape, device=args.device), dim=1))
    asked = torch.nn.functional.normalize(torch.randn(50, DIMENSION), dim=1).numpy()
    products = TorchProducts(vectors, None)
    products.best(asked[0], TOP_K)
    return percentiles([timed(args, partial(products.best, query, TOP_K)) for query in asked], digits=3)


def search_faiss(args: Namespace, size: int) -> dict[str, Any]:
    """Exact search by faiss, on the GPU if the device is one."""
    import faiss

    random = np.random.default_rng(args.seed)
    index = faiss.IndexFlatIP(DIMENSION)
    if args.device.startswith("cuda"):
        options = faiss.GpuIndexFlatConfig()
        options.useFloat16 = True
        index = faiss.GpuIndexFlatIP(faiss.StandardGpuResources(), DIMENSION, options)
    for first in range(0, size, 1_000_000):
        index.add(random.standard_normal((min(1_000_000, size - first), DIMENSION), dtype=np.float32))
    asked = random.standard_normal((50, DIMENSION), dtype=np.float32)
    index.search(asked[:1], TOP_K)
    return percentiles([timed(args, partial(index.search, query[None], TOP_K)) for query in asked], digits=3)


def cascade(args: Namespace) -> dict[str, Any]:
    """Questions a second with the same 20 sentences to read: one by one, and 32 at a time."""
    reranker: Any = load_reranker("cascade", args.device)
    asked, pieces = questions(args), list(map(Piece, sentences(args)[:20]))
    reranker.logits(asked[0], pieces)
    alone = timed(args, lambda: [reranker.logits(question, pieces) for question in asked])
    with ThreadPoolExecutor(QUESTIONS) as pool:
        together = timed(
            args, lambda: list(pool.map(lambda question: reranker.logits(question, pieces), asked))
        )
    return {
        "questions/s, one at a time": round(len(asked) / alone, 1),
        f"questions/s, {QUESTIONS} at a time": round(len(asked) / together, 1),
    }


def compare(args: Namespace) -> dict[str, Any]:
    """Differences from the CPU: vectors, the cascade's logits, and chunks."""
    texts, asked = sentences(args)[:256], questions(args)[0]
    here, there = (load_encoder(device=device).encode(texts) for device in ("cpu", args.device))
    cascades: list[Any] = [load_reranker("cascade", device) for device in ("cpu", args.device)]
    first, second = (cascade.logits(asked, list(map(Piece, texts[:20]))) for cascade in cascades)
    text = documents(args)[0].text
    cuts = [
        {chunk.end for chunk in Segmenter.from_pretrained("sage-minilm", device=device).segment(text)}
        for device in ("cpu", args.device)
    ]
    found = {
        "least cosine": round(float(np.einsum("nd,nd->n", here, there).min()), 5),
        "largest difference of a logit": round(float(np.abs(first - second).max()), 4),
        "share of equal cuts": round(len(cuts[0] & cuts[1]) / max(len(cuts[0] | cuts[1]), 1), 4),
        "largest difference of a logit of small": round(small_difference(args), 5),
    }
    cosine, logit, share, small = found.values()
    is_equal = cosine >= LEAST_COSINE and logit <= MOST_OF_A_LOGIT and share >= LEAST_SHARE and small < 0.01
    return {**found, "within tolerance": is_equal}


def small_difference(args: Namespace) -> float:
    """How far the logits of `small` on the device are from those of numpy."""
    texts, device = sentences(args)[:600], "cpu:0" if args.device == "cpu" else args.device
    here, there = (load_model("small", device=one)[0].predict(texts).logits for one in ("cpu", device))
    return float(np.abs(here - there).max())


def pack(data: Path, file: Path) -> int:
    """Write all that this command needs to an archive, and return its size in bytes."""
    root = Path(__file__).parents[1]
    kept = [root / name for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE")]
    for folder in ("core", "benchmarks", "training"):
        kept += [path for path in sorted((root / folder).rglob("*")) if path.is_file()]
    names = [*(f"dev_qa_docs_{name}" for name in SETS), "dev_qa_questions_squad"]
    with tarfile.open(file, "w:gz") as archive:
        for path in kept:
            if not {"results", "__pycache__"} & {*path.parts}:
                archive.add(path, f"gpu/{path.relative_to(root)}")
        for name in names:
            archive.add(data / f"{name}.jsonl.gz", f"gpu/data/{name}.jsonl.gz")
        script = RUN.encode()
        entry = tarfile.TarInfo("gpu/run.sh")
        entry.size = len(script)
        archive.addfile(entry, io.BytesIO(script))
    size = file.stat().st_size
    if size > MOST_PACKED:
        raise RuntimeError(f"{file} has {size / 1e6:.1f} MB, more than {MOST_PACKED / 1e6:.0f}")
    return size


def timed(args: Namespace, work: Callable[[], object]) -> float:
    """Wall time of work whose results are back on the host."""

    def synchronized() -> None:
        work()
        if cuda := cuda_of(args.device):
            cuda.synchronize()

    return clocked(synchronized).seconds


def device_name(device: str) -> str:
    if not device.startswith("cuda"):
        return device
    cuda = cuda_of(device)
    return cuda.get_device_name(device) if cuda else "no CUDA device"


def cuda_of(device: str) -> Any:
    """torch.cuda, if the device is one of its and there is one."""
    if not device.startswith("cuda"):
        return None
    import torch

    return torch.cuda if torch.cuda.is_available() else None


def reset_peak(device: str) -> None:
    if cuda := cuda_of(device):
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()


def peaks(device: str) -> dict[str, Any]:
    """Peak memory: of the process so far, and of the GPU in this part."""
    cuda = cuda_of(device)
    return {"peak MB": round(peak_mb())} | (
        {"peak GPU MB": round(cuda.max_memory_allocated() / 2**20)} if cuda else {}
    )


if __name__ == "__main__":
    main()
