// peers.cc: one io thread with a small server and a client.
//
// Sightings of a service are sent one message at a time, and again until the leader has answered: it counts the same number of the same sender once, so
// nothing counts twice and nothing is lost that there was room for. A new leader begins with what is seen from then on.

#include "router/replicas/peers.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <map>
#include <random>

#include "router/config/config_store.h"
#include "router/store/record_json.h"
#include "runtime/base/log.h"
#include "runtime/net/client.h"
#include "runtime/net/loop.h"
#include "runtime/net/server.h"
#include "runtime/net/tokens.h"

namespace serin::router {
namespace {

namespace json = boost::json;
using std::chrono::milliseconds;

constexpr milliseconds kSendEvery{10}, kAnswerWithin{300}, kTellAgain{50}, kTellLoadEvery{250};
constexpr int kTellTimes = 20;
constexpr std::chrono::minutes kSpeakToGone{10};
constexpr size_t kLargestMessage = size_t{4} << 20;

std::string random_text() {
  std::random_device entropy;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", entropy(), entropy(), entropy(), entropy());
}

std::optional<net::Origin> origin_of(const std::string& address) {
  const auto url = net::parse_url("http://" + address);
  return url ? std::optional(url->origin) : std::nullopt;
}

}  // namespace

struct Peers::State {
  PeerEvents events;
  std::string address, secret = random_text();
  const std::string run = random_text();  // tells this run of the router from its last one

  // Of the io thread.
  std::string self, leader;
  std::vector<store::Member> members;
  std::map<std::string, std::chrono::steady_clock::time_point> alive_at;  // by id: when the store last counted it
  std::unique_ptr<net::Client> client;
  net::Timer next;
  struct Message {
    uint64_t sequence = 0;
    std::shared_ptr<const std::string> body;  // until the leader has answered
    bool under_way = false;
  };
  std::map<std::string, Message> outgoing;  // by service
  struct Sender {
    std::string run;
    std::map<std::string, uint64_t> sequences;  // by service: the last that counted
  };
  std::map<std::string, Sender> senders;  // by member
  struct Untold {
    std::chrono::steady_clock::time_point at;
    std::shared_ptr<const std::string> body;
    store::Member to;
    int times;
  };
  std::vector<Untold> untold;  // trips that somebody has not heard of
  LoadSource load;             // null: nobody asks for it
  std::chrono::steady_clock::time_point next_load;
  std::shared_ptr<metrics::Counter> received, dropped;

  net::Loops loops{1};
  std::unique_ptr<net::Server> server;

