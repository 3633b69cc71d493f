// load.cc: `serin load`: sends steady traffic to one model, and reports the percentiles of its latency.
//
// With --rate the requests start at times fixed beforehand, whatever became of those before, and latency counts from that intended start: a
// server that stalls for a second shows a second of slow answers, not one (Gil Tene's "coordinated omission"). The number of open requests
// is bounded only by kMaxInFlight; a request that finds so many before it is an error and is not sent. With --concurrency each of C clients
// sends its next request when its last is answered.
//
// All of it runs on one io thread; the main thread waits for signals, prints progress, and in the end the report.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <optional>

#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/cli/tools/load.h"
#include "runtime/cli/tools/load_inputs.h"
#include "runtime/cli/tools/load_report.h"
#include "runtime/cli/validators.h"
#include "runtime/net/client.h"
#include "runtime/net/loop.h"
#include "runtime/net/session.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

constexpr size_t kMaxInFlight = 10'000;

nanoseconds to_duration(double seconds) { return std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds)); }

/// The requests under way. On its io thread only.
class Generator {
 public:
  Generator(net::Loop& loop, const LoadOptions& options, net::Origin origin, std::shared_ptr<const net::TlsContext> tls, std::string target,
            Bodies bodies)
      : loop_(loop),
        options_(options),
        origin_(std::move(origin)),
        target_(std::move(target)),
        bodies_(std::move(bodies)),
        timeout_(to_duration(options.timeout_seconds)),
        client_(loop, {.connect_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(timeout_),
                       .kept_per_origin = kMaxInFlight,
                       .tls = std::move(tls)}) {}

  void start() {
    started_ = Clock::now();
    end_ = started_ + to_duration(options_.seconds);
    if (options_.rate > 0) return send_what_is_due();
    for (int i = 0; i < options_.concurrency; ++i) send(Clock::now());
    stop_timer_ = loop_.after(end_ - Clock::now(), [this] { stop(); });
  }
  /// Sends nothing more; what is in flight is waited for.
  void stop() {
    if (stopped_) return;
    stopped_ = true;
    counts_.elapsed = Clock::now() - started_;
  }
  bool done() const { return stopped_ && in_flight_ == 0; }
  LoadCounts counts() const {
    LoadCounts counts = counts_;
    if (!stopped_) counts.elapsed = Clock::now() - started_;
    return counts;
  }

 private:
  void send_what_is_due() {
    for (; !stopped_; ++next_) {
      const Clock::time_point due = started_ + to_duration(static_cast<double>(next_) / options_.rate);
      if (due >= end_) return stop();
      const Clock::time_point now = Clock::now();
      if (due > now) {
        next_timer_ = loop_.after(due - now, [this] { send_what_is_due(); });
        return;
      }
      send(due);
    }
  }

  void send(Clock::time_point intended) {
    ++counts_.sent;
    if (in_flight_ >= kMaxInFlight) {
      counts_.failure("too_many_in_flight", "");
      return;
    }
    ++in_flight_;
    net::Outgoing request{.method = "POST", .target = target_, .body = bodies_[next_body_]};
    request.headers.add("content-type", "application/json");
    next_body_ = (next_body_ + 1) % bodies_.size();
    client_.send(origin_, std::move(request), timeout_, [this, intended](const Result<net::Response>& response) {
      --in_flight_;
      count(response, Clock::now() - intended);
      if (options_.rate <= 0 && !stopped_) send(Clock::now());
    });
  }

  void count(const Result<net::Response>& response, nanoseconds latency) {
    if (!response) return counts_.failure(code_name(response.error().code), response.error().message);
    if (response->status != 200) return counts_.failure(std::to_string(response->status), response->body);
    ++counts_.ok;
    counts_.latency.record(latency);
    counts_.slowest = std::max(counts_.slowest, latency);
    if (const auto version = response->headers.get("x-serin-version"); !version.empty()) ++counts_.versions[std::string(version)];
  }

  net::Loop& loop_;
  const LoadOptions& options_;
  const net::Origin origin_;
  const std::string target_;
  const Bodies bodies_;
  const nanoseconds timeout_;
  net::Client client_;
  net::Timer next_timer_, stop_timer_;
  Clock::time_point started_, end_;
  LoadCounts counts_;
  uint64_t next_ = 0;  // of the open loop's requests
  size_t next_body_ = 0, in_flight_ = 0;
  bool stopped_ = false;
};

int say(int exit_code, const std::string& message) {
  std::fprintf(stderr, "serin load: %s\n", message.c_str());
  return exit_code;
}

/// Runs `work` on the io thread and waits for what it returns.
template <class Work>
auto on_loop(net::Loops& loops, Work work) {
  std::optional<decltype(work())> result;
  loops.post_and_wait(0, [&] { result.emplace(work()); });
  return *std::move(result);
}

