#!/usr/bin/env python3
"""Trains the models of this folder anew, with LightGBM and XGBoost, and stores their answers.

    python3 -m venv venv && venv/bin/pip install -r deploy/requirements-trees.txt
    venv/bin/python tests/formats/trees/export.py [NAME...]

Inputs hold what decides between branches: thresholds as floats and their neighbours, zeros, missing values, infinities, categories that no
tree knows.
"""

import json
import lzma
import pathlib
import re
import sys

import lightgbm
import numpy as np
import xgboost

HERE = pathlib.Path(__file__).resolve().parent
FEATURES, ROWS, CATEGORIES = 8, 600, 12
TREES = 12


def table(name, categorical=False, missing=True, zeros=False):
    random = np.random.default_rng(int.from_bytes(name.encode()[:6], "little"))
    x = random.normal(size=(ROWS, FEATURES)).astype(np.float32)
    if categorical:
        x[:, 5] = random.integers(0, CATEGORIES, ROWS)
        x[:, 6] = random.integers(0, 40, ROWS)
    if zeros:
        x[random.random(x.shape) < 0.3] = 0
    signal = x[:, 0] * 2 + np.where(x[:, 1] > 0.3, x[:, 2], -x[:, 3]) + np.nan_to_num(np.sin(x[:, 5])) + 0.3 * random.normal(size=ROWS)
    if missing:
        x[random.random(x.shape) < 0.15] = np.nan
    return random, x, signal


def probes(random, x, thresholds, categorical):
    """Rows near every threshold."""
    near = np.array(thresholds[:400] or [0], np.float64).astype(np.float32)
    near = np.concatenate([near, np.nextafter(near, np.float32(np.inf)), np.nextafter(near, np.float32(-np.inf))])
    rows = x[random.integers(0, len(x), 60)].copy()
    for row in rows[:40]:
        row[random.integers(0, FEATURES, 3)] = near[random.integers(0, len(near), 3)]
    special = np.array([0, -0.0, 1e-36, -1e-36, np.inf, -np.inf, np.nan, 1e30], np.float32)
    for row in rows[40:]:
        row[random.integers(0, 5, 2)] = special[random.integers(0, len(special), 2)]
    if categorical:
        rows[:20, 5] = random.choice(np.array([-1, 0, 3, 3.7, -0.5, 500, np.nan, 11], np.float32), 20)
        rows[10:30, 6] = random.choice(np.array([-7, 31, 32, 39.2, 40, 1e9, np.nan], np.float32), 20)
    return rows


def targets(kind, random, signal):
    if kind == "binary":
        return (signal > 0).astype(int)
    if kind == "classes":
        return np.digitize(signal, np.quantile(signal, [0.3, 0.7]))
    if kind == "counts":
        return random.poisson(np.exp(signal / 4))
    if kind == "positive":
        return np.exp(signal / 3) + 0.1
    if kind == "share":
        return 1 / (1 + np.exp(-signal))
    if kind == "relevance":
        return np.digitize(signal, [-1, 1])
    if kind == "two":
        return np.stack([signal, signal**2], 1)
    return signal


