"""The command line: files and flags come in, files and sentences go out. Nothing is computed here.

Exit codes: 0 done (for ``train``: the gap is closed, which is proved), 3 the run ended before the tolerance was
reached (the model is saved all the same), 2 wrong usage or input, 130 interrupted before there was a result.
"""

from __future__ import annotations

import click

from bmrm import __version__
from bmrm.cli.application import Application
from bmrm.cli.convert import convert as convert_command
from bmrm.cli.demo import demo as demo_command
from bmrm.cli.evaluate import evaluate as evaluate_command
from bmrm.cli.identity import identity as identity_command
from bmrm.cli.listing import listing as listing_command
from bmrm.cli.predict import predict as predict_command
from bmrm.cli.serve import serve as serve_command
from bmrm.cli.train import train as train_command

__all__ = ["main"]


@click.group(cls=Application, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="bmrm")
def main() -> None:
    """Regularized risk minimization with a certificate of how far from optimal the answer is."""


_COMMANDS = (
    train_command,
    predict_command,
    evaluate_command,
    convert_command,
    serve_command,
    identity_command,
    listing_command,
    demo_command,
)
for command in _COMMANDS:
    main.add_command(command)
