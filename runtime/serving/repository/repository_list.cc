// repository_list.cc: which places are served changes while it serves, by a file that lists them or by a client's order.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/log.h"
#include "runtime/serving/repository/repository.h"

namespace serin::serving {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kRetryAfter{10};

std::vector<FileStamp> stamps_of(const ModelList& list) {
  std::vector<FileStamp> stamps;
  for (const std::string& file : list.files ? list.files() : std::vector{list.path}) stamps.push_back(FileStamp::of(file));
  return stamps;
}

}  // namespace

/// Before anything is loaded. Of a list one place has to be there, where none is waited for.
Status Repository::check_places() {
  if (!source_.list.path.empty() || source_.places_may_come) roots_ = present_of(std::move(roots_));
  for (const ModelRoot& root : roots_.empty() ? absent_ : roots_) {
    const Status there = check_root(root);
    if (!there && !(source_.places_may_come && there.error().code == Code::kNotFound)) return there.error();
  }
  SERIN_CHECK(check_names(roots_));
  return check_labels(granted_);
}

/// As TensorFlow Serving refuses it, and in its words; but a version that is to be loaded together with its label is there early enough.
Status Repository::check_labels(const std::vector<ModelRoot>& roots) {
  if (!source_.labels_need_versions) return {};
  for (const ModelRoot& root : roots) {
    if (root.labels.empty()) continue;
    const auto files = lister_.find_model(root, root.name);
    const std::vector<uint64_t> there = files ? files->numbers() : std::vector<uint64_t>();
    const std::vector<uint64_t> chosen = root.versions.value_or(host_.defaults.versions).choose(there);
    for (const auto& [label, number] : root.labels)
      if (std::ranges::find(chosen, number) == chosen.end())
        return Error{
            Code::kFailedPrecondition,
            fmt::format("Request to assign label to version {} of model {}, which is not currently available for inference (label '{}')",
                        number, root.name, label)};
  }
  return {};
}

/// The others are served once they are there: one that is missing takes none of the others with it.
std::vector<ModelRoot> Repository::present_of(std::vector<ModelRoot> roots) {
  absent_.clear();
  std::erase_if(roots, [this](const ModelRoot& root) {
    const Status there = check_root(root);
    if (there) return false;
    lister_.remarks.say(fmt::format("model '{}' is not served yet: {}", root.name, there.error().message));
    absent_.push_back(root);
    return true;
  });
  return roots;
}

/// As often as was asked for. A list that differs from look to look is being written.
void Repository::watch_list() {
  std::vector<FileStamp> now = stamps_of(source_.list);
  if (now != list_seen_) return list_seen_.swap(now);
  if (now != list_read_ || std::chrono::steady_clock::now() >= list_retry_) return (void)read_list();  // said where it happened
  take_what_has_come();
}

/// Places that were not there yet.
void Repository::take_what_has_come() {
  if (std::ranges::none_of(absent_, [](const ModelRoot& root) { return check_root(root).has_value(); })) return;
  roots_ = present_of(granted_);
  scan(Look::kAsked);
}

/// Whether anything is to be served otherwise than before. What makes no sense changes nothing, and is said.
Result<bool> Repository::read_list() {
  const ModelList& list = source_.list;
  list_read_ = stamps_of(list);
  list_retry_ = std::chrono::steady_clock::time_point::max();
  auto listed = list.read(list.path);
  const Status fine = listed ? check_labels(listed->roots) : Status(listed.error());
  if (!fine) {
    if (list.files) list_retry_ = std::chrono::steady_clock::now() + kRetryAfter;
    log::error("{}{}; what is loaded goes on serving", listed ? list.path + ": " : "", fine.error().message);
    return fine.error();
  }
  for (const std::string& remark : listed->remarks) lister_.remarks.say(remark);
  if (list_holds_ && listed->roots == granted_) return false;
  log::info("{}: read again", list.path);
  granted_ = std::move(listed->roots);
  roots_ = present_of(granted_);
  list_holds_ = true;
  scan(Look::kAsked);
  return true;
}

void Repository::reload(std::shared_ptr<bool> changed, Done done) {
  give([this, changed = std::move(changed)] { return reload_now(*changed); }, std::move(done));
}

Status Repository::reload_now(bool& changed) {
  const auto before = catalogue_.get();
  if (!source_.list.path.empty()) {
    SERIN_TRY(changed, read_list());
  }
  if (!changed) scan(Look::kAsked);
  const auto now = catalogue_.get();
  changed |= now != before;
  if (!absent_.empty()) return Error{Code::kUnavailable, fmt::format("model '{}' is not there", absent_.front().name)};
  for (const auto& [name, model] : now->models)
    if (std::ranges::any_of(model.versions, [](const auto& held) { return !held.second.reason.empty(); }))
      return Error{Code::kUnavailable, fmt::format("model '{}' is not ready: {}", name, reason_of(name))};
  return {};
}

void Repository::serve_roots(std::vector<ModelRoot> roots, Done done) {
  if (source_.control == Control::kExplicit)
    return done(Error{Code::kFailedPrecondition, "the model control is 'explicit' here: models are loaded and unloaded one by one"});
  give([this, roots = std::move(roots)] { return serve_now(roots); }, std::move(done));
}

/// In a place that the server was started with or its list names, or beside the folder of such a model: no client leads it anywhere else.
bool Repository::may_serve(const std::string& path) const {
  std::error_code unreadable;
  const fs::path wanted = fs::weakly_canonical(path, unreadable);
  const auto inside = [&](const fs::path& place) {
    return !unreadable && place.has_relative_path() && std::ranges::mismatch(place, wanted).in1 == place.end();
  };
  return std::ranges::any_of(granted_, [&](const ModelRoot& root) {
    const fs::path place = fs::weakly_canonical(root.path, unreadable);
    return inside(place) || (!root.name.empty() && inside(place.parent_path()));
  });
}

Status Repository::serve_now(std::vector<ModelRoot> roots) {
  std::set<std::string> names;
  for (const ModelRoot& root : roots) {
    const auto refuse = [&](std::string_view why) {
      return Error{Code::kInvalidArgument, fmt::format("model '{}': {}", root.name.substr(0, 256), why)};
    };
    if (!is_model_name(root.name)) return refuse(fmt::format("a name {}", kModelNameRule));
    if (!names.insert(root.name).second) return refuse("it is named twice");
    if (!may_serve(root.path)) return refuse("its base_path is no place that this server was started with");
    if (!fs::is_directory(root.path)) return refuse("there is no folder at its base_path");
  }
  if (roots.empty()) return Error{Code::kInvalidArgument, "model_config_list names no model"};
  SERIN_CHECK(check_labels(roots));
  roots_ = std::move(roots);
  absent_.clear();
  list_holds_ = false;
  scan(Look::kAsked);
  for (const std::string& name : names)
    if (!catalogue_.get()->find(name, ""))
      return Error{Code::kUnavailable, fmt::format("model '{}' is not ready: {}", name, reason_of(name))};
  return {};
}

}  // namespace serin::serving
