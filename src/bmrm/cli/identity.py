"""``bmrm identity``: the long-lived key of an owner, and the fingerprint that it gives to the others."""

from __future__ import annotations

from pathlib import Path

import click

from bmrm.owners import Identity


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
def identity(file: Path) -> int:
    """Print the fingerprint of the key in FILE, which is made if it does not exist.

    The file is for 'bmrm serve-shard --identity' and stays with its owner. The fingerprint is for the --peers of the
    other owners: tell it to them by telephone or mail, not by way of the coordinator.
    """
    click.echo((Identity(file) if file.exists() else Identity.create(file)).fingerprint)
    return 0
