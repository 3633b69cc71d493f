// text_example.cc: ParseExample: serialized tf.Example messages -> the tensors of their features.
//
//   Example { Features features = 1; }   Features { map<string, Feature> feature = 1; }
//   Feature { one of BytesList = 1, FloatList = 2, Int64List = 3 }, each { repeated value = 1; }
//
// Each message is walked once to find the features that the model asks for: of two with one name the last counts, others are skipped. Their
// values are then read straight into the outputs. The number of values of a listed feature is known only afterwards, so the kernel is called
// twice if there are any (backend.h). The bytes are a client's: each length is checked against the bytes left.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/ref/text_families.h"
#include "kernels/ref/wire_fields.h"

namespace serin::kernels::ref {

namespace {

struct Feature {
  uint32_t kind = 0;  ///< the number of its list in the message; 0: the feature has no list, or is missing
  std::string_view list;
};

template <class T>
inline constexpr uint32_t kKind = std::is_same_v<T, std::string> ? 1
                                  : std::is_same_v<T, float>     ? 2
                                                                 : 3;
constexpr std::string_view kKindNames[] = {"nothing", "bytes", "floats", "integers"};

/// use(value) for each; false if the list is damaged.
template <class T, class Use>
bool each_value(std::string_view list, const Use& use) {
  Fields in(list);
  while (in.next()) {
    if (in.number() != 1) continue;
    std::string_view packed = in.bytes();
    if constexpr (std::is_same_v<T, std::string>) {
      if (in.wire() != Fields::kBytes) return false;
      use(packed);
    } else if constexpr (std::is_same_v<T, float>) {
      if ((in.wire() != Fields::kBytes && in.wire() != Fields::kFixed32) || packed.size() % sizeof(float) != 0) return false;
      for (; !packed.empty(); packed.remove_prefix(sizeof(float))) {
        float value = 0;
        std::memcpy(&value, packed.data(), sizeof value);  // little-endian, like every supported machine
        use(value);
      }
    } else if (in.wire() == Fields::kVarint) {
      use(static_cast<int64_t>(in.scalar()));
    } else {
      if (in.wire() != Fields::kBytes) return false;
      for (uint64_t value = 0; !packed.empty(); use(static_cast<int64_t>(value)))
        if (!Fields::varint(packed, value)) return false;
    }
  }
  return !in.damaged();
}

/// What the model asks for: dense features first, then sparse ones, then ragged ones.
struct Wanted {
  std::vector<std::string> keys;
  std::vector<DType> types;
  size_t dense = 0, sparse = 0;
  std::unordered_map<std::string_view, size_t> places;  ///< of the keys

  size_t listed() const { return keys.size() - dense; }
  size_t outputs() const { return dense + 3 * sparse + 2 * (listed() - sparse); }
  /// The place of the values of a listed feature among the outputs.
  size_t values_of(size_t listed) const { return listed < sparse ? dense + 3 * listed + 1 : dense + sparse + 2 * listed; }
};

template <class F>
Fault visit_type(DType dtype, const F& f) {
  if (dtype == DType::kFloat32) return f(Element<float>{});
  return dtype == DType::kInt64 ? f(Element<int64_t>{}) : f(Element<std::string>{});
}

bool find_features(const Wanted& wanted, std::string_view example, std::vector<Feature>& found) {
  std::ranges::fill(found, Feature{});
  Fields top(example);
  while (top.next()) {
    if (top.number() != 1) continue;
    if (top.wire() != Fields::kBytes) return false;
    Fields features(top.bytes());
    while (features.next()) {
      if (features.number() != 1) continue;
      if (features.wire() != Fields::kBytes) return false;
      std::string_view key, value;
      Fields entry(features.bytes());
      while (entry.next()) {
        if (entry.number() > 2) continue;
        if (entry.wire() != Fields::kBytes) return false;
        (entry.number() == 1 ? key : value) = entry.bytes();
      }
      if (entry.damaged()) return false;
      const auto place = wanted.places.find(key);
      if (place == wanted.places.end()) continue;
      Feature feature;
      Fields lists(value);
      while (lists.next()) {
        if (lists.number() > 3) continue;
        if (lists.wire() != Fields::kBytes) return false;
        feature = {lists.number(), lists.bytes()};
      }
      if (lists.damaged()) return false;
      found[place->second] = feature;
    }
    if (features.damaged()) return false;
  }
  return !top.damaged();
}

/// One call of the kernel.
class Parsing {
 public:
  Parsing(const Wanted& wanted, Inputs in, Outputs out)
      : wanted_(wanted),
        in_(in),
        out_(out),
        rows_(in[0].elements()),
        found_(wanted.keys.size()),
        counts_(wanted.listed()),
        totals_(counts_.size()) {
    for (size_t i = 0; i < counts_.size(); ++i) room_.push_back(values_of(i).data ? values_of(i).shape.elements() : 0);
  }

