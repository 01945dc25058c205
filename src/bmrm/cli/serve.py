"""``bmrm serve-shard``: an owner's data, asked for sums by a coordinator."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import click

from bmrm.cli.application import one_interrupt
from bmrm.cli.options import thread_count
from bmrm.data import read
from bmrm.data.compress import SUFFIXES
from bmrm.owners import TLS, GuardSettings, Limits, Owner, Privacy, ShardServer

_PATH = click.Path(path_type=Path)
_SETTINGS, _LIMITS = GuardSettings(), Limits()


def epsilon_and_delta(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """Return the two numbers of ``--privacy``."""
    if text is None:
        return None
    try:
        epsilon, delta = (float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r}; expected EPSILON,DELTA, for example 1,1e-6") from None
    return epsilon, delta


@click.command("serve-shard")
@click.argument("file", type=_PATH)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Any free one by default, which is said.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Another one than this machine needs TLS.")
@click.option("--certificate", type=_PATH, help="Of this owner (PEM).")
@click.option("--key", type=_PATH, help="Of the certificate.")
@click.option("--ca", type=_PATH, help="Coordinators must have a certificate signed by this one.")
@click.option("--insecure", is_flag=True, help="Another host without TLS: whoever is on the network may ask.")
@click.option("--min-rows", type=click.IntRange(min=1), default=100, show_default=True,
              help="Fewer rows are not served: a sum over few says too much about each.")  # fmt: skip
@click.option("--masked-only", type=click.IntRange(min=2), metavar="OWNERS",
              help="Answer under masks only, in runs of at least so many owners.")  # fmt: skip
@click.option("--allow-scores", is_flag=True,
              help="Also tell labels, weights and scores of single rows, from which rows can be solved for: needed for "
              "roc_area, ordinal, fbeta, nu_*, *_at_k and break_even.")  # fmt: skip
@click.option("--identity", type=_PATH, help="Key that signs this owner's keys for masks ('bmrm identity').")
@click.option("--peers", metavar="FINGERPRINTS",
              help="Of the other owners' identities, with commas between them: answer under masks only, in runs of "
              "these owners (with --masked-only, of at least so many of them).")  # fmt: skip
@click.option("--max-memory", default="512MB", show_default=True,
              help="Memory that coordinators may take, beside the data.")  # fmt: skip
@click.option("--idle-seconds", type=click.FloatRange(min=0.0, min_open=True), default=_LIMITS.idle, show_default=True,
              help="A coordinator that is silent for so long is disconnected.")  # fmt: skip
@click.option("--message-seconds", type=click.FloatRange(min=0.0, min_open=True), default=_LIMITS.message,
              show_default=True, help="For each message as a whole, from its first byte to its last.")  # fmt: skip
@click.option("--guard-budget", type=click.IntRange(min=1), default=_SETTINGS.budget, show_default=True,
              help="New answers in all, over all runs; a training takes some hundreds.")  # fmt: skip
@click.option("--guard-losses", type=click.IntRange(min=1), default=_SETTINGS.losses, show_default=True,
              help="Different losses that are answered for until it is started again.")  # fmt: skip
@click.option("--guard-patience", type=click.IntRange(min=1), default=_SETTINGS.patience, show_default=True,
              help="New answers of a run without progress on these rows, until it stops.")  # fmt: skip
@click.option("--guard-changed", type=click.FloatRange(0.0, 1.0), default=_SETTINGS.changed, show_default=True,
              help="Share of the rows in which each new answer differs from all others.")  # fmt: skip
@click.option("--guard-resolution", type=click.FloatRange(min=0.0), default=_SETTINGS.resolution, show_default=True,
              help="Relative distance of two w below which the second one gets no new answer.")  # fmt: skip
@click.option("--guard-line", type=click.IntRange(min=2), default=_SETTINGS.per_line, show_default=True,
              help="New answers on one straight line.")  # fmt: skip
@click.option("--guard-coarse", type=click.FloatRange(min=0.0), default=_SETTINGS.coarse, show_default=True,
              help="What rounding may cost the certificate, as a share of the risk at 0; 0: exact.")  # fmt: skip
@click.option("--guard-slack", type=click.FloatRange(min=1.0), default=_SETTINGS.slack, show_default=True,
              help="How far out w may be, in multiples of the ball that lam and the risk at 0 imply.")  # fmt: skip
@click.option("--min-lam", type=click.FloatRange(min=0.0), default=_SETTINGS.min_lam, show_default=True,
              help="The least lam; 0 also allows no regularizer.")  # fmt: skip
@click.option("--privacy", callback=epsilon_and_delta, metavar="EPSILON,DELTA",
              help="Answer with noise: all answers together are (epsilon, delta) differentially private.")  # fmt: skip
@click.option("--row-norm", type=click.FloatRange(min=0.0, min_open=True),
              help="With --privacy: longer rows are scaled down to this Euclidean norm.")  # fmt: skip
@click.option("--answers", type=click.IntRange(min=1),
              help="With --privacy: so many answers share the budget.  [default: what one training needs]")  # fmt: skip
@click.option("--target-bound", type=click.FloatRange(min=0.0, min_open=True),
              help="With --privacy, for regression: targets are cut off at this size.")  # fmt: skip
@click.option("--ledger", type=_PATH,
              help="With --privacy: where it is written down what is spent.  [default: FILE.privacy]")  # fmt: skip
@click.option("--log", type=_PATH, help="Where all that leaves this machine is noted, as JSON lines.")
@click.option("--zero-based", type=click.Choice(["auto", "true", "false"]), default="auto", show_default=True,
              help="Whether feature indices of svmlight text start at 0; owners must agree.")  # fmt: skip
@click.option("--threads", type=int, callback=thread_count, help="Number of threads, -1 for all cores.  [default: -1]")
@click.option("--quiet", is_flag=True, help="Write nothing but errors.")
def serve(file: Path, **options: Any) -> int:
    """Let a coordinator ('bmrm train --owners') ask for sums over the rows of FILE, which stays here.

    Answers are values and subgradients of the mean loss, rounded, never rows, and labels or scores of single rows only
    with --allow-scores. The guard answers a w from earlier answers where a new one would show few rows. It stops where
    the requests are not those of a training run, or the budget is spent; start again to go on. Ctrl-C ends it.

    Without --peers the keys of masked runs are not authenticated: a coordinator that exchanges them sees this owner's
    answers in the clear. Each owner makes a key with 'bmrm identity' and gives its fingerprint to the others.
    """
    owner = _owner(file, options)
    given = any(options[name] is not None for name in ("certificate", "key", "ca"))
    tls = TLS(options["certificate"], options["key"], options["ca"]) if given else None
    limits = Limits(idle=options["idle_seconds"], message=options["message_seconds"])
    server = ShardServer(owner, options["host"], options["port"], tls, options["insecure"], limits)
    if not options["quiet"]:
        secured = "TLS" if tls is not None else "no TLS"
        peered = "" if owner.peers is None else f", masks with {len(owner.peers) - 1} peers"
        click.echo(f"{file}: {owner.data.n_examples} rows at {server.address} ({secured}{peered}); Ctrl-C ends it")
        if owner.privacy is not None:
            left = owner.ledger.left(owner.privacy.rho, owner.privacy.budget)
            click.echo(f"privacy: {left} answers are left of {owner.privacy.answers} ({owner.ledger.path})")
    with server, one_interrupt():
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            if not options["quiet"]:
                click.echo(f"{owner.requests} answers were given, {owner.answers} of them new", err=True)
    return 0


def _owner(file: Path, options: dict[str, Any]) -> Owner:
    first: Any = {"auto": "auto", "true": True, "false": False}[options["zero_based"]]
    text = inner_is_text(file)
    guard = GuardSettings(
        budget=options["guard_budget"], losses=options["guard_losses"], patience=options["guard_patience"],
        slack=options["guard_slack"], changed=options["guard_changed"], resolution=options["guard_resolution"],
        per_line=options["guard_line"], coarse=options["guard_coarse"], min_lam=options["min_lam"],
    )  # fmt: skip
    peers = None if options["peers"] is None else [peer for peer in options["peers"].split(",") if peer.strip()]
    return Owner(
        read(file, zero_based=first) if text else read(file), str(file), min_rows=options["min_rows"],
        masked_only=options["masked_only"], identity=options["identity"], peers=peers, guard=guard,
        max_memory=options["max_memory"], allow_scores=options["allow_scores"], privacy=_privacy(file, options),
        log=options["log"], n_threads=options["threads"],
    )  # fmt: skip


def _privacy(file: Path, options: dict[str, Any]) -> Privacy | None:
    if options["privacy"] is None:
        given = [name for name in ("row_norm", "answers", "target_bound", "ledger") if options[name] is not None]
        if given:
            raise click.UsageError(f"--{given[0].replace('_', '-')} goes with --privacy")
        return None
    if options["row_norm"] is None:
        raise click.UsageError("--privacy needs --row-norm, the norm that longer rows are scaled down to")
    epsilon, delta = options["privacy"]
    ledger = options["ledger"] or f"{file}.privacy"
    return Privacy(epsilon, delta, options["row_norm"], options["answers"], options["target_bound"], ledger)


def inner_is_text(file: Path) -> bool:
    """Return whether a file is svmlight text, by its name."""
    name = file.with_suffix("") if file.suffix.lower() in SUFFIXES else file
    return name.suffix.lower() not in (".npy", ".npz", ".store")