/// Prints progress on a terminal until all is answered. The first SIGINT or SIGTERM ends sending, the second the waiting.
void watch(net::Loops& loops, Generator& generator, const sigset_t& signals) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  auto printed = Clock::now();
  bool asked_to_stop = false;
  while (!on_loop(loops, [&] { return generator.done(); })) {
    const timespec tick{0, 50'000'000};
    if (::sigtimedwait(&signals, nullptr, &tick) > 0) {
      if (asked_to_stop) break;
      asked_to_stop = true;
      on_loop(loops, [&] {
        generator.stop();
        return true;
      });
    }
    if (!terminal || Clock::now() - printed < std::chrono::seconds(1)) continue;
    printed = Clock::now();
    std::fprintf(stderr, "\r\x1b[K%s", print_progress(on_loop(loops, [&] { return generator.counts(); })).c_str());
  }
  if (terminal) std::fputs("\r\x1b[K", stderr);
}

/// kUnavailable: the metadata name no inputs that can be made.
Result<Bodies> bodies_of(const LoadOptions& options, std::string_view metadata) {
  const auto inputs = parse_model_inputs(metadata);
  if (!inputs) return Error{Code::kUnavailable, "model '" + options.model + "': " + inputs.error().message};
  return options.data.empty() ? random_bodies(*inputs, options.batch) : file_bodies(*inputs, options.batch, options.data);
}

}  // namespace

int run_load(const LoadOptions& options) {
  const auto url = net::parse_url(options.url.find("://") == std::string::npos ? "http://" + options.url : options.url);
  if (!url) return say(kUsage, "'" + options.url + "' is not a URL like http://127.0.0.1:8000");
  const net::Origin origin = url->origin;
  std::string model_path = url->path.substr(0, url->path.find_last_not_of('/') + 1) + "/v2/models/" + net::escaped(options.model);
  if (!options.version.empty()) model_path += "/versions/" + net::escaped(options.version);

  const auto tls = client_tls(options.tls, origin);
  if (!tls) return say(kUsage, tls.error().message);
  const auto metadata = net::fetch(origin, {.target = model_path}, to_duration(options.timeout_seconds), *tls);
  if (!metadata) return say(kUnreachable, metadata.error().message);
  if (metadata->status != 200) {
    return say(kNo, "model '" + options.model + "': the server answers " + std::to_string(metadata->status) + ": " +
                        metadata->body.substr(0, 500));
  }
  const bool as_they_are = !options.data.empty() && are_bodies(options.data);
  if (as_they_are && options.batch != 1) return say(kUsage, options.data + " is one row a request: --batch goes with an .npz file");
  auto bodies = as_they_are ? bodies_as_they_are(options.data) : bodies_of(options, metadata->body);
  if (!bodies) return say(options.data.empty() || bodies.error().code == Code::kUnavailable ? kNo : kUsage, bodies.error().message);

  raise_descriptor_limit();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  net::Loops loops(1);
  std::unique_ptr<Generator> generator = on_loop(loops, [&] {
    auto made = std::make_unique<Generator>(loops.loop(0), options, origin, *tls, model_path + "/infer", std::move(*bodies));
    made->start();
    return made;
  });
  watch(loops, *generator, signals);
  const LoadCounts counts = on_loop(loops, [&] {
    const LoadCounts last = generator->counts();
    generator.reset();  // on its own thread
    return last;
  });

  std::fputs((options.json ? print_json(counts) : print_text(counts)).c_str(), stdout);
  return counts.failed() == 0 && counts.ok > 0 ? kYes : kNo;
}

void add_load(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("load", "Send steady traffic to a model and report latencies from the intended start");
  auto options = std::make_shared<LoadOptions>();
  command->add_option("url", options->url, "server, e.g. http://127.0.0.1:8000")->required();
  command->add_option("--model", options->model, "name of the model")->required();
  command->add_option("--version", options->version, "version of the model; default: the server chooses");
  command
      ->add_option(
          "--data", options->data,
          ".npz file with rows for each input, by name; or a file or folder whose files are sent as they are; default: random numbers")
      ->check(CLI::ExistingPath);
  auto* rate =
      command->add_option("--rate", options->rate, "requests a second, sent on time even if answers are late")->check(between(0.001, 1e6));
  command->add_option("--concurrency", options->concurrency, "clients that each wait for their answer")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000))
      ->excludes(rate);
  command->add_option("--seconds", options->seconds, "duration in seconds")->capture_default_str()->check(between(0.001, 1e7));
  command->add_option("--batch", options->batch, "rows in each request")->capture_default_str()->check(CLI::Range(1, 65'536));
  command->add_option("--timeout", options->timeout_seconds, "seconds until a request counts as failed")
      ->capture_default_str()
      ->check(between(0.001, 3600.0));
  add_tls_flags(*command, options->tls);
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &exit_code] { exit_code = run_load(*options); });
}

}  // namespace serin::cli
