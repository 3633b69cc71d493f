// The audit log on a pipe: every change once it is stored, none twice, none lost, and nobody waits for a reader that stands still.

#include "router/notify/audit_stream.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "router/store/sqlite_store.h"
#include "runtime/base/config.h"
#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

struct Pipe {
  Pipe() {
    EXPECT_EQ(::pipe(ends.data()), 0);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  std::vector<std::string> read_lines() {
    std::array<char, 65'536> bytes;
    for (ssize_t n = 0; (n = ::read(ends[0], bytes.data(), bytes.size())) > 0;) rest.append(bytes.data(), static_cast<size_t>(n));
    std::vector<std::string> lines;
    for (size_t end = 0; (end = rest.find('\n')) != std::string::npos; rest.erase(0, end + 1)) lines.push_back(rest.substr(0, end));
    return lines;
  }
  std::array<int, 2> ends{};
  std::string rest;
};

std::unique_ptr<store::Store> open_store(const std::string& path) { return std::move(store::open_sqlite_store(path)->store); }

void change(store::Store& store, const std::string& detail) {
  ASSERT_TRUE(store.save({.record = {.service = "digits", .stable = "1"},
                          .history = {{.wall_ms = 1'770'091'506'789,
                                       .service = "digits",
                                       .rollout = "digits-1",
                                       .event = "weight",
                                       .actor = "ann",
                                       .detail = detail,
                                       .weight_ppm = 125'000}}}));
}

std::string field(const std::string& line, const char* key) { return *config::Node::parse(line, "line")->text(key, ""); }

TEST(AuditStream, SaysWhoDidWhatWhenAndWhy) {
  const TestFolder folder;
  const auto store = open_store(folder.file("router.db"));
  Pipe pipe;
  AuditStream audit(pipe.ends[1]);
  change(*store, "says \"why\"\nin two lines");
  EXPECT_TRUE(*audit.follow(*store));
  const auto lines = pipe.read_lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0],
            R"({"audit":"change","id":1,"time":"2026-02-03T04:05:06.789Z","wall_ms":1770091506789,"service":"digits","rollout":"digits-1",)"
            R"("event":"weight","actor":"ann","detail":"says \"why\"\nin two lines","weight":12.5,"weight_ppm":125000,"previous":"",)"
            R"("digest":"6169fe5b76e80ef50813919d17b684c7c76d8e790eb52b02572f7e46b09f2322"})");
}

TEST(AuditStream, GoesOnWhereItStoppedAfterARestart) {
  const TestFolder folder;
  const std::string path = folder.file("router.db");
  Pipe pipe;
  {
    const auto store = open_store(path);
    AuditStream audit(pipe.ends[1]);
    change(*store, "first");
    EXPECT_TRUE(*audit.follow(*store));
    change(*store, "second");  // killed before it was told
  }
  const auto store = open_store(path);
  AuditStream audit(pipe.ends[1]);
  EXPECT_TRUE(*audit.follow(*store));
  EXPECT_TRUE(*audit.follow(*store));
  const auto lines = pipe.read_lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_EQ(field(lines[1], "detail"), "second");
}

TEST(AuditStream, F7AReaderThatStandsStillHoldsNobodyUpAndLosesNothing) {
  const TestFolder folder;
  const auto store = open_store(folder.file("router.db"));
  Pipe pipe;
  ::fcntl(pipe.ends[1], F_SETPIPE_SZ, 4096 * 2);
  AuditStream audit(pipe.ends[1]);
  constexpr int kChanges = 200;
  for (int i = 0; i < kChanges; ++i) change(*store, std::string(100, 'x') + std::to_string(i));
  EXPECT_FALSE(*audit.follow(*store)) << "the pipe is full, and that is said instead of waited for";
  audit.refused({.actor = "ann", .method = "POST", .path = "/", .status = 403, .error = "no"});
  std::vector<std::string> lines = pipe.read_lines();
  for (int round = 0; round < kChanges && lines.size() < kChanges; ++round) {
    ASSERT_TRUE(audit.follow(*store));
    for (std::string& line : pipe.read_lines()) lines.push_back(std::move(line));
  }
  ASSERT_THAT(lines, SizeIs(kChanges));
  for (int i = 0; i < kChanges; ++i) EXPECT_EQ(field(lines[static_cast<size_t>(i)], "id"), std::to_string(i + 1));
}

TEST(AuditStream, ALineFitsIntoWhatAPipeTakesAtOnce) {
  const TestFolder folder;
  const auto store = open_store(folder.file("router.db"));
  Pipe pipe;
  AuditStream audit(pipe.ends[1]);
  change(*store, std::string(100'000, '\x01'));
  change(*store, "next");
  EXPECT_TRUE(*audit.follow(*store));
  const auto lines = pipe.read_lines();
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_LT(lines[0].size(), static_cast<size_t>(PIPE_BUF));
  EXPECT_THAT(field(lines[0], "detail"), HasSubstr(" ..."));
}

TEST(AuditStream, H28WhatSomebodySentCannotForgeALine) {
  Pipe pipe;
  const AuditStream audit(pipe.ends[1]);
  audit.refused({.actor = "x\"}\n{\"audit\":\"change\"",
                 .peer = "192.0.2.7:1",
                 .method = "POST",
                 .path = "/\n\x1b[2J\xC2\x9B\x7F",
                 .status = 403,
                 .error = "no"});
  const auto lines = pipe.read_lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], HasSubstr(R"(\u001b[2J\u009b\u007f)"));
  EXPECT_EQ(field(lines[0], "audit"), "refused");
  EXPECT_EQ(field(lines[0], "status"), "403");
  EXPECT_EQ(field(lines[0], "actor"), "x\"}\n{\"audit\":\"change\"");
  EXPECT_THAT(lines[0], StartsWith(R"({"audit":"refused","time":"2)"));
  EXPECT_THAT(lines[0], HasSubstr(R"(Z","wall_ms":)"));
  EXPECT_THAT(lines[0], EndsWith(R"(,"actor":"x\"}\n{\"audit\":\"change\"","peer":"192.0.2.7:1","method":"POST",)"
                                 R"("path":"/\n\u001b[2J\u009b\u007f","status":403,"error":"no"})"));
}

}  // namespace
}  // namespace serin::router
