// channels_last.h: the layout stage for devices: convolutions and what lies between them work on images [n, h, w, c].
#pragma once

#include <string_view>

#include "runtime/engine/layout/constant_forms.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// Its name among the passes, for LoadOptions::disabled_passes.
inline constexpr std::string_view kChannelsLastPass = "channels_last";

/// Rewrites `program`; answers whether anything changed.
bool put_channels_last(Program& program, ConstantForms& forms);

}  // namespace serin::engine
