"""The operators of ai.onnx.ml against ONNX Runtime. Probit is left out: there both are approximations, and not the same one."""

import numpy as np
import pytest

from one_node import OneNode
from trees import Trees

TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"]
X = np.random.default_rng(0).normal(size=(200, 4)).astype(np.float32)
WITH_GAPS = np.where(np.random.default_rng(1).random(X.shape) < 0.2, np.nan, X).astype(np.float32)
INTEGERS = (X * 3).astype(np.int64)


def words(*values):
    return np.array(values, dtype=object)


def agrees(folder, op, x, outputs=1, ml=3, **attributes):
    inputs = x if isinstance(x, list) else [x]
    node = OneNode(op, inputs, outputs, domain="ai.onnx.ml", ml=ml, version=15, **attributes)
    node.check(folder, node.by_onnxruntime())


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_tree_regressor(tmp_path, targets, transform):
    trees = Trees(5, 3, 4, targets, negative=True, votes=range(targets))
    agrees(tmp_path, "TreeEnsembleRegressor", X, n_targets=targets, post_transform=transform, base_values=[0.25, 0.5, 0.125][:targets],
           **trees.attributes("target"))


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_aggregates(tmp_path, aggregate):
    agrees(tmp_path, "TreeEnsembleRegressor", X, n_targets=2, aggregate_function=aggregate, **Trees(5, 3, 4, 2).attributes("target"))


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"])
@pytest.mark.parametrize("missing", [False, True])
def test_tree_modes_and_missing_values(tmp_path, mode, missing):
    trees = Trees(6, 4, 4, 1, modes=(mode,), missing=missing)
    agrees(tmp_path, "TreeEnsembleRegressor", WITH_GAPS, n_targets=1, **trees.attributes("target"))


@pytest.mark.parametrize("x", [X.astype(np.float64), INTEGERS], ids=["f64", "i64"])
def test_tree_input_types(tmp_path, x):
    trees = Trees(6, 4, 4, 2).attributes("target")
    node = OneNode("TreeEnsembleRegressor", [x.astype(np.float32)], domain="ai.onnx.ml", version=15, n_targets=2, **trees)
    answers = node.by_onnxruntime()  # which takes floats only
    node.inputs = [x.astype(np.float32).astype(x.dtype)]
    node.check(tmp_path, answers)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize(("votes", "base"), [([0], []), ([0], [0.25]), ([0], [0.125, 0.375]), ([1], []), ([1], [0.25])], ids=str)
def test_tree_classifier_whose_leaves_vote_for_one_of_two(tmp_path, transform, negative, votes, base):
    trees = Trees(5, 3, 4, 2, votes=votes, negative=negative)
    base = {"base_values": base} if base else {}
    agrees(tmp_path, "TreeEnsembleClassifier", X, 2, classlabels_int64s=[7, 9], post_transform=transform, **base,
           **trees.attributes("class"))


def test_tree_classifier_whose_leaves_vote_for_two(tmp_path):
    """The higher score wins. ONNX Runtime answers 1 here, even where that is no label."""
    trees = Trees(5, 3, 4, 2, votes=[0, 1], negative=True)
    node = OneNode("TreeEnsembleClassifier", [X], 2, domain="ai.onnx.ml", version=15, classlabels_int64s=[7, 9], **trees.attributes("class"))
    scores = node.by_onnxruntime()[1]
    node.check(tmp_path, [np.array([7, 9])[scores.argmax(axis=1)], scores])


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("base", [[], [0.25, 0.125, 0.375]], ids=str)
def test_tree_classifier_of_three_classes(tmp_path, transform, base):
    base = {"base_values": base} if base else {}
    agrees(tmp_path, "TreeEnsembleClassifier", X, 2, classlabels_strings=["a", "b", "c"], post_transform=transform, **base,
           **Trees(5, 3, 4, 3).attributes("class"))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 2, 3])
def test_linear_models(tmp_path, targets, transform):
    rng = np.random.default_rng(targets)
    model = {"coefficients": rng.normal(size=4 * targets).tolist(), "intercepts": rng.normal(size=targets).tolist(),
             "post_transform": transform}
    for name, attributes in (("classifier", {"classlabels_ints": [3, 4, 5][:max(targets, 2)]}), ("regressor", {"targets": targets})):
        folder = tmp_path / name
        folder.mkdir()
        agrees(folder, f"Linear{name.capitalize()}", X, 2 if name == "classifier" else 1, **model, **attributes)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("probabilities", [False, True])
