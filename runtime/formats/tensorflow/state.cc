// state.cc: follows the restore operation and the initialisers.
//
// TensorFlow 2 restores in a function: RestoreV2(prefix, names, slices) -> Identity -> AssignVariableOp(argument). TensorFlow 1 has the same
// nodes in the main graph, behind a NoOp. In both the names are a constant, so that the table variable -> name is known without running.

#include "runtime/formats/tensorflow/state.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "runtime/base/number.h"
#include "runtime/formats/open_beneath.h"
#include "runtime/formats/tensorflow/tensor.h"

namespace serin::formats::tf {
namespace {

constexpr int kMostCalls = 64;
constexpr size_t kMostFollowed = 4'000'000;
constexpr int64_t kMostNumbers = int64_t{1} << 24;  // of a vocabulary
constexpr size_t kMostVocabularyBytes = size_t{256} << 20;

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> ops) { return std::ranges::find(ops, op) != ops.end(); }

bool passes_on(std::string_view op) { return is_one_of(op, {"Identity", "ReadVariableOp", "StopGradient", "PreventGradient"}); }

const Attr* find_attr(const NodeDef& node, std::string_view key) {
  const auto found = node.attrs.find(key);
  return found == node.attrs.end() ? nullptr : &found->second;
}

int64_t integer_attr(const NodeDef& node, std::string_view key, int64_t fallback) {
  const Attr* const attr = find_attr(node, key);
  return attr ? attr->integer.value_or(fallback) : fallback;
}

std::string_view text_attr(const NodeDef& node, std::string_view key) {
  const Attr* const attr = find_attr(node, key);
  return attr ? attr->text.value_or("") : "";
}

std::vector<std::string_view> split_line(std::string_view line, std::string_view delimiter) {
  std::vector<std::string_view> fields;
  for (;;) {
    const size_t end = delimiter.empty() ? std::string_view::npos : line.find(delimiter);
    fields.push_back(line.substr(0, end));
    if (end == std::string_view::npos) return fields;
    line.remove_prefix(end + delimiter.size());
  }
}

/// The column of one side of a table: -2 is the whole line, -1 its number, others a field.
struct Column {
  int64_t index;
  bool strings;
  std::vector<std::string> texts;
  std::vector<int64_t> numbers;

  Status add(std::string_view line, std::string_view delimiter, int64_t number) {
    if (index == -1) {
      numbers.push_back(number);
      return {};
    }
    std::string_view text = line;
    if (index >= 0) {
      const auto fields = split_line(line, delimiter);
      if (static_cast<size_t>(index) >= fields.size())
        return Error{Code::kCorrupt, fmt::format("line {} has {} fields", number + 1, fields.size())};
      text = fields[static_cast<size_t>(index)];
    }
    if (strings) {
      texts.emplace_back(text);
      return {};
    }
    const auto value = parse_number<int64_t>(text);
    if (!value) return Error{Code::kCorrupt, fmt::format("line {}: '{}' is no integer", number + 1, text.substr(0, 40))};
    numbers.push_back(*value);
    return {};
  }

  graph::ConstantPtr constant() && {
    if (index == -1 || !strings) return graph::make_constant(numbers);
    std::byte* none = nullptr;
    auto made = graph::make_mutable_constant(DType::kString, Shape{static_cast<int64_t>(texts.size())}, &none);
    made->strings = std::move(texts);
    return made;
  }
};

}  // namespace

Status State::load() {
  SERIN_TRY(bundle_, Bundle::open(folder_));
  frames_.push_back({&program_.main(), {}});
  if (!program_.graph().restore_op.empty()) SERIN_CHECK(follow_operation(program_.graph().restore_op));
  for (const std::string_view init : program_.graph().init_ops) SERIN_CHECK(follow_operation(init));
  return {};
}

/// All that an operation of the main graph reads or waits for.
Status State::follow_operation(std::string_view name) {
  std::vector<std::string_view> open = {parse_edge(name).node};
  std::set<std::string_view> seen(open.begin(), open.end());
  while (!open.empty()) {
    const auto found = program_.main().nodes.find(open.back());
    open.pop_back();
    if (found == program_.main().nodes.end()) continue;
    for (const std::string_view input : found->second->inputs) {
      const std::string_view producer = parse_edge(input).node;
      if (seen.insert(producer).second) open.push_back(producer);
    }
    SERIN_CHECK(follow_node(*found->second, frames_.front(), 0));
  }
  return {};
}

