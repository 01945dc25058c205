"""Generated examples for structured models: folded RNA, segmented sequences, matched graphs; all with planted weights.

Truth is what the planted weights say, disturbed for each example: no weights explain all of it, as in life.
"""

import numpy as np

import bmrm

_STRENGTH = np.array([0.5, 1.3, 1.3, 0.1, 0.5, 0.1])  # of AU, CG, GC, GU, UA, UG


def folding_weights(model, rng):
    """Weights in the manner of measured energies, with the sign of scores: stacks help, loops cost, long ones more."""
    w, blocks = np.zeros(model.dim), model.blocks()

    def plant(name, values):
        w[blocks[name]] = values

    loop = np.arange(1.0, model.max_loop + 1)
    hairpin = np.arange(3.0, model.max_hairpin + 1)
    plant("pairs", 0.3 * _STRENGTH)
    plant("stacks", (0.7 * (_STRENGTH[:, None] + _STRENGTH) + 0.1 * rng.normal(size=(6, 6))).ravel())
    plant("hairpin lengths", -2.5 - 0.5 * np.log(1.0 + np.abs(hairpin - 4.0)))
    plant("hairpin mismatches", 0.3 * rng.normal(size=96))
    plant("bulge lengths", -1.5 - 0.15 * loop)
    plant("interior lengths", -1.0 - 0.03 * loop[1:])
    plant("asymmetry", -0.05 * np.arange(model.max_loop - 1))
    plant("interior mismatches", 0.3 * rng.normal(size=96))
    plant("multiloop", [-2.0, -0.2, -0.05])
    plant("multiloop ends", -0.4 * (_STRENGTH < 1.0))
    plant("exterior ends", -0.4 * (_STRENGTH < 1.0))
    return w


def rna(rng, n=120, shortest=50, longest=150, noise=0.75):
    """A model, n sequences with stems around hairpins, interior loops and multiloops, and how weights fold them."""
    model = bmrm.FoldingModel()
    w = folding_weights(model, rng)
    X = [_sequence(rng, int(length)) for length in rng.integers(shortest, longest + 1, size=n)]
    spread = noise * np.abs(w).mean()
    return model, X, [model.argmax(x, w + spread * rng.normal(size=model.dim)) for x in X]


def _random(rng, n, adenine=0.4):
    """Return random bases; where most are A, few of them pair."""
    others = (1.0 - adenine) / 3.0
    return "".join(rng.choice(list("ACGU"), size=n, p=[adenine, others, others, others]))


def _sequence(rng, length):
    """Helices one after the other, cut to the length."""
    x = _random(rng, int(rng.integers(0, 6)))
    while len(x) < length:
        x += _helix(rng, length - len(x)) + _random(rng, int(rng.integers(1, 6)))
    return x[:length]


def _helix(rng, room):
    """A stem around a hairpin, around an interior loop of up to 30 bases and a helix, or around two helices."""
    stem = rng.choice(
        ["GC", "CG", "AU", "UA", "GU", "UG"], size=int(rng.integers(4, 8)), p=[0.3, 0.3, 0.15, 0.15, 0.05, 0.05]
    )
    left, right = "".join(pair[0] for pair in stem), "".join(pair[1] for pair in reversed(stem))
    kind = rng.choice(["hairpin", "interior", "multiloop"], p=[0.3, 0.5, 0.2]) if room > 50 else "hairpin"
    if kind == "hairpin":
        inside = _random(rng, int(rng.integers(3, 9)))
    elif kind == "interior":
        total = int(rng.integers(1, 31))
        before = int(rng.binomial(total, 0.5))
        inside = _helix(rng, room - 2 * len(stem) - total)
        inside = _random(rng, before, 0.85) + inside + _random(rng, total - before, 0.85)
    else:
        part = (room - 2 * len(stem)) // 2
        inside = "A".join(["", _helix(rng, part), _helix(rng, part), ""])
    return left + inside + right


def segmented(rng, n=500, n_labels=4, n_attributes=12, max_length=10, noise=1.5):
    """A model, n sequences of 20 to 60 noisy tokens, and segments with lengths and neighbors by their labels."""
    model = bmrm.SemiMarkovModel(n_labels, n_attributes, max_length, boundaries=True)
    middle = rng.normal(size=(n_labels, n_attributes))
    edge = rng.normal(size=(n_labels, n_attributes))
    follows = rng.dirichlet(np.full(n_labels, 0.5), size=n_labels)
    typical = rng.uniform(0.2, 0.8, size=n_labels)
    X, Y = [], []
    for length in rng.integers(20, 61, size=n).tolist():
        y, x, label = [], noise * rng.normal(size=(length, n_attributes)), int(rng.integers(n_labels))
        while not y or y[-1][1] < length:
            start = y[-1][1] if y else 0
            end = min(length, start + 1 + int(rng.binomial(max_length - 1, typical[label])))
            x[start:end] += middle[label]
            x[start] += edge[label]
            y.append((start, end, label))
            label = int(rng.choice(n_labels, p=follows[label]))
        X.append(x)
        Y.append(y)
    return model, X, Y


def matchings(rng, n=100, nodes=30, n_features=20, noise=2.0):
    """A model, n pairs of graphs whose nodes are described alike, and which node of one is which of the other."""
    model = bmrm.MatchingModel(n_features)
    reliable = rng.exponential(size=n_features)  # some features are hardly disturbed, some tell nothing
    X, Y = [], []
    for _ in range(n):
        a, y = rng.normal(size=(nodes, n_features)), rng.permutation(nodes)
        b = np.empty_like(a)
        b[y] = a + noise / (0.1 + reliable) * rng.normal(size=a.shape)
        X.append(-np.abs(a[:, None] - b))
        Y.append(y)
    return model, X, Y
