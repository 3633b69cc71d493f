// label_selector.h: label selectors of Kubernetes, as they stand in URLs: "service=digits,version in (1,2),!old".
//
//   SERIN_TRY(const auto selector, LabelSelector::parse("service=digits"));
//   selector.matches({{"service", "digits"}, {"version", "1"}});   // true
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/result.h"

namespace serin::router {

using LabelMap = std::map<std::string, std::string, std::less<>>;

class LabelSelector {
 public:
  /// An empty text matches everything. Values may have any character except spaces, commas, brackets and any of = ! < >.
  static Result<LabelSelector> parse(std::string_view text);
  bool matches(const LabelMap& labels) const;

 private:
  /// As in Kubernetes, a label that does not exist has none of the values.
  struct Requirement {
    std::string key;
    std::vector<std::string> values;  ///< empty: the label exists
    bool negated = false;
  };
  static Result<Requirement> parse_one(std::string_view text);

  std::vector<Requirement> requirements_;
};

}  // namespace serin::router
