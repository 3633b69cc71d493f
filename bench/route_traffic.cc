// route_traffic.cc: both ends of bench/route: servers that answer at once, and clients that measure, in one thread.
//
//   route_traffic PORT ANSWER_BYTES PORT ANSWER_BYTES ...     serves, and reads commands, one a line:
//   load PORT CONNECTIONS SECONDS BODY_BYTES RATE IDLE        answered by a line of JSON when done
//
// Both stand on the core that the proxy does not have, so what they cost is what the proxy cannot be loaded with: one epoll, one read and one write
// for each message, nothing parsed that needs no parsing, no switch between processes. With RATE 0 every connection sends its next request when
// it has the answer (closed loop). Otherwise requests become due at Poisson times, whatever the answers do, and a latency is counted from when its
// request was due, not from when a connection was free to send it (no coordinated omission). IDLE connections are opened beside and say nothing.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::nanoseconds;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void watch(int epoll, int descriptor, void* what) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLET, .data = {.ptr = what}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) die("epoll_ctl");
}

/// Somebody who is told of events on a descriptor.
struct Watched {
  virtual void on_event(uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

/// What both ends do: take in messages, of which only the length counts, and give out one each time.
struct Peer : Watched {
  int descriptor = -1;
  std::string in;
  size_t left = 0;  // of the body of the message that comes in
  bool in_body = false;
  const std::string* out = nullptr;  // what is being sent, from `sent` on
  size_t sent = 0;

  void flush() {
    while (out != nullptr) {
      const ssize_t n = ::send(descriptor, out->data() + sent, out->size() - sent, MSG_NOSIGNAL);
      if (n < 0) return;
      sent += static_cast<size_t>(n);
      if (sent == out->size()) out = nullptr;
    }
  }
  void send(const std::string& message) {
    out = &message;
    sent = 0;
    flush();
  }

  /// Calls take(status line) for each message that is complete; false at the end of the stream.
  template <class Take>
  bool receive(const Take& take) {
    static char bytes[1 << 18];
    for (;;) {
      const ssize_t n = ::recv(descriptor, bytes, sizeof bytes, 0);
      if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
      if (n < 0) return true;
      parse({bytes, static_cast<size_t>(n)}, take);
      if (static_cast<size_t>(n) < sizeof bytes) return true;
    }
  }
  template <class Take>
  void parse(std::string_view bytes, const Take& take) {
    while (!bytes.empty()) {
      if (in_body) {
        const size_t some = std::min(left, bytes.size());
        left -= some;
        bytes.remove_prefix(some);
      } else {
        in.append(bytes);
        const size_t end = in.find("\r\n\r\n");
        if (end == std::string::npos) return;
        bytes = bytes.substr(bytes.size() - (in.size() - end - 4));
        in.resize(end + 4);
        left = length_of(in);
        in_body = true;
      }
      if (left > 0) continue;
      in_body = false;
      take(std::string_view(in));
      in.clear();
    }
  }
  static size_t length_of(const std::string& head) {
    for (const char* name : {"\r\ncontent-length: ", "\r\nContent-Length: "})
      if (const size_t at = head.find(name); at != std::string::npos) return std::strtoull(head.c_str() + at + 18, nullptr, 10);
    return 0;
  }

 protected:
  ~Peer() = default;
};

// ---- the servers ----

class Server final : public Watched {
 public:
  Server(int epoll, int port, size_t answer_bytes) : epoll_(epoll), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    const int on = 1;
    ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in address = loopback(port);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || ::listen(listener_, 4096) != 0)
      die("listen");
    std::string body = R"({"model_name":"m","outputs":[{"name":"y","datatype":"FP32","shape":[1],"data":[0.5]}]})";
    body.resize(std::max(answer_bytes, body.size()), ' ');
    answer_ = "HTTP/1.1 200 OK\r\nserver: bench\r\ncontent-type: application/json\r\ncontent-length: " + std::to_string(body.size()) +
              "\r\n\r\n" + body;
    watch(epoll_, listener_, this);
  }

  void on_event(uint32_t) override {
    for (int descriptor; (descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
      const int on = 1;
      ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      watch(epoll_, descriptor, new Client(descriptor, answer_));
    }
  }

 private:
  struct Client final : Peer {
    Client(int from, const std::string& text) : answer(text) { descriptor = from; }
    void on_event(uint32_t events) override {
      if (events & EPOLLOUT) flush();
      if (!(events & ~EPOLLOUT) || receive([this](std::string_view) { send(answer); })) return;
      ::close(descriptor);
      delete this;
    }
    const std::string& answer;
  };

  const int epoll_, listener_;
  std::string answer_;
};

// ---- the clients ----

/// One load, from begin to report.
class Load {
 public:
  Load(int epoll, int port, size_t connections, double seconds, size_t body_bytes, double rate, size_t idle)
      : epoll_(epoll), port_(port), rate_(rate), clients_(connections) {
    request_ =
        "POST /v2/models/m/infer HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: bench\r\naccept: */*\r\ncontent-type: application/json\r\n"
        "content-length: " +
        std::to_string(body_bytes) + "\r\n\r\n" + std::string(body_bytes, '7');
    for (Client& client : clients_) {
      client.load = this;
      client.descriptor = connect();
      watch(epoll_, client.descriptor, &client);
      free_.push_back(&client);
    }
    for (size_t i = 0; i < idle; ++i) idle_.push_back(connect());
    due_ = Clock::now();
    counted_from_ = due_ + nanoseconds(static_cast<int64_t>(seconds * 2e8));  // the first fifth warms up
    end_ = due_ + nanoseconds(static_cast<int64_t>(seconds * 1e9));
    if (rate_ == 0)
      for (Client* client : std::exchange(free_, {})) ask(*client, due_);
  }
  ~Load() {
    for (Client& client : clients_) ::close(client.descriptor);
    for (const int descriptor : idle_) ::close(descriptor);
  }

