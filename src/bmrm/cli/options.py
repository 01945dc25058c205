"""Settings: flags and a configuration file become one dataclass."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from bmrm._errors import DataError
from bmrm._registry import Registry, unknown_name
from bmrm.checkpoint import Checkpoint
from bmrm.cli.outputs import STANDARD, check_model_path, check_writable
from bmrm.cli.standard_input import is_standard_input, refuse_row_formats
from bmrm.cli.targets import Extras
from bmrm.data.atomic import remove_leftovers
from bmrm.data.compress import SUFFIXES
from bmrm.data.text import inner_suffix
from bmrm.data.threads import checked_threads
from bmrm.losses import LOSSES, Loss
from bmrm.losses.ranking import for_ranking
from bmrm.losses.structured import STRUCTURED_LOSSES
from bmrm.regularizers import REGULARIZERS, Regularizer
from bmrm.solvers import SOLVERS, Solver

T = TypeVar("T")

DEFAULT_LAM = 1e-4


@dataclass(frozen=True)
class Parts:
    """What the names in the settings stand for."""

    loss: Loss
    regularizer: Regularizer
    solver: Solver


@dataclass(frozen=True)
class TrainOptions:
    """All settings of ``bmrm train``, under the names of its flags."""

    file: Path
    loss: str = "hinge"
    loss_param: tuple[str, ...] = ()
    regularizer: str = "l2"
    regularizer_param: tuple[str, ...] = ()
    lam: float | None = None
    C: float | None = None
    solver: str = "auto"
    solver_param: tuple[str, ...] = ()
    tol: float = 1e-3
    max_iter: int | None = None
    max_seconds: float | None = None
    threads: int | None = None
    intercept: bool | None = None
    zero_based: str = "auto"
    weights: Path | None = None
    hierarchy: Path | None = None
    costs: Path | None = None
    multiclass: str = "auto"
    format: str | None = None
    template: Path | None = None
    emissions: str = "seen"
    transitions: str | None = None
    hashing: int | None = None
    more: tuple[Path, ...] = ()
    memory: str | None = None
    skip_bad: bool = False
    target: str | None = None
    group: str | None = None
    weight: str | None = None
    engine: str | None = None
    scheduler: str | None = None
    workers: int | None = None
    shards: int | None = None
    owners: str | None = None
    masked: bool = False
    mask_bits: int = 40
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    survive: bool = False
    seed: int = 0
    model: Path | None = None
    history: Path | None = None
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    resume: bool = False
    quiet: bool = False
    json: bool = False

    @classmethod
    def from_context(cls, ctx: click.Context, values: dict[str, Any]) -> TrainOptions:
        """Make the settings from what click has parsed; of lam and C a flag beats the configuration file."""
        if values["lam"] is not None and values["C"] is not None:
            flags = [n for n in ("lam", "C") if ctx.get_parameter_source(n) is ParameterSource.COMMANDLINE]
            if len(flags) != 1:
                raise click.UsageError("give either lam or C, not both (C = 1 / (lam times the number of rows))")
            values["C" if flags == ["lam"] else "lam"] = None
        if bool(values["file"]) == bool(values["owners"]):
            raise click.UsageError("give either FILE or --owners host:port,host:port")
        values["file"], *more = values["file"] or [Path("owners")]
        return cls(more=tuple(more), **values)

    @property
    def model_path(self) -> Path:
        """Where the model goes: as given, or the name of the data file in the current directory."""
        if self.model is not None:
            return self.model
        return Path(f"{self.stem}.bmrm")

    @property
    def stem(self) -> str:
        """The name of the data file, without its suffixes."""
        if self.file == STANDARD or is_standard_input(self.file):
            return "stdin"
        name = Path(self.file.name)
        return name.with_suffix("").stem if name.suffix.lower() in SUFFIXES else name.stem

    @property
    def model_place(self) -> str:
        """Where the model goes, in words."""
        return "standard output" if self.model == STANDARD else str(self.model_path)

    def check_outputs(self, inputs: Iterable[Path | None]) -> None:
        """Raise if a result cannot be written where it should go, before any work is done."""
        inputs = list(inputs)
        check_model_path(self.model_path, inputs)
        if self.history is not None:
            check_writable(self.history, [*inputs, self.model_path])
        self._check_checkpoint(inputs)

    def checkpoint_of(self, part: int = 0) -> Checkpoint | None:
        """Return where one of the run's problems is saved; they all share a file."""
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, self.checkpoint_seconds, self.resume, part)

    def _check_checkpoint(self, inputs: Iterable[Path | None]) -> None:
        """Raise if the file cannot be used, before any work is done; say so if there is nothing to go on from."""
        if self.checkpoint is None:
            if self.resume:
                raise click.UsageError("--resume needs --checkpoint FILE, the file to go on from")
            return
        check_writable(self.checkpoint, [*inputs, self.model_path, self.history])
        if self.checkpoint.exists() and not self.resume:
            raise DataError(f"{self.checkpoint}: is there already; go on from it with --resume, or remove it")
        if self.resume and not self.checkpoint.exists() and not self.quiet:
            click.echo(f"{self.checkpoint}: not there yet, so the run starts from the beginning", err=True)
        for path in (self.checkpoint, self.model_path):
            if path != STANDARD:
                remove_leftovers(path)

    @property
    def extras(self) -> Extras:
        """What the settings say about labels."""
        return Extras(self.hierarchy, self.costs, self.multiclass)

    def with_files(self, files: Sequence[Path]) -> TrainOptions:
        """Return the same settings for the files that are read: standard input has become one of them."""
        if STANDARD not in (self.file, *self.more):
            return self
        if self.engine not in (None, "local"):
            raise click.UsageError(f"-: standard input is not for --engine {self.engine}, whose workers read files")
        return replace(self, file=files[0], more=tuple(files[1:]), model=self.model_path)

    def refuse_sequences(self) -> None:
        """Raise if something is asked for, or the file has a name, that only losses of sequences know."""
        refuse_row_formats(self.format, [self.file, *self.more])
        names = ("template", "transitions", "hashing")
        given = [f"--{name}" for name in names if getattr(self, name) is not None]
        given += ["--emissions"] if self.emissions != "seen" else []
        what = ", ".join(given) or (str(self.file) if inner_suffix(self.file) in (".conll", ".crfsuite") else "")
        if what:
            losses = " or ".join(sorted(STRUCTURED_LOSSES))
            raise click.UsageError(f"{what}: for sequences, which loss '{self.loss}' is not for; expected {losses}")

    def refuse_rows(self) -> None:
        """Raise if something is asked for that sequences do not have: several files, or rows on disk."""
        names = ("more", "memory", "skip_bad", "target", "group", "weight")
        given = ["more than one file" if name == "more" else f"--{name}" for name in names if getattr(self, name)]
        if given:
            raise click.UsageError(f"{given[0].replace('_', '-')}: not for sequences, which '{self.loss}' is for")

    def make_parts(self) -> Parts:
        """Return the loss, the regularizer and the solver that are named."""
        if self.loss not in LOSSES:
            raise unknown_name("loss", self.loss, [*LOSSES, *LOSSES.aliases, *STRUCTURED_LOSSES])
        given = [parameter(text)[0] for text in self.loss_param]
        return Parts(
            for_ranking(made(LOSSES, self.loss, self.loss_param), given),
            made(REGULARIZERS, self.regularizer, self.regularizer_param),
            made(SOLVERS, self.solver, self.solver_param),
        )

    def as_config(self) -> dict[str, Any]:
        """Return the settings as plain JSON values, for the model file."""
        plain = {name: _shown(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        return plain | {"more": [_shown(file) for file in self.more]}


def _shown(path: Path) -> str:
    """Return a path as text that a model file can hold; names that are not UTF-8 have other signs."""
    return "-" if is_standard_input(path) else os.fsencode(path).decode(errors="replace")


def made(registry: Registry[T], name: str, parameters: Iterable[str]) -> T:
    """Return what is registered under a name, with parameters NAME=VALUE."""
    given = dict(parameter(text) for text in parameters)
    try:
        return registry.make(name, given)
    except TypeError as error:
        raise click.UsageError(f"{registry.kind} '{name}' does not take {given} ({error})") from error


def parameter(text: str) -> tuple[str, Any]:
    """Split NAME=VALUE; the value is a number or another JSON value, else text."""
    name, equals, value = text.partition("=")
    if not (name.strip() and equals):
        raise click.UsageError(f"parameter {text!r}; expected NAME=VALUE, for example tau=0.9")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()


def read_config(ctx: click.Context, option: click.Parameter, path: Path | None) -> Path | None:
    """Make the values of a TOML file the defaults of the command's options."""
    if path is None:
        return None
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: not a TOML file ({error})") from error
    known = {each.name: each for each in ctx.command.params if each.name and each is not option}
    values = {}
    for key, value in settings.items():
        name = key.replace("-", "_")
        if name not in known:
            raise DataError(f"{path}: {unknown_name('setting', key, known)}")
        try:
            values[name] = _setting(known[name], value)
        except TypeError as error:
            raise DataError(f"{path}: {key} = {value!r}; expected {error}") from None
    ctx.default_map = values
    return path


def _setting(option: click.Parameter, value: Any) -> Any:
    """Return the value as the option takes it, or raise TypeError with what is expected."""
    if option.multiple:
        if not isinstance(value, dict):
            raise TypeError("a table of parameters, for example { tau = 0.9 }")
        return [f"{name}={json.dumps(parameter)}" for name, parameter in value.items()]
    if option.nargs == -1 and isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return value
    expected, text = _expected(option)
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        raise TypeError(text)
    return [value] if option.nargs == -1 else value


def _expected(option: click.Parameter) -> tuple[tuple[type, ...], str]:
    if getattr(option, "is_flag", False):
        return (bool,), "true or false"
    if isinstance(option.type, click.types.IntParamType):
        return (int,), "a whole number"
    if isinstance(option.type, click.types.FloatParamType):
        return (int, float), "a number"
    return (str,), "text"


def thread_count(ctx: click.Context, option: click.Parameter, value: int | None) -> int | None:
    """Return the number of threads as the rest of the library takes it, or raise an error that names the flag."""
    try:
        checked_threads(value)
    except ValueError:
        raise click.BadParameter(f"{value} is no number of threads; expected at least 1, or -1 for all cores") from None
    return value
