// pictures.h: computes ImageDecoder: the bytes of a file -> its pixels.
#pragma once

#include "runtime/base/result.h"
#include "runtime/engine/value.h"
#include "runtime/graph/graph.h"

namespace serin::engine {

/// u8[height, width, channels]. A damaged file, and one that is no picture, gives u8[0, 0, channels], as ONNX asks for. kUnsupported: a format that
/// ONNX names and that is not decoded (TIFF, JPEG 2000); kTooLarge: the pixels exceed `max_bytes`. Errors do not name the node.
Result<graph::ConstantPtr> decode_picture(const graph::Node& node, const graph::Constant& file, size_t max_bytes);

}  // namespace serin::engine
