#include "runtime/planner/prices.h"

#include "runtime/planner/keys.h"

namespace serin::planner {

bool Prices::knows(const Device* device) const { return device ? devices.contains(device->name) : core > 0 || gigabyte > 0; }

double Prices::hour(const Device* device, double share, int cores, double bytes) const {
  const double host = core * cores + gigabyte * bytes / 1e9;
  return device ? devices.at(device->name) * share + host : host;
}

Result<Prices> read_prices(const std::string& path, const Catalogue& catalogue) {
  constexpr double kMostPrice = 1e6;
  Prices prices;
  SERIN_TRY(const config::Node root, config::Node::load(path));
  SERIN_CHECK(only_keys(root, {"currency", "source", "hour"}));
  SERIN_TRY(prices.currency, root.text("currency", "USD"));
  SERIN_TRY(prices.source, root.text("source", ""));
  SERIN_TRY(const config::Node hour, root.at("hour"));
  for (const std::string& key : hour.keys()) {
    SERIN_TRY(const config::Node value, hour.at(key));
    SERIN_TRY(const double price, value.number(0, kMostPrice));
    if (key == "core" || key == "gigabyte") {
      (key == "core" ? prices.core : prices.gigabyte) = price;
      continue;
    }
    auto found = catalogue.find(key);
    if (!found) return value.error(found.error().message + "; or core, or gigabyte");
    prices.devices[(*found)->name] = price;
  }
  if (prices.devices.empty() && prices.core == 0 && prices.gigabyte == 0) return hour.error("has no price");
  return prices;
}

}  // namespace serin::planner
