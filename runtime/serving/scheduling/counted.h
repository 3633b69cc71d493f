// counted.h: a request that runs in a model as part of another request, as the metrics of that model count it.
#pragma once

#include <memory>
#include <utility>

#include "runtime/serving/scheduling/served.h"

namespace serin::serving {

class Counted {
 public:
  /// `counts`: not for shadow traffic.
  Counted(std::shared_ptr<const ServedModel> model, bool counts, int64_t rows) : model_(std::move(model)), counts_(counts), rows_(rows) {}

  void answered(const Answer& answer) const {
    if (counts_) model_->metrics().answered(rows_, answer.ending(), Clock::now() - began_);
  }
  void refused(const Error& why) const {
    if (counts_) model_->metrics().refused(why, Clock::now() - began_, /*by=*/std::nullopt);
  }

 private:
  const std::shared_ptr<const ServedModel> model_;
  const bool counts_;
  const int64_t rows_;
  const Clock::time_point began_ = Clock::now();
};

}  // namespace serin::serving
