// load_test.cc: `serin load`: what it sends, what it counts, and that its clock starts when a request should have started.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <mutex>

#include "runtime/base/file.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/tools/load.h"
#include "runtime/cli/tools/load_inputs.h"
#include "runtime/cli/tools/load_report.h"
#include "runtime/datasets/npz_archive.h"
#include "runtime/net/server.h"

namespace serin::cli {
namespace {

using testing::HasSubstr;

const std::string kEvalFile = std::string(SERIN_MODELS) + "/digits/eval.npz";
constexpr std::string_view kMetadata = R"({"name":"digits","inputs":[{"name":"pixels","datatype":"FP32","shape":[-1,64]}],"outputs":[]})";

protocol::Signature digits() {
  return {.model = "model 'digits'", .inputs = {{"pixels", DType::kFloat32, {-1, 64}}}, .outputs = {{"scores", DType::kFloat32, {-1, 10}}}};
}

// ---- request bodies ----

TEST(LoadInputs, ReadsMetadata) {
  const auto inputs = parse_model_inputs(kMetadata);
  ASSERT_TRUE(inputs) << inputs.error().message;
  ASSERT_EQ(inputs->size(), 1u);
  EXPECT_EQ(inputs->front().name, "pixels");
  EXPECT_EQ(inputs->front().dtype, DType::kFloat32);
  EXPECT_EQ(inputs->front().shape, (Shape{-1, 64}));
  for (const auto* bad :
       {"", "{}", "[]", R"({"inputs":[]})", R"({"inputs":[1]})", R"({"inputs":[{"name":"x","datatype":"FP32"}]})",
        R"({"inputs":[{"name":"x","datatype":"FP32","shape":["a"]}]})", R"({"inputs":[{"name":"x","datatype":"BYTES","shape":[1]}]})"}) {
    EXPECT_FALSE(parse_model_inputs(bad)) << bad;
  }
}

TEST(LoadInputs, RandomBodiesFitTheModel) {
  const auto bodies = random_bodies(digits().inputs, 3);
  ASSERT_TRUE(bodies) << bodies.error().message;
  std::string field;
  const auto request = protocol::decode_infer_request({*bodies->front()}, digits(), &field);
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->inputs[0].shape, (Shape{3, 64}));
  EXPECT_NE(*bodies->front(), *bodies->back());
  EXPECT_EQ(random_bodies({{"x", DType::kFloat32, {int64_t{1} << 40}}}, 1).error().code, Code::kTooLarge);
}

TEST(LoadInputs, RowsOfAFileGoRound) {
  const auto bodies = file_bodies(digits().inputs, 7, kEvalFile);
  ASSERT_TRUE(bodies) << bodies.error().message;
  ASSERT_EQ(bodies->size(), 540u) << "540 and 7 have no common divisor: after 540 bodies the rows are where they began";
  const std::shared_ptr<const datasets::StoredFile> file = *datasets::StoredFile::open(kEvalFile);
  const auto arrays = datasets::find_npz_arrays(file);
  const auto pixels = std::ranges::find(*arrays, "pixels", &datasets::NpzArray::name);
  const std::string bytes = pixels->file->read(pixels->offset, 540 * 64 * sizeof(float)).value();
  std::string field;
  const auto request = protocol::decode_infer_request({*bodies->at(77)}, digits(), &field);  // rows 539, 0, 1 ... 5
  ASSERT_TRUE(request) << request.error().message;
  const auto* const rows = reinterpret_cast<const float*>(bytes.data());
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(request->inputs[0].as<float>()[i], rows[539 * 64 + i]);
    EXPECT_EQ(request->inputs[0].as<float>()[64 + i], rows[i]);
  }
}

TEST(LoadInputs, SaysWhatAFileLacks) {
  EXPECT_THAT(file_bodies({{"image", DType::kFloat32, {-1, 64}}}, 1, kEvalFile).error().message, HasSubstr("no array 'image'"));
  EXPECT_THAT(file_bodies({{"pixels", DType::kInt64, {-1, 64}}}, 1, kEvalFile).error().message,
              HasSubstr("is FP32, the model takes INT64"));
  EXPECT_EQ(file_bodies(digits().inputs, 1, "/no/such/file.npz").error().code, Code::kNotFound);
}

// ---- a whole run ----

