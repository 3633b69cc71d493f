// text_parse.cc: reads the text form of a graph. It is for tests and experiments, so its messages give the exact fault and its place ("line
// 3: ..."). Constants without elements get random ones that depend only on their name, shape and the seed.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>

#include "runtime/graph/graph.h"
#include "runtime/graph/text/text_cursor.h"

namespace serin::graph {
namespace {

constexpr int64_t kMaxParsedElements = int64_t{1} << 28;

ConstantPtr random_constant(const std::string& name, DType dtype, const Shape& shape, uint64_t seed) {
  std::byte* memory = nullptr;
  auto constant = make_mutable_constant(dtype, shape, &memory);
  std::string key = name + shape.str();
  std::seed_seq sequence(key.begin(), key.end());
  std::mt19937_64 engine(sequence);
  engine.discard(seed);
  const double low = name.ends_with("var") ? 0.5 : -1.0, high = name.ends_with("var") ? 1.5 : 1.0;
  for (int64_t i = 0; i < constant->elements(); ++i) {
    const double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    const bool floating = dtype == DType::kFloat32 || dtype == DType::kFloat64;
    const auto element = make_scalar(dtype, floating                ? low + (high - low) * unit
                                            : dtype == DType::kBool ? unit < 0.5
                                                                    : std::floor(unit * 8));
    if (!element) break;  // 16-bit floats stay zero
    std::memcpy(memory + static_cast<size_t>(i) * dtype_size(dtype), element->data().get(), dtype_size(dtype));
  }
  return constant;
}

class Parser : private TextCursor {
 public:
  Parser(std::string_view text, uint64_t seed) : TextCursor(text), seed_(seed) {}

  Result<Graph> run() {
    skip_lines();
    SERIN_TRY(Graph graph, block(indent(), 0));
    skip_lines();
    if (at_ < text_.size()) return fail("text after 'return'");
    return graph;
  }

 private:
  struct Scope {
    Graph graph;
    std::map<std::string, ValueId, std::less<>> values;
  };

  /// "n,3,8,8]" after the bracket.
  Result<Dims> dims() {
    Dims list;
    while (!accept(']')) {
      if (!list.empty()) SERIN_CHECK(expect(','));
      SERIN_TRY(Dim next, dim());
      list.push_back(std::move(next));
    }
    return list;
  }
  Result<Shape> shape() {
    SERIN_TRY(const Dims list, dims());
    const auto known = known_shape(list);
    if (!known || !known->checked_elements() || *known->checked_elements() > kMaxParsedElements)
      return fail("a constant needs known dimensions of a reasonable size");
    return *known;
  }

  Result<Type> type() {
    SERIN_TRY(const std::string word, name());
    if (word == "sequence" || word == "optional") {
      SERIN_CHECK(expect('('));
      SERIN_TRY(Type inner, type());
      SERIN_CHECK(expect(')'));
      const bool of_sequence = word == "optional" && inner.kind == ValueKind::kSequence;
      if (inner.kind != ValueKind::kTensor && !of_sequence) return fail("values are not nested this way");
      inner.kind = word == "sequence" ? ValueKind::kSequence : of_sequence ? ValueKind::kOptionalSequence : ValueKind::kOptional;
      return inner;
    }
    const auto dtype = find_dtype(word);
    if (!dtype) return fail(fmt::format("'{}' is no dtype", word));
    SERIN_CHECK(expect('['));
    skip_space();
    if (text_.substr(at_, 4) == "...]") {
      at_ += 4;
      return Type{ValueKind::kTensor, *dtype, std::nullopt};
    }
    SERIN_TRY(Dims list, dims());
    return Type::tensor(*dtype, std::move(list));
  }

  // ---- constants ----

