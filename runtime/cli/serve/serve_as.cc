// serve_as.cc: recognises the name by which the program was called, and parses the command line of that name.

#include "runtime/cli/serve/serve_as.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/version.h"
#include "runtime/cli/nearest_flag.h"
#include "runtime/cli/serve/dialect_flags.h"

namespace serin::cli {
namespace {

using serving::Dialect;

void add_dialect(Dialect dialect, Flags& flags, ServeOptions& options, OneModel& model) {
  switch (dialect) {
    case Dialect::kTriton: return add_triton(flags, options);
    case Dialect::kTfServing: return add_tfserving(flags, options, model);
    case Dialect::kOvms: return add_ovms(flags, options, model);
    case Dialect::kPaddle: return add_paddle(flags, options, model);
    case Dialect::kKserve: return add_kserve(flags, options, model);
    case Dialect::kSerin: return;
  }
}

/// Of a program by its path; nothing where it is `serin` itself.
std::optional<Dialect> dialect_of_link(std::string_view path) {
  const auto dialect = serving::parse_dialect(path.substr(path.rfind('/') + 1));
  return dialect == Dialect::kSerin ? std::nullopt : dialect;
}

/// Where these say nothing everybody is let in, which nobody has meant who wrote them.
constexpr std::array<std::string_view, 4> kKeepOut = {
    "--http-restricted-api=", "--grpc-restricted-protocol=", "--tokens=", "--tls-client-ca="};

/// "--flag=": as templates of manifests leave it, and as if it were not there. Throws CLI::ValidationError.
bool says_nothing(std::string_view word) {
  if (!word.starts_with("--") || word.find('=') != word.size() - 1) return false;
  if (std::ranges::find(kKeepOut, word) == kKeepOut.end()) return true;
  throw CLI::ValidationError(std::string(word.substr(0, word.size() - 1)),
                             "is empty, which would admit the clients that it should keep out");
}

/// The words behind the program's name, without `serve` and `--as NAME`; the last first, as CLI11 wants them.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words;
  const bool by_name = dialect_of_link(argv[0]).has_value();
  for (int i = by_name ? 1 : 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!by_name && word == "--as") {
      ++i;
    } else if ((by_name || !word.starts_with("--as=")) && !says_nothing(word)) {
      words.emplace_back(word);
    }
  }
  std::ranges::reverse(words);
  return words;
}

}  // namespace

std::optional<Dialect> dialect_of(int argc, char** argv) {
  if (argc < 1) return std::nullopt;
  auto dialect = dialect_of_link(argv[0]);
  for (int i = 2; i < argc && !dialect && std::string_view(argv[1]) == "serve"; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--as=")) dialect = serving::parse_dialect(word.substr(5));
    if (word == "--as" && i + 1 < argc) dialect = serving::parse_dialect(argv[i + 1]);
  }
  return dialect == Dialect::kSerin ? std::nullopt : dialect;
}

int serve_as(Dialect dialect, int argc, char** argv) {
  const std::string name(serving::kDialectNames[static_cast<size_t>(dialect)]);
  CLI::App app("Serin, called as " + name, name);
  ServeOptions options{.dialect = dialect};
  options.address = "0.0.0.0";
  options.device = "auto";
  OneModel model;
  app.set_version_flag("--version", fmt::format("{}: {} {}", name, kName, kVersion));
  add_serve_flags(app, options);
  Flags flags(app, options);
  add_dialect(dialect, flags, options, model);
  try {
    app.parse(words_of(argc, argv));
    if (!model.path.empty()) options.source.roots.push_back({serving::local_path(model.path), model.name, model.versions});
    if (dialect == Dialect::kTriton) check_triton(options);
    if (dialect == Dialect::kOvms) check_ovms(options);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "%s: %s%s\n", name.c_str(), e.what(), flag_meant(app, e).c_str());
    return kUsage;
  }
  return run_serve(options);
}

}  // namespace serin::cli