  net::Response answer(const net::Request& request);
  void receive(const SightingsMessage& message);
  void tick();
  void send_sightings();
  void send(const std::string& service, const store::Member& to);
  void tell(const std::shared_ptr<const std::string>& body, const store::Member& to, int times);
  void tell_load(std::chrono::steady_clock::time_point now);
  void remember(std::vector<store::Member> alive);
  const store::Member* find(const std::string& id) const {
    const auto found = std::ranges::find(members, id, &store::Member::id);
    return found == members.end() ? nullptr : &*found;
  }
};

net::Response Peers::State::answer(const net::Request& request) {
  const std::string_view said = request.headers.get("authorization");
  if (!said.starts_with("Bearer ") || !net::equal_secrets(said.substr(7), secret))
    return net::json_error(401, "not a member of this group of routers");
  if (request.method != "POST") return net::json_error(405, "POST");
  if (request.path == "/v1/trip") {
    boost::system::error_code failure;
    const auto trip = store::trip_from_json(json::parse(request.body, failure));
    if (failure || !trip) return net::json_error(400, "not a trip");
    events.trip(*trip);
    return {};
  }
  if (request.path == "/v1/sightings") {
    const auto message = decode(request.body);
    if (!message) return net::json_error(400, message.error().message);
    receive(*message);
    return {};
  }
  if (request.path == "/v1/loads") {
    auto message = decode_loads(request.body);
    if (!message) return net::json_error(400, message.error().message);
    if (find(message->member) != nullptr) events.loads(std::move(*message));
    return {};
  }
  return net::json_error(404, "not found");
}

/// One that the store does not count any more may only be cut off from it, and still route: it is spoken to for a while.
void Peers::State::remember(std::vector<store::Member> alive) {
  const auto now = std::chrono::steady_clock::now();
  for (store::Member& member : std::exchange(members, std::move(alive)))
    if (find(member.id) == nullptr && now - alive_at[member.id] < kSpeakToGone)
      members.push_back(std::move(member));
    else
      alive_at[member.id] = now;
  std::erase_if(alive_at, [this](const auto& seen) { return find(seen.first) == nullptr; });
}

void Peers::State::receive(const SightingsMessage& message) {
  const size_t slash = message.sender.rfind('/');
  const std::string id = message.sender.substr(0, slash);
  if (slash == std::string::npos || find(id) == nullptr) return;  // memory is kept for members only
  Sender& sender = senders[id];
  if (const std::string run_of = message.sender.substr(slash + 1); sender.run != run_of) sender = {.run = run_of};
  uint64_t& last = sender.sequences[message.sightings.service];
  if (message.sequence <= last) return;
  last = message.sequence;
  received->add(static_cast<double>(message.sightings.observations.size() + message.sightings.pairs.size()));
  events.sightings(message.sightings);
}

void Peers::State::tick() {
  next = loops.loop(0).after(kSendEvery, [this] { tick(); });
  const auto now = std::chrono::steady_clock::now();
  for (const Untold& trip : std::exchange(untold, {}))
    if (trip.at <= now)
      tell(trip.body, trip.to, trip.times);
    else
      untold.push_back(trip);
  send_sightings();
  tell_load(now);
}

/// One that is lost is followed by the next one.
void Peers::State::tell_load(std::chrono::steady_clock::time_point now) {
  if (!load || now < next_load) return;
  next_load = now + kTellLoadEvery;
  if (members.size() < 2) return;
  const auto body = std::make_shared<const std::string>(encode_loads({.member = self, .loads = load()}));
  for (const store::Member& to : members) {
    const auto origin = to.id == self ? std::nullopt : origin_of(to.peer);
    if (!origin) continue;
    net::Outgoing request{.method = "POST", .target = "/v1/loads", .body = body};
    request.headers.set("Authorization", "Bearer " + to.secret);
    client->send(*origin, std::move(request), kAnswerWithin, [](const Result<net::Response>&) {});
  }
}

void Peers::State::send_sightings() {
  const store::Member* to = leader == self ? nullptr : find(leader);
  if (to == nullptr) return;
  for (Sightings& seen : events.take_sightings([this](const std::string& service) { return !outgoing[service].body; })) {
    Message& message = outgoing[seen.service];
    dropped->add(static_cast<double>(seen.dropped));
    const std::string service = seen.service;
    message.body = std::make_shared<const std::string>(
        encode({.sender = self + "/" + run, .sequence = ++message.sequence, .sightings = std::move(seen)}));
    send(service, *to);
  }
  for (auto& [service, message] : outgoing)
    if (message.body && !message.under_way) send(service, *to);
}

void Peers::State::send(const std::string& service, const store::Member& to) {
  const auto origin = origin_of(to.peer);
  if (!origin) return;
  Message& message = outgoing[service];
  message.under_way = true;
  net::Outgoing request{.method = "POST", .target = "/v1/sightings", .body = message.body};
  request.headers.set("Authorization", "Bearer " + to.secret);
  client->send(*origin, std::move(request), kAnswerWithin,
               [this, service, sequence = message.sequence](const Result<net::Response>& response) {
                 Message& sent = outgoing[service];
                 if (sent.sequence != sequence) return;
                 sent.under_way = false;
                 if (response && response->status != 401)
                   sent.body.reset();  // also where it was not understood: the next will not be, either
               });
}

void Peers::State::tell(const std::shared_ptr<const std::string>& body, const store::Member& to, int times) {
  const auto origin = origin_of(to.peer);
  if (!origin) return;
  net::Outgoing request{.method = "POST", .target = "/v1/trip", .body = body};
  request.headers.set("Authorization", "Bearer " + to.secret);
  client->send(*origin, std::move(request), kAnswerWithin, [this, body, to, times](const Result<net::Response>& response) {
    if ((response && response->status / 100 == 2) || times <= 1) return;
    untold.push_back({std::chrono::steady_clock::now() + kTellAgain, body, to, times - 1});
  });
}

Peers::Peers(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Peers>> Peers::start(const Listen& listen, PeerEvents events, metrics::Registry& metrics) {
  const auto address = reachable_address(listen);
  if (!address) return address.error().in("replicas: listen");
  auto state = std::make_unique<State>();
  state->events = std::move(events);
  state->received = metrics.counter("serin_route_sightings_received_total", "Answers that other routers have reported to this one.");
  state->dropped = metrics.counter("serin_route_sightings_dropped_total", "Answers that could not be reported to the leader in time.");
  State* raw = state.get();
  state->loops.post_and_wait(
      0, [raw] { raw->client = std::make_unique<net::Client>(raw->loops.loop(0), net::ClientOptions{.connect_timeout = kAnswerWithin}); });
  net::Limits limits;
  limits.body_bytes = kLargestMessage;
  auto server = net::Server::start(state->loops,
                                   {.name = "peers", .address = listen.address, .port = listen.port, .limits = limits, .metrics = &metrics},
                                   [raw](const net::Request& request, net::Responder responder) { responder.send(raw->answer(request)); });
  if (!server) return server.error().in("replicas: listen");
  state->server = *std::move(server);
  const bool v6 = address->find(':') != std::string::npos;
  state->address = fmt::format("{}{}{}:{}", v6 ? "[" : "", *address, v6 ? "]" : "", state->server->port());
  state->loops.post(0, [raw] { raw->tick(); });
  return std::unique_ptr<Peers>(new Peers(std::move(state)));
}

Peers::~Peers() {
  state_->server.reset();
  state_->loops.post_and_wait(0, [this] {
    state_->next = {};
    state_->client.reset();
  });
  state_->loops.stop();
}

const std::string& Peers::address() const { return state_->address; }
const std::string& Peers::secret() const { return state_->secret; }

void Peers::set_members(std::string self, std::vector<store::Member> members, std::string leader) {
  state_->loops.post(0, [raw = state_.get(), self = std::move(self), members = std::move(members), leader = std::move(leader)]() mutable {
    raw->self = std::move(self);
    raw->remember(std::move(members));
    if (std::exchange(raw->leader, std::move(leader)) != raw->leader)
      for (auto& [service, message] : raw->outgoing) {
        message.body.reset();
        ++message.sequence;  // an answer of the last leader means nothing any more
        message.under_way = false;
      }
    std::erase_if(raw->senders, [raw](const auto& sender) { return raw->find(sender.first) == nullptr; });
  });
}

void Peers::share_load(LoadSource source) {
  state_->loops.post(0, [raw = state_.get(), source = std::move(source)]() mutable { raw->load = std::move(source); });
}

void Peers::tell(std::vector<store::Trip> trips) {
  state_->loops.post(0, [raw = state_.get(), trips = std::move(trips)] {
    for (const store::Trip& trip : trips) {
      const auto body = std::make_shared<const std::string>(json::serialize(store::to_json(trip)));
      for (const store::Member& member : raw->members)
        if (member.id != raw->self) raw->tell(body, member, kTellTimes);
    }
  });
}

}  // namespace serin::router