State::Origin State::origin_of(const Frame& frame, std::string_view edge) const {
  Origin origin{nullptr, 0, &frame};
  for (size_t steps = 0; steps <= frame.body->nodes.size(); ++steps) {
    const Edge parsed = parse_edge(edge);
    if (const auto argument = frame.arguments.find(parsed.node); argument != frame.arguments.end() && parsed.output.empty())
      return argument->second;
    const auto node = frame.body->nodes.find(parsed.node);
    if (node == frame.body->nodes.end()) return {};
    origin.node = node->second;
    origin.index = parsed.index;
    if (!passes_on(origin.node->op) || origin.node->inputs.empty()) return origin;
    edge = origin.node->inputs.front();
  }
  return {};  // a cycle
}

Status State::follow_node(const NodeDef& node, const Frame& frame, int depth) {
  if (++followed_ > kMostFollowed) return Error{Code::kTooLarge, "its initialisers call each other too often"};
  if (is_one_of(node.op, {"StatefulPartitionedCall", "PartitionedCall"})) return follow_call(node, frame, depth);
  if (is_one_of(node.op, {"AssignVariableOp", "Assign"})) return assign(node, frame);
  const bool from_file = is_one_of(node.op, {"InitializeTableFromTextFileV2", "InitializeTableFromTextFile"});
  const bool from_tensors =
      is_one_of(node.op, {"LookupTableImportV2", "InitializeTableV2", "InitializeTable", "LookupTableInsertV2"}) && node.inputs.size() >= 3;
  if ((!from_file && !from_tensors) || node.inputs.size() < 2) return {};
  TableSource& table = tables_[origin_of(frame, node.inputs[0]).node];
  if (from_file) {
    table.file = &node;
    table.file_name = origin_of(frame, node.inputs[1]);
  } else {
    table.keys = origin_of(frame, node.inputs[1]);
    table.values = origin_of(frame, node.inputs[2]);
  }
  return {};
}

Status State::follow_call(const NodeDef& node, const Frame& frame, int depth) {
  const Attr* const callee = find_attr(node, "f");
  const Body* const body = callee ? program_.function(callee->function) : nullptr;
  if (!body) return {};
  if (depth >= kMostCalls) return Error{Code::kCorrupt, fmt::format("function '{}' calls itself", callee->function)};
  Frame inner{body, {}};
  for (size_t i = 0; i < body->function->arguments.size() && i < node.inputs.size(); ++i)
    inner.arguments.emplace(body->function->arguments[i], origin_of(frame, node.inputs[i]));
  frames_.push_back(std::move(inner));
  const Frame& kept = frames_.back();
  for (const NodeDef& each : body->function->nodes) SERIN_CHECK(follow_node(each, kept, depth + 1));
  return {};
}

Status State::assign(const NodeDef& node, const Frame& frame) {
  if (node.inputs.size() < 2) return {};
  const NodeDef* const variable = origin_of(frame, node.inputs[0]).node;
  const Origin value = origin_of(frame, node.inputs[1]);
  if (!variable || !value.node) return {};
  if (value.node->op != "RestoreV2") {
    assigned_.emplace(variable, value);
    return {};
  }
  SERIN_TRY(std::string name, restored_name(value));
  restored_.emplace(variable, std::move(name));
  restored_names_.emplace(text_attr(*variable, "shared_name"), variable);
  return {};
}

Result<std::string> State::restored_name(const Origin& restore) const {
  if (restore.node->inputs.size() < 2) return Error{Code::kCorrupt, fmt::format("node '{}' restores nothing", restore.node->name)};
  SERIN_TRY(const graph::ConstantPtr names, constant_of(origin_of(*restore.frame, restore.node->inputs[1])));
  if (restore.index >= names->strings.size())
    return Error{Code::kCorrupt, fmt::format("node '{}' restores {} tensors", restore.node->name, names->strings.size())};
  return names->strings[restore.index];
}

Result<graph::ConstantPtr> State::constant(Bytes proto) const {
  try {
    return read_tensor(proto, file_, begin_);
  } catch (const graph::LostConstant& lost) {
    return lost.error();
  }
}

Result<graph::ConstantPtr> State::constant_of(const Origin& origin, int depth) const {
  if (origin.node && is_one_of(origin.node->op, {"Range", "Cast"}) && depth < kMostCalls) return numbers_of(origin, depth);
  const Attr* const value = origin.node && origin.node->op == "Const" ? find_attr(*origin.node, "value") : nullptr;
  if (!value || !value->tensor) return Error{Code::kUnsupported, "a table or a checkpoint is read by computed names"};
  return constant(*value->tensor);
}

