// drawn_text.h: the texts of drawn_text.py, in C++. That file describes them.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/utf8.h"

namespace serin::steps::text {

class DrawnText {
 public:
  explicit DrawnText(const std::string& alphabets) {
    std::ifstream file(alphabets);
    for (std::string row; std::getline(file, row);) {
      std::istringstream words(row);
      std::string kind;
      Line line;
      words >> kind >> line.weight;
      for (std::string item; words >> item;) line.items.push_back(item);
      kinds_[kind].push_back(std::move(line));
    }
  }

  std::string text(const std::string& kind, uint64_t number) const {
    uint64_t state = (number + 1) * 0x9E3779B97F4A7C15;
    const auto below = [&state](uint64_t limit) {
      state ^= state >> 12;
      state ^= state << 25;
      state ^= state >> 27;
      return (state * 0x2545F4914F6CDD1D >> 33) % limit;
    };
    const auto& lines = kinds_.at(kind);
    uint64_t total = 0;
    for (const Line& line : lines) total += line.weight;
    std::string out;
    for (uint64_t left = 1 + below(24); left > 0; --left) {
      uint64_t at = below(total);
      size_t i = 0;
      for (; at >= lines[i].weight; ++i) at -= lines[i].weight;
      append(lines[i].items[below(lines[i].items.size())], below, out);
    }
    return out;
  }

 private:
  struct Line {
    uint64_t weight = 0;
    std::vector<std::string> items;
  };

  template <class F>
  static void append(const std::string& item, F&& below, std::string& out) {
    const auto code = [](const std::string& digits) { return static_cast<char32_t>(std::stoul(digits, nullptr, 16)); };
    if (item[0] == '"') {
      out += item.substr(1);
      return;
    }
    if (const size_t dash = item.find('-'); dash != std::string::npos) {
      const char32_t first = code(item.substr(0, dash)), last = code(item.substr(dash + 1));
      encode_utf8(first + static_cast<char32_t>(below(last - first + 1)), out);
      return;
    }
    std::istringstream codes(item);
    for (std::string one; std::getline(codes, one, '.');) encode_utf8(code(one), out);
  }

  std::map<std::string, std::vector<Line>> kinds_;
};

}  // namespace serin::steps::text
