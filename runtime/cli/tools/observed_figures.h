// observed_figures.h: figures of servers that run, read from the page of one, or requested from a Prometheus server that scrapes them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/result.h"
#include "runtime/cli/tools/prometheus_source.h"
#include "runtime/planner/answer.h"

namespace serin::cli {

/// One version of a model, on all servers that have it. Nothing: the source does not have the figure.
struct ModelFigures {
  std::optional<double> weights, arenas;               ///< bytes; the most of any server
  std::optional<double> runs, rows, requests, micros;  ///< counted: `micros` is the sum of the duration of its run for each request
  std::optional<double> busy;                          ///< share of the instances that ran; the mean of the servers
  std::optional<double> servers;
};

struct ServerFigures {
  std::string url;
  std::optional<double> resident;          ///< bytes of a process; the most of any server
  std::optional<double> seconds;           ///< that `runs` and the others were counted in; nothing: since the server's start
  std::string window;                      ///< the same as text
  std::map<std::string, ModelFigures> of;  ///< by name_of(); only models that a server has
  std::string why_not;                     ///< why a model is not in it: "the server does not have it"
  std::vector<std::string> notes;
};

/// "digits:2"
std::string name_of(const planner::ModelAnswer& model);

/// Asks for the models of a plan. A figure without a series, or without a number, is left out, with a note that names the query.
/// kUnavailable: there is no answer.
Result<ServerFigures> figures_by_prometheus(PrometheusSource source, const std::vector<planner::ModelAnswer>& models);

}  // namespace serin::cli
