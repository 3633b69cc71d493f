// serve_anything.cc: `serin serve` in this process: the repository, every door, real connections. What an order changed is undone before the next input, so that
// one input alone shows again what it showed.

#include "tests/fuzz/serve_anything.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include "runtime/base/log.h"
#include "runtime/net/grpc_server.h"
#include "runtime/serving/apis/access.h"
#include "runtime/serving/apis/dialects/all_apis.h"
#include "runtime/serving/apis/grpc/grpc_api.h"
#include "runtime/serving/apis/http_api.h"
#include "tests/fuzz/local_socket.h"
#include "tests/fuzz/must.h"
#include "tests/router/store/test_folder.h"
#include "tests/runtime/formats/onnx/encode.h"

namespace serin::fuzz {
namespace {

using serving::Access;
using serving::Dialect;
using serving::Frontend;

/// Identities of numbers, halves, texts and flags.
std::string every_kind() {
  formats::GraphParts parts;
  const auto add = [&parts](const std::string& name, int64_t type, const std::vector<std::string>& dims) {
    parts.nodes.push_back(formats::node("Identity", name, {name}, {name + "_out"}));
    parts.inputs.push_back(formats::value(name, dims, type));
    parts.outputs.push_back(formats::value(name + "_out", dims, type));
  };
  add("f", 1, {"n", "2"});
  add("h", 10, {"n", "1"});
  add("i", 3, {"n", "1"});
  add("t", 8, {"n", "1"});
  add("o", 9, {"n", "1"});
  return formats::model(17, parts).str();
}

/// 4 KiB that both sides know: clients may register it.
struct Region {
  Region() {
    const int file = ::shm_open(kName, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    must(file >= 0 && ::ftruncate(file, 4096) == 0, "there is shared memory");
    ::close(file);
  }
  ~Region() { ::shm_unlink(kName); }
  static constexpr const char* kName = "/serin-fuzz";
};

/// One dialect's ports.
struct Doors {
  Doors(const char* name, net::Loops& loops, serving::Repository& repository, serving::Host& host, Access& access, Dialect dialect)
      : http_socket(std::string(name) + "-http"),
        grpc_socket(std::string(name) + "-grpc"),
        frontend(loops, repository, host, {.dialect = dialect, .shared_memory = true, .cors = true}),
        http_api(frontend, access, serving::all_http_apis(frontend)),
        grpc_api(serving::all_grpc_methods(frontend)) {
    net::ServerOptions http{.listening = http_socket.listening()}, grpc{.listening = grpc_socket.listening()};
    http.limits.body_bytes = grpc.limits.body_bytes = size_t{1} << 20;
    http_server = *net::Server::start(loops, http, http_api.at(Access::Port::kData));
    grpc_server = *net::start_grpc_server(loops, grpc, [this](std::string_view path) { return grpc_api.method(path); });
    frontend.set_ready(true);
  }

  LocalSocket http_socket, grpc_socket;
  Frontend frontend;
  serving::HttpApi http_api;
  serving::GrpcApi grpc_api;
  std::unique_ptr<net::Server> http_server, grpc_server;
};

class Serving {
 public:
  Serving() {
    log::configure({.level = log::Level::kOff});
    const std::filesystem::path folder = folder_.path() / "m" / "1";
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "model.onnx", std::ios::binary) << every_kind();
    std::ofstream(folder_.path() / "m" / "serin.yaml") << "max_batch: 4\n";
    repository_->load();
  }

  Doors& serin() { return serin_; }
  Doors& triton() { return triton_; }

  /// Back to the one model as it lies in its folder.
  void reload() {
    const auto held = repository_->catalogue().get();
    for (const auto& [name, model] : held->models) await([&](auto done) { repository_->unload_model(name, false, done); });
    await([&](auto done) { repository_->load_model("m", {}, done); });
    must(repository_->catalogue().get()->models.contains("m"), "the model comes back");
    log::configure({.level = log::Level::kOff});
  }

 private:
  static void await(const std::function<void(serving::Repository::Done)>& order) {
    const auto over = std::make_shared<std::promise<void>>();  // shared: who sets it is not done with it when it is set
    order([over](const Status&) { over->set_value(); });
    over->get_future().wait();
  }

