// Stands before protobuf's own header of this name in builds with TSan: there, its maps have two members more than in Debian's library, which is built
// without, and every message with a map is corrupted by its first entry.
#pragma once
#pragma push_macro("__SANITIZE_THREAD__")
#undef __SANITIZE_THREAD__
#include_next <google/protobuf/map_field.h>
#pragma pop_macro("__SANITIZE_THREAD__")
