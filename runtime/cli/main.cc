// main.cc: the command line. Binds flags to the structs of commands.h and calls one function; a usage mistake is one line and exit code 2.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <string>

#include "runtime/base/version.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/nearest_flag.h"
#include "runtime/cli/serve/serve_as.h"
#include "runtime/cli/serve/serve_flags.h"
#include "runtime/cli/validators.h"

namespace serin::cli {
namespace {

void add_tls_flags(CLI::App& command, TlsFlags& flags) {
  command.add_option("--ca", flags.ca, "https: file with the authorities that may sign for the server; default: the system's")
      ->envname("SERIN_CA");
  command.add_option("--cert", flags.cert, "https: file with a certificate to show")->envname("SERIN_CERT");
  command.add_option("--key", flags.key, "https: file with its key")->envname("SERIN_KEY");
}

void add_admin_flags(CLI::App& command, AdminFlags& flags) {
  command.add_option("--admin", flags.address, "HOST:PORT of the router's admin API, or https://HOST:PORT")->capture_default_str();
  command.add_option("--token-file", flags.token_file, "file with the token for the admin API; default: $SERIN_TOKEN");
  add_tls_flags(command, flags.tls);
}

void add_serve(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand(
      "serve", "Serve models: Open Inference Protocol v2 over HTTP and gRPC, TensorFlow Serving's protocols, KServe's and Paddle's");
  auto options = std::make_shared<ServeOptions>();
  add_serve_flags(*command, *options);
  command
      ->add_option(
          "--as",
          "as another server is called (--as NAME and then its own flags): tritonserver, tensorflow_model_server, ovms, paddle or kserve")
      ->check(CLI::IsMember(serving::kDialectNames));
  command->callback([options, &exit_code] { exit_code = run_serve(*options); });
}

/// What `bench`, `check` and `inspect` ask alike.
void add_engine_flags(CLI::App& command, EngineFlags& flags) {
  command.add_option("--threads", flags.threads, "threads for computing")->capture_default_str()->check(CLI::Range(1, 1024));
  command.add_option("--isa", flags.isa, "scalar, avx2 or avx512; default: the best there is");
  command.add_option("--device", flags.device, "cpu, cuda, or auto: cuda where there is one")->capture_default_str();
  command.add_option("--cuda-plugin", flags.cuda_plugin, "libserin_cuda.so; default: beside the program, where there is a driver");
  command.add_option("--cuda-cache", flags.cuda_cache, kCudaCacheHelp);
  command.add_option("--disable-pass", flags.disabled_passes, "leave out this pass; may come several times");
  command
      .add_option("--precision", flags.precision,
                  "auto, fp32, bf16 or int8; tf32 or fp16 on a device: how products, convolutions and attention are computed")
      ->capture_default_str();
  command.add_option(
      "--samples", flags.samples,
      "folder with inputs, as `check` takes it, that --precision auto decides on and int8 takes ranges from; default: made-up ones");
}

void add_sizes(CLI::App& command, EngineFlags& flags) {
  const auto add = [&flags](const std::vector<std::string>& sizes) {
    for (const std::string& size : sizes) {
      const size_t equals = std::min(size.find('='), size.size());
      const char* const end = size.data() + size.size();
      int64_t value = 0;
      const auto [rest, error] = std::from_chars(std::min(size.data() + equals + 1, end), end, value);
      if (equals == 0 || error != std::errc() || rest != end) throw CLI::ValidationError("--dim", "'" + size + "' is not NAME=NUMBER");
      flags.dims[size.substr(0, equals)] = value;
    }
  };
  command.add_option_function<std::vector<std::string>>("--dim", add, "size of a symbolic dimension, e.g. seq=128; may come several times")
      ->allow_extra_args(false);
}

void add_bench(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("bench", "Measure how long one run of a model takes, without a server");
  auto options = std::make_shared<BenchOptions>();
  command->add_option("model", options->model, "model.onnx")->required();
  command->add_option("--batch", options->batch, "rows in one run")->capture_default_str();
  command->add_option("--seconds", options->seconds, "how long to measure")->capture_default_str();
  command->add_flag("--profile", options->profile, "then say where the time goes: by kernel, and the slowest steps");
  command->add_flag("--on-request", options->on_request, "measure again for each line on standard input");
  command->add_flag("--json", options->json, "print one JSON object");
  add_sizes(*command, options->engine);
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_bench(*options); });
}

void add_inspect(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("inspect", "Print a model's inputs, outputs and graph, before and after the passes");
  auto options = std::make_shared<InspectOptions>();
  command->add_option("model", options->model, "model.onnx")->required();
  command->add_flag("--explain", options->explain, "print the plan: the kernel of each step, what refused it, where results lie");
  command->add_flag("--json", options->json, "print one JSON object");
  add_sizes(*command, options->engine);
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_inspect(*options); });
}

