"""What is measured: families of losses, regularizers, data sets and lam."""

from dataclasses import dataclass

from benchmark_utils.layout import make
from benchmark_utils.losses import LOSSES
from datasets import binary, generated, regression
from objective import LAMS

SETS = {which: module for module in (binary, regression, generated) for which in module.Dataset.parameters["which"]}
TARGETS = (1e-3, 1e-6)
TEXT = ["reuters", "farm_ads", "news20", "20news_bigram"]
SPARSELY = {"farm_ads": 3, "news20": 3, "mnist": 3, "20news_bigram": 6}  # fits take seconds: fewer values of lam
FIRST = {"20news_bigram": 0}  # in LAMS: at small lam, each of its cells would take three to six minutes
BINARY = ["a9a", "ijcnn1", *TEXT, "gen_dense", "gen_raw", "mnist", "covtype_scaled", "covtype"]
REAL = ["abalone", "cadata", "fried", "house8L", "mv", "pol", "cadata_raw", "gen_heavy"]
SMALL = ["gen_small", "gen_small_heavy", "gen_small_counts", "a9a", "reuters", "abalone"]
ROBUST = ["quantile_0.5", "quantile_0.9", "epsilon_insensitive", "least_absolute", "huber"]
NAMED = ("celer", "skglm", "glum", "liblinear")  # the peers that the claim about l1 is against


@dataclass(frozen=True)
class Family:
    """Cells that one claim is about: pairs of a loss and a regularizer, data sets, values of lam."""

    pairs: tuple
    data: tuple
    minutes: float  # share of the time of a whole run
    every: int = 2  # a pair takes so many-th values of lam on one data set, and those after them on the next
    stride: int = 1  # a pair is tried on every so many-th set, and those between with the next pair

    def lams(self, pair, which):
        """The values of lam for one pair on one data set: from 1e-1 to 1e-6 over the sets, not all on each."""
        pairs, sets = self.pairs.index(pair), self.data.index(which) if which in self.data else 0
        if (sets + pairs + pairs // 2) % self.stride:  # both regularizers of a loss, and all losses of a regularizer
            return []
        first = FIRST.get(which, sets) + pairs if which in self.data else 0
        every = max(self.every, SPARSELY.get(which, 0))
        return LAMS[first % every :: every]


@dataclass(frozen=True)
class Cell:
    """One problem."""

    family: str
    data: str
    loss: str
    regularizer: str
    lam: float

    @property
    def key(self):
        """As it is written in files: data/loss/regularizer/lam."""
        return f"{self.data}/{self.loss}/{self.regularizer}/{self.lam:g}"


EVERY_REAL = tuple(which for which in SETS if SETS[which] is regression)
FAMILIES = {
    "margin": Family(tuple((loss, "l2") for loss in ("hinge", "logistic", "squared_hinge")), tuple(BINARY), 36.0),
    "l1": Family((("logistic", "l1"),), tuple(BINARY), 8.0),
    "lasso": Family((("least_squares", "l1"),), (*REAL, "gen_wide", "reuters", "farm_ads"), 4.0, 3),
    "robust": Family(tuple((loss, kind) for loss in ROBUST for kind in ("l2", "l1")), tuple(REAL), 8.0, 6, 2),
    "counts": Family((("poisson", "l2"),), ("gen_counts",), 0.5),
}


def load(which):
    """The data, or None if its file is absent."""
    try:
        return make(SETS[which].Dataset, which=which).get_data()
    except FileNotFoundError:
        return None


def select(options):
    """The cells that were asked for, all of one data set together."""
    cells = []
    for name, family in FAMILIES.items():
        if options.family and name not in options.family:
            continue
        asked = options.lam or ((1e-3,) if options.quick else None)
        for which in options.data or every_set(family, options):
            for loss, regularizer in family.pairs:
                if wanted(options, loss, regularizer) and takes(which, loss):
                    lams = asked or family.lams((loss, regularizer), which)
                    cells += [Cell(name, which, loss, regularizer, lam) for lam in lams]
    order = list(SETS)
    return sorted(cells, key=lambda cell: (list(FAMILIES).index(cell.family), order.index(cell.data)))


def every_set(family, options):
    """The sets of a family: small ones only, or all the regression sets, if so asked."""
    if options.quick:
        return SMALL
    more = EVERY_REAL if options.all and family.data[0] in REAL else ()
    return tuple(dict.fromkeys((*family.data, *more)))


def wanted(options, loss, regularizer):
    """Whether the filters let this pair through."""
    return (not options.loss or loss in options.loss) and (
        not options.regularizer or regularizer == options.regularizer
    )


def takes(which, loss):
    """Whether the targets of a set suit a loss, from the name alone."""
    kinds = {"heavy": "regression", "wide": "regression", "counts": "counts"}
    module = SETS[which]
    task = {binary: "classification", regression: "regression"}.get(module)
    task = task or kinds.get(which.rpartition("_")[2], "classification")
    return LOSSES[loss].task == task or (loss == "least_squares" and which in TEXT)
