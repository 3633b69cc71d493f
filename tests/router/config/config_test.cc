// router.yaml: what is read, and the line that a mistake is answered with.

#include "router/config/read_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "tests/router/store/test_folder.h"

namespace serin::router {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

Result<RouterConfig> load(const std::string& text) {
  const TestFolder folder;
  std::ofstream(folder.file("router.yaml")) << text;
  return load_config(folder.file("router.yaml"));
}

void expect_refused(const std::string& text, const std::string& message) {
  const auto config = load(text);
  ASSERT_FALSE(config) << text;
  EXPECT_THAT(config.error().message, HasSubstr(message));
}

constexpr const char* kService = R"(
services:
  - name: digits
    initial_stable: "1"
    versions:
      - name: "1"
        endpoints: [{url: "http://127.0.0.1:8000/v2/models/digits/versions/1/"}]
)";

TEST(Config, ReadsEveryKey) {
  const auto config = load(R"(
listen: 0.0.0.0:80
admin: "[::1]:0"
store: state/router.db
io_threads: 4
limits: {request_line_bytes: 4096, header_bytes: 32768, header_count: 50, body_bytes: 1000000, chunks: 100, streams: 10, connections: 2000,
         header_timeout: 5s, body_timeout: 10s, silence_timeout: 2m, idle_timeout: 1m, write_timeout: 20s}
services:
  - name: digits
    initial_stable: "2"
    force_header: true
    request_timeout: 3s
    versions:
      - name: "1"
        endpoints: [{url: "http://127.0.0.1:8000/v2/models/digits/versions/1/"}, {url: "http://node2"}]
        health: {path: /ready, interval: 500ms, timeout: 200ms, unhealthy: 3, healthy: 2}
      - {name: "2", endpoints: [{url: "http://[::1]:9000"}]}
    guard: {latency: {floor: 7ms}}
)");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->listen.address, "0.0.0.0");
  EXPECT_EQ(config->listen.port, 80);
  EXPECT_EQ(config->admin.listen.address, "::1");
  EXPECT_EQ(config->admin.listen.port, 0);
  EXPECT_EQ(config->store, "state/router.db");
  EXPECT_EQ(config->io_threads, 4);
  EXPECT_EQ(config->limits.body_bytes, 1'000'000U);
  EXPECT_EQ(config->limits.idle_timeout, std::chrono::minutes(1));
  ASSERT_THAT(config->services, SizeIs(1));
  const ServiceConfig& digits = config->services[0];
  EXPECT_EQ(digits.initial_stable, "2");
  EXPECT_TRUE(digits.force_header);
  EXPECT_EQ(digits.request_timeout, std::chrono::seconds(3));
  EXPECT_EQ(digits.guard.latency_floor, std::chrono::milliseconds(7));
  ASSERT_THAT(digits.versions, SizeIs(2));
  EXPECT_EQ(digits.versions[0].endpoints[0].path, "/v2/models/digits/versions/1");
  EXPECT_EQ(digits.versions[0].endpoints[1].origin, (net::Origin{"node2", 80}));
  EXPECT_EQ(digits.versions[0].endpoints[1].path, "");
  EXPECT_EQ(digits.versions[0].health.unhealthy, 3);
  EXPECT_EQ(digits.versions[1].endpoints[0].origin, (net::Origin{"::1", 9000}));
}

TEST(Config, DefaultsAreThoseOfTheReference) {
  const auto config = load(kService);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->listen.port, 8080);
  EXPECT_EQ(config->admin.listen.port, 8081);
  EXPECT_EQ(config->admin.listen.address, "127.0.0.1");
  EXPECT_EQ(config->store, "serin-router.db");
  EXPECT_FALSE(config->services[0].force_header);
  EXPECT_EQ(config->services[0].versions[0].health.interval, std::chrono::seconds(1));
}

TEST(Config, C1UnknownKeyIsNamedWithLineAndWhatIsAllowed) {
  expect_refused("lisen: 127.0.0.1:80\n", "router.yaml:1:1: unknown key 'lisen'; allowed: listen, tls, admin, store");
  expect_refused("services:\n  - name: digits\n    guards: {}\n", ":3:5: unknown key 'guards' under services[0]; allowed: name,");
  expect_refused("limits: {body: 1}\n", "unknown key 'body' under limits; allowed: request_line_bytes");
  expect_refused(std::string(kService) + "    guard: {errors: {treshold: 1%}}\n", "unknown key 'treshold'");
}

