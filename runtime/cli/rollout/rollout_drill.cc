// rollout_drill.cc: `serin rollout drill`: proves on live traffic, without a broken model, that the guard works.
//
// router.yaml names a version whose endpoint is the address that this command listens on. It forwards to stable's own server: first as it
// is (the guard must let it pass), then with one fault after the other, each in a rollout of its own (the guard must find it). Clients do
// not see faults that the shield repeats on stable.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <list>
#include <memory>
#include <random>
#include <sstream>

#include "runtime/cli/commands.h"
#include "runtime/cli/ready_file.h"
#include "runtime/cli/rollout/admin_client.h"
#include "runtime/cli/rollout/rollout_commands.h"
#include "runtime/cli/tls_flags.h"
#include "runtime/cli/validators.h"
#include "runtime/net/client.h"
#include "runtime/net/server.h"
#include "runtime/net/target.h"

namespace serin::cli {
namespace {

struct DrillOptions {
  AdminFlags admin;
  std::string service, version;  ///< the version whose endpoint is `listen`
  std::string listen, forward;   ///< ADDRESS:PORT; http:// or https://HOST:PORT of a server that runs the stable version
  std::string faults = "errors,slow,nan";
  double errors = 0.5;    ///< share of answers that fail
  double delay = 0.25;    ///< delay in seconds, added to every answer
  int weight = 10;        ///< percent; during a fault, twice that
  int baseline = 1000;    ///< answers of the stable version before latency is judged
  double patience = 600;  ///< time limit in seconds for each part
};

namespace json = boost::json;
using Clock = std::chrono::steady_clock;

constexpr double kDrillPoll = 0.1;
constexpr std::chrono::seconds kForwardTimeout{30};

enum class Fault { kNone, kErrors, kSlow, kNan };

Fault fault_of(std::string_view word) {
  if (word == "errors") return Fault::kErrors;
  if (word == "slow") return Fault::kSlow;
  if (word == "nan") return Fault::kNan;
  refuse(fmt::format("--faults: '{}' is unknown; allowed: errors, slow, nan", word));
}

/// The first number of the first tensor in a JSON answer becomes NaN. False: there is none.
bool put_nan(std::string& body) {
  constexpr std::string_view kData = R"("data")";
  size_t from = body.find(kData);
  if (from == std::string::npos) return false;
  from = body.find_first_not_of(": [\t\r\n", from + kData.size());
  if (from == std::string::npos || body.find_first_of("0123456789-", from) != from) return false;
  body.replace(from, body.find_first_of(",] \t\r\n", from) - from, "NaN");
  return true;
}

/// Forwards every request; what it does to good inferences is the fault of the hour.
class Impostor {
 public:
  Impostor(const DrillOptions& options, net::Origin origin)
      : origin_(std::move(origin)),
        errors_(options.errors),
        delay_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(options.delay))),
        client_thread_(1) {
    auto tls = client_tls(options.admin.tls, origin_);
    if (!tls) refuse(fmt::format("--forward {}: {}", options.forward, tls.error().message));
    client_thread_.post_and_wait(
        0, [&] { client_ = std::make_unique<net::Client>(client_thread_.loop(0), net::ClientOptions{.tls = *std::move(tls)}); });
    const size_t colon = options.listen.rfind(':');
    const int port = colon == std::string::npos ? 0 : std::atoi(options.listen.c_str() + colon + 1);
    if (port < 1 || port > 65'535) refuse(fmt::format("--listen {}: must be ADDRESS:PORT", options.listen));
    auto server = net::Server::start(
        client_thread_,
        {.name = "drill", .address = options.listen.substr(0, colon), .port = static_cast<uint16_t>(port), .encoded_bodies = true},
        [this](net::Request request, net::Responder responder) { forward(std::move(request), std::move(responder)); });
    if (!server) refuse(fmt::format("--listen {}: {}", options.listen, server.error().message));
    server_ = *std::move(server);
  }
  ~Impostor() {
    server_.reset();
    client_thread_.post_and_wait(0, [this] {
      client_.reset();
      late_.clear();
    });
  }
  Impostor(const Impostor&) = delete;
  Impostor& operator=(const Impostor&) = delete;

  void begin(Fault fault) {
    faulty_ = 0;
    fault_ = fault;
  }
  /// Answers that the present fault was put into.
  uint64_t faulty() const { return faulty_; }

 private:
  void forward(net::Request request, net::Responder responder) {
    net::Outgoing outgoing{.method = request.method, .target = request.target};
    const bool inference = request.method == "POST";
    for (const net::Header header : request.headers)
      if (!net::equal_ignoring_case(header.name, "host")) outgoing.headers.add(header.name, header.value);
    if (inference) outgoing.body = std::make_shared<const std::string>(std::move(request.body));
    const auto shared = std::make_shared<net::Responder>(std::move(responder));
    client_->send(origin_, std::move(outgoing), kForwardTimeout, [this, shared, inference](Result<net::Response> response) {
      if (!response) return shared->send(net::json_error(502, response.error().message));
      if (inference && response->status / 100 == 2) return answer(*std::move(response), shared);
      shared->send(*std::move(response));
    });
  }

  void answer(net::Response response, const std::shared_ptr<net::Responder>& to) {
    const Fault fault = fault_;
    const bool chosen = fault != Fault::kErrors || std::uniform_real_distribution<>()(random_) < errors_;
    if (fault == Fault::kNone || !chosen || (fault == Fault::kNan && !put_nan(response.body))) return to->send(std::move(response));
    ++faulty_;
    if (fault == Fault::kErrors) return to->send(net::json_error(500, "a drill: this error is artificial"));
    if (fault == Fault::kNan) return to->send(std::move(response));
    const auto turn = late_.insert(late_.end(), net::Timer());
    *turn = client_thread_.loop(0).after(delay_, [this, turn, to, response = std::move(response)] {
      to->send(response);
      late_.erase(turn);
    });
  }

  const net::Origin origin_;
  const double errors_;
  const std::chrono::nanoseconds delay_;
  std::atomic<Fault> fault_{Fault::kNone};
  std::atomic<uint64_t> faulty_{0};
  // Of the io thread.
  std::mt19937_64 random_{std::random_device{}()};
  std::list<net::Timer> late_;  // answers that are held back
  net::Loops client_thread_;
  std::unique_ptr<net::Client> client_;
  std::unique_ptr<net::Server> server_;
};

struct Standing {
  std::string phase, reason;
  double seconds = 0;
  int64_t canary = 0;
};

class Drill {
 public:
  Drill(const AdminClient& admin, const DrillOptions& options) : admin_(admin), options_(options) {}

