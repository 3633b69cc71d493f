// text_regex.cc: RegexFullMatch and RegexReplace through RE2, whose time is linear in the text whatever the pattern: a request cannot make it run away.

#include <re2/re2.h>

#include <memory>

#include "kernels/ref/text_families.h"

namespace serin::kernels::ref {

Prepared regex_full_match(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString || desc.outputs[0].dtype != DType::kBool) return refuse(why, "strings go in, bool comes out");
  const std::string pattern = desc.attributes.text("pattern", "");
  RE2::Options options(RE2::Quiet);
  auto regex = std::make_shared<const RE2>(pattern, options);
  if (!regex->ok()) return refuse(why, "pattern '" + pattern + "' is not a regular expression of RE2: " + regex->error());
  return make_kernel([regex = std::move(regex)](Stream&, Inputs in, Outputs out) -> Fault {
    bool* y = out[0].as<bool>();
    for (const std::string& text : strings_of(in[0])) *y++ = RE2::FullMatch(text, *regex);
    return kOk;
  });
}

Prepared regex_replace(const GenericDesc& desc, std::string& why) {
  if (desc.inputs[0].dtype != DType::kString || desc.outputs[0].dtype != DType::kString) return refuse(why, "strings go in and out");
  const std::string pattern = desc.attributes.text("pattern", "");
  RE2::Options options(RE2::Quiet);
  auto regex = std::make_shared<const RE2>(pattern, options);
  if (!regex->ok()) return refuse(why, "pattern '" + pattern + "' is not a regular expression of RE2: " + regex->error());
  std::string rewrite = desc.attributes.text("rewrite", ""), problem;
  if (!regex->CheckRewriteString(rewrite, &problem)) return refuse(why, "rewrite '" + rewrite + "': " + problem);
  const bool all = desc.attributes.integer("all", 1) != 0;
  return make_kernel([regex = std::move(regex), rewrite = std::move(rewrite), all](Stream&, Inputs in, Outputs out) -> Fault {
    auto* y = out[0].as<std::string>();
    for (const std::string& text : strings_of(in[0])) {
      *y = text;
      if (all)
        RE2::GlobalReplace(y, *regex, rewrite);
      else
        RE2::Replace(y, *regex, rewrite);
      ++y;
    }
    return kOk;
  });
}

}  // namespace serin::kernels::ref
