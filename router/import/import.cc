// import.cc: recognises the kind of a document, and checks that the result is a valid rollout.

#include "router/import/import.h"

#include <fmt/format.h>

#include <algorithm>

#include "router/import/draft.h"
#include "router/rollout/spec.h"

namespace serin::imports {
namespace {

using config::Node;

constexpr const char* kKinds = "Rollout (Argo), Canary (Flagger), InferenceService (KServe), SeldonDeployment and Experiment (Seldon)";

bool is(const Node& document, std::string_view kind, std::string_view group) {
  return text_at(document, "kind") == kind && text_at(document, "apiVersion").starts_with(group);
}

/// Nothing: not a kind that describes a rollout.
std::optional<Result<Draft>> read(const Node& document, const std::vector<Node>& all) {
  if (is(document, "Rollout", "argoproj.io/")) return read_argo(document, all);
  if (is(document, "Canary", "flagger.app/")) return read_flagger(document, all);
  if (is(document, "InferenceService", "serving.kserve.io/")) return read_kserve(document);
  if (is(document, "SeldonDeployment", "machinelearning.seldon.io/")) return read_seldon_deployment(document);
  if (is(document, "Experiment", "mlops.seldon.io/")) return read_seldon_experiment(document);
  return std::nullopt;
}

}  // namespace

Result<Import> import_rollout(const std::vector<Node>& documents, const Names& names) {
  std::optional<Result<Draft>> found;
  for (const Node& document : documents) {
    auto draft = read(document, documents);
    if (draft && found) return document.error("is a second rollout; import one at a time");
    if (draft) found = std::move(draft);
  }
  if (!found) return Error{Code::kUnsupported, fmt::format("no document of a kind that can be imported; these can: {}", kKinds)};
  SERIN_TRY(Draft draft, *std::move(found));
  if (!names.service.empty()) draft.service = names.service;
  if (!names.canary.empty()) draft.canary = names.canary;
  if (draft.service.empty()) return Error{Code::kInvalidArgument, "the document has no name: give --service NAME"};
  if (draft.canary.empty())
    return Error{Code::kInvalidArgument, "the document does not name the version to roll out: give --canary VERSION"};
  Import import{.yaml = print_draft(draft), .lost = std::move(draft.lost)};
  SERIN_TRY(const Node again, Node::parse(import.yaml, "result"));
  if (const auto spec = rollout::parse_spec(again); !spec)
    return Error{Code::kUnsupported, fmt::format("the document gives no valid rollout: {}", spec.error().message)};
  return import;
}

}  // namespace serin::imports