def test_svm_classifier(tmp_path, kernel, classes, probabilities):
    rng = np.random.default_rng(classes)
    pairs = classes * (classes - 1) // 2
    model = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "support_vectors": rng.normal(size=12 * classes).tolist(),
             "vectors_per_class": [3] * classes, "coefficients": rng.normal(size=(classes - 1) * 3 * classes).tolist(),
             "rho": rng.normal(size=pairs).tolist(), "classlabels_ints": list(range(10, 10 + classes))}
    if probabilities:
        model |= {"prob_a": (-0.1 - rng.random(pairs)).tolist(), "prob_b": rng.normal(size=pairs).tolist()}
    agrees(tmp_path, "SVMClassifier", X, 2, **model)


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_svm_regressor(tmp_path, kernel):
    rng = np.random.default_rng(3)
    agrees(tmp_path, "SVMRegressor", X, kernel_type=kernel, kernel_params=[0.3, 0.5, 2.0], n_supports=6,
           support_vectors=rng.normal(size=24).tolist(), coefficients=rng.normal(size=6).tolist(), rho=[0.2])


FEATURES = {
    "binarizer": ("Binarizer", X, {"threshold": 0.1}),
    "imputer of NaN": ("Imputer", WITH_GAPS, {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float("nan")}),
    "imputer of integers": ("Imputer", INTEGERS, {"imputed_value_int64s": [7], "replaced_value_int64": 0}),
    "scaler": ("Scaler", X, {"offset": [0.1, 0.2, 0.3, 0.4], "scale": [1.0, 2.0, 3.0, 4.0]}),
    "scaler of integers": ("Scaler", INTEGERS, {"offset": [0.1], "scale": [2.0]}),
    "normalizer MAX": ("Normalizer", X, {"norm": "MAX"}),
    "normalizer L1": ("Normalizer", X, {"norm": "L1"}),
    "normalizer L2 of a row": ("Normalizer", X[0], {"norm": "L2"}),
    "one hot": ("OneHotEncoder", np.array([[1, 2], [3, 9]]), {"cats_int64s": [1, 2, 3]}),
    "one hot of strings": ("OneHotEncoder", words("a", "z"), {"cats_strings": ["a", "b"]}),
    "chosen features": ("ArrayFeatureExtractor", [X, np.array([2, 0, 1])], {}),
    "chosen of one row": ("ArrayFeatureExtractor", [X[0], np.array([2, 0, 1])], {}),
    "features side by side": ("FeatureVectorizer", [X, X[:, :2].copy()], {"inputdimensions": [3, 4]}),
    "strings to integers": ("LabelEncoder", words("a", "b", "z"), {"keys_strings": ["a", "b"], "values_int64s": [5, 6]}),
    "integers to floats": ("LabelEncoder", np.array([1, 2, 9]), {"keys_int64s": [1, 2], "values_floats": [0.5, 0.6], "default_float": 7.0}),
    "integers to strings": ("LabelEncoder", np.array([1, 2, 9]), {"keys_int64s": [1, 2], "values_strings": ["u", "v"]}),
    "places of strings": ("LabelEncoder", words("a", "b", "z"), {"ml": 1, "classes_strings": ["a", "b"], "default_int64": -7}),
    "strings by place": ("LabelEncoder", np.array([0, 1, 5]), {"ml": 1, "classes_strings": ["a", "b"], "default_string": "?"}),
    "categories": ("CategoryMapper", words("a", "b", "z"), {"cats_strings": ["a", "b"], "cats_int64s": [4, 5]}),
    "names of categories": ("CategoryMapper", np.array([4, 5, 6]), {"cats_strings": ["a", "b"], "cats_int64s": [4, 5]}),
}


@pytest.mark.parametrize("name", FEATURES)
def test_features(tmp_path, name):
    op, x, attributes = FEATURES[name]
    agrees(tmp_path, op, x, **attributes)


def one_tree(**changes):
    """A root with two leaves; `changes` make it wrong."""
    return {"nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.0, 0.0, 0.0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
            "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_ids": [0, 0], "target_weights": [1.0, 2.0],
            "n_targets": 1} | changes


@pytest.mark.parametrize(("changes", "says"), [
    ({"nodes_truenodeids": [0, 0, 0]}, "goes round in circles"), ({"nodes_falsenodeids": [9, 0, 0]}, "has no node 9"),
    ({"nodes_featureids": [4, 0, 0]}, "feature 4 of 4"), ({"target_ids": [0, 1]}, "target 1 of 1"),
    ({"nodes_modes": ["IF", "LEAF", "LEAF"]}, "'IF'"),
    ({"nodes_values": [0.0]}, "differ in length"), ({"target_nodeids": [1, 7]}, "has no node 7"),
])
def test_trees_that_are_none_are_refused(tmp_path, changes, says):
    node = OneNode("TreeEnsembleRegressor", [X], domain="ai.onnx.ml", version=15, **one_tree(**changes))
    assert says in node.refusal(tmp_path)
