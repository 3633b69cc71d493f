#include "runtime/cli/tune/trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "runtime/base/file.h"
#include "runtime/base/json_at.h"
#include "runtime/base/process_stat.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/release/child.h"
#include "runtime/cli/tune/settings_text.h"
#include "runtime/cli/up/supervised.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"
#include "runtime/serving/settings/model_folder.h"

namespace serin::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr size_t kLargestSettings = 16 << 20;
constexpr std::chrono::minutes kReadyTime{5};
constexpr double kWarmSeconds = 0.3;
constexpr int kMostClients = 64;
constexpr double kWorthMoreClients = 1.05;  // of the rate before

Status take(const fs::path& from, const fs::path& to, bool copies) {
  std::error_code error;
  if (copies)
    fs::copy(from, to, fs::copy_options::recursive, error);
  else
    fs::create_symlink(fs::absolute(from), to, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", to.string(), error.message())};
  return {};
}

Status take_all(const std::vector<fs::path>& files, const fs::path& to, bool copies) {
  for (const fs::path& file : files) SERIN_CHECK(take(file, to / file.filename(), copies));
  return {};
}

/// What lies next to serin.yaml, such as files of labels.
std::vector<fs::path> neighbours(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name == "serin.yaml" || name.starts_with('.') || serving::version_of_folder(name)) continue;
    found.push_back(entry.path());
  }
  return found;
}

uint64_t peak_bytes(pid_t process) {
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(line.find(':') + 1)) << 10;
  return 0;
}

/// Why a server has ended, by its log.
std::string last_words(const std::string& log) {
  constexpr std::string_view kFailed = "FAILED: ";
  const auto lines = read_lines(log, kLargestSettings);
  if (!lines || lines->empty()) return "the server has ended";
  for (const std::string& line : *lines)
    if (const size_t at = line.find(kFailed); at != std::string::npos) return line.substr(at + kFailed.size());
  return lines->back();
}

struct Load {
  std::string url, name;
  double rate = 0, seconds = 0;
  int clients = 1;
  std::string data;
};

/// Why nothing that was sent is a request for this model; empty: something was answered, or might be.
std::string refusal(const json::value& said) {
  const json::value* by = json_at::find(said, "/errors_by");
  if (json_at::number(said, "/ok") > 0 || !by || !by->is_object()) return "";
  for (const auto& [kind, count] : by->get_object())
    if (!kind.starts_with('4') || kind == "408" || kind == "429") return "";
  if (by->get_object().empty()) return "";
  return fmt::format("the server refuses what it is sent ({}): name requests with --load-data",
                     std::string_view(by->get_object().begin()->key()));
}

Result<Measurement> send(const Load& load, pid_t server, const std::string& work) {
  std::vector<std::string> arguments = {"load", load.url, "--model", load.name, "--seconds", fmt::format("{}", load.seconds), "--json"};
  if (load.rate > 0)
    arguments.insert(arguments.end(), {"--rate", fmt::format("{}", load.rate)});
  else
    arguments.insert(arguments.end(), {"--concurrency", std::to_string(load.clients)});
  if (!load.data.empty()) arguments.insert(arguments.end(), {"--data", load.data});
  const double before = cpu_seconds_of(fmt::to_string(server));
  SERIN_TRY(const ChildEnd end, run_serin(arguments, work));
  const double used = cpu_seconds_of(fmt::to_string(server)) - before;
  boost::system::error_code error;
  const json::value said = json::parse(end.out, error);
  if (error || !said.is_object()) return Error{Code::kInvalidArgument, "no request can be sent: " + end.why()};
  const auto number = [&](std::string_view key) { return json_at::number(said, fmt::format("/{}", key)); };
  if (const std::string why = refusal(said); !why.empty()) return invalid(why);
  Measurement measured{.per_second = number("ok_per_s"),
                       .memory_bytes = peak_bytes(server),
                       .sent = static_cast<uint64_t>(number("sent")),
                       .failed = static_cast<uint64_t>(number("errors")),
                       .clients = load.rate > 0 ? 0 : load.clients};
  for (size_t i = 0; i < kPercentiles.size(); ++i) measured.latency_ms[i] = number(fmt::format("{}_ms", kPercentiles[i]));
  if (const double ok = number("ok"); ok > 0) measured.cpu_ms = 1000 * used / ok;
  return measured;
}

/// The rows that the server takes in one run.
Result<int64_t> largest_batch(uint16_t port, const std::string& name) {
  constexpr std::chrono::seconds kPatience{10};
  const net::Origin origin{.host = "127.0.0.1", .port = port};
  SERIN_TRY(const net::Response response, net::fetch(origin, {.target = "/v2/models/" + net::escaped(name) + "/config"}, kPatience));
  boost::system::error_code error;
  const json::value config = json::parse(response.body, error);
  const json::value* rows = error ? nullptr : json_at::find(config, "/max_batch_size");
  if (!rows || !rows->is_int64()) return Error{Code::kCorrupt, "the server does not say how many rows it takes"};
  return std::max<int64_t>(1, rows->get_int64());
}

