"""CoNLL-2000 chunking and OCR letters as sequences of attributes, for benchmarks/crf.py."""

import lzma
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

import bmrm

DATA = Path(os.environ.get("BMRM_DATA", "data"))
WORDS, BIGRAMS, WORD_TRIGRAMS = (-2, -1, 0, 1, 2), (-1, 0), ()
TAGS, TAG_BIGRAMS, TAG_TRIGRAMS = (-2, -1, 0, 1, 2), (-2, -1, 0, 1), (-2, -1, 0)


@dataclass
class Task:
    """Training and test sequences as attribute strings and as matrices, and what their labels are called."""

    name: str
    template: str
    labels: list[str]
    train: tuple
    test: tuple
    spans: bool

    @property
    def n_attributes(self):
        return self.train[1].tokens.shape[1]


def sentences(path):
    """Return sentences as lists of (word, tag, chunk)."""
    with lzma.open(path, "rt") as file:
        blocks = file.read().strip().split("\n\n")
    return [[tuple(line.split()) for line in block.split("\n")] for block in blocks]


def attributes(sentence, t):
    """Return the attributes of one token by the usual window."""

    def at(column, i):
        return sentence[i][column] if 0 <= i < len(sentence) else ("<s>" if i < 0 else "</s>")

    found = [f"w[{o}]={at(0, t + o)}" for o in WORDS]
    found += [f"w[{o}]|w[{o + 1}]={at(0, t + o)}|{at(0, t + o + 1)}" for o in BIGRAMS]
    found += [f"w[{o}]..w[{o + 2}]={'|'.join(at(0, t + o + i) for i in range(3))}" for o in WORD_TRIGRAMS]
    found += [f"p[{o}]={at(1, t + o)}" for o in TAGS]
    found += [f"p[{o}]|p[{o + 1}]={at(1, t + o)}|{at(1, t + o + 1)}" for o in TAG_BIGRAMS]
    found += [f"p[{o}]..p[{o + 2}]={'|'.join(at(1, t + o + i) for i in range(3))}" for o in TAG_TRIGRAMS]
    return found


def indexed(sequences, ids, grow):
    """Return attribute lists as Sequences; new attributes get the next number, or are left out."""
    indices, indptr = [], [0]
    for sequence in sequences:
        for token in sequence:
            known = [ids.setdefault(name, len(ids)) for name in token] if grow else [ids[a] for a in token if a in ids]
            indices.extend(known)
            indptr.append(len(indices))
    offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in sequences])])
    values = np.ones(len(indices))
    shape = (len(indptr) - 1, len(ids))
    return bmrm.Sequences(sparse.csr_array((values, indices, indptr), shape=shape), offsets)


def conll():
    """Return CoNLL-2000: 8936 and 2012 sentences, 22 labels."""
    parts, ids, labels = [], {}, {}
    for which in ("train", "test"):
        found = sentences(DATA / "conll2000" / f"{which}.txt.xz")
        strings = [[attributes(sentence, t) for t in range(len(sentence))] for sentence in found]
        X = indexed(strings, ids, which == "train")
        if which == "train":
            labels = {name: c for c, name in enumerate(dict.fromkeys(token[2] for each in found for token in each))}
        y = [np.array([labels.get(token[2], len(labels)) for token in sentence]) for sentence in found]
        parts.append((strings, X, y))
    X = parts[1][1]
    X.tokens.resize(X.tokens.shape[0], len(ids))
    template = "words -2..2, bigrams of words -1..1, tags -2..2, their bigrams and trigrams"
    return Task("CoNLL-2000", template, list(labels), parts[0], parts[1], True)  # one label is in the test only


def ocr(train_on_one=False):
    """Return OCR letters: words of fold 0 for the test, all other folds for training, or the other way round."""
    with lzma.open(DATA / "ocr_letters" / "ocr_letters.xz") as file:
        X, y, words = load_svmlight_file(file, query_id=True, n_features=128)
    folds = np.loadtxt(DATA / "ocr_letters" / "folds.txt", dtype=int)
    starts = np.concatenate([np.flatnonzero(np.r_[True, np.diff(words) != 0]), [len(y)]])
    parts = []
    for chosen in (folds == 0, folds != 0) if train_on_one else (folds != 0, folds == 0):
        rows = [np.arange(starts[i], starts[i + 1]) for i in np.flatnonzero(chosen)]
        tokens = sparse.csr_array(X[np.concatenate(rows)])
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
        names = [[f"x{j}" for j in ids] for ids in np.split(tokens.indices, tokens.indptr[1:-1])]
        strings = [names[offsets[i] : offsets[i + 1]] for i in range(len(rows))]
        parts.append((strings, bmrm.Sequences(tokens, offsets), [y[row].astype(int) - 1 for row in rows]))
    labels = [chr(ord("a") + c) for c in range(26)]
    return Task("OCR letters", "the 128 pixels", labels, parts[0], parts[1], False)


def chunks(labels):
    """Return the spans of BIO labels as (kind, first, last), as CoNLL's own script reads them."""
    found, kind, first = set(), None, 0
    for t, label in enumerate([*labels, "O"]):
        mark, _, name = label.partition("-")
        if kind is not None and (mark != "I" or name != kind):
            found.add((kind, first, t - 1))
            kind = None
        if mark == "B" or (mark == "I" and kind is None):
            kind, first = name, t
    return found


def score(task, predicted, truth):
    """Return the accuracy of tokens, and F1 of spans where there are any."""
    right = sum(int((p == y).sum()) for p, y in zip(predicted, truth))
    accuracy = right / sum(len(y) for y in truth)
    if not task.spans:
        return accuracy, None
    hits = found = wanted = 0
    for p, y in zip(predicted, truth):
        one, other = (chunks([[*task.labels, "B-?"][c] for c in labels]) for labels in (p, y))
        hits, found, wanted = hits + len(one & other), found + len(one), wanted + len(other)
    return accuracy, 2.0 * hits / (found + wanted)
