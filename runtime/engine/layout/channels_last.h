// channels_last.h: the layout stage for devices: convolutions and steps between them work on images [n, h, w, c].
#pragma once

#include <string_view>

#include "runtime/engine/layout/constant_forms.h"
#include "runtime/engine/program/program.h"

namespace serin::engine {

/// The stage's name for LoadOptions::disabled_passes.
inline constexpr std::string_view kChannelsLastPass = "channels_last";

/// Rewrites `program`; returns whether anything changed.
bool put_channels_last(Program& program, ConstantForms& forms);

}  // namespace serin::engine
