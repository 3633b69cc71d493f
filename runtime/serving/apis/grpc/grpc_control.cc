// grpc_control.cc: over gRPC, orders to the server and what is asked about them (REST: control_api.cc).

#include "inference.pb.h"
#include "runtime/serving/apis/grpc/unary_method.h"
#include "runtime/serving/apis/model_control.h"
#include "runtime/serving/settings/server_settings.h"

namespace serin::serving {
namespace {

namespace pb = inference;
using protocol::FlatValue;
using protocol::FlatValues;

const std::string kService = "/inference.GRPCInferenceService/";

FlatValues values_of(const google::protobuf::Map<std::string, pb::ModelRepositoryParameter>& parameters) {
  FlatValues values;
  for (const auto& [key, parameter] : parameters) {
    FlatValue& value = values[key];
    if (parameter.has_bool_param()) value = parameter.bool_param();
    if (parameter.has_int64_param()) value = parameter.int64_param();
    if (parameter.has_string_param()) value = parameter.string_param();
    if (parameter.has_bytes_param()) value = parameter.bytes_param();
  }
  return values;
}

Result<pb::LogSettingsResponse> log_settings_of(const Frontend& frontend, const pb::LogSettingsRequest& request) {
  FlatValues changes;
  for (const auto& [key, setting] : request.settings()) {
    FlatValue& value = changes[key];
    if (setting.has_bool_param()) value = setting.bool_param();
    if (setting.has_uint32_param()) value = int64_t{setting.uint32_param()};
    if (setting.has_string_param()) value = setting.string_param();
  }
  SERIN_CHECK(setting_changed(frontend, change_log_settings(changes)));
  pb::LogSettingsResponse answer;
  for (const auto& [key, value] : log_settings()) {
    auto& setting = (*answer.mutable_settings())[key];
    if (const auto* flag = std::get_if<bool>(&value)) setting.set_bool_param(*flag);
    if (const auto* number = std::get_if<int64_t>(&value)) setting.set_uint32_param(static_cast<uint32_t>(*number));
    if (const auto* text = std::get_if<std::string>(&value)) setting.set_string_param(*text);
  }
  return answer;
}

Result<pb::TraceSettingResponse> trace_settings_of(Frontend& frontend, const pb::TraceSettingRequest& request) {
  const std::string& model = request.model_name();
  if (!model.empty())
    if (const auto known = frontend.catalogue().find(model, ""); !known && known.error().code == Code::kNotFound) return known.error();
  FlatValues changes;
  for (const auto& [key, setting] : request.settings()) {
    FlatValue& value = changes[key];
    if (setting.value_size() == 1) value = setting.value(0);
    if (setting.value_size() > 1) value = std::vector<std::string>(setting.value().begin(), setting.value().end());
  }
  Tracer& tracer = frontend.host.tracer;
  SERIN_CHECK(setting_changed(frontend, tracer.change(model, changes)));
  pb::TraceSettingResponse answer;
  for (const auto& [key, value] : tracer.settings(model)) {
    auto& setting = (*answer.mutable_settings())[key];
    if (const auto* text = std::get_if<std::string>(&value)) setting.add_value(*text);
    if (const auto* list = std::get_if<std::vector<std::string>>(&value))
      for (const std::string& text : *list) setting.add_value(text);
  }
  return answer;
}

pb::SystemSharedMemoryStatusResponse status_of(const std::vector<SharedMemory::Region>& regions) {
  pb::SystemSharedMemoryStatusResponse answer;
  for (const SharedMemory::Region& region : regions) {
    auto& status = (*answer.mutable_regions())[region.name];
    status.set_name(region.name);
    status.set_key(region.key);
    status.set_offset(region.offset);
    status.set_byte_size(region.byte_size);
  }
  return answer;
}

}  // namespace

void add_shared_memory_methods(Frontend& frontend, GrpcMethodMap& methods) {
  const auto none = [&frontend] { return frontend.takes_regions ? Status() : Status(Error{Code::kUnsupported, std::string(kNoRegions)}); };
  add_unary<pb::SystemSharedMemoryStatusRequest, pb::SystemSharedMemoryStatusResponse>(
      methods, kService + "SystemSharedMemoryStatus", [&frontend](const auto& request) -> Result<pb::SystemSharedMemoryStatusResponse> {
        SERIN_TRY(const auto regions, frontend.shared_memory.list(request.name()));
        return status_of(regions);
      });
  add_unary<pb::SystemSharedMemoryRegisterRequest, pb::SystemSharedMemoryRegisterResponse>(
      methods, kService + "SystemSharedMemoryRegister",
      [&frontend, none](const auto& request) -> Result<pb::SystemSharedMemoryRegisterResponse> {
        SERIN_CHECK(none());
        SERIN_CHECK(add_region(frontend, {request.name(), request.key(), request.offset(), request.byte_size()}));
        return pb::SystemSharedMemoryRegisterResponse();
      });
  add_unary<pb::SystemSharedMemoryUnregisterRequest, pb::SystemSharedMemoryUnregisterResponse>(
      methods, kService + "SystemSharedMemoryUnregister",
      [&frontend, none](const auto& request) -> Result<pb::SystemSharedMemoryUnregisterResponse> {
        SERIN_CHECK(none());
        frontend.shared_memory.remove(request.name());
        return pb::SystemSharedMemoryUnregisterResponse();
      });
  add_unary<pb::CudaSharedMemoryStatusRequest, pb::CudaSharedMemoryStatusResponse>(
      methods, kService + "CudaSharedMemoryStatus", [](const auto& request) -> Result<pb::CudaSharedMemoryStatusResponse> {
        if (!request.name().empty()) return no_cuda_region(request.name());
        return pb::CudaSharedMemoryStatusResponse();
      });
  add_unary<pb::CudaSharedMemoryUnregisterRequest, pb::CudaSharedMemoryUnregisterResponse>(
      methods, kService + "CudaSharedMemoryUnregister", [](const auto&) { return pb::CudaSharedMemoryUnregisterResponse(); });
  add_unary<pb::CudaSharedMemoryRegisterRequest, pb::CudaSharedMemoryRegisterResponse>(
      methods, kService + "CudaSharedMemoryRegister",
      [](const auto&) -> Result<pb::CudaSharedMemoryRegisterResponse> { return Error{Code::kUnsupported, std::string(kNoCudaRegions)}; });
}

void add_control_methods(Frontend& frontend, GrpcMethodMap& methods) {
  const Error named{Code::kUnsupported, std::string(kNoRepositoryName)};
  const auto load = [&frontend, named](const pb::RepositoryModelLoadRequest& request, Repository::Done done) {
    if (!request.repository_name().empty()) return done(named);
    load_model(frontend, request.model_name(), values_of(request.parameters()), std::move(done));
  };
  const auto unload = [&frontend, named](const pb::RepositoryModelUnloadRequest& request, Repository::Done done) {
    if (!request.repository_name().empty()) return done(named);
    unload_model(frontend, request.model_name(), values_of(request.parameters()), std::move(done));
  };
  using Load = OrderMethod<pb::RepositoryModelLoadRequest, pb::RepositoryModelLoadResponse>;
  using Unload = OrderMethod<pb::RepositoryModelUnloadRequest, pb::RepositoryModelUnloadResponse>;
  methods.emplace(kService + "RepositoryModelLoad", std::make_unique<Load>(load));
  methods.emplace(kService + "RepositoryModelUnload", std::make_unique<Unload>(unload));
  add_shared_memory_methods(frontend, methods);
  add_unary<pb::LogSettingsRequest, pb::LogSettingsResponse>(
      methods, kService + "LogSettings", [&frontend](const auto& request) { return log_settings_of(frontend, request); });
  add_unary<pb::TraceSettingRequest, pb::TraceSettingResponse>(
      methods, kService + "TraceSetting", [&frontend](const auto& request) { return trace_settings_of(frontend, request); });
}

}  // namespace serin::serving
