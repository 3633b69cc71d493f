// cast.cc: Cast between any two element types. functors.h converts an element of an ordinary type, narrow.h one of a narrow type. Strings
// are written as NumPy writes them: the shortest digits that give the number back, "inf", "nan", "True".
//
// Ordinary types are kernels::Cast, which has no attributes. A cast that needs some (saturate, round_mode) or meets narrow types or strings comes by
// name: kernels::Generic "Cast".

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "kernels/narrow.h"
#include "kernels/ref/generic.h"
#include "kernels/ref/quant.h"

namespace serin::kernels::ref {

namespace {

/// Python's repr of a float: plain digits from 1e-4 up to 1e16, else with an exponent.
template <class F>
std::string spell_float(F x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  const F magnitude = std::fabs(x);
  const bool plain = x == 0 || (magnitude >= F(1e-4) && magnitude < F(1e16));
  std::array<char, 64> text{};
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), x, plain ? std::chars_format::fixed : std::chars_format::scientific);
  std::string result(text.data(), end.ptr);
  if (plain && result.find('.') == std::string::npos) result += ".0";
  return result;
}

template <class T>
std::string spell(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return x ? "True" : "False";
  else if constexpr (kIsHalfKind<T>)
    return spell_float(to_float(x));
  else if constexpr (std::is_floating_point_v<T>)
    return spell_float(x);
  else
    return std::to_string(x);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  return text;
}

/// A number in plain or scientific notation, "inf" and "nan" in any case. Integers are exact in 64 bits.
template <class T>
std::optional<T> parse_number(const std::string& string) {
  const std::string_view text = trimmed(string);
  const char* const end = text.data() + text.size();
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
    Wide whole = 0;
    if (const auto parsed = std::from_chars(text.data(), end, whole); parsed.ec == std::errc() && parsed.ptr == end)
      return kernels::cast<T>(whole);
  }
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "True" || text == "true") return true;
    if (text == "False" || text == "false") return false;
  }
  double number = 0;
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ptr != end || text.empty()) return std::nullopt;
  if (parsed.ec == std::errc::result_out_of_range) number = std::strtod(std::string(text).c_str(), nullptr);  // 0 or an infinity
  return kernels::cast<T>(number);
}

struct Conversion {
  bool saturate = true;
  RoundMode round = RoundMode::kUp;
};

/// One element of an ordinary type to the byte of a narrow one.
template <class S>
uint8_t to_narrow(DType to, S x, const Conversion& how) {
  if (is_narrow_integer(to)) return narrow_from_integer(to, kernels::cast<int64_t>(x));
  const double value = static_cast<double>(load(x));
  return to == DType::kFloat8E8M0 ? e8m0_from_double(value, how.saturate, how.round) : narrow_from_double(to, value, how.saturate);
}

Fault not_a_number(const std::string& text, DType to) {
  constexpr size_t kShown = 40;
  return "'" + text.substr(0, kShown) + "' is not a number that " + std::string(dtype_name(to)) + " could hold";
}

Prepared string_to(DType to, const Conversion& how, std::string& why) {
  if (is_narrow(to)) {
    return make_kernel([to, how](Stream&, Inputs in, Outputs out) -> Fault {
      const auto* x = in[0].as<const std::string>();
      for (int64_t i = 0; i < in[0].elements(); ++i) {
        const auto number = parse_number<double>(x[i]);
        if (!number) return not_a_number(x[i], to);
        out[0].as<uint8_t>()[i] = to_narrow(to, *number, how);
      }
      return kOk;
    });
  }
  return visit_dtype(to, [&]<class D>(Element<D>) -> Prepared {
    if constexpr (std::is_void_v<D>) {
      return refuse_dtype(why, to);
    } else {
      return make_kernel([to](Stream&, Inputs in, Outputs out) -> Fault {
        const auto* x = in[0].as<const std::string>();
        for (int64_t i = 0; i < in[0].elements(); ++i) {
          const auto number = parse_number<D>(x[i]);
          if (!number) return not_a_number(x[i], to);
          out[0].as<D>()[i] = *number;
        }
        return kOk;
      });
    }
  });
}

Prepared to_string(DType from, std::string& why) {
  if (is_narrow(from)) {
    return make_kernel([from](Stream&, Inputs in, Outputs out) -> Fault {
      for (int64_t i = 0; i < in[0].elements(); ++i) {
        const double value = narrow_to_double(from, in[0].as<const uint8_t>()[i]);
        out[0].as<std::string>()[i] = is_narrow_integer(from) ? spell(static_cast<int64_t>(value)) : spell(value);
      }
      return kOk;
    });
  }
  return visit_dtype(from, [&]<class S>(Element<S>) -> Prepared {
    if constexpr (std::is_void_v<S>) {
      return refuse_dtype(why, from);
    } else {
      return make_kernel([](Stream&, Inputs in, Outputs out) -> Fault {
        for (int64_t i = 0; i < in[0].elements(); ++i) out[0].as<std::string>()[i] = spell(in[0].as<const S>()[i]);
        return kOk;
      });
    }
  });
}

