// print_smuggling_rows.cc: the rows of smuggling_rows.h for programs in other languages: a line each, name, tab, the message in hexadecimal digits.

#include <cstdio>

#include "tests/runtime/net/smuggling_rows.h"

int main() {
  for (const auto& row : serin::net::test::smuggling_rows()) {
    std::printf("%.*s\t", static_cast<int>(row.name.size()), row.name.data());
    for (const char c : row.message) std::printf("%02x", static_cast<unsigned char>(c));
    std::printf("\n");
  }
}
