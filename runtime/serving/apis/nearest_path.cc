// nearest_path.cc: the path is laid beside each of those that there are, word by word. A word may be mistyped or go by another protocol's name, one may be missing
// (/models/digits/infer), and behind a model's own path one too many may stand; each costs, and the cheapest is what was meant.

#include "runtime/serving/apis/nearest_path.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/base/nearest_name.h"
#include "runtime/serving/apis/frontend.h"

namespace serin::serving {
namespace {

using Words = std::vector<std::string_view>;

constexpr size_t kLongest = 512;  // of a path that is looked at
constexpr size_t kMostWords = 12, kMostNamed = 2;
constexpr int kMostCost = 4, kOther = 1, kMissing = 2, kTooMany = 3, kUnknownModel = 3;

struct Known {
  std::string_view method, path;
};
constexpr Known kKnown[] = {
    {"GET", "/v2"},
    {"GET", "/v2/health/live"},
    {"GET", "/v2/health/ready"},
    {"GET", "/v2/models"},
    {"GET", "/v2/models/stats"},
    {"GET", "/v2/models/<model>"},
    {"POST", "/v2/models/<model>/infer"},
    {"POST", "/v2/models/<model>/generate"},
    {"POST", "/v2/models/<model>/generate_stream"},
    {"GET", "/v2/models/<model>/ready"},
    {"GET", "/v2/models/<model>/config"},
    {"GET", "/v2/models/<model>/stats"},
    {"GET", "/v2/models/<model>/trace/setting"},
    {"GET", "/v2/models/<model>/versions/<version>"},
    {"POST", "/v2/models/<model>/versions/<version>/infer"},
    {"POST", "/v2/models/<model>/versions/<version>/generate"},
    {"POST", "/v2/models/<model>/versions/<version>/generate_stream"},
    {"GET", "/v2/models/<model>/versions/<version>/ready"},
    {"GET", "/v2/models/<model>/versions/<version>/config"},
    {"GET", "/v2/models/<model>/versions/<version>/stats"},
    {"GET", "/v2/logging"},
    {"GET", "/v2/trace/setting"},
    {"POST", "/v2/repository/index"},
    {"POST", "/v2/repository/models/<model>/load"},
    {"POST", "/v2/repository/models/<model>/unload"},
    {"GET", "/v2/systemsharedmemory/status"},
    {"POST", "/v2/systemsharedmemory/unregister"},
    {"GET", "/v2/systemsharedmemory/region/<region>/status"},
    {"POST", "/v2/systemsharedmemory/region/<region>/register"},
    {"POST", "/v2/systemsharedmemory/region/<region>/unregister"},
    {"GET", "/v1/models/<model>"},
    {"GET", "/v1/models/<model>/metadata"},
    {"POST", "/v1/models/<model>:predict"},
    {"POST", "/v1/models/<model>:classify"},
    {"POST", "/v1/models/<model>:regress"},
    {"GET", "/v1/models/<model>/versions/<version>"},
    {"GET", "/v1/models/<model>/versions/<version>/metadata"},
    {"POST", "/v1/models/<model>/versions/<version>:predict"},
    {"POST", "/v1/models/<model>/versions/<version>:classify"},
    {"POST", "/v1/models/<model>/versions/<version>:regress"},
    {"POST", "/<model>/prediction"},
    {"POST", "/GeneralModelService/inference"},
};

/// What servers and their probes call the same.
constexpr std::string_view kAlike[][6] = {
    {"infer", "predict", "inference", "prediction", "invocations", "invoke"},
    {"ready", "readiness", "readyz", "status", "state"},
    {"live", "liveness", "livez", "healthz", "alive"},
    {"stats", "statistics"},
    {"config", "configuration"},
    {"generate_stream", "stream"},
};
constexpr std::string_view kAboutModel[] = {"metadata", "info", "describe"};  // which V2 tells at the model's own path

/// What stands between the slashes, and behind the last colon of the last, with the colon.
Words words_of(std::string_view path) {
  Words words;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0) words.push_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  if (words.empty()) return words;
  const std::string_view last = words.back();
  if (const size_t colon = last.rfind(':'); colon != std::string_view::npos && colon > 0) {
    words.back() = last.substr(0, colon);
    words.push_back(last.substr(colon));
  }
  return words;
}

std::string_view without_colon(std::string_view word) { return word.substr(word.starts_with(':') ? 1 : 0); }
bool has_colon(std::string_view word) { return word.starts_with(':'); }
bool is_name(std::string_view known) { return known.starts_with('<'); }

bool alike(std::string_view a, std::string_view b) {
  return std::ranges::any_of(kAlike, [&](const auto& group) {
    const auto has = [&](std::string_view word) {
      return std::ranges::any_of(group, [&](std::string_view one) { return !one.empty() && equal_but_for_case(one, word); });
    };
    return has(a) && has(b);
  });
}

/// Of a written word in a known one's place; nothing: it is another.
std::optional<int> cost_of(std::string_view written, std::string_view known, const Catalogue& catalogue) {
  if (is_name(known)) {
    if (has_colon(written)) return std::nullopt;
    if (known == "<model>") return catalogue.models.contains(written) ? 0 : kUnknownModel;
    const bool number = std::ranges::all_of(written, [](char c) { return c >= '0' && c <= '9'; });
    return known == "<version>" && !number ? std::nullopt : std::optional(0);
  }
  const std::string_view word = without_colon(written), other = without_colon(known);
  if (equal_but_for_case(word, other)) return has_colon(written) == has_colon(known) ? 0 : kOther;
  if (alike(word, other)) return kOther;
  const size_t most = std::max<size_t>(other.size() / 3, 1);
  if (word.size() > other.size() + most) return std::nullopt;
  const size_t distance = edit_distance(word, other);
  return distance <= most ? std::optional(static_cast<int>(distance)) : std::nullopt;
}

struct Candidate {
  int cost = 0;
  std::string path;

