#include "runtime/cli/registry/provenance.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>

#include "runtime/engine/engine.h"

namespace serin::cli {
namespace {

boost::json::array types(const graph::Graph& graph, std::span<const graph::ValueId> ids, std::span<const std::string> names) {
  boost::json::array list;
  for (size_t i = 0; i < ids.size(); ++i) {
    const graph::Value& value = graph.value(ids[i]);
    list.emplace_back(fmt::format("{}: {}", i < names.size() ? names[i] : value.name, graph::print(value.type)));
  }
  return list;
}

}  // namespace

std::string user_and_host() {
  const passwd* const user = ::getpwuid(::geteuid());
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return fmt::format("{}@{}", user ? std::string(user->pw_name) : std::to_string(::geteuid()), host.data());
}

Result<std::string> details_of(const std::string& model) {
  SERIN_TRY(const graph::Graph graph, engine::read_model(model));
  return boost::json::serialize(boost::json::object{{"schema", "serin.model/1"},
                                                    {"inputs", types(graph, graph.inputs(), {})},
                                                    {"outputs", types(graph, graph.outputs(), graph.output_names())}});
}

Result<registry::Origin> origin_of(const std::vector<std::string>& given) {
  registry::Origin origin;
  for (const std::string& each : given) {
    const size_t equals = each.find('=');
    if (equals == 0 || equals == std::string::npos) return invalid(fmt::format("--origin '{}' is not KEY=VALUE", each));
    if (!origin.emplace(each.substr(0, equals), each.substr(equals + 1)).second)
      return invalid(fmt::format("--origin {} is given twice", each.substr(0, equals)));
  }
  return origin;
}

}  // namespace serin::cli
