// text_families.h: The reference kernels of the text family, by file; text_table.cc names them.
#pragma once

#include <span>
#include <string>

#include "kernels/ref/generic.h"

namespace serin::kernels::ref {

inline std::span<const std::string> strings_of(const TensorView& x) { return x.span<const std::string>(); }

// text_strings.cc
Prepared change_case(const GenericDesc& desc, std::string& why);
Prepared string_concat(const GenericDesc& desc, std::string& why);
Prepared string_split(const GenericDesc& desc, std::string& why);
// text_regex.cc
Prepared regex_full_match(const GenericDesc& desc, std::string& why);
Prepared regex_replace(const GenericDesc& desc, std::string& why);
// text_example.cc
Prepared parse_example(const GenericDesc& desc, std::string& why);
// text_hash.cc
Prepared hash_bucket(const GenericDesc& desc, std::string& why);
Prepared sparse_cross(const GenericDesc& desc, std::string& why);
// text_normalizer.cc
Prepared string_normalizer(const GenericDesc& desc, std::string& why);
// text_tfidf.cc
Prepared tf_idf_vectorizer(const GenericDesc& desc, std::string& why);
// text_tokenizer.cc
Prepared tokenizer(const GenericDesc& desc, std::string& why);

}  // namespace serin::kernels::ref
