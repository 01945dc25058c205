"""Small generated sentences with chunks, as attributes, columns and files."""

from __future__ import annotations

import numpy as np

WORDS = {"D": ["the", "a"], "N": ["cat", "dog", "bird", "tree"], "V": ["sees", "hears", "is"], "P": ["in", "on"]}
TEMPLATE = """\
# a small window
U00:%x[0,0]
U01:%x[-1,0]
U02:%x[1,1]
U03:%x[-1,1]/%x[0,1]

B
"""


def drawn(rng, n=30):
    """Return rows (word, tag) and labels of n sentences, with some noise in the tags."""
    rows, labels = [], []
    for _ in range(n):
        words, chunks = [], []
        for _ in range(rng.integers(1, 4)):
            phrase = {0: "DN", 1: "N", 2: "V", 3: "P"}[int(rng.integers(4))]
            kind = {"D": "NP", "N": "NP", "V": "VP"}.get(phrase[0])
            for t, part in enumerate(phrase):
                tag = part if rng.random() < 0.85 else str(rng.choice(list(WORDS)))
                words.append([str(rng.choice(WORDS[part])), tag])
                chunks.append("O" if kind is None else f"{'I' if t else 'B'}-{kind}")
        rows.append(words)
        labels.append(chunks)
    return rows, labels


def attributes(rows):
    """Return the rows as sequences of attribute dicts."""
    return [
        [
            {
                "word": word,
                "tag": tag,
                "length": len(word) / 4,
                "first": t == 0,
                "before": sentence[t - 1][1] if t else "",
            }
            for t, (word, tag) in enumerate(sentence)
        ]
        for sentence in rows
    ]


def write_files(rng, n=30):
    """Write the same sentences to train.conll, train.crfsuite, train.svm, and a template."""
    rows, labels = drawn(rng, n)
    columns, fields, lines = [], [], []
    numbers = {label: i + 1 for i, label in enumerate(sorted({one for each in labels for one in each}))}
    words = {word: i + 1 for i, word in enumerate([word for part in WORDS.values() for word in part])}
    for i, (sentence, chunks) in enumerate(zip(rows, labels)):
        for (word, tag), label in zip(sentence, chunks):
            columns.append(f"{word} {tag} {label}")
            fields.append(f"{label}\tword={word}\ttag={tag}\tlength:{len(word) / 4}")
            lines.append(f"{numbers[label]} qid:{i} {words[word]}:1 {len(words) + 1 + 'DNVP'.index(tag)}:1")
        columns.append("")
        fields.append("")
    for name, text in (("train.conll", columns), ("train.crfsuite", fields), ("train.svm", lines)):
        with open(name, "w") as file:
            file.write("\n".join(text) + "\n")
    with open("T", "w") as file:
        file.write(TEMPLATE)
    return rows, labels


def generator(seed=0):
    return np.random.default_rng(seed)
