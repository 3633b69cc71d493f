// pir.cc: PIR's JSON -> Program. Its keys are short:
//
//   {"base_code": {"magic": "pir", "version": 4}, "program": {"regions": [{"blocks": [{"args": [...], "ops": [...]}]}]}}
//   an operation: "#" dialect and name, "I" operands, "O" results, "A" attributes, "regions"     a value: "%" number, "TT" type
//   an attribute: "N" name, "AT" {"#" kind, "D" data, or "VD" a number that JSON does not have}  a type: "#" kind, "D" parts
//
// Operations of the builtin dialect (0) only pack and unpack lists, so they become lists of values here. A parameter is "p", whose attributes
// have places instead of names.

#include "runtime/formats/paddle/pir.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <limits>
#include <optional>
#include <utility>

namespace serin::formats::paddle {
namespace {

namespace json = boost::json;

constexpr size_t kDeepestJson = 512;  // of lists and objects; a region within another takes six
constexpr int64_t kNewestVersion = 4;

const json::value kNothing;
const json::array kNoItems;

const json::value& at(const json::value& object, std::string_view key) {
  const json::object* const members = object.if_object();
  const json::value* const found = members ? members->if_contains(key) : nullptr;
  return found ? *found : kNothing;
}

const json::array& items(const json::value& list) { return list.is_array() ? list.get_array() : kNoItems; }

std::string_view text(const json::value& value) {
  const json::string* const found = value.if_string();
  return found ? std::string_view(found->data(), found->size()) : std::string_view();
}

std::optional<int64_t> integer(const json::value& value) {
  if (value.is_bool()) return int64_t{value.get_bool()};
  if (value.is_int64()) return value.get_int64();
  return std::nullopt;
}

std::optional<double> number(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  const auto whole = integer(value);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

/// NaN and infinities have a key of their own.
std::optional<double> special_number(std::string_view word) {
  if (word.empty()) return std::nullopt;
  const double infinity = std::numeric_limits<double>::infinity();
  if (word == "NAN") return std::numeric_limits<double>::quiet_NaN();
  return word == "-INF" ? std::optional(-infinity) : word == "INF" ? std::optional(infinity) : std::nullopt;
}

std::optional<Attribute> read_attribute(const json::value& typed);

std::optional<Attribute> read_list(const json::array& list) {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  for (const json::value& each : list) {
    std::optional<Attribute> item;  // a typed attribute, or a plain number
    if (each.is_object()) {
      item = read_attribute(each);
    } else if (const auto plain = integer(each)) {
      item = *plain;
    }
    if (!item) return std::nullopt;
    if (const auto* const whole = std::get_if<int64_t>(&*item)) integers.push_back(*whole), numbers.push_back(static_cast<double>(*whole));
    if (const auto* const real = std::get_if<double>(&*item)) numbers.push_back(*real);
    if (const auto* const word = std::get_if<std::string>(&*item)) texts.push_back(*word);
  }
  if (integers.size() == list.size()) return integers;
  if (numbers.size() == list.size()) return numbers;
  return texts.size() == list.size() ? std::optional<Attribute>(texts) : std::nullopt;
}

/// Nothing for kinds that no operator needs (a place, a null).
std::optional<Attribute> read_attribute(const json::value& typed) {
  if (const auto special = special_number(text(at(typed, "VD")))) return *special;
  const std::string_view kind = text(at(typed, "#"));
  const json::value& data = at(typed, "D");
  if (data.is_array()) return kind == "1.a_place" ? std::nullopt : read_list(data.get_array());
  if (data.is_string()) return std::string(text(data));
  if (kind.starts_with("0.a_f") || data.is_double()) return number(data);
  const auto whole = integer(data);
  return whole ? std::optional<Attribute>(*whole) : std::nullopt;
}

Declared read_type(const json::value& type) {
  const json::array& parts =
      items(at(type, "D"));  // of a tensor: element, dims, layout, lod, offset; an array has the first three of its elements
  const std::string_view kind = text(at(type, "#"));
  if ((kind != "0.t_dtensor" && kind != "1.t_dense_tensor_array") || parts.size() < 2) return {};
  std::string_view element = text(at(parts[0], "#"));
  element.remove_prefix(std::min<size_t>(element.size(), std::string_view("0.t_").size()));
  Declared declared{.dtype = dtype_of_name(element)};
  for (const json::value& dim : items(parts[1])) declared.dims.push_back(integer(dim).value_or(-1));
  return declared;
}

class PirReader {
 public:
  explicit PirReader(size_t most_operations) : left_(most_operations) { program.pir = true; }

  /// Returns the place of the block.
  size_t read_block(const json::value& block) {
    const size_t place = program.blocks.size();
    program.blocks.emplace_back();
    for (const json::value& argument : items(at(block, "args")))
      program.blocks[place].arguments.push_back(declare(at(argument, "#"), at(argument, "TT")));
    for (const json::value& op : items(at(block, "ops"))) {
      if (error) break;
      if (left_-- == 0) fail("too many operations");
      if (text(at(op, "#")) == "p")
        read_parameter(op);
      else
        read_operation(op, place);
    }
    return place;
  }

  Program program;
  std::optional<Error> error;

 private:
  using Values = std::vector<std::string>;

  void fail(std::string message) {
    if (!error) error = Error{Code::kCorrupt, std::move(message)};
  }

  /// Gives a value its name and type; a list becomes several values.
  std::string declare(const json::value& number, const json::value& type) {
    const auto id = integer(number);
    if (!id) fail("a value without a number");
    std::string name = fmt::format("%{}", id.value_or(0));
    if (text(at(type, "#")) == "0.t_vec") {
      Values parts;
      for (const json::value& part : items(at(type, "D"))) {
        parts.push_back(fmt::format("{}.{}", name, parts.size()));
        program.declared.emplace(parts.back(), read_type(part));
      }
      lists_.emplace(name, std::move(parts));
    }
    if (!program.declared.emplace(name, read_type(type)).second) fail(fmt::format("value {} is defined twice", name));
    return name;
  }

  Values expand(const std::string& name) {
    const auto list = lists_.find(name);
    return list == lists_.end() ? Values{name} : list->second;
  }

  Values operand(const json::value& value) {
    const auto id = integer(at(value, "%"));
    if (!id) fail("an operand without a number");
    if (id.value_or(0) == 0) return {};  // absent
    const std::string name = fmt::format("%{}", *id);
    const auto other = aliases_.find(name);
    return other != aliases_.end() ? Values{other->second} : expand(name);
  }

  void read_parameter(const json::value& op) {
    const json::array& attributes = items(at(op, "A"));  // is_distributed, is_parameter, need_clip, name
    if (attributes.size() < 4 || text(attributes[3]).empty()) return fail("a parameter without a name");
    const json::value& result = at(op, "O");
    const json::array& facts = items(at(op, "OA"));  // is_persistable, stop_gradient, trainable
    const std::string value = declare(at(result, "%"), at(result, "TT"));
    const bool stored = facts.empty() || integer(facts[0]).value_or(1) != 0;
    (stored ? program.parameters : program.unstored).push_back({std::string(text(attributes[3])), value});
  }

  void read_operation(const json::value& source, size_t block) {
    const std::string_view full = text(at(source, "#"));
    const size_t dot = full.find('.');
    if (dot == std::string_view::npos) return fail(fmt::format("an operation '{}' without a dialect", full));
    Operation op{.type = std::string(full.substr(dot + 1)), .name = {}, .inputs = {}, .outputs = {}, .attributes = {}, .blocks = {}};
    while (op.type.ends_with('_')) op.type.pop_back();
    for (const json::value& each : items(at(source, "A"))) {
      auto value = read_attribute(at(each, "AT"));
      const std::string_view name = text(at(each, "N"));
      if (value && !op.attributes.emplace(name, std::move(*value)).second)
        fail(fmt::format("attribute '{}' of '{}' comes twice", name, op.type));
    }
    for (const json::value& each : items(at(source, "I"))) op.inputs.push_back({{}, operand(each)});
    std::vector<std::string> results;
    const json::value& declared = at(source, "O");
    if (declared.is_object()) results.push_back(declare(at(declared, "%"), at(declared, "TT")));
    for (const json::value& each : items(declared)) results.push_back(declare(at(each, "%"), at(each, "TT")));
    op.name = results.empty() ? op.type : op.type + results[0];

    if (full.starts_with("0.") && op.type != "shadow_output") return unpack(op, results);
    if (op.type == "data" || op.type == "feed") return add_named(program.feeds, op, results);
    if (op.type == "fetch" || op.type == "shadow_output") {
      if (op.inputs.size() != 1 || op.inputs[0].values.size() != 1) return fail("'fetch' without exactly one value");
      return add_named(program.fetches, op, op.inputs[0].values);
    }
    if (op.type == "yield") {
      for (const Slot& slot : op.inputs) {
        Values& all = program.blocks[block].results;
        all.insert(all.end(), slot.values.begin(), slot.values.end());
      }
      return;
    }
    for (const std::string& result : results) op.outputs.push_back({{}, expand(result)});
    for (const json::value& region : items(at(source, "regions")))
      for (const json::value& body : items(at(region, "blocks"))) op.blocks.push_back(read_block(body));
    program.blocks[block].operations.push_back(std::move(op));
  }

  void unpack(const Operation& op, const Values& results) {
    if (op.type == "combine" && results.size() == 1) {
      Values all;
      for (const Slot& slot : op.inputs) {
        if (slot.values.size() != 1) return fail("a list of lists");
        all.push_back(slot.values[0]);
      }
      lists_[results[0]] = std::move(all);
    } else if (op.type == "split" && op.inputs.size() == 1 && op.inputs[0].values.size() == results.size()) {
      for (size_t i = 0; i < results.size(); ++i) aliases_[results[i]] = op.inputs[0].values[i];
    } else if (const auto index = op.attributes.find("index"); op.type == "slice" && op.inputs.size() == 1 && results.size() == 1 &&
                                                               index != op.attributes.end() &&
                                                               std::holds_alternative<int64_t>(index->second)) {
      const Values& list = op.inputs[0].values;
      const auto place = static_cast<size_t>(std::get<int64_t>(index->second));
      if (place >= list.size()) return fail("a part of a list that it does not have");
      aliases_[results[0]] = list[place];
    } else {
      fail(fmt::format("operation 'builtin.{}' in a form that is not known", op.type));
    }
  }

  void add_named(std::vector<Named>& list, const Operation& op, const Values& values) {
    const auto name = op.attributes.find(op.type == "shadow_output" ? "output_name" : "name"), column = op.attributes.find("col");
    const auto* const word = name == op.attributes.end() ? nullptr : std::get_if<std::string>(&name->second);
    const auto* const place = column == op.attributes.end() ? nullptr : std::get_if<int64_t>(&column->second);
    if (!word || word->empty() || values.size() != 1) return fail(fmt::format("'{}' without a name", op.type));
    list.push_back({*word, values[0], place ? *place : static_cast<int64_t>(list.size())});
  }

  size_t left_;
  std::map<std::string, Values, std::less<>> lists_;
  std::map<std::string, std::string, std::less<>> aliases_;
};

}  // namespace

Result<Program> read_pir(std::string_view source, size_t most_operations) {
  json::parse_options options;
  options.max_depth = kDeepestJson;
  json::error_code wrong;
  json::monotonic_resource memory;
  json::stream_parser parser({}, options);
  parser.reset(&memory);
  const size_t read = parser.write_some(source.data(), source.size(), wrong);
  if (!wrong && source.find_first_not_of(" \t\r\n", read) != std::string_view::npos) wrong = json::error::extra_data;
  if (!wrong) parser.finish(wrong);
  if (wrong) return Error{Code::kCorrupt, fmt::format("byte {}: no JSON ({})", read, wrong.message())};
  const json::value root = parser.release();

  const json::value& code = at(root, "base_code");
  if (text(at(code, "magic")) != "pir") return Error{Code::kCorrupt, "has no 'base_code' of PIR"};
  const int64_t version = integer(at(code, "version")).value_or(0);
  if (version < 0 || version > kNewestVersion)
    return Error{Code::kUnsupported, fmt::format("has PIR version {}; 0 to {} are read", version, kNewestVersion)};
  const json::array& regions = items(at(at(root, "program"), "regions"));
  const json::array& blocks = regions.empty() ? kNoItems : items(at(regions[0], "blocks"));
  if (blocks.size() != 1) return Error{Code::kCorrupt, "has no program of one block"};
  PirReader reader(most_operations);
  reader.read_block(blocks[0]);
  if (reader.error) return *reader.error;
  return std::move(reader.program);
}

}  // namespace serin::formats::paddle
