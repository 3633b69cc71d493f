// No allocation of ours for an inference in steady state, over gRPC and REST: real sockets, real models, counted in this program's own malloc on all
// threads of the server, compute threads included. An allocation is a library's where the innermost frame that belongs neither to the C and C++ libraries nor to this
// program's malloc lies in another library (nghttp2, OpenSSL); those are printed. What the test's own client does is not counted.

#include <execinfo.h>
#include <gtest/gtest.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "tests/runtime/base/counted_malloc.h"
#include "tests/runtime/serving/inference_server.h"

namespace {

constexpr size_t kDepth = 24, kSites = 256;

struct Range {
  uintptr_t begin = 0, end = 0;
  bool holds(const void* at) const { return reinterpret_cast<uintptr_t>(at) - begin < end - begin; }
};

/// Where code lies: of the program itself, and of the C and C++ libraries, through which everybody allocates.
struct Modules {
  Range program;
  std::array<Range, 4> bases;
  size_t count = 0;

  bool is_base(const void* at) const {
    for (size_t i = 0; i < count; ++i)
      if (bases[i].holds(at)) return true;
    return false;
  }
};

struct Site {
  std::array<void*, kDepth> stack;
  int depth = 0;
  uint64_t count = 0;
};

Modules modules;
thread_local bool of_client = false, inside = false;
std::atomic<bool> counting{false};
std::mutex mutex;  // guards all below
uint64_t ours = 0, libraries = 0;
std::array<Site, kSites> sites;  // of ours
size_t sites_known = 0;

void find_modules() {
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void*) {
        Range range{UINTPTR_MAX, 0};
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD) continue;
          range.begin = std::min<uintptr_t>(range.begin, info->dlpi_addr + part.p_vaddr);
          range.end = std::max<uintptr_t>(range.end, info->dlpi_addr + part.p_vaddr + part.p_memsz);
        }
        const std::string_view name = info->dlpi_name;
        if (name.empty() && modules.program.end == 0) modules.program = range;
        if (name.find("/libc.so") != name.npos || name.find("/libstdc++.so") != name.npos) modules.bases[modules.count++] = range;
        return 0;
      },
      nullptr);
}

}  // namespace

__attribute__((noinline)) void serin::test::count_allocation() {
  if (of_client || inside || !counting.load(std::memory_order_relaxed)) return;
  inside = true;
  constexpr int kOwnFrames = 2;  // this one and malloc
  std::array<void*, kDepth> stack;
  const int depth = ::backtrace(stack.data(), kDepth);
  int first = kOwnFrames;
  while (first < depth && modules.is_base(stack[static_cast<size_t>(first)])) ++first;
  const std::lock_guard lock(mutex);
  inside = false;
  if (first < depth && !modules.program.holds(stack[static_cast<size_t>(first)])) {
    ++libraries;
    return;
  }
  ++ours;
  size_t at = 0;
  while (at < sites_known &&
         (sites[at].depth != depth || std::memcmp(sites[at].stack.data(), stack.data(), sizeof(void*) * static_cast<size_t>(depth)) != 0))
    ++at;
  if (at == kSites) return;
  if (at == sites_known) sites[sites_known++] = {stack, depth, 0};
  ++sites[at].count;
}

namespace {

void forget_counts() {
  const std::lock_guard lock(mutex);
  ours = libraries = sites_known = 0;
}

}  // namespace

namespace serin::serving {
namespace {

class Allocation : public testing::Test {
 protected:
  static constexpr int kRounds = 10, kRequests = 300;

  void SetUp() override {
    of_client = true;
    std::array<void*, 1> once;
    ::backtrace(once.data(), 1);  // the first call loads a library
    if (modules.count == 0) find_modules();
  }

  /// The state is steady once everything that is used again is there: as many objects, above all, as are ever in use at once.
  template <class Ask>
  static void expect_none(const Ask& ask) {
    for (int round = 0; round == 0 || (round < kRounds && ours > 0); ++round) {
      forget_counts();
      counting = true;
      for (int i = 0; i < kRequests; ++i) ASSERT_TRUE(ask());
      counting = false;
    }
    const std::lock_guard lock(mutex);
    std::printf("%.2f allocations per request in libraries\n", static_cast<double>(libraries) / kRequests);
    EXPECT_EQ(ours, 0u) << "in " << kRequests << " requests, for the tenth time; from here:";
    for (size_t i = 0; i < sites_known; ++i) {
      std::printf("%llu times:\n", static_cast<unsigned long long>(sites[i].count));
      std::fflush(stdout);
      ::backtrace_symbols_fd(sites[i].stack.data(), sites[i].depth, STDOUT_FILENO);
    }
  }

  test::InferenceServer server_;
};

bool answers(net::test::RawSocket& client, std::string_view request) {
  client.send(request);
  const std::string answer = client.receive_answer();
  const bool good = answer.starts_with("HTTP/1.1 200");
  EXPECT_TRUE(good) << answer;
  return good;
}

TEST_F(Allocation, NoneForACallOfGrpc) {
  auto peer = test::connect_grpc(server_);
  const std::string message = test::grpc_request(std::vector<float>(64, 0.5F), "a request with a long id, which is echoed");
  uint32_t stream = 1;
  expect_none([&] {
    const auto answer = peer.ask(std::exchange(stream, stream + 2), test::grpc_fields(), message);
    const auto status = answer.trailers.find("grpc-status");
    const bool good = status != answer.trailers.end() && status->second == "0";
    EXPECT_TRUE(good) << testing::PrintToString(answer.head);
    return good;
  });
}

TEST_F(Allocation, NoneForJson) {
  auto client = net::test::RawSocket::connect(server_.http());
  const std::string request = test::json_request(std::vector<float>(64, 0.5F), "a request with a long id, which is echoed");
  expect_none([&] { return answers(client, request); });
}

TEST_F(Allocation, NoneForBytesBehindJson) {
  auto client = net::test::RawSocket::connect(server_.http());
  const std::string request = test::bytes_request(std::vector<float>(64, 0.5F));
  expect_none([&] { return answers(client, request); });
}

}  // namespace
}  // namespace serin::serving
