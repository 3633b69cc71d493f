// classifier_families.h: The reference kernels of ai.onnx.ml, by file; classifier_table.cc names them.
#pragma once

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

// classifier_features.cc
Prepared array_feature_extractor(const GenericDesc& desc, std::string& why);
Prepared binarizer(const GenericDesc& desc, std::string& why);
Prepared feature_vectorizer(const GenericDesc& desc, std::string& why);
Prepared imputer(const GenericDesc& desc, std::string& why);
Prepared normalizer(const GenericDesc& desc, std::string& why);
Prepared scaler(const GenericDesc& desc, std::string& why);
// classifier_encoders.cc
Prepared label_encoder(const GenericDesc& desc, std::string& why);
Prepared one_hot_encoder(const GenericDesc& desc, std::string& why);
// classifier_linear.cc
Prepared linear_classifier(const GenericDesc& desc, std::string& why);
Prepared linear_regressor(const GenericDesc& desc, std::string& why);
// classifier_svm.cc
Prepared svm_classifier(const GenericDesc& desc, std::string& why);
Prepared svm_regressor(const GenericDesc& desc, std::string& why);
// classifier_trees.cc
Prepared tree_ensemble(const GenericDesc& desc, std::string& why);
Prepared tree_ensemble_classifier(const GenericDesc& desc, std::string& why);
Prepared tree_ensemble_regressor(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref
