// try_it.cc: finds sizes that a model accepts, and prints commands to try it. Short inputs are written out as JSON; long tensors come from
// /dev/zero, as bytes after it.

#include "runtime/cli/serve/try_it.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <vector>

#include "runtime/cli/ready_file.h"
#include "runtime/net/http.h"
#include "runtime/net/target.h"
#include "runtime/protocol/tensor/datatype.h"

namespace serin::cli {
namespace {

using protocol::TensorSpec;

constexpr int64_t kSizes[] = {1, 8, 16, 32, 64, 224};  // of what is open beside the batch: the first that runs
constexpr int64_t kLargest = int64_t{4} << 20;         // elements of a trial's inputs
constexpr int64_t kWrittenOut = 64;                    // elements, of all inputs together

Status small_enough(const std::vector<Shape>& shapes) {
  int64_t elements = 0;
  for (const Shape& shape : shapes) elements += std::min(shape.checked_elements().value_or(kLargest + 1), kLargest + 1);
  if (elements <= kLargest) return {};
  return Error{Code::kTooLarge, fmt::format("its inputs have more than {} elements", kLargest)};
}

/// Whether the model answers zeros of these shapes in time, or why not.
Status runs(serving::Version& version, const std::vector<Shape>& shapes, serving::Clock::time_point deadline) {
  SERIN_CHECK(small_enough(shapes));
  Error late{Code::kDeadlineExceeded, "it takes too long"};
  if (serving::Clock::now() > deadline) return late;
  auto job = std::make_shared<serving::Job>();
  const auto& inputs = version.signature().inputs;
  size_t bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    job->inputs.push_back({inputs[i].dtype, shapes[i], nullptr});
    bytes += AlignedBuffer::rounded_up(job->inputs.back().bytes());
  }
  job->memory = AlignedBuffer(bytes);
  if (bytes > 0) std::memset(job->memory.data(), 0, bytes);
  job->texts.resize(inputs.size());
  size_t at = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    TensorView& view = job->inputs[i];
    view.data = job->memory.data() + at;
    at += AlignedBuffer::rounded_up(view.bytes());
    if (view.dtype != DType::kString) continue;
    job->texts[i].resize(static_cast<size_t>(view.elements()));
    view.data = job->texts[i].data();
  }
  job->arrived = serving::Clock::now();
  job->deadline = deadline;
  job->shadow = true;
  if (version.stateful()) job->sequence = {.number = ~uint64_t{0}, .name = {}, .start = true, .end = true};
  const auto answered = std::make_shared<std::promise<Status>>();
  job->done = [answered](serving::Answer&& answer) { answered->set_value(answer.outputs ? Status() : Status(answer.outputs.error())); };
  auto answer = answered->get_future();
  SERIN_CHECK(version.submit(job));
  constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
  while (serving::Clock::now() < deadline && !end_signal_is_pending())
    if (answer.wait_for(kBetweenLooks) == std::future_status::ready) return answer.get();
  return late;
}

std::vector<Shape> shapes_with(const serving::Version& version, int64_t size, bool& open) {
  std::vector<Shape> shapes;
  for (const TensorSpec& input : version.signature().inputs) {
    Shape shape = input.ranked ? input.shape : Shape{1};
    for (size_t axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] >= 0) continue;
      const bool rows = axis == 0 && version.batchable();
      open |= !rows;
      shape[axis] = rows ? 1 : size;
    }
    shapes.push_back(shape);
  }
  return shapes;
}

/// Where none runs, why the first did not.
Result<std::vector<Shape>> find_shapes(serving::Version& version, serving::Clock::time_point deadline) {
  Status first;
  for (const int64_t size : kSizes) {
    bool open = false;
    std::vector<Shape> shapes = shapes_with(version, size, open);
    const Status ran = open ? runs(version, shapes, deadline) : small_enough(shapes);
    if (ran) return shapes;
    if (first)
      first =
          Error{ran.error().code, fmt::format("{}{}", open ? fmt::format("with {} for what is open, ", size) : "", ran.error().message)};
    if (!open) break;
  }
  return first.error();
}

/// Whether the body of a request may be a picture or a text.
bool takes_body(const serving::Version& version) {
  return version.signature().inputs.size() == 1 && version.signature().inputs.front().body;
}

std::string shape_json(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.dims(), ",")); }

/// The text between single quotes of a shell.
std::string for_shell(const std::string& text) {
  std::string quoted;
  for (const char c : text) c == '\'' ? quoted += R"('\'')" : quoted += c;
  return quoted;
}

bool is_secure(const TriedServer& server) { return server.url.starts_with("https"); }

std::string curl_options(const TriedServer& server) {
  return fmt::format("{}{}{}", is_secure(server) ? "-k " : "", server.certificate ? R"(--cert "$CERT" --key "$KEY" )" : "",
                     server.token ? R"(-H "Authorization: Bearer $TOKEN" )" : "");
}