  Fault run() {
    const auto examples = strings_of(in_[0]);
    for (row_ = 0; row_ < rows_; ++row_) {
      if (!find_features(wanted_, examples[static_cast<size_t>(row_)], found_)) return fault("is no tf.Example, or a damaged one");
      for (size_t i = 0; i < found_.size(); ++i) {
        const Fault bad = visit_type(wanted_.types[i], [&]<class T>(Element<T>) { return i < wanted_.dense ? dense<T>(i) : listed<T>(i); });
        if (bad) return bad;
      }
    }
    for (size_t i = 0; i < counts_.size(); ++i) i < wanted_.sparse ? end_sparse(i) : end_ragged(i);
    return kOk;
  }

 private:
  Fault fault(const std::string& problem) const { return "element " + std::to_string(row_) + " " + problem; }
  Fault fault(size_t feature, const std::string& problem) const { return fault("has feature '" + wanted_.keys[feature] + "' " + problem); }
  TensorView& values_of(size_t i) const { return out_[wanted_.values_of(i)]; }

  /// Whether the feature has values; a fault if they are of another kind.
  template <class T>
  Fault check_kind(size_t i) const {
    if (found_[i].kind == 0 || found_[i].kind == kKind<T>) return kOk;
    return fault(i, "with " + std::string(kKindNames[found_[i].kind]) + ", the model takes " + std::string(kKindNames[kKind<T>]));
  }

  template <class T>
  Fault dense(size_t i) {
    if (const Fault bad = check_kind<T>(i)) return bad;
    const int64_t size = out_[i].elements() / rows_;
    T* const to = out_[i].template as<T>() + row_ * size;
    if (found_[i].kind == 0) {
      const TensorView* const standard = operand(in_, i + 1);
      const int64_t given = standard ? standard->elements() : 0;
      if (given == 0) return fault("has no feature '" + wanted_.keys[i] + "', which is required");
      if (given != size && given != 1) return "the default of feature '" + wanted_.keys[i] + "' has " + std::to_string(given) + " values";
      for (int64_t at = 0; at < size; ++at) to[at] = standard->as<const T>()[given == 1 ? 0 : at];
      return kOk;
    }
    int64_t count = 0;
    const bool whole = each_value<T>(found_[i].list, [&](const auto& value) {
      if (count < size) to[count] = value;
      ++count;
    });
    if (!whole) return fault(i, "with a damaged list");
    if (count == size) return kOk;
    return fault(i, "with " + std::to_string(count) + " values, the model takes " + std::to_string(size));
  }

  template <class T>
  Fault listed(size_t feature) {
    if (const Fault bad = check_kind<T>(feature)) return bad;
    const size_t i = feature - wanted_.dense;
    T* const to = values_of(i).template as<T>();
    const int64_t before = totals_[i], room = room_[i];
    int64_t total = before;
    const auto append = [&](const auto& value) {
      if (total < room) to[total] = value;
      ++total;
    };
    if (found_[feature].kind != 0 && !each_value<T>(found_[feature].list, append)) return fault(feature, "with a damaged list");
    totals_[i] = total;
    counts_[i].push_back(total - before);
    return kOk;
  }