  int run() {
    const auto url = net::parse_url(options_.forward);
    if (!url || url->path != "/")
      refuse(fmt::format("--forward {}: must be http://HOST:PORT, or https, of the server that runs stable", options_.forward));
    std::istringstream words(options_.faults);
    std::vector<Fault> faults;
    for (std::string word; std::getline(words, word, ',');) faults.push_back(fault_of(word));
    if (faults.empty()) refuse("--faults: name at least one of errors, slow, nan");
    block_end_signals();
    Impostor impostor(options_, url->origin);
    wait_until_healthy();
    begin(fmt::format("{{setWeight: {}}}, {{pause: {{}}}}, {}", options_.weight,
                      hold_step()));  // a step that stable itself must pass, and a gate
    try {
      const int code = rehearse(impostor, faults);
      end();
      return code;
    } catch (...) {
      end();
      throw;
    }
  }

 private:
  int rehearse(Impostor& impostor, const std::vector<Fault>& faults) {
    const Standing passed = wait_for("Paused", "RolledBack");
    if (passed.phase != "Paused") {
      say(fmt::format("1. stable against itself: FAILED: it was rolled back: {}", passed.reason));
      return kNo;
    }
    say(fmt::format("1. stable against itself: let through after {:.1f} s and {} requests", passed.seconds, passed.canary));
    (void)admin_.post(path() + ":resume", "{}");
    for (size_t i = 0; i < faults.size(); ++i) {
      if (i > 0) begin(hold_step());
      const Standing before = standing();
      impostor.begin(faults[i]);
      const Standing found = wait_for("RolledBack", "");
      const uint64_t faulty = impostor.faulty();
      impostor.begin(Fault::kNone);
      say(fmt::format("{}. {}: rolled back after {:.1f} s, {} requests and {} faulty answers: {}", i + 2, words_of(faults[i]),
                      found.seconds - before.seconds, found.canary - before.canary, faulty, found.reason));
    }
    return kYes;
  }

  std::string words_of(Fault fault) const {
    if (fault == Fault::kErrors) return fmt::format("with {:g} % errors", 100 * options_.errors);
    return fault == Fault::kSlow ? fmt::format("with every answer {:g} s later", options_.delay) : "with NaN in every answer";
  }

  std::string path() const { return "/v1/rollouts/" + net::escaped(options_.service); }

  static void say(const std::string& line) {
    std::puts(line.c_str());
    std::fflush(stdout);
  }