  /// "1,-1}" after the brace.
  Result<ConstantPtr> elements(DType dtype, std::optional<Shape> shape) {
    std::vector<std::byte> bytes;
    std::vector<std::string> strings;
    int64_t count = 0;
    for (; !accept('}'); ++count) {
      if (count > 0) SERIN_CHECK(expect(','));
      if (dtype == DType::kString) {
        SERIN_TRY(std::string text, name());
        strings.push_back(std::move(text));
        continue;
      }
      SERIN_TRY(const auto value, number());
      const auto* whole = std::get_if<int64_t>(&value);
      const ConstantPtr element =
          whole && dtype == DType::kInt64 ? make_constant(DType::kInt64, Shape{}, whole) : make_scalar(dtype, as_double(value));
      if (!element) return fail("constants of this dtype cannot be written out");
      const auto data = element->data();
      bytes.insert(bytes.end(), data.get(), data.get() + element->bytes());
    }
    if (!shape) shape = Shape{count};
    if (shape->elements() != count) return fail(fmt::format("{} elements given for shape {}", count, shape->str()));
    std::byte* memory = nullptr;
    auto constant = make_mutable_constant(dtype, *shape, &memory);
    if (memory) std::memcpy(memory, bytes.data(), bytes.size());
    constant->strings = std::move(strings);
    return ConstantPtr(std::move(constant));
  }

  /// What follows "name", "name:dtype" or "dtype": [shape] and {elements}, at least one of them.
  Result<ConstantPtr> constant(const std::string& constant_name, DType dtype) {
    std::optional<Shape> known;
    if (accept('[')) {
      SERIN_TRY(known, shape());
    }
    if (accept('{')) return elements(dtype, known);
    if (!known) return fail("a constant needs a shape or elements");
    return random_constant(constant_name, dtype, *known, seed_);
  }

  Result<ValueId> operand(Scope& scope) {
    if (at_number()) {
      SERIN_TRY(const auto value, number());
      return scope.graph.add_constant("", make_scalar(DType::kFloat32, as_double(value)));
    }
    const bool is_quoted = peek() == '"';
    SERIN_TRY(const std::string word, name());
    if (!is_quoted && word == "_") return kNone;
    if (const auto dtype = find_dtype(word); dtype && !is_quoted) {
      SERIN_TRY(ConstantPtr made, constant("", *dtype));
      return scope.graph.add_constant("", std::move(made));
    }
    DType dtype = DType::kFloat32;
    if (peek() == ':') {
      ++at_;
      SERIN_TRY(const std::string dtype_word, name());
      const auto found = find_dtype(dtype_word);
      if (!found) return fail(fmt::format("'{}' is no dtype", dtype_word));
      dtype = *found;
    }
    const auto known = scope.values.find(word);
    if (peek() != '[' && peek() != '{') {
      if (known == scope.values.end()) return fail(fmt::format("'{}' is not defined before it is read", word));
      return known->second;
    }
    SERIN_TRY(ConstantPtr made, constant(word, dtype));
    if (known == scope.values.end()) return scope.values[word] = scope.graph.add_constant(word, std::move(made));
    const ConstantPtr& before = scope.graph.value(known->second).constant;
    if (!before || before->dtype != made->dtype || !(before->shape == made->shape))
      return fail(fmt::format("'{}' is defined differently above", word));
    return known->second;
  }

  // ---- attributes ----

  Result<Attribute> attribute() {
    if (accept('[')) return attribute_list();
    if (at_number()) {
      SERIN_TRY(const auto value, number());
      return std::visit([](auto x) { return Attribute(x); }, value);
    }
    SERIN_TRY(std::string word, name());
    const auto dtype = find_dtype(word);
    if (dtype && (peek() == '[' || peek() == '{')) {
      SERIN_TRY(ConstantPtr made, constant("", *dtype));
      return Attribute(std::move(made));
    }
    return Attribute(std::move(word));
  }
  Result<Attribute> attribute_list() {
    std::vector<int64_t> integers;
    std::vector<double> numbers;
    std::vector<std::string> strings;
    while (!accept(']')) {
      if (!numbers.empty() || !strings.empty()) SERIN_CHECK(expect(','));
      if (!at_number()) {
        SERIN_TRY(std::string text, name());
        strings.push_back(std::move(text));
        continue;
      }
      SERIN_TRY(const auto value, number());
      if (const auto* whole = std::get_if<int64_t>(&value)) integers.push_back(*whole);
      numbers.push_back(as_double(value));
    }
    if (!strings.empty()) return Attribute(std::move(strings));
    if (integers.size() == numbers.size()) return Attribute(std::move(integers));
    return Attribute(std::move(numbers));
  }