  TestFolder folder_;
  Region region_;
  std::unique_ptr<kernels::Backend> backend_ = kernels::make_cpu_backend({.onednn_path = "none", .reference_only = true});
  metrics::Registry metrics_;
  net::Loops loops_{1};
  serving::Host host_{.backend = *backend_, .metrics = metrics_, .boot = 1, .pool = serving::ComputePool(1)};
  const serving::SchedulerFactory schedulers_{host_};
  std::unique_ptr<serving::Repository> repository_ = *serving::Repository::open(
      {.roots = {{folder_.path().string()}}, .control = serving::Control::kExplicit, .load_at_start = {"m"}}, host_, schedulers_);
  std::unique_ptr<Access> access_ = *Access::open({.tokens = {}, .admin_on_data_port = true}, metrics_);
  Doors serin_{"ours", loops_, *repository_, host_, *access_, Dialect::kSerin};
  Doors triton_{"triton", loops_, *repository_, host_, *access_, Dialect::kTriton};
};

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

bool is_order(std::string_view path) {
  return path.find("epository") != path.npos || path.find("ogg") != path.npos || path.find("Log") != path.npos;
}

std::string over_http(const Doors& doors, std::string_view text) {
  std::string sent(take_line(text));
  sent.append(" ").append(take_line(text)).append(" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n");
  for (std::string_view header = take_line(text); !header.empty(); header = take_line(text)) sent.append(header).append("\r\n");
  sent += "content-length: " + std::to_string(text.size()) + "\r\n\r\n";
  sent += text;
  std::string answer = doors.http_socket.converse(sent, LocalSocket::Then::kWait);
  while (answer.starts_with("HTTP/1.1 100 ")) answer.erase(0, answer.find("\r\n\r\n") + 4);
  must(answer.starts_with("HTTP/1.1 "), "there is an answer");
  return answer;
}

/// Of HTTP/2 (RFC 9113, 4.1).
std::string frame(char type, char flags, char stream, std::string_view payload) {
  std::string out;
  for (const size_t shift : {16u, 8u, 0u}) out += static_cast<char>(payload.size() >> shift);
  return (out += type) += flags + std::string("\0\0\0", 3) + stream + std::string(payload);
}

/// Without an index and without Huffman's code (RFC 7541, 6.2.2).
std::string field(std::string_view name, std::string_view value) {
  std::string out(1, '\0');
  for (const std::string_view text : {name, value}) {
    if (text.size() < 127) {
      out += static_cast<char>(text.size());
    } else {
      out += '\x7f';
      size_t rest = text.size() - 127;
      for (; rest >= 128; rest >>= 7) out += static_cast<char>(rest | 128);
      out += static_cast<char>(rest);
    }
    out += text;
  }
  return out;
}

/// Whether the stream of the call has ended, or the connection.
bool call_is_over(std::string_view received) {
  while (received.size() >= 9) {
    const auto byte = [&](size_t i) { return static_cast<unsigned char>(received[i]); };
    const size_t size = size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2);
    if (received.size() < 9 + size) return false;
    const unsigned char type = byte(3), flags = byte(4);
    constexpr unsigned char kData = 0, kHeaders = 1, kReset = 3, kGoAway = 7, kEndStream = 1;
    if (type == kReset || type == kGoAway || ((type == kData || type == kHeaders) && (flags & kEndStream))) return true;
    received.remove_prefix(9 + size);
  }
  return false;
}

void over_grpc(const Doors& doors, std::string_view text) {
  const std::string_view path = take_line(text);
  if (path.find("Watch") != path.npos) return;  // has no end
  constexpr size_t kFrame = 16384, kWindow = 65535;
  const std::string window("\x7f\xff\xff\xff", 4), more("\x7f\xff\0\0", 4);
  std::string sent = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, std::string("\0\4", 2) + window) + frame(8, 0, 0, more);
  sent += frame(1, 4, 1,
                field(":method", "POST") + field(":scheme", "http") + field(":path", path.substr(0, 8000)) + field(":authority", "x") +
                    field("content-type", "application/grpc") + field("te", "trailers"));
  text = text.substr(0, kWindow);
  for (; text.size() > kFrame; text.remove_prefix(kFrame)) sent += frame(0, 0, 1, text.substr(0, kFrame));
  sent += frame(0, 1, 1, text);
  must(call_is_over(doors.grpc_socket.converse(sent, LocalSocket::Then::kWait, call_is_over)), "the call ends");
}

}  // namespace

void serve_anything(std::string_view input) {
  static Serving serving;
  if (input.empty()) return;
  const std::string_view rest = input.substr(1);
  switch (input[0]) {
    case 'h': must(!over_http(serving.serin(), rest).starts_with("HTTP/1.1 500"), "no error is the server's own"); break;
    case 't': (void)over_http(serving.triton(), rest); break;  // which says 500 for much
    case 'g': over_grpc(serving.serin(), rest); break;
    default: return;
  }
  if (is_order(rest.substr(0, 200))) serving.reload();
}

}  // namespace serin::fuzz