  void wait_until_healthy() {
    const auto began = Clock::now();
    while (true) {
      const json::value all = json::parse(admin_.get("/v1/services"));
      bool known = false;
      for (const json::value& service : all.at("services").as_array()) {
        if (std::string_view(service.at("name").as_string()) != options_.service) continue;
        for (const json::value& version : service.at("versions").as_array()) {
          if (std::string_view(version.at("name").as_string()) != options_.version) continue;
          known = true;
          const json::value& healthy = version.at("healthy");
          if (healthy.is_number() && healthy.to_number<int64_t>() > 0) return;
        }
      }
      if (!known)
        refuse(fmt::format("router.yaml has no version '{}' of service '{}' with the endpoint {}", options_.version, options_.service,
                           options_.listen));
      if (Clock::now() - began > std::chrono::seconds(30))
        throw Failure{fmt::format("the router does not find version '{}' healthy at {}", options_.version, options_.listen), kNo};
      nap();
    }
  }

  /// At twice the weight, until the guard has found what is wrong.
  std::string hold_step() const { return fmt::format("{{setWeight: {}, until: {{duration: 1000h}}}}", 2 * options_.weight); }

  void begin(const std::string& steps) {
    const std::string version = json::serialize(json::value(options_.version));
    (void)admin_.post("/v1/rollouts", fmt::format("kind: Rollout\nservice: {}\ncanary: {{version: {}}}\nsteps: [{}]\n"
                                                  "guard: {{latency: {{baseline: {}}}}}\n",
                                                  json::serialize(json::value(options_.service)), version, steps, options_.baseline));
  }

  /// Nothing of a drill stays.
  void end() {
    if (standing().phase != "RolledBack") (void)admin_.post(path() + ":abort", R"({"reason": "the drill is over"})");
  }

  Standing standing() const {
    const json::value status = json::parse(admin_.get(path()));
    const json::value& rollout = status.at("rollout");
    return {std::string(std::string_view(rollout.at("phase").as_string())), std::string(std::string_view(rollout.at("reason").as_string())),
            rollout.at("seconds").to_number<double>(), rollout.at("answers").at("canary").to_number<int64_t>()};
  }

  Standing wait_for(std::string_view phase, std::string_view other) const {
    const auto began = Clock::now();
    while (true) {
      Standing now = standing();
      if (now.phase == phase || now.phase == other) return now;
      if (std::chrono::duration<double>(Clock::now() - began).count() > options_.patience)
        throw Failure{fmt::format("still {} after {:g} s, with {} answers of the canary: is there traffic?", now.phase, options_.patience,
                                  now.canary),
                      kInconclusive};
      nap();
    }
  }

  static void nap() {
    if (wait_for_end_signal(kDrillPoll)) throw Failure{"interrupted; the drill's rollout was ended", kInterrupted};
  }

  const AdminClient& admin_;
  const DrillOptions& options_;
};

int run_drill(const DrillOptions& options) {
  try {
    const AdminClient admin(options.admin);
    return Drill(admin, options).run();
  } catch (const Failure& failure) {
    std::fprintf(stderr, "serin rollout drill: %s\n", failure.message.c_str());
    return failure.exit_code;
  }
}

}  // namespace

void add_drill(CLI::App& group, int& exit_code) {
  auto* drill = group.add_subcommand(
      "drill", "Prove on live traffic that the guard passes the stable version and finds faults; exit code 0: all proven");
  auto drilled = std::make_shared<DrillOptions>();
  drill->add_option("service", drilled->service, "service in router.yaml")->required();
  drill->add_option("--version", drilled->version, "version in router.yaml whose endpoint is the address of --listen")->required();
  drill->add_option("--listen", drilled->listen, "ADDRESS:PORT that this command serves during the drill")->required();
  drill->add_option("--forward", drilled->forward, "http://HOST:PORT of a server that runs the stable version")->required();
  drill->add_option("--faults", drilled->faults, "faults to put into answers, one after the other: errors, slow, nan")
      ->capture_default_str();
  drill->add_option("--errors", drilled->errors, "share of answers turned into errors")->capture_default_str()->check(between(0.001, 1));
  drill->add_option("--delay", drilled->delay, "seconds by which answers are late")->capture_default_str()->check(between(0.001, 60));
  drill->add_option("--weight", drilled->weight, "percent of the traffic; twice that during a fault")
      ->capture_default_str()
      ->check(CLI::Range(1, 50));
  drill->add_option("--baseline", drilled->baseline, "answers of stable before latency is judged")
      ->capture_default_str()
      ->check(CLI::Range(100, 1'000'000));
  drill->add_option("--patience", drilled->patience, "seconds for each part")->capture_default_str()->check(between(1, 86'400));
  add_admin_flags(*drill, drilled->admin);
  drill->callback([drilled, &exit_code] { exit_code = run_drill(*drilled); });
}

}  // namespace serin::cli
