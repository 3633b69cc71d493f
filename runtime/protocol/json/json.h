// json.h: simdjson behind the three questions that the codecs ask. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

struct Document {
  simdjson::dom::element root;                   ///< valid until this thread's next call, and as long as the Document is
  std::unique_ptr<simdjson::dom::parser> large;  ///< what holds a document that is too large for the thread's own parser
  bool marked = false;                           ///< number words were found, and are texts now (json_words.h)
};
/// Where NaN, Infinity and -Infinity may stand, as Python's json writes them (json_words.h).
enum class NumberWords : uint8_t {
  kNowhere,
  kInLists,  ///< as elements: elsewhere the protocol has texts, which a word must not become
  kAnywhere  ///< where a value may
};
struct JsonStyle {
  std::string_view complaint = "failed to parse the request JSON buffer";  ///< how a message about text that is no JSON begins
  NumberWords number_words = NumberWords::kNowhere;
};
/// Each thread keeps a parser: a steady stream of requests allocates nothing here. It takes up to 15 bytes for one of text, so a large document gets
/// one that goes when it does. The nesting is bounded (no recursion deeper than `depth`), UTF-8 is checked; the first `bytes` of `body`
/// are the document, which is padded in place. Integers of more than 64 bits are doubles (wide_integers.h).
Result<Document> parse_json(std::string& body, size_t depth, size_t bytes = std::string::npos, const JsonStyle& style = {});

/// "an array", "null", "a number": for messages.
std::string_view kind_of(const simdjson::dom::element& element);

/// What a protocol takes as an element beyond JSON's numbers, strings and booleans.
struct ElementRules {
  bool number_words = false;       ///< the document is marked: texts may be numbers
  bool round_to_infinity = false;  ///< what is too large for the type becomes infinite; else it is an error
  bool base64 = false;             ///< {"b64": "..."} for BYTES
  bool flat = true;                ///< a flat list may stand for lists nested as the shape is
};
/// Reads numbers (or booleans) into the tensor's memory, from a flat list or from lists nested as its shape is; errors name the element.
Status read_elements(const simdjson::dom::array& data, const TensorView& tensor, std::string_view name, const ElementRules& rules = {});
/// A tensor without axes as well, which is no list.
Status read_value(const simdjson::dom::element& value, const TensorView& tensor, std::string_view name, const ElementRules& rules);

/// How many there are; array::size() counts to 16 million.
size_t count_of(const simdjson::dom::array& list);
/// {"b64": "..."}
bool is_base64(const simdjson::dom::element& value);

}  // namespace serin::protocol
