"""What l2 makes of raw columns: ``python benchmarks/columns.py`` prints the table in docs/solvers.md.

R2 on 30 % of the rows, drawn once. Data are read from the folder that BMRM_DATA names.
"""

import warnings

import metrics_data as data
import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import bmrm

SETS = ("house8L", "ailerons")
LAMS = (1.0, 0.1, 1e-2, 1e-4)


def rows_of(name):
    read = bmrm.read(data.DATA / f"regression_{name}" / f"{name}.xz")
    return sp.csr_matrix(read.X).toarray().astype(np.float64), read.y


def main():
    print("| data | lam | raw columns | after `StandardScaler` |\n|---|---:|---:|---:|")
    for name in SETS:
        X, y = rows_of(name)
        spread = X.std(axis=0)
        train, test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
        scaler = StandardScaler().fit(train)
        both = ((train, test), (scaler.transform(train), scaler.transform(test)))
        for lam in LAMS:
            found = [bmrm.LinearRegressor(lam=lam).fit(one, y_train).score(other, y_test) for one, other in both]
            print(f"| {name} | {lam:g} | " + " | ".join(f"{score:.3f}" for score in found) + " |", flush=True)
        print(f"({name}: {X.shape}, standard deviations differ by {spread.max() / spread[spread > 0].min():.0e})")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