void add_check(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("check", "Run a model on stored inputs and compare with stored outputs");
  auto options = std::make_shared<CheckOptions>();
  command->add_option("model", options->model, "model.onnx")->required();
  command->add_option("folder", options->folder, "folder with test_data_set_*/{input,output}_*.{pb,npy}, or one such data set")->required();
  command->add_option("--rtol", options->rtol, "allowed error as a share of the expected element")->capture_default_str();
  command->add_option("--atol", options->atol, "allowed error as a share of the largest expected element")->capture_default_str();
  command->add_option("--output-atol", options->output_atol, "the same for one output: its name and the error; may come several times")
      ->allow_extra_args(false);
  command->add_flag("--absolute-atol", options->absolute_atol, "--atol is an error as it stands, as in NumPy");
  command->add_flag("--json", options->json, "print one JSON document");
  add_engine_flags(*command, options->engine);
  command->callback([options, &exit_code] { exit_code = run_check(*options); });
}

void add_load(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("load", "Send steady traffic to a model and report latencies from the intended start");
  auto options = std::make_shared<LoadOptions>();
  command->add_option("url", options->url, "server, e.g. http://127.0.0.1:8000")->required();
  command->add_option("--model", options->model, "name of the model")->required();
  command->add_option("--version", options->version, "version of the model; default: the server chooses");
  command->add_option("--data", options->data, ".npz file with rows for each input, by name; default: random numbers")
      ->check(CLI::ExistingFile);
  auto* rate =
      command->add_option("--rate", options->rate, "requests a second, sent on time whatever the answers do")->check(between(0.001, 1e6));
  command->add_option("--concurrency", options->concurrency, "clients that each wait for their answer")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000))
      ->excludes(rate);
  command->add_option("--seconds", options->seconds, "how long")->capture_default_str()->check(between(0.001, 1e7));
  command->add_option("--batch", options->batch, "rows in each request")->capture_default_str()->check(CLI::Range(1, 65'536));
  command->add_option("--timeout", options->timeout_seconds, "seconds until a request counts as failed")
      ->capture_default_str()
      ->check(between(0.001, 3600.0));
  add_tls_flags(*command, options->tls);
  command->add_flag("--json", options->json, "print one JSON object");
  command->callback([options, &exit_code] { exit_code = run_load(*options); });
}

void add_route(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("route", "Split traffic between model versions, judge every answer, roll back by itself");
  auto options = std::make_shared<RouteOptions>();
  command->add_option("--config", options->config, "router.yaml (router/README.md has every key)")->required();
  command->add_flag("--take-over", options->take_over,
                    "take sockets and store over from the router that runs on the same store, where there is one");
  command->add_flag("--check", options->check, "read the configuration, say what is wrong with it, end");
  command->add_option("--drain-seconds", options->drain_seconds, "how long to serve on after SIGTERM")
      ->capture_default_str()
      ->check(between(0.0, 3600.0));
  command->add_option("--ready-file", options->ready_file, "written with pid and ports once ready");
  command->add_option("--log-format", options->log_format, "text or json")->capture_default_str();
  command->add_option("--log-level", options->log_level, "debug, info, warning, error or off")->capture_default_str();
  command->callback([options, &exit_code] { exit_code = run_route(*options); });
}

void add_rollout_files(CLI::App& group, int& exit_code) {
  auto* validate =
      group.add_subcommand("validate", "Say everything that is wrong with specifications, with its line; 0: nothing, 1: something");
  auto checked = std::make_shared<ValidateOptions>();
  validate->add_option("files", checked->files, "documents of kind Rollout, YAML or JSON")->required();
  validate->add_flag("--json", checked->json, "print one JSON object");
  validate->callback([checked, &exit_code] { exit_code = run_validate(*checked); });

  auto* import =
      group.add_subcommand("import", "Print a rollout of Argo, Flagger, KServe or Seldon as Serin's, and on standard error what was lost");
  auto imported = std::make_shared<ImportOptions>();
  import->add_option("file", imported->file, "manifests, with the templates that they refer to")->required();
  import->add_option("--service", imported->service, "service in router.yaml; default: the name in the file");
  import->add_option("--canary", imported->canary, "version to roll out; default: what the file says");
  import->callback([imported, &exit_code] { exit_code = run_import(*imported); });

  auto* simulate =
      group.add_subcommand("simulate", "Live through many rollouts on the traffic of an access log: healthy canaries and broken ones");
  auto simulated = std::make_shared<SimulateOptions>();
  simulate->add_option("spec", simulated->spec, "document of kind Rollout")->required();
  simulate->add_option("--log", simulated->log, "access log: JSON lines, the combined format with $request_time behind it, or CSV")
      ->required();
  simulate->add_option("--runs", simulated->runs, "rollouts of each kind of canary")->capture_default_str()->check(CLI::Range(1, 100'000));
  simulate->add_option("--most-requests", simulated->most_requests, "of one rollout; then it counts as inconclusive")
      ->capture_default_str()
      ->check(CLI::Range(uint64_t{1}, uint64_t{1'000'000'000}));
  simulate->add_flag("--json", simulated->json, "print one JSON object");
  simulate->callback([simulated, &exit_code] { exit_code = run_simulate(*simulated); });

  auto* drill =
      group.add_subcommand("drill", "Prove on live traffic that the guard lets stable itself pass and finds what is wrong; 0: all of it");
  auto drilled = std::make_shared<DrillOptions>();
  drill->add_option("service", drilled->service, "service in router.yaml")->required();
  drill->add_option("--version", drilled->version, "version in router.yaml whose endpoint is the address of --listen")->required();
  drill->add_option("--listen", drilled->listen, "ADDRESS:PORT that this command serves meanwhile")->required();
  drill->add_option("--forward", drilled->forward, "http://HOST:PORT of a server that runs the stable version")->required();
  drill->add_option("--faults", drilled->faults, "what is put into answers, one after the other: errors, slow, nan")->capture_default_str();
  drill->add_option("--errors", drilled->errors, "share of answers turned into errors")->capture_default_str()->check(between(0.001, 1));
  drill->add_option("--delay", drilled->delay, "seconds by which answers are late")->capture_default_str()->check(between(0.001, 60));
  drill->add_option("--weight", drilled->weight, "percent of the traffic; twice that beside a fault")
      ->capture_default_str()
      ->check(CLI::Range(1, 50));
  drill->add_option("--baseline", drilled->baseline, "answers of stable before latency is judged")
      ->capture_default_str()
      ->check(CLI::Range(100, 1'000'000));
  drill->add_option("--patience", drilled->patience, "seconds for each part")->capture_default_str()->check(between(1, 86'400));
  add_admin_flags(*drill, drilled->admin);
  drill->callback([drilled, &exit_code] { exit_code = run_drill(*drilled); });

  group.add_subcommand("schema", "Print the JSON schema of specifications, for editors")->callback([&exit_code] {
    exit_code = run_schema();
  });
}

void add_rollout(CLI::App& app, int& exit_code) {
  auto* group = app.add_subcommand("rollout", "Steer the router: start a rollout, watch it, pause, promote, abort");
  group->require_subcommand(1);
  auto options = std::make_shared<RolloutOptions>();
  const auto add = [&](const char* action, const char* what, bool service_required = true) {
    auto* command = group->add_subcommand(action, what);
    auto* service = command->add_option("service", options->service, "service in router.yaml");
    if (service_required) service->required();
    add_admin_flags(*command, options->admin);
    command->add_flag("--json", options->json, "print the router's answer as JSON");
    command->callback([options, &exit_code, action] {
      options->action = action;
      exit_code = run_rollout(*options);
    });
    return command;
  };
  const auto add_reason = [&](CLI::App* command) { command->add_option("--reason", options->reason, "a sentence for the audit log"); };

  auto* start = add("start", "Begin a rollout; with --wait: 0 promoted, 3 rolled back, 4 inconclusive");
  start->add_option("--canary", options->canary, "version to roll out");
  start->add_option("--steps", options->steps, "weights in percent, each until certified, e.g. 5,25,50,100");
  start->add_option("--spec", options->spec_file, "document of kind Rollout, YAML or JSON");
  start->add_flag("--wait", options->wait, "until the verdict");
  add("status", "Say how a rollout stands; without a service: all of them", /*service_required=*/false);
  add("watch", "Print a line for every change until the verdict");
  auto* set_weight = add("set-weight", "Give the canary this share of traffic and pause the steps");
  set_weight->add_option("percent", options->weight, "0 to 100, at most four decimals")->required();
  add_reason(set_weight);
  add_reason(add("pause", "Hold the weight where it is"));
  add_reason(add("resume", "Go on with the steps, or pass a manual gate"));
  add_reason(add("promote", "Give the canary all traffic now, without further evidence"));
  add_reason(add("abort", "Give stable all traffic now"));
  add_reason(add("undo", "After a promotion: give all traffic back to the version that was stable before"));
  add_reason(add("retry", "Begin the last rollout once more, as it was asked for"));
  add("explain", "Say why a rollout (its ID, or a service's last one) was decided as it was, and decide it again from the record");
  auto* history = add("history", "Print the audit log");
  history->add_option("--limit", options->limit, "entries")->capture_default_str()->check(CLI::Range(1, 10'000));
  history->add_flag("--verify", options->verify, "instead: was an entry changed or taken out? Exit code 1: the first bad one");
  history->add_option("--noted", options->noted, "with --verify: a digest that was noted earlier and must still be there");
  add_rollout_files(*group, exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  if (const auto dialect = dialect_of(argc, argv)) return serve_as(*dialect, argc, argv);
  CLI::App app("Serin: model serving with canary rollout");
  app.set_version_flag("--version", std::string(kName) + " " + std::string(kVersion));
  app.require_subcommand(1);
  int exit_code = kYes;
  add_serve(app, exit_code);
  add_check(app, exit_code);
  add_bench(app, exit_code);
  add_inspect(app, exit_code);
  add_load(app, exit_code);
  add_route(app, exit_code);
  add_rollout(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {  // --help, --version
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "serin: %s%s%s\n", e.what(), flag_meant(app, e).c_str(),
                 app.get_subcommands().empty() ? "; serin --help lists the commands" : "");
    return kUsage;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "serin: %s\n", e.what());
    return kNo;
  }
  return exit_code;
}

}  // namespace serin::cli

int main(int argc, char** argv) { return serin::cli::main(argc, argv); }
