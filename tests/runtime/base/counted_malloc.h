// counted_malloc.h: a program that is linked with counted_malloc.cc hears of every allocation, whoever makes it: operator new goes through malloc.
// Not where a sanitizer has replaced malloc already.
#pragma once

namespace serin::test {

/// Defined by the program. Called before malloc, calloc, realloc and their like, on the thread that calls them; allocates nothing itself.
void count_allocation();

}  // namespace serin::test