/// Empty: it holds.
std::string why_not(const Goal& goal, const Measurement& measured) {
  if (measured.failed > 0) return fmt::format("{} of {} requests failed", measured.failed, measured.sent);
  if (measured.per_second <= 0) return "nothing was answered";
  for (const Requirement& bound : goal.latency)
    if (const double value = measured.latency(bound.metric); !bound.holds(value))
      return fmt::format("{} is {:.3g} ms, wanted {}", bound.metric, value, bound.text);
  return "";
}

}  // namespace

double Measurement::latency(std::string_view percentile) const {
  const auto found = std::ranges::find(kPercentiles, percentile);
  return found == kPercentiles.end() ? 0 : latency_ms[static_cast<size_t>(found - kPercentiles.begin())];
}

Status lay_out(const ModelPlace& place, const std::string& name, const Choice& choice, const std::string& samples,
               const std::string& folder, bool copies) {
  const fs::path model = fs::path(folder) / name;
  std::error_code error;
  fs::create_directories(model, error);
  if (error) return Error{Code::kIo, fmt::format("{}: {}", model.string(), error.message())};
  std::string text;
  if (place.settings.empty()) {
    fs::create_directory(model / "1", error);
    SERIN_TRY(const auto files, files_of(place));
    if (fs::is_directory(place.file, error))  // a SavedModel
      SERIN_CHECK(take(place.file, model / "1" / fs::path(place.file).filename(), copies));
    else
      SERIN_CHECK(take_all({files.begin(), files.end()}, model / "1", copies));
  } else {
    const fs::path version = fs::path(place.file).parent_path();
    const std::string number = serving::version_of_folder(version.filename().string()) ? version.filename().string() : "1";
    SERIN_CHECK(take(version, model / number, copies));
    if (version != fs::path(place.settings)) SERIN_CHECK(take_all(neighbours(place.settings), model, copies));
    if (const fs::path settings = fs::path(place.settings) / "serin.yaml"; fs::exists(settings, error)) {
      SERIN_TRY(text, read_file(settings.string(), kLargestSettings));
    }
  }
  std::string kept;
  if (choice.precision == "int8" && !samples.empty()) {
    kept = copies ? "samples" : fs::absolute(samples).string();
    if (copies) SERIN_CHECK(take(samples, model / kept, true));
  }
  auto changed = with_keys(text, {{"precision", choice.precision},
                                  {"max_batch", std::to_string(choice.max_batch)},
                                  {"instances", std::to_string(choice.instances)},
                                  {"samples", kept}});
  if (!changed) return changed.error().in(place.settings);
  return write_file_atomically((model / "serin.yaml").string(), *changed);
}

Result<Trial> try_choice(const ModelPlace& place, const std::string& name, const Choice& choice, const std::string& samples,
                         const Goal& goal, const Traffic& traffic, const std::string& work) {
  Trial trial{.choice = choice, .measured = {}, .why = {}};
  const std::string folder = work + "/models";
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::remove(work + "/server.log", ignored);
  SERIN_CHECK(lay_out(place, name, choice, samples, folder, /*copies=*/false));
  Supervised server("server", work,
                    {"serve", folder, "--port", "0", "--grpc-port", "off", "--metrics-port", "off", "--control", "none", "--exit-on-error",
                     "--drain-seconds", "0"});
  SERIN_CHECK(server.start());
  const auto ports = server.wait_ready(kReadyTime);
  if (!ports && server.running()) return Error{Code::kDeadlineExceeded, "the model does not load within five minutes"};
  if (!ports) {
    trial.why = "does not load: " + last_words(server.log());
    return trial;
  }
  SERIN_TRY(const int64_t rows, largest_batch(ports->http, name));
  if (rows != choice.max_batch) {
    trial.why = rows == 1 ? "the model takes no batches" : fmt::format("the model takes {} rows at a time", rows);
    return trial;
  }
  Load load{.url = fmt::format("http://127.0.0.1:{}", ports->http), .name = name, .rate = 0, .seconds = kWarmSeconds, .data = traffic.data};
  SERIN_CHECK(send(load, server.pid(), work));
  load.seconds = traffic.seconds;
  load.rate = traffic.rate;
  if (load.rate > 0) {
    SERIN_TRY(trial.measured, send(load, server.pid(), work));
    trial.why = why_not(goal, *trial.measured);
    return trial;
  }
  for (; load.clients <= kMostClients; load.clients *= 2) {
    SERIN_TRY(const Measurement measured, send(load, server.pid(), work));
    const std::string why = why_not(goal, measured);
    if (!trial.measured) {
      trial.measured = measured;
      trial.why = why;
    }
    if (!why.empty()) break;
    const bool worth_more = load.clients == 1 || measured.per_second > kWorthMoreClients * trial.measured->per_second;
    if (measured.per_second > trial.measured->per_second) trial.measured = measured;
    if (!worth_more && load.clients >= choice.max_batch * choice.instances) break;
  }
  return trial;
}

}  // namespace serin::cli