TEST(Config, C1DuplicateKey) { expect_refused("listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", ":2:1: key 'listen' given twice"); }

TEST(Config, C1WrongType) {
  expect_refused("services: digits\n", ":1:11: services: must be a list");
  expect_refused("io_threads: many\n" + std::string(kService), "io_threads: must be a whole number from 1 to 64");
  expect_refused("limits: 5\n", "limits: must be a map");
  expect_refused("- services\n", "must be a map");
}

TEST(Config, C1TabsAreAnErrorWithItsLine) { expect_refused("services:\n\t- name: x\n", "router.yaml:2:"); }

TEST(Config, C1AByteOrderMarkIsNoError) { EXPECT_TRUE(load("\xEF\xBB\xBF" + std::string(kService))); }

TEST(Config, MissingFileIsNamed) {
  const auto config = load_config("/no/such/router.yaml");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Code::kNotFound);
  EXPECT_THAT(config.error().message, HasSubstr("/no/such/router.yaml"));
}

TEST(Config, C2AddressesAndPorts) {
  for (const char* bad : {"8080", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http", ":8080", "::1:8080", "127.0.0.1:"})
    expect_refused("listen: '" + std::string(bad) + "'\n" + kService, "listen: must be ADDRESS:PORT");
  expect_refused("listen: 127.0.0.1:8081\n" + std::string("admin: 127.0.0.1:8081\n") + kService,
                 "127.0.0.1:8081 is already the address of 'listen'");
  EXPECT_TRUE(load("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\n" + std::string(kService)));
}

TEST(Config, R2EveryVersionHasAnEndpointAndStableIsAVersion) {
  expect_refused("services: [{name: d, initial_stable: '1', versions: [{name: '1', endpoints: []}]}]\n",
                 "must be a list of 1 to 256 entries");
  expect_refused("services: [{name: d, initial_stable: '1', versions: []}]\n", "must be a list of 1 to 63 versions");
  expect_refused("services: [{name: d, initial_stable: '9', versions: [{name: '1', endpoints: [{url: 'http://h'}]}]}]\n",
                 "'9' is no version of service 'd'; allowed: 1");
  expect_refused("services: []\n", "at least one service");
}

TEST(Config, NamesAndUrlsGivenTwice) {
  expect_refused("services: [{name: d, initial_stable: '1', versions: [{name: '1', endpoints: [{url: 'http://h'}, {url: 'http://h'}]}]}]\n",
                 "endpoint http://h given twice");
  expect_refused(
      "services: [{name: d, initial_stable: '1', versions: [{name: '1', endpoints: [{url: 'http://h'}]}, {name: '1', endpoints: [{url: "
      "'http://h'}]}]}]\n",
      "version '1' of service 'd' given twice");
  const std::string service = "{name: d, initial_stable: '1', versions: [{name: '1', endpoints: [{url: 'http://h'}]}]}";
  expect_refused("services: [" + service + ", " + service + "]\n", "service 'd' given twice");
}

/// kService with another value of `endpoints`.
std::string with_endpoints(const std::string& value) {
  return "services: [{name: d, initial_stable: '1', versions: [{name: '1', endpoints: " + value + "}]}]\n";
}

TEST(Config, EndpointsFromAFileAreReadAtStart) {
  const TestFolder folder;
  const std::string path = folder.file("endpoints.txt");
  std::ofstream(path) << "# of today\nhttp://127.0.0.1:1/v2/models/d/\r\n\n  http://[::1]:2  ";
  const auto config = load(with_endpoints("{file: '" + path + "', interval: 20ms}"));
  ASSERT_TRUE(config) << config.error().message;
  const VersionConfig& version = config->services[0].versions[0];
  EXPECT_EQ(version.source.file, path);
  EXPECT_EQ(version.source.interval, std::chrono::milliseconds(20));
  ASSERT_THAT(version.endpoints, SizeIs(2));
  EXPECT_EQ(version.endpoints[0].path, "/v2/models/d");
  EXPECT_EQ(version.endpoints[1].origin, (net::Origin{"::1", 2}));
}

TEST(Config, EndpointsFromDnsAreNotResolvedByReading) {
  const auto config = load(with_endpoints("{dns: 'http://no.such.host.invalid:8000/v2/models/d'}"));
  ASSERT_TRUE(config) << config.error().message;
  const VersionConfig& version = config->services[0].versions[0];
  EXPECT_THAT(version.endpoints, SizeIs(0));
  ASSERT_TRUE(version.source.name);
  EXPECT_EQ(version.source.name->origin, (net::Origin{"no.such.host.invalid", 8000}));
  EXPECT_EQ(version.source.interval, std::chrono::seconds(5));
}

TEST(Config, EndpointsFromEndpointSlicesAreNotLookedForByReading) {
  const auto first = [](const std::string& endpoints) {
    const auto config = load(with_endpoints(endpoints));
    EXPECT_TRUE(config) << config.error().message;
    return config->services[0].versions[0];
  };
  const VersionConfig version = first("{kubernetes: {service: digits-2, port: http, path: /v2/models/d/}, grpc_port: grpc}");
  EXPECT_THAT(version.endpoints, SizeIs(0));
  EXPECT_EQ(version.tls, nullptr);
  ASSERT_TRUE(version.source.slices);
  const SliceSource& source = *version.source.slices;
  EXPECT_EQ(source.selection.labels, (kubernetes::Labels{{"kubernetes.io/service-name", "digits-2"}}));
  EXPECT_EQ(source.selection.name_space, "");
  EXPECT_EQ(source.selection.port, "http");
  EXPECT_EQ(source.selection.grpc_port, "grpc");
  EXPECT_EQ(source.pattern.path, "/v2/models/d");
  EXPECT_TRUE(source.pattern.http);
  const VersionConfig secure =
      first("{kubernetes: {selector: {app: d, example.org/track: canary}, namespace: other, port: 08001, scheme: grpcs}}");
  EXPECT_NE(secure.tls, nullptr);
  const kubernetes::SliceSelection& selection = secure.source.slices->selection;
  EXPECT_EQ(selection.labels, (kubernetes::Labels{{"app", "d"}, {"example.org/track", "canary"}}));
  EXPECT_EQ(selection.name_space, "other");
  EXPECT_EQ(selection.port, "8001");
  EXPECT_FALSE(secure.source.slices->pattern.http);
  EXPECT_TRUE(secure.source.slices->pattern.secure());
}

TEST(Config, F3ABadSourceOfEndpointsIsNamed) {
  const TestFolder folder;
  const std::string path = folder.file("endpoints.txt"), from_file = with_endpoints("{file: '" + path + "'}");
  expect_refused(from_file, path);
  const auto refused = [&](const std::string& text, const std::string& message) {
    std::ofstream(path) << text;
    expect_refused(from_file, "endpoints.file: " + path + message);
  };
  refused("http://h\nhost:1\n",
          ":2: must be http://HOST:PORT[/PATH] or grpc://HOST:PORT[/PATH] (https:// and grpcs:// with TLS), not 'host:1'");
  refused("http://h\n\nhttp://h\n", ":3: endpoint http://h given twice");
  std::string many;
  for (int i = 0; i < 257; ++i) many += fmt::format("http://h{}\n", i);
  refused(many, ":257: more than 256 endpoints");
  expect_refused(with_endpoints("{}"), "must be a list, or have one of file (a path), dns");
  expect_refused(with_endpoints("{file: a, dns: 'http://h'}"), "must be a list, or have one of file (a path), dns");
  expect_refused(with_endpoints("{file: ''}"), "endpoints.file: must be the path of a file");
  expect_refused(with_endpoints("{file: /}"), "endpoints.file: ");
  expect_refused(with_endpoints("{dns: host}"), "endpoints.dns: must be http://HOST:PORT[/PATH]");
  expect_refused(with_endpoints("{dns: 'http://h', interval: 0}"), "interval: must be from 10ms to 24h");
  expect_refused(with_endpoints("{host: h}"), "unknown key 'host'");
}

TEST(Config, EndpointsThatSpeakGrpc) {
  const auto first = [](const std::string& endpoints) {
    const auto config = load(with_endpoints(endpoints));
    EXPECT_TRUE(config) << config.error().message;
    const VersionConfig& version = config->services[0].versions[0];
    return version.source.name ? *version.source.name : version.endpoints[0];
  };
  const Endpoint both = first("[{url: 'http://h:8000/v2/models/m', grpc_port: 8001}]");
  EXPECT_TRUE(both.http);
  EXPECT_EQ(both.grpc, (net::Origin{"h", 8001}));
  const Endpoint alone = first("[{url: 'grpc://h:8001/v2/models/m'}]");
  EXPECT_FALSE(alone.http);
  EXPECT_EQ(alone.grpc, (net::Origin{"h", 8001}));
  EXPECT_EQ(alone.path, "/v2/models/m");
  EXPECT_FALSE(first("[{url: 'http://h'}]").grpc);
  EXPECT_EQ(first("{dns: 'http://h', grpc_port: 9}").grpc, (net::Origin{"h", 9}));
  expect_refused(with_endpoints("[{url: 'http://h', grpc_port: 65536}]"), "grpc_port");
  expect_refused(with_endpoints("[{url: 'grpc://h:0'}]"), "must be http://HOST:PORT[/PATH] or grpc://HOST:PORT[/PATH]");
}

TEST(Config, UrlsThatAreNone) {
  for (const char* bad : {"127.0.0.1:8000", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://user@h", "http://h/?x=1"})
    expect_refused(
        fmt::format("services: [{{name: d, initial_stable: '1', versions: [{{name: '1', endpoints: [{{url: '{}'}}]}}]}}]\n", bad),
        "must be http://HOST:PORT[/PATH]");
}

TEST(Config, EndpointsWithTls) {
  const auto first = [](const std::string& endpoints) {
    const auto config = load(with_endpoints(endpoints));
    EXPECT_TRUE(config) << config.error().message;
    return config->services[0].versions[0];
  };
  const VersionConfig listed = first("[{url: 'https://h/x', grpc_port: 9}, {url: 'grpcs://g:1'}, {url: 'http://p'}]");
  EXPECT_NE(listed.tls, nullptr);
  EXPECT_EQ(listed.endpoints[0].origin, (net::Origin{"h", 443, true}));
  EXPECT_EQ(listed.endpoints[0].grpc, (net::Origin{"h", 9, true}));
  EXPECT_EQ(listed.endpoints[1].grpc, (net::Origin{"g", 1, true}));
  EXPECT_FALSE(listed.endpoints[2].origin.secure);
  EXPECT_NE(first("{dns: 'https://h'}").tls, nullptr);
  EXPECT_EQ(first("[{url: 'http://h'}]").tls, nullptr);
}

std::string with(const std::string& keys) { return std::string(kService) + keys; }

TEST(Config, SeveralRolloutsAreTracksBehindTheServices) {
  const auto config = load(with("    rollouts: 3\n    recording: {file: x.rec, key: KEY}\n"));
  EXPECT_FALSE(config) << "the key of the recording does not exist";
  const auto good = load(with("    rollouts: 3\n") +
                         R"(  - {name: other, initial_stable: "1", versions: [{name: "1", endpoints: [{url: "http://a"}]}]})");
  ASSERT_TRUE(good) << good.error().message;
  ASSERT_THAT(good->services, SizeIs(4));
  EXPECT_EQ(good->services[1].name, "other") << "the services of the file come first";
  EXPECT_EQ(good->services[2].name, "digits~2");
  EXPECT_EQ(good->services[3].name, "digits~3");
  EXPECT_EQ(good->services[3].track_of, "digits");
  EXPECT_EQ(service_of(good->services[3].name), "digits");
  expect_refused(with("    rollouts: 9\n"), "rollouts");
  expect_refused(with("    rollouts: 0\n"), "rollouts");
  expect_refused("services: [{name: a~2}]", "must not contain '~'");
}

TEST(Config, APlainSplit) {
  const auto config = load(with("    split: {weights: {\"1\": 100}, sticky: {cookie: session}}\n"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->services[0].split->ppm, std::vector<uint32_t>({1'000'000}));
  EXPECT_EQ(config->services[0].split->sticky.cookie, "session");
  EXPECT_EQ(config->services[0].split->sticky.salt, "digits") << "the same in every router";
  for (const auto& [split, message] : std::vector<std::pair<std::string, std::string>>{
           {"{weights: {\"1\": 60}}", "must be 100 % together, not 60 %"},
           {"{weights: {\"1\": 50, \"2\": 50}}", "service 'digits' has no version '2'"},
           {"{weights: {\"1\": -1}}", "weights.1"},
           {"{weights: [100]}", "must name versions and their weights"},
           {"{}", "weights"},
           {"{weights: {\"1\": 100}, sticky: {}}", "must name a header or a cookie"},
           {"{weights: {\"1\": 100}, sticky: {header: \"a b\"}}", "must be the name of a header"},
           {"{weights: {\"1\": 100}, more: 1}", "more"}})
    expect_refused(with("    split: " + split + "\n"), message);
  expect_refused(with("    rollouts: 2\n    split: {weights: {\"1\": 100}}\n"), "has no rollouts");
}

TEST(Config, WhatComesLaterIsRefusedByName) {
  expect_refused(std::string(kService) + "    sticky: {header: x-user}\n", "services[0].sticky: belongs to a rollout");
}

TEST(Config, SeveralRouters) {
  const std::string etcd = "store: {file: a.db, etcd: {endpoints: ['http://10.0.0.1:2379', 'http://10.0.0.2:2379'], timeout: 200ms}}\n";
  const auto config = load(etcd + "replicas: {max: 3, listen: 127.0.0.1:8082, name: a}\n" + kService);
  ASSERT_TRUE(config) << config.error().message;
  ASSERT_TRUE(config->replicas);
  EXPECT_EQ(config->store, "a.db");
  EXPECT_EQ(config->replicas->max, 3);
  EXPECT_EQ(config->replicas->listen.port, 8082);
  EXPECT_EQ(config->replicas->name, "a");
  EXPECT_EQ(config->replicas->etcd->prefix, "/serin");
  ASSERT_EQ(config->replicas->etcd->endpoints.size(), 2U);
  EXPECT_EQ(config->replicas->etcd->endpoints[1].host, "10.0.0.2");
  EXPECT_EQ(config->replicas->etcd->timeout, std::chrono::milliseconds(200));
  EXPECT_FALSE(load(kService)->replicas);

  expect_refused(etcd + kService, "say how many routers there may be");
  expect_refused(std::string("replicas: {max: 3, listen: 127.0.0.1:8082}\n") + kService, "need a store that they share");
  expect_refused(etcd + "replicas: {listen: 127.0.0.1:8082}\n" + kService, "needs max");
  expect_refused(etcd + "replicas: {max: 0, listen: 127.0.0.1:8082}\n" + kService, "replicas.max");
  expect_refused(etcd + "replicas: {max: 3}\n" + kService, "listen");
  const auto with_etcd = [](const std::string& inside) {
    return "store: {etcd: {" + inside + "}}\nreplicas: {max: 3, listen: 127.0.0.1:8082}\n" + std::string(kService);
  };
  expect_refused(with_etcd("endpoints: []"), "at least one url");
  EXPECT_NE(load(with_etcd("endpoints: ['https://10.0.0.1:2379']"))->replicas->etcd->tls, nullptr);
  expect_refused(with_etcd("endpoints: ['http://10.0.0.1:2379'], tls: {ca: a}"), "belongs to an url that begins with https://");
  expect_refused(with_etcd("endpoints: ['10.0.0.1:2379']"), "must be a url such as");
  expect_refused(with_etcd("endpoints: ['http://10.0.0.1:2379'], prefix: serin"), "must begin with '/'");
  expect_refused(with_etcd("endpoints: ['http://10.0.0.1:2379'], user: serin"), "belong together");
}

TEST(Config, C4Timeouts) {
  expect_refused(std::string(kService) + "    request_timeout: 0\n", "request_timeout: must be from 1ms to 24h");
  expect_refused(std::string(kService) + "    request_timeout: 30\n", "must be a duration with a unit");
  expect_refused("limits: {connections: 0}\n" + std::string(kService), "connections: must be a whole number from 1");
}

}  // namespace
}  // namespace serin::router
