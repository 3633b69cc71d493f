// process_stat.h: what proc(5) says of a process in /proc/PID/stat.
#pragma once

#include <cstddef>
#include <string>

namespace serin {

/// Field `number`, as proc(5) counts them from 1; 0 where there is none, or no such process. `process`: a number, or "self".
double stat_field(const std::string& process, size_t number);
/// Processor time of all its threads, with that of the system for it.
double cpu_seconds_of(const std::string& process);
/// The unit of times in stat.
double ticks_per_second();

}  // namespace serin
