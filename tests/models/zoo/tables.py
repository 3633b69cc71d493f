"""scikit-learn pipelines by skl2onnx: the ai.onnx.ml operators as users meet them. Everything is fitted on data drawn here."""

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType
from sklearn import (
    cluster,
    compose,
    decomposition,
    ensemble,
    feature_extraction,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

ROWS, COLUMNS = 300, 6


def table(seed=1):
    random = np.random.default_rng(seed)
    x = random.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    value = 2 * x[:, 0] - x[:, 1] * x[:, 2] + np.sin(3 * x[:, 3])
    return x, value, np.digitize(value, [-1.0, 1.0])


def fitted(model, numbers=True, opset=17):
    x, value, kind = table()
    model.fit(x, value if numbers else kind)
    options = None if numbers or not hasattr(model, "predict_proba") else {id(model): {"zipmap": False}}
    return to_onnx(
        model, initial_types=[("x", FloatTensorType([None, COLUMNS]))], options=options, target_opset={"": opset, "ai.onnx.ml": 3}
    )


def classified(model, opset=17):
    return fitted(model, False, opset)


def scaled(*steps):
    return pipeline.make_pipeline(preprocessing.StandardScaler(), *steps)


def customers():
    """Numbers scaled and imputed, a category of words and one of numbers encoded, then a logistic regression."""
    random = np.random.default_rng(2)
    numbers, word, code = (
        random.normal(size=(ROWS, 3)).astype(np.float32),
        random.choice(["red", "green", "blue"], (ROWS, 1)),
        random.integers(0, 5, (ROWS, 1)),
    )
    kind = ((numbers[:, 0] > 0) ^ (word[:, 0] == "red")).astype(np.int64)
    numbers[random.random(numbers.shape) < 0.05] = np.nan
    from sklearn.impute import SimpleImputer

    columns = compose.ColumnTransformer(
        [
            ("numbers", pipeline.make_pipeline(SimpleImputer(), preprocessing.RobustScaler()), [0, 1, 2]),
            ("word", preprocessing.OneHotEncoder(handle_unknown="ignore"), [3]),
            ("code", preprocessing.OneHotEncoder(), [4]),
        ]
    )
    model = pipeline.make_pipeline(columns, linear_model.LogisticRegression())
    import pandas

    frame = pandas.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1], "c": numbers[:, 2], "word": word[:, 0], "code": code[:, 0]})
    model.fit(frame, kind)
    types = [(name, FloatTensorType([None, 1])) for name in "abc"] + [
        ("word", StringTensorType([None, 1])),
        ("code", Int64TensorType([None, 1])),
    ]
    return to_onnx(model, initial_types=types, options={id(model): {"zipmap": False}}, target_opset={"": 17, "ai.onnx.ml": 3})


PHRASES = ["the red house", "a blue, blue car", "houses and cars", "red and blue", "no car at all", "a house is a house"]


def phrases():
    """Words and pairs of words of a text, weighted, then a logistic regression. Case is kept: ONNX Runtime needs a locale to change it."""
    texts = list(np.random.default_rng(3).choice(PHRASES, ROWS))
    vectors = feature_extraction.text.TfidfVectorizer(token_pattern="[a-z]+", ngram_range=(1, 2), lowercase=False)
    model = pipeline.make_pipeline(vectors, linear_model.LogisticRegression()).fit(texts, ["car" in text for text in texts])
    types = [("text", StringTensorType([None, 1]))]
    return to_onnx(model, initial_types=types, options={id(model): {"zipmap": False}}, target_opset={"": 17, "ai.onnx.ml": 3})


MODELS = {
    "sk_linear": lambda: fitted(scaled(linear_model.Ridge())),
    "sk_logistic": lambda: classified(scaled(linear_model.LogisticRegression())),
    "sk_tree": lambda: classified(tree.DecisionTreeClassifier(max_depth=6)),
    "sk_forest": lambda: classified(ensemble.RandomForestClassifier(20, max_depth=5)),
    "sk_boosted": lambda: fitted(ensemble.GradientBoostingRegressor(n_estimators=30)),
    "sk_extra_trees": lambda: fitted(ensemble.ExtraTreesRegressor(12, max_depth=5)),
    "sk_perceptron": lambda: classified(scaled(neural_network.MLPClassifier((16, 8), max_iter=300)), 15),
    "sk_svm": lambda: classified(svm.SVC(probability=True)),
    "sk_svr": lambda: fitted(scaled(svm.SVR())),
    "sk_bayes": lambda: classified(naive_bayes.GaussianNB()),
    "sk_neighbours": lambda: classified(neighbors.KNeighborsClassifier(3)),
    "sk_kmeans": lambda: fitted(cluster.KMeans(4, n_init=2)),
    "sk_pca": lambda: fitted(pipeline.make_pipeline(preprocessing.MinMaxScaler(), decomposition.PCA(3), preprocessing.Normalizer())),
    "sk_polynomial": lambda: fitted(pipeline.make_pipeline(preprocessing.PolynomialFeatures(2), linear_model.Lasso(0.01))),
    "sk_binned": lambda: fitted(
        pipeline.make_pipeline(preprocessing.KBinsDiscretizer(4, encode="onehot-dense"), linear_model.LinearRegression())
    ),
    "sk_customers": customers,
    "sk_phrases": phrases,
}
