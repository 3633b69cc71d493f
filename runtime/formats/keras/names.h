// names.h: the names of folders of weights.
#pragma once

#include <string>
#include <string_view>

namespace serin::formats::keras {

/// "MultiHeadAttention" -> "multi_head_attention": the folder of a layer's weights, by its class.
std::string snake_case(std::string_view class_name);

}  // namespace serin::formats::keras
