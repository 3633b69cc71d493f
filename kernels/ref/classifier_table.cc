// classifier_table.cc: lists the operators of this family that have a reference kernel: the operators of ai.onnx.ml. CategoryMapper is
// imported as a LabelEncoder.

#include "kernels/ref/classifier_families.h"

namespace serin::kernels::ref {

namespace {

constexpr GenericRow kRows[] = {
    {"ArrayFeatureExtractor", array_feature_extractor},
    {"Binarizer", binarizer},
    {"FeatureVectorizer", feature_vectorizer},
    {"Imputer", imputer},
    {"LabelEncoder", label_encoder},
    {"LinearClassifier", linear_classifier},
    {"LinearRegressor", linear_regressor},
    {"Normalizer", normalizer},
    {"OneHotEncoder", one_hot_encoder},
    {"SVMClassifier", svm_classifier},
    {"SVMRegressor", svm_regressor},
    {"Scaler", scaler},
    {"TreeEnsemble", tree_ensemble},
    {"TreeEnsembleClassifier", tree_ensemble_classifier},
    {"TreeEnsembleRegressor", tree_ensemble_regressor},
};

}  // namespace

std::span<const GenericRow> classifier_kernels() { return kRows; }

}  // namespace serin::kernels::ref
