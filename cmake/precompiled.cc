// precompiled.cc: a target needs a source; this one exists for its precompiled header (rooms.cmake).