/// TensorFlow 1 numbers the words of a vocabulary with Range and Cast. The operands of a Range are constants: of a chain of them, each would be
/// followed three times as often as the one before.
Result<graph::ConstantPtr> State::numbers_of(const Origin& origin, int depth) const {
  const NodeDef& node = *origin.node;
  const bool range = node.op == "Range";
  Error computed{Code::kUnsupported, fmt::format("a table or a checkpoint is read by what '{}' ({}) computes", node.name, node.op)};
  if (node.inputs.size() != (range ? 3 : 1)) return computed;
  std::vector<std::vector<int64_t>> operands;
  Shape shape;
  for (const std::string_view input : node.inputs) {
    SERIN_TRY(const graph::ConstantPtr operand, constant_of(origin_of(*origin.frame, input), range ? kMostCalls : depth + 1));
    auto integers = graph::integers_of(*operand);
    if (!integers || (range && integers->size() != 1)) return computed;
    shape = operand->shape;
    operands.push_back(std::move(*integers));
  }
  if (!range) {
    if (dtype_of(integer_attr(node, "DstT", 0)) != DType::kInt64) return computed;
    return graph::make_constant(DType::kInt64, shape, operands[0].data());
  }
  std::vector<int64_t> numbers;
  const int64_t from = operands[0][0], to = operands[1][0], step = operands[2][0];
  if (step != 1 || from < 0 || to > kMostNumbers) return computed;
  for (int64_t number = from; number < to; ++number) numbers.push_back(number);
  return graph::make_constant(DType::kInt64, Shape{static_cast<int64_t>(numbers.size())}, numbers.data());
}

Result<graph::ConstantPtr> State::weight(std::string_view name) {
  if (!shared_) return bundle_.read(name);
  const std::string key = fmt::format("weight {}", name);
  if (const auto known = shared_->find(key); known != shared_->end()) return known->second;
  SERIN_TRY(graph::ConstantPtr read, bundle_.read(name));
  shared_->emplace(key, read);
  return read;
}

Result<graph::ConstantPtr> State::variable(const NodeDef& handle) {
  auto found = restored_.find(&handle);
  if (found == restored_.end()) {
    const auto shared = restored_names_.find(text_attr(handle, "shared_name"));
    if (shared != restored_names_.end() && !shared->first.empty()) found = restored_.find(shared->second);
  }
  if (found != restored_.end()) return weight(found->second);
  if (const auto own = assigned_.find(&handle); own != assigned_.end()) return constant_of(own->second);
  if (bundle_.contains(handle.name)) return weight(handle.name);
  return Error{Code::kNotFound, fmt::format("variable '{}' is in no file: it is not restored", handle.name)};
}

Result<Table> State::table(const NodeDef& handle) {
  const auto found = tables_.find(&handle);
  if (found == tables_.end()) return Error{Code::kUnsupported, fmt::format("table '{}' has no initialiser", handle.name)};
  if (found->second.file) return text_table(found->second);
  Table table;
  SERIN_TRY(table.keys, constant_of(found->second.keys));
  SERIN_TRY(table.values, constant_of(found->second.values));
  if (table.keys->elements() != table.values->elements())
    return Error{Code::kCorrupt,
                 fmt::format("table '{}' has {} keys and {} values", handle.name, table.keys->elements(), table.values->elements())};
  return table;
}

Result<Table> State::text_table(const TableSource& source) const {
  const NodeDef& node = *source.file;
  std::string_view file_name;
  if (source.file_name.node) {
    const auto asset = program_.graph().assets.find(fmt::format("{}:0", source.file_name.node->name));
    if (asset != program_.graph().assets.end()) file_name = asset->second;
  }
  if (file_name.empty()) return Error{Code::kUnsupported, fmt::format("node '{}' reads a file that is not part of the model", node.name)};
  const std::string path = fmt::format("assets/{}", file_name);
  SERIN_TRY(const InputFile file, open_beneath(folder_, path, "file"));
  SERIN_TRY(const std::vector<std::byte> bytes, file.read_all(kMostVocabularyBytes));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto dtype_is_string = [](int64_t index) { return index == -2; };
  Column keys{integer_attr(node, "key_index", -2), true, {}, {}};
  Column values{integer_attr(node, "value_index", -1), dtype_is_string(integer_attr(node, "value_index", -1)), {}, {}};
  const int64_t skipped = integer_attr(node, "offset", 0);
  const int64_t most = integer_attr(node, "vocab_size", -1);
  for (int64_t line = 0; !text.empty() && (most < 0 || line - skipped < most); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.ends_with('\r')) content.remove_suffix(1);
    if (line < skipped) continue;
    for (Column* column : {&keys, &values}) {
      const Status added = column->add(content, text_attr(node, "delimiter"), line - skipped);
      if (!added) return added.error().in(path);
    }
  }
  return Table{std::move(keys).constant(), std::move(values).constant()};
}

}  // namespace serin::formats::tf
