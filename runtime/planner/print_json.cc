// print_json.cc: the schema "serin.plan/1". Keys are added without a new version; one that is removed or changes its meaning makes version 2.

#include <fmt/format.h>

#include <boost/json.hpp>

#include "runtime/planner/operators.h"
#include "runtime/planner/report.h"
#include "runtime/planner/report_parts.h"

namespace serin::planner {
namespace {

namespace json = boost::json;

json::object sizes_of(const graph::Bindings& sizes) {
  json::object object;
  for (const auto& [symbol, size] : sizes) object[symbol] = size;
  return object;
}

json::array steps_of(const Bucket& bucket) {
  json::array list;
  for (const Operator& op : operators(bucket))
    list.push_back({{"node", op.node},
                    {"op", op.op},
                    {"kernel", op.kernel},
                    {"macs", op.macs},
                    {"flops", op.flops},
                    {"moved_bytes", op.moved},
                    {"flops_per_byte", op.intensity()},
                    {"scratch_bytes", op.scratch},
                    {"live_bytes", op.live}});
  return list;
}

json::object bucket_of(const Bucket& bucket, bool with_steps) {
  json::object object = {{"sizes", sizes_of(bucket.sizes)},
                         {"rows", bucket.rows},
                         {"arena_bytes", bucket.arena},
                         {"least_arena_bytes", bucket.live},
                         {"scratch_bytes", bucket.scratch},
                         {"staging_bytes", bucket.staging},
                         {"executor_bytes", bucket.executor},
                         {"input_bytes", bucket.inputs},
                         {"result_bytes", bucket.results},
                         {"macs", bucket.macs},
                         {"flops", bucket.flops},
                         {"moved_bytes", bucket.moved}};
  if (bucket.seconds)
    object["calibrated"] = {{"seconds", *bucket.seconds}, {"known_share", bucket.known_share}, {"correction", bucket.correction}};
  if (with_steps) object["steps"] = steps_of(bucket);
  return object;
}

json::object model_of(const ModelAnswer& model) {
  json::array buckets;
  for (const Bucket& bucket : model.buckets) buckets.push_back(bucket_of(bucket, &bucket == &model.buckets.back()));
  return {{"name", model.name},
          {"version", model.version},
          {"path", model.path},
          {"precision", model.precision},
          {"parameter_bytes", model.parameter_bytes},
          {"precision_why", model.precision_why},
          {"instances", model.instances},
          {"threads", model.threads},
          {"clients", model.clients},
          {"max_batch", model.max_batch},
          {"batch_symbol", model.batch_symbol},
          {"not_batchable", model.not_batchable},
          {"not_planned", model.not_planned},
          {"corrected_by", model.corrected_by},
          {"bytes",
           {{"constants", model.weights.constants},
            {"packed", model.weights.packed},
            {"weights", model.weights.constants + model.weights.packed},
            {"weights_at_load", model.weights_at_load},
            {"plan_constants", model.plan_constants},
            {"structures", model.structures},
            {"code", model.code},
            {"each_instance", model.each_instance()},
            {"in_flight", model.in_flight()},
            {"in_flight_as_json", model.as_json()},
            {"steady", model.steady()},
            {"peak", model.peak()}}},
          {"buckets", std::move(buckets)}};
}

std::string_view unit_of(Observation::Unit unit) {
  switch (unit) {
    case Observation::Unit::kBytes: return "bytes";
    case Observation::Unit::kSeconds: return "seconds";
    case Observation::Unit::kShare: return "share";
    case Observation::Unit::kPerSecond: return "per_second";
    case Observation::Unit::kRows: return "rows";
  }
  return "";
}

json::object observed_json(const Observed& observed) {
  json::array lines;
  for (const Observation& line : observed.lines) {
    const std::string_view unit = unit_of(line.unit);
    json::object object = {{"what", line.what}};
    if (line.planned) object[fmt::format("planned_{}", unit)] = *line.planned;
    object[fmt::format("measured_{}", unit)] = line.measured;
    object["at_most"] = line.at_most;
    object["too_low"] = line.wrong();
    lines.push_back(std::move(object));
  }
  return {{"url", observed.url},
          {"window", observed.window},
          {"lines", std::move(lines)},
          {"notes", json::array(observed.notes.begin(), observed.notes.end())}};
}

}  // namespace

std::string print_json(const Answer& answer, const Extras& extras) {
  json::array models;
  for (const ModelAnswer& model : answer.models) models.push_back(model_of(model));
  json::object object = {{"schema", "serin.plan/1"},
                         {"backend", answer.backend},
                         {"planning_ms", answer.planning_ms},
                         {"models", std::move(models)},
                         {"process", {{"base_bytes", answer.base}, {"total_bytes", answer.total()}, {"is_bound", answer.bounded()}}}};
  if (extras.placement) object["placement"] = placement_json(*extras.placement);
  if (extras.offers) object["demand"] = offers_json(*extras.offers, extras.notes);
  if (extras.from_template) object["template"] = template_json(*extras.from_template);
  if (extras.observed) object["observed"] = observed_json(*extras.observed);
  return json::serialize(object);
}

}  // namespace serin::planner
