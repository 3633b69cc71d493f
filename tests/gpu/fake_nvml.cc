// fake_nvml.cc: libnvidia-ml.so.1 with two devices where the emulated runtime has them, the second of which does not tell its power, as a MIG slice does not.

#include <cstdint>
#include <cstring>

namespace {

enum Status { kSuccess = 0, kUninitialized = 1, kNotSupported = 3, kNotFound = 6 };
bool started = false;
int places[] = {0, 1};

int index_of(const void* device) { return *static_cast<const int*>(device); }

}  // namespace

extern "C" {

int nvmlInit_v2() {
  started = true;
  return kSuccess;
}
int nvmlShutdown() { return kSuccess; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
  if (!started) return kUninitialized;
  for (int& place : places) {
    if (std::strcmp(id, place == 0 ? "0000:10:00.0" : "0000:11:00.0") != 0) continue;
    *device = &place;
    return kSuccess;
  }
  return kNotFound;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* rates) {
  rates[0] = index_of(device) == 0 ? 37 : 0;
  rates[1] = 5;
  return kSuccess;
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 150754820096;
  memory[2] = 1000 + static_cast<unsigned long long>(index_of(device));
  memory[1] = memory[0] - memory[2];
  return kSuccess;
}
int nvmlDeviceGetTemperature(void* device, int, unsigned* celsius) {
  *celsius = 41 + static_cast<unsigned>(index_of(device));
  return kSuccess;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  if (index_of(device) != 0) return kNotSupported;
  *milliwatts = 123456;
  return kSuccess;
}
}
