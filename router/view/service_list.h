// service_list.h: Services and their versions as the admin API has them, each described once (runtime/base/schema.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/schema.h"

namespace serin::router::view {

struct Version {
  std::string name;
  double weight = 0;
  uint32_t weight_ppm = 0;
  uint64_t endpoints = 0;
  std::optional<uint64_t> healthy;
};
inline constexpr auto kVersion = schema::object<Version>(
    "Version", "One version of a service.", schema::field("name", &Version::name, "Its name in router.yaml."),
    schema::field("weight", &Version::weight, "Its share of the requests, in percent.", {.least = 0, .most = 100}),
    schema::field("weight_ppm", &Version::weight_ppm, "The same in parts per million.", {.least = 0, .most = 1'000'000}),
    schema::field("endpoints", &Version::endpoints, "How many there are."),
    schema::field("healthy", &Version::healthy, "Endpoints that are healthy; null: not asked yet."));

struct Service {
  std::string name, stable;
  uint64_t epoch = 0;
  std::vector<Version> versions;
};
inline constexpr auto kService =
    schema::object<Service>("Service", "A service of router.yaml.", schema::field("name", &Service::name, "Its name."),
                            schema::field("stable", &Service::stable, "The version that is stable now."),
                            schema::field("epoch", &Service::epoch, "Rises with every change; for If-Match."),
                            schema::field<kVersion>("versions", &Service::versions, "In the order of router.yaml."));

struct ServiceList {
  std::vector<Service> services;
};
inline constexpr auto kServiceList = schema::object<ServiceList>(
    "ServiceList", "All services.", schema::field<kService>("services", &ServiceList::services, "In the order of router.yaml."));

}  // namespace serin::router::view
