#include "runtime/cli/offline/eval_records.h"

#include <cstring>

namespace serin::cli {
namespace {

class Packer {
 public:
  template <class T>
  void number(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes += value;
  }
  template <class T>
  void numbers(const std::vector<T>& values) {
    number(static_cast<uint64_t>(values.size()));
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  std::string bytes;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::string text() { return std::string(take(number<uint64_t>())); }
  template <class T>
  std::vector<T> numbers() {
    const auto count = number<uint64_t>();
    if (count > left_.size() / sizeof(T)) good_ = false;
    std::vector<T> values(good_ ? count : 0);
    if (!values.empty()) std::memcpy(values.data(), take(count * sizeof(T)).data(), count * sizeof(T));
    return values;
  }
  bool good() const { return good_; }
  size_t left() const { return left_.size(); }

 private:
  std::string_view take(uint64_t bytes) {
    if (bytes > left_.size()) good_ = false;
    if (!good_) return {};
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  std::string_view left_;
  bool good_ = true;
};

}  // namespace

std::string pack_records(const std::vector<EvalRecord>& records) {
  Packer packer;
  packer.number(static_cast<uint64_t>(records.size()));
  for (const EvalRecord& record : records) {
    packer.number(record.row);
    packer.text(record.truth);
    packer.numbers(record.truth_numbers);
    packer.text(record.slice);
    packer.number(record.picture);
    packer.number(static_cast<uint64_t>(record.answers.size()));
    for (const EvalAnswer& answer : record.answers) {
      packer.number(static_cast<uint64_t>(answer.texts.size()));
      for (const std::string& text : answer.texts) packer.text(text);
      packer.numbers(answer.numbers);
    }
  }
  return std::move(packer.bytes);
}

Result<std::vector<EvalRecord>> unpack_records(std::string_view bytes) {
  Unpacker unpacker(bytes);
  std::vector<EvalRecord> records;
  const auto count = unpacker.number<uint64_t>();
  for (uint64_t i = 0; i < count && unpacker.good(); ++i) {
    EvalRecord& record = records.emplace_back();
    record.row = unpacker.number<int64_t>();
    record.truth = unpacker.text();
    record.truth_numbers = unpacker.numbers<double>();
    record.slice = unpacker.text();
    record.picture = unpacker.number<int64_t>();
    const auto answers = unpacker.number<uint64_t>();
    for (uint64_t model = 0; model < answers && unpacker.good(); ++model) {
      EvalAnswer& answer = record.answers.emplace_back();
      const auto texts = unpacker.number<uint64_t>();
      for (uint64_t text = 0; text < texts && unpacker.good(); ++text) answer.texts.push_back(unpacker.text());
      answer.numbers = unpacker.numbers<float>();
    }
  }
  if (!unpacker.good() || unpacker.left() > 0) return Error{Code::kCorrupt, "a stored block is damaged"};
  return records;
}

}  // namespace serin::cli