/// Serves digits' metadata and leaves inference to the test.
class Model {
 public:
  explicit Model(net::Handler infer) {
    server_ = std::move(
        *net::Server::start(loops_, {.name = "model"}, [infer = std::move(infer)](net::Request request, net::Responder responder) {
          if (request.method == "POST") return infer(std::move(request), std::move(responder));
          responder.send(request.path == "/v2/models/digits" ? net::Response{.body = std::string(kMetadata)}
                                                             : net::json_error(404, "no such model"));
        }));
  }
  LoadOptions options() const {
    return {.url = "127.0.0.1:" + std::to_string(server_->port()), .model = "digits", .seconds = 0.2, .json = true};
  }

 private:
  net::Loops loops_{1};
  std::unique_ptr<net::Server> server_;
};

boost::json::object run(const LoadOptions& options, int expected_exit_code) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(run_load(options), expected_exit_code);
  const std::string out = testing::internal::GetCapturedStdout();
  return out.empty() ? boost::json::object() : boost::json::parse(out).as_object();
}
uint64_t number(const boost::json::value& value) { return value.to_number<uint64_t>(); }

TEST(Load, SendsOnTimeWhateverTheAnswersDo) {
  std::mutex mutex;
  std::vector<net::Responder> held;
  Model stalling([&](net::Request, net::Responder responder) {  // answers nothing until all twenty are there
    const std::lock_guard lock(mutex);
    held.push_back(std::move(responder));
    if (held.size() < 20) return;
    for (net::Responder& each : held) each.send({});
  });
  LoadOptions options = stalling.options();
  options.rate = 100;
  const auto report = run(options, kYes);
  EXPECT_EQ(number(report.at("sent")), 20u);
  EXPECT_EQ(number(report.at("ok")), 20u);
  EXPECT_GE(report.at("max_ms").as_double(), 185) << "the first waited for the twentieth, 190 ms later";
  EXPECT_GE(report.at("p50_ms").as_double(), 85) << "so did all the others, each by its own time";
}

TEST(Load, CountsErrorsByKindAndAnswersByVersion) {
  std::atomic<int> asked{0};
  Model mixed([&](net::Request, net::Responder responder) {
    const int i = asked++;
    if (i == 3) return responder.send(net::json_error(429, "full"));
    net::Response response;
    response.headers.add("x-serin-version", i % 2 ? "1" : "2");
    responder.send(std::move(response));
  });
  LoadOptions options = mixed.options();
  options.concurrency = 2;
  const auto report = run(options, kNo);
  EXPECT_EQ(number(report.at("sent")), static_cast<uint64_t>(asked));
  EXPECT_EQ(number(report.at("errors")), 1u);
  EXPECT_EQ(number(report.at("errors_by").at("429")), 1u);
  EXPECT_EQ(number(report.at("ok")), number(report.at("versions").at("1")) + number(report.at("versions").at("2")));
}

TEST(Load, ExitCodes) {
  Model silent([](net::Request, net::Responder responder) { responder.send({}); });
  LoadOptions unknown = silent.options();
  unknown.model = "other";
  run(unknown, kNo);
  LoadOptions unreachable = silent.options();
  unreachable.url = "http://127.0.0.1:1";
  run(unreachable, kUnreachable);
  LoadOptions no_url = silent.options();
  no_url.url = "ftp://127.0.0.1";
  run(no_url, kUsage);
}

TEST(LoadReport, WhereNothingWasAnsweredThereIsNoLatencyButAReason) {
  LoadCounts counts;
  counts.failure("503", "{\"error\":\"not\nready\"}");
  counts.failure("503", "something else");
  EXPECT_TRUE(boost::json::parse(print_json(counts)).at("p50_ms").is_null());
  EXPECT_NE(print_text(counts).find("503                  2  {\"error\":\"not ready\"}\n"), std::string::npos) << print_text(counts);
  EXPECT_NE(print_text(counts).find("latency    none"), std::string::npos);
}

TEST(LoadReport, IsJsonWhateverTheNames) {
  LoadCounts counts;
  counts.versions["a\"b"] = 1;
  EXPECT_EQ(number(boost::json::parse(print_json(counts)).at("versions").at("a\"b")), 1u);
}

}  // namespace
}  // namespace serin::cli
