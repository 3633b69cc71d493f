// rest_api_test.cc: what a request holds, and for how long. What it answers is tested from outside (tests/e2e).

#include "runtime/serving/apis/rest/rest_api.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/runtime/base/eventually.h"
#include "tests/runtime/net/raw_socket.h"

namespace serin::serving {
namespace {

using namespace std::chrono_literals;
using serin::test::eventually;

std::string infer_request() {
  std::string data = "0";
  for (int i = 1; i < 64; ++i) data += ",0";
  const std::string body = R"({"inputs":[{"name":"pixels","datatype":"FP32","shape":[1,64],"data":[)" + data + "]}]}";
  return "POST /v2/models/digits/versions/1/infer HTTP/1.1\r\nhost: x\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
         body;
}

TEST(RestApi, ARequestWhoseClientHungUpHoldsNoVersion) {
  const auto backend = kernels::make_cpu_backend({.onednn_path = "none"});
  metrics::Registry registry;
  net::Loops loops(1);
  Host host{.backend = *backend, .metrics = registry, .defaults = {.warmup = false}, .boot = 1, .pool = ComputePool(1)};
  const SchedulerFactory schedulers(host);
  auto repository = std::move(*Repository::open({.roots = {{SERIN_MODELS}}, .poll = 1h}, host, schedulers));
  repository->load();
  auto frontend = std::make_unique<Frontend>(loops, *repository, host);
  auto api = std::make_unique<RestApi>(*frontend);
  auto server = std::move(*net::Server::start(
      loops, {}, [&](net::Request request, net::Responder responder) { api->handle(std::move(request), std::move(responder)); }));
  const std::weak_ptr<Version> version = repository->catalogue().get()->models.at("digits").versions.at(1).version;

  std::promise<void> gate;  // in front of compute threads, where the request goes: nobody knows yet how short it is
  const auto opened = gate.get_future().share();
  for (int i = 0; i < 64; ++i) host.pool.submit([opened] { opened.wait(); });  // more than there are threads
  auto client = net::test::RawSocket::connect(server->port());
  client.send(infer_request());
  EXPECT_TRUE(eventually([&] { return !version.lock()->idle(); }));
  client.close();
  EXPECT_TRUE(eventually([&] { return version.lock()->metrics().failure_canceled->value() == 1; }));

  server.reset();
  api.reset();
  frontend.reset();
  repository.reset();
  EXPECT_TRUE(version.expired());  // although the request is still queued: the threads of a version go with it, into a pool that still is
  gate.set_value();
}

}  // namespace
}  // namespace serin::serving
