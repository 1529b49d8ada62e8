import argparse

import pytest

from precise_rag.cli import train

pytest.importorskip("torch")


def test_the_help_names_the_defaults_of_training() -> None:
    from precise_rag.segmentation.training.fitting import TrainingSettings

    parser = argparse.ArgumentParser()
    train.add_parser(parser.add_subparsers())
    helps = {action.dest: action.help or "" for action in train_options(parser)}
    settings = TrainingSettings()
    for name in ("epochs", "batch_size", "learning_rate", "loss", "seed"):
        default = getattr(settings, name)
        shown = default if isinstance(default, str) else f"{default:g}"
        assert f"(default: {shown}" in helps[name]


def train_options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    subparsers = next(a for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    return list(subparsers.choices["train"]._actions)