  /// How long nothing more becomes due; nothing at the end.
  std::optional<nanoseconds> advance() {
    const auto now = Clock::now();
    if (now >= end_) return std::nullopt;
    if (rate_ == 0) return end_ - now;
    while (due_ <= now) {
      if (free_.empty()) {
        waiting_.push_back(due_);
      } else {
        ask(*free_.back(), due_);
        free_.pop_back();
      }
      due_ += nanoseconds(static_cast<int64_t>(gap_(random_) / rate_ * 1e9));
    }
    return std::min(due_, end_) - now;
  }

  void report() {
    std::ranges::sort(latencies_);
    const auto us = [this](double share) {
      return latencies_.empty()
                 ? 0.
                 : static_cast<double>(latencies_[static_cast<size_t>(share * static_cast<double>(latencies_.size() - 1))]) / 1e3;
    };
    std::printf(
        "{\"rate\": %.0f, \"answers\": %zu, \"all\": %zu, \"errors\": %zu, \"broken\": %zu, \"p50_us\": %.1f, \"p90_us\": %.1f, "
        "\"p99_us\": %.1f}\n",
        static_cast<double>(latencies_.size()) / std::chrono::duration<double>(Clock::now() - counted_from_).count(), latencies_.size(),
        all_, errors_, broken_, us(.5), us(.9), us(.99));
    std::fflush(stdout);
  }

 private:
  struct Client final : Peer {
    void on_event(uint32_t events) override {
      if (events & EPOLLOUT) flush();
      if (!receive([this](std::string_view head) { load->answered(*this, head); })) load->reopen(*this);
    }
    Load* load = nullptr;
    Clock::time_point due;
  };

  int connect() const {
    const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0), on = 1;
    const sockaddr_in address = loopback(port_);
    if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) die("connect");
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(descriptor, F_SETFL, O_NONBLOCK);
    return descriptor;
  }
  void ask(Client& client, Clock::time_point due) {
    client.due = due;
    client.send(request_);
  }
  void answered(Client& client, std::string_view head) {
    const auto now = Clock::now();
    ++all_;
    if (!head.starts_with("HTTP/1.1 2")) ++errors_;
    if (now >= counted_from_) latencies_.push_back((now - client.due).count());
    if (rate_ == 0) return ask(client, now);
    if (waiting_.empty()) return free_.push_back(&client);
    ask(client, waiting_.front());
    waiting_.pop_front();
  }
  void reopen(Client& client) {
    ++broken_;
    ::close(client.descriptor);
    client.in.clear();
    client.in_body = false;
    client.descriptor = connect();
    watch(epoll_, client.descriptor, &client);
    ask(client, client.due);
  }

  const int epoll_, port_;
  const double rate_;  // 0: closed loop
  std::string request_;
  std::vector<Client> clients_;
  std::vector<int> idle_;
  std::vector<Client*> free_;
  std::deque<Clock::time_point> waiting_;  // due, and no connection was free
  Clock::time_point due_, counted_from_, end_;
  std::mt19937_64 random_{1};
  std::exponential_distribution<double> gap_{1};
  std::vector<int64_t> latencies_;
  size_t all_ = 0, errors_ = 0, broken_ = 0;
};

// ---- the loop ----

/// Reads a command; false at the end of the input.
bool read_command(int epoll, std::optional<Load>& load) {
  char line[256];
  if (std::fgets(line, sizeof line, stdin) == nullptr) return false;
  int port;
  size_t connections, body_bytes, idle;
  double seconds, rate;
  if (std::sscanf(line, "load %d %zu %lf %zu %lf %zu", &port, &connections, &seconds, &body_bytes, &rate, &idle) != 6) return false;
  load.emplace(epoll, port, connections, seconds, body_bytes, rate, idle);
  return true;
}

void allow_descriptors() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3 || count % 2 == 0) {
    std::fputs("usage: route_traffic PORT ANSWER_BYTES [PORT ANSWER_BYTES ...]\n", stderr);
    return 2;
  }
  allow_descriptors();
  std::setvbuf(stdin, nullptr, _IONBF, 0);
  const int epoll = ::epoll_create1(0);
  std::vector<std::unique_ptr<Server>> servers;
  for (int i = 1; i < count; i += 2)
    servers.push_back(std::make_unique<Server>(epoll, std::atoi(arguments[i]), std::strtoull(arguments[i + 1], nullptr, 10)));
  epoll_event commands{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &commands) != 0) die("epoll_ctl");

  std::optional<Load> load;
  std::vector<epoll_event> events(512);
  for (;;) {
    nanoseconds wait = std::chrono::hours(1);
    if (load) {
      if (const auto until = load->advance()) {
        wait = *until;
      } else {
        load->report();
        load.reset();
      }
    }
    const timespec timeout{.tv_sec = wait.count() / 1'000'000'000, .tv_nsec = wait.count() % 1'000'000'000};
    const int ready = ::epoll_pwait2(epoll, events.data(), static_cast<int>(events.size()), &timeout, nullptr);
    for (int i = 0; i < ready; ++i) {
      if (auto* watched = static_cast<Watched*>(events[static_cast<size_t>(i)].data.ptr)) {
        watched->on_event(events[static_cast<size_t>(i)].events);
      } else if (!read_command(epoll, load)) {
        return 0;
      }
    }
  }
}