#        name: (kind of target, parameters, {options})
LIGHTGBM = {
    "lgb_regression": ("", {"objective": "regression"}, {}),
    "lgb_sqrt": ("", {"objective": "regression", "reg_sqrt": True}, {}),
    "lgb_l1": ("", {"objective": "l1"}, {}),
    "lgb_huber": ("", {"objective": "huber"}, {}),
    "lgb_quantile": ("", {"objective": "quantile", "alpha": 0.7}, {}),
    "lgb_poisson": ("counts", {"objective": "poisson"}, {}),
    "lgb_gamma": ("positive", {"objective": "gamma"}, {}),
    "lgb_tweedie": ("positive", {"objective": "tweedie"}, {}),
    "lgb_binary": ("binary", {"objective": "binary"}, {}),
    "lgb_binary_steep": ("binary", {"objective": "binary", "sigmoid": 2.5}, {}),
    "lgb_cross_entropy": ("share", {"objective": "cross_entropy"}, {}),
    "lgb_cross_entropy_lambda": ("share", {"objective": "cross_entropy_lambda"}, {}),
    "lgb_multiclass": ("classes", {"objective": "multiclass", "num_class": 3}, {}),
    "lgb_one_versus_all": ("classes", {"objective": "multiclassova", "num_class": 3}, {}),
    "lgb_ranks": ("relevance", {"objective": "lambdarank"}, {"groups": True}),
    "lgb_no_missing": ("", {"objective": "regression", "use_missing": False}, {"missing": False}),
    "lgb_zero_is_missing": ("", {"objective": "regression", "zero_as_missing": True}, {"zeros": True}),
    "lgb_categories": ("binary", {"objective": "binary", "min_data_per_group": 5, "cat_smooth": 1}, {"categorical": True}),
    "lgb_dart": ("", {"objective": "regression", "boosting": "dart", "drop_rate": 0.3}, {}),
    "lgb_forest": ("", {"objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, {}),
    "lgb_forest_binary": ("binary", {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, {}),
    "lgb_stump": ("", {"objective": "regression", "min_data_in_leaf": 1000}, {}),
}
XGBOOST = {
    "xgb_squared": ("", {"objective": "reg:squarederror"}, {}),
    "xgb_squared_binary": ("", {"objective": "reg:squarederror", "base_score": 3}, {"binary": True}),
    "xgb_absolute": ("", {"objective": "reg:absoluteerror"}, {}),
    "xgb_logistic": ("binary", {"objective": "binary:logistic"}, {}),
    "xgb_logistic_binary": ("binary", {"objective": "binary:logistic", "base_score": 0.2}, {"binary": True}),
    "xgb_raw": ("binary", {"objective": "binary:logitraw"}, {}),
    "xgb_hinge": ("binary", {"objective": "binary:hinge"}, {}),
    "xgb_shares": ("share", {"objective": "reg:logistic"}, {}),
    "xgb_softprob": ("classes", {"objective": "multi:softprob", "num_class": 3}, {}),
    "xgb_softprob_binary": ("classes", {"objective": "multi:softprob", "num_class": 3}, {"binary": True}),
    "xgb_poisson": ("counts", {"objective": "count:poisson"}, {}),
    "xgb_gamma": ("positive", {"objective": "reg:gamma"}, {}),
    "xgb_tweedie": ("positive", {"objective": "reg:tweedie"}, {}),
    "xgb_cox": ("positive", {"objective": "survival:cox"}, {}),
    "xgb_ranks": ("relevance", {"objective": "rank:ndcg"}, {"groups": True}),
    "xgb_categories": ("binary", {"objective": "binary:logistic", "max_cat_to_onehot": 1}, {"categorical": True}),
    "xgb_categories_one_hot": ("", {"objective": "reg:squarederror", "max_cat_to_onehot": 100}, {"categorical": True, "binary": True}),
    "xgb_dart": ("", {"objective": "reg:squarederror", "booster": "dart", "rate_drop": 0.3}, {}),
    "xgb_dart_classes": ("classes", {"objective": "multi:softprob", "num_class": 3, "booster": "dart", "rate_drop": 0.4, "skip_drop": 0.2}, {"binary": True}),
    "xgb_forest": ("", {"objective": "reg:squarederror", "num_parallel_tree": 10, "subsample": 0.7, "learning_rate": 1}, {"rounds": 1}),
    "xgb_two_outputs": ("two", {"objective": "reg:squarederror"}, {}),
}


def make_lightgbm(name):
    kind, parameters, options = LIGHTGBM[name]
    random, x, signal = table(name, options.get("categorical"), options.get("missing", True), options.get("zeros"))
    y = targets(kind, random, signal)
    data = lightgbm.Dataset(
        x.astype(np.float64), y, group=[20] * (ROWS // 20) if options.get("groups") else None,
        categorical_feature=[5, 6] if options.get("categorical") else [], params={"verbose": -1},
    )
    booster = lightgbm.train({"num_leaves": 9, "verbose": -1, "seed": 1, "deterministic": True, "num_threads": 1, **parameters}, data, TREES)
    text = booster.model_to_string()
    thresholds = [float(word) for line in re.findall(r"^threshold=(.*)$", text, re.M) for word in line.split()]
    rows = probes(random, x, thresholds, options.get("categorical"))
    answers = np.asarray(booster.predict(rows.astype(np.float64)))
    if parameters["objective"] == "binary":
        answers = np.stack([1 - answers, answers], 1)
    return text.encode(), "txt", rows, answers


def make_xgboost(name):
    kind, parameters, options = XGBOOST[name]
    random, x, signal = table(name, options.get("categorical"))
    y = targets(kind, random, signal)
    types = ["c" if options.get("categorical") and i in (5, 6) else "q" for i in range(FEATURES)]
    if options.get("categorical"):
        x[:, 5:7] = np.nan_to_num(x[:, 5:7])
    data = xgboost.DMatrix(x, y, feature_types=types, enable_categorical=True)
    if options.get("groups"):
        data.set_group([20] * (ROWS // 20))
    booster = xgboost.train({"max_depth": 3, "tree_method": "hist", "seed": 1, "nthread": 1, **parameters}, data, options.get("rounds", TREES))
    ending = "ubj" if options.get("binary") else "json"
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = trees.get("gbtree", trees)["model"]["trees"]
    thresholds = [c for tree in trees for c, left in zip(tree["split_conditions"], tree["left_children"]) if left >= 0]
    rows = probes(random, x, thresholds, options.get("categorical"))
    rows[np.isinf(rows)] = 1e30  # refused in a DMatrix
    if options.get("categorical"):
        rows[:, 5:7] = np.where(np.isnan(rows[:, 5:7]), np.nan, np.clip(np.trunc(rows[:, 5:7]), 0, 39))
    answers = booster.predict(xgboost.DMatrix(rows, feature_types=types, enable_categorical=True))
    if parameters["objective"] == "binary:logistic":
        answers = np.stack([1 - answers, answers], 1)
    return bytes(booster.save_raw(ending)), ending, rows, np.asarray(answers)


def main():
    for name in sys.argv[1:] or [*LIGHTGBM, *XGBOOST]:
        model, ending, rows, answers = (make_lightgbm if name in LIGHTGBM else make_xgboost)(name)
        (HERE / "models").mkdir(exist_ok=True)
        (HERE / "models" / f"{name}.{ending}.xz").write_bytes(lzma.compress(model, preset=9))
        sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "models")]
        import stored

        stored.write_answers(HERE / "answers" / f"{name}.npz.xz", {"input": rows, "output": answers.astype(np.float32)})
        print(name, len(model), answers.shape, f"deviation {answers.std():.3g}")


if __name__ == "__main__":
    main()