  Candidate with(int more, std::string_view word) const { return {cost + more, path + (has_colon(word) ? "" : "/") + std::string(word)}; }
};

void keep_cheaper(std::optional<Candidate>& held, Candidate candidate) {
  if (!held || candidate.cost < held->cost) held = std::move(candidate);
}

/// The known path with the names that were written.
std::optional<Candidate> laid_beside(const Words& written, const Words& known, const Catalogue& catalogue) {
  std::vector<std::optional<Candidate>> row(written.size() + 1);  // by how many written words are accounted for
  row[0] = Candidate();
  for (const std::string_view word : known) {
    std::vector<std::optional<Candidate>> next(row.size());
    for (size_t i = 0; i < row.size(); ++i) {
      if (!row[i]) continue;
      keep_cheaper(next[i], row[i]->with(kMissing, word));
      if (i == written.size()) continue;
      if (const auto cost = cost_of(written[i], word, catalogue))
        keep_cheaper(next[i + 1], row[i]->with(*cost, is_name(word) ? written[i] : word));
    }
    row = std::move(next);
  }
  const bool of_model = std::ranges::find(known, "<model>") != known.end();
  if (of_model && !written.empty() && row[written.size() - 1]) {
    Candidate shorter = *row[written.size() - 1];
    shorter.cost += std::ranges::find(kAboutModel, written.back()) != std::end(kAboutModel) ? 0 : kTooMany;
    keep_cheaper(row.back(), std::move(shorter));
  }
  return row.back();
}

int cost_of_method(std::string_view written, std::string_view known) {
  if (written == known || (written == "HEAD" && known == "GET")) return 0;
  return written == "GET" ? 1 : 2;  // who sends a body has something to ask
}

}  // namespace

std::string path_meant(Frontend& frontend, const net::Request& request) {
  const std::string_view path = request.path;
  if (frontend.dialect == Dialect::kTriton || path.size() > kLongest) return "";
  if (path.ends_with("/metrics")) return "; " + (frontend.metrics_at.empty() ? "metrics are off" : "metrics are at " + frontend.metrics_at);
  const Words written = words_of(path);
  if (written.size() > kMostWords) return "";
  const Catalogue& catalogue = frontend.catalogue();
  int least = kMostCost;
  std::vector<std::string> meant;
  for (const Known& known : kKnown) {
    const auto candidate = laid_beside(written, words_of(known.path), catalogue);
    const int cost = candidate ? candidate->cost + cost_of_method(request.method, known.method) : kMostCost + 1;
    if (cost > least) continue;
    if (cost < least) meant.clear();
    least = cost;
    const bool same = cost_of_method(request.method, known.method) == 0;
    meant.push_back(same ? candidate->path : fmt::format("{} {}", known.method, candidate->path));
  }
  if (meant.empty()) return "";
  if (std::ranges::any_of(meant, [](const std::string& one) { return one.starts_with('/'); }))  // what takes the request's own method
    std::erase_if(meant, [](const std::string& one) { return !one.starts_with('/'); });
  meant.resize(std::min(meant.size(), kMostNamed));
  return fmt::format("; did you mean {}?", fmt::join(meant, " or "));
}

net::Response unknown_path(Frontend& frontend, const net::Request& request) {
  return net::json_error(404, "Not Found" + path_meant(frontend, request));
}

}  // namespace serin::serving