std::string curl_line(const serving::Version& version, const std::vector<Shape>& shapes, const TriedServer& server) {
  const std::vector<TensorSpec>& inputs = version.signature().inputs;
  if (takes_body(version))
    return fmt::format("curl {}{}/v2/models/{}/infer --data-binary @FILE    # FILE: {}", curl_options(server), server.url,
                       net::escaped(version.model()), inputs.front().name);
  int64_t elements = 0;
  for (const Shape& shape : shapes) elements += shape.elements();
  std::string json = R"({"inputs":[)";
  size_t behind = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool text = inputs[i].dtype == DType::kString;
    json += fmt::format(R"({}{{"name":{},"shape":{},"datatype":"{}",)", i > 0 ? "," : "", net::json_quote(inputs[i].name),
                        shape_json(shapes[i]), protocol::oip_datatype(inputs[i].dtype));
    if (text || elements <= kWrittenOut) {
      const std::string_view zero = text ? R"("")" : inputs[i].dtype == DType::kBool ? "false" : "0";
      json += fmt::format(R"("data":[{}]}})", fmt::join(std::vector(static_cast<size_t>(shapes[i].elements()), zero), ","));
    } else {
      const size_t bytes = TensorView{inputs[i].dtype, shapes[i], nullptr}.bytes();
      json += fmt::format(R"("parameters":{{"binary_data_size":{}}}}})", bytes);
      behind += bytes;
    }
  }
  json += version.stateful() ? R"(],"parameters":{"sequence_id":1,"sequence_start":true,"sequence_end":true}})" : "]}";
  const std::string url = fmt::format("{}/v2/models/{}/infer", server.url, net::escaped(version.model())), options = curl_options(server);
  if (behind == 0) return fmt::format("curl {}{} -d '{}'", options, url, for_shell(json));
  return fmt::format(
      "{{ printf %s '{}'; head -c {} /dev/zero; }} | curl {}-s {} -H 'Inference-Header-Content-Length: {}' --data-binary @- | head -c 1000",
      for_shell(json), behind, options, url, json.size());
}

std::string_view numpy_type(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "bool";
    case DType::kInt8: return "int8";
    case DType::kInt16: return "int16";
    case DType::kInt32: return "int32";
    case DType::kInt64: return "int64";
    case DType::kUInt8: return "uint8";
    case DType::kUInt16: return "uint16";
    case DType::kUInt32: return "uint32";
    case DType::kUInt64: return "uint64";
    case DType::kFloat16: return "float16";
    case DType::kBFloat16: return "bfloat16";  // of ml_dtypes, which comes with the client
    case DType::kFloat64: return "float64";
    case DType::kString: return "object";
    default: return "float32";
  }
}

std::string imports(const serving::Version& version, const TriedServer& server) {
  const bool bfloat16 =
      std::ranges::any_of(version.signature().inputs, [](const TensorSpec& input) { return input.dtype == DType::kBFloat16; });
  return fmt::format("{}{}{}numpy, tritonclient.http as http", is_secure(server) ? "gevent.ssl, " : "", bfloat16 ? "ml_dtypes, " : "",
                     server.token || server.certificate ? "os, " : "");
}

/// What the client is made with. Its `insecure` is for the host's name alone: the context is what would ask who signed the certificate.
std::string client_arguments(const TriedServer& server) {
  std::string arguments = fmt::format("\"{}\"", server.url.substr(server.url.find("//") + 2));
  if (is_secure(server)) arguments += ", ssl=True, insecure=True, ssl_context_factory=gevent.ssl._create_unverified_context";
  if (server.certificate) arguments += R"(, ssl_options={"certfile": os.environ["CERT"], "keyfile": os.environ["KEY"]})";
  return arguments;
}

std::string_view headers_argument(const TriedServer& server) {
  return server.token ? R"(, headers={"Authorization": "Bearer " + os.environ["TOKEN"]})" : "";
}

std::string python_lines(const serving::Version& version, const std::vector<Shape>& shapes, const TriedServer& server) {
  if (takes_body(version))
    return fmt::format(R"(import {}
client = http.InferenceServerClient({})
data = http.InferInput({}, [1], "BYTES")
data.set_data_from_numpy(numpy.array([open("FILE", "rb").read()], dtype=object))
print(client.infer({}, [data]{}).get_response())
)",
                       imports(version, server), client_arguments(server), net::json_quote(version.signature().inputs.front().name),
                       net::json_quote(version.model()), headers_argument(server));
  std::string inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const TensorSpec& input = version.signature().inputs[i];
    inputs += fmt::format("{}({}, {}, \"{}\", \"{}\")", i > 0 ? ", " : "", net::json_quote(input.name), shape_json(shapes[i]),
                          protocol::oip_datatype(input.dtype), numpy_type(input.dtype));
  }
  return fmt::format(R"(import {}
client = http.InferenceServerClient({})
inputs = []
for name, shape, datatype, dtype in [{}]:
    inputs.append(http.InferInput(name, shape, datatype))
    inputs[-1].set_data_from_numpy(numpy.zeros(shape, dtype))
print(client.infer({}, inputs{}{}).get_response())
)",
                     imports(version, server), client_arguments(server), inputs, net::json_quote(version.model()),
                     version.stateful() ? ", sequence_id=1, sequence_start=True, sequence_end=True" : "", headers_argument(server));
}

}  // namespace

std::string to_fill_in(const TriedServer& server) {
  if (!server.token && !server.certificate) return {};
  return fmt::format("export{}{}", server.token ? " TOKEN=..." : "", server.certificate ? " CERT=FILE KEY=FILE    # a client's, PEM" : "");
}

TryIt try_it(serving::Version& version, const TriedServer& server, serving::Clock::time_point until) {
  const auto shapes = find_shapes(version, until);
  if (!shapes) return {.why_not = shapes.error().message};
  return {curl_line(version, *shapes, server), python_lines(version, *shapes, server), {}};
}

}  // namespace serin::cli
