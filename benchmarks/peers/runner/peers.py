"""Finds the adapters, and what is missing."""

import importlib
import importlib.metadata
import pkgutil

import solvers
from benchmark_utils.layout import make, variants

OURS = "bmrm_auto"
PARTS = {"sklearn": ("sklearn.linear_model", "sklearn.svm"), "liblinear": ("liblinear.liblinearutil",)}


def modules():
    """The adapters' classes by module name; ours apart."""
    names = [item.name for item in pkgutil.iter_modules(solvers.__path__)]
    return {name: importlib.import_module(f"solvers.{name}").Solver for name in names}


def ours(solver="auto"):
    """Our own adapter with one of our methods."""
    cls = modules()[OURS]
    adapter = make(cls)
    adapter.solver = solver
    return adapter


def peers(wanted=None):
    """The adapters whose packages are there, one for each variant."""
    found = [cls for name, cls in modules().items() if name != OURS and not cls.missing()]
    chosen = [cls for cls in found if not wanted or any(word in (cls.package, cls.name) for word in wanted)]
    return [variant for cls in chosen for variant in variants(cls)]


def preload(package):
    """Import what an adapter will need: the processes then need not, which takes each of them a second or two."""
    for part in PARTS.get(package, (package,)):
        importlib.import_module(part)


def missing():
    """Packages that are not installed."""
    return sorted({cls.missing() for cls in modules().values()} - {""})


def versions():
    """Versions of everything that was compared."""
    names = {"liblinear": "liblinear-official", "sklearn": "scikit-learn"}
    packages = ["bmrm", "numpy", "scipy", *sorted({cls.package for cls in modules().values()} - {"bmrm"})]
    found = {}
    for package in packages:
        try:
            found[names.get(package, package)] = importlib.metadata.version(names.get(package, package))
        except importlib.metadata.PackageNotFoundError:
            found[names.get(package, package)] = "not installed"
    return found