  // ---- statements ----

  Result<Graph> block(size_t indentation, int depth) {
    if (depth > kMaxDepth) return fail("bodies are nested too deeply");
    Scope scope;
    while (at_ < text_.size() && indent() == indentation) {
      if (word_is("return")) {
        SERIN_CHECK(return_statement(scope));
        return std::move(scope.graph);
      }
      SERIN_CHECK(statement(scope, indentation, depth));
    }
    return fail("expected a statement of this block, or 'return'");
  }

  Status statement(Scope& scope, size_t indentation, int depth) {
    std::vector<std::string> results;
    do {
      SERIN_TRY(std::string result, name());
      results.push_back(std::move(result));
    } while (accept(','));
    if (results.size() == 1 && accept(':')) {
      SERIN_TRY(Type input, type());
      SERIN_CHECK(define(scope, results[0], scope.graph.add_input(results[0], std::move(input))));
      return end_of_line();
    }
    SERIN_CHECK(expect('='));
    SERIN_TRY(const NodeId node, call(scope, results));
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId made = scope.graph.output(node, i);
      scope.graph.value(made).name = results[i];
      if (results[i] == "_")
        scope.graph.connect(node, i, kNone);
      else
        SERIN_CHECK(define(scope, results[i], made));
    }
    SERIN_CHECK(end_of_line());
    while (at_ < text_.size() && indent() > indentation) {
      SERIN_TRY(const std::string part, name());
      if (part != "then" && part != "else" && part != "body")
        return fail(fmt::format("expected 'then:', 'else:' or 'body:', not '{}'", part));
      SERIN_CHECK(expect(':'));
      SERIN_CHECK(end_of_line());
      SERIN_TRY(Graph body, block(indent(), depth + 1));
      scope.graph.node(node).bodies.push_back(std::make_shared<const Graph>(std::move(body)));
    }
    return {};
  }

  Status define(Scope& scope, const std::string& value_name, ValueId id) {
    if (scope.values.emplace(value_name, id).second) return {};
    return fail(fmt::format("'{}' is defined twice", value_name));
  }

  Result<NodeId> call(Scope& scope, const std::vector<std::string>& results) {
    SERIN_TRY(const std::string operator_name, name());
    const auto op = find_op(operator_name);
    if (!op) return fail(fmt::format("there is no operator '{}'", operator_name));
    SERIN_CHECK(expect('('));
    std::vector<ValueId> operands;
    Attributes attributes;
    for (bool first = true; !accept(')'); first = false) {
      if (!first) SERIN_CHECK(expect(','));
      skip_space();
      const size_t length = word_length(text_.substr(at_));
      if (length > 0 && text_.substr(at_ + length, 1) == "=") {
        const std::string key(text_.substr(at_, length));
        at_ += length + 1;
        SERIN_TRY(attributes[key], attribute());
      } else {
        SERIN_TRY(const ValueId next, operand(scope));
        operands.push_back(next);
      }
    }
    return scope.graph.add_node(*op, results[0], std::move(operands), std::move(attributes), results.size());
  }

  Status return_statement(Scope& scope) {
    at_ += std::string_view("return").size();
    std::vector<ValueId> outputs;
    std::vector<std::string> names;
    do {
      SERIN_TRY(const ValueId id, operand(scope));
      if (id == kNone) return fail("an output cannot be absent");
      outputs.push_back(id);
      names.push_back(scope.graph.value(id).name);
      skip_space();
      if (word_is("as")) {
        at_ += 2;
        SERIN_TRY(names.back(), name());
      }
    } while (accept(','));
    scope.graph.set_outputs(std::move(outputs));
    scope.graph.set_output_names(std::move(names));
    return end_of_line();
  }

  uint64_t seed_;
};

}  // namespace

Result<Graph> parse(std::string_view text, uint64_t seed) { return Parser(text, seed).run(); }

}  // namespace serin::graph
