// smuggling_rows.h: one message for each family of parser bugs that request smuggling was built on (HS1 to HS48). All must be refused.
//
// Every row is a whole message that some released server understood in another way than its proxy did. What such a message hides is a second
// request, GET /smuggled: no test may ever see it served.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace serin::net::test {

struct SmugglingRow {
  std::string_view name;
  std::string message;
};

inline std::vector<SmugglingRow> smuggling_rows() {
  using namespace std::string_literals;
  const std::string hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string post = "POST /echo HTTP/1.1\r\nHost: a\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const auto get = [](const std::string& header) { return "GET /echo HTTP/1.1\r\nHost: a\r\n" + header + "\r\n\r\n"; };
  return {
      {"HS1 chunk size 0x", chunked + "0x3\r\nabc\r\n0\r\n\r\n"},
      {"HS1 chunk size _", chunked + "0_3\r\nabc\r\n0\r\n\r\n"},
      {"HS1 chunk size +", chunked + "+3\r\nabc\r\n0\r\n\r\n"},
      {"HS1 chunk size -", chunked + "-3\r\nabc\r\n0\r\n\r\n"},
      {"HS2 NUL in a value", get("X: a\0b"s)},
      {"HS2 CR in a value", get("X: a\rTransfer-Encoding: chunked")},
      {"HS2 LF in a value", get("X: a\nTransfer-Encoding: chunked")},
      {"HS3 space before the colon", post + "Content-Length : 36\r\n\r\n" + hidden},
      {"HS3 tab before the colon", post + "Transfer-Encoding\t: chunked\r\n\r\n0\r\n\r\n"},
      {"HS4 space before the first name", "GET /echo HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"HS5 version with more behind", "GET /echo HTTP/1.1x\r\nHost: a\r\n\r\n"},
      {"HS6 method with less before", "\0GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"s},
      {"HS6 method in quotes", "\"GET\" /echo HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HS7 target with a control character", "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HS7 target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"HS8 non-ASCII name", get("X\xE2\x80\x8B: a")},
      {"HS9 LF ends the request line", "GET /echo HTTP/1.1\nHost: a\r\n\r\n"},
      {"HS10 length 0x", post + "Content-Length: 0x24\r\n\r\n" + hidden},
      {"HS10 length _", post + "Content-Length: 3_6\r\n\r\n" + hidden},
      {"HS11 two encodings", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"},
      {"HS12 non-breaking space trimmed", post + "Content-Length: 36\xA0\r\n\r\n" + hidden},
      {"HS12 next-line trimmed", post + "Transfer-Encoding: \x85"
                                        "chunked\r\n\r\n0\r\n\r\n"},
      {"HS13 CR ends a line", "GET /echo HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"},
      {"HS14 illegal byte in a name", get("X[: a")},
      {"HS15 version unvalidated", "GET /echo HTTP/x.y\r\nHost: a\r\n\r\n"},
      {"HS16 empty length", post + "Content-Length:\r\n\r\n" + hidden},
      {"HS17 empty chunk size", chunked + "\r\n\r\n" + hidden},
      {"HS17 extension without a size", chunked + ";a\r\n\r\n" + hidden},
      {"HS18 empty name", get(": a")},
      {"HS19 form feed after the colon", post + "Transfer-Encoding:\x0C"
                                                "chunked\r\n\r\n0\r\n\r\n"},
      {"HS19 vertical tab after the colon", post + "Transfer-Encoding:\x0B"
                                                   "chunked\r\n\r\n0\r\n\r\n"},
      {"HS20 end of a name trimmed", get("Content-Length\x01: 36")},
      {"HS21 comma before chunked", post + "Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n"},
      {"HS22 chunk size with more behind", chunked + "3x\r\nabc\r\n0\r\n\r\n"},
      {"HS23 lengths that differ", post + "Content-Length: 0\r\nContent-Length: 36\r\n\r\n" + hidden},
      {"HS24 version HTTP/1.10", "GET /echo HTTP/1.10\r\nHost: a\r\n\r\n"},
      {"HS25 chunk size with a space before", chunked + " 3\r\nabc\r\n0\r\n\r\n"},
      {"HS26 negative length", post + "Content-Length: -1\r\n\r\n"},
      {"HS27 empty name in the middle", post + ":\r\nContent-Length: 36\r\n\r\n" + hidden},
      {"HS28 name and value without a colon", get("Content-Length 36")},
      {"HS29 length with a sign", post + "Content-Length: +36\r\n\r\n" + hidden},
      {"HS30 CR before a name after the block", "GET /echo HTTP/1.1\r\nHost: a\r\n\rX: b\r\n\r\n"},
      {"HS31 CR and a letter as the end", "GET /echo HTTP/1.1\r\nHost: a\r\n\rX"s + "\r\n\r\n" + hidden},
      {"HS32 length with more behind", post + "Content-Length: 36abc\r\n\r\n" + hidden},
      {"HS33 lengths that differ, as a list", post + "Content-Length: 0, 36\r\n\r\n" + hidden},
      {"HS34 CR at the start of a value", get("X:\ra")},
      {"HS35 NUL ends a value", post + "Transfer-Encoding: chunked\0x\r\n\r\n0\r\n\r\n"s},
      {"HS36 CR in a chunk extension", chunked + "3;a\rb\r\nabc\r\n0\r\n\r\n"},
      {"HS36 LF in a chunk extension", chunked + "3;a\nabc\r\n0\r\n\r\n"},
      {"HS37 folded name", get("X\r\n : a")},
      {"HS37 folded value", get("Transfer-Encoding:\r\n chunked")},
      {"HS38 empty length, then bytes", post + "Content-Length: \r\n\r\n" + hidden},
      {"HS39 chunk longer than its size", chunked + "3\r\nabcXX\r\n0\r\n\r\n"},
      {"HS39 chunk end with more behind", chunked + "3\r\nabc\r\nXX\r\n0\r\n\r\n"},
      {"HS40 version that overflows", "GET /echo HTTP/1.257\r\nHost: a\r\n\r\n"},
      {"HS41 non-ASCII in a value", get("X: \xFF")},
      {"HS42 empty length beside an encoding", post + "Content-Length:\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"HS43 NUL in a name", post + "Content-\0Length: 36\r\n\r\n"s + hidden},
      {"HS44 unknown encoding", post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
      {"HS46 0x80 before a length", post +
                                        "Content-Length: \x80"
                                        "36\r\n\r\n" +
                                        hidden},
      {"HS47 second chunk invalid", chunked + "3\r\nabc\r\nzz\r\n" + hidden},
      {"CL.TE", post + "Content-Length: 36\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden},
      {"trailer without a colon", chunked + "0\r\n" + hidden},
      {"trailer folded", chunked + "0\r\nx: y\r\n z\r\n\r\n"},
  };
}

}  // namespace serin::net::test