  /// Indices [values, rank], values, shape [rank]; of a single message the rank is 1.
  void end_sparse(size_t i) {
    const size_t at = wanted_.values_of(i);
    const auto rank = static_cast<int64_t>(in_[0].shape.rank() + 1);
    TensorView &indices = out_[at - 1], &shape = out_[at + 1];
    indices.shape = Shape{totals_[i], rank};
    out_[at].shape = Shape{totals_[i]};
    if (shape.data) {
      auto* const sizes = shape.as<int64_t>();
      if (rank == 2) sizes[0] = rows_;
      sizes[rank - 1] = counts_[i].empty() ? 0 : std::ranges::max(counts_[i]);
    }
    if (!indices.data) return;
    auto* to = indices.as<int64_t>();
    for (size_t row = 0; row < counts_[i].size(); ++row) {
      for (int64_t place = 0; place < counts_[i][row]; ++place) {
        if (rank == 2) *to++ = static_cast<int64_t>(row);
        *to++ = place;
      }
    }
  }

  /// Values, and where each row begins: [rows + 1].
  void end_ragged(size_t i) {
    values_of(i).shape = Shape{totals_[i]};
    auto* const splits = out_[wanted_.values_of(i) + 1].as<int64_t>();
    if (!splits) return;
    splits[0] = 0;
    for (size_t row = 0; row < counts_[i].size(); ++row) splits[row + 1] = splits[row] + counts_[i][row];
  }

  const Wanted& wanted_;
  const Inputs in_;
  const Outputs out_;
  const int64_t rows_;
  int64_t row_ = 0;
  std::vector<Feature> found_;                // of the current message, by key
  std::vector<std::vector<int64_t>> counts_;  // by listed feature: values of each row
  std::vector<int64_t> totals_, room_;
};

}  // namespace

Prepared parse_example(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString || desc.inputs[0].shape.rank() > 1) return refuse(why, "messages must be [n] or [] strings");
  auto wanted = std::make_shared<Wanted>();
  wanted->keys = desc.attributes.texts("keys");
  const auto sparse = desc.attributes.integer("sparse", 0), ragged = desc.attributes.integer("ragged", 0);
  const auto keys = static_cast<int64_t>(wanted->keys.size());
  if (sparse < 0 || ragged < 0 || sparse > keys || ragged > keys - sparse) return refuse(why, "there are more listed features than keys");
  wanted->dense = static_cast<size_t>(keys - sparse - ragged);
  wanted->sparse = static_cast<size_t>(sparse);
  for (const std::string& type : desc.attributes.texts("types")) {
    const bool known = type == "f32" || type == "i64" || type == "str";
    if (!known) return refuse(why, "a feature of type '" + type + "', it must be f32, i64 or str");
    wanted->types.push_back(type == "f32" ? DType::kFloat32 : type == "i64" ? DType::kInt64 : DType::kString);
  }
  if (wanted->types.size() != wanted->keys.size()) return refuse(why, "each key needs a type");
  if (desc.outputs.size() != wanted->outputs()) return refuse(why, "there are " + std::to_string(desc.outputs.size()) + " outputs");
  for (size_t i = 0; i < wanted->keys.size(); ++i) {
    if (!wanted->places.emplace(wanted->keys[i], i).second) return refuse(why, "feature '" + wanted->keys[i] + "' occurs twice");
    const size_t output = i < wanted->dense ? i : wanted->values_of(i - wanted->dense);
    if (desc.outputs[output].dtype != wanted->types[i])
      return refuse(why, "feature '" + wanted->keys[i] + "' has an output of another type");
    if (i < wanted->dense && desc.has(i + 1) && desc.inputs[i + 1].dtype != wanted->types[i])
      return refuse(why, "feature '" + wanted->keys[i] + "' has a default of another type");
  }
  return make_kernel([wanted](Stream&, Inputs in, Outputs out) -> Fault { return Parsing(*wanted, in, out).run(); });
}

}  // namespace serin::kernels::ref
