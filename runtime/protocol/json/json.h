// json.h: wraps simdjson for the codecs: parse a document, read elements, count a list. Internal to runtime/protocol.
#pragma once

#include <simdjson.h>

#include <memory>
#include <string>
#include <string_view>

#include "kernels/tensor.h"
#include "runtime/base/result.h"

namespace serin::protocol {

struct Document {
  simdjson::dom::element root;                   ///< valid until this thread's next call, and as long as the Document lives
  std::unique_ptr<simdjson::dom::parser> large;  ///< parser of a document that is too large for the thread's own parser
  bool marked = false;                           ///< number words were found and are texts now (json_words.h)
};
/// Positions at which NaN, Infinity and -Infinity are accepted, as Python's json writes them (json_words.h).
enum class NumberWords : uint8_t {
  kNowhere,
  kInLists,  ///< as elements of lists: the protocol has texts elsewhere, which must not change
  kAnywhere  ///< wherever a value is accepted
};
struct JsonStyle {
  std::string_view complaint = "failed to parse the request JSON buffer";  ///< beginning of the message for text that is not JSON
  NumberWords number_words = NumberWords::kNowhere;
};
/// Each thread keeps a parser, so a steady stream of requests allocates nothing here. It takes up to 15 bytes for one byte of text, so a
/// large document gets its own parser.
///
/// The nesting is limited (no recursion deeper than `depth`), and UTF-8 is checked. The first `bytes` of `body` are the document, which is
/// padded in place. Integers of more than 64 bits become doubles (wide_integers.h).
Result<Document> parse_json(std::string& body, size_t depth, size_t bytes = std::string::npos, const JsonStyle& style = {});

/// "an array", "null", "a number": for messages.
std::string_view kind_of(const simdjson::dom::element& element);

/// Elements that a protocol accepts in addition to JSON's numbers, strings and booleans.
struct ElementRules {
  bool number_words = false;       ///< the document is marked: texts may be numbers
  bool round_to_infinity = false;  ///< a number too large for the type becomes infinite; otherwise it is an error
  bool base64 = false;             ///< {"b64": "..."} for BYTES
  bool flat = true;                ///< a flat list may replace lists nested like the shape
};
/// Reads numbers (or booleans) into the tensor's memory, from a flat list or from lists nested like its shape; errors name the element.
Status read_elements(const simdjson::dom::array& data, const TensorView& tensor, std::string_view name, const ElementRules& rules = {});
/// Also reads a tensor without axes, which is not a list.
Status read_value(const simdjson::dom::element& value, const TensorView& tensor, std::string_view name, const ElementRules& rules);

/// Number of elements; array::size() only counts to 16 million.
size_t count_of(const simdjson::dom::array& list);
/// Whether the value is {"b64": "..."}.
bool is_base64(const simdjson::dom::element& value);

}  // namespace serin::protocol