/// A byte has 256 values: a table says what each becomes.
template <class D>
Prepared from_table(const std::array<D, 256>& table) {
  return make_kernel([table](Stream&, Inputs in, Outputs out) -> Fault {
    const auto* x = in[0].as<const uint8_t>();
    for (int64_t i = 0; i < in[0].elements(); ++i) out[0].as<D>()[i] = table[x[i]];
    return kOk;
  });
}

Prepared narrow_to(DType from, DType to, const Conversion& how, std::string& why) {
  const auto value = [from](size_t byte) { return narrow_to_double(from, static_cast<uint8_t>(byte)); };
  if (is_narrow(to)) {
    std::array<uint8_t, 256> table{};
    for (size_t byte = 0; byte < table.size(); ++byte) table[byte] = to_narrow(to, value(byte), how);
    return from_table(table);
  }
  return visit_dtype(to, [&]<class D>(Element<D>) -> Prepared {
    if constexpr (std::is_void_v<D>) {
      return refuse_dtype(why, to);
    } else {
      std::array<D, 256> table{};
      for (size_t byte = 0; byte < table.size(); ++byte) {
        if (is_narrow_integer(from))
          table[byte] = kernels::cast<D>(static_cast<int64_t>(value(byte)));  // wraps, as integers do
        else
          table[byte] = kernels::cast<D>(value(byte));
      }
      return from_table(table);
    }
  });
}

Prepared to_narrow(DType from, DType to, const Conversion& how, std::string& why) {
  return visit_dtype(from, [&]<class S>(Element<S>) -> Prepared {
    if constexpr (std::is_void_v<S>) {
      return refuse_dtype(why, from);
    } else {
      return make_kernel([to, how](Stream&, Inputs in, Outputs out) -> Fault {
        const auto x = in[0].span<const S>();
        for (size_t i = 0; i < x.size(); ++i) out[0].as<uint8_t>()[i] = to_narrow(to, x[i], how);
        return kOk;
      });
    }
  });
}

template <class S, class D, bool kSaturate>
Fault convert(Stream&, Inputs in, Outputs out) {
  const auto x = in[0].span<const S>();
  const auto y = out[0].span<D>();
  for (size_t i = 0; i < x.size(); ++i) y[i] = kSaturate ? saturate<D>(x[i]) : kernels::cast<D>(x[i]);
  return kOk;
}

}  // namespace

Prepared cast(const OpDesc& desc, PrepareContext&, std::string& why) {
  if (!has_operands(desc, 1, why)) return nullptr;
  const DType from = desc.inputs[0].dtype;
  const DType to = desc.outputs[0].dtype;
  return visit_dtype(from, [&]<class S>(Element<S>) -> Prepared {
    return visit_dtype(to, [&]<class D>(Element<D>) -> Prepared {
      if constexpr (std::is_void_v<S> || std::is_void_v<D>) {
        return refuse(why, "no cast from " + std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
      } else {
        return std::get<Cast>(desc.op).saturate ? make_kernel(convert<S, D, true>) : make_kernel(convert<S, D, false>);
      }
    });
  });
}

Prepared cast_by_name(const GenericDesc& desc, std::string& why) {
  if (desc.inputs.size() != 1 || desc.outputs.size() != 1) return refuse(why, "expects one input and one output");
  const DType from = desc.inputs[0].dtype, to = desc.outputs[0].dtype;
  const auto round = find_round_mode(desc.attributes.text("round_mode", "up"));
  if (!round) return refuse(why, "round_mode is not up, down or nearest");
  const Conversion how{desc.attributes.integer("saturate", 1) != 0, *round};
  if (from == DType::kString) return string_to(to, how, why);
  if (to == DType::kString) return to_string(from, why);
  if (is_narrow(from)) return narrow_to(from, to, how, why);
  if (is_narrow(to)) return to_narrow(from, to, how, why);
  return refuse(why, "casts narrow types and strings only");
}

/// Where bytes differ in memory although the bits are the same: signed integers of four and two bits.
Prepared bit_cast(const GenericDesc& desc, std::string& why) {
  if (desc.inputs.size() != 1 || desc.outputs.size() != 1) return refuse(why, "expects one input and one output");
  const DType from = desc.inputs[0].dtype, to = desc.outputs[0].dtype;
  if (dtype_bits(from) != dtype_bits(to) || dtype_size(from) != 1) return refuse(why, "types of one byte and of as many bits only");
  std::array<uint8_t, 256> table{};
  for (size_t byte = 0; byte < table.size(); ++byte)
    table[byte] = to == DType::kBool ? byte != 0 : narrow_byte(to, static_cast<uint8_t>(byte));
  return from_table(table);
}

}  // namespace serin::kernels::ref
